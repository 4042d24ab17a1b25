"""Trajectories of SWE-agent (the history as the model saw it, and the steps that made it) and of
mini-swe-agent (an API's messages, each with what was run and when)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from hotset.dialects import json_bytes
from hotset.replay.conversation import RecordedSession
from hotset.replay.formats.api_messages import add_chat_message, add_responses_item
from hotset.replay.formats.transcript import (
    OpenTranscript,
    TalkBuilder,
    TranscriptReader,
    as_json,
    parse_time,
    text_of,
    usage_of,
)

SHELL = "bash"
"""The only tool of agents that write commands into their text."""


def _claims(opening: Sequence[Any]) -> bool:
    first = json_bytes.as_object(opening[0])
    return _steps(first) != [] or any(
        "message_type" in each or "action" in each for each in _history(first)
    )


def _sessions(opened: OpenTranscript) -> Iterator[RecordedSession]:
    for document in opened.documents:
        fields = json_bytes.as_object(document)
        talk = TalkBuilder(marks_ends=True)
        history, steps = _history(fields), _steps(fields)
        if history and (
            not steps or any(_has_text_action(each) or each.get("tool_calls") for each in history)
        ):
            _add_history(talk, history)
        else:
            # The history lacks actions: results would be mistaken for the user's messages.
            for each in takewhile(lambda each: each["role"] != "assistant", history):
                add_chat_message(talk, each)
            _add_steps(talk, steps)
        yield RecordedSession(opened.file.stem, opened.file.set, _model(fields), talk.messages())


def shell_arguments(text: str) -> str:
    """A shell command as a tool call's arguments."""
    return as_json({"command": text})


def _history(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        each
        for each in json_bytes.as_list(fields.get("history"))
        if isinstance(each, dict) and "role" in each
    ]


def _steps(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        each
        for each in json_bytes.as_list(fields.get("trajectory"))
        if isinstance(each, dict) and "action" in each
    ]


def _add_history(talk: TalkBuilder, history: Sequence[Mapping[str, Any]]) -> None:
    pending = ""
    for each in history:
        role = each["role"]
        if role == "tool":
            ids = json_bytes.as_list(each.get("tool_call_ids")) or [each.get("tool_call_id")]
            for id in ids:
                talk.add_result(json_bytes.as_text(id), text_of(each.get("content")))
        elif role == "user" and pending:
            talk.add_result(pending, text_of(each.get("content")))
            pending = ""
        else:
            add_chat_message(talk, {**each, "content": _text_without_action(each)})
            pending = _add_text_action(talk, each)


def _text_without_action(message: Mapping[str, Any]) -> str:
    """The text without its action, if the action becomes a call."""
    text = text_of(message.get("content"))
    action = json_bytes.as_text(message.get("action"))
    return text.replace(action, "", 1) if _has_text_action(message) and action.strip() else text


def _has_text_action(message: Mapping[str, Any]) -> bool:
    return (
        message["role"] == "assistant"
        and not message.get("tool_calls")
        and bool(json_bytes.as_text(message.get("action")).strip())
    )


def _add_text_action(talk: TalkBuilder, message: Mapping[str, Any]) -> str:
    """Add the action in a message's text as a call. Returns the call's id; empty without one."""
    return (
        talk.add_call("", SHELL, shell_arguments(json_bytes.as_text(message["action"]).strip()))
        if _has_text_action(message)
        else ""
    )


def _add_steps(talk: TalkBuilder, steps: Sequence[Mapping[str, Any]]) -> None:
    for step in steps:
        talk.end_reply()
        talk.add_text(json_bytes.as_text(step.get("thought")))
        talk.add_result(
            talk.add_call("", SHELL, shell_arguments(json_bytes.as_text(step["action"]))),
            text_of(step.get("observation")),
        )


