"""A damaged file never gives other bytes; what is intact can be saved."""

import json
import random
import shutil
from dataclasses import replace

import apsw
import pytest

from hotset.errors import (
    BadRow,
    HotsetError,
    NotFound,
    PageDamaged,
    StoreBusy,
    StoreFailed,
    StoreTooNew,
)
from hotset.nouns.bill import Bill, Summary
from hotset.nouns.deposit import Billed, HiddenKept, NoteWritten, PageAdded, PlanMade, Remembered
from hotset.nouns.memory import MemoryId, MemoryLink, MemoryUse, Relation, Used
from hotset.nouns.message import Message, Part, Usage
from hotset.nouns.note import Space
from hotset.nouns.page import Kind, Role, digest
from hotset.nouns.turn import Event, Node
from hotset.nouns.window import Form, Hidden, SentRequest, Spot
from hotset.store.connection import Tuning, refuse_old_sqlite
from hotset.store.port import Blob, Where
from hotset.store.repair import repair
from hotset.store.sqlite import SqliteStore
from hotset.testing.ram_store import RamStore
from hotset.testing.store_memory_contract import fact
from hotset.testing.store_talk import StoreTalk, id_of, kept, shows

_TUNING = Tuning(ballast_bytes=0)
_PAGE = 4096


def _fill(folder, seed=1, turns=12):
    """A store with short and long content; gives its rows."""
    rng = random.Random(seed)
    with SqliteStore.open(folder, _TUNING) as store:
        talk = StoreTalk(store, time=seed * 1e6)
        for number in range(turns):
            turn = talk.turn(
                f"question {number} of {seed}",
                f"answer {number} " * rng.choice((1, 40)) + rng.randbytes(30).hex(),
            )
            _decide(store, talk, turn, f"of {seed}")
        session = next(store.sessions()).id
        for size in (0, 900, 5000, 30_000):
            kept(store, PageAdded(session, "a", Kind.FINDING, rng.randbytes(size), 1.0))
        for number in range(30):
            memory = fact(
                f"{seed}-{number}", text=f"fact {number} of {seed} " * rng.choice((1, 20, 300))
            )
            uses = (MemoryUse(memory.id, Used.READ, float(number)),)
            kept(
                store,
                Remembered(
                    (memory,),
                    (MemoryLink(memory.id, MemoryId("sem-1"), Relation.RELATED_TO, 1.0),),
                    uses,
                ),
            )
        return list(store.dump())


def _decide(store, talk, turn, mark):
    """How a turn was sent, what was hidden of it, and what it cost."""
    id, (asked, answered) = id_of(store, turn), talk.line[-2:]
    forms = (
        shows(asked, form=Form.FULL),
        shows(answered, f"form of turn {turn.number} {mark} " * 20),
    )
    kept(store, PlanMade(id, SentRequest(asked, talk.time, 9), forms))
    kept(
        store,
        HiddenKept(
            id,
            Hidden(
                answered, (b"hidden %d " % turn.number * 30, b"{}"), b"instead %d" % turn.number
            ),
        ),
    )
    kept(store, Billed(id, Bill("model", "upstream", Usage(1, 2, 3, 4))))
    kept(
        store, Summary(turn.session, (1, turn.number), 0, 1, f"so far {turn.number}", "rules", 1.0)
    )
    kept(
        store, NoteWritten(Space("marks"), mark, b"note %d " % turn.number * 60, talk.time, turn=id)
    )


def _crashed(folder, target, **filling):
    """The files of a store whose process died before its WAL was moved into the database."""
    rng = random.Random(5)
    with SqliteStore.open(folder, _TUNING) as store:
        talk = StoreTalk(store, **filling)
        for number in range(15):
            _decide(
                store, talk, talk.turn(f"question {number}", rng.randbytes(300).hex()), "crashed"
            )
        rows = list(store.dump())
        target.mkdir(mode=0o700)
        for name in ("store.db", "store.db-wal"):
            shutil.copy(folder / name, target / name)
    return rows


def _altered(tmp_path, name, content):
    folder = tmp_path / name
    folder.mkdir(mode=0o700)
    (folder / "store.db").write_bytes(content)
    return folder


def _rows_of(folder):
    with SqliteStore.open(folder, _TUNING) as store:
        assert not list(store.verify())
        return list(store.dump())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "store"
    rows = _fill(folder)
    return rows, (folder / "store.db").read_bytes()


