"""What documents and settings consist of: headings, tables, top-level keys. Found line by line;
nothing is parsed or loaded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from hotset.nouns.retrieval import Span
from hotset.sources.code.symbols import FEW_KEYS, MOST_SYMBOLS, CodeSymbol, DefinedSymbols, visible
from hotset.text.languages import Language

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


def is_told(language: Language) -> bool:
    """Has a file of this language symbols or sections that can be told?"""
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
    """What stands further in or out is about something else."""
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
    """How many lines of settings stand in front of a document."""
    if lines[0].rstrip() != "---":
        return 0
    return next(
        (number for number, line in enumerate(lines[1:], 2) if line.rstrip() in ("---", "...")), 0
    )


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
    """The keys on the outside, and those in them where these are few."""
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
    "rst": _underlined,
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
_LONGEST = 200


def with_statements(text: str, found: DefinedSymbols) -> DefinedSymbols:
    """Adds what the grammar lost. What it made of the lines that it lost, it may have put together
    wrongly, and is not taken."""
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
    told = sorted((*kept, *added), key=lambda each: (each.first, -each.last))
    seen = {number for each in added for number in range(each.first, each.last + 1)}
    return DefinedSymbols(
        tuple(told),
        tuple(span for span in found.lost if not seen.issuperset(range(span[0], span[1] + 1))),
    )


def _statements(lines: Sequence[str], known: Sequence[Span]) -> Iterator[CodeSymbol]:
    """Each begins at a line's beginning; what stands further in is part of another one."""
    starts = [number for number, line in enumerate(lines, 1) if _STATEMENT.match(line)]
    covered = {number for first, last in known for number in range(first, last + 1)}
    for start, behind in zip(starts, [*starts[1:], len(lines) + 1], strict=True):
        if start in covered or not (
            made := _MAKES.match(" ".join(lines[start - 1 : start + 1])[:1000])
        ):
            continue
        kind = made[1].lower()
        kind = "procedure" if kind == "proc" else kind
        last = _last(lines, start, behind, has_body=kind in _HAVE_BODIES)
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


def _last(lines: Sequence[str], start: int, behind: int, *, has_body: bool) -> int:
    """Where its last line is: where it says so; otherwise in front of the next statement."""
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
