"""`hotset continuity`: CONTINUITY.md, the project's working memory in a file that people and agents
read and edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hotset.errors import BadInput
from hotset.nouns.memory import MemoryId, Standing
from hotset.sources.memory import ids_in
from hotset.surfaces.cli.exit import FOUND, OK
from hotset.surfaces.cli.memories import (
    encode_new,
    no_encode,
    open_project_memories,
    open_updated_memories,
)
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.terminal import emit, emit_json, plain

if TYPE_CHECKING:
    from hotset.sources.memory import ProjectMemories


@click.group(
    epilog=examples(
        "hotset continuity on",
        "hotset continuity show",
        "hotset continuity write",
        "hotset continuity off",
    )
)
def continuity() -> None:
    """CONTINUITY.md: the state of the work, decisions, blockers and pitfalls, with the ids of their
    memories.

    Off by default, because it writes a file into the project. What you write there is never
    overwritten.
    """


@continuity.command(epilog=examples("hotset continuity on"))
@project_options
def on(chosen: ProjectOptions) -> None:
    """Keep CONTINUITY.md: read it when a session begins, write it when one ends."""
    with open_project_memories(chosen, makes=True) as memories:
        memories.continuity.switch(on=True)
        encode_new(memories, chosen)
        path = memories.write_continuity()
    emit(str(path))
    chosen.say("it is read when a session begins and written when one ends; what you edit stays")
    chosen.say(f"to stop: {chosen.hint('continuity off')}")


@continuity.command(epilog=examples("hotset continuity off"))
@project_options
def off(chosen: ProjectOptions) -> None:
    """Stop writing CONTINUITY.md. The file stays as it is."""
    with open_project_memories(chosen, makes=True) as memories:
        was_on = memories.continuity.is_on
        memories.continuity.switch(on=False)
    chosen.say(
        "CONTINUITY.md is no longer written; the file stays" if was_on else "it was off already"
    )


@continuity.command(epilog=examples("hotset continuity show", "hotset continuity show --json"))
@project_options
@as_json
def show(chosen: ProjectOptions, *, as_json: bool) -> None:
    """Show the file, and which of the memories in it no longer hold."""
    with open_project_memories(chosen, lists=True) as memories:
        is_on, text = memories.continuity.is_on, memories.continuity.text()
        named = {id: _standing(memories, id) for id in ids_in(text or "")}
    if as_json:
        emit_json(
            {
                "on": is_on,
                "text": text,
                "memories": [{"id": id, "standing": standing} for id, standing in named.items()],
            }
        )
    elif text is not None:
        emit(plain(text).rstrip("\n"))
    for id, standing in named.items():
        if standing is not Standing.ACTIVE:
            chosen.say(f"[{id}] {'is not there' if standing is None else f'is {standing}'}")
    if text is None:
        chosen.say(f"there is no CONTINUITY.md; to keep one: {chosen.hint('continuity on')}")
    elif not is_on:
        chosen.say(f"\nit is not kept up to date; to keep it: {chosen.hint('continuity on')}")


@continuity.command(epilog=examples("hotset continuity accept"))
@project_options
def accept(chosen: ProjectOptions) -> int:
    """Accept the file as it is now: agents read it as the project's own words, until it changes."""
    with open_project_memories(chosen, makes=True) as memories:
        is_there = memories.continuity.accept()
    if not is_there:
        chosen.say(f"there is no CONTINUITY.md; to keep one: {chosen.hint('continuity on')}")
        return FOUND
    chosen.say("accepted, as it is now")
    return OK


@continuity.command(epilog=examples("hotset continuity write"))
@project_options
@no_encode
def write(chosen: ProjectOptions, *, no_encode: bool) -> None:
    """Write CONTINUITY.md now."""
    with open_updated_memories(chosen, no_encode=no_encode, makes=True) as memories:
        path = memories.write_continuity()
    emit(str(path))


def _standing(memories: ProjectMemories, id: MemoryId) -> Standing | None:
    try:
        return memories.get(id).standing
    except BadInput:  # unknown, or ambiguous
        return None
