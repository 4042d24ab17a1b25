"""Calls that reach the client under its own tool's name: the model asks for a tool of the client's
through one of ours, and the client sees a call of its own tool.

The reply is rewritten as it comes, before anything else reads it. Only the events of such a call
wait, until its arguments are whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from hotset.dialects import json_bytes
from hotset.dialects.sse import SseFrame


@dataclass(frozen=True, slots=True)
class HandOver:
    """Which calls are the client's."""

    tool: str
    """Our tool, through which the model calls them."""
    resolve: Callable[[bytes], tuple[str, bytes] | None]
    """The client's tool and its arguments, as JSON, from those of a call; None if it is ours."""


class CallRenamer(Protocol):
    """Renames such calls in one dialect's replies."""

    def pass_on(self, frame: SseFrame) -> Iterable[SseFrame]:
        """The events that can go on now."""

    def rest(self) -> Iterable[SseFrame]:
        """The events that still wait: the reply broke off."""

    def document(self, body: bytes) -> bytes:
        """A whole reply."""


def edited(frame: SseFrame, data: bytes) -> SseFrame:
    return SseFrame(frame.with_data(data), frame.name, data)


def with_members(raw: bytes, values: Mapping[str, Any]) -> bytes:
    """A JSON object with other values; the rest keeps its bytes' meaning."""
    return json_bytes.encode({**json_bytes.lenient_object(raw), **values})
