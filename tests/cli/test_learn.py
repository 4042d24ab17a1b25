"""`hotset learn ...` as a person uses it: what was learned and why, a log, trials, orders and their
undoing, over sessions of a real proxy."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from hotset.learn.events import Change, ChangeDecision, GateVerdict, SessionFigures, change_id
from hotset.nouns.deposit import NoteWritten, Remembered
from hotset.nouns.note import Space
from hotset.runtime.learned_state import learn_event
from hotset.runtime.session_arm import SessionArm, arm_of_session
from hotset.store.sqlite import SqliteStore
from hotset.testing import Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.cli.conftest import NOW, Desk
from tests.proxy.wire import post
from tests.sources.memory.consolidate.making import fact

PROMPT = "Which port does the staging database listen on?"
FACT = "The staging database listens on port 5432."
TOOLS = [{"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}}]
LIMIT = {"over": 9000, "room": 4500}


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
