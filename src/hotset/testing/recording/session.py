"""The recorded session: the story, played against the fictional project's files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from hotset.testing.recording.bulk import BULK
from hotset.testing.recording.nouns import Prompt, Recording, Reply, Result, Step
from hotset.testing.recording.story import STORY, SYSTEM, TOOLS
from hotset.testing.recording.story.beat import Use
from hotset.testing.recording.workspace import Workspace
from hotset.testing.upstream.script import Call


@cache
def session() -> Recording:
    """An agent fixes two bugs in a small service: some fifty model calls, 400 KB of tool output, always the same bytes."""
    return Recording(SYSTEM, TOOLS, tuple(_steps()))


def _steps() -> Iterator[Step]:
    workspace = Workspace()
    for number, beat in enumerate(STORY):
        if beat.prompt:
            yield Prompt(beat.prompt)
        calls = tuple(Call(use.tool, use.arguments, _call_id(number, place)) for place, use in enumerate(beat.uses))
        yield Reply(beat.text, calls)
        for call, use in zip(calls, beat.uses, strict=True):
            yield Result(call.id, use.tool, _output(workspace, use))


def _output(workspace: Workspace, use: Use) -> str:
    if not use.output:
        return workspace.run(use.tool, use.arguments)
    if use.output in BULK:
        return BULK[use.output]()
    return _stored(use.output)


def _stored(name: str) -> str:
    """An output that was kept when the story was played: what pytest really said about the files as they were at that point."""
    return (files("hotset.testing.recording") / "outputs" / f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")


def _call_id(number: int, place: int) -> str:
    return hashlib.sha256(f"recorded/{number}/{place}".encode()).hexdigest()[:24]
