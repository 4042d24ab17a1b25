"""`hotset up`: serve the proxy in this terminal."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from contextlib import nullcontext
from pathlib import Path

import click
import msgspec

from hotset.config import Config, load
from hotset.files.write import write_output
from hotset.surfaces.cli import lease
from hotset.surfaces.cli.consenting import ask_once, is_allowed
from hotset.surfaces.cli.ending import FOUND
from hotset.surfaces.cli.following import Following
from hotset.surfaces.cli.options import (
    Chosen,
    Indexing,
    Switches,
    examples,
    of_indexing,
    of_project,
    of_window,
    switched,
)
from hotset.surfaces.cli.terminal import say
from hotset.surfaces.proxy.address import Address, ask, read_note


@click.command(
    epilog=examples(
        "hotset up",
        "hotset up --port 0 --ready-file ready.json",
        "hotset up --anthropic-url https://gateway.example.com",
        "hotset up --off",
        "hotset up --budget 100000 --profile lean",
    )
)
@of_project
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
@of_window
@of_indexing
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
    help="Stop when stdin closes: whoever started us is gone.",
)
def up(
    chosen: Chosen,
    *,
    switches: Switches,
    indexing: Indexing,
    port: int | None,
    openai_url: str | None,
    anthropic_url: str | None,
    ready_file: str | None,
    while_stdin: bool,
) -> int | None:
    """Serve the proxy for this project until Ctrl-C.

    Agents reach it by their base URL. Everything they say is kept whole; what a model sees of it is
    bounded, and it can get the rest back.
    """
    config = load(
        project=chosen.project,
        data=chosen.data,
        port=port,
        openai_url=openai_url,
        anthropic_url=anthropic_url,
        **switches.settings(),
    )
    if port is None and (note := read_note(config.folder)) and ask(note, patience=config.patience):
        say(f"a proxy of {config.project} serves already (process {note.pid})", quiet=chosen.quiet)
        _tell_how_to_connect(note, quiet=chosen.quiet)
        return FOUND
    if not indexing.no:
        ask_once(chosen, config, yes=indexing.yes)

    def ready(address: Address) -> None:
        if ready_file:
            write_output(Path(ready_file), [msgspec.json.encode(address.announce())])
        # Under wrap this goes to a log, which is no place for a token.
        _tell_where(config, address, indexes=not indexing.no, quiet=chosen.quiet or while_stdin)

    _log_to_stderr(quiet=chosen.quiet)
    if while_stdin:
        threading.Thread(
            target=_stop_with_stdin, args=(config.folder,), daemon=True, name="stdin"
        ).start()
    from hotset.surfaces.proxy.serve import serve  # noqa: PLC0415 - a quarter of a second; the checks above come first

    with nullcontext() if indexing.no else Following(config):
        serve(config, ready=ready)
    say("stopped; what was under way is kept", quiet=chosen.quiet)
    return None


def _tell_where(config: Config, address: Address, *, indexes: bool, quiet: bool) -> None:
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
    say(f"  window {switched(config.window)}", quiet=quiet)
    indexed = "indexed in the background; see: hotset index --status"
    say(
        (
            f"  files  "
            f"{indexed if indexes and is_allowed(config) else 'not indexed; to do it: hotset index'}"  # noqa: E501
        ),
        quiet=quiet,
    )
    _tell_how_to_connect(address, quiet=quiet)
    say("Stop with Ctrl-C. Calls, as they come:\n", quiet=quiet)


def _tell_how_to_connect(address: Address, *, quiet: bool) -> None:
    say("\nConnect an agent, in another terminal:", quiet=quiet)
    say("  hotset wrap claude      (or codex, opencode, aider, goose, anything)", quiet=quiet)
    say("or by hand:", quiet=quiet)
    say(f"  export OPENAI_BASE_URL={address.openai_base_url}", quiet=quiet)
    say(f"  export ANTHROPIC_BASE_URL={address.anthropic_base_url}\n", quiet=quiet)


def _log_to_stderr(*, quiet: bool) -> None:
    """The `hotset` logger tells of calls by number and size, never of their content."""
    out = logging.StreamHandler(sys.stderr)
    out.setFormatter(logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S"))
    log = logging.getLogger("hotset")
    log.addHandler(out)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
    log.propagate = False


def _stop_with_stdin(folder: Path) -> None:
    while os.read(0, 4096):
        pass
    lease.ended(folder, os.getpid())
    os.kill(os.getpid(), signal.SIGTERM)
