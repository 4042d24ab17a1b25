"""Recorded sessions are read from whatever agents write, by what a file holds."""

import gzip
import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from hotset.dialects import DIALECTS
from hotset.errors import BadInput
from hotset.nouns.message import DialectName, Usage
from hotset.nouns.page import Role
from hotset.replay.conversation import RecordedCall, RecordedMessage, RecordedSession
from hotset.replay.formats import READERS, find, read
from hotset.store.exchange import write_lines
from hotset.testing.ram_store import RamStore
from hotset.testing.recording import requests, session
from hotset.testing.store_talk import StoreTalk
from tests.campaign import sample
from tests.dialects.conversations import conversation

_SECRET = "sk-live-51H8xTq0"

_LS = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
_CAT = {"type": "tool_use", "id": "t2", "name": "Read", "input": {"path": "a.py"}}


def _result(id: str, text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": text}]}


_ANTHROPIC = {
    "model": "claude-sonnet-5",
    "system": "Be brief.",
    "tools": [{"name": "Bash", "description": "x" * 400, "input_schema": {}}],
    "messages": [
        {"role": "user", "content": "look around"},
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, _LS, _CAT],
        },
        {
            "role": "user",
            "content": [
                _result("t1", "a.py"),
                _result("t2", "x = 1"),
                {"type": "text", "text": "and?"},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "One file."}]},
    ],
}
_CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "look around"}]},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "hm",
        "tool_calls": [
            {
                "id": "t1",
                "type": "function",
                "function": {"name": "Bash", "arguments": '{"command":"ls"}'},
            },
            {
                "id": "t2",
                "type": "function",
                "function": {"name": "Read", "arguments": '{"path":"a.py"}'},
            },
        ],
    },
    {"role": "tool", "tool_call_id": "t1", "content": "a.py"},
    {"role": "tool", "tool_call_id": "t2", "content": "x = 1"},
    {"role": "user", "content": "and?"},
    {"role": "assistant", "content": "One file."},
]
_ITEMS = [
    {"role": "developer", "content": "Be brief."},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look around"}]},
    {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "hm"}]},
    {"type": "function_call", "call_id": "t1", "name": "Bash", "arguments": '{"command":"ls"}'},
    {"type": "function_call", "call_id": "t2", "name": "Read", "arguments": '{"path":"a.py"}'},
    {"type": "function_call_output", "call_id": "t1", "output": "a.py"},
    {
        "type": "function_call_output",
        "call_id": "t2",
        "output": [{"type": "output_text", "text": "x = 1"}],
    },
    {"role": "user", "content": "and?"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "One file."}],
    },
]
_SAME = (
    RecordedMessage(Role.SYSTEM, "Be brief."),
    RecordedMessage(Role.USER, "look around"),
    RecordedMessage(
        Role.ASSISTANT,
        "",
        (
            RecordedCall("t1", "Bash", '{"command":"ls"}'),
            RecordedCall("t2", "Read", '{"path":"a.py"}'),
        ),
        thinking="hm",
    ),
    RecordedMessage(Role.TOOL, "a.py", call="t1", tool="Bash"),
    RecordedMessage(Role.TOOL, "x = 1", call="t2", tool="Read"),
    RecordedMessage(Role.USER, "and?"),
    RecordedMessage(Role.ASSISTANT, "One file."),
)


_KEYS = (
    *(
        "role",
        "content",
        "type",
        "messages",
        "input",
        "msgs",
        "id",
        "r",
        "t",
        "uuid",
        "message",
        "payload",
        "trajectory",
    ),
    *(
        "history",
        "action",
        "trajectory_format",
        "hotset",
        "tool_calls",
        "calls",
        "parentUuid",
        "output",
    ),
)
_NEAR_SESSIONS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["user", "assistant", "tool", "response_item", "mini-swe-agent-1"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5)
    ),
    max_leaves=30,
).map(lambda value: json.dumps(value).encode())
"""JSON that has a lot of what sessions have, in the wrong places."""


def _lines(documents: Iterable[Any]) -> str:
    return "".join(json.dumps(document) + "\n" for document in documents)


