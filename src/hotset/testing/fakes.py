"""Small fakes: a clock that moves only on request, and an embedder without weights."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotset.index.embed.port import Vectors


class Clock:
    """Call it to read it, like `time.time`. Safe to move from one thread while another reads."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._now = now
        self._lock = Lock()

    def __call__(self) -> float:
        with self._lock:
            return self._now

    def advance(self, seconds: float) -> float:
        """Move forward, or back if `seconds` is negative, as real clocks do too. Returns the new
        time."""
        with self._lock:
            self._now += seconds
            return self._now

    def set(self, now: float) -> None:
        with self._lock:
            self._now = now


_WORD = re.compile(r"[a-z0-9]+")


class HashingEmbedder:
    """Each word has a direction drawn from its hash; a text's vector is their sum."""

    def __init__(self, size: int = 384, name: str = "hashing-1") -> None:
        self._size = size
        self._name = name
        self._directions: dict[str, Any] = {}

    @property
    def id(self) -> str:
        return f"{self._name}/{self._size}"

    @property
    def size(self) -> int:
        return self._size

    def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np  # noqa: PLC0415 - heavy, and only here

        made = np.zeros((len(texts), self._size), np.float32)
        for at, text in enumerate(texts):
            for word in _WORD.findall(text.lower()):
                if word not in self._directions:
                    random = np.random.Generator(
                        np.random.PCG64(zlib.crc32(f"{self._name} {word}".encode()))
                    )
                    self._directions[word] = random.standard_normal(self._size).astype(np.float32)
                made[at] += self._directions[word]
            made[at] /= max(float(np.linalg.norm(made[at])), 1e-9)
        return made
