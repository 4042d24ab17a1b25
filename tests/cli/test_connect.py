"""`hotset connect` and `disconnect`: settings of ours in another program's files, and every other
byte as it was."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

from hotset.sources.tools.found.servers import decode_jsonc
from hotset.surfaces.cli.connect import CLIENTS, McpEntry
from hotset.surfaces.cli.settings_text import (
    put_json,
    put_setting,
    put_toml,
    read_setting,
    take_json,
    take_setting,
    take_toml,
)
from tests.cli.conftest import Desk

GOOSE = """# mine
GOOSE_PROVIDER: openai
OPENAI_HOST: https://api.openai.com
OPENAI_BASE_PATH: v1/chat/completions
extensions:
  # all of them
  developer:
    enabled: true
    type: builtin

GOOSE_MODEL: gpt-5.4  # last
"""
FILES = {
    (
        "claude",
        "mcp",
    ): '{\n  "mcpServers": {\n    "git": {"command": "git-server"}\n  }\n}\n',
    ("claude", "proxy"): '{\n  "permissions": {"allow": ["Bash"]}\n}\n',
    (
        "codex",
        "mcp",
    ): '# mine\nmodel = "o9"\n\n[mcp_servers.git]\ncommand = "git-server"\n',
    ("codex", "proxy"): '# mine\nmodel = "o9"\n\n[mcp_servers.git]\ncommand = "git-server"\n',
    ("continue", "mcp"): '{"mcpServers": {}}',
    ("cursor", "mcp"): '{"mcpServers": {}}',
    (
        "gemini",
        "mcp",
    ): '{\n  "theme": "dark",\n  "mcpServers": {"git": {"command": "git-server"}}\n}',
    ("goose", "mcp"): GOOSE,
    ("goose", "proxy"): GOOSE,
    ("opencode", "mcp"): '{\n\t"theme": "dark"\n}\n',
    (
        "opencode",
        "proxy",
    ): '{\n\t// mine\n\t"provider": {"openai": {"options": {"timeout": 9}}},\n}\n',
    ("aider", "proxy"): "# mine\nmodel: gpt-5.4\nread: [CONVENTIONS.md]\n",
    (
        "pi",
        "proxy",
    ): '{\n  "providers": {\n    "ollama": {"baseUrl": "http://localhost:11434/v1"}\n  }\n}\n',
    ("qwen-code", "mcp"): '{"env": {"OPENAI_API_KEY": "k"}}\n',
    ("qwen-code", "proxy"): '{"env": {"OPENAI_API_KEY": "k"}}\n',
    (
        "vscode",
        "mcp",
    ): (
        '{\n  // of the team\n  "servers": {\n    "git": {"command": '
        '"git-server"}, // last\n  '
        "},\n}\n"
    ),
}
WAYS = [(client, way) for client, spec in CLIENTS.items() for way in spec.ways]


def path_of(desk: Desk, client: str, way: str = "mcp") -> Path:
    file = CLIENTS[client].way(way).file
    return (desk.home if file.of_user else desk.project) / file.path


def settings(path: Path) -> Any:
    text = path.read_text()
    read = {".toml": tomllib.loads, ".json": decode_jsonc}.get(path.suffix, yaml.safe_load)
    return read(text)


def ours(path: Path, client: str, way: str) -> dict[tuple[str, ...], Any]:
    """Our settings as they stand in a client's file."""
    found = CLIENTS[client].way(way)
    keys = [(found.container, "hotset")] if isinstance(found, McpEntry) else list(found.values)
    text = path.read_text() if path.exists() else ""
    return {each: read_setting(text, path.suffix, each) for each in keys}


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """A desk whose always-on proxy has a port."""
    assert desk.run("service", "install", "--port", "4711", env={"PATH": "/nowhere"}).code == 1
    return desk


def test_every_client_and_way_has_a_file_to_be_tried_on():
    assert set(FILES) == set(WAYS)
    assert set(CLIENTS) == {
        *("codex", "claude", "opencode", "cursor", "vscode", "gemini"),
        *("qwen-code", "goose", "aider", "continue", "pi"),
    }


@pytest.mark.parametrize(("client", "way"), WAYS)
@pytest.mark.parametrize("before", [None, "", "there"])
def test_it_stands_there_and_is_gone_again_to_the_byte(
    desk: Desk, client: str, way: str, before: str | None
):
    path = path_of(desk, client, way)
    if before is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FILES[client, way] if before else "")
        path.chmod(0o640)

    connected = desk.run("connect", client, f"--{way}")
    assert connected.code == 0, connected.err
    text = path.read_text()
    assert all(each is not None for each in ours(path, client, way).values())
    assert desk.run("connect", client, f"--{way}").code == 0
    assert path.read_text() == text
    if before == "there":
        assert path.stat().st_mode & 0o777 == 0o640
    elif before is None and way == "proxy":
        assert path.stat().st_mode & 0o777 == 0o600  # it holds a token
    assert desk.run("disconnect", client).code == 0

    assert path.exists() == (before is not None)
    if before is not None:
        assert path.read_text() == (FILES[client, way] if before else "")
        assert desk.run("disconnect", client).code == 1
    else:
        assert [each.name for each in desk.project.iterdir()] == [".git"]


