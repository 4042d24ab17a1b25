"""Memories and their links, drawn: as a tree of lines, and for Graphviz. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from hotset.nouns.memory import MemoryId, MemoryLink, MemoryRecord, Relation, Standing
from hotset.sources.memory import KINDS
from hotset.surfaces.cli.memory_telling import relation, title

_LONGEST_LABEL = 60
_STYLES = {
    Relation.DERIVED_FROM: "solid",
    Relation.RELATED_TO: "dotted",
    Relation.CONTRADICTS: "bold",
    Relation.SUPERSEDES: "dashed",
}


def tree(
    memories: Sequence[MemoryRecord], links: Sequence[MemoryLink], root: MemoryId | None = None
) -> Iterator[str]:
    """Line by line, each link once: below the root where one is named, otherwise below whichever
    memory comes first."""
    known = {memory.id: memory for memory in memories}
    drawing = _Drawing(known, _beside(links))
    for id in [root] if root is not None else [memory.id for memory in memories]:
        if id not in drawing.opened:
            yield _named(id, known)
            yield from drawing.branches(id)


def dot(memories: Sequence[MemoryRecord], links: Sequence[MemoryLink]) -> str:
    lines = [
        "digraph memories {",
        "  rankdir=LR;",
        '  node [shape=box, style=rounded, fontname="sans-serif"];',
    ]
    for memory in memories:
        shape = "rounded" if memory.standing is Standing.ACTIVE else "rounded,dashed"
        label = f"{memory.id}\n{title(memory)[:_LONGEST_LABEL]}"
        lines.append(
            f"  {_quoted(memory.id)} [label={_quoted(label)}, "
            f'color="{KINDS[memory.kind].colour or "gray"}", style="{shape}"];'
        )
    for link in links:
        about = f'label="{link.relation}", style={_STYLES[link.relation]}'
        lines.append(f"  {_quoted(link.of)} -> {_quoted(link.to)} [{about}];")
    return "\n".join([*lines, "}"])


def _beside(links: Sequence[MemoryLink]) -> dict[MemoryId, list[MemoryLink]]:
    found: dict[MemoryId, list[MemoryLink]] = {}
    for link in links:
        for end in dict.fromkeys((link.of, link.to)):
            found.setdefault(end, []).append(link)
    return found


class _Drawing:
    """What is drawn already is not drawn again."""

    def __init__(
        self,
        known: Mapping[MemoryId, MemoryRecord],
        beside: Mapping[MemoryId, Sequence[MemoryLink]],
    ) -> None:
        self.opened: set[MemoryId] = set()
        self._known = known
        self._beside = beside
        self._drawn: set[MemoryLink] = set()

    def branches(self, id: MemoryId) -> Iterator[str]:
        """Without recursion: a chain of facts that replaced each other may be longer than Python's
        stack."""
        stack = self._open(id, "")
        while stack:
            indent, here, link, is_last = stack.pop()
            other = link.to if link.of == here else link.of
            again = " (above)" if other in self.opened else ""
            yield (
                f"{indent}{'└─' if is_last else '├─'} {relation(link, here)} "
                f"{_named(other, self._known)}{again}"
            )
            if not again:
                stack += self._open(other, indent + ("   " if is_last else "│  "))

    def _open(self, id: MemoryId, indent: str) -> list[tuple[str, MemoryId, MemoryLink, bool]]:
        """The links below a memory, the last of them first."""
        self.opened.add(id)
        links = [link for link in self._beside.get(id, ()) if link not in self._drawn]
        self._drawn.update(links)
        return [(indent, id, link, link is links[-1]) for link in reversed(links)]


def _named(id: MemoryId, known: Mapping[MemoryId, MemoryRecord]) -> str:
    memory = known.get(id)
    return f"[{id}]" if memory is None else f"[{id}] {title(memory)}"


def _quoted(text: str) -> str:
    """As Graphviz reads strings: JSON's escapes of quotes and newlines are its own."""
    return json.dumps(text, ensure_ascii=False)
