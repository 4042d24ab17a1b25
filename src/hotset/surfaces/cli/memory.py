"""`hotset memory`: what was learned, for people to read, correct and take back."""

from __future__ import annotations

import click

from hotset.surfaces.cli.lazy import CommandEntry, LazyGroup

_COMMANDS = {
    "list": CommandEntry("memory_looking:list_", "What is remembered, newest first."),
    "show": CommandEntry("memory_looking:show", "One memory, with its versions, links and use."),
    "search": CommandEntry("memory_looking:search", "Find memories, and why each was chosen."),
    "timeline": CommandEntry(
        "memory_looking:timeline", "What was done and decided lately, in lines."
    ),
    "why": CommandEntry("memory_looking:why", "Where a memory comes from."),
    "graph": CommandEntry("memory_looking:graph", "How memories hang together."),
    "economics": CommandEntry(
        "memory_economics:economics", "What remembering costs and saves, in tokens."
    ),
    "add": CommandEntry("memory_keeping:add", "Remember something, in your own words."),
    "edit": CommandEntry("memory_keeping:edit", "Correct a memory; the old version stays."),
    "confirm": CommandEntry(
        "memory_keeping:confirm", "Let a memory count that waits for a person's yes."
    ),
    "forget": CommandEntry(
        "memory_keeping:forget", "Forget a memory; --erase removes it for good."
    ),
    "restore": CommandEntry("memory_keeping:restore", "Bring back what was forgotten."),
    "rollback": CommandEntry("memory_keeping:rollback", "Take back all that came from one place."),
    "consolidate": CommandEntry("memory_keeping:consolidate", "Find what memories have in common."),
    "undo": CommandEntry("memory_keeping:undo", "Take back what one piece of work changed."),
    "export": CommandEntry("memory_exchange:export", "Write memories as files."),
    "import": CommandEntry("memory_exchange:import_", "Read memories from files."),
}


@click.group(
    cls=LazyGroup,
    sections={"Commands": _COMMANDS},
    epilog="\b\nExamples:\n"
    "  hotset memory list --since yesterday\n"
    '  hotset memory search "how did we fix the flaky upload test"\n'
    '  hotset memory add "Releases are cut on Tuesdays"\n'
    "  hotset memory why sem-7ha2c0de\n"
    "  hotset memory forget sem-7ha2c0de",
)
def memory() -> None:
    """What was learned from this project's sessions: episodes, facts, procedures and pitfalls.

    Sessions that go through hotset become memories by themselves. Each can be read, corrected and
    deleted; a change is a new version, and the versions before stay until they are erased.
    """
