"""A store that an earlier version wrote opens, is brought up to date, and works."""

import gzip
from pathlib import Path

import apsw
import pytest

from hotset.nouns.bill import Bill
from hotset.nouns.deposit import Billed, HiddenKept, PlanMade
from hotset.nouns.memory import MemoryKind, MemoryLink, MemoryRecord, MemoryUse
from hotset.nouns.note import Note, Space
from hotset.nouns.page import digest
from hotset.nouns.window import Hidden, PageTable, SentRequest
from hotset.store.connection import Tuning
from hotset.store.exchange import read_lines, write_lines
from hotset.store.migrations import MIGRATIONS, VERSION
from hotset.store.port import Blob, HiddenRow, Where
from hotset.store.repair import repair
from hotset.store.sqlite import SqliteStore
from hotset.testing.store_memory_contract import lives
from hotset.testing.store_talk import StoreTalk, id_of, kept, shows

_HERE = Path(__file__).parent
_TUNING = Tuning(ballast_bytes=0)


def _left_by(format, folder):
    folder.mkdir(mode=0o700)
    (folder / "store.db").write_bytes(
        gzip.decompress((_HERE / f"format-{format}.db.gz").read_bytes())
    )
    return folder


def _exported_by(format):
    return list(
        read_lines(
            gzip.decompress((_HERE / f"format-{format}.jsonl.gz").read_bytes()).splitlines(
                keepends=True
            )
        )
    )


def _is_old_note(row):
    return isinstance(row, HiddenRow) and ":" in row.chain


def _but_notes(rows):
    """Without the notes, and without the hidden rows that older formats kept in their place."""
    return [row for row in rows if not isinstance(row, Note) and not _is_old_note(row)]


def _notes(rows):
    return sorted(
        (row.space, row.key, row.version, row.value) for row in rows if isinstance(row, Note)
    )


@pytest.fixture
def old(tmp_path):
    """The folder of a store as format 1 left it."""
    return _left_by(1, tmp_path / "old")


@pytest.fixture
def rows():
    """What format 1 exported from that store."""
    return _exported_by(1)


def _version(folder):
    database = apsw.Connection(str(folder / "store.db"))
    try:
        return database.pragma("user_version")
    finally:
        database.close()


@pytest.mark.parametrize("format", [1, 2, 3])
def test_a_store_of_an_earlier_format_opens_and_holds_what_it_held(tmp_path, format):
    old, rows = _left_by(format, tmp_path / "old"), _exported_by(format)
    assert _version(old) == format
    with SqliteStore.open(old, _TUNING) as store:
        first = list(store.dump())
        assert _but_notes(first) == _but_notes(rows)
        assert len(_notes(first)) == sum(map(_is_old_note, rows))
        assert not list(store.verify())
    assert _version(old) == VERSION == len(MIGRATIONS)
    with SqliteStore.open(old, _TUNING) as store:
        assert list(store.dump()) == first


def test_a_store_of_format_1_learns_the_page_table(old, rows):
    with SqliteStore.open(old, _TUNING) as store:
        session = next(session for session in store.sessions() if session.key == "w")
        turn = list(store.turns(session.id))[-1]
        line = [node.chain for node in store.nodes(session.id)]
        assert store.table(line) == store.table(line, turn.ref) == PageTable()
        assert not list(store.bills())
        assert not store.summaries(session.id)
        row, sent, hidden = (
            shows(line[0], "a form " * 300),
            SentRequest(line[-1], 5.0),
            Hidden(line[1], (b"{}",)),
        )
        for deposit in (
            PlanMade(turn.id, sent, (row,)),
            HiddenKept(turn.id, hidden),
            Billed(turn.id, Bill("m", "u")),
        ):
            kept(store, deposit)
        assert store.table(line) == PageTable({row.spot: row}, {hidden.chain: hidden}, sent)
        said = next(page for page in store.pages(Where(session=session.id)))
        assert said in list(store.pages(Where(digest=said.digest)))
        assert store.contents(said.digest[:20]) == [said.digest]
        assert not list(store.verify())
        assert [each for each in store.dump() if each in rows] == rows


@pytest.mark.parametrize("format", [1, 2])
def test_a_store_of_an_earlier_format_learns_to_remember(tmp_path, format):
    with SqliteStore.open(_left_by(format, tmp_path / "old"), _TUNING) as store:
        assert not list(store.memories())
        assert not store.memory_runs()
        lives(store, next(store.sessions()).id)
        assert len(list(store.memories())) == len(MemoryKind)
        assert not list(store.verify())
        assert [
            row
            for row in store.dump()
            if not isinstance(row, MemoryRecord | MemoryLink | MemoryUse)
        ] == _exported_by(format)


@pytest.mark.parametrize("format", [1, 2, 3])
def test_a_damaged_store_of_an_earlier_format_is_repaired_into_the_present_one(tmp_path, format):
    old, rows = _left_by(format, tmp_path / "old"), _exported_by(format)
    content = bytearray((old / "store.db").read_bytes())
    content[:4096] = bytes(4096)
    (old / "store.db").write_bytes(content)
    assert repair(old).whole
    assert _version(old) == VERSION
    with SqliteStore.open(old, _TUNING) as store:
        assert _but_notes(store.dump()) == _but_notes(rows)
        assert len(_notes(store.dump())) == sum(map(_is_old_note, rows))


@pytest.mark.parametrize("format", [1, 2, 3])
def test_an_export_of_an_earlier_format_can_be_imported_and_continued(tmp_path, format):
    rows = _exported_by(format)
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        assert store.load(rows) == len(rows)
        assert store.load(rows) == 0
        assert _but_notes(store.dump()) == _but_notes(rows)
        assert len(_notes(store.dump())) == sum(map(_is_old_note, rows))
        talk = StoreTalk(store, time=9e9)
        turn = talk.turn("life", "goes on")
        kept(
            store,
            PlanMade(
                id_of(store, turn), SentRequest(talk.line[0], 1.0), (shows(talk.line[0], "a form"),)
            ),
        )
        assert Blob(digest(b"a form"), b"a form") in list(read_lines(write_lines(store.dump())))


@pytest.mark.parametrize("how", ["opened", "imported", "repaired"])
def test_what_format_3_kept_as_hidden_rows_becomes_notes(tmp_path, how):
    if how == "imported":
        folder = tmp_path / "s"
        with SqliteStore.open(folder, _TUNING) as store:
            store.load(_exported_by(3))
    else:
        folder = _left_by(3, tmp_path / "s")
    if how == "repaired":
        assert repair(folder).whole
    with SqliteStore.open(folder, _TUNING) as store:
        ratios = [note.value for note in store.note_versions(Space("calibration"), "model-1")]
        assert ratios == [b'{"ratio":1.0}', b'{"ratio":1.1}', b'{"ratio":1.2}']
        session = next(store.sessions())
        held = [
            store.notes(Space("calibration"), as_of=turn.ref)["model-1"].value
            for turn in list(store.turns(session.id))[1:]
        ]
        assert held == ratios[:2]
        resumed = store.notes(Space("response"), ["resp_1"])["resp_1"]
        assert (
            resumed.value
            == b'{"last":"resp_2","answers":["{\\"type\\":\\"function_call_output\\"}"]}'
        )
        line = [node.chain for node in store.nodes(session.id)]
        assert [
            len(store.notes(Space(space), line)) for space in ("offer", "found", "brought")
        ] == [1, 1, 1]
        assert [chain in store.table(line).hidden for chain in line] == [False, True] * 3
        assert not list(store.verify())
