"""Files and outlines for agents: inside of the project, inside of a budget, without secrets."""

from __future__ import annotations

import os
import re

import pytest
from code_project import GRAMMARS, write

from hotset.errors import NotFound
from hotset.sources.code.file_reader import get_file, outline_path
from hotset.sources.code.parsers import ParseResult, Parsers
from hotset.text.languages import LANGUAGES, Language
from hotset.tokens import count

_FILE = "".join(
    f'class K{at}:\n    """Doc {at}."""\n\n    def m(self):\n        return {at}\n\n'
    for at in range(60)
)

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
    assert "60 definitions" in get_file(root, "a.py", symbol="m", parsers=parsers, budget=4000).text


def test_a_symbol_that_is_not_there_brings_names_that_are(root, parsers) -> None:
    write(root, {"a.py": _FILE})
    with pytest.raises(NotFound, match=r"no symbol 'K_7'; it has K.*outline\(path\)"):
        get_file(root, "a.py", symbol="K_7", parsers=parsers)


def test_lines_that_are_not_there_are_an_error_that_says_which_are(root) -> None:
    write(root, {"a.py": "x = 1\ny = 2\n"})
    with pytest.raises(NotFound, match="it has lines 1-2"):
        get_file(root, "a.py", lines=[(7, 9)])


@pytest.mark.parametrize(
    ("path", "text", "symbol", "last"),
    [
        ("README.md", "# Title\n\ntext\n", "Title", "3\ttext"),
        ("a.rst", "Title\n=====\n\ntext\n", "Title", "4\ttext"),
        ("a.yaml", "a: 1\nb:\n  c: 2\n", "b", "3\t  c: 2"),
        ("a.toml", "[a]\nx = 1\n[b]\ny = 2\n", "b", "4\ty = 2"),
        ("a.ini", "[a]\nx = 1\n", "a", "2\tx = 1"),
    ],
)
def test_the_last_section_of_a_file_ends_with_its_last_line(  # noqa: PLR0917
    path, text, symbol, last, root, parsers
) -> None:
    write(root, {path: text})
    assert get_file(root, path, symbol=symbol, parsers=parsers).text.endswith(last)
    lines = text.count("\n")
    assert f"-{lines} " in outline_path(root, path, parsers=parsers).text
    assert f"-{lines + 1} " not in outline_path(root, path, parsers=parsers).text


_LEFT_OUT = {
    "priv/a.py": r"excludes priv\.",
    "ignored_dir/deep/a.py": r"\.gitignore, \.ignore or \.hotsetignore excludes ignored_dir",
    "src/own.log": r"excludes src/own\.log",
    "node_modules/x/i.js": "node_modules is left out by its name",
    "src/node_modules/x/i.js": "src/node_modules is left out by its name",
    ".git/config": r"\.git is left out by its name",
    "yarn.lock": r"yarn\.lock is left out by its name",
}


@pytest.mark.row("V17")
@pytest.mark.parametrize("path", _LEFT_OUT)
def test_what_the_index_leaves_out_by_a_rule_is_not_read_and_the_rule_is_told(
    path, root, parsers
) -> None:
    write(
        root,
        dict.fromkeys(_LEFT_OUT, "x = 'insider'\n")
        | {".gitignore": "ignored_dir/\n", ".hotsetignore": "priv/\n"},
    )
    write(root, {"src/.gitignore": "*.log\n", "src/kept.py": "x = 'insider'\n"})
    for ask in (get_file, outline_path):
        with pytest.raises(NotFound, match=_LEFT_OUT[path]) as error:
            ask(root, path, parsers=parsers)
        assert "your own file tool" in str(error.value)
        with pytest.raises(NotFound):
            ask(root, str(root / path), parsers=parsers)
    folder = path.rpartition("/")[0]
    if folder not in ("", "src"):
        with pytest.raises(NotFound, match=_LEFT_OUT[path]):
            outline_path(root, folder, parsers=parsers)
    assert "insider" in get_file(root, "src/kept.py").text
    assert path.rpartition("/")[2] not in outline_path(root, parsers=parsers).text


