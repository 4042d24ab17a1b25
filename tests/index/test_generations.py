"""The folded structures are made anew when what made them changes, or when they are damaged;
searching goes on meanwhile."""

import logging
import shutil
import threading

import pytest

from hotset.index.local import LocalIndex
from hotset.index.port import Watermark
from hotset.nouns.search import Entry, EntryId, Filter, Query, Sort
from hotset.testing.fakes import HashingEmbedder

_OLD, _NEW = HashingEmbedder(64, "old"), HashingEmbedder(64, "new")


def _entries(first, last):
    return [
        Entry(
            EntryId(f"e{number}"),
            f"w{number}",
            Sort.CODE,
            f"common text with thing{number}x inside",
            turn=number,
        )
        for number in range(first, last)
    ]


def _finds(index, number):
    hits = index.search(Query(f"thing{number}x", deadline=30.0)).hits
    return bool(hits) and hits[0].entry.id == f"e{number}"


def _lacks(index):
    return index.search(Query("common text", deadline=30.0)).lacking


class _Waiting(HashingEmbedder):
    """An embedder that does not go on before it may."""

    def __init__(self):
        super().__init__(64, "new")
        self.may = threading.Event()
        self.begun = threading.Event()

    def embed(self, texts):
        if len(texts) > 1:
            self.begun.set()
            assert self.may.wait(120)
        return super().embed(texts)


@pytest.fixture
def folder(tmp_path):
    with LocalIndex(tmp_path / "index", _OLD, folds=False) as index:
        index.add(_entries(0, 50), Watermark("code", 3))
        assert index.fold()
    return tmp_path / "index"


def test_another_embedder_makes_a_new_generation_while_the_old_one_serves(folder):
    slow = _Waiting()
    with (
        LocalIndex(folder, _OLD, folds=False) as before,
        LocalIndex(folder, slow, folds=False) as index,
    ):
        folding = threading.Thread(target=index.fold)
        folding.start()
        assert slow.begun.wait(120)
        assert index.state().building == 0.0
        assert index.state().embedder == _OLD.id
        assert _finds(index, 7)
        assert _lacks(index) == {"meaning"}
        assert not _lacks(before)
        index.add(_entries(50, 60))
        assert _finds(before, 55)
        slow.may.set()
        folding.join()
        assert index.state().embedder == slow.id
        assert index.state().building is None
        assert not _lacks(index)
        assert _lacks(before) == {"meaning"}
        assert all(_finds(reader, number) for reader in (index, before) for number in range(60))
        assert len(list(folder.glob("generation-*"))) == 1


def test_vectors_of_another_form_are_not_read_and_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr("hotset.index.vectors.VERSION", 1)
    with LocalIndex(tmp_path / "index", _OLD, folds=False) as index:
        index.add(_entries(0, 50))
        index.fold()
        assert not _lacks(index)
    monkeypatch.undo()
    with LocalIndex(tmp_path / "index", _OLD, folds=False) as index:
        assert _lacks(index) == {"meaning"}
        assert _finds(index, 7)
        assert not index.troubles()
        assert index.fold()
        assert not _lacks(index)


def test_a_new_generation_that_was_cut_off_is_continued(folder):
    class Failing(HashingEmbedder):
        def embed(self, texts):
            raise OSError("no")

    with LocalIndex(folder, Failing(64, "new"), folds=False) as index:
        assert not index.fold()
        assert index.state().troubles == ("a fold failed (OSError)",)
    with LocalIndex(folder, _NEW, folds=False) as index:
        assert _finds(index, 3)
        assert index.fold()
        assert index.state().embedder == _NEW.id
        assert _finds(index, 3)


class _Dead(HashingEmbedder):
    """An embedder that went away."""

    def embed(self, texts):
        raise OSError("nobody answers")


