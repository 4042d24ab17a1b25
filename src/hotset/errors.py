"""Every error hotset raises, and what the person who meets it can do.

HotsetError
├── BadInput            what was given cannot be used; nothing was changed
│   ├── Malformed       a body that no dialect can read
│   ├── BadRow          a row of an import that cannot be
│   ├── BadConfig       a setting that cannot be used
│   ├── NotFound        no such session, page, turn or tool
│   ├── ToolRefused     a tool that may not be called now
│   ├── Conflict        it was changed meanwhile
│   └── MemoryClosed    a memory was used after its end
├── StoreFailed         the store could not do it; nothing was half written
│   ├── StoreTooNew     written by a newer hotset
│   ├── StoreBusy       another process held the store for too long
│   ├── StoreMoved      its file was removed, moved or replaced while it was open
│   ├── DiskFull        no room left, also after the ballast was dropped
│   └── PageDamaged     bytes on disk are not the bytes that were kept
├── ToolFailed          a tool could not be started, or did not answer
└── UpstreamFailed      the provider could not be reached or broke off
"""

from __future__ import annotations


class HotsetError(Exception):
    """The root: catch this to catch everything that hotset raises on purpose."""


class BadInput(HotsetError):
    """What was given cannot be used; nothing was changed."""


class Malformed(BadInput):
    """A request or reply body that no dialect can read."""


class BadRow(BadInput):
    """A row of an import that cannot be used; nothing was changed."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(f"row {row}: {why}; nothing was changed")
        self.row = row
        self.why = why


class BadConfig(BadInput):
    """A setting that cannot be used; the message names it and where it was set."""


class NotFound(BadInput):
    """No such session, page, turn, reference or tool."""


class ToolRefused(BadInput):
    """A tool that may not be called now: it changed, it was not allowed, or its arguments are
    wrong."""


class Conflict(BadInput):
    """Another writer changed it meanwhile: read it again, then retry. Nothing was changed."""


class MemoryClosed(BadInput):
    """A memory was used after it was closed, or in a process into which it was forked."""


class StoreFailed(HotsetError):
    """The store could not do what was asked; nothing was half written."""


class StoreTooNew(StoreFailed):
    """The store was written by a newer hotset than this one."""


class StoreBusy(StoreFailed):
    """Another process held the store for longer than we are willing to wait."""


class StoreMoved(StoreFailed):
    """The store's file was removed, moved or replaced while it was open: open it anew."""


class DiskFull(StoreFailed):
    """No room is left on the disk, also after the ballast was dropped."""


class PageDamaged(StoreFailed):
    """The bytes on disk are not the bytes that were kept."""


class ToolFailed(HotsetError):
    """A tool could not be started, or did not answer. The message says what a model can do
    instead."""


class UpstreamFailed(HotsetError):
    """The provider could not be reached, or broke off before its reply was whole."""
