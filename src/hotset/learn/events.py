"""What learning is told: the payloads of its events, as JSON. Numbers, ids and names of knobs,
tools and kinds; never content."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from hotset.typed import json_decoder

Unit = Annotated[float, Meta(ge=0, le=1)]
NotNegative = Annotated[float, Meta(ge=0, le=1e15)]
"""Sums of these stay finite, however many there are."""
Counted = Annotated[int, Meta(ge=0, le=10**9)]
Coordinate = Annotated[float, Meta(ge=-1e6, le=1e6)]
LogRatio = Annotated[float, Meta(ge=-20, le=20)]
Context = Annotated[int, Meta(ge=0, le=9)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]

DEFAULT_ARM = "default"
OFF_ARM = "off"
OBSERVED = "SessionObserved"
COST = "cost"
BY_BANDIT = "bandit"
BY_PERSON = "person"
BY_EVOLUTION = "evolve"


class SessionFigures(Struct, frozen=True, omit_defaults=True):
    """A session that ended."""

    session: Name
    arm: Name = DEFAULT_ARM
    """`default`, `off`, a profile's name, or the id of a change under trial."""
    changes: tuple[str, ...] = ()
    """Ids of learned changes in force."""
    explored: dict[str, Unit] = {}
    """Where in its range each knob was that this session ran with moved."""
    context: Context = 0
    """The cluster of its prompts."""
    vector: tuple[Coordinate, ...] = ()
    """A small vector of its first prompt, from which clusters are found; empty leaves them as they
    are."""
    success: Unit | None = None
    """1 it worked, 0.5 partly, 0 it failed; None: not known."""
    reward: float | None = None
    """From -1 to 1, relative to the session's own baseline: its replay with the default knobs, or
    full history."""
    cost: NotNegative = 0.0
    """What was paid, in units of an uncached input token."""
    whole: NotNegative = 0.0
    """What full history would have cost."""
    turns: Counted = 0
    faults: Counted = 0
    refaults: Counted = 0
    searches: Counted = 0
    corrections: Counted = 0
    rereads: Counted = 0
    latency_ms: NotNegative = 0.0
    signals: dict[str, float] = {}
    """`tests_passed`, `tests_failed`, `reverted`, `follow_ups`, `hedges`, `abandoned`, ..."""
    forms: dict[str, tuple[int, int, int]] = {}
    """By `tool:Bash` or `kind:file`: results shown short, asked back, shown whole."""
    dollars: NotNegative | None = None
    """What was paid; None: the price of a model is not known."""
    earlier: SessionFigures | None = None
    """What was observed of the same session before it went on: this replaces it."""


class Change(Struct, frozen=True, omit_defaults=True):
    """Knobs that somebody proposes to turn."""

    id: Name
    knobs: dict[str, Any]
    """By dotted name, as JSON can hold it."""
    before: dict[str, Any]
    by: str
    """Who proposes it."""
    why: str
    """A sentence of numbers."""
    evidence: dict[str, float] = {}
    is_safe: bool = False
    """It hides nothing that was seen before: it shows more, or changes the order in which something
    is found. The replay gate is enough to adopt it; others need a share of sessions first."""


class Measured(Struct, frozen=True, omit_defaults=True):
    """What replay showed of a change on later sessions, only on those that it touches."""

    sessions: Counted
    """Later sessions, those included that it does not touch."""
    touched: Counted
    before: float
    """Of the touched sessions: the cost in units of an uncached input token, with what faults cost
    counted once; or another figure."""
    after: float
    figure: Name = COST
    """What `before` and `after` are; anything but `cost` is a mean, as it is read."""
    replies: Counted = 0
    """Of the model, in the touched sessions."""
    faults_before: NotNegative = 0.0
    """Retrievals in the touched sessions."""
    faults_after: NotNegative = 0.0

    @property
    def saved(self) -> float | None:
        """The share of the touched sessions' cost that is saved; None for other figures."""
        is_cost = self.figure == COST and self.before > 0
        return 1 - self.after / self.before if is_cost else None

    @property
    def fewer_faults(self) -> float:
        """Retrievals that 100 replies need less."""
        return 100 * (self.faults_before - self.faults_after) / max(1, self.replies)


class GateVerdict(Struct, frozen=True, omit_defaults=True):
    """What replay on later sessions says of a change."""

    change: Name
    passed: bool
    gain: LogRatio
    """The mean of log(before / after) per session of what is decided by, with its bounds at any
    time. Where a change only shows more, a fault weighs more than its tokens in it: `measured` has
    the cost itself."""
    low: float
    high: float
    sessions: Counted
    faults: NotNegative = 1.0
    """Faults after, as a multiple of those before."""
    canary: Unit = 0.0
    """The share of trials with shuffled labels that would have passed."""
    why: str = ""
    since: float = 0.0
    """When the first of the sessions began."""
    measured: Measured | None = None


class ChangeDecision(Struct, frozen=True, omit_defaults=True):
    """A change is adopted, or taken back."""

    change: Name
    why: str
    by: str = BY_BANDIT


class TrialSetting(Struct, frozen=True, omit_defaults=True):
    """Which share of new sessions each arm under trial gets; the default arm has the rest."""

    shares: dict[str, Unit]
    """0 ends an arm's trial. A person's are fixed; the bandit moves the others."""
    by: str = BY_PERSON
    explore: Unit | None = None
    """The share of sessions of the default arm that try other positions of a few knobs; None leaves
    it."""
    explorable: tuple[str, ...] | None = None
    """Which knobs may be explored; None leaves it."""


class KnobsSetting(Struct, frozen=True, omit_defaults=True):
    """A person freezes, thaws or resets knobs, allows them again, or switches learning."""

    knobs: tuple[Name, ...] = ()
    """By dotted name; a group's or a mapping's name means all in it. None: all."""
    values: dict[str, Any] = {}
    """For frozen knobs: the value that holds from now on, also in open sessions. Without one, new
    sessions keep what is in force now."""
    changes: tuple[Name, ...] = ()
    """For `LearningReset` and `ResetLifted`: these changes, instead of knobs."""
    is_on: bool = True
    """For `LearningSwitched`."""


EVENTS: Mapping[str, type[Struct]] = {
    OBSERVED: SessionFigures,
    "ChangeProposed": Change,
    "ChangeGated": GateVerdict,
    "ChangeAdopted": ChangeDecision,
    "ChangeRolledBack": ChangeDecision,
    "TrialChanged": TrialSetting,
    "KnobsFrozen": KnobsSetting,
    "KnobsThawed": KnobsSetting,
    "LearningReset": KnobsSetting,
    "ResetLifted": KnobsSetting,
    "LearningSwitched": KnobsSetting,
}
LEARN_EVENTS = frozenset(EVENTS)

_DECODERS = {name: json_decoder(kind) for name, kind in EVENTS.items()}


def encode_payload(payload: Struct) -> str:
    """The text of an event's `data`."""
    return msgspec.json.encode(payload, order="sorted").decode()


def decode_payload(name: str, data: str) -> Any:
    """The struct of an event. Raises `KeyError` for an unknown name, `msgspec.MsgspecError` or
    `UnicodeError` where the text is damaged."""
    return _DECODERS[name].decode(data)


def change_id(knobs: Mapping[str, Any], by: str) -> str:
    """The id of a change: the same proposal has the same id."""
    text = msgspec.json.encode([knobs, by], order="sorted")
    return f"c-{sha256(text).hexdigest()[:8]}"
