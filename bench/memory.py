"""What is remembered: is the evidence found, at what price in tokens, and how fast; no model is
called at any time.

    make bench-memory
    HOTSET_BENCH_PARTS=recall,kinds make bench-memory     some of its parts
    HOTSET_BENCH_LARGE=1 make bench-memory                also `size` and `consolidation`

Reads `$HOTSET_BENCH_DATA/memory` and `/trajectories` (`../shared/data` unless it is said). Every
conversation goes the way it goes in the product: into the store, made memories by rules, followed
by the index, asked by `recall`.

recall          LongMemEval, all 940 sessions in one pool, by kind of question; evidence is a turn
                in which the answer stands. `hotset` has the weights that ship; `cross_fitted` those
                chosen on four fifths of the questions and tested on the others, with no session in
                both. Recency counts nothing here: each question was asked near its own sessions and
                far from the others', which is a matter of the pool. `no_dates` also leaves time
                words alone. bm25 and dense go over whole turns; bm25_b1 has the length norm that is
                best for it on this very set. `current`: of questions whose answer changed, how
                often the latest turn comes before the others.
kinds           Assistant chats (LongMemEval), chats about code (sde-bench) and recorded coding
                sessions, each by what ships. `kinds, ...`: the order by the weights alone, by those
                that ship, by those chosen on the other two kinds (`held_out`) and by those chosen
                on all three (`fitted`). Coding sessions are asked by the subject of a commit for
                the session that made it, by a line of a prompt for where it was said before, and by
                the questions of `bench/history.py` whose answer was said. `event order`: which
                session touched a file first or last, and which came before or after a commit;
                `first_of_all`: the right session is told first. `two people`: LoCoMo, by which
                nothing is chosen; from `$HOTSET_BENCH_LOCOMO` or the user's cache folder.
haystacks       LongMemEval by session, among 50 sessions that were drawn at random.
decisions       sde-bench: a bug report, the chat in which it was decided how the code has to
                behave, and 140 other chats. Amended: a later chat changed the decision, and is the
                one to be found; `current` is how often it comes first.
disclosure      A question over its own sessions: all memories and turns loaded, against every step
                of what an agent is told, as the product tells it: the index, its call, the first
                answer in less room and in the usual; `and_more_1`: with the next call and its
                answer on top. `unfolded` goes by the timeline, and no further where that answers.
                Evidence is a turn that is shown whole or as an excerpt; `answer`: of the answer's
                words that stand in the evidence, those that are told. Everything was chosen on one
                half of the conversations: see `the other half`. `among others`: with the sessions
                of other questions in the store.
tasks           Recorded coding sessions in their order, each asked by its first prompt when only
                earlier ones are in the store. Gold: memories of files and commands that the session
                then meets. Kinds weighed by task against one set of weights for all tasks, where
                memories of more than one kind were found; `other_order`: how often the first ten
                differ.
size            100,000 memories.
consolidation   10,000 episodes.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from statistics import fmean
from typing import Any

import platformdirs

from bench.memory_kinds import (
    DECIDED_BY,
    MOST,
    PATIENT,
    PROJECTS,
    AskedQuestion,
    Decision,
    assistant_chats,
    code_chats,
    coding_project,
    coding_sessions,
    decisions,
    event_order,
    figures,
    haystacks,
    left_out,
    locomo_folder,
    order_figures,
    two_people,
)
from bench.memory_sets import (
    DAY,
    Bm25,
    Chat,
    Kept,
    Question,
    SessionPages,
    best,
    bring,
    by_rank,
    collapsed,
    cross_fitted,
    grouped,
    indexed,
    interval,
    judged,
    longmemeval,
    ranked,
    recorded,
    replayed,
    timed,
)
from bench.results import quantile, tell
from hotset.config import load
from hotset.index.embed.embedders import QueryEmbedder as AskingModel
from hotset.index.embed.minilm import MiniLm, find_weights
from hotset.index.embed.port import Embedder
from hotset.index.embed.table import WordVectors
from hotset.index.port import Index
from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import (
    Action,
    Ending,
    Episode,
    Fact,
    Layer,
    MemoryKind,
    MemoryRecord,
    Pitfall,
    Provenance,
    Task,
)
from hotset.nouns.page import PageId, Role, SessionId
from hotset.nouns.retrieval import MAX_TOKENS
from hotset.sources.memory import project_memories as memory_facade
from hotset.sources.memory.kinds import memory_id
from hotset.sources.memory.layers import INDEX_TOKENS
from hotset.sources.memory.recall import RecalledItem, RecallQuery, recall
from hotset.sources.memory.recall_signals import DEFAULT, SignalWeights, wanted_kind
from hotset.sources.memory.tasks import detect_task
from hotset.store.sqlite import SqliteStore
from hotset.text.terms import hits, terms
from hotset.text.words import lower_in_place
from hotset.tokens import count

PARTS = "HOTSET_BENCH_PARTS"
LARGE = "HOTSET_BENCH_LARGE"
_QUICK = ("recall", "kinds", "haystacks", "decisions", "disclosure", "tasks")
_RESULTS = Path(__file__).parent / "results" / "memory.json"
_POOLED = replace(DEFAULT, recent=0.0)
_TURNED = (
    "meaning",
    "window",
    "closely",
    "pointed",
    "session",
    "speaker",
    "told",
    "number",
    "when",
    "latest",
)
_CHANGED = "knowledge-update"
_NAMES = ("recall5", "recall10", "recall20", "ndcg10")
_DISCLOSED = 60  # questions among other sessions
_OTHERS = 30  # sessions of other questions
_ROOMS = (500, 1000, MAX_TOKENS)
_MORE = 2  # times that more is asked for
_NOTHING_MORE = 20  # tokens that say that this was all
_MEMORIES = 100_000
_EPISODES = 10_000
_ASKED = 300
_SETS = ("cc-packmind", "codex-agentv")
_LEAST_NAME = 5  # characters of a name that is told from other words
_COMMAND = re.compile(r"`([^`]+)`")

Figures = dict[str, float]
Sets = dict[str, dict[str, Figures]]


def main() -> None:
    if len(sys.argv) > 1:  # a process of its own, for its memory
        print(json.dumps(_consolidated(int(sys.argv[1]))))
        return
    parts: dict[str, Callable[[], Sets]] = {
        "recall": recall_part,
        "kinds": kinds_part,
        "haystacks": haystacks_part,
        "decisions": decisions_part,
        "disclosure": disclosure_part,
        "tasks": tasks_part,
        "size": size_part,
        "consolidation": consolidation_part,
    }
    quick = ",".join(parts if os.environ.get(LARGE) else _QUICK)
    wanted = os.environ.get(PARTS, quick).split(",")
    for name in wanted:
        made = parts[name]()
        known: Sets = json.loads(_RESULTS.read_text())["sets"] if _RESULTS.exists() else {}
        tell("memory", known | made)  # each time: there are minutes between them


# Is the evidence found?


def recall_part() -> Sets:
    chats, questions = longmemeval()
    with tempfile.TemporaryDirectory(prefix="hotset-memory-") as folder:
        kept = Kept(SessionPages())
        kept.keep(chats)
        kept.remember()
        texts = kept.texts()
        found: dict[str, list[list[str]]] = {}
        more: dict[str, Figures] = {}
        with indexed(kept.store, Path(folder) / "index") as index:
            answers, took = _answers(kept, index, questions, _POOLED)
            groups = grouped(chats, questions)
            cases = [
                ranked(
                    [texts[PageId(item.id)] for item in items],
                    [item.signals for item in items],
                    question.gold,
                    group,
                )
                for question, items, group in zip(questions, answers, groups, strict=True)
            ]
            found["hotset"] = [[texts[PageId(item.id)] for item in items] for items in answers]
            found["cross_fitted"] = cross_fitted(cases, _POOLED.as_dict(), _TURNED)
            more["hotset"] = {
                **_tokens([[item.text for item in items] for items in answers]),
                **took,
            }
            no_dates = replace(_POOLED, when=0.0, latest=0.0)
            found["no_dates"] = [
                [texts[PageId(item.id)] for item in items]
                for items in _answers(kept, index, questions, no_dates)[0]
            ]
        model = _minilm()
        if model is not None:
            with indexed(
                kept.store, Path(folder) / "index", AskingModel(WordVectors(), model)
            ) as index:
                answers, took = _answers(kept, index, questions, _POOLED)
                found["hotset_minilm"] = [
                    [texts[PageId(item.id)] for item in items] for items in answers
                ]
                more["hotset_minilm"] = {
                    **_tokens([[item.text for item in items] for items in answers]),
                    **took,
                }
    found |= _others(collapsed(texts.values()), questions)
    for name in ("bm25", "bm25_b1", "dense", "rrf60"):
        more[name] = _tokens(found[name])
    print(f"memories made of the sessions: {dict(kept.made)}")
    print(_compared(found, questions))
    kinds = ["all", *sorted({question.kind for question in questions})]
    sets = {
        f"longmemeval, {kind}": _table(found, questions, kind, more if kind == "all" else {})
        for kind in kinds
    }
    for name, orders in found.items():
        sets[f"longmemeval, {_CHANGED}"][name]["current"] = _current(chats, questions, orders)
    return sets


def _current(
    chats: Sequence[Chat], questions: Sequence[Question], orders: Sequence[Sequence[str]]
) -> float:
    """Of questions whose answer changed: how often the latest turn comes before the others."""
    when = {text: chat.time for chat in chats for _, text in chat.said}
    first = []
    for question, order in zip(questions, orders, strict=True):
        times = {text: when[text] for text in question.gold}
        if question.kind == _CHANGED and len(set(times.values())) > 1:
            found = next((text for text in order if text in times), None)
            first.append(found is not None and times[found] == max(times.values()))
    return 100 * fmean(first)


def _answers(
    kept: Kept, index: Index, questions: Sequence[Question], weights: SignalWeights
) -> tuple[list[list[RecalledItem]], Figures]:
    answers: list[list[RecalledItem]] = []
    took: list[tuple[float, float]] = []
    for question in questions:
        asking = RecallQuery(
            question.text, question.now, memories=False, most=MOST, deadline=PATIENT
        )
        took.append(
            timed(
                lambda asking=asking: answers.append(
                    list(recall(asking, index, kept.store, weights).items)
                )
            )
        )  # type: ignore[misc]
    wall = [each[0] for each in took]
    return answers, {
        "p50_ms": quantile(wall, 0.5),
        "p95_ms": quantile(wall, 0.95),
        "cpu_ms": fmean(each[1] for each in took),
    }


def _others(texts: Sequence[str], questions: Sequence[Question]) -> dict[str, list[list[str]]]:
    words, leveled = Bm25(1.2, 0.75).learn(texts), Bm25(2.0, 1.0).learn(texts)
    table = WordVectors()
    vectors = table.embed(texts)
    orders: dict[str, list[list[int]]] = defaultdict(list)
    for question in questions:
        by_words, by_meaning = (
            best(words.scores(question.text), 100),
            best(vectors @ table.embed([question.text])[0], 100),
        )
        orders["bm25"].append(by_words)
        orders["bm25_b1"].append(best(leveled.scores(question.text), 100))
        orders["dense"].append(by_meaning)
        orders["rrf60"].append(by_rank(by_words, by_meaning))
    return {
        name: [[texts[at] for at in order[:20]] for order in each] for name, each in orders.items()
    }


def _table(
    found: Mapping[str, Sequence[Sequence[str]]],
    questions: Sequence[Question],
    kind: str,
    more: Mapping[str, Figures],
) -> dict[str, Figures]:
    table = {}
    for name, orders in found.items():
        rows = [
            judged(collapsed(order), q.gold)
            for order, q in zip(orders, questions, strict=True)
            if kind in {"all", q.kind}
        ]
        table[name] = {
            metric: 100 * fmean(column)
            for metric, column in zip(_NAMES, zip(*rows, strict=True), strict=True)
        }
        table[name] |= {"questions": float(len(rows)), **more.get(name, {})}
    return table


def _tokens(orders: Sequence[Sequence[str]]) -> Figures:
    return {"tokens": fmean(sum(count(text) for text in order[:10]) for order in orders)}


def _compared(found: Mapping[str, Sequence[Sequence[str]]], questions: Sequence[Question]) -> str:
    """hotset against the best of the others, question by question."""
    lines = []
    for other in ("bm25", "bm25_b1", "dense", "rrf60"):
        pairs = zip(found["hotset"], found[other], questions, strict=True)
        differences = [
            judged(collapsed(one), q.gold)[1] - judged(collapsed(two), q.gold)[1]
            for one, two, q in pairs
        ]
        mean, low, high = interval(differences)
        lines.append(
            f"recall@10 above {other}: {100 * mean:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
        )
    return "\n".join(lines)


def _minilm() -> MiniLm | None:
    """As `hotset[minilm]` brings it, or as `make bench-tools` has fetched it."""
    sys.path.append(str(platformdirs.user_cache_path("hotset-bench") / "minilm"))
    file = find_weights()
    return None if file is None else MiniLm(file)


# Over kinds of conversations


def kinds_part() -> Sets:
    """Each kind by what ships, their mean, and by weights that were chosen on the other kinds."""
    parts: dict[str, dict[str, list[AskedQuestion]]] = {
        "assistant chats": {"longmemeval": assistant_chats(DEFAULT)},
        "chats about code": {"sde-bench": code_chats(DEFAULT)},
        "coding sessions": defaultdict(list),
    }
    places: dict[str, list[int]] = defaultdict(list)
    sets: Sets = {}
    for name in PROJECTS:
        with coding_project(name) as project, tempfile.TemporaryDirectory() as folder:
            for part, asked in coding_sessions(project, DEFAULT).items():
                parts["coding sessions"][part] += asked
            found = event_order(project, Path(folder))
        sets[f"event order, {name}"] = {"hotset": order_figures(found)}
        for kind, each in found.items():
            places[kind] += each
    sets["event order, all"] = {"hotset": order_figures(places)}
    for kind, named in parts.items():
        for name, asked in named.items():
            sets[f"{kind}, {name}"] = {"hotset": figures(asked)}
    of_kinds = {kind: list(named.values()) for kind, named in parts.items()}
    held_out, chosen = left_out(of_kinds, _POOLED)
    begin = _POOLED.as_dict()
    for kind, weights in chosen.items():
        other = {name: value for name, value in weights.items() if value != begin[name]}
        on = "on all" if kind == "all" else f"without {kind}"
        print(f"weights chosen {on}: {other or 'as shipped'}")
    people = two_people(DEFAULT)
    if people:
        sets["two people, locomo (transfer)"] = {"hotset": figures(people)}
    else:
        print(f"no conversations between two people: {locomo_folder()} has no file of LoCoMo")
    return sets | held_out


def haystacks_part() -> Sets:
    return haystacks(DEFAULT)


# Decisions in chats about code


def decisions_part() -> Sets:
    plain, amended, decoys = decisions()
    return {
        "sde-bench, decisions": _found_chats(plain, decoys),
        "sde-bench, amended": _found_chats(amended, decoys),
    }


def _found_chats(tasks: Sequence[Decision], decoys: Sequence[Chat]) -> dict[str, Figures]:
    chats = [chat for _, several in tasks for chat in several] + list(decoys)
    orders: dict[str, list[list[str]]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="hotset-memory-") as folder:
        kept = Kept(SessionPages())
        kept.keep(chats)
        kept.remember()
        names = {session: chat for chat, session in kept.sessions.items()}
        with indexed(kept.store, Path(folder) / "index") as index:
            for report, _ in tasks:
                items = recall(
                    RecallQuery(report, DECIDED_BY, most=MOST, deadline=PATIENT),
                    index,
                    kept.store,
                ).items
                orders["hotset"].append(collapsed(names[_session(kept, item)] for item in items))
    texts = ["\n".join(text for _, text in chat.said) for chat in chats]
    words, table = Bm25(1.2, 0.75).learn(texts), WordVectors()
    vectors = table.embed(texts)
    for report, _ in tasks:
        by_words, by_meaning = (
            best(words.scores(report), 100),
            best(vectors @ table.embed([report])[0], 100),
        )
        for name, order in (
            ("bm25", by_words),
            ("dense", by_meaning),
            ("rrf60", by_rank(by_words, by_meaning)),
        ):
            orders[name].append([chats[at].id for at in order])
    return {name: _chat_figures(tasks, each) for name, each in orders.items()}


def _session(kept: Kept, item: RecalledItem) -> Any:
    return (
        item.memory.source.session
        if item.memory is not None
        else kept.store.page(PageId(item.id)).session
    )


def _chat_figures(tasks: Sequence[Decision], orders: Sequence[Sequence[str]]) -> Figures:
    figures = {
        f"recall{most}": 100
        * fmean(
            chats[-1].id in order[:most] for (_, chats), order in zip(tasks, orders, strict=True)
        )
        for most in (1, 3, 5)
    }
    if len(tasks[0][1]) > 1:
        first = [
            next((id for id in order if id in {chat.id for chat in chats}), "")
            for (_, chats), order in zip(tasks, orders, strict=True)
        ]
        figures["current"] = 100 * fmean(
            id == chats[-1].id for (_, chats), id in zip(tasks, first, strict=True)
        )
    return figures | {"questions": float(len(tasks))}


# What it costs to be told


def disclosure_part() -> Sets:
    chats, questions = longmemeval()
    told = _Disclosed()
    for question, group in zip(questions, grouped(chats, questions), strict=True):
        is_other = sha256(group.encode()).digest()[-1] % 2
        for name, each in _told_of(question, [chat for chat in chats if chat.id in question.chats]):
            told.add("disclosure, a question over its own sessions", name, each)
            told.add(
                f"disclosure, {'the other half' if is_other else 'the half that was looked at'}",
                name,
                each,
            )
    rng = random.Random(7)
    for question in rng.sample(questions, _DISCLOSED):
        others = rng.sample([chat for chat in chats if chat.id not in question.chats], _OTHERS)
        for name, each in _told_of(
            question, [*(chat for chat in chats if chat.id in question.chats), *others]
        ):
            told.add(f"disclosure, among {_OTHERS} other sessions", name, each)
    return told.figures()


_Telling = tuple[float, float, float | None]
"""Tokens, the share of the evidence, and that of the answer's words, where it has any of the
evidence's."""


