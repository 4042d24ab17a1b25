"""The command line: parses options, calls the layers below and prints."""

from __future__ import annotations

import sys


def main() -> None:
    """The console script."""
    if sys.argv[1:] == ["statusline"]:
        from hotset.surfaces.cli.line import print_line  # noqa: PLC0415 - without click

        print_line()
        return
    from hotset.surfaces.cli.exit import interrupt_again, run  # noqa: PLC0415
    from hotset.surfaces.cli.tree import hotset  # noqa: PLC0415 - importing the package must not load click

    sys.unraisablehook = interrupt_again
    sys.exit(run(hotset, sys.argv[1:]))
