"""The toolbox as commands open it, with the store beside it where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hotset.config import Config
from hotset.surfaces.cli.options import Chosen
from hotset.surfaces.cli.terminal import counting, say

if TYPE_CHECKING:
    from hotset.sources.tools import Toolbox

PATIENCE = 60.0
"""Seconds for servers that a person has just added: a first start may fetch packages."""


@contextmanager
def looking(config: Config) -> Iterator[Toolbox]:
    """For a command that looks: where nothing is kept yet, nothing is made."""
    from hotset.runtime.reader import empty_where_missing, open_toolbox  # noqa: PLC0415 - with the store

    with (
        empty_where_missing(config, is_there=config.folder.exists()) as there,
        open_toolbox(there) as toolbox,
    ):
        yield toolbox


@contextmanager
def opened(config: Config) -> Iterator[Toolbox]:
    """For a command that changes something, or calls one tool. Every use is in the audit."""
    from hotset.runtime.reader import open_toolbox  # noqa: PLC0415

    with open_toolbox(config) as toolbox:
        yield toolbox


def stock(toolbox: Toolbox, chosen: Chosen, seconds: float | None = None) -> None:
    """Asks servers that are new for their tools, and tells which of them did not answer."""
    patience = chosen.config().tooling.list_seconds if seconds is None else seconds
    waiting = len(toolbox.unlisted())
    if waiting:
        with counting("asking servers for their tools", waiting, quiet=chosen.quiet) as counter:
            toolbox.stock(patience, lambda _: counter.step())
    else:
        toolbox.stock(0.0)
    for trouble in toolbox.troubles():
        say(f"hotset: {trouble}", quiet=chosen.quiet)
