"""The store's migrations: an append-only list, one step a version. Steps are never edited, only
added. Also the notes that stores up to format 3 kept as hidden rows."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from hotset.errors import StoreFailed, StoreTooNew
from hotset.nouns.note import Note
from hotset.nouns.page import Digest
from hotset.store.connection import Connection, write_transaction
from hotset.store.engine import SqlConnection
from hotset.store.port import HiddenRow
from hotset.store.queries import note_versions
from hotset.store.tables import HIDDEN, NOTE, pack_hex, read_content

APPLICATION_ID = 0x686F7473  # "hots": tells `file` and us whose SQLite file this is


def _first(connection: Connection) -> None:
    """Columns have no type, so that SQLite returns exactly what was put in; rows are distinguished
    by their seals."""
    connection.execute(
        """
        CREATE TABLE meta (name PRIMARY KEY, value) WITHOUT ROWID;

        CREATE TABLE blob (seq INTEGER PRIMARY KEY, digest, codec, size, body);
        CREATE UNIQUE INDEX blob_digest ON blob (digest);

        CREATE TABLE session (seq INTEGER PRIMARY KEY, id, key, agent, dialect, started, title, seal);
        CREATE UNIQUE INDEX session_id ON session (id);
        CREATE INDEX session_key ON session (key) WHERE key <> '';

        CREATE TABLE node (
            seq INTEGER PRIMARY KEY, session, chain, parent, role, turn, branch, raw, essence, aside, time, seal);
        CREATE UNIQUE INDEX node_chain ON node (chain, session);
        CREATE INDEX node_parent ON node (session, parent);

        CREATE TABLE page (
            seq INTEGER PRIMARY KEY, id, session, agent, turn, branch, kind, role, parent, digest, size, media, time,
            chain, position, tool, call, seal);
        CREATE UNIQUE INDEX page_id ON page (id);
        CREATE INDEX page_session ON page (session);
        CREATE INDEX page_chain ON page (chain, session) WHERE chain <> '';
        CREATE INDEX page_parent ON page (parent) WHERE parent IS NOT NULL;
        CREATE INDEX page_call ON page (call) WHERE call <> '';

        CREATE TABLE turn (
            seq INTEGER PRIMARY KEY, id, session, number, agent, branch, dialect, model, streamed, started, fingerprint, head,
            tail, system, tools, params, outcome, finished, status, stop, response_id, error, usage, reply, seal);
        CREATE UNIQUE INDEX turn_number ON turn (session, number);
        CREATE UNIQUE INDEX turn_id ON turn (id);
        CREATE INDEX turn_response ON turn (response_id) WHERE response_id <> '';

        CREATE TABLE tool (seq INTEGER PRIMARY KEY, name, digest, first_session, time, seal);
        CREATE UNIQUE INDEX tool_name ON tool (name, digest);

        CREATE TABLE event (seq INTEGER PRIMARY KEY, name, time, session, turn, detail, seal, nth);
        CREATE UNIQUE INDEX event_seal ON event (seal, nth);
        CREATE INDEX event_session ON event (session) WHERE session IS NOT NULL;

        CREATE TABLE reference (
            seq INTEGER PRIMARY KEY, id, session, kind, pages, turns, tokens, time, topics, entities, hints, seal);
        CREATE UNIQUE INDEX reference_id ON reference (id);
        CREATE INDEX reference_session ON reference (session);

        CREATE TABLE gist (seq INTEGER PRIMARY KEY, page, tokens, keywords, entities, files, seal);
        """  # noqa: E501
    )


def _second(connection: Connection) -> None:
    """The page table, the ledger and summaries; and the way from content to its pages.

    Indexes on `step` find the last one; those on places hold what tells two rows of one place
    apart, so that a table is put together from the index alone.
    """
    connection.execute(
        """
        CREATE INDEX page_digest ON page (digest);

        CREATE TABLE shown (
            seq INTEGER PRIMARY KEY, session, turn, step, chain, position, form, text, tokens, whole, cause, time, seal);
        CREATE UNIQUE INDEX shown_spot ON shown (chain, position, step, session);
        CREATE INDEX shown_step ON shown (step);

        CREATE TABLE hidden (seq INTEGER PRIMARY KEY, session, turn, step, chain, before, instead, after, asides, seal);
        CREATE UNIQUE INDEX hidden_chain ON hidden (chain, step, session);
        CREATE INDEX hidden_step ON hidden (step);

        CREATE TABLE sent (seq INTEGER PRIMARY KEY, session, turn, step, head, time, tokens, seal);
        CREATE UNIQUE INDEX sent_head ON sent (head, step, session);
        CREATE INDEX sent_step ON sent (step);
        CREATE INDEX sent_turn ON sent (session, turn, step);

        CREATE TABLE bill (
            seq INTEGER PRIMARY KEY, session, turn, time, model, upstream, sent, whole, usage, calls, faults, refaults, broke,
            overhead_ms, seal);
        CREATE UNIQUE INDEX bill_turn ON bill (session, turn);
        CREATE INDEX bill_time ON bill (time);

        CREATE TABLE summary (seq INTEGER PRIMARY KEY, session, branch, turns, version, text, "by", time, seal);
        CREATE UNIQUE INDEX summary_stretch ON summary (session, branch, turns, version);
        """  # noqa: E501
    )


def _third(connection: Connection) -> None:
    """Memories, their links and their uses.

    A version of a memory is one body, with columns for what is queried. What is erased leaves its
    number behind, and nothing else: rows that SQLite deletes make it move their neighbours, and it
    leaves copies of those where they were.
    """
    connection.execute(
        """
        CREATE TABLE memory (
            seq INTEGER PRIMARY KEY, id, version, kind, standing, session, run, created, time, codec, size, body, seal);
        CREATE UNIQUE INDEX memory_id ON memory (id, version);
        CREATE INDEX memory_kind ON memory (kind);
        CREATE INDEX memory_created ON memory (created, id);
        CREATE INDEX memory_session ON memory (session) WHERE session IS NOT NULL;
        CREATE INDEX memory_run ON memory (run, seq, time) WHERE run <> '';

        CREATE TABLE memory_link (
            seq INTEGER PRIMARY KEY, "of", "to", relation, time, run, gone, seal, nth);
        CREATE UNIQUE INDEX memory_link_seal ON memory_link (seal, nth);
        CREATE INDEX memory_link_of ON memory_link ("of", "to", relation);
        CREATE INDEX memory_link_to ON memory_link ("to");

        CREATE TABLE memory_use (seq INTEGER PRIMARY KEY, memory, how, time, session, task, seal, nth);
        CREATE UNIQUE INDEX memory_use_seal ON memory_use (seal, nth);
        CREATE INDEX memory_use_memory ON memory_use (memory, how, time);
        """  # noqa: E501
    )


def _fourth(connection: Connection) -> None:
    """Notes. What was in `hidden` under made-up names becomes notes of the space that the name
    began with."""
    connection.execute(
        """
        CREATE TABLE note (
            seq INTEGER PRIMARY KEY, space, key, version, scope, session, turn, step, time, codec, size, body, seal);
        CREATE UNIQUE INDEX note_key ON note (space, key, version);
        CREATE INDEX note_step ON note (step);
        CREATE INDEX note_session ON note (session) WHERE session IS NOT NULL;
        """  # noqa: E501
    )
    move_hidden_to_notes(connection)


def _fifth(connection: Connection) -> None:
    """What waits for the team's database; see `store.outbox`."""
    connection.execute(
        "CREATE TABLE outbox (seq INTEGER PRIMARY KEY, batch, session, turn, codec, size, body)"
    )


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_first, _second, _third, _fourth, _fifth)
"""Step n goes from version n to n + 1."""

