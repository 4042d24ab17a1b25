"""Servers as processes of this machine: started, spoken to by pipe, measured, and ended with
everything they started.

hotset may be killed at any moment and must leave nothing behind: the process in `supervisor`
ensures that.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, TypeVar, cast

from hotset.errors import ToolFailed
from hotset.files.child_process import DEVNULL, ChildProcess, TimeoutExpired
from hotset.files.scope import ScopedFile
from hotset.nouns.tool import Stdio
from hotset.sources.tools.running import SERVERS, server_supervisor

_PIPES = 4  # stdin, stdout, stderr, and the line to the process that ends it
_START_SECONDS = (
    10.0  # for the supervisor to answer: it takes milliseconds, unless the machine is on its knees
)
# after stdin was closed, and again after SIGTERM and after SIGKILL: what MCP's own client gives
_GRACE_SECONDS = 2.0
_WORDS_SECONDS = 0.5  # after stdout ended, to hear why
_LAST_WORDS = 2_000  # characters

_End = TypeVar("_End", IO[bytes], socket.socket)

# enough to run, to reach the network and to find the user's own settings: no key of a provider, no
# token of ours
_INHERITED = frozenset(
    [
        "HOME",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "USER",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "TMP",
        "TEMP",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
    ]
)
_INHERITED_FAMILIES = ("LC_", "XDG_")
_SHELL_FUNCTION = "()"  # how a value begins that a shell would run

LONGEST = 32 << 20
"""Bytes of a message. Servers send files and pictures as base64; what is longer is a mistake or an
attack."""

_HELD = 1 << 20  # bytes of unread messages; above that the server has to wait
_TAIL = 2_000  # characters
_KEPT = _TAIL * 4  # bytes: the widest character of UTF-8 has four
_MESSAGE = re.compile(rb"\{|\[\s*\{")  # "[INFO] listening" is none
_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class ServerGone(ToolFailed):
    """The process or the connection ended before the answer came."""


def memory_of(pid: int) -> int:
    """Bytes of a process and its descendants that lie in memory; 0 where that cannot be known."""
    if sys.platform == "linux":
        return sum(_resident(each) for each in (pid, *server_supervisor.descendants(pid)))
    return _resident_by_ps(pid)


class Supervisor:
    """Starts servers, through one process of its own that is started at first need. Used from one
    event loop."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._process: ChildProcess | None = None
        self._door: socket.socket | None = None
        self._asking = asyncio.Lock()
        self._servers: set[ServerProcess] = set()
        self._closed = False

    async def start(self, launch: Stdio, *, cwd: str) -> ServerProcess:
        """The server, running. Raises `ToolFailed` with what can be done about it."""
        asked = launch_request(launch, cwd, self._environ)
        try:
            return await self._started(launch.command[0], cwd, asked)
        except ServerGone:  # the supervisor was killed; another one can do it
            self._dismiss()
            return await self._started(launch.command[0], cwd, asked)

    def close(self) -> None:
        """Ends every server, and returns when they are gone, which takes a moment at most."""
        self._closed = True
        for server in tuple(self._servers):
            server.kill()
        if self._door is not None and self._process is not None:
            self._door.close()
            with suppress(TimeoutExpired):
                self._process.wait(_GRACE_SECONDS)  # the supervisor goes last
        self._dismiss()

    async def _started(self, program: str, cwd: str, asked: bytes) -> ServerProcess:
        server = ServerProcess(program, when_gone=self._forget)
        server.held = SERVERS.file(program, server.kill, _PIPES)
        self._servers.add(server)
        try:
            async with asyncio.timeout(_START_SECONDS):
                with ExitStack() as theirs:
                    await self._ask(asked, await server.connect(theirs))
                await server.started(cwd)
        except BaseException as error:
            server.kill()
            self._forget(server)
            if isinstance(error, TimeoutError):
                self._dismiss()
                raise ToolFailed(
                    f"{program!r} was not started: the machine is too busy; try again in a while"
                ) from None
            if isinstance(error, OSError):
                raise ToolFailed(
                    f"{program!r} was not started: {error.strerror}; stop something else and "
                    f"try again"
                ) from error
            raise
        return server

    async def _ask(self, asked: bytes, descriptors: Sequence[int]) -> None:
        """Sends a request; its descriptors go with the last byte, so that it is whole when they
        arrive."""
        loop = asyncio.get_running_loop()
        async with self._asking:
            try:
                door = self._opened()
                await loop.sock_sendall(door, asked)
                while not _sent(door, descriptors):
                    await _writable(door)
            except (BrokenPipeError, ConnectionResetError) as error:
                raise ServerGone("the process that starts servers has ended; try again") from error
            except asyncio.CancelledError:  # half of a request may be in there
                self._dismiss()
                raise

    def _forget(self, server: ServerProcess) -> None:
        self._servers.discard(server)
        if server.held is not None:
            server.held.release()

    def _opened(self) -> socket.socket:
        if self._closed:
            raise ToolFailed("no server is started any more: hotset is about to end")
        if self._process is not None and self._process.poll() is not None:
            self._dismiss()
        if self._door is None:
            ours, theirs = socket.socketpair()
            with theirs, _closed_on_error(ours):
                ours.setblocking(False)
                self._process = ChildProcess(
                    [
                        sys.executable,
                        "-I",
                        "-S",
                        server_supervisor.__file__,
                        str(theirs.fileno()),
                        str(os.getpid()),
                    ],
                    scope=SERVERS,
                    descriptors=1,  # our end
                    pass_fds=(theirs.fileno(),),
                    stdin=DEVNULL,
                    stdout=DEVNULL,
                    stderr=DEVNULL,
                    cwd="/",
                    env={},
                    start_new_session=True,
                )
            self._door = ours
        return self._door

    def _dismiss(self) -> None:
        """Without the supervisor the reapers stay on duty, and the next start makes another."""
        if self._door is not None:
            self._door.close()
            self._door = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class ServerProcess:
    """A process that is spoken to by pipe, one message a line. Made by a `Supervisor`, and used
    from one event loop: one task receives, any number send."""

    held: ScopedFile | None = None

    def __init__(self, program: str, *, when_gone: Callable[[ServerProcess], None]) -> None:
        self._program = program
        self._loop = asyncio.get_running_loop()
        self._reaper = _ReaperLine(lambda: when_gone(self))
        self._tail = Tail()
        self._room = PipeRoom()
        self._messages = Messages(on_garbage=self._tail.add, on_too_long=self._end_talker)
        self._line: asyncio.Transport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._outputs: list[asyncio.ReadTransport] = []
        self._closing: asyncio.Task[None] | None = None
        self._trouble = ""

    @property
    def pid(self) -> int | None:
        return self._reaper.pid

    @property
    def garbage(self) -> int:
        """Lines on its stdout that were no messages."""
        return self._messages.garbage

    async def send(self, message: bytes) -> None:
        """One JSON-RPC message, without a newline in it. Returns when the server has room for more;
        raises `ServerGone` when nothing reads it."""
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.write(message + b"\n")
            await self._room.wait()
        if self._stdin is None or self._stdin.is_closing():
            await self._hear_out()
            said = f": {words}" if (words := self.last_words()) else ""
            raise ServerGone(f"{self._program!r} has ended{said}; it can be started again")

    async def receive(self) -> bytes | None:
        """The next message, in the order in which they were sent; None when the server ended, and
        from then on."""
        message = await self._messages.next()
        if message is None:
            await self._hear_out()
        return message

    async def _hear_out(self) -> None:
        """Waits a moment for why a server ended, unless we end it."""
        if self._closing is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_WORDS_SECONDS):
                    await self._reaper.gone.wait()
                    await self._tail.ended.wait()

    async def close(self) -> None:
        """Ends the server and everything it started; may be called again. A `receive` that waits
        gets None."""
        if self._closing is None:
            self._closing = SERVERS.task(self._end(), "end a process")
        await asyncio.shield(self._closing)

    def last_words(self) -> str:
        """The tail of what it wrote to stderr, at most 2,000 characters, for a message about its
        end; empty if there is none."""
        why = self._trouble or ("" if self._closing else self._reaper.why())
        words = self._tail.text()[-(_LAST_WORDS - len(why) - 1) :]
        return "\n".join(filter(None, (words, why)))

    def kill(self) -> None:
        """All of it, without waiting for that."""
        self._messages.drop()
        self._hang_up()
        self._release()

    async def connect(self, theirs: ExitStack) -> tuple[int, ...]:
        """Opens the pipes. What is returned goes to the supervisor; the stack closes our copies of
        it."""
        line, their_line = socket.socketpair()
        theirs.enter_context(their_line)
        self._line, _ = await self._loop.create_unix_connection(lambda: self._reaper, sock=line)
        stdin, own = os.pipe()
        theirs.callback(os.close, stdin)
        with _closed_on_error(os.fdopen(own, "wb", 0)) as pipe:
            self._stdin, _ = await self._loop.connect_write_pipe(lambda: self._room, pipe)
        outputs = [
            await self._output(protocol, theirs) for protocol in (self._messages, self._tail)
        ]
        return (their_line.fileno(), stdin, *outputs)

    async def started(self, cwd: str) -> None:
        """Returns when the program runs. Raises `ToolFailed` if it does not, and `ServerGone` if
        the supervisor ended first."""
        await self._reaper.started.wait()
        if self._reaper.failed is not None:
            raise ToolFailed(why_not_started(self._program, cwd, *self._reaper.failed))
        if self._reaper.pid is None:
            raise ServerGone("the process that starts servers has ended; try again")

    async def _output(self, protocol: asyncio.Protocol, theirs: ExitStack) -> int:
        own, output = os.pipe()
        theirs.callback(os.close, output)
        with _closed_on_error(os.fdopen(own, "rb", 0)) as pipe:
            transport, _ = await self._loop.connect_read_pipe(lambda: protocol, pipe)
        self._outputs.append(transport)
        return output

    async def _end(self) -> None:
        """In MCP's order: its stdin ends, it is asked to terminate, it and whatever came of it are
        killed."""
        self._messages.drop()
        if self._stdin is not None:
            self._stdin.close()
        # a reaper that does not work any more is passed over at last
        for step in (self._terminate, self._hang_up, lambda: _kill_group(self.pid)):
            with suppress(TimeoutError):
                async with asyncio.timeout(_GRACE_SECONDS):
                    await self._reaper.gone.wait()
                break
            step()
        self._release()

    def _terminate(self) -> None:
        if self._line is not None:
            self._line.write(server_supervisor.TERMINATE)

    def _hang_up(self) -> None:
        """The reaper ends everything when it hears no more of us."""
        if self._line is not None and not self._line.is_closing():
            with suppress(OSError):
                self._line.get_extra_info("socket").shutdown(socket.SHUT_WR)

    def _release(self) -> None:
        """Our ends of everything."""
        if self._loop.is_closed():
            return
        if self._line is not None:
            self._line.abort()
        if self._stdin is not None and (
            not self._stdin.is_closing() or self._stdin.get_write_buffer_size()
        ):
            # with what was never read; asyncio does not bear it for a pipe that has nothing left
            self._stdin.abort()
        for output in self._outputs:
            output.close()

    def _end_talker(self) -> None:
        self._trouble = f"[it was ended: it sent a message of more than {LONGEST >> 20} MiB]"
        self._hang_up()


