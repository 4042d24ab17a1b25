"""Parsing in worker processes: a grammar that hangs or crashes costs one file its symbols, and
nothing else. `main` is the worker: it gets texts, returns symbols and chunks, and may die of any of
them; `Parsers` then starts another one. A worker opens no file but the grammars, and ends when a
text takes too long or when its pipe closes.

Measured: of 192 pairs of a grammar and a megabyte of hostile text 29 took over six seconds or
crashed, and nothing stops that from within the same process (tree-sitter's callback for it crashes
too, in 0.25.2 and 0.26.0).
"""

from __future__ import annotations

import os
import queue
import resource
import signal
import struct
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO, Self

import msgspec

from hotset.files.child_process import DEVNULL, PIPE, ChildProcess
from hotset.files.scope import PROCESS, ResourceScope, ScopedQueue
from hotset.nouns.retrieval import Span
from hotset.sources.code.chunks import Chunk, chunks
from hotset.sources.code.grammars import identity as grammar_identity
from hotset.sources.code.symbols import (
    CodeSymbol,
    DefinedSymbols,
    structure,
    symbols,
    with_statements,
)
from hotset.text.languages import LANGUAGES, Language
from hotset.typed import msgpack_decoder

GRAMMARS = "grammars"
"""The folder for unpacked grammars, in a project's data folder."""

SECONDS = 5.0  # of processor time for one file; a megabyte of ordinary code takes a quarter of one
_WORTH_SENDING = (
    5000  # characters; cutting a shorter text takes less time than sending it to a worker
)
_MOST_REMEMBERED = 1000  # texts that a grammar gave up on
_FEW = 4  # processes; more would slow down the machine for its user


def cutting_identity() -> str:
    """Changes when the same text could be cut differently."""
    return f"chunks 2, {grammar_identity()}"


@dataclass(frozen=True, slots=True)
class ParseResult:
    chunks: tuple[Chunk, ...] = ()
    symbols: tuple[CodeSymbol, ...] = ()
    """Only if they were requested."""
    count: int = 0
    gave_up: bool = False
    """No symbols, because the grammar crashed or took too long; the chunks are cut by lines."""
    lost: tuple[Span, ...] = ()
    """Lines that could not be parsed, if symbols were requested: symbols in them may be missing."""


