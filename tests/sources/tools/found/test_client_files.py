"""Servers from other programs' settings, each in the form that its documentation shows."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given, settings, strategies as st

from hotset.errors import BadConfig, NotFound
from hotset.sources.tools.found.servers import (
    add_servers,
    decode_jsonc,
    known_client_files,
    read_client,
    read_servers,
)

CLAUDE_PROJECT = """{
  "mcpServers": {
    "airtable": {"type": "stdio", "command": "npx", "args": ["-y", "airtable-mcp-server"], "env": {"KEY": "${AIRTABLE_API_KEY}"}},
    "api": {"type": "http", "url": "${API_BASE_URL:-https://api.example.com}/mcp",
            "headers": {"Authorization": "Bearer ${API_KEY}"}},
    "old": {"type": "sse", "url": "https://mcp.asana.com/sse"},
    "made": {"type": "http", "url": "https://x.example", "headersHelper": "/opt/headers.sh"}
  }
}"""  # noqa: E501
CLAUDE_USER = {
    "numStartups": 12,
    "mcpServers": {
        "shell": {"command": "npx", "args": ["-y", "mcp-server-shell"]},
        "both": {"command": "user"},
    },
    "projects": {
        "/projects/app": {
            "mcpServers": {
                "fs": {"type": "stdio", "command": "node", "args": ["fs.js"], "env": {}},
                "both": {"command": "local"},
            }
        },
        "/projects/other": {"mcpServers": {"secret": {"command": "x"}}},
    },
}
VSCODE = """{
    // asked for once
    "inputs": [{"type": "promptString", "id": "perplexity-key", "description": "API Key", "password": true}],
    "servers": {
        "perplexity": {"type": "stdio", "command": "npx", "args": ["-y", "server-perplexity-ask"],
            "env": {"PERPLEXITY_API_KEY": "${input:perplexity-key}"}},
        "memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}, /* the // simplest */
        "github": {"type": "http", "url": "https://api.githubcopilot.com/mcp", "headers": {"X": "a // b"},},
        "files": {"command": "${workspaceFolder}/run", "args": ["${userHome}", "${env:TOKEN}"]},
        "env": {"command": "x", "envFile": "${workspaceFolder}/.env"},
        "boxed": {"command": "x", "sandboxEnabled": true},
        "io.github.github/github-mcp-server": {"type": "http", "url": "https://x.example/mcp"},
        "asks": {"command": "x", "args": ["${command:pick}"]},
    },
}"""  # noqa: E501
CURSOR = """{"mcpServers": {
  "local": {"command": "npx", "args": ["-y", "mcp-server"], "env": {"API_KEY": "${env:API_KEY}", "ROOT": "${workspaceFolder}"}},
  "remote": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}}
}}"""  # noqa: E501
CODEX = """
model = "gpt-5.4"
[mcp_servers.context7]
command = "npx"
args = ["-y", "@upstash/context7-mcp", "${literal}"]
env_vars = ["LOCAL_TOKEN", { name = "OTHER", source = "local" }]
startup_timeout_sec = 20
[mcp_servers.context7.env]
MY_ENV_VAR = "MY_ENV_VALUE"
[mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "FIGMA_OAUTH_TOKEN"
http_headers = { "X-Figma-Region" = "us-east-1" }
env_http_headers = { "X-Team" = "TEAM" }
enabled_tools = ["open"]
[mcp_servers.off]
command = "x"
enabled = false
[mcp_servers.elsewhere]
command = "x"
env_vars = [{ name = "A", source = "remote" }]
"""
OPENCODE = """{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "local": {"type": "local", "command": ["bun", "x", "my-mcp-command"], "enabled": true,
              "environment": {"A": "{env:A}", "B": "b"}},
    "remote": {"type": "remote", "url": "https://my-mcp-server.com", "oauth": {},
               "headers": {"Authorization": "Bearer {env:MY_KEY}"}},
    "off": {"type": "remote", "url": "https://x.example", "enabled": false},
    "default": {"enabled": true},
    "filed": {"type": "remote", "url": "https://x.example", "headers": {"Authorization": "{file:~/.secret}"}},
  },
}"""  # noqa: E501


@pytest.fixture
def put(tmp_path):
    def _put(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return _put


def test_claude_codes_project_file(put):
    read = read_client(put(".mcp.json", CLAUDE_PROJECT))
    assert read.client == "claude-code"
    assert read.servers == {
        "airtable": {
            "command": "npx",
            "args": ["-y", "airtable-mcp-server"],
            "env": {"KEY": "${AIRTABLE_API_KEY}"},
        },
        "api": {
            "type": "http",
            "url": "${API_BASE_URL:-https://api.example.com}/mcp",
            "headers": {"Authorization": "Bearer ${API_KEY}"},
        },
    }
    assert "streamable HTTP" in read.skipped["old"]
    assert "headersHelper" in read.skipped["made"]


def test_claude_codes_name_for_the_projects_folder_is_that_folder(put, tmp_path):
    path = put(
        ".mcp.json",
        {
            "mcpServers": {
                "a": {"command": "${CLAUDE_PROJECT_DIR:-.}/run", "args": ["${CLAUDE_PROJECT_DIR}"]}
            }
        },
    )
    assert read_client(path, project=tmp_path).servers == {
        "a": {"command": f"{tmp_path}/run", "args": [str(tmp_path)]}
    }
    assert read_client(path).servers["a"]["command"] == "${CLAUDE_PROJECT_DIR:-.}/run"


def test_claude_codes_own_file_gives_the_users_servers_and_those_of_this_project_alone(
    put, tmp_path
):
    path = put(
        ".claude.json",
        {
            **CLAUDE_USER,
            "projects": {
                **CLAUDE_USER["projects"],
                str(tmp_path): {"mcpServers": {"mine": {"command": "h"}}},
            },
        },
    )
    assert list(read_client(path).servers) == ["shell", "both"]
    assert list(read_client(path, project=tmp_path).servers) == ["shell", "both", "mine"]
    only = put(
        "x/.claude.json", {"projects": {str(tmp_path): {"mcpServers": {"mine": {"command": "h"}}}}}
    )
    assert read_client(only, project=tmp_path).servers == {"mine": {"command": "h"}}
    assert read_client(only).servers == {}


def test_a_projects_server_stands_over_the_users_of_the_same_name(put, tmp_path):
    projects = {str(tmp_path): CLAUDE_USER["projects"]["/projects/app"]}
    read = read_client(put("any.json", {**CLAUDE_USER, "projects": projects}), project=tmp_path)
    assert read.servers["both"] == {"command": "local"}
    assert read.servers["fs"] == {"command": "node", "args": ["fs.js"]}


def test_vs_codes_file_with_comments_inputs_and_its_own_variables(put, tmp_path):
    home = tmp_path / "home"
    read = read_client(put(".vscode/mcp.json", VSCODE), project=tmp_path, home=home)
    assert read.client == "vscode"
    assert read.servers["memory"] == {
        "command": "npx",
        "args": ["-y", "@modelcontextprotocol/server-memory"],
    }
    assert read.servers["github"]["headers"] == {"X": "a // b"}
    assert read.servers["files"] == {"command": f"{tmp_path}/run", "args": [str(home), "${TOKEN}"]}
    assert read.servers["io_github_github_github-mcp-server"]["url"] == "https://x.example/mcp"
    assert "io.github.github/github-mcp-server" in read.notes["io_github_github_github-mcp-server"]
    assert "perplexity-key" in read.skipped["perplexity"]
    assert "envFile" in read.skipped["env"]
    assert "sandbox" in read.skipped["boxed"]
    assert "command:pick" in read.skipped["asks"]
    assert "within the project" in read_client(tmp_path / ".vscode/mcp.json").skipped["files"]


def test_vs_codes_older_settings(put):
    read = read_client(put("settings.json", {"mcp": {"servers": {"a": {"command": "x"}}}}))
    assert (read.client, read.servers) == ("vscode", {"a": {"command": "x"}})


def test_cursors_file(put, tmp_path):
    read = read_client(put(".cursor/mcp.json", CURSOR), project=tmp_path)
    assert read.client == "cursor"
    assert read.servers["local"]["env"] == {"API_KEY": "${API_KEY}", "ROOT": str(tmp_path)}
    assert read.servers["remote"] == {
        "url": "https://example.com/mcp",
        "headers": {"Authorization": "Bearer ${TOKEN}"},
    }


def test_claudes_desktop_app(put):
    entry = {
        "command": "npx",
        "args": ["-y", "@modelcontextprotocol/server-filesystem", "/Users/me/Desktop"],
    }
    read = read_client(put("claude_desktop_config.json", {"mcpServers": {"filesystem": entry}}))
    assert (read.client, read.servers) == ("claude-desktop", {"filesystem": entry})


def test_codexs_file(put):
    read = read_client(put(".codex/config.toml", CODEX))
    assert read.client == "codex"
    assert read.servers["context7"] == {
        "command": "npx",
        "args": ["-y", "@upstash/context7-mcp", "$${literal}"],
        "env": {
            "LOCAL_TOKEN": "${LOCAL_TOKEN:-}",
            "OTHER": "${OTHER:-}",
            "MY_ENV_VAR": "MY_ENV_VALUE",
        },
    }
    assert read.servers["figma"] == {
        "url": "https://mcp.figma.com/mcp",
        "headers": {
            "X-Figma-Region": "us-east-1",
            "X-Team": "${TEAM}",
            "Authorization": "Bearer ${FIGMA_OAUTH_TOKEN}",
        },
    }
    assert "enabled_tools" in read.notes["figma"]
    assert "switched off" in read.skipped["off"]
    assert "another machine" in read.skipped["elsewhere"]


def test_opencodes_file(put):
    read = read_client(put("opencode.jsonc", OPENCODE))
    assert read.client == "opencode"
    assert read.servers == {
        "local": {
            "command": "bun",
            "args": ["x", "my-mcp-command"],
            "env": {"A": "${A:-}", "B": "b"},
        },
        "remote": {
            "url": "https://my-mcp-server.com",
            "headers": {"Authorization": "Bearer ${MY_KEY:-}"},
        },
    }
    assert set(read.skipped) == {"off", "default", "filed"}
    assert ".secret" in read.skipped["filed"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("settings.txt", CODEX),
        ("servers", CLAUDE_PROJECT),
        ("config", VSCODE),
        ("notes.md", OPENCODE),
    ],
)
def test_a_form_is_known_whatever_the_file_is_called(put, name, content):
    assert read_client(put(name, content)).servers


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "hotset", "args": ["mcp"]},
        {"command": "/usr/local/bin/hotset", "args": []},
        {"command": "uvx", "args": ["--from", "hotset", "hotset", "mcp"]},
        {"command": "uvx", "args": ["hotset@1.2", "mcp"]},
        {"command": "python3", "args": ["-m", "hotset", "mcp"]},
        {"url": "http://127.0.0.1:4747/abcdefghijklmnopqrstuvwxyz_-012345/mcp"},
    ],
)
def test_an_entry_that_runs_hotset_itself_is_left_out(put, entry):
    assert (
        "hotset itself"
        in read_client(put("a.json", {"mcpServers": {"memory": entry}})).skipped["memory"]
    )


@pytest.mark.parametrize(
    "entry",
    [
        {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-filesystem", "/projects/hotset"],
        },
        {"command": "uvx", "args": ["mcp-server-git", "--repository", "hotset"]},
        {"url": "http://127.0.0.1:8000/mcp"},
    ],
)
def test_an_entry_that_only_has_to_do_with_hotset_is_taken(put, entry):
    assert read_client(put("a.json", {"mcpServers": {"memory": entry}})).servers


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        '{"theme": "dark"}',
        "a = 1",
        "[" * 100_000,
        '{"a": ' * 50_000,
        '"\\"' * 10_000,
        "/*" * 10_000,
        "\x00",
    ],
)
def test_a_file_without_servers_says_so(put, content):
    with pytest.raises(BadConfig):
        read_client(put("thing.json", content))


def test_a_clients_own_file_without_servers_has_none(put):
    assert read_client(put(".codex/config.toml", 'model = "x"')).servers == {}
    assert read_client(put(".claude.json", {"numStartups": 1})).servers == {}


def test_a_file_that_is_missing_or_no_file_says_so(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    for name, because in (
        ("none.json", "No such file"),
        ("", "no regular file"),
        ("pipe.json", "no regular file"),
    ):
        with pytest.raises(NotFound, match=because):
            read_client(tmp_path / name)


@pytest.mark.parametrize(
    "entry",
    [
        None,
        3,
        "x",
        [],
        {},
        {"command": 3},
        {"command": []},
        {"url": []},
        {"command": "x", "args": {"a": 1}},
    ],
)
@pytest.mark.parametrize("form", ["mcpServers", "servers", "mcp", "mcp_servers"])
def test_a_strange_entry_is_left_out_and_the_others_are_taken(put, entry, form):
    good = {"command": ["x"]} if form == "mcp" else {"command": "x"}
    read = read_client(put("a.json", {form: {"bad": entry, "good": good}}))
    assert (list(read.servers), list(read.skipped)) == (["good"], ["bad"])


def test_what_was_imported_can_be_added_and_read(put, tmp_path):
    environ = dict.fromkeys(
        ("AIRTABLE_API_KEY", "API_KEY", "TOKEN", "TEAM", "FIGMA_OAUTH_TOKEN"), "v"
    )
    own = tmp_path / "data" / "servers.json"
    for name, content in (
        ("1", CLAUDE_PROJECT),
        ("2", VSCODE),
        ("3", CODEX),
        ("4", OPENCODE),
        ("5", CURSOR),
    ):
        read = read_client(put(f"{name}.json", content), project=tmp_path, home=tmp_path)
        add_servers(own, {f"{name}.{server}": entry for server, entry in read.servers.items()})
    read = read_servers(own, environ)
    assert read.troubles == ()
    codex = next(each for each in read.sources if each.name == "3_context7")
    assert codex.launch.command[-1] == "${literal}"


def test_the_files_that_exist_are_known(put, tmp_path):
    project, home = tmp_path / "project", tmp_path / "home"
    expected = [
        put("project/.mcp.json", "{}"),
        put("project/.vscode/mcp.json", "{}"),
        put("home/.claude.json", "{}"),
        put("home/.codex/config.toml", ""),
    ]
    assert known_client_files(project, home) == expected


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.text(',/*"\\}]', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=10,
)


@settings(deadline=None)
@given(JSON, st.sampled_from([" ", '// a , ] } "\n', '/* , ] " */', "\n"]))
def test_comments_and_last_commas_change_nothing(value, between):
    text = json.dumps(value, indent=1).replace("\n", f"{between}\n")
    whole = "".join(
        f"{piece}{between}" for piece in ("{", '"a"', ":", "[", text, ",", "]", ",", "}")
    )
    assert decode_jsonc(whole) == {"a": [value]}
