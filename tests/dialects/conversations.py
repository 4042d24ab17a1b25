"""Valid conversations in every dialect, from a seed: parallel calls, thinking, images, blocks
nobody knows, odd spelling."""

from __future__ import annotations

import base64
import json
from random import Random
from typing import Any

from hypothesis import strategies as st

from hotset.nouns.message import DialectName

Json = dict[str, Any]

_WORDS = (
    "parse",
    "the",
    "page table",
    "é ü",
    "😀",
    "“quote”",
    "\\back\\slash",
    "tab\there",
    "line\nbreak",
    "\0",
    "{json}",
    "</end>",
    "data: [DONE]",
)
_TOOLS = (
    "Bash",
    "Read",
    "read_file",
    "WebFetch",
    "TodoWrite",
    "Task",
    "mcp__git__log",
    "search",
    "update_plan",
)


def conversation(dialect: DialectName, rng: Random) -> bytes:
    """One request body that its provider would accept, spelled as some client would."""
    return _spelled(_MAKERS[dialect](rng), rng)


def conversations(dialect: DialectName) -> st.SearchStrategy[bytes]:
    return st.integers(0, 2**48).map(lambda seed: conversation(dialect, Random(seed)))


def png(width: int, height: int) -> bytes:
    """The head of a PNG: all that anyone reads of it here."""
    return (
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
        + width.to_bytes(4, "big")
        + height.to_bytes(4, "big")
        + b"\x08\0\0\0\0"
    )


def image_block(width: int = 8, height: int = 8) -> Json:
    data = base64.b64encode(png(width, height)).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def _text(rng: Random) -> str:
    return " ".join(rng.choices(_WORDS, k=rng.randint(1, 12))).strip("\0 \n\t") + "."


def _arguments(rng: Random) -> Json:
    return {
        rng.choice(["command", "path", "query", "n"]): rng.choice(
            [_text(rng), rng.random(), rng.randint(-9, 10**20), None, [1, {}]]
        )
        for _ in range(rng.randint(0, 3))
    }


def _id(prefix: str, rng: Random) -> str:
    return f"{prefix}_{rng.getrandbits(64):016x}"


def _unknown(rng: Random) -> Json:
    return {
        "type": f"unheard_of_{rng.randint(0, 9)}",
        "payload": [_text(rng), {"x": rng.random()}, None],
    }


def _spelled(body: Json, rng: Random) -> bytes:
    items = list(body.items())
    rng.shuffle(items)
    style: Json = rng.choice(
        [
            {"separators": (",", ":")},
            {},
            {"indent": 2},
            {"separators": (" ,\r\n", "\t: ")},
            {"indent": "\t", "separators": (",", ":")},
        ]
    )
    text = json.dumps(dict(items), ensure_ascii=rng.random() < 0.5, **style)
    return (
        rng.choice(["", "\n", " \r\n\t"]).encode() + text.encode() + rng.choice(["", "\n"]).encode()
    )


