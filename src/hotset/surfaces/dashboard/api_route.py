"""A row of the dashboard's API: its path, its question, its answer, and the reading behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta, Struct

from hotset.runtime.views.project import ViewedProject

Number = Annotated[int, Meta(ge=0, le=2**31)]
PageSize = Annotated[int, Meta(ge=1, le=1000)]
Name = Annotated[str, Meta(max_length=300)]


class NoQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing is asked."""


class SessionQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    session: Name


class NameQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    name: Name


@dataclass(frozen=True, slots=True)
class OrderReply:
    says: str
    undo: str
    """How to take it back, or that it cannot be."""


@dataclass(frozen=True, slots=True)
class Download:
    """A file that is sent piece by piece, instead of an answer in JSON."""

    name: str
    media: str
    pieces: Iterator[bytes]


@dataclass(frozen=True, slots=True)
class ApiRoute:
    path: str
    """Below `api/`; names in braces are fields of the question."""
    summary: str
    question: type[Struct]
    answer: Any
    """The type of what `run` returns."""
    run: Callable[[ViewedProject, Any], Any]
    acts: bool = False
    """It changes something: POST, with the question as its body."""
