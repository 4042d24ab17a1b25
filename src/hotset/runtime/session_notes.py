"""Notes on a line between its requests: how its provider counts tokens, whether its client brought
our tools, how its replies are continued, which tools were found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from urllib.parse import urlsplit

import msgspec

from hotset.config import Config
from hotset.dialects.change import resume
from hotset.dialects.port import Deferral, Dialect
from hotset.files.lru import Lru
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.link import Link
from hotset.nouns.message import Loading, Request, ToolSpec, Usage
from hotset.nouns.note import Note, Space
from hotset.nouns.page import Chain
from hotset.nouns.tooling import Deferring
from hotset.nouns.turn import Turn, TurnRef
from hotset.nouns.window import Hidden, SentRequest
from hotset.store.port import Store
from hotset.typed import decode
from hotset.window.calibrate import Calibration, from_numbers, prior
from hotset.window.deferred_tools import describe_tool

_CALIBRATION = Space("calibration")
"""Keyed by model."""

_WORTH_KEEPING = 0.002
"""A change of the ratio that would move the edge of a window of 128,000 tokens by 250: a smaller
one does not change any plan."""

_MOST_MODELS = 256


def ratio_at(model: str, store: Store, as_of: TurnRef) -> float:
    """The factor applied to our count when this turn was planned."""
    return _read_calibration(model, store, as_of).ratio


class Calibrations:
    """The ratio of each model, learned and kept. Thread-safe."""

    def __init__(self) -> None:
        self._known: Lru[str, tuple[Calibration, float]] = Lru(
            "calibrations", count=_MOST_MODELS, shrinks=False
        )
        """By model, with the ratio that is in the store."""
        self._lock = Lock()

    def knows(self, model: str) -> bool:
        """True if this model's ratio is in memory."""
        return model in self._known

    def ratio(self, model: str, store: Store) -> float:
        known = self._known.get(model)
        return known[0].ratio if known is not None else self._read(model, store).ratio

    def observed(self, model: str, estimated: int, reported: Usage) -> NoteWritten | None:
        """Learn from the provider's count of a prompt; returns the note to keep if that changed the
        ratio noticeably."""
        counted = reported.input + reported.cache_read + reported.cache_write
        with self._lock:
            known, kept = self._known.get(model) or (prior(model), prior(model).ratio)
            now = known.after_report(estimated, counted)
            is_news = abs(now.ratio - kept) >= _WORTH_KEEPING
            self._known.put(model, (now, now.ratio if is_news else kept))
        if not is_news:
            return None
        return NoteWritten(_CALIBRATION, model, msgspec.json.encode(now.as_numbers()))

    def _read(self, model: str, store: Store) -> Calibration:
        found = _read_calibration(model, store)
        with self._lock:
            self._known.put(model, (found, found.ratio))
        return found


def _read_calibration(model: str, store: Store, as_of: TurnRef | None = None) -> Calibration:
    note = store.notes(_CALIBRATION, [model], as_of).get(model)
    return from_numbers(
        decode(note.value or b"{}", dict[str, float]) if note is not None else {},
        model,
    )


_BROUGHT = Space("brought")
"""Notes on requests in which the client brought our tools, keyed by the last message."""

_MOST_BROUGHT = 2048


class BroughtTools:
    """Remembers requests in which the client brought our tools itself, over MCP."""

    def __init__(self) -> None:
        self._known: Lru[Chain, float] = Lru("brought tools", count=_MOST_BROUGHT, shrinks=False)
        """Time of each such request, by its last message."""

    def note(self, head: Chain, now: float) -> NoteWritten:
        self._known.put(head, now)
        return NoteWritten(_BROUGHT, head, msgspec.json.encode(now))

    def came_with(self, sent: SentRequest, store: Store) -> bool:
        """True if the model got our tools from its client with this request."""
        known = self._known.get(sent.head)
        return (known if known is not None else _brought_at(sent.head, store)) == sent.time


def has_brought(turn: Turn, store: Store) -> bool:
    """True if the model got our tools from its client in this turn."""
    return _brought_at(turn.head, store, turn.ref) == turn.started


def _brought_at(head: Chain, store: Store, as_of: TurnRef | None = None) -> float | None:
    """When a request that ended with this message last brought our tools."""
    note = store.notes(_BROUGHT, [head], as_of).get(head)
    return decode(note.value or b"", float) if note is not None else None


_RESPONSE = Space("response")
"""Keyed by the id that the client saw."""

_MOST = 4096


class _Continuation(msgspec.Struct, frozen=True):
    last: str
    """The id that the provider continues from."""
    answers: tuple[str, ...]
    """Answers to our calls that it does not have yet."""


class Resuming:
    """Maps the reply ids that clients saw to the provider's latest ones."""

    def __init__(self) -> None:
        self._known: Lru[str, _Continuation] = Lru("continued replies", count=_MOST, shrinks=False)

    def remember(self, seen: str, last: str, answers: tuple[bytes, ...]) -> NoteWritten:
        """Note that the client saw `seen`, but the provider continues from `last` and still needs
        these answers to our calls."""
        continued = _Continuation(last, tuple(each.decode() for each in answers))
        self._known.put(seen, continued)
        return NoteWritten(_RESPONSE, seen, msgspec.json.encode(continued))

    def body(self, request: Request, dialect: Dialect, store: Store) -> bytes | None:
        """The body to send for a request that continues such a reply; None if it goes out
        unchanged."""
        if not dialect.previous_field or not request.previous:
            return None
        known = self._known.get(request.previous)
        if (
            known is None
            and (note := store.notes(_RESPONSE, [request.previous]).get(request.previous))
            is not None
        ):
            known = decode(note.value or b"", _Continuation)
        return (
            resume(request, dialect, known.last, [each.encode() for each in known.answers])
            if known is not None
            else None
        )


