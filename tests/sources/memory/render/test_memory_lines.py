"""Memories in a line: a tenth of what they say, and a twentieth where they are only named."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from tests.sources.memory.consolidate.making import episode, fact, pitfall, procedure

from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import Arrangement, Ending, Layer, MemoryRecord
from hotset.sources.memory.data_lines import (
    IN_A_LINE,
    IN_THE_INDEX,
    LINE_TOKENS,
    WHOLE,
    ending_of,
    line,
    line_of,
    name_of,
)
from hotset.sources.memory.layers import render_timeline
from hotset.sources.memory.memory_text import render_memories
from hotset.sources.memory.overview import Overview, overview
from hotset.sources.memory.recall import RecalledItem
from hotset.testing.ram_store import RamStore
from hotset.tokens import count

NOW = 1.8e9
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
SENTENCES = st.lists(WORDS, max_size=60).map(" ".join)


def long(memory: MemoryRecord, times: int = 1) -> MemoryRecord:
    text = f"{memory.text} " + "It went on for long and came to an end. " * 12 * times
    return replace(memory, text=text, tokens=count(text))


@given(
    SENTENCES,
    SENTENCES,
    st.integers(1, 40),
    st.sampled_from(list(Ending)),
    st.lists(WORDS, max_size=3),
)
def test_of_a_long_memory_a_line_has_a_tenth_of_the_tokens_and_a_name_a_twentieth(
    title, text, times, ending, files
):
    made = episode(title, session="s1", created=1.0, files=tuple(files))
    memory = long(replace(made, title=title, text=text, ending=ending), times)
    assert memory.tokens > WHOLE
    told, name = line_of(memory) + ending_of(memory), name_of(memory)
    assert count(told) <= min(LINE_TOKENS, memory.tokens / IN_A_LINE)
    assert count(name) <= min(LINE_TOKENS, memory.tokens / IN_THE_INDEX)
    assert len(told.splitlines()) <= 1
    assert len(name.splitlines()) <= 1


@given(
    st.lists(st.text("abc", min_size=1, max_size=8), max_size=40),
    st.integers(WHOLE + 1, 2000),
    st.sampled_from([10, 20]),
)
def test_a_line_says_only_words_of_its_own_in_their_order(words, tokens, times):
    told = line(" ".join(words), tokens, times, most=10_000)
    own = iter(words)
    assert all(any(word == mine for mine in own) for word in told.replace("…", " ").split())
    assert bool(told) == bool(words)


def test_a_line_says_what_was_wanted_and_names_the_most_telling_file_where_there_is_room():
    made = episode("Rotate the login token", session="s1", created=1.0)
    changed = ("src/auth/app.py", "src/auth/refresh_rotation.py")
    made = replace(made, detail=replace(made.detail, artifacts=changed))  # type: ignore[type-var]  # an Episode
    assert line_of(made) == "Rotate the login token [refresh_rotation.py]"
    assert ending_of(made) == ": success"
    told = replace(made, title="Rotate the login token of every client", tokens=101)
    assert line_of(told) == told.title


def test_what_no_other_line_says_stays_and_words_that_a_reader_puts_back_go_first():
    title = (
        "Please find out why the upload of the nightly report to bucket-7 does not work with "
        "retries"
    )
    assert line(title, 120) == "find out why upload nightly report bucket-7 does not…"
    assert line(title, 5000) == title


def test_a_short_memory_is_told_in_its_own_words():
    title = "Always sign tokens with RS256 and never with a shared secret"
    assert line_of(replace(fact(title), tokens=20)) == title
    assert name_of(replace(fact("We sign with RS256"), tokens=20)) == "We sign with RS256"


def test_a_pitfalls_line_says_what_helps_instead():
    assert (
        line_of(pitfall("`npm test` fails", "ran `bun test`", session="s1"))
        == "`npm test` fails: ran `bun test`"
    )


def test_a_procedures_line_says_its_steps():
    made = procedure(("run `make`", "run `make test`"), session="s1", created=1.0)
    assert line_of(made) == "Rotate the token: run `make`; run `make test`"


def test_a_word_without_end_is_cut_inside():
    told = line("x" * 5000, 200)
    assert told.endswith("…")
    assert count(told) <= 20


@pytest.mark.row("M5")
def test_a_timeline_and_a_recall_tell_long_memories_in_a_tenth_and_name_them_in_a_twentieth():
    title = (
        "Find out why the upload of the nightly report to the bucket "
        "fails at times and mend it "
        "for good"
    )
    made = [
        long(
            replace(
                episode(f"{title} {at}", session=f"s{at}", created=NOW + at), topics=("upload",)
            )
        )
        for at in range(5)
    ]
    store = RamStore()
    store.keep(Remembered(tuple(made))).result()
    glance: Overview = overview(store)

    timeline = render_timeline(glance, Arrangement(), NOW)
    items = [
        RecalledItem(each.id, each.kind, each.title, each.text, each.created, 1.0, (), {}, each)
        for each in made
    ]
    in_lines = render_memories(
        items, Arrangement(), {each.id: Layer.TIMELINE for each in made}, max_tokens=2000
    )
    named = render_memories(
        items, Arrangement(), {each.id: Layer.INDEX for each in made}, max_tokens=2000
    )

    for each in made:
        lines = [
            row
            for row in (*timeline.text.splitlines(), *in_lines.text.splitlines())
            if each.id in row
        ]
        assert len(lines) == 2
        assert all(line_of(each) in row for row in lines)
        assert f"- {name_of(each)} [{each.id}]" in named.text
        assert count(line_of(each) + ending_of(each)) <= each.tokens / IN_A_LINE
        assert count(name_of(each)) <= each.tokens / IN_THE_INDEX