def _anthropic(rng: Random) -> Json:
    mode = rng.choice(["enabled", "adaptive", "off"])
    messages: list[Json] = []
    for _ in range(rng.randint(1, 4)):
        content: Any = _text(rng)
        if rng.random() < 0.6:
            content = [{"type": "text", "text": _text(rng)} for _ in range(rng.randint(1, 2))]
            content += [image_block()] * (rng.random() < 0.2) + [_unknown(rng)] * (
                rng.random() < 0.2
            )
        messages.append({"role": "user", "content": content})
        for _ in range(rng.choice([0, 0, 1, 2])):
            messages += _anthropic_step(rng, thinks=mode != "off")
        messages.append(
            {"role": "assistant", "content": _anthropic_answer(rng, thinks=mode != "off")}
        )
    if rng.random() < 0.3:
        messages += [
            {"role": "user", "content": _text(rng)},
            *_anthropic_step(rng, thinks=mode != "off"),
        ]
    else:
        messages.append(
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": _text(rng), "cache_control": {"type": "ephemeral"}}
                ],
            }
        )
    body: Json = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 1024,
        "messages": messages,
        "stream": rng.random() < 0.5,
    }
    body["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in _TOOLS]
    if rng.random() < 0.5:
        body["system"] = rng.choice(
            [
                _text(rng),
                [{"type": "text", "text": _text(rng), "cache_control": {"type": "ephemeral"}}],
            ]
        )
    if mode != "off":
        body["thinking"] = (
            {"type": "enabled", "budget_tokens": 2000}
            if mode == "enabled"
            else {"type": "adaptive"}
        )
    return body | _extras(rng)


def _anthropic_step(rng: Random, *, thinks: bool) -> list[Json]:
    calls = [
        {
            "type": "tool_use",
            "id": _id("toolu", rng),
            "name": rng.choice(_TOOLS),
            "input": _arguments(rng),
        }
        for _ in range(rng.randint(1, 3))
    ]
    said = [{"type": "text", "text": _text(rng)}] if rng.random() < 0.5 else []
    results = [
        {"type": "tool_result", "tool_use_id": call["id"], "content": _anthropic_result(rng)}
        for call in calls
    ]
    rng.shuffle(results)
    after = [{"type": "text", "text": _text(rng)}] if rng.random() < 0.2 else []
    return [
        {"role": "assistant", "content": [*_thought(rng, thinks=thinks), *said, *calls]},
        {"role": "user", "content": [*results, *after]},
    ]


def _anthropic_result(rng: Random) -> Any:
    return rng.choice(
        [_text(rng), "", [], [{"type": "text", "text": _text(rng)}, image_block()], [_unknown(rng)]]
    )


def _anthropic_answer(rng: Random, *, thinks: bool) -> Any:
    if not thinks and rng.random() < 0.5:
        return _text(rng)
    server: list[Json] = []
    if rng.random() < 0.2:
        id = _id("srvtoolu", rng)
        server = [
            {
                "type": "server_tool_use",
                "id": id,
                "name": "web_search",
                "input": {"query": _text(rng)},
            },
            {"type": "web_search_tool_result", "tool_use_id": id, "content": [_unknown(rng)]},
        ]
    return [*_thought(rng, thinks=thinks), *server, {"type": "text", "text": _text(rng)}]


def _thought(rng: Random, *, thinks: bool) -> list[Json]:
    if not thinks:
        return []
    if rng.random() < 0.1:
        return [{"type": "redacted_thinking", "data": _id("enc", rng)}]
    return [{"type": "thinking", "thinking": _text(rng), "signature": _id("sig", rng)}]


def _chat(rng: Random) -> Json:
    messages: list[Json] = (
        [{"role": rng.choice(["system", "developer"]), "content": _text(rng)}]
        if rng.random() < 0.8
        else []
    )
    for _ in range(rng.randint(1, 4)):
        content: Any = _text(rng)
        if rng.random() < 0.5:
            url = "data:image/png;base64," + base64.b64encode(png(4, 4)).decode()
            content = [
                {"type": "text", "text": _text(rng)},
                {"type": "image_url", "image_url": {"url": url}},
                _unknown(rng),
            ]
        messages.append({"role": "user", "content": content})
        for _ in range(rng.choice([0, 0, 1, 2])):
            messages += _chat_step(rng)
        messages.append(
            {"role": "assistant", "content": _text(rng)}
            | ({"reasoning_content": _text(rng)} if rng.random() < 0.3 else {})
        )
    messages += _chat_step(rng) if rng.random() < 0.3 else [{"role": "user", "content": _text(rng)}]
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
        for name in _TOOLS
    ]
    return {"model": "gpt-5.2", "messages": messages, "tools": tools} | _extras(rng)


def _chat_step(rng: Random) -> list[Json]:
    calls = [
        {
            "id": _id("call", rng),
            "type": "function",
            "function": {
                "name": rng.choice(_TOOLS),
                "arguments": rng.choice([json.dumps(_arguments(rng)), '{"cut', ""]),
            },
        }
        for _ in range(rng.randint(1, 3))
    ]
    results: list[Json] = [
        {
            "role": "tool",
            "tool_call_id": call["id"],
            "content": rng.choice([_text(rng), "", [{"type": "text", "text": _text(rng)}]]),
        }
        for call in calls
    ]
    rng.shuffle(results)
    return [
        {"role": "assistant", "content": rng.choice([None, "", _text(rng)]), "tool_calls": calls},
        *results,
    ]


