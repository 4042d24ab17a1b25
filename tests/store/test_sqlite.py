"""What the embedded store does beyond the contract."""

import asyncio
import random
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.waiting import wait_until

from hotset.errors import BadInput
from hotset.files.lru import CACHES
from hotset.nouns.bill import Bill, Summary
from hotset.nouns.deposit import Billed, HiddenKept, PageAdded, PlanMade, RequestReceived
from hotset.nouns.message import ClientTool
from hotset.nouns.page import Kind, Role
from hotset.nouns.pressure import RESPONSES, PressureLevel
from hotset.nouns.turn import Event, Outcome
from hotset.nouns.window import WHOLE, Hidden, SentRequest, Spot, Stub
from hotset.store.connection import Tuning, connect
from hotset.store.exchange import read_lines, write_lines
from hotset.store.port import Where
from hotset.store.sqlite import SqliteStore
from hotset.testing.ram_store import RamStore
from hotset.testing.store_talk import StoreTalk, id_of, kept, request, shows, text_message

_TUNING = Tuning(ballast_bytes=0)
_WORDS = st.sampled_from(["hi", "yes", "no", "go on", "zażółć", "x" * 700])
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "turn",
                "ask",
                "retry",
                "edit",
                "rewind",
                "fork",
                "aside",
                "break",
                "note",
                "event",
                "plan",
                "hide",
            ]
        ),
        st.integers(0, 2),
        _WORDS,
        _WORDS,
        st.integers(0, 9),
    ),
    max_size=25,
)


@pytest.fixture
def store(tmp_path):
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        yield store


def _live(store, steps):  # noqa: C901, PLR0912 - one case a kind of step
    """The same life for any store: three clients that append, edit, rewind, fork and retry."""
    clients = [
        StoreTalk(store),
        StoreTalk(
            store, agent="other", client="other/1", traits={"tools": (ClientTool("t", b"{}"),)}
        ),
        StoreTalk(store, key="k"),
    ]
    for act, who, question, answer, number in steps:
        talk = clients[who]
        talk.time += number - 4  # a clock that also goes backwards
        match act:
            case "turn":
                talk.turn(question, answer)
            case "ask":
                talk.asks(question)
            case "retry" if talk.history:
                talk.hears(talk.asks().turn, answer)
            case "edit" if talk.history:
                talk.history[number % len(talk.history)] = text_message(Role.USER, question)
                talk.hears(talk.asks().turn, answer)
            case "rewind":
                del talk.history[number:]
                talk.turn(question, answer)
            case "fork":
                clients.append(StoreTalk(store, history=list(talk.history), time=talk.time))
                clients[-1].turn(question, answer)
            case "aside":
                talk.history.insert(
                    number % (len(talk.history) + 1),
                    text_message(Role.SYSTEM, question, aside=True),
                )
                talk.asks(answer)
            case "break":
                talk.hears(talk.asks(question).turn, answer, outcome=Outcome.BROKEN)
            case "note":
                session = talk.asks(question).turn.session
                kept(store, PageAdded(session, "n", Kind.FINDING, answer.encode(), talk.time))
            case "plan":
                asked, line = talk.asks(question).turn, talk.line
                rows = (shows(line[number % len(line)], answer, number % 3 - 1), shows(line[-1]))
                stub = Stub(
                    f"r{number}",
                    "conversation",
                    (Spot(line[0], WHOLE),),
                    (1, number),
                    number,
                    talk.time,
                )
                kept(
                    store,
                    PlanMade(
                        id_of(store, asked), SentRequest(line[-1], talk.time, number), rows, (stub,)
                    ),
                )
            case "hide":
                asked, line = talk.asks(question).turn, talk.line
                raws = (answer.encode(),) * (number % 3)
                kept(
                    store,
                    HiddenKept(
                        id_of(store, asked),
                        Hidden(line[number % len(line)], raws, question.encode(), raws, number),
                    ),
                )
                kept(store, Billed(id_of(store, asked), Bill(answer, question, calls=number)))
                kept(
                    store,
                    Summary(asked.session, (1, number), 0, number, answer, "rules", talk.time),
                )
            case "event":
                kept(store, Event(question, talk.time, None, number))
    return list(store.dump())


