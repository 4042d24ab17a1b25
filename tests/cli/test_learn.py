"""`hotset learn ...` as a person uses it: what was learned and why, a log, trials, orders and their
undoing, over sessions of a real proxy."""

from __future__ import annotations

import json
import random
import time
from contextlib import closing
from dataclasses import replace

import pytest
from bench.teach_made_up import made_up_session

import hotset
from hotset.config import load
from hotset.learn.events import Change, ChangeDecision, GateVerdict, SessionFigures, change_id
from hotset.nouns.deposit import NoteWritten, Remembered
from hotset.nouns.note import Space
from hotset.nouns.turn import Event
from hotset.replay.learning import KnownSessions, keep_learned, plan_learning
from hotset.runtime.learned_state import learn_event, take_decisions
from hotset.runtime.learning import Learning
from hotset.runtime.session_arm import SessionArm, arm_of_session
from hotset.sources.memory.recall_signals import DEFAULT
from hotset.store.sqlite import SqliteStore
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.cli.conftest import NOW, Desk
from tests.learn.worlds import DAY, Store
from tests.proxy.wire import post
from tests.sources.memory.consolidate.making import episode, fact

PROMPT = "Which port does the staging database listen on?"
FACT = "The staging database listens on port 5432."
TOOLS = [{"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}}]
LIMIT = {"over": 9000, "room": 4500}
FIRSTS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "hazel", "ivory", "lunar")
LASTS = ("gate", "hall", "inlet", "jetty", "kiln", "lodge", "mill", "nook", "orchard", "pier")
LASTS += ("quarry", "spire", "tower")
PORTS = "its service restarts every night at three, keeps data under /srv and listens on port"


def write(desk: Desk, *events) -> None:
    with closing(SqliteStore.open(desk.data)) as store:
        for name, payload in events:
            store.keep(learn_event(name, payload, NOW)).result()


def adopted(by="limits"):
    knobs = {"tools.Bash": LIMIT}
    id = change_id(knobs, by)
    why = "Bash results are shown up to 4,500 characters: 14 of 31 were asked back"
    return id, (
        ("ChangeProposed", Change(id, knobs, {}, by, why)),
        ("ChangeGated", GateVerdict(id, True, 0.05, 0.01, 0.09, 12, why="passed: +5 %")),
        ("ChangeAdopted", ChangeDecision(id, "it saves 5 %")),
    )


@pytest.fixture
def worked(desk: Desk) -> Desk:
    """A project with one session, which was told of a memory."""
    with SqliteStore.open(desk.data) as store:
        store.keep(Remembered((fact(FACT),))).result()
    with (
        ScriptedUpstream(lambda _request: Say("Port 5432.")) as upstream,
        LocalProxy(desk.data, anthropic_url=upstream.anthropic_url) as proxy,
    ):
        body = {
            "model": "claude-sonnet-4-5",
            "max_tokens": 99,
            "tools": TOOLS,
            "messages": [{"role": "user", "content": PROMPT}],
        }
        said = {"x-hotset-session": "one"}
        reply = post(proxy.address, "anthropic", json.dumps(body).encode(), said).json()
        body["messages"] += [
            {"role": "assistant", "content": reply["content"]},
            {"role": "user", "content": "Thanks, that works."},
        ]
        told = {**said, "x-hotset-outcome": "success"}
        post(proxy.address, "anthropic", json.dumps(body).encode(), told)
    return desk


def open_sessions(desk: Desk, many: int) -> list[SessionArm]:
    """The arms of so many new sessions."""
    with (
        ScriptedUpstream(lambda _request: Say("Port 5432.")) as upstream,
        LocalProxy(desk.data, anthropic_url=upstream.anthropic_url) as proxy,
    ):
        for number in range(many):
            body = {
                "model": "claude-sonnet-4-5",
                "max_tokens": 99,
                "tools": TOOLS,
                "messages": [{"role": "user", "content": f"{PROMPT} {number}"}],
            }
            said = {"x-hotset-session": f"tried-{number}"}
            post(proxy.address, "anthropic", json.dumps(body).encode(), said)
    with closing(SqliteStore.open(desk.data)) as store:
        tried = [each.id for each in store.sessions() if "tried-" in each.key]
        return [arm_of_session(store, id) for id in tried]


@pytest.mark.row("V12")
def test_sessions_explore_knobs_where_a_person_lets_them_and_that_is_told_in_numbers(worked):
    bad = worked.run("learn", "trial", "explore=50%", "--knob", "nothing")
    assert bad.code in (1, 2)
    assert worked.run("learn", "trial", "explore=90%", "--knob", "regret").code == 0

    explored = [dict(arm.explored) for arm in open_sessions(worked, 8) if arm.explored]
    assert explored
    assert all(each.keys() == {"regret"} for each in explored)
    assert worked.run("learn", "now", "--all", "--minutes", "0.1").code == 0

    told = worked.run("learn", "status", "--json").json()
    assert told["explores"] == 0.9
    [belief] = [each for each in told["beliefs"] if each["context"] is None]
    assert (belief["name"], belief["default"]) == ("regret", 7.0)
    assert belief["sessions"] == len(explored)
    assert told["contexts"] >= 1


@pytest.mark.row("M9")
def test_the_log_has_every_offer_with_its_strategies_and_how_the_task_came_out(worked):
    log = worked.run("learn", "log", "--json").json()

    offer = next(each for each in log if "sem" in " ".join(each["selected_memories"]))
    assert offer["door"] == "offer"
    assert offer["turn"] == 1
    assert {each["type"] for each in offer["retrieval_strategies"]} >= {"memory"}
    assert all(each["latency_ms"] > 0 for each in offer["retrieval_strategies"])
    assert offer["outcome"] == "success"
    assert offer["task_completed"] is True
    assert "Port" not in worked.run("learn", "log").out
    assert worked.run("learn", "log", "no-such").code == 1


@pytest.mark.row("V12")
def test_what_was_learned_is_told_with_its_reason_and_undone_by_the_command_it_names(worked):
    id, events = adopted()
    write(worked, *events)

    told = worked.run("learn", "status").out
    assert id in told
    assert "14 of 31 were asked back" in told
    assert f"undo: hotset learn reset {id}" in told
    assert "tokens' worth" not in told
    why = worked.run("learn", "why", "tools.Bash", "--json").json()
    assert (why["source"], why["value"]) == ("learned", LIMIT)
    assert worked.run("learn", "reset", "tools.Bash").code == 0
    assert worked.run("learn", "why", "tools.Bash", "--json").json()["source"] == "default"
    assert worked.run("learn", "status", "--json").json()["changes"][0]["stage"] == "reset"


def test_a_knob_says_who_decides_about_it(worked):
    _, events = adopted()
    write(worked, *events)
    settings = worked.home / "own.toml"
    settings.write_text("[knobs]\nkeep = 7\n")
    env = {"HOTSET_CONFIG": str(settings)}

    assert worked.run("learn", "why", "keep", "--json", env=env).json()["source"] == "file"
    assert worked.run("learn", "why", "keep", "--json").json()["source"] == "default"
    assert worked.run("learn", "freeze", "tools.Bash", "rest=4000").code == 0
    frozen = worked.run("learn", "why", "rest", "--json").json()
    assert (frozen["source"], frozen["value"]) == ("frozen", 4000)
    assert worked.run("learn", "why", "tools.Bash", "--json").json()["value"] == LIMIT
    assert worked.run("learn", "unfreeze").code == 0
    assert worked.run("learn", "why", "rest", "--json").json()["value"] == 6000
    near = worked.run("learn", "why", "kep")
    assert near.code == 1
    assert "did you mean keep" in near.err


def test_an_order_tells_its_price_and_bad_ones_change_nothing(worked):
    before = worked.run("learn", "status", "--json").json()
    assert worked.run("learn", "freeze", "keep=8").out.strip().endswith(".")
    assert worked.run("learn", "unfreeze").code == 0
    for bad in (
        ("freeze", "keep=-1"),
        ("freeze", "nothing=1"),
        ("trial", "off=5%"),
        ("trial", "off=95%"),
        ("trial", "off"),
        ("trial", "nobody=10%"),
        ("trial", "off=60%", "lean=40%"),
    ):
        ran = worked.run("learn", *bad)
        assert ran.code in (1, 2), (bad, ran)
        assert ran.err
    assert worked.run("learn", "status", "--json").json() == before


@pytest.mark.row("M10")
def test_a_trial_gives_a_share_of_new_sessions_and_compares_them(worked):
    assert "100%" in worked.run("learn", "trial").out
    assert worked.run("learn", "trial", "off=10%").code == 0
    for number in range(40):
        for arm, cost in (("default", 50.0), ("off", 100.0)):
            figures = SessionFigures(
                session=f"{arm}{number}", arm=arm, cost=cost, whole=100.0, turns=4, success=1.0
            )
            write(worked, ("SessionObserved", figures))

    default, control = worked.run("learn", "compare", "--json").json()
    assert (default["name"], control["name"]) == ("default", "off")
    assert (default["sessions"], control["sessions"]) == (40, 40)
    assert (default["cost"], control["cost"]) == (0.5, 1.0)
    cost = next(each for each in control["differences"] if each["figure"] == "cost")
    assert cost["low"] > 0
    told = worked.run("learn", "compare").out
    assert "off against default" in told
    assert worked.run("learn", "trial", "off=0%").code == 0
    assert len(worked.run("learn", "trial", "--json").json()) == 1
    _, ended = worked.run("learn", "compare", "--json").json()
    assert ended["until"] > 0
    assert {**ended, "until": 0, "share": 0.1} == control
    assert "off (ended) against default: " in worked.run("learn", "compare").out
    assert worked.run("learn", "status", "--json").json()["observed"] == 80


@pytest.mark.row("M10")
def test_strategies_of_recall_are_tried_and_a_session_of_theirs_recalls_by_them(worked):
    names = [each["name"] for each in worked.run("learn", "profiles", "--json").json()]
    assert set(names) == {
        *("default", "semantic-heavy", "episodic-heavy", "balanced", "off", "lean")
    }
    every = [each["name"] for each in worked.run("learn", "profiles", "--all", "--json").json()]
    assert {*names, "engineer", "librarian"} <= set(every)
    ran = worked.run("learn", "trial", "semantic-heavy=45%", "episodic-heavy=45%", "--json")
    assert [arm["share"] for arm in ran.json()] == pytest.approx([0.1, 0.45, 0.45])
    arms = open_sessions(worked, 12)
    heavy = [arm for arm in arms if arm.name.endswith("-heavy")]
    assert heavy
    for arm in heavy:
        assert arm.values["memory.signals"][arm.name.removesuffix("-heavy")] > 0


@pytest.mark.row("M11")
def test_a_profile_that_halves_success_is_rolled_back(worked):
    assert worked.run("learn", "trial", "lean=50%").code == 0
    for number in range(60):
        for arm, success in (("default", 1.0), ("lean", float(number % 2))):
            figures = SessionFigures(
                session=f"{arm}{number}", arm=arm, success=success, cost=60.0, whole=100.0
            )
            write(worked, ("SessionObserved", figures))

    assert worked.run("learn", "now").code == 0

    arms = [arm["name"] for arm in worked.run("learn", "trial", "--json").json()]
    assert arms == ["default"]


def outcomes(*changes: str, **success: float) -> list[tuple[str, SessionFigures]]:
    """Sixty sessions of each arm, with learned changes and the share that came out well."""
    return [
        (
            "SessionObserved",
            SessionFigures(
                f"{arm}-{at}-{share}",
                arm,
                changes,
                success=float(at < 60 * share),
                cost=4.0,
                whole=9.0,
            ),
        )
        for at in range(60)
        for arm, share in success.items()
    ]


@pytest.mark.row("M11")
@pytest.mark.slow
def test_weights_of_recall_are_learned_within_bounds_and_rolled_back_when_they_hurt(
    desk, monkeypatch
):
    """A program asks for things by name: facts come first, and it opens the latest work instead."""
    for name in ("HOME", "HOTSET_CONFIG"):
        monkeypatch.setenv(name, desk.env[name])
    names = [f"{first}{last}" for first in FIRSTS for last in LASTS]
    now = time.time()
    facts = [
        fact(f"{name}: {PORTS} {at}.", created=now - 300 * DAY) for at, name in enumerate(names)
    ]
    works = [
        episode(f"Move {name} to another rack.", session=f"s{at}", created=now - DAY)
        for at, name in enumerate(names)
    ]
    with closing(SqliteStore.open(desk.data)) as store:
        store.keep(Remembered((*facts, *works))).result()

    def first(name: str, session: str = "") -> str:
        return memory.memories.recall(name, task="review", session=session).recall.items[0].id

    with hotset.open(desk.project, data=desk.data) as memory:
        for at, name in enumerate(names):
            assert first(name, f"ask-{at}") == facts[at].id
            memory.memories.read(works[at].id, session=f"ask-{at}")
    assert desk.run("learn", "now", "--minutes", "0.2").code == 0

    [row] = desk.run("learn", "status", "--json").json()["changes"]
    assert (row["by"], row["stage"], row["measured"]["touched"]) == ("recall", "trial", 87)
    for knob, value in row["knobs"].items():
        usual = DEFAULT.as_dict()[knob.removeprefix("memory.signals.")]
        assert 0.25 <= value / usual <= 4, knob
    with hotset.open(desk.project, data=desk.data) as memory:
        assert first(names[0]) == facts[0].id

    write_at(desk, now - DAY, *outcomes(**{row["id"]: 1.0, "default": 1.0}))
    assert desk.run("learn", "now", "--minutes", "0.01").code == 0
    [row] = desk.run("learn", "status", "--json").json()["changes"]
    assert row["stage"] == "adopted", row["evidence"]
    with hotset.open(desk.project, data=desk.data) as memory:
        assert first(names[0]) == works[0].id

    write_at(desk, now, *outcomes(row["id"], default=0.4))
    assert desk.run("learn", "now", "--minutes", "0.01").code == 0
    [row] = desk.run("learn", "status", "--json").json()["changes"]
    assert row["stage"] == "rolled back", row
    with hotset.open(desk.project, data=desk.data) as memory:
        assert first(names[0]) == facts[0].id


@pytest.mark.row("V13")
def test_verify_checks_that_the_fold_gives_the_snapshot_and_names_a_damaged_event(worked):
    for number in range(80):
        figures = SessionFigures(session=f"s{number}", success=1.0, cost=60.0, whole=100.0)
        write(worked, ("SessionObserved", figures))
    assert worked.run("learn", "now").code == 0
    assert worked.run("verify").code == 0

    with closing(SqliteStore.open(worked.data)) as store:
        damaged = learn_event("SessionObserved", SessionFigures(session="x"), NOW)
        damaged.detail["data"] = '{"session": 1'
        store.keep(damaged).result()
    ran = worked.run("verify", "--json")
    assert ran.code == 1
    assert [each["what"] for each in ran.json()["damages"]] == ["event"]
    assert worked.run("learn", "status", "--json").json()["observed"] == 80

    with closing(SqliteStore.open(worked.data)) as store:
        space = Space("learned", keeps=2)
        wrong = store.notes(space)["state-2"].value.replace(b'"number":', b'"number": ')
        store.keep(NoteWritten(space, "state-2", wrong, NOW)).result()
    whats = [each["what"] for each in worked.run("verify", "--json").json()["damages"]]
    assert "learned state" in whats


def write_at(desk: Desk, time: float, *events) -> None:
    with closing(SqliteStore.open(desk.data)) as store:
        store.keep(*(learn_event(name, payload, time) for name, payload in events)).result()


@pytest.mark.row("V12")
@pytest.mark.slow
def test_what_exploring_sessions_settle_on_is_replayed_tried_adopted_and_reaches_a_session(worked):
    chance, rng = random.Random(2), random.Random(1)
    none = worked.home / "none.jsonl"
    none.touch()
    with closing(SqliteStore.open(worked.data)) as store:
        for number in range(24):
            session = replace(made_up_session(number, "report", rng), model="gpt-4o")
            keep_learned(store, plan_learning(session, none, KnownSessions(store), None))
    explored = Store()
    explored.explore(("regret",))
    for number in range(150):
        explored.run_session(f"s{number}", lambda here: -0.8 * here[0] + chance.gauss(0, 0.05))
    with closing(SqliteStore.open(worked.data)) as store:
        store.keep(
            *(Event(name, 1.0, detail={"data": data}) for _, name, data, _ in explored.events)
        ).result()
        take_decisions(store, 1_760_000_000.0 + 7.5 * DAY)
    [row] = worked.run("learn", "status", "--json").json()["changes"]
    assert (row["by"], row["stage"]) == ("beliefs", "proposed")

    ran = worked.run("learn", "now", "--minutes", "0.2")

    assert ran.code == 0
    assert "16 of 16 later sessions are touched: they cost " in ran.out
    rows = worked.run("learn", "status", "--json").json()["changes"]
    [row] = [each for each in rows if each["by"] == "beliefs"]
    assert (row["stage"], row["measured"]["touched"]) == ("trial", 16), row["evidence"]
    assert worked.run("learn", "trial", "explore=0%").code == 0
    pairs = [
        ("SessionObserved", SessionFigures(f"{arm}{at}", arm, (), success=1.0, cost=4, whole=9))
        for at in range(60)
        for arm in (row["id"], "default")
    ]
    write_at(worked, 1_700_000_000.0, *pairs)
    assert worked.run("learn", "now", "--minutes", "0.01").code == 0
    why = worked.run("learn", "why", "regret", "--json").json()
    assert (why["source"], why["value"]) == ("learned", row["knobs"]["regret"])
    assert open_sessions(worked, 1)[0].values["regret"] == row["knobs"]["regret"]


def test_a_change_is_undone_by_its_id_and_allowed_again(worked):
    id, events = adopted()
    write(worked, *events)
    assert f"took back {id}" in worked.run("learn", "reset", id).out
    write(worked, *events)
    assert worked.run("learn", "why", "tools.Bash", "--json").json()["source"] == "default"
    assert "nothing was done" in worked.run("learn", "reset", id).out

    assert "tools.Bash" in worked.run("learn", "unreset", id).out
    assert "nothing was done" in worked.run("learn", "unreset").out
    write(worked, *events)
    assert worked.run("learn", "why", "tools.Bash", "--json").json()["source"] == "learned"
    assert worked.run("learn", "reset", "c-00000000").code in (1, 2)
    assert worked.run("learn", "reset", id, "keep").code in (1, 2)


def test_freezing_without_a_value_changes_no_open_session_and_with_one_it_does(worked):
    _, events = adopted()
    [early] = open_sessions(worked, 1)
    write(worked, *events)
    told = worked.run("learn", "freeze", "tools.Bash").out
    assert "open sessions are not changed" in told
    assert "next request" not in told
    with closing(SqliteStore.open(worked.data)) as store:
        learning = Learning(load(project=str(worked.project), data=str(worked.data), environ={}))
        learning.refresh(store)
        assert learning.with_orders(early) == early
        assert "next request" in worked.run("learn", "freeze", "keep=8").out
        learning.refresh(store)
        assert learning.with_orders(early).values == {"keep": 8}
    assert "nothing was done" in worked.run("learn", "freeze", "tools.Bash").out


def test_a_limit_of_a_tool_is_set_by_a_table_or_to_never(worked):
    for words in (["tools.Bash={over=9000, room=6000}"], ["tools.Bash={over=9000,", "room=6000}"]):
        assert worked.run("learn", "freeze", *words).code == 0
        why = worked.run("learn", "why", "tools.Bash", "--json").json()
        assert (why["source"], why["value"]) == ("frozen", {"over": 9000, "room": 6000})
        assert why["what"] == "Other limits for some tools, by name"
    assert worked.run("learn", "freeze", "tools.Read=never").code == 0
    assert worked.run("learn", "why", "tools.Read", "--json").json()["value"]["over"] == 0
    wrong = worked.run("learn", "freeze", "prefetch.lins=3")
    assert wrong.code in (1, 2)
    assert "prefetch.lines" in wrong.err
    assert len(wrong.err) < 200


def test_a_part_of_a_frozen_group_says_by_what_it_is_frozen(worked):
    _, events = adopted()
    write(worked, *events)
    worked.run("learn", "freeze", "tools")
    refused = worked.run("learn", "unfreeze", "tools.Bash")
    assert refused.code in (1, 2)
    assert "learn unfreeze tools" in refused.err
    why = worked.run("learn", "why", "tools.Bash", "--json").json()
    assert (why["source"], why["value"]) == ("frozen", LIMIT)
    assert why["undo"] == "hotset learn unfreeze tools"
    assert "thawed: tools" in worked.run("learn", "unfreeze", "tools").out
    assert "nothing was done" in worked.run("learn", "unfreeze", "tools").out


def test_a_knob_names_who_decides_about_it_in_a_group_and_where_learning_is_off(worked):
    id, events = adopted()
    write(worked, *events)
    group = worked.run("learn", "why", "tools", "--json").json()
    assert (group["source"], group["value"]) == ("learned", {"Bash": LIMIT})
    assert "tools.Bash (learned)" in group["why"]
    env = {"HOTSET_LEARN": "off"}
    off = worked.run("learn", "why", "tools.Bash", "--json", env=env).json()
    assert (off["source"], off["value"]) == ("default", None)
    assert "HOTSET_LEARN" in off["why"]
    worked.run("learn", "off")
    off = worked.run("learn", "why", "tools.Bash", "--json").json()
    assert (off["source"], off["undo"]) == ("default", "hotset learn on")
    assert id in off["why"]
    worked.run("learn", "on")
    worked.run("learn", "trial", "explore=20%", "--knob", "regret")
    explored = worked.run("learn", "why", "regret", "--json").json()
    assert explored["source"] == "default"
    assert explored["why"].startswith("20% of new sessions explore other values")


def test_a_trial_is_refused_with_what_to_type(worked):
    for words, told in (
        (["off=10"], "off=10%"),
        (["off=10%", "off=20%"], "named twice"),
        (["off=10%", "--knob", "keep"], "explore"),
        (["episodic-heavi=10%"], "episodic-heavy"),
        (["explore=10%", "--knob", "regrett"], "regret"),
    ):
        ran = worked.run("learn", "trial", *words)
        assert ran.code in (1, 2)
        assert told in ran.err


def test_exploring_is_told_and_ended_by_a_reset_of_everything(worked):
    assert "Exploring: 20%" in worked.run("learn", "trial", "explore=20%").out
    assert "Exploring: 20%" in worked.run("learn", "status").out
    arms = worked.run("learn", "compare", "--json").json()
    assert [(arm["name"], arm["share"]) for arm in arms] == [("default", 0.8), ("explore", 0.2)]
    assert "no session explores any more" in worked.run("learn", "reset").out
    assert "Exploring" not in worked.run("learn", "status").out


def test_the_log_as_json_has_every_entry(worked):
    open_sessions(worked, 22)
    every = worked.run("learn", "log", "--json").json()
    assert len(every) > 20
    assert worked.run("learn", "log", "--json", "-n", "0").json() == every
    assert worked.run("learn", "log", "--json", "-n", "3").json() == every[:3]
    assert len(worked.run("learn", "log").out.splitlines()) == 21
    assert len(worked.run("learn", "log", "-n", "0").out.splitlines()) == len(every) + 1


def test_a_comparison_of_few_sessions_shows_no_interval_and_dollars_are_told(worked):
    assert worked.run("learn", "trial", "off=10%").code == 0
    figures = {"cost": 50.0, "whole": 100.0, "success": 1.0, "rereads": 2, "dollars": 0.25}
    for number in range(3):
        for arm in ("default", "off"):
            write(worked, ("SessionObserved", SessionFigures(f"{arm}{number}", arm, **figures)))
    told = worked.run("learn", "compare").out
    assert "re-reads: too few sessions to tell (3 pairs)" in told
    assert "[" not in told
    assert "rereads" not in told
    assert "$0.2500" in told
    assert "1 on trial" in worked.run("learn", "status").out


def test_learning_is_switched_off_and_on_by_one_command(worked):
    assert "Learning is off" in worked.run("learn", "off").out
    assert not worked.run("learn", "status", "--json").json()["is_on"]
    assert "Learning is on" in worked.run("learn", "on").out
    told = worked.run("learn", "status", env={"HOTSET_LEARN": "off"}).out
    assert "Learning is off by HOTSET_LEARN" in told
    assert "learn on" not in told
    assert "nothing was done" in worked.run("learn", "on").out


def test_commands_that_read_say_so_where_nothing_is_kept(desk):
    for command in ("status", "log", "profiles", "compare", "trial"):
        assert desk.run("learn", command).code == 0
        desk.run("learn", command, "--json").json()
    assert desk.run("learn", "now").code == 1
