"""The blocks of a text that share the most telling words with a question, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from hotset.nouns.retrieval import Span
from hotset.text.outline import definition_around
from hotset.text.terms import Term, ranked, terms
from hotset.window.pieces import LONG, PIECE
from hotset.window.slice.fit import Count, Cut, clipped, fitting, tokens
from hotset.window.slice.lines import Text, merged, show
from hotset.window.slice.units import Units, told

_SMALL, _LARGE = 4, 16  # lines of a block: a paragraph, a few log lines, a piece of a function
_WORTH = 0.35  # of the best block's score; what has less is not about the question
_WHOLE_FUNCTION = 80  # lines: a function of so many comes whole, because an edit needs all of it
_MOST_BLOCKS = 40  # more would not fit into the largest answer that is still read
# lines before and behind a block, where there is room: an answer often stands beside the words of
# its question
_AROUND = 8
_SECTIONS = (
    "diff --git ",
    "# ",
    "## ",
    "### ",
)  # where something else begins, however short what came before


def by_question(text: str, words: str, room: int, count: Count) -> Cut:
    wanted = terms(words)
    by_line = Text(text)
    if max(map(len, by_line.lines)) > LONG:
        return _in_chunks(text, by_line, wanted, room, count)
    blocks = list(_blocks(by_line.lines))
    starts_of_lines = list(accumulate((len(line) + 1 for line in by_line.lines), initial=0))
    best = ranked(text, [starts_of_lines[first - 1] for first, _ in blocks], wanted)
    if not best:
        return _nothing(wanted)
    chosen, left = _chosen(
        by_line,
        [blocks[block] for score, block in best if score >= _WORTH * best[0][0]],
        room,
        count,
    )
    cut = show(by_line, chosen, room, count, what="the parts closest to the question: ")
    if not left or not cut.whole:
        return cut
    return Cut(
        cut.text, whole=False, note=f'{cut.note}; lines="{told(*left[0])}" for the next best'
    )


def _blocks(lines: Sequence[str]) -> Iterator[Span]:
    first = 1
    for at, line in enumerate(lines, 1):
        if at > first and line.startswith(_SECTIONS):
            yield first, at - 1
            first = at
        size = at - first + 1
        if size >= _LARGE or (size >= _SMALL and (not line or line.isspace())):
            yield first, at
            first = at + 1
    if first <= len(lines):
        yield first, len(lines)


def _chosen(
    text: Text, blocks: Sequence[Span], room: int, count: Count
) -> tuple[list[Span], list[Span]]:
    """The best that fit together, in the text's order, and what did not fit. The best comes, whole
    or not."""
    chosen: list[Span] = []
    left: list[Span] = []
    free = room
    for number, block in enumerate(blocks[:_MOST_BLOCKS]):
        if any(first <= block[0] and block[1] <= last for first, last in chosen):
            continue
        for span in _grown(text, block):
            cost = _cost(text, span, count)
            if cost <= free or (number == 0 and span == block):
                chosen = merged([*chosen, span])
                free -= cost
                break
        else:
            left.append(block)
    return chosen, left


def _grown(text: Text, block: Span) -> Iterator[Span]:
    """The whole function around a block, the block with what stands around it, and the block
    alone."""
    function = definition_around(text.bare, (block[0] + block[1]) // 2)
    if function is not None and function[1] - function[0] < _WHOLE_FUNCTION:
        yield min(function[0], block[0]), max(function[1], block[1])
    yield max(1, block[0] - _AROUND), min(len(text.lines), block[1] + _AROUND)
    yield block


def _cost(text: Text, span: Span, count: Count) -> int:
    return tokens("".join(text.numbered(at) for at in range(span[0], span[1] + 1)), count) + 2


def _in_chunks(text: str, by_line: Text, wanted: Sequence[Term], room: int, count: Count) -> Cut:
    starts = list(range(0, len(text), PIECE))
    best = ranked(text, starts, wanted)
    if not best:
        return _nothing(wanted)
    every = [_passage(text, by_line.units, starts[chunk]) for _, chunk in best]
    kept = fitting(every, room, count)
    if kept == 0:
        best_place = by_line.units.name(by_line.units.at(starts[best[0][1]]))
        note = f'the beginning of the passage closest to the question; lines="{best_place}" for it'
        return Cut(clipped(every[0], room, count), whole=False, note=note)
    shown = "".join(
        passage
        for _, passage in sorted(zip((chunk for _, chunk in best), every[:kept], strict=False))
    )
    note = (
        f"{kept:,} of {len(best):,} passages that share words with "
        f"the question, each behind its "
        f"number"
    )
    if kept < len(best):
        note += (
            f'; lines="{by_line.units.name(by_line.units.at(starts[best[kept][1]]))}" for the '
            f"next best"
        )
    return Cut(shown.removesuffix("\n"), whole=kept == len(best), note=note)


def _passage(text: str, units: Units, start: int) -> str:
    return f"{units.name(units.at(start))}\t...{text[start : start + PIECE]}...\n"


def _nothing(wanted: Sequence[Term]) -> Cut:
    words = ", ".join(term.text for term in wanted[:8])
    return Cut(
        "",
        whole=False,
        note=(
            f"it has none of these words: {words[:200]}; ask with other words, or with lines or "
            f"regex"
        ),
    )
