"""Files and outlines for agents: inside of the project, inside of a budget, without secrets."""

from __future__ import annotations

import os

import pytest
from code_project import write

from hotset.errors import NotFound
from hotset.sources.code.reading import get_file, outline
from hotset.tokens import count

_FILE = "".join(f'class K{at}:\n    """Doc {at}."""\n\n    def m(self):\n        return {at}\n\n' for at in range(60))

_OUTSIDE = [
    "../outside.txt",
    "a/../../outside.txt",
    "./../outside.txt",
    "a/./../../outside.txt",
    "..",
    "../",
    "/etc/passwd",
    "//etc/passwd",
    "~/.profile",
    "~root/.profile",
    "..\\outside.txt",
    "a\\..\\..\\outside.txt",
    "C:\\Windows\\win.ini",
    "C:/Windows/win.ini",
    "\\\\server\\share",
    "a/..",
    "....//outside.txt",
    "..;/outside.txt",
    "%2e%2e/outside.txt",
    "..%2foutside.txt",
    "a.txt\0.png",
    "../outside.txt\0",
    "link.txt",
    "linked/outside.txt",
    "linked/../a/a.txt",
    "a.txt/../../outside.txt",
    "/proc/self/environ",
    "/dev/stdin",
    "",
    ".",
    "a",
    "a.txt\n",
    "\u202etxt.a",
    "x" * 5000,
    "x/" * 3000,
    "\udcff",
    "file:///etc/passwd",
]


@pytest.mark.parametrize("path", _OUTSIDE)
def test_no_path_leads_out_of_the_project_or_to_anything_but_a_file(path, root, tmp_path) -> None:
    write(tmp_path, {"outside.txt": "outsider"})
    write(root, {"a.txt": "insider", "a/a.txt": "insider"})
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    (root / "linked").symlink_to(tmp_path)
    with pytest.raises(NotFound) as error:
        get_file(root, path)
    assert "outsider" not in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_asked_for_in_other_words_is_the_same_file(root) -> None:
    write(root, {"a/b.txt": "insider"})
    assert "insider" in get_file(root, "./a//b.txt").text


def test_a_special_file_is_not_opened(root) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(NotFound, match="no regular file"):
        get_file(root, "pipe")


def test_a_short_file_comes_whole(root) -> None:
    write(root, {"a.py": "x = 1\n"})
    told = get_file(root, "a.py")
    assert told.text.endswith("x = 1\n")
    assert not told.truncated


@pytest.mark.parametrize("budget", [80, 200, 1000])
def test_a_long_file_stays_within_the_budget_and_says_how_to_go_on(budget, root) -> None:
    write(root, {"a.py": _FILE})
    told = get_file(root, "a.py", budget=budget)
    assert told.truncated
    assert count(told.text) == told.tokens <= budget
    assert 'lines="' in told.text


def test_lines_come_with_their_numbers(root) -> None:
    write(root, {"a.py": _FILE})
    told = get_file(root, "a.py", lines=[(7, 9)])
    assert "7\tclass K1:" in told.text
    assert "K2" not in told.text


def test_a_symbol_comes_whole_by_its_name_or_its_full_name(root, parsers) -> None:
    write(root, {"a.py": _FILE})
    assert "return 7" in get_file(root, "a.py", symbol="K7.m", parsers=parsers).text
    assert "Doc 7" in get_file(root, "a.py", symbol="K7", parsers=parsers).text
    assert "60 places" in get_file(root, "a.py", symbol="m", parsers=parsers, budget=4000).text


def test_a_symbol_that_is_not_there_brings_names_that_are(root, parsers) -> None:
    write(root, {"a.py": _FILE})
    assert "K7" in get_file(root, "a.py", symbol="K_7", parsers=parsers).text


def test_a_name_that_is_nearly_right_brings_the_right_one(root) -> None:
    write(root, {"src/application.py": "x"})
    with pytest.raises(NotFound, match=r"application\.py"):
        get_file(root, "src/aplication.py")


def test_secrets_are_sealed_and_files_of_secrets_are_refused(root) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    write(root, {"a.py": f"x = 1\ntoken = '{token}'\ny = 2\n", ".env": "K=v", "sub/id_rsa": "key"})
    assert token not in get_file(root, "a.py").text
    assert "3\ty = 2" in get_file(root, "a.py", lines=[(3, 3)]).text
    for path in (".env", "sub/id_rsa", "./sub//id_rsa"):
        with pytest.raises(NotFound, match="secrets"):
            get_file(root, path)


def test_an_outline_tells_symbols_with_lines_and_comments(root, parsers) -> None:
    write(root, {"a.py": _FILE})
    told = outline(root, "a.py", parsers=parsers, budget=4000)
    assert "1-5 class K0  # Doc 0." in told.text
    assert "  4-5 def m(self)" in told.text


@pytest.mark.parametrize("budget", [100, 300])
def test_an_outline_stays_within_the_budget_and_says_what_it_left_out(budget, root, parsers) -> None:
    write(root, {"a.py": _FILE})
    told = outline(root, "a.py", parsers=parsers, budget=budget)
    assert told.truncated
    assert "left out" in told.text
    assert told.tokens <= budget


def test_an_outline_of_a_folder_tells_its_files_and_what_they_define(root, parsers) -> None:
    write(root, {"src/a.py": "def f(): pass\n", "src/b.md": "# Title\n", "other/c.py": "def g(): pass\n", "src/.env": "K=v"})
    told = outline(root, "src", parsers=parsers)
    assert "src/a.py" in told.text
    assert "def f()" in told.text
    assert "# Title" in told.text
    assert "def g" not in told.text


def test_an_outline_of_everything_and_of_nothing(root, parsers) -> None:
    assert "no files" in outline(root, parsers=parsers).text
    write(root, {"a.txt": "words\n"})
    assert "a.txt" in outline(root, ".", parsers=parsers).text
    assert "no symbols" in outline(root, "a.txt", parsers=parsers).text
    with pytest.raises(NotFound):
        outline(root, "../", parsers=parsers)
