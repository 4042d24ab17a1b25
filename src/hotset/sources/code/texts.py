"""A file's bytes as text: decoded, its lines ended alike, its secrets sealed. The one place where content becomes searchable."""

from __future__ import annotations

import codecs
import re

from hotset.sealing import Sealed, seal, secret_file
from hotset.sources.code.languages import language_of
from hotset.sources.code.opening import Content, NotTaken, Root, Why

_LOOKED_AT = 8192  # bytes in which git, too, looks for a zero
_MARKER_WITHIN = 2000  # characters in which generators say so
_MOST_BROKEN = 0.05  # the share of characters that may be no UTF-8: a name in Latin-1 here and there, not a picture
_MINIFIED_FROM = 5000  # characters; what is shorter costs nothing
_MINIFIED_LINE = 400  # characters of a line on average; hand-written code has 30 to 40
_MINIFIED = frozenset(("javascript", "jsx", "typescript", "css", "html", "xml"))
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins like the next one
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_GENERATED = re.compile(
    r"@generated\b|\b(?:code|file|this (?:file|code|class|module)) (?:is |was |has been )?(?:auto(?:matically)?[- ]?)?generated"
    r"[^\n]{0,200}(?:do not (?:edit|modify|change)|by)|\bdo not (?:edit|modify)[^\n]{0,80}\bgenerated\b",
    re.IGNORECASE | re.MULTILINE,
)
_LINE_ENDS = re.compile(r"\r\n?")


def read_text(root: Root, path: str, most: int, *, hard_links: bool = False) -> tuple[Content, Sealed]:
    """A file's bytes and its text, without secrets. Raises `NotTaken`; a file of secrets is not even opened."""
    if secret_file(path) is not None:
        raise NotTaken(path, Why.SECRET)
    content = root.read(path, most, hard_links=hard_links)
    return content, seal(decoded(path, content.data))


def decoded(path: str, data: bytes) -> str:
    """Text with `\\n` behind each line. Raises `NotTaken`."""
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if encoding is None and b"\0" in data[:_LOOKED_AT]:
        raise NotTaken(path, Why.BINARY)
    text = data.decode(encoding or "utf-8", "replace")
    if text.count("\ufffd") > _MOST_BROKEN * len(text) or "\0" in text:
        raise NotTaken(path, Why.BINARY)
    return _LINE_ENDS.sub("\n", text)


def refuse_machine_made(path: str, text: str) -> None:
    """Raises `NotTaken` for what no person wrote or will read. It can still be read by its name."""
    if not text.strip():
        raise NotTaken(path, Why.EMPTY)
    if _GENERATED.search(text, 0, _MARKER_WITHIN):
        raise NotTaken(path, Why.GENERATED)
    if (
        len(text) >= _MINIFIED_FROM
        and len(text) > _MINIFIED_LINE * (text.count("\n") + 1)
        and language_of(path).name in _MINIFIED
    ):
        raise NotTaken(path, Why.MINIFIED)
