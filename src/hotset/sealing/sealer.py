"""Seals secrets in text: one pass of one RE2 pattern, then a closer look at each match. Secrets
found once are found everywhere else: without a name beside them, or cut off at their end."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

import re2

from hotset.sealing.doubts import decode_base64
from hotset.sealing.secret_kinds import KINDS, SecretKind


class TextSpan(NamedTuple):
    """Characters of the text: `text[start:end]`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SecretMatch:
    """A secret's kind and place, without its value."""

    kind: str
    span: TextSpan


@dataclass(frozen=True, slots=True)
class SealedText:
    text: str = field(repr=False)
    """Each secret is replaced by its kind in brackets; everything else, line ends included, is
    unchanged."""
    found: tuple[SecretMatch, ...] = ()
    """The matches in order, with their places in the original text."""


def seal(text: str, known: KnownSecrets | None = None) -> SealedText:
    """The text with a placeholder for each secret, the same one for the same secret. `known` are
    secrets of other texts."""
    content = text.encode("utf-8", "surrogatepass")
    hits = _hits(content, known)
    if not hits:
        return SealedText(text)
    sealed, seams = _replace(content, hits)
    for _ in range(_ROUNDS):
        more = _hits(sealed, known)
        if not more:
            break
        hits = _merge_overlaps([*hits, *(_in_original(hit, seams) for hit in more)])
        sealed, seams = _replace(content, hits)
    return SealedText(sealed.decode("utf-8", "surrogatepass"), tuple(_in_characters(content, hits)))


_ROUNDS = 8  # after a secret is removed, the text right behind it begins a word and may be one too


def find(text: str) -> tuple[SecretMatch, ...]:
    """The secrets of a text, if the sealed text is not needed."""
    return seal(text).found


def gather(texts: Iterable[str]) -> KnownSecrets:
    """The secrets of many texts: a name beside one in one text identifies it bare in another."""
    kinds: dict[bytes, str] = {}
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        for hit in _by_pattern(content):
            kinds.setdefault(content[hit.start : hit.end], hit.kind)
    return KnownSecrets(kinds)


def _hits(content: bytes, known: KnownSecrets | None) -> list[PatternMatch]:
    """Matches of the pattern, and other occurrences of the same or known secrets."""
    hits = list(_by_pattern(content))
    if hits:
        again = KnownSecrets({content[hit.start : hit.end]: hit.kind for hit in reversed(hits)})
        hits = _merge_overlaps([*hits, *again.hits(content)])
    return _merge_overlaps([*hits, *known.hits(content)]) if known is not None else hits


def _by_pattern(content: bytes) -> Iterator[PatternMatch]:
    """Matches of the patterns: the finder gives candidate starts; a kind's own pattern and its
    checks decide, and give the end."""
    finder = _finder()
    at = 0
    while (start := _search(finder, content, at)) is not None:
        at = start + 1
        for kind in _kinds_from(content[start]):
            hit, beyond = _look(kind, content, start)
            at = max(at, beyond)
            if hit is not None:
                yield hit
                break


def _search(finder: re2._Regexp, content: bytes, at: int) -> int | None:
    match = finder.search(content, at)
    if match is None:
        return None
    start: int = match.start()
    return start


def _look(kind: SecretKind, content: bytes, start: int) -> tuple[PatternMatch | None, int]:
    """A secret of this kind that begins here, and the place to continue from."""
    match = _compile(kind.whole).match(content, start)
    if match is None:
        return None, start + 1
    first, end = match.span("secret")
    if kind.by_name:
        # A token with a shape of its own keeps its kind, whatever name is before it.
        for own in _kinds_from(content[first]):
            if (
                not own.by_name
                and (found := _look(own, content, first)[0]) is not None
                and found.start == first
            ):
                return found, found.end
    if not (_wraps(match) if kind.wraps else kind.holds(match)):
        return None, end if kind.wraps and content[first] == _PERCENT else max(start + 1, first)
    name = kind.name if isinstance(kind.name, str) else kind.name(match)
    return PatternMatch(first, end, name), end


