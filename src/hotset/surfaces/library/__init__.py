"""hotset inside a program: `hotset.open`, `hotset.wrap`, and windows. The walk is the proxy's
own."""

import logging
import threading

from hotset.surfaces.library.agent import AgentWindow, AsyncAgentWindow
from hotset.surfaces.library.api import AsyncMemory, Memory, open, wrap  # noqa: A004 - `hotset.open`, like `gzip.open`
from hotset.surfaces.library.window import AsyncWindow, ToolCall, Window, WindowReply

_log = logging.getLogger("hotset")
_log.addHandler(
    logging.NullHandler()
)  # without it, Python writes warnings on stderr where a program set up no logging


def _keep_threads_quiet() -> None:
    """A thread of ours that dies tells the log; Python would write its traceback, which may quote
    content, on stderr."""
    before = threading.excepthook

    def log_death(args: threading.ExceptHookArgs) -> None:
        if args.thread is None or not args.thread.name.startswith("hotset-"):
            before(args)
        elif args.exc_type is not SystemExit:
            shown = _log.isEnabledFor(logging.DEBUG) and args.exc_value is not None
            _log.error(
                "%s ended: %s",
                args.thread.name,
                args.exc_type.__name__,
                exc_info=args.exc_value if shown else None,
            )

    threading.excepthook = log_death


_keep_threads_quiet()

__all__ = [
    "AgentWindow",
    "AsyncAgentWindow",
    "AsyncMemory",
    "AsyncWindow",
    "Memory",
    "ToolCall",
    "Window",
    "WindowReply",
    "open",
    "wrap",
]
