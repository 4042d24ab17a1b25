"""Where a client says that earlier messages are missing, and what stands for them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from hotset.dialects import DIALECTS
from hotset.nouns.link import link
from hotset.nouns.message import DialectName, Message
from hotset.nouns.page import ROOT, Role
from hotset.nouns.window import PageTable, SentRequest, Spot, Stub
from hotset.testing.store_talk import text_message
from hotset.text.client_marks import MARKS, ContextChange, MarkPlace, mark_at
from hotset.window.successor import earlier_text, find_cut, has_mark

_ROLES = {MarkPlace.USER: Role.USER, MarkPlace.ASSISTANT: Role.ASSISTANT}
_SUMMARY = "This session is being continued from a previous conversation that ran out of context."
_CLEAR = "<command-name>/clear</command-name>\n<command-message>clear</command-message>"


def _cut(*messages: Message, sent: int | None = None):
    links = tuple(link(ROOT, messages))
    head = SentRequest(links[sent].chain, 1.0) if sent is not None else None
    return find_cut(links, PageTable(sent=head))


def said(text: str) -> Message:
    return text_message(Role.USER, text)


def replied(text: str = "All right.") -> Message:
    return text_message(Role.ASSISTANT, text)


@pytest.mark.parametrize("mark", [each for each in MARKS if each.place in _ROLES])
def test_every_known_mark_is_found_at_the_beginning_of_a_text_and_nowhere_else(mark):
    role = _ROLES[mark.place]
    text = f"\n{mark.begins} and the rest of it"
    cut = _cut(said("hello"), text_message(role, text), said("go on"))
    assert cut is not None
    assert (cut.change, cut.client) == (mark.change, mark.client)
    assert has_mark([text_message(role, text)])
    assert _cut(said(f"Look: {mark.begins}"), replied(f"I see: {mark.begins}")) is None
    assert _cut(said("hello"), text_message(Role.TOOL, text)) is None
    assert mark_at(text.encode(), mark.place) == mark


@given(st.lists(st.tuples(st.sampled_from([Role.USER, Role.ASSISTANT]), st.text()), max_size=8))
def test_a_conversation_without_a_mark_has_no_cut(texts):
    messages = [text_message(role, f"x{text}") for role, text in texts]
    assert _cut(*messages) is None
    assert not has_mark(messages)


def test_only_what_is_new_on_a_line_counts():
    messages = (said(_SUMMARY), replied(), said("go on"), replied(), said("and on"))
    assert _cut(*messages) is not None
    assert _cut(*messages, sent=0) is None
    assert _cut(*messages, sent=2) is None
    again = (
        said("one"),
        said("Another language model started to solve this problem and produced a"),
    )
    assert _cut(*again, sent=0) is not None


def test_of_two_marks_the_later_counts_and_a_clear_only_before_the_first_reply():
    cut = _cut(said(_CLEAR), said(_SUMMARY), said("go on"))
    assert cut is not None
    assert cut.change is ContextChange.COMPACTED
    cut = _cut(said("<local-command-caveat>"), said(_CLEAR), said("go on"))
    assert cut is not None
    assert cut.change is ContextChange.CLEARED
    assert _cut(said("hello"), replied(), said(_CLEAR)) is None


def test_opencodes_question_is_a_mark_only_with_the_answer_that_comes_with_it():
    question = said("What did we do so far?")
    assert _cut(question) is None
    assert _cut(question, replied("We fixed it."), said("go on")) is not None
    assert _cut(question, replied("We fixed it."), said("go on"), sent=0) is None
    assert _cut(said("What did we do so far? Tell me."), replied(), said("go on")) is None
    assert _cut(said("hello"), question, replied(), said("go on")) is None


@pytest.mark.parametrize("type", ["compaction", "compaction_summary"])
def test_a_providers_own_compaction_is_a_mark(type):
    item = f'{{"encrypted_content":"gAAA","type":"{type}"}}'
    body = f'{{"model":"m","input":[{item},{{"role":"user","content":"go on"}}]}}'
    request = DIALECTS[DialectName.OPENAI_RESPONSES].parse(body.encode())
    assert _cut(*request.messages) is not None
    block = '{"type":"compaction","content":"We fixed it."}'
    body = (
        f'{{"model":"m","max_tokens":1,"messages":[{{"role":"assistant","content":[{block}]}},'
        '{"role":"user","content":"go on"}]}'
    )
    request = DIALECTS[DialectName.ANTHROPIC].parse(body.encode())
    assert _cut(*request.messages) is not None
    other = item.replace(type, "web_search_call").replace("gAAA", "compaction")
    body = f'{{"model":"m","input":[{other}]}}'
    request = DIALECTS[DialectName.OPENAI_RESPONSES].parse(body.encode())
    assert _cut(*request.messages) is None


@given(st.lists(st.text("ab ", min_size=1, max_size=80), max_size=8), st.integers(0, 400))
def test_the_lines_beside_a_reference_keep_to_their_room(lines, room):
    stub = Stub("r123", "conversation", (Spot(ROOT, 0),), (1, 4), 900, 0.0)
    calls = 'get_turn_range(first=1, last=4, session="s1")'
    text = earlier_text(ContextChange.COMPACTED, stub, lines, room, calls)
    heading, reference, *rest = text.split("\n")
    assert heading.startswith("[hotset: ")
    assert "turns 1-4 (900 tokens)" in reference
    assert rest[-1].endswith(calls)
    assert sum(len(line) + 1 for line in rest[:-1]) <= room + 1
