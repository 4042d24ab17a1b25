"""Which files are taken, in which order."""

from __future__ import annotations

import pytest
from code_project import write

from hotset.files.root import Root, Stat, Why
from hotset.sources.code.indexer import in_order
from hotset.sources.code.scan import SkippedFiles, scan


def _scanned(root, under=None):
    tally = SkippedFiles()
    with Root(root) as opened:
        folders = list(scan(opened, tally, under=under))
    files = {f"{folder.path}/{name}".lstrip("/") for folder in folders for name in folder.files}
    return files, tally, folders


@pytest.mark.row("V3")
def test_ignore_files_of_git_of_ripgrep_and_of_ours_are_followed(root) -> None:
    write(
        root,
        {
            ".gitignore": "*.log\n!keep.log\n/top.py\n",
            ".ignore": "ignored/\n",
            "src/.hotsetignore": "mine.py\n",
            **dict.fromkeys(
                [
                    "a.log",
                    "keep.log",
                    "top.py",
                    "src/top.py",
                    "ignored/x.py",
                    "src/mine.py",
                    "src/yours.py",
                ],
                "x",
            ),
        },
    )
    files, tally, _ = _scanned(root)
    assert files == {
        ".gitignore",
        ".ignore",
        "keep.log",
        "src/.hotsetignore",
        "src/top.py",
        "src/yours.py",
    }
    assert tally.counts[Why.IGNORED] == 4


@pytest.mark.row("V3")
def test_what_tools_put_into_a_project_is_left_out_and_sources_of_the_same_name_are_not(
    root,
) -> None:
    paths = [
        "node_modules/a.js",
        ".venv/b.py",
        "web/package.json",
        "web/dist/c.js",
        "build/d.py",
        "yarn.lock",
        "x.min.js",
        ".github/ci.yml",
    ]
    write(root, dict.fromkeys(paths, "x"))
    files, tally, _ = _scanned(root)
    assert files == {"web/package.json", "build/d.py", ".github/ci.yml"}
    assert tally.counts[Why.EXCLUDED] == 5


@pytest.mark.row("V3")
def test_copied_code_is_left_out_unless_the_ignore_file_beside_it_wants_it(root) -> None:
    write(root, dict.fromkeys(["vendor/a.go", "web/vendor/b.js", "c.py"], "x"))
    assert _scanned(root)[0] == {"c.py"}
    write(root, {".hotsetignore": "*.log\n!vendor/\n"})
    assert _scanned(root)[0] == {".hotsetignore", "vendor/a.go", "c.py"}


def test_a_folder_is_told_after_all_that_is_in_it_and_the_root_last(root) -> None:
    write(root, dict.fromkeys(["a/b/c.py", "a/d.py", "e/f.py", "g.py"], "x"))
    _, _, folders = _scanned(root)
    order = [folder.path for folder in folders]
    assert order[-1] == ""
    assert order.index("a/b") < order.index("a")


def test_one_folder_is_looked_at_alone_under_the_rules_of_those_above_it(root) -> None:
    write(
        root,
        {".gitignore": "*.log\n", **dict.fromkeys(["a/x.py", "a/y.log", "a/b/z.py", "c.py"], "x")},
    )
    files, _, folders = _scanned(root, under="a")
    assert files == {"a/x.py"}
    assert [folder.path for folder in folders] == ["a"]


def test_examples_are_few_and_counts_are_whole(root) -> None:
    write(root, {f"f{at}.png": "x" for at in range(50)})
    _, tally, _ = _scanned(root)
    assert tally.counts[Why.BINARY] == 50
    assert len(tally.examples[Why.BINARY]) == 5


def test_what_git_excludes_for_this_clone_alone_is_followed_and_a_git_that_is_a_file_leads_nowhere(
    root, tmp_path
) -> None:
    write(root, {".git/info/exclude": "private.md\n", "private.md": "x", "a.md": "x"})
    assert _scanned(root)[0] == {"a.md"}
    write(tmp_path, {"elsewhere/info/exclude": "a.md\n"})
    write(root, {"sub/.git": f"gitdir: {tmp_path}/elsewhere\n", "sub/a.md": "x"})
    assert "sub/a.md" in _scanned(root)[0]


def test_an_empty_folder_and_one_that_is_gone_have_no_files(root) -> None:
    assert _scanned(root)[0] == set()
    assert _scanned(root, under="nowhere")[2] == []


@pytest.mark.row("V3")
def test_sources_come_before_tests_documents_and_what_is_carried_along() -> None:
    stat = Stat(1, 10**18, 10**18, 1)
    paths = [
        "vendor/a.go",
        "docs/b.md",
        "tests/test_c.py",
        "src/d.py",
        "e.py",
        "src/f.json",
        "src/g_test.go",
    ]
    assert in_order(dict.fromkeys(paths, stat)) == [
        "e.py",
        "src/d.py",
        "src/f.json",
        "src/g_test.go",
        "tests/test_c.py",
        "docs/b.md",
        "vendor/a.go",
    ]


@pytest.mark.row("V3")
def test_what_was_changed_lately_comes_first() -> None:
    old, new = Stat(1, 10**18, 10**18, 1), Stat(1, 2 * 10**18, 2 * 10**18, 1)
    assert in_order({"src/a.py": old, "src/b.py": new}) == ["src/b.py", "src/a.py"]


def test_a_folder_is_told_as_soon_as_the_walk_has_left_it(root) -> None:
    """So that memory holds the folders of one path and not of the whole project."""
    write(
        root,
        {
            f"{folder}/{name}.md": "x\n"
            for folder in ("a", "a/b", "c", "d")
            for name in ("one", "two")
        },
    )
    with Root(root) as opened:
        walk = scan(opened, SkippedFiles())
        first = next(walk)
        write(root, {f"{folder}/three.md": "x\n" for folder in ("a", "c", "d")})
        later = list(walk)
    assert "three.md" not in first.files
    assert any("three.md" in folder.files for folder in later)
    told = [first.path, *(folder.path for folder in later)]
    assert sorted(told) == ["", "a", "a/b", "c", "d"]
    assert told.index("a/b") < told.index("a")
    assert told[-1] == ""