def _written(folder: Path, text: str | bytes, name: str = "talk.dat") -> Path:
    """The name says nothing, so the format must be told from what is inside."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def _only(path: Path, **hearing: Any) -> RecordedSession:
    (one,) = read([path], **hearing)
    return one


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(_ANTHROPIC),
        json.dumps(_ANTHROPIC, indent=2),
        json.dumps(_CHAT),
        json.dumps({"messages": _CHAT}, indent=1),
        json.dumps([{"messages": _CHAT}]),
        _lines([{"messages": _CHAT}]),
        _lines(_CHAT),
        json.dumps(_ITEMS),
        json.dumps({"instructions": "Be brief.", "input": _ITEMS[1:]}),
        _lines(_ITEMS),
        "\ufeff" + json.dumps(_CHAT),
    ],
)
def test_the_same_talk_reads_the_same_from_every_api_and_layout(tmp_path, text):
    assert _only(_written(tmp_path, text)).messages == _SAME


def test_a_request_body_tells_its_model_and_what_its_tools_weigh(tmp_path):
    read_back = _only(_written(tmp_path, json.dumps(_ANTHROPIC)))
    assert read_back.model == "claude-sonnet-5"
    assert read_back.id == read_back.set == "talk"
    assert read_back.fixed_tokens > 100


def test_each_line_with_messages_is_a_session_of_its_own(tmp_path):
    path = _written(
        tmp_path, _lines([{"messages": _CHAT}, {"messages": _CHAT[:2], "id": "second"}])
    )
    assert [(each.id, len(each.messages)) for each in read([path])] == [("talk", 7), ("second", 2)]


def test_a_recorded_session_reads_alike_in_all_three_dialects(tmp_path):
    told = {}
    for dialect in DialectName:
        *_, last = requests(session(), dialect)
        messages = _only(_written(tmp_path, last)).messages
        told[dialect] = [
            (m.role, m.text.strip(), m.call.partition("_")[2], m.tool, [c.name for c in m.calls])
            for m in messages
            if m.role is not Role.SYSTEM
        ]
    first, *others = told.values()
    assert len(first) > 40
    assert all(each == first for each in others)


@given(st.sampled_from(DialectName), st.integers(0, 2**32))
@settings(max_examples=sample(60, 150), deadline=None)
@pytest.mark.slow
def test_every_result_in_a_valid_request_finds_the_call_it_answers(dialect, seed):
    body = conversation(dialect, Random(seed))
    DIALECTS[dialect].parse(body)
    with TemporaryDirectory() as folder:
        errors: list[BadInput] = []
        for each in read([_written(Path(folder), body)], refuse=errors.append):
            called = [call.id for message in each.messages for call in message.calls]
            assert len(called) == len(set(called))
            open_calls: set[str] = set()
            for message in each.messages:
                open_calls |= {call.id for call in message.calls}
                if message.role is Role.TOOL:
                    assert message.call in open_calls
        assert all("without any message" in str(error) for error in errors)


def test_the_normal_form_is_read_field_by_field_gzipped_too(tmp_path):
    said = [
        {"r": "user", "t": "go", "ts": 5},
        {
            "r": "assistant",
            "t": "THOUGHT: look\n```bash\nls -R\n```",
            "calls": [{"id": "c1", "n": "bash", "a": "ls -R", "inline": 1}],
            "th": "hm",
            "ts": 6.5,
            "u": [10, 20, 30, 4],
        },
        {"r": "tool", "t": "a.py", "id": "c1", "n": "bash"},
        {"r": "user", "t": "so far: a.py", "x": "compact"},
    ]
    line = {"id": "s1", "set": "mini", "model": "m", "fixed_tokens": 7, "msgs": said}
    path = _written(tmp_path, gzip.compress(_lines([line]).encode()))
    assert _only(path) == RecordedSession(
        "s1",
        "mini",
        "m",
        (
            RecordedMessage(Role.USER, "go", time=5.0),
            RecordedMessage(
                Role.ASSISTANT,
                "THOUGHT: look\n```bash\n\n```",
                (RecordedCall("c1", "bash", "ls -R"),),
                thinking="hm",
                time=6.5,
                usage=Usage(10, 30, 20, 4),
            ),
            RecordedMessage(Role.TOOL, "a.py", call="c1", tool="bash"),
            RecordedMessage(Role.USER, "so far: a.py", compaction=True),
        ),
        7,
    )


class _Transcript:
    """Claude Code's lines, each the child of the last unless told otherwise."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = [
            {"type": "summary", "summary": "An older talk", "leafUuid": "gone"}
        ]
        self._last: str | None = None

    def add(
        self, kind: str, message: dict[str, Any] | None, *, after: str | None = "", **more: Any
    ) -> str:
        uuid = f"u{len(self.lines)}"
        parent = self._last if after == "" else after
        line = {
            "type": kind,
            "uuid": uuid,
            "parentUuid": parent,
            "sessionId": "s1",
            "isSidechain": False,
        }
        stamp = {"timestamp": f"2026-01-02T00:00:{len(self.lines):02}.000Z"}
        self.lines.append(line | stamp | ({"message": message} if message else {}) | more)
        self._last = uuid
        return uuid

    def says(self, text: str, **more: Any) -> str:
        return self.add("user", {"role": "user", "content": text}, **more)

    def hears(self, reply: str, block: dict[str, Any], **more: Any) -> str:
        usage = {
            "input_tokens": 3,
            "cache_creation_input_tokens": 40,
            "cache_read_input_tokens": 500,
            "output_tokens": 6,
        }
        message = {
            "id": reply,
            "model": "claude-opus-5",
            "role": "assistant",
            "content": [block],
            "usage": usage,
        }
        return self.add("assistant", message, **more)

    def gets(self, id: str, text: str, **more: Any) -> str:
        return self.add(
            "user",
            {"role": "user", "content": [_result(id, text)]},
            toolUseResult={"stdout": text},
            **more,
        )