class _Disclosed:
    def __init__(self) -> None:
        self._told: dict[str, dict[str, list[_Telling]]] = defaultdict(lambda: defaultdict(list))

    def add(self, title: str, name: str, each: _Telling) -> None:
        self._told[title][name].append(each)

    def figures(self) -> Sets:
        return {
            title: {name: self._row(rows["all"], each) for name, each in rows.items()}
            for title, rows in self._told.items()
        }

    def _row(self, everything: Sequence[_Telling], told: Sequence[_Telling]) -> Figures:
        pairs = list(zip(told, everything, strict=True))
        return {
            "evidence": 100 * fmean(evidence for _, evidence, _ in told),
            "all_of_it": 100 * fmean(evidence == 1 for _, evidence, _ in told),
            "answer": 100 * fmean(answer for _, _, answer in told if answer is not None),
            "tokens": fmean(tokens for tokens, _, _ in told),
            "saved": 100
            * (1 - fmean(each[0] for each in told) / fmean(each[0] for each in everything)),
            "saved_each": 100 * fmean(1 - each[0] / whole[0] for each, whole in pairs),
            "questions": float(len(told)),
        }


def _told_of(question: Question, chats: Sequence[Chat]) -> Iterator[tuple[str, _Telling]]:
    with tempfile.TemporaryDirectory(prefix="hotset-memory-") as folder:
        kept = Kept(SessionPages())
        kept.keep(chats)
        kept.remember()
        with indexed(kept.store, Path(folder) / "index") as index:
            yield from _told(kept, index, question, Path(folder) / "telling")


