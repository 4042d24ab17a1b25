"""Answers of tools that only read, given again while what they read is unchanged.

Only for tools that declare themselves read-only and idempotent, and only where `answer_from_store`
is on. An answer holds for the session that got it, while

- the process that gave it runs, and the tool says of itself what it said then;
- no other call went to its source, from any session;
- the files that its arguments name are the same in size, time and content. Where they name none, or
  folders, or what lies outside of the project, it holds for `answer_seconds`.

A call that was answered so and is made again at once runs. Nothing is kept on disk.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from hotset.errors import BadInput
from hotset.files.lru import Lru
from hotset.files.root import NotTaken, Root, Stat
from hotset.nouns.tool import Launch, Returned, Stdio, Tool

_MOST_ANSWERS = 512
_LARGEST_ANSWER = 1 << 20  # bytes
_MOST_BYTES = 16 << 20  # of all answers
_LARGEST_FILE = 16 << 20  # bytes that are hashed before a call
_MOST_VALUES = 100  # of the arguments that are looked at
_LONGEST = 600.0  # seconds: a tool may read more than the files that it is given
_PATHS = frozenset({"path", "paths", "file", "files", "filename", "file_path", "filepath", "uri"})
"""Names of arguments that say what is read; a word elsewhere may be a file's name by chance."""

FileStamp = tuple[str, Stat, bytes]
"""Path, stat and hash of a file."""


@dataclass(frozen=True, slots=True)
class FilesRead:
    """What a call reads, as its arguments tell."""

    stamps: tuple[FileStamp, ...] = ()
    whole: bool = False
    """True if it reads these files and, as far as can be told, nothing else."""


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A call of a tool that only reads."""

    source: str
    session: str
    digest: bytes
    """Of the tool as it describes itself and of the arguments."""
    files: FilesRead
    writes: int
    """Other calls of its source so far."""
    folder: Path
    """Where its process began: what relative paths start from."""
    paths: tuple[str, ...]
    """As its arguments name them; none for a server elsewhere, which reads files of its own."""

    @property
    def key(self) -> tuple[str, bytes]:
        return self.session, self.digest


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    returned: Returned
    turn: int
    """Of its conversation; 0 where there is none."""
    time: float


@dataclass(frozen=True, slots=True)
class _Kept:
    call: ReadCall
    process: object
    answer: StoredAnswer


class ToolAnswers:
    """The answers of one process. Safe to use from several threads."""

    def __init__(
        self, project: Path, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`seconds` is for how long an answer holds where it is unknown what was read."""
        self._project = project
        self._seconds = seconds
        self._clock = clock
        self._kept: Lru[tuple[str, bytes], _Kept] = Lru(
            "tool answers", count=_MOST_ANSWERS, weight=_MOST_BYTES
        )
        self._writes: Counter[str] = Counter()
        self._given: Lru[str, bytes] = Lru(
            "repeated tool calls", count=_MOST_ANSWERS, shrinks=False
        )
        """By session: the call that was the last one and was answered from here."""
        self._lock = threading.Lock()

    def reading(
        self, tool: Tool, launch: Launch | None, arguments: Mapping[str, Any], session: str
    ) -> ReadCall | None:
        """The call, where its tool only reads; None for any other, which outdates what its source
        answered before."""
        if not _only_reads(tool):
            self.wrote(tool.source)
            self._given.pop(session)
            return None
        about = [tool.name, tool.description, tool.parameters, tool.annotations, arguments]
        digest = hashlib.sha256(msgspec.json.encode(about, order="sorted")).digest()
        with self._lock:
            writes = self._writes[tool.source]
        paths = tuple(_paths(arguments)) if isinstance(launch, Stdio) else ()
        folder = self._project / launch.cwd if isinstance(launch, Stdio) else self._project
        files = files_read(self._project, folder, paths)
        return ReadCall(tool.source, session, digest, files, writes, folder, paths)

    def wrote(self, source: str) -> None:
        """A call that may change something began or ended."""
        with self._lock:
            self._writes[source] += 1

    def get(self, call: ReadCall, process: object) -> StoredAnswer | None:
        """The answer that holds; `process` is the one that runs now."""
        is_repeat = self._given.pop(call.session) == call.digest
        kept = self._kept.get(call.key)
        if kept is None or is_repeat or process is None or kept.process != process:
            return None
        age = self._clock() - kept.answer.time
        longest = _LONGEST if call.files.whole else self._seconds
        if (kept.call.writes, kept.call.files) != (call.writes, call.files) or age > longest:
            return None
        self._given.put(call.session, call.digest)
        return kept.answer

    def put(self, call: ReadCall, process: object, returned: Returned, turn: int) -> None:
        """Keep what a call returned, unless it failed, or what it read changed meanwhile."""
        size = len(returned.content) + len(returned.structured or b"")
        is_small = size <= _LARGEST_ANSWER
        if returned.failed or process is None or not is_small:
            self._kept.pop(call.key)
        elif files_read(self._project, call.folder, call.paths) == call.files:
            answer = StoredAnswer(returned, turn, self._clock())
            self._kept.put(call.key, _Kept(call, process, answer), size)

    def marked(self, answer: StoredAnswer) -> Returned:
        """The answer with a line that says where it comes from."""
        then = (
            f"in turn {answer.turn}"
            if answer.turn
            else f"{max(0.0, self._clock() - answer.time):.0f} s ago"
        )
        text = f"[hotset: same call as {then}, unchanged; not run again. Repeat it to run it]"
        mark = {"type": "text", "text": text}
        blocks = msgspec.json.decode(answer.returned.content)
        content = msgspec.json.encode([mark, *blocks])
        return Returned(content, structured=answer.returned.structured)


def files_read(project: Path, folder: Path, paths: Sequence[str]) -> FilesRead:
    """The files of the project among these paths, as they are now."""
    stamps = [_stamp(project, folder, path) for path in paths]
    files = tuple(stamp for stamp in stamps if stamp is not None)
    return FilesRead(files, bool(files) and len(files) == len(stamps))


def _stamp(project: Path, folder: Path, path: str) -> FileStamp | None:
    """None for what is no regular file of the project that can be read."""
    try:
        real = (folder / path.removeprefix("file://")).resolve()
        inside = str(real.relative_to(project.resolve()))
        with Root(project) as root:
            read = root.read(inside, _LARGEST_FILE)
    except (BadInput, NotTaken, OSError, ValueError, RuntimeError):
        return None
    return inside, read.stat, hashlib.sha256(read.data).digest()


def _paths(arguments: Mapping[str, Any]) -> Iterator[str]:
    """The texts of arguments whose names say that they are paths, also in lists and objects."""
    waiting: list[tuple[str, Any]] = list(arguments.items())
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        name, value = waiting.pop()
        if isinstance(value, str):
            if name.lower() in _PATHS:
                yield value
        elif isinstance(value, Mapping):
            waiting += value.items()
        elif isinstance(value, list | tuple):
            waiting += [(name, each) for each in value]


def _only_reads(tool: Tool) -> bool:
    try:
        hints = msgspec.json.decode(tool.annotations)
    except msgspec.DecodeError:
        return False
    return (
        isinstance(hints, dict)
        and hints.get("readOnlyHint") is True
        and hints.get("idempotentHint") is True
    )
