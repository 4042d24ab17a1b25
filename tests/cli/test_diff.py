"""`hotset diff`: instead of X we sent Y. A real proxy plans, a scripted provider receives, the
command tells."""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing
from typing import Any

import pytest

from hotset.nouns.knobs import Knobs, Limit
from hotset.store.sqlite import SqliteStore
from hotset.testing import ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.upstream import Call, Say
from tests.cli.conftest import Desk, in_a_process
from tests.proxy.wire import post
from tests.waiting import ask

TOOLS = [
    {
        "name": "Read",
        "description": "Reads a file.",
        "input_schema": {"type": "object", "properties": {}},
    }
]
LONG = "\n".join(f"{number:04d} the needle is not in this line" for number in range(400))
KNOBS = Knobs(limit=Limit(1000, 400), limits={}, early=False)


class Agent:
    """Reads a file in every turn; resends all it knows."""

    def __init__(self, proxy: LocalProxy, text: str = LONG) -> None:
        self.proxy = proxy
        self.text = text
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all of it"}]

    def turn(self, headers: dict[str, str] | None = None) -> None:
        body = {
            "model": "claude-sonnet-4-5",
            "max_tokens": 1000,
            "tools": TOOLS,
            "messages": self.messages,
        }
        answer = post(self.proxy.address, "anthropic", json.dumps(body).encode(), headers)
        assert answer.status == 200, answer.body
        content = answer.json()["content"]
        self.messages.append({"role": "assistant", "content": content})
        results = [
            {
                "type": "tool_result",
                "tool_use_id": block["id"],
                "content": f"{len(self.messages)}\n{self.text}",
            }
            for block in content
            if block["type"] == "tool_use"
        ]
        self.messages.append({"role": "user", "content": results or "Go on"})
        settle(self.proxy)


def settle(proxy: LocalProxy) -> None:
    deadline = time.monotonic() + 120
    while (status := ask(proxy.address)) is None or status["keeping"]:
        assert time.monotonic() < deadline
        time.sleep(0.002)


def reads(_request: object) -> Say:
    return Say("Reading.", (Call("Read", {"path": "all.txt"}),))


@pytest.fixture
def play(desk: Desk):
    """Plays turns of an agent through a proxy; gives what the provider received."""

    def run(
        turns: int,
        script: Any = reads,
        headers: dict[str, str] | None = None,
        text: str = LONG,
        **settings: Any,
    ) -> list[dict[str, Any]]:
        with (
            ScriptedUpstream(script) as upstream,
            LocalProxy(
                desk.data, anthropic_url=upstream.anthropic_url, **{"knobs": KNOBS, **settings}
            ) as proxy,
        ):
            agent = Agent(proxy, text)
            for _ in range(turns):
                agent.turn(headers)
            return [json.loads(request.body) for request in upstream.requests]

    return run


def results(body: dict[str, Any]) -> list[str]:
    """What the provider saw of each result."""
    found = []
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_result":
                inner = block["content"]
                found.append(
                    inner if isinstance(inner, str) else "".join(part["text"] for part in inner)
                )
    return found


def test_each_page_that_was_not_sent_whole_is_told_with_what_stood_there(desk: Desk, play):
    received = play(3)

    told = desk.run("diff", "last", "3", "--json", "--full").json()

    assert told["changed"]
    assert [change["sent"] for change in told["changes"]] == results(received[2])
    assert [change["instead_of"][0]["content"] for change in told["changes"]] == [
        f"2\n{LONG}",
        f"4\n{LONG}",
    ]
    assert {change["form"] for change in told["changes"]} == {"excerpt"}
    assert [change["fresh"] for change in told["changes"]] == [False, True]
    assert all(change["tokens"] < change["whole"] for change in told["changes"])
    assert told["estimated"]["sent"] < told["estimated"]["whole"]
    assert told["measured"]["sent"] > 0
    ours = {tool["name"] for tool in received[2]["tools"]} - {"Read"}
    assert set(told["tools"]) == ours != set()


def test_a_person_reads_instead_of_x_we_sent_y(desk: Desk, play):
    play(2)

    ran, full = desk.run("diff", "last", "2"), desk.run("diff", "last", "last", "--full")

    assert "instead of" in ran.out
    assert "an excerpt, when it was first shown" in ran.out
    assert "    - 2" in ran.out
    assert "0399 the needle" not in "".join(
        line for line in ran.out.splitlines() if line.startswith("    -")
    )
    assert "    - 0399 the needle is not in this line" in full.out
    assert "beside the client's tools, 3 of ours" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 120
    assert "hotset recall p" in ran.err


