"""`hotset up`, `hotset mcp` and `hotset demo`: serve the proxy in this terminal, MCP on stdin and
stdout, or the demonstration."""

from __future__ import annotations

import logging
import os
import signal
import sys
from contextlib import nullcontext
from pathlib import Path

import click
import msgspec

from hotset.config import Config, load
from hotset.files.scope import PROCESS
from hotset.files.write import write_output
from hotset.surfaces.cli.consent import is_allowed, offer_indexing
from hotset.surfaces.cli.exit import FAILED, FOUND
from hotset.surfaces.cli.index import index_follower
from hotset.surfaces.cli.learning_follower import learning_follower
from hotset.surfaces.cli.options import (
    IndexOptions,
    ProjectOptions,
    WindowOptions,
    describe_window,
    examples,
    index_options,
    project_options,
    window_options,
)
from hotset.surfaces.cli.proxy_supervisor import end_lease, running_proxy
from hotset.surfaces.cli.terminal import say
from hotset.surfaces.proxy.address import Address


@click.command(
    epilog=examples(
        "hotset up",
        "hotset up --port 0 --ready-file ready.json",
        "hotset up --anthropic-url https://gateway.example.com",
        "hotset up --off",
        "hotset up --budget 100000 --profile lean",
    )
)
@project_options
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Listen here; 0 is any. [default: 4747, or any if it is taken]",
)
@click.option(
    "--openai-url",
    metavar="URL",
    help="Where OpenAI calls go. [default: https://api.openai.com/v1]",
)
@click.option(
    "--anthropic-url",
    metavar="URL",
    help="Where Anthropic calls go. [default: https://api.anthropic.com]",
)
@window_options
@index_options
@click.option(
    "--ready-file",
    metavar="F",
    type=click.Path(dir_okay=False),
    help="Write the addresses here once it serves.",
)
@click.option(
    "--while-stdin",
    is_flag=True,
    hidden=True,
    help="Stop when stdin closes: the program that started us has ended.",
)
def up(
    chosen: ProjectOptions,
    *,
    switches: WindowOptions,
    indexing: IndexOptions,
    port: int | None,
    openai_url: str | None,
    anthropic_url: str | None,
    ready_file: str | None,
    while_stdin: bool,
) -> int | None:
    """Serve the proxy for this project until Ctrl-C.

    Agents reach it by their base URL. Every turn is kept whole; the model sees a bounded part and
    can get the rest back.
    """
    config = load(
        project=chosen.project,
        data=chosen.data,
        port=port,
        openai_url=openai_url,
        anthropic_url=anthropic_url,
        **switches.settings(),
    )
    if port is None and (note := running_proxy(config)) is not None:
        chosen.say(f"a proxy of {config.project} serves already (process {note.pid})")
        _print_how_to_connect(note, quiet=chosen.quiet)
        chosen.say("dashboard: hotset open")
        return FOUND
    if not indexing.no:
        offer_indexing(chosen, config, yes=indexing.yes)

    def ready(address: Address, link: str) -> None:
        if ready_file:
            write_output(Path(ready_file), [msgspec.json.encode(address.announce())])
        # Under wrap this goes to a log, which must not hold a token.
        quiet = chosen.quiet or while_stdin
        _print_address(config, address, link, indexes=not indexing.no, quiet=quiet)

    _log_to_stderr(quiet=chosen.quiet)
    if while_stdin:
        PROCESS.thread(_stop_with_stdin, "stdin", config.folder)
    from hotset.surfaces.proxy.server import serve  # noqa: PLC0415 - a quarter of a second; the checks above come first

    with nullcontext() if indexing.no else index_follower(config), learning_follower(config):
        serve(config, ready=ready)
    chosen.say("stopped; what was under way is kept")
    return None


