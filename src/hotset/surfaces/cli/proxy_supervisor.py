"""The proxy of a wrapped agent: finds or starts it, and restarts it at the same address if it ends
before the agent does.

A proxy that `hotset wrap` started lives as long as any wrap holds a *lease* on it: its stdin is a
named pipe, which each wrap that uses the proxy keeps open for writing. However a wrap ends, also by
kill -9, the system closes its end; when the last one is closed the proxy reads the end of its stdin
and stops.
"""

from __future__ import annotations

import os
import secrets
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from hotset import __version__
from hotset.config import Config
from hotset.errors import HotsetError
from hotset.files.child_process import ChildProcess, TimeoutExpired
from hotset.files.private_folder import private_folder
from hotset.files.scope import PROCESS
from hotset.surfaces.proxy.address import HOST, Address, find_proxy, read_note
from hotset.typed import decode

_START_SECONDS = 20.0
_STOP_SECONDS = 1.0
_POLL_SECONDS = 0.02
_WATCH_SECONDS = 0.2
_CONNECT_SECONDS = 5.0
_PAUSES = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each restart: a proxy that keeps ending is given up after as many."""

_CALM_SECONDS = 60.0
"""After so many seconds of service the count of restarts begins anew."""

_LOG_FILE = "wrap.log"
_LOG_MOST = 1 << 20

_LEASE_PREFIX = "wrapped-"


def running_proxy(config: Config) -> Address | None:
    """The proxy that serves this project now."""
    address, status = find_proxy(config)
    return address if status is not None else None


class ProxySupervisor:
    """Holds a proxy while its block runs. A proxy that it started ends with the block, however that
    ends."""

    def __init__(
        self,
        config: Config,
        flags: Sequence[str],
        found: Address | None,
        failed: Callable[[str], None],
    ) -> None:
        """`flags` are those of `hotset up`; `found` serves already; `failed` is called at once when
        no proxy serves any more."""
        self._config, self._flags, self._failed = config, flags, failed
        self._found = found
        self._hold = ExitStack()
        self._child: ChildProcess | None = None
        """None where another process started it."""
        self._over = threading.Event()
        self._watcher = PROCESS.new_thread(self._watch, "supervisor")
        self._tries = 0
        self._since = 0.0
        self.address: Address
        self.restarts = 0
        self.lost = False
        """True if no proxy serves, and none could be started so far."""

    @property
    def log(self) -> Path:
        return self._config.folder / _LOG_FILE

    def __enter__(self) -> Self:
        """Finds or starts the proxy. Raises `HotsetError` if none can be started."""
        if self._found is not None:
            self._join(self._found)
        else:
            self._start(())
        self._watcher.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._watcher.join()
        self._hold.close()
        if self._child is not None:
            # We gave up our lease, so it stops now, unless another wrap holds one: then we do not
            # wait for it.
            with suppress(TimeoutExpired):
                self._child.wait(_STOP_SECONDS)
                clear_leases(self._config.folder)

    def _watch(self) -> None:
        while not self._over.wait(_WATCH_SECONDS):
            if not self._serves() and not self._recover():
                return

    def _serves(self) -> bool:
        if self._child is not None:
            return self._child.poll() is None
        try:  # a busy proxy takes its time to answer, but is connected to at once
            socket.create_connection((HOST, self.address.port), _CONNECT_SECONDS).close()
        except ConnectionRefusedError:
            return False
        except OSError:
            return True
        return True

    def _recover(self) -> bool:
        """Makes a proxy serve at the same address again; False if the block is over, or if it gave
        up."""
        if time.monotonic() - self._since > _CALM_SECONDS:
            self._tries = 0
        why = "it keeps ending"
        while self._tries < len(_PAUSES):
            pause = _PAUSES[self._tries]
            self._tries += 1
            if self._over.wait(pause):
                return False
            try:
                self._serve_again()
            except (HotsetError, OSError) as error:
                if self._over.is_set():
                    return False
                why = str(error)
                if self._tries == 2:  # the first failure may be another wrap that was quicker
                    self.lost = True
                    self._failed(
                        f"the proxy ended and could not be started again: {why}; trying on"
                    )
            else:
                self.restarts, self.lost = self.restarts + 1, False
                return True
        self.lost = True
        self._failed(
            f"the proxy ended and could not be started again: {why}. The agent's calls fail "
            f"until you run: "
            f"hotset up --port {self.address.port}"
        )
        return False

    def _serve_again(self) -> None:
        """Starts a proxy at the same address, or finds another wrap's. Raises `HotsetError`."""
        serving = running_proxy(self._config)
        if serving is not None and serving.root == self.address.root:
            self._join(serving)  # another wrap was quicker
        else:
            self._start(("--port", str(self.address.port)))

    def _join(self, address: Address) -> None:
        hold = ExitStack()
        hold.enter_context(join_lease(self._config.folder, address.pid))
        self._take_over(hold, None, address)

    def _start(self, where: Sequence[str]) -> None:
        folder = private_folder(self._config.folder)
        ready = folder / f".ready-{os.getpid()}.json"
        ready.unlink(missing_ok=True)
        with ExitStack() as hold:
            stdin, pipe = hold.enter_context(grant_lease(folder))
            try:
                proxy = self._spawn(ready, stdin, where)
            finally:
                os.close(stdin)
            name_lease(pipe, proxy.pid)
            try:
                address = self._await_address(proxy, ready)
            except BaseException:
                proxy.terminate()
                proxy.wait()
                raise
            self._take_over(hold.pop_all(), proxy, address)

    def _take_over(self, hold: ExitStack, child: ChildProcess | None, address: Address) -> None:
        self._hold.close()
        self._hold, self._child, self.address, self._since = hold, child, address, time.monotonic()

    def _spawn(self, ready: Path, stdin: int, where: Sequence[str]) -> ChildProcess:
        fresh = os.O_TRUNC if self.log.exists() and self.log.stat().st_size > _LOG_MOST else 0
        out = os.open(
            self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | fresh, 0o600
        )
        try:
            return ChildProcess(
                # -P: we run in the project's folder, and modules in it must not be imported.
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "hotset",
                    "up",
                    "--while-stdin",
                    "--ready-file",
                    str(ready),
                    *where,
                    *self._flags,
                ],
                stdin=stdin,
                stdout=out,
                stderr=out,
                start_new_session=True,  # Ctrl-C is for the agent
            )
        finally:
            os.close(out)

    def _await_address(self, proxy: ChildProcess, ready: Path) -> Address:
        """The address of the proxy, once it serves. Raises `HotsetError`."""
        seconds = _START_SECONDS * self._config.patience
        deadline = time.monotonic() + seconds
        while not ready.exists():
            if proxy.poll() is not None:
                raise HotsetError(
                    f"the proxy did not start: {_last_line(self.log)} (all of it: {self.log})"
                )
            if time.monotonic() > deadline or self._over.wait(_POLL_SECONDS):
                raise HotsetError(
                    f"the proxy did not answer within {seconds:.0f} s; see {self.log}"
                )
        announced = urlsplit(
            str(decode(ready.read_bytes(), dict[str, str | int])["anthropic_base_url"])
        )
        ready.unlink()
        note = read_note(self._config.folder)
        if note is not None and note.pid == proxy.pid:
            return note
        # Another proxy of the project left its note since: ours still serves, but cannot be
        # found by the note.
        return Address(
            announced.port or 0, announced.path.strip("/"), proxy.pid, "", __version__, time.time()
        )


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("hotset: ") if lines else "it wrote no message"