def test_a_name_that_may_have_been_meant_is_none_that_is_left_out(root) -> None:
    write(root, {".gitignore": "secrets.py\n", "secrets.py": "x", "secretary.py": "x"})
    with pytest.raises(NotFound) as error:
        get_file(root, "secrets")
    assert "secretary.py" in str(error.value)
    assert "secrets.py" not in str(error.value)


def test_a_path_with_the_projects_folder_in_front_is_taken(root, tmp_path, parsers) -> None:
    write(root, {"src/a.py": "def f(): pass\n"})
    (tmp_path / "other").symlink_to(root)
    for folder in (root, tmp_path / "other"):
        assert "def f" in get_file(folder, f"{folder}/src/a.py").text
        assert "def f" in get_file(folder, f"{root}/src/a.py").text
        assert "src/a.py" in outline_path(folder, f"{folder}/src/", parsers=parsers).text
        assert "src/a.py" in outline_path(folder, str(folder), parsers=parsers).text
        with pytest.raises(NotFound):
            get_file(folder, f"{folder}/../outside.txt")
        with pytest.raises(NotFound):
            get_file(folder, f"{folder}er/src/a.py")


def test_characters_that_hide_are_shown_and_counted_and_no_line_moves(root) -> None:
    write(root, {"a.py": "# a\u202eb\n# \U000e0041\U000e0042c\u2028d\nx = '\u0627\u200f'\n"})
    told = get_file(root, "a.py", lines=[(1, 3)]).text
    assert "1\t# a\ufffdb\n2\t# \ufffd\ufffdc\ufffdd\n3\tx = '\u0627\u200f'" in told
    assert "4 hidden characters shown as \ufffd" in told


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
    told = outline_path(root, "a.py", parsers=parsers, budget=4000)
    assert "1-5 class K0  # Doc 0." in told.text
    assert "  4-5 def m(self)" in told.text


@pytest.mark.parametrize("budget", [100, 300])
def test_an_outline_stays_within_the_budget_and_says_what_it_left_out(
    budget, root, parsers
) -> None:
    write(root, {"a.py": _FILE})
    told = outline_path(root, "a.py", parsers=parsers, budget=budget)
    assert told.truncated
    assert "left out" in told.text
    assert told.tokens <= budget


def test_an_outline_of_a_folder_tells_its_files_and_what_they_define(root, parsers) -> None:
    write(
        root,
        {
            "src/a.py": "def f(): pass\n",
            "src/b.md": "# Title\n",
            "other/c.py": "def g(): pass\n",
            "src/.env": "K=v",
        },
    )
    told = outline_path(root, "src", parsers=parsers)
    assert "src/a.py" in told.text
    assert "def f()" in told.text
    assert "# Title" in told.text
    assert "def g" not in told.text


def test_methods_of_go_and_cpp_stand_beside_their_types_and_are_called_by_them(
    root, parsers
) -> None:
    go = (
        "package x\n\ntype Router struct{}\n\nfunc New() *Router {\n\treturn nil\n}\n\nfunc (r "
        "*Router) Add(p string) {\n}\n"
    )
    write(
        root,
        {"r.go": go, "a.cpp": "class A {\n  int open();\n};\nvoid f() {\n}\nint A::open() {\n}\n"},
    )
    assert (
        "\n9-10 func (r *Router) Add(p string)" in outline_path(root, "r.go", parsers=parsers).text
    )
    assert "9\tfunc" in get_file(root, "r.go", symbol="Router.Add", parsers=parsers).text
    told = outline_path(root, "a.cpp", parsers=parsers).text
    assert "\n  2-2 int open()" in told
    assert "\n6-7 int A::open()" in told
    for name in ("A.open", "A::open"):
        text = get_file(root, "a.cpp", symbol=name, parsers=parsers).text
        assert "2 definitions" in text
        assert "6\tint A::open()" in text


