"""Render memories for a model or a person: whole, as an excerpt or in a line, by age, use and how
much they tell."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from math import log
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from hotset.files.private_folder import private_folder
from hotset.files.write import write_atomically
from hotset.nouns.memory import (
    Arrangement,
    Checkpoint,
    Ending,
    Episode,
    Layer,
    MemoryLink,
    MemoryRecord,
    Pitfall,
    Procedure,
    Relation,
    Standing,
    Task,
    Trust,
    Uses,
)
from hotset.sources.memory.data_lines import (
    DATA,
    DAY,
    HOW,
    IN_THE_INDEX,
    WHOLE,
    ItemGroup,
    RenderedText,
    as_data,
    day,
    excerpt,
    group_items,
    join_lines,
    line,
    line_of,
    name_of,
    new_items,
    one_line,
    size,
)
from hotset.sources.memory.kinds import ADVICE_KINDS, KINDS, WARNING_KINDS, kinds_of
from hotset.sources.memory.memory_writer import known_memory
from hotset.store.port import Store
from hotset.text.terms import topic_words
from hotset.tokens import count
from hotset.typed import decode

if TYPE_CHECKING:
    from hotset.sources.memory.project_memories import MemoryDetails
    from hotset.sources.memory.recall import RecalledItem


RARE = 0.75
"""From this mass on a memory is shown one form better than its age says: the top quarter."""

_BETTER = {Layer.INDEX: Layer.TIMELINE, Layer.TIMELINE: Layer.FULL, Layer.FULL: Layer.FULL}
_EDGES = 100  # resolution of a mass


class WordFrequencies(msgspec.Struct, frozen=True):
    """How many memories contain each word, and the distribution of their weights."""

    time: float | None = None
    """When they were counted; None if unknown."""
    memories: int = 0
    words: Mapping[str, int] = {}
    edges: tuple[float, ...] = ()
    """Quantiles of the memories' weights, ascending."""


def layer_of(
    memory: MemoryRecord,
    now: float,
    *,
    uses: Uses,
    referenced: bool,
    mass: float,
    arrangement: Arrangement,
) -> Layer:
    """The form a memory is shown in: a week in full, a month in a line, then counted under its
    topic; one form better if it tells much.

    Age counts from the last use. A memory that is referenced or was of use stays a line, as do
    kinds that hold until replaced (facts, procedures, pitfalls, lessons).
    """
    if memory.pinned:
        return Layer.FULL
    age = now - max(memory.created, uses.last)
    by_age = (
        Layer.FULL if age < arrangement.full_days * DAY
        else Layer.TIMELINE if age < arrangement.line_days * DAY
        else Layer.INDEX
    )  # fmt: skip
    layer = _BETTER[by_age] if mass >= RARE else by_age
    of_use = uses.read + uses.helped > uses.misled
    stays = referenced or of_use or KINDS[memory.kind].lasts
    return Layer.TIMELINE if layer is Layer.INDEX and stays else layer


def mass(memory: MemoryRecord, frequencies: WordFrequencies) -> float:
    """How much a memory tells, from 0 to 1: the share of memories with fewer or more common
    words."""
    if not frequencies.edges:
        return 0.0
    words, every = sorted(frozenset(topic_words(memory.text))), frequencies.memories
    weight = sum(_worth(frequencies.words.get(word, 0), every) for word in words)
    return bisect_left(frequencies.edges, weight) / len(frequencies.edges)


