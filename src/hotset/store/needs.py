"""What a row points to: the content and the session without which it means nothing."""

from __future__ import annotations

from dataclasses import dataclass

from hotset.errors import BadInput
from hotset.nouns.page import Digest, Page, SessionId, digest
from hotset.nouns.turn import Node, Outcome, ToolSeen, Turn
from hotset.store.port import Blob, Row


@dataclass(frozen=True, slots=True)
class Needs:
    content: tuple[Digest, ...] = ()
    sessions: tuple[SessionId, ...] = ()


def needs(row: Row) -> Needs:
    """Raises `BadInput` for content that does not have the hash it is said to have."""
    match row:
        case Blob():
            if digest(row.content) != row.digest:
                raise BadInput(f"content {row.digest} does not have that hash; nothing was changed")
            return Needs()
        case Node():
            return Needs((row.raw,), (row.session,))
        case Page():
            return Needs((row.digest,), (row.session,))
        case Turn():
            all_content = (row.system, row.tools, row.params, row.reply)
            return Needs(tuple(each for each in all_content if each is not None), (row.session,))
        case ToolSeen():
            return Needs((row.digest,), (row.first_session,))
        case _:
            return Needs()


def supersedes(newer: Turn, older: Turn) -> bool:
    """A turn that was still open gives way to its own end; nothing else changes in what is loaded twice."""
    return older.outcome is Outcome.OPEN and newer.outcome is not Outcome.OPEN and newer.head == older.head
