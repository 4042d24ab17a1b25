"""Cuts a file into searchable stretches where symbols begin and end, so that each is about one
thing.

Every line is in exactly one chunk, and no chunk is empty. Very long lines are cut too: joined, the
chunks are the text again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from hotset.nouns.search import Entry, EntryId, Sort
from hotset.sources.code.symbols import CodeSymbol, visible
from hotset.text.languages import Language

MOST_ROWS = 60  # a screenful; most functions are shorter
GOOD_ROWS = 40  # small stretches are joined up to here
FEW_ROWS = 10  # what is shorter says too little by itself
MOST_CHARACTERS = (
    6000  # about 1,500 tokens: more would not be shown, and its vector would mean everything
)
LONGEST_ROW = 3000
_LONGEST_TITLE = 400
_DEEPEST = 40  # symbols in symbols; what is deeper is part of what is around it


@dataclass(frozen=True, slots=True)
class TextRows:
    """Lines, and pieces of lines that are too long."""

    texts: Sequence[str]
    """Each with its line end; joined they are the text."""
    lines: Sequence[int]
    """The line number of each row, from 1; pieces of a line share it."""

    def __len__(self) -> int:
        return len(self.texts)

    def text(self, first: int, end: int) -> str:
        return "".join(self.texts[first:end])


@dataclass(frozen=True, slots=True)
class Chunk:
    """A range of rows. The caller knows the file and its text."""

    first: int
    """Its first row, from 0."""
    end: int
    """The row after its last one."""
    title: str = ""
    """The scope it is part of, and the signatures that begin in it."""


def rows(text: str) -> TextRows:
    whole = [f"{line}\n" for line in text.split("\n")]
    whole[-1] = whole[-1][:-1]
    if not whole[-1]:
        whole.pop()
    if max(map(len, whole), default=0) <= LONGEST_ROW:
        return TextRows(whole, range(1, len(whole) + 1))
    pieces = [
        (line[at : at + LONGEST_ROW], number)
        for number, line in enumerate(whole, 1)
        for at in range(0, len(line), LONGEST_ROW)
    ]
    return TextRows([piece for piece, _ in pieces], [number for _, number in pieces])


def chunks(text: str, symbols: Sequence[CodeSymbol]) -> tuple[Chunk, ...]:
    """The chunks of a text, in order; none for a blank text."""
    every = rows(text)
    if not text.strip():
        return ()
    starts: dict[int, int] = {}
    for at, line in enumerate(every.lines):
        starts.setdefault(line, at)
    last_line = every.lines[-1]
    spans = [
        _Span(
            starts.get(each.first, len(every)),
            starts[each.last + 1] if each.last < last_line else len(every),
            each,
        )
        for each in symbols
        if 1 <= each.first <= min(each.last, last_line)
    ]
    pieces = _cut_span(_Span(0, len(every), None), _nest(spans), every)
    return tuple(
        Chunk(piece.first, piece.end, piece.title) for piece in _with_content(pieces, every)
    )


@dataclass(frozen=True, slots=True)
class _Span:
    first: int
    end: int
    symbol: CodeSymbol | None
    children: tuple[_Span, ...] = ()


@dataclass(frozen=True, slots=True)
class _Piece:
    first: int
    end: int
    scope: str
    names: tuple[str, ...] = ()
    """Signatures of the symbols that begin in it."""

    @property
    def title(self) -> str:
        names = "; ".join(self.names)
        return visible(
            f"{self.scope}: {names}" if self.scope and names else self.scope or names,
            _LONGEST_TITLE,
        )


def _nest(spans: Sequence[_Span]) -> tuple[_Span, ...]:
    """The spans as a forest: one that overlaps its predecessor without being inside it is cut off
    at that one's end."""
    open_: list[tuple[_Span, list[_Span]]] = []
    roots: list[_Span] = []

    def close(until: int) -> None:
        while open_ and open_[-1][0].end <= until:
            span, inner = open_.pop()
            done = _Span(span.first, span.end, span.symbol, tuple(inner))
            (open_[-1][1] if open_ else roots).append(done)

    for span in sorted(spans, key=lambda each: (each.first, -each.end)):
        close(span.first)
        siblings = open_[-1][1] if open_ else roots
        first = max(span.first, siblings[-1].end if siblings else 0)
        end = min(span.end, open_[-1][0].end) if open_ else span.end
        if (
            first < end
            and len(open_) < _DEEPEST
            and not (open_ and (first, end) == (open_[-1][0].first, open_[-1][0].end))
        ):
            open_.append((_Span(first, end, span.symbol), []))
    close(1 << 62)
    return tuple(roots)


