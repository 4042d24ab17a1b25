"""What a new fact does to those that are there: it confirms, replaces, contradicts or is merged
with them. Both stay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import lru_cache

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
    heard_in,
    joined,
    known_memory,
    next_version,
    rank,
)
from hotset.store.port import Store
from hotset.text.stems import root
from hotset.text.stops import STATEMENT
from hotset.text.terms import topic_words

_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+(?:[.,]\d+)*|[^\W\d_a-zA-Z]+")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?=[^\w]|[a-zA-Z%]{1,4}\b|$)")
_NAME = re.compile(
    r"`[^`\n]{1,80}`|[\w./-]*(?:[a-z][A-Z]|\w[_/.]\w)[\w./-]*|(?<=[a-z,;:] "
    r")[A-Z][\w+#-]*|[A-Z]{2,}\w*"
)
_MOST_READ = 4000  # characters of a text; what decides whether two agree stands early

_NEGATIONS = re.compile(
    r"\b(?:not|never|no|none|neither|nor|without|cannot|avoid|stop|n't|don'?t|doesn'?t|isn'?t|"
    r"won'?t|must ?n'?t)\b"
)
_NUMERALS = (
    "zero _ two three four five six seven eight "
    "nine ten eleven twelve"
)  # "one" is mostly no number but a pronoun
_SPELLED = {word: str(number) for number, word in enumerate(_NUMERALS.split())}
_PAIRS = """
on/off enable/disable enabled/disabled always/never before/after up/down tabs/spaces newest/oldest latest/earliest first/last
ascending/descending asc/desc min/max minimum/maximum more/less most/least higher/lower highest/lowest left/right true/false
required/optional include/exclude allow/deny allow/forbid sync/async public/private merge/rebase lower/upper binary/decimal
light/dark add/remove keep/drop accept/reject strict/lenient newer/older start/stop open/closed local/remote
"""  # noqa: E501
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
    """A text, as far as it decides whether two say the same."""

    words: frozenset[str]
    """That carry meaning, without their endings; identifiers come apart."""
    order: tuple[str, ...]
    """The same words, each once, as they follow each other."""
    numbers: frozenset[str]
    names: frozenset[str]
    """Of things: identifiers, paths, words with capitals. Another name is another thing."""
    denies: bool
    amends: bool
    """It says of itself that it changes something that held before."""
    hints: bool
    """It may change something that held before, of what it speaks about: `no longer`, `moved
    to`."""


@lru_cache(maxsize=4096)
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
    """In their order and as they stand, in lower case: without those that stand in every text."""
    return [
        word
        for piece in _PIECE.findall(text)
        if (word := piece.lower()) not in STATEMENT and (len(word) > 1 or word.isdigit())
    ]


def shared(one: StatementWords, other: StatementWords) -> float:
    """How much of the shorter one's words stands in the other, from 0 to 1."""
    least = min(len(one.words), len(other.words))
    return len(one.words & other.words) / least if least else 0.0


def alike(one: StatementWords, other: StatementWords) -> float:
    """How many of all their words they share, from 0 to 1."""
    every = len(one.words | other.words)
    return len(one.words & other.words) / every if every else 0.0


def speak_of_two_things(one: str, other: str) -> bool:
    """Do they say something else, each of another one of its sort? `Host 1 is called heron`, `Host
    2 is called crane`.

    Where only what it is said of differs, that is what changed: `version 2 is current`.
    """
    (mine, said), (theirs, also_said) = _parted(one), _parted(other)
    return said != also_said and bool(mine - theirs) and bool(theirs - mine)


