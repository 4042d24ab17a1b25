"""Models of agent frameworks: each is a client of openai or anthropic in a coat. One thin module
for each framework."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from hotset.errors import BadInput

Wrap = Callable[[Any], Any]
"""From a client of an SDK to the same with a memory."""

_MODULES = {
    "pydantic_ai": "pydantic_ai",
    "agents": "openai_agents",
    "langchain_openai": "langchain",
    "langchain_anthropic": "langchain",
}
"""By the package that a model's class comes from."""


def framework_of(model: object) -> Callable[[Any, Wrap], Any] | None:
    """What wraps a model of a framework; None for what is no such model."""
    packages = [base.__module__.split(".")[0] for base in type(model).__mro__]
    name = next((_MODULES[package] for package in packages if package in _MODULES), None)
    if name is None:
        return None
    made: Callable[[Any, Wrap], Any] = import_module(f"{__name__}.{name}").wrapped
    return made


def unknown(model: object, wanted: str) -> BadInput:
    return BadInput(
        f"{type(model).__module__.split('.')[0]}.{type(model).__name__} cannot be wrapped; "
        f"{wanted} can"
    )
