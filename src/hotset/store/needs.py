"""What a row points to: the content and the session without which it means nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hotset.errors import BadInput
from hotset.nouns.bill import Bill, Summary
from hotset.nouns.page import Digest, Page, SessionId, digest
from hotset.nouns.turn import Node, Outcome, ToolSeen, Turn
from hotset.store.port import Blob, Row
from hotset.store.showing import HiddenRow, ShownRow


@dataclass(frozen=True, slots=True)
class Needs:
    content: tuple[Digest, ...] = ()
    sessions: tuple[SessionId, ...] = ()


def needs(row: Row) -> Needs:  # noqa: C901, PLR0911 - one case a kind of row
    """Raises `BadInput` for content that does not have the hash it is said to have.

    Rows of the page table hold wherever their message occurs: they can do without the session that
    decided them.
    """
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
        case ShownRow():
            return Needs((row.text,) if row.text is not None else ())
        case HiddenRow():
            return Needs(row.content)
        case Bill():
            if row.session is None:
                raise BadInput("a bill that belongs to no session; nothing was changed")
            return Needs((), (row.session,))
        case Summary():
            return Needs((), (row.session,))
        case _:
            return Needs()


def supersedes(newer: Turn, older: Turn) -> bool:
    """A turn that was still open gives way to its own end; nothing else changes in what is loaded
    twice."""
    return (
        older.outcome is Outcome.OPEN
        and newer.outcome is not Outcome.OPEN
        and newer.head == older.head
    )


def latest_versions(summaries: Iterable[Summary]) -> Sequence[Summary]:
    """Of each stretch the summary with the highest version, in the order in which they were
    kept."""
    every = list(summaries)
    latest: dict[tuple[int, tuple[int, int]], int] = {}
    for summary in every:
        stretch = summary.branch, summary.turns
        latest[stretch] = max(summary.version, latest.get(stretch, summary.version))
    return [
        summary for summary in every if summary.version == latest[summary.branch, summary.turns]
    ]