def test_a_claude_code_reply_that_is_spread_over_lines_is_one_message_with_its_results_behind_it(
    tmp_path,
):
    talk = _Transcript()
    talk.says("look around")
    talk.add("progress", None, data={"type": "hook_progress"})
    talk.hears("m1", {"type": "thinking", "thinking": "hm", "signature": "s"})
    first = talk.hears("m1", _LS)
    second = talk.hears("m1", _CAT)
    talk.gets("t1", "a.py", after=first)
    talk.gets("t2", "x = 1", after=second)
    talk.hears("m2", {"type": "text", "text": "One file."})
    recorded = _only(_written(tmp_path, _lines(talk.lines)))
    assert (recorded.id, recorded.model) == ("s1", "claude-opus-5")
    assert [
        (m.role, m.text, m.call, m.tool, m.thinking, len(m.calls)) for m in recorded.messages
    ] == [
        (Role.USER, "look around", "", "", "", 0),
        (Role.ASSISTANT, "", "", "", "hm", 2),
        (Role.TOOL, "a.py", "t1", "Bash", "", 0),
        (Role.TOOL, "x = 1", "t2", "Read", "", 0),
        (Role.ASSISTANT, "One file.", "", "", "", 0),
    ]
    assert recorded.messages[1].usage == Usage(3, 500, 40, 6)
    assert all(
        later.time > earlier.time
        for earlier, later in pairwise(recorded.messages)
        if later.role is Role.USER
    )


def test_what_was_rewound_in_claude_code_is_left_out(tmp_path):
    talk = _Transcript()
    start = talk.says("look around")
    reply = talk.hears("m1", {"type": "text", "text": "At what?"})
    talk.says("at the wrong thing")
    talk.hears("m2", {"type": "text", "text": "Looking at it."})
    talk.says("at the right thing", after=reply)
    talk.hears("m3", {"type": "text", "text": "Better."})
    assert start == "u1"
    texts = [message.text for message in _only(_written(tmp_path, _lines(talk.lines))).messages]
    assert texts == ["look around", "At what?", "at the right thing", "Better."]


def test_a_claude_code_compaction_is_marked_and_what_came_before_it_stays(tmp_path):
    talk = _Transcript()
    talk.says("look around")
    last = talk.hears("m1", {"type": "text", "text": "Done."})
    for logical in (last, "not in this file"):
        talk.add("system", None, after=None, subtype="compact_boundary", logicalParentUuid=logical)
        talk.says("This session is being continued", isCompactSummary=True)
    talk.hears("m2", {"type": "text", "text": "Going on."})
    messages = _only(_written(tmp_path, _lines(talk.lines))).messages
    assert [(message.text[:12], message.compaction) for message in messages] == [
        ("look around", False),
        ("Done.", False),
        ("This session", True),
        ("This session", True),
        ("Going on.", False),
    ]


