"""The part of a text that is content: without the frame that a client puts around it and the
numbers it puts before lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

LONGEST_READ = 2000  # characters of one line that are looked at


@dataclass(frozen=True, slots=True)
class Body:
    """Lines of content, at their place in the text."""

    first: int
    """Where in the text the first line stands, from 0."""
    lines: Sequence[str]
    """Without the numbers that a reader put before them and the colours of a terminal."""

    @property
    def end(self) -> int:
        return self.first + len(self.lines)

    def part(self, first: int, end: int) -> Body:
        """Some of the lines, none of them longer than anyone reads."""
        return Body(self.first + first, [line[:LONGEST_READ] for line in self.lines[first:end]])


_FRAME_LINES = 12  # no client's frame is longer, at either end
_HEADER = re.compile(
    r"</?(?:returncode|output|output_head|stdout|file|path|type|content|result|tool_result|"
    r"exit_code|warning)\b[^>]{0,200}>"
    r".{0,200}"
    r"|(?:Chunk ID|Wall time|Process exited|Process running|Original token count|Total output "
    r"lines|Exit code|Output|Stdout)\b"
    r"[^\n]{0,120}"
    r"|Warning: truncated output[^\n]{0,120}"
)
_FOOTER = re.compile(
    r"</[\w-]{1,40}>"
    r"|\[\d+ more lines[^\n]{0,120}"
    r"|\[Showing lines [^\n]{0,120}"
    r"|\(?(?:End of file|File has more lines|Results are truncated)[^\n]{0,160}"
    r"|(?:Command exited|Process exited|Exit code)[^\n]{0,120}"
)
_REMINDER = re.compile(r"<system-reminder>")
_NUMBER = re.compile(r" {0,8}(\d{1,7})(?:→|\t|\| ?|: |:(?=\s))")
_ESCAPE = "\x1b"
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
_SAMPLE = 40


def body(lines: Sequence[str]) -> Body:
    """What stands inside the frame."""
    first = _frame_end(lines)
    end = _footer_start(lines, first)
    inner = _plain(lines[first:end])
    return Body(first, _unnumbered(inner) if _is_numbered(inner) else inner)


def _plain(lines: Sequence[str]) -> Sequence[str]:
    """Without the colours of a terminal."""
    return [_COLOUR.sub("", line) if _ESCAPE in line else line for line in lines]


def number(line: str) -> int | None:
    """The number that a reader put before a line."""
    found = _NUMBER.match(line)
    return int(found[1]) if found else None


def _frame_end(lines: Sequence[str]) -> int:
    end = 0
    for index, line in enumerate(lines[:_FRAME_LINES]):
        if len(line) < 400 and _HEADER.fullmatch(line):
            end = index + 1
        elif line.strip():
            break
    return end


def _footer_start(lines: Sequence[str], first: int) -> int:
    start = len(lines)
    low = max(first, len(lines) - _FRAME_LINES)
    for index in range(len(lines) - 1, low - 1, -1):
        line = lines[index]
        if len(line) < 400 and (_FOOTER.fullmatch(line) or _REMINDER.match(line)):
            start = index
        elif line.strip() and not _inside_reminder(lines, low, index):
            break
    return start


def _inside_reminder(lines: Sequence[str], low: int, index: int) -> bool:
    return any(_REMINDER.match(line) for line in lines[low:index])


def _is_numbered(lines: Sequence[str]) -> bool:
    """Whether the lines carry numbers that count up."""
    sample = [*lines[:_SAMPLE], *lines[-_SAMPLE:]] if len(lines) > 2 * _SAMPLE else lines
    numbers = [found for found in map(number, sample) if found is not None]
    filled = sum(1 for line in sample if line.strip())
    rising = sum(1 for a, b in pairwise(numbers) if b > a)
    return len(numbers) >= 3 and len(numbers) >= 0.7 * filled and rising >= 0.8 * (len(numbers) - 1)


def _unnumbered(lines: Sequence[str]) -> list[str]:
    return [line[found.end() :] if (found := _NUMBER.match(line)) else line for line in lines]
