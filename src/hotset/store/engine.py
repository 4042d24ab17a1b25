"""What the statements of a store need of a connection, whichever engine it leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

    from hotset.nouns.deposit import CommitReceipt, Deposit
    from hotset.store.port import Row

_Answer = TypeVar("_Answer")


class SqlCursor(Protocol):
    """The rows that a statement found."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class SqlConnection(Protocol):
    """Runs statements. SQL is SQLite's, as far as every engine has it: see `postgres.dialect`."""

    def execute(self, sql: str, given: Any = None, /) -> SqlCursor: ...

    def stream(self, sql: str, given: Any = None, /) -> Iterator[Any]:
        """The rows of a statement that finds many, a few at a time. In a transaction."""
        ...

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


class WriteEngine(Protocol):
    """Runs the transactions of the writer, one after the other."""

    def run(self, work: Callable[[SqlConnection], _Answer]) -> _Answer:
        """Do this in one transaction that sees all those before it; it is durable when this
        returns. The work may be done twice, but counts once."""
        ...

    def placed(
        self, connection: SqlConnection, deposits: Sequence[Deposit], kept: CommitReceipt
    ) -> None:
        """Is told what the work has written, in the transaction that wrote it."""
        ...

    def translate(self, error: BaseException) -> BaseException:
        """An error of the engine as ours; any other as it is."""
        ...

    def concerns_all(self, error: Exception) -> bool:
        """True for an error that would meet any other deposit too."""
        ...

    def forget(self, tried: Callable[[], None]) -> None:
        """Words were erased: remove what is left of them outside the tables, then call `tried`."""
        ...

    def close(self) -> None: ...


class ImportingEngine(WriteEngine, Protocol):
    def refresh(self) -> bool:
        """See `Store.refresh`."""
        ...

    def load(self, rows: Iterable[Row], folder: Path, *, gaps: bool) -> int:
        """Import rows, which wait in an unnamed file in the folder; see `Store.load`."""
        ...
