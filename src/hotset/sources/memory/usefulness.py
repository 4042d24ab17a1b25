"""Judge whether a memory helped or misled, by the actions after it was shown and their outcome.
Pure, and conservative.

A memory was followed if a later action copies part of it (a command, a file, a tool, a name) that
was not in the conversation before. It helped if that work then succeeded. It misled if the error it
should resolve came again. Most shown memories do neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hotset.nouns.memory import (
    Ending,
    Episode,
    Layer,
    MemoryId,
    MemoryRecord,
    MemoryUse,
    Pitfall,
    Procedure,
    Used,
)
from hotset.nouns.page import Kind, SessionId
from hotset.nouns.turn import Event
from hotset.sources.memory.economics import LOADED
from hotset.sources.memory.encode.procedures import (
    general,
    in_project,
    parts_of,
    work_root,
)
from hotset.sources.memory.encode.session import Material, Utterance, acts_of
from hotset.sources.memory.kinds import KINDS
from hotset.text.characters import squeeze
from hotset.window.names import names
from hotset.window.work.calls import Act, ActKind
from hotset.window.work.mishaps import error_key
from hotset.window.work.prompts import prompt_words

HEEDED = "Heeded"
"""The event that says why a memory was counted: `{"memory": ..., "how": "helped", "why": ...}`."""

_SURE = 0.7  # confidence of an episode's ending; below, only the model claims success
_FEWEST_STEPS = 2  # steps that must be taken before a procedure counts as followed
_SHORTEST_NAME = 6  # characters of a name that is not hit upon by chance
_COMMAND = re.compile(r"`([^`\n]{3,200})`")
_FILES = re.compile(r"(?:edit(?:ed)?|wrote) ([\w./@+, -]{3,300})")
_CALLS = re.compile(r"\bcall ([\w.-]{3,80})")
_KIND = re.compile(r" with (\S[^`]*)$")
_ERROR_TEXT = re.compile(r'"([^"\n]{3,300})"')


@dataclass(frozen=True, slots=True)
class MemoryVerdict:
    memory: MemoryId
    how: Used
    """`HELPED` or `MISLED`."""
    why: str
    """Sorts and number of the copied parts, never their words."""
    turn: int
    """The turn in which its advice was taken."""


def shown_memories(events: Iterable[Event]) -> dict[MemoryId, int]:
    """Memories shown in full in a session, with the turn of the first showing."""
    shown: dict[MemoryId, int] = {}
    for event in events:
        if event.name == LOADED and event.detail.get("layer") == Layer.FULL:
            for id in str(event.detail.get("ids", "")).split():
                shown[MemoryId(id)] = min(event.turn, shown.get(MemoryId(id), event.turn))
    return shown


def judge_memories(
    material: Material, episodes: Sequence[MemoryRecord], shown: Sequence[tuple[MemoryRecord, int]]
) -> list[MemoryVerdict]:
    """The verdicts on shown memories, each given with its turn; `episodes` are the session's
    own."""
    if not shown:
        return []
    conversation = _Conversation(material)
    verdicts = (conversation.judge(memory, turn, episodes) for memory, turn in shown)
    return [each for each in verdicts if each is not None]


def verdict_deposits(
    found: Iterable[MemoryVerdict], session: SessionId, events: Iterable[Event], now: float
) -> tuple[tuple[MemoryUse, ...], tuple[Event, ...]]:
    """The uses and events to store, without those the session's events already hold."""
    known = {
        (str(event.detail.get("memory")), str(event.detail.get("how")))
        for event in events
        if event.name == HEEDED
    }
    new = [each for each in found if (each.memory, each.how) not in known]
    uses = tuple(MemoryUse(each.memory, each.how, now, session) for each in new)
    judged = (
        Event(
            HEEDED,
            now,
            session,
            each.turn,
            {"memory": each.memory, "how": str(each.how), "why": each.why},
        )
        for each in new
    )
    return uses, tuple(judged)