def test_a_run_that_left_is_one_change_with_the_reference_that_stayed(desk: Desk, play):
    received = play(
        8,
        knobs=Knobs(limit=Limit(0, 0), limits={}, keep=2, most=4, low=0.0, early=False, echo=False),
    )

    told = desk.run("diff", "last", "last", "--json").json()

    (gone,) = [change for change in told["changes"] if change["form"] == "gone"]
    stands = [
        block
        for message in received[-1]["messages"]
        for block in _texts(message)
        if "CTX-REF" in block
    ]
    assert gone["sent"] in stands
    assert gone["reference"]["id"] in gone["sent"]
    assert len(gone["instead_of"]) == len(gone["reference"]["pages"]) > 2
    assert gone["cause"] in ("grown", "pays")
    shown = desk.run("diff", "last", "last").out
    reference = gone["reference"]
    assert f"{reference['id']} stands for {len(gone['instead_of'])} pages" in shown
    assert f"hotset recall {reference['id']}" in shown.replace("\n", " ")
    opened = desk.run("recall", reference["id"], "--json").json()
    assert [page["id"] for page in opened["pages"]] == reference["pages"]
    assert opened["reference"]["turns"] == reference["turns"]
    read = desk.run("recall", reference["id"])
    assert read.code == 0
    assert all(page in read.out for page in reference["pages"])


def _texts(message: dict[str, Any]) -> list[str]:
    content = message["content"]
    return (
        [content]
        if isinstance(content, str)
        else [block["text"] for block in content if block["type"] == "text"]
    )


def test_what_the_client_never_saw_is_told(desk: Desk, play):
    asked = []

    def script(request: Any) -> Say:
        asked.append(request)
        if len(asked) == 2:
            return Say("", (Call("search_history", {"query": "needle"}),))
        return reads(request)

    received = play(3, script)

    told = desk.run("diff", "last", "3", "--json").json()
    before = desk.run("diff", "last", "2", "--json").json()

    assert len(received) == 4
    (spliced,) = told["spliced"]
    assert any("search_history" in raw for raw in (*spliced["before"], spliced["instead"]))
    assert before["spliced"] == []
    assert [each["tool"] for each in before["retrievals"]] == ["search_history"]
    assert before["measured"]["calls"] == 2
    assert "the model asked for something back once" in desk.run("diff", "last", "2").out


@pytest.mark.row("C9")
@pytest.mark.parametrize("how", ["a header", "a setting"])
def test_switched_off_the_full_messages_go_through_and_the_turn_says_so(desk: Desk, play, how: str):
    headers, settings = (
        ({"x-hotset-window": "off"}, {}) if how == "a header" else (None, {"off": True})
    )

    received = play(3, headers=headers, **settings)

    assert results(received[2]) == [f"2\n{LONG}", f"4\n{LONG}"]
    assert received[2]["tools"] == TOOLS
    ran = desk.run("diff", "last", "3")
    assert "went out as it came, byte for byte" in ran.out
    told = desk.run("diff", "last", "3", "--json").json()
    assert (told["changed"], told["changes"], told["tools"]) == (False, [], [])
    saved = desk.run("savings", "--json").json()["total"]
    assert saved["turns"] == 3
    assert saved["saved"]["dollars_pct"] == pytest.approx(0.0, abs=0.01)


@pytest.mark.row("C9")
def test_a_session_that_was_on_can_be_switched_off_and_on_again(desk: Desk):
    with (
        ScriptedUpstream(reads) as upstream,
        LocalProxy(desk.data, anthropic_url=upstream.anthropic_url, knobs=KNOBS) as proxy,
    ):
        agent = Agent(proxy)
        for off in (False, False, True, False):
            agent.turn({"x-hotset-window": "off"} if off else None)
        received = [json.loads(request.body) for request in upstream.requests]

    assert results(received[2]) == [f"2\n{LONG}", f"4\n{LONG}"]
    assert results(received[3])[0] == results(received[1])[0] != f"2\n{LONG}"
    changed = [
        bool(desk.run("diff", "last", str(turn), "--json").json()["changes"])
        for turn in (1, 2, 3, 4)
    ]
    assert changed == [False, True, False, True]


def test_without_tools_of_ours_nothing_is_added(desk: Desk, play):
    received = play(2, inject=False)

    told = desk.run("diff", "last", "2", "--json", env={"HOTSET_INJECT": "no"}).json()

    assert (told["tools"], told["changes"], told["changed"]) == ([], [], False)
    assert received[1]["tools"] == TOOLS


def test_show_points_to_a_turn_that_was_changed(desk: Desk, play, filled: Desk):
    assert "hotset diff" not in filled.run("show", "last").err
    play(3)

    assert "What a model saw instead: hotset diff s" in desk.run("show", "last").err


def test_a_turn_that_is_not_there_is_a_finding(filled: Desk):
    ran = filled.run("diff", "last", "99")

    assert (ran.code, ran.out) == (1, "")
    assert "has no turn 99; it has 4 turns" in ran.err
    assert filled.run("diff", "last", "first").code == 2
    assert "went out as it came" in filled.run("diff", "last", "1").out