class _ReaperLine(asyncio.Protocol):
    """The connection to the reaper of one server, until nothing is left of both."""

    def __init__(self, when_gone: Callable[[], None]) -> None:
        self.pid: int | None = None
        self.failed: tuple[str, int] | None = None
        self.started = asyncio.Event()
        """Set also where it did not start: then there is no pid."""
        self.gone = asyncio.Event()
        self._when_gone = when_gone
        self._status: int | None = None
        self._unread = b""

    def why(self) -> str:
        """How the server ended; empty if it did not, or that is unknown."""
        if self._status is None:
            return ""
        if self._status >= 0:
            return f"[it ended with exit status {self._status}]"
        with suppress(ValueError):
            return f"[it was ended by {signal.Signals(-self._status).name}]"
        return f"[it was ended by signal {-self._status}]"

    def data_received(self, data: bytes) -> None:
        *lines, self._unread = (self._unread + data).split(b"\n")
        for words in lines:
            match words.decode().split():
                case ["started", pid]:
                    self.pid = int(pid)
                case ["failed", step, number]:
                    self.failed = step, int(number)
                case ["ended", status]:
                    self._status = int(status)
            self.started.set()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._status is None:
            _kill_group(self.pid)
        self.started.set()
        self.gone.set()
        self._when_gone()