def _wraps(match: re.Match[bytes]) -> bool:
    """True if the decoded value contains a secret. Inside base64 it can start at any offset of a
    group of four characters."""
    start, end = match.span("secret")
    if match["secret"][0] == _PERCENT:
        return any(True for _ in _by_pattern(unquote_to_bytes(match["secret"])))
    pieces = (match.string[at:end].rstrip(b"=") for at in (start, start - 2, start - 3) if at >= 0)
    texts = (decode_base64(piece[:-1] if len(piece) % 4 == 1 else piece) for piece in pieces)
    return any(True for inner in texts if inner is not None for _ in _by_pattern(inner))


_PERCENT = b"%"[0]


@cache
def _finder() -> re2._Regexp:
    options = re2.Options()
    options.max_mem = MEMORY
    options.encoding = re2.Options.Encoding.LATIN1  # bytes: invalid UTF-8 is searched too
    options.never_capture = True
    options.log_errors = False
    return re2.compile(b"|".join(b"(?:" + kind.head + b")" for kind in KINDS), options)


@cache
def _compile(pattern: bytes) -> re.Pattern[bytes]:
    """The compiled pattern, made on first use: most texts have secrets of few kinds."""
    return re.compile(pattern)


@cache
def _kinds_from(byte: int) -> tuple[SecretKind, ...]:
    return tuple(kind for kind in KINDS if byte in kind.begins)


def _merge_overlaps(hits: Iterable[PatternMatch]) -> list[PatternMatch]:
    """The matches in order, joined where they overlap."""
    apart: list[PatternMatch] = []
    for hit in sorted(hits, key=lambda hit: (hit.start, -hit.end)):
        if apart and hit.start < apart[-1].end:
            last = apart[-1]
            apart[-1] = last._replace(end=max(last.end, hit.end))
        else:
            apart.append(hit)
    return apart


class _Seam(NamedTuple):
    """A placeholder's place in sealed bytes, and the match it replaces."""

    start: int
    end: int
    hit: PatternMatch


def _replace(content: bytes, hits: Sequence[PatternMatch]) -> tuple[bytes, list[_Seam]]:
    """The content with placeholders, and their seams. Two different secrets of one kind get two
    names."""
    names: dict[tuple[str, bytes], bytes] = {}
    counts: dict[str, int] = {}
    pieces: list[bytes] = []
    seams: list[_Seam] = []
    at = size = 0
    for hit in hits:
        secret = content[hit.start : hit.end]
        name = names.get((hit.kind, secret))
        if name is None:
            counts[hit.kind] = counts.get(hit.kind, 0) + 1
            nth = f"-{counts[hit.kind]}" if counts[hit.kind] > 1 else ""
            name = names[hit.kind, secret] = f"[secret:{hit.kind}{nth}]".encode()
        shown = name + bytes(byte for byte in secret if byte in b"\r\n")
        start = size + hit.start - at
        size = start + len(shown)
        seams.append(_Seam(start, size, hit))
        pieces += (content[at : hit.start], shown)
        at = hit.end
    pieces.append(content[at:])
    return b"".join(pieces), seams


def _in_original(hit: PatternMatch, seams: Sequence[_Seam]) -> PatternMatch:
    """A match in sealed bytes, at its place in the original; a placeholder that it touches is part
    of it."""
    first = bisect_right(seams, hit.start, key=lambda seam: seam.end)
    behind = bisect_left(seams, hit.end, key=lambda seam: seam.start)
    start, end = hit.start + _shift(seams, first), hit.end + _shift(seams, behind)
    touched = seams[first:behind]
    if touched and touched[0].start < hit.start:
        start = touched[0].hit.start
    if touched and hit.end < touched[-1].end:
        end = touched[-1].hit.end
    return PatternMatch(start, end, hit.kind)


