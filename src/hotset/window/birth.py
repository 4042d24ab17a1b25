"""The form of a page, decided the first time it is shown: whole, an excerpt, or a pointer to what stands already."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hotset.nouns.knobs import Knobs
from hotset.nouns.page import Kind, digest
from hotset.nouns.window import Form, Piece, Spot
from hotset.window.names import names_in, spoken
from hotset.window.preview import Origin, closing, preview

_LEAST = 400
"""Characters below which a result is never exchanged for a pointer: the pointer would hardly be shorter."""

_MOST_COMPARED = 400_000  # characters
_MOST_CHANGED = 600  # lines between the first and the last difference; more is another text, not another version
_CONTEXT = 2
_WORTH = 0.6
"""What a pointer or a difference may take of the whole at most."""

_ID_LENGTH = 12
_NUMBERED = re.compile(r"^\s*\d+(?:→|\t| {2}|:|\|)")


@dataclass(slots=True)
class Seen:
    """What stands in the window already, by content and by where it comes from."""

    contents: dict[bytes, Spot] = field(default_factory=dict)
    """Results that are shown whole or as an excerpt."""
    sources: dict[tuple[str, bytes], tuple[Spot, bytes]] = field(default_factory=dict)
    """The latest result of the same call that is shown whole: tool and arguments to its place and content."""

    def note(self, spot: Spot, piece: Piece, arguments: bytes, form: Form) -> None:
        if form in (Form.FULL, Form.EXCERPT):
            self.contents.setdefault(piece.content, spot)
        if form is Form.FULL and arguments:
            self.sources[piece.tool, arguments] = (spot, piece.content)

    def forget(self, gone: Mapping[Spot, object]) -> None:
        self.contents = {content: spot for content, spot in self.contents.items() if spot not in gone}
        self.sources = {key: held for key, held in self.sources.items() if held[0] not in gone}


def content_id(content: bytes) -> str:
    """The name by which a model asks for content: the same on any machine."""
    return "c" + digest(content)[:_ID_LENGTH]


def born(piece: Piece, arguments: bytes, sought: frozenset[str], seen: Seen, knobs: Knobs) -> tuple[Form, str]:
    """The form of a new result, and what is shown of it; nothing where it is shown whole."""
    limit = knobs.limit_of(piece.kind, piece.tool)
    if piece.kind is Kind.IMAGE or (len(piece.content) <= _LEAST and not 0 < limit.over <= _LEAST):
        return Form.FULL, ""
    text = piece.content.decode("utf-8", "replace")
    if knobs.echo and len(text) > _LEAST:
        if piece.content in seen.contents:
            return Form.ECHO, _echo(piece)
        if (before := seen.sources.get((piece.tool, arguments))) and (changed := _changes(before[1], text, piece)):
            return Form.CHANGE, changed
    if not limit.over or len(text) <= limit.over:
        return Form.FULL, ""
    made = preview(text, Origin(piece.kind, piece.tool, arguments, sought), limit.room)
    if made is None:
        return Form.FULL, ""
    return Form.EXCERPT, f"{made.text}\n{closing(made, content_id(piece.content))}"


def sought_in(pieces: Sequence[Piece]) -> frozenset[str]:
    """What the words and calls before a result are looking for."""
    found: set[str] = set()
    for piece in pieces:
        said = spoken(piece.content).encode() if piece.kind.family is Kind.TOOL_CALL else piece.content
        found |= names_in(said)
    return frozenset(found)


def _echo(piece: Piece) -> str:
    size = f"{len(piece.content):,} characters"
    return (
        f"[hotset: the same result as above, unchanged ({size}, not repeated); "
        f'retrieve_context(id="{content_id(piece.content)}") shows it again]'
    )


def _changes(before: bytes, text: str, piece: Piece) -> str:
    """What changed since the same call was made last; nothing where that is no shorter to say."""
    if len(before) > _MOST_COMPARED or len(text) > _MOST_COMPARED:
        return ""
    old, new = before.decode("utf-8", "replace").splitlines(), text.splitlines()
    shown = list(_difference(old, new))
    if not shown:
        return ""
    head = (
        "[hotset: as the result of the same call above, except for these lines (- as it was, + as it is now); "
        f'retrieve_context(id="{content_id(piece.content)}") shows it whole]'
    )
    told = "\n".join([head, *shown])
    return told if len(told) <= _WORTH * len(text) else ""


def _difference(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """A unified difference. Line numbers that a tool printed are no part of a line: an insertion would change all behind it."""
    bare_old, bare_new = [_bare(line) for line in old], [_bare(line) for line in new]
    start = 0
    while start < min(len(old), len(new)) and bare_old[start] == bare_new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and bare_old[-1 - end] == bare_new[-1 - end]:
        end += 1
    old_end, new_end = len(old) - end, len(new) - end
    if max(old_end, new_end) - start > _MOST_CHANGED or (old_end == start and new_end == start):
        return
    matcher = difflib.SequenceMatcher(None, bare_old[start:old_end], bare_new[start:new_end], autojunk=False)
    yield from _lines_of(new, max(0, start - _CONTEXT), start, " ")
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from _unchanged(new, start + c, start + d)
        else:
            yield from _lines_of(old, start + a, start + b, "-")
            yield from _lines_of(new, start + c, start + d, "+")
    yield from _lines_of(new, new_end, min(len(new), new_end + _CONTEXT), " ")


def _unchanged(new: Sequence[str], first: int, last: int) -> Iterator[str]:
    if last - first <= 2 * _CONTEXT + 1:
        yield from _lines_of(new, first, last, " ")
        return
    yield from _lines_of(new, first, first + _CONTEXT, " ")
    yield f"… lines {first + _CONTEXT + 1}-{last - _CONTEXT}: unchanged …"
    yield from _lines_of(new, last - _CONTEXT, last, " ")


def _lines_of(lines: Sequence[str], first: int, last: int, mark: str) -> Iterator[str]:
    for line in lines[first:last]:
        yield mark + line


def _bare(line: str) -> str:
    return _NUMBERED.sub("", line)
