"""Servers as processes of this machine: started, spoken to by pipe, measured, and ended with everything they started.

What may be killed at any moment must leave nothing behind: `warden` is the process that sees to that, and tells how.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, TypeVar

from hotset.errors import ToolFailed
from hotset.nouns.tool import Stdio
from hotset.sources.tools.running import warden
from hotset.sources.tools.running.channel import ServerGone
from hotset.sources.tools.running.launching import request, why_not
from hotset.sources.tools.running.pipes import LONGEST, Messages, Room, Tail

_START_SECONDS = 10.0  # for the warden to answer: it takes milliseconds, unless the machine is on its knees
_GRACE_SECONDS = 2.0  # after stdin was closed, and again after SIGTERM and after SIGKILL: what MCP's own client gives
_WORDS_SECONDS = 0.5  # after stdout ended, to hear why
_LAST_WORDS = 2_000  # characters

_End = TypeVar("_End", IO[bytes], socket.socket)


def host_launch(folder: Path, scripts: Sequence[Path]) -> Stdio:
    """How the functions of scripts are served, in the folder's own Python where it has one.

    Nothing compiled is written beside the scripts: a skill's folder is its author's, and its files are hashed.
    """
    own = folder / ".venv" / "bin" / "python"
    python = str(own.absolute()) if own.is_file() else sys.executable
    host = Path(__file__).with_name("host.py")
    return Stdio((python, "-I", "-B", str(host), str(folder.absolute()), *(str(script.absolute()) for script in scripts)))


def memory_of(pid: int) -> int:
    """Bytes of a process and its descendants that lie in memory; 0 where that cannot be known."""
    if sys.platform == "linux":
        return sum(_resident(each) for each in (pid, *warden.descendants(pid)))
    return _resident_by_ps(pid)


class Warden:
    """Starts servers, through one process of its own that is started at first need. Used from one event loop."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._process: subprocess.Popen[bytes] | None = None
        self._door: socket.socket | None = None
        self._asking = asyncio.Lock()
        self._servers: set[ServerProcess] = set()
        self._closed = False

    async def start(self, launch: Stdio, *, cwd: str) -> ServerProcess:
        """The server, running. Raises `ToolFailed` with what can be done about it."""
        asked = request(launch, cwd, self._environ)
        try:
            return await self._started(launch.command[0], cwd, asked)
        except ServerGone:  # somebody ended the warden; another one can do it
            self._dismiss()
            return await self._started(launch.command[0], cwd, asked)

    def close(self) -> None:
        """Ends every server, and returns when they are gone, which takes a moment at most."""
        self._closed = True
        for server in tuple(self._servers):
            server.kill()
        if self._door is not None and self._process is not None:
            self._door.close()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE_SECONDS)  # the warden goes last
        self._dismiss()

    async def _started(self, program: str, cwd: str, asked: bytes) -> ServerProcess:
        server = ServerProcess(program, when_gone=self._servers.discard)
        self._servers.add(server)
        try:
            async with asyncio.timeout(_START_SECONDS):
                with ExitStack() as theirs:
                    await self._ask(asked, await server.connect(theirs))
                await server.started(cwd)
        except BaseException as error:
            server.kill()
            self._servers.discard(server)
            if isinstance(error, TimeoutError):
                self._dismiss()
                raise ToolFailed(f"{program!r} was not started: the machine is too busy; try again in a while") from None
            if isinstance(error, OSError):
                raise ToolFailed(f"{program!r} was not started: {error.strerror}; stop something else and try again") from error
            raise
        return server

    async def _ask(self, asked: bytes, descriptors: Sequence[int]) -> None:
        """The descriptors go with the last byte, so that the request is whole when they are there."""
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

    def _opened(self) -> socket.socket:
        if self._closed:
            raise ToolFailed("no server is started any more: hotset is about to end")
        if self._process is not None and self._process.poll() is not None:
            self._dismiss()
        if self._door is None:
            ours, theirs = socket.socketpair()
            with theirs, _closed_on_error(ours):
                ours.setblocking(False)
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", warden.__file__, str(theirs.fileno()), str(os.getpid())],
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env={},
                    start_new_session=True,
                )
            self._door = ours
        return self._door

    def _dismiss(self) -> None:
        """Without the warden the guards stay on duty, and the next start makes another."""
        if self._door is not None:
            self._door.close()
            self._door = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class ServerProcess:
    """A `Channel` to a process: one message a line. Made by a `Warden`."""

    def __init__(self, program: str, *, when_gone: Callable[[ServerProcess], None]) -> None:
        self._program = program
        self._loop = asyncio.get_running_loop()
        self._guard = _Guard(lambda: when_gone(self))
        self._tail = Tail()
        self._room = Room()
        self._messages = Messages(on_garbage=self._tail.add, on_too_long=self._end_talker)
        self._line: asyncio.Transport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._outputs: list[asyncio.ReadTransport] = []
        self._closing: asyncio.Task[None] | None = None
        self._trouble = ""

    @property
    def pid(self) -> int | None:
        return self._guard.pid

    @property
    def garbage(self) -> int:
        """Lines on its stdout that were no messages."""
        return self._messages.garbage

    async def send(self, message: bytes) -> None:
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.write(message + b"\n")
            await self._room.wait()
        if self._stdin is None or self._stdin.is_closing():
            raise ServerGone(f"{self._program!r} has ended; it can be started again")

    async def receive(self) -> bytes | None:
        message = await self._messages.next()
        if message is None and self._closing is None:  # why it ended is known a moment later
            with suppress(TimeoutError):
                async with asyncio.timeout(_WORDS_SECONDS):
                    await self._guard.gone.wait()
                    await self._tail.ended.wait()
        return message

    async def close(self) -> None:
        if self._closing is None:
            self._closing = self._loop.create_task(self._end())
        await asyncio.shield(self._closing)

    def last_words(self) -> str:
        why = self._trouble or ("" if self._closing else self._guard.why())
        said = self._tail.text()[-(_LAST_WORDS - len(why) - 1) :]
        return "\n".join(filter(None, (said, why)))

    def kill(self) -> None:
        """All of it, without waiting for that."""
        self._messages.drop()
        self._hang_up()
        self._release()

    async def connect(self, theirs: ExitStack) -> tuple[int, ...]:
        """Opens the pipes. What is returned goes to the warden; the stack closes our copies of it."""
        line, their_line = socket.socketpair()
        theirs.enter_context(their_line)
        self._line, _ = await self._loop.create_unix_connection(lambda: self._guard, sock=line)
        stdin, own = os.pipe()
        theirs.callback(os.close, stdin)
        with _closed_on_error(os.fdopen(own, "wb", 0)) as pipe:
            self._stdin, _ = await self._loop.connect_write_pipe(lambda: self._room, pipe)
        outputs = [await self._output(protocol, theirs) for protocol in (self._messages, self._tail)]
        return (their_line.fileno(), stdin, *outputs)

    async def started(self, cwd: str) -> None:
        """Returns when the program runs. Raises `ToolFailed` if it does not, and `ServerGone` if nobody could try."""
        await self._guard.started.wait()
        if self._guard.failed is not None:
            raise ToolFailed(why_not(self._program, cwd, *self._guard.failed))
        if self._guard.pid is None:
            raise ServerGone("the process that starts servers has ended; try again")

    async def _output(self, protocol: asyncio.Protocol, theirs: ExitStack) -> int:
        own, output = os.pipe()
        theirs.callback(os.close, output)
        with _closed_on_error(os.fdopen(own, "rb", 0)) as pipe:
            transport, _ = await self._loop.connect_read_pipe(lambda: protocol, pipe)
        self._outputs.append(transport)
        return output

    async def _end(self) -> None:
        """In MCP's order: its stdin ends, it is asked to terminate, it and whatever came of it are killed."""
        self._messages.drop()
        if self._stdin is not None:
            self._stdin.close()
        for step in (self._terminate, self._hang_up, self._kill_group):
            with suppress(TimeoutError):
                async with asyncio.timeout(_GRACE_SECONDS):
                    await self._guard.gone.wait()
                break
            step()
        self._release()

    def _terminate(self) -> None:
        if self._line is not None:
            self._line.write(warden.TERMINATE)

    def _hang_up(self) -> None:
        """The guard ends everything when it hears no more of us."""
        if self._line is not None and not self._line.is_closing():
            with suppress(OSError):
                self._line.get_extra_info("socket").shutdown(socket.SHUT_WR)

    def _kill_group(self) -> None:
        """What can be done if the guard itself does not work any more."""
        _kill_group(self.pid)

    def _release(self) -> None:
        """Our ends of everything."""
        if self._loop.is_closed():
            return
        if self._line is not None:
            self._line.abort()
        if self._stdin is not None and (not self._stdin.is_closing() or self._stdin.get_write_buffer_size()):
            self._stdin.abort()  # with what was never read; asyncio does not bear it for a pipe that has nothing left
        for output in self._outputs:
            output.close()

    def _end_talker(self) -> None:
        self._trouble = f"[it was ended: it sent a message of more than {LONGEST >> 20} MiB]"
        self._hang_up()


