"""The part of a store's contract about decisions: the page table, bills, summaries, notes, and
groups of deposits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import accumulate

from hotset.errors import Conflict, HotsetError, NotFound
from hotset.nouns.bill import Bill, Summary
from hotset.nouns.deposit import Billed, HiddenKept, NoteWritten, PlanMade
from hotset.nouns.message import Part, Usage
from hotset.nouns.note import Note, Scope, Space
from hotset.nouns.page import Chain, Kind, Role, digest
from hotset.nouns.turn import Event, TurnId, TurnRef
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
from hotset.store.exchange import read_lines, write_lines
from hotset.store.port import MATCHES, Blob, Row, Store, Where
from hotset.testing.contract import checks_in, on_fresh
from hotset.testing.store_talk import StoreTalk, id_of, kept, message, shows, turn_of


@on_fresh
def check_the_latest_form_of_each_place_comes_back_byte_for_byte(store: Store) -> None:
    talk = StoreTalk(store)
    turn = talk.turn("question", "answer")
    first, second = talk.line
    assert store.table(talk.line) == PageTable(), "there is a form without a decision"
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
    assert _shown(store, [second]) == [gone], "a table has rows of messages that were not asked for"
    assert store.table([]) == PageTable(), "a table of nothing has rows"


@on_fresh
def check_sessions_with_the_same_past_share_their_forms(store: Store) -> None:
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


@on_fresh
def check_a_table_as_of_a_turn_is_how_that_turn_was_sent(store: Store) -> None:
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
        assert len(table.hidden) == number, "what was hidden later is in an earlier turn"
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


@on_fresh
def check_the_latest_request_of_a_line_is_known(store: Store) -> None:
    talk = StoreTalk(store)
    turns = [talk.turn(f"question {number}", f"answer {number}") for number in range(3)]
    line = talk.line
    assert store.table(line).sent is None, "a request was sent without a plan"
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


@on_fresh
def check_hidden_turns_come_back_byte_for_byte(store: Store) -> None:
    talk = StoreTalk(store)
    id = id_of(store, talk.turn("question", "answer"))
    hidden = Hidden(talk.line[1], (b"{}", b"\xff\0", b"{}"), b"instead" * 1000, (b"after", b""), 2)
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


@on_fresh
def check_conversations_that_open_alike_are_separated_by_their_replies(store: Store) -> None:
    hidden_turns = [
        None,
        Hidden(Chain(""), after=(b"first",)),
        Hidden(Chain(""), after=(b"second",)),
    ]
    talks = []
    for number, hidden in enumerate(hidden_turns):
        talk = StoreTalk(store, key=f"session {number}", time=1000.0 * (number + 1))
        asked = turn_of(talk.asks("nightly triage"))
        kept(store, PlanMade(id_of(store, asked), SentRequest(talk.line[0], talk.time)))
        if hidden is not None:
            kept(store, HiddenKept(id_of(store, asked), replace(hidden, chain=talk.line[0])))
        talk.hears(asked, f"answer {number}")
        talks.append(talk)
    for talk, hidden in zip(talks, hidden_turns, strict=True):
        found = [each.after for each in store.table(talk.line).hidden.values()]
        assert found == ([hidden.after] if hidden else []), (
            "a conversation gets the hidden turns of another one with the same opening"
        )
    assert store.table(talks[0].line[:1]).hidden[talks[0].line[0]].after == (b"second",), (
        "the latest does not hold"
    )


@on_fresh
def check_what_left_can_be_referred_to(store: Store) -> None:
    talk = StoreTalk(store)
    asked = turn_of(
        talk.asks(
            message(Role.USER, *(Part(Kind.PROMPT, text) for text in (b"one", b"two", b"three")))
        )
    )
    talk.hears(asked, "answer")
    line = talk.line
    spots = (Spot(line[1], 0), Spot(line[0], WHOLE), Spot(line[0], 2))
    stub = Stub("ref-1", "conversation", spots, (1, 1), 42, 3.0, ("topic",), ("entity",), ("hint",))
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


@on_fresh
def check_bills_say_whose_they_are(store: Store) -> None:
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


@on_fresh
def check_the_latest_summary_of_each_stretch_is_given(store: Store) -> None:
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


@on_fresh
def check_a_content_id_leads_to_its_pages(store: Store) -> None:
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


@on_fresh
def check_a_version_changes_with_every_commit(store: Store, other: Store) -> None:
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


@on_fresh
def check_forms_go_with_the_session_whose_messages_they_show(store: Store, other: Store) -> None:
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
        assert _split_content(other.dump(session)) == _split_content(rows), (
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


@on_fresh
def check_forms_that_sessions_share_keep_their_order_wherever_they_go(
    store: Store, other: Store, third: Store
) -> None:
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
    assert _split_content(other.dump(second)) == _split_content(rows), (
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
    """The forms of a branch, in order."""
    table = store.table(line)
    assert all(spot == row.spot for spot, row in table.shown.items()), "a row is at another's place"
    order = {chain: number for number, chain in enumerate(line)}
    return sorted(table.shown.values(), key=lambda row: (order[row.spot.chain], row.spot.position))


def _split_content(rows: Iterable[Row]) -> tuple[list[Row], set[Row]]:
    """Rows, and content, which is unordered."""
    every = list(rows)
    return [row for row in every if not isinstance(row, Blob)], {
        row for row in every if isinstance(row, Blob)
    }


def _texts(store: Store, line: list[Chain], as_of: TurnRef | None = None) -> list[str]:
    return [row.text.decode() for row in store.table(line, as_of).shown.values()]


# --- notes
# --------------------------------------------------------------------------------------------------

_PLAIN = Space("plain")
_OTHER = Space("other")
_LOCAL = Space("local", Scope.MACHINE)
_SHORT = Space("short", keeps=2)
_AWKWARD = (b"", b"plain", "zażółć".encode(), b"\0\xff not text", b"a" * 70_000)


@on_fresh
def check_the_latest_version_of_a_note_holds(store: Store) -> None:
    assert store.notes(_PLAIN) == {}, "there is a note that was never written"
    for value in _AWKWARD:
        _write(store, _PLAIN, "a", value)
        assert _values(store, _PLAIN) == {"a": value}, "the latest version of a note does not hold"
    _write(store, _PLAIN, "b", b"2")
    _write(store, _OTHER, "a", b"3")
    assert _values(store, _PLAIN, "b", "none") == {"b": b"2"}, (
        "other keys came back than were asked for"
    )
    assert _values(store, _OTHER) == {"a": b"3"}, "two spaces share a key"
    every = store.note_versions(_PLAIN, "a")
    assert tuple(note.value for note in every) == _AWKWARD, "an earlier version was changed or lost"
    assert [note.version for note in every] == [1, 2, 3, 4, 5], "versions do not count from one"
    many = [f"key {number}" for number in range(600)]
    for key in many:
        store.keep(NoteWritten(_OTHER, key, key.encode(), 1.0))
    _write(store, _OTHER, "last", b"")
    assert len(_values(store, _OTHER, *many)) == len(many), "many keys at once do not all come back"


@on_fresh
def check_a_note_can_be_removed_and_written_again(store: Store) -> None:
    _write(store, _PLAIN, "a", None)
    assert store.note_versions(_PLAIN, "a") == [], (
        "a note that never was got a version by being removed"
    )
    _write(store, _PLAIN, "a", b"1")
    _write(store, _PLAIN, "a", b"1")
    assert len(store.note_versions(_PLAIN, "a")) == 1, "a version that says the same was kept again"
    _write(store, _PLAIN, "a", None)
    assert store.notes(_PLAIN, ["a"]) == {}, "a note that was removed still holds"
    _write(store, _PLAIN, "a", b"1")
    assert store.notes(_PLAIN)["a"].version == 3, "a note that was removed lost its past"


@on_fresh
def check_a_note_that_expects_another_version_is_refused(store: Store) -> None:
    kept(store, NoteWritten(_PLAIN, "a", b"1", 1.0, expects=0))
    for wrong in (0, 2):
        _expect_refusal(store, Conflict, NoteWritten(_PLAIN, "a", b"2", 1.0, expects=wrong))
    kept(store, NoteWritten(_PLAIN, "a", b"2", 1.0, expects=1))
    assert _values(store, _PLAIN) == {"a": b"2"}, (
        "a note was not written by the one who knew its version"
    )


@on_fresh
def check_a_space_without_history_keeps_its_last_versions(store: Store) -> None:
    for number in range(5):
        _write(store, _SHORT, "a", b"%d" % number)
    every = store.note_versions(_SHORT, "a")
    assert [(note.version, note.value) for note in every] == [(4, b"3"), (5, b"4")], (
        "not the last two versions stayed"
    )


@on_fresh
def check_notes_can_be_read_as_of_a_turn(store: Store) -> None:
    talk = StoreTalk(store)
    _write(store, _PLAIN, "a", b"before")
    first = talk.turn("one", "two")
    kept(store, PlanMade(id_of(store, first), SentRequest(talk.line[-1], 1.0)))
    kept(store, NoteWritten(_PLAIN, "a", b"after", 2.0, turn=id_of(store, first)))
    second = talk.turn("three", "four")
    kept(store, PlanMade(id_of(store, second), SentRequest(talk.line[-1], 3.0)))
    third = talk.turn("five", "six")
    held = [_values(store, _PLAIN, as_of=turn) for turn in (first, second, third)]
    assert held == [{"a": b"before"}, {"a": b"after"}, {}], (
        "a turn does not know what it was planned with"
    )
    note = store.notes(_PLAIN)["a"]
    ref = first
    assert (note.session, note.turn) == (ref.session, ref.number), "a note does not know its turn"
    try:
        store.notes(_PLAIN, as_of=TurnRef(ref.session, 99))
    except NotFound:
        pass
    else:
        raise AssertionError("a turn that never was has notes")


@on_fresh
def check_what_belongs_to_the_machine_never_leaves_it(store: Store, other: Store) -> None:
    talk = StoreTalk(store)
    turn = talk.turn("one", "two")
    _write(store, _LOCAL, "consent", b"local words")
    _write(store, _PLAIN, "project", b"project words")
    kept(store, NoteWritten(_PLAIN, "session", b"session words", 1.0, turn=id_of(store, turn)))
    everything = b"".join(write_lines(store.dump()))
    assert b"local words" not in everything, "what belongs to the machine was exported"
    assert b"project words" in everything, "a note was not exported, or cannot be read there"
    of_session = [row.key for row in store.dump(turn.session) if isinstance(row, Note)]
    assert of_session == ["session"], "a session was not exported with its own notes"
    for _ in range(2):
        rows: list[Row] = [
            *read_lines(everything.splitlines(keepends=True)),
            Note("local", "planted", b"x", 1.0, scope=Scope.MACHINE),
        ]
        other.load(rows)
    assert store.notes(_PLAIN) == other.notes(_PLAIN), "notes came back changed"
    assert not other.notes(_LOCAL), "a note that belongs to a machine was taken in from another"


@on_fresh
def check_a_group_of_deposits_is_kept_whole_or_not_at_all(store: Store) -> None:
    talk = StoreTalk(store)
    turn = talk.turn("one", "two")
    before = len(list(store.events()))
    first = NoteWritten(_PLAIN, "a", b"1", 1.0)
    _expect_refusal(
        store,
        NotFound,
        first,
        Event("Happened", 1.0),
        NoteWritten(_PLAIN, "b", b"", 1.0, turn=TurnId("none")),
    )
    assert not store.notes(_PLAIN), "a part of a group was kept"
    assert len(list(store.events())) == before, "a part of a group was kept"
    written = NoteWritten(_PLAIN, "a", b"2", 1.0, turn=id_of(store, turn), expects=1)
    receipt = store.keep(first, written, Event("Happened", 1.0)).result(timeout=60)
    assert receipt.turn == turn, "a group does not know its turn"
    assert _values(store, _PLAIN) == {"a": b"2"}, (
        "a deposit did not see the ones before it in its group"
    )
    assert len(list(store.events())) == before + 1, "a part of a group was lost"


def _write(store: Store, space: Space, key: str, value: bytes | None) -> None:
    kept(store, NoteWritten(space, key, value, 1.0))


def _values(
    store: Store, space: Space, *keys: str, as_of: TurnRef | None = None
) -> dict[str, bytes | None]:
    return {key: note.value for key, note in store.notes(space, keys, as_of).items()}


def _expect_refusal(store: Store, error: type[HotsetError], *deposits: NoteWritten | Event) -> None:
    try:
        store.keep(*deposits).result(timeout=60)
    except error:
        return
    raise AssertionError(f"a deposit was not refused with {error.__name__}")


WINDOW_CHECKS = checks_in(globals())
