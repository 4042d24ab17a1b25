"""What can be turned: how much is shown, how much stays, when pages leave, what is remembered. One
frozen set of knobs holds for a session; profiles are sets by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct, ValidationError, field, structs, to_builtins
from msgspec.structs import replace

from hotset.nouns.memory_kind import MemoryKind
from hotset.nouns.page import Kind
from hotset.typed import convert

ROOMY = 128_000
"""Tokens of a window for which limits are meant as they are written. What is a page in it is a
chapter in a small one."""

_CHARS_PER_TOKEN = 4
_CROWDED = 0.25
"""Of the window, for steps: with less, it is crowded."""

_SHORTEST = 400
"""Characters of a result, however crowded the window is."""

_LEAST_SHARE = 0.15
"""Of a limit, however small the window is: below that, excerpts no longer say anything."""

Share = Annotated[float, Meta(ge=0, le=1, extra={"unit": "a share"})]
WindowShare = Annotated[float, Meta(ge=0, le=1, extra={"unit": "a share of the window"})]
Probability = Annotated[float, Meta(ge=0, le=1, extra={"unit": "a probability"})]
Count = Annotated[int, Meta(ge=0, le=10_000, extra={"unit": "how many"})]
AtLeastOne = Annotated[int, Meta(ge=1, le=10_000, extra={"unit": "how many"})]
Tokens = Annotated[int, Meta(ge=0, le=10_000_000, extra={"unit": "tokens"})]
Characters = Annotated[int, Meta(ge=0, le=10_000_000, extra={"unit": "characters"})]
Seconds = Annotated[float, Meta(ge=0, le=1_000_000_000, extra={"unit": "seconds"})]

Factor = Annotated[float, Meta(ge=0, le=10, extra={"unit": "a factor"})]
Weight = Annotated[float, Meta(ge=-10, le=10, extra={"unit": "a weight"})]
Similarity = Annotated[float, Meta(ge=0, le=1, extra={"unit": "a similarity"})]


def _of(unit: str) -> Meta:
    """What a number counts."""
    return Meta(extra={"unit": unit})


PolicyName = Literal["recency", "use", "size", "topic", "task"]
"""Which steps leave first; `window.policies` has the functions."""


class Limit(Struct, frozen=True):
    """When a result is shortened at birth, and to what. In characters, for a window of 128,000
    tokens or more."""

    over: Characters
    """Longer results are shortened; 0 never shortens."""
    room: Characters
    """What the excerpt may take."""

    def at_most(self, characters: int) -> Limit:
        """Excerpts of so many characters at most; what is never shortened is not shortened."""
        room = min(self.room, characters)
        return Limit(min(self.over, 2 * room), room) if self.over else self

    def times(self, factor: float) -> Limit:
        return Limit(round(self.over * factor), round(self.room * factor))


NEVER = Limit(0, 0)

# Actions copy lines from files that were read to be edited and from the reports of other agents,
# and hardly anything from a test run's output.
_LIMITS = {
    Kind.FILE: Limit(24_000, 9000),
    Kind.AGENT_MESSAGE: Limit(24_000, 9000),
    Kind.TEST_RESULT: Limit(3000, 1500),
}


class Prefetching(StrEnum):
    """What may be offered with a prompt before the model has asked for it."""

    OFF = "off"
    HINTS = "hints"
    """Where something is, in a line each."""
    ON = "on"
    """Hints, and what is there."""


class Prefetch(Struct, frozen=True):
    """Code that a prompt is about, offered from the index before the model has read it."""

    mode: Prefetching = Prefetching.ON
    """`off`, `hints` (where something is, in a line each) or `on` (hints, and what is there)."""
    excerpt: Probability = 0.90
    """How likely an excerpt's file must be: of 100 files shown by commit messages, so many are
    changed by the commit."""
    hint: Probability = 0.85
    """How likely a hint's file must be."""
    share: Share = 0.10
    """Of the free window that an offer may take."""
    excerpts: Annotated[Count, _of("excerpts")] = 2
    """Excerpts with one prompt, of different files."""
    hints: Annotated[Count, _of("hints")] = 3
    """Hints with one prompt, of different files."""
    lines: Annotated[Count, _of("lines")] = 50
    """Of each excerpt: most functions are shorter."""
    hint_chars: Characters = 160
    """Of a hint's own words, beside the place that it names."""
    found: Annotated[AtLeastOne, _of("finds")] = 40
    """Finds that are weighed: the likelihood was fitted to so many."""
    seconds: Seconds = 0.1
    """That a prompt may wait for an offer: a search takes some 5 ms."""
    racing: bool = False
    """Also while a client's tools run: what was found by then is sent with their results, without
    waiting."""


