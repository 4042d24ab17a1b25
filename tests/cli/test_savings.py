"""`hotset savings` and the figures of `hotset status`: what was measured and what is estimated,
told apart."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace

import pytest

from hotset.dialects import DIALECTS
from hotset.nouns.bill import Bill
from hotset.nouns.deposit import Billed, ReplyReceived, RequestReceived
from hotset.nouns.message import DialectName, Usage
from hotset.nouns.turn import Event, Outcome
from hotset.store.sqlite import SqliteStore
from hotset.testing.store_talk import StoreTalk, id_of, kept
from hotset.tokens import count as count_tokens
from tests.cli.conftest import NOW, Desk

SONNET = Bill(
    "claude-sonnet-4-5",
    "anthropic",
    sent=Usage(cache_read=8_000, cache_write=2_000, output=500),
    whole=Usage(cache_read=36_000, cache_write=4_000, output=500),
    usage=Usage(cache_read=8_000, cache_write=2_000, output=500),
    overhead_ms=4.0,
)
"""$3 and $15 for a million tokens: measured 0.0174 dollars, everything 0.0333."""


def bill(desk: Desk, key: str, *bills: Bill, when: float = NOW) -> str:
    with closing(SqliteStore.open(desk.data)) as store:
        talk = StoreTalk(store, key=key, time=when)
        for number, each in enumerate(bills):
            turn = talk.turn(f"{key} {number}", "done")
            kept(store, Billed(id_of(store, turn), each))
    return turn.session


@pytest.fixture
def paid(desk: Desk) -> Desk:
    bill(
        desk,
        "old",
        replace(SONNET, broke="pays"),
        replace(SONNET, faults=1, refaults=1, calls=2),
        when=NOW - 20 * 86400,
    )
    bill(desk, "new", SONNET)
    return desk


def test_savings_tell_measured_and_estimated_apart_and_add_up(paid: Desk):
    told = paid.run("savings", "--json").json()

    total = told["total"]
    assert (total["turns"], total["calls"], total["hidden_calls"]) == (3, 4, 1)
    assert total["measured"]["dollars"] == pytest.approx(3 * 0.0174)
    assert total["estimated"]["dollars"] == pytest.approx(3 * 0.0333)
    assert total["saved"]["dollars"] == pytest.approx(3 * 0.0159)
    assert (
        total["measured"]["prompt"],
        total["estimated"]["prompt"],
        total["saved"]["tokens_pct"],
    ) == (30_000, 120_000, 75.0)
    assert (total["breaks"], total["measured"]["cache_read_pct"]) == ({"pays": 1}, 80.0)
    assert [each["session"]["key"] for each in told["sessions"]] == ["new", "old"]
    for part in ("measured", "estimated", "saved"):
        each = [session["account"][part]["dollars"] for session in told["sessions"]]
        assert sum(each) == pytest.approx(total[part]["dollars"])


def test_savings_are_data_that_a_person_can_read(paid: Desk):
    ran = paid.run("savings")

    told = {line.split("  ")[0]: line for line in ran.out.splitlines()}
    assert ran.code == 0
    assert "$0.0522" in told["cost"]
    assert "measured" in told["cost"]
    assert "$0.0477" in told["saved"]
    assert "estimated, 47.7 %" in told["saved"]
    assert "1 pays" in told["prefix"]
    assert "33.3 per 100 turns" in told["faults"]
    assert "together" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 120


@pytest.mark.parametrize("wide", [40, 80, 100, 160])
def test_figures_are_whole_however_narrow_the_terminal_is(desk: Desk, wide: int):
    large = Usage(cache_read=8_000_000_000, cache_write=2_000_000_000)
    first = bill(
        desk,
        "a session with a title that takes more room than there is beside its figures",
        replace(SONNET, usage=large),
    )
    second = bill(desk, "short", SONNET)

    lines = desk.run("savings", env={"COLUMNS": str(wide)}).out.splitlines()

    rows = {line.split()[0]: line for line in lines if line.startswith((first, second, "together"))}
    assert rows[first].split()[1:4] == ["1", "10,000,000,000", "40,000,000,000"]
    assert rows["together"].split()[1:4] == ["2", "10,000,010,000", "40,000,040,000"]
    assert all(len(line) <= max(wide, 88) for line in lines)
    beside = rows[first].split(" %")[1].strip()
    below = lines[lines.index(rows[first]) + 1].strip()
    assert (beside or below).startswith("a session with")
    assert bool(beside) == (wide > 110)


def test_a_turn_without_a_report_of_usage_is_told_as_estimated(paid: Desk):
    assert "estimated (~)" not in paid.run("savings").err
    session = bill(
        paid, "aider", replace(SONNET, usage=replace(SONNET.usage, estimated=True), calls=2)
    )

    ran = paid.run("savings")
    alone = paid.run("savings", "--session", session)
    told = paid.run("savings", "--json").json()

    rows = {line.split("  ")[0]: line for line in ran.out.splitlines()}
    assert "~10,000" in rows[session]
    assert "partly estimated" in rows["cost"]
    assert "no usage was reported for 1 of 4 turns: our own count is shown instead" in ran.err
    assert "no usage was reported: our own count is shown instead" in alone.err
    assert "measured" not in alone.out
    assert (told["total"]["estimated_turns"], told["uncounted"]) == (1, 0)
    assert told["total"]["measured"]["prompt"] == 40_000


def test_show_tells_the_context_and_the_bill_apart(desk: Desk):
    billed = replace(SONNET, usage=Usage(cache_read=70_000, output=900), calls=3)
    session = bill(desk, "claude", SONNET, billed)

    lines = desk.run("show", session).out
    turns = desk.run("show", session, "--json").json()["turns"]

    one, other = (line for line in lines.splitlines() if line.startswith("turn "))
    assert "15 (2 cached) → 4 tokens" in one
    assert "billed" not in one
    assert (
        "15 (2 cached) → 4 tokens  billed for 3 calls: 70,000 (70,000 cached) → 900 tokens" in other
    )
    assert [each["billed"]["calls"] for each in turns] == [1, 3]
    assert (turns[1]["usage"]["input"], turns[1]["billed"]["cache_read"]) == (10, 70_000)


def test_savings_can_be_narrowed_down_to_a_session_or_a_time(paid: Desk):
    of_one = paid.run("savings", "--session", "old", "--json").json()
    lately = paid.run("savings", "--since", f"{10**5}d", "--json").json()
    later = paid.run("savings", "--since", "2090-01-01")

    assert (len(of_one["sessions"]), of_one["total"]["turns"]) == (1, 2)
    assert lately["total"]["turns"] == 3
    assert (later.code, later.out) == (0, "")
    assert "no turn was paid for since then" in later.err
    assert paid.run("savings", "--session", "nope").code == 1
    assert paid.run("savings", "--since", "soon").code == 2


def test_a_project_in_which_nothing_was_paid_for_yet_is_no_failure(filled: Desk):
    ran = filled.run("savings")

    assert (ran.code, ran.out) == (0, "")
    assert "no turn was paid for yet" in ran.err
    assert "4 more turns have no bill" in ran.err
    assert filled.run("savings", "--json").json()["uncounted"] == 4


def test_before_anything_is_kept_there_is_nothing_saved_and_no_store_is_made(desk: Desk):
    ran = desk.run("savings")

    assert (ran.code, ran.out) == (0, "")
    assert "no turn was paid for yet" in ran.err
    assert desk.run("savings", "--json").json()["total"]["turns"] == 0
    assert not desk.data.exists()


def test_a_model_without_a_list_price_is_marked(desk: Desk):
    bill(desk, "own", replace(SONNET, model="home-grown-7b"))

    ran = desk.run("savings")

    assert "*" in next(line for line in ran.out.splitlines() if line.startswith("cost"))
    assert "no list price is known for home-grown-7b" in ran.err


def test_a_price_of_one_s_own_counts(desk: Desk):
    bill(desk, "own", replace(SONNET, model="home-grown-7b"))
    (desk.home / "config.toml").write_text(
        '[prices."home-grown-*"]\ninput = 3\noutput = 15\nread = 0.1\nwrite = 1.25\n'
    )

    total = desk.run("savings", "--json").json()["total"]

    assert total["measured"]["dollars"] == pytest.approx(0.0174)
    assert total["unlisted"] == []


@pytest.mark.row("C8")
def test_status_tells_how_the_window_does_and_what_gave_cause_for_an_alert(paid: Desk):
    import time  # noqa: PLC0415

    with closing(SqliteStore.open(paid.data)) as store:
        kept(
            store,
            Event(
                "Alert",
                time.time() - 60,
                detail={"name": "overhead_ms_p95", "value": 12.5, "threshold": 10.0},
            ),
        )
        kept(
            store,
            Event(
                "Alert", NOW - 1e7, detail={"name": "retrieval_pct", "value": 9.0, "threshold": 5.0}
            ),
        )

    told, shown = paid.run("status", "--json").json(), paid.run("status").out

    assert told["metrics"]["turns"] == 3
    assert (told["metrics"]["prompt_per_turn"], told["metrics"]["whole_per_turn"]) == (
        10_000,
        40_000,
    )
    assert told["metrics"]["saved_dollars"] == pytest.approx(3 * 0.0159)
    assert [alert["name"] for alert in told["alerts"]] == ["overhead_ms_p95"]
    assert "saved, estimated" in shown
    assert "overhead_ms_p95 was 12.5 (threshold 10): planning holds requests up" in shown
    assert "retrieval_pct was" not in shown


def test_status_tells_which_profile_holds_and_whether_it_is_off(desk: Desk):
    assert "window   on, each agent by its own kind" in desk.run("status").out
    assert "window   on, profile lean" in desk.run("status", env={"HOTSET_PROFILE": "lean"}).out
    assert (
        "window   off: requests go out as they come"
        in desk.run("status", env={"HOTSET_OFF": "1"}).out
    )
    assert desk.run("status", "--json", env={"HOTSET_BUDGET": "9000"}).json()["window"] == {
        "off": False,
        "inject": True,
        "budget": 9000,
        "profile": "",
    }


def test_more_sent_than_everything_is_told_in_tokens_and_not_as_a_share_below_nothing(desk: Desk):
    bill(
        desk,
        "short",
        replace(SONNET, whole=Usage(1_000), sent=Usage(1_000), usage=Usage(10_010), calls=2),
    )

    told = desk.run("savings").out

    assert (
        "5,005 more were sent: our tools, and calls in which the model got something back" in told
    )
    assert "of it was not sent" not in told


def test_one_turn_without_a_bill_is_told_as_one(desk: Desk):
    with closing(SqliteStore.open(desk.data)) as store:
        StoreTalk(store, key="free", time=NOW).turn("hello", "done")

    assert "1 more turn has no bill" in desk.run("savings").err


def offer(desk: Desk, key: str, called: str, *tools: dict) -> None:
    """A session of one billed turn, whose client offered tools and whose model called one."""
    dialect = DIALECTS[DialectName.ANTHROPIC]
    asked = {"model": SONNET.model, "tools": tools, "messages": [{"role": "user", "content": key}]}
    use = {"type": "tool_use", "id": f"toolu_{key}", "name": called, "input": {}}
    said = {
        "type": "message",
        "role": "assistant",
        "content": [use],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1},
    }
    raw = json.dumps(said).encode()
    with closing(SqliteStore.open(desk.data)) as store:
        request = dialect.parse(json.dumps(asked).encode())
        turn = kept(store, RequestReceived(request, NOW, "", key=key)).turn
        reply = dialect.read(raw, streamed=False)
        kept(store, ReplyReceived(turn, NOW, Outcome.DONE, 200, raw, reply))
        kept(store, Billed(id_of(store, turn), SONNET))


def test_tools_that_no_session_called_are_told_in_tokens_and_money(desk: Desk):
    long = {"name": "never", "description": "Never called. " * 300, "input_schema": {}}
    tools = [
        {"name": "read", "input_schema": {}},
        long,
        {"name": "later", "input_schema": {}, "defer_loading": True},
        {"type": "web_search_20250305", "name": "web_search"},
    ]
    offer(desk, "one", "read", *tools)
    offer(desk, "two", "read", *tools)

    told = desk.run("savings", "--json").json()["unused_tools"]

    size = round(len(json.dumps(long)) / 4.5)  # by its size: counting would load a vocabulary
    assert size == pytest.approx(count_tokens(json.dumps(long)), rel=0.25)
    assert (told["sessions"], told["offered"], told["names"]) == (2, 2, ["never"])
    assert told["tokens"] == size
    assert told["prompt_pct"] == pytest.approx(100 * size / 10_000)
    assert told["dollars"] == pytest.approx(2 * size * 0.3 / 1e6)  # both times from the cache
    assert desk.run("status", "--json").json()["unused_tools"] == told
    words = f"1 of 2 tools not called in the latest 2 sessions: {size:,} tokens of every prompt"
    assert words in desk.run("savings").out
    assert words in desk.run("status").out


def test_a_tool_that_one_session_called_is_not_told(desk: Desk):
    tools = [{"name": "read", "input_schema": {}}, {"name": "write", "input_schema": {}}]
    offer(desk, "one", "read", *tools)
    offer(desk, "two", "write", *tools)

    assert desk.run("savings", "--json").json()["unused_tools"]["names"] == []
    assert "not called" not in desk.run("savings").out


def test_without_tools_nothing_is_said_of_them(paid: Desk):
    assert paid.run("savings", "--json").json()["unused_tools"] is None


@pytest.mark.parametrize(("by", "names"), [("session", 2), ("day", 2), ("model", 1), ("client", 1)])
def test_savings_in_groups_come_to_the_total(paid: Desk, by, names):
    total = paid.run("savings", "--json").json()["total"]
    view = paid.run("savings", "--by", by, "--json").json()

    assert len(view["rows"]) == names
    assert sum(row["turns"] for row in view["rows"]) == 3
    for column, whole in (("spent", "measured"), ("everything", "estimated")):
        parts = [row[column] for row in view["rows"]]
        assert sum(parts) == pytest.approx(total[whole]["dollars"])
        assert view["all"][column] == pytest.approx(total[whole]["dollars"])
    text = paid.run("savings", "--by", by)
    assert view["rows"][0]["name"] in text.out
    assert "measured" in text.err


def test_groups_and_one_session_do_not_go_together(paid: Desk):
    ran = paid.run("savings", "--by", "day", "--session", "last")
    assert ran.code == 2
    assert "--session" in ran.err
