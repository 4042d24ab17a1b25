"""`hotset completion`: shells complete commands, and load nothing for it."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.cli.conftest import Desk
from tests.cli.test_help import HEAVY

SHELLS = ("bash", "zsh", "fish")


def asked(desk: Desk, words: str, shell: str = "bash") -> list[str]:
    """What hotset answers a shell that completes the last of these words."""
    done = subprocess.run(
        desk.command(),
        env=desk.environ(
            {
                "_HOTSET_COMPLETE": f"{shell}_complete",
                "COMP_WORDS": words,
                "COMP_CWORD": str(len(words.split(" ")) - 1),
            }
        ),
        cwd=desk.project,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.splitlines()


def test_commands_and_those_of_a_group_and_options_are_completed(desk: Desk):
    assert asked(desk, "hotset sav") == ["plain,savings"]
    assert asked(desk, "hotset memory re") == ["plain,review", "plain,restore"]
    assert "plain,--since" in asked(desk, "hotset savings --")
    assert asked(desk, "hotset completion z") == ["plain,zsh"]


def test_zsh_gets_what_each_command_does(desk: Desk):
    assert asked(desk, "hotset doct", "zsh")[1:] == [
        "doctor",
        "Find out why nothing is kept, and what to do.",
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_a_script_that_it_can_read(desk: Desk, shell: str):
    script = desk.run("completion", shell).out

    assert "_HOTSET_COMPLETE" in script
    if (path := shutil.which(shell)) is not None:
        subprocess.run([path, "-n"], input=script, text=True, check=True, timeout=120)


def test_bash_itself_completes_a_command(desk: Desk):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    folder = desk.home / "bin"
    folder.mkdir()
    hotset = folder / "hotset"
    hotset.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hotset "$@"\n')
    hotset.chmod(0o700)
    ask = (
        'eval "$(hotset completion bash)"; COMP_WORDS=(hotset chec); COMP_CWORD=1; '
        '_hotset_completion hotset; echo "${COMPREPLY[@]}"'
    )

    done = subprocess.run(
        [bash, "--norc", "-c", ask],
        env=desk.environ({"PATH": f"{folder}:{desk.env['PATH']}"}),
        cwd=desk.project,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert done.stdout == "checkpoints\n"


def test_completing_a_command_loads_none_of_the_heavy_modules(desk: Desk):
    ask = "import sys; sys.argv = ['hotset']; from hotset.surfaces.cli import main\n"
    tell = "try: main()\nexcept SystemExit: print('LOADED', *sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", ask + tell],
        env=desk.environ(
            {"_HOTSET_COMPLETE": "bash_complete", "COMP_WORDS": "hotset s", "COMP_CWORD": "1"}
        ),
        capture_output=True,
        text=True,
        check=True,
    )

    told, loaded = done.stdout.split("LOADED")
    assert "plain,sessions" in told
    assert [name for name in loaded.split() if name.split(".")[0] in HEAVY or name in HEAVY] == []