def _told(
    kept: Kept, index: Index, question: Question, folder: Path
) -> Iterator[tuple[str, _Telling]]:
    """Everything; all memories and no turns; the index with the first answer in more and more room,
    and what follows on it."""
    texts = kept.texts()
    memories = list(kept.store.memories())
    gold = {id: text for id, text in texts.items() if text in question.gold}
    every = sum(count(text) for text in texts.values())
    yield "all", (float(every + sum(memory.tokens for memory in memories)), 1.0, 1.0)
    known = {
        page
        for memory in memories
        for page in memory.source.pages
        if memory.kind is not MemoryKind.EPISODE
    }
    text = "\n".join(memory.text for memory in memories)
    yield (
        "all_memories",
        (
            float(sum(memory.tokens for memory in memories)),
            _share(gold, known),
            _answered(question, text),
        ),
    )
    config = load(project=str(folder), data=str(folder), environ={})
    source = memory_facade.ProjectMemories(
        config, lambda: kept.store, lambda: index, lambda: question.now, logged=False
    )
    memory_facade.SECONDS = PATIENT
    start = source.index(question.text, max_tokens=INDEX_TOKENS)
    for room in _ROOMS:
        tokens, shown, text = float(start.tokens), set[str](), ""
        for more in range(_MORE + 1 if room == MAX_TOKENS else 1):
            answer = source.recall(question.text, max_tokens=room, more=more)
            tokens += count(
                json.dumps(
                    {"name": "recall_memory", "arguments": {"query": question.text, "more": more}}
                )
            )
            tokens += answer.tokens or _NOTHING_MORE
            shown |= _in_full(answer.shown)
            text = f"{text}\n{answer.text}"
            name = f"and_more_{more}" if more else f"hotset_{room}"
            yield name, (tokens, _share(gold, shown), _answered(question, text))
    whole = source.unfold(question.text)
    yield (
        "unfolded",
        (
            float(count(whole.text)),
            _share(gold, _in_full(whole.memories.shown)),
            _answered(question, whole.text),
        ),
    )


