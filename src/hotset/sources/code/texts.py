"""A file's bytes as text: decoded, line ends unified, secrets sealed. The one place where content
becomes searchable."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hotset.files.root import Content, NotTaken, Root, Why
from hotset.sealing import SealedText, seal, secret_file
from hotset.text.charset import decode
from hotset.text.languages import language_of

VERSION = 2
"""Version of the rules by which bytes become text, and of what counts as written by people. Any
change of either increments it."""

_MINIFIED_FROM = 5000  # characters; what is shorter costs nothing
_MINIFIED_LINE = 400  # characters of a line on average; hand-written code has 30 to 40
_MINIFIED = frozenset(("javascript", "jsx", "typescript", "css", "html", "xml"))


def read_text(
    root: Root, path: str, most: int, *, hard_links: bool = False
) -> tuple[Content, SealedText]:
    """A file's bytes and its text, without secrets. Raises `NotTaken`; a file of secrets is not
    even opened."""
    if secret_file(path) is not None:
        raise NotTaken(path, Why.SECRET)
    content = root.read(path, most, hard_links=hard_links)
    return content, seal(decode_text(path, content.data))


def decode_text(path: str, data: bytes) -> str:
    """Text with `\\n` after each line. Raises `NotTaken`."""
    text = decode(data)
    if text is None:
        raise NotTaken(path, Why.BINARY)
    return text


def refuse_machine_made(path: str, text: str) -> None:
    """Raises `NotTaken` for generated or minified files. They can still be read by their name."""
    if not text.strip():
        raise NotTaken(path, Why.EMPTY)
    language = language_of(path, text).name
    if is_generated(text, language):
        raise NotTaken(path, Why.GENERATED)
    if (
        len(text) >= _MINIFIED_FROM
        and len(text) > _MINIFIED_LINE * (text.count("\n") + 1)
        and language in _MINIFIED
    ):
        raise NotTaken(path, Why.MINIFIED)


_WITHIN = 2000  # characters in which generators say so
_PROSE = frozenset({"markdown", "rst"})
"""Languages in which `#` begins a heading and `*` a list item: only comments that are not rendered
count."""

_LINE = re.compile(r"(?://|#|--|;|%|\*|!|\.\.|REM\b|@REM\b|')[/#!*;%-]*")
_OF_PROSE = re.compile(r"\.\.|\[//\]: #")
_BLOCKS = (("/*", "*/"), ("<!--", "-->"), ("{-", "-}"), ("(*", "*)"), ("<#", "#>"), ("/+", "+/"))
_BLOCKS_OF_PROSE = (("<!--", "-->"),)
_DOCSTRING = re.compile(r"[rRuU]?(\"\"\"|''')")
_PREAMBLE = re.compile(r"<\?|<!doctype|[\"']use \w+[\"']|@charset", re.IGNORECASE)
"""What must come before the first comment of a file."""

_MARKED = re.compile(
    (
        r"(?:generated: )?@generated(?![\w-])|this (?:file|code) is (?:auto(?:matically)?[- "
        r"]?)?@generated\b"
    ),
    re.IGNORECASE,
)
_BEFORE = r"(?:(?:note|warning|attention|caution|important)\W+)?"
_AUTO = r"(?:auto(?:matically)?[- ]?)?"
_THING = r"(?:\w+ )?(?:file|code|class|module|document|header|script|implementation|bindings?)"
_SAYS = re.compile(
    rf"{_BEFORE}(?:(?:this |the following )?{_THING} )?(?:(?:is|was|has been) )?{_AUTO}generated\b",
    re.IGNORECASE,
)
_SAYS_ALL = re.compile(
    rf"{_BEFORE}(?:this {_THING} (?:is|was|has been) {_AUTO}generated\b|file generated "
    rf"(?:by|from)\b|"
    rf"auto(?:matically)?[- ]?generated (?:by|from|with|using|file|code)\b)",
    re.IGNORECASE,
)
_KEEP_OFF = re.compile(
    r"\b(?:do not|don't|never|must not|should not(?: be)?) (?:manually |hand[- "
    r"]?)?(?:edit|modif|chang|touch)|"
    r"\bnot (?:be |intended for )?manual(?:ly)? edit|\bchanges\b.{0,40}\bwill be "
    r"(?:lost|overwritten)",
    re.IGNORECASE,
)
_BOTH = re.compile(
    rf"{_BEFORE}(?:do not|don't) (?:edit|modify|change)\b.*\bgenerated\b", re.IGNORECASE
)


def is_generated(text: str, language: str) -> bool:
    """True if the comments before the first line of code say so; a docstring must contain both
    sentences, each at the start of a line."""
    comments, docstring = _head(text[:_WITHIN], language)
    if any(_MARKED.match(line) or _SAYS_ALL.match(line) or _BOTH.match(line) for line in comments):
        return True
    if any(map(_SAYS.match, comments)) and any(map(_KEEP_OFF.search, comments)):
        return True
    return any(map(_SAYS.match, docstring)) and any(map(_KEEP_OFF.match, docstring))


def _head(text: str, language: str) -> tuple[list[str], list[str]]:
    """The lines of the comments at a file's beginning, and those of its docstring."""
    prose = language in _PROSE
    comments: list[str] = []
    docstring: list[str] = []
    lines = iter(text.split("\n"))
    for line in lines:
        stripped = line.strip()
        if not stripped or _PREAMBLE.match(stripped):
            continue
        if block := next(
            (
                each
                for each in (_BLOCKS_OF_PROSE if prose else _BLOCKS)
                if stripped.startswith(each[0])
            ),
            None,
        ):
            comments += _until(block[1], stripped.removeprefix(block[0]), lines)
        elif mark := (_OF_PROSE if prose else _LINE).match(stripped):
            comments.append(_bare(stripped[mark.end() :]))
        elif language == "python" and (quote := _DOCSTRING.match(stripped)):
            docstring += _until(quote[1], stripped[quote.end() :], lines)
            break
        else:
            break
    return comments, docstring


def _until(end: str, first: str, lines: Iterator[str]) -> Iterator[str]:
    """The lines of a block comment, without its frame."""
    line = first
    while True:
        inside, closed, _ = line.partition(end)
        yield _bare(inside)
        if closed or (following := next(lines, None)) is None:
            return
        line = following


def _bare(line: str) -> str:
    return line.strip(" \t*/#;%!=-<>")