@pytest.mark.row("V1")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.slow
def test_of_400_flipped_bits_none_gives_other_bytes_and_each_that_is_felt_is_reported(
    tmp_path, whole, seed
):
    rows, content = whole
    rng = random.Random(seed)
    blobs = [row for row in rows if isinstance(row, Blob)]
    line = [row.chain for row in rows if isinstance(row, Node)]
    forms = _table_of(rows, line)
    felt = 0
    for number in range(100):
        flipped = bytearray(content)
        flipped[rng.randrange(_PAGE, len(content))] ^= 1 << rng.randrange(8)
        folder = _altered(tmp_path, str(number), flipped)
        try:
            store = SqliteStore.open(folder, _TUNING)
        except HotsetError:
            felt += 1
            continue
        with store:
            missed = 0
            for blob in blobs:
                try:
                    assert store.content(blob.digest) == blob.content
                except HotsetError:
                    missed += 1
            try:
                found = [row for row in store.dump() if not isinstance(row, Blob)]
                assert all(row in rows for row in found)
                missed += len(found) < len(rows) - len(blobs)
            except HotsetError:
                missed += 1
            try:
                table = store.table(line)
                assert table.shown.items() <= forms.shown.items()
                assert table.hidden.items() <= forms.hidden.items()
                missed += table != forms
            except HotsetError:
                missed += 1
            if missed:
                felt += 1
                assert list(store.verify())
        shutil.rmtree(folder)
    assert felt > 20  # the rest hit room that nothing uses


def test_rows_whose_numbers_lead_back_are_told_and_no_walk_goes_round_for_ever(tmp_path):
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        for number in range(1, 601):
            store.keep(Event(f"event-{number:04}", 1.0))
        kept(store, Event("the last", 1.0))
    content = bytearray((tmp_path / "s" / "store.db").read_bytes())
    for last_of_chunk in (256, 512, 64):  # of a walk over rows, and of `verify`
        text = content.index(b"event-%04d" % last_of_chunk)
        number = b"\x40" if last_of_chunk == 64 else bytes((0x80 | last_of_chunk >> 7, 0))
        at = content.rindex(number, text - 24, text)
        content[at : at + len(number)] = b"\x80\x00" if len(number) == 2 else b"\0"
    folder = _altered(tmp_path, "back", bytes(content))
    with SqliteStore.open(folder, _TUNING) as store:
        with pytest.raises(PageDamaged, match="out of order"):
            list(store.events())
        assert any(
            "out of order" in damage.why or "order" in damage.why for damage in store.verify()
        )
    repair(folder)
    with SqliteStore.open(folder, _TUNING) as store:
        assert len(list(store.events())) >= 598


def test_a_flipped_bit_of_content_harms_nothing_else(tmp_path, whole):
    rows, content = whole
    text = b"question 7 of 1"
    at = [i for i in range(len(content)) if content.startswith(text, i)]
    flipped = bytearray(content)
    for place in at:
        flipped[place] ^= 1
    with SqliteStore.open(_altered(tmp_path, "s", flipped), _TUNING) as store:
        broken = 0
        for row in rows:
            if isinstance(row, Blob):
                try:
                    assert store.content(row.digest) == row.content
                except PageDamaged as error:
                    broken += row.digest in str(error)
        damages = list(store.verify())
        assert broken >= 1
        assert len([damage for damage in damages if damage.what == "content"]) == broken
        StoreTalk(store, time=9e9).turn("still", "here")


def test_a_changed_row_is_named(tmp_path):
    _fill(tmp_path / "s")
    with _raw(tmp_path / "s") as database:
        database.execute("UPDATE page SET agent = 'another' WHERE seq = 3")
        database.execute("UPDATE node SET turn = 9 WHERE seq = 2")
        database.execute("DELETE FROM blob WHERE digest = (SELECT digest FROM page WHERE seq = 5)")
        (id,) = database.execute("SELECT id FROM page WHERE seq = 3").fetchone()
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        with pytest.raises(PageDamaged, match=id):
            store.page(id)
        with pytest.raises(PageDamaged):
            list(store.pages(Where()))
        assert {(damage.what, damage.id.split()[0]) for damage in store.verify()} >= {("page", id)}
        assert {damage.what for damage in store.verify()} == {"page", "node"}
        assert any("is not there" in damage.why for damage in store.verify())


