"""What a person does with memories: verdicts on new ones, confirmed ones as lines for AGENTS.md,
and proven procedures as skills.

A verdict is kept as a note: which memory, what was decided, and the versions before and after.
Those are labels, which later learning may read; the words stay in the versions.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from enum import StrEnum

import msgspec

from hotset import tokens
from hotset.errors import BadInput
from hotset.nouns.deposit import NoteWritten, Remembered
from hotset.nouns.memory import (
    Fact,
    MemoryId,
    MemoryKind,
    MemoryRecord,
    Procedure,
    Relation,
    Standing,
    Trust,
    Uses,
)
from hotset.nouns.note import Scope, Space
from hotset.sources.memory.kinds import (
    ADVICE_KINDS,
    KINDS,
    PERSON,
    is_routine,
    is_same,
    kinds_of,
)
from hotset.sources.memory.memory_writer import (
    KEEP_SECONDS,
    NOT_PUT_ASIDE,
    REVIEW,
    checked_text,
    find_memory,
    is_derived,
    known_memories,
    next_version,
    sessions_of,
    title_for,
)
from hotset.store.port import Store
from hotset.typed import decode

PROOFS = 3
"""Successful sessions after which a procedure is offered as a skill."""

_REVIEWS = Space("memory_reviews")
_LEARNING = Space("memory_learning", Scope.MACHINE, keeps=1)
_REVIEWED_KINDS = frozenset(
    kind
    for kind, traits in KINDS.items()
    if traits.lasts and not traits.is_ours and not traits.is_dated
)
_ACTIVE = frozenset({Standing.ACTIVE})
_STANDS_THERE = 0.8  # of a fact's telling words, in one line of the file
_CHECKS_TITLE, _FACTS_TITLE = "Checks", "Conventions"
_COMMAND = re.compile(r"`([^`\n]+)`")
_BLANK = re.compile(r"<(?:text|id|file|version)>")
"""A place for a value that differs each time: no line for a file that everybody reads."""
_FEWEST_STEPS = 2  # of a skill; one command is a line in AGENTS.md
_SKILL_NAME = 48  # characters; the specification allows 64
_NAME = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_OF_ONE_TIME = re.compile(r"\bv?\d+(?:\.\d+)+\b|\u2026")
"""What differs each time in the title of a procedure: versions."""
_NO_NEWLINE = "\\ No newline at end of file\n"


class ReviewVerdict(StrEnum):
    KEEP = "keep"
    CORRECT = "correct"
    DROP = "drop"
    NOT_A_PERSON = "not_a_person"
    """A tool, a file or a model said it, not a person."""


class Label(msgspec.Struct, frozen=True):
    """What a person decided about a memory."""

    verdict: ReviewVerdict
    before: int
    """The version that they saw."""
    after: int
    """The version that they made of it; the same if nothing had to change."""
    time: float = 0.0


class LearnAnswer(msgspec.Struct, frozen=True):
    """Whether earlier sessions of this project may be read in the background."""

    granted: bool
    done: bool = False
    """They were read."""


def labels(store: Store) -> Mapping[MemoryId, Label]:
    """Every verdict, by memory; one that cannot be read is left out."""
    found: dict[MemoryId, Label] = {}
    for id, note in store.notes(_REVIEWS).items():
        try:
            found[MemoryId(id)] = decode(note.value or b"", Label)
        except msgspec.MsgspecError:
            continue
    return found


def unreviewed(store: Store) -> list[MemoryRecord]:
    """What a person has not seen yet: made by rules, models or imports; the newest first. Without
    patterns, which later sessions change.

    Undoing a review brings its memories back here.
    """
    seen = labels(store)
    return [
        memory
        for memory in store.newest_memories(_REVIEWED_KINDS, NOT_PUT_ASIDE)
        if memory.source.by != PERSON
        and not _is_pattern(memory)
        and (memory.id not in seen or memory.run.startswith(f"undo-{REVIEW}"))
    ]


def _is_pattern(memory: MemoryRecord) -> bool:
    return memory.kind is MemoryKind.FACT and is_derived(memory)


def judge_memory(
    store: Store, id: str, verdict: ReviewVerdict, run: str, text: str = ""
) -> MemoryRecord:
    """A person's verdict, as a version of the memory and a label, in one commit."""
    latest = find_memory(store, id)
    changed, why = _changed(latest, verdict, text)
    now = time.time()
    version = latest if is_same(latest, changed) else next_version(changed, now, run, why)
    label = Label(verdict, latest.version, version.version, now)
    store.keep(
        Remembered(() if version is latest else (version,)),
        NoteWritten(_REVIEWS, latest.id, msgspec.json.encode(label), now),
    ).result(KEEP_SECONDS)
    return version


