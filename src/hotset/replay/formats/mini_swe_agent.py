"""mini-swe-agent trajectories: an API's messages, with what was run and when beside each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hotset.dialects import wire
from hotset.replay.formats import openai_chat, openai_responses
from hotset.replay.formats.fields import text_of, usage_of, when
from hotset.replay.formats.source import Opened
from hotset.replay.formats.swe_agent import SHELL, command
from hotset.replay.formats.talk import TranscriptTalk
from hotset.replay.recorded import Recorded

_ACTION = re.compile(
    (
        r"```(?:mswea_bash_command|bash)[ \t]*\n(.*?)\n"
        r"?```|<mswea_bash_command>(.*?)</mswea_bash_command>"
    ),
    re.DOTALL,
)
_MARK = "mswea_bash_command"


def claims(opening: Sequence[Any]) -> bool:
    first = opening[0]
    if wire.as_text(wire.as_object(first).get("trajectory_format")).startswith("mini-swe-agent"):
        return True
    said = (
        wire.as_object(each) for each in wire.as_list(first)
    )  # the first versions wrote nothing but the messages
    return any(
        each.get("role") == "assistant" and _MARK in text_of(each.get("content")) for each in said
    )


def sessions(opened: Opened) -> Iterator[Recorded]:
    for document in opened.documents:
        fields = wire.as_object(document)
        said = fields.get("messages") if fields else document
        config = wire.as_object(wire.as_object(fields.get("info")).get("config"))
        yield Recorded(
            id=wire.as_text(fields.get("instance_id")) or opened.source.stem,
            set=opened.source.set,
            model=wire.as_text(wire.as_object(config.get("model")).get("model_name")),
            messages=_told(
                [each for each in wire.as_list(said) if isinstance(each, dict)]
            ).messages(),
        )


def _told(said: Sequence[Mapping[str, Any]]) -> TranscriptTalk:
    talk = TranscriptTalk(told=True)
    pending: list[str] = []
    for message in said:
        extra = wire.as_object(message.get("extra"))
        time = when(extra.get("timestamp"))
        if message.get("object") == "response" or "type" in message:
            _tell_items(talk, message, time)
        elif message.get("role") == "user" and pending:
            talk.answer(pending.pop(0), text_of(message.get("content")), time)
        elif message.get("role") == "assistant":
            pending = _reply(talk, message, extra)
        else:
            openai_chat.tell(talk, message, time)
    return talk


def _tell_items(talk: TranscriptTalk, message: Mapping[str, Any], time: float | None) -> None:
    """A reply of the Responses API whole, or an item that answers it."""
    if message.get("object") != "response":
        openai_responses.tell(talk, message, time)
        return
    talk.end()
    for item in wire.as_list(message.get("output")):
        openai_responses.tell(talk, wire.as_object(item), time)
    talk.bill(usage_of(message.get("usage")))


def _reply(talk: TranscriptTalk, message: Mapping[str, Any], extra: Mapping[str, Any]) -> list[str]:
    """The ids of the calls that the coming messages answer: none where the API has calls of its
    own."""
    response = wire.as_object(extra.get("response"))
    time = when(extra.get("timestamp")) or when(response.get("created"))
    text = text_of(message.get("content"))
    actions = [] if message.get("tool_calls") else _ACTION.findall(text)
    # An action counts where it is the only one: the agent was told to try again otherwise.
    inside = ["".join(actions[0]).strip()] if len(actions) == 1 else []
    for action in inside:
        text = text.replace(action, "", 1)
    openai_chat.tell(talk, {**message, "content": text}, time)
    ids = [talk.call("", SHELL, command(action), time) for action in inside]
    talk.bill(usage_of(response.get("usage")))
    return ids