def test_a_message_whose_past_is_gone_is_named_and_refused_by_an_import_unless_gaps_are_allowed(
    tmp_path,
):
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        StoreTalk(store).turn("hello", "hi")
        rows = list(store.dump())
    forged = [
        row for row in rows if getattr(row, "role", "") != Role.USER or not hasattr(row, "essence")
    ]
    with SqliteStore.open(tmp_path / "t", _TUNING) as store:
        with pytest.raises(BadRow, match="which is not there"):
            store.load(forged)
        assert store.census().sessions == 0
        store.load(forged, gaps=True)
        assert any("before it is not there" in damage.why for damage in store.verify())


@pytest.mark.parametrize("keep", [0.0001, 0.3, 0.6, 0.95])
def test_a_truncated_file_is_told_and_what_is_left_is_saved(tmp_path, whole, keep):
    rows, content = whole
    folder = _altered(tmp_path, "s", content[: max(1, int(len(content) * keep))])
    _told_or_served(folder, rows)
    if keep < 0.01:
        with pytest.raises(StoreFailed, match="nothing"):
            repair(folder)
        return
    report = repair(folder)
    saved = _saved(folder, rows)
    assert 0 < len(saved) < len(rows)
    assert sum(report.saved.values()) == len(saved)
    assert report.damaged.read_bytes() == content[: int(len(content) * keep)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.rest_slow
def test_zeroed_pages_are_told_and_the_rest_is_saved(tmp_path, whole, seed):
    rows, content = whole
    rng = random.Random(seed)
    zeroed = bytearray(content)
    for number in rng.sample(range(1, len(content) // _PAGE), 3):
        zeroed[number * _PAGE : (number + 1) * _PAGE] = bytes(_PAGE)
    folder = _altered(tmp_path, "s", zeroed)
    _told_or_served(folder, rows)
    repair(folder)
    assert len(_saved(folder, rows)) > len(rows) // 3


def test_a_destroyed_first_page_costs_nothing_but_a_repair(tmp_path, whole):
    rows, content = whole
    folder = _altered(tmp_path, "s", random.Random(1).randbytes(_PAGE) + content[_PAGE:])
    with pytest.raises(PageDamaged, match="repair"):
        SqliteStore.open(folder)
    report = repair(folder)
    assert report.whole
    assert _rows_of(folder) == rows


def test_a_repair_of_a_whole_store_changes_nothing(tmp_path, whole):
    rows, content = whole
    folder = _altered(tmp_path, "s", content)
    report = repair(folder)
    assert report.whole
    assert _rows_of(folder) == rows
    assert {path.name for path in folder.iterdir()} >= {"store.db", report.damaged.name}
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.iterdir())


@pytest.mark.slow
def test_a_repair_reads_the_wal_too_also_a_damaged_one(tmp_path):
    rows = _crashed(tmp_path / "live", tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert repair(tmp_path / "a").whole
    assert _rows_of(tmp_path / "a") == rows
    wal = tmp_path / "b" / "store.db-wal"
    content = bytearray(wal.read_bytes())
    content[len(content) // 3] ^= 1
    wal.write_bytes(content)
    report = repair(tmp_path / "b")
    saved = _saved(tmp_path / "b", rows)
    assert len(saved) > len(rows) * 0.9, report


def test_a_repair_is_refused_while_the_store_is_open_and_where_there_is_none(tmp_path):
    with SqliteStore.open(tmp_path / "s", _TUNING), pytest.raises(StoreBusy, match="in use"):
        repair(tmp_path / "s")
    with pytest.raises(NotFound):
        repair(tmp_path / "none")


def test_lost_content_and_pages_are_made_again_from_the_raw_bytes_of_their_messages(tmp_path):
    rows = _fill(tmp_path / "s")
    with _raw(tmp_path / "s") as database:
        database.execute(
            "DELETE FROM blob WHERE digest IN (SELECT digest FROM page WHERE seq IN (3, 8))"
        )
        database.execute("DELETE FROM page WHERE seq IN (5, 6, 11)")
    report = repair(tmp_path / "s", _read_again)
    assert report.rederived == 5
    assert report.whole
    again = _rows_of(tmp_path / "s")
    assert [row for row in again if not isinstance(row, Blob)] == [
        row for row in rows if not isinstance(row, Blob)
    ]
    assert {row for row in again if isinstance(row, Blob)} == {
        row for row in rows if isinstance(row, Blob)
    }


def test_a_damaged_form_is_told_and_falls_away_and_its_page_is_shown_as_before(tmp_path):
    rows = _fill(tmp_path / "s", turns=4)
    line = [row.chain for row in rows if isinstance(row, Node)]
    whole = _table_of(rows, line)
    broken, textless = Spot(line[3], 0), Spot(line[5], 0)
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        again = shows(line[1], "the latest form of the second message")
        id = next(store.turns(next(store.sessions()).id)).id
        for row in (again, whole.shown[Spot(line[7], 0)]):
            kept(store, PlanMade(id, SentRequest(line[0], 1.0), (row,)))
    with _raw(tmp_path / "s") as database:
        database.execute(
            "UPDATE shown SET tokens = 7777 WHERE chain = ?", (bytes.fromhex(broken.chain),)
        )
        database.execute(
            "UPDATE shown SET form = 'full' WHERE step = (SELECT max(step) - 1 FROM shown)"
        )
        text = bytes.fromhex(digest(whole.shown[textless].text))
        database.execute("DELETE FROM blob WHERE digest = ?", (text,))
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        for chain in (broken.chain, textless.chain, line[1]):
            with pytest.raises(PageDamaged):
                store.table([chain])
        damages = [damage for damage in store.verify() if damage.what == "shown"]
        assert [damage.id.split()[0] for damage in damages] == [
            broken.chain,
            textless.chain,
            line[1],
        ]
        assert all("is shown as it was before, or full" in damage.why for damage in damages)
    report = repair(tmp_path / "s")
    assert (report.lost["shown"], report.lost["content"], report.missing) == (3, 1, ())
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        table = store.table(line)
        assert table.shown == {
            spot: row for spot, row in whole.shown.items() if spot not in (broken, textless)
        }
        assert table.hidden == whole.hidden
        assert not list(store.verify())


def test_a_hidden_turn_that_lost_its_bytes_falls_away_whole(tmp_path):
    rows = _fill(tmp_path / "s", turns=3)
    line = [row.chain for row in rows if isinstance(row, Node)]
    whole = _table_of(rows, line)
    with _raw(tmp_path / "s") as database:
        lost = bytes.fromhex(digest(whole.hidden[line[3]].before[0]))
        database.execute("DELETE FROM blob WHERE digest = ?", (lost,))
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        with pytest.raises(PageDamaged, match=lost.hex()):
            store.table(line)
        (damage,) = store.verify()
        assert (damage.what, damage.id.split()[0]) == ("hidden", line[3])
        assert "only what the client saw" in damage.why
    assert repair(tmp_path / "s").lost["hidden"] == 1
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        assert store.table(line) == replace(
            whole, hidden={line[1]: whole.hidden[line[1]], line[5]: whole.hidden[line[5]]}
        )


def test_damaged_bills_sendings_and_summaries_are_named_and_fall_away(tmp_path):
    rows = _fill(tmp_path / "s", turns=3)
    with _raw(tmp_path / "s") as database:
        database.execute("UPDATE bill SET calls = 9 WHERE seq = 2")
        database.execute("UPDATE sent SET tokens = 8 WHERE seq = 2")
        database.execute("UPDATE summary SET text = 'another' WHERE seq = 1")
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        assert [damage.what for damage in store.verify()] == ["sent", "bill", "summary"]
        for read in (
            lambda: list(store.bills()),
            lambda: store.summaries(next(store.sessions()).id),
        ):
            with pytest.raises(PageDamaged):
                read()
    report = repair(tmp_path / "s")
    assert [report.lost[name] for name in ("sent", "bill", "summary")] == [1, 1, 1]
    assert len(_saved(tmp_path / "s", rows)) == len(rows) - 3


def test_content_that_nobody_has_is_told(tmp_path):
    _fill(tmp_path / "s")
    with _raw(tmp_path / "s") as database:
        (address,) = database.execute("SELECT digest FROM page WHERE seq = 3").fetchone()
        database.execute("DELETE FROM blob WHERE digest = ?", (address,))
    report = repair(tmp_path / "s")
    assert report.missing == (address.hex(),)
    assert report.lost["content"] == 1
    assert not report.whole


def test_without_its_shm_a_crashed_store_is_whole_and_without_its_wal_it_still_opens(tmp_path):
    rows = _crashed(tmp_path / "live", tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert _rows_of(tmp_path / "a") == rows
    (tmp_path / "b" / "store.db-wal").unlink()
    assert all(row in rows for row in _rows_of(tmp_path / "b"))


@pytest.mark.parametrize("foreign", ["of another store", "of another program", "of noise"])
@pytest.mark.rest_slow
def test_a_foreign_wal_is_refused_or_ignored(tmp_path, foreign):
    rows = _fill(tmp_path / "s")
    before = (tmp_path / "s" / "store.db").read_bytes()
    wal = tmp_path / "s" / "store.db-wal"
    if foreign == "of another store":
        _crashed(tmp_path / "live", tmp_path / "other", agent="x")
        shutil.copy(tmp_path / "other" / "store.db-wal", wal)
    elif foreign == "of another program":
        database = apsw.Connection(str(tmp_path / "x.db"))
        database.execute("PRAGMA journal_mode = WAL").fetchall()
        database.execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
        shutil.copy(tmp_path / "x.db-wal", wal)
        database.close()
    else:
        wal.write_bytes(random.Random(1).randbytes(40_000))
        assert _rows_of(tmp_path / "s") == rows
        return
    with pytest.raises(StoreFailed, match="another store"):
        SqliteStore.open(tmp_path / "s")
    assert (tmp_path / "s" / "store.db").read_bytes() == before
    wal.unlink()
    assert _rows_of(tmp_path / "s") == rows


def test_a_newer_store_is_refused_with_what_to_do(tmp_path):
    _fill(tmp_path / "s", turns=1)
    with _raw(tmp_path / "s") as database:
        database.pragma("user_version", 99)
    before = (tmp_path / "s" / "store.db").read_bytes()
    with pytest.raises(StoreTooNew, match="pip install -U hotset"):
        SqliteStore.open(tmp_path / "s")
    with pytest.raises(StoreFailed, match="newer"):
        repair(tmp_path / "s")
    assert (tmp_path / "s" / "store.db").read_bytes() == before


def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir()
    database = apsw.Connection(str(folder / "store.db"))
    database.execute("CREATE TABLE bookmarks (url)")
    database.close()
    before = (folder / "store.db").read_bytes()
    with pytest.raises(StoreFailed, match="another program"):
        SqliteStore.open(folder)
    with pytest.raises(StoreFailed, match="nothing"):
        repair(folder)
    assert (folder / "store.db").read_bytes() == before
    (folder / "store.db").write_bytes(b"Dear diary, " * 100)
    with pytest.raises(PageDamaged, match="never a store"):
        SqliteStore.open(folder)


def test_an_old_sqlite_is_refused():
    refuse_old_sqlite("3.51.3")
    refuse_old_sqlite("3.54.1")
    with pytest.raises(StoreFailed, match="apsw"):
        refuse_old_sqlite("3.51.2")


def _read_again(_dialect, raw):
    """A dialect for the messages of `store_talk`."""
    if raw.startswith(b"reply:"):
        return
    fields = json.loads(raw)
    parts = tuple(
        Part(Kind(kind), text.encode("latin-1"), tool=tool, call=call)
        for kind, text, tool, call in fields["parts"]
    )
    yield Message(Role(fields["role"]), raw, parts, digest(raw))


def _table_of(rows, line):
    """The page table that these rows make."""
    store = RamStore()
    store.load(rows)
    return store.table(line)


def _raw(folder):
    """The file without the store around it, as a vandal would have it."""

    class Raw:
        def __enter__(self):
            self.database = apsw.Connection(str(folder / "store.db"))
            return self.database

        def __exit__(self, *_):
            self.database.close()

    return Raw()


def _told_or_served(folder, rows):
    """Each read either gives what was kept or raises; damage does not pass `verify`."""
    try:
        store = SqliteStore.open(folder, _TUNING)
    except StoreFailed:
        return
    with store:
        wrong = 0
        for row in rows:
            if isinstance(row, Blob):
                try:
                    assert store.content(row.digest) == row.content
                except HotsetError:
                    wrong += 1
        if wrong:
            assert list(store.verify())


def _saved(folder, rows):
    """What a repaired store holds: nothing that was not kept."""
    with SqliteStore.open(folder, _TUNING) as store:
        saved = list(store.dump())
        assert all(row in rows for row in saved)
        assert not [damage for damage in store.verify() if "is not there" not in damage.why]
        StoreTalk(store, time=9e9).turn("life", "goes on")
    return saved
