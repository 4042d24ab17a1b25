"""A process that parses: it gets texts, gives symbols and chunks, and may die of any of them.
`parsing` starts another one then.

It opens no file but the grammars, and ends by itself when a text takes too long or when nobody
listens any more.
"""

from __future__ import annotations

import resource
import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from hotset.nouns.retrieval import Span
from hotset.sources.code.chunks import Chunk, chunks
from hotset.sources.code.structure import structure, with_statements
from hotset.sources.code.symbols import CodeSymbol, DefinedSymbols, symbols
from hotset.text.languages import LANGUAGES, Language

_MOST_MEMORY = 2 << 30  # bytes; a megabyte of code takes a twentieth of that
_LENGTH = struct.Struct(">I")


class ParseRequest(msgspec.Struct, array_like=True, frozen=True):
    language: str
    text: str
    wants_symbols: bool = False


class ParseReply(msgspec.Struct, array_like=True, frozen=True):
    count: int
    """Of symbols."""
    chunks: tuple[Chunk, ...] = ()
    symbols: tuple[CodeSymbol, ...] = ()
    lost: tuple[Span, ...] = ()
    """Lines that could not be parsed."""


def answer(question: ParseRequest, grammars: Path | None) -> ParseReply:
    language = LANGUAGES[question.language]
    found = _defined(question.text, language, grammars)
    if question.wants_symbols:
        return ParseReply(len(found.symbols), symbols=found.symbols, lost=found.lost)
    return ParseReply(len(found.symbols), chunks(question.text, found.symbols))


def _defined(text: str, language: Language, grammars: Path | None) -> DefinedSymbols:
    if not language.grammar:
        return DefinedSymbols(structure(text, language))
    found = symbols(text, language, grammars)
    return with_statements(text, found) if language.name == "sql" else found


def send(stream: IO[bytes], message: bytes) -> None:
    stream.write(_LENGTH.pack(len(message)) + message)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """None at the end."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    message = stream.read(length)
    return message if len(message) == length else None


def main() -> None:
    seconds, folder = float(sys.argv[1]), sys.argv[2]
    grammars = Path(folder) if folder else None
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started us
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    questions = msgspec.msgpack.Decoder(ParseRequest)
    while (message := receive(sys.stdin.buffer)) is not None:
        signal.setitimer(
            signal.ITIMER_PROF, seconds
        )  # of our own time: the kernel ends us, whatever a grammar is doing
        said = answer(questions.decode(message), grammars)
        signal.setitimer(signal.ITIMER_PROF, 0)
        send(sys.stdout.buffer, msgspec.msgpack.encode(said))


if __name__ == "__main__":
    main()
