"""Converts messages, requests and replies between programs' form (dicts or SDK objects) and JSON,
and finds their dialect. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from hotset.config import Upstream
from hotset.errors import BadInput
from hotset.nouns.message import DialectName
from hotset.runtime.wire import DEFAULT, DIALECTS, Dialect

_BESIDE = ("extra_headers", "extra_query", "extra_body", "timeout")
"""Arguments of SDKs that are not part of the body."""


def as_json(value: Any) -> Any:
    """A value with every SDK object in it as a dict of the fields that were set."""
    if isinstance(value, Mapping):
        return {str(key): as_json(each) for key, each in value.items()}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    return value


def messages_of(given: Any) -> Iterator[dict[str, Any]]:
    """The messages in what a program adds: a message, text for a prompt, an SDK's reply, or several
    of these."""
    if isinstance(given, str):
        yield {"role": "user", "content": given}
        return
    if isinstance(given, list | tuple):
        for each in given:
            yield from messages_of(each)
        return
    document = as_json(given)
    replies = (
        (each.reply_messages(document) for each in DIALECTS.values())
        if isinstance(document, dict)
        else ()
    )
    replied = next((reply for reply in replies if reply is not None), None)
    if replied is not None:
        yield from replied
    elif isinstance(document, dict) and any(
        isinstance(document.get(name), str) for name in ("role", "type")
    ):
        yield document
    else:
        raise BadInput(
            f"a message is a dict with a role or a type, or an object of an SDK, not "
            f"{type(given).__name__}"
        )


def dialect_of(message: Mapping[str, Any]) -> DialectName | None:
    """The only dialect that a message can have; None where it fits several."""
    return next((name for name, each in DIALECTS.items() if each.claims(message)), None)


def dialect_named(name: str) -> DialectName:
    """The dialect of that name. Raises `BadInput` with the known names."""
    try:
        return DialectName(name)
    except ValueError:
        raise BadInput(
            f"there is no dialect {name!r}; there are {', '.join(DialectName)}"
        ) from None


def dialect_for(model: str) -> DialectName:
    """The usual dialect for a model, where no message shows it."""
    spoken = (
        each for each in DIALECTS.values() if any(word in model.lower() for word in each.models)
    )
    return next(spoken, DEFAULT).name


def compose(
    dialect: Dialect,
    messages: Sequence[bytes],
    *,
    model: str,
    system: Any,
    tools: Sequence[Any],
    params: Mapping[str, Any],
) -> bytes:
    """A request body; a parameter that is None is left out."""
    raw = [msgspec.Raw(message) for message in messages]
    fields: dict[str, Any] = {
        "model": model,
        **dialect.compose(as_json(system) if system else None, raw),
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
    """A body as keyword arguments for an SDK's call."""
    fields: dict[str, Any] = msgspec.json.decode(body)
    return fields | {name: params[name] for name in _BESIDE if name in params}


def reply_bytes(given: Any, dialect: Dialect) -> bytes:
    """A reply as the JSON document that it came as. Raises `BadInput` for anything else."""
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


def dialect_at(method: str, path: str) -> DialectName | None:
    """The dialect of an endpoint; None where it is not a conversation. Gateways put all kinds of
    prefixes before an endpoint."""
    spoken = (name for name, each in DIALECTS.items() if path.endswith(each.endpoint))
    return next(spoken, None) if method == "POST" else None


def upstream_of(url: str, dialect: DialectName, upstreams: Mapping[str, Upstream]) -> str:
    """The name of the configured upstream for a URL; otherwise that of the dialect's own
    provider."""
    named = (name for name, upstream in upstreams.items() if url.startswith(f"{upstream.url}/"))
    return next(named, DIALECTS[dialect].provider)
