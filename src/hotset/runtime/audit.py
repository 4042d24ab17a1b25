"""The audit: which retrievals and searches were made, by whom, and what they found; and the events
of a store, filtered and as sentences.

A query is content: it stands in an event sealed and clipped, in the store only. It is never logged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec import MsgspecError

from hotset.errors import HotsetError
from hotset.learn.events import LEARN_EVENTS, OBSERVED
from hotset.nouns.page import SessionId
from hotset.nouns.retrieval import END, Place, Range, Retrieval, Retrieve, Retrieved, Search
from hotset.nouns.search import SearchHit
from hotset.nouns.turn import CLEARED, COMPACTED, Event
from hotset.sealing import seal
from hotset.store.port import Store
from hotset.typed import decode

RETRIEVED, SEARCHED = "Retrieved", "Searched"

TYPES: Mapping[str, frozenset[str]] = {
    "eviction": frozenset({"Evicted"}),
    "compaction": frozenset({COMPACTED, CLEARED}),
    "retrieval": frozenset({RETRIEVED, SEARCHED, "Recalled"}),
    "bypass": frozenset({"Bypassed"}),
    "alert": frozenset({"Alert"}),
    "checkpoint": frozenset({"Checkpoint"}),
    "handoff": frozenset({"Handoff", "HandoffDue", "SessionLinked"}),
    "prefetch": frozenset({"Prefetched", "PrefetchJudged"}),
    "tool": frozenset(
        {
            *("ToolUsed", "ToolsFound", "DeferringRefused", "ToolCreated", "ToolInactivated"),
            *("ToolDeleted", "ToolRestored", "ToolPinned", "ToolUnpinned"),
        }
    ),
    "summary": frozenset({"Summarised", "SummaryFailed"}),
    "memory": frozenset({"MemoryLoaded", "MemoryArranged", "Heeded", "Outcome", "Erased"}),
    "learning": LEARN_EVENTS,
    "order": frozenset({"Ordered"}),
}
"""Event names by type. A name that is in none is a type by itself."""

_MOST_CHARS = 200  # of a query
_MOST_IDS = 20

Detail = dict[str, str | int | float]


def type_of(event: Event) -> str:
    return next((type for type, names in TYPES.items() if event.name in names), event.name.lower())


# Written


def retrieved_event(
    tool: str,
    call: Retrieval | None,
    got: Retrieved | None,
    here: Place,
    now: float,
    *,
    agent: str = "",
    refault: bool = False,
    ms: float = 0.0,
) -> Event:
    """The event of a call of `retrieve_context`, `search_history` or `get_turn_range`, and how long
    its answer took."""
    found = got is not None and got.found
    # An id that a model made up is content, so only one that was found is kept.
    named = call.id if isinstance(call, Retrieve) and found else ""
    detail: Detail = {
        "tool": tool,
        "id": named[:80],
        "query": _clip(_query(call)),
        "found": int(found),
        "tokens": got.tokens if got else 0,
        "truncated": int(got is not None and got.truncated),
        "pages": len(got.pages) if got else 0,
        "refault": int(refault),
        "agent": agent,
        "ms": round(ms, 1),
        **_hits(zip_scores(got.pages, got.scores) if got is not None else ()),
    }
    return Event(RETRIEVED, now, here.session, here.turn, detail)


def searched_event(
    door: str,
    words: str,
    hits: Sequence[tuple[str, float]],
    now: float,
    *,
    ms: float,
    agent: str = "",
    session: SessionId | None = None,
) -> Event:
    """The event of a search that a program, a person or a model outside of a conversation made:
    `door` says where it was asked, `hits` are ids with scores, best first."""
    detail: Detail = {
        "tool": door,
        "query": _clip(words),
        "found": int(bool(hits)),
        "agent": agent,
        "ms": round(ms, 1),
        **_hits(hits),
    }
    return Event(SEARCHED, now, session, 0, detail)


def ids_of(hits: Sequence[SearchHit]) -> list[tuple[str, float]]:
    """Ids and scores of hits: a page's id, or where it is."""
    return [(str(hit.detail.get("page") or hit.where), hit.score) for hit in hits]


def zip_scores(ids: Sequence[str], scores: Sequence[float]) -> list[tuple[str, float]]:
    """Ids with scores; 0 where there are none."""
    return [(id, scores[at] if at < len(scores) else 0.0) for at, id in enumerate(ids)]


def keep_event(store: Store, event: Event) -> None:
    """Hand an event over without waiting for it. A store that cannot take it costs the event, not
    the answer."""
    with suppress(HotsetError):
        store.keep(event)


