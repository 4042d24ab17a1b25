"""Finds definitions in code by its lines alone: any language, no grammar, linear time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from hotset.nouns.retrieval import Span
from hotset.text.words import word_set

_NAMED = (
    "class def defmodule defp enum extension fn fun func function impl interface macro_rules! "
    "message mod module namespace"
    " object proc protocol record resource service struct sub trait type union"
).replace(" ", "|")
"""Keywords before the name of a type or a function."""

_DEFINITION = re.compile(
    r"""
    (?:(?:export|default|public|private|protected|internal|static|async|abstract|final|override|pub(?:\([\w:\ ]{1,40}\))?|unsafe
        |inline|virtual|declare|readonly|extern|sealed|partial|open|data|suspend|local|get|set)\ +){0,5}
    (?:
      (?P<word>function\*|"""  # noqa: E501
    + _NAMED
    + r""")\ +(?P<name>[\w$.:<>"'-]{1,80})
      |(?:const|let|var|val)\ +(?P<bound>[\w$]{1,80})\b[^=\n]{0,120}=
      |(?P<test>describe|it|test|context|beforeEach|afterEach|suite)(?:\.\w{1,20})?\(\s*(?P<title>["'`][^"'`\n]{1,80})?
      |(?P<method>[\w$\#~]{1,80})(?:<[^>\n]{0,60}>)?\([^;\n]{0,200}\)?(?:\s*:\s*[^;{\n]{1,100})?\s*(?:const\s*)?\{\s*$
      |[\w:<>,*&\[\]\ ]{1,60}\ [*&]{0,2}(?P<routine>[\w:~]{1,80})\([^;=\n]{0,200}\)?\s*(?:throws\ [\w,\ ]{1,60})?\{?\s*$
    )
    """,  # noqa: E501
    re.VERBOSE,
)
_SHOWN_KEYWORDS = word_set(
    "class interface type enum struct union trait impl module namespace mod object record "
    "protocol extension"
)
_BINDS_CODE = re.compile(r"=>|\bfunction\b|\blambda\b|\bclass\b|=\s*(?:async\s*)?\(")
_STATEMENT = re.compile(
    r"(?:if|for|while|switch|catch|return|else|elif|with|match|do|try|except|await|yield|"
    r"throw|raise|new|assert|print)\b"
)
_NOT_A_METHOD = word_set(
    "if for while switch catch return else elif with match do try except foreach unless until "
    "assert await print"
)
_CLOSER = re.compile(
    r"[\])}>;,]+|end\b|\)\s*(?::|=>|->)|\}\s*(?:else|catch|finally|from\b)|(?:else|elif|"
    r"except|finally|rescue|ensure)\b"
)
# beginnings of lines that belong to the definition below them
_LEADS = ("@", "#", "//", "/*", "*", '"""', "'''", "--", ";;")
_TAIL = 200  # characters at the end of a line that are searched for the opening of a body
_HEAD_LINES = 6  # in which the body of a function opens
_DEEPEST = 4

_INTRODUCING = (
    f"{_NAMED}|package|const|let|var|val|static|typedef|method|defmacro|defn|rpc|#define|variable"
)
"""The same with words that bind a value."""
_INTRODUCED = (
    rf"(?:^|[^\w.$])(?:{_INTRODUCING})\*?(?:<[^>]{{0,100}}>)"
    rf"?\s+(?:mut\s+|\([^()]{{0,100}}\)\s*|"
    rf"[\w.:<>, ]{{1,80}}\bfor\s+)?"
)
_QUALIFIER = r"(?:[\w$]{1,80}(?:::|\.)){0,4}"
_SQL = (
    r"\bcreate\s+(?:or\s+replace\s+)?(?:\w+\s+){0,2}(?:table|view|function|procedure|trigger|"
    r"index|type)\s+"
    r"(?:if\s+not\s+exists\s+)?"
)
_NO_DEFINITION = re.compile(
    r"\s*(?:return|if|elif|else|while|for|switch|case|await|throw|raise|new|yield|assert|"
    r"print|not|and|or)\b"
)
_ANY_DEFINITION = re.compile(
    rf"^[ \t]*(?:[\w()]{{1,20}}[ \t]+){{0,3}}?(?:{_INTRODUCING})\*?[ \t]+(?:\([^()\n"
    rf"]{{0,100}}\)[ \t]*)?([A-Za-z_$][\w$]{{1,80}})"
    r"(?=[ \t]*(?:[(:{<=\[;]|$)|[ \t]+(?:extends|implements|struct|interface|for|where|enum)\b)",
    re.MULTILINE,
)
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_SECTION = re.compile(r"\[{1,2}([^\]]+)\]{1,2}\s*$")
_TEXTS = re.compile(
    r'"(?:\\.|[^"\\]){0,300}+"|\'(?:\\.|[^\'\\]){0,300}+\'|`(?:\\.|[^`\\]){0,300}+`|//.*|/'
    r"\*[^*]{0,300}+\*/|(?:^|\s)#\s.*"
)
_CLOSERS = re.compile(r"[})\]]|end\b|fi\b|done\b|esac\b")
_ABOVE = re.compile(r"\s*(?:@|#\[|///|//|/\*\*|\*|#(?!\s*(?:include|define|if|endif)\b)|--)")
_MOST_ABOVE = 30  # lines of decorators and comments that belong to the definition below
_HEADER = 40  # lines within which the arguments of a function end
_LONGEST_LINE = 2000  # characters; longer lines are generated
_LONGEST_BODY = 5000  # lines
_MOST_PLACES = 50  # definitions of one name
_FARTHEST = 200  # lines searched upwards for the beginning of a function
_TAB = 8


@dataclass(slots=True)
class CodeBlock:
    """A definition with what is indented below it."""

    first: int
    """Where it begins, with the comments and decorators above it."""
    head: int
    indent: int
    name: str
    end: int = 0
    inner: list[CodeBlock] = field(default_factory=list)


def outline(lines: Sequence[str]) -> list[CodeBlock]:
    """Definitions, nested by indentation."""
    roots: list[CodeBlock] = []
    open_: list[CodeBlock] = []
    lead: int | None = None
    end = 0
    for index, line in enumerate(lines):
        text = line.lstrip()
        if not text:
            lead = None
            continue
        indent = len(line) - len(text)
        while (
            open_
            and indent <= open_[-1].indent
            and not (indent == open_[-1].indent and _CLOSER.match(text))
        ):
            open_.pop().end = end
        end = index + 1
        if text.startswith(_LEADS):
            lead = index if lead is None else lead
            continue
        if len(open_) < _DEEPEST and (name := _definition_name(lines, index, text, indent)):
            block = CodeBlock(index if lead is None else lead, index, indent, name)
            (open_[-1].inner if open_ else roots).append(block)
            open_.append(block)
        lead = None
    for block in open_:
        block.end = end
    return roots


def flatten(blocks: Sequence[CodeBlock]) -> Iterator[CodeBlock]:
    """Every block, outer ones before what they contain."""
    for block in blocks:
        yield block
        yield from flatten(block.inner)


def paragraphs(
    lines: Sequence[str], first: int, end: int, most: int, offset: int = 0
) -> Iterator[tuple[int, int]]:
    """Stretches between empty lines: short ones are joined, long ones cut."""
    start, size = first, 0
    for index in range(first, end):
        length = len(lines[index]) + 1
        full = size + length > most
        ripe = size > most // 2 and not lines[index - 1].strip()
        if index > start and (full or ripe):
            yield start + offset, index + offset
            start, size = index, 0
        size += length
    if start < end:
        yield start + offset, end + offset


def find_definitions(lines: Sequence[str], typed: str) -> list[Span]:
    """Spans where a name is defined: as a definition, else as a section, else as a setting."""
    container, name = split_name(typed)
    outer = find_definitions(lines, container) if container else []
    for finds in _ways(name):
        found = finds(lines)[:_MOST_PLACES]
        inside = [at for at in found if any(first <= at <= last for first, last in outer)]
        if inside or found:
            return [_span(lines, at) for at in inside or found]
    return []


def definition_around(lines: Sequence[str], at: int) -> Span | None:
    """The innermost definition that contains this line, from 1."""
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


def defined_names(text: str) -> list[str]:
    """Names introduced by a word such as `class` or `const`, in order."""
    return _ANY_DEFINITION.findall(text)


def headings(lines: Sequence[str]) -> list[str]:
    """The titles of Markdown headings."""
    return [found[2] for line in lines if (found := _HEADING.match(line))]


def split_name(typed: str) -> tuple[str, str]:
    """Container and name of `Window.plan()`, `Window::plan`, `def plan` or `## Plan`."""
    name = re.sub(r"\(.*$", "", typed.strip()).strip("`\"' :")
    name = re.sub(rf"^(?:async\s+)?(?:{_INTRODUCING})\s+", "", name)
    name = re.sub(r"^#+\s*", "", name)
    found = re.fullmatch(r"(.*[\w$])(?:::|\.|#|->)([\w$~!?]+)", name)
    return (found[1], found[2]) if found and " " not in name else ("", name)


def _definition_name(lines: Sequence[str], index: int, text: str, indent: int) -> str:
    """The name that a line defines, with its keyword; empty if it defines nothing."""
    found = _DEFINITION.match(text)
    if not found:
        return ""
    if found["name"]:
        return (
            f"{found['word']} {found['name']}"
            if found["word"] in _SHOWN_KEYWORDS
            else found["name"].rstrip(":")
        )
    if found["bound"]:
        return found["bound"] if indent == 0 or _BINDS_CODE.search(text) else ""
    if found["test"]:
        return f"{found['test']} {(found['title'] or '')[1:]}".strip()
    name = found["method"] or found["routine"] or ""
    return (
        ""
        if name in _NOT_A_METHOD or _STATEMENT.match(text) or not _opens_below(lines, index)
        else name
    )


def _opens_below(lines: Sequence[str], index: int) -> bool:
    """True if a body in braces follows what looks like the head of a function; a call has none."""
    for line in lines[index : index + _HEAD_LINES]:
        end = line[-_TAIL:].rstrip()
        if end.endswith(("{", "{}", "{ }")) or (end.endswith("}") and "{" in end):
            return True
        if not end or end.endswith(";"):
            return False
    return False


_Finds = Callable[[Sequence[str]], list[int]]
"""Returns the lines, from 1, on which something begins."""


def _ways(name: str) -> Iterator[_Finds]:
    if not name:
        return
    exact = rf"(?<![\w$]){re.escape(name)}(?![\w$])"
    if " " not in name:
        introduced = re.compile(
            rf"{_INTRODUCED}{_QUALIFIER}[\"'`]?{exact}|{_SQL}[\"`\w.]*?{exact}", re.IGNORECASE
        )
        called = re.compile(
            rf"\s*(?:[\w$<>\[\],.:*&?@~]{{1,80}}\s+){{0,8}}[*&]*{_QUALIFIER}~?"
            rf"{exact}\s*(?:<[^<>]{{0,100}}>)?\s*\("
        )
        yield lambda lines: [
            at
            for at, line in _with(name, lines)
            if introduced.search(line) or _opens(lines, at, called.match(line))
        ]
    yield lambda lines: [
        at for at, line in enumerate(lines, 1) if line[:1] in ("#", "[") and _heads(line, name)
    ]
    assigned = re.compile(
        rf"\s*(?:[\w()]{{1,20}}\s+){{0,4}}{_QUALIFIER}{exact}\s*(?::[^=]{{0,200}})?(?::=|"
        rf"=(?!=)|\?=)"
    )
    keyed = re.compile(rf"\s*(?:-\s+)?[\"']?{exact}[\"']?\s*:(?!:)")
    yield lambda lines: [
        at for at, line in _with(name, lines) if assigned.match(line) or keyed.match(line)
    ]


def _with(name: str, lines: Sequence[str]) -> list[tuple[int, str]]:
    return [
        (at, line)
        for at, line in enumerate(lines, 1)
        if name in line and len(line) <= _LONGEST_LINE
    ]


def _heads(line: str, name: str) -> bool:
    heading = _HEADING.match(line) or _SECTION.match(line)
    return heading is not None and name.lower() in heading[heading.lastindex or 0].lower()


def _opens(lines: Sequence[str], at: int, called: re.Match[str] | None) -> bool:
    """True if `name(...)` has a body after its arguments: a C-style method or function; a call has
    none."""
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
    """The lines of a header without strings and comments."""
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
        return at, next(
            (
                below - 1
                for below in range(at + 1, len(lines) + 1)
                if _SECTION.match(lines[below - 1])
            ),
            len(lines),
        )
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
    """The first line of the decorators, attributes and comments right above."""
    first = at
    while first > 1 and at - first < _MOST_ABOVE and _ABOVE.match(lines[first - 2]):
        first -= 1
    return first


def _last_of_body(lines: Sequence[str], at: int) -> int:
    """The last line by indentation, which is right even if strings contain brackets; by brackets if
    a line breaks the indentation."""
    by_brackets, header = _by_brackets(lines, at)
    by_indent, closed = _by_indent(lines, at, header)
    if closed or by_brackets is None:
        return by_indent
    return by_brackets


def _by_brackets(lines: Sequence[str], at: int) -> tuple[int | None, int]:
    """The line on which the definition's brackets close (None if it opens none or they stay open),
    and the line on which its arguments end."""
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
    """The last line that is indented further or closes the block, and whether a closing line was
    found."""
    margin = _indent(lines[at - 1])
    last, quoted = at, ""
    for below in range(at + 1, min(len(lines), at + _LONGEST_BODY) + 1):
        line = lines[below - 1]
        inside = bool(quoted)
        quoted = _open_quotes(line, quoted)
        if not line.strip():
            continue
        goes_on = below <= header or line.lstrip().startswith(("{", "):", ") ->", ") {"))
        if inside or goes_on or _indent(line) > margin:
            last = below
        elif _indent(line) == margin and _CLOSERS.match(line.lstrip()):
            if not line.rstrip().endswith(("{", ":", "do", "then")):
                return below, True
            last = below  # `} else {` continues
        else:
            break
    return last, False


def _open_quotes(line: str, quoted: str) -> str:
    """The triple quotes that are open after this line."""
    for marks in ('"""', "'''"):
        if quoted in ("", marks) and line.count(marks) % 2:
            return "" if quoted else marks
    return quoted


def _indent(line: str) -> int:
    stripped = line.lstrip()
    return len(line[: len(line) - len(stripped)].expandtabs(_TAB))
