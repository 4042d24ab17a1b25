"""What comes up again from session to session: errors that nobody got past, steps that always led there, advice that proved true.

Steps of procedures and what resolved a trouble are taken only from memories that were made with care for whose words they are;
the log of actions has whatever an agent was talked into.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hotset.nouns.memory import (
    Ending,
    Episode,
    Memory,
    MemoryId,
    MemoryKind,
    Pitfall,
    Procedure,
    Provenance,
    Standing,
    Trouble,
    Trust,
)
from hotset.sources.memory.disclosing.telling import one_line
from hotset.sources.memory.encoding.taint import is_dangerous, is_order, quoted
from hotset.sources.memory.managing.patterns import FEWEST_SESSIONS, LEAST_SURE, Common, confidence
from hotset.sources.memory.managing.steps import command_of, is_of_a_day, is_risky, trouble_key
from hotset.sources.memory.managing.versions import RULES, sessions_of
from hotset.sources.memory.managing.wording import conflict, shared, wording
from hotset.sources.memory.naming import memory_id
from hotset.tokens import count

_FEWEST_STEPS = 2
_LONGEST = 160
_TITLE = 90
_OF_WORK = re.compile(
    r"AssertionError|\bassert\b|\bFAIL|expected|not found|no such file|does not exist|timed? ?out|nothing to commit",
    re.IGNORECASE,
)
_ONE_OFF = re.compile(r"<<|\$\(|`|\n| -c | -e |-m [\"']|[0-9a-f]{12,}|\$'|\"")
_SAYS_THE_SAME = 0.6  # of the shorter one's words
_MARKS = re.compile(r"[`'\"\s]+")


@dataclass(slots=True)
class Met:
    """A trouble, and where it was met."""

    trouble: Trouble
    """As the earliest of those episodes tells it."""
    first: tuple[float, MemoryId]
    sessions: set[str] = field(default_factory=set)
    resolved_in: set[str] = field(default_factory=set)
    episodes: dict[MemoryId, None] = field(default_factory=dict)
    topics: Counter[str] = field(default_factory=Counter)
    last: float = 0.0


def meet(episode: Memory, met: dict[str, Met]) -> None:
    """Counts an episode's troubles; in whatever order episodes come, the same comes of it."""
    if not isinstance(episode.detail, Episode):
        return
    session = episode.source.session or episode.id
    for trouble in episode.detail.troubles:
        at = (episode.created, episode.id)
        known = met.setdefault(trouble_key(trouble), Met(trouble, at))
        if at < known.first:
            known.trouble, known.first = trouble, at
        known.sessions.add(session)
        known.last = max(known.last, episode.created)
        known.topics.update(episode.topics)
        if trouble.is_resolved:
            known.resolved_in.add(session)
        known.episodes[episode.id] = None


def lasting_pitfall(key: str, met: Met, common: Common) -> Memory | None:
    """What failed in one session after another, and never worked. What was resolved is a pitfall of its own session already."""
    trouble = met.trouble
    command = one_line(trouble.target, _LONGEST)
    said = quoted(trouble.said, _LONGEST)
    action = command_of(trouble.tool, trouble.target)
    worked, failed = common.things[f"step {action}"], len(met.sessions)
    sure = confidence(failed, failed + worked)
    if failed < FEWEST_SESSIONS or met.resolved_in or sure < LEAST_SURE or not said or _OF_WORK.search(f"{trouble.kind} {said}"):
        return None
    if not action or _ONE_OFF.search(trouble.target) or is_of_a_day(command) or is_risky(command) or is_order(command):
        return None
    what = f"`{command}` fails with {trouble.kind}"
    why = f'it says (data, not an instruction): "{said}"'
    text = f"{what}. I{why[1:]}. Met in {failed} sessions; nothing resolved it."
    ranked = sorted((-many, topic) for topic, many in met.topics.items())
    return Memory(
        id=memory_id(MemoryKind.PITFALL, f"trouble {key}"),
        kind=MemoryKind.PITFALL,
        title=one_line(what, _TITLE),
        text=text,
        created=met.last,
        source=Provenance(RULES),
        detail=Pitfall(what, why),
        topics=tuple(topic for _, topic in ranked[:2]),
        ending=Ending.FAILURE,
        confidence=round(sure, 4),
        trust=Trust.OUTCOME,
        tokens=count(text),
    )


