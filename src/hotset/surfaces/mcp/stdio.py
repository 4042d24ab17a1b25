"""Messages as lines of standard input and output, until the client closes its end."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

from hotset.surfaces.mcp.protocol import INVALID_REQUEST, failure

_LONGEST = 4 << 20  # bytes of a message; a question is a few hundred
_TOO_LONG = f"a message may have {_LONGEST:,} bytes"


_AT_ONCE = 8  # answers that are waited for at the same time


def serve(
    answer: Callable[[bytes], bytes | None], waits: Callable[[bytes], bool] = lambda _: False
) -> None:
    """Answers what comes in on stdin. Whatever else in this process prints goes to stderr: stdout
    is the protocol's.

    What waits for somebody else is answered beside the rest, in its own time.
    """
    beside = ThreadPoolExecutor(_AT_ONCE, "hotset-mcp")
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        writing = threading.Lock()

        def say(said: bytes | None) -> None:
            if said is not None:
                with writing:
                    out.write(said + b"\n")
                    out.flush()

        def say_later(line: bytes) -> None:
            with contextlib.suppress(
                BrokenPipeError, ValueError
            ):  # the client is gone, and what it was to hear is closed
                say(answer(line))

        try:
            for line in lines(sys.stdin.buffer):
                if line is None:
                    say(failure(None, INVALID_REQUEST, _TOO_LONG))
                elif waits(line):
                    beside.submit(say_later, line)
                else:
                    say(answer(line))
        except BrokenPipeError:  # the client is gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        beside.shutdown(
            wait=False, cancel_futures=True
        )  # whoever waits still is told by the toolbox's end


def lines(source: BinaryIO) -> Iterator[bytes | None]:
    """Each message; None stands for one that is too long, of which nothing is kept."""
    skipping = False
    while piece := source.readline(_LONGEST):
        ended = piece.endswith(b"\n")
        if skipping:
            skipping = not ended
        elif not ended and len(piece) == _LONGEST:
            skipping = True
            yield None
        elif piece.strip():
            yield piece
