"""Server-sent events out of bytes that arrive cut anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hotset.errors import Malformed

MAX_EVENT = 64 << 20
"""Bytes of one event. Generated images come whole in one; beyond this it is not an event stream."""

_BOM = b"\xef\xbb\xbf"
_STEP = 1 << 20


@dataclass(frozen=True, slots=True)
class Event:
    name: str
    """Empty where the stream named none."""
    data: bytes
    """The data lines, joined by line feeds. As they came: not necessarily valid UTF-8."""
    id: str = ""


class Splitter:
    """Feed it bytes as they come; any cut of a stream yields the same events."""

    def __init__(self, max_event: int = MAX_EVENT) -> None:
        self._max = max_event
        self._line: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._first = True
        self._name = ""
        self._id = ""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that these bytes complete. Raises `Malformed` for one that is larger than the limit."""
        if not chunk:
            return []
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        events: list[Event] = []
        for line in chunk.splitlines(keepends=True):
            self._size += len(line)
            if self._size > self._max:
                raise Malformed(f"an event of more than {self._max} bytes; this is not an event stream")
            self._line.append(line)
            if line.endswith((b"\n", b"\r")):
                events += self._end_line()
        return events

    def close(self) -> list[Event]:
        """What the stream's end leaves over: servers forget the blank line after the last event."""
        events = self._end_line() if self._line else []
        return events + self._end_event()

    def _end_line(self) -> list[Event]:
        line = b"".join(self._line).rstrip(b"\r\n")
        self._line.clear()
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._end_event()
        field, _, value = line.partition(b":")
        if not field:
            self._size = sum(map(len, self._data))  # comments keep a connection awake and may come for hours
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        return []

    def _end_event(self) -> list[Event]:
        events = [Event(self._name, b"\n".join(self._data), self._id)] if self._data else []
        self._name = ""
        self._data.clear()
        self._size = 0
        return events


def events(body: bytes) -> Iterator[Event]:
    """Every event of a whole stream, up to the first that cannot be one."""
    splitter = Splitter()
    try:
        for start in range(0, len(body), _STEP):
            yield from splitter.feed(body[start : start + _STEP])
    except Malformed:
        return
    yield from splitter.close()
