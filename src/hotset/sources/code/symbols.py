"""What a file defines: symbols with their scopes, signatures, lines and comments, as far as its
text can be parsed.

A grammar is foreign machine code over foreign text: it can take very long (a megabyte of brackets:
minutes) and cannot be interrupted. Call this where it may be killed: `parsing` does.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hotset.nouns.retrieval import Span
from hotset.sources.code.grammars import NoGrammar, grammar
from hotset.sources.code.queries import DEEPER, QUERIES
from hotset.text.languages import Language

if TYPE_CHECKING:
    from tree_sitter import Node, Query

MOST_SYMBOLS = (
    5000  # of one file; what has more was written by a program, and its outline helps nobody
)
FEW_KEYS = 20  # in a key of settings; an outline with more of them is a copy of the file
_LONGEST_SIGNATURE = 200  # characters; the arguments of nearly every function fit
_LONGEST_NAME = 120
_LONGEST_DOC = 400
_MOST_LOST = 20  # stretches; what is broken in more places than that is told by the first of them
_MOST_COMMENT_LINES = 60  # above a definition; a licence's text is longer and belongs to the file
_SPACES = re.compile(r"\s+")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e0fff]"
)
_RECEIVER = re.compile(r"\(\s*(?:\w+\s+)?\*?\s*(\w+)")
_UNENDED = re.compile(rb"([^\s{;,(]) (?=\})")
_COMMENT_MARKS = re.compile(r"^\s*(?:/\*+|\*+/|\*|//[/!]?|#+!?|--+|;+)\s?|\s*\*+/\s*$")
_QUOTES = re.compile(r"^[rRuUbBfF]*(\"\"\"|'''|\"|')|(\"\"\"|'''|\"|')$")
_METHODS_ARE_FUNCTIONS = ("python", "kotlin", "rust", "swift", "scala", "cpp", "dart")
_HOLD_NOTHING = frozenset(
    [
        "type_definition",
        "preproc_def",
        "preproc_function_def",
        "declaration",
        "field_declaration",
        "var_spec",
        "const_spec",
    ]
)
"""Nodes that can have others inside of them which are no part of theirs: `typedef struct point {
... } point_t`."""
_WITHOUT_BODY = frozenset(
    (
        "declaration",
        "field_declaration",
        "function_signature",
        "function_signature_item",
        "abstract_method_signature",
        "method_elem",
    )
)
"""Nodes that are nothing but a signature, over however many lines."""
_KEYWORDS = {"type_spec": "type", "type_alias": "type", "const_spec": "const", "var_spec": "var"}
"""Of Go, where the word stands in front of several of them."""
_HOLD_METHODS = ("class", "object", "impl", "trait", "struct", "interface", "protocol", "enum")


@dataclass(frozen=True, slots=True)
class CodeSymbol:
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


@dataclass(frozen=True, slots=True)
class DefinedSymbols:
    symbols: tuple[CodeSymbol, ...] = ()
    """In their order; outer ones in front of what they contain."""
    lost: tuple[Span, ...] = ()
    """Lines that the grammar could not make sense of: what they define may be missing."""


def symbols(text: str, language: Language, grammars: Path | None = None) -> DefinedSymbols:
    """Nothing where there is no grammar. Lines end with `\\n` here."""
    if not language.grammar:
        return DefinedSymbols()
    from tree_sitter import Parser  # noqa: PLC0415 - 10 ms that only parsing should pay

    try:
        query = _query(language.grammar, grammars)
        parser = Parser(grammar(language.grammar, grammars))
    except NoGrammar:
        return DefinedSymbols()
    source = text.encode("utf-8", "replace")
    root = parser.parse(source).root_node
    if root.has_error and (mended := _mended(source, language)) != source:
        again = parser.parse(mended).root_node
        root = min(root, again, key=_broken)
    lost = _lost(root)
    found = _matched(root, query)
    if len(found) > MOST_SYMBOLS:
        return DefinedSymbols(lost=lost)
    if language.grammar in DEEPER:
        deeper = _matched(root, _query(language.grammar, grammars, deeper=True))
        if len(found) + len(deeper) <= MOST_SYMBOLS:
            found |= _few(found.values(), deeper) if language.name == "json" else deeper
    placed = sorted(
        (each for each in found.values() if each.kind), key=lambda each: (each.start, -each.end)
    )
    told = tuple(_told(placed, text.removesuffix("\n").split("\n"), source, language))
    return DefinedSymbols(told, lost)


def _matched(root: Node, query: Query) -> dict[int, _Found]:
    """By where their names begin; no more than one beyond the most."""
    from tree_sitter import QueryCursor  # noqa: PLC0415 - as above

    found: dict[int, _Found] = {}
    for _, captured in QueryCursor(query).matches(root):
        found.setdefault(captured["name"][0].start_byte, _Found()).add(captured)
        if len(found) > MOST_SYMBOLS:
            break
    return found


def _few(outer: Iterable[_Found], inner: Mapping[int, _Found]) -> dict[int, _Found]:
    """Those that are in company of a few: settings of one thing, and not the entries of a table."""
    places = sorted(inner)
    kept: dict[int, _Found] = {}
    for each in outer:
        inside = places[bisect_left(places, each.start) : bisect_left(places, each.end)]
        if len(inside) <= FEW_KEYS:
            kept |= {at: inner[at] for at in inside}
    return kept


def _lost(root: Node) -> tuple[Span, ...]:
    """Lines of what is no part of the grammar, merged, the first ones."""
    spans: list[Span] = []
    waiting = [root] if root.has_error else []
    while waiting and len(spans) < _MOST_LOST:
        node = waiting.pop()
        if node.is_error:
            last = max(node.start_point.row, node.end_point.row - (node.end_point.column == 0)) + 1
            if spans and node.start_point.row <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(spans[-1][1], last))
            else:
                spans.append((node.start_point.row + 1, last))
        else:
            waiting += [each for each in reversed(node.children) if each.has_error]
    return tuple(spans)


def _broken(root: Node) -> int:
    return sum(last - first + 1 for first, last in _lost(root))


def _mended(source: bytes, language: Language) -> bytes:
    """The same text at the same places, without what a grammar is known to stumble over.

    Kotlin's wants a line's end in front of a bracket that closes a body: `object { val a = 1 }`
    loses all that stands behind it.
    """
    return _UNENDED.sub(rb"\1;", source) if language.name == "kotlin" else source


def visible(text: str, most: int) -> str:
    """On one line, without characters that are not seen or that turn the order of others, and not
    too long."""
    flat = _SPACES.sub(" ", _INVISIBLE.sub("", text[: 4 * most])).strip()
    return flat if len(flat) <= most else flat[: most - 1].rstrip() + "…"


@cache
def _query(name: str, grammars: Path | None, *, deeper: bool = False) -> Query:
    from tree_sitter import Query  # noqa: PLC0415 - as above

    return Query(grammar(name, grammars), (DEEPER if deeper else QUERIES)[name])


_Bytes = tuple[int, int]
"""From, to."""


@dataclass(slots=True)
class _Found:
    """What the patterns say of one symbol.

    Only places are kept, never nodes: going from a node to its parent costs a walk from the root
    each time.
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
    spans: dict[str, _Bytes] = field(default_factory=dict)
    """Of its name, its body, its docstring, its receiver."""
    owners: tuple[_Bytes, ...] = ()
    """Of the names in front of its own: `Api` in `Api::open`."""

    def add(self, captured: Mapping[str, Sequence[Node]]) -> None:
        for what, (node, *_) in captured.items():
            if what == "name":
                self.owners, self.spans[what] = _declared(node)
                continue
            if what in ("body", "doc", "receiver"):
                self.spans[what] = (node.start_byte, node.end_byte)
                continue
            if what != "around" and self._is_better(what, node):
                self.kind, self.node, self.begin, self.stop = (
                    what,
                    node.type,
                    node.start_byte,
                    node.end_byte,
                )
            if node.end_byte - node.start_byte > self.end - self.start:
                self.start, self.end = node.start_byte, node.end_byte
                begin, end = node.start_point, node.end_point
                self.first = begin.row + 1
                self.last = max(self.first, end.row + 1 if end.column else end.row)

    def _is_better(self, kind: str, node: Node) -> bool:
        """What is a variable and a function is a function; of two nodes that make it a variable the
        outer one is all of it."""
        if kind == self.kind == "variable":
            return node.end_byte - node.start_byte > self.stop - self.begin
        return self.kind in ("", "variable")

    def text(self, what: str, source: bytes, most: int) -> str:
        start, end = self.spans.get(what, (0, 0))
        return source[start : min(end, start + 4 * most)].decode("utf-8", "replace")


