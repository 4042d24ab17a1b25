"""A file's bytes as text: decoded, its lines ended alike, its secrets sealed. The one place where
content becomes searchable."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hotset.files.root import Content, NotTaken, Root, Why
from hotset.sealing import SealedText, seal, secret_file
from hotset.text.charset import decode
from hotset.text.languages import language_of

VERSION = 2
"""Of how bytes become text, and of what is taken for text that people wrote. A change that takes
more, or less, counts it up."""

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
    """Text with `\\n` behind each line. Raises `NotTaken`."""
    text = decode(data)
    if text is None:
        raise NotTaken(path, Why.BINARY)
    return text


def refuse_machine_made(path: str, text: str) -> None:
    """Raises `NotTaken` for what no person wrote or will read. It can still be read by its name."""
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
"""Where `#` begins a heading and `*` a point: only comments that are not rendered count."""

_LINE = re.compile(r"(?://|#|--|;|%|\*|!|\.\.|REM\b|@REM\b|')[/#!*;%-]*")
_OF_PROSE = re.compile(r"\.\.|\[//\]: #")
_BLOCKS = (("/*", "*/"), ("<!--", "-->"), ("{-", "-}"), ("(*", "*)"), ("<#", "#>"), ("/+", "+/"))
_BLOCKS_OF_PROSE = (("<!--", "-->"),)
_DOCSTRING = re.compile(r"[rRuU]?(\"\"\"|''')")
_PREAMBLE = re.compile(r"<\?|<!doctype|[\"']use \w+[\"']|@charset", re.IGNORECASE)
"""What has to stand before the first comment of a file."""

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
    """By the comments before the first line of anything else; in a docstring both sentences, each
    beginning a line."""
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
        if block := next(
            (each for each in (_BLOCKS_OF_PROSE if prose else _BLOCKS) if said.startswith(each[0])),
            None,
        ):
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
