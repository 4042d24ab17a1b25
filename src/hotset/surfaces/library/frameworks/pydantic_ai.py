"""pydantic-ai: `Agent(hotset.wrap(OpenAIChatModel("gpt-5")))`."""

from __future__ import annotations

import copy
from typing import Any

from hotset.surfaces.library.frameworks import Wrap, unknown

_ARGUMENTS = {"openai": "openai_client", "anthropic": "anthropic_client"}


def wrapped(model: Any, wrap: Wrap) -> Any:
    """The same model over a provider of the same kind, whose client has a memory."""
    provider: Any = getattr(model, "provider", None)
    client = getattr(provider, "client", None)
    argument = _ARGUMENTS.get(type(client).__module__.split(".")[0])
    if argument is None:
        raise unknown(model, "models over clients of openai or anthropic")
    made = copy.copy(model)
    # A provider that is given its client leaves it alone; one that made it would replace what we
    # put into it.
    made._provider = type(provider)(**{argument: wrap(client)})  # noqa: SLF001 - there is no public way to change it
    return made