def _declared(node: Node) -> tuple[tuple[_Bytes, ...], _Bytes]:
    """In C a name stands inside of declarators, and behind the names of what it belongs to."""
    owners: list[_Bytes] = []
    inner: Node | None = node
    while inner is not None:
        node = inner
        if node.type == "qualified_identifier":
            if (owner := node.child_by_field_name("scope")) is not None:
                owner = (
                    owner.child_by_field_name("name") or owner
                )  # without the arguments of a template
                owners.append((owner.start_byte, owner.end_byte))
            inner = node.child_by_field_name("name")
        elif node.type.endswith("_declarator"):
            inner = node.child_by_field_name("declarator") or (
                node.named_children[-1] if node.named_children else None
            )
        else:
            inner = None
    return tuple(owners), (node.start_byte, node.end_byte)


def _told(
    found: Sequence[_Found], lines: Sequence[str], source: bytes, language: Language
) -> Iterator[CodeSymbol]:
    """Scopes come from what contains what."""
    defined = {_name(each, source) for each in found if each.node == "function_definition"}
    around: list[tuple[int, str, str]] = []
    floor = 0  # the last line of which something else is known to begin or end there
    for each in found:
        while around and around[-1][0] <= each.start:
            around.pop()
        name = _name(each, source)
        in_a_class = bool(around) and around[-1][2] in _HOLD_METHODS
        is_said_again = (
            each.node == "declaration"
            and not in_a_class
            and (name in defined or _in_a_body(around))
        )
        if not name or is_said_again:
            continue
        scope = tuple(outer[1] for outer in around)
        if receiver := _RECEIVER.match(each.text("receiver", source, _LONGEST_NAME)):
            scope = (receiver[1],)
        scope += tuple(
            visible(source[start:end].decode("utf-8", "replace"), _LONGEST_NAME)
            for start, end in each.owners
        )
        is_method = (
            each.kind == "function"
            and (in_a_class or bool(each.owners))
            and language.name in _METHODS_ARE_FUNCTIONS
        )
        above = _above(lines, each.first, floor, language.comment)
        yield CodeSymbol(
            name=name,
            kind="method" if is_method else each.kind,
            scope=scope,
            signature=_signature(each, source),
            first=above,
            last=min(each.last, len(lines)),
            doc=_doc(each, lines[above - 1 : each.first - 1], source),
        )
        floor = each.first
        if each.node not in _HOLD_NOTHING:
            around.append((each.end, name, each.kind))


