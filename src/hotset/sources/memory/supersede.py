"""Settle a new fact among existing ones: it confirms, replaces, contradicts or is merged with them.
Both stay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from hotset.files.lru import memo
from hotset.nouns.memory import (
    Episode,
    Fact,
    MemoryId,
    MemoryLink,
    MemoryRecord,
    Relation,
    Standing,
    Trust,
)
from hotset.nouns.page import SessionId
from hotset.sources.memory.encode.encoder import ledger_id
from hotset.sources.memory.kinds import KINDS, RULES, is_same
from hotset.sources.memory.memory_writer import (
    Similar,
    commit,
    is_from_session,
    join_memories,
    known_memory,
    next_version,
    rank,
)
from hotset.store.port import Store
from hotset.text.stems import root
from hotset.text.stops import STATEMENT
from hotset.text.terms import topic_words
from hotset.window.work.changes import OPPOSITES, replaces

_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+(?:[.,]\d+)*|[^\W\d_a-zA-Z]+")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?=[^\w]|[a-zA-Z%]{1,4}\b|$)")
_NAME = re.compile(
    r"`[^`\n]{1,80}`|[\w./-]*(?:[a-z][A-Z]|\w[_/.]\w)[\w./-]*|(?<=[a-z,;:] "
    r")[A-Z][\w+#-]*|[A-Z]{2,}\w*"
)
_MOST_READ = 4000  # characters of a text; what decides is near the beginning

_NEGATIONS = re.compile(
    r"\b(?:not|never|no|none|neither|nor|without|cannot|avoid|stop|n't|don'?t|doesn'?t|isn'?t|"
    r"won'?t|must ?n'?t)\b"
)
_NUMERALS = (
    "zero _ two three four five six seven eight "
    "nine ten eleven twelve"
)  # "one" is mostly no number but a pronoun
_SPELLED = {word: str(number) for number, word in enumerate(_NUMERALS.split())}
_BEFORE = r"(?:the|our|my)\ (?:\w+\ )?(?:old|previous|earlier|former|original)"
_AMENDS = re.compile(
    rf"""\b(?:amend(?:s|ed|ing|ment)?|supersed(?:e|es|ed|ing)|from\ now\ on|going\ forward|revis(?:es|ed|ing|ion)
    |(?:replac|overrid)(?:es|ing|ed)\ {_BEFORE}|(?:instead\ of|rather\ than)\ {_BEFORE}|chang(?:ed|ing)\ (?:my|our)\ minds?
    |correction)\b""",  # noqa: E501
    re.VERBOSE | re.IGNORECASE,
)
_SAYS = re.compile(
    r"""\b(?:is|are|was|were|has|have|had|needs?|takes?|runs?|uses?|lives?|stands?|lies?|listens?|costs?|starts?|ends?|goes|comes
    |belongs?|wants?|gets?|keeps?|holds?|must|should|shall|will|may|can)\b|\s[=:]\s|:\s""",
    re.VERBOSE | re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"\w*\d[\w.]*\w|\d|\b[b-hj-z]\b|\b[a-z](?=\s*$)"
)  # `3`, `1.2`, `eu2`, `b`; most "a" and "I" are words
_HINTS = re.compile(
    r"""\b(?:no\ longer|not\ any\ ?more|as\ of\ now|used\ to|(?:was|were)\ wrong
    |(?:switch|mov|migrat|chang)(?:e|es|ed|ing)?\ (?:\w+\ ){0,3}?(?:from|to))\b""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class StatementWords:
    """The features of a text that decide whether two say the same."""

    words: frozenset[str]
    """Telling words, stemmed; identifiers are split."""
    order: tuple[str, ...]
    """The same words, each once, in order."""
    numbers: frozenset[str]
    names: frozenset[str]
    """Of things: identifiers, paths, capitalized words. Another name is another thing."""
    denies: bool
    amends: bool
    """It says that it changes something."""
    hints: bool
    """It may change something about its subject: `no longer`, `moved to`."""


