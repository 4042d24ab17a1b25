"""How often `retrieve_context(question)` alone brings back a line that had left the window.

    python -m bench.history            (make bench-history)
    python -m bench.history --show     each question that was not answered, and what came instead

Reads the sessions of HOTSET_BENCH_DATA (default: ../shared/data). Each goes into a store turn by
turn, as a client sends it, and into an index. All but the latest steps have left its window. A
question is answered if the wanted line stands in the 2,000 tokens that come back.

rule   60 questions made by rule. At a step that copies a line which had left, the query is what the
       model wrote there; the line is the answer.
hand   60 questions written by hand (`bench/history_questions.json`), asked at the end of a session.

Half of the sessions (`tuned`) were looked at while the search was built; `held_out` is the other.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

from bench.results import quantile, tell
from hotset.index import open_index
from hotset.nouns.link import link
from hotset.nouns.message import Message, Part
from hotset.nouns.page import ROOT, Chain, Kind, Role
from hotset.nouns.retrieval import Place, Retrieve
from hotset.nouns.window import WHOLE, Cause, Form, Line, Shown, Spot
from hotset.replay.conversation import (
    RecordedConversation,
    TextUnits,
    find_actions,
    split_conversations,
)
from hotset.replay.formats import read
from hotset.runtime.retrieval import answer
from hotset.testing.ram_store import RamStore
from hotset.testing.store_talk import StoreTalk, message
from hotset.window.arguments import spoken

HERE = Path(__file__).parent
DATA = (
    Path(os.environ.get("HOTSET_BENCH_DATA", HERE.parent.parent / "shared" / "data"))
    / "trajectories"
)
QUESTIONS = HERE / "history_questions.json"
SETS = ("codex-agentv", "cc-packmind", "cc-cipherbox", "pi-mono", "mini-gemini3-150")
RULE_QUESTIONS = 60
OF_ONE_SESSION = 3
MAX_TOKENS = 2000
RESIDENT = 20
"""Replies whose steps are still in the window."""
FEWEST_WORDS = 5


@dataclass(frozen=True, slots=True)
class HistoryQuestion:
    words: str
    lines: tuple[str, ...]
    """Any of these answers it."""
    at: int
    """Messages of the conversation that were there when it was asked."""


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    question: HistoryQuestion
    session: str
    found: bool
    text: str
    tokens: int
    seconds: float


def is_held_out(session: str) -> bool:
    return blake2b(session.encode(), digest_size=1).digest()[0] % 2 == 1


def conversations() -> Iterator[RecordedConversation]:
    """The longest part of each session between compactions, by the id of the session."""
    for name in SETS:
        path = DATA / f"{name}.jsonl.gz"
        if not path.exists():
            raise SystemExit(
                f"{path} does not exist: say where the sets are with "
                f"HOTSET_BENCH_DATA=/path/to/data"
            )
        for session in read([path]):
            yield max(split_conversations(session), key=lambda part: len(part.lines))


def session_of(conversation: RecordedConversation) -> str:
    return conversation.id.rpartition("#")[0]


def rule_questions(conversation: RecordedConversation) -> list[HistoryQuestion]:
    """Steps that copied a line from a result which had left, with what the model wrote there."""
    lines = conversation.lines
    replies = conversation.calls
    if len(replies) < 3 * RESIDENT:
        return []
    units = [TextUnits.of("\n".join(_texts(line))) for line in lines]
    number = {at: place for place, at in enumerate(replies)}
    found: list[HistoryQuestion] = []
    for action in find_actions(lines, units):
        place = number[action.message]
        if place <= RESIDENT or (found and action.message <= found[-1].at):
            continue
        left = replies[place - RESIDENT]
        wanted = [
            need
            for need, seen in action.needs.items()
            if need in units[action.message].lines
            and seen[-1] < left
            and any(lines[at].role is Role.TOOL for at in seen)
            and not any(lines[at].role in (Role.USER, Role.SYSTEM) for at in seen)
            and " " in need
        ]
        words = "\n".join(
            piece.content.decode("utf-8", "replace")
            for piece in lines[action.message].pieces
            if piece.kind is Kind.RESPONSE
        ).strip()
        if wanted and len(words.split()) >= FEWEST_WORDS:
            longest = max(wanted, key=lambda line: (len(line), line))
            found.append(HistoryQuestion(words, (longest,), action.message))
    step = max(1, len(found) // OF_ONE_SESSION)
    return found[::step][:OF_ONE_SESSION]


def hand_questions(conversation: RecordedConversation) -> list[HistoryQuestion]:
    return [
        HistoryQuestion(each["question"], tuple(each["lines"]), len(conversation.lines))
        for each in _by_hand().get(session_of(conversation), ())
    ]


def _by_hand() -> Mapping[str, list[dict[str, list[str] | str]]]:
    return json.loads(QUESTIONS.read_text()) if QUESTIONS.exists() else {}


def ask(
    conversation: RecordedConversation, questions: Sequence[HistoryQuestion]
) -> Iterator[AnsweredQuestion]:
    store = RamStore()
    talk = StoreTalk(store, key="bench")
    starts = conversation.calls
    asked = None
    for begin, end in pairwise([0, *starts, len(conversation.lines)]):
        new = [_message(line) for line in conversation.lines[begin:end]]
        if begin in starts:
            talk.hears(asked, new[0])
            new = new[1:]
        if end < len(conversation.lines) or new:
            asked = talk.asks(*new).turn
    chains = tuple(each.chain for each in link(ROOT, talk.history))
    [session] = store.sessions()
    with tempfile.TemporaryDirectory() as folder, closing(open_index(Path(folder))) as index:
        for each in questions:
            before = chains[: each.at]
            replies = [at for at in starts if at < each.at]
            left = chains[: replies[-RESIDENT]] if len(replies) > RESIDENT else ()
            here = Place(session.id, 10_000, before, shown=_departed(left, conversation.lines))
            began = time.perf_counter()
            got = answer(
                Retrieve(topic=each.words, max_tokens=MAX_TOKENS),
                store,
                here,
                index=index,
                seconds=60.0,
            )
            took = time.perf_counter() - began
            text = _plain(got.text)
            found = any(_plain(line) in text for line in each.lines)
            yield AnsweredQuestion(
                each, session_of(conversation), found, got.text, got.tokens, took
            )
    store.close()


def _departed(left: Sequence[Chain], lines: Sequence[Line]) -> dict[Spot, Shown]:
    """The page table after every step of these messages left; prompts never do."""
    return {
        Spot(chain, WHOLE): Shown(
            Spot(chain, WHOLE), Form.GONE, b"", 0, line.whole, Cause.PAYS, 0.0
        )
        for chain, line in zip(left, lines, strict=False)
        if line.role in (Role.ASSISTANT, Role.TOOL)
    }


def _message(line: Line) -> Message:
    parts = (
        Part(piece.kind, piece.content, piece.media, piece.tool, piece.call)
        for piece in line.pieces
    )
    return message(line.role, *parts)


def _texts(line: Line) -> Iterator[str]:
    for piece in line.pieces:
        if piece.kind.family is Kind.TOOL_CALL:
            yield spoken(piece.content)
        else:
            yield piece.content.decode("utf-8", "replace")


def _plain(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.history")
    parser.add_argument("--show", action="store_true", help="each question that was not answered")
    parser.add_argument("--only", choices=("rule", "hand"), help="one kind of question")
    parser.add_argument("--half", choices=("tuned", "held_out"), help="one half of the sessions")
    chosen = parser.parse_args()
    every = list(conversations())
    made: dict[str, list[tuple[RecordedConversation, list[HistoryQuestion]]]] = {
        "rule": _choose([(each, rule_questions(each)) for each in every]),
        "hand": [(each, asked) for each in every if (asked := hand_questions(each))],
    }
    sets: dict[str, dict[str, dict[str, float]]] = {}
    for kind, of_sessions in made.items():
        if chosen.only in (None, kind):
            for half in ("tuned", "held_out"):
                if chosen.half in (None, half):
                    answered = [
                        each
                        for conversation, questions in of_sessions
                        if is_held_out(session_of(conversation)) is (half == "held_out")
                        for each in ask(conversation, questions)
                    ]
                    sets[f"{kind} {half}"] = {"hotset": _figures(answered)}
                    if chosen.show:
                        _show(answered)
    tell("history", sets)


def _choose(
    made: Sequence[tuple[RecordedConversation, list[HistoryQuestion]]],
) -> list[tuple[RecordedConversation, list[HistoryQuestion]]]:
    """About as many questions as wanted: the first of each session, then the second, and so on."""
    kept: dict[str, list[HistoryQuestion]] = {}
    left = RULE_QUESTIONS
    for place in range(OF_ONE_SESSION):
        for conversation, questions in made:
            if left and place < len(questions):
                kept.setdefault(conversation.id, []).append(questions[place])
                left -= 1
    return [(each, kept[each.id]) for each, _ in made if each.id in kept]


def _figures(answered: Sequence[AnsweredQuestion]) -> dict[str, float]:
    if not answered:
        return {"questions": 0.0}
    return {
        "questions": float(len(answered)),
        "answered_pct": 100 * sum(each.found for each in answered) / len(answered),
        "tokens": sum(each.tokens for each in answered) / len(answered),
        "p95_ms": 1000 * quantile([each.seconds for each in answered], 0.95),
    }


def _show(answered: Sequence[AnsweredQuestion]) -> None:
    for each in answered:
        if not each.found:
            print(f"\n=== {each.session}\n? {each.question.words}\n! {each.question.lines}")
            print(each.text)


if __name__ == "__main__":
    main()
