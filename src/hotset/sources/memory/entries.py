"""Memories, and what was said with what was said around it, as entries of the index. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hotset.nouns.finding import Entry, EntryId, Sort
from hotset.nouns.memory import Memory, MemoryKind, Standing
from hotset.nouns.page import Kind, Page

WINDOW = "window"
"""The kind of an entry that holds a page with those before and behind it."""

BESIDE = 2
"""Pages on either side that are part of a window."""

FINDABLE = frozenset({Standing.ACTIVE, Standing.SUPERSEDED})
"""What is forgotten, merged, or not confirmed yet has no entry."""

RECALLED = frozenset(MemoryKind) - {MemoryKind.ARRANGEMENT}

_OWN = 1000  # characters of the page itself, about one stretch
_AROUND = 300  # characters of each page beside it: a question, or how an answer begins
_LONGEST = 6000  # characters of a memory: its begin; the embedder reads the first third of that
_MOST_SAID = 4000  # characters of prompts that an episode is found by
_PER_PROMPT = 400
_SPEAKERS = {Kind.PROMPT: "p", Kind.RESPONSE: "r"}
_KINDS = {letter: kind for kind, letter in _SPEAKERS.items()}


def is_found(memory: Memory) -> bool:
    return memory.standing in FINDABLE and memory.kind in RECALLED


def entry_of(memory: Memory, said: Sequence[str] = ()) -> Entry:
    """`said` are an episode's prompts, sealed: whoever looks for it remembers the words of the day, not ours."""
    prompts = "\n".join(text[:_PER_PROMPT] for text in said)[:_MOST_SAID]
    text = "\n".join(part for part in (memory.text[:_LONGEST], ", ".join(memory.topics), prompts) if part)
    return Entry(
        id=EntryId(f"memory-{memory.id}"),
        whole=memory.id,
        sort=Sort.MEMORY,
        text=text,
        kind=memory.kind,
        title=memory.title,
        session=memory.source.session or "",
        agent=memory.source.agent,
        time=memory.created,
    )


def is_talk(page: Page) -> bool:
    """Somebody's own words: what a person or a model said, and no result of a tool."""
    return page.kind in _SPEAKERS


def window_of(page: Page, text: str, before: Sequence[str], behind: Sequence[str]) -> Entry:
    """A page with the last ones before it and the first ones behind it; all texts are sealed."""
    around = [*before[-BESIDE:], *behind[:BESIDE]]
    at = len(before[-BESIDE:])
    parts = [each[:_AROUND] for each in around]
    parts.insert(at, text[:_OWN])
    return Entry(
        id=EntryId(f"window-{page.id}-{_SPEAKERS[page.kind]}"),
        whole=page.id,
        sort=Sort.MEMORY,
        text="\n".join(parts),
        kind=WINDOW,
        session=page.session,
        agent=page.agent,
        turn=page.turn,
        time=page.time,
    )


def said_by(entry: Entry) -> Kind:
    """Whose words are in the middle of a window."""
    return _KINDS[entry.id[-1]]
