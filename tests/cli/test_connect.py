"""`hotset connect` and `disconnect`: one entry in another program's file, and every other byte as
it was."""

from __future__ import annotations

import json
import os
import stat
import tomllib

import pytest
from hypothesis import given, strategies as st

from hotset.sources.tools.found.servers import decode_jsonc, read_client
from hotset.surfaces.cli.connect import CLIENTS, put_json, put_toml, take_json, take_toml
from tests.cli.conftest import Desk

FILES = {
    "claude": '{\n  "mcpServers": {\n    "git": {"command": "git-server"}\n  }\n}\n',
    "codex": '# mine\nmodel = "o9"\n\n[mcp_servers.git]\ncommand = "git-server"\n',
    "cursor": '{"mcpServers": {}}',
    "opencode": '{\n\t"theme": "dark"\n}\n',
    "vscode": (
        '{\n  // of the team\n  "servers": {\n    "git": {"command": '
        '"git-server"}, // last\n  '
        "},\n}\n"
    ),
}


def path_of(desk: Desk, client: str):
    return (desk.home if CLIENTS[client].of_user else desk.project) / CLIENTS[client].file


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("before", [None, "", "there"])
def test_it_stands_there_and_is_gone_again_to_the_byte(desk: Desk, client: str, before: str | None):
    path = path_of(desk, client)
    if before is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(FILES[client] if before else "")
        path.chmod(0o640)

    connected = desk.run("connect", client)
    text = path.read_text()
    assert connected.code == 0, connected.err
    assert (
        "hotset"
        in (tomllib.loads(text) if path.suffix == ".toml" else decode_jsonc(text))[
            CLIENTS[client].container
        ]
    )
    assert desk.run("connect", client).code == 0
    assert path.read_text() == text
    if before == "there":
        assert path.stat().st_mode & 0o777 == 0o640
        assert ("git" in read_client(path).servers) == ("git" in FILES[client])
    assert desk.run("disconnect", client).code == 0

    assert path.exists() == (before is not None)
    if before is not None:
        assert path.read_text() == (FILES[client] if before else "")
        assert desk.run("disconnect", client).code == 1


@pytest.mark.parametrize("client", CLIENTS)
def test_what_was_changed_since_stays(desk: Desk, client: str):
    path = path_of(desk, client)
    path.parent.mkdir(exist_ok=True)
    path.write_text(FILES[client])
    desk.run("connect", client)
    changed = path.read_text().replace("git-server", "other-server").replace("dark", "light")
    path.write_text(changed + "\n")

    assert desk.run("disconnect", client).code == 0
    expected = FILES[client].replace("git-server", "other-server").replace("dark", "light")
    read = tomllib.loads if path.suffix == ".toml" else decode_jsonc
    left = read(path.read_text())
    left[CLIENTS[client].container] = left.get(CLIENTS[client].container) or None
    wanted = read(expected)
    wanted[CLIENTS[client].container] = wanted.get(CLIENTS[client].container) or None
    assert left == wanted


@pytest.mark.parametrize("client", CLIENTS)
def test_print_shows_it_and_writes_nothing(desk: Desk, client: str):
    shown = desk.run("connect", client, "--print")

    assert shown.code == 0
    assert "hotset" in shown.out
    assert not path_of(desk, client).exists()


def test_a_file_that_cannot_be_read_is_left_alone(desk: Desk):
    for text in ("{", "[]", '{"mcpServers": 3}'):
        (desk.project / ".mcp.json").write_text(text)
        refused = desk.run("connect", "claude")
        assert refused.code == 2
        assert ".mcp.json" in refused.err
        assert (desk.project / ".mcp.json").read_text() == text
    assert desk.run("disconnect", "cursor").code == 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=6), VALUES, max_size=3),
    st.dictionaries(st.text(max_size=6).filter(lambda name: name != "hotset"), VALUES, max_size=3),
    st.sampled_from([None, 2, "\t"]),
)
@pytest.mark.slow
def test_any_json_comes_back_without_the_entry_as_it_was(around, servers, indent):
    document = {**around, "mcpServers": servers}
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    put = put_json(text, "mcpServers", "hotset", {"command": "hotset", "args": ["mcp"]})

    assert json.loads(put) == {
        **document,
        "mcpServers": {**servers, "hotset": {"command": "hotset", "args": ["mcp"]}},
    }
    assert json.loads(take_json(put, "mcpServers", "hotset")) == document
    assert put_json(put, "mcpServers", "hotset", {"command": "hotset", "args": ["mcp"]}) == put


