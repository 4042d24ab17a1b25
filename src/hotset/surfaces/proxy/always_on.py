"""The always-on proxy of a user: its folder, its fixed port, and the projects that it serves.

A project is known by its token, which stays in the project's own data folder: the list names
folders only. Without a project's token, the user's own leads to the project `unknown`.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from hotset.config import Config, load
from hotset.errors import BadConfig
from hotset.files.lock import hold_folder
from hotset.files.private_folder import private_folder
from hotset.files.write import write_atomically
from hotset.typed import decode

HOST = "127.0.0.1"
USUAL_PORT = 4700
"""The first that is tried: another user of the machine may have it."""

_PORTS = 40  # `hotset up` begins behind them
_FOLDER = "service"
_PROJECTS_FILE = "projects.json"
_SETTINGS_FILE = "settings.json"


class KnownProject(msgspec.Struct, frozen=True):
    """A project that the always-on proxy serves."""

    project: str
    folder: str
    """Its data folder, where its token is."""


class FixedPort(msgspec.Struct, frozen=True):
    """What was chosen when the always-on proxy was installed."""

    port: int


def shared_folder(config: Config) -> Path:
    """The folder of the always-on proxy: its token, its note, its lock, and its projects."""
    return config.home / _FOLDER


def unknown_folder(config: Config) -> Path:
    """The data folder of the project that calls without a project's token belong to."""
    return config.home / "projects" / "unknown"


def unknown_project(config: Config) -> Config:
    """The settings of that project. It has no files."""
    folder = unknown_folder(config)
    return replace(load(data=str(folder), environ=config.environ), project=folder)


def known_project(config: Config, known: KnownProject) -> Config:
    """The settings of a project that is served. Raises `BadConfig`."""
    return load(project=known.project, data=known.folder, environ=config.environ)


def list_projects(config: Config) -> tuple[KnownProject, ...]:
    try:
        return decode(
            (shared_folder(config) / _PROJECTS_FILE).read_bytes(), tuple[KnownProject, ...]
        )
    except (OSError, msgspec.DecodeError):
        return ()


def is_known(config: Config) -> bool:
    """True if the always-on proxy serves this project: it has a token of its own there, or it is
    `unknown`."""
    folder = str(config.folder)
    return config.folder == unknown_folder(config) or any(
        each.folder == folder for each in list_projects(config)
    )


def add_project(config: Config) -> None:
    """Let the always-on proxy serve this project."""
    added = KnownProject(str(config.project), str(config.folder))
    _change(config, lambda there: (*(each for each in there if each.folder != added.folder), added))


def drop_project(config: Config) -> None:
    """Undo `add_project`."""
    folder = str(config.folder)
    if is_known(config):
        _change(config, lambda there: tuple(each for each in there if each.folder != folder))


def _change(
    config: Config,
    change: Callable[[tuple[KnownProject, ...]], tuple[KnownProject, ...]],
) -> None:
    with hold_folder(shared_folder(config)) as folder:
        there = list_projects(config)
        after = change(there)
        if after != there:
            write_atomically(folder / _PROJECTS_FILE, msgspec.json.encode(after))


def fixed_port(config: Config) -> int | None:
    """The port that was chosen when the always-on proxy was installed; None if it was not."""
    try:
        return decode((shared_folder(config) / _SETTINGS_FILE).read_bytes(), FixedPort).port
    except (OSError, msgspec.DecodeError):
        return None


def keep_port(config: Config, port: int) -> None:
    folder = private_folder(shared_folder(config))
    write_atomically(folder / _SETTINGS_FILE, msgspec.json.encode(FixedPort(port)))


def forget_port(config: Config) -> bool:
    """True if one was kept."""
    path = shared_folder(config) / _SETTINGS_FILE
    was_there = path.exists()
    with suppress(FileNotFoundError):
        path.unlink()
    return was_there


def free_port(wanted: int | None) -> int:
    """A port to stay with. Raises `BadConfig` if the wanted one, or every usual one, is taken."""
    ports = range(USUAL_PORT, USUAL_PORT + _PORTS) if wanted is None else (wanted,)
    for port in ports:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial, suppress(OSError):
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((HOST, port))
            return port
    taken = f"port {wanted} is" if wanted is not None else f"ports {ports[0]} to {ports[-1]} are"
    raise BadConfig(f"{taken} taken; choose another with --port")
