"""Agent Skills: found, read and refused as the specification and common sense say; nothing of them
is ever run to look at it."""

from __future__ import annotations

import json
import os
import random
import string
import subprocess
import sys

import pytest

from hotset.errors import NotFound
from hotset.nouns.tool import OriginKind
from hotset.sources.tools.found.folders import listing
from hotset.sources.tools.found.skills import SkillFolder, find_skills, read_skill, skill_folders

BODY = "# Guide\n\nSee [forms](references/forms.md).\n"
SCRIPT = '''"""Works on pages."""

def merge(files: list[str], out: str = "out.pdf") -> str:
    """Merges PDF files.

    Args:
        files: In this order.
    """
    return out

def _helper(a: int) -> int:
    return a
'''


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path):
    return tmp_path / "project"


def make(root, name, *, head=None, body=BODY, files=None):
    folder = root / name
    folder.mkdir(parents=True)
    head = f"name: {name}\ndescription: About {name}. Use it for {name}." if head is None else head
    (folder / "SKILL.md").write_text(f"---\n{head}\n---\n{body}")
    for path, content in (files or {}).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def mine(home, name="pdf", **kinds):
    return make(home / ".agents/skills", name, **kinds)


def find(project, home, *more):
    return find_skills(skill_folders(project, home, more))


def one(project, home):
    found = find(project, home)
    (skill,) = found.skills
    return skill


def test_a_skill_is_a_tool_that_reads_it_and_one_for_each_typed_function_of_its_scripts(
    project, home
):
    folder = mine(
        home,
        files={
            "scripts/pages.py": SCRIPT,
            "scripts/run.sh": "exit 1",
            "references/forms.md": "# Forms",
        },
    )
    skill = one(project, home)
    reader, merge = skill.tools
    assert (reader.name, reader.own_name, reader.description) == (
        "pdf",
        "",
        "About pdf. Use it for pdf.",
    )
    assert list(json.loads(reader.parameters)["properties"]) == ["file"]
    assert (merge.name, merge.own_name, merge.source, merge.origin) == (
        "pdf__merge",
        "merge",
        "pdf",
        OriginKind.SKILL,
    )
    assert merge.description == "Merges PDF files."
    assert json.loads(merge.parameters)["required"] == ["files"]
    assert skill.source.shared
    assert skill.source.trusted
    assert skill.source.launch.command[-1] == str(folder / "scripts/pages.py")
    assert list(listing(skill.folder).files) == [
        "SKILL.md",
        "references/forms.md",
        "scripts/pages.py",
        "scripts/run.sh",
    ]


def test_a_skill_without_typed_functions_has_nothing_to_run(project, home):
    mine(
        home,
        files={
            "scripts/cli.py": "import sys\ndef main():\n    print(sys.argv)\n",
            "scripts/_own.py": SCRIPT,
        },
    )
    skill = one(project, home)
    assert [tool.name for tool in skill.tools] == ["pdf"]
    assert skill.source.launch is None
    assert skill.source.stamp


def test_a_function_that_only_the_script_itself_can_call_is_no_tool(project, home):
    text = """
from pypdf import PdfReader
def fields(reader: PdfReader) -> list[str]: ...
def all_fields(readers: dict[str, list[PdfReader]]) -> list[str]: ...
def ask_for_password(): ...
def main() -> None: ...
def version() -> str: ...
def pages(file: str | PdfReader, cache: PdfReader = None) -> int: ...
"""
    mine(home, files={"scripts/a.py": text})
    assert [tool.own_name for tool in one(project, home).tools[1:]] == ["version", "pages"]


def test_functions_of_one_name_in_two_scripts_are_two_tools(project, home):
    mine(
        home,
        files={
            "scripts/a.py": "def go(x: int): ...",
            "scripts/b.py": "def go(x: int): ...\ndef only() -> int: ...",
        },
    )
    assert [(tool.name, tool.own_name) for tool in one(project, home).tools[1:]] == [
        ("pdf__a_go", "a.go"),
        ("pdf__b_go", "b.go"),
        ("pdf__only", "only"),
    ]


def test_what_nobody_described_is_described_by_its_name_and_its_skill(project, home):
    mine(home, files={"scripts/a.py": "def fill_form(x: int): ..."})
    assert one(project, home).tools[1].description == "fill form. About pdf"