def _in_full(shown: Mapping[str, Layer]) -> set[str]:
    """Whose words are shown whole or as an excerpt, not only named."""
    return {id for id, layer in shown.items() if layer is Layer.FULL}


def _answered(question: Question, told: str) -> float | None:
    evidence = "\n".join(question.gold)
    words = [
        term
        for term in terms(question.answer)
        if next(hits(evidence, lower_in_place(evidence), term), None) is not None
    ]
    low = lower_in_place(told)
    return fmean(next(hits(told, low, term), None) is not None for term in words) if words else None


def _share(gold: Mapping[PageId, str], shown: set[Any]) -> float:
    """Of the evidence, by its words: said twice it is one."""
    every = set(gold.values())
    return len({text for id, text in gold.items() if id in shown}) / len(every)


# Kinds by task


def tasks_part() -> Sets:
    differences: dict[str, list[float]] = defaultdict(list)
    others: Counter[str] = Counter()
    totals: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for name in _SETS:
        for task, by_task, for_all, is_other in _weighed_by_task(name):
            for kind in (str(task), "all"):
                others[kind] += is_other
                totals[kind]["by_task"].append(by_task)
                totals[kind]["for_all"].append(for_all)
                differences[kind].append(by_task[3] - for_all[3])
    sets: Sets = {}
    for kind, methods in sorted(totals.items()):
        mean, low, high = interval(differences[kind])
        print(
            f"tasks, {kind}: NDCG@10 by task {100 * mean:+.2f} [{100 * low:+.2f}, "
            f"{100 * high:+.2f}] of {len(differences[kind])}"
        )
        sets[f"tasks, {kind}"] = {
            method: {
                metric: 100 * fmean(column)
                for metric, column in zip(_NAMES, zip(*rows, strict=True), strict=True)
            }
            | {
                "questions": float(len(rows)),
                "other_order": float(others[kind]),
                "ndcg_gain": 100 * mean,
                "gain_low": 100 * low,
                "gain_high": 100 * high,
            }
            for method, rows in methods.items()
        }
    return sets


