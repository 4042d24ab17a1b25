"""A function, class, section or setting by its name, with its whole body: by brackets and indentation, in any language."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches

from hotset.nouns.retrieval import Span
from hotset.window.slice import markup
from hotset.window.slice.fit import Count, Cut
from hotset.window.slice.lines import Text, merged, show, show_parts
from hotset.window.slice.units import told

_KEYWORDS = (
    "class def function func fn fun sub struct enum trait interface type impl module mod namespace package object protocol"
    " extension record union macro_rules! const let var val static typedef proc method defp defmodule defmacro defn"
    " message service rpc #define resource variable"
).replace(" ", "|")
_INTRODUCED = (
    rf"(?:^|[^\w.$])(?:{_KEYWORDS})\*?(?:<[^>]{{0,100}}>)?\s+(?:mut\s+|\([^()]{{0,100}}\)\s*|[\w.:<>, ]{{1,80}}\bfor\s+)?"
)
_QUALIFIER = r"(?:[\w$]{1,80}(?:::|\.)){0,4}"
_SQL = (
    r"\bcreate\s+(?:or\s+replace\s+)?(?:\w+\s+){0,2}(?:table|view|function|procedure|trigger|index|type)\s+"
    r"(?:if\s+not\s+exists\s+)?"
)
_NO_DEFINITION = re.compile(
    r"\s*(?:return|if|elif|else|while|for|switch|case|await|throw|raise|new|yield|assert|print|not|and|or)\b"
)
_ANY_DEFINITION = re.compile(
    rf"^[ \t]*(?:[\w()]{{1,20}}[ \t]+){{0,3}}?(?:{_KEYWORDS})\*?[ \t]+(?:\([^()\n]{{0,100}}\)[ \t]*)?([A-Za-z_$][\w$]{{1,80}})"
    r"(?=[ \t]*(?:[(:{<=\[;]|$)|[ \t]+(?:extends|implements|struct|interface|for|where|enum)\b)",
    re.MULTILINE,
)
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_SECTION = re.compile(r"\[{1,2}([^\]]+)\]{1,2}\s*$")
_TEXTS = re.compile(
    r'"(?:\\.|[^"\\]){0,300}+"|\'(?:\\.|[^\'\\]){0,300}+\'|`(?:\\.|[^`\\]){0,300}+`|//.*|/\*[^*]{0,300}+\*/|(?:^|\s)#\s.*'
)
_CLOSERS = re.compile(r"[})\]]|end\b|fi\b|done\b|esac\b")
_ABOVE = re.compile(r"\s*(?:@|#\[|///|//|/\*\*|\*|#(?!\s*(?:include|define|if|endif)\b)|--)")
_MOST_ABOVE = 30  # lines of decorators and comments that belong to what stands below them
_HEADER = 40  # lines in which the arguments of a function end
_NAMES_LOOKED_AT = 200_000  # characters that are searched for names to propose
_LONGEST_LINE = 2000  # characters; what is longer was written by a machine
_LONGEST_BODY = 5000  # lines
_MOST_PLACES = 50  # definitions of one name
_FARTHEST = 200  # lines up to the beginning of a function that a reader would want whole
_TAB = 8


def by_symbol(text: str, name: str, room: int, count: Count) -> Cut:
    by_line = Text(text)
    spans = _definitions(by_line.bare, name)
    several = f"{len(spans)} places define it: " if len(spans) > 1 else ""
    if spans:
        return show(by_line, spans, room, count, what=several)
    if parts := markup.sections(text, name)[:_MOST_PLACES]:
        return show_parts(text, parts, room, count, what=f"{len(parts)} sections: " if len(parts) > 1 else "")
    return Cut("", whole=False, note=_nothing(by_line, name))


def around(lines: Sequence[str], at: int) -> Span | None:
    """The innermost definition that the line, from 1, is a part of."""
    inner = _indent(lines[at - 1]) if lines[at - 1].strip() else None
    for above in range(at, max(0, at - _FARTHEST), -1):
        line = lines[above - 1]
        if not line.strip():
            continue
        if inner is None:
            inner = _indent(line)
        if _indent(line) < inner or above == at:
            inner = min(inner, _indent(line))
            if _ANY_DEFINITION.search(line):
                span = _span(lines, above)
                if span[1] >= at:
                    return span
        if inner == 0 and above < at and not _indent(line):
            return None
    return None


def _definitions(lines: Sequence[str], typed: str) -> list[Span]:
    """Definitions before sections, sections before settings: the first kind that is there."""
    container, name = _parted(typed)
    outer = _definitions(lines, container) if container else []
    for finds in _ways(name):
        found = finds(lines)[:_MOST_PLACES]
        inside = [at for at in found if any(first <= at <= last for first, last in outer)]
        if inside or found:
            return merged((_span(lines, at) for at in inside or found), within=0)
    return []


def _parted(typed: str) -> tuple[str, str]:
    """`Window.plan()`, `Window::plan`, `def plan` and `## Plan` as what contains it and its name."""
    name = re.sub(r"\(.*$", "", typed.strip()).strip("`\"' :")
    name = re.sub(rf"^(?:async\s+)?(?:{_KEYWORDS})\s+", "", name)
    name = re.sub(r"^#+\s*", "", name)
    found = re.fullmatch(r"(.*[\w$])(?:::|\.|#|->)([\w$~!?]+)", name)
    return (found[1], found[2]) if found and " " not in name else ("", name)


_Finds = Callable[[Sequence[str]], list[int]]
"""The lines, from 1, on which something begins."""


def _ways(name: str) -> Iterator[_Finds]:
    if not name:
        return
    exact = rf"(?<![\w$]){re.escape(name)}(?![\w$])"
    if " " not in name:
        introduced = re.compile(rf"{_INTRODUCED}{_QUALIFIER}[\"'`]?{exact}|{_SQL}[\"`\w.]*?{exact}", re.IGNORECASE)
        called = re.compile(
            rf"\s*(?:[\w$<>\[\],.:*&?@~]{{1,80}}\s+){{0,8}}[*&]*{_QUALIFIER}~?{exact}\s*(?:<[^<>]{{0,100}}>)?\s*\("
        )
        yield lambda lines: [
            at for at, line in _with(name, lines) if introduced.search(line) or _opens(lines, at, called.match(line))
        ]
    yield lambda lines: [at for at, line in enumerate(lines, 1) if line[:1] in ("#", "[") and _heads(line, name)]
    assigned = re.compile(rf"\s*(?:[\w()]{{1,20}}\s+){{0,4}}{_QUALIFIER}{exact}\s*(?::[^=]{{0,200}})?(?::=|=(?!=)|\?=)")
    keyed = re.compile(rf"\s*(?:-\s+)?[\"']?{exact}[\"']?\s*:(?!:)")
    yield lambda lines: [at for at, line in _with(name, lines) if assigned.match(line) or keyed.match(line)]


def _with(name: str, lines: Sequence[str]) -> list[tuple[int, str]]:
    return [(at, line) for at, line in enumerate(lines, 1) if name in line and len(line) <= _LONGEST_LINE]


def _heads(line: str, name: str) -> bool:
    heading = _HEADING.match(line) or _SECTION.match(line)
    return heading is not None and name.lower() in heading[heading.lastindex or 0].lower()


def _opens(lines: Sequence[str], at: int, called: re.Match[str] | None) -> bool:
    """`name(...)` with a body behind its arguments: a method or a function of C's family; a call has none."""
    if called is None or _NO_DEFINITION.match(called.string):
        return False
    depth = 0
    for line in _plain(lines, at, called.end() - 1):
        for sign in line:
            depth += (sign in "([") - (sign in ")]")
            if depth == 0 and sign == "{":
                return True
            if depth < 0 or (depth == 0 and sign in ";=,"):
                return False
        if depth == 0 and line.rstrip().endswith((":", "}")):
            return False
    return False


