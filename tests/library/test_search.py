"""A program that only opens a memory and asks finds what `hotset search` finds."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hotset
from hotset import tokens
from hotset.errors import BadInput
from tests.cli.conftest import Desk, desk_in, fill

FILES = {
    "src/uploads.py": (
        "def retry_upload(file):\n    '''Tries again when the wire breaks.'''\n    return file\n"
    ),
    "src/clock.go": (
        "package clock\n\n// Tick counts the hours of a clock.\nfunc "
        "Tick(n int) int {\n\treturn "
        "n + 1\n}\n"
    ),
    "README.md": "# Shop\n\nSells marmalade to bears.\n",
}
_PLACE = re.compile(r"^\d+\. (\S+):\d+-\d+", re.MULTILINE)


@pytest.fixture
def shop(tmp_path: Path) -> Desk:
    """A conversation that was kept, and a project that was indexed, by others."""
    desk = desk_in(tmp_path)
    fill(desk.data)
    for path, text in FILES.items():
        (desk.project / path).parent.mkdir(exist_ok=True)
        (desk.project / path).write_text(text)
    assert desk.run("index", "--yes").code == 0
    return desk


def opened(desk: Desk) -> hotset.Memory:
    return hotset.open(desk.project, data=desk.data)


def files(found: hotset.Retrieved) -> list[str]:
    return _PLACE.findall(found.text)


@pytest.mark.parametrize(
    "query",
    ["retry_upload", "try again after a broken wire", "which hour is it", '"counts the hours"'],
)
@pytest.mark.rest_slow
def test_a_program_finds_the_files_that_the_command_finds_in_its_order(shop: Desk, query: str):
    told = shop.run("search", query, "--type", "code", "-n", "20", "--json").json()

    with opened(shop) as memory:
        assert files(memory.search(query)) == [each["path"] for each in told]


def test_what_was_said_is_found_by_its_meaning_before_any_call_came(shop: Desk):
    fill(shop.data, "the vehicle's motor has failed", agent="codex")
    told = shop.run("search", "car engine trouble", "--type", "page", "--json").json()
    assert "motor has failed" in told[0]["text"], (
        "the command finds nothing without a word in common: the test says nothing"
    )

    with opened(shop) as memory:
        found = memory.search("car engine trouble")

    assert {each["page"] for each in told} <= set(found.pages)


def test_files_and_sessions_are_told_together_within_the_budget(shop: Desk):
    with opened(shop) as memory:
        for most in (60, 200, 2000):
            found = memory.search("clock", max_tokens=most)
            assert found.found
            assert tokens.count(found.text) <= most
            assert found.tokens <= most

    assert "src/clock.go:" in found.text
    assert "It was the clock." in found.text
    assert found.pages


def test_memories_and_tools_are_found_too_and_types_narrow_it(shop: Desk):
    skill = shop.project / ".agents" / "skills" / "clocks"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: clocks\ndescription: Winds and repairs a clock.\n---\nTurn the key.\n"
    )
    remembered = shop.run(
        "memory", "add", "The clock in the hall is five minutes slow.", "--json"
    ).json()["memory"]["id"]

    with opened(shop) as memory:
        everything = memory.search("clock").text
        alone = memory.search("clock", type="memory")
        tool = memory.search("clock", type=["tool"]).text
        with pytest.raises(BadInput):
            memory.search("clock", type="nonsense")
        with pytest.raises(BadInput):
            memory.search("clock", type="memory", path="src/")
        before = memory.search("clock", type=("page", "code")).text

    assert (
        remembered in everything,
        "src/clock.go:" in everything,
        "It was the clock." in everything,
    ) == (True, True, True)
    assert (remembered in alone.text, alone.found, alone.pages, files(alone)) == (
        True,
        True,
        (),
        [],
    )
    assert ("clocks (tool, " in tool, remembered in tool) == (True, False)
    assert remembered not in before
    assert everything.startswith(before)


def test_a_question_is_narrowed_by_kind_language_path_and_session(shop: Desk):
    with opened(shop) as memory:
        assert set(files(memory.search("clock", kind="go"))) == {"src/clock.go"}
        assert set(files(memory.search("marmalade retry clock", path="src/"))) == {
            "src/clock.go",
            "src/uploads.py",
        }
        said = memory.search("clock", kind="response")
        assert (files(said), "It was the clock." in said.text) == ([], True)
        (session,) = (each["session"]["id"] for each in shop.run("sessions", "--json").json())
        assert files(memory.search("clock", session=session)) == []
        for wrong in (
            {"kind": "nonsense"},
            {"kind": "go", "session": session},
            {"path": "src/", "kind": "prompt"},
        ):
            with pytest.raises(BadInput):
                memory.search("clock", **wrong)


def test_a_file_that_was_changed_since_is_found_as_it_is(shop: Desk):
    (shop.project / "src/sundial.py").write_text("def cast_a_shadow(): ...\n")

    with opened(shop) as memory:
        assert files(memory.search('"cast_a_shadow"')) == ["src/sundial.py"]


def test_nothing_of_the_files_is_found_once_the_permission_is_taken_back(shop: Desk):
    with opened(shop) as memory:
        assert files(memory.search("marmalade"))
        shop.run("index", "--revoke")
        assert not files(memory.search("marmalade"))
        assert "not indexed" in memory.search("marmalade", path="src/").text


def test_the_same_on_a_loop(shop: Desk):
    async def program() -> list[str]:
        async with opened(shop) as memory:
            return files(await memory.search("retry_upload", kind="python"))

    assert asyncio.run(program()) == ["src/uploads.py"]


def test_files_are_found_where_what_was_said_is_not_indexed(
    shop: Desk, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOTSET_SEARCH", "off")

    with opened(shop) as memory:
        found = memory.search("clock")

    assert "src/clock.go:" in found.text
    assert "It was the clock." in found.text


def test_an_index_that_cannot_be_opened_costs_the_files_and_not_what_was_said(shop: Desk):
    shutil.rmtree(shop.data / "index")
    (shop.data / "index").write_text("no folder")

    with opened(shop) as memory:
        assert "It was the clock." in memory.search("clock").text
        assert "cannot be searched" in memory.search("clock", path="src/").text


def test_a_question_to_a_project_of_which_nothing_is_kept_makes_no_index(tmp_path: Path):
    program = (
        "import sys, hotset\n"
        "with hotset.open(sys.argv[1], data=sys.argv[1] + '/data') as memory:\n"
        "    print(memory.search('anything').found, 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True
    )

    assert done.stdout == "False False\n"
    assert not (tmp_path / "data" / "index").exists()
