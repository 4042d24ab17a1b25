"""`hotset tools`: the library of tools behind `find_tools` and `use_tool`."""

from __future__ import annotations

from importlib import import_module

import click

_COMMANDS = {
    "list": ("tools_looking:list_", "Every tool that is known."),
    "find": ("tools_looking:find", "The tools that fit a task, best first."),
    "use": ("tools_looking:use", "Call a tool."),
    "status": ("tools_looking:status", "What runs, what lives, what waits for you."),
    "graph": ("tools_looking:graph", "Which tools go together."),
    "import": ("tools_choosing:import_", "Take over the servers of another program."),
    "add": ("tools_choosing:add", "Add an MCP server."),
    "remove": ("tools_choosing:remove", "Take a server out again."),
    "approve": ("tools_choosing:approve", "Allow what is new or has changed, after a look at it."),
    "deny": ("tools_choosing:deny", "Forbid a tool or a source in this project."),
    "allow": ("tools_choosing:allow", "Take a denial back."),
    "pin": ("tools_choosing:pin", "Keep a tool from being stopped or let go."),
    "unpin": ("tools_choosing:unpin", "Let it live by its use again."),
    "restore": ("tools_choosing:restore", "Bring back a tool that was let go."),
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
    "  hotset tools import                     the servers of Claude Code, Codex, Cursor, VS Code ...\n"
    "  hotset tools add files -- npx -y @modelcontextprotocol/server-filesystem .\n"
    '  hotset tools find "open an issue"\n'
    "  hotset tools status",
)
def tools() -> None:
    """The library of tools: MCP servers, skills, and what agents wrote.

    An agent sees two tools, find_tools and use_tool, however many there are behind them; nothing runs that is not in use.
    """
