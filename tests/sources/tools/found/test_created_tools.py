"""Tools that an agent wrote: checked before they are written, and never anywhere but in their
folder."""

from __future__ import annotations

import json
import os
import stat
import threading

import pytest

from hotset.errors import Malformed, NotFound
from hotset.nouns.tool import OriginKind
from hotset.sources.tools.found.created import (
    CreatedTools,
    create,
    read_created,
)

CODE = '''"""Counts words."""

def word_count(text: str, least: int = 1) -> int:
    """How many words a text has.

    Args:
        text: Any text.
        least: Letters that a word has at least.
    """
    return sum(len(word) >= least for word in text.split())
'''
PATHS = [
    "../word_count",
    "..",
    ".",
    "",
    "/tmp/word_count",
    "//tmp/word_count",
    "a/b",
    "a/../b",
    "./word_count",
    "~/word_count",
    "..\\word_count",
    "C:\\word_count",
    "C:word_count",
    "word_count.py",
    "word_count/",
    "word_count\0",
    "word_count\n",
    "\nword_count",
    "word count",
    "word-count",
    "wörd_count",
    "\ud800",
    "\u202eword_count",
    "\N{FULLWIDTH LATIN SMALL LETTER W}ord_count",
    "%2e%2e%2fword_count",
    "file:///word_count",
    "$HOME/word_count",
    ".word_count",
    "_word_count",
    "1word",
    "w" * 51,
    "CON/..",
    "json",
    "OS",
    "class",
    "None",
]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "tools" / "created"


def files(folder):
    return sorted(path.name for path in folder.glob("*.py")) if folder.exists() else []


def test_what_was_created_is_a_tool(folder):
    tool = create(folder, "word_count", CODE)
    assert (tool.name, tool.source, tool.origin, tool.own_name) == (
        "created__word_count",
        "created",
        OriginKind.CREATED,
        "word_count",
    )
    assert tool.description == "How many words a text has."
    assert json.loads(tool.parameters)["properties"]["least"]["default"] == 1
    assert read_created(folder).tools == (tool,)
    source = read_created(folder).source
    assert (source.name, source.origin, source.shared) == ("created", OriginKind.CREATED, True)
    assert source.launch.command[-1] == str(folder / "word_count.py")


def test_a_folder_that_is_missing_has_none(folder):
    assert (
        read_created(folder).tools,
        read_created(folder).source,
        CreatedTools(folder).read("x1"),
    ) == ((), None, None)
    assert not folder.exists()


def test_what_was_written_is_private_and_whole(folder):
    before = os.umask(0)
    try:
        create(folder, "word_count", CODE)
    finally:
        os.umask(before)
    assert (folder / "word_count.py").read_text() == CODE
    assert stat.S_IMODE((folder / "word_count.py").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "word_count.py"]


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.slow
def test_no_name_leads_anywhere_else(folder, tmp_path, name):
    (tmp_path / "word_count.py").write_text("precious")
    create(folder, "kept_here", CODE.replace("word_count", "kept_here"))
    with pytest.raises(Malformed):
        create(folder, name, CODE)
    for act in (
        lambda: CreatedTools(folder).remove(name),
        lambda: CreatedTools(folder).put_back(name, b"x"),
        lambda: CreatedTools(folder).read(name),
    ):
        with pytest.raises(NotFound):
            act()
    assert files(folder) == ["kept_here.py"]
    assert (tmp_path / "word_count.py").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.rglob("*.py")) == ["kept_here.py", "word_count.py"]


@pytest.mark.parametrize(
    ("code", "because"),
    [
        ("def word_count(text: str) -> int:\n  return (", "line 2"),
        ("", "no function word_count"),
        ("x = 1", "no function word_count"),
        ("def word_count(text): 'Counts.'", "no function word_count"),
        ("def word_count(*texts: str): 'Counts.'", "no function word_count"),
        ("def other(text: str): 'Counts.'", "it has other"),
        ("def word_count(text: str): ...", "docstring"),
        ("def word_count(frame: DataFrame): 'Counts.'", "no model can give frame"),
        ("\0", "null bytes"),
        ("'\ud800'", "half a character"),
        (CODE + "#" * 262_144, "262,144"),
        ("(" * 100_000, "parentheses"),
    ],
)
def test_code_that_can_be_no_tool_is_refused_before_anything_is_written(folder, code, because):
    with pytest.raises(Malformed, match=because):
        create(folder, "word_count", code)
    assert files(folder) == []


