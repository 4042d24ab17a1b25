"""What memories are called: the same memory gets the same id on any machine, however often it is made."""

from __future__ import annotations

import re
from base64 import b32encode
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b

from hotset.nouns.memory import Memory, MemoryId, MemoryKind

PREFIXES: dict[MemoryKind, str] = {
    MemoryKind.EPISODE: "ep",
    MemoryKind.FACT: "sem",
    MemoryKind.PROCEDURE: "proc",
    MemoryKind.PITFALL: "pit",
    MemoryKind.LEDGER: "led",
    MemoryKind.HANDOFF: "hand",
    MemoryKind.LEARNING: "learn",
    MemoryKind.ARRANGEMENT: "arr",
}
_KINDS = {prefix: kind for kind, prefix in PREFIXES.items()}
_ID = re.compile(rf"(?:{'|'.join(_KINDS)})-[a-z0-9][a-z0-9-]{{0,60}}")
_HASH_BYTES = 5  # 40 bits: with 100,000 memories of a kind, 0.005 collisions are to be expected


def memory_id(kind: MemoryKind, key: str, created: float = 0.0) -> MemoryId:
    """`key` says what it is about, as no other memory of its kind does; an episode's id also says the day."""
    hashed = blake2b(f"{kind}\0{key}".encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()
    name = b32encode(hashed).decode().lower()
    day = f"{datetime.fromtimestamp(created, UTC):%Y-%m-%d}-" if kind is MemoryKind.EPISODE else ""
    return MemoryId(f"{PREFIXES[kind]}-{day}{name}")


def is_memory_id(text: str) -> bool:
    """Does it look like one? Ids of other programs (`sem-001`) do, too."""
    return _ID.fullmatch(text) is not None


def ids_in(text: str) -> list[MemoryId]:
    """The memories that a text refers to as `[sem-001]`, in their order, each once."""
    return list(dict.fromkeys(MemoryId(found) for found in re.findall(rf"\[({_ID.pattern})\]", text)))


def kind_of(id: MemoryId) -> MemoryKind | None:
    return _KINDS.get(id.split("-", 1)[0])


def is_same(one: Memory, other: Memory) -> bool:
    """Do both say the same? When it was written, by which work and as which version makes no difference."""
    return _said(one) == _said(other)


def _said(memory: Memory) -> Memory:
    return replace(memory, time=0.0, version=0, run="", why="")
