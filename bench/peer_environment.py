"""Another project in an environment of its own, made at the first run, to compare with."""

from __future__ import annotations

import shutil
import subprocess
import venv
from pathlib import Path

import platformdirs


def peer_program(name: str, version: str, program: str, packages: list[str]) -> Path | None:
    """A program of an environment with these packages; None, with a word why, where they cannot be
    installed."""
    folder = platformdirs.user_cache_path("hotset-bench") / f"{name}-{version}"
    found = folder / "bin" / program
    if not found.exists():
        print(f"installing {packages[0]} into {folder}; this takes a few minutes, once")
        venv.create(folder, with_pip=True, clear=True)
        pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*pip, *packages], check=False).returncode != 0:
            shutil.rmtree(folder)
            print(f"{name} could not be installed: its figures are missing below")
            return None
    return found
