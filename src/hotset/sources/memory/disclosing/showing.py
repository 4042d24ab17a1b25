"""The third layer: memories whole where they are short, as an excerpt where they are long, in a line where they are old."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from hotset.nouns.memory import Arrangement, Ending, Episode, Layer, Memory, MemoryKind, Standing, Task, Trust
from hotset.sources.memory.disclosing.collapsing import Collapsed, collapsed, fresh
from hotset.sources.memory.disclosing.excerpting import excerpt
from hotset.sources.memory.disclosing.lines import IN_THE_INDEX, WHOLE, line, line_of, name_of
from hotset.sources.memory.disclosing.telling import DATA, HOW, Told, as_data, day, joined, one_line, size
from hotset.sources.memory.recalling.asked_of import asks_the_model
from hotset.tokens import count

_MOST_OF_KIND: Mapping[str, int] = {MemoryKind.PROCEDURE: 2, MemoryKind.PITFALL: 2}  # more advice is not followed
_AS_SHORT = 40  # tokens of a text that is no longer than the line which would stand for it
_SERVED = frozenset({Standing.ACTIVE, Standing.SUPERSEDED})
_AVOID, _FOUND = "Avoid", "Remembered"
_TITLE = 100  # characters of a line
_SHORT_TITLE = 40
_TRIED = 64  # items, best first
_RESERVED = 0.2  # of the room at most, to name what there is no room to show
_MODELS_SHARE = 0.15
"""Of the room, for what models said, where nobody asks for that, and room for one excerpt in any case. On public conversations
their words are nine tenths of all and hold a fiftieth of the evidence; between 0.1 and 0.2 it makes no difference of a point."""
_MODEL = "assistant"
_LEAST_ROOM = 16  # tokens: no line is shorter
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
    beside: Iterable[Item] = (),
) -> Told:
    """The best first, each in the largest form that its layer and the room allow; pitfalls before all else when debugging.

    What `layers` does not name is shown in full. What is only a candidate, merged or forgotten is never shown. What was said
    `beside` the items fills the room that they leave; what models said may take a part of it, the rest of that is named.
    """
    chosen = _chosen(items)
    if task is Task.DEBUGGING:
        chosen.sort(key=lambda each: each.item.kind != MemoryKind.PITFALL)
    chosen = chosen[:_TRIED]
    telling = _Telling(f"[hotset memory: {DATA}. {how}]", max_tokens, is_debugging=task is Task.DEBUGGING)
    telling.will_name(chosen)
    models = max_tokens if asks_the_model(query) else max(arrangement.excerpt, int(_MODELS_SHARE * max_tokens))
    for at, each in enumerate(chosen):
        forms = _forms(each, arrangement, layers.get(each.item.id, Layer.FULL), query)
        most = models if _is_models(each.item) else max_tokens
        took = telling.show(each.item, forms, most, is_best=at == 0)
        models -= took if _is_models(each.item) else 0
    for item in fresh(islice(beside, _TRIED), [each.item for each in chosen if each.item.id in telling.shown], _words):
        if telling.left < _LEAST_ROOM:
            break
        form = _Form(Layer.FULL, _in_full(Collapsed(item), arrangement, query))
        took = telling.show(item, [form], models if _is_models(item) else max_tokens)
        models -= took if _is_models(item) else 0
    telling.name_the_rest()
    names = Counter(topic for each in chosen if each.item.id in telling.shown for topic in _topics(each.item))
    text = telling.text
    return Told(text, count(text) if text else 0, tuple(names), telling.shown)


class _Telling:
    """What is told so far, and the room that is left when what is still to be named has been named.

    Lines are counted one by one, each with its end: no token reaches from one line into the next.
    """

    def __init__(self, head: str, room: int, *, is_debugging: bool) -> None:
        self._head = head
        self._room = room
        self._is_debugging = is_debugging
        self._told: list[tuple[str, str]] = []
        self._tokens = _tokens_of(head)
        self._unnamed: dict[str, tuple[Item, _Form, int]] = {}
        self.shown: dict[str, Layer] = {}

    @property
    def left(self) -> int:
        reserved = sum(tokens for _, _, tokens in self._unnamed.values())
        return self._room - self._tokens - min(reserved, int(_RESERVED * self._room))

    @property
    def text(self) -> str:
        return _rendered(self._head, self._told) if self._told else ""

    def will_name(self, chosen: Iterable[Collapsed[Item]]) -> None:
        for each in chosen:
            form = _short(each)
            self._unnamed[each.item.id] = (each.item, form, _tokens_of(f"- {form.text}"))

    def show(self, item: Item, forms: Iterable[_Form], most: int, *, is_best: bool = False) -> int:
        """In the first form that the room allows, and `most`; otherwise not at all. The tokens that it took.

        The best one may take what is reserved, too.
        """
        kept = self._unnamed.pop(item.id, None)
        heading = _AVOID if self._is_debugging and item.kind == MemoryKind.PITFALL else _FOUND
        first = 0 if any(heading == known for known, _ in self._told) else _tokens_of(f"{heading}:")
        room = min(most, self._room - self._tokens if is_best else self.left)
        for form in forms:
            tokens = first + _tokens_of(f"- {form.text}")
            if tokens <= room:
                self._told.append((heading, form.text))
                self.shown[item.id] = form.layer
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


def _is_models(item: Item) -> bool:
    return item.memory is None and item.speaker == _MODEL


def _chosen(items: Sequence[Item]) -> list[Collapsed[Item]]:
    """Without what may not be shown, what was said before, and more than two pieces of advice of a kind."""
    served = [item for item in items if item.memory is None or item.memory.standing in _SERVED]
    many: Counter[str] = Counter()
    chosen = []
    for each in collapsed(served, _words):
        many[each.item.kind] += 1
        if many[each.item.kind] <= _MOST_OF_KIND.get(each.item.kind, len(items)):
            chosen.append(each)
    return chosen


def _words(item: Item) -> str:
    return item.text or item.title


def _forms(each: Collapsed[Item], arrangement: Arrangement, layer: Layer, query: str) -> Iterator[_Form]:
    """From the largest that its layer allows to the smallest."""
    if layer is Layer.FULL or (layer is Layer.TIMELINE and count(each.item.text) <= _AS_SHORT):
        yield _Form(Layer.FULL, _in_full(each, arrangement, query))
    if layer is not Layer.INDEX:
        yield _Form(Layer.TIMELINE, _line(each))
    yield _short(each)


def _short(each: Collapsed[Item]) -> _Form:
    item = each.item
    words = item.title or item.text
    name = line(words, count(item.text), IN_THE_INDEX, most=_SHORT_TITLE) if item.memory is None else name_of(item.memory)
    return _Form(Layer.INDEX, f"{name} [{item.id}]".lstrip())


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
    return _line(each)


def _line(each: Collapsed[Item]) -> str:
    item = each.item
    words = line(item.title or item.text, count(item.text)) if item.memory is None else line_of(item.memory)
    return f"{_label(each)}: {words} [{item.id}]"


def _label(each: Collapsed[Item]) -> str:
    """`pitfall 2026-01-05`, and whatever makes it worth less or more."""
    item, memory = each.item, each.item.memory
    said = [item.speaker if item.speaker and memory is None else item.kind, day(item.time)]
    if memory is not None:
        if memory.kind is MemoryKind.EPISODE and memory.ending not in _LABEL_WITHOUT:
            said.append(memory.ending)
        if memory.standing is Standing.SUPERSEDED:
            said.append(f"(replaced{f' {day(memory.valid_until)}' if memory.valid_until else ''})")
        if memory.trust is Trust.OUTSIDE or (isinstance(memory.detail, Episode) and memory.detail.quoted):
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
