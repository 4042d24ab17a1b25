"""What changed is done again, and nothing else; the index is what it would be from scratch."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from code_project import RamIndex, run, write
from hypothesis import HealthCheck, given, settings, strategies as st

from hotset.errors import StoreBusy
from hotset.files.root import Root, Stat
from hotset.sources.code.indexer import index_paths, index_project, manifest_identity
from hotset.sources.code.manifest import DATABASE, FileRow, Manifest
from hotset.sources.code.scan import SkippedFiles, scan

_LONG_AGO = 1_700_000_000
_NAMES = [
    "a.md",
    "b.txt",
    "src/c.md",
    "src/d.yaml",
    "src/in/e.toml",
    "x/f.md",
    "x/.gitignore",
    ".gitignore",
]
_CONTENTS = [
    "# One\n\ntext\n",
    "a: 1\nb: 2\n",
    "[t]\nx = 1\n",
    "b.txt\n",
    "*.md\n",
    "",
    "\0bin",
    "# Generated: @generated\n",
    "other\n" * 80,
]


_LATER = 2e10
"""Seconds: a time at which nothing is too fresh to be trusted by its stat."""


def _settle(manifest: Manifest, root: Root) -> None:
    manifest.settle(
        walked for walked, _ in list(manifest.differences(scan(root, SkippedFiles()), _LATER))
    )


def _age(root: Path) -> None:
    """As if nothing had been changed for a while."""
    for path in [*root.rglob("*"), root]:
        os.utime(path, (_LONG_AGO, _LONG_AGO), follow_symlinks=False)


_edits = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(_NAMES), st.sampled_from(_CONTENTS)),
        st.tuples(st.just("delete"), st.sampled_from(_NAMES), st.just("")),
        st.tuples(st.just("rename"), st.sampled_from(_NAMES), st.sampled_from(_NAMES)),
        st.tuples(st.just("drop folder"), st.sampled_from(["src", "src/in", "x"]), st.just("")),
        st.tuples(st.just("touch"), st.sampled_from(_NAMES), st.just("")),
    ),
    max_size=5,
)


def _edit(root: Path, what: str, name: str, more: str) -> None:
    path = root / name
    match what:
        case "write":
            write(root, {name: more})
        case "delete":
            path.unlink(missing_ok=True)
        case "rename" if path.exists():
            (root / more).parent.mkdir(parents=True, exist_ok=True)
            path.replace(root / more)
        case "drop folder":
            shutil.rmtree(path, ignore_errors=True)
        case "touch" if path.exists():
            path.touch()


@pytest.mark.row("V3")
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rounds=st.lists(_edits, min_size=1, max_size=4), partly=st.booleans())
@pytest.mark.slow
def test_after_any_edits_the_index_is_what_it_would_be_from_scratch(
    rounds, partly, parsers
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        root.mkdir()
        index = RamIndex()
        for at, edits in enumerate(rounds):
            for edit in edits:
                _edit(root, *edit)
            if partly and at:
                with Manifest(Path(folder) / "data", manifest_identity()) as manifest:
                    touched = [
                        name
                        for edit in edits
                        for name in (*_and_above(edit[1]), *_and_above(edit[2]))
                        if name
                    ]
                    index_paths(root, index, manifest, touched, parsers=parsers)
            else:
                run(root, index, Path(folder) / "data", parsers)
            scratch = RamIndex()
            run(root, scratch, Path(folder) / f"scratch{at}", parsers)
            assert index.without_times() == scratch.without_times()


def _and_above(path: str):
    while path:
        yield path
        path = path.rpartition("/")[0]


@pytest.mark.row("V3")
def test_an_unchanged_project_is_known_without_a_walk_and_tells_the_index_nothing(
    root, data, parsers
) -> None:
    write(root, {f"d{at % 7}/f{at}.md": f"# {at}\n" for at in range(50)})
    _age(root)
    index = RamIndex()
    run(root, index, data, parsers)
    before = index.told
    with Manifest(data, manifest_identity()) as manifest:
        report = index_project(root, index, manifest, parsers=parsers)
    assert (report.files, report.changed, index.told) == (50, 0, before)


def test_one_look_at_known_files_finds_an_edit_and_asks_for_a_walk_when_names_changed(
    root, data, parsers
) -> None:
    write(root, {"a/one.md": "# 1\n", "a/two.md": "# 2\n"})
    run(root, RamIndex(), data, parsers)
    with Manifest(data, manifest_identity()) as manifest, Root(root) as opened:
        _settle(manifest, opened)
        two = (root / "a/two.md").stat().st_mtime_ns
        os.utime(root / "a/two.md", ns=(two, two + 1))
        assert "a/two.md" in (manifest.edited(root) or {})
        write(root, {"a/three.md": "# 3\n"})
        assert manifest.edited(root) is None


@pytest.mark.row("V3")
def test_a_subtree_that_is_as_it_was_is_known_by_its_hash(root, data, parsers) -> None:
    write(root, {"a/b/c.md": "# 1\n", "a/d.md": "# 2\n", "e/f.md": "# 3\n"})
    run(root, RamIndex(), data, parsers)
    with Manifest(data, manifest_identity()) as manifest, Root(root) as opened:
        _settle(manifest, opened)
        assert all(
            difference is None
            for _, difference in manifest.differences(scan(opened, SkippedFiles()), _LATER)
        )
        write(root, {"a/b/c.md": "# changed\n"})
        differing = {
            folder.path
            for folder, difference in manifest.differences(scan(opened, SkippedFiles()), _LATER)
            if difference is not None
        }
    assert differing == {"a/b", "a", ""}


def test_renamed_and_touched_files_are_not_parsed_again(root, data, parsers) -> None:
    write(root, {f"f{at}.py": f"def f{at}(): pass\n" for at in range(5)})
    index = RamIndex()
    assert run(root, index, data, parsers).parsed == 5
    (root / "f0.py").rename(root / "moved.py")
    os.utime(root / "f1.py", (1, 1))
    report = run(root, index, data, parsers)
    assert (report.changed, report.parsed, report.removed) == (1, 0, 1)
    assert "moved.py" in index.by_whole
    assert "f0.py" not in index.by_whole


@pytest.mark.row("V3")
def test_a_switch_of_branches_and_back_parses_nothing_twice(root, data, parsers) -> None:
    def git(*arguments: str) -> None:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", *arguments]
        subprocess.run(command, cwd=root, check=True, capture_output=True)

    git("init", "-q", "-b", "one")
    write(root, {f"f{at}.py": f"def one{at}(): pass\n" for at in range(10)})
    git("add", ".")
    git("commit", "-qm", "one")
    git("switch", "-qc", "two")
    write(root, {f"f{at}.py": f"def two{at}(): pass\n" for at in range(5)})
    git("commit", "-qam", "two")
    index = RamIndex()
    assert run(root, index, data, parsers).parsed == 10
    git("switch", "-q", "one")
    assert run(root, index, data, parsers).parsed == 5
    git("switch", "-q", "two")
    report = run(root, index, data, parsers)
    assert (report.changed, report.parsed) == (5, 0)
    assert "two3" in index.text()
    assert "one3" not in index.text()


def test_a_file_that_was_changed_within_the_tick_of_a_clock_is_looked_at_again(
    root, data, parsers
) -> None:
    write(root, {"a.md": "# aaa\n"})
    ahead = time.time_ns() + 60_000_000_000  # fresh for as long as the test takes
    os.utime(root / "a.md", ns=(ahead, ahead))
    index = RamIndex()
    run(root, index, data, parsers)
    with Manifest(data, manifest_identity()) as manifest:
        kept = manifest.row("a.md")
    assert kept is not None
    assert kept.stat.mtime_ns == 0  # no file is as old as that: it will be looked at again
    write(root, {"a.md": "# bbb\n"})
    os.utime(root / "a.md", ns=(ahead, ahead))
    run(root, index, data, parsers)
    assert "bbb" in index.text()


class _DyingIndex(RamIndex):
    """Does what it is told, and dies before it can say so."""

    dies = True

    def add(self, entries, watermark=None) -> None:
        super().add(entries, watermark)
        if self.dies and watermark is not None:
            raise KeyboardInterrupt


@pytest.mark.parametrize("changes_meanwhile", [False, True])
def test_a_run_that_ends_between_the_index_and_the_manifest_is_done_again(
    changes_meanwhile, root, data, parsers, tmp_path
) -> None:
    write(root, {"a.md": "# A\n" + "long\n" * 200, "b.md": "# B\n"})
    index = _DyingIndex()
    with pytest.raises(KeyboardInterrupt):
        run(root, index, data, parsers)
    assert index.by_whole
    if changes_meanwhile:
        write(root, {"a.md": "# short\n"})
        (root / "b.md").unlink()
    index.dies = False
    run(root, index, data, parsers)
    scratch = RamIndex()
    run(root, scratch, tmp_path / "scratch", parsers)
    assert index.without_times() == scratch.without_times()


def test_an_index_that_lost_everything_gets_everything_again_without_parsing(
    root, data, parsers
) -> None:
    write(root, {"a.py": "def f(): pass\n", "b.md": "# B\n"})
    run(root, RamIndex(), data, parsers)
    index = RamIndex()
    report = run(root, index, data, parsers)
    assert set(index.by_whole) == {"a.py", "b.md"}
    assert report.parsed == 0


def test_an_index_that_lost_its_latest_batches_gets_these_again(root, data, parsers) -> None:
    write(root, {"a.md": "# A\n"})
    index = RamIndex()
    run(root, index, data, parsers)
    older = RamIndex()
    older.by_whole, older.marks = (
        {name: dict(entries) for name, entries in index.by_whole.items()},
        dict(index.marks),
    )
    write(root, {"b.md": "# B\n"})
    run(root, index, data, parsers)
    run(root, older, data, parsers)
    assert older.without_times() == index.without_times()


def test_entries_of_a_manifest_that_is_gone_leave_the_index(root, data, parsers) -> None:
    write(root, {"a.md": "# A\n", "b.md": "# B\n"})
    index = RamIndex()
    run(root, index, data, parsers)
    (root / "b.md").unlink()
    for file in data.iterdir():
        file.unlink()
    run(root, index, data, parsers)
    assert set(index.by_whole) == {"a.md"}


def test_a_manifest_of_another_cutter_begins_anew_and_is_private(root, data, parsers) -> None:
    write(root, {"a.md": "# A\n"})
    run(root, RamIndex(), data, parsers)
    with Manifest(data, "another") as manifest:
        assert manifest.totals().files == 0
        assert (data / DATABASE).stat().st_mode & 0o777 == 0o600


def test_a_run_that_is_stopped_goes_on_where_it_was(root, data, parsers) -> None:
    write(root, {f"f{at:03}.md": f"# {at}\n" for at in range(200)})
    index = RamIndex()
    looks = iter(range(1000))
    with Manifest(data, manifest_identity()) as manifest:
        report = index_project(
            root, index, manifest, parsers=parsers, stop=lambda: next(looks) >= 100
        )
        assert report.stopped
        taken = report.files
        assert 0 < taken < 200
        report = index_project(root, index, manifest, parsers=parsers)
    assert (report.files, report.changed) == (200, 200 - taken)


def test_a_run_that_is_to_stop_at_once_compares_nothing_and_forgets_nothing(
    root, data, parsers
) -> None:
    write(root, {f"{folder}/{at}.md": f"# {at}\n" for folder in "ab" for at in range(5)})
    index = RamIndex()
    run(root, index, data, parsers)
    (root / "a" / "0.md").unlink()
    (root / "b" / "new.md").write_text("# new\n")
    with Manifest(data, manifest_identity()) as manifest:
        report = index_project(root, index, manifest, parsers=parsers, stop=lambda: True)
        assert (report.stopped, report.changed, report.removed, report.files) == (True, 0, 0, 10)
        report = index_project(root, index, manifest, parsers=parsers)
    assert (report.stopped, report.changed, report.removed, report.files) == (False, 1, 1, 10)


def test_two_at_once_are_one_after_the_other(root, data, parsers) -> None:
    write(root, {"a.md": "# A\n"})
    with (
        Manifest(data, manifest_identity()) as one,
        Manifest(data, manifest_identity()) as other,
        one.alone(),
        pytest.raises(StoreBusy, match="another process"),
        other.alone(patience=0.1),
    ):
        pass


@pytest.mark.row("V3")
def test_progress_counts_up_to_all_files_and_names_none(root, data, parsers) -> None:
    write(root, {f"f{at:03}.md": f"# {at}\n" for at in range(300)})
    told = []
    with Manifest(data, manifest_identity()) as manifest:
        index_project(root, RamIndex(), manifest, parsers=parsers, progress=told.append)
    assert [each.done for each in told] == sorted(each.done for each in told)
    assert (told[-1].done, told[-1].total) == (300, 300)
    assert len(told) >= 2


def test_ids_of_chunks_stay_when_what_stands_above_them_grows(root, data, parsers) -> None:
    long = "".join(f"def f{at}():\n" + "    x = 1\n" * 15 + "\n" for at in range(5))
    write(root, {"a.py": long})
    index = RamIndex()
    run(root, index, data, parsers)
    before = set(index.by_whole["a.py"])
    write(root, {"a.py": "def new():\n" + "    y = 2\n" * 15 + "\n" + long})
    run(root, index, data, parsers)
    assert len(before & set(index.by_whole["a.py"])) >= 4


def test_the_files_that_were_changed_last_are_told_first(data) -> None:
    changed = {"old.py": (10, 90), "a/new.py": (40, 90), "b/too_fresh_to_be_trusted.py": (0, 50)}
    with Manifest(data, manifest_identity()) as manifest:
        manifest.keep({path: FileRow(Stat(1, *times, 1)) for path, times in changed.items()})
        manifest.keep({"logo.png": FileRow(Stat(1, 99, 99, 1), why="binary")})
        assert manifest.latest(2) == ["b/too_fresh_to_be_trusted.py", "a/new.py"]
        assert len(manifest.latest(9)) == 3


@pytest.mark.parametrize(
    "content", [b"no database at all " * 500, b"SQLite format 3\0" + b"\xff" * 8000]
)
def test_a_damaged_manifest_is_made_again_from_the_files(content, root, data, parsers) -> None:
    write(root, {"a.py": "def f(): ...\n"})
    index = RamIndex()
    run(root, index, data, parsers)
    (data / DATABASE).write_bytes(content)

    report = run(root, index, data, parsers)

    assert (report.files, set(index.without_times())) == (1, {"a.py"})
