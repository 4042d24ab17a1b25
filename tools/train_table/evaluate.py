"""Prints how well embedders find things that the table has not learned from.

    python evaluate.py [--table FOLDER]... [--minilm MODEL.safetensors] [--wordllama]
                       [--sts sts-test.csv] [--tools FOLDER] [--memory FILE] [--code WHEEL...]

STS-B: Spearman's rank correlation, in hundredths of people's own judgement. The others: the mean of
1/place of the first right answer, and the share of the right answers among the first ten. Code: the
first sentence of a docstring asks for its function (without the docstring) among functions of
packages that were kept out of training. Tools: files NAME.tools.jsonl.gz and NAME.queries.jsonl.gz.
Memory: questions of LongMemEval ask for the turns that hold the answer.
"""

from __future__ import annotations

import argparse
import ast
import csv
import gzip
import json
import random
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from collect import parted, worth_it
from scipy.stats import spearmanr

from hotset.index.embed.table import WordVectors
from hotset.index.embed.wordpiece import tokens_of

Embed = Callable[[Sequence[str]], np.ndarray]
FUNCTIONS, QUERIES = 1500, 500
MOST_TOOL_QUERIES = 1500
CHUNK = 480  # characters: about 145 tokens of code
MEMORIES = 100  # questions whose sessions make up the memory


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, action="append", default=[])
    parser.add_argument("--minilm", type=Path)
    parser.add_argument("--wordllama", action="store_true")
    parser.add_argument("--sts", type=Path)
    parser.add_argument("--tools", type=Path)
    parser.add_argument("--memory", type=Path)
    parser.add_argument("--code", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    embedders = embedders_of(given)
    if given.sts:
        rows = [
            row
            for row in csv.reader(
                given.sts.open(newline=""), delimiter="\t", quoting=csv.QUOTE_NONE
            )
            if len(row) >= 7
        ]
        for name, (embed, _) in embedders.items():
            ones, others = embed([row[5] for row in rows]), embed([row[6] for row in rows])
            alike = (ones * others).sum(1)
            print(
                (
                    f"STS-B "
                    f"test\t{name}\t"
                    f"{spearmanr(alike, [float(row[4]) for row in rows]).statistic:.3f}"
                ),
                flush=True,
            )
    for title, documents, asked in tasks(given):
        print(f"{title}: {len(asked)} questions, {len(documents)} entries")
        for name, (embed, ask) in embedders.items():
            begun = time.process_time()
            place, recall = found(
                embed(documents),
                ask([question for question, _ in asked]),
                [right for _, right in asked],
            )
            print(
                (
                    f"{title}\t{name}\t{place:.3f} / "
                    f"{recall:.3f}\t{time.process_time() - begun:.1f} cpu-s"
                ),
                flush=True,
            )
        if title == "code":
            speed(documents)


def speed(documents: list[str]) -> None:
    """Of the shipped table, in CPU time of all threads."""
    text = "\n".join(documents)
    chunks = [text[start : start + CHUNK] for start in range(0, len(text) - CHUNK, CHUNK)]
    tokens = sum(map(len, tokens_of(chunks, CHUNK))) / len(chunks)
    begun = time.process_time()
    table = WordVectors()
    loaded = time.process_time()
    table.embed(chunks)
    embedded = time.process_time()
    for question in chunks[:2000]:
        table.embed([question[:100]])
    asked = time.process_time()
    rate = len(chunks) / (embedded - loaded)
    print(
        f"loaded in {1000 * (loaded - begun):.0f} ms; {len(chunks)} chunks of {tokens:.0f} "
        f"tokens: {rate:,.0f} a cpu-s"
    )
    print(f"one question of 100 characters: {1000 * (asked - embedded) / 2000:.3f} ms")


def embedders_of(given: argparse.Namespace) -> dict[str, tuple[Embed, Embed]]:
    """What embeds documents, and what embeds questions."""
    tables = {str(folder): WordVectors(folder).embed for folder in given.table} or {
        "the shipped table": WordVectors().embed
    }
    embedders = {name: (embed, embed) for name, embed in tables.items()}
    if given.wordllama:
        import wordllama

        home = Path(
            wordllama.__file__
        ).parent  # where it does not look by itself, although its own files are there
        model = wordllama.WordLlama.load(cache_dir=home, disable_download=True)
        embedders["wordllama"] = (plain := lambda texts: unit(model.embed(list(texts))), plain)
    if given.minilm:
        from teacher import Teacher

        memo: dict[str, np.ndarray] = {}
        teacher = Teacher(given.minilm, 256)

        def minilm(texts: Sequence[str]) -> np.ndarray:
            new = [text for text in dict.fromkeys(texts) if text not in memo]
            memo.update(zip(new, teacher.embed(new), strict=True))
            return np.stack([memo[text] for text in texts])

        name, table = next(iter(tables.items()))
        embedders[f"{name}, asked with the mean of it and MiniLM"] = (
            table,
            lambda texts: unit(table(texts) + minilm(texts)),
        )
        embedders["MiniLM"] = (minilm, minilm)
    return embedders


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def tasks(given: argparse.Namespace) -> Iterator[tuple[str, list[str], list[tuple[str, set[int]]]]]:
    """A title, documents, and questions with the numbers of the documents that answer them."""
    for queries in sorted(given.tools.glob("*.queries.jsonl.gz")) if given.tools else []:
        title = queries.name.removesuffix(".queries.jsonl.gz")
        tools = lines_of(given.tools / f"{title}.tools.jsonl.gz")
        numbers = {tool["id"]: number for number, tool in enumerate(tools)}
        asked = [
            (row["query"], {numbers[g] for g in row["gold"] if g in numbers})
            for row in lines_of(queries)
        ]
        asked = [row for row in asked if row[1]]
        random.Random(0).shuffle(asked)
        yield (
            title,
            [f"{tool['name']}: {tool['description']}" for tool in tools],
            asked[:MOST_TOOL_QUERIES],
        )
    if given.memory:
        yield "memory", *memory(given.memory)
    if given.code:
        yield "code", *code(given.code)


def lines_of(path: Path) -> list[dict]:
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def memory(path: Path) -> tuple[list[str], list[tuple[str, set[int]]]]:
    with gzip.open(path, "rt") as file:
        rows = [row for row in json.load(file) if not row["question_id"].endswith("_abs")]
    documents, asked = [], []
    for row in random.Random(0).sample(rows, MEMORIES):
        right = set()
        for turn in (turn for session in row["haystack_sessions"] for turn in session):
            if turn.get("has_answer"):
                right.add(len(documents))
            documents.append(turn["content"])
        if right:
            asked.append((row["question"], right))
    return documents, asked


def code(wheels: list[Path]) -> tuple[list[str], list[tuple[str, set[int]]]]:
    found = []
    for wheel in map(zipfile.ZipFile, wheels):
        for name in sorted(wheel.namelist()):
            if name.endswith(".py") and "/tests/" not in name:
                found += list(functions(wheel.read(name).decode("utf-8", "replace")))
    rng = random.Random(0)
    chosen = rng.sample(sorted(set(found)), FUNCTIONS)
    return [text for _, text in chosen], [
        (chosen[i][0], {i}) for i in rng.sample(range(FUNCTIONS), QUERIES)
    ]


def functions(text: str) -> Iterator[tuple[str, str]]:
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (
            doc := ast.get_docstring(node)
        ):
            first, _ = parted(doc)
            docstring = node.body[0]
            rest = lines[docstring.end_lineno : node.end_lineno]
            if worth_it(first) and len(rest) > 2:
                yield first, "\n".join(lines[node.lineno - 1 : docstring.lineno - 1] + rest)[:1500]


def found(
    documents: np.ndarray, questions: np.ndarray, right: list[set[int]]
) -> tuple[float, float]:
    order = np.argsort(-(questions @ documents.T), axis=1, kind="stable")
    first = [
        1 / (1 + next(place for place, number in enumerate(row) if number in wanted))
        for row, wanted in zip(order, right, strict=True)
    ]
    recall = [
        len(wanted.intersection(row[:10].tolist())) / len(wanted)
        for row, wanted in zip(order, right, strict=True)
    ]
    return float(np.mean(first)), float(np.mean(recall))


if __name__ == "__main__":
    main()
