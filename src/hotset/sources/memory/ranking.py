"""What speaks for each candidate of a recall: signals of the index, the lift of memories that fit,
their order and reasons."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from hotset.index.port import Index
from hotset.nouns.finding import Filter, IndexHit, Query, Sort
from hotset.nouns.memory import Ending, Episode, MemoryKind, MemoryRecord, Standing, Task, Uses
from hotset.nouns.page import Kind
from hotset.sources.memory.index import WINDOW, said_by
from hotset.sources.memory.kinds import ADVICE_KINDS
from hotset.sources.memory.tasks import KIND_WEIGHTS
from hotset.sources.memory.text import DAY
from hotset.sources.memory.time_words import TimeWords, fits
from hotset.sources.memory.weights import SignalWeights
from hotset.text.sentences import SENTENCE_END
from hotset.text.stops import CHAT
from hotset.text.terms import Term, first_hits
from hotset.text.words import lowered

if TYPE_CHECKING:
    from hotset.index.embed.table import TokenMaxSim


SAME_SESSION = 0.5
"""Of being outdated, for what else was said or done where something was decided that no longer
holds."""

_MEANING_SHARE = 0.4  # beside words, in how well a memory fits


def evidence_boosts(
    candidates: Mapping[str, RecallCandidate],
    signals: Mapping[str, Signals],
    memories: Mapping[str, MemoryRecord],
    replaced: Mapping[str, MemoryRecord | None],
) -> dict[str, Signals]:
    """For each page that was found. `replaced` are the memories that hold no longer, with what
    holds now, if anything does.

    A memory that was replaced boosts the words of the one that holds now instead of its own.
    """
    boost = _EvidenceBoost()
    for id, share in _evidence_shares(signals, memories).items():
        memory = memories[id]
        session = memory.source.session or ""
        if isinstance(memory.detail, Episode):
            boost.stretches.setdefault(session, []).append((memory.detail.turns, share))
        elif id in replaced:
            boost.replace(memory, replaced[id], share)
        else:
            boost.point(memory, share)
    return {key: boost.signals(each) for key, each in candidates.items() if each.is_talk}


def _evidence_shares(
    signals: Mapping[str, Signals], memories: Mapping[str, MemoryRecord]
) -> dict[str, float]:
    """How well each fits, beside the best of its kind: texts of another kind are of another
    length."""
    fit = {id: signals[id]["words"] + _MEANING_SHARE * signals[id]["meaning"] for id in memories}
    best: dict[str, float] = {}
    for id, memory in memories.items():
        best[memory.kind] = max(best.get(memory.kind, 0.0), fit[id])
    return {
        id: fit[id] / best[memory.kind] if best[memory.kind] else 0.0
        for id, memory in memories.items()
    }


@dataclass(slots=True)
class _EvidenceBoost:
    """What the memories that fit say for the pages they stand on."""

    pages: dict[str, float] = field(default_factory=dict)
    stretches: dict[str, list[tuple[tuple[int, int], float]]] = field(default_factory=dict)
    """By session: turns of an episode, and how well it fits."""
    old_pages: set[str] = field(default_factory=set)
    old_sessions: set[str] = field(default_factory=set)
    moved: dict[str, set[str]] = field(default_factory=dict)
    """By session: those in which something was decided that this one replaced."""

    def point(self, memory: MemoryRecord, share: float) -> None:
        for page in memory.source.pages:
            self.pages[page] = max(self.pages.get(page, 0.0), share)

    def replace(self, old: MemoryRecord, new: MemoryRecord | None, share: float) -> None:
        self.old_pages.update(old.source.pages)
        if new is None:
            return
        self.point(new, share)
        before, now = old.source.session, new.source.session
        if before and now and before != now:
            self.old_sessions.add(before)
            self.moved.setdefault(now, set()).add(before)

    def signals(self, each: RecallCandidate) -> Signals:
        fits = [
            share
            for turns, share in self.stretches.get(each.session, ())
            if turns[0] <= each.turn <= turns[1]
        ]
        fits += [
            share
            for session in self.moved.get(each.session, ())
            for _, share in self.stretches.get(session, ())
        ]
        signals = {"pointed": self.pages.get(each.key, 0.0), "session": max(fits, default=0.0)}
        if each.key in self.old_pages and each.key not in self.pages:
            signals["outdated"] = 1.0
        elif each.session in self.old_sessions:
            signals["outdated"] = SAME_SESSION
        return signals


TALK_KINDS: Mapping[str, int] = {Kind.PROMPT: 50, Kind.RESPONSE: 25}
"""Whose words are looked for, and how many stretches of each: one search for both finds the longer
answers of models first."""

_WINDOWS = 25
_MEMORIES = 30
_CLOSE = 0.45  # cosine that counts where no telling word is shared: see `sources.history.search`
_WORD = re.compile(r"\S+")
_EDGES = re.compile(r"^\W+|\W+$")
_OWN_STATEMENT = re.compile(r"\b(?:I|I'm|I've|I'd|my|My|we|We|our|Our)\b")
_NUMBER = re.compile(
    (
        r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|once|twice|first|second|third|"
        r"couple|few)\b"
    ),
    re.IGNORECASE,
)
_ENOUGH_TOLD = 2  # own statements: more say no more


@dataclass(frozen=True, slots=True)
class RecallCandidate:
    """Something that may be recalled, with what the index knows of it."""

    key: str
    """A page's id, or a memory's."""
    kind: str
    """`prompt`, `response`, or a memory's kind."""
    session: str
    time: float
    turn: int = 0
    title: str = ""
    text: str = ""
    """Its best stretch; empty where only what stands around it was found."""
    words: float | None = None
    meaning: float | None = None
    window: float | None = None

    @property
    def is_talk(self) -> bool:
        return self.kind in TALK_KINDS


