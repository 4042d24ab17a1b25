"""Memories in a line."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.sources.memory.managing.making import episode, fact, pitfall, procedure

from hotset.nouns.memory import Ending
from hotset.sources.memory.managing.lines import LINE_TOKENS, line_of, topic_line
from hotset.tokens import count


def test_an_episodes_line_says_what_was_wanted_what_changed_and_how_it_ended():
    line = line_of(episode("Rotate the login token", session="s1", created=1.0, files=("src/auth/token.py",)))
    assert line == "Rotate the login token [token.py] (success)"


def test_how_an_episode_ended_is_said_however_long_its_goal_is():
    line = line_of(episode("rotate " * 100, session="s1", created=1.0, ending=Ending.FAILURE))
    assert line.endswith("… (failure)")
    assert count(line) <= LINE_TOKENS


def test_a_pitfalls_line_says_what_helps_instead():
    assert line_of(pitfall("`npm test` fails", "ran `bun test`", session="s1")) == "`npm test` fails: ran `bun test`"


def test_a_procedures_line_says_its_steps():
    assert (
        line_of(procedure(("run `make`", "run `make test`"), session="s1", created=1.0))
        == "Rotate the token: run `make`; run `make test`"
    )


@given(st.text(max_size=400), st.sampled_from(list(Ending)), st.integers(8, 40))
def test_a_line_is_one_line_within_its_tokens(goal, ending, most):
    line = line_of(replace(episode(goal, session="s1", created=1.0), ending=ending), most)
    assert len(line.splitlines()) <= 1
    assert count(line) <= most


def test_a_topics_line_counts_its_memories_and_names_what_they_share():
    about = [fact(f"Login token rotation number {at}", created=86_400.0 * at) for at in range(3)]
    assert topic_line("auth", about) == "auth (3, 1970-01-03): login, number, rotation, token"


@given(st.text(max_size=80), st.lists(st.text(max_size=60), max_size=12))
def test_a_topics_line_is_one_line_within_its_tokens(topic, titles):
    line = topic_line(topic, [replace(fact("x"), title=title) for title in titles])
    assert len(line.splitlines()) <= 1
    assert count(line) <= max(LINE_TOKENS, count(topic) + 20)
