"""JSON as it comes over the wire: read strictly for requests, leniently for replies, cut out raw where bytes must stay."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from hotset.errors import Malformed

_T = TypeVar("_T")
_BOM = b"\xef\xbb\xbf"
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")

_LONE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
"""An escape of half a surrogate pair."""

_any = msgspec.json.Decoder()
_object = msgspec.json.Decoder(dict[str, Raw])
_array = msgspec.json.Decoder(list[Raw])


def decode(raw: bytes, where: str) -> Any:
    """The value in `raw`; `where` says in the error what could not be read."""
    return _strict(_any, raw, where)


def members(raw: bytes, where: str) -> dict[str, Raw]:
    """An object's values, uncut. Of a key that comes twice the last value stays: see `splice.fields`."""
    return _strict(_object, raw, where)


def elements(raw: bytes | memoryview, where: str) -> list[Raw]:
    return _strict(_array, raw, where)


def member(raw: bytes, key: str) -> bytes:
    """One value of an object that was decoded before, as its bytes; empty where there is none."""
    found = _object.decode(raw).get(key)
    return bytes(found) if found is not None else b""


def lenient(raw: bytes) -> Any:
    """The value in `raw`, or None: what came is never a reason to fail."""
    return salvaged(raw)[1]


def salvaged(raw: bytes) -> tuple[bytes, Any]:
    """The value in `raw` and the bytes it was read from; where some mean no character, one that says so stands for them."""
    for mend in (bytes, _mended):
        text = mend(raw)
        try:
            return text, _any.decode(text)
        except (ValueError, RecursionError):
            continue
    return b"", None


def member_of(raw: bytes, key: str) -> bytes:
    """One value of an object that was read before, as its bytes; empty where there is none, or no object."""
    return member(raw, key) if raw.lstrip().startswith(b"{") else b""


def elements_of(raw: bytes) -> list[bytes]:
    """The elements of an array that was read before, as their bytes; none where it is no array."""
    return [bytes(each) for each in _array.decode(raw)] if raw.startswith(b"[") else []


def encode(value: Any) -> bytes:
    return msgspec.json.encode(value)


def encode_text(text: str) -> bytes:
    """UTF-8, also for a string that holds half a surrogate pair."""
    return text.encode("utf-8", "replace")


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


class Elements:
    """The raw elements of an array inside a message, cut out only when one is asked for."""

    __slots__ = ("_cut", "_key", "_raw")

    def __init__(self, raw: bytes, key: str) -> None:
        self._raw = raw
        self._key = key
        self._cut: list[Raw] | None = None

    def __getitem__(self, index: int) -> bytes:
        if self._cut is None:
            self._cut = _array.decode(member(self._raw, self._key))
        return bytes(self._cut[index])


def _mended(raw: bytes) -> bytes:
    return _LONE.sub(rb"\\ufffd", raw.decode("utf-8", "replace").encode())


def _strict(decoder: msgspec.json.Decoder[_T], raw: bytes | memoryview, where: str) -> _T:
    try:
        return decoder.decode(raw)
    except RecursionError:
        raise Malformed(f"{where}: nested too deeply") from None
    except UnicodeDecodeError as error:
        raise Malformed(f"{where}: not valid UTF-8 ({error.reason})") from None
    except msgspec.ValidationError as error:
        raise Malformed(f"{where}: {error}") from None
    except msgspec.DecodeError as error:
        raise Malformed(f"{where}: {_explained(bytes(raw), str(error))}") from None


def _explained(raw: bytes, error: str) -> str:
    if not raw.strip():
        return "it is empty"
    if raw.startswith(_COMPRESSED):
        return "it is compressed"
    if raw.startswith(_BOM):
        return "it begins with a byte order mark, which JSON does not allow"
    if raw.startswith(_UTF16) or b"\0" in raw[:4]:
        return "it is not UTF-8 (UTF-16 or UTF-32?)"
    if _LONE.search(raw):
        return "it holds half of a surrogate pair, which is no character"
    return error