def _kill_group(pid: int | None) -> None:
    if pid is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _sent(door: socket.socket, descriptors: Sequence[int]) -> bool:
    """Ends a request; False if there is no room for that yet."""
    try:
        socket.send_fds(door, [b"\n"], descriptors)
    except BlockingIOError:
        return False
    return True


async def _writable(door: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    room = asyncio.Event()
    loop.add_writer(door, room.set)
    try:
        await room.wait()
    finally:
        loop.remove_writer(door)


@contextmanager
def _closed_on_error(end: _End) -> Iterator[_End]:
    try:
        yield end
    except BaseException:
        end.close()
        raise


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):  # it has just ended
        return 0


def _resident_by_ps(pid: int) -> int:
    try:
        listed = subprocess.run(
            ["ps", "-axo", "pid=,ppid=,rss="], capture_output=True, check=True, timeout=5
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    rows = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    family = {pid}
    for _ in rows:
        grown = family | {own for own, parent, _ in rows if parent in family}
        if grown == family:
            break
        family = grown
    return sum(kilobytes << 10 for own, _, kilobytes in rows if own in family)


def launch_request(launch: Stdio, cwd: str, environ: Mapping[str, str]) -> bytes:
    """The request to the supervisor, on one line. Raises `ToolFailed` for what no system could
    start."""
    env = {**inherited(environ), **launch.env}
    if not launch.command or not launch.command[0]:
        raise ToolFailed("this server has no command; write one into its settings")
    if any("\0" in text for text in (*launch.command, *env, *env.values(), cwd)):
        raise ToolFailed(
            f"{launch.command[0]!r}: its settings hold a null character, and no program can "
            f"be given one"
        )
    if any(not name or "=" in name for name in env):
        raise ToolFailed(
            f"{launch.command[0]!r}: the name of an environment variable is empty or holds "
            f"'='; mend its settings"
        )
    return json.dumps({"command": launch.command, "env": env, "cwd": cwd}).encode()


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """The few environment variables that every server inherits."""
    return {
        name: value
        for name, value in environ.items()
        if (name in _INHERITED or name.startswith(_INHERITED_FAMILIES))
        and not value.startswith(_SHELL_FUNCTION)
    }


def why_not_started(program: str, cwd: str, step: str, number: int) -> str:
    """Why a server did not start, from the step that failed and its errno."""
    if step == "cwd":
        reason = {
            errno.ENOENT: "does not exist",
            errno.ENOTDIR: "is not a folder",
            errno.EACCES: "may not be entered",
        }
        return (
            f"{program!r} was not started: the folder {cwd!r} "
            f"{reason.get(number, os.strerror(number))}"
        )
    if step == "exec":
        return _WHY_NOT.get(number, "{program!r} could not be started: {error}").format(
            program=program, error=os.strerror(number)
        )
    return f"{program!r} was not started: {os.strerror(number)}; stop something else and try again"


_WHY_NOT = {
    errno.ENOENT: "there is no program {program!r}, or the interpreter "
    "that its first line names is "
    "missing; "
    "install it, or write its full path into the server's settings",
    errno.ENOTDIR: (
        "there is no program {program!r}; install it, or write its "
        "full path into the server's "
        "settings"
    ),
    errno.EACCES: (
        "{program!r} is no file that may be executed; `chmod +x` it, "
        "or name its interpreter in "
        "the server's settings"
    ),
    errno.ENOEXEC: (
        "{program!r} is no program of this machine; its first line "
        "should name its interpreter, "
        "as #!/bin/sh does"
    ),
    errno.E2BIG: (
        "{program!r} was not started: its arguments and environment variables are too long"
    ),
}


class Messages(asyncio.Protocol):
    """The lines of a server's stdout that are messages. Others, as the banners of some, are
    skipped."""

    def __init__(
        self, *, on_garbage: Callable[[bytes], None], on_too_long: Callable[[], None]
    ) -> None:
        self.garbage = 0
        """Lines that were no messages."""
        self._on_garbage = on_garbage
        self._on_too_long = on_too_long
        self._messages: deque[bytes] = deque()
        self._held = 0
        self._pieces: list[bytes] = []
        self._length = 0
        self._news = asyncio.Event()
        self._ended = False
        self._dropping = False
        self._transport: asyncio.ReadTransport | None = None

    async def next(self) -> bytes | None:
        """None at the end, and from then on."""
        while not self._messages:
            if self._ended or self._dropping:
                return None
            self._news.clear()
            await self._news.wait()
        message = self._messages.popleft()
        self._held -= len(message)
        if self._held < _HELD:
            self._resume()
        return message

    def drop(self) -> None:
        """Drops all messages from now on, and reads on: a server that cannot write does not end
        either."""
        self._dropping = True
        self._messages.clear()
        self._pieces.clear()
        self._resume()
        self._news.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        if self._dropping:
            return
        first, *others = data.split(b"\n")
        self._pieces.append(first)
        self._length += len(first)
        if self._length > LONGEST:
            self.drop()
            self._on_too_long()
            return
        for piece in others:
            self._take(b"".join(self._pieces))
            self._pieces, self._length = [piece], len(piece)
        if self._held >= _HELD and self._transport is not None:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._take(b"".join(self._pieces))
        self._pieces.clear()
        self._ended = True
        self._news.set()

    def _take(self, line: bytes) -> None:
        line = line.strip()
        if not line or self._dropping:
            return
        if not _MESSAGE.match(line):
            self.garbage += 1
            self._on_garbage(line)
            return
        self._messages.append(line)
        self._held += len(line)
        self._news.set()

    def _resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()


class Tail(asyncio.Protocol):
    """The end of a server's stderr. All of it is read: a server that writes much must not have to
    wait for us."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self._bytes = b""

    def text(self) -> str:
        return _COLOURS.sub("", self._bytes.decode("utf-8", "replace")).strip()[-_TAIL:]

    def add(self, line: bytes) -> None:
        """Adds a line that it wrote elsewhere."""
        self.data_received(line + b"\n")

    def data_received(self, data: bytes) -> None:
        self._bytes = (self._bytes + data[-_KEPT:])[-_KEPT:]

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.ended.set()


class PipeRoom(asyncio.BaseProtocol):
    """Whether the server has room for more on its stdin, and whether it still reads at all."""

    def __init__(self) -> None:
        self._free = asyncio.Event()
        self._free.set()

    async def wait(self) -> None:
        await self._free.wait()

    def pause_writing(self) -> None:
        self._free.clear()

    def resume_writing(self) -> None:
        self._free.set()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._free.set()
