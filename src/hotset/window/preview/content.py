"""Inputs of a preview: the content of a text without its frame, its type, its origin, and what the
call asked for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import log
from typing import Any, NamedTuple

import msgspec

from hotset.nouns.page import Kind
from hotset.text.call_shape import path_of
from hotset.text.stops import CALL
from hotset.text.words import humps
from hotset.window.line_numbers import own_numbers
from hotset.window.preview.excerpt import LineSpan


class ContentType(StrEnum):
    """The type of a text, detected from its shape and its call."""

    JSON = "json"
    JSON_LINES = "json_lines"
    CODE = "code"
    SEARCH = "search"
    CHECKS = "checks"
    """Test runs, builds, linters: what passed and what did not."""
    LOG = "log"
    DIFF = "diff"
    TABLE = "table"
    LISTING = "listing"
    """Paths: ls, find, tree, glob."""
    HTML = "html"
    PROSE = "prose"
    OPAQUE = "opaque"
    """Unreadable bytes: binary, base64."""
    OUTPUT = "output"
    """Shell output of no type or of several."""


class TaskText(NamedTuple):
    """What the work is about when a call is made."""

    said: str = ""
    """The model's last words."""
    asked: str = ""
    """The latest prompt."""
    before: str = ""
    """Words and calls of the model since then."""


NO_TASK = TaskText()


@dataclass(frozen=True, slots=True)
class ContentOrigin:
    """The call that a text comes from."""

    kind: Kind = Kind.TOOL_RESULT
    tool: str = ""
    arguments: bytes = b""
    """The call's arguments: JSON, or plain shell text."""
    sought: frozenset[str] = frozenset()
    """Identifiers, paths and words of the latest prompt and of the text before the call."""
    pointed: tuple[int, ...] = ()
    """Lines of the text that a prompt or the call pointed to, from 0."""
    shift: int = 0
    """What is added to a line's place, from 1, to get its number in the file, if its numbers were
    removed."""
    task: TaskText = NO_TASK
    weights: tuple[tuple[str, float], ...] = ()
    """Weights of the signs of lines that differ from the usual ones."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The preview of a text."""

    type: ContentType
    text: str
    """Without the closing line."""
    left_out: str
    """In words: "412 of 530 lines (18,204 of 21,000 characters)"."""
    slice: str
    """A ready-made argument for the call that brings back a part: lines="120-180",
    path="$.items[3]"; empty if there is none."""


_LONGEST_ARGUMENTS = 16 * 1024
_TASK = 8000  # characters of a prompt or a reply: pasted ones are longer
_LONGEST_COMMAND = 4 * 1024  # the beginning of a script is enough
_COMMAND_KEYS = ("command", "cmd", "script", "input", "code")
_PATH = re.compile(r"[\w./~@+-]{0,200}\.[A-Za-z][A-Za-z0-9]{0,9}\b")
_PROGRAM = re.compile(
    r"(?:^|[;&|\n(]|\bxargs\b|\bthen\b|\bdo\b)[ \t]*"
    r"(?:\w+=\S*\s+|sudo\s+|time\s+|timeout\s+\S+\s+|npx\s+|rtk\s+|bundle\s+exec\s+|python3?\s+-m\s+)*"
    r"([\w./-]{1,80})(?:[ \t]+([\w./:-]{1,80}))?"
)
_WORD = re.compile(r"[A-Za-z_$][\w$]{2,79}")
_SECTION = 64  # characters: a longer word is no name
_STEM = 0.4  # weight of a part of a name, relative to the whole name
_DIGITS = 4  # of a score: machines may differ in the last ones, previews must not