def _weighed_by_task(name: str) -> Iterator[tuple[Task, list[float], list[float], bool]]:
    """For each session's first prompt, with nothing in the store but what came before it: by task,
    and by one set for all."""
    kept = Kept(SessionPages())
    with (
        tempfile.TemporaryDirectory(prefix="hotset-memory-") as folder,
        indexed(kept.store, Path(folder) / "index") as index,
    ):
        for at, session in enumerate(recorded(name)):
            begin = 1.7e9 + at * DAY
            prompt = next(
                (said["t"] for said in session["msgs"] if said["r"] == "user" and said.get("t")), ""
            )
            used = _used(session)
            gold = frozenset(
                str(memory.id)
                for memory in kept.store.memories()
                if any(each in used for each in _names(memory))
            )
            task = detect_task(prompt).task
            items = recall(
                RecallQuery(prompt, begin, task=task, talk=False, most=200, deadline=PATIENT),
                index,
                kept.store,
            ).items
            if (
                gold and len({item.kind for item in items}) > 1
            ):  # of one kind there is nothing to weigh
                orders = _by_kind(items, task), _by_kind(items, None)
                by_task, for_all = (
                    judged([str(item.id) for item in order], gold) for order in orders
                )
                yield task, by_task, for_all, orders[0][:10] != orders[1][:10]
            known = {each.id for each in kept.store.sessions()}
            replayed(kept.store, session, begin)
            for each in list(kept.store.sessions()):
                if each.id not in known:
                    kept.remember_one(each.id, begin + DAY / 2)
            bring(kept.store, index)