def test_agents_that_claude_code_sent_out_are_sessions_of_their_own(tmp_path):
    talk = _Transcript()
    main = talk.says("send somebody")
    talk.says("find it", after=None, isSidechain=True, agentId="a1")
    talk.hears("m2", {"type": "text", "text": "Found."}, isSidechain=True, agentId="a1")
    talk.says("find more", after=None, isSidechain=True)
    talk.hears("m3", {"type": "text", "text": "Found more."}, isSidechain=True)
    talk.hears("m4", {"type": "text", "text": "They found it."}, after=main)
    told = {
        each.id: [message.text for message in each.messages]
        for each in read([_written(tmp_path, _lines(talk.lines))])
    }
    assert told == {
        "s1": ["send somebody", "They found it."],
        "s1:a1": ["find it", "Found."],
        "s1:u4": ["find more", "Found more."],
    }


def test_words_that_the_client_put_into_the_models_mouth_are_left_out(tmp_path):
    talk = _Transcript()
    talk.says("go")
    talk.add(
        "assistant",
        {
            "model": "<synthetic>",
            "role": "assistant",
            "content": [{"type": "text", "text": "API Error"}],
        },
    )
    talk.hears("m1", {"type": "text", "text": "Gone."})
    assert [message.text for message in _only(_written(tmp_path, _lines(talk.lines))).messages] == [
        "go",
        "Gone.",
    ]


def _rollout(*payloads: tuple[str, dict[str, Any]]) -> str:
    stamp = "2026-06-18T07:41:{:02}.000Z"
    meta = ("session_meta", {"id": "r1", "base_instructions": {"text": "You are Codex."}})
    lines = (meta, ("turn_context", {"model": "gpt-5.5"}), *payloads)
    return _lines(
        {"timestamp": stamp.format(at), "type": kind, "payload": payload}
        for at, (kind, payload) in enumerate(lines)
    )


def _item(**fields: Any) -> tuple[str, dict[str, Any]]:
    return "response_item", fields


def _tokens(sent: int, cached: int, output: int) -> tuple[str, dict[str, Any]]:
    usage = {"input_tokens": sent, "cached_input_tokens": cached, "output_tokens": output}
    return "event_msg", {
        "type": "token_count",
        "info": {"last_token_usage": usage, "total_token_usage": {"input_tokens": sent}},
    }


_PROMPT = _item(type="message", role="user", content=[{"type": "input_text", "text": "look"}])


def test_a_codex_reply_lasts_until_its_tokens_were_counted(tmp_path):
    text = _rollout(
        _PROMPT,
        ("event_msg", {"type": "user_message", "message": "look"}),
        _item(
            type="reasoning",
            summary=[{"type": "summary_text", "text": "hm"}],
            encrypted_content="…",
        ),
        _item(
            type="message", role="assistant", content=[{"type": "output_text", "text": "Looking."}]
        ),
        _item(type="function_call", name="exec_command", arguments='{"cmd":"ls"}', call_id="c1"),
        _item(type="function_call_output", call_id="c1", output="a.py"),
        _item(type="custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c2"),
        _item(type="custom_tool_call_output", call_id="c2", output="Done!"),
        _tokens(100, 60, 9),
        _tokens(100, 60, 9),
        _item(type="local_shell_call", call_id="c3", action={"type": "exec", "command": ["ls"]}),
        _item(
            type="function_call_output",
            call_id="c3",
            output=[{"type": "input_image", "image_url": "data:,"}],
        ),
        _tokens(120, 100, 3),
        _item(type="message", role="assistant", content=[{"type": "output_text", "text": "Done."}]),
    )
    recorded = _only(_written(tmp_path, text))
    assert (recorded.id, recorded.model) == ("r1", "gpt-5.5")
    assert [
        (m.role, m.text, [c.name for c in m.calls], m.tool, m.usage) for m in recorded.messages
    ] == [
        (Role.SYSTEM, "You are Codex.", [], "", None),
        (Role.USER, "look", [], "", None),
        (Role.ASSISTANT, "Looking.", ["exec_command", "apply_patch"], "", Usage(40, 60, 0, 9)),
        (Role.TOOL, "a.py", [], "exec_command", None),
        (Role.TOOL, "Done!", [], "apply_patch", None),
        (Role.ASSISTANT, "", ["local_shell"], "", Usage(20, 100, 0, 3)),
        (Role.TOOL, "[image]", [], "local_shell", None),
        (Role.ASSISTANT, "Done.", [], "", None),
    ]


