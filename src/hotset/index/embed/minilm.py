"""The embedder that reads a text as a whole: all-MiniLM-L6-v2 in plain numpy, from weights on this
machine.

Some hundred times as slow as the table and in the same vector space: its vector of a question can
be asked against the table's vectors of documents. Nothing is downloaded: `find_weights` knows the
package that brings the weights, a path can name others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from hotset.index.embed.minilm_weights import (
    HEADS,
    Floats,
    LayerWeights,
    Linear,
    ModelWeights,
    Norm,
    read,
)
from hotset.index.embed.port import Vectors, normalise
from hotset.index.embed.threads import one_thread
from hotset.index.embed.wordpiece import BEGIN, END, Tokens, tokens_of

_MOST_TOKENS = 256  # begin and end included: what the model was trained to read
_BATCH_TOKENS = 1024  # more at once do not go faster, and the widest layer is 1,536 numbers a token
_SMALL = 1e-12  # as in the model's configuration


class MiniLm:
    """An `Embedder`."""

    def __init__(self, weights: Path) -> None:
        """From a file of `minilm_weights.write`, or the model's own `model.safetensors`. Raises
        `BadConfig`."""
        self._weights = read(weights)
        self._id = f"minilm-1-{self._weights.hash}"

    @property
    def id(self) -> str:
        return self._id

    @property
    def size(self) -> int:
        return int(self._weights.positions.shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.size), np.float32)
        alike: dict[int, list[tuple[int, list[int]]]] = defaultdict(list)
        for place, tokens in enumerate(tokens_of(texts, _MOST_TOKENS - 2)):
            if len(tokens):
                alike[len(tokens)].append((place, [BEGIN, *tokens, END]))
        with one_thread():
            for batch in _batches(alike):
                places, ids = zip(*batch, strict=True)
                vectors[list(places)] = _forward(self._weights, np.array(ids)).mean(1)
        return normalise(vectors)


def _batches(
    alike: dict[int, list[tuple[int, list[int]]]],
) -> Iterator[list[tuple[int, list[int]]]]:
    """Texts of the same length together: nothing is padded, and no text depends on its
    neighbours."""
    for length, texts in alike.items():
        step = max(1, _BATCH_TOKENS // length)
        for start in range(0, len(texts), step):
            yield texts[start : start + step]


def _forward(weights: ModelWeights, ids: Tokens) -> Floats:
    """A vector for each token of each text: (texts, tokens) to (texts, tokens, size)."""
    states = _norm(weights.words(ids) + weights.positions[: ids.shape[1]], weights.norm)
    for layer in weights.layers:
        states = _norm(states + _attend(states, layer), layer.after_attention)
        states = _norm(
            states + _linear(_gelu(_linear(states, layer.up)), layer.down), layer.after_feeding
        )
    return states


def _attend(states: Floats, layer: LayerWeights) -> Floats:
    texts, tokens, size = states.shape
    depth = size // HEADS
    query, key, value = (
        _linear(states, layer.attention)
        .reshape(texts, tokens, 3, HEADS, depth)
        .transpose(2, 0, 3, 1, 4)
    )
    scores = query @ key.swapaxes(2, 3) / np.float32(np.sqrt(depth))
    scores = np.exp(scores - scores.max(3, keepdims=True))
    scores /= scores.sum(3, keepdims=True)
    return _linear((scores @ value).transpose(0, 2, 1, 3).reshape(texts, tokens, size), layer.merge)


def _linear(states: Floats, linear: Linear) -> Floats:
    flat = (
        states.reshape(-1, states.shape[-1]) @ linear.weight
    )  # one product of two matrices, not one a text
    flat += linear.bias
    return flat.reshape(*states.shape[:-1], -1)


def _norm(states: Floats, norm: Norm) -> Floats:
    centred: Floats = states - states.mean(-1, keepdims=True)
    spread = np.einsum("...i,...i->...", centred, centred)[..., None] / np.float32(states.shape[-1])
    centred /= np.sqrt(spread + np.float32(_SMALL))
    centred *= norm.weight
    centred += norm.bias
    return centred


def _gelu(x: Floats) -> Floats:
    """x times the share of a normal distribution below x; numpy has no erf, so by Abramowitz and
    Stegun 7.1.26 (error < 2e-7)."""
    z = np.abs(x) * np.float32(np.sqrt(0.5))
    t = np.float32(1) / (np.float32(1) + np.float32(0.3275911) * z)
    series = t * np.float32(1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series += np.float32(factor)
        series *= t
    series *= np.exp(-z * z)
    below: Floats = np.float32(0.5) * (x + np.abs(x) * (np.float32(1) - series))
    return below
