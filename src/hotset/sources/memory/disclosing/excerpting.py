"""The sentences of a long text that fit a question best, within a number of tokens, never cut inside a word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from hotset.sources.memory.disclosing.telling import most_that_fit
from hotset.text.sentences import unique_sentences
from hotset.text.terms import Term, first_hits, ranked, terms
from hotset.text.words import UNSPACED
from hotset.tokens import count

_GAP = "…"
_LOOKED_AT = 64 * 1024  # characters of a text: an episode has a few thousand
_MOST_SENTENCES = 24  # that are tried for the room there is
_WITH_NEXT = 4  # sentences that bring the one behind them: what is told of a thing goes on there
_BEFORE = 6  # words before the first that was asked for, in a sentence that is too long
_PIECE = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+|\s+")


def excerpt(text: str, query: str, max_tokens: int) -> str:
    """In the order of the text, with a sign where something is left out; its beginning where nothing fits the question."""
    text = text.strip()[:_LOOKED_AT]
    if count(text) <= max_tokens:
        return text
    sentences = unique_sentences(text)
    wanted = terms(query) if query.strip() else ()
    best = _order(sentences, wanted)
    chosen: list[int] = []
    for at in best[:_MOST_SENTENCES]:
        if count(_told(sentences, [*chosen, at])) <= max_tokens:
            chosen.append(at)
    if best[0] not in chosen:  # the best is too long by itself
        return _clipped(sentences[best[0]], wanted, max_tokens)
    return _told(sentences, chosen)


def _order(sentences: Sequence[str], wanted: Sequence[Term]) -> list[int]:
    """By what they say of the question, the best with what follows on it; the others as they stand."""
    starts = list(accumulate((len(sentence) + 1 for sentence in sentences), initial=0))[:-1]
    fitting = [at for _, at in ranked("\n".join(sentences), starts, wanted)] if wanted else []
    best = [near for at in fitting[:_WITH_NEXT] for near in (at, at + 1) if near < len(sentences)]
    return list(dict.fromkeys((*best, *fitting, *range(len(sentences)))))


def _told(sentences: Sequence[str], chosen: Sequence[int]) -> str:
    parts: list[str] = []
    last = -1
    for at in sorted(chosen):
        if at != last + 1:
            parts.append(_GAP)
        parts.append(sentences[at])
        last = at
    if last != len(sentences) - 1:
        parts.append(_GAP)
    return " ".join(parts)


def _clipped(sentence: str, wanted: Sequence[Term], max_tokens: int) -> str:
    """From a few words before the first that was asked for, as many words as there is room for."""
    pieces = _PIECE.findall(sentence)
    begin = max(0, _first(sentence, pieces, wanted) - 2 * _BEFORE)
    while begin < len(pieces) and pieces[begin].isspace():
        begin += 1
    pieces = pieces[begin:]
    head = f"{_GAP} " if begin else ""

    def render(many: int) -> str:
        return f"{head}{''.join(pieces[:many]).rstrip()} {_GAP}"

    many = most_that_fit(render, len(pieces) - 1, max_tokens)
    return render(many) if many > 0 else ""


def _first(sentence: str, pieces: Sequence[str], wanted: Sequence[Term]) -> int:
    """The piece in which the first such word stands."""
    places = [at for at, _ in first_hits(sentence, wanted)]
    if not places:
        return 0
    ends = accumulate(map(len, pieces))
    return next(at for at, end in enumerate(ends) if end > min(places))