def _used(session: Mapping[str, Any]) -> str:
    """Everything that was called in a session, with what came of it: not the prompt, which is what
    is asked."""
    parts = []
    for said in session["msgs"]:
        parts += [
            call["a"] if isinstance(call["a"], str) else json.dumps(call["a"])
            for call in said.get("calls") or ()
        ]
        if said["r"] == "tool":
            parts.append(said.get("t") or "")
    return "\n".join(parts)


def _names(memory: MemoryRecord) -> frozenset[str]:
    """What it is about: files that an episode changed, commands that a pitfall warns of, paths that
    any other names."""
    detail = memory.detail
    if isinstance(detail, Pitfall):
        return frozenset(
            command for command in _COMMAND.findall(detail.what) if len(command) >= _LEAST_NAME
        )
    told = (
        detail.artifacts
        if isinstance(detail, Episode)
        else [word for word in memory.text.split() if "/" in word]
    )
    named = (Path(each.strip("`'\".,:;()")).name for each in told)
    return frozenset(name for name in named if len(name) >= _LEAST_NAME)


def _by_kind(items: Sequence[RecalledItem], task: Task | None) -> list[RecalledItem]:
    def score(item: RecalledItem) -> float:
        kind = MemoryKind(item.kind)
        wanted = (
            wanted_kind(kind, task)
            if task is not None
            else fmean(wanted_kind(kind, each) for each in Task)
        )
        return item.score + DEFAULT.kind * (wanted - item.signals["kind"])

    return sorted(items, key=lambda item: (-score(item), item.id))


