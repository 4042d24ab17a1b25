"""Lineages that cannot be: an import refuses them with the line that is wrong, and no command goes
round in one for ever."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from hotset.nouns.bill import Bill, Summary
from hotset.nouns.deposit import Billed, PlanMade, Remembered
from hotset.nouns.memory import MemoryLink, Relation
from hotset.nouns.window import SentRequest
from hotset.store.port import Where
from hotset.store.sqlite import SqliteStore
from hotset.store.tables import NODE, PAGE, TURN, pack_hex
from hotset.testing.store_memory_contract import fact
from hotset.testing.store_talk import kept
from tests.cli.conftest import Desk, desk_in, fill
from tests.cli.in_one_process import run_all

Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    desk = desk_in(tmp_path_factory.mktemp("exported"))
    fill(desk.data)
    with closing(SqliteStore.open(desk.data)) as store:
        session = next(store.sessions()).id
        turn = list(store.turns(session))[-1]
        kept(store, PlanMade(turn.id, SentRequest(turn.head, 1.0)))
        kept(store, Billed(turn.id, Bill("model", "upstream")))
        kept(store, Summary(session, (1, 2), 0, 1, "so far", "rules", 1.0))
    return [json.loads(line) for line in desk.run("export", "--with-secrets").raw.splitlines()]


def _nth(lines: Lines, kind: str, number: int) -> int:
    return [at for at, line in enumerate(lines) if line.get("is") == kind][number]


def _set(kind: str, nth: int, /, **values: Any) -> Callable[[Lines], int]:
    def act(lines: Lines) -> int:
        at = _nth(lines, kind, nth)
        lines[at] = {**lines[at], **values}
        return at

    return act


def _follows(kind: str, number: int, other: int) -> Callable[[Lines], int]:
    """A row follows another one of its kind, by its number; itself where they are the same."""

    def act(lines: Lines) -> int:
        name = "chain" if kind == "node" else "id"
        return _set(kind, number, parent=lines[_nth(lines, kind, other)][name])(lines)

    return act


def _swapped(kind: str, number: int) -> Callable[[Lines], int]:
    """A row stands before the one that it follows."""

    def act(lines: Lines) -> int:
        first, second = _nth(lines, kind, number), _nth(lines, kind, number + 1)
        lines[first], lines[second] = lines[second], lines[first]
        return first

    return act


def _without(kind: str, number: int, blames: str, which: int) -> Callable[[Lines], int]:
    """A row is missing; the one that needs it is wrong."""

    def act(lines: Lines) -> int:
        del lines[_nth(lines, kind, number)]
        lines[-1] = {"end": lines[-1]["end"] - 1}
        return _nth(lines, blames, which)

    return act


_WRONG = {
    "a page follows itself": (_follows("page", 3, 3), "follows itself"),
    "two pages follow each other": (_follows("page", 2, 5), "which is not there, or comes later"),
    "all pages go in a circle": (_follows("page", 1, 9), "which is not there, or comes later"),
    "a page stands before the one that it follows": (_swapped("page", 4), "comes later"),
    "a page follows one that is nowhere": (
        _set("page", 4, parent="p0123456789abcde"),
        "is not there",
    ),
    "a page belongs to no session": (
        _set("page", 4, session="s0123456789a"),
        "session s0123456789a, which is not there",
    ),
    "a page has no content": (_set("page", 4, digest="ab" * 32), "content abab"),
    "a message follows itself": (_follows("node", 2, 2), "does not have the chain"),
    "two messages follow each other": (_follows("node", 1, 4), "does not have the chain"),
    "a message stands before the one that it follows": (_swapped("node", 2), "comes later"),
    "the first message is missing": (
        _without("node", 0, "node", 0),
        "is not there, or comes later",
    ),
    "the last message is missing": (_without("node", -1, "turn", -1), "it ends with message"),
    "a turn belongs to no session": (
        _set("turn", 1, session="s0123456789a"),
        "session s0123456789a, which is not there",
    ),
    "a turn ends with a message that is nowhere": (
        _set("turn", 1, tail="cd" * 32),
        "it ends with message cdcd",
    ),
    "a turn has a number beyond all bounds": (_set("turn", 1, number=2**63 - 1), "its number is"),
    "a message has a branch beyond all bounds": (_set("node", 1, branch=2**70), "its branch is"),
    "a plan has a step beyond all bounds": (_set("sent", 0, step=2**63 - 1), "its step is"),
    "a bill is of no session": (
        _set("bill", 0, session="s0123456789a"),
        "session s0123456789a, which is not there",
    ),
    "a summary is of no session": (
        _set("summary", 0, session="s0123456789a"),
        "session s0123456789a, which is not there",
    ),
    "the session is missing": (_without("session", 0, "node", 0), "which is not there"),
}


@pytest.mark.row("V1")
@pytest.mark.parametrize("name", _WRONG)
@pytest.mark.parametrize("blank", [0, 2], ids=["", "with empty lines"])
def test_an_import_names_the_line_that_is_wrong_and_changes_nothing(
    desk: Desk, exported: Lines, name: str, blank: int
):
    forge, why = _WRONG[name]
    lines = list(exported)
    wrong = forge(lines)

    written = b"\n" * blank + b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    ran = desk.run("import", "-", given=written)

    assert ran.code == 2
    assert f"line {wrong + 1 + blank}: " in ran.err, ran.err
    assert why in ran.err
    with closing(SqliteStore.open(desk.data)) as store:
        assert list(store.dump()) == []


def test_a_cycle_that_only_both_files_together_make_is_refused(desk: Desk, exported: Lines):
    """A note may follow a page of a session that was not exported; that page must not follow the
    note when it comes later."""
    lines = list(exported)
    first, second = _nth(lines, "page", 1), _nth(lines, "page", 2)
    lines[first] = {**lines[first], "chain": "", "parent": "p0123456789abcde"}
    lines[second] = {**lines[second], "id": "p0123456789abcde"}
    ran = desk.run(
        "import", "-", given=b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    )

    assert (ran.code, "comes behind a page that follows it" in ran.err) == (2, True)
    assert f"line {second + 1}: " in ran.err


def test_an_export_of_a_repaired_store_is_taken_in_with_its_gaps(
    desk: Desk, exported: Lines, tmp_path: Path
):
    lines = list(exported)
    _without("node", 0, "node", 0)(lines)
    written = b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    assert desk.run("import", "-", "--with-gaps", given=written).code == 0
    assert "before it is not there" in desk.run("verify").out


def _put(connection: apsw.Connection, table: Any, where: str, given: Any, row: Any) -> None:
    """A row in another's place, sealed as if it were true."""
    names = table.names.split(", ")
    sets = ", ".join(f"{name} = ?" for name in names)
    connection.execute(f"UPDATE {table.name} SET {sets} WHERE {where}", (*table.pack(row), given))


