"""`hotset open`: the dashboard of this project in a browser."""

from __future__ import annotations

import webbrowser

import click

from hotset.surfaces.cli.exit import FOUND, OK
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.proxy_supervisor import running_proxy
from hotset.surfaces.cli.terminal import emit, emit_json
from hotset.surfaces.proxy.address import make_link


@click.command("open", epilog=examples("hotset open", "hotset open --print"))
@project_options
@click.option("--print", "only_print", is_flag=True, help="Print the link; open nothing.")
@as_json
def open_dashboard(chosen: ProjectOptions, *, only_print: bool, as_json: bool) -> int:
    """Open the dashboard in a browser: what is in the model's window, and what you can change.

    The proxy that serves this project shows it, to this machine only. The link works once; the
    browser is known from then on.
    """
    config = chosen.config()
    address = running_proxy(config)
    if address is None:
        chosen.say(
            f"no proxy serves {config.project}; start one with: {chosen.hint('up')}\n"
            f"or run your agent through one: {chosen.hint('wrap claude')}"
        )
        return FOUND
    link = make_link(address, patience=config.patience)
    if as_json:
        emit_json({"link": link})
        return OK
    if only_print or not webbrowser.open(link):
        emit(link)
        chosen.say("it works once, in a browser on this machine")
        return OK
    chosen.say("opened in your browser; if nothing appears: hotset open --print")
    return OK
