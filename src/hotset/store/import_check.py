"""Refuses imported rows whose lineage cannot be: that follow themselves, each other, or something
that is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import apsw

from hotset.errors import BadRow
from hotset.nouns.link import derive
from hotset.nouns.page import ROOT, Gist, Page
from hotset.nouns.turn import Node, Session, Turn
from hotset.store.needs import needs
from hotset.store.port import Blob, Row
from hotset.store.rows import pack_hex

_FURTHEST = 2**53  # the next number must still fit into a column


@dataclass(slots=True)
class LineageCheck:
    """Looks at each row as it comes by. What a row follows is in the store or stands before it, so
    that nothing goes in a circle.

    With `gaps`, what a row follows may be missing: that is how a store looks that was repaired.
    Keys are remembered by their hashes, to take little room.
    """

    connection: apsw.Connection
    gaps: bool = False
    _seen: set[int] = field(default_factory=set)
    _awaited: dict[tuple[str, ...], int] = field(default_factory=dict)
    """What may still come, and the row that needs it."""
    _followed: dict[str, int] = field(default_factory=dict)
    """Pages that are not there and that a note follows: they must not come behind it."""

    def over(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows. Raises `BadRow`."""
        for number, row in enumerate(rows, 1):
            self._check(number, row)
            yield row
        for key, number in self._awaited.items():
            if not self._has(*key):
                raise BadRow(number, _wants(*key))

    def _check(self, number: int, row: Row) -> None:
        _refuse_boundless(number, row)
        match row:
            case Blob():
                self._seen.add(hash(("content", row.digest)))
            case Session():
                self._seen.add(hash(("session", row.id)))
            case Node():
                self._check_node(number, row)
            case Page():
                self._check_page(number, row)
            case Gist():
                self._await(number, "page", row.page)
            case Turn() if not self.gaps:
                for chain in {row.head, row.tail} - {ROOT}:
                    self._await(number, "message", row.session, chain)
            case _:
                pass
        needed = needs(row)
        for digest in needed.content:
            self._await(number, "content", digest)
        for session in needed.sessions:
            self._await(number, "session", session)

    def _check_node(self, number: int, node: Node) -> None:
        if node.chain == node.parent or node.chain != derive(
            node.parent, node.essence, aside=node.aside
        ):
            raise BadRow(
                number,
                (
                    f"message {node.chain} does not have the chain that follows from "
                    f"{node.parent} and what it says"
                ),
            )
        if (
            node.parent != ROOT
            and not self.gaps
            and not self._has("message", node.session, node.parent)
        ):
            raise BadRow(
                number,
                (
                    f"message {node.chain} follows message {node.parent}, which is not there, or "
                    f"comes later"
                ),
            )
        self._seen.add(hash(("message", node.session, node.chain)))

    def _check_page(self, number: int, page: Page) -> None:
        if page.parent == page.id:
            raise BadRow(number, f"page {page.id} follows itself")
        if page.id in self._followed:
            raise BadRow(
                number,
                (
                    f"page {page.id} comes behind a page that follows it (row "
                    f"{self._followed[page.id]})"
                ),
            )
        if page.parent is not None and not self._has("page", page.parent):
            if page.chain != ROOT and not self.gaps:
                raise BadRow(
                    number,
                    (
                        f"page {page.id} follows page {page.parent}, which is not there, or comes "
                        f"later"
                    ),
                )
            self._followed.setdefault(
                page.parent, number
            )  # a note may follow a page of a session that was not exported
        self._seen.add(hash(("page", page.id)))

    def _await(self, number: int, *key: str) -> None:
        if hash(key) not in self._seen:
            self._awaited.setdefault(key, number)

    def _has(self, *key: str) -> bool:
        if hash(key) in self._seen:
            return True
        sql, packed = _FIND[key[0]]
        return self.connection.execute(sql, packed(*key[1:])).fetchone() is not None


_FIND: dict[str, tuple[str, Callable[..., tuple[Any, ...]]]] = {
    "content": ("SELECT 1 FROM blob WHERE digest = ?", lambda digest: (pack_hex(digest),)),
    "session": ("SELECT 1 FROM session WHERE id = ?", lambda name: (name,)),
    "page": ("SELECT 1 FROM page WHERE id = ?", lambda name: (name,)),
    "message": (
        "SELECT 1 FROM node WHERE session = ? AND chain = ?",
        lambda session, chain: (session, pack_hex(chain)),
    ),
}


def _refuse_boundless(number: int, row: Row) -> None:
    for each in fields(row):
        value = getattr(row, each.name)
        if isinstance(value, int) and not -_FURTHEST < value < _FURTHEST:
            raise BadRow(number, f"its {each.name} is {value}, which no store counts up to")


def _wants(kind: str, *key: str) -> str:
    if kind == "session":
        return f"it belongs to session {key[0]}, which is not there"
    if kind == "message":
        return f"it ends with message {key[1]} of session {key[0]}, which is not there"
    return f"it points to {kind} {key[0]}, which is not there"