def test_a_generation_that_another_embedder_began_and_nobody_goes_on_with_leaves(folder):
    with LocalIndex(folder, _Dead(64, "new"), folds=False) as index:
        assert not index.fold()
        assert index.state().building is not None

    with LocalIndex(folder, _OLD, folds=False) as index:
        index.fold()
        assert index.state().building is None
        assert _finds(index, 7)
    assert len([path for path in folder.iterdir() if path.is_dir()]) == 1


def test_other_rules_of_sealing_ask_for_everything_again_and_the_old_entries_leave_last(folder):
    with LocalIndex(folder, _OLD, sealing=2, folds=False) as index:
        assert index.watermark("code") == 0
        assert index.state().outdated == 50
        assert _finds(index, 7)
        index.add(_entries(0, 20), Watermark("code", 2))
        index.fold()
        assert _finds(index, 40)
        index.add(_entries(20, 30), Watermark("code", 3))
        index.fold()
        assert index.state().outdated == 0
        assert index.state().entries == 30
        assert _finds(index, 25)
        assert not _finds(index, 40)


@pytest.mark.parametrize("victim", ["words/meta.json", "words", "bytes", "doc", ""])
def test_missing_files_are_made_again_and_nobody_sees_an_error(folder, victim):
    generation = next(folder.glob("generation-*"))
    path = generation / victim
    if path.is_dir():
        _remove(path)
    else:
        path.unlink()
    with LocalIndex(folder, _OLD, folds=False) as index:
        assert _lacks(index)
        assert index.state().troubles
        while not index.fold():
            pass
        assert all(_finds(index, number) for number in range(50))
        assert not _lacks(index)


