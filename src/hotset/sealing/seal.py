"""Text without its secrets: one pass of one RE2 pattern over all of it, then a closer look at each
place where it stopped. Secrets that were found once are found wherever else they stand: without a
name beside them, or cut off at their end."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

import re2

from hotset.sealing.doubts import decoded
from hotset.sealing.secret_kinds import KINDS, SecretKind


class TextSpan(NamedTuple):
    """Characters of the text: `text[start:end]`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SecretMatch:
    """A secret's kind and place. What it says is not kept."""

    kind: str
    span: TextSpan


@dataclass(frozen=True, slots=True)
class SealedText:
    text: str = field(repr=False)
    """Each secret is replaced by its kind in brackets; everything else, and every line end, is as
    it was."""
    found: tuple[SecretMatch, ...] = ()
    """In the order of the text it was made from, whose places they tell."""


def seal(text: str, known: KnownSecrets | None = None) -> SealedText:
    """The text with a placeholder for each secret: the same one wherever the same secret stands.
    `known` are others' secrets."""
    content = text.encode("utf-8", "surrogatepass")
    hits = _hits(content, known)
    if not hits:
        return SealedText(text)
    sealed, seams = _replaced(content, hits)
    for _ in range(_ROUNDS):
        more = _hits(sealed, known)
        if not more:
            break
        hits = _apart([*hits, *(_in_original(hit, seams) for hit in more)])
        sealed, seams = _replaced(content, hits)
    return SealedText(sealed.decode("utf-8", "surrogatepass"), tuple(_in_characters(content, hits)))


_ROUNDS = (
    8  # where a secret was taken out, what stood right behind it begins a word and may be one, too
)


def find(text: str) -> tuple[SecretMatch, ...]:
    """The secrets of a text, for those who need no text without them."""
    return seal(text).found


def gather(texts: Iterable[str]) -> KnownSecrets:
    """The secrets of many texts: one of them may tell by a name beside it what stands bare in
    another."""
    kinds: dict[bytes, str] = {}
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        for hit in _by_pattern(content):
            kinds.setdefault(content[hit.start : hit.end], hit.kind)
    return KnownSecrets(kinds)


def _hits(content: bytes, known: KnownSecrets | None) -> list[PatternMatch]:
    """What the pattern finds, and the same secrets, or known ones, where they stand without
    anything that tells them."""
    hits = list(_by_pattern(content))
    if hits:
        again = KnownSecrets({content[hit.start : hit.end]: hit.kind for hit in reversed(hits)})
        hits = _apart([*hits, *again.hits(content)])
    return _apart([*hits, *known.hits(content)]) if known is not None else hits


def _by_pattern(content: bytes) -> Iterator[PatternMatch]:
    """The pattern finds where a secret may begin; a kind's own pattern and its doubts say whether
    one does, and where it ends."""
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
    """A secret of this kind that begins here, and from where to look on."""
    match = _compiled(kind.whole).match(content, start)
    if match is None:
        return None, start + 1
    first, end = match.span("secret")
    if kind.by_name:
        for own in _kinds_from(
            content[first]
        ):  # a token with a shape of its own keeps its kind, whatever name stands before it
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
    """Is there a secret in what it says? What is found inside base64 may stand anywhere in a group
    of its four characters."""
    start, end = match.span("secret")
    if match["secret"][0] == _PERCENT:
        return any(True for _ in _by_pattern(unquote_to_bytes(match["secret"])))
    pieces = (match.string[at:end].rstrip(b"=") for at in (start, start - 2, start - 3) if at >= 0)
    texts = (decoded(piece[:-1] if len(piece) % 4 == 1 else piece) for piece in pieces)
    return any(True for inner in texts if inner is not None for _ in _by_pattern(inner))


_PERCENT = b"%"[0]


@cache
def _finder() -> re2._Regexp:
    options = re2.Options()
    options.max_mem = MEMORY
    options.encoding = (
        re2.Options.Encoding.LATIN1
    )  # bytes: what is not valid UTF-8 is text all the same
    options.never_capture = True
    options.log_errors = False
    return re2.compile(b"|".join(b"(?:" + kind.head + b")" for kind in KINDS), options)


@cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    """When it is first needed: most texts have secrets of no kind or of few."""
    return re.compile(pattern)


@cache
def _kinds_from(byte: int) -> tuple[SecretKind, ...]:
    return tuple(kind for kind in KINDS if byte in kind.begins)


