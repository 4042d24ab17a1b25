"""Records of a session as entries of the index: references to what left, checkpoints and handoffs.

They are no pages: a search for pages does not see them, and one for records sees nothing else.
Handoffs that an agent wrote, and decisions, are memories and found as such.
"""

from __future__ import annotations

from collections.abc import Iterator

from hotset.index.port import Index
from hotset.nouns.page import SessionId
from hotset.nouns.search import Entry, EntryId, IndexHit, SearchHit, Sort
from hotset.nouns.turn import Event, Reference
from hotset.sealing import seal
from hotset.store.port import Store

RECORDED = {"Checkpoint": "checkpoint", "Handoff": "handoff", "SessionLinked": "handoff"}
"""Events that are records, and the kind of each."""

_CLOSE = 0.45  # cosine, as for pages


def index_records(store: Store, index: Index, sessions: frozenset[SessionId]) -> None:
    """Bring the records of these sessions into the index. Those that are there already stay."""
    for session in sorted(sessions):
        if entries := list(_entries(store, session)):
            index.replace(f"records-{session}", entries)


def is_near(hit: IndexHit) -> bool:
    """True if it shares a word with the query, or means nearly the same."""
    return hit.by_words is not None or (hit.by_meaning or 0.0) >= _CLOSE


def record_hit(entry: Entry, score: float) -> SearchHit:
    id = entry.id.partition(" ")[2]
    turns = f"{entry.session} turn {entry.turn}"
    is_reference = entry.kind == "reference"
    detail = {
        "id": id,
        "kind": entry.kind,
        "session": entry.session,
        "turn": entry.turn,
        "agent": entry.agent,
        "time": entry.time,
        "text": entry.text,
    }
    return SearchHit(
        Sort.RECORD,
        score,
        id if is_reference else turns,
        f"{entry.kind} of {turns}" if is_reference else entry.kind,
        f"hotset recall {id}"
        if is_reference
        else f"hotset show {entry.session} --turns {entry.turn}",
        entry.time,
        entry,
        detail,
    )


def _entries(store: Store, session: SessionId) -> Iterator[Entry]:
    agent = store.session(session).agent

    def entry(kind: str, id: str, text: str, turn: int, time: float) -> Entry:
        return Entry(
            id=EntryId(f"record-{session} {id}"),
            whole=f"records-{session}",
            sort=Sort.RECORD,
            text=seal(text).text,
            kind=kind,
            title=kind,
            session=session,
            agent=agent,
            turn=turn,
            time=time,
        )

    for each in store.references(session):
        yield entry("reference", each.id, _about(each), each.turns[1], each.time)
    for event in store.events(session):
        if event.name in RECORDED:
            id = f"{event.name}-{event.turn}-{event.detail.get('mark', '')}"
            yield entry(RECORDED[event.name], id, _words(event), event.turn, event.time)


def _about(reference: Reference) -> str:
    first, last = reference.turns
    listed = dict.fromkeys((*reference.topics, *reference.entities, *reference.hints))
    return f"{reference.kind}, turns {first}-{last}: {', '.join(listed)}"


def _words(event: Event) -> str:
    return "\n".join(f"{name}: {value}" for name, value in event.detail.items() if value != "")