@memo("statement words", 4096, each=2000)
def statement_words(text: str) -> StatementWords:
    read = text[:_MOST_READ]
    lower = read.lower()
    order = tuple(dict.fromkeys(root(word) for word in telling_words(read)))
    return StatementWords(
        words=frozenset(order),
        order=order,
        numbers=frozenset(_NUMBER.findall(read))
        | {_SPELLED[word] for word in re.findall(r"[a-z]+", lower) if word in _SPELLED},
        names=frozenset(name.strip("`.,").lower() for name in _NAME.findall(read)),
        denies=_NEGATIONS.search(lower.replace("\u2019", "'")) is not None,
        amends=_AMENDS.search(read) is not None,
        hints=_HINTS.search(read) is not None,
    )


def telling_words(text: str) -> list[str]:
    """In order and lower case, without common words."""
    return [
        word
        for piece in _PIECE.findall(text)
        if (word := piece.lower()) not in STATEMENT and (len(word) > 1 or word.isdigit())
    ]


def word_overlap(one: StatementWords, other: StatementWords) -> float:
    """The share of the shorter one's words found in the other, from 0 to 1."""
    least = min(len(one.words), len(other.words))
    return len(one.words & other.words) / least if least else 0.0


def word_similarity(one: StatementWords, other: StatementWords) -> float:
    """The share of all words that both have, from 0 to 1."""
    every = len(one.words | other.words)
    return len(one.words & other.words) / every if every else 0.0


def speak_of_two_things(one: str, other: str) -> bool:
    """True if they say different things of two numbered things: `Host 1 is called heron`, `Host 2
    is called crane`.

    If only the number differs, that is what changed: `version 2 is current`.
    """
    (mine, words), (theirs, other_words) = _split_statement(one), _split_statement(other)
    return words != other_words and bool(mine - theirs) and bool(theirs - mine)