class ToolboxKnobs(Struct, frozen=True):
    """Which tools are in a session's list before the model asks, and which a search returns."""

    ghost: Probability = 0.25
    """How likely the best tool for a prompt must be, for any to be offered with it: with it, some 3
    in 100 prompts of coding sessions are offered one."""
    ghost_fit: Share = 0.6
    """Of that likelihood, that further ones need. With 0.3 a fifth more are offered, and one in
    nine of these is right."""
    ghost_share: WindowShare = 0.05
    """For the schemas of ghosts in the list, which every call of the session pays for."""
    ghost_tokens: Tokens = 600
    """For ghosts behind one prompt."""
    ghost_cost: Share = 0.02
    """Of the window's content, that ghosts behind prompts may have; a third of `ghost_tokens` in
    any case."""
    fit: Share = 0.05
    """Of the best score, that a tool needs to be returned by `find_tools`: what is below is no
    better than any other."""
    together: Share = 0.1
    """What is added to the score of a tool that is used together with those the session used: it
    decides between near ones."""
    unused: Annotated[AtLeastOne, _of("sessions")] = 5
    """Latest sessions that had a tool of the client's and did not call it, for it to count as
    unused: `savings` shows what such tools cost, and with `client = "auto"` in `[tools]` a new
    session's list leaves them out."""
    past: Factor = 1.0
    """How much past uses count in a search for tools, beside words and meaning."""
    client: Mapping[str, bool] = {}
    """Tools of the client's that its list keeps (`true`) or leaves out (`false`) with `client =
    "auto"` in `[tools]`, whatever `unused` says of them."""
    waiting: Annotated[Count, _of("skills")] = 3
    """Skills that would fit and wait for a person's consent, a line each."""


class MemoryKnobs(Struct, frozen=True):
    """Which memories a prompt is reminded of, and which consolidation takes for one."""

    reminders: Annotated[Count, _of("memories")] = 2
    """Memories shown with a prompt that did not ask for them."""
    tell: Probability = 0.5
    """How likely a memory must be to change what is done next. A search always finds something, and
    most prompts need none."""
    tells: Mapping[MemoryKind, Probability] = {}
    """The same for some kinds of memories."""
    signals: Mapping[str, Weight] = {}
    """Other weights of the signals by which a recall is ordered, by name. `semantic`, `episodic`
    and `skill` add to facts, to episodes and pages, and to procedures and pitfalls."""
    advice: Annotated[Count, _of("memories")] = 2
    """Procedures, and pitfalls, in one answer: more of a kind crowd out episodes and pages."""
    cluster_alike: Similarity = 0.6
    """How alike the vectors of two episodes' goals must be for the episodes to be one kind of
    work."""
    merge_alike: Similarity = 0.9
    """How alike the vectors of two memories must be for them to be merged. Below, too much is lost
    that is asked for later."""
    conflict_alike: Similarity = 0.75
    """How alike the vectors of two facts must be for it to be checked whether both can hold."""
    conflict_facts: Annotated[Count, _of("facts")] = 8
    """Earlier facts that a fact is checked against."""


