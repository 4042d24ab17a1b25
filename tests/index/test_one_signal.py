"""Words and meaning side by side: each serves alone, vectors come by themselves, and one signal
alone has to be surer."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from hotset.index.embed.table import WordVectors
from hotset.index.local import LocalIndex
from hotset.nouns.search import Entry, EntryId, Query, Sort
from hotset.sources.code.code_search import find_code
from hotset.testing import HashingEmbedder

HERON, CLOCK, LAKE = (
    "a heron by the lake",
    "the clock on the tower strikes twelve times at noon",
    "the lake is deep and cold today",
)


def entries() -> list[Entry]:
    return [
        Entry(EntryId(name), name, Sort.CODE, text)
        for name, text in (("heron", HERON), ("clock", CLOCK), ("lake", LAKE))
    ]


@pytest.fixture
def without_words(tmp_path: Path) -> Path:
    """An index whose full text is lost."""
    with LocalIndex(tmp_path / "index", HashingEmbedder(256), folds=False) as index:
        index.add(entries())
        assert index.fold()
    (generation,) = (tmp_path / "index").glob("generation-*")
    shutil.rmtree(generation / "words")
    return tmp_path / "index"


@pytest.mark.row("V2")
@pytest.mark.row("V11")
def test_meaning_serves_while_full_text_is_down_and_it_rests_after_some_failures(
    without_words: Path,
):
    with LocalIndex(without_words, HashingEmbedder(256), folds=False) as index:
        found = [index.search(Query(f"{HERON} {number}", deadline=30.0)) for number in range(4)]
        troubles = index.state().troubles

    assert [(hits.hits[0].entry.id, hits.hits[0].by_words, hits.lacking) for hits in found] == [
        ("heron", None, {"words"})
    ] * 4
    assert any("words is left out for now" in trouble for trouble in troubles)


@pytest.mark.row("V11")
def test_words_serve_while_the_vectors_of_the_shipped_table_are_lost(tmp_path: Path):
    with LocalIndex(tmp_path, WordVectors(), folds=False) as index:
        index.add(entries())
        assert index.fold()
    (generation,) = tmp_path.glob("generation-*")
    (generation / "bytes").unlink()
    with LocalIndex(tmp_path, WordVectors(), folds=False) as index:
        found = [index.search(Query(f"{HERON} {number}", deadline=30.0)) for number in range(4)]
        assert [
            (hits.hits[0].entry.id, hits.hits[0].by_meaning, hits.lacking) for hits in found
        ] == [("heron", None, {"meaning"})] * 4
        assert index.state().troubles
        while not index.fold():
            pass
    with LocalIndex(tmp_path, WordVectors(), folds=False) as index:
        assert not index.search(Query(HERON, deadline=30.0)).lacking


def test_both_signals_find_the_same_one_after_the_other_and_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with LocalIndex(tmp_path, WordVectors(), folds=False) as index:
        index.add(entries())
        assert index.fold()
        one_by_one = index.search(Query(LAKE, deadline=30.0))
    monkeypatch.setattr("hotset.index.hybrid_search._QUICK_ROWS", 0)
    with LocalIndex(tmp_path, WordVectors(), folds=False) as index:
        assert index.search(Query(LAKE, deadline=30.0)) == one_by_one


@pytest.mark.row("V11")
def test_what_one_signal_finds_alone_must_be_closer_than_what_both_find(
    tmp_path: Path, without_words: Path
):
    query = Query("the lake was frozen over all winter long", deadline=30.0)
    with LocalIndex(tmp_path / "both", HashingEmbedder(256), folds=False) as both:
        both.add(entries())
        both.fold()
        by_both = {hit.entry.id: hit.by_meaning or 0.0 for hit in find_code(both, query).hits}
    with LocalIndex(without_words, HashingEmbedder(256), folds=False) as one:
        by_meaning = {hit.entry.id: hit.by_meaning or 0.0 for hit in one.search(query).hits}
        alone = {hit.entry.id for hit in find_code(one, query).hits}
        close = {hit.entry.id for hit in find_code(one, Query(LAKE, deadline=30.0)).hits}

    assert "lake" in by_both
    assert by_both["lake"] == pytest.approx(by_meaning["lake"], abs=0.02)
    assert alone == set()
    assert close == {"lake"}


@pytest.mark.row("V2")
def test_vectors_are_made_in_the_background(tmp_path: Path):
    with LocalIndex(tmp_path / "index", HashingEmbedder(256)) as index:
        index.add(entries())
        assert (
            index.search(Query("heron", deadline=0.015)).hits[0].entry.id == "heron"
        )  # by its words, at once
        deadline = time.monotonic() + 120
        while index.state().lag:
            assert time.monotonic() < deadline, "nobody folded"
            time.sleep(0.01)
        (hit, *_) = index.search(Query("heron", deadline=30.0)).hits

    assert hit.by_words is not None
    assert hit.by_meaning is not None
