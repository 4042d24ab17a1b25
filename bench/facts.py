"""What is kept of what people say: statements that hold, and which of two holds.

Conversations go into a store and become memories as they do in the product; what is counted are the
facts that stand in the store afterwards, in a person's name.

Sets: `cases` are sentences, one a session. `recorded` are the sessions of four projects in which
every standing statement that a person typed is labelled; a label is a hash, the words stay in the
data. `plain` are 14 statements of the commonest kind. `changes` are pairs of statements in two
sessions. The rules were written for what is called "tune"; but all recorded sessions were seen when
they were labelled, and the mistakes in those (and in the changes) that are called "held out" were
read once and led to more rules: their figures are better than those of other projects will be.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from bench.memory_sets import DAY, Kept, recorded, replayed
from bench.results import tell
from hotset.config import load
from hotset.nouns.memory import MemoryKind, MemoryRecord, Relation, Standing, Trust
from hotset.nouns.page import Kind, PageId
from hotset.sources.memory.encode.speakers import is_person
from hotset.sources.memory.memory_writer import remember_session
from hotset.sources.memory.project_memories import ProjectMemories
from hotset.store.port import Store, Where
from hotset.store.sqlite import SqliteStore
from hotset.testing.store_talk import StoreTalk

HERE = Path(__file__).parent
TUNE = ("cc-packmind", "codex-agentv")
HELD_OUT = ("cc-cipherbox", "pi-mono")
START = 1_700_000_000.0
_WORD = re.compile(r"[a-z0-9]+")
_CUT = re.compile(r"(?<=[.!?;])\s+|\n+")
_OF_ITS_WORDS = 0.6  # of a fact's words, from which on it comes from a sentence
PLAIN = (
    "We always store dates in UTC.",
    "Install with uv, never pip.",
    "Releases are cut on Tuesdays.",
    "Our API speaks JSON only.",
    "The design files are in Figma under Platform.",
    "Marta approves every change to the schema.",
    "Don't commit to main without a review.",
    "We're on Node 22.",
    "Feature flags live in config/flags.yaml.",
    "I'd rather have small pull requests.",
    "The on-call rotation changes every Monday.",
    "Money is kept in cents, not in floats.",
    "Error messages go to stderr.",
    "Nightly builds run at 02:00 UTC.",
)

PLAIN_LATER = (
    "All timestamps are in milliseconds.",
    "We never deploy on Fridays.",
    "Customer data stays in the EU.",
    "The wiki is at https://wiki.example.com.",
    "Use kebab-case for file names.",
    "Hannah signs off on every contract.",
    "Our sprint starts on Wednesday.",
    "We test on Ubuntu 24.04.",
    "Passwords must be at least 12 characters long.",
    "Prefer composition over inheritance.",
    "The minimum coverage is 85 %.",
    "Screenshots belong in assets/img.",
    "No new dependencies without an issue.",
    "Our customers are mostly hospitals.",
)
"""Written after the grammar."""


@dataclass(frozen=True, slots=True)
class Figures:
    """How many were to be kept, were kept, and were kept without cause."""

    wanted: int
    found: int
    wrong: int

    def row(self) -> dict[str, float]:
        kept = self.found + self.wrong
        return {
            "to keep": float(self.wanted),
            "kept %": 100 * self.found / max(1, self.wanted),
            "wrong %": 100 * self.wrong / max(1, kept),
        }

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.wanted + other.wanted, self.found + other.found, self.wrong + other.wrong
        )


def sentence_hash(sentence: str) -> str:
    """The name of a sentence in the labels: of its letters and digits alone."""
    return sha256("".join(_WORD.findall(sentence.lower())).encode()).hexdigest()[:16]


def cut(text: str) -> list[str]:
    """The sentences of a prompt; the labels depend on where it is cut."""
    return [part for each in _CUT.split(text) if (part := each.strip())]


def persons_facts(store: Store) -> list[MemoryRecord]:
    """The facts that stand in a person's name."""
    return [
        each
        for each in store.memories(frozenset({MemoryKind.FACT}), frozenset({Standing.ACTIVE}))
        if each.trust is Trust.PERSON
    ]


def cases(split: str) -> Figures:
    rows = json.loads((HERE / "facts_cases.json").read_text())
    found = wrong = wanted = 0
    for row in rows:
        if row["split"] != split:
            continue
        kept = bool(facts_of(row["text"]))
        wanted += row["keep"]
        found += row["keep"] and kept
        wrong += kept and not row["keep"]
    return Figures(wanted, found, wrong)


def plain(statements: Sequence[str]) -> Figures:
    return Figures(len(statements), sum(bool(facts_of(each)) for each in statements), 0)


def facts_of(*prompts: str) -> list[MemoryRecord]:
    """The facts of one session with these prompts."""
    with tempfile.TemporaryDirectory() as folder, SqliteStore.open(Path(folder)) as store:
        talk = StoreTalk(store, time=START)
        for prompt in prompts:
            talk.turn(prompt, "All right.")
        (session,) = store.sessions()
        remember_session(store, session.id, START + DAY, lambda _: [])
        return persons_facts(store)


@dataclass(frozen=True, slots=True)
class Typed:
    """A sentence that was typed."""

    words: frozenset[str]
    hash: str
    proven: bool
    """Its author is proven by the form of the message."""