@pytest.mark.parametrize(("client", "way"), WAYS)
def test_what_was_changed_since_stays(desk: Desk, client: str, way: str):
    path = path_of(desk, client, way)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FILES[client, way])
    before = settings(path)
    assert desk.run("connect", client, f"--{way}").code == 0
    path.write_text(path.read_text() + "\n")

    assert desk.run("disconnect", client).code == 0
    assert without_empty(settings(path)) == without_empty(before)
    assert path.read_text().endswith("\n")


def without_empty(found: Any) -> Any:
    if not isinstance(found, dict):
        return found
    inner = {key: without_empty(value) for key, value in found.items()}
    return {key: value for key, value in inner.items() if value not in ({}, None)}


@pytest.mark.parametrize(("client", "way"), WAYS)
def test_print_shows_it_and_writes_nothing(desk: Desk, client: str, way: str):
    shown = desk.run("connect", client, f"--{way}", "--print")

    assert shown.code == 0
    assert ("hotset" if way == "mcp" else "127.0.0.1:4711/TOKEN~") in shown.out
    assert not path_of(desk, client, way).exists()
    assert not (desk.data / "token").exists()


@pytest.mark.parametrize("client", CLIENTS)
def test_without_a_wish_a_client_is_connected_as_needs_no_running_process(desk: Desk, client: str):
    shown = desk.run("connect", client, "--print")
    has_mcp = client not in ("aider", "pi")

    assert shown.code == 0
    assert ("127.0.0.1" in shown.out) is not has_mcp
    for way in {"mcp", "proxy"} - set(CLIENTS[client].ways):
        refused = desk.run("connect", client, f"--{way}")
        assert refused.code == 2
        assert ("--proxy" if way == "mcp" else "--mcp") in refused.err


def test_a_project_s_file_gets_the_project_s_token_and_a_user_s_file_the_user_s(desk: Desk):
    for client in ("claude", "codex", "goose"):
        assert desk.run("connect", client, "--proxy").code == 0
    token = (desk.data / "token").read_text()
    own = (desk.home / ".local/share/hotset/service/token").read_text()

    claude = settings(path_of(desk, "claude", "proxy"))["env"]
    assert claude["ANTHROPIC_BASE_URL"] == f"http://127.0.0.1:4711/{token}~claude"
    assert claude["ENABLE_TOOL_SEARCH"] == "true"
    codex = settings(path_of(desk, "codex", "proxy"))["openai_base_url"]
    assert codex == f"http://127.0.0.1:4711/{own}~codex/v1"
    goose = settings(path_of(desk, "goose", "proxy"))
    assert goose["OPENAI_BASE_PATH"] == f"{own}~goose/v1/chat/completions"
    desk.run("disconnect", "codex")
    desk.run("connect", "codex", "--proxy", "--project", ".")
    named = settings(path_of(desk, "codex", "proxy"))["openai_base_url"]
    assert named == f"http://127.0.0.1:4711/{token}~codex/v1"


def test_without_a_port_that_stays_a_base_url_is_refused_with_what_to_do(desk: Desk):
    desk.run("service", "remove", env={"PATH": "/nowhere"})

    refused = desk.run("connect", "aider")

    assert refused.code == 2
    assert "hotset service install" in refused.err
    assert not path_of(desk, "aider", "proxy").exists()


@pytest.mark.slow
def test_without_the_service_the_last_proxy_s_address_is_taken(desk: Desk, to_upstream):
    desk.run("service", "remove", env={"PATH": "/nowhere"})
    with desk.serving(env=to_upstream) as ready:
        assert desk.run("connect", "opencode", "--proxy").code == 0

    found = settings(path_of(desk, "opencode", "proxy"))["provider"]["openai"]["options"]["baseURL"]
    assert found == ready["openai_base_url"].replace("/v1", "~opencode/v1")


def test_both_ways_in_one_file_are_undone_one_by_one_and_together(desk: Desk):
    path = path_of(desk, "goose")
    path.parent.mkdir(parents=True)
    path.write_text(GOOSE)
    for commands in (
        ("connect --mcp", "connect --proxy", "disconnect"),
        ("connect --mcp --proxy", "disconnect --mcp", "disconnect --proxy"),
        ("connect --proxy", "connect --mcp", "disconnect --proxy", "disconnect --mcp"),
    ):
        for command in commands:
            verb, *flags = command.split()
            assert desk.run(verb, "goose", *flags).code == 0, command
        assert path.read_text() == GOOSE


