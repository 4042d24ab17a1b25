"""A file of recorded sessions as JSON documents: one a line, or one for all of it, gzipped or
not."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from hotset.dialects import wire
from hotset.errors import BadInput

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_OPENING = 64
"""Documents by which a format is told: transcripts may begin with lines that many formats could
have."""


@dataclass(frozen=True, slots=True)
class TranscriptReader:
    """A file, and what its sessions are called."""

    path: Path
    set: str
    note: Callable[[str], None]
    """Hears what was passed over and does no harm, a sentence at a time."""

    @property
    def stem(self) -> str:
        """The file's name without its endings."""
        return self.path.name.split(".")[0] or self.path.name

    def lines(self) -> Iterator[bytes]:
        """Raises `BadInput` where the file cannot be read, or its compression is damaged."""
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

    def opened(self) -> Opened:
        """The documents, with a look at the first ones. Raises `BadInput` where there are none."""
        documents = self._documents()
        opening = tuple(islice(documents, _OPENING))
        if not opening:
            raise BadInput(f"{self.path}: it is empty")
        return Opened(self, opening, chain(opening, documents))

    def _documents(self) -> Iterator[Any]:
        """A document a line where the first line is one; else the file is a single document over
        many lines."""
        numbered = ((number, line) for number, line in enumerate(self.lines(), 1) if line.strip())
        first = next(numbered, None)
        if first is None:
            return
        try:
            yield _decoded(first[1].removeprefix(_BOM))
        except ValueError:
            yield self._single(first[1].removeprefix(_BOM), numbered)
            return
        yield from self._rest(numbered)

    def _rest(self, numbered: Iterator[tuple[int, bytes]]) -> Iterator[Any]:
        for number, line in numbered:
            try:
                document = _decoded(line)
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
            return _decoded(whole)
        except ValueError as error:
            reason = "not valid UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            raise BadInput(
                f"{self.path}: it begins like JSON and is none, or is cut off ({reason})"
            ) from None


@dataclass(frozen=True, slots=True)
class Opened:
    """A file whose first documents are known. `documents` gives all of them, once."""

    source: TranscriptReader
    opening: tuple[Any, ...]
    documents: Iterator[Any]


def _decoded(raw: bytes) -> Any:
    """The value in `raw`; raises `ValueError` where it is none. Half a surrogate pair is mended:
    people's terminals make them."""
    value = wire.lenient(raw)
    if value is not None or raw.strip() == b"null":
        return value
    try:
        return msgspec.json.decode(raw)
    except RecursionError:
        raise ValueError("nested too deeply") from None
