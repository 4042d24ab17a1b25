"""Text without all that a reader does not notice: what is the same to a reader is the same bytes. Pure, fast."""

from __future__ import annotations

import re
import unicodedata

from hotset.sources.tools.characters import folded

_DROPPED = b" \t\r\n\x0b\x0c\x00`'\"*\\>"
_SMALL = bytes.maketrans(bytes(range(65, 91)), bytes(range(97, 123)))
_UNSEEN = re.compile(
    rb"\xe2\x80[\x8b-\x8f\xaa-\xae]|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf|\xc2\xad|\xcd\x8f|\xf3\xa0[\x80-\x87][\x80-\xbf]"
    rb"|\xef\xb8[\x80-\x8f]|\xe1\xa0\x8e|\xe3\x85\xa4"
)
_ESCAPE = re.compile(rb"\\u([0-9a-fA-F]{4})")
_DISGUISE = re.compile("[\u0370-\u058f\u13a0-\u13ff\u2460-\u24ff\uff00-\uffef\U0001d400-\U0001d7ff\U000e0000-\U000e007f]")


def squeezed(content: bytes) -> bytes:
    """In small letters, without spaces, quotes and what cannot be seen: what is the same to a reader is the same here."""
    if b"\\" in content:
        content = _unescaped(content)
    if not content.isascii():
        content = _undisguised(content)
    return content.translate(_SMALL, _DROPPED)


def _unescaped(content: bytes) -> bytes:
    """As JSON would be read: most tools answer in it."""
    for escape in (b"\\n", b"\\r", b"\\t"):
        content = content.replace(escape, b"")
    if b"\\u" in content:
        content = _ESCAPE.sub(lambda found: chr(int(found.group(1), 16)).encode("utf-8", "replace"), content)
    return content


def _undisguised(content: bytes) -> bytes:
    """Letters that look like others are those others, and what shows nothing is gone."""
    text = content.decode("utf-8", "replace")
    if _DISGUISE.search(text):
        text = unicodedata.normalize("NFKC", text)
        text = "\n".join(folded(line) if not line.isascii() else line for line in text.split("\n"))
    return _UNSEEN.sub(b"", text.encode("utf-8", "replace"))