def test_a_skill_of_the_project_hides_the_users_and_is_not_trusted(project, home):
    mine(home)
    theirs = make(project / ".claude/skills", "pdf", head="name: pdf\ndescription: Theirs.")
    found = find(project, home)
    (skill,) = found.skills
    assert (skill.folder, skill.source.trusted, skill.description) == (theirs, False, "Theirs.")
    assert "same name" in found.troubles[0]


def test_folders_that_the_user_names_are_theirs_and_relative_ones_are_the_projects(
    project, home, tmp_path
):
    make(tmp_path / "shared", "a")
    make(project / "tools", "b")
    found = find(project, home, str(tmp_path / "shared"), "tools")
    assert {skill.name: skill.source.trusted for skill in found.skills} == {"a": True, "b": False}


def test_a_home_that_is_the_project_is_the_users(home):
    mine(home)
    assert find(home, home).skills[0].source.trusted


def test_skills_in_deeper_folders_are_found_but_not_too_deep_nor_inside_of_a_skill(project, home):
    root = home / ".agents/skills"
    make(root / "a/b/c/d/e", "deep")
    make(root / "a/b/c/d/e/f/g", "deeper")
    outer = make(root, "outer")
    make(outer / "examples", "inner")
    make(root / "node_modules", "installed")
    assert sorted(skill.name for skill in find(project, home).skills) == ["deep", "outer"]


def test_more_than_two_thousand_folders_are_not_looked_at(project, home):
    root = home / ".agents/skills"
    make(root, "a-first")
    for i in range(2050):
        (root / f"x{i}").mkdir()
    found = find(project, home)
    assert [skill.name for skill in found.skills] == ["a-first"]
    assert "2,000" in found.troubles[0]


@pytest.mark.parametrize(
    ("head", "name", "description"),
    [
        ("description: It works.", "pdf", "It works."),
        ("name:\ndescription: It works.", "pdf", "It works."),
        ("name: [a]\ndescription: It works.", "pdf", "It works."),
        ("name: other\ndescription: Use when: asked", "other", "Use when: asked"),
        ("name: PDF Forms!\ndescription: x", "PDF Forms!", "x"),
        ('name: "a\\nb\\u202e"\ndescription: x', "a b\ufffd", "x"),
        ("name: pdf\r\ndescription: It works.\r", "pdf", "It works."),
        ("name: pdf\ndescription: " + "x" * 5000, "pdf", "x" * 4000),
        ("name: pdf\ndescription: x\nunknown: 1\nmetadata: nothing", "pdf", "x"),
    ],
)
def test_a_skill_that_breaks_a_rule_is_used_as_far_as_it_can_be(
    project, home, head, name, description
):
    mine(home, head=head)
    skill = one(project, home)
    assert (skill.name, skill.description) == (name, description)


def test_a_byte_order_mark_does_not_matter(project, home):
    folder = mine(home)
    (folder / "SKILL.md").write_bytes(b"\xef\xbb\xbf" + (folder / "SKILL.md").read_bytes())
    assert one(project, home).name == "pdf"


@pytest.mark.parametrize(
    ("head", "because"),
    [
        ("name: pdf", "no description"),
        ("name: pdf\ndescription: ' '", "no description"),
        ("name: pdf\ndescription: [a]", "no description"),
        ("name: created\ndescription: x", "hotset's own"),
        ("name: pdf\ndescription: !!python/object/apply:os.system [touch ran]", "tags"),
        ("name: &a pdf\ndescription: *a", "anchors"),
        ("name: pdf\ndescription: " + "[" * 5000, "deeper"),
        ("name: pdf\ndescription: '" + "x" * 70_000 + "'", "shorten"),
        ("x", "fields"),
    ],
)
def test_a_skill_that_cannot_be_used_is_told_and_the_others_work(project, home, head, because):
    mine(home, head=head)
    mine(home, "good")
    found = find(project, home)
    assert [skill.name for skill in found.skills] == ["good"]
    (trouble,) = found.troubles
    assert because in trouble
    assert "skills/pdf" in trouble


def test_a_file_in_small_letters_is_told(project, home):
    folder = mine(home)
    (folder / "SKILL.md").rename(folder / "skill.md")
    assert "SKILL.md" in find(project, home).troubles[0]


def test_links_that_lead_out_are_left_out_and_those_that_stay_are_found_once(
    project, home, tmp_path
):
    make(tmp_path / "outside", "away")
    real = mine(home, "real")
    (home / ".agents/skills/away").symlink_to(tmp_path / "outside/away")
    (home / ".agents/skills/again").symlink_to(real)
    (home / ".agents/skills/loop").symlink_to(home / ".agents/skills")
    (home / ".claude/skills").mkdir(parents=True)
    (home / ".claude/skills/real").symlink_to(real)
    found = find(project, home)
    assert [skill.name for skill in found.skills] == ["real"]
    (trouble,) = found.troubles
    assert "skills/away" in trouble


