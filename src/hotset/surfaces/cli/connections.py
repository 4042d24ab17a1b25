"""Notes of what `hotset connect` wrote into the files of other programs: what was there before, so
that it can be restored, and since when calls should come."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from hotset.config import Config
from hotset.files.private_folder import private_folder
from hotset.files.write import write_atomically
from hotset.typed import decode

MCP, PROXY = "mcp", "proxy"
"""The two ways to connect a client."""

_FOLDER = "connected"
_SILENT = "silent-"


class WrittenSetting(msgspec.Struct, frozen=True):
    """One setting of ours in another program's file."""

    keys: tuple[str, ...]
    before: Any = None
    """The value that it replaced; None where there was none."""


class ClientConnection(msgspec.Struct, frozen=True):
    """What was written into one file for one client."""

    client: str
    path: str
    folder: str
    """The data folder whose token the base URL has; empty without a base URL."""
    time: float
    before: str | None
    """The whole file as it was; None if there was none."""
    after: str
    """The hash of the file as we left it; empty if it was changed between two changes of ours."""
    written: dict[str, tuple[WrittenSetting, ...]]
    """By the way to connect: `mcp`, `proxy`."""
    folders: tuple[str, ...] = ()
    """Those that were made for the file, the innermost first."""

    def is_after(self, text: str) -> bool:
        """True if the file is as we left it."""
        return self.after == hash_of(text)


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read_connection(
    config: Config, client: str, path: Path, *, of_user: bool
) -> ClientConnection | None:
    try:
        return decode(
            _note_path(config, client, path, of_user=of_user).read_bytes(), ClientConnection
        )
    except (OSError, msgspec.DecodeError):
        return None


def keep_connection(config: Config, made: ClientConnection, *, of_user: bool) -> Path:
    """Keep a note; its path."""
    path = _note_path(config, made.client, Path(made.path), of_user=of_user)
    private_folder(path.parent)
    write_atomically(path, msgspec.json.encode(made))
    return path


def forget_connection(config: Config, client: str, path: Path, *, of_user: bool) -> None:
    _note_path(config, client, path, of_user=of_user).unlink(missing_ok=True)


def list_connections(config: Config) -> Iterator[ClientConnection]:
    """Those of this project's files and of the user's own."""
    for root in (config.folder, config.home):
        for path in sorted((root / _FOLDER).glob("*.json")):
            try:
                yield decode(path.read_bytes(), ClientConnection)
            except (OSError, msgspec.DecodeError):
                continue


class SilentRun(msgspec.Struct, frozen=True):
    """The last run of a client under `hotset wrap`, of which no call arrived."""

    client: str
    time: float


def keep_silent_run(config: Config, client: str, time: float) -> None:
    path = _silent_path(config, client)
    private_folder(path.parent)
    write_atomically(path, msgspec.json.encode(SilentRun(client, time)))


def forget_silent_run(config: Config, client: str) -> None:
    """A call arrived."""
    _silent_path(config, client).unlink(missing_ok=True)


def list_silent_runs(config: Config) -> Iterator[SilentRun]:
    for path in sorted((config.folder / _FOLDER).glob(f"{_SILENT}*")):
        try:
            yield decode(path.read_bytes(), SilentRun)
        except (OSError, msgspec.DecodeError):
            continue


def _silent_path(config: Config, client: str) -> Path:
    return config.folder / _FOLDER / f"{_SILENT}{client}"


def _note_path(config: Config, client: str, path: Path, *, of_user: bool) -> Path:
    root = config.home if of_user else config.folder
    return root / _FOLDER / f"{client}-{hash_of(str(path))[:8]}.json"