@dataclass(frozen=True, slots=True)
class IndexQuestion:
    """A question, as far as the index is asked."""

    words: str
    """Without what people say around it, and without its time."""
    kinds: frozenset[MemoryKind]
    talk: bool
    since: float | None = None
    until: float | None = None


def query_words(query: str) -> str:
    """The words of a question that tell it from others; all of them, where none does. Quotes are no
    condition here."""
    words = query.replace('"', " ")
    kept = [word for word in _WORD.findall(words) if _EDGES.sub("", word).lower() not in CHAT]
    return " ".join(kept) or " ".join(words.split())


def gather(
    asked: IndexQuestion, index: Index, until: float, clock: Callable[[], float] = time.monotonic
) -> tuple[dict[str, RecallCandidate], frozenset[str]]:
    """Everything that shares a telling word with the question, or is close to it in meaning; and
    what did not serve in one of the searches."""
    candidates: dict[str, RecallCandidate] = {}
    lacking: frozenset[str] = frozenset()
    for query in _queries(asked):
        hits = index.search(replace(query, deadline=max(0.0, until - clock())))
        lacking |= hits.lacking
        for new in _candidates(hits.hits):
            candidates[new.key] = _together(candidates.get(new.key), new)
    return candidates, lacking


def _queries(asked: IndexQuestion) -> Iterator[Query]:
    wanted: list[tuple[Sort, frozenset[str], int]] = []
    if asked.talk:
        wanted += [(Sort.PAGE, frozenset({kind}), most) for kind, most in TALK_KINDS.items()]
        wanted.append((Sort.MEMORY, frozenset({WINDOW}), _WINDOWS))
    if asked.kinds:
        wanted.append((Sort.MEMORY, frozenset(map(str, asked.kinds)), _MEMORIES))
    spans: list[tuple[float | None, float | None, float]] = [(None, None, 1.0)]
    if asked.since is not None or asked.until is not None:
        spans.append((asked.since, asked.until, 0.5))
    for since, until, share in spans:
        for sort, kinds, most in wanted:
            only = Filter(sorts=frozenset({sort}), kinds=kinds, since=since, until=until)
            yield Query(asked.words, only, int(most * share))


def _candidates(hits: Iterable[IndexHit]) -> Iterator[RecallCandidate]:
    for hit in hits:
        entry = hit.entry
        if hit.by_words is None and (hit.by_meaning or 0.0) < _CLOSE:
            continue
        if entry.kind == WINDOW:
            if hit.by_words is not None:
                yield RecallCandidate(
                    entry.whole,
                    said_by(entry),
                    entry.session,
                    entry.time,
                    entry.turn,
                    window=hit.by_words,
                )
        else:
            about = entry.session, entry.time, entry.turn, entry.title, entry.text
            fit = hit.by_words, hit.by_meaning
            yield RecallCandidate(entry.whole, entry.kind, *about, *fit)


def _together(one: RecallCandidate | None, other: RecallCandidate) -> RecallCandidate:
    """Several stretches of a page are one candidate, with the text of the best and the best of each
    signal."""
    if one is None:
        return other
    best = max(
        one, other, key=lambda each: (bool(each.text), each.words or 0.0, each.meaning or 0.0)
    )
    found: dict[str, Any] = {}
    for name in ("words", "meaning", "window"):
        known = [v for each in (one, other) if (v := getattr(each, name)) is not None]
        found[name] = max(known, default=None)
    return replace(best, **found)