class HistoryKnobs(Struct, frozen=True):
    """What a search of earlier work shows, and what a topic brings back."""

    topic_pages: Annotated[AtLeastOne, _of("pages")] = 3
    """Pages that `retrieve_context(tool=..., topic=...)` brings back; further ones are named."""
    results: Annotated[AtLeastOne, _of("pages")] = 20
    """Pages that a search returns."""
    excerpt_chars: Annotated[AtLeastOne, _of("characters")] = 160
    """Characters of each line that a result shows."""
    whole_chars: Characters = 4000
    """Up to so many characters a result names its page to be brought back whole; of a longer one,
    the lines around the find."""
    around_lines: Annotated[Count, _of("lines")] = 30
    """Lines before and behind a find that are named then: a function, as a rule."""
    of_page: Factor = 0.3
    """Of a question's words that a passage's page has anywhere: a file is found by what its other
    parts say."""
    of_call: Factor = 0.6
    """Of a question's words that the call which brought the page has."""
    of_neighbour: Factor = 0.25
    """Of the score of the passage before or behind."""
    of_phrase: Factor = 0.5
    """What each quoted text that stands in a passage adds to its score, as a share of it."""
    of_work: Factor = 0.8
    """What a file that the latest calls name adds, in weights of a rare word."""
    of_names: Factor = 0.25
    """The weight of a name in the two latest calls, beside the question's words."""
    calls: Factor = 0.5
    """The score of what a call was asked: what it brought says more."""
    replies: Factor = 1.2
    """The score of what the model said: it says why."""
    passage: Annotated[AtLeastOne, _of("characters")] = 300
    """Characters of a passage that is found: several places are worth more than one long
    stretch."""
    saturation: Factor = 1.2
    """How slowly a word's further occurrences in a passage lose weight (BM25's k1)."""
    length: Share = 0.6
    """How much a passage's length counts against it (BM25's b)."""
    repeated: Share = 0.7
    """Of a passage's lines that another one has shown: with more it says nothing new."""


