"""The contract of a store: hotset can use any adapter that passes `check_store`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise

from hotset.errors import BadInput, HotsetError, NotFound
from hotset.nouns.bill import Bill, Summary
from hotset.nouns.deposit import (
    Billed,
    CommitReceipt,
    Deposit,
    Gisted,
    HiddenKept,
    PageAdded,
    PlanMade,
    ReplyReceived,
    RequestReceived,
)
from hotset.nouns.message import ClientTool, Message, Part, Reply, Usage
from hotset.nouns.page import ROOT, Digest, Gist, Kind, Page, PageId, Role, SessionId, digest
from hotset.nouns.turn import Event, Outcome, Reference, Session, TurnId, TurnRef
from hotset.nouns.window import WHOLE, Hidden, SentRequest, Spot, Stub
from hotset.store.exchange import read_lines, write_lines
from hotset.store.port import Blob, Row, Store, Where
from hotset.testing.contract import checks_in, on_fresh, raises
from hotset.testing.store_lineage_contract import LINEAGE_CHECKS
from hotset.testing.store_memory_contract import MEMORY_CHECKS, lives
from hotset.testing.store_talk import (
    StoreTalk,
    id_of,
    kept,
    message,
    only_turn,
    request,
    shows,
    text_message,
    turn_of,
)
from hotset.testing.store_window_contract import WINDOW_CHECKS


def check_store(open_store: Callable[[], Store]) -> None:
    """Raises an AssertionError with a sentence if the store breaks its contract. `open_store` opens
    a new, empty store."""
    for check in CHECKS:
        check(open_store)


# --- content
# --------------------------------------------------------------------------------------------------

_AWKWARD = (
    b"",
    b"plain",
    "zażółć \U0001f9ed".encode(),
    b"\0\x01\xff\xfe not text",
    b"a" * 70_000,
    bytes(range(256)) * 5,
    b"\r\n\r line ends \n",
)


@on_fresh
def check_content_comes_back_byte_for_byte(store: Store) -> None:
    session = _session(store)
    for number, content in enumerate(_AWKWARD):
        note = kept(
            store,
            PageAdded(
                session, "agent", Kind.FINDING, content, float(number), media="application/x"
            ),
        )
        page = store.page(note.pages[0])
        assert store.content(page.digest) == content, f"content {number} came back changed"
        assert (page.size, page.media, page.kind) == (
            len(content),
            "application/x",
            Kind.FINDING,
        ), "a page lost its fields"


@on_fresh
def check_every_kind_is_kept_with_where_it_came_from(store: Store) -> None:
    talk = StoreTalk(store, agent="coder")
    parts = [Part(kind, f"a {kind}".encode(), "text/x", "tool", f"call-{kind}") for kind in Kind]
    asked = talk.asks(message(Role.USER, *parts))
    pages = list(store.pages(Where(session=turn_of(asked).session)))
    assert [page.kind for page in pages] == list(Kind), (
        "some kind of page was not kept, or not in order"
    )
    for position, (page, part) in enumerate(zip(pages, parts, strict=True)):
        assert store.content(page.digest) == part.content, (
            f"the content of a {part.kind} came back changed"
        )
        assert (page.agent, page.turn, page.position) == ("coder", 1, position), (
            "a page does not say where it came from"
        )
        assert (page.media, page.tool, page.call) == (part.media, part.tool, part.call), (
            "a page lost its tool call"
        )
        assert page.parent == (pages[position - 1].id if position else None), (
            "parts of a message are not linked"
        )
        assert store.page(page.id) == page, "a page by its id is not the page in the list"


@on_fresh
def check_missing_rows_are_reported(store: Store) -> None:
    asks: tuple[Callable[[], object], ...] = (
        lambda: store.content(digest(b"nothing")),
        lambda: store.page(PageId("p000000000000000")),
        lambda: store.session(SessionId("s00000000000")),
        lambda: store.reference("nothing"),
    )
    for ask in asks:
        assert raises(NotFound, ask), "something that was never kept was not reported as NotFound"
    assert store.gist(PageId("p000000000000000")) is None, "there is a gist of no page"
    assert not list(store.turns(SessionId("s00000000000"))), "a session that is not there has turns"


@on_fresh
def check_the_same_text_twice_is_two_pages_of_one_blob(store: Store) -> None:
    talk = StoreTalk(store)
    talk.turn("say it", "it")
    talk.turn("say it", "it")
    pages = [page for page in store.pages(Where()) if page.kind is Kind.PROMPT]
    assert len(pages) == 2, "a repeated text is not two pages"
    assert len({page.id for page in pages}) == 2, "two occurrences share an id"
    assert pages[0].digest == pages[1].digest, "equal content has two addresses"
    contents = [
        row for row in store.dump() if isinstance(row, Blob) and row.digest == pages[0].digest
    ]
    assert len(contents) == 1, "equal content is stored twice"


# --- finding pages
# --------------------------------------------------------------------------------------------------


@on_fresh
def check_pages_are_found_by_every_condition(store: Store) -> None:
    one, two = (
        StoreTalk(store, agent="one"),
        StoreTalk(store, agent="two", client="other/1", time=5000.0),
    )
    for number in range(3):
        one.turn(f"question {number}", f"answer {number}")
        two.turn(f"ask {number}", f"say {number}")
    every = list(store.pages(Where()))
    assert len(every) == 12, "not every page of two sessions is found"
    some = every[2]
    wheres = (
        Where(session=some.session),
        Where(agent="two"),
        Where(kinds=frozenset({Kind.PROMPT})),
        Where(session=some.session, turns=(2, 3)),
        Where(since=1002.0, until=1005.0),
        Where(since=5001.0),
        Where(parent=some.id),
        Where(chain=some.chain),
        Where(digest=some.digest),
        Where(digest=digest(b"nothing")),
        Where(branch=0),
        Where(branch=7),
        Where(agent="one", kinds=frozenset({Kind.RESPONSE}), turns=(1, 2)),
    )
    for where in wheres:
        expected = [page for page in every if where.holds(page)]
        assert list(store.pages(where)) == expected, f"{where} does not find what it says"
    assert (
        list(store.pages(Where(agent="one", limit=2))) == [p for p in every if p.agent == "one"][:2]
    ), "limit is not kept"
    assert not list(store.pages(Where(limit=0))), "a limit of 0 gives pages"


@on_fresh
def check_a_kind_finds_its_special_cases(store: Store) -> None:
    talk = StoreTalk(store)
    talk.asks(message(Role.TOOL, *(Part(kind, kind.encode(), call="c1") for kind in Kind)))
    results = [page.kind for page in store.pages(Where(kinds=frozenset({Kind.TOOL_RESULT})))]
    assert results == [kind for kind in Kind if kind.family is Kind.TOOL_RESULT], (
        "special tool results are not found"
    )
    plans = [page.kind for page in store.pages(Where(kinds=frozenset({Kind.PLAN})))]
    assert plans == [Kind.PLAN], "a special kind finds more than itself"
    assert len(list(store.pages(Where(call="c1")))) == len(Kind), (
        "pages are not found by their call"
    )


@on_fresh
def check_parents_lead_through_the_whole_conversation(store: Store) -> None:
    talk = StoreTalk(store)
    talk.turn("first", "answer")
    talk.hears(talk.asks("second").turn, text_message(Role.ASSISTANT))
    talk.turn("third", "last")
    pages = list(store.pages(Where()))
    assert [page.parent for page in pages] == [None, *(page.id for page in pages[:-1])], (
        "pages are not linked to the page before them (a message without parts is in between)"
    )
    for page, child in pairwise(pages):
        assert list(store.pages(Where(parent=page.id))) == [child], (
            "a page's children are not found"
        )


@on_fresh
def check_ids_can_be_shortened(store: Store) -> None:
    talk = StoreTalk(store)
    for number in range(12):
        talk.turn(f"q{number}", f"a{number}")
    ids = sorted(page.id for page in store.pages(Where()))
    assert list(store.match(ids[3])) == [ids[3]], "a whole id does not match itself"
    assert list(store.match(ids[3][:12])) == [ids[3]], "a unique prefix does not find its page"
    many = list(store.match("p"))
    assert 1 < len(many) <= len(ids), "a short prefix gives no choice"
    assert many == ids[: len(many)], "matches are not the first ones in order"
    assert not store.match("q"), "a prefix that no id has finds something"
    assert not store.match("p%"), "a prefix is taken for a pattern"


# --- order, failures, the rest of the rows
# ----------------------------------------------------------------------------------


@on_fresh
def check_order_does_not_come_from_the_clock(store: Store) -> None:
    talk = StoreTalk(store)
    for number, time in enumerate((9e9, 5.0, -1e9, 1e12, 0.0, 3.5)):
        talk.time = time
        talk.turn(f"question {number}", f"answer {number}")
    pages = [store.content(page.digest).decode() for page in store.pages(Where())]
    expected = [f"{what} {number}" for number in range(6) for what in ("question", "answer")]
    assert pages == expected, "pages are ordered by a clock that went backwards"
    session = next(store.sessions()).id
    assert [turn.number for turn in store.turns(session)] == list(range(1, 7)), (
        "turns are ordered by the clock"
    )


@on_fresh
def check_deposits_see_those_before_them(store: Store) -> None:
    futures = []
    history: list[Message] = []
    for number in range(50):
        history.append(text_message(Role.USER, f"message {number}"))
        futures.append(
            store.keep(RequestReceived(request(*history), float(number), "agent", key="k"))
        )
    numbers = [turn_of(future.result(timeout=60)).number for future in futures]
    assert numbers == list(range(1, 51)), (
        "deposits that waited together were not placed in their order"
    )


@on_fresh
def check_a_reply_may_follow_before_its_request_is_on_disk(store: Store) -> None:
    id = TurnId("made-by-the-caller")
    question, answer, more = (
        text_message(Role.USER, "question"),
        text_message(Role.ASSISTANT, "answer"),
        text_message(Role.USER, "more"),
    )
    together = [
        store.keep(RequestReceived(request(question), 1.0, "agent", id=id)),
        store.keep(
            ReplyReceived(id, 2.0, Outcome.DONE, 200, b"raw", Reply((answer,), complete=True))
        ),
        store.keep(RequestReceived(request(question, answer, more), 3.0, "agent")),
    ]
    first, ended, second = (turn_of(future.result(timeout=60)) for future in together)
    assert first == ended, "a reply that named its turn ended another one"
    assert second == TurnRef(first.session, 2), (
        "a request that stood behind the reply it continues began a new session"
    )
    assert next(store.turns(first.session)).id == id, (
        "a turn has another id than the one it was given"
    )


@on_fresh
def check_a_failed_deposit_changes_nothing(store: Store) -> None:
    session = _session(store)
    before = list(store.dump())
    nowhere = TurnRef(session, 99)
    bad: tuple[Deposit, ...] = (
        ReplyReceived(
            nowhere, 1.0, Outcome.DONE, 200, b"raw", Reply((text_message(Role.ASSISTANT, "x"),))
        ),
        PageAdded(SessionId("s00000000000"), "agent", Kind.FINDING, b"x", 1.0),
        PageAdded(session, "agent", Kind.FINDING, b"x", 1.0, parent=PageId("p000000000000000")),
        PageAdded(None, "agent", Kind.FINDING, b"x", 1.0),
        Gisted((Gist(PageId("p000000000000000"), 1, (), (), ()),)),
        PlanMade(TurnId("none"), SentRequest(ROOT, 1.0), (shows(ROOT, "text"),)),
        HiddenKept(TurnId("none"), Hidden(ROOT, (b"before",))),
        Billed(TurnId("none"), Bill("model", "upstream")),
        Summary(SessionId("s00000000000"), (1, 1), 0, 1, "text", "rules", 1.0),
    )
    for deposit in bad:
        assert raises(HotsetError, partial(kept, store, deposit)), f"{deposit} was accepted"
    assert list(store.dump()) == before, "a failed deposit left something behind"
    together = [store.keep(bad[0]), store.keep(Event("fine", 1.0)), store.keep(bad[1])]
    assert raises(NotFound, together[0].result), "a failed deposit was hidden by its neighbours"
    assert together[1].result() == CommitReceipt(), "a deposit failed with its neighbour"
    assert raises(NotFound, together[2].result), "a failed deposit was hidden by its neighbours"
    assert [event.name for event in store.events()] == ["fine"], (
        "a good deposit beside failed ones was not kept"
    )


@on_fresh
def check_notes_are_pages_of_their_own(store: Store) -> None:
    talk = StoreTalk(store, key="notes")
    turn = talk.turn("plan it", "yes")
    first = next(store.pages(Where()))
    notes = [
        kept(
            store, PageAdded(turn.session, "planner", Kind.PLAN, b"same", 7.0, parent=first.id)
        ).pages[0]
        for _ in range(2)
    ]
    assert notes[0] != notes[1], "two notes of one moment became one"
    page = store.page(notes[0])
    placed = (page.session, page.agent, page.turn, page.parent, page.kind, page.chain)
    assert placed == (turn.session, "planner", 1, first.id, Kind.PLAN, ROOT), (
        "a note does not know where it belongs"
    )
    assert [page.id for page in store.pages(Where(parent=first.id))][1:] == notes, (
        "a note is not its parent's child"
    )
    talk.history = [text_message(Role.USER, "plan it anew")]
    assert store.page(talk.asks().pages[0]).parent is None, (
        "a first message became the child of a note"
    )
    added = PageAdded(
        turn.session, "agent", Kind.TOOL_RESULT, b"said", 8.0, tool="git__log", call="call-1"
    )
    [note] = [store.page(id) for id in kept(store, added).pages]
    assert (note.tool, note.call) == ("git__log", "call-1"), "a note does not know its tool"
    assert [page.id for page in store.pages(Where(call="call-1"))] == [note.id], (
        "a note is not found by its call"
    )
    opened_by = [
        kept(store, PageAdded(None, "tool", Kind.TOOL_RESULT, text, 8.0, key="tools")).pages[0]
        for text in (b"a", b"b")
    ]
    sessions = {store.page(id).session for id in opened_by}
    assert len(sessions) == 1, "notes of one named session came into two"
    assert [each.key for each in store.sessions() if each.id in sessions] == ["tools"], (
        "a note did not open its session"
    )


@on_fresh
def check_pages_can_be_followed_in_the_order_in_which_they_were_kept(store: Store) -> None:
    assert not store.pages_after(0, 10), "an empty store has pages to follow"
    one, two = (
        StoreTalk(store, agent="one"),
        StoreTalk(store, agent="two", client="other/1", time=1.0),
    )
    for number in range(3):
        one.turn(f"question {number}", f"answer {number}")
        two.turn(f"ask {number}", f"say {number}")
    every = store.pages_after(0, 100)
    assert [page for _, page in every] == list(store.pages(Where())), (
        "pages do not come in the order in which they were kept"
    )
    assert all(0 < before < after for (before, _), (after, _) in pairwise(every)), (
        "their numbers do not grow from 1 up"
    )
    followed: list[tuple[int, Page]] = []
    while some := store.pages_after(followed[-1][0] if followed else 0, 5):
        assert len(some) <= 5, "more pages came than were asked for"
        followed += some
    assert followed == every, "pages were lost or came twice between one step and the next"
    assert not store.pages_after(0, 0), "pages came though none were asked for"
    one.turn("later", "yes")
    later = [page.agent for _, page in store.pages_after(every[-1][0], 100)]
    assert later == ["one", "one"], "what came later does not follow"
    assert store.pages_after(0, len(every)) == every, "a page got another number"


@on_fresh
def check_events_can_be_followed_by_name(store: Store) -> None:
    names = ("Evicted", "Alert", "Retrieved", "Alert", "Evicted")
    for at, name in enumerate(names):
        store.keep(Event(name, float(at), detail={"at": at})).result()
    every = store.events_after(0, 100)
    assert [event for _, event in every] == list(store.events()), "events come in another order"
    assert all(0 < one < two for (one, _), (two, _) in pairwise(every)), "numbers do not grow"
    alerts = store.events_after(0, 100, frozenset({"Alert"}))
    assert alerts == [each for each in every if each[1].name == "Alert"], "other events came"
    assert store.events_after(alerts[0][0], 1, frozenset({"Alert"})) == alerts[1:], (
        "what follows an event does not come next"
    )
    assert not store.events_after(every[-1][0], 10), "events came behind the last"
    assert not store.events_after(0, 0), "events came though none were asked for"
    back = every[::-1]
    assert list(store.events_before(None, 100)) == back, "the latest events do not come first"
    assert list(store.events_before(back[1][0], 2)) == back[2:4], "the events in front do not come"
    some = store.events_before(None, 9, names=frozenset({"Alert"}), since=1.0, until=3.0)
    assert list(some) == [every[1]], "events of another name or time came"
    assert not store.events_before(None, 9, session=SessionId("none")), "other sessions' came"
    assert not store.events_before(None, 0), "events came though none were asked for"


@on_fresh
def check_events_references_and_gists_are_kept(store: Store) -> None:
    session = _session(store)
    events = [
        Event("a", 2.0, session, 1, {"n": 1, "f": 0.5, "s": "x"}),
        Event("b", 1.0),
        Event("b", 1.0),
    ]
    for event in events:
        kept(store, event)
    assert list(store.events()) == events, "events came back changed, or two equal ones became one"
    assert list(store.events(session)) == events[:1], "events of a session are not found"
    pages = list(store.pages(Where()))
    reference = Reference(
        "r1", session, "conversation", (pages[0].id,), (1, 1), 42, 3.0, ("t",), ("e",), ("h",)
    )
    kept(store, reference)
    kept(store, replace(reference, tokens=1))
    assert store.reference("r1") == reference, "a reference came back changed"
    assert list(store.references(session)) == [reference], "references of a session are not found"
    assert [page.id for page in store.ungisted(10)] == [page.id for page in pages], (
        "pages without a gist are not listed"
    )
    gist = Gist(pages[1].id, 3, ("k",), ("e",), ("f.py",))
    kept(store, Gisted((gist,)))
    assert store.gist(pages[1].id) == gist, "a gist came back changed"
    assert list(store.ungisted(10)) == [page for page in pages if page.id != gist.page], (
        "a page with a gist still wants one"
    )
    assert list(store.ungisted(1)) == pages[:1], "the oldest page does not come first"
    kept(store, Gisted(tuple(Gist(page.id, 1, (), (), ()) for page in pages)))
    assert not store.ungisted(10), "pages with gists still want one"
    later = kept(store, PageAdded(session, "agent", Kind.FINDING, b"later", 9.0)).pages
    assert [page.id for page in store.ungisted(10)] == list(later), (
        "a page that came later wants no gist"
    )


@on_fresh
def check_a_census_counts(store: Store) -> None:
    assert store.census().pages == 0, "an empty store has pages"
    talk = StoreTalk(store)
    talk.turn("hello", "hi")
    census = store.census()
    blobs = [row for row in store.dump() if isinstance(row, Blob)]
    assert (census.sessions, census.turns, census.pages, census.blobs) == (
        1,
        1,
        2,
        len(blobs),
    ), "the census is wrong"
    assert census.content_bytes == sum(len(blob.content) for blob in blobs), (
        "the census counts other bytes"
    )


@on_fresh
def check_a_whole_store_verifies(store: Store) -> None:
    _busy_life(store)
    assert not list(store.verify()), "an intact store is reported as damaged"


@on_fresh
def check_a_dump_can_be_loaded(store: Store, other: Store) -> None:
    _busy_life(store)
    rows = list(store.dump())
    assert other.load(rows) == len(rows), "loading into an empty store did not take every row"
    assert list(other.dump()) == rows, "what was dumped and loaded is not equal"
    assert other.load(rows) == 0, "loading twice brought something new"
    assert list(other.dump()) == rows, "loading twice changed something"
    assert list(read_lines(write_lines(rows))) == rows, "rows came back changed from text"
    assert not list(other.verify()), "a loaded store does not verify"
    talk = StoreTalk(other, agent="coder", time=9000.0)
    talk.turn("life goes on", "it does")


@on_fresh
def check_one_session_can_be_dumped(store: Store, other: Store) -> None:
    _busy_life(store)
    for session in store.sessions():
        rows = list(store.dump(session.id))
        other.load(rows)
        assert list(other.pages(Where(session=session.id))) == list(
            store.pages(Where(session=session.id))
        ), "pages of a session came back changed"
        assert list(other.dump(session.id)) == rows, (
            "a session that was dumped and loaded is not equal"
        )


@on_fresh
def check_a_bad_load_changes_nothing(store: Store, other: Store) -> None:
    _busy_life(store)
    StoreTalk(other).turn("here", "first")
    before = list(other.dump())
    rows = list(store.dump())
    bad: tuple[list[Row], ...] = (
        [*rows, Blob(Digest("0" * 64), b"not that hash")],
        [row for row in rows if not isinstance(row, Blob)],
        [row for row in rows if not isinstance(row, Session)],
    )
    for unfit in bad:
        assert raises(BadInput, partial(other.load, unfit)), "rows that do not fit were loaded"
        assert list(other.dump()) == before, "a load that failed left something behind"
    assert raises(ConnectionError, lambda: other.load(_breaks_off(rows))), (
        "an error of the source was swallowed"
    )
    assert list(other.dump()) == before, "a load that broke off left something behind"


@on_fresh
def check_an_open_turn_gives_way_to_its_end(store: Store, other: Store) -> None:
    talk = StoreTalk(store)
    asked = talk.asks("hello")
    other.load(list(store.dump()))
    talk.hears(asked.turn, "hi")
    other.load(list(store.dump()))
    assert only_turn(other, asked) == only_turn(store, asked), (
        "a turn that ended elsewhere stays open for ever"
    )


CHECKS = (
    *checks_in(globals()),
    *LINEAGE_CHECKS,
    *WINDOW_CHECKS,
    *MEMORY_CHECKS,
)


# --- below the checks
# --------------------------------------------------------------------------------------------------


def _breaks_off(rows: list[Row]) -> Iterator[Row]:
    yield from rows[: len(rows) // 2]
    raise ConnectionError


def _session(store: Store) -> SessionId:
    return StoreTalk(store).turn("hello", "hi").session


def _busy_life(store: Store) -> None:
    """Two sessions with branches, tools, asides, notes, events, references, gists, forms, hidden
    turns, bills, summaries, and memories.
    """
    coder = StoreTalk(
        store, agent="coder", traits={"tools": (ClientTool("grep", b'{"name":"grep"}'),)}
    )
    writer = StoreTalk(
        store,
        agent="writer",
        key="w",
        traits={"system": (Part(Kind.SYSTEM, "pisz krótko".encode()),)},
    )
    for number in range(4):
        coder.turn(f"question {number}", f"answer {number} " * 200)
        writer.turn(f"ask {number}", f"say {number}")
    coder.history = coder.history[:3]
    turn = coder.turn("edited", "fine")
    binary = message(Role.TOOL, Part(Kind.IMAGE, bytes(range(256)), "image/png", "shot", "call-1"))
    coder.hears(
        coder.asks(binary).turn,
        message(Role.ASSISTANT, Part(Kind.THINKING, b"hm"), aside=True),
        "seen",
    )
    kept(store, PageAdded(turn.session, "coder", Kind.FINDING, b"a finding", 3.0))
    pages: list[Page] = list(store.pages(Where(session=turn.session)))
    kept(
        store, Event("evicted", 4.0, turn.session, 2, {"pages": 3, "share": 0.25, "why": "window"})
    )
    kept(
        store, Event("evicted", 4.0, turn.session, 2, {"pages": 3, "share": 0.25, "why": "window"})
    )
    kept(
        store,
        Reference(
            "r1",
            turn.session,
            "conversation",
            tuple(page.id for page in pages[:2]),
            (1, 2),
            9,
            5.0,
            ("t",),
        ),
    )
    kept(store, Gisted(tuple(Gist(page.id, 7, ("k", "ł"), (), ("a.py",)) for page in pages[2:4])))
    id, line = id_of(store, turn), coder.line
    rows = (
        shows(line[0]),
        shows(line[1], "an excerpt " * 300),
        shows(line[1], "both of \u0142", WHOLE),
    )
    stub = Stub("r2", "conversation", (Spot(line[0], 0), Spot(line[1], WHOLE)), (1, 1), 9, 5.0)
    kept(store, PlanMade(id, SentRequest(line[2], 6.0, 40), rows, (stub,)))
    kept(
        store,
        HiddenKept(id, Hidden(line[3], (b"\xff not text", b"{}"), b"instead", (b"after",), 1)),
    )
    kept(store, PlanMade(id, SentRequest(line[2], 7.0, 41), (shows(line[1], "shorter"),)))
    kept(
        store,
        Billed(
            id,
            Bill(
                "model",
                "upstream",
                Usage(1, 2, 3, 4),
                Usage(9),
                Usage(1, 2, 3, 5),
                2,
                1,
                1,
                "cold",
                0.5,
            ),
        ),
    )
    for version in (1, 2):
        kept(store, Summary(turn.session, (1, 2), 0, version, f"so far {version}", "rules", 8.0))
    lives(store, turn.session)
