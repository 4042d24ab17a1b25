"""Where a project's proxy listens: the token, the note that a serving proxy leaves, and its
status."""

from __future__ import annotations

import logging
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from hotset.config import Config
from hotset.errors import BadInput, NotFound
from hotset.files.write import create_file, write_output
from hotset.surfaces.proxy.always_on import (
    HOST as HOST,  # noqa: PLC0414 - for those who ask for addresses
    is_known,
    shared_folder,
    unknown_folder,
)
from hotset.typed import decode

_log = logging.getLogger("hotset")

_ASK_SECONDS = 2.0
_TOKEN_BYTES = 24
_TOKEN_FILE = "token"  # noqa: S105 - the name of a file
_NOTE_FILE = "proxy.json"
PROJECTS_PATH = "hotset/projects"
"""Where the always-on proxy says what it serves, to its user's own token."""


@dataclass(frozen=True, slots=True)
class Address:
    """A serving proxy, as its note describes it."""

    port: int
    token: str
    pid: int
    nonce: str
    """Made anew at every start, so that another process on the port is not mistaken for this
    one."""
    version: str
    started: float

    @property
    def root(self) -> str:
        return f"http://{HOST}:{self.port}/{self.token}"

    def root_for(self, agent: str) -> str:
        """The base URL that also names the kind of agent which uses it."""
        return f"{self.root}~{agent}" if agent else self.root

    @property
    def openai_base_url(self) -> str:
        return f"{self.root}/v1"

    @property
    def anthropic_base_url(self) -> str:
        return self.root

    @property
    def dashboard_url(self) -> str:
        return f"{self.root}/hotset/"

    def announce(self) -> dict[str, Any]:
        """The content of a ready file."""
        return {
            "openai_base_url": self.openai_base_url,
            "anthropic_base_url": self.anthropic_base_url,
            "dashboard_url": self.dashboard_url,
            "pid": self.pid,
        }


def project_token(folder: Path) -> str:
    """The project's token; made at the first start, in a file that only its owner can read.

    Where the folder cannot be read or written, one that is valid until this process ends.
    """
    path = folder / _TOKEN_FILE
    try:
        return _read_token(path)
    except (FileNotFoundError, PermissionError):
        pass
    fresh = secrets.token_urlsafe(_TOKEN_BYTES)
    try:
        # Linked into place, so that one of two first starts wins and no process reads half a token.
        draft = folder / f".token-{secrets.token_hex(8)}"
        try:
            with create_file(draft) as file:
                file.write(fresh.encode())
            os.link(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    except FileExistsError:
        return _read_token(path)
    except OSError as error:
        _log.warning(
            "the token cannot be kept in %s: %s; it is good until this proxy ends",
            folder,
            error.strerror,
        )
    return fresh


def write_note(folder: Path, address: Address) -> None:
    try:
        write_output(folder / _NOTE_FILE, [msgspec.json.encode(address)])
    except OSError as error:
        _log.warning(
            "no note can be left in %s: %s; other commands do not find this proxy",
            folder,
            error.strerror,
        )


def remove_note(folder: Path, address: Address) -> None:
    """Removes our own note, and only ours."""
    if read_note(folder) == address:
        with suppress(OSError):
            (folder / _NOTE_FILE).unlink(missing_ok=True)


def read_note(folder: Path) -> Address | None:
    """The note of the last proxy of this project, which may be dead by now: see `ask_proxy`."""
    try:
        return decode((folder / _NOTE_FILE).read_bytes(), Address)
    except (OSError, msgspec.DecodeError):
        return None


def ask_proxy(
    address: Address, path: str = "hotset/status", *, patience: float = 1.0
) -> dict[str, Any] | None:
    """The status of the proxy at this address; None where it does not answer or is another one."""
    import http.client  # noqa: PLC0415 - with ssl and email a tenth of a short command

    connection = http.client.HTTPConnection(HOST, address.port, timeout=_ASK_SECONDS * patience)
    try:
        connection.request("GET", f"/{address.token}/{path}")
        response = connection.getresponse()
        status: dict[str, Any] = decode(response.read(), dict[str, Any])
    except (OSError, http.client.HTTPException, msgspec.DecodeError):
        return None
    finally:
        connection.close()
    return status if status.get("nonce") == address.nonce else None


def make_link(address: Address, *, patience: float = 1.0) -> str:
    """A link to the dashboard of the proxy at this address; it works once. Raises `NotFound`
    where the proxy makes none."""
    import http.client  # noqa: PLC0415 - as above

    connection = http.client.HTTPConnection(HOST, address.port, timeout=_ASK_SECONDS * patience)
    try:
        connection.request("POST", f"/{address.token}/hotset/open")
        made = decode(connection.getresponse().read(), dict[str, Any])
        return f"http://{HOST}:{address.port}{made['path']}"
    except (OSError, http.client.HTTPException, msgspec.DecodeError, KeyError) as error:
        raise NotFound(
            f"the proxy on port {address.port} (version {address.version}) makes no link; start it "
            "again"
        ) from error
    finally:
        connection.close()


def find_proxy(config: Config) -> tuple[Address | None, dict[str, Any] | None]:
    """The note of the project's last proxy, or of the always-on one that serves it, and its status;
    None where it does not answer."""
    last = read_note(config.folder)
    for note in (last, always_on_address(config)):
        status = ask_proxy(note, patience=config.patience) if note is not None else None
        if status is not None:
            return note, status
    return last, None


def always_on_address(config: Config) -> Address | None:
    """The project's address at the always-on proxy, if that left a note and knows the project."""
    running = read_note(shared_folder(config))
    if running is None or not is_known(config):
        return None
    if config.folder == unknown_folder(config):
        return running
    token = kept_token(config.folder)
    return replace(running, token=token) if token else None


def is_alive(always_on: Address, *, patience: float = 1.0) -> bool:
    """True if the always-on proxy of that note answers."""
    return ask_proxy(always_on, PROJECTS_PATH, patience=patience) is not None


def kept_token(folder: Path) -> str:
    """The token of a project's data folder; empty if it has none that can be used."""
    with suppress(OSError, BadInput):
        return _read_token(folder / _TOKEN_FILE)
    return ""


def _read_token(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        found = file.read(256).decode("ascii", "replace").strip()
    if mode & 0o077:
        raise BadInput(f"{path} can be read by others; run: chmod 600 {path}")
    if len(found) < _TOKEN_BYTES or not all(c.isalnum() or c in "-_" for c in found):
        raise BadInput(
            f"{path} does not hold a token; delete it and the next start makes a new one"
        )
    return found