def _apart(hits: Iterable[PatternMatch]) -> list[PatternMatch]:
    """In order, and joined where they overlap."""
    apart: list[PatternMatch] = []
    for hit in sorted(hits, key=lambda hit: (hit.start, -hit.end)):
        if apart and hit.start < apart[-1].end:
            last = apart[-1]
            apart[-1] = last._replace(end=max(last.end, hit.end))
        else:
            apart.append(hit)
    return apart


class _Seam(NamedTuple):
    """Where a placeholder stands in sealed bytes, and what it stands for."""

    start: int
    end: int
    hit: PatternMatch


def _replaced(content: bytes, hits: Sequence[PatternMatch]) -> tuple[bytes, list[_Seam]]:
    """Two secrets of one kind get two names, so that a reader can tell that they differ."""
    names: dict[tuple[str, bytes], bytes] = {}
    told: dict[str, int] = {}
    pieces: list[bytes] = []
    seams: list[_Seam] = []
    at = size = 0
    for hit in hits:
        secret = content[hit.start : hit.end]
        name = names.get((hit.kind, secret))
        if name is None:
            told[hit.kind] = told.get(hit.kind, 0) + 1
            nth = f"-{told[hit.kind]}" if told[hit.kind] > 1 else ""
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
    """A secret of sealed bytes where it stands in the bytes they were made from; a placeholder that
    it touches is part of it."""
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
    """How far the original is ahead of the sealed bytes behind so many placeholders."""
    return seams[count - 1].hit.end - seams[count - 1].end if count else 0


def _in_characters(content: bytes, hits: Sequence[PatternMatch]) -> Iterator[SecretMatch]:
    """Secrets are ASCII; what stands between them need not be."""
    at = characters = 0
    for start, end, kind in hits:
        characters += len(content[at:start].decode("utf-8", "surrogatepass"))
        yield SecretMatch(kind, TextSpan(characters, characters + end - start))
        characters += end - start
        at = end


# what an automaton may take; with RE2's usual 8 MB it was thrown away and built anew on dense text
MEMORY = 64 << 20

_SHORTEST_KNOWN, _LONGEST_KNOWN = (
    8,
    256,
)  # characters; a shorter one could be part of any word, and a longer one has a shape of its own
_HEAD_LENGTH = 16  # characters with which a longer one is recognised, so that a clipped one is, too
_MOST_KNOWN = 2000  # what is looked for at once; the longest ones


class PatternMatch(NamedTuple):
    """A secret in the bytes of a text."""

    start: int
    end: int
    kind: str


class KnownSecrets:
    """Secrets and their kinds. They are kept in memory alone, and not shown."""

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
                ((each, _shared(each, content, start)) for each in self._by_head[match.group()]),
                key=lambda found: found[1],
            )
            yield PatternMatch(start, start + shared, self._kinds[secret])

    def has_part(self, word: str) -> bool:
        """Is this word, long enough to tell anything, a part of one of them?"""
        return (
            len(word) >= _SHORTEST_KNOWN - 2
            and word.lower().encode("utf-8", "surrogatepass") in self._parts
        )


def _pieces(secret: bytes) -> Iterator[bytes]:
    """A secret of one line, or the lines of a block of them that are nothing but secret: not
    `-----BEGIN`, nor `Version: 2`."""
    lines = [line.strip(b" \t\"'+") for line in _LINE_ENDS.split(secret)]
    return (
        line for line in lines if len(lines) == 1 or not (line.startswith(b"-") or b" " in line)
    )


_LINE_ENDS = re.compile(rb"(?:[\r\n]|\\{1,31}[nr])+")  # in JSON they are written out


def _alternatives(heads: Mapping[bytes, object]) -> re2._Regexp:
    """The longest first: of two that begin alike the whole of the longer one is meant."""
    options = re2.Options()
    options.max_mem = MEMORY
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    pattern = b"|".join(map(re2.escape, sorted(heads, key=len, reverse=True)))
    return re2._Regexp(pattern, options)  # noqa: SLF001 - `compile` would keep the pattern, and it is made of secrets


def _shared(secret: bytes, content: bytes, start: int) -> int:
    """How many bytes of the secret stand here."""
    here = content[start : start + len(secret)]
    if here == secret:
        return len(secret)
    return next(
        (at for at, (a, b) in enumerate(zip(secret, here, strict=False)) if a != b), len(here)
    )
