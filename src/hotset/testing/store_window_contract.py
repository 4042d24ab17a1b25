"""The part of a store's contract that is about the window: forms, hidden turns, bills,
summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import accumulate

from hotset.errors import NotFound
from hotset.nouns.bill import Bill, Summary
from hotset.nouns.deposit import Billed, HiddenKept, PlanMade
from hotset.nouns.message import Part, Usage
from hotset.nouns.page import Chain, Kind, Role, digest
from hotset.nouns.turn import Event, TurnRef
from hotset.nouns.window import (
    WHOLE,
    Cause,
    Form,
    Hidden,
    PageTable,
    SentRequest,
    Shown,
    Spot,
    Stub,
)
from hotset.store.port import MATCHES, Blob, Row, Store, Where
from hotset.testing.store_lineage_contract import OpenStore
from hotset.testing.store_talk import StoreTalk, id_of, kept, message, opened, shows, turn_of


def check_the_latest_form_of_each_place_comes_back_byte_for_byte(open_store: OpenStore) -> None:
    with opened(open_store) as store:
        talk = StoreTalk(store)
        turn = talk.turn("question", "answer")
        first, second = talk.line
        assert store.table(talk.line) == PageTable(), "there is a form that nobody decided"
        born = shows(first, "zażółć \0 " * 500, tokens=3, whole=9)
        binary = replace(shows(first, position=2), text=b"\xff\x00", form=Form.CHANGE)
        gone = shows(second, "", WHOLE, Form.GONE, cause=Cause.COLD)
        _plan(store, turn, second, born, binary, gone)
        assert _shown(store, talk.line) == [born, binary, gone], "a form came back changed"
        full = shows(first, form=Form.FULL, cause=Cause.PAYS, time=-5.0)
        _plan(store, turn, second, full)
        assert _shown(store, talk.line) == [full, binary, gone], (
            "the latest row of a place does not hold"
        )
        _plan(store, turn, second, born, gone, full)
        _plan(store, turn, second, full, born)
        assert store.table([first]).shown[born.spot] == born, (
            "a place that was decided twice at once is not as decided last"
        )
        assert _shown(store, [second]) == [gone], (
            "a table has rows of messages that were not asked for"
        )
        assert store.table([]) == PageTable(), "a table of nothing has rows"


def check_sessions_with_the_same_past_share_their_forms(open_store: OpenStore) -> None:
    with opened(open_store) as store:
        one, two = StoreTalk(store, key="one"), StoreTalk(store, key="two")
        turns = one.turn("question", "answer"), two.turn("question", "answer")
        assert one.line == two.line, "two conversations that are the same have another identity"
        _plan(store, turns[0], one.line[1], shows(one.line[0], "by one"))
        assert _texts(store, two.line) == ["by one"], (
            "a session with the same past does not share its forms"
        )
        _plan(store, turns[1], two.line[1], shows(two.line[0], "by two"))
        assert _texts(store, one.line) == ["by two"], (
            "a session with the same past does not share its forms"
        )
        assert _texts(store, one.line, turns[0]) == ["by one"], (
            "a turn does not know how it was sent before another session spoke"
        )


def check_a_table_as_of_a_turn_is_how_that_turn_was_sent(open_store: OpenStore) -> None:
    with opened(open_store) as store:
        talk = StoreTalk(store)
        turns: list[TurnRef] = []
        tables: list[PageTable] = []
        for number, time in enumerate((9e9, 5.0, -1e9)):
            talk.time = time
            asked = turn_of(talk.asks(f"question {number}"))
            _plan(
                store,
                asked,
                talk.line[-1],
                shows(talk.line[0], f"as of {number}"),
                shows(talk.line[-1], time=time),
            )
            turns.append(asked)
            tables.append(store.table(talk.line))
            talk.hears(asked, f"answer {number}")
            kept(store, HiddenKept(id_of(store, asked), Hidden(talk.line[-1], (b"%d" % number,))))
        for number, (turn, table) in enumerate(zip(turns, tables, strict=True)):
            assert store.table(talk.line, turn) == table, "a turn does not come back as it was sent"
            assert len(table.hidden) == number, "what was hidden later stands in an earlier turn"
        _plan(store, turns[1], talk.line[2], shows(talk.line[0], "planned again"))
        assert _texts(store, talk.line[:1], turns[1]) == ["planned again"], (
            "a turn that was planned twice is not as planned last"
        )
        assert _texts(store, talk.line[:1], turns[2]) == ["as of 2"], (
            "a later plan changed how an earlier one was sent"
        )
        unplanned = talk.turn("just so", "fine")
        assert store.table(talk.line, unplanned) == PageTable(), (
            "a turn that was never planned was sent with forms"
        )
        try:
            store.table(talk.line, TurnRef(unplanned.session, 99))
        except NotFound:
            return
        raise AssertionError("a turn that does not exist has a table")


def check_the_latest_request_of_a_line_is_known(open_store: OpenStore) -> None:
    with opened(open_store) as store:
        talk = StoreTalk(store)
        turns = [talk.turn(f"question {number}", f"answer {number}") for number in range(3)]
        line = talk.line
        assert store.table(line).sent is None, "a request was sent that nobody planned"
        for turn, head, time in ((turns[1], line[2], 50.0), (turns[0], line[0], 90.0)):
            kept(store, PlanMade(id_of(store, turn), SentRequest(head, time, 7)))
        assert store.table(line).sent == SentRequest(line[2], 50.0, 7), (
            "the deepest message that was sent is not found"
        )
        assert store.table(line[:2]).sent == SentRequest(line[0], 90.0, 7), (
            "a line that was rewound does not know its latest request"
        )
        kept(store, PlanMade(id_of(store, turns[2]), SentRequest(line[2], 10.0, 8)))
        assert store.table(line).sent == SentRequest(line[2], 10.0, 8), (
            "of two requests with one head the later one does not count"
        )
        many = [
            *(Chain(digest(b"%d" % number)) for number in range(700)),
            *line,
            *(Chain(digest(b"x%d" % n)) for n in range(700)),
        ]
        assert store.table(many).sent == SentRequest(line[2], 10.0, 8), (
            "a long line does not know its latest request"
        )


def check_hidden_turns_come_back_byte_for_byte(open_store: OpenStore) -> None:
    with opened(open_store) as store:
        talk = StoreTalk(store)
        id = id_of(store, talk.turn("question", "answer"))
        hidden = Hidden(
            talk.line[1], (b"{}", b"\xff\0", b"{}"), b"instead" * 1000, (b"after", b""), 2
        )
        kept(store, HiddenKept(id, hidden))
        kept(store, HiddenKept(id, Hidden(talk.line[0])))
        assert store.table(talk.line).hidden == {
            talk.line[0]: Hidden(talk.line[0]),
            talk.line[1]: hidden,
        }, "a hidden turn was changed"
        later = Hidden(talk.line[1], after=(b"later",))
        kept(store, HiddenKept(id, later))
        assert store.table(talk.line[1:]).hidden == {talk.line[1]: later}, (
            "the latest hidden turn of a message does not hold"
        )


def check_conversations_that_open_alike_are_told_apart_by_their_replies(
    open_store: OpenStore,
) -> None:
    with opened(open_store) as store:
        told = [None, Hidden(Chain(""), after=(b"first",)), Hidden(Chain(""), after=(b"second",))]
        talks = []
        for number, hidden in enumerate(told):
            talk = StoreTalk(store, key=f"session {number}", time=1000.0 * (number + 1))
            asked = turn_of(talk.asks("nightly triage"))
            kept(store, PlanMade(id_of(store, asked), SentRequest(talk.line[0], talk.time)))
            if hidden is not None:
                kept(store, HiddenKept(id_of(store, asked), replace(hidden, chain=talk.line[0])))
            talk.hears(asked, f"answer {number}")
            talks.append(talk)
        for talk, hidden in zip(talks, told, strict=True):
            found = [each.after for each in store.table(talk.line).hidden.values()]
            assert found == ([hidden.after] if hidden else []), (
                "a conversation is told what another one with the same opening was"
            )
        assert store.table(talks[0].line[:1]).hidden[talks[0].line[0]].after == (b"second",), (
            "the latest does not hold"
        )


def check_what_left_can_be_referred_to(open_store: OpenStore) -> None:
    with opened(open_store) as store:
        talk = StoreTalk(store)
        asked = turn_of(
            talk.asks(
                message(
                    Role.USER, *(Part(Kind.PROMPT, text) for text in (b"one", b"two", b"three"))
                )
            )
        )
        talk.hears(asked, "answer")
        line = talk.line
        spots = (Spot(line[1], 0), Spot(line[0], WHOLE), Spot(line[0], 2))
        stub = Stub(
            "ref-1", "conversation", spots, (1, 1), 42, 3.0, ("topic",), ("entity",), ("hint",)
        )
        kept(store, PlanMade(id_of(store, asked), SentRequest(line[0], 1.0), stubs=(stub,)))
        reference = store.reference("ref-1")
        contents = [store.content(store.page(page).digest) for page in reference.pages]
        assert contents == [b"answer", b"one", b"two", b"three", b"three"], (
            "a reference does not lead to the pages that left"
        )
        fields = (
            reference.kind,
            reference.turns,
            reference.tokens,
            reference.time,
            reference.topics,
            reference.entities,
            reference.hints,
        )
        assert fields == ("conversation", (1, 1), 42, 3.0, ("topic",), ("entity",), ("hint",)), (
            "a reference lost its fields"
        )
        assert list(store.references(asked.session)) == [reference], (
            "references of a session are not found"
        )


def check_bills_say_whose_they_are(open_store: OpenStore) -> None:
    with opened(open_store) as store:
        one, two = StoreTalk(store, key="one"), StoreTalk(store, key="two", time=5000.0)
        bill = Bill(
            "model", "upstream", Usage(1, 2, 3, 4), Usage(9), Usage(5), 2, 1, 1, "overflow", 0.25
        )
        turns = [
            one.turn("a", "b"),
            two.turn("a", "b"),
            one.turn("c", "d"),
            turn_of(two.asks("never answered")),
        ]
        counted = [bill, replace(bill, usage=Usage(5, estimated=True)), bill, bill]
        for turn, each in zip(turns, counted, strict=True):
            kept(store, Billed(id_of(store, turn), each))
        times = (1002.0, 5002.0, 1004.0, 5003.0)
        bills = [
            replace(each, session=turn.session, turn=turn.number, time=time)
            for each, turn, time in zip(counted, turns, times, strict=True)
        ]
        assert list(store.bills()) == bills, "bills came back changed"
        assert list(store.bills(turns[0].session)) == [bills[0], bills[2]], (
            "the bills of a session are not found"
        )
        assert list(store.bills(since=1004.0)) == bills[1:], "bills since a moment are not found"
        assert list(store.bills(turns[1].session, since=5003.0)) == bills[3:], (
            "bills of a session since a moment are not found"
        )
        kept(store, Billed(id_of(store, turns[0]), replace(bill, calls=9)))
        assert list(store.bills()) == bills, "a turn was billed twice"


def check_the_latest_summary_of_each_stretch_is_given(open_store: OpenStore) -> None:
    with opened(open_store) as store:
        session = StoreTalk(store).turn("hello", "hi").session
        other = StoreTalk(store, key="other").turn("hello", "hi").session
        first = Summary(session, (1, 4), 0, 1, "erste Fassung \u00fc", "rules", 5.0)
        versions = [
            first,
            replace(first, version=3, by="model"),
            replace(first, version=2),
            replace(first, turns=(5, 9)),
        ]
        for summary in (
            *versions,
            replace(first, branch=1),
            replace(first, session=other),
            replace(first, version=3, text="late"),
        ):
            kept(store, summary)
        expected = [versions[1], versions[3], replace(first, branch=1)]
        assert list(store.summaries(session)) == expected, (
            "not the latest summary of each stretch came back"
        )
        assert list(store.summaries(other)) == [replace(first, session=other)], (
            "another session's summaries came back"
        )


def check_a_content_id_leads_to_its_pages(open_store: OpenStore) -> None:
    with opened(open_store) as store:
        talk = StoreTalk(store)
        for number in range(12):
            talk.turn("say it", f"it {number}")
        address = digest(b"say it")
        for length in (64, 12, 7):
            assert list(store.contents(address[:length])) == [address], (
                "the beginning of an address does not lead to its content"
            )
        assert len(list(store.pages(Where(digest=address)))) == 12, (
            "content does not lead to every page that has it"
        )
        few = list(store.contents(""))
        assert few == sorted(few), "addresses are not in order"
        assert 1 < len(few) <= MATCHES, "an empty beginning gives no choice"
        for nothing in (address[:-1] + "x", "zz", "%", address[:9].upper(), address + "0"):
            assert not store.contents(nothing), f"{nothing} begins no address"


def check_a_version_changes_with_every_commit(open_store: OpenStore) -> None:
    with opened(open_store) as store, opened(open_store) as other:
        talk = StoreTalk(store)
        turn = talk.turn("hello", "hi")
        before = store.version()
        acts: tuple[Callable[[], object], ...] = (
            lambda: kept(store, Event("something", 1.0)),
            lambda: _plan(store, turn, talk.line[0], shows(talk.line[0], "text")),
            lambda: store.load(other.dump()),
        )
        StoreTalk(other).turn("elsewhere", "fine")
        for act in acts:
            act()
            assert store.version() != before, "a commit did not change the version"
            before = store.version()
        assert store.version() == before, "a version changes while nothing happens"


def check_forms_go_with_the_session_whose_messages_they_show(open_store: OpenStore) -> None:
    with opened(open_store) as store, opened(open_store) as other:
        one, two = StoreTalk(store, key="one"), StoreTalk(store, key="two")
        for talk, text in ((one, "one"), (two, "two"), (one, "three")):
            asked = turn_of(talk.asks("question"))
            _plan(store, asked, talk.line[-1], shows(talk.line[-1], f"form {text}" * 300))
            kept(
                store,
                HiddenKept(
                    id_of(store, asked),
                    Hidden(talk.line[0], (text.encode(),), text.encode() * 2, (text.encode() * 3,)),
                ),
            )
            kept(
                store,
                Billed(id_of(store, asked), Bill("model", text, usage=Usage(1, estimated=True))),
            )
            talk.hears(asked, "answer")
        for talk in (two, one):
            session = next(each.id for each in store.sessions() if each.key == talk.key)
            rows = list(store.dump(session))
            other.load(rows)
            for line in accumulate([[chain] for chain in talk.line]):
                assert other.table(line) == store.table(line), (
                    "a session was dumped and loaded, and is shown otherwise"
                )
            for turn in store.turns(session):
                assert other.table(talk.line, turn.ref) == store.table(talk.line, turn.ref), (
                    "an old turn is shown otherwise elsewhere"
                )
            assert list(other.bills(session)) == list(store.bills(session)), (
                "bills did not go with their session"
            )
            assert _apart(other.dump(session)) == _apart(rows), (
                "a session that was dumped and loaded is not equal"
            )
        _plan(
            other,
            turn_of(StoreTalk(other, key="three").asks("question")),
            one.line[0],
            shows(one.line[0], "decided here"),
        )
        assert _texts(other, one.line[:1]) == ["decided here"], (
            "what was loaded holds against what is decided afterwards"
        )


def check_forms_that_sessions_share_keep_their_order_wherever_they_go(
    open_store: OpenStore,
) -> None:
    with opened(open_store) as store, opened(open_store) as other, opened(open_store) as third:
        one, two = StoreTalk(store, key="one"), StoreTalk(store, key="two")
        for talk in (one, two):
            talk.turn("question", "answer")
        for talk, spoken in ((two, "only two"), (one, "only one"), (two, "two again")):
            asked = turn_of(talk.asks(spoken))
            _plan(
                store,
                asked,
                talk.line[-1],
                shows(talk.line[0], spoken),
                shows(talk.line[-1], spoken),
            )
        first, second = (session.id for session in store.sessions())
        rows = list(store.dump(second))
        for session in (first, second):
            other.load(store.dump(session))
        assert _apart(other.dump(second)) == _apart(rows), (
            "what two sessions share changed its order"
        )
        last = turn_of(one.asks("one at last"))
        _plan(store, last, one.line[-1], shows(one.line[0], "by one at last"))
        third.load(store.dump(second))
        assert _texts(third, two.line[:1]) == ["by one at last"], (
            "a form that another session decided did not go along"
        )
        _plan(
            third,
            turn_of(StoreTalk(third, key="three").asks("x")),
            two.line[0],
            shows(two.line[0], "decided here"),
        )
        assert _texts(third, two.line[:1]) == ["decided here"], (
            "what was loaded holds against what is decided afterwards"
        )


def _plan(store: Store, turn: TurnRef, head: Chain, *rows: Shown) -> None:
    kept(store, PlanMade(id_of(store, turn), SentRequest(head, 1.0), rows))


def _shown(store: Store, line: list[Chain]) -> list[Shown]:
    """The forms of a line in its order."""
    table = store.table(line)
    assert all(spot == row.spot for spot, row in table.shown.items()), (
        "a row stands at another's place"
    )
    order = {chain: number for number, chain in enumerate(line)}
    return sorted(table.shown.values(), key=lambda row: (order[row.spot.chain], row.spot.position))


def _apart(rows: Iterable[Row]) -> tuple[list[Row], set[Row]]:
    """Rows, and content, which has no order of its own."""
    every = list(rows)
    return [row for row in every if not isinstance(row, Blob)], {
        row for row in every if isinstance(row, Blob)
    }


def _texts(store: Store, line: list[Chain], as_of: TurnRef | None = None) -> list[str]:
    return [row.text.decode() for row in store.table(line, as_of).shown.values()]


WINDOW_CHECKS: tuple[Callable[[OpenStore], None], ...] = tuple(
    check for name, check in sorted(globals().items()) if name.startswith("check_")
)
