"""How large an image is, from the first bytes of PNG, JPEG, GIF and WebP files."""

from __future__ import annotations

from typing import Any

from hotset.dialects.parts import URI, image, image_at
from hotset.nouns.message import Part

Size = tuple[int, int]

_NO_SIZE = frozenset({0xC4, 0xC8, 0xCC})
"""JPEG markers between the frame headers that are none."""


def size_of(data: bytes) -> Size | None:
    """Width and height in pixels; None where the format is not known or the header is cut."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    if data.startswith((b"GIF87a", b"GIF89a")) and len(data) >= 10:
        return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    if data.startswith(b"\xff\xd8"):
        return _jpeg(data)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP" and len(data) >= 30:
        return _webp(data)
    return None


def size_of_source(source: Any) -> Size | None:
    """The size of an Anthropic image source; None where the image is elsewhere."""
    match source:
        case {"type": "base64", "data": data, "media_type": media}:
            return _of(image(data, media))
        case {"type": "url", "url": url}:
            return _of(image_at(url))
    return None


def _of(part: Part | None) -> Size | None:
    return size_of(part.content) if part and part.media != URI else None


def _jpeg(data: bytes) -> Size | None:
    here = 2
    while here + 9 <= len(data):
        if data[here] != 0xFF:
            return None
        marker = data[here + 1]
        if marker == 0xFF:
            here += 1
        elif 0xC0 <= marker <= 0xCF and marker not in _NO_SIZE:
            return int.from_bytes(data[here + 7 : here + 9], "big"), int.from_bytes(data[here + 5 : here + 7], "big")
        else:
            here += 2 + max(2, int.from_bytes(data[here + 2 : here + 4], "big"))
    return None


def _webp(data: bytes) -> Size | None:
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    return None