@dataclass(frozen=True, slots=True)
class ToolQuery:
    """What a call was looking for."""

    command: str = ""
    """The shell command, if there is one."""
    paths: tuple[str, ...] = ()
    """Files that the call names."""
    words: frozenset[str] = frozenset()
    """Names as written."""
    stems: frozenset[str] = frozenset()
    """The parts of names, in lower case: they match a name written another way."""
    room: int = 0
    """How many characters may be shown."""
    pointed: tuple[int, ...] = ()
    """Lines of the text that a prompt pointed to, from 0."""
    task: tuple[frozenset[str], ...] = ()
    """Words of the call, of the model's last reply, of the latest prompt, and of the calls before;
    words that are in every text left out."""
    reads_file: bool = False
    """True for a file read by a tool for files, mostly to be edited."""
    weights: tuple[tuple[str, float], ...] = ()
    """Weights of the signs of lines that differ from the usual ones."""

    def programs(self) -> list[tuple[str, str]]:
        """What the command runs: programs with their first argument, in order."""
        return [
            (name.rsplit("/", 1)[-1], argument or "")
            for name, argument in _PROGRAM.findall(self.command[:_LONGEST_COMMAND])
        ]


def tool_query(origin: ContentOrigin, room: int = 0) -> ToolQuery:
    """The query in a call's arguments and the words before it."""
    text = origin.arguments[:_LONGEST_ARGUMENTS].decode("utf-8", "replace")
    values = _arguments(text)
    command = next(
        (value for key in _COMMAND_KEYS if (value := values.get(key))), "" if values else text
    )
    path = path_of(origin.arguments)
    paths = (
        *((path,) if path else ()),
        *(path for path in _PATH.findall(command[:_LONGEST_COMMAND]) if not path.startswith("-")),
    )
    spoken = [
        word
        for value in (*values.values(), "" if values else text)
        for word in _WORD.findall(value)
    ]
    found = [word for piece in origin.sought for word in _WORD.findall(piece)]
    words = _telling((*spoken, *found))
    task = (_telling(spoken), *(_telling(_WORD.findall(each[:_TASK])) for each in origin.task))
    return ToolQuery(
        command,
        paths,
        words,
        frozenset(_stems(words)),
        room,
        origin.pointed,
        task,
        origin.kind is Kind.FILE,
        origin.weights,
    )


def _telling(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word for word in words if word.lower() not in CALL)


def closeness(parts: Sequence[str], query: ToolQuery) -> list[float]:
    """How near each part of a text is to the query, from 0 to 1: by the rarity and frequency of
    shared words."""
    matches = _query_matches(parts, query)
    shared = [Counter([word for word in _WORD.findall(part) if word in matches]) for part in parts]
    counts = Counter(
        key for found in shared for key in {key for word in found for key in matches[word]}
    )
    rarity = {key: log((len(parts) + 1) / count) for key, count in counts.items()}
    scores = [_score(found, matches, rarity, query) if found else 0.0 for found in shared]
    best = max(scores, default=0.0)
    return [round(score / best, _DIGITS) for score in scores] if best > 0 else scores


def _query_matches(parts: Sequence[str], query: ToolQuery) -> dict[str, tuple[str, ...]]:
    """The words of a text that match the query, each with the matched words or stems."""
    matches: dict[str, tuple[str, ...]] = {}
    for word in {word for part in parts for word in _WORD.findall(part)}:
        if word in query.words:
            matches[word] = (word,)
        elif keys := tuple(dict.fromkeys(stem for stem in _stems((word,)) if stem in query.stems)):
            matches[word] = keys
    return matches


def _score(
    found: Counter[str],
    matches: dict[str, tuple[str, ...]],
    rarity: dict[str, float],
    query: ToolQuery,
) -> float:
    whole = sum(
        (1 + log(count)) * rarity[word] for word, count in found.items() if word in query.words
    )
    stems = {key for word in found for key in matches[word] if word not in query.words}
    return whole + _STEM * sum(sorted(rarity[stem] for stem in stems))


def _arguments(text: str) -> dict[str, str]:
    """Text arguments by name; empty if they are no JSON object."""
    try:
        decoded: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    if not isinstance(decoded, dict):
        return {}
    return {
        key: " ".join(map(str, value)) if isinstance(value, list) else value
        for key, value in decoded.items()
        if isinstance(value, str | list)
    }


