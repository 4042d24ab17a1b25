"""What the statements of a store need of a connection, whichever engine it leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol


class SqlCursor(Protocol):
    """The rows that a statement found."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class SqlConnection(Protocol):
    """Runs statements. SQL is SQLite's, as far as every engine has it: see `postgres.dialect`."""

    def execute(self, sql: str, given: Any = None, /) -> SqlCursor: ...

    def changes(self) -> int:
        """How many rows the last statement changed."""
        ...

    def __enter__(self) -> object:
        """Begin a transaction, in which everything is read in one state of the store."""
        ...

    def __exit__(
        self,
        error: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> bool | None: ...


Reading = Callable[[], AbstractContextManager[SqlConnection]]
"""Lends a connection to read with."""
