"""One search over every source: pages, code, memories and tools as hits whose scores can be
compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hotset.errors import HotsetError
from hotset.index.port import Index
from hotset.nouns.finding import Entry, EntryId, Hits, Query, SearchHit, Sort
from hotset.nouns.memory import MemoryKind
from hotset.nouns.page import Page
from hotset.nouns.tool import UNLIKELY
from hotset.sealing import seal
from hotset.sources.history import PageHits, find
from hotset.sources.memory import MemorySource
from hotset.sources.tools import Toolbox
from hotset.store.port import Store
from hotset.text.clip import clip_prose

_LONGEST_TITLE = 200


def merge_hits(groups: Iterable[Sequence[SearchHit]]) -> list[SearchHit]:
    """One list, best first. Scores of different sources say nothing about each other, so each is a
    share of its best."""
    scaled = [
        replace(hit, score=hit.score / best)
        for group in groups
        for best in (max((each.score for each in group), default=0.0) or 1.0,)
        for hit in group
    ]
    return sorted(scaled, key=lambda hit: -hit.score)


def code_hits(found: Hits) -> list[SearchHit]:
    """Stretches of the project's files."""
    return [_code_hit(hit.entry, hit.score) for hit in found.hits]


def _code_hit(entry: Entry, score: float) -> SearchHit:
    first, last = entry.lines
    what = entry.title.removeprefix(entry.path).strip()
    detail = {
        "path": entry.path,
        "lines": [first, last],
        "title": what,
        "language": entry.kind,
        "text": entry.text,
    }
    return SearchHit(
        Sort.CODE, score, f"{entry.path}:{first}-{last}", what, stretch=entry, detail=detail
    )


def page_hits(found: PageHits, store: Store) -> list[SearchHit]:
    """Pages of conversations; their secrets stay in the store."""
    return [_page_hit(hit.page, hit.score, hit.lines, store) for hit in found.best]


def _page_hit(page: Page, score: float, lines: tuple[int, int], store: Store) -> SearchHit:
    try:
        text = seal(store.content(page.digest).decode("utf-8", "replace")).text
    except HotsetError as error:
        stretch = Entry(EntryId(page.id), page.id, Sort.PAGE, f"({error})")
    else:
        if lines != (0, 0):
            text = "\n".join(text.split("\n")[lines[0] - 1 : lines[1]])
        stretch = Entry(EntryId(page.id), page.id, Sort.PAGE, text, lines=lines)
    detail = {
        "page": page.id,
        "session": page.session,
        "turn": page.turn,
        "kind": page.kind,
        "tool": page.tool,
        "agent": page.agent,
        "time": page.time,
        "lines": list(lines),
        "text": stretch.text,
        "recall": f"hotset recall {page.id}",
    }
    return SearchHit(
        Sort.PAGE,
        score,
        f"{page.session} turn {page.turn}",
        f"{page.tool} {page.kind}".strip(),
        f"hotset show {page.session} --turns {page.turn}",
        page.time,
        stretch,
        detail,
    )


def memory_hits(
    memories: MemorySource, words: str, most: int, since: float | None = None
) -> list[SearchHit]:
    """What is remembered: the memories that `hotset memory search` finds, without the words that
    were said."""
    kinds = [
        kind for kind in MemoryKind if kind is not MemoryKind.ARRANGEMENT
    ]  # which is hotset's own
    found = memories.recall(words, kinds=kinds, most=most).recall.items
    return [
        SearchHit(
            Sort.MEMORY,
            each.score,
            each.id,
            f"{each.kind}: {clip_prose(each.title or each.text, _LONGEST_TITLE)}",
            f"hotset memory show {each.id}",
            each.time,
            detail={
                "id": each.id,
                "kind": each.kind,
                "title": each.title,
                "time": each.time,
                "text": each.text,
            },
        )
        for each in found[:most]
        if since is None or each.time >= since
    ]


def tool_hits(toolbox: Toolbox, words: str, most: int) -> list[SearchHit]:
    """The tools that fit, and skills of the project that would once they are approved. What hardly
    fits is left out."""
    found = toolbox.look_for(words, most)
    fitting = [
        (ghost.tool, ghost.score, "tools find") for ghost in found.ghosts if ghost.score >= UNLIKELY
    ]
    waiting = [(known.tool, UNLIKELY, "tools approve") for known in found.waiting]
    return [
        SearchHit(
            Sort.TOOL,
            score,
            tool.name,
            f"from {tool.source}: {clip_prose(tool.description, _LONGEST_TITLE)}",
            f"hotset {command} {tool.name}",
            detail={"name": tool.name, "source": tool.source, "description": tool.description},
        )
        for tool, score, command in (*fitting, *waiting)[:most]
    ]


@dataclass(frozen=True, slots=True)
class TextHits:
    """Hits in the project's files and in pages of its conversations."""

    groups: Sequence[Sequence[SearchHit]]
    lacking: frozenset[str]
    """Signals that did not answer in time."""
    note: str
    """How the words were loosened, where nothing holds them as they were asked for."""


def text_hits(query: Query, index: Index, store: Store | None, code_path: str | None) -> TextHits:
    """Hits by the strictest wording of the query that has any: in the files on `code_path` unless
    it is None, and in pages where there is a store."""
    from hotset.index.analysis import wordings  # noqa: PLC0415 - numpy
    from hotset.sources.code import find_code  # noqa: PLC0415

    found = TextHits((), frozenset(), "")
    for wording in wordings(query.words):
        groups: list[Sequence[SearchHit]] = []
        lacking: frozenset[str] = frozenset()
        asked = replace(query, words=wording.words)
        if code_path is not None:
            hits = find_code(index, replace(asked, only=replace(asked.only, path=code_path)))
            lacking |= hits.lacking
            groups.append(code_hits(hits))
        if store is not None:
            pages = find(asked, store, index)
            lacking |= pages.lacking
            groups.append(page_hits(pages, store))
        found = TextHits(groups, lacking, wording.note)
        # Where "words" did not answer, it is not known whether anything holds the phrase.
        if any(groups) or "words" in lacking:
            break
    return found