@pytest.mark.parametrize("place", [".claude/skills", ".claude"])
def test_a_project_cannot_lead_us_out_of_itself(project, home, tmp_path, place):
    make(tmp_path / "outside" / "skills", "away")
    (project / ".claude").parent.mkdir(parents=True)
    (project / place).parent.mkdir(exist_ok=True)
    (project / place).symlink_to(tmp_path / "outside" / ("skills" if "/" in place else ""))
    found = find(project, home)
    assert found.skills == ()
    assert "out of the project" in found.troubles[0]


@pytest.mark.parametrize("kind", ["link", "fifo", "device", "huge", "folder", "unreadable"])
def test_a_skill_whose_file_is_not_a_file_is_told(project, home, tmp_path, kind):
    file = mine(home) / "SKILL.md"
    content = file.read_bytes()
    file.unlink()
    match kind:
        case "link":
            (tmp_path / "elsewhere").write_bytes(content)
            file.symlink_to(tmp_path / "elsewhere")
        case "fifo":
            os.mkfifo(file)
        case "device":
            file.symlink_to("/dev/zero")
        case "huge":
            with file.open("wb") as sparse:
                sparse.truncate(1 << 40)
        case "folder":
            file.mkdir()
        case "unreadable":
            file.write_bytes(content)
            file.chmod(0)
    found = find(project, home)
    if kind == "unreadable" and os.geteuid() == 0:
        assert len(found.skills) == 1
    else:
        assert found.skills == ()
        assert "SKILL.md is not read" in found.troubles[0]


def test_strange_scripts_are_told_and_the_rest_of_the_skill_works(project, home, tmp_path):
    (tmp_path / "out.py").write_text("def out(x: int): ...")
    folder = mine(
        home,
        files={
            "scripts/good.py": SCRIPT,
            "scripts/broken.py": "def f(:",
            "scripts/big.py": b"#" * 2_000_000,
        },
    )
    (folder / "scripts/link.py").symlink_to(tmp_path / "out.py")
    os.mkfifo(folder / "scripts/pipe.py")
    found = find(project, home)
    assert [tool.name for tool in found.skills[0].tools] == ["pdf", "pdf__merge"]
    told = "\n".join(found.troubles)
    for name in ("link.py", "pipe.py", "broken.py: line 1", "big.py is not read: too large"):
        assert name in told
    assert len(found.troubles) == 4