def test_a_tool_is_never_written_over(folder):
    create(folder, "word_count", CODE)
    for name in ("word_count", "Word_Count"):
        with pytest.raises(Malformed, match="already"):
            create(folder, name, CODE.replace("word_count", name).replace("How many", "Another"))
    assert (folder / "word_count.py").read_text() == CODE


def test_of_many_that_write_one_name_at_once_one_wins(folder):
    won = []

    def write(number):
        try:
            create(folder, "word_count", f"{CODE}# {number}\n")
        except Malformed:
            return
        won.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert (folder / "word_count.py").read_text().endswith(f"# {won[0]}\n")


def test_what_was_removed_comes_back_byte_for_byte(folder):
    create(folder, "word_count", CODE)
    content = CreatedTools(folder).remove("created__word_count")
    assert content == CODE.encode()
    assert (read_created(folder).tools, read_created(folder).source) == ((), None)
    CreatedTools(folder).put_back("created__word_count", content)
    assert CreatedTools(folder).read("word_count") == content
    assert [tool.name for tool in read_created(folder).tools] == ["created__word_count"]
    with pytest.raises(Malformed, match="remove it first"):
        CreatedTools(folder).put_back("word_count", content)


def test_the_folder_serves_whoever_deletes_and_restores_by_name(folder):
    create(folder, "word_count", CODE)
    tools = CreatedTools(folder)
    content = tools.read("created__word_count")
    tools.remove("created__word_count")
    assert tools.read("created__word_count") is None
    tools.put_back("created__word_count", content)
    assert tools.read("created__word_count") == CODE.encode()


def test_to_remove_what_is_not_there_names_what_is(folder):
    create(folder, "word_count", CODE)
    with pytest.raises(NotFound, match="word_count"):
        CreatedTools(folder).remove("words_count")


def test_what_somebody_put_there_that_is_no_tool_is_told_and_the_rest_works(folder, tmp_path):
    create(folder, "word_count", CODE)
    (folder / "broken.py").write_text("def broken(")
    (folder / "not-a-name.py").write_text(CODE)
    (tmp_path / "outside.py").write_text("def linked(x: int): 'Does.'")
    (folder / "linked.py").symlink_to(tmp_path / "outside.py")
    os.mkfifo(folder / "pipe.py")
    os.link(tmp_path / "outside.py", folder / "hard.py")
    (folder / "notes.txt").write_text("x")
    found = read_created(folder)
    assert [tool.name for tool in found.tools] == ["created__word_count"]
    assert found.source.launch.command[-1] == str(folder / "word_count.py")
    assert len(found.troubles) == 5
    assert CreatedTools(folder).read("linked") is None


def test_a_planted_link_is_neither_written_through_nor_removed_for_another_file(folder, tmp_path):
    create(folder, "kept_here", CODE.replace("word_count", "kept_here"))
    target = tmp_path / "target.py"
    target.write_text("precious")
    (folder / "word_count.py").symlink_to(target)
    with pytest.raises(Malformed, match="already"):
        create(folder, "word_count", CODE)
    with pytest.raises(NotFound):
        CreatedTools(folder).remove("word_count")
    assert target.read_text() == "precious"


def test_the_stamp_follows_the_code(folder):
    create(folder, "word_count", CODE)
    first = read_created(folder).source.stamp
    os.utime(folder / "word_count.py", (1, 1))
    assert read_created(folder).source.stamp == first
    create(folder, "other_tool", CODE.replace("word_count", "other_tool"))
    assert read_created(folder).source.stamp != first
    CreatedTools(folder).remove("other_tool")
    assert read_created(folder).source.stamp == first
    (folder / "word_count.py").write_text(CODE.replace("least: int = 1", "least: int = 2"))
    assert read_created(folder).source.stamp != first


def test_what_helps_one_tool_is_no_other_tool(folder):
    create(folder, "word_count", CODE + "\ndef letters(word: str) -> int:\n    return len(word)\n")
    assert [tool.name for tool in read_created(folder).tools] == ["created__word_count"]
    tool = create(
        folder,
        "letters",
        "def letters(text: str) -> int:\n    'Counts letters.'\n    return len(text)\n",
    )
    assert (tool.name, tool.own_name) == ("created__letters", "letters.letters"), (
        "the host has two functions of that name"
    )