def own_statements(text: str) -> float:
    """How much somebody tells of themselves, from 0 to 1: sentences in the first person that are no
    questions."""
    spoken = (each for line in text.split("\n") for each in SENTENCE_END.split(line))
    told = sum(
        1 for each in spoken if _OWN_STATEMENT.search(each) and not each.rstrip().endswith("?")
    )
    return min(1.0, told / _ENOUGH_TOLD)


def score_wordwise(question: str, texts: Sequence[str]) -> list[float]:
    """How well each text answers each word of the question."""
    return _wordwise().scores(question, texts)


@cache
def _wordwise() -> TokenMaxSim:
    from hotset.index.embed.table import TokenMaxSim, WordVectors  # noqa: PLC0415 - most never ask

    return TokenMaxSim(WordVectors())


Signals = dict[str, float]
"""By a signal's name."""

_PERSON = "prompt"

# the share of cosines that say nothing: the least of those that were found is near the middle of
# all
_FLOOR = 1 / 3
# of cosines: what differs by less is alike, and must not be told apart where only two were found
_LEAST_SPAN = 0.2
_RECENT_DAYS = 30.0  # after so many days it counts a third
_OTHER_KINDS = 0.3  # of kinds that the tasks' table does not name
_MANY_USES = 20  # reads from which on more make no difference


@dataclass(frozen=True, slots=True)
class RankSetting:
    """What a question wants beside its words."""

    now: float
    task: Task
    spoken: TimeWords = field(default_factory=TimeWords)
    """The time that it speaks of."""
    of_the_model: bool = False
    """It asks what the model said."""
    of_oneself: bool = False
    for_a_number: bool = False


def first_signals(
    candidates: Mapping[str, RecallCandidate], setting: RankSetting
) -> dict[str, Signals]:
    """By what the index knows alone."""
    words = _shares({key: each.words for key, each in candidates.items()})
    windows = _shares({key: each.window for key, each in candidates.items()})
    meaning = _above_floor({key: each.meaning for key, each in candidates.items()})
    late = _places(candidates) if setting.spoken.latest or setting.spoken.first else {}
    signals: dict[str, Signals] = {}
    for key, each in candidates.items():
        found = {
            "words": words.get(key, 0.0),
            "meaning": meaning.get(key, 0.0),
            "window": windows.get(key, 0.0),
        }
        found["recent"] = math.exp(-abs(setting.now - each.time) / (_RECENT_DAYS * DAY))
        if setting.spoken.since is not None or setting.spoken.until is not None:
            found["when"] = fits(each.time, setting.spoken)
        if late:
            found["latest"] = late[key] if setting.spoken.latest else 1.0 - late[key]
        if each.is_talk:
            found["speaker"] = float(each.kind == _PERSON and not setting.of_the_model)
        else:
            found["kind"] = wanted_kind(MemoryKind(each.kind), setting.task)
        signals[key] = found
    return signals


def text_signals(each: RecallCandidate, setting: RankSetting) -> Signals:
    """What a person's words tell by themselves: looked at only where they may be shown."""
    if each.kind != _PERSON:
        return {}
    return {
        "told": own_statements(each.text) if setting.of_oneself else 0.0,
        "number": float(setting.for_a_number and _NUMBER.search(each.text) is not None),
    }


def wanted_kind(kind: MemoryKind, task: Task) -> float:
    """How much a task wants memories of this kind; of the one that it wants most, 1."""
    row = KIND_WEIGHTS[task]
    return row.get(kind, _OTHER_KINDS) / max(row.values())


def memory_signals(memory: MemoryRecord, uses: Uses | None, setting: RankSetting) -> Signals:
    """What a memory's own record tells."""
    signals: Signals = {}
    if uses is not None:
        useful = uses.read + 2 * uses.helped - 2 * uses.misled
        signals["used"] = max(
            -1.0, min(1.0, math.copysign(math.log1p(abs(useful)) / math.log1p(_MANY_USES), useful))
        )
    has_trouble = isinstance(memory.detail, Episode) and bool(memory.detail.troubles)
    if setting.task is Task.DEBUGGING and (memory.ending is Ending.FAILURE or has_trouble):
        signals["failed"] = 1.0
    if memory.standing is Standing.SUPERSEDED and not held_then(memory, setting):
        signals["outdated"] = 1.0
    return signals


def held_then(memory: MemoryRecord, setting: RankSetting) -> bool:
    """The question is about a time before something else came to hold."""
    ended = memory.valid_until
    until = setting.spoken.until
    return setting.spoken.first or (until is not None and ended is not None and until <= ended)


