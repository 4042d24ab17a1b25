"""Trajectories of SWE-agent (the history as the model saw it, and the steps that made it) and of
mini-swe-agent (an API's messages, with what was run and when beside each)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from hotset.dialects import json_bytes
from hotset.replay.conversation import RecordedSession
from hotset.replay.formats.api_messages import tell_chat, tell_responses
from hotset.replay.formats.transcript import (
    OpenTranscript,
    TalkBuilder,
    TranscriptReader,
    as_json,
    text_of,
    usage_of,
    when,
)

SHELL = "bash"
"""The one tool of agents that write commands into their text."""


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
            not steps or any(_acts(each) or each.get("tool_calls") for each in history)
        ):
            _tell_history(talk, history)
        else:
            # A history that does not say what was done: results would pass for words of the user's.
            for each in takewhile(lambda each: each["role"] != "assistant", history):
                tell_chat(talk, each)
            _tell_steps(talk, steps)
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


def _tell_history(talk: TalkBuilder, history: Sequence[Mapping[str, Any]]) -> None:
    pending = ""
    for each in history:
        role = each["role"]
        if role == "tool":
            ids = json_bytes.as_list(each.get("tool_call_ids")) or [each.get("tool_call_id")]
            for id in ids:
                talk.answer(json_bytes.as_text(id), text_of(each.get("content")))
        elif role == "user" and pending:
            talk.answer(pending, text_of(each.get("content")))
            pending = ""
        else:
            tell_chat(talk, {**each, "content": _spoken(each)})
            pending = _act(talk, each)


def _spoken(message: Mapping[str, Any]) -> str:
    """The text without the action in it, where the action is told as a call."""
    text = text_of(message.get("content"))
    action = json_bytes.as_text(message.get("action"))
    return text.replace(action, "", 1) if _acts(message) and action.strip() else text


def _acts(message: Mapping[str, Any]) -> bool:
    return (
        message["role"] == "assistant"
        and not message.get("tool_calls")
        and bool(json_bytes.as_text(message.get("action")).strip())
    )


def _act(talk: TalkBuilder, message: Mapping[str, Any]) -> str:
    """The id of the call that an action in the text is told as; empty where there is none."""
    return (
        talk.call("", SHELL, shell_arguments(json_bytes.as_text(message["action"]).strip()))
        if _acts(message)
        else ""
    )


def _tell_steps(talk: TalkBuilder, steps: Sequence[Mapping[str, Any]]) -> None:
    for step in steps:
        talk.end()
        talk.speak(json_bytes.as_text(step.get("thought")))
        talk.answer(
            talk.call("", SHELL, shell_arguments(json_bytes.as_text(step["action"]))),
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
    said = (
        json_bytes.as_object(each) for each in json_bytes.as_list(first)
    )  # the first versions wrote nothing but the messages
    return any(
        each.get("role") == "assistant" and _MARK in text_of(each.get("content")) for each in said
    )


def _mini_sessions(opened: OpenTranscript) -> Iterator[RecordedSession]:
    for document in opened.documents:
        fields = json_bytes.as_object(document)
        said = fields.get("messages") if fields else document
        config = json_bytes.as_object(json_bytes.as_object(fields.get("info")).get("config"))
        yield RecordedSession(
            id=json_bytes.as_text(fields.get("instance_id")) or opened.file.stem,
            set=opened.file.set,
            model=json_bytes.as_text(json_bytes.as_object(config.get("model")).get("model_name")),
            messages=_mini_talk(
                [each for each in json_bytes.as_list(said) if isinstance(each, dict)]
            ).messages(),
        )


def _mini_talk(said: Sequence[Mapping[str, Any]]) -> TalkBuilder:
    talk = TalkBuilder(marks_ends=True)
    pending: list[str] = []
    for message in said:
        extra = json_bytes.as_object(message.get("extra"))
        time = when(extra.get("timestamp"))
        if message.get("object") == "response" or "type" in message:
            _tell_items(talk, message, time)
        elif message.get("role") == "user" and pending:
            talk.answer(pending.pop(0), text_of(message.get("content")), time)
        elif message.get("role") == "assistant":
            pending = _tell_mini_reply(talk, message, extra)
        else:
            tell_chat(talk, message, time)
    return talk


def _tell_items(talk: TalkBuilder, message: Mapping[str, Any], time: float | None) -> None:
    """A reply of the Responses API whole, or an item that answers it."""
    if message.get("object") != "response":
        tell_responses(talk, message, time)
        return
    talk.end()
    for item in json_bytes.as_list(message.get("output")):
        tell_responses(talk, json_bytes.as_object(item), time)
    talk.bill(usage_of(message.get("usage")))


def _tell_mini_reply(
    talk: TalkBuilder, message: Mapping[str, Any], extra: Mapping[str, Any]
) -> list[str]:
    """The ids of the calls that the coming messages answer: none where the API has calls of its
    own."""
    response = json_bytes.as_object(extra.get("response"))
    time = when(extra.get("timestamp")) or when(response.get("created"))
    text = text_of(message.get("content"))
    actions = [] if message.get("tool_calls") else _ACTION.findall(text)
    # An action counts where it is the only one: the agent was told to try again otherwise.
    inside = ["".join(actions[0]).strip()] if len(actions) == 1 else []
    for action in inside:
        text = text.replace(action, "", 1)
    tell_chat(talk, {**message, "content": text}, time)
    ids = [talk.call("", SHELL, shell_arguments(action), time) for action in inside]
    talk.bill(usage_of(response.get("usage")))
    return ids


MINI_READER = TranscriptReader("mini-swe-agent trajectory", _mini_claims, _mini_sessions)
