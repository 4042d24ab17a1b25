"""What is saved is in the index a moment later."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from code_project import RamIndex, run, write

from hotset.sources.code.indexer import IndexReport, manifest_identity, watch_project
from hotset.sources.code.manifest import Manifest
from hotset.sources.code.parsers import Parsers


class _Watched:
    def __init__(self) -> None:
        self.index = RamIndex()
        self.reports: list[IndexReport] = []
        self._told = threading.Condition()

    def updated(self, report: IndexReport) -> None:
        with self._told:
            self.reports.append(report)
            self._told.notify_all()

    def until(self, holds) -> None:
        with self._told:
            assert self._told.wait_for(holds, timeout=120), self.reports


@contextmanager
def _watching(root: Path, data: Path, parsers: Parsers, *, polling: bool) -> Iterator[_Watched]:
    watched, stop = _Watched(), threading.Event()
    run(root, watched.index, data, parsers)

    def watch() -> None:
        with Manifest(data, manifest_identity()) as manifest:
            watch_project(
                root,
                watched.index,  # type: ignore[arg-type]
                manifest,
                stop=stop,
                parsers=parsers,
                updated=watched.updated,
                poll_seconds=0.05,
                force_polling=polling,
            )

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        if not polling:
            _wait_until_it_watches(root, watched)
        yield watched
    finally:
        stop.set()
        thread.join(120)
        assert not thread.is_alive()


def _wait_until_it_watches(root: Path, watched: _Watched) -> None:
    deadline, probe = time.monotonic() + 120, ""
    while not watched.reports and time.monotonic() < deadline:
        probe = f"{time.monotonic()}"
        write(root, {"probe.md": f"# {probe}\n"})
        time.sleep(0.1)
    watched.until(lambda: probe in watched.index.text())


@pytest.mark.row("V3")
@pytest.mark.parametrize("polling", [False, True])
def test_saved_deleted_renamed_and_new_files_are_followed(polling, root, data, parsers) -> None:
    write(root, {"a.md": "# before\n", "old.md": "# old\n", "gone/x.md": "# x\n"})
    with _watching(root, data, parsers, polling=polling) as watched:
        write(root, {"a.md": "# after\n"})
        watched.until(lambda: "after" in watched.index.text())
        (root / "old.md").rename(root / "new.md")
        watched.until(
            lambda: "new.md" in watched.index.by_whole and "old.md" not in watched.index.by_whole
        )
        write(root, {"fresh/deep/y.md": "# y\n"})
        watched.until(lambda: "fresh/deep/y.md" in watched.index.by_whole)
        (root / "gone/x.md").unlink()
        (root / "gone").rmdir()
        watched.until(lambda: "gone/x.md" not in watched.index.by_whole)


@pytest.mark.row("V3")
@pytest.mark.slow
def test_what_git_does_under_its_lock_becomes_one_batch(root, data, parsers) -> None:
    (root / ".git").mkdir()
    with _watching(root, data, parsers, polling=False) as watched:
        time.sleep(0.6)  # the last of the probes may be told of twice
        before = len(watched.reports)
        (root / ".git/index.lock").write_text("")
        for at in range(5):
            write(root, {f"f{at}.md": f"# {at}\n"})
            time.sleep(0.2)
        assert len(watched.reports) == before
        (root / ".git/index.lock").unlink()
        watched.until(lambda: "f4.md" in watched.index.by_whole)
        assert len(watched.reports) == before + 1


def test_what_is_ignored_causes_no_work(root, data, parsers) -> None:
    write(
        root,
        {
            ".gitignore": "out/\n",
            "out/a.md": "# a\n",
            "node_modules/b.md": "# b\n",
            "c.md": "# c\n",
        },
    )
    with _watching(root, data, parsers, polling=False) as watched:
        write(
            root,
            {"out/a.md": "# ignored\n", "node_modules/b.md": "# ignored\n", "c.md": "# seen\n"},
        )
        watched.until(lambda: "seen" in watched.index.text())
    assert "# ignored" not in watched.index.text()


@pytest.mark.slow
def test_a_name_that_is_no_utf_8_does_not_end_the_watch(root, data, parsers, capfd) -> None:
    with _watching(root, data, parsers, polling=False) as watched:
        Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.py")).write_bytes(b"x = 1\n")
        write(root, {"behind.py": "def behind(): pass\n"})
        watched.until(lambda: "behind.py" in watched.index.by_whole)
        write(root, {"later.py": "def later(): pass\n"})
        watched.until(lambda: "later.py" in watched.index.by_whole)
    assert capfd.readouterr().err == ""


def test_a_folder_that_goes_away_ends_the_watch(root, data, parsers, tmp_path) -> None:
    with _watching(root, data, parsers, polling=True):
        root.rename(tmp_path / "elsewhere")
        time.sleep(0.2)
