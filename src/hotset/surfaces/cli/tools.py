"""`hotset tools`: the library of tools behind `find_tools` and `use_tool`."""

from __future__ import annotations

import click

from hotset.surfaces.cli.lazy import Entry, LazyGroup

_COMMANDS = {
    "list": Entry("tools_looking:list_", "Every tool that is known."),
    "find": Entry("tools_looking:find", "The tools that fit a task, best first."),
    "use": Entry("tools_looking:use", "Call a tool."),
    "status": Entry("tools_looking:status", "What runs, what lives, what waits for you."),
    "graph": Entry("tools_looking:graph", "Which tools go together."),
    "import": Entry("tools_choosing:import_", "Take over the servers of another program."),
    "add": Entry("tools_choosing:add", "Add an MCP server."),
    "remove": Entry("tools_choosing:remove", "Take a server out again."),
    "approve": Entry(
        "tools_choosing:approve", "Allow what is new or has changed, after a look at it."
    ),
    "deny": Entry("tools_choosing:deny", "Forbid a tool or a source in this project."),
    "allow": Entry("tools_choosing:allow", "Take a denial back."),
    "pin": Entry("tools_choosing:pin", "Keep a tool from being stopped or let go."),
    "unpin": Entry("tools_choosing:unpin", "Let it live by its use again."),
    "restore": Entry("tools_choosing:restore", "Bring back a tool that was let go."),
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
