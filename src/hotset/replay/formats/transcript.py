"""Code that all formats share: a file as JSON documents (one per line or one in all, gzipped or
not), the fields that records have in common, and the builder of a conversation."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from hotset.dialects import json_bytes
from hotset.errors import BadInput
from hotset.nouns.message import Usage
from hotset.nouns.page import Role
from hotset.replay.conversation import RecordedCall, RecordedMessage, RecordedSession

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_OPENING = 64
"""Documents used to detect a format: transcripts may begin with lines that many formats could
have."""


@dataclass(frozen=True, slots=True)
class TranscriptReader:
    """Reader for one format of recorded sessions."""

    format: str
    """Its name, as people know it."""
    claims: Callable[[Sequence[Any]], bool]
    """True if a file that begins with these documents has this format."""
    sessions: Callable[[OpenTranscript], Iterator[RecordedSession]]


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """A file, and the group name of its sessions."""

    path: Path
    set: str
    note: Callable[[str], None]
    """Gets a sentence about each harmless thing that was skipped."""

    @property
    def stem(self) -> str:
        """The file's name without its endings."""
        return self.path.name.split(".")[0] or self.path.name

    def lines(self) -> Iterator[bytes]:
        """Raises `BadInput` if the file cannot be read or its compression is damaged."""
        try:
            with self.path.open("rb") as file:
                zipped = file.read(len(_GZIP)) == _GZIP
                file.seek(0)
                if zipped:
                    with gzip.open(file) as unzipped:
                        yield from unzipped
                else:
                    yield from file
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise BadInput(
                f"{self.path}: its compression is damaged or cut off ({error})"
            ) from error
        except OSError as error:
            raise BadInput(f"{self.path}: {error.strerror or 'it cannot be read'}") from error

    def opened(self) -> OpenTranscript:
        """Read the first documents. Raises `BadInput` if there are none."""
        documents = self._documents()
        opening = tuple(islice(documents, _OPENING))
        if not opening:
            raise BadInput(f"{self.path}: it is empty")
        return OpenTranscript(self, opening, chain(opening, documents))

    def _documents(self) -> Iterator[Any]:
        """One document per line if the first line is one; else the whole file is one document."""
        numbered = ((number, line) for number, line in enumerate(self.lines(), 1) if line.strip())
        first = next(numbered, None)
        if first is None:
            return
        try:
            yield _decode_document(first[1].removeprefix(_BOM))
        except ValueError:
            yield self._single(first[1].removeprefix(_BOM), numbered)
            return
        yield from self._rest(numbered)

    def _rest(self, numbered: Iterator[tuple[int, bytes]]) -> Iterator[Any]:
        for number, line in numbered:
            try:
                document = _decode_document(line)
            except ValueError:
                if next(numbered, None) is None:
                    self.note(
                        f"{self.path}: line {number}, the last one, is not whole; it was left out"
                    )
                    return
                raise BadInput(
                    f"{self.path}: line {number} is not JSON, and more lines follow it"
                ) from None
            yield document

    def _single(self, first: bytes, numbered: Iterator[tuple[int, bytes]]) -> Any:
        whole = b"".join((first, *(line for _, line in numbered)))
        if not whole.lstrip().startswith((b"{", b"[")):
            raise BadInput(f"{self.path}: it is not JSON")
        try:
            return _decode_document(whole)
        except ValueError as error:
            reason = "not valid UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            raise BadInput(
                f"{self.path}: it begins like JSON and is none, or is cut off ({reason})"
            ) from None


@dataclass(frozen=True, slots=True)
class OpenTranscript:
    """A file whose first documents have been read. `documents` yields all of them, once."""

    file: TranscriptFile
    opening: tuple[Any, ...]
    documents: Iterator[Any]


def _decode_document(raw: bytes) -> Any:
    """Decode a JSON value; raises `ValueError` if it is invalid. Half a surrogate pair is repaired:
    terminals produce them."""
    value = json_bytes.lenient(raw)
    if value is not None or raw.strip() == b"null":
        return value
    try:
        return msgspec.json.decode(raw)
    except RecursionError:
        raise ValueError("nested too deeply") from None


IMAGE = "[image]"
"""Placeholder for content that has no text."""

_IMAGES = frozenset(
    {"image", "image_url", "input_image", "document", "input_file", "file", "input_audio"}
)
_MILLISECONDS = 1e11  # as seconds this is the year 5138: a larger number counts milliseconds
_BYTES_PER_TOKEN = 4  # of schemas and system texts, which are prose and JSON


def kind_of(fields: Mapping[str, Any]) -> str:
    """The `type` of a block, an item or a line."""
    return json_bytes.as_text(fields.get("type"))


