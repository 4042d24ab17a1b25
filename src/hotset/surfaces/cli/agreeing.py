"""A person's yes, before something is done that is hard to take back."""

from __future__ import annotations

import sys

import click

from hotset.errors import BadInput
from hotset.surfaces.cli.terminal import harmless

yes = click.option("--yes", is_flag=True, help="Do not ask; for scripts.")


def agreed(question: str, *, yes: bool) -> bool:
    """Raises `BadInput` where nobody can be asked."""
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput("nobody is here to be asked; say it with --yes")
    return click.confirm(harmless(question), default=False, err=True)