def _split_statement(text: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The numbers and letters that identify the subject of a sentence, and the words of its
    predicate."""
    found = _SAYS.search(text, 0, _MOST_READ)
    if found is None:
        return frozenset(), ()
    which = _NUMBERED.findall(text[: found.start()].lower())
    return frozenset(which), tuple(re.findall(r"\w+", text[found.start() : _MOST_READ].lower()))


def in_order(one: StatementWords, other: StatementWords) -> bool:
    """True if shared words have the same order. `A replaced B` is not `B replaced A`."""
    return [word for word in one.order if word in other.words] == [
        word for word in other.order if word in one.words
    ]


def conflict(one: StatementWords, other: StatementWords) -> bool:
    """True if numbers, names or negation differ, or opposite words are used."""
    mine, theirs = one.words - other.words, other.words - one.words
    return (
        one.numbers != other.numbers
        or one.denies != other.denies
        or (not one.names <= other.names and not other.names <= one.names)
        or any(
            (first in mine and second in theirs) or (second in mine and first in theirs)
            for first, second in OPPOSITES
        )
    )


DOUBT = 0.6
"""The share of confidence left to a fact that a more trusted one contradicts."""

_SAME = 0.85  # of all words shared, one text within the other: the rest is filler
_CLOSE = 0.7  # of all words shared: only the value differs
# of the shorter one's words in an amendment without a subject; decisions on other things share up
# to 0.32
_AMENDED = 0.4
_NEAREST_AMENDED = 0.3  # the same, if nothing else is nearer to the amendment
_FEWEST_SHARED = 5  # words, in such an amendment
_SUBJECT_AMENDED = 0.25  # the same, if both name one subject
# of all words beside the subject's; a decision repeated in other words shares a third
_SUBJECT_CLOSE = 0.5
_VALUE = 4  # words of a value at most
_ASIDE = frozenset({Standing.FORGOTTEN, Standing.SUPERSEDED, Standing.MERGED})


class FactVerdict(Enum):
    """The relation of a later fact to an earlier one."""

    UNRELATED = auto()
    SAME = auto()
    CHANGED = auto()
    """Both cannot hold at once."""


@dataclass(frozen=True, slots=True)
class Settlement:
    memories: tuple[MemoryRecord, ...] = ()
    """All versions to write: the new memories, and changed older ones."""
    links: tuple[MemoryLink, ...] = ()
    absorbed: Mapping[MemoryId, MemoryId] = field(default_factory=dict)
    """New memories that repeat an existing one, and that one: links go there, and they are not
    written."""


def settle(
    new: Sequence[MemoryRecord], store: Store, similar: Similar, now: float, run: str = ""
) -> Settlement:
    """What to write so that the new memories take their place among the others.

    Only facts confirm, replace and contradict each other; other kinds are passed through.
    Independent of the order of the new ones; idempotent once written.
    """
    table = _Table(store, now, run)
    for memory in sorted(new, key=lambda each: (each.created, each.id)):
        if KINDS[memory.kind].settles and memory.standing is Standing.ACTIVE:
            table.place(memory, [each.id for each in similar(memory) if each.kind is memory.kind])
        else:
            table.put(memory)
    return table.settlement()


def settle_among(
    fact: MemoryId, near: Sequence[MemoryId], store: Store, now: float, run: str = ""
) -> Settlement:
    """The effects of a stored fact on those near to it, the nearest first. Duplicates are not
    merged."""
    table = _Table(store, now, run)
    table.weigh(fact, near)
    return table.settlement()


def judge(earlier: MemoryRecord, later: MemoryRecord, *, nearest: bool = False) -> FactVerdict:
    """The relation of a later fact to an earlier one, by their words; `nearest`: no third one is
    nearer."""
    one, other = statement_words(earlier.text), statement_words(later.text)
    if in_order(one, other) and not conflict(one, other):
        within = one.words <= other.words or other.words <= one.words
        if one.words == other.words or (
            within and word_similarity(one, other) >= _SAME and not other.amends
        ):
            return FactVerdict.SAME
    if speak_of_two_things(earlier.text, later.text) and not other.amends:
        return FactVerdict.UNRELATED
    if replaces(earlier.text, later.text):
        return FactVerdict.CHANGED
    subject = subject_of(earlier)
    if subject and subject == subject_of(later):
        return FactVerdict.CHANGED if _another_value(one, other, subject) else FactVerdict.UNRELATED
    least = _NEAREST_AMENDED if nearest else _AMENDED
    if (
        other.amends
        and word_overlap(one, other) >= least
        and len(one.words & other.words) >= _FEWEST_SHARED
    ):
        return FactVerdict.CHANGED
    return (
        FactVerdict.CHANGED
        if word_similarity(one, other) >= _CLOSE and conflict(one, other)
        else FactVerdict.UNRELATED
    )


def subject_of(memory: MemoryRecord) -> frozenset[str]:
    """The words of its subject; empty if it names none."""
    named = memory.detail.subject if isinstance(memory.detail, Fact) else ""
    return frozenset(root(word) for word in telling_words(named))


class _Table:
    """The new facts and those that they affect, while they are settled one by one."""

    def __init__(self, store: Store, now: float, run: str) -> None:
        self._store, self._now, self._run = store, now, run
        self._latest: dict[MemoryId, MemoryRecord] = {}
        self._written: dict[MemoryId, MemoryRecord] = {}
        self._links: dict[tuple[MemoryId, MemoryId, Relation], MemoryLink] = {}
        self._absorbed: dict[MemoryId, MemoryId] = {}
        self._new: list[MemoryId] = []

    def put(self, memory: MemoryRecord) -> None:
        self._latest[memory.id] = self._written[memory.id] = memory

    def place(self, new: MemoryRecord, near: Sequence[MemoryId]) -> None:
        """Absorb the new one into an existing duplicate; otherwise weigh it."""
        self.put(new)
        others = tuple(dict.fromkeys((*near, *self._new)))
        if new.version == 1:
            for old in self._known_memories(new.id, others):
                if (
                    self._takes(old, new)
                    and judge(*_order_by_time(old, new)) is FactVerdict.SAME
                    and _speaks_for(old, new)
                ):
                    self._absorb(new, old)
                    return
        self.weigh(new.id, others)
        self._new.append(new.id)

    def weigh(self, id: MemoryId, near: Sequence[MemoryId]) -> None:
        """Compare it with active ones, the nearest first: an amendment without a subject replaces
        only one."""
        memory = self._read(id)
        if memory is None or memory.standing is not Standing.ACTIVE:
            return
        links = [
            link
            for link in self._store.memory_links(id)
            if link.relation is not Relation.DERIVED_FROM
        ]
        # pairs that were decided before stay as they are
        decided = frozenset(link.to if link.of == id else link.of for link in links)
        amended = any(link.of == id and link.relation is Relation.SUPERSEDES for link in links)
        for old in self._known_memories(id, near):
            now = self._latest[id]
            if old.id in decided or {old.standing, now.standing} != {Standing.ACTIVE}:
                continue
            earlier, later = _order_by_time(old, now)
            loose = not subject_of(old) or subject_of(old) != subject_of(now)
            if judge(earlier, later, nearest=old.id == near[0]) is FactVerdict.CHANGED and not (
                loose and amended
            ):
                amended = amended or loose
                self._decide(earlier, later)

    def settlement(self) -> Settlement:
        return Settlement(
            tuple(self._written.values()), tuple(self._links.values()), dict(self._absorbed)
        )

    def _known_memories(self, id: MemoryId, near: Sequence[MemoryId]) -> Iterator[MemoryRecord]:
        return (old for other in near if other != id and (old := self._read(other)) is not None)

    def _takes(self, old: MemoryRecord, new: MemoryRecord) -> bool:
        """True if it may absorb a duplicate. One that was put aside absorbs repetitions of its own
        session only."""
        return old.standing is Standing.ACTIVE or (
            old.standing in _ASIDE and is_from_session(old.source, new.source.session)
        )

    def _read(self, id: MemoryId) -> MemoryRecord | None:
        """Its latest version: a search may have found an older one."""
        if id not in self._latest and (memory := known_memory(self._store, id)) is not None:
            self._latest[id] = memory
        return self._latest.get(id)

    def _absorb(self, new: MemoryRecord, old: MemoryRecord) -> None:
        both = join_memories(old, new)
        if old.standing is Standing.ACTIVE and not is_same(both, old):
            self._change(
                old,
                "it was said again",
                source=both.source,
                confidence=both.confidence,
                trust=both.trust,
            )
        del self._written[new.id]
        self._absorbed[new.id] = old.id

    def _decide(self, earlier: MemoryRecord, later: MemoryRecord) -> None:
        """The later one holds, unless it is less trusted or not later."""
        if (
            rank(later.trust) >= rank(earlier.trust)
            and later.created > earlier.created
            and not (earlier.pinned and later.trust is not Trust.PERSON)  # a person insists on it
        ):
            self._change(
                earlier,
                f"replaced by {later.id}",
                standing=Standing.SUPERSEDED,
                valid_until=later.created,
            )
            self._link(later, earlier, Relation.SUPERSEDES)
            return
        self._link(later, earlier, Relation.CONTRADICTS)
        if rank(later.trust) != rank(earlier.trust):
            less, more = sorted((earlier, later), key=lambda each: rank(each.trust))
            self._change(
                less, f"{more.id} says otherwise", confidence=round(less.confidence * DOUBT, 4)
            )

    def _change(self, memory: MemoryRecord, why: str, **changes: object) -> None:
        """An unwritten version takes the change itself."""
        latest = self._latest[memory.id]
        is_new = memory.id in self._written
        changed = next_version(
            latest, self._now, (is_new and latest.run) or self._run, why, **changes
        )
        self.put(replace(changed, version=latest.version) if is_new else changed)

    def _link(self, of: MemoryRecord, to: MemoryRecord, relation: Relation) -> None:
        self._links[of.id, to.id, relation] = MemoryLink(
            of.id, to.id, relation, self._now, self._run
        )


def _order_by_time(one: MemoryRecord, other: MemoryRecord) -> tuple[MemoryRecord, MemoryRecord]:
    """The earlier one and the later one."""
    return (one, other) if (one.created, one.id) <= (other.created, other.id) else (other, one)


def _speaks_for(old: MemoryRecord, new: MemoryRecord) -> bool:
    """True if `old` may absorb `new`: it is at least as trusted, or has the same words."""
    return (
        rank(old.trust) >= rank(new.trust)
        or statement_words(old.text).words == statement_words(new.text).words
    )


def _another_value(one: StatementWords, other: StatementWords, subject: frozenset[str]) -> bool:
    """True if two facts on one subject give it different values, rather than say different things
    of it."""
    mine, theirs = one.words - subject, other.words - subject
    # one only says more, or a number, a name or a negation makes the difference
    if not mine - theirs or not theirs - mine:
        return conflict(one, other)
    if len(mine) <= _VALUE and len(theirs) <= _VALUE:
        return True
    if other.amends or other.hints:
        return word_overlap(one, other) >= _SUBJECT_AMENDED
    return len(mine & theirs) / len(mine | theirs) >= _SUBJECT_CLOSE


def open_conflicts(store: Store) -> Iterator[tuple[MemoryRecord, MemoryRecord]]:
    """Pairs of active memories that contradict each other, the later statement first."""
    for link in store.memory_links():
        if link.relation is not Relation.CONTRADICTS:
            continue
        pair = (known_memory(store, link.of), known_memory(store, link.to))
        match pair:
            case MemoryRecord() as one, MemoryRecord() as other if (
                one.standing is other.standing is Standing.ACTIVE
            ):
                earlier, later = _order_by_time(one, other)
                yield later, earlier


def settle_conflict(
    store: Store, keep: MemoryId, drop: MemoryId, now: float, run: str = ""
) -> MemoryRecord:
    """Write a person's decision: `keep` holds and replaces `drop`. Returns the new `keep`."""
    kept, dropped = store.memory(keep), store.memory(drop)
    holds = next_version(
        kept,
        now,
        run,
        f"a person decided that it holds, not {drop}",
        standing=Standing.ACTIVE,
        trust=Trust.PERSON,
        confidence=max(kept.confidence, 0.9),
        valid_until=None,
    )
    aside = next_version(
        dropped,
        now,
        run,
        f"replaced by {keep}: a person decided",
        standing=Standing.SUPERSEDED,
        valid_until=now,
    )
    link = MemoryLink(keep, drop, Relation.SUPERSEDES, now, run)
    commit(store, (holds, aside), (*_taken_back(store, keep, drop, now), link))
    return holds


def accept_both(store: Store, one: MemoryId, other: MemoryId, now: float) -> None:
    """Write a person's decision that both hold: they are related and not compared again."""
    link = MemoryLink(one, other, Relation.RELATED_TO, now)
    commit(store, (), (*_taken_back(store, one, other, now), link))


def _taken_back(store: Store, one: MemoryId, other: MemoryId, now: float) -> Iterator[MemoryLink]:
    """The contradictions between two memories, as links that no longer hold."""
    return (
        replace(link, time=now, gone=True)
        for link in store.memory_links(one)
        if link.relation is Relation.CONTRADICTS and other in (link.of, link.to)
    )


_SHARED = 0.5  # of a ledger's files that are changed again
_SAME_GOAL = 0.6  # of the telling words of both goals
_FEWEST_WORDS = 3


def overtaken_ledgers(
    ledgers: Iterable[MemoryRecord],
    session: SessionId,
    made: Sequence[MemoryRecord],
    now: float,
    run: str = "",
) -> tuple[tuple[MemoryRecord, ...], tuple[MemoryLink, ...]]:
    """Which active ledgers a session supersedes, and by what.

    Idempotent: a superseded ledger is not active any more.
    """
    episodes = [each for each in made if isinstance(each.detail, Episode)]
    unfinished = any(each.id == ledger_id(session) for each in made)
    versions: list[MemoryRecord] = []
    links: list[MemoryLink] = []
    for ledger in ledgers:
        if (
            not KINDS[ledger.kind].is_reworded
            or ledger.source.by != RULES
            or ledger.standing is not Standing.ACTIVE
        ):
            continue
        own = ledger.id == ledger_id(session)
        by = next((each for each in reversed(episodes) if own or _goes_on(each, ledger)), None)
        if by is not None and not (own and unfinished):
            why = "its work came to an end" if own else f"{by.id} goes on with it"
            versions.append(
                next_version(
                    ledger, now, run, why, standing=Standing.SUPERSEDED, valid_until=by.created
                )
            )
            links.append(MemoryLink(by.id, ledger.id, Relation.SUPERSEDES, now, run))
    return tuple(versions), tuple(links)


def _goes_on(episode: MemoryRecord, ledger: MemoryRecord) -> bool:
    """True if a later episode continues the ledger's work."""
    if episode.created < ledger.created or episode.source.session == ledger.source.session:
        return False
    assert isinstance(episode.detail, Episode)
    files = set(ledger.source.places)
    again = sum(
        any(is_same_file(path, other) for other in episode.detail.artifacts) for path in files
    )
    if files and again >= _SHARED * len(files):
        return True
    one, other = (
        set(topic_words(ledger.title.removeprefix("Unfinished: "))),
        set(topic_words(episode.detail.goal)),
    )
    both = len(one & other)
    return both >= _FEWEST_WORDS and both >= _SAME_GOAL * min(len(one), len(other))


def is_same_file(path: str, other: str) -> bool:
    """True if one names the file from the root and the other from a folder on the way."""
    return path == other or path.endswith(f"/{other}") or other.endswith(f"/{path}")


_LEAST_ALIKE = 0.6  # of all words shared: by vectors alone, two texts about one thing look the same


@dataclass(frozen=True, slots=True)
class Merger:
    kept: MemoryId
    lost: tuple[MemoryId, ...]


def say_the_same(one: str, other: str) -> bool:
    """True if no number, name, value or negation differs, as far as words can tell."""
    first, second = statement_words(one), statement_words(other)
    mine, theirs = first.words - second.words, second.words - first.words
    another_value = len(mine) == 1 and len(theirs) == 1
    close = word_similarity(first, second) >= _LEAST_ALIKE and in_order(first, second)
    return close and not another_value and not conflict(first, second)


def mergers(memories: Iterable[MemoryRecord], same: Mapping[str, Sequence[str]]) -> list[Merger]:
    """Groups of duplicates, each with the best one to keep; `same` maps a text to those that say
    the same.

    A member must say the same as the kept one: there are no chains. Each memory is in at most one
    group.
    """
    by_text: dict[str, list[MemoryRecord]] = {}
    for memory in sorted(memories, key=_worth, reverse=True):
        by_text.setdefault(memory.text, []).append(memory)
    taken: set[str] = set()
    found: list[Merger] = []
    for text, best in sorted(
        ((text, group[0]) for text, group in by_text.items()),
        key=lambda each: _worth(each[1]),
        reverse=True,
    ):
        if text in taken:
            continue
        texts = [
            text,
            *(
                other
                for other in sorted(set(same.get(text, ())))
                if other in by_text and other not in taken
            ),
        ]
        taken.update(texts)
        lost = [memory.id for each in texts for memory in by_text[each] if memory.id != best.id]
        if lost:
            found.append(Merger(best.id, tuple(sorted(lost))))
    return found


def merge_group(
    kept: MemoryRecord, lost: Sequence[MemoryRecord], now: float, run: str
) -> tuple[tuple[MemoryRecord, ...], tuple[MemoryLink, ...]]:
    """The versions and links to write."""
    whole = kept
    for each in lost:
        whole = join_memories(whole, each)
    changed = next_version(
        kept,
        now,
        run,
        f"says the same as {len(lost)} more",
        source=whole.source,
        confidence=whole.confidence,
        trust=kept.trust,
    )
    gone = (
        next_version(each, now, run, f"{kept.id} says the same", standing=Standing.MERGED)
        for each in lost
    )
    links = (MemoryLink(kept.id, each.id, Relation.DERIVED_FROM, now, run) for each in lost)
    return (changed, *gone), tuple(links)


def _worth(memory: MemoryRecord) -> tuple[bool, int, float, float, str]:
    """A person's or pinned memory first, then by trust, confidence and age."""
    return (
        memory.pinned or memory.trust is Trust.PERSON,
        rank(memory.trust),
        memory.confidence,
        -memory.created,
        memory.id,
    )