def _model(fields: Mapping[str, Any]) -> str:
    """Newer trajectories carry the settings of their run, as an object or as JSON text."""
    config = fields.get("replay_config")
    if isinstance(config, str):
        config = json_bytes.lenient(config.encode())
    agent = json_bytes.as_object(json_bytes.as_object(config).get("agent"))
    return json_bytes.as_text(json_bytes.as_object(agent.get("model")).get("name"))


READER = TranscriptReader("SWE-agent trajectory", _claims, _sessions)


_ACTION = re.compile(
    (
        r"```(?:mswea_bash_command|bash)[ \t]*\n(.*?)\n"
        r"?```|<mswea_bash_command>(.*?)</mswea_bash_command>"
    ),
    re.DOTALL,
)
_MARK = "mswea_bash_command"


def _mini_claims(opening: Sequence[Any]) -> bool:
    first = opening[0]
    if json_bytes.as_text(json_bytes.as_object(first).get("trajectory_format")).startswith(
        "mini-swe-agent"
    ):
        return True
    messages = (
        json_bytes.as_object(each) for each in json_bytes.as_list(first)
    )  # the first versions wrote nothing but the messages
    return any(
        each.get("role") == "assistant" and _MARK in text_of(each.get("content"))
        for each in messages
    )


def _mini_sessions(opened: OpenTranscript) -> Iterator[RecordedSession]:
    for document in opened.documents:
        fields = json_bytes.as_object(document)
        messages = fields.get("messages") if fields else document
        config = json_bytes.as_object(json_bytes.as_object(fields.get("info")).get("config"))
        yield RecordedSession(
            id=json_bytes.as_text(fields.get("instance_id")) or opened.file.stem,
            set=opened.file.set,
            model=json_bytes.as_text(json_bytes.as_object(config.get("model")).get("model_name")),
            messages=_mini_talk(
                [each for each in json_bytes.as_list(messages) if isinstance(each, dict)]
            ).messages(),
        )


def _mini_talk(messages: Sequence[Mapping[str, Any]]) -> TalkBuilder:
    talk = TalkBuilder(marks_ends=True)
    pending: list[str] = []
    for message in messages:
        extra = json_bytes.as_object(message.get("extra"))
        time = parse_time(extra.get("timestamp"))
        if message.get("object") == "response" or "type" in message:
            _add_items(talk, message, time)
        elif message.get("role") == "user" and pending:
            talk.add_result(pending.pop(0), text_of(message.get("content")), time)
        elif message.get("role") == "assistant":
            pending = _add_mini_reply(talk, message, extra)
        else:
            add_chat_message(talk, message, time)
    return talk


def _add_items(talk: TalkBuilder, message: Mapping[str, Any], time: float | None) -> None:
    """Add a whole reply of the Responses API, or an item that answers it."""
    if message.get("object") != "response":
        add_responses_item(talk, message, time)
        return
    talk.end_reply()
    for item in json_bytes.as_list(message.get("output")):
        add_responses_item(talk, json_bytes.as_object(item), time)
    talk.set_usage(usage_of(message.get("usage")))


def _add_mini_reply(
    talk: TalkBuilder, message: Mapping[str, Any], extra: Mapping[str, Any]
) -> list[str]:
    """Add a reply. Returns the ids of the calls that the next messages answer: none if the API has
    calls of its own."""
    response = json_bytes.as_object(extra.get("response"))
    time = parse_time(extra.get("timestamp")) or parse_time(response.get("created"))
    text = text_of(message.get("content"))
    actions = [] if message.get("tool_calls") else _ACTION.findall(text)
    # An action counts only if it is the only one: otherwise the agent is asked to try again.
    inside = ["".join(actions[0]).strip()] if len(actions) == 1 else []
    for action in inside:
        text = text.replace(action, "", 1)
    add_chat_message(talk, {**message, "content": text}, time)
    ids = [talk.add_call("", SHELL, shell_arguments(action), time) for action in inside]
    talk.set_usage(usage_of(response.get("usage")))
    return ids


MINI_READER = TranscriptReader("mini-swe-agent trajectory", _mini_claims, _mini_sessions)
