"""Files that instruct the agent: which results read one, and which steps hold the latest copy of
each. They are no output: they are followed for as long as the work goes on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from hotset.nouns.page import Kind
from hotset.nouns.window import Form
from hotset.text.call_shape import path_of, reads_file
from hotset.window.step_sizes import WeighedConversation

_FRONT = 2048  # bytes of a call's arguments in which it names what it reads
_PRINTS = re.compile(rb"(?:^|[\s\"';&|(])(?:cat|sed -n|head|tail|nl|less|more|bat|awk)\s")


def instructs(tool: str, arguments: bytes, files: tuple[str, ...]) -> bool:
    """True for a call that reads one of these files, by a tool for files or by a command."""
    return bool(_named_file(tool, arguments, files))


def _named_file(tool: str, arguments: bytes, files: tuple[str, ...]) -> bytes:
    """The file of instructions that a call reads, as it is named; empty if it reads none."""
    front = arguments[:_FRONT]
    if not any(part in front for part in _parts(files)):  # a tenth of the time of the pattern
        return b""
    found = _pattern(files).search(front)
    if found is None:
        return b""
    reads = reads_file(tool, arguments) if path_of(arguments) else _PRINTS.search(arguments)
    return found["path"] if reads else b""


def instruction_steps(weighed: WeighedConversation, files: tuple[str, ...], most: int) -> set[int]:
    """Numbers of the steps with the latest copy of each file of instructions, the latest first,
    up to `most` tokens."""
    held: set[int] = set()
    seen: set[bytes] = set()
    for step in reversed(weighed.steps):
        named = set(_read_in(weighed, step.first, step.last + 1, files)) - seen
        seen |= named
        most -= weighed.of(step) if named else 0
        if named and most >= 0:
            held.add(step.number)
    return held


def _read_in(
    weighed: WeighedConversation, first: int, end: int, files: tuple[str, ...]
) -> Iterator[bytes]:
    """Files of instructions that calls of these lines read and that are not shown shortened."""
    shown = {
        piece.call
        for line in weighed.lines[first:end]
        for position, piece in enumerate(line.pieces)
        if piece.is_result
        and (row := weighed.rows.get(line.chain, {}).get(position)) is not None
        and row.form in (Form.STUB, Form.ECHO)
    }
    for line in weighed.lines[first:end]:
        for piece in line.pieces:
            if (
                piece.kind.family is Kind.TOOL_CALL
                and piece.call not in shown
                and (file := _named_file(piece.tool, piece.content, files))
            ):
                yield file


@lru_cache(8)
def _parts(files: tuple[str, ...]) -> tuple[bytes, ...]:
    """The longest part of each name that is the same in all files it stands for."""
    return tuple({max(file.encode().split(b"*"), key=len) for file in files})


@lru_cache(8)
def _pattern(files: tuple[str, ...]) -> re.Pattern[bytes]:
    """Matches a path that ends with one of these names; `*` stands for any characters of one
    name."""
    names = b"|".join(
        re.escape(file.encode()).replace(rb"\*", rb"[^/\s\"']{1,80}") for file in files
    )
    return re.compile(
        rb"(?:^|[\s\"'=(])(?P<path>(?:[^\s\"'=()]{0,200}/)?(?:%s))(?=$|[\s\"';|&)\\])" % names
    )
