"""Memories as commands open them, brought up to what was said since; and how far a longer piece of
work is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from hotset.errors import HotsetError, NotFound
from hotset.nouns.progress import Progress, silent
from hotset.runtime.reader import (
    empty_where_missing,
    find_session,
    has_store,
    open_existing,
    open_memories,
)
from hotset.surfaces.cli.options import Chosen
from hotset.surfaces.cli.terminal import console, say

if TYPE_CHECKING:
    from hotset.sources.memory import MemorySource

_FOLLOW_SECONDS = (
    30.0  # for what was kept since the last search: as a rule nothing, the first time everything
)

no_encode = click.option(
    "--no-encode", is_flag=True, help="Do not look at sessions that went on since."
)


def as_text(typed: str) -> str:
    """What was typed, with a sign in the place of bytes that are no text: no store takes those."""
    return typed.encode("utf-8", "replace").decode()


@contextmanager
def opened(chosen: Chosen, *, makes: bool = False, lists: bool = False) -> Iterator[MemorySource]:
    """The project's memories. Looking must not make a store: a project without one is told so,
    unless something is kept now.

    A list of a project without one is an empty list.
    """
    config = chosen.config()
    if lists:
        is_there = has_store(config.folder)
        with (
            empty_where_missing(config, is_there=is_there) as there,
            open_memories(there) as memories,
        ):
            yield memories
        return
    if not makes and not has_store(config.folder):
        raise NotFound(
            f"nothing is remembered yet for {config.project}; sessions have to go through "
            f"hotset ({chosen.hint('wrap AGENT')}), "
            f"or say something yourself: {chosen.hint('memory add TEXT')}"
        )
    with open_memories(config) as memories:
        yield memories


@contextmanager
def looking(chosen: Chosen, *, no_encode: bool, lists: bool = False) -> Iterator[MemorySource]:
    """The same, for a command that reads: sessions that went on become memories first."""
    with opened(chosen, lists=lists) as memories:
        if not no_encode:
            catch_up(memories, chosen)
        yield memories


def session_named(chosen: Chosen, typed: str) -> str:
    """A session by its id, the beginning of one, or `last`; one that is no conversation, as an
    agent's over MCP, as typed."""
    if not typed:
        return ""
    with open_existing(chosen.config()) as store, suppress(NotFound):
        return find_session(store, typed).id
    return typed


def catch_up(memories: MemorySource, chosen: Chosen) -> None:
    """What fails here costs the latest, not the look."""
    try:
        with progress(chosen) as moved:
            memories.encode(moved)
    except HotsetError as error:
        say(f"hotset: what was said last may be missing: {error}", quiet=chosen.quiet)


def index_up(memories: MemorySource, chosen: Chosen) -> None:
    """Brings what was remembered and said since into the index. What fails here costs the latest,
    not the search."""
    try:
        with progress(chosen) as moved:
            memories.follow(moved, _FOLLOW_SECONDS)
    except HotsetError as error:
        say(f"hotset: what was remembered last may be missing: {error}", quiet=chosen.quiet)


@contextmanager
def progress(chosen: Chosen) -> Iterator[Progress]:
    """A bar on stderr that appears with the first move, where a person watches; otherwise
    nothing."""
    if chosen.quiet or not sys.stderr.isatty():
        yield silent
        return
    from rich import progress as bars  # noqa: PLC0415

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=console(stderr=True), transient=True) as bar:
        tasks: dict[str, bars.TaskID] = {}

        def moved(what: str, done: int, of: int) -> None:
            if what not in tasks:
                for task in tasks.values():
                    bar.remove_task(task)
                tasks.clear()
                tasks[what] = bar.add_task(what)
            bar.update(tasks[what], completed=done, total=of or None)

        yield moved
