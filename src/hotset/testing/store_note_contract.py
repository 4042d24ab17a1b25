"""The part of a store's contract that is about notes, and about groups of deposits."""

from __future__ import annotations

from collections.abc import Callable

from hotset.errors import Conflict, HotsetError, NotFound
from hotset.nouns.deposit import NoteWritten, PlanMade
from hotset.nouns.note import Note, Scope, Space
from hotset.nouns.turn import Event, TurnId, TurnRef
from hotset.nouns.window import SentRequest
from hotset.store.exchange import read_lines, write_lines
from hotset.store.port import Row, Store
from hotset.testing.store_lineage_contract import OpenStore
from hotset.testing.store_talk import StoreTalk, id_of, kept, opened

_PLAIN = Space("plain")
_OTHER = Space("other")
_LOCAL = Space("local", Scope.MACHINE)
_SHORT = Space("short", keeps=2)
_AWKWARD = (b"", b"plain", "zażółć".encode(), b"\0\xff not text", b"a" * 70_000)


def check_the_latest_version_of_a_note_holds(open_store: OpenStore) -> None:
    with opened(open_store) as store:
        assert store.notes(_PLAIN) == {}, "there is a note that was never written"
        for value in _AWKWARD:
            _write(store, _PLAIN, "a", value)
            assert _values(store, _PLAIN) == {"a": value}, (
                "the latest version of a note does not hold"
            )
        _write(store, _PLAIN, "b", b"2")
        _write(store, _OTHER, "a", b"3")
        assert _values(store, _PLAIN, "b", "none") == {"b": b"2"}, (
            "other keys came back than were asked for"
        )
        assert _values(store, _OTHER) == {"a": b"3"}, "two spaces share a key"
        every = store.note_versions(_PLAIN, "a")
        assert tuple(note.value for note in every) == _AWKWARD, (
            "an earlier version was changed or lost"
        )
        assert [note.version for note in every] == [1, 2, 3, 4, 5], "versions do not count from one"
        many = [f"key {number}" for number in range(600)]
        for key in many:
            store.keep(NoteWritten(_OTHER, key, key.encode(), 1.0))
        _write(store, _OTHER, "last", b"")
        assert len(_values(store, _OTHER, *many)) == len(many), (
            "many keys at once do not all come back"
        )


def check_a_note_can_be_removed_and_written_again(open_store: OpenStore) -> None:
    with opened(open_store) as store:
        _write(store, _PLAIN, "a", None)
        assert store.note_versions(_PLAIN, "a") == [], (
            "a note that never was got a version by being removed"
        )
        _write(store, _PLAIN, "a", b"1")
        _write(store, _PLAIN, "a", b"1")
        assert len(store.note_versions(_PLAIN, "a")) == 1, (
            "a version that says the same was kept again"
        )
        _write(store, _PLAIN, "a", None)
        assert store.notes(_PLAIN, ["a"]) == {}, "a note that was removed still holds"
        _write(store, _PLAIN, "a", b"1")
        assert store.notes(_PLAIN)["a"].version == 3, "a note that was removed lost its past"


def check_a_note_that_expects_another_version_is_refused(open_store: OpenStore) -> None:
    with opened(open_store) as store:
        kept(store, NoteWritten(_PLAIN, "a", b"1", 1.0, expects=0))
        for wrong in (0, 2):
            _refused(store, Conflict, NoteWritten(_PLAIN, "a", b"2", 1.0, expects=wrong))
        kept(store, NoteWritten(_PLAIN, "a", b"2", 1.0, expects=1))
        assert _values(store, _PLAIN) == {"a": b"2"}, (
            "a note was not written by the one who knew its version"
        )


def check_a_space_without_history_keeps_its_last_versions(open_store: OpenStore) -> None:
    with opened(open_store) as store:
        for number in range(5):
            _write(store, _SHORT, "a", b"%d" % number)
        every = store.note_versions(_SHORT, "a")
        assert [(note.version, note.value) for note in every] == [(4, b"3"), (5, b"4")], (
            "not the last two versions stayed"
        )


def check_notes_can_be_read_as_of_a_turn(open_store: OpenStore) -> None:
    with opened(open_store) as store:
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
        assert (note.session, note.turn) == (ref.session, ref.number), (
            "a note does not know its turn"
        )
        try:
            store.notes(_PLAIN, as_of=TurnRef(ref.session, 99))
        except NotFound:
            pass
        else:
            raise AssertionError("a turn that never was has notes")


def check_what_belongs_to_the_machine_never_leaves_it(open_store: OpenStore) -> None:
    with opened(open_store) as store, opened(open_store) as other:
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


def check_a_group_of_deposits_is_kept_whole_or_not_at_all(open_store: OpenStore) -> None:
    with opened(open_store) as store:
        talk = StoreTalk(store)
        turn = talk.turn("one", "two")
        before = len(list(store.events()))
        first = NoteWritten(_PLAIN, "a", b"1", 1.0)
        _refused(
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


def _refused(store: Store, error: type[HotsetError], *deposits: NoteWritten | Event) -> None:
    try:
        store.keep(*deposits).result(timeout=60)
    except error:
        return
    raise AssertionError(f"a deposit was not refused with {error.__name__}")


NOTE_CHECKS: tuple[Callable[[OpenStore], None], ...] = (
    check_the_latest_version_of_a_note_holds,
    check_a_note_can_be_removed_and_written_again,
    check_a_note_that_expects_another_version_is_refused,
    check_a_space_without_history_keeps_its_last_versions,
    check_notes_can_be_read_as_of_a_turn,
    check_what_belongs_to_the_machine_never_leaves_it,
    check_a_group_of_deposits_is_kept_whole_or_not_at_all,
)
