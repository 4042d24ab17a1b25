"""`hotset tools`: the library of tools behind `find_tools` and `use_tool`."""

from __future__ import annotations

import click

from hotset.surfaces.cli.lazy import CommandEntry, LazyGroup

_COMMANDS = {
    "list": CommandEntry("tools_looking:list_", "Every tool that is known."),
    "find": CommandEntry("tools_looking:find", "The tools that fit a task, best first."),
    "use": CommandEntry("tools_looking:use", "Call a tool."),
    "status": CommandEntry("tools_looking:status", "What runs, what lives, what waits for you."),
    "graph": CommandEntry("tools_looking:graph", "Which tools go together."),
    "import": CommandEntry("tools_choosing:import_", "Take over the servers of another program."),
    "add": CommandEntry("tools_choosing:add", "Add an MCP server."),
    "remove": CommandEntry("tools_choosing:remove", "Take a server out again."),
    "approve": CommandEntry(
        "tools_choosing:approve", "Allow what is new or has changed, after a look at it."
    ),
    "deny": CommandEntry("tools_choosing:deny", "Forbid a tool or a source in this project."),
    "allow": CommandEntry("tools_choosing:allow", "Take a denial back."),
    "pin": CommandEntry("tools_choosing:pin", "Keep a tool from being stopped or let go."),
    "unpin": CommandEntry("tools_choosing:unpin", "Let it live by its use again."),
    "restore": CommandEntry("tools_choosing:restore", "Bring back a tool that was let go."),
}


@click.group(
    cls=LazyGroup,
    sections={"Commands": _COMMANDS},
    epilog="\b\nExamples:\n"
    "  hotset tools import                     the servers of Claude Code, Codex, Cursor, VS "
    "Code ...\n"
    "  hotset tools add files -- npx -y @modelcontextprotocol/server-filesystem .\n"
    '  hotset tools find "open an issue"\n'
    "  hotset tools status",
)
def tools() -> None:
    """The library of tools: MCP servers, skills, and what agents wrote.

    An agent sees two tools, find_tools and use_tool, however many there are behind them; nothing
    runs that is not in use.
    """