def _parted(text: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Which one of its sort a sentence speaks of, by numbers and letters; and the words of what it
    says."""
    found = _SAYS.search(text, 0, _MOST_READ)
    if found is None:
        return frozenset(), ()
    which = _NUMBERED.findall(text[: found.start()].lower())
    return frozenset(which), tuple(re.findall(r"\w+", text[found.start() : _MOST_READ].lower()))


def in_order(one: StatementWords, other: StatementWords) -> bool:
    """Do the words that both have follow each other in the same way? `A replaced B` is not `B
    replaced A`."""
    return [word for word in one.order if word in other.words] == [
        word for word in other.order if word in one.words
    ]


def conflict(one: StatementWords, other: StatementWords) -> bool:
    """Where one of them says another number, another name, the opposite, or no."""
    mine, theirs = one.words - other.words, other.words - one.words
    return (
        one.numbers != other.numbers
        or one.denies != other.denies
        or (not one.names <= other.names and not other.names <= one.names)
        or any(
            (first in mine and second in theirs) or (second in mine and first in theirs)
            for first, second in _OPPOSITES
        )
    )


_OPPOSITES = [tuple(root(word) for word in pair.split("/")) for pair in _PAIRS.split()]


DOUBT = 0.6
"""What confidence is left of a fact that a more trusted one contradicts."""

_SAME = 0.85  # of all words shared, one text within the other: what is more is a filler
_CLOSE = 0.7  # of all words shared: nothing but the value differs
# of the shorter one's words in an amendment that names no subject; decisions on other things share
# up to 0.32
_AMENDED = 0.4
_NEAREST_AMENDED = 0.3  # the same, where nothing else is nearer to the amendment
_FEWEST_SHARED = 5  # words, in such an amendment
_SUBJECT_AMENDED = 0.25  # the same, where both name one subject
_SUBJECT_CLOSE = (
    0.5  # of all words beside the subject's; a decision told again in other words shares a third
)
_VALUE = 4  # words that a value has at most
_ASIDE = frozenset({Standing.FORGOTTEN, Standing.SUPERSEDED, Standing.MERGED})


class FactVerdict(Enum):
    """What a later fact is to an earlier one."""

    UNRELATED = auto()
    SAME = auto()
    CHANGED = auto()
    """Both cannot hold at once."""


@dataclass(frozen=True, slots=True)
class Settlement:
    memories: tuple[MemoryRecord, ...] = ()
    """All that is to be written: the new ones, as they stand now, and new versions of older
    ones."""
    links: tuple[MemoryLink, ...] = ()
    absorbed: Mapping[MemoryId, MemoryId] = field(default_factory=dict)
    """New ones that say what is there already, and what carries their sources now: links go there,
    and they are not written."""


def settle(
    new: Sequence[MemoryRecord], store: Store, similar: Similar, now: float, run: str = ""
) -> Settlement:
    """What is to be written so that the new memories stand in their place among the others.

    Only facts confirm, replace and contradict each other; memories of other kinds are given back as
    they came. The same, in whatever order the new ones are given; with what it gave written, it
    gives nothing more to write.
    """
    table = _Table(store, now, run)
    for memory in sorted(new, key=lambda each: (each.created, each.id)):
        if KINDS[memory.kind].settles and memory.standing is Standing.ACTIVE:
            table.place(memory, [each.id for each in similar(memory) if each.kind is memory.kind])
        else:
            table.put(memory)
    return table.settled()


def settle_among(
    fact: MemoryId, near: Sequence[MemoryId], store: Store, now: float, run: str = ""
) -> Settlement:
    """What a fact of the store does to others that it is near to, the nearest first; those that say
    the same stay apart."""
    table = _Table(store, now, run)
    table.weigh(fact, near)
    return table.settled()


def judge(earlier: MemoryRecord, later: MemoryRecord, *, nearest: bool = False) -> FactVerdict:
    """What the later one of two facts is to the earlier one, by what they say; `nearest` where no
    third one is nearer."""
    one, other = statement_words(earlier.text), statement_words(later.text)
    if in_order(one, other) and not conflict(one, other):
        within = one.words <= other.words or other.words <= one.words
        if one.words == other.words or (within and alike(one, other) >= _SAME and not other.amends):
            return FactVerdict.SAME
    if speak_of_two_things(earlier.text, later.text) and not other.amends:
        return FactVerdict.UNRELATED
    subject = subject_of(earlier)
    if subject and subject == subject_of(later):
        return FactVerdict.CHANGED if _another_value(one, other, subject) else FactVerdict.UNRELATED
    least = _NEAREST_AMENDED if nearest else _AMENDED
    if (
        other.amends
        and shared(one, other) >= least
        and len(one.words & other.words) >= _FEWEST_SHARED
    ):
        return FactVerdict.CHANGED
    return (
        FactVerdict.CHANGED
        if alike(one, other) >= _CLOSE and conflict(one, other)
        else FactVerdict.UNRELATED
    )


def subject_of(memory: MemoryRecord) -> frozenset[str]:
    """The words of what it is about; empty where it does not say."""
    named = memory.detail.subject if isinstance(memory.detail, Fact) else ""
    return frozenset(root(word) for word in telling_words(named))


class _Table:
    """The new facts and those that they touch, as they stand while one after another is settled."""

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
        """Where one that is there says the same, it carries the sources of both; otherwise the new
        one is weighed."""
        self.put(new)
        others = tuple(dict.fromkeys((*near, *self._new)))
        if new.version == 1:
            for old in self._known(new.id, others):
                if (
                    self._takes(old, new)
                    and judge(*_in_time(old, new)) is FactVerdict.SAME
                    and _speaks_for(old, new)
                ):
                    self._absorb(new, old)
                    return
        self.weigh(new.id, others)
        self._new.append(new.id)

    def weigh(self, id: MemoryId, near: Sequence[MemoryId]) -> None:
        """Against those that stand, the nearest first: an amendment that names no subject replaces
        only one."""
        memory = self._read(id)
        if memory is None or memory.standing is not Standing.ACTIVE:
            return
        links = [
            link
            for link in self._store.memory_links(id)
            if link.relation in (Relation.SUPERSEDES, Relation.CONTRADICTS)
        ]
        decided = frozenset(
            link.to if link.of == id else link.of for link in links
        )  # what became of it since is for good
        amended = any(link.of == id and link.relation is Relation.SUPERSEDES for link in links)
        for old in self._known(id, near):
            now = self._latest[id]
            if old.id in decided or {old.standing, now.standing} != {Standing.ACTIVE}:
                continue
            earlier, later = _in_time(old, now)
            loose = not subject_of(old) or subject_of(old) != subject_of(now)
            if judge(earlier, later, nearest=old.id == near[0]) is FactVerdict.CHANGED and not (
                loose and amended
            ):
                amended = amended or loose
                self._decide(earlier, later)

    def settled(self) -> Settlement:
        return Settlement(
            tuple(self._written.values()), tuple(self._links.values()), dict(self._absorbed)
        )

    def _known(self, id: MemoryId, near: Sequence[MemoryId]) -> Iterator[MemoryRecord]:
        return (old for other in near if other != id and (old := self._read(other)) is not None)

    def _takes(self, old: MemoryRecord, new: MemoryRecord) -> bool:
        """May it carry what says the same? What was put aside takes what its own session says
        again: that is no news."""
        return old.standing is Standing.ACTIVE or (
            old.standing in _ASIDE and heard_in(old.source, new.source.session)
        )

    def _read(self, id: MemoryId) -> MemoryRecord | None:
        """Its latest version: what a search gave may be older."""
        if id not in self._latest and (memory := known_memory(self._store, id)) is not None:
            self._latest[id] = memory
        return self._latest.get(id)

    def _absorb(self, new: MemoryRecord, old: MemoryRecord) -> None:
        both = joined(old, new)
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
        """The later one holds, unless it is less trusted or was not later after all."""
        if (
            rank(later.trust) >= rank(earlier.trust)
            and later.created > earlier.created
            and not (earlier.pinned and later.trust is not Trust.PERSON)  # a person holds to it
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
        """A version that was not written yet takes the change itself."""
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


def _in_time(one: MemoryRecord, other: MemoryRecord) -> tuple[MemoryRecord, MemoryRecord]:
    """The earlier one, and the later one."""
    return (one, other) if (one.created, one.id) <= (other.created, other.id) else (other, one)


def _speaks_for(old: MemoryRecord, new: MemoryRecord) -> bool:
    """A word more in somebody's text is a filler where nobody more trusted would have to stand for
    it."""
    return (
        rank(old.trust) >= rank(new.trust)
        or statement_words(old.text).words == statement_words(new.text).words
    )


def _another_value(one: StatementWords, other: StatementWords, subject: frozenset[str]) -> bool:
    """Do two facts on one subject give it another value, or do they say different things about
    it?"""
    mine, theirs = one.words - subject, other.words - subject
    if (
        not mine - theirs or not theirs - mine
    ):  # one only says more, or a number, a name or a no makes the difference
        return conflict(one, other)
    if len(mine) <= _VALUE and len(theirs) <= _VALUE:
        return True
    if other.amends or other.hints:
        return shared(one, other) >= _SUBJECT_AMENDED
    return len(mine & theirs) / len(mine | theirs) >= _SUBJECT_CLOSE


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
    """What is to be written when a session was made into memories: which ledgers it leaves behind,
    and by what.

    `ledgers` are those that stand. Said again, it gives nothing: what was left behind stands no
    more.
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
    """Does it take up, later, what the ledger left?"""
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


_LEAST_ALIKE = 0.6  # of all words shared: vectors alone take two texts about one thing for the same


@dataclass(frozen=True, slots=True)
class Merger:
    kept: MemoryId
    lost: tuple[MemoryId, ...]


def say_the_same(one: str, other: str) -> bool:
    """As far as words can tell: no other number, name or value, and not one yes and the other
    no."""
    first, second = statement_words(one), statement_words(other)
    mine, theirs = first.words - second.words, second.words - first.words
    another_value = len(mine) == 1 and len(theirs) == 1
    close = alike(first, second) >= _LEAST_ALIKE and in_order(first, second)
    return close and not another_value and not conflict(first, second)


def mergers(memories: Iterable[MemoryRecord], same: Mapping[str, Sequence[str]]) -> list[Merger]:
    """Groups of which each is one memory, the best of it kept; `same` tells which texts say the
    same as another.

    Only what says the same as the kept one goes into it: no chain leads to something else. Each
    memory is in one group at most.
    """
    saying: dict[str, list[MemoryRecord]] = {}
    for memory in sorted(memories, key=_worth, reverse=True):
        saying.setdefault(memory.text, []).append(memory)
    taken: set[str] = set()
    found: list[Merger] = []
    for text, best in sorted(
        ((text, said[0]) for text, said in saying.items()),
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
                if other in saying and other not in taken
            ),
        ]
        taken.update(texts)
        lost = [memory.id for each in texts for memory in saying[each] if memory.id != best.id]
        if lost:
            found.append(Merger(best.id, tuple(sorted(lost))))
    return found


def merged(
    kept: MemoryRecord, lost: Sequence[MemoryRecord], now: float, run: str
) -> tuple[tuple[MemoryRecord, ...], tuple[MemoryLink, ...]]:
    """What is to be written."""
    whole = kept
    for each in lost:
        whole = joined(whole, each)
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
    """What a person said or pinned, then the more trusted, the surer, the older one: nobody stands
    for the words of others."""
    return (
        memory.pinned or memory.trust is Trust.PERSON,
        rank(memory.trust),
        memory.confidence,
        -memory.created,
        memory.id,
    )
