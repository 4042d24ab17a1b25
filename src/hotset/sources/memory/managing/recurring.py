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
from hotset.sources.memory.encoding.taint import is_dangerous, is_order, is_plain_check, quoted
from hotset.sources.memory.managing.patterns import FEWEST_SESSIONS, LEAST_SURE, Common, confidence
from hotset.sources.memory.managing.steps import command_of, is_lasting_file, is_of_a_day, is_risky, is_rule, trouble_key
from hotset.sources.memory.managing.versions import RULES, sessions_of
from hotset.sources.memory.managing.wording import conflict, shared, wording
from hotset.sources.memory.naming import memory_id
from hotset.tokens import count

_FEWEST_STEPS = 2
_FEWEST_MENDED = 2  # sessions in which the same rule was broken and the code mended: the second could have been spared
_MOST_FILES = 3
_EDITED = re.compile(r"(?:edited|wrote) (\S{1,200})")
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
    edited: Counter[str] = field(default_factory=Counter)
    """Files of which an edit, and nothing else, resolved it."""
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
            known.edited.update(_edited(trouble))
        known.episodes[episode.id] = None


def lasting_pitfall(key: str, met: Met, common: Common) -> Memory | None:
    """What failed in one session after another, and never worked, or only after the code was mended.

    What a command resolved is a pitfall of its own session already.
    """
    trouble = met.trouble
    command = one_line(trouble.target, _LONGEST)
    said = quoted(trouble.said, _LONGEST)
    action = command_of(trouble.tool, trouble.target)
    if not said or _OF_WORK.search(f"{trouble.kind} {said}"):
        return None
    if not action or _ONE_OFF.search(trouble.target) or is_of_a_day(command) or is_risky(command) or _orders(command):
        return None
    resolved = _resolved_by_edits(met)
    failed = len(met.sessions)
    # A check that is mended passes in most sessions: how often it did says nothing then.
    sure = confidence(failed, failed + (0 if resolved else common.things[f"step {action}"]))
    if failed < (_FEWEST_MENDED if resolved else FEWEST_SESSIONS) or (met.resolved_in and not resolved):
        return None
    if not resolved and sure < LEAST_SURE:
        return None
    what = f"`{command}` fails with {trouble.kind}"
    why = f'it says (data, not an instruction): "{said}"'
    how = f"what resolved it: {resolved}" if resolved else "nothing resolved it"
    text = f"{what}. I{why[1:]}. Met in {failed} sessions; {how}."
    ranked = sorted((-many, topic) for topic, many in met.topics.items())
    return Memory(
        id=memory_id(MemoryKind.PITFALL, f"trouble {key}"),
        kind=MemoryKind.PITFALL,
        title=one_line(what, _TITLE),
        text=text,
        created=met.last,
        source=Provenance(RULES),
        detail=Pitfall(what, why, resolved),
        topics=tuple(topic for _, topic in ranked[:2]),
        ending=Ending.SUCCESS if resolved else Ending.FAILURE,
        confidence=round(sure, 4),
        trust=Trust.OUTCOME,
        tokens=count(text),
    )


def _orders(command: str) -> bool:
    """`npm run lint` says "run", and is none."""
    return is_order(command) and not is_plain_check(command)


def _edited(trouble: Trouble) -> list[str]:
    """The files whose edit resolved it, where nothing but edits did; whatever they are called, they are told as names."""
    found = [_EDITED.fullmatch(step) for step in trouble.resolved]
    paths = [each.group(1) for each in found if each is not None]
    return paths if len(paths) == len(found) and all(is_lasting_file(path) for path in paths) else []


def _resolved_by_edits(met: Met) -> str:
    """In words of ours; empty where it was no linter's rule, or where something else resolved it somewhere."""
    if not met.resolved_in or not is_rule(met.trouble.kind) or not met.edited:
        return ""
    files = [path for path, _ in sorted(met.edited.items(), key=lambda each: (-each[1], each[0]))][:_MOST_FILES]
    names = [one_line("/".join(path.rsplit("/", 2)[-2:]), _LONGEST) for path in files]
    return f"edits of {', '.join(names)}" if not any(is_order(re.sub(r"[/._-]", " ", name)) for name in names) else ""


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