def _in_a_body(around: Sequence[tuple[int, str, str]]) -> bool:
    """There, `Lock held(mutex);` looks like a function that is declared."""
    return bool(around) and around[-1][2] in ("function", "method")


def _name(each: _Found, source: bytes) -> str:
    text = each.text("name", source, _LONGEST_NAME)
    if each.node in ("impl_item", "type_alias_statement"):
        text = re.split(r"[<\[]", text, maxsplit=1)[0]  # without its type arguments
    elif text.startswith("operator "):
        text = text.split("(", 1)[0]
    return visible(text.strip("\"'` \n*&"), _LONGEST_NAME)


def _signature(each: _Found, source: bytes) -> str:
    body = each.spans.get("body")
    end = body[0] if body is not None and body[0] > each.begin else each.stop
    text = source[each.begin : min(end, each.begin + 4 * _LONGEST_SIGNATURE)].decode(
        "utf-8", "replace"
    )
    if body is None and each.node not in _WITHOUT_BODY:
        text = text.split("\n", 1)[0]
    word = _KEYWORDS.get(each.node, "")
    return " ".join(filter(None, (word, _without_its_end(visible(text, _LONGEST_SIGNATURE)))))


def _without_its_end(signature: str) -> str:
    """Without what only says that a body follows, or that none does. The `>` of `Promise<void>` is
    part of it."""
    while (shorter := signature.rstrip(" {:=;").removesuffix("=>")) != signature:
        signature = shorter
    return signature.strip()


def _above(lines: Sequence[str], first: int, floor: int, marks: tuple[str, ...]) -> int:
    """The line on which the comment above a definition begins; `floor` is the last line that
    belongs to something else."""
    top = first
    while (
        marks
        and top - 1 > max(floor, first - _MOST_COMMENT_LINES)
        and lines[top - 2].lstrip().startswith(marks)
    ):
        top -= 1
    return top


def _doc(each: _Found, above: Sequence[str], source: bytes) -> str:
    if "doc" in each.spans:
        return visible(_QUOTES.sub("", each.text("doc", source, _LONGEST_DOC)), _LONGEST_DOC)
    said = (
        _COMMENT_MARKS.sub("", line)
        for line in above
        if not line.lstrip().startswith(("@", "#[", "["))
    )
    return visible(" ".join(said), _LONGEST_DOC)