def test_scripts_that_lie_elsewhere_are_told(project, home, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/a.py").write_text(SCRIPT)
    (mine(home) / "scripts").symlink_to(tmp_path / "out")
    found = find(project, home)
    assert [tool.name for tool in found.skills[0].tools] == ["pdf"]
    assert "scripts is not read" in found.troubles[0]


def test_two_functions_whose_names_end_up_alike_are_one_tool(project, home):
    mine(
        home,
        files={
            "scripts/a.py": "def go(x: int): ...",
            "scripts/b.py": "def go(x: int): ...\ndef a_go(x: int): ...",
        },
    )
    names = [tool.name for tool in one(project, home).tools]
    assert names == ["pdf", "pdf__a_go", "pdf__b_go"]


def test_a_hard_link_in_a_projects_skill_is_not_read(project, home, tmp_path):
    """It could be any file of this machine's."""
    (tmp_path / "own.py").write_text(SCRIPT)
    folder = make(project / ".agents/skills", "pdf", files={"scripts/x.txt": ""})
    os.link(tmp_path / "own.py", folder / "scripts/own.py")
    (skill,) = find(project, home).skills
    assert [tool.name for tool in skill.tools] == ["pdf"]
    with pytest.raises(NotFound, match="hard link"):
        read_skill(skill, "scripts/own.py")


def test_looking_runs_nothing(project, home, tmp_path):
    mark = tmp_path / "ran"
    text = (
        f"import pathlib\npathlib.Path({str(mark)!r}).touch()\ndef f(x: int = "
        f"pathlib.Path({str(mark)!r}).touch()): ...\n"
    )
    mine(
        home,
        files={
            "scripts/a.py": text,
            "scripts/__init__.py": text,
            "conftest.py": text,
            "scripts/sitecustomize.py": text,
        },
    )
    skill = one(project, home)
    assert [tool.name for tool in skill.tools] == ["pdf", "pdf__a_f", "pdf__sitecustomize_f"]
    read_skill(skill)
    read_skill(skill, "scripts/a.py")
    assert not mark.exists()


def test_a_stamp_follows_the_files_and_nothing_else(project, home):
    folder = mine(home, files={"scripts/a.py": SCRIPT, "lib/b.py": "x = 1", "data.txt": "1"})
    first = one(project, home).source.stamp
    os.utime(folder / "scripts/a.py", (1, 1))
    assert one(project, home).source.stamp == first, "the same content at another time"
    (folder / "SKILL.md").write_text((folder / "SKILL.md").read_text() + "More.\n")
    assert one(project, home).source.stamp == first, "instructions are read when they are asked for"
    stamps = [first]
    for path, text in (
        ("scripts/a.py", SCRIPT.replace("out.pdf", "nut.pdf")),
        ("lib/b.py", "x = 2"),
        ("data.txt", "2"),
        ("new.py", ""),
        ("SKILL.md", "---\nname: pdf\ndescription: Another.\n---\n"),
    ):
        (folder / path).write_text(text)
        stamps.append(one(project, home).source.stamp)
    (folder / "new.py").unlink()
    (folder / "new.py").symlink_to(folder / "lib/b.py")
    stamps.append(one(project, home).source.stamp)
    assert len(set(stamps)) == len(stamps)


def test_a_stamp_follows_links_and_what_they_lead_to(project, home, tmp_path):
    folder = mine(home, files={"scripts/a.py": SCRIPT})
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    (folder / "link").symlink_to(tmp_path / "one")
    stamps = [one(project, home).source.stamp]
    (folder / "link").unlink()
    (folder / "link").symlink_to(tmp_path / "two")
    stamps.append(one(project, home).source.stamp)
    (tmp_path / "two").write_text("changed")
    stamps.append(one(project, home).source.stamp)
    assert len(set(stamps)) == 3


def test_of_a_users_skill_what_was_compiled_or_installed_does_not_count(project, home):
    folder = mine(home, files={"scripts/a.py": SCRIPT})
    stamp = one(project, home).source.stamp
    for path in ("scripts/__pycache__/a.cpython-311.pyc", "node_modules/x/index.js"):
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_bytes(b"x")
    assert one(project, home).source.stamp == stamp
    assert list(listing(one(project, home).folder).files) == ["SKILL.md", "scripts/a.py"]


def test_a_large_file_counts_by_its_time_and_size(project, home):
    folder = mine(home, files={"scripts/a.py": SCRIPT, "model.bin": b"x" * 1_100_000})
    stamp = one(project, home).source.stamp
    assert one(project, home).source.stamp == stamp
    (folder / "model.bin").write_bytes(b"y" * 1_100_000)
    assert one(project, home).source.stamp != stamp


def test_of_a_projects_skill_also_compiled_and_installed_code_counts(project, home):
    folder = make(project / ".agents/skills", "pdf", files={"scripts/a.py": SCRIPT})
    stamps = [one(project, home).source.stamp]
    for path in (
        "scripts/__pycache__/a.cpython-311.pyc",
        ".venv/lib/x.py",
        "node_modules/x/index.js",
    ):
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_bytes(b"x")
        stamps.append(one(project, home).source.stamp)
    assert len(set(stamps)) == 4


def test_a_projects_skill_with_more_files_than_can_be_watched_is_read_but_not_run(project, home):
    make(
        project / ".agents/skills",
        "pdf",
        files={"scripts/a.py": SCRIPT, **{f"data/{i}": "" for i in range(1001)}},
    )
    found = find(project, home)
    assert [tool.name for tool in found.skills[0].tools] == ["pdf"]
    assert found.skills[0].source.launch is None
    assert "not run" in found.troubles[0]


def test_what_changed_is_seen_at_the_next_look(project, home):
    folder = mine(home, files={"scripts/a.py": SCRIPT})
    assert len(one(project, home).tools) == 2
    (folder / "scripts/b.py").write_text("def more(x: int): ...")
    assert [tool.name for tool in one(project, home).tools] == ["pdf", "pdf__merge", "pdf__more"]
    (folder / "scripts/a.py").write_text("def broken(:")
    assert [tool.name for tool in one(project, home).tools] == ["pdf", "pdf__more"]
    (folder / "SKILL.md").unlink()
    assert find(project, home).skills == ()


def test_a_skill_is_read_without_its_head_and_with_a_list_of_its_files(project, home):
    folder = mine(
        home,
        files={
            "references/forms.md": "# Forms",
            "assets/logo.png": b"\x89PNG" + b"\0" * 20_000,
            "scripts/a.py": SCRIPT,
        },
    )
    (folder / "link.md").symlink_to("/etc/passwd")
    text = read_skill(one(project, home))
    assert text.startswith("# Guide\n")
    assert "description:" not in text
    for expected in (
        "- references/forms.md (7 bytes)",
        "- assets/logo.png (20 KB)",
        "pdf__merge",
        "1 more cannot be read",
        str(folder),
    ):
        assert expected in text
    assert "SKILL.md" not in text


def test_a_skill_that_has_gone_or_is_being_changed_is_told_or_read_as_it_is(project, home):
    folder = mine(home)
    skill = one(project, home)
    (folder / "SKILL.md").write_text("Half of it.")
    assert read_skill(skill).startswith("Half of it.")
    (folder / "SKILL.md").unlink()
    with pytest.raises(NotFound, match="no file"):
        read_skill(skill)
    folder.rmdir()
    with pytest.raises(NotFound, match="is gone"):
        read_skill(skill)


def test_a_file_of_a_skill_is_read_without_secrets(project, home):
    key = "ghp_" + "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=36))
    mine(
        home,
        files={"references/a.md": f"One\r\nkey: {key}\n", "in.md": "inside"},
        body=f"Use {key}.",
    )
    skill = one(project, home)
    (skill.folder / "again.md").symlink_to("in.md")
    assert "One\n" in read_skill(skill, "references/a.md")
    for text in (read_skill(skill, "./references//a.md"), read_skill(skill)):
        assert key not in text
    assert read_skill(skill, "again.md") == "inside"


@pytest.mark.parametrize(
    "file",
    [
        "../other/SKILL.md",
        "references/../../other/SKILL.md",
        "/etc/passwd",
        "//etc/passwd",
        "~/.ssh/id_rsa",
        "..",
        "../../../../../../etc/passwd",
        "references/../..",
        "..\\other\\SKILL.md",
        "C:\\Windows\\win.ini",
        "C:/Windows",
        "file:///etc/passwd",
        "link",
        "folder/passwd",
        "loop",
        "pipe",
        "references",
        ".",
        "missing.md",
        ".env",
        "big.txt",
        "logo.png",
        "a\0b",
        "a\nb",
        "\ud800",
        "\u202etxt.md",
        "x" * 5000,
        "x/" * 3000,
        "%2e%2e/other/SKILL.md",
    ],
)
def test_nothing_but_readable_files_below_the_folder_is_read(project, home, file):
    mine(home, "other")
    folder = mine(
        home,
        files={
            "references/a.md": "a",
            ".env": "KEY=1",
            "big.txt": "x" * 300_000,
            "logo.png": b"\x89PNG\0\0",
            "in.md": "x",
        },
    )
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "folder").symlink_to("/etc")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe")
    skill = next(each for each in find(project, home).skills if each.name == "pdf")
    with pytest.raises(NotFound) as caught:
        read_skill(skill, file)
    assert "root:" not in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_file_that_is_not_there_names_one_that_is(project, home):
    mine(home, files={"references/forms.md": "x"})
    with pytest.raises(NotFound, match=r"references/forms\.md"):
        read_skill(one(project, home), "reference/form.md")


def test_finding_skills_loads_no_yaml_where_there_are_none_and_no_asyncio_where_nothing_runs(
    tmp_path,
):
    make(tmp_path / "read/.agents/skills", "a")
    code = (
        "import sys; from pathlib import Path; from hotset.sources.tools.found.skills import "
        "find_skills, skill_folders\n"
        "def find(home): return len(find_skills(skill_folders(Path('/none'), Path(home))).skills)\n"
        "loaded = lambda name: name in sys.modules\n"
        f"print(find('/none'), loaded('yaml'), find({str(tmp_path / 'read')!r}), "
        f"loaded('yaml'), loaded('asyncio'))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    assert told.split() == ["0", "False", "1", "True", "False"]


def test_a_folder_of_skills_may_be_a_skill_itself(tmp_path):
    folder = make(tmp_path, "pdf")
    assert [skill.name for skill in find_skills([SkillFolder(folder, trusted=True)]).skills] == [
        "pdf"
    ]