def _stems(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        for hump in humps(name[:_SECTION]):
            stem = hump.lower()
            if len(stem) > 3 and stem not in CALL:
                yield stem


LONGEST_READ = 2000  # characters read of one line


@dataclass(frozen=True, slots=True)
class Body:
    """Lines of content, with their place in the text."""

    first: int
    """Index of the first line in the text."""
    lines: Sequence[str]
    """Without line numbers of a reader and terminal colours."""
    shift: int = 0
    """What is added to a line's place in the text, from 1, to get its number in its file."""

    @property
    def end(self) -> int:
        return self.first + len(self.lines)

    def span(self, first: int, end: int, worth: float, least: int = 0) -> LineSpan:
        """Some of the lines, counted from the first of the body."""
        return LineSpan(self.first + first, self.first + end, worth, least)

    def part(self, first: int, end: int) -> Body:
        """Some of the lines, very long ones cut."""
        lines = [line[:LONGEST_READ] for line in self.lines[first:end]]
        return Body(self.first + first, lines, self.shift)


_FRAME_LINES = 12  # no client's frame is longer, at either end
_HEADER = re.compile(
    r"</?(?:returncode|output|output_head|stdout|file|path|type|content|result|tool_result|"
    r"exit_code|warning)\b[^>]{0,200}>"
    r".{0,200}"
    r"|(?:Chunk ID|Wall time|Process exited|Process running|Original token count|Total output "
    r"lines|Exit code|Output|Stdout)\b"
    r"[^\n]{0,120}"
    r"|Warning: truncated output[^\n]{0,120}"
    r"|\[File: [^\n]{1,300}\]|\(\d+ more lines? above\)"
)
_FOOTER = re.compile(
    r"</[\w-]{1,40}>"
    r"|\[\d+ more lines[^\n]{0,120}"
    r"|\[Showing lines [^\n]{0,120}"
    r"|\(?(?:End of file|File has more lines|Results are truncated)[^\n]{0,160}"
    r"|(?:Command exited|Process exited|Exit code)[^\n]{0,120}"
    r"|\(\d+ more lines? below\)|\((?:Open file|Current directory): [^\n]{0,300}\)|bash-\$"
    r"|File updated\. [^\n]{0,200}"
)
_REMINDER = re.compile(r"<system-reminder>")
_NUMBER = re.compile(r" {0,8}(\d{1,7})(?:→|\t|\| ?|: |:(?=\s))")
_ESCAPE = "\x1b"
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
_SAMPLE = 40


def find_body(lines: Sequence[str], shift: int = 0) -> Body:
    """The content inside the frame. `shift` is known if its line numbers were removed."""
    first = _frame_end(lines)
    end = _footer_start(lines, first)
    inner = _plain(lines[first:end])
    if (own := own_numbers(inner)) and own.shift is not None:
        return Body(first, own.bare, own.shift - first)
    return Body(first, _strip_numbers(inner) if _is_numbered(inner) else inner, shift)


def _plain(lines: Sequence[str]) -> Sequence[str]:
    """The lines without terminal colours."""
    return [_COLOUR.sub("", line) if _ESCAPE in line else line for line in lines]


def _line_number(line: str) -> int | None:
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
    """True if the lines carry numbers that count up."""
    sample = [*lines[:_SAMPLE], *lines[-_SAMPLE:]] if len(lines) > 2 * _SAMPLE else lines
    numbers = [found for found in map(_line_number, sample) if found is not None]
    filled = sum(1 for line in sample if line.strip())
    rising = sum(1 for a, b in pairwise(numbers) if b > a)
    return len(numbers) >= 3 and len(numbers) >= 0.7 * filled and rising >= 0.8 * (len(numbers) - 1)


def _strip_numbers(lines: Sequence[str]) -> list[str]:
    return [line[found.end() :] if (found := _NUMBER.match(line)) else line for line in lines]
