"""Embedders that fail, hang or lie, disks that are full: whoever asks is answered by what still
works."""

import subprocess
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from hotset.errors import DiskFull
from hotset.index.local import LocalIndex
from hotset.nouns.search import Entry, EntryId, Query, Sort
from hotset.testing.fakes import HashingEmbedder


def _entries(many, size=0):
    filling = "filling " * (size // 8)
    return [
        Entry(EntryId(f"e{n}"), f"w{n}", Sort.CODE, f"entry about thing{n}x {filling}")
        for n in range(many)
    ]


class _Embedder(HashingEmbedder):
    """As good as its answer lets it be."""

    def __init__(self, answer):
        super().__init__(64)
        self.answer = answer
        self.asked = 0

    def embed(self, texts):
        self.asked += 1
        return self.answer(super().embed, texts)


def _fails(_embed, _texts):
    raise RuntimeError("no")


@pytest.mark.row("V11")
@pytest.mark.row("V2")
def test_words_serve_while_the_embedder_fails_and_it_is_not_asked_each_time(tmp_path):
    embedder = _Embedder(lambda embed, texts: embed(texts))
    with LocalIndex(tmp_path / "i", embedder, folds=False) as index:
        index.add(_entries(10))
        index.fold()
        embedder.answer, embedder.asked = _fails, 0
        for n in range(10):
            hits = index.search(Query(f"thing{n}x", deadline=30.0))
            assert hits.hits[0].entry.id == f"e{n}"
            assert hits.lacking == {"meaning"}
        assert embedder.asked < 10
        assert any("meaning" in trouble for trouble in index.state().troubles)


@pytest.mark.row("V10")
def test_an_embedder_that_hangs_holds_nobody_up(tmp_path):
    release = threading.Event()
    embedder = _Embedder(lambda embed, texts: embed(texts))
    with LocalIndex(tmp_path / "i", embedder, folds=False) as index:
        index.add(_entries(10))
        index.fold()
        index.search(Query("warm"))
        embedder.answer = lambda embed, texts: release.wait(60) and embed(texts)
        for n in range(6):
            hits = index.search(Query(f"thing{n}x", deadline=1.0))
            assert hits.hits[0].entry.id == f"e{n}"
            assert hits.lacking == {"meaning"}
        release.set()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_an_entry_whose_vector_is_no_number_is_found_by_its_words(tmp_path, wrong):
    def spoilt(embed, texts):
        made = embed(texts)
        made[[at for at, text in enumerate(texts) if "thing3x" in text]] = wrong
        return made

    with LocalIndex(tmp_path / "i", _Embedder(spoilt), folds=False) as index:
        index.add(_entries(10))
        index.fold()
        hits = index.search(Query("thing3x", deadline=30.0)).hits
        assert hits[0].entry.id == "e3"
        assert all(np.isfinite(hit.score) for hit in hits)
        assert index.search(Query("thing4x", deadline=30.0)).hits[0].by_meaning is not None
        assert any("1 entries have no vector" in trouble for trouble in index.state().troubles)


def test_vectors_of_another_size_than_promised_are_refused_and_words_go_on(tmp_path):
    with LocalIndex(
        tmp_path / "i", _Embedder(lambda embed, texts: embed(texts)[:, :63]), folds=False
    ) as index:
        index.add(_entries(10))
        assert not index.fold()
        hits = index.search(Query("thing3x", deadline=30.0))
        assert hits.hits[0].entry.id == "e3"
        assert hits.lacking == {"meaning"}


@contextmanager
def _small_disk(folder, size):
    folder.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder],
        capture_output=True,
        check=False,
    )
    if mount.returncode:
        pytest.skip("a small disk can only be mounted by root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def _fill(index):
    for portion in range(100):
        index.add(
            Entry(EntryId(f"{portion}-{n}"), str(portion), Sort.PAGE, f"{portion} {n} page " * 100)
            for n in range(100)
        )


@pytest.mark.slow
def test_on_a_full_disk_searching_goes_on_and_adding_does_when_there_is_room(tmp_path):
    with _small_disk(tmp_path / "disk", 12 * 1024 * 1024) as disk:
        ballast = disk / "others"
        ballast.write_bytes(bytes(6 * 1024 * 1024))
        with LocalIndex(disk / "i", HashingEmbedder(64), folds=False) as index:
            index.add(_entries(10))
            index.fold()
            with pytest.raises(DiskFull):
                _fill(index)
            index.fold()
            assert index.search(Query("thing7x", deadline=30.0)).hits[0].entry.id == "e7"
            ballast.unlink()
            while not index.fold():
                pass
            index.add(_entries(12)[11:])
            assert index.search(Query("thing11x", deadline=30.0)).hits[0].entry.id == "e11"
            assert index.search(Query("thing7x", deadline=30.0)).hits[0].entry.id == "e7"
            assert index.state().lag <= 1
