"""SWE-agent trajectories: the history as the model saw it, and the steps that made it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from hotset.dialects import wire
from hotset.replay.formats import openai_chat
from hotset.replay.formats.fields import as_json, text_of
from hotset.replay.formats.source import Opened
from hotset.replay.formats.talk import TranscriptTalk
from hotset.replay.recorded import Recorded

SHELL = "bash"
"""The one tool of agents that write commands into their text."""


def claims(opening: Sequence[Any]) -> bool:
    first = wire.as_object(opening[0])
    return _steps(first) != [] or any(
        "message_type" in each or "action" in each for each in _history(first)
    )


def sessions(opened: Opened) -> Iterator[Recorded]:
    for document in opened.documents:
        fields = wire.as_object(document)
        talk = TranscriptTalk(told=True)
        history, steps = _history(fields), _steps(fields)
        if history and (
            not steps or any(_acts(each) or each.get("tool_calls") for each in history)
        ):
            _tell_history(talk, history)
        else:
            # A history that does not say what was done: results would pass for words of the user's.
            for each in takewhile(lambda each: each["role"] != "assistant", history):
                openai_chat.tell(talk, each)
            _tell_steps(talk, steps)
        yield Recorded(opened.source.stem, opened.source.set, _model(fields), talk.messages())


def command(text: str) -> str:
    """A shell command as a tool call's arguments."""
    return as_json({"command": text})


def _history(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        each
        for each in wire.as_list(fields.get("history"))
        if isinstance(each, dict) and "role" in each
    ]


def _steps(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        each
        for each in wire.as_list(fields.get("trajectory"))
        if isinstance(each, dict) and "action" in each
    ]


def _tell_history(talk: TranscriptTalk, history: Sequence[Mapping[str, Any]]) -> None:
    pending = ""
    for each in history:
        role = each["role"]
        if role == "tool":
            ids = wire.as_list(each.get("tool_call_ids")) or [each.get("tool_call_id")]
            for id in ids:
                talk.answer(wire.as_text(id), text_of(each.get("content")))
        elif role == "user" and pending:
            talk.answer(pending, text_of(each.get("content")))
            pending = ""
        else:
            openai_chat.tell(talk, {**each, "content": _spoken(each)})
            pending = _act(talk, each)


def _spoken(message: Mapping[str, Any]) -> str:
    """The text without the action in it, where the action is told as a call."""
    text = text_of(message.get("content"))
    action = wire.as_text(message.get("action"))
    return text.replace(action, "", 1) if _acts(message) and action.strip() else text


def _acts(message: Mapping[str, Any]) -> bool:
    return (
        message["role"] == "assistant"
        and not message.get("tool_calls")
        and bool(wire.as_text(message.get("action")).strip())
    )


def _act(talk: TranscriptTalk, message: Mapping[str, Any]) -> str:
    """The id of the call that an action in the text is told as; empty where there is none."""
    return (
        talk.call("", SHELL, command(wire.as_text(message["action"]).strip()))
        if _acts(message)
        else ""
    )


def _tell_steps(talk: TranscriptTalk, steps: Sequence[Mapping[str, Any]]) -> None:
    for step in steps:
        talk.end()
        talk.speak(wire.as_text(step.get("thought")))
        talk.answer(
            talk.call("", SHELL, command(wire.as_text(step["action"]))),
            text_of(step.get("observation")),
        )


def _model(fields: Mapping[str, Any]) -> str:
    """Newer trajectories carry the settings of their run, as an object or as JSON text."""
    config = fields.get("replay_config")
    if isinstance(config, str):
        config = wire.lenient(config.encode())
    agent = wire.as_object(wire.as_object(config).get("agent"))
    return wire.as_text(wire.as_object(agent.get("model")).get("name"))