def _messages_in_a_circle(store: SqliteStore, connection: apsw.Connection) -> None:
    nodes = [node for node in store.nodes(next(store.sessions()).id) if not node.aside]
    _put(
        connection,
        NODE,
        "chain = ?",
        pack_hex(nodes[0].chain),
        replace(nodes[0], parent=nodes[-1].chain),
    )
    _put(
        connection,
        NODE,
        "chain = ?",
        pack_hex(nodes[3].chain),
        replace(nodes[3], parent=nodes[3].chain),
    )


def _a_message_behind_itself(store: SqliteStore, connection: apsw.Connection) -> None:
    for node in store.nodes(next(store.sessions()).id):
        _put(connection, NODE, "chain = ?", pack_hex(node.chain), replace(node, parent=node.chain))


def _pages_in_a_circle(store: SqliteStore, connection: apsw.Connection) -> None:
    pages = list(store.pages(Where()))
    _put(connection, PAGE, "id = ?", pages[0].id, replace(pages[0], parent=pages[-1].id))
    _put(connection, PAGE, "id = ?", pages[4].id, replace(pages[4], parent=pages[4].id))


def _turns_without_an_end(store: SqliteStore, connection: apsw.Connection) -> None:
    for turn in store.turns(next(store.sessions()).id):
        _put(connection, TURN, "id = ?", turn.id, replace(turn, head="ab" * 32, tail="cd" * 32))


def _memories_in_a_circle(store: SqliteStore, connection: apsw.Connection) -> None:
    ids = [memory.id for memory in store.memories()]
    links = [
        MemoryLink(of, to, relation, 1.0)
        for relation in Relation
        for of, to in zip(ids, [*ids[1:], ids[0]], strict=True)
    ]
    kept(store, Remembered((), tuple(links)))


_PLANTED = {
    "messages, pages and memories in circles": (
        _messages_in_a_circle,
        _pages_in_a_circle,
        _memories_in_a_circle,
    ),
    "messages behind themselves, and turns whose messages are nowhere": (
        _a_message_behind_itself,
        _turns_without_an_end,
    ),
}

_LOOKS = (
    ("sessions",),
    ("show", "last"),
    ("show", "last", "--json"),
    ("show", "last", "--full"),
    ("diff", "last", "2"),
    ("diff", "last", "4"),
    ("search", "clock"),
    ("recall", "toolu_1"),
    ("savings",),
    ("status",),
    ("doctor",),
    ("verify",),
    ("export",),
    ("export", "--session", "last"),
    ("memory", "list"),
    ("memory", "search", "the clock"),
    ("memory", "show", "sem-0"),
    ("memory", "graph"),
    ("memory", "graph", "sem-0"),
    ("memory", "timeline"),
    ("memory", "consolidate"),
    ("memory", "forget", "sem-0", "--yes"),
    ("continuity", "show"),
    ("repair", "--yes"),
    ("show", "last"),
    ("verify",),
)


@pytest.mark.row("V1")
@pytest.mark.parametrize("name", _PLANTED)
@pytest.mark.rest_slow
def test_every_command_ends_with_a_result_or_a_sentence(desk: Desk, name: str, tmp_path: Path):
    fill(desk.data)
    with closing(SqliteStore.open(desk.data)) as store:
        kept(
            store,
            Remembered(
                tuple(
                    fact(str(number), text=f"The clock {number} was wrong.") for number in range(4)
                )
            ),
        )
        with closing(apsw.Connection(str(desk.data / "store.db"))) as connection:
            for plant in _PLANTED[name]:
                plant(store, connection)
        out = tmp_path / "all.jsonl"
        out.write_bytes(b"")
    written = desk.run("export", "--with-secrets", "-o", str(out))
    shutil.copy(out, desk.project / "all.jsonl")

    ran = run_all(desk, (*_LOOKS, ("replay", str(desk.project / "all.jsonl"))), seconds=240)

    assert written.code in (0, 2)
    for words, each in zip((*_LOOKS, ("replay",)), ran, strict=True):
        assert each.code in (0, 1, 2), words
        assert "Traceback" not in each.err, (words, each.err)
        assert "Usage:" not in each.err, (words, each.err)
        assert each.code == 0 or each.err or each.raw, words
