"""Teachers propose changes of knobs from earlier sessions, and later ones decide."""

from __future__ import annotations

import random
from itertools import count

import msgspec
import pytest
from bench.teach_made_up import TOLD, TOOLS, made_up_session, made_up_tellings

from hotset.config import listed_prices, load
from hotset.learn.events import ChangeDecision, KnobsSetting
from hotset.learn.gate import SessionPair
from hotset.learn.state import decide, explored_changes
from hotset.nouns.knobs import Knobs, Limit
from hotset.nouns.memory import MemoryKind, Trust, Used
from hotset.nouns.page import Kind, Role
from hotset.nouns.price import Prices
from hotset.nouns.turn import Event
from hotset.replay.formats.export import stored_sessions
from hotset.replay.learning import KnownSessions, keep_learned, plan_learning
from hotset.replay.report import Ruling
from hotset.replay.teach import TEACHERS, gate_explored, teach
from hotset.replay.teach_memory import Telling, ToldSession, told_sessions
from hotset.replay.teach_window import ByReplay, asked_back_live, line_moves, window_moves
from hotset.replay.teaching import Gain, Proposal, TeachingMaterial, choose
from hotset.replay.trials import Trials, split_sessions, teaching_sessions
from hotset.sources.memory import ProjectMemories
from hotset.store.port import Where
from hotset.testing.ram_store import RamStore
from hotset.testing.store_talk import StoreTalk, text_message
from tests.learn.test_trials import proposed
from tests.learn.worlds import Store

RULING = Ruling(Prices(listed_prices()), "anthropic", 128_000)
SMALL = {"over": 1125, "room": 725}
LIMITS = {"limits": TEACHERS["limits"]}


@pytest.fixture(scope="module")
def recorded():
    rng = random.Random(1)
    return [made_up_session(number, "report", rng) for number in range(18)]


@pytest.fixture(scope="module")
def sessions(recorded):
    return teaching_sessions(recorded, RULING)


@pytest.fixture(scope="module")
def trials():
    return Trials(RULING)


@pytest.mark.slow
def test_a_limit_four_times_too_small_is_found_mended_and_explained(sessions, trials):
    knobs = Knobs().with_changes({"tools.report": SMALL})

    (lesson,) = [
        each
        for each in teach(TeachingMaterial(sessions, trials), knobs, teachers=LIMITS)
        if each.change.is_safe
    ]

    assert lesson.verdict.passed, lesson.verdict.why
    assert lesson.change.knobs["tools.report"]["over"] >= 2 * SMALL["over"]
    assert lesson.change.before == {"tools.report": SMALL}
    assert lesson.sentence.startswith("report results are shown whole up to ")
    assert "instead of 1,125" in lesson.sentence
    assert "12 of 12 later sessions are touched: they cost " in lesson.sentence


@pytest.mark.slow
def test_the_saving_that_is_told_has_the_price_of_a_fault_once(sessions, trials):
    material = TeachingMaterial(sessions, trials)
    before = Knobs().with_changes({"tools.report": SMALL})
    after = Knobs().with_changes({"tools.report": {"over": 4500, "room": 2900}})
    proposal = Proposal({"tools.report": {"over": 4500, "room": 2900}}, "so", is_safe=True)
    teachers = {"planted": Planted(proposal)}

    (lesson,) = teach(material, before, teachers=teachers)

    found, pairs = lesson.verdict.measured, trials.pairs(material.newer, before, after)
    paid = sum(pair.after for pair in pairs) / sum(pair.before for pair in pairs)
    assert found.saved == pytest.approx(1 - paid)
    assert 0 < 3 * found.saved < lesson.verdict.gain
    assert (found.touched, found.sessions) == (len(pairs), len(pairs))
    fewer = sum(pair.faults_before - pair.faults_after for pair in pairs)
    replies = sum(session.calls for session in material.newer)
    assert found.fewer_faults == pytest.approx(100 * fewer / replies)
    assert f"they cost {found.saved:.1%} less, with {found.fewer_faults:.1f} fewer retrievals" in (
        lesson.sentence
    )


