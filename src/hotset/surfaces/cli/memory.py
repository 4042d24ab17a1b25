"""`hotset memory`: what was learned, for people to read, correct and take back."""

from __future__ import annotations

from importlib import import_module

import click

_COMMANDS = {
    "list": ("memory_looking:list_", "What is remembered, newest first."),
    "show": ("memory_looking:show", "One memory, with its versions, links and use."),
    "search": ("memory_looking:search", "Find memories, and why each was chosen."),
    "timeline": ("memory_looking:timeline", "What was done and decided lately, in lines."),
    "why": ("memory_looking:why", "Where a memory comes from."),
    "graph": ("memory_looking:graph", "How memories hang together."),
    "economics": ("memory_economics:economics", "What remembering costs and saves, in tokens."),
    "add": ("memory_keeping:add", "Remember something, in your own words."),
    "edit": ("memory_keeping:edit", "Correct a memory; the old version stays."),
    "confirm": ("memory_keeping:confirm", "Let a memory count that waits for a person's yes."),
    "forget": ("memory_keeping:forget", "Forget a memory; --erase removes it for good."),
    "restore": ("memory_keeping:restore", "Bring back what was forgotten."),
    "rollback": ("memory_keeping:rollback", "Take back all that came from one place."),
    "consolidate": ("memory_keeping:consolidate", "Find what memories have in common."),
    "undo": ("memory_keeping:undo", "Take back what one piece of work changed."),
    "export": ("memory_exchange:export", "Write memories as files."),
    "import": ("memory_exchange:import_", "Read memories from files."),
}


class _Commands(click.Group):
    """Shows its help without loading any of them."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[name][0].split(":")
        command: click.Command = getattr(import_module(f"hotset.surfaces.cli.{module}"), attribute)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (_, short) in _COMMANDS.items()])


@click.group(
    cls=_Commands,
    epilog="\b\nExamples:\n"
    "  hotset memory list --since yesterday\n"
    '  hotset memory search "how did we fix the flaky upload test"\n'
    '  hotset memory add "Releases are cut on Tuesdays"\n'
    "  hotset memory why sem-7ha2c0de\n"
    "  hotset memory forget sem-7ha2c0de",
)
def memory() -> None:
    """What was learned from this project's sessions: episodes, facts, procedures and pitfalls.

    Sessions that go through hotset become memories by themselves. Each can be read, corrected and deleted; a change is a new
    version, and the versions before stay until they are erased.
    """
