"""Facts and procedures that a small model proposes from a session, under the rules for all others.

A proposed fact is a person's only if it is a sentence that a person typed; a proposed procedure is
active only if its commands worked in work that succeeded. Everything else waits for a person. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from hotset.nouns.memory import (
    Ending,
    Episode,
    MemoryKind,
    MemoryRecord,
    Procedure,
    Provenance,
    Standing,
    Trust,
)
from hotset.nouns.page import Kind, Page, PageId
from hotset.sources.memory.encode.encoder import encode_session, session_words, worded_memory
from hotset.sources.memory.encode.session import Material
from hotset.sources.memory.encode.speakers import (
    OutsideWords,
    is_borrowed,
    is_dangerous,
    is_suspect,
)
from hotset.sources.memory.encode.statements import LEAD, MOMENT, clauses, is_stated
from hotset.text.characters import squeeze
from hotset.text.clip import clip_prose

INSTRUCTION = """\
List what of this session will still hold in later sessions. One line each, nothing else:
fact: a rule, preference, version, place, person, schedule or prohibition that the user stated, \
copied word for word
procedure: when it is needed -> first command; next command
Leave out what was for this task only. If there is nothing, reply: none"""

_LONGEST_SOURCE = 12_000  # characters of a session that the model reads
_LONGEST_PAGE = 1500
_READ = frozenset({Kind.PROMPT, Kind.RESPONSE})
_LINE = re.compile(r"\s*[-*]?\s*(?P<kind>fact|procedure)\s*:\s*(?P<text>\S.*?)\s*", re.IGNORECASE)
_MOST = 12
_LONGEST = 280
_LONGEST_STEP = 160
_SURE, _UNSURE, _ONCE = 0.8, 0.4, 0.5
"""Confidence of a person's sentence, of what waits, and of a procedure that worked once."""


def proposal_source(material: Material) -> str:
    """What a model reads to propose memories: what was said, and the commands; the end if it is
    long."""
    parts = []
    for each in material.line:
        if each.page.kind in _READ and each.text.strip():
            parts.append(f"{each.page.role} said:\n{each.text[:_LONGEST_PAGE]}")
        elif each.page.kind.family is Kind.TOOL_CALL:
            parts.append(f"called {each.page.tool}: {each.text[:_LONGEST_STEP]}")
    return "\n\n".join(parts)[-_LONGEST_SOURCE:]


def proposed_memories(reply: str, material: Material, model: str) -> list[MemoryRecord]:
    """The memories in a model's reply, each with the trust that the session proves."""
    own, others = session_words(material)
    typed = {
        squeeze(bare.encode("utf-8", "replace")): material.line[place].page
        for place in sorted(own)
        for clause in clauses(material.line[place].text)
        if is_stated(clause) and not MOMENT.search(clause)
        for bare in (_bare(clause),)
    }
    worked = _worked(material, others)
    made: dict[str, MemoryRecord] = {}
    for found in map(_LINE.fullmatch, reply.splitlines()):
        if found is None or len(made) >= _MOST:
            continue
        text = clip_prose(found["text"], _LONGEST)
        if is_dangerous(text) or is_suspect(text):
            continue
        is_fact = found["kind"].lower() == "fact"
        memory = (
            _fact(text, material, model, typed)
            if is_fact
            else _procedure(text, material, model, worked)
        )
        if memory is not None:
            made.setdefault(memory.id, memory)
    return list(made.values())


def _fact(
    text: str, material: Material, model: str, typed: Mapping[bytes, Page]
) -> MemoryRecord | None:
    page = typed.get(squeeze(_bare(text).encode("utf-8", "replace")))
    if page is None:
        return _waiting(_worded(MemoryKind.FACT, text, Trust.AGENT, material, model))
    memory = _worded(MemoryKind.FACT, _bare(text), Trust.PERSON, material, model, page=page)
    return replace(memory, confidence=_SURE)


def _procedure(
    text: str, material: Material, model: str, worked: Mapping[str, PageId]
) -> MemoryRecord | None:
    when, _, rest = text.partition("->")
    steps = tuple(step for each in rest.split(";") if (step := each.strip(" `\t")))
    if not when.strip() or not steps:
        return None
    proven = all(step in worked for step in steps)
    trust = Trust.OUTCOME if proven else Trust.AGENT
    words = f"{when.strip()}: " + ", then ".join(f"`{step}`" for step in steps)
    made = _worded(MemoryKind.PROCEDURE, words, trust, material, model)
    made = replace(made, detail=Procedure(when.strip(), steps), title=clip_prose(when.strip(), 90))
    return replace(made, confidence=_ONCE) if proven else _waiting(made)


def _worked(material: Material, others: OutsideWords) -> dict[str, PageId]:
    """The commands of work that succeeded, which no outside text had named before."""
    episodes = [
        (each, each.detail)
        for each in encode_session(material).memories
        if isinstance(each.detail, Episode) and each.ending is Ending.SUCCESS
    ]
    end = len(material.line)
    return {
        action.target: memory.source.pages[0]
        for memory, episode in episodes
        for action in episode.actions
        if not action.failed
        and memory.trust is Trust.OUTCOME
        and not is_dangerous(action.target)
        and not is_borrowed(action.target, end, others)
    }


def _worded(
    kind: MemoryKind,
    text: str,
    trust: Trust,
    material: Material,
    model: str,
    *,
    page: Page | None = None,
) -> MemoryRecord:
    line = material.line
    pages = (page.id,) if page is not None else tuple(_prompts(material))
    source = Provenance(model, material.session.id, material.session.agent, pages)
    created = page.time if page is not None else line[-1].page.time
    upper = text[:1].upper() + text[1:]
    return worded_memory(kind, upper, trust=trust, source=source, created=created)


def _prompts(material: Material) -> Iterator[PageId]:
    prompts = [each.page.id for each in material.line if each.page.kind is Kind.PROMPT]
    yield from prompts[:1]


def _waiting(memory: MemoryRecord) -> MemoryRecord:
    return replace(memory, standing=Standing.CANDIDATE, confidence=_UNSURE)


def _bare(clause: str) -> str:
    bare = re.sub(rf"\A{LEAD}", "", clause.strip(), count=1, flags=re.IGNORECASE)
    return bare.rstrip(" .!;") or clause
