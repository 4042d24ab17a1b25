"""Exit codes and error messages: 0 for success, 1 for a finding, 2 for a failure; a sentence, never
a traceback."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType

import click

from hotset.errors import HotsetError, NotFound

OK, FOUND, FAILED = 0, 1, 2
INTERRUPTED = 130
_SOON = 0.3  # seconds until the code that cannot raise it is left, also on a busy machine


def run(command: click.Command, arguments: Sequence[str]) -> int:
    """Runs `hotset ARGUMENTS` and returns its exit code."""
    try:
        code = command.main(list(arguments), prog_name="hotset", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return discard_output()
    except click.UsageError as error:
        error.show()
        return FAILED
    except (click.ClickException, click.Abort, HotsetError, OSError) as error:
        from hotset.surfaces.cli.terminal import say  # noqa: PLC0415 - not for a help page

        sentence, code = _sentence_and_code(error)
        say(f"hotset: {sentence}")
    return code if isinstance(code, int) else OK


def discard_output() -> int:
    """Drops further output, because its reader has closed it; otherwise Python would complain when
    it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OK


@contextmanager
def signals_to(
    handler: Callable[[int, FrameType | None], None], *numbers: signal.Signals
) -> Iterator[None]:
    """Sends signals to `handler` while the block runs."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, disposition in before.items():
            signal.signal(number, disposition)


def interrupt_again(lost: sys.UnraisableHookArgs) -> None:
    """Raises Ctrl-C again where Python could not, such as in a generator that is being collected;
    it would be lost."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    from hotset.files.scope import PROCESS  # noqa: PLC0415 - not for a help page

    PROCESS.timer(_SOON, partial(os.kill, os.getpid(), signal.SIGINT))


def _sentence_and_code(error: Exception) -> tuple[str, int]:
    match error:
        case click.Abort():
            return "stopped", INTERRUPTED
        case click.ClickException():
            return error.format_message(), FAILED
        case NotFound():
            return str(error), FOUND
        case OSError():
            return (
                f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}",
                FAILED,
            )
        case _:
            return str(error), FAILED