class Planted(ByReplay):
    """A teacher that proposes this."""

    def __init__(self, proposal):
        self.proposal = proposal

    def propose(self, material, knobs):
        yield self.proposal


def test_what_is_told_counts_only_the_sessions_that_a_change_touches(sessions, trials):
    proposal = Proposal({"regret": 2.8}, "so")
    (lesson,) = teach(
        TeachingMaterial(sessions, trials), Knobs(), teachers={"planted": Planted(proposal)}
    )
    pairs = trials.pairs(sessions[6:], Knobs(), Knobs().with_changes({"regret": 2.8}))
    touched = [pair for pair in pairs if pair.before != pair.after]

    assert 0 < len(touched) < len(pairs)
    found = lesson.verdict.measured
    assert (found.touched, found.sessions) == (len(touched), len(pairs))
    assert found.before == pytest.approx(sum(pair.before for pair in touched))


def explored(knob, sign, knobs=("regret",)):
    """The state of a store whose exploring sessions liked a knob low (-1) or high (1)."""
    store, chance = Store(), random.Random(2)
    store.explore(knobs)
    at = knobs.index(knob)
    for number in range(300):
        store.run_session(
            f"s{number}", lambda here: 0.8 * sign * here[at] + chance.gauss(0, 0.05), 1.0
        )
        for name, payload in decide(store.state, 1.0):
            store.add(name, payload, 1.0)
    return store.state


@pytest.mark.slow
def test_what_exploring_sessions_settled_on_is_replayed_on_later_sessions(sessions, trials):
    state = explored("regret", -1)
    [(change, _)] = explored_changes(state)
    assert change.knobs["regret"] < 1

    (lesson,) = gate_explored(TeachingMaterial(sessions, trials), Knobs(), state)

    assert lesson.change == change
    assert lesson.verdict.passed, lesson.verdict.why
    assert lesson.verdict.sessions == len(sessions)
    cheap = Knobs().with_changes(change.knobs)
    dear = explored("regret", 1)
    (refused,) = gate_explored(TeachingMaterial(sessions, trials), cheap, dear)
    assert not refused.verdict.passed


def test_what_exploring_sessions_settled_on_waits_for_later_sessions(sessions, trials):
    state = explored("regret", -1)

    assert not list(gate_explored(TeachingMaterial(sessions[:7], trials), Knobs(), state))
    [(change, _)] = explored_changes(state)
    late = msgspec.structs.replace(state.changes[change.id], since=sessions[-3].time)
    state = msgspec.structs.replace(state, changes={change.id: late})
    assert not list(gate_explored(TeachingMaterial(sessions, trials), Knobs(), state))


def test_what_no_replay_shows_is_passed_on_to_a_trial(sessions, trials):
    state = explored("toolbox.ghost", 1, ("toolbox.ghost",))

    (lesson,) = gate_explored(TeachingMaterial(sessions, trials), Knobs(), state)

    assert lesson.verdict.passed
    assert lesson.verdict.sessions == 0
    assert "a trial has to show" in lesson.sentence


def test_what_a_person_took_back_is_not_proposed_and_what_fell_needs_later_sessions(
    sessions, trials
):
    values = {"regret": 0.4375}
    teachers = {"planted": Planted(Proposal(values, "so", scale=0.1))}
    material = TeachingMaterial(sessions, trials)
    store = Store()
    id = proposed(store, values)
    store.add("ChangeAdopted", ChangeDecision(id, "so"))
    fallen = Store()
    for event in store.events:
        fallen.add(*event[1:])
    store.add("LearningReset", KnobsSetting(("regret",)))
    fallen.add("ChangeRolledBack", ChangeDecision(id, "fell"), sessions[7].time)

    assert not list(teach(material, Knobs(), teachers=teachers, state=store.state))
    (lesson,) = teach(material, Knobs(), teachers=teachers, state=fallen.state)
    assert lesson.verdict.sessions == len(sessions) - 8
    assert lesson.verdict.since == sessions[8].time
    fallen.add("ChangeAdopted", ChangeDecision(id, "so", by="person"))
    fallen.add("ChangeRolledBack", ChangeDecision(id, "fell"), sessions[-4].time)
    assert not list(teach(material, Knobs(), teachers=teachers, state=fallen.state))


