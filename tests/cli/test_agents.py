"""What each agent is told, as data."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from hotset.surfaces.cli.agents import no_proxy_variables, profile_of, set_up

ROOT = "http://127.0.0.1:4747/secret-token"
PROVIDERS = frozenset({"api.anthropic.com", "api.openai.com"})


def test_claude_code_gets_the_root_without_a_version():
    setup = set_up(("claude", "-p", "hi"), ROOT, {}, PROVIDERS)

    assert setup.changed == {"ANTHROPIC_BASE_URL": ROOT, "ENABLE_TOOL_SEARCH": "true"}
    assert setup.command == ("claude", "-p", "hi")


def test_claude_code_keeps_its_caution_where_calls_end_at_another_gateway():
    assert (
        "ENABLE_TOOL_SEARCH" not in set_up(("claude",), ROOT, {}, {"gateway.example.com"}).changed
    )
    assert (
        "ENABLE_TOOL_SEARCH"
        not in set_up(("claude",), ROOT, {"ENABLE_TOOL_SEARCH": "false"}, PROVIDERS).changed
    )


def test_codex_gets_a_provider_on_its_command_line_and_nothing_on_disk():
    setup = set_up(("/usr/bin/codex", "exec", "hi"), ROOT, {"OPENAI_API_KEY": "k"}, PROVIDERS)

    command, *rest = setup.command
    settings = dict(
        word.split("=", 1)
        for flag, word in zip(rest[::2], rest[1::2], strict=False)
        if flag == "-c"
    )
    assert (command, setup.command[-2:]) == ("/usr/bin/codex", ("exec", "hi"))
    assert settings["model_providers.hotset.base_url"] == '"http://127.0.0.1:4747/v1"'
    assert settings["model_providers.hotset.wire_api"] == '"responses"'
    assert settings["model_providers.hotset.env_key"] == '"OPENAI_API_KEY"'
    assert settings["model_provider"] == '"hotset"'


def test_codex_s_command_line_does_not_show_the_token_to_the_whole_machine():
    setup = set_up(("codex",), ROOT, {}, PROVIDERS)

    assert not any("secret-token" in word for word in setup.command)
    assert (
        'model_providers.hotset.env_http_headers={"x-hotset-token"="HOTSET_TOKEN"}' in setup.command
    )
    assert setup.changed == {"HOTSET_TOKEN": "secret-token"}
    for word in setup.arguments[1::2]:
        tomllib.loads(word)  # Codex reads each as TOML


def test_codex_without_a_key_uses_its_own_login_and_is_told_so():
    setup = set_up(("codex",), ROOT, {}, PROVIDERS)

    assert "model_providers.hotset.requires_openai_auth=true" in setup.command
    assert not any("env_key" in word for word in setup.command)
    assert "ChatGPT login" in setup.notes[-1]


@pytest.mark.parametrize("env", [{}, {"OPENAI_API_KEY": "k"}])
def test_codex_s_threads_stay_with_the_provider_that_wrap_gives_it_and_the_person_is_told_so(env):
    setup = set_up(("codex",), ROOT, env, PROVIDERS)

    assert "resumes a thread only under the provider it began with" in setup.notes[0]


def test_opencode_gets_both_providers_over_what_is_there():
    there = json.dumps(
        {
            "theme": "dark",
            "provider": {"openai": {"options": {"timeout": 5, "baseURL": "https://x"}}},
        }
    )

    setup = set_up(("opencode",), ROOT, {"OPENCODE_CONFIG_CONTENT": there}, PROVIDERS)

    assert json.loads(setup.changed["OPENCODE_CONFIG_CONTENT"]) == {
        "theme": "dark",
        "provider": {
            "openai": {"options": {"timeout": 5, "baseURL": f"{ROOT}/v1"}},
            "anthropic": {"options": {"baseURL": f"{ROOT}/v1"}},
        },
    }


def test_aider_gets_what_litellm_reads():
    assert set_up(("aider",), ROOT, {}, PROVIDERS).changed == {
        "OPENAI_API_BASE": f"{ROOT}/v1",
        "ANTHROPIC_API_BASE": ROOT,
        "ANTHROPIC_BASE_URL": ROOT,
    }


def test_goose_keeps_the_token_whichever_way_it_joins_paths():
    changed = set_up(("goose", "session"), ROOT, {}, PROVIDERS).changed

    assert (changed["OPENAI_HOST"], changed["OPENAI_BASE_PATH"]) == (
        "http://127.0.0.1:4747",
        "secret-token/v1/chat/completions",
    )
    assert changed["ANTHROPIC_HOST"] == f"{ROOT}/"


def test_pi_gets_an_extension_that_reads_the_environment_where_it_talks_to_a_model():
    setup = set_up(("pi", "-p", "hi"), ROOT, {}, PROVIDERS)

    assert setup.changed == {"OPENAI_BASE_URL": f"{ROOT}/v1", "ANTHROPIC_BASE_URL": ROOT}
    command, flag, file, *rest = setup.command
    assert (command, flag, rest) == ("pi", "-e", ["-p", "hi"])
    extension = Path(file).read_text()
    assert all(f"process.env.{name}" in extension for name in setup.changed)
    assert set_up(("pi", "install", "npm:x"), ROOT, {}, PROVIDERS).command == (
        "pi",
        "install",
        "npm:x",
    )


def test_any_other_agent_gets_the_usual_variables():
    assert profile_of("/opt/venv/bin/python").name == "any other agent"
    assert set_up(("python", "agent.py"), ROOT, {}, PROVIDERS).changed == {
        "OPENAI_BASE_URL": f"{ROOT}/v1",
        "OPENAI_API_BASE": f"{ROOT}/v1",
        "ANTHROPIC_BASE_URL": ROOT,
    }


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://p:1"}, "127.0.0.1,localhost"),
        (
            {"https_proxy": "http://p:1", "no_proxy": "corp.example"},
            "corp.example,127.0.0.1,localhost",
        ),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "localhost, 127.0.0.1"}, None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
    ],
)
def test_loopback_goes_around_the_machine_s_proxy(env, expected):
    assert no_proxy_variables(env).get("NO_PROXY") == expected
