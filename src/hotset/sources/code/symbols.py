"""Finds the symbols of a file with their scopes, signatures, lines and comments, as far as its
text can be parsed.

A grammar is foreign machine code over foreign text: it can take very long (a megabyte of brackets:
minutes) and cannot be interrupted. Call this where it may be killed: `parsers` does.

`structure` finds what documents and settings consist of (headings, tables, top-level keys) line by
line; nothing is parsed or loaded for that.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from hotset.nouns.retrieval import Span
from hotset.sources.code.grammars import DEEPER, QUERIES, NoGrammar, grammar
from hotset.text.languages import Language

if TYPE_CHECKING:
    from tree_sitter import Node, Query

MOST_SYMBOLS = 5000  # of one file; a file with more is generated, and its outline is of no use
FEW_KEYS = 20  # in a key of settings; an outline with more of them is a copy of the file
_LONGEST_SIGNATURE = 200  # characters; the arguments of nearly every function fit
_LONGEST_NAME = 120
_LONGEST_DOC = 400
_MOST_LOST = 20  # stretches; of more only the first are listed
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
"""Go keywords that can precede a group of declarations."""
_HOLD_METHODS = ("class", "object", "impl", "trait", "struct", "interface", "protocol", "enum")


@dataclass(frozen=True, slots=True)
class CodeSymbol:
    name: str
    kind: str
    scope: tuple[str, ...]
    """Names of the enclosing symbols, outermost first."""
    signature: str
    first: int
    """Its first line, from 1, with the comment and the decorators above it."""
    last: int
    doc: str = ""
    """Its comment or docstring, in one line."""

    @property
    def qualified(self) -> str:
        return ".".join((*self.scope, self.name))


@dataclass(frozen=True, slots=True)
class DefinedSymbols:
    symbols: tuple[CodeSymbol, ...] = ()
    """In order; outer ones before what they contain."""
    lost: tuple[Span, ...] = ()
    """Lines that the grammar could not parse: symbols in them may be missing."""


def symbols(text: str, language: Language, grammars: Path | None = None) -> DefinedSymbols:
    """The symbols of a text; none if there is no grammar. Lines end with `\\n` here."""
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
    if root.has_error and (mended := _mend_source(source, language)) != source:
        again = parser.parse(mended).root_node
        root = min(root, again, key=_count_lost_lines)
    lost = _lost_lines(root)
    found = _match_query(root, query)
    if len(found) > MOST_SYMBOLS:
        return DefinedSymbols(lost=lost)
    if language.grammar in DEEPER:
        deeper = _match_query(root, _query(language.grammar, grammars, deeper=True))
        if len(found) + len(deeper) <= MOST_SYMBOLS:
            found |= (
                _keys_of_small_groups(found.values(), deeper) if language.name == "json" else deeper
            )
    placed = sorted(
        (each for each in found.values() if each.kind), key=lambda each: (each.start, -each.end)
    )
    defined = tuple(_build_symbols(placed, text.removesuffix("\n").split("\n"), source, language))
    return DefinedSymbols(defined, lost)


def _match_query(root: Node, query: Query) -> dict[int, _SymbolMatch]:
    """Matches, by where their names begin; at most one more than the limit."""
    from tree_sitter import QueryCursor  # noqa: PLC0415 - as above

    found: dict[int, _SymbolMatch] = {}
    for _, captured in QueryCursor(query).matches(root):
        found.setdefault(captured["name"][0].start_byte, _SymbolMatch()).add(captured)
        if len(found) > MOST_SYMBOLS:
            break
    return found


def _keys_of_small_groups(
    outer: Iterable[_SymbolMatch], inner: Mapping[int, _SymbolMatch]
) -> dict[int, _SymbolMatch]:
    """Keys in small groups: settings of one thing, not the entries of a table."""
    places = sorted(inner)
    kept: dict[int, _SymbolMatch] = {}
    for each in outer:
        inside = places[bisect_left(places, each.start) : bisect_left(places, each.end)]
        if len(inside) <= FEW_KEYS:
            kept |= {at: inner[at] for at in inside}
    return kept


def _lost_lines(root: Node) -> tuple[Span, ...]:
    """The first stretches of lines that do not fit the grammar, merged."""
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


def _count_lost_lines(root: Node) -> int:
    return sum(last - first + 1 for first, last in _lost_lines(root))


def _mend_source(source: bytes, language: Language) -> bytes:
    """The same text at the same places, without what a grammar is known to stumble over.

    Kotlin's wants a line's end in front of a bracket that closes a body: `object { val a = 1 }`
    loses all that follows it.
    """
    return _UNENDED.sub(rb"\1;", source) if language.name == "kotlin" else source


def visible(text: str, most: int) -> str:
    """The text on one line, clipped, without invisible or order-changing characters."""
    flat = _SPACES.sub(" ", _INVISIBLE.sub("", text[: 4 * most])).strip()
    return flat if len(flat) <= most else flat[: most - 1].rstrip() + "…"


@cache
def _query(name: str, grammars: Path | None, *, deeper: bool = False) -> Query:
    from tree_sitter import Query  # noqa: PLC0415 - as above

    return Query(grammar(name, grammars), (DEEPER if deeper else QUERIES)[name])


_Bytes = tuple[int, int]
"""From, to."""


@dataclass(slots=True)
class _SymbolMatch:
    """What the patterns found for one symbol.

    Only places are kept, never nodes: going from a node to its parent costs a walk from the root
    each time.
    """

    kind: str = ""
    node: str = ""
    start: int = 0
    """First byte of all that belongs to it; `end`, `first` and `last` also include all of it."""
    end: int = 0
    first: int = 0
    last: int = 0
    begin: int = 0
    """First byte of the definition itself."""
    stop: int = 0
    spans: dict[str, _Bytes] = field(default_factory=dict)
    """Ranges of its name, its body, its docstring, its receiver."""
    owners: tuple[_Bytes, ...] = ()
    """Ranges of the names before its own: `Api` in `Api::open`."""

    def add(self, captured: Mapping[str, Sequence[Node]]) -> None:
        for what, (node, *_) in captured.items():
            if what == "name":
                self.owners, self.spans[what] = _find_declarator(node)
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
        """True if `other` describes it better: a function beats a variable, and of two variable
        nodes the outer one wins."""
        if kind == self.kind == "variable":
            return node.end_byte - node.start_byte > self.stop - self.begin
        return self.kind in ("", "variable")

    def text(self, what: str, source: bytes, most: int) -> str:
        start, end = self.spans.get(what, (0, 0))
        return source[start : min(end, start + 4 * most)].decode("utf-8", "replace")


def _find_declarator(node: Node) -> tuple[tuple[_Bytes, ...], _Bytes]:
    """The ranges of the owners and of the name: in C a name is inside of declarators, after its
    scopes."""
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


def _build_symbols(
    found: Sequence[_SymbolMatch], lines: Sequence[str], source: bytes, language: Language
) -> Iterator[CodeSymbol]:
    """The symbols, with scopes by containment."""
    defined = {_name(each, source) for each in found if each.node == "function_definition"}
    around: list[tuple[int, str, str]] = []
    floor = 0  # the last line of which something else is known to begin or end there
    for each in found:
        while around and around[-1][0] <= each.start:
            around.pop()
        name = _name(each, source)
        in_a_class = bool(around) and around[-1][2] in _HOLD_METHODS
        is_repeated = (
            each.node == "declaration"
            and not in_a_class
            and (name in defined or _in_a_body(around))
        )
        if not name or is_repeated:
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
    """True inside of a function body, where `Lock held(mutex);` looks like a function
    declaration."""
    return bool(around) and around[-1][2] in ("function", "method")


def _name(each: _SymbolMatch, source: bytes) -> str:
    text = each.text("name", source, _LONGEST_NAME)
    if each.node in ("impl_item", "type_alias_statement"):
        text = re.split(r"[<\[]", text, maxsplit=1)[0]  # without its type arguments
    elif text.startswith("operator "):
        text = text.split("(", 1)[0]
    return visible(text.strip("\"'` \n*&"), _LONGEST_NAME)


def _signature(each: _SymbolMatch, source: bytes) -> str:
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


def _doc(each: _SymbolMatch, above: Sequence[str], source: bytes) -> str:
    if "doc" in each.spans:
        return visible(_QUOTES.sub("", each.text("doc", source, _LONGEST_DOC)), _LONGEST_DOC)
    comments = (
        _COMMENT_MARKS.sub("", line)
        for line in above
        if not line.lstrip().startswith(("@", "#[", "["))
    )
    return visible(" ".join(comments), _LONGEST_DOC)


_HEADING = re.compile(r" {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#*)?\s*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_YAML_KEY = re.compile(
    r"(?![-#\s%&*!|>{}\[\]])(\"[^\"]{1,200}\"|'[^']{1,200}'|[^\s:#][^:#]{0,200}?)\s*:(?:\s|$)"
)
_YAML_TEXT = re.compile(r"[|>][-+\d]{0,2}\s*(?:#.*)?$")
_SETEXT = re.compile(r" {0,3}([=-])\1+\s*$")
_PARAGRAPH = re.compile(r" {0,3}(?![-+*>|#=`~<]|\d{1,9}[.)]\s)\S")
_TABLE = re.compile(r"\s*\[{1,2}\s*([^\[\]]{1,200}?)\s*\]{1,2}\s*(?:[#;].*)?$")
_SETTING = re.compile(r"([\w.\"'-]{1,200})\s*=")
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*$")
_LONGEST = 200

_Mark = tuple[int, int, str, str]
"""Its line, from 1; its depth, from 1; its name; its kind."""


def structure(text: str, language: Language) -> tuple[CodeSymbol, ...]:
    """Sections of a document, tables and keys of settings; empty for what has neither."""
    find = _FINDERS.get(language.name)
    if find is None:
        return ()
    lines = text.removesuffix("\n").split("\n")
    marks = []
    for mark in find(lines):
        marks.append(mark)
        if len(marks) > MOST_SYMBOLS:
            return ()
    return tuple(_spans(marks, lines, language.comment))


def has_symbols(language: Language) -> bool:
    """True if files of this language can have symbols or sections."""
    return bool(language.grammar) or language.name in _FINDERS


def _spans(
    marks: Sequence[_Mark], lines: Sequence[str], comments: tuple[str, ...]
) -> Iterator[CodeSymbol]:
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
        yield CodeSymbol(
            called,
            kind,
            tuple(each for _, each in scope),
            visible(lines[line - 1], _LONGEST),
            tops[at],
            ends[at],
        )
        scope.append((depth, called))


def _comment_above(lines: Sequence[str], line: int, marks: tuple[str, ...]) -> int:
    """The comment right above, at the same indentation: any other is about something else."""
    margin = _indent(lines[line - 1])
    while (
        marks
        and line > 1
        and lines[line - 2][margin:].startswith(marks)
        and _indent(lines[line - 2]) == margin
    ):
        line -= 1
    return line


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _headings(lines: Sequence[str]) -> Iterator[_Mark]:
    fence = ""
    skipped = _front_matter(lines)
    for number, line in enumerate(lines, 1):
        if number <= skipped:
            continue
        if found := _FENCE.match(line):
            if not fence:
                fence = found[1]
            elif found[1].startswith(fence):
                fence = ""
        elif not fence and (heading := _HEADING.match(line)) and heading[2]:
            yield number, len(heading[1]), heading[2], "section"
        elif (
            not fence
            and number > skipped + 1
            and (below := _SETEXT.match(line))
            and _PARAGRAPH.match(lines[number - 2])
        ):
            yield number - 1, "=-".index(below[1]) + 1, lines[number - 2].strip(), "section"


def _front_matter(lines: Sequence[str]) -> int:
    """Number of lines of front matter before a document."""
    if lines[0].rstrip() != "---":
        return 0
    return next(
        (number for number, line in enumerate(lines[1:], 2) if line.rstrip() in ("---", "...")), 0
    )


def _underlined_headings(lines: Sequence[str]) -> Iterator[_Mark]:
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
    """The top-level keys, and those below them if they are few."""
    top = [
        (number, key[1].strip("\"'"))
        for number, line in enumerate(lines, 1)
        if (key := _YAML_KEY.match(line))
    ]
    for (number, name), behind in zip(
        top, [*(number for number, _ in top), len(lines) + 1][1:], strict=True
    ):
        yield number, 1, name, "key"
        inner = (
            ()
            if _YAML_TEXT.search(lines[number - 1])
            else tuple(_inner_keys(lines, number, behind))
        )
        if len(inner) <= FEW_KEYS:
            yield from inner


def _inner_keys(lines: Sequence[str], above: int, behind: int) -> Iterator[_Mark]:
    margin = 0
    for number in range(above + 1, behind):
        line = lines[number - 1]
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        margin = margin or _indent(line)
        if margin and _indent(line) == margin and (key := _YAML_KEY.match(line[margin:])):
            yield number, 2, key[1].strip("\"'"), "key"


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
    "rst": _underlined_headings,
    "yaml": _yaml_keys,
    "toml": _tables,
    "ini": _tables,
}


_MAKES = re.compile(
    r"create\s+(?:or\s+(?:replace|alter)\s+)?(?:(?:temp|temporary|unlogged|unique|materialized|definer\s*=\s*\S{1,80})\s+){0,2}"
    r"(table|view|function|proc(?:edure)?|trigger|index|type)\s+(?:if\s+not\s+exists\s+)?((?:[\w$.@#]|\"[^\"]{1,80}\"|`[^`]{1,80}`|"
    r"\[[^\]]{1,80}\]){1,200})",
    re.IGNORECASE,
)
_STATEMENT = re.compile(r"(?:create|alter|drop)\s|go\s*$|delimiter\s", re.IGNORECASE)
_QUOTED_BODY = re.compile(r"\$\w{0,40}\$")
_HAVE_BODIES = ("function", "procedure", "trigger")


def with_statements(text: str, found: DefinedSymbols) -> DefinedSymbols:
    """The symbols, with the statements that the grammar lost. Symbols from lost lines may be wrong,
    and are dropped."""
    lines = text.removesuffix("\n").split("\n")
    kept = [
        each
        for each in found.symbols
        if not any(each.first <= last and first <= each.last for first, last in found.lost)
    ]
    known = [(each.first, each.last) for each in kept]
    added = list(_statements(lines, known))
    if len(kept) + len(added) > MOST_SYMBOLS:
        return DefinedSymbols(lost=found.lost)
    kept = [
        each
        for each in kept
        if not any(one.first <= each.first and each.last <= one.last for one in added)
    ]
    merged = sorted((*kept, *added), key=lambda each: (each.first, -each.last))
    seen = {number for each in added for number in range(each.first, each.last + 1)}
    return DefinedSymbols(
        tuple(merged),
        tuple(span for span in found.lost if not seen.issuperset(range(span[0], span[1] + 1))),
    )


def _statements(lines: Sequence[str], known: Sequence[Span]) -> Iterator[CodeSymbol]:
    """Statements, each starting at the beginning of a line; an indented one is part of another."""
    starts = [number for number, line in enumerate(lines, 1) if _STATEMENT.match(line)]
    covered = {number for first, last in known for number in range(first, last + 1)}
    for start, behind in zip(starts, [*starts[1:], len(lines) + 1], strict=True):
        if start in covered or not (
            made := _MAKES.match(" ".join(lines[start - 1 : start + 1])[:1000])
        ):
            continue
        kind = made[1].lower()
        kind = "procedure" if kind == "proc" else kind
        last = _last_line(lines, start, behind, has_body=kind in _HAVE_BODIES)
        first = start
        while first > 1 and lines[first - 2].startswith("--"):
            first -= 1
        yield CodeSymbol(
            name=visible(re.sub(r"[\"`\[\]]", "", made[2]), _LONGEST),
            kind=kind,
            scope=(),
            signature=visible(lines[start - 1], _LONGEST).rstrip(" ;"),
            first=first,
            last=last,
            doc=visible(
                " ".join(line.lstrip("- ") for line in lines[first - 1 : start - 1]), _LONGEST
            ),
        )


def _last_line(lines: Sequence[str], start: int, behind: int, *, has_body: bool) -> int:
    """The last line of a statement: where it ends by itself; otherwise before the next
    statement."""
    quoted = 0
    for number in range(start, behind):
        quoted += len(_QUOTED_BODY.findall(lines[number - 1]))
        ends = lines[number - 1].rstrip().endswith(";")
        if ends and (quoted >= 2 and quoted % 2 == 0 if has_body else True):
            return number
    last = behind - 1
    while last > start and (not lines[last - 1].strip() or lines[last - 1].startswith("--")):
        last -= 1
    return last