def _changed(latest: MemoryRecord, verdict: ReviewVerdict, text: str) -> tuple[MemoryRecord, str]:
    match verdict:
        case ReviewVerdict.KEEP:
            standing = Standing.ACTIVE if latest.standing is Standing.CANDIDATE else latest.standing
            sure = max(latest.confidence, 0.9)
            kept = replace(latest, trust=Trust.PERSON, confidence=sure, standing=standing)
            return kept, "a person confirmed it"
        case ReviewVerdict.CORRECT:
            words = checked_text(text)
            corrected = replace(
                latest,
                text=words,
                title=title_for(latest, words),
                tokens=tokens.count(words.encode("utf-8", "replace")),
                source=replace(latest.source, by=PERSON),
                trust=Trust.PERSON,
                standing=Standing.ACTIVE,
            )
            return corrected, "a person corrected it"
        case ReviewVerdict.DROP:
            return replace(latest, standing=Standing.FORGOTTEN), "a person dropped it"
        case ReviewVerdict.NOT_A_PERSON:
            waits = latest.kind in ADVICE_KINDS
            outside = replace(
                latest,
                trust=Trust.OUTSIDE,
                standing=Standing.CANDIDATE if waits else latest.standing,
            )
            return outside, "a person said that these are not a person's words"


def learn_answer(store: Store) -> LearnAnswer | None:
    """The answer to the question about earlier sessions; None if it was never asked."""
    note = store.notes(_LEARNING).get("")
    if note is None or note.value is None:
        return None
    try:
        return decode(note.value, LearnAnswer)
    except msgspec.MsgspecError:
        return None


def keep_learn_answer(store: Store, answer: LearnAnswer) -> None:
    written = NoteWritten(_LEARNING, "", msgspec.json.encode(answer), time.time())
    store.keep(written).result(KEEP_SECONDS)


# Confirmed facts and checks, as a diff


def confirmed_facts(store: Store) -> Iterator[MemoryRecord]:
    """Facts that a person stated or confirmed and that still hold; the oldest first."""
    facts = store.memories(kinds_of(Fact), _ACTIVE)
    return iter(
        sorted(
            (
                each
                for each in facts
                if each.trust is Trust.PERSON and each.valid_until is None and not _is_pattern(each)
            ),
            key=lambda each: (each.created, each.id),
        )
    )


def proven_checks(store: Store) -> Iterator[str]:
    """Commands that verified work in two sessions or more, or that a person confirmed; the most
    proven first."""
    counted: dict[str, int] = {}
    for memory in store.memories(kinds_of(Procedure), _ACTIVE):
        if not isinstance(memory.detail, Procedure) or memory.trust not in (
            Trust.OUTCOME,
            Trust.PERSON,
        ):
            continue
        sessions = len(sessions_of(memory.source))
        if is_routine(memory) and (sessions > 1 or memory.trust is Trust.PERSON):
            for step in memory.detail.steps:
                for command in _COMMAND.findall(step):
                    if _BLANK.search(command):
                        continue
                    counted[command] = max(counted.get(command, 0), sessions)
    yield from sorted(counted, key=lambda command: (-counted[command], command))


def suggest_lines(
    facts: Iterable[MemoryRecord], checks: Iterable[str], before: str
) -> tuple[list[str], list[str]]:
    """The facts and the checks that the text does not say already, each as one line."""
    from hotset.sources.memory.supersede import statement_words  # noqa: PLC0415 - word tables

    there = [statement_words(line).words for line in before.splitlines()]
    new: list[str] = []
    for fact in facts:
        words = statement_words(fact.text).words
        if words and not any(len(words & line) >= _STANDS_THERE * len(words) for line in there):
            new.append(" ".join(fact.text.split()))
            there.append(words)
    plain = " ".join(before.split())
    return new, [f"`{check}`" for check in checks if check not in plain]


def add_lines(before: str, facts: Sequence[str], checks: Sequence[str]) -> str:
    """The text with these lines as items of its sections `Conventions` and `Checks`."""
    after = _add_items(before, _FACTS_TITLE, facts)
    return _add_items(after, _CHECKS_TITLE, checks)