def _shift(seams: Sequence[_Seam], count: int) -> int:
    """Offset from sealed to original bytes after `count` placeholders."""
    return seams[count - 1].hit.end - seams[count - 1].end if count else 0


def _in_characters(content: bytes, hits: Sequence[PatternMatch]) -> Iterator[SecretMatch]:
    """The matches in characters: secrets are ASCII, the text between them need not be."""
    at = characters = 0
    for start, end, kind in hits:
        characters += len(content[at:start].decode("utf-8", "surrogatepass"))
        yield SecretMatch(kind, TextSpan(characters, characters + end - start))
        characters += end - start
        at = end


# limit of an automaton; with RE2's default 8 MB it was discarded and rebuilt on dense text
MEMORY = 64 << 20

# characters; a shorter secret could be part of any word, and a longer one has a shape of its own
_SHORTEST_KNOWN, _LONGEST_KNOWN = 8, 256
_HEAD_LENGTH = 16  # first characters that identify a longer one, so that a clipped one is found too
_MOST_KNOWN = 2000  # secrets searched at once; the longest ones


class PatternMatch(NamedTuple):
    """A secret in the bytes of a text."""

    start: int
    end: int
    kind: str


class KnownSecrets:
    """Secrets and their kinds. They are kept in memory only, and never shown."""

    def __init__(self, kinds: Mapping[bytes, str]) -> None:
        fit = sorted(
            (
                each
                for each in kinds
                if _SHORTEST_KNOWN <= len(each) <= _LONGEST_KNOWN and b"\n" not in each
            ),
            key=len,
            reverse=True,
        )
        self._kinds = {each: kinds[each] for each in fit[:_MOST_KNOWN]}
        self._by_head: dict[bytes, list[bytes]] = {}
        for each in self._kinds:
            self._by_head.setdefault(each[:_HEAD_LENGTH], []).append(each)
        self._parts = b"\n".join(piece for each in kinds for piece in _pieces(each)).lower()
        self._finder = _alternatives(self._by_head) if self._by_head else None

    def hits(self, content: bytes) -> Iterator[PatternMatch]:
        if self._finder is None:
            return
        for match in self._finder.finditer(content):
            start = match.start()
            secret, shared = max(
                (
                    (each, _shared_length(each, content, start))
                    for each in self._by_head[match.group()]
                ),
                key=lambda found: found[1],
            )
            yield PatternMatch(start, start + shared, self._kinds[secret])

    def has_part(self, word: str) -> bool:
        """True if this word is long enough to matter and part of one of the secrets."""
        return (
            len(word) >= _SHORTEST_KNOWN - 2
            and word.lower().encode("utf-8", "surrogatepass") in self._parts
        )


def _pieces(secret: bytes) -> Iterator[bytes]:
    """A secret of one line, or the lines of a block that are secret throughout: not `-----BEGIN`,
    nor `Version: 2`."""
    lines = [line.strip(b" \t\"'+") for line in _LINE_ENDS.split(secret)]
    return (
        line for line in lines if len(lines) == 1 or not (line.startswith(b"-") or b" " in line)
    )


_LINE_ENDS = re.compile(rb"(?:[\r\n]|\\{1,31}[nr])+")  # JSON escapes them


def _alternatives(heads: Mapping[bytes, object]) -> re2._Regexp:
    """A pattern for all heads, the longest first: of two with the same beginning the longer one
    matches."""
    options = re2.Options()
    options.max_mem = MEMORY
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    pattern = b"|".join(map(re2.escape, sorted(heads, key=len, reverse=True)))
    return re2._Regexp(pattern, options)  # noqa: SLF001 - `compile` would keep the pattern, and it is made of secrets


def _shared_length(secret: bytes, content: bytes, start: int) -> int:
    """Number of leading bytes of the secret that are here."""
    here = content[start : start + len(secret)]
    if here == secret:
        return len(secret)
    return next(
        (at for at, (a, b) in enumerate(zip(secret, here, strict=False)) if a != b), len(here)
    )
