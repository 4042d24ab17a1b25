"""Questions of time and stand-ups on the command line: a range by day, grouped by work."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import pytest

from tests.cli.conftest import Desk, desk_in, fill

DAY = 86_400.0
WORK = (
    "Fix the overflow in the date parser",
    "Add tests for leap years to the date parser",
    "Rotate the refresh tokens of the login",
)


def midday(days_ago: int) -> float:
    """Noon of a day of this machine."""
    noon = datetime.now().astimezone().replace(hour=12, minute=0, second=0, microsecond=0)
    return (noon - timedelta(days=days_ago)).timestamp()


def last_monday() -> int:
    """Days since the Monday of last week."""
    return datetime.now().astimezone().weekday() + 7


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A desk with 15 tasks on five days of last week, a release before, and a task of today."""
    desk = desk_in(tmp_path_factory.mktemp("shop"))
    monday = last_monday()
    fill(desk.data, "Publish release 2.1 of the shop", midday(monday + 3))
    for day in range(5):
        for at, goal in enumerate(WORK):
            fill(desk.data, f"{goal}, part {day + 1}", midday(monday - day) + 60.0 * at)
    fill(desk.data, "Translate the checkout page", time.time() - 900.0)
    assert desk.run("memory", "add", "We always sign the tokens with RS256").code == 0
    return desk


@pytest.mark.row("M7")
@pytest.mark.parametrize("question", ["what happened last week", "what did we do last week?"])
def test_a_question_without_other_words_lists_the_range_by_day_and_by_work(
    shop: Desk, question: str
):
    ran = shop.run("memory", "search", question)
    assert ran.code == 0, ran.err
    days = [line for line in ran.out.splitlines() if line and not line.startswith(" ")]
    monday = datetime.now().astimezone() - timedelta(days=last_monday())
    expected = [monday + timedelta(days=day) for day in range(5)]
    assert days == [f"{day:%A %Y-%m-%d}" for day in expected]
    assert ran.out.count("Fix the overflow") == 5
    assert "release 2.1" not in ran.out
    assert "checkout" not in ran.out
    found = shop.run("memory", "search", question, "--json").json()
    assert len(found) == 15


@pytest.mark.row("M7")
def test_before_after_first_and_latest_order_what_is_listed(shop: Desk):
    since = shop.run("memory", "search", "what did we do since the release", "--json").json()
    assert "release 2.1" in since[0]["title"]
    assert since[0]["time"] < since[-1]["time"]
    after = shop.run("memory", "search", "what happened after the release?", "--json").json()
    assert "release" not in after[0]["title"]
    before = shop.run("memory", "search", "what happened before last week", "--json").json()
    assert [each["title"] for each in before] == ["Publish release 2.1 of the shop"]
    last = shop.run("memory", "search", "when did we last touch the login", "--json").json()
    assert "part 5" in last[0]["title"]
    first = shop.run("memory", "search", "when did we first work on the login", "--json").json()
    assert "part 1" in first[0]["title"]


def test_a_time_of_which_nothing_is_remembered_is_said_so(shop: Desk):
    ran = shop.run("memory", "search", "what happened in the year 2001")
    assert (ran.code, ran.out) == (1, "")
    assert "nothing is remembered of 2001-01-01 to 2001-12-31" in ran.err


def test_a_standup_reads_what_was_done_and_decided_by_day(shop: Desk):
    today = shop.run("standup")
    assert today.code == 0
    assert "Translate the checkout page" in today.out
    assert "Decided: We always sign the tokens with RS256" in today.out
    assert "[" not in today.out
    week = shop.run("standup", "--since", "last week", "--json").json()
    assert len(week["days"]) >= 6
    works = week["days"][0]["done"]
    assert [len(work["episodes"]) for work in works] == [2, 1], "by what they are about"
    release = shop.run("standup", "--since", "the release")
    assert "Publish release 2.1" in release.out


def test_a_standup_without_work_says_when_there_was_some(tmp_path_factory: pytest.TempPathFactory):
    desk = desk_in(tmp_path_factory.mktemp("quiet"))
    empty = desk.run("standup")
    assert (empty.code, empty.out) == (0, "")
    assert "nothing is remembered yet" in empty.err
    fill(desk.data, "Fix the failing upload test", midday(9))
    quiet = desk.run("standup", "--since", "yesterday")
    assert "nothing was done since yesterday; the last work was on" in quiet.err
    assert desk.run("standup", "--since", "the coronation").code == 2