@contextmanager
def grant_lease(folder: Path) -> Iterator[tuple[int, Path]]:
    """A new lease: the end that a proxy gets as its stdin, and its temporary path. We hold it until
    the block ends."""
    clear_leases(folder)
    path = folder / f"{_LEASE_PREFIX}{secrets.token_hex(8)}"
    os.mkfifo(path, 0o600)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reading, True)
    holding = os.open(path, os.O_WRONLY)
    try:
        yield reading, path
    finally:
        os.close(holding)


def name_lease(path: Path, pid: int) -> None:
    """Renames the lease to the proxy's process id, where another wrap finds it."""
    path.rename(_lease_path(path.parent, pid))


@contextmanager
def join_lease(folder: Path, pid: int) -> Iterator[bool]:
    """Takes a lease on another wrap's proxy; False if it was not started by a wrap and needs
    none."""
    try:
        holding = os.open(_lease_path(folder, pid), os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # no such pipe, or no process reads it
        yield False
        return
    try:
        yield True
    finally:
        os.close(holding)


def end_lease(folder: Path, pid: int) -> None:
    """Removes the pipe of a proxy whose last lease ended; the proxy itself calls this before it
    stops."""
    _lease_path(folder, pid).unlink(missing_ok=True)


def clear_leases(folder: Path) -> None:
    """Removes pipes without a reader, left by proxies that are gone."""
    for path in folder.glob(f"{_LEASE_PREFIX}*"):
        with suppress(OSError):
            if stat.S_ISFIFO(path.lstat().st_mode) and not _is_read(path):
                path.unlink()


def _is_read(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def _lease_path(folder: Path, pid: int) -> Path:
    return folder / f"{_LEASE_PREFIX}{pid}"