@given(_STEPS)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@pytest.mark.slow
def test_whatever_conversations_do_both_stores_hold_the_same(tmp_path_factory, steps):
    with SqliteStore.open(tmp_path_factory.mktemp("s") / "s", _TUNING) as store:
        rows = _live(store, steps)
        assert rows == _live(RamStore(), steps)
        assert not list(store.verify())
        assert list(read_lines(write_lines(rows))) == rows
        again = RamStore()
        again.load(rows)
        assert list(again.dump()) == rows
        for session in store.sessions():
            assert list(store.dump(session.id)) == list(again.dump(session.id))


def test_deposits_that_wait_together_share_a_commit_and_keep_their_order(store):
    session = StoreTalk(store).turn("hello", "hi").session
    futures = [
        store.keep(PageAdded(session, "a", Kind.FINDING, str(number).encode(), 1.0))
        for number in range(1000)
    ]
    pages = [future.result(120).pages[0] for future in futures]
    assert [page.id for page in store.pages(Where(kinds=frozenset({Kind.FINDING})))] == pages


def test_an_event_loop_can_wait_for_a_deposit(store):
    async def main():
        answers = await asyncio.gather(
            *(asyncio.wrap_future(store.keep(Event(f"e{n}", 1.0))) for n in range(50))
        )
        return len(answers)

    assert asyncio.run(main()) == 50


def test_a_caller_that_goes_away_does_not_take_its_deposit_back(store):
    async def main():
        waiting = asyncio.wrap_future(store.keep(Event("kept", 1.0)))
        waiting.cancel()

    asyncio.run(main())
    kept(store, Event("after", 1.0))
    assert [event.name for event in store.events()] == ["kept", "after"]


def test_text_that_cannot_be_stored_fails_alone(store):
    bad = [
        store.keep(Event("\ud800", 1.0)),
        store.keep(RequestReceived(request(text_message(Role.USER, "x")), 1.0, agent="\ud800")),
        store.keep(Event("inf", float("inf"))),
        store.keep(Event("nan", 1.0, detail={"x": float("nan")})),
        store.keep(Event("big", 1.0, turn=2**70)),
    ]
    good = store.keep(Event("good \0 with a NUL", 1.0))
    for future in bad:
        with pytest.raises(BadInput):
            future.result(120)
    good.result(120)
    assert [event.name for event in store.events()] == ["good \0 with a NUL"]
    assert not list(store.sessions())


@pytest.mark.parametrize("size", [2_000, 2_000_000])
def test_the_store_holds_no_content_of_what_it_has_kept(store, size):
    session = StoreTalk(store).turn("hello", "hi").session
    content = random.Random(1).randbytes(size)
    before = sys.getrefcount(content)
    kept(store, PageAdded(session, "a", Kind.FILE, content, 1.0))
    wait_until(lambda: sys.getrefcount(content) <= before)


@pytest.mark.row("V14")
def test_idle_connections_give_their_pages_back_when_memory_is_short(store):
    def pages():
        return next(each for each in CACHES.sizes() if each.name == "database pages")

    session = StoreTalk(store).turn("hello", "hi").session
    for number in range(50):
        content = random.Random(number).randbytes(20_000)
        kept(store, PageAdded(session, "a", Kind.FILE, content, 1.0))
    assert all(store.content(page.digest) for page in store.pages(Where()))
    held = pages()
    assert held.entries > 0
    try:
        CACHES.respond(RESPONSES[PressureLevel.CRITICAL])
        assert pages().bytes < held.bytes / 2
    finally:
        CACHES.respond(RESPONSES[PressureLevel.NORMAL])
    assert all(store.content(page.digest) for page in store.pages(Where()))


def test_threads_read_while_others_write(store):
    session = StoreTalk(store).turn("hello", "hi").session

    def write(number):
        return kept(
            store, PageAdded(session, "a", Kind.FINDING, random.Random(number).randbytes(2000), 1.0)
        ).pages[0]

    def read(_):
        return all(store.content(page.digest) for page in store.pages(Where()))

    with ThreadPoolExecutor(6) as pool:
        writes = pool.map(write, range(200))
        reads = pool.map(read, range(20))
        assert all(reads)
        assert len(set(writes)) == 200


