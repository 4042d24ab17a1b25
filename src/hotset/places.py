"""Where a project's data is kept, for a process that needs nothing else of the settings."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

_PROJECT_MARKS = (".git", ".hg", ".jj", "pyproject.toml", "package.json", "Cargo.toml", "go.mod")


def user_file(env: Mapping[str, str]) -> Path:
    """`HOTSET_CONFIG`, or `config.toml` where the platform keeps a user's settings."""
    if named := env.get("HOTSET_CONFIG"):
        return Path(named).expanduser()
    from platformdirs import user_config_path  # noqa: PLC0415 - read only when settings are

    return user_config_path("hotset") / "config.toml"


def project_root(start: Path) -> Path:
    """The nearest folder upwards that looks like a project; the folder itself where none does."""
    start = start.expanduser().resolve()
    home = Path.home()
    for folder in (start, *start.parents):
        if folder == home:
            break
        if any((folder / mark).exists() for mark in _PROJECT_MARKS):
            return folder
    return start


def home_folder(home: str | None) -> Path:
    """The folder of what belongs to all projects of the user."""
    if home:
        return Path(home).expanduser().absolute()
    from platformdirs import user_data_path  # noqa: PLC0415 - read only when settings are

    return user_data_path("hotset").absolute()


def data_folder(root: Path, data: str | None, home: Path) -> Path:
    """The folder of a project's data: `data`, or one of its own below `home`."""
    return Path(data).expanduser().absolute() if data else home / "projects" / _folder_name(root)


def _folder_name(root: Path) -> str:
    """A readable folder name that no two projects share."""
    name = re.sub(r"[^a-z0-9]+", "-", root.name.lower()).strip("-")[:32] or "root"
    return f"{name}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:8]}"


def find_folders(start: Path, env: Mapping[str, str]) -> tuple[Path, Path]:
    """The data folder of the project around a folder, and that of what belongs to all projects; as
    `config.load` finds them without flags."""
    file: dict[str, object] = {}
    if (path := user_file(env)).exists():
        import tomllib  # noqa: PLC0415 - most people have no such file

        try:
            file = tomllib.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            file = {}

    def setting(name: str) -> str | None:
        given = env.get(f"HOTSET_{name.upper()}") or file.get(name)
        return given if isinstance(given, str) else None

    project = setting("project")
    root = project_root(Path(project) if project else start)
    home = home_folder(setting("home"))
    return data_folder(root, setting("data"), home), home
