"""Help that teaches, and that costs next to nothing."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib import import_module

import click
import pytest

from hotset.surfaces.cli.tree import GROUPS
from tests.cli.conftest import Desk

COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}
HEAVY = (
    "rich",
    "msgspec",
    "apsw",
    "aiohttp",
    "uvicorn",
    "starlette",
    "asyncio",
    "platformdirs",
    "hotset.config",
    "hotset.store",
)


def test_help_loads_none_of_the_heavy_modules_and_no_command():
    ask = "import sys; sys.argv = ['hotset', '--help']; from hotset.surfaces.cli import main\n"
    tell = "try: main()\nexcept SystemExit: print('LOADED', *sorted(sys.modules))"

    done = subprocess.run(
        [sys.executable, "-c", ask + tell], capture_output=True, text=True, check=True
    )

    told, loaded = done.stdout.split("LOADED")
    assert "Virtual memory for LLM agents" in told
    assert [name for name in loaded.split() if name.split(".")[0] in HEAVY or name in HEAVY] == []
    assert [name for name in loaded.split() if name.startswith("hotset.surfaces.cli.")] == [
        "hotset.surfaces.cli.exit",
        "hotset.surfaces.cli.tree",
    ]


def test_help_groups_every_command(desk: Desk):
    told = desk.run("--help").out

    assert [line.rstrip(":") for line in told.splitlines() if re.fullmatch(r"[A-Z]\w+:", line)] == [
        "Options",
        *GROUPS,
    ]
    assert all(f"  {name} " in told for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_examples_that_click_can_parse(name):
    command = load(name)

    assert command.epilog is not None
    shown = [
        line.strip() for line in command.epilog.splitlines() if line.strip().startswith("hotset")
    ]
    assert shown
    for line in shown:
        words = shlex.split(re.split(r"\s+[|>]\s*", line)[0])
        assert words[1] == name
        command.make_context(name, words[2:], resilient_parsing=False).close()


def test_each_command_s_short_help_stands_in_the_table():
    assert [name for name, entry in COMMANDS.items() if len(entry.short) > 60] == []


def test_an_unknown_command_is_a_usage_error(desk: Desk):
    ran = desk.run("frobnicate")

    assert (ran.code, ran.raw) == (2, b"")
    assert "No such command 'frobnicate'" in ran.err


def load(name: str) -> click.Command:
    module, attribute = COMMANDS[name].where.split(":")
    command = getattr(import_module(f"hotset.surfaces.cli.{module}"), attribute)
    assert isinstance(command, click.Command)
    return command
