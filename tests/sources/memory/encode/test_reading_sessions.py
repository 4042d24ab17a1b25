"""Which part of what a session's store holds is a person's conversation, and how much of it is
looked at."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from hotset.errors import NotFound
from hotset.nouns.memory import Ending, MemoryKind
from hotset.nouns.message import Message, Part
from hotset.nouns.page import Kind, Page, Role, SessionId
from hotset.nouns.turn import Event
from hotset.sources.memory.encode.encoder import encode_session
from hotset.sources.memory.encode.session import OUTCOME, Material, read_session, utterance
from hotset.store.port import Where
from hotset.testing import RamStore
from hotset.testing.secrets import planted
from hotset.testing.store_talk import StoreTalk, message

GOAL = "Fix the crash of the invoice parser when a line has no amount."


@pytest.fixture
def store() -> RamStore:
    return RamStore()


def read(store: RamStore) -> Material:
    (session,) = store.sessions()
    return read_session(store, session.id, 9.0)


def texts(store: RamStore, kind: Kind) -> list[str]:
    return [each.text for each in read(store).line if each.page.kind.family is kind]


def called(tool: str, call: str, **arguments: str) -> Message:
    return message(
        Role.ASSISTANT,
        Part(Kind.TOOL_CALL, json.dumps(arguments).encode(), "application/json", tool, call),
    )


def brought(tool: str, call: str, text: str, kind: Kind = Kind.TOOL_RESULT) -> Message:
    return message(Role.TOOL, Part(kind, text.encode(), "text/plain", tool, call))


def test_a_session_is_read_in_the_order_of_its_conversation(store):
    talk = StoreTalk(store, key="k")
    talk.hears(talk.asks(GOAL).turn, called("Bash", "c1", command="pytest -q"))
    talk.hears(talk.asks(brought("Bash", "c1", "1 passed")).turn, "It passes.")
    talk.turn("thanks", "You are welcome.")
    assert [(each.page.kind, each.text) for each in read(store).line] == [
        (Kind.PROMPT, GOAL),
        (Kind.TOOL_CALL, '{"command":"pytest -q"}'),
        (Kind.TOOL_RESULT, "1 passed"),
        (Kind.RESPONSE, "It passes."),
        (Kind.PROMPT, "thanks"),
        (Kind.RESPONSE, "You are welcome."),
    ]


def test_of_a_session_that_was_rewound_the_latest_line_is_read(store):
    talk = StoreTalk(store, key="k")
    talk.turn(GOAL, "Which parser?")
    kept = list(talk.history)
    talk.turn("The old one.", "That one is gone.")
    talk.history = kept
    talk.turn("The new one.", "It is fixed.")
    assert texts(store, Kind.PROMPT) == [GOAL, "The new one."]


def test_a_call_for_a_title_is_not_the_conversation(store):
    talk = StoreTalk(store, key="k")
    talk.turn(GOAL, "It is fixed.")
    system = (Part(Kind.SYSTEM, b"You are a title generator. You write titles of conversations."),)
    StoreTalk(store, key="k", traits={"system": system}).turn(f"Title for: {GOAL}", "Parser crash")
    assert texts(store, Kind.PROMPT) == [GOAL]


def test_what_one_agent_asks_another_is_not_the_conversation(store):
    order = (
        "Explore the parser of invoices thoroughly and list every place where an amount is read."
    )
    talk = StoreTalk(store, key="k")
    talk.hears(talk.asks(GOAL).turn, called("Task", "c1", prompt=order, description="explore"))
    StoreTalk(store, key="k").turn(order, "There are two places.")
    talk.asks(brought("Task", "c1", "There are two places.", Kind.AGENT_MESSAGE))
    StoreTalk(store, key="k").turn(order, "There are three places.")
    assert texts(store, Kind.PROMPT) == [GOAL]


def test_what_a_compaction_cut_off_is_read_too(store):
    talk = StoreTalk(store, key="k")
    talk.turn(GOAL, "It is fixed.")
    summary = (
        "This session is being continued from a previous "
        "conversation that ran out of context. "
        "Summary: parser."
    )
    StoreTalk(store, key="k").turn(summary, "I go on.")
    assert texts(store, Kind.RESPONSE) == ["It is fixed.", "I go on."]


def test_endings_are_read_from_events(store):
    turn = StoreTalk(store, key="k").turn(GOAL, "It is fixed.")
    store.keep(Event(OUTCOME, 5.0, turn.session, turn.number, {"outcome": "failure"})).result()
    store.keep(Event(OUTCOME, 5.0, turn.session, turn.number + 7, {"outcome": "nonsense"})).result()
    assert read(store).endings == {turn.number: Ending.FAILURE}
    (episode,) = (
        each for each in encode_session(read(store)).memories if each.kind is MemoryKind.EPISODE
    )
    assert episode.ending is Ending.FAILURE


def test_a_session_that_is_not_there_is_an_error(store):
    with pytest.raises(NotFound):
        read_session(store, SessionId("nobody"), 1.0)


def test_of_a_long_result_the_ends_are_looked_at_and_all_of_it_is_searched_for_what_others_wrote(
    store,
):
    talk = StoreTalk(store, key="k")
    talk.hears(talk.asks(GOAL).turn, called("Bash", "c1", command="cat log"))
    talk.asks(
        brought(
            "Bash",
            "c1",
            "first line\n"
            + "middle line\n" * 5000
            + "planted words\n"
            + "middle line\n" * 5000
            + "last line",
        )
    )
    result = read(store).line[-1]
    assert result.text.startswith("first line")
    assert result.text.endswith("last line")
    assert len(result.text) < 5000
    assert b"plantedwords" in result.outside


def a_page(store: RamStore, kind: Kind) -> Page:
    turn = StoreTalk(store).turn("x", "y")
    page = next(store.pages(Where(session=turn.session)))
    return replace(page, kind=kind)


@pytest.mark.parametrize("kind", [Kind.PROMPT, Kind.RESPONSE, Kind.TOOL_RESULT, Kind.TOOL_CALL])
def test_what_is_looked_at_holds_no_secret_wherever_it_stands(store, kind):
    page = a_page(store, kind)
    for secret in planted(3, 90):
        filler = "some words of a log\n" * 300
        for text in (secret.text, filler[:1990] + secret.text + filler, filler + secret.text):
            content = json.dumps({"command": text}) if kind is Kind.TOOL_CALL else text
            assert not secret.remains(utterance(page, content.encode()).text), secret.kind


@given(
    st.binary(max_size=3000),
    st.sampled_from([Kind.PROMPT, Kind.RESPONSE, Kind.TOOL_RESULT, Kind.TOOL_CALL, Kind.FILE]),
)
def test_any_bytes_can_be_read(content, kind):
    page = a_page(RamStore(), kind)
    assert utterance(page, content) == utterance(page, content)
