"""Memories in the embedded store beyond the contract: damage, plans of queries, exports, and any
life at all."""

from dataclasses import replace
from functools import partial

import apsw
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from hotset.errors import BadInput, Conflict, PageDamaged
from hotset.nouns.deposit import Erased, Remembered
from hotset.nouns.memory import (
    Arrangement,
    Episode,
    MemoryId,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    MemoryUse,
    Provenance,
    Relation,
    Standing,
    Trouble,
    Used,
)
from hotset.sealing import VERSION
from hotset.store import memory_queries as queries
from hotset.store.connection import Tuning
from hotset.store.exchange import read_lines, write_lines
from hotset.store.repair import repair
from hotset.store.sealed import SealedRows
from hotset.store.sqlite import SqliteStore
from hotset.testing.ram_store import RamStore
from hotset.testing.store_memory_contract import fact, lives
from hotset.testing.store_talk import StoreTalk, kept

_TUNING = Tuning(ballast_bytes=0)
_PASSWORD = "kT9vQ2xLm4RwZb7"
_IDS = st.sampled_from(["a", "b", "c"])
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["new", "again", "edit", "stale", "link", "unlink", "use", "erase", "many"]
        ),
        _IDS,
        _IDS,
        st.sampled_from(["x", "y", "zażółć " * 300]),
        st.integers(0, 3),
    ),
    max_size=25,
)


@pytest.fixture
def store(tmp_path):
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        yield store


def _live(store, steps):
    """The same life for any store; gives its rows, and what each step came to."""
    heard = []
    for act, name, other, text, number in steps:
        try:
            kept(
                store,
                _deposit(
                    store,
                    act,
                    fact(name, text=text, run=f"r{number}", time=float(-number)),
                    other,
                    number,
                ),
            )
        except Conflict as error:
            heard.append(str(error))
    return list(store.dump()), heard


def _deposit(store, act, memory, other, number):  # noqa: PLR0911 - one case a kind of step
    latest = [*store.memory_versions(memory.id)][-1:]
    link = MemoryLink(memory.id, MemoryId(f"sem-{other}"), [*Relation][number % 2], 1.0)
    match act:
        case "new":
            return Remembered((memory,))
        case "again":
            return Remembered(tuple(latest))
        case "edit":
            return Remembered(
                tuple(
                    replace(memory, version=each.version + 1, standing=[*Standing][number])
                    for each in latest
                )
            )
        case "stale":
            return Remembered((replace(memory, version=number + 1),))
        case "link" | "unlink":
            return Remembered(links=(replace(link, gone=act == "unlink"),))
        case "use":
            return Remembered(uses=(MemoryUse(memory.id, [*Used][number], float(number)),))
        case "erase":
            return Erased((memory.id,), 1.0)
        case _:
            return Remembered(
                (memory, fact(other, text=memory.text)),
                (link,),
                (MemoryUse(memory.id, Used.READ, 1.0),),
            )


@given(_STEPS, _STEPS)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@pytest.mark.slow
def test_whatever_is_remembered_both_stores_hold_the_same(tmp_path_factory, steps, elsewhere):
    with SqliteStore.open(tmp_path_factory.mktemp("s") / "s", _TUNING) as store:
        ram, other = RamStore(), RamStore()
        rows, heard = _live(store, steps)
        assert (rows, heard) == _live(ram, steps)
        _live(other, elsewhere)
        assert store.load(other.dump()) == ram.load(other.dump())
        rows = list(store.dump())
        assert rows == list(ram.dump())
        assert store.load(other.dump()) == 0
        assert list(store.memories()) == list(ram.memories())
        assert list(store.memory_links()) == list(ram.memory_links())
        assert dict(store.memory_uses()) == dict(ram.memory_uses())
        assert list(store.memory_runs()) == list(ram.memory_runs())
        for memory in store.memories():
            assert list(store.memory_versions(memory.id)) == list(ram.memory_versions(memory.id))
        assert not list(store.verify())
        assert list(read_lines(write_lines(rows))) == rows


