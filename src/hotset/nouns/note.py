"""A note: a small durable value that is no page, turn, event, memory or row of the page table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

from hotset.nouns.page import SessionId


class Scope(StrEnum):
    """How far a note may travel."""

    PROJECT = "project"
    """With every export of the store, and of its session where it has one."""
    MACHINE = "machine"
    """Never off this machine: consent, leases, what runs here."""


@dataclass(frozen=True, slots=True)
class Space:
    """One family of notes, declared once by the part of the house that owns it."""

    name: str
    scope: Scope = Scope.PROJECT
    keeps: int = 0
    """Versions of a key that stay; 0 keeps all. For values that change often and have no
    history."""


METADATA = Space("metadata")
"""Free metadata, and the kind of an agent under `kind`: a JSON object of strings, by the id of a
session or a page."""


LEARNED_FROM = "learned_from"
"""Among the metadata of a session that did not go through hotset: the file it was learned from."""


def decode_metadata(value: bytes | None) -> dict[str, str]:
    """The value of a note of `METADATA`; empty where it cannot be read."""
    try:
        given = json.loads(value or b"{}")
    except ValueError:
        return {}
    return {str(k): str(v) for k, v in given.items()} if isinstance(given, dict) else {}


@dataclass(frozen=True, slots=True)
class Note:
    """One version of a value. The highest version of a key holds."""

    space: str
    key: str
    value: bytes | None
    """None: this version removed it."""
    time: float
    session: SessionId | None = None
    turn: int = 0
    """Session and turn that it was written for, where there is one."""
    scope: Scope = Scope.PROJECT
    version: int = 1
    step: int = 0
    """Its place in the order of the page table, so that it can be read as of a turn."""
