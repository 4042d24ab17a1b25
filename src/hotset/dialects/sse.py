"""Server-sent events: read out of bytes that arrive cut anywhere, and relayed with the bytes they
came with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hotset.errors import Malformed

MAX_EVENT = 64 << 20
"""Bytes of one event. Generated images come whole in one; beyond this it is not an event stream."""

_BOM = b"\xef\xbb\xbf"
_STEP = 1 << 20


@dataclass(frozen=True, slots=True)
class SseEvent:
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

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that these bytes complete. Raises `Malformed` for one that is larger than the
        limit."""
        if not chunk:
            return []
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        events: list[SseEvent] = []
        for line in chunk.splitlines(keepends=True):
            self._size += len(line)
            if self._size > self._max:
                raise Malformed(
                    f"an event of more than {self._max} bytes; this is not an event stream"
                )
            self._line.append(line)
            if line.endswith((b"\n", b"\r")):
                events += self._end_line()
        return events

    def close(self) -> list[SseEvent]:
        """What the stream's end leaves over: servers forget the blank line after the last event."""
        events = self._end_line() if self._line else []
        return events + self._end_event()

    def _end_line(self) -> list[SseEvent]:
        line = b"".join(self._line).rstrip(b"\r\n")
        self._line.clear()
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._end_event()
        field, value = _field(line)
        if not field:
            self._size = sum(
                map(len, self._data)
            )  # comments keep a connection awake and may come for hours
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        return []

    def _end_event(self) -> list[SseEvent]:
        events = [SseEvent(self._name, b"\n".join(self._data), self._id)] if self._data else []
        self._name = ""
        self._data.clear()
        self._size = 0
        return events


def events(body: bytes) -> Iterator[SseEvent]:
    """Every event of a whole stream, up to the first that cannot be one."""
    splitter = Splitter()
    try:
        for start in range(0, len(body), _STEP):
            yield from splitter.feed(body[start : start + _STEP])
    except Malformed:
        return
    yield from splitter.close()


_BLANK = re.compile(rb"(?>\r\n|\n|\r){2}")
"""The end of a line and a line with nothing on it. A CR LF that is cut in the middle counts as
whole: its LF comes with what follows, and says nothing there."""

_LONGEST_BLANK = 4  # bytes


@dataclass(frozen=True, slots=True)
class SseFrame:
    """One event, or what a server says between events to stay connected."""

    raw: bytes
    name: str
    """Empty where the stream named none."""
    data: bytes
    """The data lines, joined by line feeds; empty where there are none."""

    def saying(self, data: bytes) -> bytes:
        """The same event with other data."""
        if data == self.data:
            return self.raw
        lines: list[bytes] = []
        is_said = False
        for line in self.raw.splitlines(keepends=True):
            if _field(line.removeprefix(_BOM).rstrip(b"\r\n"))[0] != b"data":
                lines.append(line)
            elif not is_said:
                is_said = True
                end = line[len(line.rstrip(b"\r\n")) :]
                lines += [b"data: " + each + end for each in data.split(b"\n")]
        return b"".join(lines)


class Frames:
    """Feed it bytes as they come; the frames' bytes, one after the other, are the bytes that
    came."""

    def __init__(self, max_event: int = MAX_EVENT) -> None:
        self._max = max_event
        self._buffer = bytearray()
        self._searched = 0

    def feed(self, chunk: bytes) -> Iterator[SseFrame]:
        """The frames that these bytes complete."""
        self._buffer += chunk
        while (end := self._end()) is not None:
            yield self._cut(end)
        if len(self._buffer) > self._max:
            yield self._cut(len(self._buffer))  # not an event stream: nothing is held back for it

    @property
    def has_half(self) -> bool:
        """The bytes so far end in the middle of an event."""
        return bool(self._buffer)

    def rest(self) -> SseFrame | None:
        """What the stream's end leaves over: half an event, or one whose blank line was
        forgotten."""
        return self._cut(len(self._buffer)) if self._buffer else None

    def _end(self) -> int | None:
        found = _BLANK.search(self._buffer, self._searched)
        if found is not None:
            return found.end()
        self._searched = max(0, len(self._buffer) - _LONGEST_BLANK)
        return None

    def _cut(self, end: int) -> SseFrame:
        raw = bytes(self._buffer[:end])
        del self._buffer[:end]
        self._searched = 0
        return _frame(raw)


def event(data: bytes, name: str = "") -> bytes:
    """An event of our own."""
    return (b"event: %s\n" % name.encode() if name else b"") + b"data: %s\n\n" % data


def _frame(raw: bytes) -> SseFrame:
    name, data = "", list[bytes]()
    for line in raw.splitlines():
        field, value = _field(line.removeprefix(_BOM))
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    return SseFrame(raw, name, b"\n".join(data))


def _field(line: bytes) -> tuple[bytes, bytes]:
    field, _, value = line.partition(b":")
    return field, value.removeprefix(b" ")