def _responses(rng: Random) -> Json:
    body: Json = {"model": "gpt-5.4", "instructions": _text(rng), **_extras(rng)}
    if rng.random() < 0.1:
        return body | {"input": _text(rng)}
    items: list[Json] = []
    for _ in range(rng.randint(1, 4)):
        items.append(
            {
                "role": "user",
                "content": rng.choice(
                    [_text(rng), [{"type": "input_text", "text": _text(rng)}, _unknown(rng)]]
                ),
            }
        )
        for _ in range(rng.choice([0, 1, 2])):
            items += _responses_step(rng)
        items += _reasoning(rng)
        content = [{"type": "output_text", "text": _text(rng), "annotations": []}]
        items.append(
            {
                "type": "message",
                "role": "assistant",
                "content": content,
                "id": _id("msg", rng),
                "status": "completed",
            }
        )
    items.append(
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": _text(rng)}]}
    )
    body["tools"] = [
        {"type": "function", "name": name, "parameters": {}, "strict": False} for name in _TOOLS
    ]
    return body | {"input": items}


def _responses_step(rng: Random) -> list[Json]:
    made, results = list[Json](), list[Json]()
    for _ in range(rng.randint(1, 3)):
        id = _id("call", rng)
        if rng.random() < 0.3:
            made.append(
                {
                    "type": "custom_tool_call",
                    "call_id": id,
                    "name": "apply_patch",
                    "input": _text(rng),
                }
            )
            results.append({"type": "custom_tool_call_output", "call_id": id, "output": _text(rng)})
        else:
            arguments = json.dumps(_arguments(rng))
            made.append(
                {
                    "type": "function_call",
                    "call_id": id,
                    "name": rng.choice(_TOOLS),
                    "arguments": arguments,
                    "id": _id("fc", rng),
                }
            )
            output = rng.choice([_text(rng), "", [{"type": "input_text", "text": _text(rng)}]])
            results.append({"type": "function_call_output", "call_id": id, "output": output})
    if rng.random() < 0.2:
        made.append(_unknown(rng))
    return [*_reasoning(rng), *made, *results]


def _reasoning(rng: Random) -> list[Json]:
    if rng.random() < 0.4:
        return []
    summary = [{"type": "summary_text", "text": _text(rng)}] * rng.randint(0, 1)
    return [
        {
            "type": "reasoning",
            "id": _id("rs", rng),
            "summary": summary,
            "encrypted_content": _id("enc", rng),
        }
    ]


def _extras(rng: Random) -> Json:
    return {
        f"x_future_{i}": rng.choice([1e5, 10**25, {"a": [None]}, "é", [], True])
        for i in range(rng.randint(0, 2))
    }


_MAKERS = {
    DialectName.ANTHROPIC: _anthropic,
    DialectName.OPENAI_CHAT: _chat,
    DialectName.OPENAI_RESPONSES: _responses,
}


_NAMES = """
    message_start content_block_start content_block_delta message_delta message_stop error text tool_use tool_result image url
    base64 thinking text_delta input_json_delta citations_delta response.created response.output_item.added
    response.output_item.done response.output_text.delta response.completed response.failed message function_call reasoning
    function_call_output custom_tool_call image_url input_image data:image/png;base64,AA tool assistant system user"""  # noqa: E501
_FIELDS = """
    type type type index delta message content_block usage error choices response item output output_index content content text
    id role role role name tool_calls tool_call_id function arguments call_id input finish_reason stop_reason summary source
    partial_json cache_control tool_use_id url data media_type image_url function_call"""  # noqa: E501
_names, _fields = _NAMES.split(), _FIELDS.split()


def nonsense(rng: Random, depth: int = 4) -> Any:
    """The words of every dialect in places where they do not belong."""
    if depth and rng.random() < 0.55:
        return {rng.choice(_fields): nonsense(rng, depth - 1) for _ in range(rng.randint(0, 5))}
    if depth and rng.random() < 0.3:
        return [nonsense(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return rng.choice(
        [rng.choice(_names), rng.choice(_names), None, True, -1, 0, 2, 1.5, "", "x", 10**30]
    )