def _cut_span(span: _Span, children: Sequence[_Span], every: TextRows) -> list[_Piece]:
    """The pieces of a span that may be too long for one chunk."""
    scope, names = _scope_and_names(span.symbol)
    if span.symbol is not None and _fits(span.first, span.end, every):
        return [_Piece(span.first, span.end, scope, names)]
    inner_scope = span.symbol.qualified if span.symbol is not None else ""
    pieces: list[_Piece] = []
    at = span.first
    for child in children:
        if at < child.first:
            pieces += _cut(at, child.first, inner_scope, names if not pieces else (), every)
        pieces += _cut_span(child, child.children, every)
        at = child.end
    if at < span.end:
        if children:
            pieces += _cut(at, span.end, inner_scope, names if not pieces else (), every)
        else:
            pieces += _cut(at, span.end, scope, names, every, all_named=True)
    return _join_short(pieces, every)


def _scope_and_names(symbol: CodeSymbol | None) -> tuple[str, tuple[str, ...]]:
    if symbol is None:
        return "", ()
    return ".".join(symbol.scope), (symbol.signature or symbol.name,)


def _fits(first: int, end: int, every: TextRows) -> bool:
    return end - first <= MOST_ROWS and sum(map(len, every.texts[first:end])) <= MOST_CHARACTERS


def _cut(
    first: int,
    end: int,
    scope: str,
    names: tuple[str, ...],
    every: TextRows,
    *,
    all_named: bool = False,
) -> Iterator[_Piece]:
    """Pieces of rows without symbols: cut at blank lines, with as little indentation as
    possible."""
    current = names
    while not _fits(first, end, every):
        at = _border(first, end, every)
        yield _Piece(first, at, scope, current)
        first, current = at, names if all_named else ()
    yield _Piece(first, end, scope, current)


def _border(first: int, end: int, every: TextRows) -> int:
    """The best row to start the next piece with."""
    texts = every.texts
    most = first + 1
    size = len(texts[first])
    while most < min(end, first + MOST_ROWS) and size + len(texts[most]) <= MOST_CHARACTERS:
        size += len(texts[most])
        most += 1
    least = max(first + 1, min(most, first + GOOD_ROWS // 2))
    candidates = range(least, most + (most < end)) or range(most, most + 1)
    behind_empty = [at for at in candidates if not texts[at - 1].strip() and texts[at].strip()]
    return min(
        behind_empty or candidates, key=lambda at: (_indent(texts[at]), abs(at - first - GOOD_ROWS))
    )


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _join_short(pieces: Sequence[_Piece], every: TextRows) -> list[_Piece]:
    """The pieces, with neighbours joined that are too short alone."""
    joined: list[_Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if last is not None and _belong_together(last, piece, every):
            scope = (
                last.scope
                if last.scope == piece.scope or not piece.names
                else _common_scope(last.scope, piece.scope)
            )
            joined[-1] = _Piece(last.first, piece.end, scope, (*last.names, *piece.names))
        else:
            joined.append(piece)
    return joined


def _belong_together(last: _Piece, piece: _Piece, every: TextRows) -> bool:
    is_small = min(last.end - last.first, piece.end - piece.first) < FEW_ROWS
    together = piece.end - last.first
    return is_small and together <= GOOD_ROWS and _fits(last.first, piece.end, every)


def _common_scope(one: str, other: str) -> str:
    shared = []
    for mine, theirs in zip(one.split("."), other.split("."), strict=False):
        if mine != theirs:
            break
        shared.append(mine)
    return ".".join(shared)


def _with_content(pieces: Sequence[_Piece], every: TextRows) -> list[_Piece]:
    """The pieces, with blank lines appended to the piece before them."""
    kept: list[_Piece] = []
    waiting: int | None = None
    for piece in pieces:
        says_something = any(text.strip() for text in every.texts[piece.first : piece.end])
        if says_something:
            first = piece.first if waiting is None else waiting
            kept.append(_Piece(first, piece.end, piece.scope, piece.names))
            waiting = None
        elif kept:
            kept[-1] = _Piece(kept[-1].first, piece.end, kept[-1].scope, kept[-1].names)
        elif waiting is None:
            waiting = piece.first
    return kept


def entries(
    path: str, text: str, language: Language, chunks: Sequence[Chunk], time: float
) -> list[Entry]:
    """Index entries of the chunks. An unchanged chunk keeps its id wherever it moves in the file:
    the index need not learn it again."""
    every = rows(text)
    counts: Counter[str] = Counter()
    made = []
    for chunk in chunks:
        stretch = every.text(chunk.first, chunk.end)
        title = f"{path} {chunk.title}".rstrip()
        name = blake2b(f"{title}\0{stretch}".encode("utf-8", "replace"), digest_size=8).hexdigest()
        counts[name] += 1
        made.append(
            Entry(
                id=EntryId(
                    f"{path}#{name}" if counts[name] == 1 else f"{path}#{name}-{counts[name]}"
                ),
                whole=path,
                sort=Sort.CODE,
                text=stretch,
                kind=language.name,
                title=title,
                time=time,
                path=path,
                lines=(every.lines[chunk.first], every.lines[chunk.end - 1]),
            )
        )
    return made
