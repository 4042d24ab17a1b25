"""Server-sent events, parsed from bytes that arrive cut anywhere and relayed byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hotset.errors import Malformed

MAX_EVENT = 64 << 20
"""Bytes of one event. Generated images arrive whole in one; anything larger is not an event
stream."""

_BOM = b"\xef\xbb\xbf"
_STEP = 1 << 20


@dataclass(frozen=True, slots=True)
class SseEvent:
    name: str
    """Empty if the stream gave none."""
    data: bytes
    """The data lines, joined by line feeds. Unchanged: not necessarily valid UTF-8."""
    id: str = ""


class Splitter:
    """Incremental parser: any cut of a stream yields the same events."""

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
        """The events that these bytes complete. Raises `Malformed` for one over the limit."""
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
        """The last event, if the stream ended without its blank line: servers forget it."""
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
            # Comments keep a connection awake and may arrive for hours.
            self._size = sum(map(len, self._data))
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
    """Every event of a whole stream, up to the first invalid one."""
    splitter = Splitter()
    try:
        for start in range(0, len(body), _STEP):
            yield from splitter.feed(body[start : start + _STEP])
    except Malformed:
        return
    yield from splitter.close()


_BLANK = re.compile(rb"(?>\r\n|\n|\r){2}")
"""A line end followed by an empty line. A CR LF cut in the middle counts as whole: its LF arrives
with the next bytes, where it means nothing."""

_LONGEST_BLANK = 4  # bytes


@dataclass(frozen=True, slots=True)
class SseFrame:
    """One event, or a comment that a server sends between events to stay connected."""

    raw: bytes
    name: str
    """Empty if the stream gave none."""
    data: bytes
    """The data lines, joined by line feeds; empty if there are none."""

    def with_data(self, data: bytes) -> bytes:
        """The same event with other data."""
        if data == self.data:
            return self.raw
        lines: list[bytes] = []
        is_written = False
        for line in self.raw.splitlines(keepends=True):
            if _field(line.removeprefix(_BOM).rstrip(b"\r\n"))[0] != b"data":
                lines.append(line)
            elif not is_written:
                is_written = True
                end = line[len(line.rstrip(b"\r\n")) :]
                lines += [b"data: " + each + end for each in data.split(b"\n")]
        return b"".join(lines)


class Frames:
    """Incremental splitter; the frames' bytes together are the input's bytes."""

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
            yield self._cut(len(self._buffer))  # not an event stream: pass it on

    @property
    def has_half(self) -> bool:
        """True if the bytes so far end in the middle of an event."""
        return bool(self._buffer)

    def rest(self) -> SseFrame | None:
        """What is left at the stream's end: half an event, or one without its blank line."""
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
        return frame_of(raw)


def event(data: bytes, name: str = "") -> bytes:
    """Encode an event of our own."""
    return (b"event: %s\n" % name.encode() if name else b"") + b"data: %s\n\n" % data


def frame_of(raw: bytes) -> SseFrame:
    """The frame of one event's bytes."""
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
