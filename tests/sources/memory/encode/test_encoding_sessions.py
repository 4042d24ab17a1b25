"""A session becomes memories: what was asked, done and achieved; the same each time, whatever the
session holds."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from told_sessions import PASSED, Told, fixed

from hotset.nouns.memory import (
    DETAILS,
    Ending,
    Episode,
    MemoryKind,
    Relation,
    Standing,
    Task,
    Trust,
)
from hotset.sources.memory.kinds import is_memory_id, is_same
from hotset.testing.secrets import planted

WORDS = st.sampled_from(
    [
        "Fix the parser of the invoices, please.",
        "yes",
        "thanks, that works",
        "Now add a dark theme to the settings page of the dashboard.",
        "still broken",
        "<system-reminder>be nice</system-reminder>",
        "[Request interrupted by user]",
        "From now on always use tabs for indentation.",
        "",
        "\u200b\ud800\x00",
        "This session is being continued from a previous conversation that ran out of context.",
    ]
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("user"), WORDS | st.text(max_size=60)),
        st.tuples(st.just("says"), WORDS | st.text(max_size=60)),
        st.tuples(
            st.just("runs"),
            st.sampled_from(
                ["pytest -q", "ls", "uv sync", "cat <<EOF > a.py\nx\nEOF", "\\\n", "&&"]
            )
            | st.text(),
        ),
        st.tuples(st.just("fails"), st.sampled_from(["pytest -q", "make", "npm test"])),
        st.tuples(
            st.just("edits"), st.sampled_from(["src/a.py", "", "/etc/x y"]) | st.text(max_size=20)
        ),
        st.tuples(st.just("odd"), st.text(max_size=40)),
    ),
    max_size=24,
)


@pytest.fixture
def story() -> Told:
    return fixed(Told())


def test_an_episode_tells_goal_task_actions_troubles_and_ending(story):
    (episode,) = story.memories(MemoryKind.EPISODE)
    assert isinstance(episode.detail, Episode)
    assert episode.detail.goal.startswith("Fix the failing test of the parser")
    assert episode.title == "Fix the failing test of the parser in src/parser.py, it…"
    assert episode.task is Task.DEBUGGING
    assert (episode.ending, episode.trust) == (Ending.SUCCESS, Trust.OUTCOME)
    assert [(each.tool, each.target, each.failed) for each in episode.detail.actions] == [
        ("Bash", "pytest -q tests/test_parser.py", True),
        ("Bash", "uv sync", False),
        ("Bash", "pytest -q tests/test_parser.py", False),
    ]
    (trouble,) = episode.detail.troubles
    assert (trouble.kind, trouble.is_resolved, trouble.resolved) == (
        "ModuleNotFoundError",
        True,
        ("ran `uv sync`",),
    )
    assert episode.detail.phase == "testing"
    assert [each.at for each in episode.detail.actions] == sorted(
        each.at for each in episode.detail.actions
    )
    assert episode.detail.seconds > 0
    assert "The parser's tests pass now" in episode.text
    assert is_memory_id(episode.id)


def test_what_is_derived_from_an_episode_is_linked_to_it(story):
    story.user("From now on, run the parser's tests with uv run.").says("Noted.")
    encoded = story.encoded()
    episode = next(each for each in encoded.memories if each.kind is MemoryKind.EPISODE)
    derived = {each.id for each in encoded.memories if each.kind is not MemoryKind.EPISODE}
    assert len(derived) > 1
    assert {(link.of, link.to, link.relation) for link in encoded.links} == {
        (id, episode.id, Relation.DERIVED_FROM) for id in derived
    }


def test_every_memory_says_where_it_comes_from(story):
    ids = {page.id for page, _ in story.pages}
    for memory in story.encoded().memories:
        assert memory.source.by == "rules"
        assert (memory.source.session, memory.source.agent) == ("session-1", "claude-cli")
        assert memory.source.pages
        assert ids.issuperset(memory.source.pages)
        assert memory.version == 1
        assert memory.tokens > 0
    pitfall = next(each for each in story.encoded().memories if each.kind is MemoryKind.PITFALL)
    assert "Bash" in pitfall.source.places


def test_a_told_ending_wins_over_what_can_be_inferred(story):
    story.endings[2] = Ending.FAILURE
    (episode,) = story.memories(MemoryKind.EPISODE)
    assert (episode.ending, episode.confidence) == (Ending.FAILURE, 1.0)


@pytest.mark.parametrize(
    ("last", "ending"),
    [
        ("thanks, that works now", Ending.SUCCESS),
        ("it is still broken", Ending.PARTIAL),
        ("commit", Ending.SUCCESS),
        ("[Request interrupted by user]", Ending.PARTIAL),
    ],
)
def test_the_last_words_of_a_user_tell_how_it_came_out(last, ending):
    told = (
        Told()
        .user("Rename the function that reads invoices to read_invoice.")
        .edits("src/invoices.py")
        .says("It is renamed.")
    )
    (episode,) = told.user(last).memories(MemoryKind.EPISODE)
    assert episode.ending is ending


def test_a_check_that_fails_after_the_last_change_leaves_it_unfinished():
    told = (
        Told().user("Make the invoices faster, the report takes minutes.").edits("src/invoices.py")
    )
    (episode,) = (
        told.runs("pytest -q", "E   AssertionError: 3 != 4", 1)
        .says("One test fails.")
        .memories(MemoryKind.EPISODE)
    )
    assert episode.ending is Ending.PARTIAL


def test_a_session_without_any_sign_has_an_unknown_ending():
    (episode,) = (
        Told()
        .user("Explain how invoices get their numbers.")
        .says("They are counted per year.")
        .memories(MemoryKind.EPISODE)
    )
    assert (episode.ending, episode.trust) == (Ending.UNKNOWN, Trust.AGENT)


def test_files_that_were_removed_again_are_no_artifacts():
    told = (
        Told()
        .user("Find out why invoices are counted twice and repair that.")
        .does("Write", {"file_path": "try.py", "content": "x"}, "ok")
    )
    told.edits("src/invoices.py").runs("rm try.py").says("Repaired.")
    (episode,) = told.memories(MemoryKind.EPISODE)
    assert isinstance(episode.detail, Episode)
    assert episode.detail.artifacts == ("src/invoices.py",)


def test_of_many_actions_those_that_changed_something_are_listed_and_the_rest_is_counted():
    told = Told().user("Clean up the module of invoices, it has grown too long.")
    for number in range(60):
        told.reads(f"src/part{number}.py")
    (episode,) = told.edits("src/invoices.py").says("Cleaned up.").memories(MemoryKind.EPISODE)
    assert isinstance(episode.detail, Episode)
    assert len(episode.detail.actions) == 40
    assert episode.detail.more_actions == 21
    assert "src/invoices.py" in {each.target for each in episode.detail.actions}


def test_an_episodes_text_stays_short_however_much_was_said():
    told = Told().user("Please " + "rework the invoices module and its many helpers " * 80)
    for number in range(50):
        told.edits(f"src/a_rather_long_folder_name/module_number_{number}.py").runs(
            f"pytest -q tests/test_{number}.py", "E  Error: x", 1
        )
    (episode,) = told.says("Everything is reworked. " * 100).memories(MemoryKind.EPISODE)
    assert episode.tokens < 180
    assert len(episode.title.split()) <= 11


def test_no_secret_gets_into_a_memory():
    for number, secret in enumerate(planted(7, 60)):
        told = Told(f"s{number}").user(f"Always use this for the deploy of invoices: {secret.text}")
        told.runs(secret.text, f"Error: {secret.text}\n{'x ' * 3000}\n{secret.text}", 1).runs(
            "uv sync", secret.text
        )
        told.does("Write", {"file_path": "a.env", "content": secret.text}, "ok").runs(
            secret.text, PASSED
        )
        told.says(f"It is settled. Decision: {secret.text}").user("right, thanks")
        shown = json.dumps([str(each) for each in told.encoded().memories])
        assert not secret.remains(shown), secret.kind


@given(STEPS, st.integers(0, 24))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_line_is_encoded_the_same_each_time_and_a_longer_one_keeps_what_was_closed(steps, most):
    told = Told()
    for what, text in steps:
        if what == "fails":
            told.runs(text, "Traceback (most recent call last)\nValueError: no", 1)
        elif what == "odd":
            told.does(text, {text: [text, {"path": text}]}, None if len(text) % 2 else text)
        else:
            getattr(told, what)(text)
    whole, again = told.encoded(), told.encoded()
    assert whole == again
    assert len({each.id for each in whole.memories}) == len(whole.memories)
    for each in whole.memories:
        assert isinstance(each.detail, DETAILS[each.kind])
        assert each.source.pages
    part = [each for each in told.encoded(most).memories if each.kind is MemoryKind.EPISODE]
    later = {each.id: each for each in whole.memories}
    assert all(each.id in later for each in part)
    assert all(is_same(each, later[each.id]) for each in part[:-1])


def test_advice_made_by_rules_is_active_only_when_an_outcome_confirms_it(story):
    for memory in story.encoded().memories:
        if (
            memory.kind in (MemoryKind.PITFALL, MemoryKind.PROCEDURE)
            and memory.standing is Standing.ACTIVE
        ):
            assert memory.trust is Trust.OUTCOME