@given(_STEPS, _STEPS)
@settings(max_examples=60, deadline=None)
@pytest.mark.slow
def test_two_stores_that_take_in_each_other_lose_no_words_and_keep_what_held(one, other):
    stores = RamStore(), RamStore()
    for store, steps in zip(stores, (one, other), strict=True):
        _live(store, steps)
    every = [
        {(row.id, row.text) for row in store.dump() if isinstance(row, MemoryRecord)}
        for store in stores
    ]
    here, there = stores
    held = {memory.id: memory.text for memory in here.memories()}
    versions = {id: len(here.memory_versions(id)) for id in held}
    here.load(there.dump())
    assert {(row.id, row.text) for row in here.dump() if isinstance(row, MemoryRecord)} == every[
        0
    ] | every[1]
    for id, text in held.items():
        later = [memory.text for memory in here.memory_versions(id)][versions[id] :]
        followed = [memory.text for memory in there.memory_versions(id)][versions[id] :]
        assert (
            here.memory(id).text == text or later == followed
        )  # theirs went on from where ours stands


def test_a_damaged_memory_is_named_and_falls_away(tmp_path):
    folder = tmp_path / "s"
    with SqliteStore.open(folder, _TUNING) as store:
        lives(store)
        kept(store, Remembered((fact("a"), fact("b", text="long " * 500), fact("c"))))
        rows = list(store.dump())
    raw = apsw.Connection(str(folder / "store.db"))
    raw.execute(
        "UPDATE memory SET body = replace(CAST(body AS TEXT), 'a holds', 'a falls') WHERE id "
        "= 'sem-a'"
    )
    raw.execute("UPDATE memory SET size = size - 1 WHERE id = 'sem-b'")
    raw.execute("UPDATE memory_link SET gone = 1 WHERE seq = 4")
    raw.execute("UPDATE memory_use SET how = 'read' WHERE seq = 1")
    raw.close()
    with SqliteStore.open(folder, _TUNING) as store:
        named = [(damage.what, damage.id) for damage in store.verify()]
        assert named[:2] == [("memory", "sem-a 1"), ("memory", "sem-b 1")]
        assert [what for what, _ in named[2:]] == ["memory_link", "memory_use"]
        for id in ("sem-a", "sem-b"):
            with pytest.raises(PageDamaged, match=id):
                store.memory(MemoryId(id))
        assert store.memory(MemoryId("sem-c")) == fact("c")
        assert fact("a") not in [memory for _, memory in store.memories_after(0, 100)]
        assert fact("c") in [memory for _, memory in store.memories_after(0, 100)]
        with pytest.raises(PageDamaged):
            list(store.memories())
    report = repair(folder)
    assert [report.lost[name] for name in ("memory", "memory_link", "memory_use")] == [2, 1, 1]
    with SqliteStore.open(folder, _TUNING) as store:
        saved = list(store.dump())
        assert len(saved) == len(rows) - 4
        assert all(row in rows for row in saved)
        assert not list(store.verify())
        kept(store, Remembered((fact("a"),)))


def test_counts_of_damaged_rows_are_not_told(store):
    kept(store, Remembered((fact("a"),), (), (MemoryUse(fact("a").id, Used.READ, 1.0),)))
    raw = apsw.Connection(str(store.database))
    raw.execute("UPDATE memory_use SET how = 'eaten'")
    raw.execute("UPDATE memory SET time = 'noon'")
    raw.close()
    for read in (store.memory_uses, store.memory_runs):
        with pytest.raises(PageDamaged):
            read()


def test_a_version_on_top_of_a_damaged_one_is_refused(store):
    kept(store, Remembered((fact("a"), fact("b"))))
    raw = apsw.Connection(str(store.database))
    raw.execute("UPDATE memory SET time = 5 WHERE id = 'sem-a'")
    raw.close()
    with pytest.raises(PageDamaged):
        kept(store, Remembered((replace(fact("b"), version=2), replace(fact("a"), version=2))))
    assert store.memory(fact("b").id).version == 1


def test_a_session_leaves_with_its_memories_and_without_secrets(store):
    session = StoreTalk(store).turn(f"db_password = '{_PASSWORD}' is what I use", "fine").session
    source = Provenance("rules", session, places=(f"psql {_PASSWORD}",))
    trouble = Trouble(
        "exit 1",
        f"denied for {_PASSWORD[:12]}…",
        "bash",
        f"login {_PASSWORD}",
        (f"use {_PASSWORD}",),
    )
    told = (
        fact(
            "a",
            title=_PASSWORD,
            text=f"it is {_PASSWORD} here",
            source=source,
            topics=("billing", _PASSWORD),
            why=_PASSWORD,
        ),
        fact(
            "b",
            kind=MemoryKind.EPISODE,
            detail=Episode(f"try {_PASSWORD}", troubles=(trouble,)),
            source=source,
        ),
        fact(
            "c",
            kind=MemoryKind.ARRANGEMENT,
            detail=Arrangement(aliases={_PASSWORD: _PASSWORD}),
            source=source,
        ),
        fact("d", text="clean", source=Provenance("rules", session)),
    )
    kept(
        store,
        Remembered(
            told,
            (MemoryLink(told[0].id, told[1].id, Relation.RELATED_TO),),
            (MemoryUse(told[0].id, Used.READ, 1.0),),
        ),
    )
    for dump in (store.dump, partial(store.dump, session)):
        lines = b"".join(write_lines(SealedRows(dump), sealed=VERSION))
        assert _PASSWORD.encode() not in lines
        assert _PASSWORD[:8].encode() not in lines
        there = RamStore()
        there.load(read_lines(lines.splitlines(keepends=True)))
        assert [memory.id for memory in there.memories()] == [memory.id for memory in told]
        assert "[secret" in there.memory(told[0].id).text
        assert there.memory(told[3].id) == told[3]
        assert isinstance(there.memory(told[1].id).detail, Episode)