@given(
    st.lists(
        st.sampled_from(
            ["a = 1\n", "# words\n", "[b]\nc = 2\n", "[mcp_servers.git]\nx = 1\n", "\n"]
        ),
        unique=True,
    )
)
def test_any_toml_comes_back_without_the_table(pieces):
    text = "".join(sorted(pieces, key=lambda piece: piece.startswith("[")))
    put = put_toml(text, ("mcp_servers", "hotset"), {"command": "hotset", "args": ["mcp"]})

    assert tomllib.loads(put)["mcp_servers"]["hotset"] == {"command": "hotset", "args": ["mcp"]}
    assert tomllib.loads(take_toml(put, ("mcp_servers", "hotset"))) == tomllib.loads(text)


@pytest.mark.parametrize("client", ["cursor", "vscode"])
def test_a_program_that_starts_servers_elsewhere_is_told_to_name_its_project(
    desk: Desk, client: str
):
    desk.run("connect", client)

    entry = decode_jsonc(path_of(desk, client).read_text())[CLIENTS[client].container]["hotset"]
    assert entry["args"][-3:] == ["mcp", "--project", "${workspaceFolder}"]


def test_a_store_and_a_project_that_were_chosen_stand_in_the_entry(desk: Desk):
    desk.run("connect", "codex", "--data", "there", "--project", ".")
    desk.run("connect", "claude", "--data", "there")

    codex = tomllib.loads(path_of(desk, "codex").read_text())["mcp_servers"]["hotset"]["args"]
    claude = json.loads(path_of(desk, "claude").read_text())["mcpServers"]["hotset"]["args"]
    data = ["--data", str(desk.project.resolve() / "there")]
    assert codex[-5:] == ["mcp", "--project", str(desk.project.resolve()), *data]
    assert claude[-3:] == ["mcp", *data]


def test_codex_may_have_its_home_elsewhere(desk: Desk):
    elsewhere = desk.home / "elsewhere"
    desk.run("connect", "codex", env={"CODEX_HOME": str(elsewhere)})

    assert "hotset" in tomllib.loads((elsewhere / "config.toml").read_text())["mcp_servers"]
    assert not path_of(desk, "codex").exists()
    assert desk.run("disconnect", "codex", env={"CODEX_HOME": str(elsewhere)}).code == 0
    assert not (elsewhere / "config.toml").exists()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_a_file_keeps_its_mode(desk: Desk, mode: int):
    file = desk.project / ".mcp.json"
    file.write_text(
        '{"mcpServers": {"wiki": {"url": "https://x", "headers": {"Authorization": "secret"}}}}'
    )
    file.chmod(mode)
    before = os.umask(0)  # the widest that a person can have
    try:
        for command in ("connect", "connect", "disconnect"):
            assert desk.run(command, "claude").code == 0
            assert stat.S_IMODE(file.stat().st_mode) == mode
    finally:
        os.umask(before)


def test_a_file_behind_a_link_keeps_its_mode_and_stays_behind_it(desk: Desk):
    target = desk.home / "shared.json"
    target.write_text("{}")
    target.chmod(0o600)
    (desk.project / ".mcp.json").symlink_to(target)

    assert desk.run("connect", "claude").code == 0

    assert (desk.project / ".mcp.json").is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert "hotset" in target.read_text()
