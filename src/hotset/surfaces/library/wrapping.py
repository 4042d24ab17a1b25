"""openai and anthropic clients whose conversations have a memory, with nothing else about them
changed."""

from __future__ import annotations

import sys
from typing import Any, TypeVar

from hotset.errors import BadInput
from hotset.nouns.call import Headers
from hotset.surfaces.library.engine import Engine
from hotset.surfaces.library.transport import Way, awaiting_transport, blocking_transport, way_of

_Client = TypeVar("_Client")

_MODULES = ("httpx2", "httpx")
_PASSED_ON = ("params", "headers", "cookies", "timeout", "base_url", "trust_env")
"""What an httpx client puts into requests that are built with it; everything else it does when it
sends them."""


def wrapped(client: _Client, engine: Engine, *, budget: int, named: Headers) -> _Client:
    """A copy of an SDK's client: its key, URL, headers, timeouts and retries stay. Closing it
    closes the client too.

    Raises `BadInput` for what is not a client.
    """
    remake = getattr(client, "copy", None)
    http = getattr(client, "_client", None)  # the SDKs have no public name for it
    if remake is None or _module(http) is None:
        kind = f"{type(client).__module__.split('.')[0]}.{type(client).__name__}"
        raise BadInput(
            f"hotset.wrap takes a client of openai or anthropic, or a model made of one, not {kind}"
        )
    made: _Client = remake(http_client=wrapped_http(http, engine, budget=budget, named=named))
    return made


def wrapped_http(http: Any, engine: Engine, *, budget: int, named: Headers) -> Any:
    """An httpx client that walks conversations and sends through the one that is given."""
    if (before := way_of(http)) is not None:
        http = before.http  # wrapped already: the later wish holds
    httpx = _module(http)
    if httpx is None:
        raise BadInput("that is not a client of httpx or httpx2")
    way = Way(engine, engine.planner(budget), named, http, httpx)
    settings = {name: getattr(http, name) for name in _PASSED_ON}
    if isinstance(http, httpx.Client):
        return httpx.Client(transport=blocking_transport(way), **settings)
    return httpx.AsyncClient(transport=awaiting_transport(way), **settings)


def _module(http: object) -> Any:
    """The module that an HTTP client is of, if it is of one that we know."""
    loaded = (sys.modules.get(name) for name in _MODULES)
    return next(
        (
            each
            for each in loaded
            if each is not None and isinstance(http, each.Client | each.AsyncClient)
        ),
        None,
    )
