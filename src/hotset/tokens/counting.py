"""Counts: any text, of any size, in bounded time, and a text that was counted before at the price
of its hash."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b

from hotset.files.lru import Lru
from hotset.tokens.encodings import load
from hotset.tokens.models import Encoding

# characters; the library recurses over a run of spaces and gives up somewhere above three times
# this
_SLICE = 1 << 15
_NEAR = 1 << 10  # a cut is sought in so many characters first: it is nearly always there
# Where an encoding always begins a new token: behind a word or number that something else than a
# letter follows (a contraction is one with its word), and at the begin of a line.
_SEAM = re.compile(r"[A-Za-z0-9](?=[\x00-&(-/:-@\[-`{-\x7f])|\n(?=[^\s/])")
_WORTH_REMEMBERING = 512  # bytes; below this a count takes little longer than the hash
_MOST_REMEMBERED = 1 << 14  # pages of some dozen long sessions, in about 4 MB

_remembered: Lru[bytes, int] = Lru(count=_MOST_REMEMBERED)


def count(text: str | bytes, encoding: Encoding = Encoding.O200K) -> int:
    """The tokens of a text by itself. Never raises for what the text is: broken UTF-8 counts as the
    sign for it."""
    if len(text) < _WORTH_REMEMBERING:
        return _count(text, encoding)
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    key = blake2b(data, digest_size=16, person=encoding.encode()).digest()
    return _remembered.get_or_make(key, lambda: _count(text, encoding))


def warm(encoding: Encoding = Encoding.O200K) -> None:
    """Loads an encoding ahead of its first use."""
    load(encoding)


def _count(text: str | bytes, encoding: Encoding) -> int:
    encode = load(encoding)
    return sum(len(encode(piece)) for piece in _slices(_readable(text)))


def _readable(text: str | bytes) -> str:
    """Text without halves of surrogate pairs, which no encoding takes."""
    if isinstance(text, bytes):
        return text.decode("utf-8", "replace")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _slices(text: str) -> Iterator[str]:
    """The text in pieces whose counts add up to its own. Only a slice without any seam (one endless
    word) is cut anywhere."""
    here = 0
    while len(text) - here > _SLICE:
        end = _seam(text, here, here + _SLICE)
        yield text[here:end]
        here = end
    yield text[here:]


def _seam(text: str, begin: int, end: int) -> int:
    for near in (end - _NEAR, begin):
        ends = [found.end() for found in _SEAM.finditer(text, near, end)]
        if ends:
            return ends[-1]
    return end