def recorded_facts(name: str, *, show: bool = False) -> dict[str, Figures]:
    """Over the sessions of a project: all labelled statements, and those whose author is proven."""
    labels = frozenset(json.loads((HERE / "facts_labels.json").read_text())[name])
    with tempfile.TemporaryDirectory() as folder, SqliteStore.open(Path(folder)) as store:
        sessions = recorded(name)
        for number, session in enumerate(sessions):
            replayed(store, session, START + number * DAY)
        typed = dict(typed_sentences(store))
        kept = Kept(store)
        kept.remember()
        found: set[str] = set()
        wrong: set[str] = set()
        for fact in store.memories(frozenset({MemoryKind.FACT})):
            if fact.trust is not Trust.PERSON or fact.standing is Standing.CANDIDATE:
                continue
            of = [each for page in fact.source.pages for each in typed.get(page, ())]
            sentence = source_sentence(fact, of)
            (found if sentence.hash in labels else wrong).add(sentence.hash)
            if show:
                print("ok   " if sentence.hash in labels else "WRONG", name, fact.text)
    every = {each.hash: each for of in typed.values() for each in of}
    missing = labels - frozenset(every)
    assert not missing, f"{name}: labels without a sentence: {sorted(missing)}"
    proven = frozenset(
        each.hash for of in typed.values() for each in of if each.proven and each.hash in labels
    )
    return {
        "all": Figures(len(labels), len(found), len(wrong)),
        "proven": Figures(len(proven), len(found & proven), len(wrong)),
    }


def typed_sentences(store: Store) -> Iterator[tuple[PageId, list[Typed]]]:
    for page in store.pages(Where(kinds=frozenset({Kind.PROMPT}))):
        text = store.content(page.digest).decode()
        proven = is_person(text)
        yield (
            page.id,
            [
                Typed(frozenset(_WORD.findall(each.lower())), sentence_hash(each), proven)
                for each in cut(text)
            ],
        )


def source_sentence(fact: MemoryRecord, of: Sequence[Typed]) -> Typed:
    """The sentence that a fact comes from."""
    words = frozenset(_WORD.findall(fact.text.lower()))
    best = max(of, key=lambda each: len(words & each.words) / max(1, len(words | each.words)))
    assert len(words & best.words) >= _OF_ITS_WORDS * len(words), fact.text
    return best


def changes(split: str) -> dict[str, float]:
    """Pairs of two sessions: is the earlier one replaced where it should be, and only there?"""
    rows = json.loads((HERE / "facts_changes.json").read_text())
    right = {True: 0, False: 0}
    many = {True: 0, False: 0}
    for row in rows:
        if row["split"] == split:
            many[row["replaces"]] += 1
            right[row["replaces"]] += is_replaced(row["old"], row["new"]) is row["replaces"]
    return {
        "replaced %": 100 * right[True] / many[True],
        "kept apart %": 100 * right[False] / many[False],
        "pairs": float(many[True] + many[False]),
    }


def is_replaced(old: str, new: str) -> bool | None:
    """True if the new statement stands and has replaced the old one, False if both stand; None if
    one of them was not kept."""
    with tempfile.TemporaryDirectory() as folder, SqliteStore.open(Path(folder)) as store:
        config = load(data=folder, project=folder, environ={"HOME": folder})
        now = [START]
        memories = ProjectMemories(config, lambda: store, lambda: None, lambda: now[0])
        for at, text in enumerate((old, new)):
            StoreTalk(store, key=f"s{at}", time=START + at * DAY).turn(text, "All right.")
            now[0] = START + (at + 1) * DAY
            memories.encode()
        facts = store.memories(frozenset({MemoryKind.FACT}))
        replaced = any(link.relation is Relation.SUPERSEDES for link in store.memory_links())
        standing = [each for each in facts if each.standing is Standing.ACTIVE]
        if replaced and len(standing) == 1:
            return True
        return False if len(standing) == 2 else None


def main() -> None:
    sets: dict[str, dict[str, dict[str, float]]] = {}
    for split in ("tune", "held out"):
        sets[f"cases, {split}"] = {"hotset": cases(split).row()}
    sets["plain, tune"] = {"hotset": plain(PLAIN).row()}
    sets["plain, held out"] = {"hotset": plain(PLAIN_LATER).row()}
    every: dict[str, Figures] = {}
    for split, names in (("tune", TUNE), ("held out", HELD_OUT)):
        total: dict[str, Figures] = {}
        for name in names:
            for whose, figures in recorded_facts(name).items():
                total[whose] = total.get(whose, Figures(0, 0, 0)) + figures
                title = f"recorded, {split}: {name}" + (", author proven" if whose != "all" else "")
                sets[title] = {"hotset": figures.row()}
        for whose, figures in total.items():
            every[whose] = every.get(whose, Figures(0, 0, 0)) + figures
            title = f"recorded, {split}" + (", author proven" if whose != "all" else "")
            sets[title] = {"hotset": figures.row()}
    for whose, figures in every.items():
        title = "recorded, all" + (", author proven" if whose != "all" else "")
        sets[title] = {"hotset": figures.row()}
    for split in ("tune", "held out"):
        sets[f"changes, {split}"] = {"hotset": changes(split)}
    tell("facts", sets)


if __name__ == "__main__":
    main()
