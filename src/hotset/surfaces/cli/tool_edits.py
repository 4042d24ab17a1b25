"""`hotset tools import|add|remove|approve|deny|allow|pin|unpin|restore`: a person's decisions about
tools."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import click

from hotset.config import Config
from hotset.errors import BadInput, NotFound
from hotset.sources import tools
from hotset.surfaces.cli.consent import ask_yes, yes_option
from hotset.surfaces.cli.exit import FOUND, OK
from hotset.surfaces.cli.options import ProjectOptions, examples, project_options
from hotset.surfaces.cli.terminal import count, emit, plain, say
from hotset.surfaces.cli.tools import PATIENCE, list_new_servers, open_tools

_here = click.option(
    "--here", is_flag=True, help="For this project alone, instead of all of yours."
)


@click.command(
    "import",
    epilog=examples(
        "hotset tools import",
        "hotset tools import ~/.codex/config.toml",
        "hotset tools import .mcp.json --here",
    ),
)
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@project_options
@_here
@yes_option
def import_(chosen: ProjectOptions, files: tuple[Path, ...], *, here: bool, yes: bool) -> int:
    """Take over MCP servers from the files of other programs: Claude Code, Codex, Cursor, VS Code,
    opencode.

    Without FILES, looks in this project and your home folder. Servers from a file of the project
    are imported for this project alone. Your agents can start what is imported; the other program's
    file stays as it is.
    """
    config = chosen.config()
    home = config.user
    into: dict[Path, dict[str, dict[str, Any]]] = {}
    for file in [file.absolute() for file in files] or tools.known_client_files(
        config.project, home
    ):
        read = tools.read_client(file, project=config.project, home=home)
        chosen.say(f"{file} ({read.client}): {count(len(read.servers), 'server')}")
        for name, entry in read.servers.items():
            chosen.say(
                f"  {name}: {_command_line(entry)}"
                + (f"  ({read.notes[name]})" if name in read.notes else "")
            )
            into.setdefault(
                config.servers[-1 if here or file.is_relative_to(config.project) else 0], {}
            ).setdefault(name, entry)
        for name, why in read.skipped.items():
            chosen.say(f"  {name} is left out: {why}")
    if not into:
        raise NotFound(
            f"no server to import was found; add one: {chosen.hint('tools add NAME -- COMMAND')}"
        )
    if not ask_yes("Let your agents start them?", yes=yes):
        return FOUND
    for target, entries in into.items():
        added = tools.add_servers(target, entries)
        for name in added.added:
            emit(name)
        for name in added.kept:
            chosen.say(f"{name} is there already, and stays as it is")
    _print_new(chosen)
    return OK


@click.command(
    epilog=examples(
        "hotset tools add files -- npx -y @modelcontextprotocol/server-filesystem .",
        (
            "hotset tools add wiki https://example.com/mcp --header 'Authorization=Bearer "
            "${WIKI_TOKEN}'"
        ),
        "hotset tools add github --env 'GITHUB_TOKEN=${GITHUB_TOKEN}' -- github-mcp-server stdio",
    )
)
@click.argument("name")
@click.argument("command", nargs=-1, required=True)
@project_options
@click.option(
    "--env",
    metavar="NAME=VALUE",
    multiple=True,
    help="A variable for its process; ${NAME} is read when it starts.",
)
@click.option(
    "--header", metavar="NAME=VALUE", multiple=True, help="A header for every request, for a URL."
)
@click.option(
    "--shared", is_flag=True, help="It keeps nothing between calls: one process for all sessions."
)
@_here
def add(
    chosen: ProjectOptions,
    name: str,
    command: tuple[str, ...],
    *,
    env: tuple[str, ...],
    header: tuple[str, ...],
    shared: bool,
    here: bool,
) -> None:
    """Add an MCP server: a command behind `--`, or a URL."""
    if command[0].startswith(("http://", "https://")) and len(command) == 1:
        entry: dict[str, Any] = {
            "url": command[0],
            **({"headers": _parse_pairs(header)} if header else {}),
        }
    else:
        entry = {
            "command": command[0],
            "args": list(command[1:]),
            **({"env": _parse_pairs(env)} if env else {}),
        }
    entry |= {"shared": True} if shared else {}
    config = chosen.config()
    if "command" in entry and not _is_installed(entry, config):
        raise BadInput(
            f"there is no program {command[0]!r} that could be started; check the name, or "
            f"give its path. Nothing was added"
        )
    file = config.servers[-1 if here else 0]
    added = tools.add_servers(file, {name: entry})
    if added.kept:
        raise BadInput(
            f"{name} is in {file} already; remove it first: {chosen.hint(f'tools remove {name}')}"
        )
    _print_new(chosen)


@click.command(epilog=examples("hotset tools remove wiki"))
@click.argument("name")
@project_options
def remove(chosen: ProjectOptions, name: str) -> None:
    """Remove an MCP server."""
    failed: NotFound | None = None
    for file in reversed(chosen.config().servers):
        try:
            tools.remove_server(file, name)
        except NotFound as error:
            failed = error
        else:
            chosen.say(f"{name} is no longer in {file}")
            return
    raise failed or NotFound(f"no server {name}")


@click.command(
    epilog=examples(
        "hotset tools approve github__create_issue", "hotset tools approve pdf-forms --follow"
    )
)
@click.argument("name")
@project_options
@click.option("--follow", is_flag=True, help="Of a skill: later changes of its files, too.")
@yes_option
def approve(chosen: ProjectOptions, name: str, *, follow: bool, yes: bool) -> int:
    """Allow a tool or a source that is new or has changed, after a look at what it says now."""
    from hotset.runtime.reader import did_you_mean  # noqa: PLC0415

    with open_tools(chosen.config()) as toolbox:
        list_new_servers(toolbox, chosen)
        waiting = toolbox.waiting(name)
        if not waiting:
            names = {
                each
                for known in toolbox.catalogue.tools()
                for each in (known.tool.name, known.tool.source)
            }
            near = "" if name in names else did_you_mean(name, names)
            chosen.say(
                f"nothing of {name} waits for approval{f'; {near}' if near else ''}".rstrip()
            )
            return FOUND
        if waiting[0].state is tools.ToolState.UNAPPROVED:  # a skill is approved as a whole
            emit(plain(f"{toolbox.instructions(waiting[0].tool.source)}\n"))
        for known in waiting:
            if known.state is tools.ToolState.UNAPPROVED:
                emit(plain(tools.compact(known.tool)))
            else:
                emit(
                    plain(
                        f"{known.tool.name} ({known.state}): {known.why}\n"
                        f"{tools.diff(known) or tools.readable(known.tool)}\n"
                    )
                )
            for warning in known.warnings:
                say(f"  {plain(warning)}")
        if not ask_yes("Allow it?", yes=yes):
            return FOUND
        one = waiting[0]
        seen = (
            one.digest if name == one.tool.name or one.state is tools.ToolState.UNAPPROVED else ""
        )
        approved = toolbox.catalogue.approve(name, seen, follow=follow)
    chosen.say(f"{', '.join(approved)}: allowed")
    return OK


@click.command(
    epilog=examples("hotset tools deny github__delete_repository", "hotset tools deny 'shell__*'")
)
@click.argument("pattern")
@project_options
def deny(chosen: ProjectOptions, pattern: str) -> None:
    """Forbid a tool, a source or a pattern of names in this project: it is neither found nor
    called."""
    with open_tools(chosen.config()) as toolbox:
        toolbox.catalogue.deny(pattern)
    chosen.say(f"{pattern} is denied in this project")


@click.command(epilog=examples("hotset tools allow github__delete_repository"))
@click.argument("pattern")
@project_options
def allow(chosen: ProjectOptions, pattern: str) -> None:
    """Undo `deny`."""
    with open_tools(chosen.config()) as toolbox:
        toolbox.catalogue.allow(pattern)
    chosen.say(f"{pattern} is no longer denied")


@click.command(epilog=examples("hotset tools pin files__read_file"))
@click.argument("name")
@project_options
def pin(chosen: ProjectOptions, name: str) -> None:
    """Keep a tool: it never becomes inactive, and its process is not stopped to make room."""
    with open_tools(chosen.config()) as toolbox:
        tool = toolbox.pin(name)
    chosen.say(f"{tool.name} is pinned")


@click.command(epilog=examples("hotset tools unpin files__read_file"))
@click.argument("name")
@project_options
def unpin(chosen: ProjectOptions, name: str) -> None:
    """Undo `pin`: an unused tool becomes inactive again."""
    with open_tools(chosen.config()) as toolbox:
        name = toolbox.unpin(name)
    chosen.say(f"{name} is no longer pinned")


@click.command(epilog=examples("hotset tools restore created__word_count"))
@click.argument("name")
@project_options
def restore(chosen: ProjectOptions, name: str) -> None:
    """Bring back a tool that an agent wrote and that was deleted."""
    with open_tools(chosen.config()) as toolbox:
        before = set(toolbox.registry.lives())
        life = toolbox.restore(name)
        gone = sorted(before - set(toolbox.registry.lives()))
    chosen.say(f"{life.name} is back")
    for each in gone:
        chosen.say(f"{each} made room for it; restore it: {chosen.hint(f'tools restore {each}')}")


def _print_new(chosen: ProjectOptions) -> None:
    """Lists the tools of new servers, and prints how many can be found."""
    with open_tools(chosen.config()) as toolbox:
        list_new_servers(toolbox, chosen, PATIENCE)
        number = sum(known.state is tools.ToolState.READY for known in toolbox.catalogue.tools())
    chosen.say(f"{count(number, 'tool')} can be found now; try: {chosen.hint('tools find WORDS')}")


def _is_installed(entry: dict[str, Any], config: Config) -> bool:
    """True if the program can be started: by its name, or by its path, relative to the project's
    folder."""
    program = entry["command"]
    if "${" in program:  # known when it starts
        return True
    path = entry.get("env", {}).get("PATH", config.environ.get("PATH"))
    return (
        shutil.which(str(config.project / program) if os.sep in program else program, path=path)
        is not None
    )


def _command_line(entry: dict[str, Any]) -> str:
    return str(
        entry.get("url")
        or " ".join([str(entry.get("command", "")), *map(str, entry.get("args", ()))])
    )


def _parse_pairs(given: tuple[str, ...]) -> dict[str, str]:
    for word in given:
        if "=" not in word:
            raise BadInput(f"{word!r}: write it as NAME=VALUE")
    return dict(word.split("=", 1) for word in given)