VERSION = len(MIGRATIONS)

_OLD_SPACES = frozenset({"calibration", "response", "found", "offer", "brought"})
"""Spaces of the notes that stores up to format 3 kept as hidden rows under made-up names."""


def migrate(connection: Connection, database: Path) -> None:
    """Bring a store to the version of this code, in one transaction. Raises `StoreTooNew`, or
    refuses a foreign file."""
    version = _version(connection, database)
    if connection.pragma("journal_mode") != "wal":
        connection.pragma("journal_mode", "wal")
    if version == VERSION:
        return
    with write_transaction(connection):
        if version == 0:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            # A cookie of its own lets `wal.refuse_foreign_wal` tell a foreign WAL.
            connection.execute(f"PRAGMA schema_version = {secrets.randbelow(2**30) + 1}")
        for step in MIGRATIONS[version:]:
            step(connection)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('version', ?)", (VERSION,))
        connection.execute("COMMIT")


def refuse_unreadable(connection: Connection, database: Path) -> None:
    """Check a store that cannot be changed now: it must have this version already."""
    version = _version(connection, database)
    if version != VERSION:
        raise StoreFailed(
            f"{database} has format {version} and must become {VERSION} before it is read, "
            f"but cannot be written"
        )


def _version(connection: Connection, database: Path) -> int:
    application = connection.pragma("application_id")
    version = connection.pragma("user_version")
    if (
        application == 0
        and version == 0
        and not connection.execute("SELECT 1 FROM sqlite_schema").fetchall()
    ):
        return 0
    if application != APPLICATION_ID:
        raise StoreFailed(
            f"{database} is a SQLite file of another program; choose another data folder"
        )
    if version > VERSION:
        raise StoreTooNew(
            f"{database} was written by a newer hotset (format {version}, this one knows up "
            f"to {VERSION}): "
            "update hotset (`pip install -U hotset`), or choose another data folder; nothing "
            "was changed"
        )
    return int(version)


