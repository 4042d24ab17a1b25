"""What one agent leaves to its successor: a typed state for each kind of agent. Every item says
where it is from; nothing in it is concluded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import get_args

from msgspec import Struct
from msgspec.structs import fields

from hotset.nouns.knobs import StateName
from hotset.nouns.note import Space

HANDOFF = "Handoff"
"""Event name of a handoff."""

HANDOFF_DUE = "HandoffDue"
"""Event name of a window that passed the share at which its agent hands over."""

PROGRAM_NOTES = Space("handoff_notes")
"""What programs noted when they handed a window over, by the conversation's last message then: a
JSON list of `StateItem`."""

HANDOFFS = Space("handoffs")
"""The states as JSON, without secrets, by the session and the turn that began with each."""


class HandoffReason(StrEnum):
    FULL = "full"
    """The window passed the share at which its agent hands over."""
    PAYS = "pays"
    """The provider's cache was lost, and the price model says that a fresh window costs less."""
    ASKED = "asked"
    """The program handed over."""


class StateSource(StrEnum):
    """Whose words an item has, or what it was read from."""

    USER = "user"
    MODEL = "model"
    CALL = "call"
    """A call of the agent that worked."""
    RESULT = "result"
    """What a call brought. Outside text."""
    NOTE = "note"
    """A `handoff_note` of the agent."""
    PROGRAM = "program"
    STORE = "store"


class StateItem(Struct, frozen=True):
    text: str
    turn: int
    """Where it is from: `get_turn_range` shows it."""
    source: StateSource


class FileChange(Struct, frozen=True):
    """A file that an agent wrote or edited and did not remove again."""

    path: str
    action: str
    """written or edited, by the latest call."""
    times: int
    line: str
    """The first line that it wrote."""
    turn: int


class CheckRun(Struct, frozen=True):
    """A test, linter or build that was run, with the outcome of its latest run."""

    command: str
    outcome: str
    """The line that counts, verbatim. Outside text."""
    passed: bool
    turn: int
    failing: tuple[str, ...] = ()
    """Names of tests that failed."""


class FoundIssue(Struct, frozen=True):
    """A failure that a call reported."""

    command: str
    kind: str
    message: str
    """Its most telling line, verbatim. Outside text."""
    turn: int


class AppliedFix(Struct, frozen=True):
    """A failure that went away, and what was done until then."""

    command: str
    kind: str
    how: tuple[str, ...]
    turn: int


class RoutedTask(Struct, frozen=True):
    """Work that an agent gave to another one."""

    text: str
    agent: str
    status: str
    """completed, failed or active."""
    turn: int


class AgentSnapshot(Struct, frozen=True):
    """Another agent of the project, as its latest turn left it."""

    session: str
    agent: str
    tokens: int
    """Of its latest prompt."""
    last: float
    task: str


Items = tuple[StateItem, ...]


