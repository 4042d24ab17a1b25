"""`hotset statusline`: one line, cheap, and never an error."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from hotset.config import load
from hotset.places import find_folders
from tests.cli.conftest import Desk, Ran
from tests.cli.test_savings import SONNET, bill

HEAVY = ("click", "msgspec", "apsw", "asyncio", "hotset.config", "hotset.store", "rich")


def line(desk: Desk, *flags: str, given: object = None, **env: str) -> Ran:
    """Runs it in a process of its own: that is what has to be cheap."""
    done = subprocess.run(
        desk.command("statusline", *flags),
        env=desk.environ(env),
        cwd=desk.project,
        input=b"" if given is None else json.dumps(given).encode(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr.decode())


def test_a_session_is_told_in_one_line_and_the_client_may_name_it(desk: Desk, to_upstream):
    bill(desk, "x-claude-code-session-id:one", SONNET, SONNET)
    bill(desk, "x-claude-code-session-id:two", SONNET)
    with desk.serving(env=to_upstream):
        latest = line(desk)
        named = line(desk, given={"session_id": "one", "workspace": {"project_dir": "."}})
        by_options = line(desk, "--data", str(desk.data), "--project", str(desk.project))

    assert latest.out == "hotset 5 % of 200k · $0.02, saved $0.02\n"
    assert named.out == "hotset 5 % of 200k · $0.03, saved $0.03\n"
    assert by_options.out == latest.out
    assert {latest.code, named.code, by_options.code} == {0}


def test_without_a_session_it_says_so(desk: Desk, to_upstream):
    with desk.serving(env=to_upstream):
        assert line(desk).out == "hotset · nothing kept yet\n"


@pytest.mark.parametrize("note", [None, b"", b"[]", b'{"port": 1, "token": "t"}'])
def test_without_a_proxy_it_is_a_neutral_line(desk: Desk, note):
    if note is not None:
        desk.data.mkdir(mode=0o700)
        (desk.data / "proxy.json").write_bytes(note)

    done = line(desk, given=["not", "what", "a", "client", "gives"])

    assert (done.code, done.out, done.err) == (0, "hotset · not serving\n", "")


def test_it_loads_none_of_the_heavy_modules(desk: Desk):
    ask = (
        "import sys; sys.argv = ['hotset', 'statusline']; from hotset.surfaces.cli import main\n"
        "main(); print('LOADED', *sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", ask],
        env=desk.environ(),
        cwd=desk.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )

    loaded = done.stdout.split("LOADED")[1].split()
    assert [name for name in loaded if name in HEAVY or name.split(".")[0] in HEAVY] == []


def test_it_finds_the_same_folder_as_every_other_command(tmp_path):
    project = tmp_path / "shop" / "src"
    project.mkdir(parents=True)
    (tmp_path / "shop" / "pyproject.toml").write_text("")
    file = tmp_path / "config.toml"
    for text, env in (
        ("", {}),
        ("", {"HOTSET_DATA": "~/here"}),
        (f'home = "{tmp_path}/there"', {}),
        (f'data = "{tmp_path}/data"', {"HOTSET_HOME": "/elsewhere"}),
    ):
        file.write_text(text)
        environ = {"HOTSET_CONFIG": str(file), **env}
        expected = load(project=str(project), environ=environ)
        assert find_folders(project, environ) == (expected.folder, expected.home)
