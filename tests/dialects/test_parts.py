"""What a reader finds in a message: the parts, their kinds, and which tool they came from."""

from __future__ import annotations

import json

import pytest

from hotset.dialects import DIALECTS
from hotset.dialects.parts import kind_of_call, kind_of_result
from hotset.nouns.message import DialectName
from hotset.nouns.page import Kind, Role
from tests.dialects.recordings import recording


def _parsed(name, file):
    return DIALECTS[name].parse(recording(name, file))


def _kinds(request):
    return [[str(part.kind) for part in message.parts] for message in request.messages]


def test_a_claude_code_request_is_understood():
    request = _parsed(DialectName.ANTHROPIC, "claude_code.request.json")
    assert _kinds(request) == [
        ["prompt", "prompt"],
        ["thinking", "response", "tool_call", "tool_call"],
        ["file", "test_result"],
        ["response", "plan"],
        ["tool_result", "prompt"],
    ]
    read = request.messages[1].parts[2]
    assert (read.tool, read.call, json.loads(read.content)) == (
        "Read",
        "toolu_01A",
        {"file_path": "/repo/tests/test_parse.py"},
    )
    found = request.messages[2].parts[0]
    assert (found.tool, found.call, found.content.decode().split("\n")[1]) == (
        "Read",
        "toolu_01A",
        "     2→    assert parse('é') == 'é'",
    )
    assert request.hints == (
        "user_id=user_8f1c_account__session_2d7e4c1a-77c1-4f6e-9a59-1f0a6a2c1a11",
    )
    assert [part.kind for part in request.system] == [Kind.SYSTEM, Kind.SYSTEM]
    assert [tool.name for tool in request.tools] == ["Read", "Bash", "TodoWrite"]
    assert json.loads(request.tools[1].raw)["description"] == "Runs a command"
    assert request.stream
    assert request.model == "claude-sonnet-4-5-20250929"


def test_images_give_their_own_bytes_and_what_is_unknown_its_json():
    request = _parsed(DialectName.ANTHROPIC, "images.request.json")
    assert _kinds(request) == [
        ["image", "image", "opaque", "prompt"],
        ["thinking", "response", "tool_call"],
        ["tool_result", "image", "opaque"],
        ["opaque"],
        ["prompt"],
    ]
    here, there = request.messages[0].parts[:2]
    assert (here.media, here.content[:8]) == ("image/png", b"\x89PNG\r\n\x1a\n")
    assert (there.media, there.content) == ("text/uri-list", b"https://example.org/a.jpg")
    assert {part.call for part in request.messages[2].parts} == {"toolu_shot"}
    assert {part.tool for part in request.messages[2].parts} == {"mcp__browser__screenshot"}
    hologram = request.messages[3].parts[0]
    assert (hologram.media, hologram.content) == (
        "application/json",
        b'{"type":"hologram","depth":3,"cache_control":{"type":"ephemeral"}}',
    )


def test_arguments_are_kept_as_they_were_spelled():
    request = _parsed(DialectName.ANTHROPIC, "odd_spelling.request.json")
    assert request.messages[0].parts[0].content == "café 😀 / \0 tab\t".encode()
    assert (
        request.messages[1].parts[0].content
        == b'{ "n" : 1E5 , "big":18446744073709551616,"f":1.10,"e":-0.0 }'
    )
    assert request.messages[2].parts[0].content == b""
    assert request.model == "claude-3-5-haiku-latest"


def test_a_thread_says_what_it_goes_on_from_and_a_later_system_message_stands_aside():
    request = _parsed(DialectName.ANTHROPIC, "thread.request.json")
    assert request.previous == "msg_01Prev"
    assert [(message.role, message.aside) for message in request.messages] == [
        (Role.USER, False),
        (Role.SYSTEM, True),
    ]


def test_an_opencode_request_is_understood():
    request = _parsed(DialectName.OPENAI_CHAT, "opencode.request.json")
    assert _kinds(request) == [
        ["system"],
        ["prompt"],
        ["response", "tool_call", "tool_call"],
        ["test_result"],
        ["file"],
        ["thinking", "response"],
        ["prompt", "image", "image", "opaque", "opaque"],
    ]
    assert [message.aside for message in request.messages] == [True] + [False] * 6
    assert request.hints == ("prompt_cache_key=ses_5b1f",)


def test_legacy_functions_and_unheard_of_roles_pass():
    request = _parsed(DialectName.OPENAI_CHAT, "legacy.request.json")
    assert _kinds(request) == [["prompt"], ["tool_call"], ["tool_result"], ["opaque"], []]
    assert [message.role for message in request.messages] == [
        Role.USER,
        Role.ASSISTANT,
        Role.TOOL,
        Role.USER,
        Role.USER,
    ]
    assert request.messages[2].parts[0].tool == "add"
    assert [tool.name for tool in request.tools] == ["add"]


