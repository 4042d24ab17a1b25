"""Entries of a file: its chunks, each with a title that says where it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

from hotset.nouns.finding import Entry, EntryId, Sort
from hotset.sources.code.chunks import Chunk, rows
from hotset.sources.code.languages import Language


def entries(path: str, text: str, language: Language, chunks: Sequence[Chunk], time: float) -> list[Entry]:
    """A chunk that says the same keeps its id wherever in the file it moves: the index need not learn it again."""
    every = rows(text)
    told: Counter[str] = Counter()
    made = []
    for chunk in chunks:
        stretch = every.text(chunk.first, chunk.end)
        title = f"{path} {chunk.title}".rstrip()
        name = blake2b(f"{title}\0{stretch}".encode("utf-8", "replace"), digest_size=8).hexdigest()
        told[name] += 1
        made.append(
            Entry(
                id=EntryId(f"{path}#{name}" if told[name] == 1 else f"{path}#{name}-{told[name]}"),
                whole=path,
                sort=Sort.CODE,
                text=stretch,
                kind=language.name,
                title=title,
                time=time,
                path=path,
                lines=(every.lines[chunk.first], every.lines[chunk.end - 1]),
            )
        )
    return made
