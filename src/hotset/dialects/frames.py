"""Server-sent events with their bytes: what is relayed must be able to stay as it came."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hotset.dialects.sse import MAX_EVENT

_BOM = b"\xef\xbb\xbf"
_BLANK = re.compile(rb"(?>\r\n|\n|\r){2}")
"""The end of a line and a line with nothing on it. A CR LF that is cut in the middle counts as whole: its LF comes with what
follows, and says nothing there."""

_LONGEST_BLANK = 4  # bytes


@dataclass(frozen=True, slots=True)
class Frame:
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
            if _field(line)[0] != b"data":
                lines.append(line)
            elif not is_said:
                is_said = True
                end = line[len(line.rstrip(b"\r\n")) :]
                lines += [b"data: " + each + end for each in data.split(b"\n")]
        return b"".join(lines)


class Frames:
    """Feed it bytes as they come; the frames' bytes, one after the other, are the bytes that came."""

    def __init__(self, max_event: int = MAX_EVENT) -> None:
        self._max = max_event
        self._buffer = bytearray()
        self._searched = 0

    def feed(self, chunk: bytes) -> Iterator[Frame]:
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

    def rest(self) -> Frame | None:
        """What the stream's end leaves over: half an event, or one whose blank line was forgotten."""
        return self._cut(len(self._buffer)) if self._buffer else None

    def _end(self) -> int | None:
        found = _BLANK.search(self._buffer, self._searched)
        if found is not None:
            return found.end()
        self._searched = max(0, len(self._buffer) - _LONGEST_BLANK)
        return None

    def _cut(self, end: int) -> Frame:
        raw = bytes(self._buffer[:end])
        del self._buffer[:end]
        self._searched = 0
        return _frame(raw)


def event(data: bytes, name: str = "") -> bytes:
    """An event of our own."""
    return (b"event: %s\n" % name.encode() if name else b"") + b"data: %s\n\n" % data


def _frame(raw: bytes) -> Frame:
    name, data = "", list[bytes]()
    for line in raw.splitlines():
        field, value = _field(line)
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    return Frame(raw, name, b"\n".join(data))


def _field(line: bytes) -> tuple[bytes, bytes]:
    field, _, value = line.removeprefix(_BOM).rstrip(b"\r\n").partition(b":")
    return field, value.removeprefix(b" ")