def test_a_codex_request_is_understood():
    request = _parsed(DialectName.OPENAI_RESPONSES, "codex.request.json")
    assert _kinds(request) == [
        ["system"],
        ["prompt"],
        ["prompt", "image"],
        ["thinking"],
        ["tool_call"],
        ["test_result"],
        ["thinking"],
        ["tool_call"],
        ["tool_result"],
        ["opaque"],
        ["response"],
        ["prompt"],
    ]
    assert [index for index, message in enumerate(request.messages) if message.aside] == [0, 3, 6]
    patch = request.messages[7].parts[0]
    assert (patch.tool, patch.media, patch.content[:15]) == (
        "apply_patch",
        "text/plain",
        b"*** Begin Patch",
    )
    assert request.messages[8].parts[0].tool == "apply_patch"
    assert request.messages[3].parts[0].content == b"**Inspecting**"
    assert json.loads(request.messages[6].parts[0].content)["encrypted_content"] == "gAAAAABo_enc2"
    assert [tool.name for tool in request.tools] == ["exec_command", "apply_patch", "web_search"]
    assert request.system[0].content.startswith(b"You are Codex")


def test_items_of_every_type_pass():
    request = _parsed(DialectName.OPENAI_RESPONSES, "items.request.json")
    kinds = [kinds[0] for kinds in _kinds(request)]
    assert kinds[:7] == [
        "prompt",
        "thinking",
        "tool_call",
        "tool_result",
        "opaque",
        "opaque",
        "tool_call",
    ]
    assert kinds[7:] == ["tool_result", "opaque", "opaque", "response", "opaque", "opaque"]
    assert request.hints == ("conversation=conv_1",)
    assert request.messages[7].parts[0].tool == "local_shell"


def test_a_stored_conversation_is_named():
    request = _parsed(DialectName.OPENAI_RESPONSES, "stored.request.json")
    assert request.previous == "resp_0prev"
    assert request.hints == ("safety_identifier=u7",)
    assert _kinds(request)[0] == ["tool_result", "image"]


@pytest.mark.parametrize(
    ("tool", "arguments", "kind"),
    [
        ("Read", {"file_path": "a"}, Kind.FILE),
        ("mcp__fs__read_file", {}, Kind.FILE),
        ("str_replace_based_edit_tool", {"command": "view", "path": "a"}, Kind.FILE),
        ("str_replace_based_edit_tool", {"command": "create", "path": "a"}, Kind.TOOL_RESULT),
        ("Bash", {"command": "cat src/a.py"}, Kind.FILE),
        ("Bash", {"command": "sed -n 1,20p src/a.py"}, Kind.FILE),
        ("Bash", {"command": "cat a | grep b"}, Kind.TOOL_RESULT),
        ("Bash", {"command": "ls -la"}, Kind.TOOL_RESULT),
        ("Bash", {"command": "pytest -q"}, Kind.TEST_RESULT),
        ("Bash", {"command": "cd x && CI=1 uv run python -m pytest tests"}, Kind.TEST_RESULT),
        ("bash", {"command": ".venv/bin/pytest"}, Kind.TEST_RESULT),
        ("shell", {"command": ["bash", "-lc", "cargo test --all"]}, Kind.TEST_RESULT),
        ("exec_command", {"cmd": "go test ./..."}, Kind.TEST_RESULT),
        ("run_terminal_cmd", {"command": "npm run test"}, Kind.TEST_RESULT),
        ("Bash", {"command": "pip install pytest"}, Kind.TOOL_RESULT),
        ("Bash", {"command": "grep -rn pytest ."}, Kind.TOOL_RESULT),
        ("WebFetch", {"url": "https://docs.python.org"}, Kind.WEB_FETCH),
        ("mcp__fetch__fetch", {"url": "https://arxiv.org/abs/1706.03762"}, Kind.PAPER),
        ("arxiv_download", {"id": "1706.03762"}, Kind.PAPER),
        ("Task", {"prompt": "look"}, Kind.AGENT_MESSAGE),
        ("spawn_agent", {}, Kind.AGENT_MESSAGE),
        ("", {}, Kind.TOOL_RESULT),
    ],
)
def test_a_result_is_known_by_its_tool_and_its_arguments(tool, arguments, kind):
    assert kind_of_result(tool, json.dumps(arguments).encode()) is kind
    assert kind.family in (Kind.TOOL_RESULT, kind)


@pytest.mark.parametrize(
    ("tool", "kind"),
    [("TodoWrite", Kind.PLAN), ("update_plan", Kind.PLAN), ("Bash", Kind.TOOL_CALL)],
)
def test_a_plan_is_known_by_its_tool(tool, kind):
    assert kind_of_call(tool) is kind


def test_a_hostile_command_is_classified_without_delay():
    kind_of_result(
        "bash", json.dumps({"command": "a=b " * 1000 + "sudo " * 1000 + "/" * 5000}).encode()
    )
