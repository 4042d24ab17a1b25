"""`hotset demo`: hands over to the demonstration, which lives with the fakes it plays on."""

from __future__ import annotations

import os
import sys

import click

from hotset.surfaces.cli.options import Chosen, examples, of_project


@click.command(epilog=examples("hotset demo", "hotset demo --once --fast"))
@of_project
@click.option(
    "--once", is_flag=True, help="End after the show instead of going on to serve this project."
)
@click.option("--fast", is_flag=True, help="Play as fast as it goes.")
def demo(chosen: Chosen, once: bool, fast: bool) -> None:
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
