"""Episodes that are alike: in what was wanted, the files and topics they had to do with, and what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice

import numpy as np

from hotset.nouns.memory import Episode, Memory, MemoryId
from hotset.sources.memory.managing.nearness import Vectors, leaders, sketch
from hotset.sources.memory.managing.steps import trouble_key

Embed = Callable[[Sequence[str]], Vectors]
"""Texts to vectors of length 1 (or 0): an `Embedder`'s `embed`."""

_GOAL, _TRAITS = 0.65, 0.35  # what the two parts of a vector say of how alike two episodes are
_SKETCH = 128
_MOST_SAID = 600  # characters of a goal: what follows is material
_BATCH = 256
_TOPIC, _FILE, _ARTIFACT, _TROUBLE = 1.0, 1.0, 2.0, 2.0
_MOST_FILES = 24


@dataclass(frozen=True, slots=True)
class Cluster:
    leader: MemoryId
    """The earliest of them; later episodes do not change it."""
    members: tuple[MemoryId, ...]
    """In the order of their time, with the leader."""


def clusters_of(episodes: Iterable[Memory], embed: Embed, least: float) -> list[Cluster]:
    """Every episode in one cluster of those at least so much alike, most of them alone. The same, in whatever order they come.

    Takes the memory of the vectors (1 KB an episode) and of one batch of episodes.
    """
    ids: list[tuple[float, MemoryId]] = []
    parts: list[Vectors] = []
    stream = iter(episodes)
    while batch := list(islice(stream, _BATCH)):
        ids.extend((memory.created, memory.id) for memory in batch)
        parts.append(vectors_of(batch, embed).astype(np.float16))
    if not ids:
        return []
    order = sorted(range(len(ids)), key=ids.__getitem__)
    vectors = np.concatenate(parts)[order]
    del parts
    grouped: dict[int, list[MemoryId]] = {}
    for row, leader in enumerate(leaders(vectors, least)):
        grouped.setdefault(leader, []).append(ids[order[row]][1])
    return [Cluster(members[0], tuple(members)) for members in grouped.values()]


def vectors_of(episodes: Sequence[Memory], embed: Embed) -> Vectors:
    """Of length 1 (or 0): what was wanted beside what it had to do with. An episode without the one is told by the other."""
    goals = embed([_goal(memory)[:_MOST_SAID] for memory in episodes])
    traits = sketch([_traits(memory) for memory in episodes], _SKETCH)
    both = np.concatenate((goals * np.sqrt(_GOAL), traits * np.sqrt(_TRAITS)), axis=1, dtype=np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", both, both))[:, None]
    np.divide(both, lengths, out=both, where=lengths > 0)
    return both


def _goal(memory: Memory) -> str:
    return memory.detail.goal if isinstance(memory.detail, Episode) and memory.detail.goal else memory.title


def _traits(memory: Memory) -> list[tuple[int, float]]:
    named = [(f"topic {topic}", _TOPIC) for topic in memory.topics]
    if isinstance(memory.detail, Episode):
        named += [(f"file {path}", _FILE) for path in memory.detail.files[:_MOST_FILES]]
        named += [(f"file {path}", _ARTIFACT) for path in memory.detail.artifacts[:_MOST_FILES]]
        named += [(f"trouble {trouble_key(trouble)}", _TROUBLE) for trouble in memory.detail.troubles]
    return [
        (int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()), weight) for name, weight in named
    ]