# Very many


def size_part() -> Sets:
    chats, questions = longmemeval()
    with (
        tempfile.TemporaryDirectory(prefix="hotset-memory-") as folder,
        SqliteStore.open(Path(folder) / "store") as store,
    ):
        begin = time.process_time()
        for batch in _batches(_facts(chats), 1000):
            store.keep(Remembered(tuple(batch))).result(60)
        stored = time.process_time() - begin
        begin = time.process_time()
        with indexed(store, Path(folder) / "index") as index:
            built = time.process_time() - begin
            asked = random.Random(7).sample(questions, _ASKED)
            took = [
                timed(
                    lambda q=q: recall(RecallQuery(q.text, q.now, deadline=PATIENT), index, store)
                )  # type: ignore[misc]
                for q in asked
            ][10:]
    wall, cpu = [each[0] for each in took], [each[1] for each in took]
    return {
        f"{_MEMORIES:,} memories": {
            "hotset": {
                "p50_ms": quantile(wall, 0.5),
                "p95_ms": quantile(wall, 0.95),
                "cpu_p50_ms": quantile(cpu, 0.5),
                "cpu_p95_ms": quantile(cpu, 0.95),
                "store_cpu_s": stored,
                "index_cpu_s": built,
            }
        }
    }


def _facts(chats: Sequence[Chat]) -> Iterator[MemoryRecord]:
    """Sentences of real conversations, each a fact."""
    made = 0
    for chat in chats:
        for role, text in chat.said:
            for at, sentence in enumerate(
                part.strip() for part in text.replace("\n", ". ").split(". ")
            ):
                if len(sentence) > 30 and made < _MEMORIES:
                    made += 1
                    id = memory_id(MemoryKind.FACT, f"{chat.id} {role} {made} {at}")
                    yield MemoryRecord(
                        id,
                        MemoryKind.FACT,
                        sentence[:60],
                        sentence,
                        chat.time,
                        Provenance("rules"),
                        Fact(),
                        version=1,
                    )


