"""The part of a store's contract about conversations: resending, editing, retrying, and keeping
them separate."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from hotset.nouns.bill import Bill
from hotset.nouns.deposit import Billed, Gisted, PageAdded, RequestReceived
from hotset.nouns.message import ClientTool, Message, Part, Usage
from hotset.nouns.page import ROOT, Digest, Gist, Kind, Role, SessionId
from hotset.nouns.turn import Event, Outcome, Turn, TurnRef
from hotset.store.port import SessionOrigin, SessionOutline, Store, Where
from hotset.testing.contract import checks_in, on_fresh
from hotset.testing.store_talk import (
    StoreTalk,
    id_of,
    kept,
    message,
    only_turn,
    request,
    text_message,
    turn_of,
)


@on_fresh
def check_a_resend_writes_only_its_new_tail(store: Store) -> None:
    talk = StoreTalk(store)
    for number in range(5):
        talk.turn(f"question {number}", f"answer {number}")
    before = store.census()
    asked = talk.asks("one more")
    after = store.census()
    assert len(asked.pages) == 1, "a resent history was kept again"
    assert after.pages - before.pages == 1, "a resent history became pages again"
    assert after.blobs - before.blobs == 2, (
        "more than the new message's bytes and its text was written"
    )
    assert after.turns == 6, "each request is a turn"
    assert after.sessions == 1, "a conversation fell apart into sessions"
    assert not talk.asks().pages, "the same request again brought new pages"


@on_fresh
def check_an_origin_is_where_a_request_will_be_placed(store: Store) -> None:
    talk = StoreTalk(store, key="one", traits={"tools": (ClientTool("ls", b'{"name":"ls"}'),)})
    talk.turn("question", "a" * 200)
    [session] = store.sessions()
    before = store.census()
    again = RequestReceived(request(*talk.history), 2000.0, "agent", "one")
    assert store.origin(again) == SessionOrigin(session.id), "not the session of its key"
    quoted = request(text_message(Role.USER, f"Summary: {'a' * 200}"))
    begun = RequestReceived(quoted, 2000.0, "agent", "two", "client/1")
    origin = store.origin(begun)
    assert origin == SessionOrigin(None, session.id, continues=True), "its past is lost"
    assert store.census() == before, "a look wrote something"
    kept(store, begun)
    [linked] = store.events(name="SessionLinked")
    assert linked.detail["parent"] == origin.parent, "it was placed elsewhere"


@on_fresh
def check_a_turn_remembers_its_request_and_its_reply(store: Store) -> None:
    tools = (ClientTool("grep", b'{"name":"grep"}'), ClientTool("ls", b'{"name":"ls"}'))
    system = (Part(Kind.SYSTEM, b"be brief"), Part(Kind.SYSTEM, b"be kind"))
    talk = StoreTalk(
        store, traits={"tools": tools, "system": system, "params": b'{"n":1}', "stream": True}
    )
    asked = talk.asks("hello")
    open_turn = only_turn(store, asked)
    assert open_turn.outcome is Outcome.OPEN, "a turn without a reply is not open"
    talk.hears(asked.turn, "hi", id="resp-1")
    turn = only_turn(store, asked)
    ended = (turn.outcome, turn.status, turn.stop, turn.response_id, turn.usage, turn.finished)
    assert ended == (Outcome.DONE, 200, "stop", "resp-1", Usage(10, 2, 3, 4), 1002.0), (
        "a turn does not know its end"
    )
    assert (turn.started, turn.streamed, turn.model, turn.number) == (
        1001.0,
        True,
        "model",
        1,
    ), "a turn lost its beginning"
    contents = {name: store.content(address) for name, address in _contents(turn).items()}
    assert contents["system"] == b"be brief\n\nbe kind", "the system text came back changed"
    assert contents["tools"] == b'[{"name":"grep"},{"name":"ls"}]', "the tools came back changed"
    assert contents["params"] == b'{"n":1}', "the other fields came back changed"
    assert contents["reply"].startswith(b"reply:"), "the reply's bytes came back changed"
    assert [tool.name for tool in store.tools()] == ["grep", "ls"], (
        "the tools that were offered are not known"
    )
    assert [store.content(tool.digest) for tool in store.tools()] == [tool.raw for tool in tools], (
        "a tool was changed"
    )
    nodes = list(store.nodes(turn.session))
    assert [store.content(node.raw) for node in nodes] == [each.raw for each in talk.history], (
        "a message was changed"
    )
    assert (turn.head, turn.tail) == (nodes[0].chain, nodes[1].chain), (
        "a turn does not know its messages"
    )
    assert [node.parent for node in nodes] == [ROOT, nodes[0].chain], "messages are not chained"
    systems = list(store.pages(Where(kinds=frozenset({Kind.SYSTEM}))))
    assert [store.content(page.digest) for page in systems] == [b"be brief", b"be kind"], (
        "system text is not a page"
    )
    talk.asks("again")
    assert len(list(store.pages(Where(kinds=frozenset({Kind.SYSTEM}))))) == 2, (
        "unchanged system text was kept again"
    )
    assert len(list(store.tools())) == 2, "tools that are known were kept again"


@on_fresh
def check_an_edit_a_rewind_and_a_fork_become_branches(store: Store) -> None:
    talk = StoreTalk(store)
    for number in range(3):
        talk.turn(f"question {number}", f"answer {number}")
    whole = list(talk.history)
    session = next(store.sessions()).id

    def goes_on(history: list[Message], question: str) -> int:
        talk.history = list(history)
        asked = talk.asks(question)
        assert turn_of(asked).session == session, "an edited history was taken for another session"
        assert len(asked.pages) == 1, "a branch repeats what it shares"
        talk.hears(asked.turn, f"to {question}")
        return list(store.turns(session))[-1].branch

    assert goes_on(whole[:2], "edited question 1") == 1, "an edit is not a branch of its own"
    assert goes_on(talk.history, "goes on there") == 1, (
        "a branch that goes on became another branch"
    )
    assert goes_on(whole[:4], "rewound") == 2, "a rewind is not a branch of its own"
    assert goes_on(whole, "the first line goes on") == 0, (
        "the first line did not go on after others branched off"
    )
    branches = {page.branch for page in store.pages(Where(session=session))}
    assert branches == {0, 1, 2}, "branches are not numbered in the order in which they began"


@on_fresh
def check_a_turn_that_its_process_left_open_can_be_tried_again(store: Store) -> None:
    talk = StoreTalk(store)
    first = talk.asks("hello")
    beside = talk.asks()
    assert turn_of(beside).session != turn_of(first).session, (
        "two calls that are under way at once were taken for one"
    )
    talk.since = talk.time + 1
    again = talk.asks()
    assert turn_of(again).session == turn_of(beside).session, (
        "a call that a killed process left open cannot be tried again"
    )


@on_fresh
def check_sessions_come_by_their_last_use(store: Store) -> None:
    assert list(store.recent_sessions()) == [], "a store that holds nothing tells of a session"
    one, two = StoreTalk(store, key="one", time=5000.0), StoreTalk(store, key="two")
    for talk in (one, two):
        talk.turn("hello", "hi")
    assert [each.key for each in store.recent_sessions()] == ["two", "one"], (
        "the session that was used last is not first"
    )
    one.time = 10.0
    one.turn("more", "well")
    kept(store, PageAdded(None, "agent", Kind.FINDING, b"a note", 9000.0, key="three"))
    assert [each.key for each in store.recent_sessions()] == ["one", "two", "three"], (
        "last use is taken from the clock"
    )
    assert [each.key for each in store.sessions()] == ["one", "two", "three"], (
        "sessions are not in their order"
    )


@on_fresh
def check_sessions_are_listed_by_words_and_agent(store: Store) -> None:
    assert list(store.recent_ids()) == list(store.agents()) == [], "an empty store lists a session"
    coder = StoreTalk(store, agent="coder", key="one")
    for question in ("Fix the Parser", "now its tests", "and the docs"):
        coder.turn(question, "done")
    tester = StoreTalk(store, agent="tester", key="two")
    tester.turn("run the parser tests", "done")
    kept(store, PageAdded(None, "coder", Kind.FINDING, b"a note", 9000.0, key="three"))
    every = [each.id for each in store.recent_sessions()]
    assert list(store.recent_ids()) == every, "ids and sessions are in different order"
    assert list(store.recent_ids("PARSER")) == every[:2], "a title's words are not found"
    assert list(store.recent_ids("parser", "coder")) == [every[1]], "an agent is not told apart"
    assert list(store.recent_ids("fix tests")) == [], "one of two words was enough"
    assert list(store.recent_ids("two")) == [every[0]], "a client's name is not found"
    assert list(store.agents()) == ["coder", "tester"], "agents are not by their sessions"
    uses = store.session_uses([every[1], SessionId("s00000000000"), every[2]])
    assert [(each.session.id, each.turns) for each in uses] == [(every[1], 3), (every[2], 0)], (
        "a session's turns are not counted"
    )
    assert uses[0].last is not None, "a session's latest turn is missing"
    assert (uses[0].last.number, uses[1].last) == (3, None), "another turn is taken for the latest"


@on_fresh
def check_turns_events_and_bills_are_read_in_parts(store: Store) -> None:
    talk = StoreTalk(store)
    session, *_ = [talk.turn(f"question {number}", "answer").session for number in range(6)]
    for number in range(1, 7):
        kept(store, Event("A", float(number), session, number))
        id = id_of(store, TurnRef(session, number))
        kept(store, Billed(id, Bill("model", "", usage=Usage(input=number))))
    part = (2, 4)
    assert [each.number for each in store.turns(session, part)] == [2, 3, 4], "other turns came"
    assert [each.turn for each in store.events(session, within=part)] == [2, 3, 4], (
        "events of other turns came"
    )
    assert [each.turn for each in store.bills(session, within=part)] == [2, 3, 4], (
        "bills of other turns came"
    )


@on_fresh
def check_branches_say_where_they_began(store: Store) -> None:
    talk = StoreTalk(store)
    session = talk.turn("one", "1").session
    talk.turn("two", "2")
    before = list(talk.history)
    talk.turn("three", "3")
    assert list(store.branch_starts(session)) == [], "a line without a fork has a branch"
    talk.history = before
    talk.turn("three, otherwise", "4")
    (fork,) = store.branch_starts(session)
    assert (fork.branch, fork.first, fork.after) == (1, 4, 2), "a fork is somewhere else"


@on_fresh
def check_events_are_found_by_their_name(store: Store) -> None:
    turn = StoreTalk(store).turn("hello", "hi")
    for event in (
        Event("A", 1.0),
        Event("B", 2.0, turn.session, 1),
        Event("A", 3.0, turn.session, 1),
    ):
        kept(store, event)
    found = [
        [event.time for event in store.events(*each)]
        for each in ((None, "A"), (turn.session, "A"), (None, "C"))
    ]
    assert found == [[1.0, 3.0], [3.0], []], "events are not found by their name"


@on_fresh
def check_a_retry_stays_in_its_session(store: Store) -> None:
    talk = StoreTalk(store)
    first = talk.asks("hello")
    talk.hears(first.turn, outcome=Outcome.BROKEN)
    again = talk.asks()
    assert turn_of(again) == TurnRef(turn_of(first).session, 2), (
        "a retry of a call that got no reply began a new session"
    )
    assert not again.pages, "a retry was kept as new content"
    talk.hears(again.turn, "hi")
    more = talk.asks("more")
    retried = talk.asks()
    assert turn_of(retried).session == turn_of(more).session == turn_of(first).session, (
        "a retry later on left its session"
    )
    talk.hears(more.turn, "one answer")
    del talk.history[-1]
    talk.hears(retried.turn, "another answer")
    turns = list(store.turns(turn_of(first).session))
    assert [turn.branch for turn in turns] == [0, 0, 0, 1], (
        "two answers to one question are not two branches"
    )


@on_fresh
def check_a_repeated_greeting_is_a_new_session(store: Store) -> None:
    one, two = StoreTalk(store), StoreTalk(store)
    first = one.turn("hi", "hello")
    second = two.turn("hi", "hello, again")
    assert first.session != second.session, "two conversations that begin alike became one"
    assert one.turn("x", "y").session == first.session, "the first conversation was not recognised"
    assert two.turn("x", "y").session == second.session, (
        "the second conversation was not recognised"
    )


@on_fresh
def check_a_key_wins_over_everything(store: Store) -> None:
    one, two = StoreTalk(store, key="one"), StoreTalk(store, key="two")
    first, second = one.turn("hi", "hello"), two.turn("hi", "hello")
    assert first.session != second.session, "two keys share a session"
    assert one.turn("more", "fine").session == first.session, "a key did not lead to its session"
    one.history = [text_message(Role.USER, "something else altogether")]
    assert turn_of(one.asks()).session == first.session, (
        "a key with another history left its session"
    )
    assert [session.key for session in store.sessions()] == ["one", "two"], (
        "sessions do not know their keys"
    )


@on_fresh
def check_a_reply_that_is_continued_by_its_id_is_found(store: Store) -> None:
    talk = StoreTalk(store)
    asked = talk.asks("hello")
    talk.hears(asked.turn, "hi", id="resp-1")
    other = StoreTalk(store, traits={"previous": "resp-1"})
    next_one = other.asks("only the new message")
    assert turn_of(next_one) == TurnRef(turn_of(asked).session, 2), (
        "a request that continues a reply began a new session"
    )
    nodes = list(store.nodes(turn_of(asked).session))
    assert nodes[2].parent == nodes[1].chain, "it was not placed behind the reply it continues"
    stranger = StoreTalk(store, traits={"previous": "resp-unknown"})
    assert turn_of(stranger.asks("hello")).session != turn_of(asked).session, (
        "an unknown reply led somewhere"
    )


def check_agents_that_begin_alike_do_not_mix(open_store: Callable[[], Store]) -> None:
    differences: tuple[dict[str, Any], ...] = (
        {"traits": {"system": (Part(Kind.SYSTEM, b"you are another"),)}},
        {"traits": {"tools": (ClientTool("other", b"{}"),)}},
        {"client": "another/2"},
        {"traits": {"model": "another"}},
        {"traits": {"hints": ("another",)}},
        {"agent": "another"},
    )
    for difference in differences:
        with closing(open_store()) as store:
            one, two = (
                StoreTalk(store, traits={"hints": ("one",)} if "hints" in str(difference) else {}),
                StoreTalk(store, **difference),
            )
            sessions = {
                id(one): one.turn("hi", "hello").session,
                id(two): two.turn("hi", "hello").session,
            }
            assert len(set(sessions.values())) == 2, (
                f"two agents became one session; they differ in {difference}"
            )
            for talk, question in (
                (one, "a"),
                (two, "b"),
                (two, "c"),
                (one, "b"),
                (one, "d"),
                (two, "d"),
                (one, "c"),
            ):
                session = talk.turn(question, f"{question}!").session
                assert session == sessions[id(talk)], (
                    f"two agents were mixed up; they differ in {difference}"
                )
        with closing(open_store()) as store:
            one, two = (
                StoreTalk(store, traits={"hints": ("one",)} if "hints" in str(difference) else {}),
                StoreTalk(store, **difference),
            )
            for question in ("hi", "go on", "go on", "and now?"):
                assert one.turn(question, "ok").session != two.turn(question, "ok").session, (
                    f"two agents that say and hear the same, step by step, were mixed up; "
                    f"they differ in {difference}"
                )


@on_fresh
def check_asides_are_kept_and_change_nobodys_identity(store: Store) -> None:
    talk = StoreTalk(store)
    talk.history = [text_message(Role.SYSTEM, "today is Monday", aside=True)]
    first = talk.turn("hi", "hello")
    talk.history[0] = text_message(Role.SYSTEM, "today is Tuesday", aside=True)
    thought = message(Role.ASSISTANT, Part(Kind.THINKING, b"hm"), aside=True)
    talk.history.insert(2, thought)
    asked = talk.asks("more")
    assert turn_of(asked).session == first.session, "a changed system text made a new session"
    texts = [store.content(page.digest) for page in store.pages(Where(session=first.session))]
    assert sorted(texts) == sorted(
        [b"today is Monday", b"hi", b"hello", b"today is Tuesday", b"hm", b"more"]
    ), "an aside was lost, or something was kept twice"
    assert {node.branch for node in store.nodes(first.session)} == {0}, "an aside opened a branch"
    assert len(asked.pages) == 3, "new asides are not reported"


@on_fresh
def check_an_outline_says_where_every_message_and_page_of_a_session_is(store: Store) -> None:
    talk = StoreTalk(store)
    talk.history = [text_message(Role.SYSTEM, "today is Monday", aside=True)]
    first = talk.turn("question", "answer")
    talk.turn("and then?", "nothing")
    StoreTalk(store, key="another").turn("elsewhere", "far away")
    page = next(store.pages(Where(session=first.session)))
    kept(store, Gisted((Gist(page.id, 7, (), (), ()),)))
    outline = store.outline(first.session)
    assert [tuple(each) for each in outline.messages] == [
        (node.chain, node.parent, node.turn, node.aside) for node in store.nodes(first.session)
    ], "an outline's messages are not those of the session"
    assert [tuple(each) for each in outline.pages] == [
        (
            *(each.id, each.chain, each.position, each.kind, each.turn, each.tool, each.size),
            7 if each.id == page.id else None,
        )
        for each in store.pages(Where(session=first.session))
    ], "an outline's pages are not those of the session"
    assert store.outline(SessionId("none")) == SessionOutline([], []), "nothing has an outline"


@on_fresh
def check_a_turn_is_found_by_its_number_and_the_latest_without_one(store: Store) -> None:
    talk = StoreTalk(store)
    first = talk.turn("question", "answer")
    talk.turn("and then?", "nothing")
    turns = list(store.turns(first.session))
    assert [store.turn_of(first.session, number) for number in (1, 2)] == turns
    assert store.turn_of(first.session) == turns[-1], "the latest turn is another"
    assert store.turn_of(first.session, 3) is None, "there is a turn that never was"
    assert store.turn_of(SessionId("none")) is None, "no session has a turn"


LINEAGE_CHECKS = checks_in(globals())


def _contents(turn: Turn) -> dict[str, Digest]:
    every = {"system": turn.system, "tools": turn.tools, "params": turn.params, "reply": turn.reply}
    return {name: address for name, address in every.items() if address is not None}
