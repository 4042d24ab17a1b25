"""MiniLM's vectors of many texts: the quick way, for the teacher and for tests.

    python teacher.py MODEL.safetensors OUT TEXTS.jsonl.gz FIRST LAST

With onnx and onnxruntime installed the model runs in eight bits (twice as fast, and on 169 texts a
cosine of at least 0.97 to the plain one, checked each time); otherwise `hotset.index.embed.minilm`
itself. Writes OUT.npz: `ids` and `ends` (the tokens of all texts, and where each text ends),
`vectors`; in portions, so that an interrupted run has not run in vain.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from hotset.index.embed.minilm import HEADS, MiniLm, ModelWeights, _batches, read_weights
from hotset.index.embed.wordpiece import BEGIN, END, tokens_of

MOST_TOKENS = 96  # of a text: what is short teaches words best, and costs least


def main(model: Path, out: Path, texts: Path, first: int, last: int) -> None:
    with gzip.open(texts, "rt") as lines:
        wanted = [json.loads(line)[-1] for line in islice(lines, first, last)]
    teacher = Teacher(model)
    vectors = np.zeros((len(wanted), 384), np.float16)
    tokens = tokens_of(wanted, MOST_TOKENS - 2)
    ids, ends = np.concatenate(tokens).astype(np.int32), np.cumsum([len(t) for t in tokens])
    for start in range(0, len(wanted), 4096):
        vectors[start : start + 4096] = teacher.embed(wanted[start : start + 4096])
        if start // 4096 % 4 == 3 or start + 4096 >= len(wanted):
            done = min(start + 4096, len(wanted))
            np.savez(out, ids=ids[: ends[done - 1]], ends=ends[:done], vectors=vectors[:done])
            print(done, flush=True)


class Teacher:
    def __init__(self, model: Path, most_tokens: int = MOST_TOKENS) -> None:
        self._most = most_tokens
        self._plain = MiniLm(model)
        try:
            self._run = session(read_weights(model))
        except ImportError:
            self._run = None
            return
        probe = [f"Return the {what} of the {thing}." for what in PROBE for thing in PROBE]
        if (alike := (self.embed(probe) * self._plain.embed(probe)).sum(1).min()) < 0.97:
            raise SystemExit(f"the model in eight bits differs from the plain one: {alike:.3f}")

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        if self._run is None:
            return self._plain.embed(texts)
        vectors = np.zeros((len(texts), 384), np.float32)
        alike: dict[int, list[tuple[int, list[int]]]] = {}
        for place, tokens in enumerate(tokens_of(texts, self._most - 2)):
            if len(tokens):
                alike.setdefault(len(tokens), []).append((place, [BEGIN, *tokens, END]))
        for batch in _batches(alike):
            places, ids = zip(*batch, strict=True)
            ids = np.array(ids, np.int64)
            vectors[list(places)] = self._run.run(
                None, {"ids": ids, "places": np.arange(ids.shape[1])}
            )[0]
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


PROBE = [
    "name",
    "file",
    "size",
    "error",
    "user",
    "path",
    "table",
    "value",
    "color",
    "request",
    "date",
    "model",
    "weight",
]


def session(weights: ModelWeights):
    """The model as a graph, packed to eight bits and loaded."""
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
    from onnxruntime.quantization import QuantType, quantize_dynamic

    nodes, constants = [], []

    def constant(array: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array), f"c{len(constants)}"))
        return constants[-1].name

    def node(kind: str, *inputs: str, domain: str = "", **attributes: object) -> str:
        nodes.append(
            helper.make_node(
                kind,
                list(inputs),
                [f"n{len(nodes)}"],
                name=f"{kind}{len(nodes)}",
                domain=domain,
                **attributes,
            )
        )
        return nodes[-1].output[0]

    def linear(x: str, part) -> str:
        return node("Add", node("MatMul", x, constant(part.weight)), constant(part.bias))

    def norm(x: str, part) -> str:
        return node(
            "LayerNormalization",
            x,
            constant(part.weight),
            constant(part.bias),
            axis=-1,
            epsilon=1e-12,
        )

    words = node("Gather", constant(weights.rows.astype(np.float32)), "ids")
    x = norm(
        node("Add", words, node("Gather", constant(weights.positions), "places")), weights.norm
    )
    for layer in weights.layers:
        inner = (x, constant(layer.attention.weight), constant(layer.attention.bias))
        x = norm(
            node(
                "Add",
                x,
                linear(
                    node("Attention", *inner, domain="com.microsoft", num_heads=HEADS), layer.merge
                ),
            ),
            layer.after_attention,
        )
        x = norm(
            node(
                "Add",
                x,
                linear(node("Gelu", linear(x, layer.up), domain="com.microsoft"), layer.down),
            ),
            layer.after_feeding,
        )
    nodes.append(helper.make_node("ReduceMean", [x], ["pooled"], name="pool", axes=[1], keepdims=0))
    value = helper.make_tensor_value_info
    inputs = [
        value("ids", TensorProto.INT64, ["texts", "tokens"]),
        value("places", TensorProto.INT64, ["tokens"]),
    ]
    graph = helper.make_graph(
        nodes, "minilm", inputs, [value("pooled", TensorProto.FLOAT, ["texts", 384])], constants
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
        ir_version=9,
    )
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/plain.onnx")
        quantize_dynamic(
            f"{folder}/plain.onnx", f"{folder}/packed.onnx", per_channel=True, reduce_range=True, weight_type=QuantType.QInt8,  # noqa: E501
            op_types_to_quantize=["MatMul", "Attention"], extra_options={"DefaultTensorType": TensorProto.FLOAT},  # noqa: E501
        )  # fmt: skip
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        return onnxruntime.InferenceSession(
            f"{folder}/packed.onnx", options, providers=["CPUExecutionProvider"]
        )


if __name__ == "__main__":
    main(
        Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
    )
