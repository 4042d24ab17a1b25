"""What documents and settings consist of: headings, tables, top-level keys. Found line by line; nothing is parsed or loaded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from hotset.sources.code.languages import Language
from hotset.sources.code.symbols import MOST_SYMBOLS, Symbol, visible

_HEADING = re.compile(r" {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#*)?\s*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_YAML_KEY = re.compile(r"(?![-#\s%&*!|>{}\[\]])(\"[^\"]{1,200}\"|'[^']{1,200}'|[^\s:#][^:#]{0,200}?)\s*:(?:\s|$)")
_TABLE = re.compile(r"\s*\[{1,2}\s*([^\[\]]{1,200}?)\s*\]{1,2}\s*(?:[#;].*)?$")
_SETTING = re.compile(r"([\w.\"'-]{1,200})\s*=")
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*$")
_LONGEST = 200

_Mark = tuple[int, int, str, str]
"""Its line, from 1; its depth, from 1; its name; its kind."""


def structure(text: str, language: Language) -> tuple[Symbol, ...]:
    """Sections of a document, tables and keys of settings; empty for what has neither."""
    find = _FINDERS.get(language.name)
    if find is None:
        return ()
    lines = text.split("\n")
    marks = []
    for mark in find(lines):
        marks.append(mark)
        if len(marks) > MOST_SYMBOLS:
            return ()
    return tuple(_spans(marks, lines, language.comment))


def _spans(marks: Sequence[_Mark], lines: Sequence[str], comments: tuple[str, ...]) -> Iterator[Symbol]:
    """A mark's stretch ends in front of the next one of its depth or above."""
    tops = [_comment_above(lines, mark[0], comments) for mark in marks]
    ends = [len(lines)] * len(marks)
    open_: list[int] = []
    for at, (_, depth, _, _) in enumerate(marks):
        while open_ and marks[open_[-1]][1] >= depth:
            ends[open_.pop()] = tops[at] - 1
        open_.append(at)
    scope: list[tuple[int, str]] = []
    for at, (line, depth, name, kind) in enumerate(marks):
        while scope and scope[-1][0] >= depth:
            scope.pop()
        called = visible(name, _LONGEST)
        yield Symbol(called, kind, tuple(each for _, each in scope), visible(lines[line - 1], _LONGEST), tops[at], ends[at])
        scope.append((depth, called))


def _comment_above(lines: Sequence[str], line: int, marks: tuple[str, ...]) -> int:
    while marks and line > 1 and lines[line - 2].startswith(marks):
        line -= 1
    return line


def _headings(lines: Sequence[str]) -> Iterator[_Mark]:
    fence = ""
    for number, line in enumerate(lines, 1):
        if found := _FENCE.match(line):
            if not fence:
                fence = found[1]
            elif found[1].startswith(fence):
                fence = ""
        elif not fence and (heading := _HEADING.match(line)) and heading[2]:
            yield number, len(heading[1]), heading[2], "section"


def _underlined(lines: Sequence[str]) -> Iterator[_Mark]:
    """reStructuredText: the first kind of underline is the outermost."""
    depths: dict[str, int] = {}
    for number, (title, line) in enumerate(pairwise(lines), 1):
        found = _UNDERLINE.match(line)
        if (
            found
            and title.strip()
            and not _UNDERLINE.match(title)
            and len(line.rstrip()) >= len(title.rstrip())
            and title[0] != " "
        ):
            yield number, depths.setdefault(found[1], len(depths) + 1), title, "section"


def _yaml_keys(lines: Sequence[str]) -> Iterator[_Mark]:
    for number, line in enumerate(lines, 1):
        if key := _YAML_KEY.match(line):
            yield number, 1, key[1].strip("\"'"), "key"


def _tables(lines: Sequence[str]) -> Iterator[_Mark]:
    in_a_table = False
    for number, line in enumerate(lines, 1):
        if table := _TABLE.match(line):
            in_a_table = True
            yield number, 1, table[1], "table"
        elif not in_a_table and (setting := _SETTING.match(line)):
            yield number, 1, setting[1].strip("\"'"), "key"


_FINDERS: Mapping[str, Callable[[Sequence[str]], Iterator[_Mark]]] = {
    "markdown": _headings,
    "rst": _underlined,
    "yaml": _yaml_keys,
    "toml": _tables,
    "ini": _tables,
}