class Parsers:
    """Worker processes, started on demand and restarted when they die."""

    def __init__(
        self, grammars: Path | None = None, processes: int = 0, seconds: float = SECONDS
    ) -> None:
        self._command = (
            sys.executable,
            "-P",
            "-m",
            "hotset.sources.code.parsers",
            str(seconds),
            str(grammars or ""),
        )
        self._most = processes or max(1, min(_FEW, os.cpu_count() or 1))
        self._scope = PROCESS.child("parsers")
        self._idle: ScopedQueue[_Worker] = self._scope.queue(0, last_first=True)
        self._threads: Executor | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._gave_up: dict[bytes, None] = {}
        """Hashes of texts that killed a process: they would kill the next one too."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(cancel_futures=True)
        with suppress(queue.Empty):
            while True:
                self._idle.get_nowait().end()

    def warm(self, languages: Iterable[Language]) -> Future[None]:
        """Start a process and load these grammars in the background: the first text would wait 0.3
        s for that."""
        questions = [ParseRequest(each.name, "") for each in languages if each.grammar]

        def ask_each() -> None:
            for question in questions:
                self._ask(question)

        return self._pool().submit(ask_each)

    def cut(self, text: str, language: Language) -> Future[ParseResult]:
        """The chunks of a text, as a future. A short text without a grammar is cut at once."""
        if not language.grammar and len(text) < _WORTH_SENDING:
            done: Future[ParseResult] = Future()
            found = structure(text, language)
            done.set_result(ParseResult(chunks(text, found), count=len(found)))
            return done
        return self._pool().submit(self._ask, ParseRequest(language.name, text))

    def symbols(self, text: str, language: Language) -> ParseResult:
        """The symbols of a text; blocks until they are found."""
        if not language.grammar:
            found = structure(text, language)
            return ParseResult(symbols=found, count=len(found))
        return self._ask(ParseRequest(language.name, text, wants_symbols=True))

    def _pool(self) -> Executor:
        with self._lock:
            if self._threads is None and not self._closed:
                self._threads = self._scope.executor(self._most, "hotset-parse")
            assert self._threads is not None, "parsers were closed"
            return self._threads

    def _ask(self, question: ParseRequest) -> ParseResult:
        name = blake2b(
            f"{question.language}\0{question.text}".encode("utf-8", "replace"), digest_size=16
        ).digest()
        if name in self._gave_up:
            return _give_up(question)
        try:
            worker = self._idle.get_nowait()
        except queue.Empty:
            worker = _Worker(self._command, self._scope)
        reply = worker.ask(question)
        if reply is None:
            worker.end()
            if len(self._gave_up) < _MOST_REMEMBERED:
                self._gave_up[name] = None
            return _give_up(question)
        if self._closed:
            worker.end()
        else:
            self._idle.put(worker)
        return ParseResult(
            reply.chunks,
            reply.symbols,
            reply.count,
            lost=reply.lost,
        )


def _give_up(question: ParseRequest) -> ParseResult:
    return ParseResult(() if question.wants_symbols else chunks(question.text, ()), gave_up=True)


class _Worker:
    """One process, asked by one thread at a time."""

    def __init__(self, command: tuple[str, ...], scope: ResourceScope) -> None:
        # Never in the project's folder, and without it on the path: files there must not be
        # imported.
        self._process = ChildProcess(
            command, scope=scope, cwd="/", stdin=PIPE, stdout=PIPE, stderr=DEVNULL
        )

    def ask(self, question: ParseRequest) -> ParseReply | None:
        """The reply; None if the process died of the text."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            send(self._process.stdin, msgspec.msgpack.encode(question))
            message = receive(self._process.stdout)
        except OSError:
            return None
        return None if message is None else msgpack_decoder(ParseReply).decode(message)

    def end(self) -> None:
        self._process.end()


_MOST_MEMORY = 2 << 30  # bytes; a megabyte of code takes a twentieth of that
_LENGTH = struct.Struct(">I")


class ParseRequest(msgspec.Struct, array_like=True, frozen=True):
    language: str
    text: str
    wants_symbols: bool = False


class ParseReply(msgspec.Struct, array_like=True, frozen=True):
    count: int
    """Number of symbols."""
    chunks: tuple[Chunk, ...] = ()
    symbols: tuple[CodeSymbol, ...] = ()
    lost: tuple[Span, ...] = ()
    """Lines that could not be parsed."""


def answer_request(question: ParseRequest, grammars: Path | None) -> ParseReply:
    language = LANGUAGES[question.language]
    found = _find_symbols(question.text, language, grammars)
    if question.wants_symbols:
        return ParseReply(len(found.symbols), symbols=found.symbols, lost=found.lost)
    return ParseReply(len(found.symbols), chunks(question.text, found.symbols))


def _find_symbols(text: str, language: Language, grammars: Path | None) -> DefinedSymbols:
    if not language.grammar:
        return DefinedSymbols(structure(text, language))
    found = symbols(text, language, grammars)
    return with_statements(text, found) if language.name == "sql" else found


def send(stream: IO[bytes], message: bytes) -> None:
    stream.write(_LENGTH.pack(len(message)) + message)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """The next message; None at the end."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    message = stream.read(length)
    return message if len(message) == length else None


def main() -> None:
    seconds, folder = float(sys.argv[1]), sys.argv[2]
    grammars = Path(folder) if folder else None
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent process
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    questions = msgpack_decoder(ParseRequest)
    while (message := receive(sys.stdin.buffer)) is not None:
        signal.setitimer(
            signal.ITIMER_PROF, seconds
        )  # of our own time: the kernel ends us, whatever a grammar is doing
        reply = answer_request(questions.decode(message), grammars)
        signal.setitimer(signal.ITIMER_PROF, 0)
        send(sys.stdout.buffer, msgspec.msgpack.encode(reply))


if __name__ == "__main__":
    main()
