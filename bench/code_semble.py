"""semble's side of `bench/code.py`: runs in an environment of its own, takes a line of JSON,
answers with a line of JSON.

Its own model has to be downloaded. Without that its search runs over a table of ours, given in the
form that it reads.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from model2vec import StaticModel
from semble import SembleIndex
from semble.types import ContentType
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

_EVERYTHING = (ContentType.CODE, ContentType.DOCS, ContentType.CONFIG)
_UNKNOWN = "[UNK]"


def main() -> None:
    index: Any = None
    for line in sys.stdin:
        what = json.loads(line)
        if what["do"] == "convert":
            said: Any = convert(
                Path(what["vocabulary"]),
                Path(what["rows"]),
                Path(what["weights"]),
                Path(what["to"]),
            )
        elif what["do"] == "build":
            content = _EVERYTHING if what["everything"] else (ContentType.CODE,)
            began, processor = time.perf_counter(), _processor_seconds()
            index = SembleIndex.from_path(what["root"], content=content, model_path=what["model"])
            said = {
                "seconds": time.perf_counter() - began,
                "processor": _processor_seconds() - processor,
                "files": index.stats.indexed_files,
                "chunks": index.stats.total_chunks,
                "bytes": sum(
                    (Path(what["root"]) / path).stat().st_size
                    for path in {chunk.file_path for chunk in index.chunks}
                ),
            }
        else:
            hits = index.search(what["words"], top_k=what["most"], alpha=what["alpha"])
            said = [
                [str(hit.chunk.file_path), hit.chunk.start_line, hit.chunk.end_line] for hit in hits
            ]
        print(json.dumps(said), flush=True)


def convert(vocabulary: Path, rows: Path, weights: Path, to: Path) -> str:
    """A table of word pieces as a model2vec model."""
    tokenizer = Tokenizer(models.WordPiece(json.loads(vocabulary.read_text()), unk_token=_UNKNOWN))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    vectors = np.load(rows).astype(np.float32) * np.load(weights)[:, None]
    StaticModel(vectors, tokenizer, normalize=True).save_pretrained(to)
    return str(to)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
