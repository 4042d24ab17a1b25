"""What a person or a model wants to be remembered, in their words, with the standing that its kind and trust allow."""

from __future__ import annotations

from hotset.nouns.memory import Checkpoint, Detail, Fact, Memory, MemoryKind, Pitfall, Procedure, Provenance, Standing, Trust
from hotset.sealing import seal
from hotset.sources.memory.encoding.subjects import subject_of
from hotset.sources.memory.encoding.taint import is_dangerous, is_suspect
from hotset.sources.memory.encoding.topics import topics_of
from hotset.sources.memory.naming import memory_id
from hotset.text.clip import clip_prose
from hotset.text.sentences import sentences
from hotset.tokens import count

ADVICE = frozenset({MemoryKind.PROCEDURE, MemoryKind.PITFALL})
"""What is told to a model as something to do, or not to."""
_VOUCHED = frozenset({Trust.PERSON, Trust.OUTCOME})
_CONFIDENCE = {Trust.PERSON: 0.9, Trust.OUTCOME: 0.8, Trust.AGENT: 0.5, Trust.OUTSIDE: 0.2}
_LONGEST_TITLE = 90


def standing_of(kind: MemoryKind, trust: Trust) -> Standing:
    """Advice stands only where an outcome or a person vouches for it; text of others waits, whatever it is."""
    if trust is Trust.OUTSIDE or (kind in ADVICE and trust not in _VOUCHED):
        return Standing.CANDIDATE
    return Standing.ACTIVE


def remembered(kind: MemoryKind, text: str, *, title: str = "", trust: Trust, source: Provenance, created: float) -> Memory:
    """What somebody put into words. The same words from the same place are the same memory."""
    told = seal(text.strip()).text
    named = seal(title.strip()).text or clip_prose(next(iter(sentences(told)), told), _LONGEST_TITLE)
    standing = standing_of(kind, trust)
    if trust is not Trust.PERSON and any(is_dangerous(each) or is_suspect(each) for each in (told, named)):
        standing = Standing.CANDIDATE
    key = "\0".join((source.by, source.session or "", source.agent, named, told))
    return Memory(
        id=memory_id(kind, key, created),
        kind=kind,
        title=clip_prose(named, _LONGEST_TITLE),
        text=told,
        created=created,
        source=source,
        detail=_detail(kind, told, named),
        topics=topics_of(f"{named} {told}"),
        confidence=_CONFIDENCE[trust],
        trust=trust,
        standing=standing,
        tokens=count(told),
        time=created,
    )


def _detail(kind: MemoryKind, text: str, title: str) -> Detail:
    match kind:
        case MemoryKind.FACT:
            return Fact(subject_of(text))
        case MemoryKind.PROCEDURE:
            return Procedure(when=title, steps=tuple(sentences(text)))
        case MemoryKind.PITFALL:
            return Pitfall(what=text)
        case MemoryKind.LEDGER | MemoryKind.HANDOFF:
            return Checkpoint(doing=text)
        case _:
            return None
