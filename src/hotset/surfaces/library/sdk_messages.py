"""Messages, requests and replies as programs have them, dicts or objects of an SDK, and the dialect
that they are of. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from hotset.config import Upstream
from hotset.errors import BadInput
from hotset.nouns.message import DialectName
from hotset.runtime.wire import DEFAULT, DIALECTS, Dialect

_BESIDE = ("extra_headers", "extra_query", "extra_body", "timeout")
"""What SDKs take beside the body."""


def as_json(value: Any) -> Any:
    """A value with every object of an SDK in it as a dict of the fields that were set."""
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
    said = as_json(given)
    replies = (
        (each.reply_messages(said) for each in DIALECTS.values()) if isinstance(said, dict) else ()
    )
    replied = next((reply for reply in replies if reply is not None), None)
    if replied is not None:
        yield from replied
    elif isinstance(said, dict) and any(
        isinstance(said.get(name), str) for name in ("role", "type")
    ):
        yield said
    else:
        raise BadInput(
            f"a message is a dict with a role or a type, or an object of an SDK, not "
            f"{type(given).__name__}"
        )


def dialect_of(message: Mapping[str, Any]) -> DialectName | None:
    """The dialect that a message can only be of; None where it could be of several."""
    return next((name for name, each in DIALECTS.items() if each.claims(message)), None)


def dialect_named(name: str) -> DialectName:
    """Raises `BadInput` with the names that there are."""
    try:
        return DialectName(name)
    except ValueError:
        raise BadInput(
            f"there is no dialect {name!r}; there are {', '.join(DialectName)}"
        ) from None


def dialect_for(model: str) -> DialectName:
    """What a model is most often spoken to in, where no message tells."""
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


def dialect_at(method: str, path: str) -> DialectName | None:
    """None where the call is not a turn of a conversation. Gateways put all kinds of things before
    an endpoint."""
    spoken = (name for name, each in DIALECTS.items() if path.endswith(each.endpoint))
    return next(spoken, None) if method == "POST" else None


def upstream_of(url: str, dialect: DialectName, upstreams: Mapping[str, Upstream]) -> str:
    """The name of the upstream that the configuration has for a URL; otherwise that of the
    dialect's own provider."""
    named = (name for name, upstream in upstreams.items() if url.startswith(f"{upstream.url}/"))
    return next(named, DIALECTS[dialect].provider)
