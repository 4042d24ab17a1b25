"""The third layer: memories whole where they are short, as an excerpt where they are long, in a line where they are old."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hotset.nouns.memory import Arrangement, Ending, Layer, Memory, MemoryKind, Standing, Task, Trust
from hotset.sources.memory.disclosing.collapsing import Collapsed, collapsed
from hotset.sources.memory.disclosing.excerpting import excerpt
from hotset.sources.memory.disclosing.telling import DATA, HOW, Told, as_data, day, joined, one_line, size
from hotset.tokens import count

WHOLE = 100
"""Tokens up to which a memory is cheaper shown than announced."""

_MOST_OF_KIND: Mapping[str, int] = {MemoryKind.PROCEDURE: 2, MemoryKind.PITFALL: 2}  # more advice is not followed
_AS_SHORT = 40  # tokens of a text that is no longer than the line which would stand for it
_SERVED = frozenset({Standing.ACTIVE, Standing.SUPERSEDED})
_AVOID, _FOUND = "Avoid", "Remembered"
_TITLE = 100  # characters of a line
_SHORT_TITLE = 40
_TRIED = 64  # items, best first
_RESERVED = 0.2  # of the room, to name what there is no room to show
_LABEL_WITHOUT = frozenset({Ending.UNKNOWN, Ending.SUCCESS})


class Item(Protocol):
    """What a recall found: a memory, or words of a conversation."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def time(self) -> float: ...
    @property
    def score(self) -> float: ...
    @property
    def memory(self) -> Memory | None: ...
    @property
    def speaker(self) -> str: ...


@dataclass(frozen=True, slots=True)
class _Form:
    """One way of showing an item."""

    layer: Layer
    text: str


def told_memories(
    items: Sequence[Item],
    arrangement: Arrangement,
    layers: Mapping[str, Layer],
    *,
    max_tokens: int,
    query: str = "",
    task: Task | None = None,
    how: str = HOW,
) -> Told:
    """The best first, each in the largest form that its layer and the room allow; pitfalls before all else when debugging.

    What `layers` does not name is shown in full. What is only a candidate, merged or forgotten is never shown.
    """
    chosen = _chosen(items)
    if task is Task.DEBUGGING:
        chosen.sort(key=lambda each: each.item.kind != MemoryKind.PITFALL)
    telling = _Telling(f"[hotset memory: {DATA}. {how}]", is_debugging=task is Task.DEBUGGING)
    for at, each in enumerate(chosen[:_TRIED]):
        forms = _forms(each, arrangement, layers.get(each.item.id, Layer.FULL), query)
        telling.show(each.item, forms, max_tokens if at == 0 else max_tokens - int(_RESERVED * max_tokens))
    for each in chosen[:_TRIED]:
        if each.item.id not in telling.shown:
            telling.show(each.item, [_short(each)], max_tokens)
    names = Counter(topic for each in chosen if each.item.id in telling.shown for topic in _topics(each.item))
    return Told(telling.text, count(telling.text) if telling.text else 0, tuple(names), telling.shown)


class _Telling:
    """What is told so far, and the room that there is."""

    def __init__(self, head: str, *, is_debugging: bool) -> None:
        self._head = head
        self._is_debugging = is_debugging
        self._told: list[tuple[str, str]] = []
        self.shown: dict[str, Layer] = {}
        self.text = ""

    def show(self, item: Item, forms: Iterable[_Form], room: int) -> None:
        """In the first form with which all stays within the room, or not at all."""
        heading = _AVOID if self._is_debugging and item.kind == MemoryKind.PITFALL else _FOUND
        for form in forms:
            longer = _rendered(self._head, [*self._told, (heading, form.text)])
            if count(longer) <= room:
                self._told.append((heading, form.text))
                self.shown[item.id] = form.layer
                self.text = longer
                return


def _chosen(items: Sequence[Item]) -> list[Collapsed[Item]]:
    """Without what may not be shown, what was said before, and more than two pieces of advice of a kind."""
    served = [item for item in items if item.memory is None or item.memory.standing in _SERVED]
    many: Counter[str] = Counter()
    chosen = []
    for each in collapsed(served, lambda item: item.text or item.title):
        many[each.item.kind] += 1
        if many[each.item.kind] <= _MOST_OF_KIND.get(each.item.kind, len(items)):
            chosen.append(each)
    return chosen


def _forms(each: Collapsed[Item], arrangement: Arrangement, layer: Layer, query: str) -> Iterator[_Form]:
    """From the largest that its layer allows to the smallest."""
    if layer is Layer.FULL or (layer is Layer.TIMELINE and count(each.item.text) <= _AS_SHORT):
        yield _Form(Layer.FULL, _in_full(each, arrangement, query))
    if layer is not Layer.INDEX:
        yield _Form(Layer.TIMELINE, _line(each, _TITLE))
    yield _short(each)


def _short(each: Collapsed[Item]) -> _Form:
    return _Form(Layer.INDEX, f"{_named(each.item, _SHORT_TITLE)} [{each.item.id}]".lstrip())


def _in_full(each: Collapsed[Item], arrangement: Arrangement, query: str) -> str:
    item = each.item
    text = as_data(item.text.strip() or item.title)
    before, behind = f"{_label(each)}: ", f" [{item.id}]"
    tokens = count(text)
    if tokens <= WHOLE:
        return f"{before}{_indented(text)}{behind}"
    behind = f" ({size(tokens)} tokens){behind}"
    room = arrangement.excerpt - count(f"- {before}{behind}")
    while room > 0:
        whole = f"{before}{as_data(excerpt(text, query, room))}{behind}"
        over = count(f"- {whole}") - arrangement.excerpt
        if over <= 0:
            return whole
        room -= over  # what stands side by side can come to a token more than it does apart
    return _line(each, _TITLE)


def _line(each: Collapsed[Item], most: int) -> str:
    return f"{_label(each)}: {_named(each.item, most)} [{each.item.id}]"


def _named(item: Item, most: int) -> str:
    return one_line(item.title or item.text, most)


def _label(each: Collapsed[Item]) -> str:
    """`pitfall 2026-01-05`, and whatever makes it worth less or more."""
    item, memory = each.item, each.item.memory
    said = [item.speaker if item.speaker and memory is None else item.kind, day(item.time)]
    if memory is not None:
        if memory.kind is MemoryKind.EPISODE and memory.ending not in _LABEL_WITHOUT:
            said.append(memory.ending)
        if memory.standing is Standing.SUPERSEDED:
            said.append(f"(replaced{f' {day(memory.valid_until)}' if memory.valid_until else ''})")
        if memory.trust is Trust.OUTSIDE:
            said.append("(quoted from outside)")
    if each.others:
        said.append(f"({len(each.others) + 1} times)")
    return " ".join(one_line(part, _TITLE) for part in said if part)


def _indented(text: str) -> str:
    """No line of a memory begins as a line of ours does."""
    return "\n  ".join(line.rstrip() for line in text.splitlines() if line.strip())


def _topics(item: Item) -> tuple[str, ...]:
    return item.memory.topics if item.memory is not None else ()


def _rendered(head: str, told: Sequence[tuple[str, str]]) -> str:
    lines = [head]
    for heading in dict.fromkeys(heading for heading, _ in told):
        lines.append(f"{heading}:")
        lines.extend(f"- {text}" for under, text in told if under == heading)
    return joined(lines)