_INSTRUCTIONS = (
    *("AGENTS.md", "AGENTS.override.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "SKILL.md"),
    *(".cursorrules", ".windsurfrules", ".clinerules", "copilot-instructions.md", "CONVENTIONS.md"),
    *("rules/*.md", "rules/*.mdc", ".clinerules/*.md", "instructions/*.md", "*.instructions.md"),
    *("PLAN.md", "plan.md", "TODO.md", "todo.md", "plans/*.md"),
)


class FormKnobs(Struct, frozen=True):
    """How results are shown beside their limits, and what stays of steps that left."""

    again: Annotated[AtLeastOne, _of("times")] = 4
    """How many times longer a result may be that was asked for again after its excerpt was shown:
    that one was too short."""
    change_share: Share = 0.6
    """What a difference may take of the whole result that it replaces; a longer one is hard to read
    and saves little."""
    repeat: Characters = 240
    """Characters of adjoining lines that the window shows already, from which a line that says
    where stands for them; it is some 80 characters long itself."""
    names_share: Share = 0.33
    """Of an excerpt, for the names of what it leaves out: the excerpt is read, names are looked
    up."""
    topics: Annotated[Count, _of("names")] = 5
    """Names in the reference of what left: the most frequent paths, then other names."""
    entities: Annotated[Count, _of("names")] = 24
    """Names that are kept with a reference, to be found by; it shows as many as fit its line."""
    hints: Annotated[Count, _of("names")] = 3
    """Names that calls used, shown in a reference as what to ask for."""
    replaced: Characters = 40
    """Characters of a text that an edit replaced, in the log: it is gone from the file, so no later
    call copies it."""
    tasks: Characters = 4000
    """Characters of open tasks in the log: what the work goes on with, and copied when it is ticked
    off."""
    folded_share: Share = 0.5
    """Of a log's length, for its names once it is folded. In a session of 439 calls they saved 7 of
    21 faults."""
    logs_share: Share = 0.2
    """Of the window, for the logs of all that left. Beyond it, each batch would make less room than
    the one before. Only very long sessions get there: at 0.4 two sessions of 439 and 469 calls cost
    52 % of their full history with 7.4 faults, at 0.2 49 % with 8.1."""
    summary_share: Share = 0.1
    """Of the stretch that leaves, for its summaries: its log comes to a few per cent."""
    instructions: tuple[str, ...] = _INSTRUCTIONS
    """Files that instruct the agent, by name or by the end of their path, with `*` for any part of
    a name. Whatever reads one, it is shown whole and leaves last."""
    instruction: Characters = 24_000
    """Characters up to which such a file is shown whole; in a small window at most as many as it
    has tokens, which is a quarter of it."""
    instruction_share: Share = 0.04
    """Of the window, for files of instructions that stay while other steps leave, the latest
    first."""
    latest: Annotated[AtLeastOne, _of("steps")] = 4
    """The latest steps, which say what is being done now, for policies that compare older ones with
    it."""


FixedLifetime = Literal["5m", "1h", "auto"]


class CacheKnobs(Struct, frozen=True):
    """Where the provider's cache of a prompt may end, if that has to be marked in the request."""

    marks: bool = True
    """A conversation whose client sets no marks gets them from its second request on, where they
    pay; a client's own marks stay, and get one more behind what has left if one is free."""
    fixed: FixedLifetime = "5m"
    """How long the provider keeps the fixed part (system text and tools): `1h` costs 2 instead of
    1.25 to write, `auto` takes it where the pauses between the project's latest requests say that
    it pays. Decided with a session's first request."""


ClearMode = Literal["off", "said", "soon"]


class SuccessorKnobs(Struct, frozen=True):
    """The reference that the first request gets after a client compacted or cleared its
    conversation."""

    compaction: bool = True
    """A conversation that its client compacted gets a reference to all that was before."""
    clear: ClearMode = "said"
    """Whether one that begins anew gets it: `said` where the client says that the user cleared
    (Claude Code does), `soon` also where it begins within `soon` of the same client's last one,
    `off` never. By time alone 7 of 22 recorded beginnings within five minutes were no `/clear`."""
    lines: Characters = 600
    """Characters beside the reference: changed files and open items, then what was run and decided.
    A compaction's own summary has 10,000 or more, and stays."""
    soon: Seconds = 300.0
    """How long after the last one a conversation counts as its successor, for `clear = "soon"`."""
    within: Seconds = 43_200.0
    """How long ago the conversation may have ended that the user cleared. Recorded pauses before
    `/clear` had a median of 10 minutes; 3 of 45 were longer than five
    hours."""


OfferedTool = Literal[
    "retrieve_context", "search_history", "get_turn_range", "find_tools", "use_tool"
]
"""Our tools that a kind of agent can name."""

StateName = Literal["engineer", "designer", "inspector", "tester", "orchestrator", "guide"]
"""Which typed state an agent leaves; `nouns.handoff` has the types."""


class HandoffKnobs(Struct, frozen=True):
    """When a window is handed over to a successor, and what that begins with."""

    at: WindowShare = 0.0
    """The share of the window at which an agent hands over to a successor; 0 never: its oldest
    steps leave instead."""
    early: WindowShare = 0.5
    """The share from which on it hands over where the provider's cache is lost anyway and the price
    model says that it pays."""
    start: WindowShare = 0.2
    """What the successor's first request takes, the fixed part and the user's words included; a
    quarter more at most, unless these alone are longer."""
    hot: Annotated[Count, _of("steps")] = 3
    """Older steps that stay, where they fit: those that later calls used most."""
    state: StateName = "engineer"
    """The fields of the state that it leaves."""


class Knobs(Struct, frozen=True):
    """Everything that a plan, an offer or an answer can be tuned by."""

    window: Tokens = 200_000
    """Tokens that a prompt may have: the model's window, or less."""
    high: WindowShare = 0.95
    """The share of the window at which pages have to leave."""
    squeezed: Share = 0.6
    """Of the room up to `high`, what may be filled after an overflow, where letting steps leave is
    not enough: a full window overflows again with the next call, and breaks the prefix each
    time."""
    crowd: Annotated[AtLeastOne, _of("results")] = 60
    """Results for which there has to be room beside what never leaves (system text, tools, the
    user's words): where that fills most of the window, excerpts are shorter, or each call would
    overflow."""
    low: WindowShare = 0.03
    """The share of the free window that steps may take after others left; the latest `keep` may
    take more."""
    rest: Tokens = 6000
    """The most that this share comes to: reading old steps on costs as much in a large window as in
    a small one. 0 sets no such bound."""
    keep: Annotated[AtLeastOne, _of("steps")] = 4
    """The latest steps, which never leave. A step is one reply of the model with the results of its
    calls."""
    most: Annotated[Count, _of("steps")] = 0
    """How many steps may be in the window before all but `keep` leave; 0 sets no such bound."""
    limit: Limit = Limit(4500, 2900)
    """When a result is shortened the first time it is shown, and to what, in characters; `{over =
    0}` never."""
    limits: Mapping[Kind, Limit] = field(default_factory=lambda: dict(_LIMITS))
    """Other limits for some kinds of results."""
    tools: Mapping[str, Limit] = field(default_factory=dict)
    """Other limits for some tools, by name; they win over `limits`."""
    files: Mapping[str, Limit] = field(default_factory=dict)
    """Other limits for files that were read, by the ending of their name (`md`); they win over
    `tools`."""
    lines: Mapping[str, Weight] = field(default_factory=dict)
    """Other weights of the signs by which lines of an excerpt are chosen, by name."""
    index: Characters = 150
    """Characters of names that an excerpt lists of what it leaves out, for a window of 128,000
    tokens or more."""
    echo: bool = True
    """Results that the window has already become a line that says where; changed ones show what
    changed."""
    policy: PolicyName = "recency"
    """Which steps leave first: the oldest, the least used, the largest, those off the topic, those
    of a finished task."""
    spared: frozenset[Kind] = frozenset()
    """Kinds of pages whose steps leave last."""
    early: bool = True
    """Pages may leave before the window is full, where the price model says that it pays."""
    regret: Annotated[float, Meta(ge=0, le=10_000, extra={"unit": "retrievals"})] = 7.0
    """How many retrievals a batch of departures is expected to cause: what it must save at least,
    beside its own price."""
    finished: Share = 0.1
    """Of `regret`, for steps of finished work: little of it is asked for again, so it leaves
    earlier."""
    patience: Annotated[AtLeastOne, _of("calls")] = 60
    """The most calls that a session is expected to go on for."""
    said: Characters = 160
    """Characters of what the model said, in the log that stays of each step that left."""
    entry: Characters = 200
    """Characters of each argument of its calls in that log."""
    mentions: Characters = 60
    """Characters of names from each result in that log."""
    written: Characters = 4000
    """Characters of a text that a call wrote into a file, in that log; for a window of 128,000
    tokens or more."""
    read: Characters = 150
    """Characters of names from a file that was read, in that log; for a window of 128,000 tokens or
    more."""
    offers: tuple[OfferedTool, ...] = ()
    """Which of our tools are listed beside `retrieve_context`; none named means all."""
    forms: FormKnobs = FormKnobs()
    cache: CacheKnobs = CacheKnobs()
    prefetch: Prefetch = Prefetch()
    """What is offered with a new prompt."""
    toolbox: ToolboxKnobs = ToolboxKnobs()
    memory: MemoryKnobs = MemoryKnobs()
    history: HistoryKnobs = HistoryKnobs()
    successor: SuccessorKnobs = SuccessorKnobs()
    handoff: HandoffKnobs = HandoffKnobs()

    def turned(self, values: Mapping[str, Any]) -> Knobs:
        """These knobs with other values, by name: `keep`, or `prefetch.mode` for a knob of a
        group."""
        own: dict[str, Any] = {}
        groups: dict[str, dict[str, Any]] = defaultdict(dict)
        for name, value in values.items():
            group, dot, rest = name.rpartition(".")
            (groups[group] if dot else own)[rest] = value
        return structs.replace(
            self,
            **own,
            **{
                name: structs.replace(getattr(self, name), **given)
                for name, given in groups.items()
            },
        )

    def changed(self, profile: Knobs) -> dict[str, Any]:
        """The values that differ from a profile's, by name, as JSON can hold them: what is stored
        with a session."""
        before, now = profile.by_name(), self.by_name()
        return {
            name: to_builtins(value, order="sorted")
            for name, value in now.items()
            if value != before[name]
        }

    def with_changes(self, changes: Mapping[str, Any]) -> Knobs:
        """This profile with other values by name: what `changed` gave, or entries of tables
        (`tools.Bash`; None takes an entry away). Raises `msgspec.ValidationError` where there is no
        such knob or a value is out of its range."""
        raw = to_builtins(self)
        for name, value in changes.items():
            table, key = _place(raw, name)
            if value is None:
                table.pop(key, None)
            else:
                table[key] = value
        return convert(raw, Knobs)

    def value(self, name: str) -> Any:
        """A knob's value as JSON can hold it; None for an entry that its table does not have."""
        table, key = _place(to_builtins(self, order="sorted"), name)
        return table.get(key)

    def by_name(self) -> dict[str, Any]:
        """Every value; knobs of a group by dotted names."""
        found: dict[str, Any] = {}
        for name, value in structs.asdict(self).items():
            inner = (
                structs.asdict(value)
                if isinstance(value, Struct) and not isinstance(value, Limit)
                else {}
            )
            found |= {f"{name}.{each}": one for each, one in inner.items()} or {name: value}
        return found

    def in_room(self, tokens: float) -> Knobs:
        """These knobs where steps may take so many tokens of the window: `crowd` results fit."""
        if tokens >= _CROWDED * self.window:
            return self
        most = max(_SHORTEST, round(_CHARS_PER_TOKEN * tokens / (self.crowd * self._scarcity)))
        limits = (self.limit, *_entries(self.limits, self.tools, self.files))
        if all(each.room <= most for each in limits):
            return self
        return replace(
            self,
            limit=self.limit.at_most(most),
            limits={kind: limit.at_most(most) for kind, limit in self.limits.items()},
            tools={tool: limit.at_most(most) for tool, limit in self.tools.items()},
            files={ending: limit.at_most(most) for ending, limit in self.files.items()},
        )

    def limit_of(self, kind: Kind, tool: str, ending: str = "") -> Limit:
        """What holds for a result in this window; `ending`: of a file's name."""
        own = self.files.get(ending) or self.tools.get(tool) or self.limits.get(kind)
        return (own or self.limit).times(self._scarcity)

    @property
    def line_weights(self) -> tuple[tuple[str, float], ...]:
        return tuple(sorted(self.lines.items()))

    @property
    def for_finished(self) -> Knobs:
        """These knobs for the log of finished work, which begins with what was done: of each step
        only its calls, half as long."""
        return replace(self, said=0, mentions=0, read=0, entry=self.entry // 2)

    @property
    def limit_of_instructions(self) -> Limit:
        """What holds for a file that instructs the agent in this window."""
        over = min(self.forms.instruction, self.window)
        return Limit(over, min(over, self.limit_of(Kind.FILE, "").room))

    @property
    def room_for_names(self) -> int:
        return round(self.index * self._scarcity)

    @property
    def room_for_written(self) -> int:
        return round(self.written * self._scarcity)

    @property
    def room_for_read(self) -> int:
        return round(self.read * self._scarcity)

    @property
    def _scarcity(self) -> float:
        return max(_LEAST_SHARE, min(1.0, self.window / ROOMY))


def _entries(*tables: Mapping[Any, Limit]) -> Iterator[Limit]:
    for table in tables:
        yield from table.values()


def _place(raw: dict[str, Any], name: str) -> tuple[dict[str, Any], str]:
    """The table that has a knob, and its key there. The key of an entry may have dots itself."""
    first, _, rest = name.partition(".")
    table, knob, key = raw, first, rest
    if isinstance(getattr(_PLAIN_KNOBS, first, None), Struct) and first != "limit":
        table = raw[first]
        knob, _, key = rest.partition(".")
    inside = table.get(knob)
    is_entry = isinstance(inside, dict) and (knob != "limit" or key in inside)
    if knob not in table or (key and not is_entry):
        raise ValidationError(f"there is no knob {name}")
    return (table[knob], key) if key else (table, knob)


DEFAULT_PROFILE = "default"
LEAN_PROFILE = "lean"

_PLAIN_KNOBS = Knobs()


def _evicting(share: float, *, at: float, policy: PolicyName, keep: int, spared: Kind) -> Knobs:
    """At the share `at` of the window, so much of its content leaves.

    `Knobs.low` is what the kept steps may take of the window afterwards. They took nearly all of
    `at` before, because what never leaves (system text, tools, the user's own words) is small
    beside them: at x (1 - share) stays.
    """
    return replace(
        _PLAIN_KNOBS,
        high=at,
        low=at * (1 - share),
        rest=0,
        policy=policy,
        keep=keep,
        spared=frozenset({spared}),
    )


_LEAN_KNOBS = replace(
    _PLAIN_KNOBS,
    limit=Limit(500, 500),
    limits={Kind.FILE: Limit(5000, 3500)},
    keep=3,
    most=8,
    low=0.0,
    said=80,
    entry=100,
    mentions=250,
    written=2500,
    read=2000,
)
_LIBRARIAN_KNOBS = _evicting(0.25, at=0.75, policy="recency", keep=5, spared=Kind.PROMPT)

PROFILES: Mapping[str, Knobs] = {
    DEFAULT_PROFILE: _PLAIN_KNOBS,
    # The fewest tokens, for models that have no cache or little room: results cut at 500
    # characters and files at 3,500, the last 3 to 8 steps, a short log of the others. With 6
    # steps and files at 500, mini-gemini3-150 cost 79 % with 12.9 faults, against 74 with 12.1; 10
    # steps take more than half of the tokens of its first 16 calls. They leave in batches,
    # because a window that moves with every call would break the prefix with every call; with `low`
    # at 0 all of the older ones leave, however much room there is.
    LEAN_PROFILE: _LEAN_KNOBS,
    "librarian": _LIBRARIAN_KNOBS,
    "archivalist": _LIBRARIAN_KNOBS,
    "academic": _evicting(0.30, at=0.80, policy="topic", keep=3, spared=Kind.PAPER),
    "architect": _evicting(0.25, at=0.85, policy="task", keep=5, spared=Kind.PLAN),
    **{
        name: replace(_PLAIN_KNOBS, handoff=HandoffKnobs(at=0.75, state=name))
        for name in get_args(StateName)
    },
}


STRATEGIES: Mapping[str, Mapping[str, float]] = {
    "semantic-heavy": {"memory.signals.semantic": 0.3, "memory.signals.episodic": -0.1},
    "episodic-heavy": {"memory.signals.episodic": 0.3, "memory.signals.semantic": -0.1},
    "balanced": {},
}
"""Named changes of knobs that sessions can be given at random to compare ways of recalling."""


class Remembering(Struct, frozen=True):
    enabled: bool = True
    """Sessions become memories, and can be recalled."""
    offer: bool = True
    """Memories that fit are shown with an agent's prompts, a few hundred tokens at most; otherwise
    it has to ask."""
    index_tokens: Tokens = 100
    """Tokens of the index of topics that a session begins with."""
    index_from: Annotated[Count, _of("memories")] = 6
    """From so many memories on, a session begins with that index: fewer are found by their words
    alone."""
    offer_tokens: Tokens = 400
    """Of all that a prompt may bring along, the start's included."""
    offer_seconds: Seconds = 0.3
    """How long a prompt waits for it: memories are found in some 20 ms; to look at a session that
    has just ended takes longer."""
    quiet_seconds: Seconds = 120.0
    """Without a call: then a session is looked at. One that opens looks at those before it at
    once."""
    consolidate_hours: Annotated[float, Meta(ge=0, le=1_000_000, extra={"unit": "hours"})] = 24.0
    """From one consolidation in the background to the next; 0 leaves it to `hotset memory
    consolidate`."""