def text_of(content: Any) -> str:
    """Text of a content field: a string, or blocks with texts and images among them."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = (
            content.get("content") if isinstance(content.get("content"), str | list) else [content]
        )
        return text_of(content)
    return "\n".join(text for block in json_bytes.as_list(content) if (text := _block_text(block)))


def as_json(value: Any) -> str:
    """Arguments as text: strings as they are, anything else as JSON."""
    return (
        value
        if isinstance(value, str)
        else json_bytes.encode(value).decode()
        if value is not None
        else ""
    )


def parse_time(value: Any) -> float | None:
    """Unix seconds, from ISO 8601 text or from a number of seconds or milliseconds."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value / 1000 if value > _MILLISECONDS else float(value)
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def usage_of(value: Any) -> Usage | None:
    """Tokens as Anthropic or OpenAI report them; OpenAI counts cached tokens among the input."""
    fields = json_bytes.as_object(value)
    if not fields:
        return None
    count = json_bytes.as_count
    output = count(fields.get("output_tokens")) or count(fields.get("completion_tokens"))
    written = count(fields.get("cache_creation_input_tokens"))
    if "prompt_tokens" not in fields and "cache_read_input_tokens" in fields:
        return Usage(
            count(fields.get("input_tokens")),
            count(fields["cache_read_input_tokens"]),
            written,
            output,
        )
    sent = count(fields.get("prompt_tokens")) or count(fields.get("input_tokens"))
    details = json_bytes.as_object(fields.get("prompt_tokens_details")) or json_bytes.as_object(
        fields.get("input_tokens_details")
    )
    read = count(details.get("cached_tokens")) or count(fields.get("cached_input_tokens"))
    return Usage(max(0, sent - read - written), min(sent, read), written, output)


def tokens_of(value: Any) -> int:
    """Estimated tokens of a value that was sent beside the messages; 0 if it is empty."""
    return len(json_bytes.encode(value)) // _BYTES_PER_TOKEN if value else 0


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    fields = json_bytes.as_object(block)
    if isinstance(text := fields.get("text"), str):
        return text
    if kind_of(fields) in _IMAGES:
        return IMAGE
    if isinstance(content := fields.get("content"), str | list):
        return text_of(content)
    return json_bytes.as_text(fields.get("refusal"))


@dataclass(slots=True)
class _Reply:
    """An assistant's reply while its parts are added."""

    time: float | None
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[RecordedCall] = field(default_factory=list)
    usage: Usage | None = None


class TalkBuilder:
    """Joins an assistant's parts into one message, followed by the results of its calls.

    If a record marks the end of each reply (`marks_ends`), a reply ends with `end_reply()` or with
    a message of another role, even if a result is recorded before the reply's last call. Otherwise
    a part that follows a result begins the next reply.
    """

    def __init__(self, *, marks_ends: bool) -> None:
        self._marks_ends = marks_ends
        self._messages: list[RecordedMessage] = []
        self._reply: _Reply | None = None
        self._answers: list[RecordedMessage] = []
        self._tools: dict[str, str] = {}
        self._unnamed = 0

    def add_message(
        self,
        role: Role,
        text: str,
        time: float | None = None,
        *,
        compaction: bool = False,
        by_client: bool = False,
    ) -> None:
        """Add a message of any role but the assistant's."""
        self.end_reply()
        if text.strip():
            self._messages.append(
                RecordedMessage(role, text, time=time, compaction=compaction, by_client=by_client)
            )

    def add_text(self, text: str, time: float | None = None) -> None:
        if text.strip():
            self._open_reply(time).texts.append(text)

    def add_thinking(self, text: str, time: float | None = None) -> None:
        if text.strip():
            self._open_reply(time).thoughts.append(text)

    def add_call(self, id: str, name: str, arguments: str, time: float | None = None) -> str:
        """Add a call. Returns its id: its own, or a generated one."""
        reply = self._open_reply(time)
        if not id or id in self._tools:
            self._unnamed += 1
            id = f"call-{self._unnamed}"
        self._tools[id] = name
        reply.calls.append(RecordedCall(id, name, arguments))
        return id

    def add_result(self, id: str, text: str, time: float | None = None, *, tool: str = "") -> None:
        """Add the result of a call."""
        self._answers.append(
            RecordedMessage(
                Role.TOOL, text, call=id, tool=tool or self._tools.get(id, ""), time=time
            )
        )

    def set_usage(self, usage: Usage | None) -> None:
        """Set the usage that the provider reported for the open reply."""
        if self._reply is not None and usage is not None:
            self._reply.usage = usage

    def end_reply(self) -> None:
        """Close the reply and add the results of its calls so far."""
        if (reply := self._reply) is not None:
            self._messages.append(
                RecordedMessage(
                    Role.ASSISTANT,
                    "\n\n".join(reply.texts),
                    tuple(reply.calls),
                    thinking="\n\n".join(reply.thoughts),
                    time=reply.time,
                    usage=reply.usage,
                )
            )
        self._messages += self._answers
        self._reply = None
        self._answers = []

    def messages(self) -> tuple[RecordedMessage, ...]:
        self.end_reply()
        return tuple(self._messages)

    def _open_reply(self, time: float | None) -> _Reply:
        if self._answers and not self._marks_ends:
            self.end_reply()
        if self._reply is None:
            if self._answers:
                self.end_reply()
            self._reply = _Reply(time)
        return self._reply