def test_a_codex_rollout_without_token_counts_ends_a_reply_at_its_results(tmp_path):
    text = _rollout(
        _PROMPT,
        _item(type="function_call", name="shell", arguments="{}", call_id="c1"),
        _item(type="function_call_output", call_id="c1", output="a"),
        _item(type="function_call", name="shell", arguments="{}", call_id="c2"),
        _item(type="function_call_output", call_id="c2", output="b"),
    )
    roles = [message.role.value for message in _only(_written(tmp_path, text)).messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]


def test_a_codex_compaction_is_one_message_with_all_that_was_taken_over(tmp_path):
    kept = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}]},
        {"type": "compaction"},
    ]
    text = _rollout(
        _PROMPT, ("compacted", {"message": "So far so good.", "replacement_history": kept})
    )
    summary = _only(_written(tmp_path, text)).messages[-1]
    assert summary.compaction
    assert summary.text.startswith("look\n\n[")
    assert summary.text.endswith("So far so good.")


def test_swe_agent_actions_become_calls_and_observations_their_results(tmp_path):
    history = [
        {
            "role": "system",
            "content": "You are in a shell.",
            "agent": "main",
            "message_type": "system_prompt",
        },
        {"role": "user", "content": "Fix it.", "agent": "main", "message_type": "observation"},
        {
            "role": "assistant",
            "content": "Look.\n```\nls -a\n```",
            "thought": "Look.",
            "action": "ls -a",
            "agent": "main",
        },
        {"role": "user", "content": "a.py", "agent": "main", "message_type": "observation"},
        {
            "role": "assistant",
            "content": "Open it.",
            "action": "open a.py",
            "tool_calls": [
                {
                    "id": "c9",
                    "type": "function",
                    "function": {"name": "open", "arguments": '{"path":"a.py"}'},
                }
            ],
        },
        {"role": "tool", "content": "x = 1", "tool_call_ids": ["c9"]},
    ]
    config = json.dumps({"agent": {"model": {"name": "gpt-4o"}}})
    document = {
        "trajectory": [{"action": "ls -a", "observation": "a.py"}],
        "history": history,
        "info": {},
        "replay_config": config,
    }
    recorded = _only(_written(tmp_path, json.dumps(document, indent=2)))
    assert recorded.model == "gpt-4o"
    assert [
        (m.role, m.text, [(c.name, c.arguments) for c in m.calls], m.tool)
        for m in recorded.messages[2:]
    ] == [
        (Role.ASSISTANT, "Look.\n```\n\n```", [("bash", '{"command":"ls -a"}')], ""),
        (Role.TOOL, "a.py", [], "bash"),
        (Role.ASSISTANT, "Open it.", [("open", '{"path":"a.py"}')], ""),
        (Role.TOOL, "x = 1", [], "open"),
    ]


def test_swe_agent_steps_alone_are_enough(tmp_path):
    document = {
        "trajectory": [{"action": "ls", "observation": "a.py", "thought": "Look."}],
        "info": {},
    }
    messages = _only(_written(tmp_path, json.dumps(document))).messages
    assert [(message.role, message.text) for message in messages] == [
        (Role.ASSISTANT, "Look."),
        (Role.TOOL, "a.py"),
    ]


def test_a_swe_agent_history_that_does_not_say_what_was_done_is_told_by_its_steps(tmp_path):
    said = [
        ("system", "You are in a shell."),
        ("user", "Fix it."),
        ("assistant", "Look.\n```\nls\n```"),
        ("user", "a.py"),
    ]
    document = {
        "trajectory": [{"action": "ls", "observation": "a.py", "thought": "Look."}],
        "history": [{"role": role, "content": text, "agent": "main"} for role, text in said],
    }
    messages = _only(_written(tmp_path, json.dumps(document))).messages
    assert [message.role for message in messages] == [
        Role.SYSTEM,
        Role.USER,
        Role.ASSISTANT,
        Role.TOOL,
    ]
    assert messages[-1].text == "a.py"