def test_an_address_that_a_person_chose_is_told_and_comes_back(desk: Desk):
    path = path_of(desk, "codex", "proxy")
    path.parent.mkdir()
    path.write_text('openai_base_url = "https://gateway.example.com/v1"\n')

    connected = desk.run("connect", "codex", "--proxy")
    assert "openai_base_url was https://gateway.example.com/****; to keep using it" in connected.err
    path.write_text(path.read_text() + 'model = "o9"\n')
    desk.run("disconnect", "codex")

    assert settings(path) == {
        "openai_base_url": "https://gateway.example.com/v1",
        "model": "o9",
    }


def test_a_setting_that_is_no_address_stays_as_a_person_chose_it(desk: Desk):
    path = path_of(desk, "claude", "proxy")
    path.parent.mkdir()
    path.write_text('{"env": {"ENABLE_TOOL_SEARCH": "auto"}}')

    desk.run("connect", "claude", "--proxy")
    assert settings(path)["env"]["ENABLE_TOOL_SEARCH"] == "auto"
    desk.run("disconnect", "claude")
    assert path.read_text() == '{"env": {"ENABLE_TOOL_SEARCH": "auto"}}'


def test_a_token_in_a_file_that_git_would_take_is_told(desk: Desk):
    subprocess.run(["git", "init", "-q"], cwd=desk.project, check=True)
    (desk.project / ".gitignore").write_text(".claude/\n")

    assert "do not commit it" in desk.run("connect", "opencode", "--proxy").err
    assert "do not commit it" not in desk.run("connect", "claude", "--proxy").err
    assert "do not commit it" not in desk.run("connect", "gemini").err


def test_a_file_that_cannot_be_read_is_left_alone(desk: Desk):
    for text in ("{", "[]", '{"mcpServers": 3}'):
        (desk.project / ".mcp.json").write_text(text)
        refused = desk.run("connect", "claude")
        assert refused.code == 2
        assert ".mcp.json" in refused.err
        assert (desk.project / ".mcp.json").read_text() == text
        assert "hotset" in desk.run("connect", "claude", "--print").out
    assert desk.run("disconnect", "cursor").code == 1


@pytest.mark.parametrize(
    "text",
    [
        "{extensions: {}}\n",
        "extensions: {developer: {enabled: true}}\n",
        "extensions:\n",
        "- a\n",
        "a: [\n",
        "extensions: &x\n  a: 1\nb: *x\n---\nc: 2\n",
    ],
)
def test_a_yaml_file_of_another_layout_is_left_alone_with_what_to_add(desk: Desk, text: str):
    path = path_of(desk, "goose")
    path.parent.mkdir(parents=True)
    path.write_text(text)

    refused = desk.run("connect", "goose")
    shown = desk.run("connect", "goose", "--print")

    assert (refused.code, path.read_text()) == (2, text)
    assert "--print" in refused.err
    assert yaml.safe_load(shown.out)["extensions"]["hotset"]["type"] == "stdio"


ENTRY = {"command": "hotset", "args": ["mcp"]}
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
    put = put_json(text, ("mcpServers", "hotset"), {"command": "hotset", "args": ["mcp"]})

    assert json.loads(put) == {
        **document,
        "mcpServers": {**servers, "hotset": {"command": "hotset", "args": ["mcp"]}},
    }
    assert json.loads(take_json(put, ("mcpServers", "hotset"))) == document
    assert put_setting(put, ".json", ("mcpServers", "hotset"), ENTRY) == put


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

    (entry,) = ours(path_of(desk, client), client, "mcp").values()
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


@given(
    st.dictionaries(st.text(max_size=5), VALUES, max_size=3),
    st.dictionaries(st.text(max_size=5).filter(lambda name: name != "ours"), VALUES, max_size=3),
)
def test_any_yaml_comes_back_without_the_setting_as_it_was(around, inner):
    document = {**around, "extensions": {**inner, "other": {"a": 1}}}
    text = yaml.safe_dump(document, allow_unicode=True, sort_keys=False)
    for keys in (("extensions", "ours"), ("our settings",)):
        put = put_setting(text, ".yaml", keys, ENTRY)

        assert read_setting(put, ".yaml", keys) == ENTRY
        assert take_setting(put, ".yaml", keys) == text


@given(st.sampled_from([None, 2, "\t"]), st.lists(st.sampled_from("abc"), min_size=1, max_size=3))
def test_json_at_any_depth_comes_back_as_it_was(indent, names):
    keys = ("top", *names, "ours")
    text = json.dumps({"top": {"a": {"b": {"c": 1}, "d": []}}, "e": "{"}, indent=indent)
    put = put_setting(text, ".json", keys, "value")

    assert read_setting(put, ".json", keys) == "value"
    assert without_empty(json.loads(take_setting(put, ".json", keys))) == without_empty(
        json.loads(text)
    )