def old_note(row: HiddenRow, read: Callable[[Digest], bytes]) -> Note | None:
    """The note that a hidden row of a store up to format 3 represents; None for a real one. Its
    version is still open."""
    space, _, key = row.chain.partition(":")
    if not key or space not in _OLD_SPACES:
        return None
    value = read(row.instead) if row.instead is not None else b""
    if space == "response":
        answers = [read(each).decode("utf-8", "replace") for each in row.after]
        value = msgspec.json.encode({"last": value.decode("utf-8", "replace"), "answers": answers})
    return Note(space, key, value, 0.0, row.session, row.turn, step=row.step)


def note_of(connection: SqlConnection, row: HiddenRow) -> Note | None:
    """The same, with its version: that of its step if it exists already, otherwise the next."""

    def read(address: Digest) -> bytes:
        form = connection.execute(
            "SELECT codec, size, body FROM blob WHERE digest = ?", (pack_hex(address),)
        ).fetchone()
        return read_content(address, *(form or (0, None, None)))

    note = old_note(row, read)
    if note is None:
        return None
    every = note_versions(connection, note.space, note.key)
    there = next(
        (each.version for each in every if (each.step, each.session) == (note.step, note.session)),
        0,
    )
    return replace(note, version=there or (every[-1].version + 1 if every else 1))


def move_hidden_to_notes(connection: Connection) -> None:
    """Move the notes of a store up to format 3, inside a transaction. The rows that stay are
    numbered without gaps again (see `repair`)."""
    every = connection.execute(f"SELECT {HIDDEN.names} FROM hidden ORDER BY step, seq").fetchall()
    stay: list[Any] = []
    for values in every:
        if (note := note_of(connection, HIDDEN.unpack(values))) is None:
            stay.append((len(stay) + 1, *values))
        else:
            connection.execute(
                f"INSERT OR IGNORE INTO note ({NOTE.names}) VALUES ({NOTE.marks})", NOTE.pack(note)
            )
    if len(stay) < len(every):
        connection.execute("DELETE FROM hidden")
        connection.executemany(
            f"INSERT INTO hidden (seq, {HIDDEN.names}) VALUES (?, {HIDDEN.marks})", stay
        )
