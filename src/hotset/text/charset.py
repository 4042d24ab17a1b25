"""Decodes the bytes of a text file: UTF-8, else the declared encoding, else a Western European
one."""

from __future__ import annotations

import codecs
import re

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins like the next one
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# share of invalid UTF-8 allowed in a file with control characters: an image has more
_MOST_BROKEN = 0.05
# the same for a file without control characters: no language has more accented letters
_MOST_FOREIGN = 0.3
_CONTROL = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
_DECLARED = (
    # Python, Emacs, vim: the first two lines
    re.compile(rb"\A(?:[^\n]*\n)?[^\n]{0,200}?coding[:=][ \t]*[\"']?([-\w.]+)"),
    re.compile(rb"\A\s*<\?xml[^>]{0,200}?encoding=[\"']([-\w.]+)"),
    re.compile(rb"(?i)\A[\s\S]{0,1000}?<meta[^>]{0,200}?charset=[\"']?([-\w.]+)"),
    re.compile(rb"\A@charset [\"']([-\w.]+)"),
)
_OF_BYTES = re.compile(r"iso8859|cp\d|koi8|kz1048|ptcp|tis|mac|shift_jis|euc_|gb|big5|johab")
"""Encodings in which ASCII bytes and line ends are unchanged, so that lines keep their numbers."""

_LINE_ENDS = re.compile(r"\r\n?")
# what is usually meant by Latin-1: it has quotation marks where Latin-1 has nothing
_WESTERN = "cp1252"
_AS_WESTERN = "hotset-western"


def decode(data: bytes) -> str | None:
    """The text with `\\n` after each line; None if it is not text."""
    text = _characters(data)
    return None if text is None else _LINE_ENDS.sub("\n", text)


def _characters(data: bytes) -> str | None:
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if encoding is not None:
        text = data.decode(encoding, "replace")
        return None if "\0" in text or text.count("\ufffd") > _MOST_BROKEN * len(text) else text
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _not_utf8(data)


def _not_utf8(data: bytes) -> str | None:
    if (declared := _declared_encoding(data)) is not None:
        text = data.decode(declared, "replace")
        if text.count("\ufffd") <= _MOST_BROKEN * len(text):
            return text
    broken = data.decode("utf-8", "replace").count("\ufffd")
    if broken > (_MOST_BROKEN if _CONTROL.search(data) else _MOST_FOREIGN) * len(data):
        return None
    return data.decode("utf-8", _AS_WESTERN)


def _declared_encoding(data: bytes) -> str | None:
    """The encoding that a file declares, if it is a single-byte or double-byte one."""
    for pattern in _DECLARED:
        if found := pattern.search(data[:2000]):
            try:
                name = codecs.lookup(found[1].decode("ascii")).name
            except (LookupError, UnicodeDecodeError):
                continue
            if name == "iso8859-1":
                return _WESTERN
            if _OF_BYTES.match(name):
                return name
    return None


def _as_western(error: UnicodeError) -> tuple[str, int]:
    """Error handler: decodes one invalid byte; the bytes after it may be valid."""
    assert isinstance(error, UnicodeDecodeError)
    byte = error.object[error.start : error.start + 1]
    return byte.decode(_WESTERN, "replace"), error.start + 1


codecs.register_error(_AS_WESTERN, _as_western)