def test_what_is_asked_back_live_is_read_of_the_given_sessions_only():
    store = RamStore()
    talk = StoreTalk(store, key="early")
    turn = talk.asks(text_message(Role.USER, "Go."))
    page = next(iter(store.pages(Where(session=turn.turn.session))))
    detail = {"refault": True, "ids": page.id}
    for session in (turn.turn.session, "late"):
        store.keep(Event("Retrieved", 1.0, session, 1, detail)).result()

    assert sum(asked_back_live(store, {turn.turn.session}).values()) == 1
    assert asked_back_live(store, set()) == {}


def test_nothing_is_shown_longer_where_limits_are_right(sessions, trials):
    lessons = list(teach(TeachingMaterial(sessions, trials), Knobs(), teachers=LIMITS))

    assert not [lesson for lesson in lessons if lesson.change.is_safe and lesson.verdict.passed]


def test_a_knob_that_a_person_set_is_left_alone(sessions, trials):
    knobs = Knobs().with_changes({"tools.report": SMALL})
    lessons = teach(
        TeachingMaterial(sessions, trials),
        knobs,
        teachers=LIMITS,
        pinned=frozenset({"tools.report"}),
    )

    assert not [each for each in lessons if "tools.report" in each.change.knobs]


def test_teaching_ends_when_its_time_is_up_and_goes_on_with_what_was_replayed(sessions):
    ticks = count()
    trials = Trials(RULING, until=5, clock=lambda: float(next(ticks)))

    assert list(teach(TeachingMaterial(sessions, trials), Knobs())) == []
    assert trials.replays == 5


def test_a_replay_is_made_once_and_not_for_limits_that_a_session_does_not_meet(sessions):
    trials = Trials(RULING)
    before = trials.run(sessions[0], Knobs())

    assert trials.run(sessions[0], Knobs().with_changes({"tools.Other": SMALL})) is before
    assert trials.replays == 1


def test_every_replayed_result_is_counted_as_short_or_whole(sessions, trials):
    forms = trials.forms(sessions[:2], Knobs().with_changes({"tools.report": SMALL}))
    shown = [forms[f"tools.{tool}"] for tool in TOOLS]

    assert sum(each.short + each.whole for each in shown) == 2 * 24
    assert forms["tools.report"].short >= forms["tools.report"].back > 0
    assert all(each.short == 0 for tool, each in zip(TOOLS, shown, strict=True) if tool != "report")


def test_sessions_of_a_store_cost_what_the_recorded_ones_do(recorded, tmp_path):
    store, file = RamStore(), tmp_path / "none.jsonl"
    file.touch()
    keep_learned(store, plan_learning(recorded[0], file, KnownSessions(store), None))

    (stored,) = teaching_sessions(stored_sessions(store), RULING)
    (direct,) = teaching_sessions([recorded[0]], RULING)

    assert stored.time == direct.time
    assert [each.size for each in stored.results.values()] == [
        each.size for each in direct.results.values()
    ]


def test_earlier_sessions_choose_and_later_ones_decide(sessions):
    older, newer = split_sessions(sessions, 1 / 3)

    assert (len(older), len(newer)) == (6, 12)
    assert max(each.time for each in older) < min(each.time for each in newer)


def test_nothing_is_chosen_from_few_sessions_or_without_a_gain(sessions, trials):
    few = TeachingMaterial(sessions[:9], trials)

    assert choose(few, Knobs(), [{"keep": 2}]) is None
    assert choose(TeachingMaterial(sessions, trials), Knobs(), [{"cache.marks": False}]) is None


