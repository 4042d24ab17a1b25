"""Helpers of the contracts: checks on fresh stores or indexes, and collecting a module's checks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from functools import wraps
from inspect import signature
from typing import Any, Protocol


class Closes(Protocol):
    def close(self) -> Awaitable[None] | None: ...


Check = Callable[[Callable[[], Any]], None]
"""Takes a function that opens a new, empty store or index; raises an `AssertionError` with a
sentence if the contract is broken."""


_WHOLE_CONTRACTS = ("check_store", "check_index", "check_source")


def on_fresh(check: Callable[..., None]) -> Check:
    """A check that gets a fresh store or index for each of its parameters; they are closed when it
    ends."""

    @wraps(check)
    def run(open_fresh: Callable[[], Closes]) -> None:
        with ExitStack() as stack:
            opened = []
            for _ in signature(check).parameters:
                opened.append(open_fresh())
                stack.callback(_close, opened[-1])
            check(*opened)

    return run


def _close(opened: Closes) -> None:
    async def close() -> None:
        if isinstance(ending := opened.close(), Awaitable):
            await ending

    asyncio.run(close())


def checks_in(module: Mapping[str, Any]) -> tuple[Check, ...]:
    """The checks among a module's names (its `globals()`), in the order of their names."""
    return tuple(
        check
        for name, check in sorted(module.items())
        if name.startswith("check_") and name not in _WHOLE_CONTRACTS
    )


def raises(error: type[Exception], act: Callable[[], object]) -> bool:
    try:
        act()
    except error:
        return True
    return False