def _plain(lines: Sequence[str], at: int, start: int) -> Iterator[str]:
    """The lines of a header without texts and comments."""
    yield _without_texts(lines[at - 1][start:])
    for line in lines[at : at + _HEADER]:
        if line.strip():
            yield _without_texts(line)


def _without_texts(line: str) -> str:
    return _TEXTS.sub("", line[:_LONGEST_LINE])


def _span(lines: Sequence[str], at: int) -> Span:
    line = lines[at - 1]
    if heading := _HEADING.match(line):
        return at, _last_of_section(lines, at, len(heading[1]))
    if _SECTION.match(line):
        return at, next((below - 1 for below in range(at + 1, len(lines) + 1) if _SECTION.match(lines[below - 1])), len(lines))
    return _first_above(lines, at), _last_of_body(lines, at)


def _last_of_section(lines: Sequence[str], at: int, level: int) -> int:
    fenced = False
    for below in range(at + 1, len(lines) + 1):
        line = lines[below - 1]
        fenced ^= line.lstrip().startswith("```")
        heading = None if fenced else _HEADING.match(line)
        if heading and len(heading[1]) <= level:
            return below - 1
    return len(lines)


def _first_above(lines: Sequence[str], at: int) -> int:
    """Decorators, attributes and comments right above belong to it."""
    first = at
    while first > 1 and at - first < _MOST_ABOVE and _ABOVE.match(lines[first - 2]):
        first -= 1
    return first


