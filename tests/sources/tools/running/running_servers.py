"""Servers of every kind, well behaved and not: `python -I -S running_servers.py KIND FOLDER`. Each
leaves its pids in FOLDER."""

from __future__ import annotations

import os
import signal
import sys
import time


def echo() -> None:
    """Says what it hears."""
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def deaf() -> None:
    """Ignores the end of its stdin and SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _ready()
    while True:
        time.sleep(60)


def polite(*, stopped: bool = False) -> None:
    """Does not hear the end of its stdin; at SIGTERM it puts its things in order."""

    def tidy(*_: object) -> None:
        _leave("tidied")
        sys.exit(7)

    signal.signal(signal.SIGTERM, tidy)
    _ready()
    if stopped:
        os.kill(os.getpid(), signal.SIGSTOP)
    while True:
        time.sleep(60)


def asleep() -> None:
    """The same, stopped as by Ctrl-Z."""
    polite(stopped=True)


def daemon() -> None:
    """Leaves a process that is nobody's child, has a session of its own, and ignores SIGTERM."""
    waiting, there = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            _stay(there)
        os._exit(0)
    os.close(there)
    os.wait()
    os.read(waiting, 1)
    echo()


def family() -> None:
    """Has children and grandchildren in groups of their own, some of which are stopped."""
    waiting, there = os.pipe()
    for _ in range(2):
        if os.fork() == 0:
            os.setpgid(0, 0)
            if os.fork() == 0:
                _stay(there, stopped=True)
            _stay(there)
    os.close(there)
    os.read(waiting, 1)
    echo()


def hopper() -> None:
    """Is another process every moment: each forks the next and ends."""
    if os.fork() == 0:
        os.setsid()
        while True:
            time.sleep(0.002)
            if os.fork() != 0:
                os._exit(0)
    echo()


def stopped() -> None:
    """Stops itself as by Ctrl-Z."""
    _ready()
    os.kill(os.getpid(), signal.SIGSTOP)
    echo()


def chatty() -> None:
    """Fills stderr before it listens, and between the lines."""
    for number in range(40_000):
        sys.stderr.write(f"line {number} of what nobody asked for\n")
    sys.stderr.flush()
    echo()


def banner() -> None:
    """Prints what is no message, as servers do that were not written for it."""
    sys.stdout.write('\x1b[32mready\x1b[0m\n[INFO] listening\n\n  {"first": 1}\n')
    sys.stdout.flush()
    echo()


def endless() -> None:
    """Never ends its line."""
    while True:
        sys.stdout.write("x" * (1 << 20))


def flood() -> None:
    """Writes messages as fast as it can, without reading."""
    for number in range(20_000):
        sys.stdout.write('{"number": %d, "filler": "%s"}\n' % (number, "x" * 200))  # noqa: UP031
    sys.stdout.flush()


def crash() -> None:
    """Answers once and dies of a signal."""
    sys.stderr.write("something broke\n")
    sys.stderr.flush()
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGSEGV)


def _stay(there: int, *, stopped: bool = False) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _leave_pid()
    os.close(there)
    if stopped:
        os.kill(os.getpid(), signal.SIGSTOP)
    while True:
        time.sleep(60)


def _ready() -> None:
    sys.stdout.write('{"ready": true}\n')
    sys.stdout.flush()


def _leave_pid() -> None:
    _leave(str(os.getpid()))


def _leave(name: str) -> None:
    with open(os.path.join(sys.argv[2], name), "w"):  # noqa: PTH118, PTH123
        pass


if __name__ == "__main__":
    _leave_pid()
    globals()[sys.argv[1]]()
