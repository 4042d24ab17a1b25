"""What parsing promises, the process that runs it keeps."""

from __future__ import annotations

import json

import pytest

from hotset.errors import ToolFailed
from hotset.nouns.tooling import Tooling
from hotset.sources.tools.found.created import create, read_created
from hotset.sources.tools.found.signatures import read_script
from hotset.sources.tools.found.skills import SkillFolder, find_skills
from hotset.sources.tools.running.server_pool import ServerPoolThread

PAGES = '''
from __future__ import annotations
import datetime
import enum
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypedDict

class Color(enum.StrEnum):
    RED = "rot"
    BLUE = enum.auto()

@dataclass
class Place:
    x: float
    tags: list[str] = field(default_factory=list)

class Options(TypedDict, total=False):
    deep: bool

def show(
    path: Path,
    color: Color,
    place: Place,
    when: datetime.date,
    mode: Literal["r", "w"],
    options: Options,
    names: set[str],
    many: Annotated[dict[str, list[int]], "many"],
    pair: tuple[int, str],
    maybe: int | None = None,
) -> str:
    """Shows what came."""
    return " ".join((str(isinstance(path, Path)), color.name, str(place.x + 1), when.isoformat(), mode,
                     str(options), str(sorted(names)), str(many), str(pair), str(maybe)))

async def wait(seconds: float = 0) -> str:
    return "waited"

def _private(x: int): ...
def untyped(x): ...
def many(*args: int): ...
def twice(x: int) -> int:
    return x
'''  # noqa: E501
LINES = "def twice(x: int) -> int:\n    return 2 * x\n"


@pytest.fixture
def pool(tmp_path):
    pool = ServerPoolThread(Tooling(), project=tmp_path)
    yield pool
    pool.close()


@pytest.fixture
def skill(tmp_path):
    folder = tmp_path / "skills" / "pages"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: pages\ndescription: Pages.\n---\n")
    (folder / "scripts/pages.py").write_text(PAGES)
    (folder / "scripts/lines.py").write_text(LINES)
    (found,) = find_skills([SkillFolder(tmp_path / "skills", trusted=True)]).skills
    return found


def said(returned):
    assert not returned.failed, returned.content
    return json.loads(returned.content)[0]["text"]


def test_a_skills_process_offers_the_functions_that_were_found(pool, skill):
    found = {tool.own_name for tool in skill.tools if tool.own_name}
    assert found == {"show", "wait", "pages.twice", "lines.twice"}
    assert {tool.own_name for tool in pool.list_tools(skill.source).tools} == found
    assert {each.name for each in read_script(PAGES).functions} == {"show", "wait", "twice"}


def test_arguments_of_the_schema_are_what_the_function_takes(pool, skill):
    arguments = {
        "path": "/a/b",
        "color": "blue",
        "place": {"x": 1.5},
        "when": "2026-11-16",
        "mode": "w",
        "options": {"deep": True},
        "names": ["b", "a"],
        "many": {"a": [1]},
        "pair": [1, "x"],
    }
    text = said(pool.call(skill.source, "show", arguments))
    assert text == "True BLUE 2.5 2026-11-16 w {'deep': True} ['a', 'b'] {'a': [1]} (1, 'x') None"
    assert said(pool.call(skill.source, "lines.twice", {"x": 4})) == "8"
    assert said(pool.call(skill.source, "pages.twice", {"x": 4})) == "4"


def test_created_tools_run_and_one_that_is_called_like_anothers_helper_is_itself(pool, tmp_path):
    folder = tmp_path / "created"
    create(
        folder,
        "shout",
        (
            "def letters(x: str) -> str:\n    return x.upper()\n\ndef shout(x: str) -> str:\n    "
            "'Loud.'\n    return letters(x)\n"
        ),
    )
    tool = create(
        folder, "letters", "def letters(x: str) -> int:\n    'Counts.'\n    return len(x)\n"
    )
    source = read_created(folder).source
    assert said(pool.call(source, "shout", {"x": "ab"})) == "AB"
    assert said(pool.call(source, tool.own_name, {"x": "abc"})) == "3"


def test_a_skill_whose_python_does_not_run_did_not_start_and_is_left_alone_after_a_while(
    pool, skill
):
    python = skill.folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho no such library >&2\nexit 3\n")
    python.chmod(0o700)
    (broken,) = find_skills([SkillFolder(skill.folder.parent, trusted=True)]).skills
    for _ in range(3):
        with pytest.raises(ToolFailed, match=r"pages did not start: .* no such library"):
            pool.call(broken.source, "wait", {})
    with pytest.raises(ToolFailed, match="failed to start several times"):
        pool.call(broken.source, "wait", {})


@pytest.mark.slow
def test_a_call_of_a_skill_has_a_deadline_and_the_next_one_is_answered(tmp_path):
    created = tmp_path / "created"
    for name, code in (("hang", "threading.Event().wait()"), ("go", "pass")):
        create(created, name, f"import threading\ndef {name}() -> None:\n    'It.'\n    {code}\n")
    source = read_created(created).source
    pool = ServerPoolThread(Tooling(call_seconds=3.0), project=tmp_path)
    try:
        assert not pool.call(source, "go", {}).failed
        with pytest.raises(ToolFailed, match="did not answer in 3 s"):
            pool.call(source, "hang", {})
        assert not pool.call(source, "go", {}).failed
    finally:
        pool.close()
