"""The process that starts servers for hotset and lets none of them outlive it: `python -I -S
supervisor.py SOCKET PID`.

Stdlib only. hotset may be killed at any moment and must leave no process behind, so it starts none
itself. It sends what to start over a socket; this process forks a *reaper* for each server, and the
reaper starts the server and stays until nothing of it is left:

- Each reaper has a line of its own to hotset. When that line ends, or hotset itself, for whatever
  reason, the reaper ends all: SIGTERM first, since a client of a container passes it on and would
  leave the container running otherwise, then SIGKILL.
- On Linux a reaper adopts what the server's processes leave behind, so a daemon that forked twice
  and has a session of its own is still among its children; that it has no children left means that
  there is nothing left. Elsewhere it is the process group.
- A server whose reaper was killed is killed by the kernel, and what that leaves is adopted and
  killed by the supervisor. If the supervisor is killed, the reapers stay on duty; hotset starts
  another supervisor when it next needs one.

On the socket, a request is a line of JSON, `{"command": [...], "env": {...}, "cwd": "..."}`, that
brings four descriptors: the line of the reaper, and the server's stdin, stdout and stderr. On its
line a reaper says `started PID` or `failed STEP ERRNO`, then, when the server's first process
ended, `ended STATUS` (negative: the signal); the line closes when nothing is left. hotset says `t`
there for SIGTERM to all, and closes its end for SIGKILL to all.
"""

# ruff: noqa: PTH123, PTH208 - pathlib takes longer to import than this process has to start

from __future__ import annotations

import ctypes
import errno
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

TERMINATE = b"t"

DESCRIPTORS = 4  # that come with each request

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36  # of prctl(2)
_GRACE_SECONDS = 0.5  # between SIGTERM and SIGKILL, where no one waits for the end
_AGAIN_SECONDS = (
    0.02  # until the next look at what a SIGKILL has left: a process may have forked in between
)
_PATIENT_SECONDS = (
    1.0  # the same, for what several could not end: root's processes, or those that wait for a disk
)
_IMPATIENT_TRIES = 50


def descendants(root: int) -> dict[int, int]:
    """The processes that come from this one, with their groups. Linux only: empty where there is no
    /proc."""
    children: dict[int, list[tuple[int, int]]] = {}
    for pid, parent, group in _processes():
        children.setdefault(parent, []).append((pid, group))
    found: dict[int, int] = {}
    at = [root]
    while at:
        below = {child: group for pid in at for child, group in children.get(pid, ())}
        found |= below
        at = list(below)
    return found