def test_a_gain_with_many_more_faults_does_not_count():
    cheaper = [SessionPair(str(at), at, 100.0, 80.0 + at, 2, 2) for at in range(5)]
    faulty = [SessionPair(each.session, each.time, 100.0, each.after, 2, 4) for each in cheaper]

    assert Gain.of(cheaper).score > 0.1
    assert Gain.of(faulty).score == float("-inf")


@pytest.fixture
def told(tmp_path):
    """Writes the log of 30 sessions in which a kind of memory, or none, is told wrongly."""

    def write(wrong: MemoryKind | None) -> TeachingMaterial:
        store, rng = RamStore(), random.Random(4)
        config = load(project=str(tmp_path), data=str(tmp_path), environ={})
        memories = ProjectMemories(config, lambda: store, lambda: None)
        ids = {
            kind: memories.remember(f"A {kind}.", kind=kind, by="person", trust=Trust.PERSON).id
            for kind in TOLD
        }
        for number in range(30):
            for deposit in made_up_tellings(number, wrong, ids, rng):
                store.keep(deposit).result()
        return TeachingMaterial((), Trials(RULING), store)

    return write


def test_a_kind_of_memory_that_is_told_wrongly_is_told_less_and_no_other(told):
    material = told(MemoryKind.PITFALL)

    (lesson,) = teach(material, Knobs(), teachers={"telling": TEACHERS["telling"]})

    assert lesson.verdict.passed, lesson.verdict.why
    assert lesson.change.knobs.keys() == {"memory.tells.pitfall"}
    found = lesson.verdict.measured
    assert (found.saved, found.after < found.before) == (None, True)
    assert "points lost by tellings a session" in lesson.sentence
    assert "cost" not in lesson.sentence
    assert lesson.sentence.startswith("a pitfall is told from a likelihood of ")
    assert not lesson.change.is_safe


def test_where_tellings_help_nothing_is_told_less(told):
    lessons = teach(told(None), Knobs(), teachers={"telling": TEACHERS["telling"]})

    assert not [lesson for lesson in lessons if lesson.verdict.passed]


def test_tellings_are_read_with_their_kind_worth_and_use(told):
    sessions = told_sessions(told(MemoryKind.PITFALL).store)
    tellings = [each for session in sessions for each in session.tellings]

    assert len(sessions) == 30
    assert {each.kind for each in tellings} == set(TOLD)
    assert all(0.5 <= each.worth <= 0.95 for each in tellings)
    helped = {each.kind for each in tellings if each.how is Used.HELPED}
    assert helped == {MemoryKind.FACT, MemoryKind.PROCEDURE}


def test_a_telling_that_helped_is_dear_to_lose():
    quiet = Knobs().with_changes({"memory.tells.fact": 0.9})
    helped = ToldSession("s", 0.0, (Telling(MemoryKind.FACT, 0.6, Used.HELPED),))
    unused = ToldSession("s", 0.0, (Telling(MemoryKind.FACT, 0.6, None),))

    assert helped.loss(Knobs()) < helped.loss(quiet)
    assert unused.loss(Knobs()) > unused.loss(quiet)


def test_a_file_s_ending_has_a_limit_of_its_own():
    knobs = Knobs().with_changes({"files.md": SMALL, "tools.Read": {"over": 9000, "room": 5000}})

    assert knobs.limit_of(Kind.FILE, "Read", "md") == Limit(1125, 725)
    assert knobs.limit_of(Kind.FILE, "Read", "py") == Limit(9000, 5000)


def test_every_move_is_a_change_of_knobs_that_exist():
    moves = [*window_moves(Knobs()), *line_moves(Knobs())]

    assert len(moves) > 30
    for move in moves:
        assert Knobs().with_changes(move) != Knobs()
    spoiled = Knobs().with_changes({"lines.names": -4.0})
    assert {"lines.names": -8.0} in list(line_moves(spoiled))
