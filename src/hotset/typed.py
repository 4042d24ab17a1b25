"""Decoding into our own types, safe in threads.

msgspec reads the annotations of a class when the class is first decoded into. A second thread that
decodes into it meanwhile finds it half read and ends the whole process. Here the first use of each
type is made by one thread at a time; `tests/test_typed.py` forbids any other way.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec

if TYPE_CHECKING:
    from msgspec.inspect import Type

_T = TypeVar("_T")
_lock = Lock()
_known: dict[Any, tuple[msgspec.json.Decoder[Any], msgspec.msgpack.Decoder[Any]]] = {}


@overload
def json_decoder(kind: type[_T]) -> msgspec.json.Decoder[_T]: ...
@overload
def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]: ...
def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """The decoder of a type, made once."""
    return _decoders(kind)[0]


def msgpack_decoder(kind: type[_T]) -> msgspec.msgpack.Decoder[_T]:
    return _decoders(kind)[1]


@overload
def decode(text: bytes | bytearray | memoryview | str, kind: type[_T]) -> _T: ...
@overload
def decode(text: bytes | bytearray | memoryview | str, kind: Any) -> Any: ...
def decode(text: bytes | bytearray | memoryview | str, kind: Any) -> Any:
    """JSON as a value of a type; raises `msgspec.DecodeError` or `msgspec.ValidationError`."""
    return json_decoder(kind).decode(text)


def convert(value: Any, kind: type[_T], *, strict: bool = True) -> _T:
    """What JSON or TOML gave as a value of a type; raises `msgspec.ValidationError`."""
    _decoders(kind)
    return msgspec.convert(value, kind, strict=strict)


def type_info(kind: Any) -> Type:
    """The fields of a type and their limits."""
    import msgspec.inspect  # noqa: PLC0415 - seldom needed

    _decoders(kind)
    return msgspec.inspect.type_info(kind)


def json_schemas(
    kinds: Iterable[Any], ref_template: str = "#/$defs/{name}"
) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """The JSON schemas of types, and the definitions that they refer to. Raises `TypeError` for a
    type that JSON cannot hold."""
    every = tuple(kinds)
    for kind in every:
        _decoders(kind)
    return msgspec.json.schema_components(every, ref_template=ref_template)


def _decoders(kind: Any) -> tuple[msgspec.json.Decoder[Any], msgspec.msgpack.Decoder[Any]]:
    try:
        found = _known.get(kind)
    except TypeError:  # a type that cannot be hashed: one that somebody's own annotation holds
        with _lock:
            return msgspec.json.Decoder(kind), msgspec.msgpack.Decoder(kind)
    if found is None:
        with _lock:
            found = _known.setdefault(
                kind, (msgspec.json.Decoder(kind), msgspec.msgpack.Decoder(kind))
            )
    return found
