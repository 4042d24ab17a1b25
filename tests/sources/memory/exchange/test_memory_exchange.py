"""Memories out to files and in from them, whatever the form."""

from __future__ import annotations

from pathlib import Path

import pytest
from memories_made import fact, holding

from hotset.errors import BadInput
from hotset.nouns.memory import Trust
from hotset.sources.memory.exchange import FileFormat, export_memories, format_of, import_memories


@pytest.mark.parametrize("form", FileFormat)
def test_what_was_exported_comes_into_another_store_by_itself(tmp_path: Path, form: FileFormat):
    one = fact("one")
    seen: list[tuple[int, int]] = []
    assert export_memories(holding([one]), tmp_path / "out", form) == 1
    other = holding()
    taken = import_memories(
        other, tmp_path / "out", now=2e9, progress=lambda _, done, total: seen.append((done, total))
    )
    assert (taken.new, seen[-1]) == (1, (1, 1))
    memory = other.memory(one.id)
    assert (memory.text, memory.trust, memory.run) == ("one", Trust.OUTSIDE, taken.run)
    assert "out" in memory.source.places


def test_a_folder_of_something_else_is_a_sentence(tmp_path: Path):
    (tmp_path / "notes.md").write_text("mine")
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(BadInput, match="has no memories in it"):
            format_of(folder)
