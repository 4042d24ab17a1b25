"""JSON inside a text, taken apart one level at a time: every value keeps its own bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_ANY = msgspec.json.Decoder(msgspec.Raw)
_BEGINS = re.compile(r"^[ \t]*[\[{]", re.MULTILINE)

Fields = dict[str, bytes]
Elements = list[bytes]


def document(text: str) -> bytes | None:
    """The JSON that a text is, or holds behind a heading; JSON lines are an array. None where there
    is none."""
    stripped = text.strip()
    whole = stripped.encode("utf-8", "replace")
    if stripped[:1] in ("{", "[") and _reads(whole):
        return whole
    rows = [line for line in stripped.split("\n") if line.strip()]
    if len(rows) > 1 and all(row.lstrip()[:1] in ("{", "[") for row in rows):
        each = [row.strip().encode("utf-8", "replace") for row in rows]
        if all(map(_reads, each)):
            return b"[" + b",".join(each) + b"]"
    begins = _BEGINS.search(stripped)
    ends = max(stripped.rfind("}"), stripped.rfind("]"))
    if begins and begins.end() <= ends:
        inner = stripped[begins.start() : ends + 1].encode("utf-8", "replace")
        return inner if _reads(inner) else None
    return None


def fields(value: bytes) -> Fields | None:
    """An object's members; None where it is no object."""
    if not value.lstrip().startswith(b"{"):
        return None
    return {name: bytes(raw) for name, raw in _OBJECT.decode(value).items()}


def elements(value: bytes) -> Elements | None:
    """An array's elements; None where it is no array."""
    if not value.lstrip().startswith(b"["):
        return None
    return [bytes(raw) for raw in _ARRAY.decode(value)]


def shape(value: bytes) -> str:
    """What a value is, in a few words."""
    inside = fields(value)
    if inside is not None:
        return f"object with {len(inside):,} keys"
    several = elements(value)
    return f"array of {len(several):,}" if several is not None else f"{len(value):,} characters"


def names(of: Sequence[str], most: int = 20) -> str:
    """The first few names, as a list to choose from."""
    return ", ".join(name[:60] for name in of[:most]) + (
        f" and {len(of) - most:,} more" if len(of) > most else ""
    )


def _reads(value: bytes) -> bool:
    try:
        _ANY.decode(value)
    except (ValueError, RecursionError):
        return False
    return True
