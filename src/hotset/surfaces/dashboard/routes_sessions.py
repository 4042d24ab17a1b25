"""Routes of the views of what to do, savings, sessions and one session."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated

from msgspec import Meta, Struct

from hotset.nouns.page import SessionId
from hotset.nouns.turn import TurnRef
from hotset.runtime.maintenance import Export
from hotset.runtime.views.findings import Findings, read_findings
from hotset.runtime.views.project import ViewedProject
from hotset.runtime.views.savings import DAY, SavingsGroup, SavingsView, read_savings
from hotset.runtime.views.session import (
    FoundInSession,
    OpenedReference,
    ReferenceList,
    SessionView,
    SummaryRow,
    TurnDifference,
    TurnList,
    list_references,
    list_summaries,
    list_turns,
    open_reference,
    read_difference,
    read_session,
    search_session,
)
from hotset.runtime.views.sessions import ListedCost, SessionList, cost_sessions, list_sessions
from hotset.surfaces.dashboard.api_route import (
    ApiRoute,
    Download,
    Name,
    NoQuestion,
    Number,
    PageSize,
    SessionQuestion,
)

_MOST_COSTS = 100
_LINES = 200  # of an export that are sent together


class SavingsQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    by: SavingsGroup = SavingsGroup.DAY
    days: Annotated[int, Meta(ge=0, le=3660)] = 30
    """The latest so many; 0 is ever."""
    offset: Number = 0
    limit: PageSize = 50


class SessionsQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    words: Name = ""
    agent: Name = ""
    offset: Number = 0
    limit: PageSize = 30


class CostsQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    sessions: Annotated[str, Meta(max_length=20_000)]
    """Ids, with commas between them."""


class PartQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a list that belongs to a session."""

    session: Name
    offset: Number = 0
    limit: PageSize = 50


class DifferenceQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    session: Name
    turn: Number
    offset: Number = 0
    limit: PageSize = 20


class ReferenceQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    reference: Name
    offset: Number = 0
    limit: PageSize = 50


class WordsQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    session: Name
    words: Name
    limit: PageSize = 20


def _findings(project: ViewedProject, _: NoQuestion) -> Findings:
    return read_findings(project.store, project.config, project.clock())


def _savings(project: ViewedProject, asked: SavingsQuestion) -> SavingsView:
    now = project.clock()
    return read_savings(
        project.store,
        project.config,
        asked.by,
        since=now - asked.days * DAY if asked.days else 0.0,
        offset=asked.offset,
        limit=asked.limit,
        now=now,
    )


def _sessions(project: ViewedProject, asked: SessionsQuestion) -> SessionList:
    return list_sessions(project.store, asked.words, asked.agent, asked.offset, asked.limit)


def _costs(project: ViewedProject, asked: CostsQuestion) -> tuple[ListedCost, ...]:
    ids = [SessionId(each) for each in asked.sessions.split(",") if each][:_MOST_COSTS]
    return cost_sessions(project.store, project.config, ids)


def _session(project: ViewedProject, asked: SessionQuestion) -> SessionView:
    return read_session(project.store, project.session(asked.session))


def _turns(project: ViewedProject, asked: PartQuestion) -> TurnList:
    session = project.session(asked.session)
    return list_turns(project.store, project.config, session.id, asked.offset, asked.limit)


def _difference(project: ViewedProject, asked: DifferenceQuestion) -> TurnDifference:
    ref = TurnRef(project.session(asked.session).id, asked.turn)
    return read_difference(project.store, project.config, ref, asked.offset, asked.limit)


def _references(project: ViewedProject, asked: PartQuestion) -> ReferenceList:
    session = project.session(asked.session)
    return list_references(project.store, session.id, asked.offset, asked.limit)


def _reference(project: ViewedProject, asked: ReferenceQuestion) -> OpenedReference:
    return open_reference(project.store, asked.reference, asked.offset, asked.limit)


def _summaries(project: ViewedProject, asked: SessionQuestion) -> tuple[SummaryRow, ...]:
    return list_summaries(project.store, project.session(asked.session).id)


def _search(project: ViewedProject, asked: WordsQuestion) -> FoundInSession:
    session = project.session(asked.session)
    return search_session(project, session.id, asked.words, asked.limit)


def _export(project: ViewedProject, asked: SessionQuestion) -> Download:
    session = project.session(asked.session)
    lines = iter(Export(project.store, session.id, with_secrets=False))
    return Download(f"{session.id}.jsonl", "application/x-ndjson", _joined(lines))


def _joined(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Several lines at once, as each piece is a step into a thread and back."""
    while some := b"".join(islice(lines, _LINES)):
        yield some


ROUTES: tuple[ApiRoute, ...] = (
    ApiRoute("findings", "What a person should do.", NoQuestion, Findings, _findings),
    ApiRoute("savings", "What was saved, in groups.", SavingsQuestion, SavingsView, _savings),
    ApiRoute("sessions", "Sessions, a page of them.", SessionsQuestion, SessionList, _sessions),
    ApiRoute("costs", "What sessions cost.", CostsQuestion, tuple[ListedCost, ...], _costs),
    ApiRoute("sessions/{session}", "One session.", SessionQuestion, SessionView, _session),
    ApiRoute(
        "sessions/{session}/history",
        "A session's turns with what each added, the latest first.",
        PartQuestion,
        TurnList,
        _turns,
    ),
    ApiRoute(
        "sessions/{session}/turns/{turn}/difference",
        "One request: what the client sent, and what the model saw.",
        DifferenceQuestion,
        TurnDifference,
        _difference,
    ),
    ApiRoute(
        "sessions/{session}/references",
        "The lines that stand for what left a session's window.",
        PartQuestion,
        ReferenceList,
        _references,
    ),
    ApiRoute(
        "references/{reference}",
        "The pages that a line stands for.",
        ReferenceQuestion,
        OpenedReference,
        _reference,
    ),
    ApiRoute(
        "sessions/{session}/summaries",
        "A session's summaries.",
        SessionQuestion,
        tuple[SummaryRow, ...],
        _summaries,
    ),
    ApiRoute(
        "sessions/{session}/search",
        "Pages of a session that fit some words.",
        WordsQuestion,
        FoundInSession,
        _search,
    ),
    ApiRoute(
        "sessions/{session}/export",
        "A session as JSON lines, without secrets; `hotset import` takes it in.",
        SessionQuestion,
        Download,
        _export,
    ),
)
