"""A project on disk, an index in memory, and what a run over them found."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hotset.index.port import Watermark
from hotset.nouns.search import Entry, Sort
from hotset.sources.code.indexer import IndexReport, index_project, manifest_identity
from hotset.sources.code.manifest import Manifest
from hotset.sources.code.parsers import Parsers
from hotset.sources.code.scan import ScanLimits

GRAMMARS = Path(tempfile.gettempdir()) / f"hotset-test-grammars-{os.getuid()}"
"""Kept between runs: unpacking a grammar takes a fifth of a second."""


class RamIndex:
    """What an index is told, without finding anything."""

    def __init__(self) -> None:
        self.by_whole: dict[str, dict[str, Entry]] = {}
        self.marks: dict[str, int] = {}
        self.told = 0
        """Wholes that were added, replaced or removed."""

    def add(self, entries: Iterable[Entry], watermark: Watermark | None = None) -> None:
        for entry in entries:
            self.by_whole.setdefault(entry.whole, {})[entry.id] = entry
            self.told += 1
        self._mark(watermark)

    def remove(self, wholes: Iterable[str], watermark: Watermark | None = None) -> None:
        for whole in wholes:
            self.by_whole.pop(whole, None)
            self.told += 1
        self._mark(watermark)

    def replace(
        self, whole: str, entries: Iterable[Entry], watermark: Watermark | None = None
    ) -> None:
        self.by_whole.pop(whole, None)
        self.add(entries, watermark)

    def purge(self, wholes: Iterable[str]) -> None:
        self.remove(wholes)

    def wholes(self, sort: Sort) -> Sequence[str]:
        return [
            whole
            for whole, entries in self.by_whole.items()
            if any(entry.sort is sort for entry in entries.values())
        ]

    def watermark(self, name: str) -> int:
        return self.marks.get(name, 0)

    def text(self) -> str:
        return "\n".join(
            entry.title + "\n" + entry.text
            for entries in self.by_whole.values()
            for entry in entries.values()
        )

    def without_times(self) -> dict[str, list[Entry]]:
        return {
            whole: sorted(
                (replace(entry, time=0.0) for entry in entries.values()),
                key=lambda each: each.lines,
            )
            for whole, entries in self.by_whole.items()
            if entries
        }

    def _mark(self, watermark: Watermark | None) -> None:
        if watermark is not None:
            self.marks[watermark.name] = watermark.number


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def run(
    root: Path, index: RamIndex, data: Path, parsers: Parsers, limits: ScanLimits | None = None
) -> IndexReport:
    with Manifest(data, manifest_identity()) as manifest:
        return index_project(root, index, manifest, parsers=parsers, limits=limits)  # type: ignore[arg-type]
