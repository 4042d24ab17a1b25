"""How a command ends when somebody presses Ctrl-C."""

from __future__ import annotations

import subprocess
import sys

LOST = """
import sys, time, click
from hotset.surfaces.cli import exit, tree

class Lost:
    def __del__(self):
        raise KeyboardInterrupt  # as a signal does that comes just here

@click.command()
def wait():
    Lost()
    time.sleep(60)

tree.hotset = wait
sys.argv = ["hotset"]
from hotset.surfaces.cli import main
main()
"""


def test_an_interrupt_that_python_cannot_raise_where_it_came_ends_the_command_all_the_same():
    done = subprocess.run(
        [sys.executable, "-c", LOST], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 130
    assert done.stderr.strip() == "hotset: stopped"
