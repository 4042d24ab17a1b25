"""`make` on a machine where something is missing says the line that mends it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("target", ["run", "test"])
@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_where_python_has_no_venv_make_says_the_line_that_installs_it(tmp_path: Path, target: str):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / "python-of-a-fresh-debian"
    without_ensurepip = "import sys; sys.modules['ensurepip'] = None; exec(sys.argv[1])"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{without_ensurepip}" "$2"\n')
    python.chmod(0o755)

    made = subprocess.run(
        ["make", target, f"PYTHON={python}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert made.returncode == 2
    assert "sudo apt-get install python3-venv" in made.stderr
    assert not (tmp_path / ".venv").exists()
