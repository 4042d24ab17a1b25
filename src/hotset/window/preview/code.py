"""Source code: imports, whole functions near what was asked for, constants, and gaps that say which definitions they hold."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hotset.text.words import word_set
from hotset.window.preview.asking import Asked, closeness
from hotset.window.preview.body import Body
from hotset.window.preview.excerpt import Reading, Span, Worth
from hotset.window.preview.rarity import odd_lines, shown

_DEFINITION = re.compile(
    r"""
    (?:(?:export|default|public|private|protected|internal|static|async|abstract|final|override|pub(?:\([\w:\ ]{1,40}\))?|unsafe
        |inline|virtual|declare|readonly|extern|sealed|partial|open|data|suspend|local|get|set)\ +){0,5}
    (?:
      (?P<word>def|class|function\*?|interface|type|enum|struct|union|trait|impl|fn|func|fun|module|namespace|mod|macro_rules!
        |object|record|protocol|extension|proc|sub|defmodule|defp?|message|service|resource)\ +(?P<name>[\w$.:<>"'-]{1,80})
      |(?:const|let|var|val)\ +(?P<bound>[\w$]{1,80})\b[^=\n]{0,120}=
      |(?P<test>describe|it|test|context|beforeEach|afterEach|suite)(?:\.\w{1,20})?\(\s*(?P<title>["'`][^"'`\n]{1,80})?
      |(?P<method>[\w$\#~]{1,80})(?:<[^>\n]{0,60}>)?\([^;\n]{0,200}\)?(?:\s*:\s*[^;{\n]{1,100})?\s*(?:const\s*)?\{\s*$
      |[\w:<>,*&\[\]\ ]{1,60}\ [*&]{0,2}(?P<routine>[\w:~]{1,80})\([^;=\n]{0,200}\)?\s*(?:throws\ [\w,\ ]{1,60})?\{?\s*$
    )
    """,
    re.VERBOSE,
)
_SAID = word_set("class interface type enum struct union trait impl module namespace mod object record protocol extension")
_BINDS_CODE = re.compile(r"=>|\bfunction\b|\blambda\b|\bclass\b|=\s*(?:async\s*)?\(")
_STATEMENT = re.compile(
    r"(?:if|for|while|switch|catch|return|else|elif|with|match|do|try|except|await|yield|throw|raise|new|assert|print)\b"
)
_NOT_A_METHOD = word_set(
    "if for while switch catch return else elif with match do try except foreach unless until assert await print"
)
_IMPORT = re.compile(
    r"\s*(?:import\b|from\s+\S+\s+import\b|#include\b|use\s+[\w:]+|using\s+\w|require\(|(?:const|let|var)\s+[^=]{1,200}=\s*require\(|package\s+\w)"
)
_CLOSER = re.compile(
    r"[\])}>;,]+|end\b|\)\s*(?::|=>|->)|\}\s*(?:else|catch|finally|from\b)|(?:else|elif|except|finally|rescue|ensure)\b"
)
_LEADS = ("@", "#", "//", "/*", "*", '"""', "'''", "--", ";;")  # lines that belong to the definition below them
_CONSTANT = re.compile(
    r"(?: {4}|\t)?(?:[\w<>:&']{1,40}[ \t]+){0,4}[A-Z][A-Z0-9_]{2,60}(?:[ \t]*:[^=\n]{1,60})?[ \t]*(?:=|(?<=\w)[ \t])"
    r"[ \t]*(?:[-+.\d\"'`]|[Tt]rue|[Ff]alse|None|null|nil|\w+[.(])"
)
_OPEN_END = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
_NEWS = 15.0  # more than any code that was not asked for, less than any that was
_POINTED = Worth.ASKED + 12  # more than any code that only shares names with what was asked for
_ABOVE, _BELOW = 3, 8  # lines around one that was pointed to
_READ = 200  # characters of a line
_DEEPEST = 4
_UNIT_SHARE = 0.35  # a definition longer than this share of the room is shown by its parts
_CHUNK = 700  # characters of a paragraph of code that is part of something longer
_HEAD_LINES = 6
_SKIMMED = 0.2  # the share of the room in which gaps say what they hold, where a file is too long to be read


@dataclass(slots=True)
class _Block:
    """A definition and what is indented below it."""

    first: int
    """Where it begins, with the comments and decorators above it."""
    head: int
    indent: int
    name: str
    end: int = 0
    inner: list[_Block] = field(default_factory=list)


def read(body: Body, asked: Asked) -> Reading:
    lines = body.lines
    blocks = _outline(lines)
    units = list(_split(lines, 0, len(lines), blocks, max(_CHUNK, int(asked.room * _UNIT_SHARE))))
    scores = closeness(["\n".join(lines[first:end]) for first, end in units], asked)
    spans = [
        Span(body.first + first, body.first + end, _worth(score, first / len(lines)))
        for (first, end), score in zip(units, scores, strict=True)
    ]
    spans.extend(shown(body, {**odd_lines(lines), **dict.fromkeys(_settled(lines), 1.0)}, _NEWS))
    spans.extend(_pointed(body, asked))
    if imports := _imports(lines):
        spans.append(Span(body.first, body.first + imports, Worth.HEAD, least=_HEAD_LINES))
    spans.append(Span(body.first, body.first + min(len(lines), _HEAD_LINES), Worth.HEAD + 1, least=1))
    return Reading(spans, _Outline(body.first, list(_flat(blocks))))


def skim(body: Body, asked: Asked) -> Reading:
    """Of a file that would take long to read: what it defines, and what was pointed to."""
    blocks = _outline(body.lines)
    outline = _Outline(body.first, list(_flat(blocks)), only_outer=True)
    return Reading(list(_pointed(body, asked)), outline, said=_SKIMMED)


@dataclass(frozen=True, slots=True)
class _Outline:
    """Says which definitions stand in a gap: first those that stand in no other."""

    offset: int
    blocks: Sequence[_Block]
    only_outer: bool = False
    """Of a gap that holds definitions which stand in no other, only these, the longest first."""

    def __call__(self, first: int, end: int) -> Sequence[str]:
        low = bisect_left(self.blocks, first - self.offset, key=lambda block: block.head)
        high = bisect_left(self.blocks, end - self.offset, key=lambda block: block.head)
        held = sorted(self.blocks[low:high], key=lambda block: block.indent)
        if self.only_outer and held and not held[0].indent:
            held = sorted((block for block in held if not block.indent), key=lambda block: block.head - block.end)
        return [f"{block.name} {self.offset + block.head + 1}" for block in held]


def _pointed(body: Body, asked: Asked) -> Iterator[Span]:
    """What somebody pointed to by the numbers of lines, which are seldom exact."""
    for index in asked.pointed:
        if body.first <= index < body.end:
            yield Span(max(body.first, index - _ABOVE), min(body.end, index + _BELOW), _POINTED)


def _settled(lines: Sequence[str]) -> Iterator[int]:
    """Lines that fix a value for all that stands below them, and those that say what is still to be done."""
    for index, line in enumerate(lines):
        text = line[:_READ]
        if _CONSTANT.match(text) or _OPEN_END.search(text):
            yield index


def _worth(nearness: float, place: float) -> float:
    if nearness > 0:
        return Worth.ASKED + 10 * nearness
    return Worth.REST + 10 * (1 - place)


def _outline(lines: Sequence[str]) -> list[_Block]:
    """Definitions, nested as their indentation nests them."""
    roots: list[_Block] = []
    open_: list[_Block] = []
    lead: int | None = None
    end = 0
    for index, line in enumerate(lines):
        text = line.lstrip()
        if not text:
            lead = None
            continue
        indent = len(line) - len(text)
        while open_ and indent <= open_[-1].indent and not (indent == open_[-1].indent and _CLOSER.match(text)):
            open_.pop().end = end
        end = index + 1
        if text.startswith(_LEADS):
            lead = index if lead is None else lead
            continue
        if len(open_) < _DEEPEST and (name := _defined(lines, index, text, indent)):
            block = _Block(index if lead is None else lead, index, indent, name)
            (open_[-1].inner if open_ else roots).append(block)
            open_.append(block)
        lead = None
    for block in open_:
        block.end = end
    return roots


def _defined(lines: Sequence[str], index: int, text: str, indent: int) -> str:
    """The name that a line defines, with the word that says what it is; empty where it defines nothing."""
    found = _DEFINITION.match(text)
    if not found:
        return ""
    if found["name"]:
        return f"{found['word']} {found['name']}" if found["word"] in _SAID else found["name"].rstrip(":")
    if found["bound"]:
        return found["bound"] if indent == 0 or _BINDS_CODE.search(text) else ""
    if found["test"]:
        return f"{found['test']} {(found['title'] or '')[1:]}".strip()
    name = found["method"] or found["routine"] or ""
    return "" if name in _NOT_A_METHOD or _STATEMENT.match(text) or not _opens(lines, index) else name


def _opens(lines: Sequence[str], index: int) -> bool:
    """Does a body in braces follow what looks like the head of a function? What has none, calls it."""
    for line in lines[index : index + _HEAD_LINES]:
        end = line[-_READ:].rstrip()
        if end.endswith(("{", "{}", "{ }")) or (end.endswith("}") and "{" in end):
            return True
        if not end or end.endswith(";"):
            return False
    return False


def _flat(blocks: Sequence[_Block]) -> Iterator[_Block]:
    for block in blocks:
        yield block
        yield from _flat(block.inner)


def _split(lines: Sequence[str], first: int, end: int, blocks: Sequence[_Block], most: int) -> Iterator[tuple[int, int]]:
    """Stretches that are shown whole: definitions, or the paragraphs of what is longer than a definition should be."""
    at = first
    for block in blocks:
        if block.first > at:
            yield from paragraphs(lines, at, block.first, _CHUNK)
        if _fits(lines, block, most):
            yield max(at, block.first), block.end
        else:
            yield from _split(lines, max(at, block.first), block.end, block.inner, most)
        at = max(at, block.end)
    if at < end:
        yield from paragraphs(lines, at, end, _CHUNK)


def _fits(lines: Sequence[str], block: _Block, most: int) -> bool:
    size = 0
    for index in range(block.first, block.end):
        size += len(lines[index]) + 1
        if size > most:
            return False
    return True


def paragraphs(lines: Sequence[str], first: int, end: int, most: int, offset: int = 0) -> Iterator[tuple[int, int]]:
    """Stretches between empty lines, short ones together, long ones cut."""
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


def _imports(lines: Sequence[str]) -> int:
    """Where the imports at the top end."""
    end = 0
    for index, line in enumerate(lines):
        if _IMPORT.match(line):
            end = index + 1
        elif index - end > 12:
            break
    return end