def test_a_file_that_was_parsed_in_part_says_so(root, parsers) -> None:
    write(root, {"a.kt": "fun whole() = 1\n\nclass {{{ ] fun\n"})
    told = outline_path(root, "a.kt", parsers=parsers).text
    assert "fun whole()" in told
    assert "parsed in part: definitions in lines 3 may be missing" in told


def test_a_file_whose_grammar_gave_up_says_so_and_is_not_tried_again(root) -> None:
    write(root, {"a.py": "(" * 400_000 + ")" * 400_000})
    with Parsers(GRAMMARS, processes=1, seconds=0.3) as own:
        own.symbols("", LANGUAGES["python"])
        assert "could not be parsed" in outline_path(root, "a.py", parsers=own).text
        own.symbols("", LANGUAGES["python"])
        (worker,) = own._idle.queue
        assert "could not be parsed" in outline_path(root, "a.py", parsers=own).text
        assert "a.py (could not be parsed)" in outline_path(root, parsers=own).text
        assert own._idle.queue == [worker]


_MANY = {
    f"src/part{at // 8}/module_{at}.py": "".join(
        f"def function_{at}_{n}(): pass\n" for n in range(12)
    )
    for at in range(64)
}


@pytest.mark.parametrize("budget", [1000, 2000, 5000])
def test_an_outline_of_a_folder_names_all_files_and_tells_what_fits_and_what_it_left_out(
    budget, root, parsers
) -> None:
    write(
        root,
        _MANY
        | {"README.md": "# Title\n", "tests/test_a.py": "def test_a(): pass\n", "notes.txt": "x\n"},
    )
    told = outline_path(root, budget=budget, parsers=parsers)
    assert all(path.rpartition("/")[2] in told.text for path in _MANY)
    assert told.tokens <= budget
    assert told.tokens > 0.7 * budget
    assert told.truncated
    shown = {path for path in _MANY if f"\n{path}\n  1-1 def" in told.text}
    assert 0 < len(shown) < len(_MANY)
    note = told.text.rpartition("\n")[2]
    found = re.fullmatch(
        r'\[left out symbols of (\d+) of 67 files: raise max_tokens, or outline\(path="(.*)"\)\]',
        note,
    )
    assert found is not None, note
    left = len(_MANY) - len(shown) + ("def test_a" not in told.text) + ("# Title" not in told.text)
    assert int(found[1]) == left
    assert "  1-1 def function" in outline_path(root, found[2], budget=budget, parsers=parsers).text


def test_an_outline_parses_no_file_whose_symbols_cannot_fit(root) -> None:
    write(root, _MANY)
    asked = []

    class Counting(Parsers):
        def symbols(self, text: str, language: Language) -> ParseResult:
            asked.append(text)
            return super().symbols(text, language)

    with Counting(GRAMMARS, processes=1) as own:
        outline_path(root, budget=1200, parsers=own)
    assert 0 < len(asked) < 16


@pytest.mark.parametrize("budget", [100, 300, 600])
def test_where_not_all_names_fit_every_folder_is_told_with_its_number_of_files(
    budget, root, parsers
) -> None:
    write(
        root,
        {f"src/part{at // 50}/a_rather_long_module_name_{at}.py": "x = 1\n" for at in range(400)},
    )
    told = outline_path(root, budget=budget, parsers=parsers)
    assert told.truncated
    assert told.tokens <= budget
    note = told.text.rpartition("\n")[2]
    assert re.fullmatch(
        r'\[left out names of \d+ files: raise max_tokens, or outline\(path="src.*"\)\]',
        note,
    )
    assert ("src/part3/" in told.text) or ("src/: 400 files" in told.text)


def test_an_outline_of_everything_and_of_nothing(root, parsers) -> None:
    assert "no files" in outline_path(root, parsers=parsers).text
    write(root, {"a.txt": "words\n"})
    assert "a.txt" in outline_path(root, ".", parsers=parsers).text
    assert "no symbols" in outline_path(root, "a.txt", parsers=parsers).text
    with pytest.raises(NotFound):
        outline_path(root, "../", parsers=parsers)
