"""The commands: what each is called, what it is for in a few words, and the module that is loaded
when it is asked for."""

from __future__ import annotations

import os
from typing import Any

import click

import hotset as package
from hotset.surfaces.cli.ending import nobody_reads
from hotset.surfaces.cli.lazy import CommandEntry, LazyGroup

GROUPS: dict[str, dict[str, CommandEntry]] = {
    "Serve": {
        "up": CommandEntry("up:up", "Serve the proxy for this project until Ctrl-C."),
        "wrap": CommandEntry("wrap:wrap", "Run an agent through the proxy: hotset wrap codex"),
        "mcp": CommandEntry("mcp:mcp", "Give an agent tools, code and history, over MCP."),
        "demo": CommandEntry("demo:demo", "See it work on a recorded session; no key, no network."),
    },
    "Find": {
        "search": CommandEntry("search:search", "Search conversations and the project's code."),
        "index": CommandEntry("index:index", "Index the project's files, with your consent."),
    },
    "Tools": {
        "tools": CommandEntry(
            "tools:tools", "The tools behind find_tools: list, find, use, import ..."
        ),
        "connect": CommandEntry(
            "connect:connect", "Put hotset among the MCP servers of another program."
        ),
        "disconnect": CommandEntry("connect:disconnect", "Take it out again."),
    },
    "Memory": {
        "memory": CommandEntry(
            "memory:memory", "What was learned: list, search, add, edit, forget ..."
        ),
        "continuity": CommandEntry(
            "continuity:continuity", "CONTINUITY.md: where the work stands, in a file."
        ),
    },
    "Look": {
        "status": CommandEntry("status:status", "Is a proxy serving, and what is kept."),
        "doctor": CommandEntry("doctor:doctor", "Find out why nothing is kept, and what to do."),
        "sessions": CommandEntry(
            "sessions:sessions", "The sessions of this project, last used first."
        ),
        "show": CommandEntry("show:show", "One session, turn by turn."),
        "savings": CommandEntry("savings:savings", "What was saved, in tokens and money."),
        "diff": CommandEntry("diff:diff", "One turn: what was sent instead of what came."),
        "recall": CommandEntry("recall:recall", "The exact bytes of one page."),
        "replay": CommandEntry(
            "replay:replay", "What hotset would have saved on recorded sessions."
        ),
    },
    "Care": {
        "verify": CommandEntry("verify:verify", "Check every byte that is kept."),
        "repair": CommandEntry("repair:repair", "Save what can be saved from a damaged store."),
        "export": CommandEntry("exchange:export", "Write sessions to a file of JSON lines."),
        "import": CommandEntry("exchange:import_", "Take in what export wrote."),
    },
    "About": {
        "rows": CommandEntry("rows:rows", "What hotset promises, and what of it works today."),
    },
}


_OF_COMMANDS = ("memory", "tools", "continuity")


class Tree(LazyGroup):
    def near(self, ctx: click.Context, typed: str) -> list[str]:
        """Those of a group, too: `timeline` may be `memory timeline`."""
        groups = ((name, self.get_command(ctx, name)) for name in _OF_COMMANDS)
        inside = [
            f"{name} {typed}"
            for name, each in groups
            if isinstance(each, click.Group) and typed in each.list_commands(ctx)
        ]
        return inside or super().near(ctx, typed)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would call it a failure
            return nobody_reads()


@click.group(
    cls=Tree,
    sections=GROUPS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Begin with:  hotset demo   or   hotset wrap claude",
)
@click.version_option(package.__version__, prog_name="hotset")
@click.pass_context
def hotset(ctx: click.Context) -> None:
    """Virtual memory for LLM agents: the hot set in the window, everything else whole in a
    store."""
    if os.environ.get("NO_COLOR"):
        ctx.color = False
