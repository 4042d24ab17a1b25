"""Tools that were found in a session and can be called by their own names, where the upstream can
defer tools.

The definitions that an answer refers to are kept as notes, in front of what is hidden of its turn:
after a restart and in another process both are sent byte for byte as they were. Where the
definitions are missing, or the upstream does not take them, the answer says in words what it found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import msgspec

from hotset.config import Config
from hotset.dialects.port import Deferral, Dialect
from hotset.files.lru import Lru
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.link import Link
from hotset.nouns.message import Loading, Request, ToolSpec
from hotset.nouns.note import Note, Space
from hotset.nouns.page import Chain
from hotset.nouns.tool import Deferring
from hotset.nouns.turn import TurnRef
from hotset.nouns.window import Hidden
from hotset.store.port import Store
from hotset.window.deferring import words_for

_FOUND = Space("found")
"""By the message around which the answers that refer to them are hidden."""

_MOST_KNOWN = 2048

Definitions = Mapping[str, ToolSpec]
"""By name."""


@dataclass(frozen=True, slots=True)
class FoundTools:
    """What was found in a conversation so far."""

    tools: tuple[ToolSpec, ...] = ()
    """To be called by their own names, in the order in which they were found."""
    spelled: Mapping[Chain, Hidden] = field(default_factory=dict)
    """What is hidden around these messages, in words."""


class Deferrals:
    """Safe to use from several threads."""

    def __init__(self, config: Config) -> None:
        self._mode = config.tooling.deferred
        self._hosts = {
            name: urlsplit(each.url).hostname or "" for name, each in config.upstreams.items()
        }
        self._refused: set[tuple[str, str]] = set()
        """Upstreams and models that know no deferred tools."""
        self._known: Lru[Chain, Definitions] = Lru(count=_MOST_KNOWN)
        """By the message around which the answers that refer to them are hidden."""

    def allowed(self, request: Request, dialect: Dialect, upstream: str) -> bool:
        """May tools be deferred in this request?"""
        taken = is_taken(self._mode, dialect.deferral, self._hosts.get(upstream, ""), request.model)
        return (
            taken and (upstream, request.model) not in self._refused and dialect.can_defer(request)
        )

    def refused(self, upstream: str, model: str) -> None:
        """This upstream took a request without deferred tools, after it had refused it with
        them."""
        self._refused.add((upstream, model))

    def keep(self, hidden: Sequence[Hidden], found: Sequence[ToolSpec]) -> tuple[NoteWritten, ...]:
        """Notes to be kept before those of the turn in which these tools were found."""
        if not found:
            return ()
        rows = [each.chain for each in hidden]
        for chain in rows:
            self._known.put(chain, {each.name: each for each in found})
        told = msgspec.json.encode(
            [(each.name, each.description, each.parameters.decode()) for each in found]
        )
        return tuple(NoteWritten(_FOUND, chain, told) for chain in rows)

    def recalled(
        self,
        links: Sequence[Link],
        hidden: Mapping[Chain, Hidden],
        dialect: Dialect,
        store: Store,
        *,
        deferred: bool,
    ) -> FoundTools:
        """What the answers that are hidden around these messages refer to; `deferred` says whether
        the upstream takes that."""
        rows = [hidden[each.chain] for each in links if each.chain in hidden]
        referring = {row.chain: names for row in rows if (names := _referred(row, dialect))}
        if not referring:
            return FoundTools()
        defined = self._defined(list(referring), store)
        tools: dict[str, ToolSpec] = {}
        spelled: dict[Chain, Hidden] = {}
        for chain, names in referring.items():
            there = defined.get(chain, {})
            if not deferred or not names <= there.keys():
                spelled[chain] = spelled_out(hidden[chain], dialect, there)
                continue
            for name, each in there.items():
                tools.setdefault(name, each)  # what was defined once keeps its place and its bytes
        return FoundTools(tuple(tools.values()), spelled)

    def _defined(self, chains: Sequence[Chain], store: Store) -> dict[Chain, Definitions]:
        found = self._known.get_many(chains)
        missing = [chain for chain in chains if chain not in found]
        notes = store.notes(_FOUND, missing) if missing else {}
        read = {chain: _read(notes[chain]) for chain in missing if chain in notes}
        for chain, definitions in read.items():
            self._known.put(chain, definitions)
        return found | read


def is_taken(mode: Deferring, deferral: Deferral | None, host: str, model: str) -> bool:
    """True where tools may be deferred for this model, behind this host."""
    if mode is not Deferring.AUTO or deferral is None:
        return mode is Deferring.ON
    return deferral.host == host.lower() and deferral.models.match(model) is not None


def found_by(turn: TurnRef, chains: Sequence[Chain], store: Store) -> tuple[str, ...]:
    """The names of the tools that were found in a line when this turn was planned, in order."""
    notes = store.notes(_FOUND, chains, turn)
    return tuple(
        dict.fromkeys(tool for chain in chains if chain in notes for tool in _read(notes[chain]))
    )


def spelled_out(row: Hidden, dialect: Dialect, definitions: Definitions) -> Hidden:
    """What is hidden around a message, in words."""
    words = {name: words_for(each) for name, each in definitions.items()}

    def said(raws: Iterable[bytes]) -> tuple[bytes, ...]:
        return tuple(dialect.spelled_out(raw, words) for raw in raws)

    instead = dialect.spelled_out(row.instead, words) if row.instead else b""
    return replace(row, before=said(row.before), instead=instead, after=said(row.after))


def _referred(row: Hidden, dialect: Dialect) -> frozenset[str]:
    return frozenset(name for raw in (*row.before, *row.after) for name in dialect.referred(raw))


def _read(note: Note) -> Definitions:
    try:
        kept = msgspec.json.decode(note.value or b"", type=list[tuple[str, str, str]])
    except msgspec.DecodeError:
        return {}
    specs = (
        ToolSpec(name, told, parameters.encode(), Loading.WHEN_FOUND)
        for name, told, parameters in kept
    )
    return {each.name: each for each in specs}