class _Guard(asyncio.Protocol):
    """What the guard of a server tells about it, until nothing is left of both."""

    def __init__(self, when_gone: Callable[[], None]) -> None:
        self.pid: int | None = None
        self.failed: tuple[str, int] | None = None
        self.started = asyncio.Event()
        """Or not: then there is no pid."""
        self.gone = asyncio.Event()
        self._when_gone = when_gone
        self._status: int | None = None
        self._unread = b""

    def why(self) -> str:
        """How the server ended; empty if it did not, or nobody knows."""
        if self._status is None:
            return ""
        if self._status >= 0:
            return f"[it ended with exit status {self._status}]"
        with suppress(ValueError):
            return f"[it was ended by {signal.Signals(-self._status).name}]"
        return f"[it was ended by signal {-self._status}]"

    def data_received(self, data: bytes) -> None:
        *told, self._unread = (self._unread + data).split(b"\n")
        for words in told:
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
        told = subprocess.run(["ps", "-axo", "pid=,ppid=,rss="], capture_output=True, check=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return 0
    rows = [tuple(map(int, line.split())) for line in told.stdout.splitlines()]
    family = {pid}
    for _ in rows:
        grown = family | {own for own, parent, _ in rows if parent in family}
        if grown == family:
            break
        family = grown
    return sum(kilobytes << 10 for own, _, kilobytes in rows if own in family)
