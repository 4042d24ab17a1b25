"""What was kept here while the team's database was away, in order, until it is there too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import msgspec

from hotset.errors import PageDamaged
from hotset.nouns.deposit import Deposit, Remembered
from hotset.nouns.memory import MemoryKind, MemoryLink, MemoryUse
from hotset.nouns.page import SessionId
from hotset.nouns.turn import TurnRef
from hotset.store.engine import SqlConnection
from hotset.store.memory_versions import decode_memory, encode_memory
from hotset.store.queries import read_value
from hotset.store.tables import compress, decompress
from hotset.typed import msgpack_decoder

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in get_args(Deposit)}
_KNOWN = "team_commit"


@dataclass(frozen=True, slots=True)
class _PackedMemories:
    """A `Remembered` as it is packed: which type a memory has depends on its kind."""

    memories: tuple[tuple[MemoryKind, bytes], ...]
    links: tuple[MemoryLink, ...]
    uses: tuple[MemoryUse, ...]


def pack_deposits(deposits: Sequence[Deposit]) -> bytes:
    return msgspec.msgpack.encode([(type(each).__name__, _packed(each)) for each in deposits])


def unpack_deposits(packed: bytes) -> tuple[Deposit, ...]:
    """Raises `PageDamaged`."""
    try:
        named = msgpack_decoder(list[tuple[str, msgspec.Raw]]).decode(packed)
        return tuple(_unpacked(name, each) for name, each in named)
    except (msgspec.DecodeError, KeyError, ValueError) as error:
        raise PageDamaged(f"the outbox is damaged: {error}") from error


def _packed(deposit: Deposit) -> Any:
    if not isinstance(deposit, Remembered):
        return deposit
    memories = tuple((each.kind, encode_memory(each)) for each in deposit.memories)
    return _PackedMemories(memories, deposit.links, deposit.uses)


def _unpacked(name: str, packed: msgspec.Raw) -> Deposit:
    if name == Remembered.__name__:
        found = msgpack_decoder(_PackedMemories).decode(packed)
        memories = tuple(decode_memory(*each) for each in found.memories)
        return Remembered(memories, found.links, found.uses)
    deposit: Deposit = msgpack_decoder(_KINDS[name]).decode(packed)
    return deposit


@dataclass(frozen=True, slots=True)
class OutboxItem:
    """One group of deposits that still has to go out."""

    seq: int
    batch: str
    """The transaction that was tried with it last; it may have come through."""
    deposits: tuple[Deposit, ...]
    turn: TurnRef | None
    """What the first of them that has a turn became here."""


def append_item(
    connection: SqlConnection, batch: str, deposits: Sequence[Deposit], turn: TurnRef | None
) -> None:
    form = compress(pack_deposits(deposits))
    place = (turn.session, turn.number) if turn is not None else (None, 0)
    connection.execute(
        "INSERT INTO outbox (batch, session, turn, codec, size, body) VALUES (?, ?, ?, ?, ?, ?)",
        (batch, *place, int(form.codec), form.size, form.body),
    )


def oldest_items(connection: SqlConnection, limit: int) -> Sequence[OutboxItem]:
    rows = connection.execute(
        "SELECT seq, batch, session, turn, codec, size, body FROM outbox ORDER BY seq LIMIT ?",
        (limit,),
    ).fetchall()
    return [
        OutboxItem(
            seq,
            batch,
            unpack_deposits(decompress("the outbox", *form)),
            TurnRef(SessionId(session), number) if session is not None else None,
        )
        for seq, batch, session, number, *form in rows
    ]


def count_items(connection: SqlConnection) -> int:
    return int(read_value(connection, "SELECT count(*) FROM outbox"))


def mark_items(connection: SqlConnection, items: Sequence[OutboxItem], batch: str) -> None:
    """Note the transaction with which these are tried next."""
    for item in items:
        connection.execute("UPDATE outbox SET batch = ? WHERE seq = ?", (batch, item.seq))


def remove_items(connection: SqlConnection, items: Sequence[OutboxItem]) -> None:
    for item in items:
        connection.execute("DELETE FROM outbox WHERE seq = ?", (item.seq,))


def known_commit(connection: SqlConnection) -> int:
    """The last commit of the team's database that is here; 0 if there is none yet."""
    return int(read_value(connection, "SELECT value FROM meta WHERE name = ?", _KNOWN) or 0)


def set_known_commit(connection: SqlConnection, number: int) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_KNOWN, number))