def _hits(hits: Sequence[tuple[str, float]]) -> Detail:
    some = hits[:_MOST_IDS]
    scores = [f"{score:.2f}" for _, score in some] if any(score for _, score in some) else []
    return {"ids": " ".join(seal(id).text for id, _ in some), "score": " ".join(scores)}


def _query(call: Retrieval | None) -> str:
    match call:
        case Retrieve():
            return call.topic or getattr(call.how, "words", "")
        case Search():
            return call.query
        case Range():
            return f"turns {call.first}-{call.last if call.last < END else ''}"
        case None:
            return ""


def _clip(words: str) -> str:
    plain = " ".join(seal(words).text.split())
    return plain if len(plain) <= _MOST_CHARS else f"{plain[: _MOST_CHARS - 3]}..."


# Read


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events: every condition that is set must hold."""

    session: SessionId | None = None
    types: frozenset[str] = frozenset()
    """Types of `TYPES`, or event names in lower case."""
    agents: frozenset[str] = frozenset()
    turns: tuple[int, int] | None = None
    since: float | None = None
    until: float | None = None

    def holds(self, event: Event) -> bool:
        return (
            (not self.types or not self.types.isdisjoint({type_of(event), event.name.lower()}))
            and (not self.agents or str(event.detail.get("agent", "")) in self.agents)
            and (self.turns is None or self.turns[0] <= event.turn <= self.turns[1])
            and (self.since is None or self.since <= event.time)
            and (self.until is None or event.time < self.until)
        )


def find_events(store: Store, only: EventFilter, limit: int | None = None) -> list[Event]:
    """The latest events that fit, in the order in which they were kept."""
    found = [event for event in store.events(only.session) if only.holds(event)]
    return found if limit is None else found[-limit:]


def sentence(event: Event) -> str:
    """What happened, in a line for a person."""
    write = _SENTENCES.get(event.name)
    with suppress(KeyError, TypeError, ValueError, MsgspecError):
        if write is not None:
            return write(event.detail)
    return ", ".join(f"{name} {value}" for name, value in event.detail.items() if value != "")


def _evicted(detail: Detail) -> str:
    stubs = int(detail["stubs"])
    left = f"{int(detail['tokens']):,} tokens left as {detail.get('ids') or f'{stubs} references'}"
    return f"{left if stubs else 'the prefix changed'} ({detail['cause']})"


def _cut(verb: str, detail: Detail) -> str:
    left = f"{int(detail['tokens']):,} tokens of turns {detail['turns']} stay as {detail['ids']}"
    by = f" by {detail['agent']}" if detail.get("agent") else ""
    return f"{verb}{by}: {left}, from {detail['from']}"


def _retrieved(detail: Detail) -> str:
    asked = str(detail.get("query") or "")
    what = f'"{asked}"' if asked else str(detail.get("id") or "")
    ids = str(detail.get("ids") or "").split()
    found = f"{len(ids) or int(detail.get('pages', 0))} found" if detail["found"] else "nothing"
    if detail.get("refault"):
        found += ", had left the window"
    by = f" by {detail['agent']}" if detail.get("agent") else ""
    best = f": {' '.join(ids[:3])}" if ids else ""
    score = f" ({str(detail.get('score') or '').split(' ')[0]})" if detail.get("score") else ""
    return f"{detail['tool']} {what}{by}, {found}{best}{score}"


def _found_tools(detail: Detail) -> str:
    if detail["failed"]:
        return "find_tools failed"
    named = ": " + ", ".join(str(detail["ids"]).split()[:3]) if detail.get("ids") else ""
    return f"find_tools, {int(detail['count']) or 'nothing'} found{named}"


def _linked(detail: Detail) -> str:
    verb = {"subagent": "started by", "continuation": "continues"}
    return f"{verb.get(str(detail['kinship']), str(detail['kinship']))} {detail['parent']}"


def _handed_on(detail: Detail) -> str:
    """A window that began with a state, or work that a memory hands on."""
    if "index" in detail:
        who = f" of {detail['agent']}" if detail.get("agent") else ""
        return (
            f"handoff {detail['index']}{who} ({detail['reason']}): turns {detail['turns']} left, "
            f"{int(detail['tokens']):,} tokens; the successor began with {int(detail['prompt']):,}"
        )
    to = f" to {detail['to']}" if detail.get("to") else ""
    return f"handed on{to}: hotset memory show {detail['memory']}"


def _ordered(detail: Detail) -> str:
    when = "at once" if detail.get("at_once") else "with the next cold cache"
    price = f", {int(detail['tokens']):,} tokens written again" if detail.get("at_once") else ""
    if detail["act"] == "undo":
        return f"a person took back: {detail['was']} {detail['about']}"
    return f"a person ordered: {detail['act']} {detail['about']}, {when}{price}"


def _used(detail: Detail) -> str:
    how = (
        "failed" if detail["failed"] else "answered from the store" if detail.get("stored") else ""
    )
    return f"{detail['tool']} used, {float(detail['seconds']):.3g} s{', ' if how else ''}{how}"


def _lived(verb: str, detail: Detail) -> str:
    why = f" ({detail['why']})" if detail.get("why") else ""
    return f"{detail['tool']} {verb}{why}"


def _learned(verb: str, detail: Detail) -> str:
    data = decode(str(detail["data"]), dict[str, Any])
    about = data.get("id") or data.get("change") or ""
    values = data.get("values", {})
    knobs = (
        f"{each} = {values[each]}" if each in values else each for each in data.get("knobs", ())
    )
    names = ", ".join((*knobs, *data.get("changes", ()))) or ("" if about else "every knob")
    why = f": {data['why']}" if data.get("why") else ""
    return " ".join(filter(None, (about, verb, names))) + why


def _observed(detail: Detail) -> str:
    data = decode(str(detail["data"]), dict[str, Any])
    told = [
        f"success {data['success']:.0%}" if data.get("success") is not None else "",
        f"cost {data['cost'] / data['whole']:.0%} of full history's" if data.get("whole") else "",
        f"{data['turns']:,} turns" if data.get("turns") else "",
        f"as {data['arm']}" if data.get("arm") else "",
        f"explored {', '.join(sorted(data['explored']))}" if data.get("explored") else "",
    ]
    return f"{data['session']} was observed: {', '.join(filter(None, told)) or 'nothing to learn'}"


def _tried(detail: Detail) -> str:
    data = decode(str(detail["data"]), dict[str, Any])
    shares = (f"{name} {share:.0%}" for name, share in data["shares"].items())
    return f"shares of new sessions: {', '.join(shares) or 'the same'}"


def _switched(detail: Detail) -> str:
    is_on = decode(str(detail["data"]), dict[str, Any]).get("is_on", True)
    return f"learning is {'on' if is_on else 'off'}"


_SENTENCES: Mapping[str, Callable[[Detail], str]] = {
    "Evicted": _evicted,
    COMPACTED: partial(_cut, "compacted"),
    CLEARED: partial(_cut, "cleared"),
    RETRIEVED: _retrieved,
    SEARCHED: _retrieved,
    "Bypassed": lambda detail: str(detail["reason"]),
    "Alert": lambda detail: (
        f"{detail['name']} is {detail['value']}, threshold {detail['threshold']}"
    ),
    "Pressure": lambda detail: (
        f"memory pressure {detail['from']} -> {detail['to']}: {int(detail['used']) >> 20:,} MB used"
        + (f" of {int(detail['limit']) >> 20:,} MB" if detail["limit"] else "")
    ),
    "Checkpoint": lambda detail: (
        f"{detail['mark']} % of the window: {int(detail['tokens']):,} of "
        f"{int(detail['window']):,} tokens"
    ),
    "Handoff": _handed_on,
    "Ordered": _ordered,
    "HandoffDue": lambda detail: (
        f"a handoff is due, none was made yet: {int(detail['tokens']):,} of "
        f"{int(detail['window']):,} tokens"
    ),
    "SessionLinked": _linked,
    OBSERVED: _observed,
    "ChangeProposed": partial(_learned, "proposed"),
    "ChangeGated": partial(_learned, "was judged by later sessions"),
    "ChangeAdopted": partial(_learned, "is in force"),
    "ChangeRolledBack": partial(_learned, "was taken back"),
    "TrialChanged": _tried,
    "KnobsFrozen": partial(_learned, "frozen:"),
    "KnobsThawed": partial(_learned, "no longer frozen:"),
    "LearningReset": partial(_learned, "reset:"),
    "ResetLifted": partial(_learned, "may be learned again:"),
    "LearningSwitched": _switched,
    "ToolUsed": _used,
    "ToolsFound": _found_tools,
    "ToolCreated": partial(_lived, "created"),
    "ToolInactivated": partial(_lived, "became inactive"),
    "ToolDeleted": partial(_lived, "deleted"),
    "ToolRestored": partial(_lived, "restored"),
    "ToolPinned": partial(_lived, "pinned"),
    "ToolUnpinned": partial(_lived, "unpinned"),
}