def order(signals: Mapping[str, Signals], weights: SignalWeights) -> list[tuple[str, float]]:
    """Keys with their scores, best first. Of equal ones the order is that of their names: nothing
    depends on who came first."""
    counts = weights.as_dict()
    scored = [
        (-sum(counts[name] * value for name, value in found.items() if value), key)
        for key, found in signals.items()
    ]
    return [(key, -score) for score, key in sorted(scored)]


def spread(values: Sequence[float]) -> list[float]:
    """From 0 for the least towards 1 for the greatest, which has it where they differ by enough."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [(value - low) / max(high - low, _LEAST_SPAN) for value in values]


def _shares(values: Mapping[str, float | None]) -> dict[str, float]:
    found = {key: value for key, value in values.items() if value is not None}
    highest = max(found.values(), default=0.0)
    return {key: value / highest for key, value in found.items()} if highest > 0 else {}


def _above_floor(values: Mapping[str, float | None]) -> dict[str, float]:
    found = {key: value for key, value in values.items() if value is not None}
    if not found:
        return {}
    ranked = sorted(found.values())
    floor, highest = ranked[int(len(ranked) * _FLOOR)], ranked[-1]
    span = max(highest - floor, _LEAST_SPAN)
    return {key: max(0.0, value - floor) / span for key, value in found.items()}


def _places(candidates: Mapping[str, RecallCandidate]) -> dict[str, float]:
    """From 0 for the earliest to 1 for the latest, by place: one that is years older makes the
    others no more alike."""
    times = sorted({each.time for each in candidates.values()})
    place = {time: at / max(1, len(times) - 1) for at, time in enumerate(times)}
    return {key: place[each.time] for key, each in candidates.items()}


_SPOKEN_WORD = re.compile(r"[\w'-]*\w")
_MOST_WORDS = 5
_NOTABLE = 0.5  # of a signal that goes from 0 to 1
_LATELY_DAYS = 7.0


def why(
    text: str,
    signals: Signals,
    wanted: tuple[Term, ...],
    setting: RankSetting,
    *,
    memory: MemoryRecord | None = None,
    uses: Uses | None = None,
) -> tuple[str, ...]:
    """What spoke for something that is told, the plainest first; `text` is what of it was compared
    with the question."""
    return (
        *_of_signals(signals, _shared(text, wanted), setting),
        *(_of_memory(memory, uses, signals, setting) if memory is not None else ()),
    )


def day(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%-d %B %Y}"


def _of_signals(signals: Signals, shared: list[str], setting: RankSetting) -> Iterator[str]:
    if shared:
        yield f"words: {', '.join(shared)}"
    if signals.get("meaning", 0.0) >= _NOTABLE or (not shared and signals.get("meaning", 0.0) > 0):
        yield "close in meaning"
    if not shared and signals.get("window", 0.0) > 0:
        yield "what was said around it fits"
    if signals.get("when", 0.0) == 1.0:
        yield f"you asked about {_range(setting.spoken)}"
    if signals.get("latest", 0.0) >= _NOTABLE:
        yield "among the latest" if setting.spoken.latest else "among the first"
    if signals.get("pointed", 0.0) >= _NOTABLE:
        yield "a memory that fits stands on it"
    if signals.get("session", 0.0) >= _NOTABLE:
        yield "said in an episode that fits"


def _of_memory(
    memory: MemoryRecord, uses: Uses | None, signals: Signals, setting: RankSetting
) -> Iterator[str]:
    if memory.kind in ADVICE_KINDS and signals.get("kind", 0.0) > 0:
        article = "an" if setting.task[0] in "aeiou" else "a"
        yield f"{memory.kind} for {article} {setting.task} task"
    if signals.get("failed"):
        yield "it went wrong there"
    if uses is not None and uses.read:
        yield f"read {uses.read} time{'s' if uses.read > 1 else ''}"
    if uses is not None and uses.helped > uses.misled:
        yield "it helped before"
    if setting.now - memory.created <= _LATELY_DAYS * DAY:
        yield "of the last days"
    if memory.standing is Standing.SUPERSEDED:
        yield (
            f"held until {day(memory.valid_until)}"
            if memory.valid_until is not None
            else "something else holds now"
        )


def _shared(text: str, wanted: tuple[Term, ...]) -> list[str]:
    """The words of the text by which it was found, as they stand there."""
    low = lowered(text)
    words = (_SPOKEN_WORD.match(low, at) for at, _ in first_hits(text, wanted))
    return list(dict.fromkeys(word[0] for word in words if word))[:_MOST_WORDS]


def _range(said: TimeWords) -> str:
    if said.since is None:
        return f"the time before {day(said.until or 0.0)}"
    if said.until is None:
        return f"the time since {day(said.since)}"
    if said.until - said.since <= DAY:
        return day(said.since)
    return f"{day(said.since)} to {day(said.until - 1)}"
