"""Messages as lines of standard input and output, until the client closes its end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO

from hotset.surfaces.mcp.protocol import INVALID_REQUEST, failure

_LONGEST = 4 << 20  # bytes of a message; a question is a few hundred
_TOO_LONG = f"a message may have {_LONGEST:,} bytes"


def serve(answer: Callable[[bytes], bytes | None]) -> None:
    """Answers what comes in on stdin. Whatever else in this process prints goes to stderr: stdout is the protocol's."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        try:
            for line in lines(sys.stdin.buffer):
                said = failure(None, INVALID_REQUEST, _TOO_LONG) if line is None else answer(line)
                if said is not None:
                    out.write(said + b"\n")
                    out.flush()
        except BrokenPipeError:  # the client is gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())


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