class HandoffState(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """What every agent leaves."""

    index: int
    """1 for the first handoff of a conversation."""
    reason: HandoffReason
    time: float
    turns: tuple[int, int]
    """First and last turn that it covers."""
    agent: str = ""
    task_id: str = ""
    pipeline_id: str = ""
    """From the session's metadata: `task` and `pipeline`."""
    references: tuple[str, ...] = ()
    """What brings back all that left: `retrieve_context(id=...)`."""
    context_notes: Items = ()


class EngineerState(HandoffState, frozen=True, kw_only=True, tag="engineer"):
    original_prompt: str = ""
    """The user's first message, word for word."""
    accomplished: Items = ()
    files_changed: tuple[FileChange, ...] = ()
    remaining: Items = ()
    key_decisions: Items = ()
    blockers_hit: tuple[FoundIssue, ...] = ()
    blockers_noted: Items = ()
    test_results: tuple[CheckRun, ...] = ()


class DesignerState(HandoffState, frozen=True, kw_only=True, tag="designer"):
    original_prompt: str = ""
    accomplished: Items = ()
    components_created: tuple[FileChange, ...] = ()
    styles_applied: tuple[FileChange, ...] = ()
    remaining: Items = ()
    design_decisions: Items = ()
    design_tokens: Items = ()
    """Custom properties that were written."""
    accessibility: Items = ()
    """Attributes for accessibility that were written, and what the agent noted."""


class InspectorState(HandoffState, frozen=True, kw_only=True, tag="inspector"):
    original_prompt: str = ""
    checks_performed: tuple[CheckRun, ...] = ()
    issues_found: tuple[FoundIssue, ...] = ()
    fixes_applied: tuple[AppliedFix, ...] = ()
    pending_issues: tuple[FoundIssue, ...] = ()
    pending_noted: Items = ()
    key_decisions: Items = ()
    validation_state: dict[str, bool] = {}
    """Whether the latest run of each check passed."""


class TesterState(HandoffState, frozen=True, kw_only=True, tag="tester"):
    original_prompt: str = ""
    tests_created: Items = ()
    test_results: tuple[CheckRun, ...] = ()
    failing_tests: Items = ()
    key_decisions: Items = ()
    coverage_gaps: Items = ()


class OrchestratorState(HandoffState, frozen=True, kw_only=True, tag="orchestrator"):
    session_id: str = ""
    original_goal: str = ""
    """The user's first message, word for word."""
    phase: str = ""
    """planning, executing or completing, by the plan's items; empty without a plan."""
    progress: float = 0.0
    """Share of the plan's items that are done."""
    pending_tasks: Items = ()
    active_pipelines: tuple[RoutedTask, ...] = ()
    completed_tasks: Items = ()
    delegated: tuple[RoutedTask, ...] = ()
    agent_states: tuple[AgentSnapshot, ...] = ()
    waiting_on: Items = ()
    next_actions: Items = ()
    key_decisions: Items = ()
    blockers: tuple[FoundIssue, ...] = ()
    blockers_noted: Items = ()


class GuideState(HandoffState, frozen=True, kw_only=True, tag="guide"):
    session_id: str = ""
    user_id: str = ""
    original_prompt: str = ""
    conversation_history: Items = ()
    current_intent: Items = ()
    active_topics: tuple[str, ...] = ()
    recent_routings: tuple[RoutedTask, ...] = ()
    agent_affinities: dict[str, float] = {}
    """Share of the routed tasks that each agent got."""
    pending_followups: Items = ()
    user_preferences: Items = ()
    key_decisions: Items = ()
    active_agents: tuple[str, ...] = ()
    waiting_for: Items = ()
    assumptions: Items = ()


AnyState = (
    EngineerState | DesignerState | InspectorState | TesterState | OrchestratorState | GuideState
)

STATES: Mapping[str, type[AnyState]] = {
    str(each.__struct_config__.tag): each for each in get_args(AnyState)
}
"""The state of each kind."""

_NOTED: Mapping[StateName, tuple[str, ...]] = {
    "engineer": ("remaining", "key_decisions", "blockers_noted"),
    "designer": ("remaining", "design_decisions", "accessibility"),
    "inspector": ("pending_noted", "key_decisions"),
    "tester": ("coverage_gaps", "key_decisions"),
    "orchestrator": ("pending_tasks", "waiting_on", "next_actions", "key_decisions"),
    "guide": ("pending_followups", "user_preferences", "waiting_for", "assumptions"),
}


def noted_fields(state: StateName) -> tuple[str, ...]:
    """The fields that an agent may fill by a note: what it plans, decided and takes for granted.
    What was done, changed and tested is read from what happened."""
    return (*_NOTED[state], "context_notes")


def original_prompt(state: HandoffState) -> str:
    """The user's first message, under the name that this kind has for it."""
    named = {each.name for each in fields(state)}
    return str(getattr(state, "original_goal" if "original_goal" in named else "original_prompt"))


@dataclass(frozen=True, slots=True)
class AgentNote:
    """A call of `handoff_note`, or what a program said with `handoff()`."""

    turn: int
    fields: Mapping[str, tuple[str, ...]]
    source: StateSource = StateSource.NOTE


@dataclass(frozen=True, slots=True)
class HandoffBrief:
    """What a state needs beside the conversation."""

    agent: str = ""
    session: str = ""
    task: str = ""
    pipeline: str = ""
    user: str = ""
    notes: tuple[AgentNote, ...] = ()
    remembered: tuple[str, ...] = ()
    """What this session told the memory to keep."""
    others: tuple[AgentSnapshot, ...] = ()
