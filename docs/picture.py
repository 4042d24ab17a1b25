"""Draws docs/demo.svg from a real run: `python docs/picture.py`."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

_CALLS = 6  # of the calls before and after the kill; the picture is of the story, not of all of it


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "hotset",
            "demo",
            "--once",
            "--fast",
            "--data",
            f"{folder}/demo",
        ]
        done = subprocess.run(command, capture_output=True, check=True, text=True)
    lines = (done.stderr + done.stdout).splitlines()
    kill = next(n for n, line in enumerate(lines) if "kill -9" in line)
    end = next(n for n, line in enumerate(lines) if line.startswith("Look at it"))
    rest = next(n for n, line in enumerate(lines) if line.startswith("What was kept"))
    console = Console(record=True, width=118, file=io.StringIO())
    console.print(Text("$ make run", style="bold"))
    for line in [*lines[kill - _CALLS : kill + 2 + _CALLS], "…", *lines[rest:end]]:
        style = (
            "bold red"
            if "kill -9" in line and "under way" in line
            else "bold green"
            if "survived" in line
            else ""
        )
        console.print(Text(line, style=style), soft_wrap=True, overflow="crop")
    picture = console.export_svg(title="hotset")
    # The reader's own monospace font: a picture should not ask another host for one.
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL).replace(
        "Fira Code", "ui-monospace"
    )
    (Path(__file__).parent / "demo.svg").write_text(picture)


if __name__ == "__main__":
    main()
