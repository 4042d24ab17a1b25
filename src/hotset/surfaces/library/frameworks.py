"""Models of agent frameworks, each of which wraps a client of openai or anthropic."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from hotset.errors import BadInput

Wrap = Callable[[Any], Any]
"""Turns a client of an SDK into the same client with a memory."""

_PYDANTIC_ARGUMENTS = {"openai": "openai_client", "anthropic": "anthropic_client"}

_LANGCHAIN_CLIENTS = {
    "ChatOpenAI": (("root_client", "client"), ("root_async_client", "async_client")),
    "ChatAnthropic": (("_client", ""), ("_async_client", "")),
}
"""Attributes of a chat model: its blocking and its awaiting client, each with the part of it that
the model calls."""


def framework_of(model: object) -> Callable[[Any, Wrap], Any] | None:
    """The function that wraps a framework's model; None for anything else."""
    packages = [base.__module__.split(".")[0] for base in type(model).__mro__]
    return next((_FRAMEWORKS[each] for each in packages if each in _FRAMEWORKS), None)


def wrap_pydantic_ai(model: Any, wrap: Wrap) -> Any:
    """`Agent(hotset.wrap(OpenAIChatModel("gpt-5")))`: the same model over a provider of the same
    kind, whose client has a memory."""
    provider: Any = getattr(model, "provider", None)
    client = getattr(provider, "client", None)
    argument = _PYDANTIC_ARGUMENTS.get(type(client).__module__.split(".")[0])
    if argument is None:
        raise _unknown(model, "models over clients of openai or anthropic")
    made = copy.copy(model)
    # A provider that is given its client leaves it alone; one that made it would replace our
    # changes to it.
    made._provider = type(provider)(**{argument: wrap(client)})  # noqa: SLF001 - there is no public way to change it
    return made


def wrap_openai_agents(model: Any, wrap: Wrap) -> Any:
    """`Agent("helper", model=hotset.wrap(OpenAIResponsesModel("gpt-5", AsyncOpenAI())))`: the same
    model over a client with a memory."""
    client = getattr(model, "_client", None)  # there is no public name for it
    if client is None:
        raise _unknown(model, "OpenAIResponsesModel and OpenAIChatCompletionsModel")
    made = copy.copy(model)
    made._client = wrap(client)  # noqa: SLF001 - the same
    return made


def wrap_langchain(model: Any, wrap: Wrap) -> Any:
    """`create_react_agent(hotset.wrap(ChatOpenAI(model="gpt-5")), tools)`: the same chat model over
    clients with a memory."""
    kinds = {base.__name__ for base in type(model).__mro__}
    clients = next((places for kind, places in _LANGCHAIN_CLIENTS.items() if kind in kinds), None)
    if clients is None:
        raise _unknown(model, "ChatOpenAI and ChatAnthropic")
    made = model.model_copy()
    for name, called in clients:
        client = getattr(model, name, None)
        if client is None:
            continue
        made.__dict__[name] = wrap(client)  # past pydantic: it may be a cached property
        if called:
            made.__dict__[called] = made.__dict__[name].chat.completions
    return made


def _unknown(model: object, wanted: str) -> BadInput:
    return BadInput(
        f"{type(model).__module__.split('.')[0]}.{type(model).__name__} cannot be wrapped; "
        f"{wanted} can"
    )


_FRAMEWORKS: Mapping[str, Callable[[Any, Wrap], Any]] = {
    "pydantic_ai": wrap_pydantic_ai,
    "agents": wrap_openai_agents,
    "langchain_openai": wrap_langchain,
    "langchain_anthropic": wrap_langchain,
}
"""Wrappers by the package that a model's class comes from."""