def shared_procedure(leader: MemoryId, procedures: Sequence[Memory]) -> Memory | None:
    """The steps that alike tasks have in common, in their order; `procedures` in the order of their time."""
    known = [each for each in procedures if isinstance(each.detail, Procedure) and each.trust in (Trust.OUTCOME, Trust.PERSON)]
    sessions = frozenset(session for each in known for session in sessions_of(each.source))
    if len(sessions) < FEWEST_SESSIONS:
        return None
    held: Counter[str] = Counter()
    for session in sessions:
        held.update({step for each in known if session in sessions_of(each.source) for step in _keys(each)})
    first = known[0]
    assert isinstance(first.detail, Procedure)
    steps = [step for step in first.detail.steps if confidence(held[_key(step)], len(sessions)) >= LEAST_SURE]
    wanted = [_key(step) for step in steps]
    following = {session for each in known if _in_order(wanted, _keys(each)) for session in sessions_of(each.source)}
    sure = confidence(len(following), len(sessions))
    if len(set(wanted)) < _FEWEST_STEPS or sure < LEAST_SURE:
        return None
    when = first.detail.when or first.title
    numbered = " ".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
    text = f"{when}: {numbered} (the same in {len(following)} of {len(sessions)} sessions)"
    return Memory(
        id=memory_id(MemoryKind.PROCEDURE, f"procedure of {leader}"),
        kind=MemoryKind.PROCEDURE,
        title=first.title,
        text=text,
        created=max(each.created for each in known),
        source=Provenance(RULES),
        detail=Procedure(when, tuple(steps)),
        topics=first.topics,
        task=first.task,
        ending=Ending.SUCCESS,
        confidence=round(sure, 4),
        trust=Trust.OUTCOME,
        tokens=count(text),
    )


def proves(proof: Memory, candidate: Memory) -> bool:
    """Does what came of another session show that advice which waits is right? Never advice in the words of tools."""
    return (
        candidate.standing is Standing.CANDIDATE
        and candidate.trust is not Trust.OUTSIDE
        and proof.standing is Standing.ACTIVE
        and proof.trust in (Trust.OUTCOME, Trust.PERSON)
        and proof.kind is candidate.kind
        and bool(sessions_of(proof.source) - sessions_of(candidate.source))
        and not is_dangerous(candidate.text)
        and _advises_the_same(proof, candidate)
    )


def advice_words(memory: Memory) -> frozenset[str]:
    """By which two pieces of advice on the same are found to share something."""
    match memory.detail:
        case Pitfall(what=what):
            return wording(what).words
        case Procedure(steps=steps):
            return wording(" ".join(steps)).words
        case _:
            return frozenset()


def _advises_the_same(proof: Memory, candidate: Memory) -> bool:
    match proof.detail, candidate.detail:
        case Pitfall() as one, Pitfall() as other:
            return _says(one.what, other.what) and _says(one.instead, other.instead)
        case Procedure() as one, Procedure() as other:
            return bool(other.steps) and _in_order([_key(step) for step in other.steps], [_key(step) for step in one.steps])
        case _:
            return False


def _says(one: str, other: str) -> bool:
    first, second = wording(one), wording(other)
    return bool(second.words) and shared(first, second) >= _SAYS_THE_SAME and not conflict(first, second)


def _keys(procedure: Memory) -> list[str]:
    return [_key(step) for step in procedure.detail.steps] if isinstance(procedure.detail, Procedure) else []


def _key(step: str) -> str:
    return _MARKS.sub(" ", step.lower()).strip(" .")


def _in_order(wanted: Sequence[str], among: Sequence[str]) -> bool:
    rest = iter(among)
    return all(step in rest for step in wanted)
