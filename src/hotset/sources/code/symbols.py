"""What a file defines: symbols with their scopes, signatures, lines and comments, as far as its text can be parsed.

A grammar is foreign machine code over foreign text: it can take very long (a megabyte of brackets: minutes) and cannot be
interrupted. Call this where it may be killed: `parsing` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hotset.sources.code.grammars import NoGrammar, grammar
from hotset.sources.code.languages import Language
from hotset.sources.code.queries import QUERIES

if TYPE_CHECKING:
    from tree_sitter import Node, Query

MOST_SYMBOLS = 5000  # of one file; what has more was written by a program, and its outline helps nobody
_LONGEST_SIGNATURE = 200  # characters; the arguments of nearly every function fit
_LONGEST_NAME = 120
_LONGEST_DOC = 400
_MOST_COMMENT_LINES = 60  # above a definition; a licence's text is longer and belongs to the file
_SPACES = re.compile(r"\s+")
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e0fff]")
_DECLARED = re.compile(r"([\w$~]+(?:::~?[\w$]+)*)\s*(?:\(|\[|$)")  # in C the name stands inside of a declarator
_RECEIVER = re.compile(r"\(\s*(?:\w+\s+)?\*?\s*(\w+)")
_COMMENT_MARKS = re.compile(r"^\s*(?:/\*+|\*+/|\*|//[/!]?|#+!?|--+|;+)\s?|\s*\*+/\s*$")
_QUOTES = re.compile(r"^[rRuUbBfF]*(\"\"\"|'''|\"|')|(\"\"\"|'''|\"|')$")
_METHODS_ARE_FUNCTIONS = ("python", "kotlin", "rust", "swift", "scala", "cpp", "dart")
_HOLD_METHODS = ("class", "object", "impl", "trait", "struct", "interface", "protocol", "enum")


@dataclass(frozen=True, slots=True)
class Symbol:
    name: str
    kind: str
    scope: tuple[str, ...]
    """Names of what it stands in, outermost first."""
    signature: str
    first: int
    """Its first line, from 1, with the comment and the decorators above it."""
    last: int
    doc: str = ""
    """What its comment or docstring says, in one line."""

    @property
    def qualified(self) -> str:
        return ".".join((*self.scope, self.name))


def symbols(text: str, language: Language, grammars: Path | None = None) -> tuple[Symbol, ...]:
    """In their order; outer ones in front of what they contain. Empty where there is no grammar. Lines end with `\\n` here."""
    if not language.grammar:
        return ()
    from tree_sitter import Parser, QueryCursor  # noqa: PLC0415 - 10 ms that only parsing should pay

    try:
        query = _query(language.grammar, grammars)
        parser = Parser(grammar(language.grammar, grammars))
    except NoGrammar:
        return ()
    source = text.encode("utf-8", "replace")
    tree = parser.parse(source)
    found: dict[int, _Found] = {}
    for _, captured in QueryCursor(query).matches(tree.root_node):
        name = captured["name"][0].start_byte
        if len(found) > MOST_SYMBOLS:
            return ()
        found.setdefault(name, _Found()).add(captured)
    placed = sorted((each for each in found.values() if each.kind), key=lambda each: (each.start, -each.end))
    return tuple(_told(placed, text.split("\n"), source, language))


def visible(text: str, most: int) -> str:
    """On one line, without characters that are not seen or that turn the order of others, and not too long."""
    flat = _SPACES.sub(" ", _INVISIBLE.sub("", text[: 4 * most])).strip()
    return flat if len(flat) <= most else flat[: most - 1].rstrip() + "…"


@cache
def _query(name: str, grammars: Path | None) -> Query:
    from tree_sitter import Query  # noqa: PLC0415 - as above

    return Query(grammar(name, grammars), QUERIES[name])


_Span = tuple[int, int]
"""Bytes from, to."""


@dataclass(slots=True)
class _Found:
    """What the patterns say of one symbol.

    Only places are kept, never nodes: going from a node to its parent costs a walk from the root each time.
    """

    kind: str = ""
    node: str = ""
    start: int = 0
    """With all that belongs to it; so are `end`, `first` and `last`."""
    end: int = 0
    first: int = 0
    last: int = 0
    begin: int = 0
    """Of the definition itself."""
    stop: int = 0
    spans: dict[str, _Span] = field(default_factory=dict)
    """Of its name, its body, its docstring, its receiver."""

    def add(self, captured: Mapping[str, Sequence[Node]]) -> None:
        for what, (node, *_) in captured.items():
            if what in ("name", "body", "doc", "receiver"):
                self.spans[what] = (node.start_byte, node.end_byte)
                continue
            if what != "around" and self.kind in ("", "variable"):  # what is a variable and a function is a function
                self.kind, self.node, self.begin, self.stop = what, node.type, node.start_byte, node.end_byte
            if node.end_byte - node.start_byte > self.end - self.start:
                self.start, self.end = node.start_byte, node.end_byte
                begin, end = node.start_point, node.end_point
                self.first = begin.row + 1
                self.last = max(self.first, end.row + 1 if end.column else end.row)

    def text(self, what: str, source: bytes, most: int) -> str:
        start, end = self.spans.get(what, (0, 0))
        return source[start : min(end, start + 4 * most)].decode("utf-8", "replace")


def _told(found: Iterable[_Found], lines: Sequence[str], source: bytes, language: Language) -> Iterator[Symbol]:
    """Scopes come from what contains what."""
    around: list[tuple[int, str, str]] = []
    floor = 0  # the last line of which something else is known to begin or end there
    for each in found:
        while around and around[-1][0] <= each.start:
            around.pop()
        name = _name(each, source)
        if not name:
            continue
        scope = tuple(outer[1] for outer in around)
        if receiver := _RECEIVER.match(each.text("receiver", source, _LONGEST_NAME)):
            scope = (receiver[1],)
        in_a_class = bool(around) and around[-1][2] in _HOLD_METHODS
        is_method = each.kind == "function" and in_a_class and language.name in _METHODS_ARE_FUNCTIONS
        above = _above(lines, each.first, floor, language.comment)
        yield Symbol(
            name=name,
            kind="method" if is_method else each.kind,
            scope=scope,
            signature=_signature(each, source),
            first=above,
            last=each.last,
            doc=_doc(each, lines[above - 1 : each.first - 1], source),
        )
        floor = each.first
        around.append((each.end, name, each.kind))


def _name(each: _Found, source: bytes) -> str:
    text = each.text("name", source, _LONGEST_NAME)
    if each.node in ("function_definition", "type_definition") and (declared := _DECLARED.search(text)):
        text = declared[1]
    return visible(text.strip("\"'` \n*&"), _LONGEST_NAME)


def _signature(each: _Found, source: bytes) -> str:
    body = each.spans.get("body")
    end = body[0] if body is not None and body[0] > each.begin else each.stop
    text = source[each.begin : min(end, each.begin + 4 * _LONGEST_SIGNATURE)].decode("utf-8", "replace")
    if body is None:
        text = text.split("\n", 1)[0]
    return visible(text, _LONGEST_SIGNATURE).rstrip(" {:=>").strip()


def _above(lines: Sequence[str], first: int, floor: int, marks: tuple[str, ...]) -> int:
    """The line on which the comment above a definition begins; `floor` is the last line that belongs to something else."""
    top = first
    while marks and top - 1 > max(floor, first - _MOST_COMMENT_LINES) and lines[top - 2].lstrip().startswith(marks):
        top -= 1
    return top


def _doc(each: _Found, above: Sequence[str], source: bytes) -> str:
    if "doc" in each.spans:
        return visible(_QUOTES.sub("", each.text("doc", source, _LONGEST_DOC)), _LONGEST_DOC)
    said = (_COMMENT_MARKS.sub("", line) for line in above if not line.lstrip().startswith(("@", "#[", "[")))
    return visible(" ".join(said), _LONGEST_DOC)