def main() -> None:
    door, hotset = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    door.set_inheritable(False)
    for each in (signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    _adopt()
    life = _life(hotset)
    if os.getppid() != hotset:  # it died before we looked; what we watch may be somebody else
        return
    gc.freeze()  # reapers share this process's memory until one of them writes to it
    gc.disable()
    _Supervisor(door, life).serve()


class _Supervisor:
    def __init__(self, door: socket.socket, life: int) -> None:
        self._door = door
        self._life = life
        self._reapers: set[int] = set()
        self._has_strays = False
        self._unread = b""
        self._descriptors: list[int] = []

    def serve(self) -> None:
        waiting = _Waiting(self._door.fileno(), self._life)
        open_ = True
        while open_ or self._reapers or self._has_strays:
            ready, signals = waiting.wait(_AGAIN_SECONDS if self._has_strays else None)
            if signal.SIGTERM in signals:
                return
            if self._life in ready:
                open_ = False
                waiting.forget(self._life)
            if self._door.fileno() in ready and not self._admit():
                open_ = False
                waiting.forget(self._door.fileno())
            self._reap()
            self._kill_strays()

    def _admit(self) -> bool:
        """Starts what is asked for; False at the end."""
        data, descriptors, _, _ = socket.recv_fds(self._door, 1 << 16, 4 * DESCRIPTORS)
        for each in descriptors:
            os.set_inheritable(each, False)
        self._descriptors += descriptors
        *requests, self._unread = (self._unread + data).split(b"\n")
        for request in requests:
            own, self._descriptors = (
                self._descriptors[:DESCRIPTORS],
                self._descriptors[DESCRIPTORS:],
            )
            self._start(request, own)
            for each in own:
                os.close(each)
        return bool(data)

    def _start(self, request: bytes, descriptors: list[int]) -> None:
        line, *stdio = descriptors
        try:
            pid = os.fork()
        except OSError as error:  # no room for another process
            os.write(line, f"failed start {error.errno}\n".encode())
            return
        if pid == 0:
            self._door.close()
            _run_reaper(request, line, stdio, self._life)
        self._reapers.add(pid)

    def _reap(self) -> None:
        for pid, status in _reaped():
            self._has_strays |= pid not in self._reapers or status != 0
            self._reapers.discard(pid)

    def _kill_strays(self) -> None:
        """Ends what a reaper that was killed had in its care."""
        if self._has_strays:
            mine = os.getpid()
            strays = {
                pid: group
                for pid, parent, group in _processes()
                if parent == mine and pid not in self._reapers
            }
            self._has_strays = bool(strays)
            for stray in tuple(strays):
                strays |= descendants(stray)
            _signal_all(strays, signal.SIGKILL)


def _run_reaper(request: bytes, line: int, stdio: list[int], life: int) -> None:
    """All that a reaper ever does: it came from a fork, and never returns to the code that it came
    from."""
    try:
        _Reaper(socket.socket(fileno=line), life).watch(request, stdio)
        os._exit(0)
    finally:
        os._exit(1)


class _Reaper:
    def __init__(self, line: socket.socket, life: int) -> None:
        self._line = line
        self._life = life
        self._adopts = _adopt()
        self._waiting = _Waiting(line.fileno(), life)
        self._server = 0
        self._has_ended = False
        self._was_asked = False
        self._kill_at: float | None = None
        self._tries = 0

    def watch(self, request: bytes, stdio: list[int]) -> None:
        asked = json.loads(request)
        self._server, trouble = _started(asked["command"], asked["env"], asked["cwd"], stdio)
        for each in stdio:
            os.close(each)
        if trouble:
            self._tell(f"failed {trouble}")
            return
        self._tell(f"started {self._server}")
        while self._something_is_left():
            if self._has_ended:
                self._end()
            self._kill_when_due()
            ready, signals = self._waiting.wait(self._patience())
            if self._line.fileno() in ready:
                self._listen()
            if self._life in ready:
                self._waiting.forget(self._life)
                self._end()
            if signal.SIGTERM in signals:
                self._end()

    def _something_is_left(self) -> bool:
        for pid, status in _reaped():
            if pid == self._server:
                self._has_ended = True
                self._tell(f"ended {os.waitstatus_to_exitcode(status)}")
        return _has_children() if self._adopts else _group_lives(self._server)

    def _listen(self) -> None:
        try:
            received = self._line.recv(16)
        except OSError:
            received = b""
        if TERMINATE in received:
            self._terminate()
        if not received:
            self._waiting.forget(self._line.fileno())
            self._end()

    def _terminate(self) -> None:
        self._was_asked = True
        self._signal_all(signal.SIGTERM)

    def _end(self) -> None:
        if self._kill_at is None:
            grace = 0.0 if self._was_asked else _GRACE_SECONDS
            self._terminate()
            self._kill_at = time.monotonic() + grace

    def _kill_when_due(self) -> None:
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._tries += 1
            self._signal_all(signal.SIGKILL)

    def _patience(self) -> float | None:
        if self._kill_at is None:
            return None
        if self._tries:
            return _AGAIN_SECONDS if self._tries < _IMPATIENT_TRIES else _PATIENT_SECONDS
        return max(0.0, self._kill_at - time.monotonic())

    def _signal_all(self, number: signal.Signals) -> None:
        if self._adopts:
            _signal_all(descendants(os.getpid()), number)
        else:
            _signal(-self._server, number)

    def _tell(self, what: str) -> None:
        with suppress(OSError):  # the other end is closed; `_listen` sees that
            self._line.sendall(what.encode() + b"\n", _NO_SIGPIPE)


def _started(
    command: list[str], env: dict[str, str], cwd: str, stdio: list[int]
) -> tuple[int, str]:
    """The server's process and what went wrong: the step and its errno, or nothing."""
    errors, error_pipe = os.pipe()  # closed by a successful exec
    reaper = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        return 0, f"start {error.errno}"
    if pid == 0:
        _become(command, env, cwd, stdio, error_pipe=error_pipe, reaper=reaper)
    os.close(error_pipe)
    with open(errors, "rb") as answer:
        failed = answer.read().decode()
    if failed:
        os.waitpid(pid, 0)
    return pid, failed


def _become(
    command: list[str],
    env: dict[str, str],
    cwd: str,
    stdio: list[int],
    *,
    error_pipe: int,
    reaper: int,
) -> None:
    """Turns this process, a fork of the reaper, into the server."""
    step = "start"
    try:
        os.setsid()
        _prctl(_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != reaper:  # it was killed before we asked to go with it
            os._exit(1)
        for at, descriptor in enumerate(stdio):
            os.dup2(descriptor, at)
        for each in (
            signal.SIGPIPE,
            signal.SIGXFSZ,
            signal.SIGINT,
            signal.SIGHUP,
        ):  # exec keeps what is ignored
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        step = "cwd"
        os.chdir(cwd)
        step = "exec"
        os.execvpe(command[0], command, env)  # noqa: S606 - the whole point
    except OSError as error:
        os.write(error_pipe, f"{step} {error.errno}".encode())
    except ValueError:
        os.write(error_pipe, f"{step} {errno.EINVAL}".encode())
    finally:
        os._exit(127)


class _Waiting:
    """For signals and for descriptors at once. Each process needs its own."""

    def __init__(self, *descriptors: int) -> None:
        self._signals, wakeup = os.pipe()
        for each in (self._signals, wakeup):
            os.set_blocking(each, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        for each in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(each, lambda *_: None)
        self._poll = select.poll()
        for each in (self._signals, *descriptors):
            if each >= 0:
                self._poll.register(each, select.POLLIN)

    def wait(self, seconds: float | None) -> tuple[set[int], set[int]]:
        """The descriptors that have something to say or ended, and the signals that came."""
        ready = {
            each
            for each, _ in self._poll.poll(None if seconds is None else max(0.0, seconds) * 1_000)
        }
        signals: set[int] = set()
        if self._signals in ready:
            with suppress(BlockingIOError):
                signals = set(os.read(self._signals, 1 << 12))
        return ready, signals

    def forget(self, descriptor: int) -> None:
        with suppress(KeyError):
            self._poll.unregister(descriptor)


def _adopt() -> bool:
    """Whether this process becomes the parent of whatever its descendants leave behind."""
    return _prctl(_SET_CHILD_SUBREAPER, 1)


def _life(pid: int) -> int:
    """A descriptor that tells when this process is dead, even if a fork of it holds its sockets; -1
    where there is none."""
    if sys.platform == "linux":
        with suppress(OSError):  # a kernel before 5.3, or a sandbox
            return os.pidfd_open(pid)
    return -1


def _reaped() -> Iterator[tuple[int, int]]:
    """Our children that ended, and how."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _signal_all(processes: dict[int, int], number: signal.Signals) -> None:
    """By their groups, which are all of our descendants: a group cannot outrun us, as a process can
    that forks and ends."""
    own = os.getpgrp()
    for target in {
        -group if group > 1 and group != own else pid for pid, group in processes.items()
    }:
        _signal(target, number)


def _signal(pid: int, number: signal.Signals) -> None:
    """To a process, or to the group of that number with a minus. One that is stopped goes on, to
    hear it."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
        os.kill(pid, signal.SIGCONT)


def _processes() -> Iterator[tuple[int, int, int]]:
    """Every process of this machine, with its parent and its group. A zombie may be all that is
    seen of a group that runs on."""
    with suppress(FileNotFoundError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                    _, parent, group = (
                        file.read().rpartition(b")")[2].split()[:3]
                    )  # a program's name may hold anything
                    yield int(name), int(parent), int(group)


def _prctl(option: int, value: int) -> bool:
    return sys.platform == "linux" and bool(_LIBC.prctl(option, ctypes.c_ulong(value)) == 0)


_LIBC = ctypes.CDLL(None)
_NO_SIGPIPE = getattr(socket, "MSG_NOSIGNAL", 0)


if __name__ == "__main__":
    main()
