"""A memory as one JSON body and back, whatever its kind; what would not come back as it went in is
refused."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any, get_type_hints

import msgspec

from hotset.errors import BadInput
from hotset.nouns.memory import DETAILS, MemoryKind, MemoryLink, MemoryRecord, MemoryUse


def encode_memory(memory: MemoryRecord) -> bytes:
    return msgspec.json.encode(memory)


def decode_memory(kind: MemoryKind, body: bytes) -> MemoryRecord:
    """Raises `msgspec.ValidationError`, or another `msgspec.DecodeError`."""
    return _memory(_decoder(kind).decode(body))


def memory_from_fields(fields: dict[str, Any]) -> MemoryRecord:
    """From what `msgspec.to_builtins` makes of a memory. Raises `msgspec.ValidationError`."""
    return _memory(
        msgspec.convert(fields, type=_shape(msgspec.convert(fields.get("kind"), type=MemoryKind)))
    )


def refuse_unfit(row: MemoryRecord | MemoryLink | MemoryUse) -> None:
    """Raises `BadInput`, a sentence about what cannot be kept."""
    match row:
        case MemoryRecord():
            _need_id(row.id)
            if row.version < 1:
                raise BadInput(f"memory {row.id} has version {row.version}: versions begin with 1")
            if not 0 <= row.confidence <= 1:
                raise BadInput(
                    f"memory {row.id} has confidence {row.confidence}: it must be a number "
                    f"from 0 to 1"
                )
        case MemoryLink():
            _need_id(row.of)
            _need_id(row.to)
        case MemoryUse():
            _need_id(row.memory)
    try:
        body = msgspec.json.encode(row)
        again = (
            decode_memory(row.kind, body)
            if isinstance(row, MemoryRecord)
            else msgspec.json.decode(body, type=type(row))
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"{_described(row)} holds what cannot be stored: {_why(error)}") from error
    if again != row:
        raise BadInput(
            f"{_described(row)} holds what would come back as something else (a list for a "
            f"tuple, or the detail of another kind)"
        )


def _need_id(id: str) -> None:
    if not id:
        raise BadInput("a memory without an id cannot be stored")


def _described(row: MemoryRecord | MemoryLink | MemoryUse) -> str:
    match row:
        case MemoryRecord():
            return f"memory {row.id!r}"
        case MemoryLink():
            return f"a link of memory {row.of!r}"
        case MemoryUse():
            return f"a use of memory {row.memory!r}"


def _why(error: Exception) -> str:
    """JSON has no number that is not finite: one becomes nothing, and nothing is no number."""
    text = str(error)
    return f"a number must be finite ({text})" if "got `null`" in text else text


def _memory(shape: msgspec.Struct) -> MemoryRecord:
    return MemoryRecord(*msgspec.structs.astuple(shape))


@cache
def _decoder(kind: MemoryKind) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_shape(kind))


@cache
def _shape(kind: MemoryKind) -> type[msgspec.Struct]:
    """The fields of `MemoryRecord` in their order, with the detail of this kind: JSON does not say
    which of several types it is."""
    types = get_type_hints(MemoryRecord)
    detail = DETAILS[kind]
    fields: list[Any] = []
    for field in dataclasses.fields(MemoryRecord):
        hint = (
            types[field.name]
            if field.name != "detail"
            else None
            if detail is None
            else detail | None
        )
        fields.append(
            (field.name, hint)
            if field.default is dataclasses.MISSING
            else (field.name, hint, field.default)
        )
    return msgspec.defstruct(f"{kind.name.title()}Memory", fields)