def test_a_reader_that_has_not_read_yet_keeps_the_wal_it_saw(tmp_path):
    with SqliteStore.open(tmp_path, Tuning(ballast_bytes=0)) as store:
        kept(store, Event("before", 1.0))
        reader = connect(store.database, Tuning(), reading=True)
        reader.refuse_moved()
    with SqliteStore.open(tmp_path, Tuning(ballast_bytes=0)) as store:
        kept(store, Event("after", 2.0))
        reader.refuse_moved()
        reader.close()


def test_text_compresses_and_noise_does_not_grow(store):
    session = StoreTalk(store).turn("hello", "hi").session
    kept(store, PageAdded(session, "a", Kind.FILE, b"def f():\n    return 1\n" * 1000, 1.0))
    small = store.census()
    assert small.stored_bytes < small.content_bytes / 10
    kept(store, PageAdded(session, "a", Kind.FILE, random.Random(1).randbytes(50_000), 1.0))
    assert store.census().stored_bytes - small.stored_bytes == 50_000


def test_indexes_answer_the_questions_that_are_asked_at_every_turn(store):
    StoreTalk(store).turn("hello", "hi")
    with store._reading() as connection:
        for sql in (
            "SELECT 1 FROM node WHERE chain = ? ORDER BY seq DESC LIMIT 5",
            "SELECT 1 FROM node WHERE chain = ? AND session = ?",
            "SELECT 1 FROM node WHERE session = ? AND parent = ? AND NOT aside LIMIT 1",
            (
                "SELECT 1 FROM page WHERE chain = ? AND chain <> '' AND session = ? ORDER BY "
                "position DESC LIMIT 1"
            ),
            "SELECT 1 FROM page WHERE seq > ? AND session = ? ORDER BY seq LIMIT 256",
            (
                "SELECT 1 FROM page WHERE seq > ? AND parent = ? AND parent IS NOT NULL ORDER BY "
                "seq LIMIT 256"
            ),
            "SELECT 1 FROM page WHERE seq > ? AND call = ? AND call <> '' ORDER BY seq LIMIT 256",
            (
                "SELECT 1 FROM turn WHERE response_id = ? AND response_id <> '' ORDER BY seq DESC "
                "LIMIT 1"
            ),
            "SELECT 1 FROM turn WHERE session = ? ORDER BY number DESC LIMIT 1",
            "SELECT 1 FROM session WHERE key = ? AND key <> '' ORDER BY seq LIMIT 1",
        ):
            plan = " ".join(
                row[3]
                for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", ("x",) * sql.count("?"))
            )
            assert "INDEX" in plan, (sql, plan)
            assert "SCAN" not in plan, (sql, plan)


def test_an_export_names_the_line_that_cannot_be_used(store):
    StoreTalk(store).turn("hello", "hi")
    kept(store, PageAdded(next(store.sessions()).id, "a", Kind.IMAGE, b"\xff\x00binary", 1.0))
    lines = list(write_lines(store.dump()))
    for bad, told in (
        ([], "line 1"),
        ([b"{}\n"], "line 1"),
        ([b'{"hotset":"store","format":9}\n'], "format 9"),
        ([*lines[:3], b"{not json\n", *lines[3:]], "line 4"),
        ([*lines[:3], b'{"is":"elephant"}\n', *lines[3:]], "line 4.*elephant"),
        ([*lines[:3], b'{"is":"page","id":5}\n', *lines[3:]], "line 4"),
        ([*lines[:3], b'{"is":"content","digest":"00","text":"x"}\n', *lines[3:]], "line 4.*hash"),
        (
            [*lines[:3], b'{"is":"content","digest":"00","base64":"?"}\n', *lines[3:]],
            "line 4.*base64",
        ),
        ([*lines[:3], b'{"is":"content"}\n', *lines[3:]], "line 4"),
        ([*lines[:3], b"[1]\n", *lines[3:]], "line 4"),
        ([*lines[:3], b"\xff\xfe\n", *lines[3:]], "line 4"),
        (lines[:-1], "cut off"),
        ([*lines[:2], *lines[3:]], "rows"),
        ([*lines, lines[1]], "behind the last line"),
    ):
        before = list(store.dump())
        with pytest.raises(BadInput, match=told):
            store.load(read_lines(bad))
        assert list(store.dump()) == before
    assert store.load(read_lines(line.replace(b"\n", b"\r\n") for line in [b"\n", *lines])) == 0