def frequencies(memories: Iterable[MemoryRecord]) -> WordFrequencies:
    """Count the words of all memories in one pass. Needs about 100 bytes a memory and 100 bytes a
    word."""
    counted: Counter[str] = Counter()
    numbers: dict[str, int] = {}
    read: list[tuple[int, ...]] = []
    for memory in memories:
        words = frozenset(topic_words(memory.text))
        counted.update(words)
        read.append(tuple(sorted(numbers.setdefault(word, len(numbers)) for word in words)))
    worth = [_worth(counted[word], len(read)) for word in numbers]
    weights = sorted(sum(worth[number] for number in each) for each in read)
    step = max(1, len(weights) // _EDGES)
    return WordFrequencies(None, len(read), counted, tuple(weights[::step]))


def _worth(held_by: int, memories: int) -> float:
    """A word's inverse document frequency."""
    return log((memories + 1) / (held_by + 1)) if memories else 0.0


_FILE = "masses.json"
_MOST_WORDS = 50_000  # the most common ones; all others are rare
_COUNTED = frozenset({Standing.ACTIVE, Standing.SUPERSEDED})


class TermRarity:
    """How much memories tell, cached in a file that can be rebuilt; without it nothing is rare.
    Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        self._known = (0, WordFrequencies())

    def of(self, memory: MemoryRecord) -> float:
        """From 0 to 1: the share of episodes that tell less."""
        return mass(memory, self._read())

    @property
    def renewed(self) -> float | None:
        """When any process last counted them; None if unknown."""
        return self._read().time

    def renew(self, store: Store, now: float) -> None:
        """Count the words of all episodes again."""
        found = frequencies(store.memories(kinds_of(Episode), _COUNTED))
        common = dict(Counter(found.words).most_common(_MOST_WORDS))
        kept = WordFrequencies(now, found.memories, common, found.edges)
        private_folder(self._path.parent)
        write_atomically(self._path, msgspec.json.encode(kept))

    def drop(self) -> None:
        """Delete the counts: no word of an erased memory may stay."""
        self._path.unlink(missing_ok=True)

    def _read(self) -> WordFrequencies:
        try:
            stamp = self._path.stat().st_mtime_ns
        except OSError:
            return WordFrequencies()
        if self._known[0] != stamp:
            kept = WordFrequencies()
            with suppress(OSError, msgspec.DecodeError):
                kept = decode(self._path.read_bytes(), WordFrequencies)
            self._known = stamp, kept
        return self._known[1]


_MOST_ADVICE = 2  # of a kind; more is not followed
_AS_SHORT = 40  # tokens of a text that is no longer than its line
_SERVED = frozenset({Standing.ACTIVE, Standing.SUPERSEDED})
_AVOID, _FOUND = "Avoid", "Remembered"
_TITLE = 100  # characters of a line
_SHORT_TITLE = 40
_TRIED = 64  # items, best first
_RESERVED = 0.2  # of the room at most, for the names of what does not fit
_MODELS_SHARE = 0.15
"""Share of the room for replies of models unless the question asks for them; one excerpt always
fits. On public conversations their words are nine tenths of all and hold a fiftieth of the
evidence; between 0.1 and 0.2 it makes no difference of a point."""
_MODEL = "assistant"
_LEAST_ROOM = 16  # tokens: no line is shorter
_LABEL_WITHOUT = frozenset({Ending.UNKNOWN, Ending.SUCCESS})


_TO_THE_MODEL = re.compile(
    r"""
    \b(?:did|had|have|has)\s+(?:you|we)\s+(?:\w+ly\s+|just\s+|already\s+|also\s+|ever\s+)?
        (?:recommend|suggest|tell|told|talk|say|said|mention|discuss|provid|giv|list|explain|writ
        |shar|answer|propos|advis|describ|cover)
    |\b(?:you|we)(?:'d|'ve|\s+had|\s+have)?\s+
        (?:\w+ly\s+|just\s+|already\s+|also\s+|once\s+)?
        (?:recommended|suggested|told|talked|said|mentioned|discussed|provided|gave|given|listed
        |explained|wrote|written|shared|answered|proposed|advised|described|covered
        |came\s+up|went\s+over|were\s+(?:talking|discussing|telling))\b
    |\b(?:our|that|the|a)\s+(?:previous|last|earlier|recent|past)\s+
        (?:chat|conversation|discussion|session|talk)s?\b
    |\b(?:(?:in|from|of)\s+your|(?:was|were)\s+your|your\s+(?:previous|earlier|last|original))\s+
        (?:\w+\s+)?(?:recommendation|suggestion|list|answer|reply|response|explanation|summary
        |advice|message|proposal)
    |\bremind\s+me\b""",
    re.IGNORECASE | re.VERBOSE,
)
_HOW = re.compile(
    r"\bhow\s+(?:do|does|did|to|can|could|should|are|is|would)\b|\bsteps?\b|\bcommands?\b"
    r"|\bprocedures?\b|\brunbook\b|\b(?:right|usual|best)\s+way\b",
    re.IGNORECASE,
)
_FOR_A_NUMBER = re.compile(
    (
        r"\bhow (?:many|much|long|often|old|far)\b|\bwhen (?:did|was|is|were)\b|\bwhat "
        r"(?:time|date|year|day)\b"
    ),
    re.IGNORECASE,
)


def asks_the_model(query: str) -> bool:
    """True if the question is about what the model said before. A wish for something new ("what
    would you suggest") is not."""
    return _TO_THE_MODEL.search(query) is not None


def asks_how(query: str) -> bool:
    """True if the question asks how something is done."""
    return _HOW.search(query) is not None


def asks_for_a_number(query: str) -> bool:
    return _FOR_A_NUMBER.search(query) is not None


_Form = tuple[Layer, str]
"""One way of showing an item."""


def render_memories(
    items: Sequence[RecalledItem],
    arrangement: Arrangement,
    layers: Mapping[str, Layer],
    *,
    max_tokens: int,
    query: str = "",
    task: Task | None = None,
    how: str = HOW,
    beside: Iterable[RecalledItem] = (),
    notes: Mapping[str, str] = MappingProxyType({}),
) -> RenderedText:
    """Render the best items first, each in the largest form that its layer and the room allow;
    pitfalls first when debugging. `notes` stand behind the items of these ids.

    Items without a layer are shown in full. Candidates, merged and forgotten memories are never
    shown. Items `beside` them fill the remaining room; replies of models get a limited share of it
    and the rest are only named.
    """
    chosen = _choose_items(items)
    if task is Task.DEBUGGING:
        chosen.sort(key=lambda each: each.item.kind not in WARNING_KINDS)
    chosen = chosen[:_TRIED]
    renderer = _Renderer(
        f"[hotset memory: {DATA}. {how}]", max_tokens, is_debugging=task is Task.DEBUGGING
    )
    renderer.reserve_names(chosen)
    models = (
        max_tokens
        if asks_the_model(query)
        else max(arrangement.excerpt, int(_MODELS_SHARE * max_tokens))
    )
    for at, each in enumerate(chosen):
        forms = _forms(each, arrangement, layers.get(each.item.id, Layer.FULL), query)
        if note := notes.get(each.item.id):
            forms = ((layer, f"{text} ({note})") for layer, text in forms)
        most = models if _is_models(each.item) else max_tokens
        tokens = renderer.show(each.item, forms, most, is_best=at == 0)
        models -= tokens if _is_models(each.item) else 0
    for item in new_items(
        islice(beside, _TRIED),
        [each.item for each in chosen if each.item.id in renderer.shown],
        _words,
    ):
        if renderer.tokens_left < _LEAST_ROOM:
            break
        form = (Layer.FULL, _in_full(ItemGroup(item), arrangement, query))
        tokens = renderer.show(item, [form], models if _is_models(item) else max_tokens)
        models -= tokens if _is_models(item) else 0
    renderer.name_the_rest()
    names = Counter(
        topic for each in chosen if each.item.id in renderer.shown for topic in _topics(each.item)
    )
    text = renderer.text
    return RenderedText(text, count(text) if text else 0, tuple(names), renderer.shown)


def conflict_notes(memories: Iterable[MemoryRecord], store: Store) -> dict[str, str]:
    """What an agent is told with a memory that another one contradicts, by id."""
    notes: dict[str, str] = {}
    for memory in memories:
        if not KINDS[memory.kind].settles:
            continue
        for link in store.memory_links(memory.id):
            if link.relation is not Relation.CONTRADICTS:
                continue
            other = known_memory(store, link.to if link.of == memory.id else link.of)
            if other is not None and other.standing is Standing.ACTIVE:
                words = as_data(one_line(other.title, _TITLE))
                notes[memory.id] = f"contradicts [{other.id}] {words}; ask the user which holds"
    return notes


class _Renderer:
    """The lines rendered so far, and the room left after naming the remaining items.

    Lines are counted one by one, each with its newline: no token spans two lines.
    """

    def __init__(self, head: str, room: int, *, is_debugging: bool) -> None:
        self._head = head
        self._room = room
        self._is_debugging = is_debugging
        self._lines: list[tuple[str, str]] = []
        self._tokens = _tokens_of(head)
        self._unnamed: dict[str, tuple[RecalledItem, _Form, int]] = {}
        self.shown: dict[str, Layer] = {}

    @property
    def tokens_left(self) -> int:
        reserved = sum(tokens for _, _, tokens in self._unnamed.values())
        return self._room - self._tokens - min(reserved, int(_RESERVED * self._room))

    @property
    def text(self) -> str:
        return _join_under_headings(self._head, self._lines) if self._lines else ""

    def reserve_names(self, chosen: Iterable[ItemGroup[RecalledItem]]) -> None:
        for each in chosen:
            form = _short(each)
            self._unnamed[each.item.id] = (each.item, form, _tokens_of(f"- {form[1]}"))

    def show(
        self, item: RecalledItem, forms: Iterable[_Form], most: int, *, is_best: bool = False
    ) -> int:
        """Show an item in the first form that fits the room and `most`; return the tokens it took,
        0 if none fits.

        The best item may use the reserved room, too.
        """
        kept = self._unnamed.pop(item.id, None)
        heading = _AVOID if self._is_debugging and item.kind in WARNING_KINDS else _FOUND
        first = (
            0 if any(heading == known for known, _ in self._lines) else _tokens_of(f"{heading}:")
        )
        room = min(most, self._room - self._tokens if is_best else self.tokens_left)
        for layer, text in forms:
            tokens = first + _tokens_of(f"- {text}")
            if tokens <= room:
                self._lines.append((heading, text))
                self.shown[item.id] = layer
                self._tokens += tokens
                return tokens
        if kept is not None:
            self._unnamed[item.id] = kept
        return 0

    def name_the_rest(self) -> None:
        for item, form, _ in list(self._unnamed.values()):
            self.show(item, [form], self._room, is_best=True)


def _tokens_of(line: str) -> int:
    return count(f"{line}\n")


def _is_models(item: RecalledItem) -> bool:
    return item.memory is None and item.speaker == _MODEL


def _choose_items(items: Sequence[RecalledItem]) -> list[ItemGroup[RecalledItem]]:
    """The items that may be shown, without duplicates and at most two pieces of advice of a
    kind."""
    served = [item for item in items if item.memory is None or item.memory.standing in _SERVED]
    many: Counter[str] = Counter()
    chosen = []
    for each in group_items(served, _words):
        many[each.item.kind] += 1
        if each.item.kind not in ADVICE_KINDS or many[each.item.kind] <= _MOST_ADVICE:
            chosen.append(each)
    return chosen


def _words(item: RecalledItem) -> str:
    return item.text or item.title


def _forms(
    each: ItemGroup[RecalledItem], arrangement: Arrangement, layer: Layer, query: str
) -> Iterator[_Form]:
    """The forms of an item, from the largest that its layer allows to the smallest."""
    if layer is Layer.FULL or (layer is Layer.TIMELINE and count(each.item.text) <= _AS_SHORT):
        yield Layer.FULL, _in_full(each, arrangement, query)
    if layer is not Layer.INDEX:
        yield Layer.TIMELINE, _line(each)
    yield _short(each)


def _short(each: ItemGroup[RecalledItem]) -> _Form:
    item = each.item
    words = item.title or item.text
    name = (
        line(words, count(item.text), IN_THE_INDEX, most=_SHORT_TITLE)
        if item.memory is None
        else name_of(item.memory)
    )
    return Layer.INDEX, f"{name} [{item.id}]".lstrip()


def _in_full(each: ItemGroup[RecalledItem], arrangement: Arrangement, query: str) -> str:
    item = each.item
    text = as_data(item.text.strip() or item.title)
    before, behind = f"{_label(each)}: ", f" [{item.id}]"
    tokens = count(text)
    if tokens <= WHOLE:
        return f"{before}{_indent(text)}{behind}"
    behind = f" ({size(tokens)} tokens){behind}"
    room = arrangement.excerpt - count(f"- {before}{behind}")
    while room > 0:
        whole = f"{before}{as_data(excerpt(text, query, room))}{behind}"
        over = count(f"- {whole}") - arrangement.excerpt
        if over <= 0:
            return whole
        room -= over  # joined text can take a token more than its parts
    return _line(each)


def _line(each: ItemGroup[RecalledItem]) -> str:
    item = each.item
    words = (
        line(item.title or item.text, count(item.text))
        if item.memory is None
        else line_of(item.memory)
    )
    return f"{_label(each)}: {words} [{item.id}]"


def _label(each: ItemGroup[RecalledItem]) -> str:
    """`pitfall 2026-01-05`, and notes on its outcome, validity and origin."""
    item, memory = each.item, each.item.memory
    parts = [item.speaker if item.speaker and memory is None else item.kind, day(item.time)]
    if memory is not None:
        if KINDS[memory.kind].is_dated and memory.ending not in _LABEL_WITHOUT:
            parts.append(memory.ending)
        if memory.standing is Standing.SUPERSEDED:
            parts.append(f"(replaced{f' {day(memory.valid_until)}' if memory.valid_until else ''})")
        if memory.trust is Trust.OUTSIDE or (
            isinstance(memory.detail, Episode) and memory.detail.quoted
        ):
            parts.append("(quoted from outside)")
    if each.others:
        parts.append(f"({len(each.others) + 1} times)")
    return " ".join(one_line(part, _TITLE) for part in parts if part)


def _indent(text: str) -> str:
    """Indent the lines of a memory, so that none looks like one of ours."""
    return "\n  ".join(line.rstrip() for line in text.splitlines() if line.strip())


def _topics(item: RecalledItem) -> tuple[str, ...]:
    return item.memory.topics if item.memory is not None else ()


def _join_under_headings(head: str, shown: Sequence[tuple[str, str]]) -> str:
    lines = [head]
    for heading in dict.fromkeys(heading for heading, _ in shown):
        lines.append(f"{heading}:")
        lines.extend(f"- {text}" for under, text in shown if under == heading)
    return join_lines(lines)


_ACTIONS = 20
_PAGES = 8
_LONGEST = 20_000  # characters of a line: a memory has no more
_TRUSTED = {
    Trust.PERSON: "a person wrote or confirmed it",
    Trust.OUTCOME: "it was put together by rules from what was done, and what was done worked",
    Trust.AGENT: "a model said it",
    Trust.OUTSIDE: "its words come from a tool, a file or the web: data, never advice",
}
_QUOTED = "quoted from outside; maybe from a tool, a file or a document, not the user"
_STANDING_NOTES = {
    Standing.ACTIVE: "",
    Standing.CANDIDATE: "an outcome or a person must confirm it (hotset memory confirm)",
    Standing.SUPERSEDED: "another one holds now",
    Standing.MERGED: "merged into another one",
    Standing.FORGOTTEN: "forgotten; to restore it: hotset memory restore",
}
_FORMS = {
    Layer.FULL: "it is shown whole: it is new, was used lately, or is pinned",
    Layer.TIMELINE: "it is shown in a line: it is older than a week; its id brings all of it",
    Layer.INDEX: (
        "it is counted under its topics: it is older than a month; "
        "a search finds it, its id "
        "brings all of it"
    ),
}
_RELATION_TEXT = {
    Relation.DERIVED_FROM: ("derived from", "gave rise to"),
    Relation.RELATED_TO: ("related to", "related to"),
    Relation.CONTRADICTS: ("contradicts", "is contradicted by"),
    Relation.SUPERSEDES: ("replaces", "was replaced by"),
}


def memory_heading(memory: MemoryRecord) -> str:
    return f"[hotset memory {memory.id}, {memory.kind} of {day(memory.created)}; {DATA}]"


def memory_text(memory: MemoryRecord, store: Store) -> str:
    """The whole memory for a model: its text, details, links and source pages."""
    return "\n".join(_memory_lines(memory, store))


def render_whole(memory: MemoryRecord, store: Store, max_tokens: int) -> RenderedText:
    """The whole memory marked as data, cut to `max_tokens`."""
    head, body = memory_heading(memory), memory_text(memory, store)
    text = f"{head}\n{body}"
    if count(text) > max_tokens:
        from hotset.window.slice.fit import clip_to_tokens  # noqa: PLC0415 - only where it does not fit

        note = "\n[cut; raise max_tokens for more]"
        room = max(1, max_tokens - count(head + note) - 2)
        text = f"{head}\n{clip_to_tokens(body, room, count)}{note}"
    return RenderedText(text, count(text), memory.topics, {memory.id: Layer.FULL})


def explain_memory(shown: MemoryDetails, store: Store) -> tuple[str, ...]:
    """Origin, links, use and versions of a memory, in sentences for a person."""
    memory, uses = shown.memory, shown.uses
    source = memory.source
    lines = [f"{_TRUSTED[memory.trust]} (by {source.by}, confidence {memory.confidence:.2f})"]
    if source.session:
        agent = f" of {source.agent}" if source.agent else ""
        lines.append(f"it comes from session {source.session}{agent}: hotset show {source.session}")
    if source.pages:
        more = f" and {len(source.pages) - _PAGES} more" if len(source.pages) > _PAGES else ""
        lines.append(
            f"it stands on pages {', '.join(source.pages[:_PAGES])}{more}: hotset recall PAGE"
        )
    if source.places:
        lines.append(
            f"those came from "
            f"{', '.join(one_line(place, _TITLE) for place in source.places[:_PAGES])}"
        )
    lines += [_render_link(memory, link, store) for link in shown.links]
    if _STANDING_NOTES[memory.standing]:
        lines.append(_STANDING_NOTES[memory.standing])
    lines.append(
        f"it was shown {uses.shown}, read {uses.read} and found helpful {uses.helped} times"
    )
    lines.append(_FORMS[shown.layer])
    lines += [
        f"version {each.version}, {_moment(each.time)}: {each.why or 'it was first kept'}"
        for each in shown.versions
    ]
    return tuple(lines)


_DID = {Relation.SUPERSEDES: "replaced", Relation.CONTRADICTS: "contradicts"}


def describe_commit(memory: MemoryRecord, links: Sequence[MemoryLink], begun: float) -> str:
    """One sentence on what became of a text to remember; a memory older than `begun` was known
    before."""
    parts = [f"{'kept' if memory.time >= begun else 'known already'} as [{memory.id}]"]
    for relation, did in _DID.items():
        others = [
            link.to
            for link in links
            if link.of == memory.id and link.relation is relation and link.time >= begun
        ]
        parts += [f"{did} {', '.join(f'[{other}]' for other in others)}"] if others else []
    if memory.standing is Standing.CANDIDATE:
        parts.append(f"a person must confirm it: hotset memory confirm {memory.id}")
    return "; ".join(parts)


def _memory_lines(memory: MemoryRecord, store: Store) -> Iterator[str]:
    yield from _quote_lines(memory.title)
    if memory.text.strip() != memory.title.strip():
        yield from _quote_lines(memory.text)
    if memory.trust is Trust.OUTSIDE or (
        isinstance(memory.detail, Episode) and memory.detail.quoted
    ):
        yield f"Note: {_QUOTED}."
    if memory.standing is not Standing.ACTIVE:
        yield f"Note: {_STANDING_NOTES[memory.standing]}."
    # Each detail is one line behind a word of ours: its text comes from others.
    yield from (one_line(line, _LONGEST) for line in _details(memory))
    for link in store.memory_links(memory.id):
        yield f"- {_render_link(memory, link, store)}"
    if memory.source.pages:
        yield f"Said in: {', '.join(memory.source.pages[:_PAGES])}"


def _quote_lines(text: str) -> Iterator[str]:
    """Indent text of others, so that none of its lines looks like one of ours."""
    yield from (f"  {line}" if line.strip() else "" for line in as_data(text).splitlines())


def _details(memory: MemoryRecord) -> Iterator[str]:
    match memory.detail:
        case Episode() as episode:
            yield from _episode_details(memory, episode)
        case Procedure() as procedure:
            steps = [step for step in procedure.steps if step not in memory.text]
            yield from (f"{number}. {step}" for number, step in enumerate(steps, 1))
        case Pitfall() as pitfall:
            parts = {"Fails": pitfall.what, "Because": pitfall.why, "Instead": pitfall.instead}
            yield from (
                f"{name}: {words}"
                for name, words in parts.items()
                if words and words not in memory.text
            )
        case Checkpoint() as point:
            left = {
                "Done": "; ".join(point.done),
                "Doing": point.doing,
                "Next": "; ".join(point.next),
                "Blocked by": "; ".join(point.blockers),
            }
            yield from (f"{name}: {words}" for name, words in left.items() if words)


def _episode_details(memory: MemoryRecord, episode: Episode) -> Iterator[str]:
    if memory.ending is not Ending.UNKNOWN:
        yield f"Outcome: {memory.ending}"
    if episode.answer and episode.answer not in memory.text:
        yield f"Answer: {episode.answer}"
    if episode.constraints:
        yield f"Heeding: {'; '.join(episode.constraints)}"
    if episode.artifacts:
        yield f"Changed: {', '.join(episode.artifacts)}"
    for trouble in episode.troubles:
        end = (
            f"; resolved by {'; '.join(trouble.resolved)}"
            if trouble.is_resolved
            else "; not resolved"
        )
        yield (f"Trouble: {trouble.tool} {trouble.target}: {trouble.kind}: {trouble.said}{end}")
    if episode.actions:
        yield "Actions:"
        yield from (
            (
                f"{action.at:.0f}s {action.tool} "
                f"{action.target}{' (failed)' if action.failed else ''}"
            )
            for action in episode.actions[:_ACTIONS]
        )


def _render_link(memory: MemoryRecord, link: MemoryLink, store: Store) -> str:
    other = link.to if link.of == memory.id else link.of
    known = known_memory(store, other)
    title = f" {one_line(known.title, _TITLE)}" if known is not None else ""
    return f"{_RELATION_TEXT[link.relation][link.of != memory.id]} [{other}]{title}"


def _moment(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M} UTC"
