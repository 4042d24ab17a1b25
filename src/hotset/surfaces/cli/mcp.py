"""`hotset mcp`: the project's tools, code, history and memory for any agent, over MCP on stdin and
stdout."""

from __future__ import annotations

import logging
import sys
import threading

import click

from hotset.surfaces.cli.ending import FAILED
from hotset.surfaces.cli.following import Following
from hotset.surfaces.cli.options import Chosen, examples, of_project
from hotset.surfaces.cli.terminal import say


@click.command(
    epilog=examples(
        "hotset mcp",
        "hotset mcp --project ~/src/shop",
    )
    + "\n\n\b\nConnect an agent:\n"
    "  claude mcp add hotset -- hotset mcp\n"
    "  codex mcp add hotset -- hotset mcp\n"
    '  {"mcpServers": {"hotset": {"command": "hotset", "args": ["mcp"]}}}'
)
@of_project
def mcp(chosen: Chosen) -> int | None:
    """Serve tools, code, history and memory of the project to an agent, over MCP on stdin and
    stdout.

    find_tools and use_tool reach every server and skill that hotset knows (hotset tools);
    search_code, get_file and outline the project's files, once somebody has allowed that they are
    indexed (hotset index); search_history, retrieve_context and get_turn_range what was said;
    memory_index, memory_timeline and recall_memory what was learned, to which remember adds and
    forget takes away. The list never changes, and nothing runs that is not in use.
    """
    if sys.stdin.isatty():
        say(
            f"hotset: an agent starts this, and talks to it on stdin; see: "
            f"{chosen.hint('mcp --help')}"
        )
        return FAILED
    from hotset.surfaces.mcp.memory import memory_tools  # noqa: PLC0415 - 0.3 s; help should not pay for it
    from hotset.surfaces.mcp.project import Project  # noqa: PLC0415
    from hotset.surfaces.mcp.protocol import Server  # noqa: PLC0415
    from hotset.surfaces.mcp.stdio import serve  # noqa: PLC0415
    from hotset.surfaces.mcp.toolbox import opened_toolbox, toolbox_tools  # noqa: PLC0415
    from hotset.surfaces.mcp.tools import INSTRUCTIONS, tools  # noqa: PLC0415

    logging.getLogger("hotset").addHandler(logging.StreamHandler(sys.stderr))
    config = chosen.config()
    with Project(config) as project, Following(config), opened_toolbox(project, config) as toolbox:
        threading.Thread(target=project.warm, name="hotset-warm", daemon=True).start()
        found = toolbox_tools(toolbox, lambda: project.keeping, config.knobs_for(""))
        server = Server((*found, *tools(project), *memory_tools(project, config)), INSTRUCTIONS)
        serve(server.answer, server.waits)
    return None