_FOUND = Space("found")
"""Keyed by the message around which the answers that refer to the tools are hidden."""

_MOST_KNOWN = 2048

Definitions = Mapping[str, ToolSpec]
"""Tool definitions by name."""


@dataclass(frozen=True, slots=True)
class FoundTools:
    """The tools found in a conversation so far."""

    tools: tuple[ToolSpec, ...] = ()
    """Callable by their own names, in the order in which they were found."""
    spelled: Mapping[Chain, Hidden] = field(default_factory=dict)
    """The hidden messages around these chains, with the tools described in text."""


class Deferrals:
    """Which upstreams accept deferred tools, and which tools were found. Thread-safe."""

    def __init__(self, config: Config) -> None:
        self._mode = config.tooling.deferred
        self._hosts = {
            name: urlsplit(each.url).hostname or "" for name, each in config.upstreams.items()
        }
        self._refused: Lru[tuple[str, str], bool] = Lru(
            "models without deferred tools", count=_MOST_MODELS, shrinks=False
        )
        """By upstream and model."""
        self._known: Lru[Chain, Definitions] = Lru("found tools", count=_MOST_KNOWN)
        """Keyed by the message around which the answers that refer to the tools are hidden."""

    def allowed(self, request: Request, dialect: Dialect, upstream: str) -> bool:
        """True if tools may be deferred in this request."""
        taken = is_taken(self._mode, dialect.deferral, self._hosts.get(upstream, ""), request.model)
        return (
            taken and (upstream, request.model) not in self._refused and dialect.can_defer(request)
        )

    def refused(self, upstream: str, model: str) -> None:
        """Note that this upstream accepted a request without deferred tools after it had refused it
        with them."""
        self._refused.put((upstream, model), True)

    def keep(self, hidden: Sequence[Hidden], found: Sequence[ToolSpec]) -> tuple[NoteWritten, ...]:
        """Notes to be kept before those of the turn in which these tools were found."""
        if not found:
            return ()
        rows = [each.chain for each in hidden]
        for chain in rows:
            self._known.put(chain, {each.name: each for each in found})
        definitions = msgspec.json.encode(
            [(each.name, each.description, each.parameters.decode()) for each in found]
        )
        return tuple(NoteWritten(_FOUND, chain, definitions) for chain in rows)

    def recalled(
        self,
        links: Sequence[Link],
        hidden: Mapping[Chain, Hidden],
        dialect: Dialect,
        store: Store,
        *,
        deferred: bool,
    ) -> FoundTools:
        """The tools that the hidden answers around these messages refer to; `deferred` says whether
        the upstream accepts references."""
        rows = [hidden[each.chain] for each in links if each.chain in hidden]
        referring = {row.chain: names for row in rows if (names := _referred_tools(row, dialect))}
        if not referring:
            return FoundTools()
        defined = self._defined(list(referring), store)
        tools: dict[str, ToolSpec] = {}
        spelled: dict[Chain, Hidden] = {}
        for chain, names in referring.items():
            there = defined.get(chain, {})
            if not deferred or not names <= there.keys():
                spelled[chain] = spell_out_row(hidden[chain], dialect, there)
                continue
            for name, each in there.items():
                tools.setdefault(name, each)  # a definition keeps its place and its bytes
        return FoundTools(tuple(tools.values()), spelled)

    def _defined(self, chains: Sequence[Chain], store: Store) -> dict[Chain, Definitions]:
        found = self._known.get_many(chains)
        missing = [chain for chain in chains if chain not in found]
        notes = store.notes(_FOUND, missing) if missing else {}
        read = {chain: _read_definitions(notes[chain]) for chain in missing if chain in notes}
        for chain, definitions in read.items():
            self._known.put(chain, definitions)
        return found | read


def is_taken(mode: Deferring, deferral: Deferral | None, host: str, model: str) -> bool:
    """True if tools may be deferred for this model at this host."""
    if mode is not Deferring.AUTO or deferral is None:
        return mode is Deferring.ON
    return deferral.host == host.lower() and deferral.models.match(model) is not None


def found_by(turn: TurnRef, chains: Sequence[Chain], store: Store) -> tuple[str, ...]:
    """The names of the tools that a line had found when this turn was planned, in order."""
    notes = store.notes(_FOUND, chains, turn)
    return tuple(
        dict.fromkeys(
            tool for chain in chains if chain in notes for tool in _read_definitions(notes[chain])
        )
    )


def spell_out_row(row: Hidden, dialect: Dialect, definitions: Definitions) -> Hidden:
    """The hidden messages around a chain, with the tools described in text."""
    words = {name: describe_tool(each) for name, each in definitions.items()}

    def spell_out(raws: Iterable[bytes]) -> tuple[bytes, ...]:
        return tuple(dialect.spell_out(raw, words) for raw in raws)

    instead = dialect.spell_out(row.instead, words) if row.instead else b""
    return replace(row, before=spell_out(row.before), instead=instead, after=spell_out(row.after))


def _referred_tools(row: Hidden, dialect: Dialect) -> frozenset[str]:
    return frozenset(
        name for raw in (*row.before, *row.after) for name in dialect.loaded_tools(raw)
    )


def _read_definitions(note: Note) -> Definitions:
    try:
        kept = decode(note.value or b"", list[tuple[str, str, str]])
    except msgspec.DecodeError:
        return {}
    specs = (
        ToolSpec(name, description, parameters.encode(), Loading.WHEN_FOUND)
        for name, description, parameters in kept
    )
    return {each.name: each for each in specs}
