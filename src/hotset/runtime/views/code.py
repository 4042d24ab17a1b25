"""The project's files as they are indexed, for a person: how far, with whose consent, and what a
search finds in them."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hotset.config import Config
from hotset.index.port import IndexState
from hotset.nouns.search import Filter, Query, Sort
from hotset.runtime.search import find_text
from hotset.runtime.views.project import ViewedProject
from hotset.sources import code
from hotset.sources.code import ConsentAnswer, Totals
from hotset.text.terms import excerpt, terms

_SECONDS = 2.0
"""Of a search; cold files are read from disk."""
_EXCERPT_LINES = 8


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The state of a project's index."""

    project: str
    folder: str
    answer: ConsentAnswer
    since: float
    indexer: int | None
    """The process that indexes now, or watches."""
    code: Totals | None
    fresh: bool | None
    """True if nothing changed since; None if nothing is indexed."""
    unfinished: bool
    """The last run was interrupted; the next one goes on from there."""
    index: IndexState | None


@dataclass(frozen=True, slots=True)
class CodeLine:
    number: int
    text: str
    marks: tuple[tuple[int, int], ...]
    """Where the words stand that match, end exclusive."""


@dataclass(frozen=True, slots=True)
class CodeMatch:
    path: str
    first: int
    last: int
    what: str
    """The symbol or heading that it is in."""
    language: str
    score: float
    lines: tuple[CodeLine, ...]


@dataclass(frozen=True, slots=True)
class CodeMatches:
    rows: tuple[CodeMatch, ...]
    """Best first."""
    is_indexed: bool
    note: str
    """How the search was loosened, or what it went without; empty if neither."""


def read_index_status(
    config: Config, state: IndexState | None, seconds: float | None = None
) -> IndexStatus:
    """`state` is the index's, where there is one. Whether files changed since is looked at for so
    many seconds; None is as long as it takes."""
    consent = code.read_consent(config.folder)
    about = consent.answer if consent.root == str(config.project) else ConsentAnswer.UNANSWERED
    totals = fresh = None
    unfinished = False
    if code.has_code(config.folder) and consent.allows(config.project):
        with code.Manifest(config.folder, code.manifest_identity()) as manifest:
            totals, unfinished = manifest.totals(), manifest.unfinished
            until = None if seconds is None else time.monotonic() + seconds

            def is_late() -> bool:
                return until is not None and time.monotonic() > until

            edited = manifest.edited(config.project, is_late)
            fresh = None if edited == {} and is_late() else edited == {}
    return IndexStatus(
        str(config.project),
        str(config.folder),
        about,
        consent.when,
        code.who_indexes(config.folder),
        totals,
        fresh and not unfinished,
        unfinished,
        state,
    )


def search_code(project: ViewedProject, words: str, path: str = "", most: int = 20) -> CodeMatches:
    """Stretches of the project's files that fit."""
    config = project.config
    allowed = code.read_consent(config.folder).allows(config.project)
    is_indexed = allowed and code.has_code(config.folder) and project.open_index() is not None
    source = next((each for each in project.sources if each.name == code.CodeSource.name), None)
    if not is_indexed or source is None or not words.strip():
        return CodeMatches((), is_indexed, "")
    only = Filter(path=code.below(config.project, path))
    found = find_text([(source, Query(words, only, most, _SECONDS))])
    wanted = terms(words)
    rows = tuple(
        CodeMatch(
            path=hit.stretch.path,
            first=hit.stretch.lines[0],
            last=hit.stretch.lines[1],
            what=hit.what,
            language=hit.stretch.kind,
            score=hit.score,
            lines=tuple(
                CodeLine(line.number, line.text, line.marks)
                for line in excerpt(hit.stretch, wanted, _EXCERPT_LINES)
            ),
        )
        for group in found.groups
        for hit in group
        if hit.stretch is not None and hit.type is Sort.CODE
    )
    lacking = f"searched without {found.lacking}; the order may be worse" if found.lacking else ""
    return CodeMatches(rows, True, found.note or lacking)