def _last_of_body(lines: Sequence[str], at: int) -> int:
    """By indentation, which tools keep even where brackets stand in texts; by brackets where a line breaks the indentation."""
    by_brackets, header = _by_brackets(lines, at)
    by_indent, closed = _by_indent(lines, at, header)
    if closed or by_brackets is None:
        return by_indent
    return by_brackets


def _by_brackets(lines: Sequence[str], at: int) -> tuple[int | None, int]:
    """Where the brackets that the definition opens are closed (None: they open none, or the text ends before), and where its
    arguments end."""
    depth, header, opened = 0, at, False
    for below in range(at, min(len(lines), at + _LONGEST_BODY) + 1):
        line = _without_texts(lines[below - 1])
        body_begins = below > header and not opened and line.lstrip().startswith("{")
        if below > header and not opened and not body_begins and line.strip():
            return None, header
        opened |= "{" in line
        depth += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        if depth > 0 and not opened:
            header = below + 1
        elif depth <= 0 and opened:
            return below, header
    return None, header


def _by_indent(lines: Sequence[str], at: int, header: int) -> tuple[int, bool]:
    """The last line that stands further in, or closes it; and whether such a closing line was found."""
    margin = _indent(lines[at - 1])
    last, quoted = at, ""
    for below in range(at + 1, min(len(lines), at + _LONGEST_BODY) + 1):
        line = lines[below - 1]
        inside = bool(quoted)
        quoted = _quoted(line, quoted)
        if not line.strip():
            continue
        goes_on = below <= header or line.lstrip().startswith(("{", "):", ") ->", ") {"))
        if inside or goes_on or _indent(line) > margin:
            last = below
        elif _indent(line) == margin and _CLOSERS.match(line.lstrip()):
            if not line.rstrip().endswith(("{", ":", "do", "then")):
                return below, True
            last = below  # `} else {` goes on
        else:
            break
    return last, False


def _quoted(line: str, quoted: str) -> str:
    """The triple quotes that are open after this line."""
    for marks in ('"""', "'''"):
        if quoted in ("", marks) and line.count(marks) % 2:
            return "" if quoted else marks
    return quoted


def _indent(line: str) -> int:
    stripped = line.lstrip()
    return len(line[: len(line) - len(stripped)].expandtabs(_TAB))


def _nothing(text: Text, name: str) -> str:
    lines = text.bare
    joined = "\n".join(lines)[:_NAMES_LOOKED_AT]
    known = list(
        dict.fromkeys(
            [
                *_ANY_DEFINITION.findall(joined),
                *(found[2] for line in lines if (found := _HEADING.match(line))),
                *markup.headings(joined),
            ]
        )
    )
    wanted = _parted(name)[1]
    close = get_close_matches(wanted, known, 8, 0.5) or known[:12]
    mentions = [told(at, at) for at, line in enumerate(lines, 1) if wanted and wanted in line][:8]
    said = [f"no definition of {name[:80]}"]
    if mentions:
        said.append(f"lines that name it: {', '.join(mentions)}")
    if close:
        said.append(f"defined here: {', '.join(each[:80] for each in close)}")
    return "; ".join(said) if len(said) > 1 else f"{said[0]} and none of anything else; ask with lines"