class _Conversation:
    """The words and actions of a session, by turn."""

    def __init__(self, material: Material) -> None:
        self._line = material.line
        self._acts = acts_of(material.line)
        self._root = work_root(self._acts)
        self._before: dict[int, bytes] = {}

    def judge(
        self, memory: MemoryRecord, turn: int, episodes: Sequence[MemoryRecord]
    ) -> MemoryVerdict | None:
        later = [
            act for act in self._acts if self._turn(act) >= turn and act.doing is not ActKind.PLAN
        ]
        advice, fewest = _advice(memory)
        unseen = frozenset(each for each in advice if not self._is_known(each, turn))
        copied: dict[str, Act] = {}
        for act in later:
            for what in self._things(act, unseen) & unseen:
                copied.setdefault(what, act)
        if len(copied) < fewest:
            return None
        first = min(copied.values(), key=lambda act: act.place)
        sorts = sorted({what.split(" ", 1)[0] for what in copied})
        why = f"copied {len(copied)} ({', '.join(sorts)})"
        if isinstance(memory.detail, Pitfall) and self._came_again(memory.detail, first, later):
            return MemoryVerdict(
                memory.id, Used.MISLED, f"{why}; the same error came again", self._turn(first)
            )
        went_well = any(
            episode.ending is Ending.SUCCESS and episode.confidence >= _SURE
            for episode in episodes
            if isinstance(episode.detail, Episode)
            and episode.detail.turns[0] <= self._turn(first) <= episode.detail.turns[1]
        )
        return (
            MemoryVerdict(memory.id, Used.HELPED, f"{why}; it came out well", self._turn(first))
            if went_well
            else None
        )

    def _turn(self, act: Act) -> int:
        return self._line[act.place].page.turn

    def _things(self, act: Act, advice: frozenset[str]) -> frozenset[str]:
        """The parts of an action, each with its sort; names only if the advice has any."""
        found: list[str] = []
        if act.command:
            parts = parts_of(act.command)
            general_parts = (general(part, self._root) or part for part in parts)
            found += [f"command {each}" for each in (act.command, *parts, *general_parts)]
        if act.doing is ActKind.EDIT:
            found += [f"file {_end(in_project(path, self._root))}" for path in act.files]
        if act.passed:
            found.append(f"tool {act.tool.rpartition('__')[2]}")
        if any(each.startswith("name ") for each in advice):
            found += [f"name {each}" for each in names(self._line[act.place].text)]
        return frozenset(found)

    def _came_again(self, pitfall: Pitfall, first: Act, later: Sequence[Act]) -> bool:
        command, kind, message = (
            _COMMAND.search(pitfall.what),
            _KIND.search(pitfall.what),
            _ERROR_TEXT.search(pitfall.why),
        )
        wanted = error_key(kind.group(1) if kind else "", message.group(1) if message else "")
        for act in later:
            if act.place > first.place and act.failed and command is not None:
                same = command.group(1) in (act.command, *parts_of(act.command))
                known = act.verdict.kind if kind else ""
                if same and error_key(known, act.verdict.message if message else "") == wanted:
                    return True
        return False

    def _is_known(self, advice: str, turn: int) -> bool:
        """True if the conversation contained it before that turn."""
        words = advice.split(" ", 1)[1].split(" <", 1)[0]
        return squeeze(words.encode("utf-8", "replace")) in self._words_before(turn)

    def _words_before(self, turn: int) -> bytes:
        if turn not in self._before:
            self._before[turn] = b"\n".join(
                _words(utterance) for utterance in self._line if _is_before(utterance, turn)
            )
        return self._before[turn]


def _is_before(utterance: Utterance, turn: int) -> bool:
    """True if a page precedes what its turn shows: what the request brings does, its calls do
    not."""
    page = utterance.page
    return page.turn < turn or (
        page.turn == turn and page.kind.family not in (Kind.TOOL_CALL, Kind.RESPONSE)
    )


def _words(utterance: Utterance) -> bytes:
    text = (
        prompt_words(utterance.text).text if utterance.page.kind is Kind.PROMPT else utterance.text
    )
    return b"\n".join((squeeze(text.encode("utf-8", "replace")), utterance.outside))


def _advice(memory: MemoryRecord) -> tuple[frozenset[str], int]:
    """The parts of a memory that an action can copy, each with its sort, and how many it must
    copy."""
    match memory.detail:
        case Pitfall(instead=instead):
            return _doings(instead), 1
        case Procedure(steps=steps):
            text = "; ".join(steps)
            found = _doings(text) | {f"tool {each}" for each in _CALLS.findall(text)}
            return found, min(_FEWEST_STEPS, max(1, len(found)))
        case _ if KINDS[memory.kind].is_free_text:  # an episode names everything it touched
            found = frozenset(names(memory.text))
            return frozenset(f"name {each}" for each in found if len(each) >= _SHORTEST_NAME), 1
        case _:
            return frozenset(), 1


def _doings(text: str) -> frozenset[str]:
    commands = (f"command {each}" for each in _COMMAND.findall(text))
    return frozenset((*commands, *(f"file {each}" for each in _paths(text))))


def _paths(text: str) -> Iterator[str]:
    for found in _FILES.finditer(text):
        yield from (_end(path.strip()) for path in found.group(1).split(",") if "." in path)


def _end(path: str) -> str:
    """The last two parts of a path: the same file from any folder."""
    return "/".join(path.strip("/").rsplit("/", 2)[-2:])