_MINI = [
    {"role": "system", "content": "One bash block."},
    {"role": "user", "content": "Fix it."},
    {
        "role": "assistant",
        "content": "THOUGHT: look\n\n```bash\nls\n```",
        "extra": {
            "response": {
                "created": 1763510516,
                "usage": {
                    "prompt_tokens": 100,
                    "completion_tokens": 5,
                    "prompt_tokens_details": {"cached_tokens": 64},
                },
            }
        },
    },
    {"role": "user", "content": "<returncode>0</returncode>\n<output>\na.py\n</output>"},
    {"role": "assistant", "content": "```bash\nls\n```\nor\n```bash\npwd\n```"},
    {"role": "user", "content": "Please give exactly one action."},
    {"role": "exit", "content": "Submitted"},
]


def test_mini_swe_agent_commands_in_the_text_become_calls(tmp_path):
    info = {"config": {"model": {"model_name": "gemini-3-pro"}}}
    document = {
        "messages": _MINI,
        "info": info,
        "trajectory_format": "mini-swe-agent-1",
        "instance_id": "a-1",
    }
    recorded = _only(_written(tmp_path, json.dumps(document, indent=2)))
    assert (recorded.id, recorded.model) == ("a-1", "gemini-3-pro")
    assert [message.role.value for message in recorded.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    reply, result = recorded.messages[2:4]
    assert reply.calls == (RecordedCall("call-1", "bash", '{"command":"ls"}'),)
    assert (reply.text, reply.time, reply.usage) == (
        "THOUGHT: look\n\n```bash\n\n```",
        1763510516.0,
        Usage(36, 64, 0, 5),
    )
    assert (result.call, result.tool) == ("call-1", "bash")


def test_mini_swe_agent_is_read_with_its_tool_calling_models_too(tmp_path):
    call = {
        "type": "function_call",
        "call_id": "c1",
        "name": "bash",
        "arguments": '{"command":"ls"}',
    }
    said = [
        {"role": "user", "content": "Fix it."},
        {
            "object": "response",
            "output": [call],
            "usage": {"input_tokens": 9, "output_tokens": 2},
            "extra": {"timestamp": 10.0},
        },
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": "a.py",
            "extra": {"timestamp": 11.0},
        },
        _CHAT[2],
        _CHAT[3],
    ]
    recorded = _only(
        _written(
            tmp_path, json.dumps({"messages": said, "trajectory_format": "mini-swe-agent-1.1"})
        )
    )
    assert [(m.role.value, m.text, m.tool, m.time) for m in recorded.messages] == [
        ("user", "Fix it.", "", None),
        ("assistant", "", "", 10.0),
        ("tool", "a.py", "bash", 11.0),
        ("assistant", "", "", None),
        ("tool", "a.py", "Bash", None),
    ]
    assert recorded.messages[1].usage == Usage(9, 0, 0, 2)


def _turn(talk: StoreTalk, question: str, answer: str) -> None:
    said = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    asked, heard = (
        DIALECTS[DialectName.OPENAI_CHAT]
        .parse(json.dumps({"model": "m", "messages": said}).encode())
        .messages
    )
    talk.hears(talk.asks(asked).turn, heard)


def test_an_export_tells_the_longest_line_of_each_session_with_its_bills(tmp_path):
    store = RamStore()
    talk = StoreTalk(store)
    for question, answer in (("one", "first"), ("two", "second"), ("three", "third")):
        _turn(talk, question, answer)
    del talk.history[2:]
    _turn(talk, "another way", "short")
    other = StoreTalk(store, agent="other", client="other/1", key="k")
    _turn(other, "hello", "hi")
    lines = list(write_lines(store.dump()))
    store.close()
    main, second = read([_written(tmp_path, b"".join(lines))])
    assert [message.text for message in main.messages] == [
        "one",
        "first",
        "two",
        "second",
        "three",
        "third",
    ]
    assert [message.usage for message in main.messages] == [None, Usage(10, 2, 3, 4)] * 3
    assert len(second.messages) == 2
    assert main.model == "model"


