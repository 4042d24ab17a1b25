"""What one process made of skills serves the next one while nothing changed; and whatever happens
to the file, no harm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from hotset.sources.tools.found.skills import SkillCache, find_skills, skill_folders

SCRIPT = (
    'def merge(files: list[str], out: str = "out.pdf") -> str:\n    '
    '"""Merges PDF files."""\n    '
    "return out\n"
)
AN_HOUR_NS = 3_600_000_000_000
_LOOK = """
import sys, time
from pathlib import Path
from hotset.sources.tools.found import signatures
from hotset.sources.tools.found.skills import SkillCache
from hotset.sources.tools.found.skills import find_skills, skill_folders
project, home, file, later = sys.argv[1:]
kept = SkillCache(Path(file), lambda: time.time_ns() + int(later))
found = find_skills(skill_folders(Path(project), Path(home)), kept)
print([(skill.source.stamp, [(tool.name, tool.description) for tool in skill.tools]) for skill in found.skills])
print("yaml" in sys.modules)
"""  # noqa: E501


class Place:
    def __init__(self, folder: Path) -> None:
        self.project, self.home, self.file = (
            folder / "project",
            folder / "home",
            folder / "data" / "skills.kept",
        )
        self.project.mkdir()
        self.skill = self.home / ".agents" / "skills" / "pdf"
        (self.skill / "scripts").mkdir(parents=True)
        (self.skill / "SKILL.md").write_text(
            "---\nname: pdf\ndescription: About PDF files.\n---\nBody\n"
        )
        (self.skill / "scripts" / "pages.py").write_text(SCRIPT)

    def looked(self, *, later: int = AN_HOUR_NS) -> tuple[str, bool]:
        """By a process of its own: what it found, and whether it had to read."""
        command = [
            sys.executable,
            "-c",
            _LOOK,
            str(self.project),
            str(self.home),
            str(self.file),
            str(later),
        ]
        told = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=120
        ).stdout.splitlines()
        return told[0], told[1] == "True"


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_what_did_not_change_is_not_read_by_the_next_process_and_is_the_same(place):
    first, read = place.looked()
    again, read_again = place.looked()
    assert "pdf__merge" in first
    assert (read, read_again) == (True, False)
    assert again == first
    assert place.file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("changed", ["SKILL.md", "scripts/pages.py"])
def test_a_file_that_changed_is_read_again_even_with_its_old_size_and_time(place, changed):
    first, _ = place.looked()
    path = place.skill / changed
    at = path.stat()
    path.write_bytes(path.read_bytes().replace(b"PDF", b"FDP"))
    os.utime(path, ns=(at.st_atime_ns, at.st_mtime_ns))
    again, read = place.looked()
    assert read
    assert again != first
    assert "FDP" in again


def test_what_changed_a_moment_ago_is_not_kept(place):
    place.looked(later=-AN_HOUR_NS)  # as the clock was when nothing had settled
    assert not place.file.exists()


def test_a_skill_that_left_leaves_the_file_when_it_is_next_written(place):
    place.looked()
    other = place.skill.with_name("other")
    place.skill.rename(other)
    (other / "SKILL.md").write_text("---\nname: other\ndescription: About others.\n---\nBody\n")
    place.looked()
    assert b"About others." in place.file.read_bytes()
    assert b"About PDF files." not in place.file.read_bytes()


@pytest.mark.slow
def test_a_file_that_is_damaged_or_of_another_parser_is_as_good_as_none(place):
    first, _ = place.looked()
    whole = place.file.read_bytes()
    for damaged in (
        b"",
        whole[:40],
        whole[:-1],
        whole.replace(b"About", b"aBOUT"),
        b"\0" * len(whole),
    ):
        place.file.write_bytes(damaged)
        assert place.looked() == (first, True)
    place.file.unlink()
    place.file.mkdir()
    assert place.looked() == (first, True)


@given(st.binary(max_size=200))
@settings(max_examples=50, deadline=None)
def test_no_bytes_in_its_place_do_any_harm(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("kept")
    (folder / "skills.kept").write_bytes(content)
    found = find_skills(
        skill_folders(folder / "none", folder / "nobody"), SkillCache(folder / "skills.kept")
    )
    assert found.skills == ()


def test_nothing_is_written_where_there_are_no_skills(tmp_path):
    find_skills(
        skill_folders(tmp_path / "none", tmp_path / "nobody"),
        SkillCache(tmp_path / "data" / "skills.kept"),
    )
    assert not (tmp_path / "data").exists()
