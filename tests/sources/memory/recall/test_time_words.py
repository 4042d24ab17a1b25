"""The times that a question speaks of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings, strategies as st

from hotset.sources.memory.time_parser import TimeWords, fits, time_question, time_words

NOW = datetime(2026, 3, 18, 15, 0, tzinfo=UTC)  # a Wednesday
DAY = 86400.0


def said(query: str, now: datetime = NOW) -> tuple[str, str]:
    found = time_words(query, now.timestamp())
    return _told(found.since), _told(found.until)


def _told(time: float | None) -> str:
    if time is None:
        return ""
    told = datetime.fromtimestamp(time, UTC)
    return f"{told:%Y-%m-%d}" if not told.hour and not told.minute else f"{told:%Y-%m-%d %H:%M}"


@pytest.mark.row("M7")
@pytest.mark.parametrize(
    ("words", "since", "until"),
    [
        ("today", "2026-03-18", "2026-03-19"),
        ("this morning", "2026-03-18", "2026-03-19"),
        ("yesterday", "2026-03-17", "2026-03-18"),
        ("since 9am", "2026-03-18 09:00", "2026-03-18 15:00"),
        ("after 14:30", "2026-03-18 14:30", ""),
        ("since 4pm", "2026-03-17 16:00", "2026-03-18 15:00"),
        ("in the last hour", "2026-03-18 14:00", "2026-03-18 15:00"),
        ("in the first week of February", "2026-02-01", "2026-02-08"),
        ("the last week of February", "2026-02-22", "2026-03-01"),
        ("last night", "2026-03-17 18:00", "2026-03-18 06:00"),
        ("the day before yesterday", "2026-03-16", "2026-03-17"),
        ("this week", "2026-03-16", "2026-03-23"),
        ("last week", "2026-03-09", "2026-03-16"),
        ("earlier this week", "2026-03-16", "2026-03-18 15:00"),
        ("last weekend", "2026-03-14", "2026-03-16"),
        ("over the weekend", "2026-03-14", "2026-03-16"),
        ("this month", "2026-03-01", "2026-04-01"),
        ("last month", "2026-02-01", "2026-03-01"),
        ("in the last month", "2026-02-18 15:00", "2026-03-18 15:00"),
        ("this quarter", "2026-01-01", "2026-04-01"),
        ("last quarter", "2025-10-01", "2026-01-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("3 days ago", "2026-03-15", "2026-03-16"),
        ("a couple of days ago", "2026-03-15", "2026-03-18"),
        ("two weeks ago", "2026-03-01", "2026-03-08"),
        ("a month ago", "2026-02-03", "2026-03-06"),
        ("in the past 7 days", "2026-03-11 15:00", "2026-03-18 15:00"),
        ("the last two weeks", "2026-03-04 15:00", "2026-03-18 15:00"),
        ("in the past few months", "2025-12-18 15:00", "2026-03-18 15:00"),
        ("on Monday", "2026-03-16", "2026-03-17"),
        ("on Wednesday", "2026-03-11", "2026-03-12"),
        ("last Friday", "2026-03-13", "2026-03-14"),
        ("this Tuesday", "2026-03-17", "2026-03-18"),
        ("in March", "2026-03-01", "2026-04-01"),
        ("in may", "2025-05-01", "2025-06-01"),
        ("last March", "2025-03-01", "2025-04-01"),
        ("in March 2025", "2025-03-01", "2025-04-01"),
        ("early February", "2026-02-01", "2026-02-10 08:00"),
        ("at the end of February", "2026-02-19 16:00", "2026-03-01"),
        ("March 15th", "2026-03-15", "2026-03-16"),
        ("on March 20", "2025-03-20", "2025-03-21"),
        ("the 3rd of February", "2026-02-03", "2026-02-04"),
        ("15 March 2024", "2024-03-15", "2024-03-16"),
        ("March 3-10", "2026-03-03", "2026-03-11"),
        ("on 2026-01-05", "2026-01-05", "2026-01-06"),
        ("2026-01-05T10:30", "2026-01-05", "2026-01-06"),
        ("05.01.2026", "2026-01-05", "2026-01-06"),
        ("02/13/2026", "2026-02-13", "2026-02-14"),
        ("13/02/2026", "2026-02-13", "2026-02-14"),
        ("in 2026-02", "2026-02-01", "2026-03-01"),
        ("2026-W03", "2026-01-12", "2026-01-19"),
        ("in Q1", "2026-01-01", "2026-04-01"),
        ("Q3 2025", "2025-07-01", "2025-10-01"),
        ("in 2025", "2025-01-01", "2026-01-01"),
        ("between March 3 and March 10", "2026-03-03", "2026-03-11"),
        ("between 2026-01-05 and yesterday", "2026-01-05", "2026-03-18"),
        ("from November to February", "2025-11-01", "2026-03-01"),
        ("in January and March", "2026-01-01", "2026-04-01"),
        ("since last Friday", "2026-03-13", "2026-03-18 15:00"),
        ("since the start of the year", "2026-01-01", "2026-03-18 15:00"),
        ("before last week", "", "2026-03-09"),
        ("until yesterday", "", "2026-03-18"),
        ("after Monday", "2026-03-17", ""),
        ("recently", "2026-02-16 15:00", "2026-03-18 15:00"),
        ("the other day", "2026-03-08 15:00", "2026-03-18 15:00"),
    ],
)
def test_words_for_a_time_become_its_range_and_leave_the_question(words, since, until):
    assert said(words) == (since, until)
    assert said(f"what did we decide about the cache {words}?") == (since, until)
    found = time_words(f"what did we decide about the cache {words}?", NOW.timestamp())
    assert found.words == "what did we decide about the cache?"


@pytest.mark.parametrize(
    "query",
    [
        "the call may fail",
        "this may be wrong",
        "the last may fail",
        "what if march comes first in the list",
        "the second argument",
        "a last resort",
        "the last argument",
        "the last 3 lines of the log",
        "last 5 commits",
        "my last name",
        "next step",
        "version 2025.1",
        "v2026.01.05",
        "python 3.11",
        "host 10.12.20.1",
        "backup-2026-01-05.tar.gz",
        "2026-01-05-notes.md",
        "logs/2026-01-05/app.log",
        "INC-2026-01-05",
        "log_2026-01-05",
        "`git log --since yesterday`",
        "git log --since yesterday",
        'the label "last week"',
        "the 'Turbocharged Tuesdays' event",
        "def last_week(): ...",
        "answers in 2000 ms",
        "a file of 2025 lines, in 2024 lines of it",
        "port 2024",
        "issue 2025",
        "how many days ago did I go?",
        "it runs for 3 days",
        "one week",
        "every Monday",
        "on Mondays",
        "on Saturday mornings",
        "sat on it",
        "by accident",
        "after that",
        "before merging",
        "since it fails",
        "between a and b",
        "from 1 to 10",
        "in the past",
        "in order",
        "spring boot",
        "a second",
        "02/03/2026",
        "on February 30th",
        "on 2026-13-40",
        "next week",
        "next Friday",
        "on the latest version",
        "the first argument",
    ],
)
def test_what_only_looks_like_a_time_is_none(query):
    assert time_words(query, NOW.timestamp()) == TimeWords(words=query)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("the most recent decision on auth", "decision on auth"),
        ("the latest on auth", "on auth"),
        ("when did we use it most recently?", "when did we use it?"),
        ("what we last talked about", "what we talked about"),
    ],
)
def test_a_question_for_the_latest_says_so_and_has_no_range(query, words):
    assert time_words(query, NOW.timestamp()) == TimeWords(words=words, latest=True)


def test_a_question_for_the_first_says_so():
    assert time_words(
        "which of them did I buy first, the bike or the car?", NOW.timestamp()
    ) == TimeWords(words="which of them did I buy, the bike or the car?", first=True)
    assert time_words("the first time we met in March", NOW.timestamp()).first
    assert said("the first time we met in March") == ("2026-03-01", "2026-04-01")


def test_a_time_that_owns_something_leaves_no_rest():
    assert time_words("last week's decisions on auth", NOW.timestamp()).words == "decisions on auth"
    assert time_words("yesterday's failure, and today's", NOW.timestamp()).words == "failure, and"


def test_a_day_is_the_speakers_own():
    late = datetime(2026, 3, 18, 23, 30, tzinfo=UTC).timestamp()

    here, tokyo = time_words("today", late), time_words("today", late, lambda _: 9 * 3600.0)

    assert _told(here.since) == "2026-03-18"
    assert _told(tokyo.since) == "2026-03-18 15:00"  # the 19th has begun there
    assert tokyo.until is not None
    assert tokyo.since is not None
    assert tokyo.until - tokyo.since == DAY


def test_a_day_before_the_clocks_changed_begins_at_its_own_midnight():
    berlin = ZoneInfo("Europe/Berlin")

    def offset(moment: float) -> float:
        ahead = datetime.fromtimestamp(moment, berlin).utcoffset()
        assert ahead is not None
        return ahead.total_seconds()

    now = datetime(2026, 11, 4, 12, tzinfo=berlin).timestamp()
    for words, first, last in [
        ("in July", (2026, 7, 1), (2026, 8, 1)),
        ("in October", (2026, 10, 1), (2026, 11, 1)),
        ("on 2026-10-25", (2026, 10, 25), (2026, 10, 26)),
    ]:
        found = time_words(words, now, offset)
        assert found.since == datetime(*first, tzinfo=berlin).timestamp(), words
        assert found.until == datetime(*last, tzinfo=berlin).timestamp(), words


@pytest.mark.parametrize(
    ("question", "subject", "bound", "event"),
    [
        ("what happened after release 2.2", "", "after", "release 2.2"),
        ("what did we do since phase 12", "", "since", "phase 12"),
        ("what did we do right before the release", "", "before", "the release"),
        ("when did we switch to uv", "switch uv", "", ""),
        ("when was the last release", "release", "", ""),
        ("what did we do last?", "", "", ""),
    ],
)
def test_a_question_of_time_names_its_event_or_its_subject(
    question: str, subject: str, bound: str, event: str
):
    asked = time_question(question, NOW.timestamp())
    assert asked is not None
    assert (asked.subject, asked.bound, asked.event) == (subject, bound, event)


@pytest.mark.parametrize(
    "words",
    [
        "run the tests before lunch",
        "after merging, what is left to do",
        "when will we release",
        "when is the release",
        "since tests fail",
    ],
)
def test_a_task_and_a_question_about_the_future_are_no_questions_of_time(words: str):
    assert time_question(words, NOW.timestamp()) is None


def test_a_month_back_from_its_31st_is_the_end_of_the_one_before():
    assert said("the last month", datetime(2026, 3, 31, tzinfo=UTC)) == ("2026-02-28", "2026-03-31")
    assert said("last month", datetime(2026, 1, 31, tzinfo=UTC)) == ("2025-12-01", "2026-01-01")


def test_weeks_begin_on_monday_also_on_a_sunday_and_around_new_year():
    assert said("this week", datetime(2026, 3, 22, 12, tzinfo=UTC)) == ("2026-03-16", "2026-03-23")
    assert said("last week", datetime(2027, 1, 1, 12, tzinfo=UTC)) == ("2026-12-21", "2026-12-28")


_TIMES = [
    "today",
    "yesterday",
    "last week",
    "this month",
    "in the past 3 weeks",
    "5 days ago",
    "on Friday",
    "last year",
    "in June",
]
_NOWS = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@settings(deadline=None)  # the first of them compiles
@given(_NOWS, st.sampled_from(_TIMES))
def test_a_range_has_a_length_and_begins_in_the_past(now, words):
    found = time_words(words, now.timestamp())

    assert found.since is not None
    assert found.until is not None
    assert found.since < found.until
    assert found.since <= now.timestamp()


@settings(deadline=None)  # the first of them compiles
@given(_NOWS, st.integers(1, 60))
def test_a_day_so_many_days_ago_is_in_the_range_of_these_words(now, days):
    then = (now - timedelta(days)).timestamp()

    assert fits(then, time_words(f"{days} days ago", now.timestamp())) == 1
    assert fits(then, time_words(f"in the last {days + 1} days", now.timestamp())) == 1
    assert fits(then, time_words(f"on {now - timedelta(days):%Y-%m-%d}", now.timestamp())) == 1
    assert (
        fits(
            then,
            time_words(
                f"on {now - timedelta(days):%B} {(now - timedelta(days)).day}", now.timestamp()
            ),
        )
        == 1
    )


@settings(deadline=None)  # the first of them compiles
@given(st.text(max_size=200))
def test_any_text_is_read_and_one_without_times_stays_as_it_is(text):
    found = time_words(text, NOW.timestamp())

    if found.since is None and found.until is None and not found.latest and not found.first:
        assert found.words.split() == text.split() or found.words in " ".join(text.split())


def test_outside_of_a_range_the_fit_falls_in_proportion_to_its_length():
    week = time_words("last week", NOW.timestamp())
    day = time_words("yesterday", NOW.timestamp())
    assert week.since is not None
    assert day.since is not None

    assert fits(week.since, week) == 1
    assert fits(week.since - DAY, week) == pytest.approx(1 - 1 / 14)
    assert fits(day.since - DAY, day) == pytest.approx(0.5)
    assert fits(week.since - 30 * DAY, week) == 0


@settings(deadline=None)  # the first of them compiles
@given(
    st.sampled_from([*_TIMES, "before June", "since 2025", "anything"]),
    st.floats(0, 4e9),
    st.floats(0, 4e9),
)
def test_further_away_never_fits_better(words, one, other):
    found = time_words(words, NOW.timestamp())
    for edge, sign in ((found.since, -1), (found.until, 1)):
        if edge is not None:
            near, far = sorted((abs(one), abs(other)))
            assert 1 >= fits(edge + sign * near, found) >= fits(edge + sign * far, found) >= 0


def test_without_a_range_everything_fits():
    assert (
        fits(0, time_words("anything", NOW.timestamp())) == fits(NOW.timestamp(), TimeWords()) == 1
    )
