"""lancedb's side of `bench/search.py`: runs in an environment of its own, takes a line of JSON,
answers with CPU seconds."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
from lancedb.index import FTS, IvfPq
from lancedb.rerankers import RRFReranker


def main() -> None:
    folder = Path(sys.argv[1])
    database = lancedb.connect(str(folder / "db"))
    reranker = RRFReranker()
    table: Any = None
    half = 0.0
    for line in sys.stdin:
        what = json.loads(line)
        began = _cpu()
        if what["do"] == "build":
            half = what["half"]
            table = database.create_table("t", _rows(folder))
            table.create_index("text", config=FTS())
            table.create_index("vector", config=IvfPq(distance_type="cosine"))
        elif what["do"] == "ask":
            query = (
                table.search(query_type="hybrid")
                .vector(np.array(what["vector"], np.float32))
                .text(what["words"])
            )
            if what["filtered"]:
                query = query.where(f"session = 's7' AND time >= {half}", prefilter=True)
            query.rerank(reranker).limit(10).to_list()
        else:
            table.add([what["row"]])
        print(_cpu() - began, flush=True)


def _rows(folder: Path) -> Any:
    vectors = np.load(folder / "vectors.npy")
    texts, sessions, times = zip(*json.loads((folder / "rows.json").read_text()), strict=True)
    flat = pa.array(vectors.reshape(-1))
    columns = {"text": texts, "session": sessions, "time": times}
    named = {name: pa.array(values) for name, values in columns.items()}
    return pa.table({**named, "vector": pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])})


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
