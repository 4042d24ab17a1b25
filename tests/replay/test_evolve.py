"""Evolution of knobs: the search, what a configuration is worth, and what is refused."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import pytest

from hotset.config import load
from hotset.nouns.knobs import HistoryKnobs, Knobs
from hotset.nouns.page import Kind
from hotset.replay.conversation import RecordedSession
from hotset.replay.evolve import (
    Evolution,
    EvolveResult,
    PointCache,
    evolved_parts,
    keep_result,
    mean_bounds,
    moved_knobs,
    read_result,
)
from hotset.replay.evolve_fitness import FitnessWeights, SessionScore, knob_changes
from hotset.replay.evolve_front import draw_front
from hotset.replay.evolve_history import read_question
from hotset.replay.evolve_recall import RecallPart, question_recalls, recall_genes
from hotset.replay.evolve_search import Gene, front, key_of, search
from hotset.replay.formats import read
from hotset.replay.report import Ruling
from hotset.sources.history.passages import PageOfPassages, score_passages, work_of_calls
from hotset.sources.memory.recall_signals import LoggedCandidate, RecallLog
from tests.replay.asking import write_sessions

GENES = (
    Gene("share", 0.5, "retrieve", 0.0, 1.0),
    Gene("chars", 300, "encode", 30, 3000, log=True),
    Gene("policy", "recency", "eviction", choices=("recency", "use", "size")),
    Gene("echo", True, "forms", choices=(True, False)),
)


def worth(point, session):
    """Best at share 0.8, 900 characters, policy `size`; a session adds its own level."""
    share, chars = point.get("share", 0.5), point.get("chars", 300)
    right = 0.02 * (point.get("policy", "recency") == "size")
    return session / 10 - abs(share - 0.8) / 10 - abs(chars - 900) / 9000 + right


def found_by(judge, budget=400, seed=0, sessions=16):
    return search(GENES, judge, range(sessions), seed=seed, budget=budget)


def test_a_search_over_mixed_types_comes_close_to_the_best_point():
    result = found_by(lambda point, sessions: [worth(point, each) for each in sessions])

    best = result.whole(16)[0].point
    assert abs(best["share"] - 0.8) < 0.05
    assert abs(best["chars"] - 900) < 150
    assert best["policy"] == "size"
    assert "echo" not in best  # it brings nothing
    assert len(result.trials) == 400


def test_the_same_seed_tries_the_same_points_and_another_seed_others():
    first, again, other = (
        list(
            found_by(
                lambda point, sessions: [worth(point, each) for each in sessions], 150, seed=seed
            ).trials
        )
        for seed in (3, 3, 4)
    )

    assert first == again
    assert first != other


def test_most_points_are_tried_on_a_few_sessions_only():
    replays = []

    def judge(point, sessions):
        replays.extend((key_of(point), each) for each in sessions)
        return [worth(point, each) for each in sessions]

    found_by(judge, 300, sessions=48)

    assert len(set(replays)) < 300 * 48 / 3


def test_values_stay_in_their_ranges_and_are_of_their_type():
    rng = random.Random(1)
    for gene in GENES:
        value = gene.start
        for _ in range(300):
            value = gene.move(value, rng)
            assert type(value) is type(gene.start)
            assert value in gene.choices if gene.choices else gene.low <= value <= gene.high


def test_no_point_of_the_front_is_beaten_in_both():
    points = [(0.9, 0.5), (0.8, 0.6), (0.95, 0.7), (0.7, 0.3), (0.9, 0.55)]

    assert [points[at] for at in front(points)] == [(0.7, 0.3), (0.9, 0.5), (0.95, 0.7)]


def test_the_bounds_are_those_of_students_t():
    mean, low, high = mean_bounds([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], 0.01)

    # 4.5 and 2.998 (t of 7 degrees of freedom at 99 %) times a standard error of 0.866
    assert (round(mean, 2), round(low, 1), round(high, 1)) == (4.5, 1.9, 7.1)


def test_latency_counts_from_a_tenth_of_a_second_on():
    weights = FitnessWeights(0.6, 0.3, 0.1)

    assert weights.fitness(SessionScore(1.0, 0.5, 90.0)) == pytest.approx(0.75)
    assert weights.fitness(SessionScore(1.0, 0.5, 1100.0)) == pytest.approx(0.65)


def test_both_numbers_of_a_limit_are_one_change_that_the_knobs_take():
    changes = knob_changes({"limit.over": 2000, "limit.room": 3000, "keep": 6}, Knobs())

    assert changes == {"keep": 6, "limit": {"over": 2000, "room": 2000}}
    assert Knobs().with_changes(changes).limit.room == 2000


def test_the_quick_scores_are_those_of_the_search_itself():
    rng = random.Random(5)
    words = ("clock", "wheel", "spring", "hand", "face", "tooth", "of", "the")
    kinds = (Kind.TOOL_RESULT, Kind.TOOL_CALL, Kind.RESPONSE)
    texts = ["\n".join(" ".join(rng.choices(words, k=9)) for _ in range(20)) for _ in range(12)]
    calls = {f"c{number}": f"src/{rng.choice(words)}.py" for number in range(12)}
    question = "Which tooth of the `spring wheel` is broken?"
    for _ in range(30):
        numbers = ("of_page", "of_call", "of_neighbour", "of_phrase", "of_work", "of_names")
        knobs = HistoryKnobs(
            **{name: rng.uniform(0, 2) for name in (*numbers, "calls", "replies", "saturation")},
            length=rng.random(),
            passage=rng.choice((120, 300, 700)),
        )
        pages = [
            PageOfPassages.of(rng.choice(kinds), "Read", call, text, knobs.passage)
            for call, text in zip(calls.values(), texts, strict=True)
        ]
        slow = score_passages(pages, question, work_of_calls(calls, knobs), knobs)

        work = work_of_calls(calls, HistoryKnobs(of_names=1.0))
        quick = read_question(question, pages, work).scores(knobs)

        assert sorted(score for _, _, score in slow) == pytest.approx(
            sorted(score for score in quick.tolist() if score)
        )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> list[RecordedSession]:
    return list(read([write_sessions(tmp_path_factory.mktemp("books") / "books.jsonl")]))


@pytest.fixture(scope="module")
def parts(recorded):
    return {part.name: part for part in evolved_parts(recorded, [], Knobs(), Ruling(load().prices))}


def test_what_is_better_on_later_sessions_passes_and_the_knobs_take_it(parts):
    result = Evolution(Knobs(), budget=120).run(parts["history"])

    assert result.passed, result.why
    assert result.after.task > result.before.task + 0.2
    assert result.change.knobs["history.of_call"] > 0.6
    assert result.change.before["history.of_call"] == 0.6
    turned = Knobs().with_changes(result.change.knobs)
    less = 1 - math.exp(-result.verdict.gain)
    assert f"{less:.1%} less is missing per session" in result.why
    assert moved_knobs(result, Knobs()) == {}
    assert moved_knobs(result, turned)["history.of_call"][0] == 0.6
    assert moved_knobs(result, Knobs().with_changes({"keep": 9})) == {}  # no search asks for it
    assert turned.with_changes(result.change.before) == Knobs()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_where_relevance_is_shuffled_nothing_is_adopted(parts, seed):
    shuffled = parts["history"].shuffled(1000 + seed)

    assert not Evolution(Knobs(), budget=80, seed=seed).run(shuffled).passed


def test_what_only_shows_less_is_refused_where_needs_are_shuffled(parts):
    window = replace(parts["window"], studied=parts["window"].studied[:16])

    result = Evolution(Knobs(), budget=12).run(window.shuffled(7))

    assert not result.passed
    assert result.tried == 12


def test_shuffled_needs_are_things_that_were_said_before(parts):
    session = parts["window"].shuffled(3).studied[0]
    studied, _ = session.stretches[0]

    needs = [
        (at, action)
        for at, actions in studied.actions.items()
        for action in actions
        if action.needs
    ]
    assert needs
    assert all(max(where) < at for at, action in needs for where in action.needs.values())


def test_a_search_that_was_killed_goes_on_from_what_it_has_measured(parts, tmp_path):
    history = parts["history"]
    first = Evolution(Knobs(), budget=40, folder=tmp_path).run(history)
    [file] = tmp_path.glob("*.points.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:20]) + lines[20][:15])  # killed in the middle of a line

    again = Evolution(Knobs(), budget=40, folder=tmp_path).run(history)

    assert (again.change, again.verdict, again.front) == (first.change, first.verdict, first.front)
    known = PointCache.open(tmp_path, file.name.removesuffix(".points.jsonl"))
    assert known.scores(history, Knobs(), range(24))
    assert known.measured == 0


def test_each_further_look_at_the_same_later_sessions_needs_more(parts, tmp_path):
    history = parts["history"]
    first, other = (
        Evolution(Knobs(), seed=seed, budget=40, folder=tmp_path).run(history) for seed in (0, 1)
    )
    again = Evolution(Knobs(), budget=40, folder=tmp_path).run(history)
    alone = Evolution(Knobs(), seed=1, budget=40).run(history)

    assert (first.looks, other.looks, again.looks, alone.looks) == (1, 2, 1, 1)
    assert again.verdict == first.verdict
    assert other.change.id == alone.change.id
    assert other.verdict.low < alone.verdict.low
    assert "look 2" in other.why


def test_a_knob_that_a_person_holds_is_not_searched(recorded):
    held = frozenset({"history.of_call", "limits"})
    names = {
        gene.name
        for part in evolved_parts(recorded, [], Knobs(), Ruling(load().prices), held=held)
        for gene in part.genes
    }

    assert "history.of_page" in names
    assert "history.of_call" not in names
    assert not any(name.startswith("limits.") for name in names)


def test_the_search_has_more_than_300_configurations_and_every_part(parts):
    genes = [*parts["history"].genes, *parts["window"].genes]

    assert {gene.part for gene in genes} == {
        *("encode", "store", "retrieve", "manage", "forms", "eviction")
    }
    assert {type(gene.start) for gene in genes} >= {int, float, bool, str}
    points = {key_of({gene.name: value}) for gene in genes for value in gene.sides()}
    assert len(points) > 50  # and each generation adds two dozen


def recalls(many: int, seed: int = 0) -> list[RecallLog]:
    """The good one is told by the turns around it, which counts little by default."""
    rng = random.Random(seed)
    logs = []
    for number in range(many):
        candidates = [
            LoggedCandidate(f"{number}-{at}", {"words": rng.random(), "window": rng.random() / 2})
            for at in range(20)
        ]
        candidates[7] = LoggedCandidate(f"{number}-7", {"words": 0.4, "window": 0.9})
        logs.append(RecallLog(tuple(candidates), frozenset({f"{number}-7"})))
    return logs


def test_weights_of_recall_are_found_on_the_projects_own_recalls():
    part = RecallPart.of(recalls(200), recall_genes(Knobs()))

    result = Evolution(Knobs(), budget=120).run(part)

    assert result.passed, result.why
    turned = Knobs().with_changes(result.change.knobs).memory.signals
    assert turned.get("window", 0.3) > 0.3 * turned.get("words", 1.0)
    assert not Evolution(Knobs(), budget=120).run(part.shuffled(5)).passed


def test_questions_with_marked_evidence_become_recalls(tmp_path):
    def conversation(number, has_answer):
        said = f"The {('lantern', 'violin', 'saddle')[number]} costs {40 + number} dollars."
        return [
            {"role": "user", "content": said, "has_answer": has_answer},
            {"role": "assistant", "content": "I will remember that for you."},
        ]

    rows = [
        {
            "question": "How much does the violin cost?",
            "question_date": "2026/02/03 (Tue) 10:00",
            "haystack_session_ids": ["a", "b", "c"],
            "haystack_dates": ["2026/01/03 (Sat) 10:00"] * 3,
            "haystack_sessions": [conversation(number, number == 1) for number in range(3)],
        }
    ]
    file = tmp_path / "questions.json"
    file.write_text(json.dumps(rows))

    [log] = question_recalls(file)

    assert len(log.good) == 1
    assert log.candidates[0].id in log.good
    assert all("recent" not in each.signals for each in log.candidates)


def test_a_result_is_kept_and_drawn(parts, tmp_path):
    part = Evolution(Knobs(), budget=30).run(parts["history"])
    result = EvolveResult(1.0, 0, FitnessWeights(), (part,))
    keep_result(tmp_path / "evolve", result)

    assert read_result(tmp_path / "evolve") == result
    assert read_result(tmp_path / "nowhere") is None
    drawn = draw_front(result)
    assert drawn.startswith("<svg")
    assert "in force" in drawn
    assert drawn.count("<circle") >= len(part.front)
