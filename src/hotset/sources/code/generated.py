"""Was a file written by a generator? Only what these write at the head of a file counts, not words about generated things."""

from __future__ import annotations

import re
from collections.abc import Iterator

_WITHIN = 2000  # characters in which generators say so
_PROSE = frozenset({"markdown", "rst"})
"""Where `#` begins a heading and `*` a point: only comments that nobody sees are comments."""

_LINE = re.compile(r"(?://|#|--|;|%|\*|!|\.\.|REM\b|@REM\b|')[/#!*;%-]*")
_OF_PROSE = re.compile(r"\.\.|\[//\]: #")
_BLOCKS = (("/*", "*/"), ("<!--", "-->"), ("{-", "-}"), ("(*", "*)"), ("<#", "#>"), ("/+", "+/"))
_BLOCKS_OF_PROSE = (("<!--", "-->"),)
_DOCSTRING = re.compile(r"[rRuU]?(\"\"\"|''')")
_PREAMBLE = re.compile(r"<\?|<!doctype|[\"']use \w+[\"']|@charset", re.IGNORECASE)
"""What has to stand before the first comment of a file."""

_MARKED = re.compile(
    r"(?:generated: )?@generated(?![\w-])|this (?:file|code) is (?:auto(?:matically)?[- ]?)?@generated\b", re.IGNORECASE
)
_BEFORE = r"(?:(?:note|warning|attention|caution|important)\W+)?"
_AUTO = r"(?:auto(?:matically)?[- ]?)?"
_THING = r"(?:\w+ )?(?:file|code|class|module|document|header|script|implementation|bindings?)"
_SAYS = re.compile(rf"{_BEFORE}(?:(?:this |the following )?{_THING} )?(?:(?:is|was|has been) )?{_AUTO}generated\b", re.IGNORECASE)
_SAYS_ALL = re.compile(
    rf"{_BEFORE}(?:this {_THING} (?:is|was|has been) {_AUTO}generated\b|file generated (?:by|from)\b|"
    rf"auto(?:matically)?[- ]?generated (?:by|from|with|using|file|code)\b)",
    re.IGNORECASE,
)
_KEEP_OFF = re.compile(
    r"\b(?:do not|don't|never|must not|should not(?: be)?) (?:manually |hand[- ]?)?(?:edit|modif|chang|touch)|"
    r"\bnot (?:be |intended for )?manual(?:ly)? edit|\bchanges\b.{0,40}\bwill be (?:lost|overwritten)",
    re.IGNORECASE,
)
_BOTH = re.compile(rf"{_BEFORE}(?:do not|don't) (?:edit|modify|change)\b.*\bgenerated\b", re.IGNORECASE)


def is_generated(text: str, language: str) -> bool:
    """By the comments before the first line of anything else; in a docstring both sentences, each beginning a line."""
    comments, docstring = _head(text[:_WITHIN], language)
    if any(_MARKED.match(line) or _SAYS_ALL.match(line) or _BOTH.match(line) for line in comments):
        return True
    if any(map(_SAYS.match, comments)) and any(map(_KEEP_OFF.search, comments)):
        return True
    return any(map(_SAYS.match, docstring)) and any(map(_KEEP_OFF.match, docstring))


def _head(text: str, language: str) -> tuple[list[str], list[str]]:
    """What the comments at a file's beginning say, line by line, and what its docstring does."""
    prose = language in _PROSE
    comments: list[str] = []
    docstring: list[str] = []
    lines = iter(text.split("\n"))
    for line in lines:
        said = line.strip()
        if not said or _PREAMBLE.match(said):
            continue
        if block := next((each for each in (_BLOCKS_OF_PROSE if prose else _BLOCKS) if said.startswith(each[0])), None):
            comments += _until(block[1], said.removeprefix(block[0]), lines)
        elif mark := (_OF_PROSE if prose else _LINE).match(said):
            comments.append(_bare(said[mark.end() :]))
        elif language == "python" and (quote := _DOCSTRING.match(said)):
            docstring += _until(quote[1], said[quote.end() :], lines)
            break
        else:
            break
    return comments, docstring


def _until(end: str, first: str, lines: Iterator[str]) -> Iterator[str]:
    """The lines of a block, without what draws its frame."""
    said = first
    while True:
        inside, closed, _ = said.partition(end)
        yield _bare(inside)
        if closed or (following := next(lines, None)) is None:
            return
        said = following


def _bare(line: str) -> str:
    return line.strip(" \t*/#;%!=-<>")
