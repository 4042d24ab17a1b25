"""What became of something that was to be remembered, in a sentence for whoever asked for it."""

from __future__ import annotations

from collections.abc import Sequence

from hotset.nouns.memory import Memory, MemoryLink, Relation, Standing

_DID = {Relation.SUPERSEDES: "replaced", Relation.CONTRADICTS: "contradicts"}


def became(memory: Memory, links: Sequence[MemoryLink], begun: float) -> str:
    """`begun` is when it was asked for: what is older was there before."""
    told = [f"{'kept' if memory.time >= begun else 'known already'} as [{memory.id}]"]
    for relation, did in _DID.items():
        others = [link.to for link in links if link.of == memory.id and link.relation is relation and link.time >= begun]
        told += [f"{did} {', '.join(f'[{other}]' for other in others)}"] if others else []
    if memory.standing is Standing.CANDIDATE:
        told.append(f"waits for confirmation by a person: hotset memory confirm {memory.id}")
    return "; ".join(told)