@pytest.mark.row("V5")
def test_a_checkpoint_is_told_once_for_each_mark_of_a_session(desk: Desk, play):
    play(
        12,
        knobs=Knobs(limit=Limit(0, 0), limits={}, keep=2, most=5, low=0.0, early=False, echo=False),
        budget=40_000,
    )

    with closing(SqliteStore.open(desk.data)) as store:
        (session,) = store.sessions()
        marks = [event for event in store.events(session.id) if event.name == "Checkpoint"]

    assert [event.detail["mark"] for event in marks] == [25, 50]
    assert [event.detail["window"] for event in marks] == [40_000, 40_000]
    first, second = (event.turn for event in marks)
    assert 1 < first < second < 12
    assert all(
        float(event.detail["tokens"]) * 100 >= float(event.detail["mark"]) * 40_000
        for event in marks
    )


@pytest.mark.row("V5")
def test_checkpoints_are_listed_with_what_is_needed_to_go_back_and_are_found_by_a_search(
    desk: Desk, play
):
    play(12, knobs=Knobs(limit=Limit(0, 0), limits={}, early=False, echo=False), budget=40_000)

    listed = desk.run("checkpoints", "--json").json()

    assert [each["mark"] for each in listed] == [50, 25]  # the newest first
    turn, text = listed[0]["turn"], listed[0]["text"]
    assert text.startswith("Checkpoint of session ")
    assert "Wanted: " in text
    assert f"get_turn_range(1, {turn})" in text
    table = desk.run("checkpoints", "last")
    assert (table.code, "50 %" in table.out) == (0, True)
    found = desk.run("search", "checkpoint of session", "--type", "record", "--json").json()
    assert json.dumps(text)[1:-1] in json.dumps(found)


@pytest.mark.row("V5")
@pytest.mark.parametrize(("agent", "form"), [("Lean", "excerpt"), ("engineer", None), ("", None)])
def test_the_header_that_names_an_agent_gives_it_the_knobs_of_its_kind(
    desk: Desk, play, agent: str, form: str | None
):
    play(2, headers={"x-hotset-agent": agent}, knobs=None, text=LONG[:6000])

    told = desk.run("diff", "last", "2", "--json").json()

    assert [change["form"] for change in told["changes"]] == ([form] if form else [])


@pytest.mark.row("C8")
def test_a_proxy_tells_its_figures_while_it_serves(desk: Desk):
    with (
        ScriptedUpstream(reads) as upstream,
        LocalProxy(
            desk.data, anthropic_url=upstream.anthropic_url, knobs=KNOBS, budget=90_000
        ) as proxy,
    ):
        agent = Agent(proxy)
        for _ in range(3):
            agent.turn()
        told = ask(proxy.address)
        shown = in_a_process(desk, ("status",), desk.environ(), b"").out

    assert told is not None
    assert told["window"] == {"off": False, "inject": True, "budget": 90_000, "profile": ""}
    figures = told["metrics"]
    assert figures["turns"] == 3
    assert 0 < figures["prompt_per_turn"] < figures["whole_per_turn"]
    assert (figures["dedup_pct"], figures["prefix_kept_pct"], figures["summary_failures"]) == (
        0.0,
        100.0,
        0,
    )
    assert figures["saved_dollars"] > 0
    assert told["alerts"] == []
    assert "since start" in shown
    assert "window   on, each agent by its own kind, at most 90,000 tokens" in shown


TELL = (
    "import os, urllib.request as u; print(u.urlopen(os.environ['ANTHROPIC_BASE_URL'] + "
    "'/hotset/status').read().decode())"
)
SWITCHES = ("--off", "--budget", "9000", "--profile", "lean", "--no-tools")
SWITCHED = {"off": True, "inject": False, "budget": 9000, "profile": "lean"}


@pytest.mark.row("C9")
@pytest.mark.slow
def test_up_is_switched_by_flags_and_says_so(desk: Desk):
    with desk.serving(*SWITCHES):
        assert desk.run("status", "--json").json()["proxy"]["window"] == SWITCHED
        joined = desk.run("wrap", "true")

    assert "window off: requests go out as they come" in (desk.home / "up.log").read_text()
    assert "the proxy that serves has off = True; to change that, start it again" in joined.err


@pytest.mark.row("C9")
@pytest.mark.slow
def test_wrap_passes_its_switches_on_to_the_proxy_that_it_starts(desk: Desk):
    ran = desk.run("wrap", *SWITCHES, sys.executable, "-c", TELL)

    assert ran.json()["window"] == SWITCHED


def test_a_switch_that_cannot_be_used_is_told_before_anything_starts(desk: Desk):
    ran = desk.run("up", "--profile", "fast")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("hotset: profile (--profile) must be one of default, lean")


def test_all_figures_of_a_turn_are_in_the_same_tokens(desk: Desk, play):
    """A third more of the provider's for one of ours: what the only page saves is what the turn
    saves, but for our tools."""
    play(2)

    told = desk.run("diff", "last", "2", "--json").json()

    (change,) = told["changes"]
    saved = told["estimated"]["whole"] - told["estimated"]["sent"]
    assert abs(change["whole"] - change["tokens"] - saved) < 0.15 * change["whole"]
    assert change["whole"] < told["estimated"]["whole"]
    assert (
        "all figures but the measured one are estimated, in the provider's tokens"
        in desk.run("diff", "last", "2").out
    )
