"""The documents speak of what is there: commands, flags, make targets, files."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from bench.frontier import draw, panels
from click.testing import CliRunner
from msgspec import Struct, structs

from hotset.nouns.knobs import Knobs, Limit
from hotset.sources.port import Source
from hotset.surfaces.cli.tree import hotset

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "hotset"
PAGES = [
    ROOT / name for name in ("README.md", "ARCHITECTURE.md", "AGENTS.md", "CHANGELOG.md")
] + sorted((ROOT / "docs").rglob("*.md"))


def _commands(text: str) -> list[list[str]]:
    """Every `hotset ...` line of a code block."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [shlex.split(line) for line in lines if line.startswith("hotset ")]


def test_every_command_in_the_readme_exists_with_its_flags():
    commands = _commands((ROOT / "README.md").read_text())
    assert len(commands) > 8
    for _, verb, *words in commands:
        told = CliRunner().invoke(hotset, [verb, "--help"])
        assert told.exit_code == 0, f"hotset {verb} is not there"
        for flag in (word for word in words if word.startswith("-") and verb != "wrap"):
            assert flag in told.output, f"hotset {verb} has no {flag}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_points_to_is_there(page):
    text = page.read_text()
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
    targets = set(re.findall(r"^([a-z-]+%?):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for name in re.findall(r"`make ([a-z-]+)`", text):
        benched = (
            name.startswith("bench-")
            and (ROOT / "bench" / f"{name.removeprefix('bench-')}.py").exists()
        )
        assert name in targets or benched, f"{page.name} speaks of make {name}"
    for path in re.findall(r"`((?:src|tests|docs|bench)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), f"{page.name} speaks of {path}"
    for path in re.findall(r"`(\w+/[\w/]+\.py)`", text):
        assert (ROOT / path).exists() or _is_there(path), f"{page.name} speaks of {path}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_page_names_exists(page):
    for typed in re.findall(r"`hotset ([a-z][^`]*)`", page.read_text()):
        group: click.Command | None = hotset
        for word in typed.split():
            if not isinstance(group, click.Group) or not re.fullmatch(r"[a-z-]+", word):
                break
            group = group.get_command(click.Context(group), word)
            assert group is not None, f"{page.name} speaks of hotset {typed}"


def test_every_module_in_the_table_of_rooms_exists():
    rows = re.findall(
        r"^\| `([\w/]+/)` \| .* \| (.*) \|$", _architecture("The rooms"), re.MULTILINE
    )
    assert len(rows) > 20
    for folder, modules in rows:
        for name in re.findall(r"`([\w/]+)`", modules):
            assert _is_there(f"{folder}{name}"), f"there is no {folder}{name}"


def test_every_path_in_the_sections_of_the_architecture_exists():
    paths = {
        path
        for title in ("A source and its doors", "Invariants", "Recipes")
        for path in re.findall(r"`([\w.]+/[\w./]*)`", _architecture(title))
    }
    assert len(paths) > 20
    for path in paths:
        assert _is_there(path) or (ROOT / path).exists(), f"there is no {path}"


def test_every_name_in_the_recipes_stands_in_the_file_that_the_recipe_names():
    for name, path in re.findall(
        r"`([A-Z]\w+)`(?: and a line in `\w+`)? (?:in |\()`([\w/]+\.py)`", _architecture("Recipes")
    ):
        assert name in (SOURCE / path).read_text(), f"there is no {name} in {path}"


def test_every_door_of_a_source_is_described():
    doors = {
        name
        for name in vars(Source)
        if not name.startswith("_") and callable(getattr(Source, name))
    }
    told = set(re.findall(r"`(\w+)`", _architecture("A source and its doors")))
    assert doors - told == {"is_quiet", "seconds", "earlier_tools"}  # how an offer is asked for


def _architecture(title: str) -> str:
    """One section of the page."""
    _, _, after = (ROOT / "ARCHITECTURE.md").read_text().partition(f"\n## {title}\n")
    assert after, f"there is no section {title}"
    return after.partition("\n## ")[0]


def _is_there(path: str) -> bool:
    return (SOURCE / path).exists() or (SOURCE / f"{path}.py").exists()


@pytest.mark.parametrize(("name", "most"), [("AGENTS.md", 60), ("ARCHITECTURE.md", 200)])
def test_a_page_that_everybody_reads_is_short(name, most):
    assert len((ROOT / name).read_text().splitlines()) <= most


def _ranges(group: type[Struct], prefix: str = "") -> dict[str, str]:
    """Each knob with its range and its unit as the page shows them."""
    shown: dict[str, str] = {}
    for knob in structs.fields(group):
        if isinstance(knob.type, type) and issubclass(knob.type, Struct) and knob.type is not Limit:
            shown |= _ranges(knob.type, f"{knob.name}.")
            continue
        metas = getattr(knob.type, "__metadata__", ())
        bounds = next((f"{meta.ge} to {meta.le}" for meta in metas if meta.ge is not None), "")
        unit = next((meta.extra["unit"] for meta in reversed(metas) if meta.extra), "")
        shown[f"{prefix}{knob.name}"] = f"{bounds} | {unit}"
    return shown


def test_the_page_of_knobs_has_every_knob_with_its_default_its_range_and_a_reason():
    text = (ROOT / "docs" / "knobs.md").read_text()
    rows = dict(re.findall(r"^\| `([\w.]+)` \| (.*) \|$", text, re.MULTILINE))
    defaults, ranges = Knobs().by_name(), _ranges(Knobs)

    assert rows.keys() == defaults.keys() - {"window"}
    for name, rest in rows.items():
        default, told = rest.split(" | ", 1)
        assert told.startswith(f"{ranges[name]} | "), f"{name} is {told}"
        assert len(told) > len(ranges[name]) + 20, f"{name} has no reason"
        if isinstance(defaults[name], bool | int | float | str):
            assert default.strip("`") == str(defaults[name]).lower()


def test_the_picture_of_cost_and_faults_has_the_figures_of_the_page_of_numbers():
    """If not: `make bench-frontier`."""
    drawn = (ROOT / "docs" / "frontier.svg").read_text()
    assert drawn == draw(panels((ROOT / "docs" / "numbers.md").read_text()))
    assert drawn.count("<title>hotset:") == 6