def _print_address(
    config: Config, address: Address, link: str, *, indexes: bool, quiet: bool
) -> None:
    say(click.style(f"hotset serves {config.project}", bold=True), quiet=quiet)
    say(f"  on     {address.root}", quiet=quiet)
    say(f"  keeps  {config.folder}", quiet=quiet)
    for name, upstream in config.upstreams.items():
        origin = config.origins.get(f"{name}_url", "default")
        say(
            f"  to     {name}: {upstream.url}"
            + ("" if origin == "default" else f"  (from {origin})"),
            quiet=quiet,
        )
    say(f"  window {describe_window(config.window)}", quiet=quiet)
    indexed = "indexed in the background; see: hotset index --status"
    say(
        (
            f"  files  "
            f"{indexed if indexes and is_allowed(config) else 'not indexed; to do it: hotset index'}"  # noqa: E501
        ),
        quiet=quiet,
    )
    _print_how_to_connect(address, quiet=quiet)
    say(f"dashboard  {link}  (works once; again: hotset open)\n", quiet=quiet)
    say("Stop with Ctrl-C. Calls, as they come:\n", quiet=quiet)


def _print_how_to_connect(address: Address, *, quiet: bool) -> None:
    say("\nConnect an agent, in another terminal:", quiet=quiet)
    say("  hotset wrap claude      (or codex, opencode, aider, goose, anything)", quiet=quiet)
    say("or by hand:", quiet=quiet)
    say(f"  export OPENAI_BASE_URL={address.openai_base_url}", quiet=quiet)
    say(f"  export ANTHROPIC_BASE_URL={address.anthropic_base_url}\n", quiet=quiet)


def _log_to_stderr(*, quiet: bool) -> None:
    """Logs to stderr. The `hotset` logger reports calls by number and size, never their content."""
    out = logging.StreamHandler(sys.stderr)
    out.setFormatter(logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S"))
    log = logging.getLogger("hotset")
    log.addHandler(out)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
    log.propagate = False


def _stop_with_stdin(folder: Path) -> None:
    while os.read(0, 4096):
        pass
    end_lease(folder, os.getpid())
    os.kill(os.getpid(), signal.SIGTERM)


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
@project_options
def mcp(chosen: ProjectOptions) -> int | None:
    """Serve tools, code, history and memory of the project to an agent, over MCP on stdin and
    stdout.

    Tools: find_tools, use_tool (every server and skill of hotset tools). Code: search_code,
    get_file, outline (after hotset index). History: search_history, retrieve_context,
    get_turn_range. Memory: memory_index, memory_timeline, recall_memory, remember, forget. The list
    never changes, and a server runs only while it is in use.
    """
    if sys.stdin.isatty():
        say(
            f"hotset: an agent starts this, and talks to it on stdin; see: "
            f"{chosen.hint('mcp --help')}"
        )
        return FAILED
    from hotset.surfaces.mcp.mcp_tools import INSTRUCTIONS, open_toolbox, toolbox_tools, tools  # noqa: PLC0415
    from hotset.surfaces.mcp.memory_tools import memory_tools  # noqa: PLC0415 - 0.3 s; help should not pay for it
    from hotset.surfaces.mcp.project import Project  # noqa: PLC0415
    from hotset.surfaces.mcp.protocol import Server, serve_stdio  # noqa: PLC0415

    logging.getLogger("hotset").addHandler(logging.StreamHandler(sys.stderr))
    config = chosen.config()
    with (
        Project(config) as project,
        index_follower(config),
        open_toolbox(project, config) as toolbox,
    ):
        PROCESS.thread(project.warm, "hotset-warm")
        found = toolbox_tools(toolbox, lambda: project.keeping, config.knobs_for(""))
        server = Server((*found, *tools(project), *memory_tools(project, config)), INSTRUCTIONS)
        serve_stdio(server.answer, server.waits)
    return None


@click.command(epilog=examples("hotset demo", "hotset demo --once --fast"))
@project_options
@click.option(
    "--once", is_flag=True, help="End after the show instead of going on to serve this project."
)
@click.option("--fast", is_flag=True, help="Play as fast as it goes.")
def demo(chosen: ProjectOptions, once: bool, fast: bool) -> None:
    """See hotset work on a recorded agent session: no key, no network.

    A scripted provider answers on this machine; the proxy, the store and the kill -9 in the middle
    are real.
    """
    flags = [
        name
        for name, given in (("--once", once), ("--fast", fast), ("--quiet", chosen.quiet))
        if given
    ]
    sys.stdout.flush()
    sys.stderr.flush()
    # The process becomes the demonstration: surfaces must not import what is above them.
    os.execv(sys.executable, [sys.executable, "-m", "hotset.testing.demo", *flags, *chosen.flags()])  # noqa: S606