def test_a_secret_that_one_memory_names_leaves_with_no_other(store):
    kept(
        store,
        Remembered(
            (
                fact("a", text=f"log in with {_PASSWORD}"),
                fact("b", text=f"db_password = '{_PASSWORD}'"),
            )
        ),
    )
    assert _PASSWORD.encode() not in b"".join(write_lines(SealedRows(store.dump)))


def test_an_export_names_the_line_of_a_memory_that_cannot_be_used(store):
    kept(store, Remembered((fact("a"),)))
    header, line, end = write_lines(store.dump())
    for bad in (
        line.replace(b'"fact"', b'"elephant"'),
        line.replace(b'"kind":"fact",', b""),
        line.replace(b'"created":1.0', b'"created":null'),
        line.replace(b'"source":', b'"sauce":'),
        line.replace(b'"detail":null', b'"detail":{"subject":5}'),
    ):
        assert bad != line
        with pytest.raises(BadInput, match="line 2"):
            list(read_lines([header, bad, end]))
    with pytest.raises(BadInput, match="confidence"):
        store.load(read_lines([header, line.replace(b'"confidence":0.5', b'"confidence":7'), end]))


def test_indexes_answer_what_is_asked_about_memories(store):
    one_kind, _ = queries._among_memories("first.kind", frozenset({MemoryKind.FACT}), frozenset())
    any_kind, _ = queries._among_memories("first.kind", frozenset(MemoryKind), frozenset(Standing))
    newest, _ = queries._among_memories("latest.kind", frozenset(MemoryKind), frozenset(Standing))
    by_time = "ORDER BY latest.created DESC, latest.id DESC"
    with store._reading() as connection:
        for sql, wanted in (
            ("SELECT 1 FROM memory WHERE id = ? ORDER BY version DESC LIMIT 1", "memory_id"),
            ("SELECT DISTINCT id FROM memory WHERE id >= ? ORDER BY id LIMIT 8", "memory_id"),
            (f"{queries._LATEST_MEMORIES}{one_kind} ORDER BY first.seq LIMIT 256", "memory_kind"),
            (
                f"{queries._LATEST_MEMORIES}{any_kind} ORDER BY first.seq LIMIT 256",
                "INTEGER PRIMARY KEY (rowid>?)",
            ),
            (
                f"{queries._NEWEST_MEMORIES}{newest} AND latest.created >= ? {by_time} LIMIT 256",
                "memory_created",
            ),
            (
                f'{queries._LINKS_THAT_HOLD} AND ("of" = ? OR "to" = ?) ORDER BY seq',
                "memory_link_to",
            ),
            (
                queries._MEMORY_USES.format("WHERE memory IN (SELECT value FROM json_each(?))"),
                "COVERING INDEX memory_use_memory",
            ),
            ("SELECT count(*) FROM memory_use WHERE seal = ?", "memory_use_seal"),
        ):
            rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", ("x",) * sql.count("?"))
            plan = [row[3] for row in rows if "json_each" not in row[3]]
            assert wanted in " ".join(plan), (sql, plan)
            assert not [step for step in plan if "SCAN" in step], (sql, plan)
            assert "LIMIT 256" not in sql or not [step for step in plan if "TEMP B-TREE" in step], (
                sql,
                plan,
            )


def test_a_thousand_memories_are_one_commit(store):
    before = store.version()
    kept(store, Remembered(tuple(fact(f"{number}", text="word " * 400) for number in range(1000))))
    assert store.version() == before + 1
    assert len(store.memories_after(0, 5000)) == 1000