def test_a_last_line_that_is_still_being_written_is_left_out_with_a_note(tmp_path):
    notes: list[str] = []
    text = _lines(_CHAT) + '{"role": "user", "content": "half a sen'
    assert _only(_written(tmp_path, text), note=notes.append).messages == _SAME
    assert len(notes) == 1
    assert "line 8" in notes[0]
    assert "half" not in notes[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (_lines(_CHAT[:2]) + '{"role": "user", "con\n' + _lines(_CHAT[2:]), "line 3 is not JSON"),
        ("", "it is empty"),
        ("\n \n", "it is empty"),
        ("Dear diary, " + _SECRET, "it is not JSON"),
        ('{"messages": [{"role": "user",\n "content": "' + _SECRET, "cut off"),
        (b"\xff\xfe{\x00", "it is not JSON"),
        (b"\x89PNG\r\n\x1a\n\0\0", "it is not JSON"),
        (gzip.compress(_lines(_CHAT * 99).encode())[:-30], "its compression is damaged"),
        (gzip.compress(b"x", mtime=0)[:12] + b"\xff" * 30, "its compression is damaged"),
        (
            json.dumps({"instance_id": "x", "model_patch": _SECRET, _SECRET: 1}),
            "a JSON object with instance_id, model_patch, which",
        ),
        (json.dumps([1, 2]), "a JSON list of 2, the first a JSON value"),
        (json.dumps({"messages": []}), "a JSON object with messages, which"),
        ('{"hotset": "store", "format": 1}\n{"is": "nothing"}\n', "no such kind of row"),
        ('{"hotset": "store", "format": 1}\n', "cut off"),
        (_lines([{"id": "a", "msgs": []}]), "without any message"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_one_error_that_names_the_file_and_quotes_nothing(
    tmp_path, text, told
):
    path = _written(tmp_path, text)
    with pytest.raises(BadInput) as caught:
        list(read([path]))
    assert str(caught.value).startswith(str(path))
    assert told in str(caught.value)
    assert _SECRET not in str(caught.value)


def test_the_error_for_an_unknown_format_names_the_known_ones(tmp_path):
    with pytest.raises(BadInput) as caught:
        list(read([_written(tmp_path, "{}")]))
    assert all(each.format in str(caught.value) for each in READERS)


def test_a_folder_is_read_file_by_file_and_one_bad_file_does_not_stop_the_others(tmp_path):
    _written(tmp_path, _lines(_CHAT), "b.jsonl")
    (tmp_path / "deep").mkdir()
    _written(tmp_path, gzip.compress(json.dumps(_ANTHROPIC).encode()), "deep/c.json.gz")
    _written(tmp_path, '{"model_patch": 1}', "a.json")
    _written(tmp_path, "not looked at", "notes.md")
    (tmp_path / ".hidden").mkdir()
    _written(tmp_path, "{}", ".hidden/x.json")
    errors: list[BadInput] = []
    found = list(read([tmp_path, tmp_path / "nowhere"], refuse=errors.append))
    assert [each.id for each in found] == ["b", "c"]
    assert {each.set for each in found} == {tmp_path.name}
    assert [each.messages for each in found] == [_SAME, _SAME]
    assert [path.name for path in find(tmp_path)] == ["a.json", "b.jsonl", "c.json.gz"]
    assert [str(error).split(": ")[1][:10] for error in errors] == ["it holds a", "no such fi"]


def test_a_folder_without_anything_to_read_is_told(tmp_path):
    with pytest.raises(BadInput, match="no file in it ends in"):
        list(read([tmp_path]))


@given(st.binary(max_size=400) | _NEAR_SESSIONS)
@settings(max_examples=sample(100, 300), deadline=None)
@pytest.mark.slow
def test_no_file_makes_the_reader_fail_with_anything_but_bad_input(content):
    with TemporaryDirectory() as folder:
        path = _written(Path(folder), content)
        try:
            sessions = list(read([path]))
        except BadInput:
            return
        assert all(each.messages for each in sessions)