def test_cut_off_and_overwritten_files_are_made_again(folder):
    generation = next(folder.glob("generation-*"))
    for path in [*(generation / "words").glob("*"), *generation.glob("*")]:
        if path.is_file():
            path.write_bytes(b"\xff" * (path.stat().st_size // 2))
    with LocalIndex(folder, _OLD, folds=False) as index:
        _lacks(index)
        while not index.fold():
            pass
        assert all(_finds(index, number) for number in range(50))


@pytest.mark.parametrize("suffix", ["term", "idx", "fast"])
def test_files_that_are_overwritten_while_they_are_open_are_no_error_of_a_search(tmp_path, suffix):
    with LocalIndex(tmp_path / "index", _OLD, folds=False) as index:
        index.add(_entries(0, 1200))
        assert index.fold()
        assert _finds(index, 7)
        for path in (tmp_path / "index").glob(f"generation-*/words/*.{suffix}"):
            with path.open("r+b") as file:
                file.write(b"\xff" * path.stat().st_size)
        assert index.search(Query("common thing8x", deadline=30.0)).hits
        index.search(Query("common text", deadline=30.0))


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all" * 100, b"SQLite format 3\0" + bytes(5000)]
)
def test_unreadable_rows_are_thrown_away_and_their_sources_begin_anew(folder, content):
    for path in folder.glob("entries.db*"):
        path.write_bytes(content if path.name == "entries.db" else b"")
    with LocalIndex(folder, _OLD, folds=False) as index:
        assert index.watermark("code") == 0
        assert not index.search(Query("common text")).hits
        index.add(_entries(0, 50), Watermark("code", 3))
        assert _finds(index, 7)
        assert index.fold()
        assert _finds(index, 7)
        assert index.state().entries == 50


def test_rows_that_another_process_threw_away_are_seen_anew(folder):
    with LocalIndex(folder, _OLD, folds=False) as index:
        assert _finds(index, 7)
        for path in folder.glob("entries.db*"):
            path.unlink()
        with LocalIndex(folder, _OLD, folds=False) as other:
            other.add(_entries(7, 8))
            assert not _finds(index, 8)
            assert _finds(index, 7)
            index.add(_entries(9, 10))
            assert _finds(other, 9)


def test_nothing_of_rows_that_were_thrown_away_is_taken_for_new_ones(folder):
    with LocalIndex(folder, _OLD, folds=False) as index:
        index.add(_entries(50, 51))
        index.fold()
        index.add(_entries(51, 53))
        assert all(_finds(index, number) for number in (7, 50, 52))
        for path in folder.glob("entries.db*"):
            path.unlink()
        index.add(_entries(200, 253))
        assert _finds(index, 207)
        index.fold()
        assert all(_finds(index, number) for number in range(200, 253))
        assert not any(_finds(index, number) for number in (7, 50, 52))
        hits = index.search(Query("common text with thing7x", most=100, deadline=30.0))
        assert not hits.lacking
        assert {hit.entry.id for hit in hits.hits if hit.by_meaning is not None} <= {
            f"e{n}" for n in range(200, 253)
        }


def test_a_generation_of_mostly_removed_entries_gives_way_to_a_smaller_one(tmp_path, monkeypatch):
    monkeypatch.setattr("hotset.index.local._WASTED_LEAST", 100)
    with LocalIndex(tmp_path / "index", _OLD, folds=False) as index:
        index.add(_entries(0, 200))
        index.fold()
        index.remove(f"w{number}" for number in range(150))
        index.fold()
        before = next(index.folder.glob("generation-*"))
        index.fold()
        index.fold()
        assert not before.exists()
        assert index.state().building is None
        assert [_finds(index, number) for number in (3, 149, 150, 199)] == [
            False,
            False,
            True,
            True,
        ]


def test_a_search_sees_every_entry_while_entries_are_folded_and_generations_swapped(folder):
    stop = threading.Event()
    missed = []

    def look(index):
        while not stop.is_set():
            missed.extend(number for number in (3, 17, 42) if not _finds(index, number))

    with LocalIndex(folder, _OLD, folds=False) as reader:
        looking = threading.Thread(target=look, args=(reader,))
        looking.start()
        for embedder in (_NEW, _OLD, _NEW):
            with LocalIndex(folder, embedder, folds=False) as index:
                for number in range(50, 58):
                    index.replace(f"w{number}", _entries(number, number + 1))
                    index.remove([f"w{number}"])
                    index.fold()
        stop.set()
        looking.join()
    assert missed == []


def test_numbers_of_entries_are_never_given_twice(folder):
    with LocalIndex(folder, _OLD, folds=False) as index:
        [(last, _)] = index._entries.by_id([EntryId("e49")])
        index.remove(["w49"])
        index.add(_entries(100, 101))
        [(number, _)] = index._entries.by_id([EntryId("e100")])
        assert number == last + 1


def _remove(folder):
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()


def test_what_others_add_and_remove_counts_at_once_for_whoever_asked_just_before(folder):
    with (
        LocalIndex(folder, _OLD, folds=False) as asking,
        LocalIndex(folder, _OLD, folds=False) as other,
    ):
        of_new = Filter(sessions=frozenset({"new"}))
        new = Entry(EntryId("n"), "n", Sort.CODE, "common text with thing7x inside", session="new")
        for fold in (False, True):
            for _ in range(2):  # the second time nothing has changed
                assert _finds(asking, 7)
                assert not asking.search(Query("thing7x", of_new, deadline=30.0)).hits
            other.add([new])
            if fold:
                assert other.fold()
            assert [
                hit.entry for hit in asking.search(Query("thing7x", of_new, deadline=30.0)).hits
            ] == [new]
            other.remove(["n"])
            assert not asking.search(Query("thing7x", of_new, deadline=30.0)).hits
            assert other.fold()


def test_a_fold_whose_folder_is_gone_says_nothing_and_one_that_fails_does(folder, caplog):
    with caplog.at_level(logging.WARNING, "hotset"), LocalIndex(folder, _OLD, folds=False) as index:
        index.add(_entries(50, 51))
        (folder / "writer").unlink()
        (folder / "writer").mkdir()
        assert not index.fold()
        assert "a fold failed" in caplog.text
        assert index.troubles()
        caplog.clear()
        shutil.rmtree(folder)
        assert not index.fold()
        assert not caplog.text
    assert not folder.exists()
