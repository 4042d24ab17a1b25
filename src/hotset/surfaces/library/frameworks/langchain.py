"""LangChain, and LangGraph over it: `create_react_agent(hotset.wrap(ChatOpenAI(model="gpt-5")),
tools)`."""

from __future__ import annotations

from typing import Any

from hotset.surfaces.library.frameworks import Wrap, unknown

_PLACES = {
    "ChatOpenAI": (("root_client", "client"), ("root_async_client", "async_client")),
    "ChatAnthropic": (("_client", ""), ("_async_client", "")),
}
"""Where a chat model has its blocking and its awaiting client, and beside it the part of it that it
calls."""


def wrapped(model: Any, wrap: Wrap) -> Any:
    """The same chat model over clients with a memory."""
    kinds = {base.__name__ for base in type(model).__mro__}
    places = next((places for kind, places in _PLACES.items() if kind in kinds), None)
    if places is None:
        raise unknown(model, "ChatOpenAI and ChatAnthropic")
    made = model.model_copy()
    for name, called in places:
        client = getattr(model, name, None)
        if client is None:
            continue
        made.__dict__[name] = wrap(client)  # past pydantic: it may be a cached property
        if called:
            made.__dict__[called] = made.__dict__[name].chat.completions
    return made
