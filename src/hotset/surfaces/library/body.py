"""The body of a request, put together from what a window holds. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hotset.errors import BadInput
from hotset.runtime.wire import Dialect
from hotset.surfaces.library.messages import as_json

_BESIDE = ("extra_headers", "extra_query", "extra_body", "timeout")
"""What SDKs take beside the body."""


def compose(
    dialect: Dialect,
    messages: Sequence[bytes],
    *,
    model: str,
    system: Any,
    tools: Sequence[Any],
    params: Mapping[str, Any],
) -> bytes:
    """A body; a parameter that is None is left out."""
    said = [msgspec.Raw(message) for message in messages]
    fields: dict[str, Any] = {
        "model": model,
        **dialect.compose(as_json(system) if system else None, said),
    }
    if tools:
        fields["tools"] = as_json(list(tools))
    wanted = {**dialect.defaults, **params}
    fields |= {
        name: as_json(value)
        for name, value in wanted.items()
        if name not in _BESIDE and value is not None
    }
    return msgspec.json.encode(fields)


def arguments(body: bytes, params: Mapping[str, Any]) -> dict[str, Any]:
    """A body as the keyword arguments with which an SDK sends it."""
    fields: dict[str, Any] = msgspec.json.decode(body)
    return fields | {name: params[name] for name in _BESIDE if name in params}


def reply_bytes(given: Any, dialect: Dialect) -> bytes:
    """A reply as the document that it came as. Raises `BadInput` for what is none."""
    if isinstance(given, bytes | bytearray | str):
        raw = given.encode() if isinstance(given, str) else bytes(given)
        try:
            tree = msgspec.json.decode(raw)
        except msgspec.DecodeError:
            tree = None
    else:
        dumped = (
            given.model_dump(mode="json", by_alias=True, exclude_unset=True)
            if hasattr(given, "model_dump")
            else as_json(given)
        )
        tree, raw = dumped, msgspec.json.encode(dumped) if isinstance(dumped, dict) else b""
    if not isinstance(tree, dict) or dialect.reply_field not in tree:
        raise BadInput(
            f"that is no reply of {dialect.title}: observe() takes the SDK's object, its dict "
            f"or the reply's JSON; "
            "of a stream, what it came to in the end"
        )
    return raw