def _batches(memories: Iterator[MemoryRecord], size: int) -> Iterator[list[MemoryRecord]]:
    batch: list[MemoryRecord] = []
    for memory in memories:
        batch.append(memory)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def consolidation_part() -> Sets:
    """Each size in a process of its own: memory is a process's highest."""
    sets: Sets = {}
    for many in (_EPISODES // 10, _EPISODES):
        command = [sys.executable, "-m", "bench.memory", str(many)]
        told = subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1]
        )
        sets[f"consolidation of {many:,} episodes"] = {
            "hotset": json.loads(told.stdout.splitlines()[-1])
        }
    return sets


def _consolidated(many: int) -> Figures:
    from hotset.sources.memory.consolidation import consolidate  # noqa: PLC0415

    embedder: Embedder = WordVectors()
    chats, _ = longmemeval()
    with (
        tempfile.TemporaryDirectory(prefix="hotset-memory-") as folder,
        SqliteStore.open(Path(folder) / "store") as store,
    ):
        for batch in _batches(_episodes(chats, many), 500):
            store.keep(Remembered(tuple(batch))).result(60)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        (wall, cpu), again = (
            timed(lambda: consolidate(store, embedder.embed, 2e9)),
            timed(lambda: consolidate(store, embedder.embed, 2e9)),
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        versions = sum(1 for _ in store.memories())
    return {
        "seconds": wall / 1000,
        "cpu_s": cpu / 1000,
        "again_cpu_s": again[1] / 1000,
        "peak_mb": peak / 1024,
        "more_mb": (peak - before) / 1024,
        "memories": float(versions),
    }


def _episodes(chats: Sequence[Chat], many: int) -> Iterator[MemoryRecord]:
    """Prompts of real conversations as goals, each in several sessions, with a few actions on a few
    files."""
    prompts = [
        text[:300]
        for chat in chats
        for role, text in chat.said
        if role is Role.USER and len(text) > 40
    ]
    rng = random.Random(7)
    for at in range(many):
        goal = prompts[at % (many // 4 or 1) % len(prompts)]
        about = at % (
            many // 4 or 1
        )  # the same goal is about the same files, and about another one each time
        files = (
            f"src/part{about}/main.py",
            f"src/part{about}/test_main.py",
            f"src/part{about}/other{rng.randrange(20)}.py",
        )
        actions = tuple(
            Action(float(step), tool, files[step % 3])
            for step, tool in enumerate(("Read", "Edit", "Bash pytest"))
        )
        created = 1.7e9 + at * 600.0
        yield MemoryRecord(
            memory_id(MemoryKind.EPISODE, f"bench {at}", created),
            MemoryKind.EPISODE,
            goal[:80],
            f"Asked: {goal}\nDid: {', '.join(action.tool for action in actions)}",
            created,
            Provenance("rules", SessionId(f"session {at}"), "bench"),
            Episode(goal, actions=actions, files=files, artifacts=files[:1]),
            topics=tuple(goal.lower().split()[2:4]),
            task=Task.IMPLEMENTATION,
            ending=rng.choice((Ending.SUCCESS, Ending.SUCCESS, Ending.FAILURE)),
        )


if __name__ == "__main__":
    main()
