"""Readers for files of recorded sessions. The format is detected from a file's content."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from hotset.errors import BadInput
from hotset.replay.conversation import RecordedSession
from hotset.replay.formats import (
    api_messages,
    claude_code,
    codex,
    export,
    normal,
    opencode,
    swe_agent,
)
from hotset.replay.formats.transcript import OpenTranscript, TranscriptFile, TranscriptReader

READERS = (
    export.READER,
    normal.READER,
    codex.READER,
    opencode.READER,
    claude_code.READER,
    swe_agent.MINI_READER,
    swe_agent.READER,
    api_messages.READER,
)
"""In the order in which they are tried: formats that could be mistaken for another come first."""

_ENDINGS = frozenset({".json", ".jsonl", ".ndjson", ".traj", ".gz"})
"""Files read from a folder; a file that is named is read whatever its ending."""

_KEY = re.compile(r"[A-Za-z_]{1,24}")
"""Keys that an error may show: one with digits or signs could be an id or a secret."""

_MOST_KEYS = 8


def _raise(error: BadInput) -> None:
    raise error


def _ignore(_: object) -> None:
    pass


def read(
    paths: Iterable[Path],
    *,
    note: Callable[[str], None] = _ignore,
    refuse: Callable[[BadInput], None] = _raise,
) -> Iterator[RecordedSession]:
    """Yield every session in these files and folders.

    `note` gets a sentence about each harmless thing that was skipped. A file that cannot be read is
    one error: `refuse` raises it, unless the caller passes its own and goes on with the next file.
    """
    for path in paths:
        try:
            files = find(path)
        except BadInput as error:
            refuse(error)
            continue
        for file in files:
            try:
                yield from _read_sessions(TranscriptFile(file, _set_of(path), note))
            except BadInput as error:
                refuse(error)


def find(path: Path) -> tuple[Path, ...]:
    """The files that `read` looks at: this one, or those in this folder that could hold sessions.
    Raises `BadInput`."""
    if path.is_file():
        return (path,)
    if not path.is_dir():
        raise BadInput(f"{path}: no such file or folder")
    inside = sorted(
        file
        for file in path.rglob("*")
        if file.suffix in _ENDINGS
        and not opencode.is_inner(file)
        and file.is_file()
        and _is_visible(file, path)
    )
    if not inside:
        raise BadInput(f"{path}: no file in it ends in {', '.join(sorted(_ENDINGS))}")
    return tuple(inside)


def _reader_of(opened: OpenTranscript) -> TranscriptReader:
    """The reader that claims the file. Raises `BadInput` with a description of the content."""
    for each in READERS:
        if each.claims(opened.opening):
            return each
    known = ", ".join(each.format for each in READERS)
    raise BadInput(
        f"{opened.file.path}: it holds {_describe_document(opened.opening[0])}, which is no "
        f"session; read are: {known}"
    )


def _read_sessions(file: TranscriptFile) -> Iterator[RecordedSession]:
    opened = file.opened()
    reader = _reader_of(opened)
    found = 0
    for session in reader.sessions(opened):
        if session.messages:
            found += 1
            yield session
    if not found:
        raise BadInput(f"{file.path}: a {reader.format} without any message")


def _set_of(path: Path) -> str:
    """Group name for the sessions of this file or folder if they have none of their own."""
    name = path.resolve().name
    return name.split(".")[0] or name


def _is_visible(file: Path, folder: Path) -> bool:
    return not any(part.startswith(".") for part in file.relative_to(folder).parts)


def _describe_document(document: Any) -> str:
    """Type and keys of a document, without any of its values."""
    match document:
        case dict():
            keys = [key for key in document if isinstance(key, str) and _KEY.fullmatch(key)][
                :_MOST_KEYS
            ]
            return (
                f"a JSON object with {', '.join(keys)}"
                if keys
                else f"a JSON object with {len(document)} keys"
            )
        case list():
            return f"a JSON list of {len(document)}" + (
                f", the first {_describe_document(document[0])}" if document else ""
            )
        case str():
            return "a JSON string"
        case _:
            return "a JSON value"