def _add_items(text: str, title: str, items: Sequence[str]) -> str:
    if not items:
        return text
    end = "\r\n" if "\r\n" in text else "\n"
    lines = _lines(text)
    added = [f"- {item}{end}" for item in items]
    heading = re.compile(rf"#{{1,6}} {re.escape(title)}\s*", re.IGNORECASE)
    at = next((n for n, line in enumerate(lines) if heading.fullmatch(line)), None)
    if at is None:
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += end
        gap = [end] if lines and lines[-1].strip() else []
        return "".join((*lines, *gap, f"## {title}{end}", end, *added))
    until = next((n for n in range(at + 1, len(lines)) if lines[n].startswith("#")), len(lines))
    while until > at + 1 and not lines[until - 1].strip():
        until -= 1
    if not lines[until - 1].endswith("\n"):
        lines[until - 1] += end
    gap = [end] if until == at + 1 else []
    return "".join((*lines[:until], *gap, *added, *lines[until:]))


def as_diff(name: str, before: str | None, after: str) -> str:
    """A unified diff that `git apply` takes; `before` is None if there is no such file."""
    lines = unified_diff(
        _lines(before or ""),
        _lines(after),
        f"a/{name}" if before is not None else "/dev/null",
        f"b/{name}",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines)


def _lines(text: str) -> list[str]:
    """As git counts them, with their ends."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


# Proven procedures, as skills


@dataclass(frozen=True, slots=True)
class SkillDraft:
    """A procedure in the form of an Agent Skill."""

    procedure: MemoryId
    name: str
    text: str
    """Of its SKILL.md."""
    proofs: int

    def named(self, name: str) -> SkillDraft:
        """The same under another name. Raises `BadInput` for a name that no skill may have."""
        if not _NAME.fullmatch(name):
            raise BadInput(
                f"a skill's name has small letters, digits and single hyphens, not {name[:60]!r}"
            )
        head = f"---\nname: {self.name}\n"
        return replace(self, name=name, text=f"---\nname: {name}\n{self.text.removeprefix(head)}")


def proven_procedures(store: Store) -> list[SkillDraft]:
    """Procedures that succeeded in three sessions or more, the most proven first."""
    found = [
        memory
        for memory in store.memories(kinds_of(Procedure), _ACTIVE)
        if isinstance(memory.detail, Procedure)
        and len(memory.detail.steps) >= _FEWEST_STEPS
        and memory.trust in (Trust.OUTCOME, Trust.PERSON)
    ]
    used = store.memory_uses([memory.id for memory in found])
    drafts = [
        draft_skill(memory, proofs)
        for memory in found
        if (proofs := _proofs(store, memory) + used.get(memory.id, Uses()).helped) >= PROOFS
    ]
    return sorted(drafts, key=lambda draft: (-draft.proofs, draft.name))


def _proofs(store: Store, memory: MemoryRecord) -> int:
    """The sessions that followed its steps; those of its sources if it was drawn from others."""
    sources = [memory]
    if is_derived(memory):
        links = store.memory_links(memory.id)
        origins = [
            link.to
            for link in links
            if link.of == memory.id and link.relation is Relation.DERIVED_FROM
        ]
        sources = [
            each for each in known_memories(store, origins) if each.kind is MemoryKind.PROCEDURE
        ]
    return len(frozenset(session for each in sources for session in sessions_of(each.source)))


def draft_skill(memory: MemoryRecord, proofs: int) -> SkillDraft:
    """A SKILL.md with the steps of a procedure."""
    assert isinstance(memory.detail, Procedure)
    title, when = (
        " ".join(_OF_ONE_TIME.sub(" ", text).split()).strip(" :,")
        for text in (memory.title, memory.detail.when or memory.title)
    )
    about = f"{title}. Use it {when[:1].lower()}{when[1:]}." if when != title else f"{title}."
    name = _skill_name(title, memory.id)
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(memory.detail.steps, 1))
    text = (
        f"---\nname: {name}\ndescription: {msgspec.json.encode(about).decode()}\n---\n\n"
        f"# {title}\n\n{steps}\n\nThese steps worked in {proofs} sessions ({memory.id}).\n"
    )
    return SkillDraft(memory.id, name, text, proofs)


def _skill_name(title: str, id: MemoryId) -> str:
    words = re.findall(r"[a-z0-9]+", title.lower())
    name = ""
    for word in words:
        longer = f"{name}-{word}" if name else word
        if len(longer) > _SKILL_NAME:
            break
        name = longer
    return name or id
