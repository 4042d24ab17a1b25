"""The encoding of each model, and the encodings themselves: tiktoken with vocabularies that come
with this package. The only file that knows tiktoken.

tiktoken is the reference for exactness, needs no more memory than any other (52 MB for o200k; tokie
52, rs-bpe 67, kitoken 74, bpe-openai 142) and releases the GIL while it counts. tokie is five times
as fast, but its data alone takes 14 MB on disk. tiktoken keeps memory for each thread that ever
counted: sharing long texts among short-lived threads took 100 MB more over six conversations.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from enum import StrEnum
from threading import Lock

from hotset.files.lru import CACHES, CacheSize
from hotset.nouns.pressure import PressureResponse


class Encoding(StrEnum):
    """A vocabulary of OpenAI."""

    O200K = "o200k"
    CL100K = "cl100k"


# openrouter's `openai/`, a deployment's path, the mark of a fine-tuned model
_VENDOR = re.compile(r"^(?:.*/|ft:)+")
_OF_OPENAI = re.compile(r"(chat)?gpt|o\d|codex|text-embedding-|computer-use")
_CL100K = re.compile(r"gpt-4(?![.o]|\d)|gpt-3\.?5|text-embedding-")


def encoding_of(model: str) -> Encoding:
    """The encoding to count in: the model's own if OpenAI published it, o200k for all others."""
    return Encoding.CL100K if _CL100K.match(_bare_name(model)) else Encoding.O200K


def is_exact(model: str) -> bool:
    """True if a count in `encoding_of(model)` is the provider's own count of that text."""
    return _OF_OPENAI.match(_bare_name(model)) is not None


def _bare_name(model: str) -> str:
    return _VENDOR.sub("", model.lower())


Encode = Callable[[str], list[int]]

# How a text is cut before its pieces are encoded, as OpenAI published it for each vocabulary.
_CUTS = {
    Encoding.CL100K: (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| "
        r"?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    Encoding.O200K: (
        r"[^\r\n"
        r"\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|"
        r"'re|'ve|'m|'ll|'d)?|"
        r"[^\r\n"
        r"\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|"
        r"'re|'ve|'m|'ll|'d)?|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}

_BYTES = {Encoding.O200K: 45_000_000, Encoding.CL100K: 22_000_000}


class LoadedEncodings:
    """The encodings in memory. They go after a long rest alone: one takes up to a third of a second
    to load. Thread-safe."""

    def __init__(self) -> None:
        self._loaded: dict[Encoding, Encode] = {}
        self._lock = Lock()
        CACHES.add(self)

    def find(self, encoding: Encoding) -> Encode | None:
        return self._loaded.get(encoding)

    def load(self, encoding: Encoding) -> Encode:
        with self._lock:
            found = self._loaded.get(encoding)
            if found is None:
                found = self._loaded[encoding] = _make(encoding)
            return found

    def respond(self, response: PressureResponse) -> None:
        if response.empties:
            self._loaded.clear()

    def cache_size(self) -> CacheSize:
        held = [_BYTES[each] for each in tuple(self._loaded)]
        return CacheSize("tokenizers", len(held), sum(held), len(Encoding), "entries", shrinks=True)


_encodings = LoadedEncodings()


def load(encoding: Encoding) -> Encode:
    """The function that turns a text into tokens; special tokens are read as plain text.
    Thread-safe."""
    return _encodings.find(encoding) or _encodings.load(encoding)


def is_loaded(encoding: Encoding = Encoding.O200K) -> bool:
    """True if a count in it begins at once."""
    return _encodings.find(encoding) is not None


def vocabulary(encoding: Encoding) -> list[bytes]:
    """The tokens' bytes by rank. File format: a count of four bytes, each token's length in a byte,
    then all tokens."""
    from importlib.resources import files  # noqa: PLC0415 - takes longer to import than all of this package

    packed = zlib.decompress(
        files("hotset.tokens").joinpath("data", f"{encoding}.bpe.z").read_bytes()
    )
    size = int.from_bytes(packed[:4], "big")
    tokens, here = [], 4 + size
    for length in packed[4:here]:
        tokens.append(packed[here : here + length])
        here += length
    return tokens


def _make(encoding: Encoding) -> Encode:
    # `tiktoken.Encoding` would keep the ranks as a dict beside its own copy: 15 MB more.
    from tiktoken._tiktoken import CoreBPE  # noqa: PLC0415 - most commands never count

    ranks = {token: rank for rank, token in enumerate(vocabulary(encoding))}
    encode: Encode = CoreBPE(ranks, {}, _CUTS[encoding]).encode_ordinary
    return encode
