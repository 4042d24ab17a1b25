"""Messages as programs have them, dicts or objects of an SDK, and the dialect that they are of.
Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hotset.errors import BadInput
from hotset.nouns.message import DialectName
from hotset.runtime.wire import DEFAULT, DIALECTS


def as_json(value: Any) -> Any:
    """A value with every object of an SDK in it as a dict of what was said, without what was
    not."""
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
    replies = (each.said_in(said) for each in DIALECTS.values()) if isinstance(said, dict) else ()
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
