"""`hotset statusline`: the state of the session in one line. `main` prints it before click is
loaded, where it has no options."""

from __future__ import annotations

import os

import click

from hotset.surfaces.cli.line import print_line


@click.command(
    epilog="\b\nExamples:\n"
    "  hotset statusline\n"
    "\b\n"
    "In ~/.claude/settings.json:\n"
    '  {"statusLine": {"type": "command", "command": "hotset statusline"}}\n'
    "\b\n"
    "In ~/.tmux.conf:\n"
    "  set -g status-right '#(cd #{pane_current_path} && hotset statusline)'"
)
@click.option("--data", metavar="DIR", help="The folder that holds this project's store.")
@click.option(
    "--project", metavar="PATH", help="The project; default: the one around the current folder."
)
def statusline(data: str | None, project: str | None) -> None:
    """One line for Claude Code's statusline, tmux or a prompt: how full the window is, what the
    session cost and what that saved, how often steps left the window and were asked back.

    Reads what Claude Code says of the session on stdin, where it does; otherwise the session that
    was used last. Without a proxy it prints a neutral line.
    """
    if data:
        os.environ["HOTSET_DATA"] = data
    print_line({"cwd": project} if project else None)
