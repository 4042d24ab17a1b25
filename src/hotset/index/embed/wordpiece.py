"""BERT's lower-case WordPiece tokenizer, fast and bounded. Wraps tokie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import tokie
from numpy.typing import NDArray

VOCABULARY = Path(__file__).with_name("data") / "wordpiece.tkz"
UNKNOWN, BEGIN, END = 100, 101, 102
SPECIAL = (0, UNKNOWN, BEGIN, END, 103)
"""Padding, unknown, begin, end, mask: tokens without meaning."""

_TOKENS = 30522  # of the vocabulary
# of a text; a minified line gave 60,000 tokens, and what is embedded is a stretch of some hundred
_MOST_CHARACTERS = 8192

Tokens = NDArray[np.intp]


def tokens_of(texts: Sequence[str], most: int) -> list[Tokens]:
    """The tokens of each text, up to a limit, without begin and end."""
    flat, lengths = _flat(texts, most)
    ends = lengths.cumsum().tolist()
    return [flat[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def counts_of(texts: Sequence[str], most: int) -> tuple[Tokens, Tokens, list[int]]:
    """The different tokens of each text in order, how often each comes, and where each text's end.

    At most so many tokens of a text are looked at. One sort for all texts: one for each would take
    longer than the sums.
    """
    flat, lengths = _flat(texts, most)
    if len(texts) == 1:  # a question, of a few words: a quarter of the time
        counts = sorted(Counter(flat.tolist()).items())
        tokens, often = np.array(counts, np.intp).reshape(-1, 2).T
        return tokens, often, [len(counts)]
    keys = np.arange(0, len(texts) * _TOKENS, _TOKENS).repeat(lengths)
    keys += flat
    keys.sort()
    new = np.ones(len(keys) + 1, np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=new[1:-1])
    firsts = new.nonzero()[0]
    keys = keys[firsts[:-1]]
    ends = keys.searchsorted(np.arange(_TOKENS, (len(texts) + 1) * _TOKENS, _TOKENS))
    return keys % _TOKENS, firsts[1:] - firsts[:-1], ends.tolist()


def _flat(texts: Sequence[str], most: int) -> tuple[Tokens, Tokens]:
    """The tokens of all texts in one row, and how many of them are each text's."""
    flat, lengths = _tokenizer().encode_batch_flat(
        [_readable(text) for text in texts], add_special_tokens=False
    )
    ids, lengths = flat.astype(np.intp), lengths.astype(np.intp)
    if len(ids) <= most or lengths.max() <= most:
        return ids, lengths
    place = np.arange(len(ids)) - (lengths.cumsum() - lengths).repeat(lengths)
    return ids[place < most], np.minimum(lengths, most)


@cache
def _tokenizer() -> Any:
    return tokie.Tokenizer.from_file(str(VOCABULARY))


def _readable(text: str) -> str:
    """The beginning of the text, without half surrogate pairs, which the tokenizer rejects."""
    text = text[:_MOST_CHARACTERS]
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
