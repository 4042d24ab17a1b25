"""The line of `hotset statusline`, asked of the proxy that serves. It is printed several times a
minute, so this loads a socket, and neither click nor the store."""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hotset.places import find_folders

NEUTRAL = "hotset · not serving"
_NOTE, _TOKEN, _ALWAYS_ON = "proxy.json", "token", "service"
_HOST = "127.0.0.1"
_SECONDS = 1.0
_MOST_BYTES = 4096
_LONGEST = 200


def print_line(given: Mapping[str, Any] | None = None) -> None:
    """Prints the line of the session that stdin names, as Claude Code does. Never fails."""
    try:
        asked = _read_stdin() if given is None else given
        text = _line(asked)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        text = NEUTRAL
    sys.stdout.write(text + "\n")


def _read_stdin() -> Mapping[str, Any]:
    """What the client says of its session; empty without any of it."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return {}
    ready, _, _ = select.select([sys.stdin], [], [], 0.0)
    text = sys.stdin.read() if ready else ""
    found = json.loads(text) if text.strip() else {}
    return found if isinstance(found, dict) else {}


def _line(asked: Mapping[str, Any]) -> str:
    workspace = asked.get("workspace")
    places = workspace if isinstance(workspace, dict) else {}
    start = places.get("project_dir") or asked.get("cwd") or os.getcwd()  # noqa: PTH109 - cheaper
    target = f"hotset/line?session={quote(str(asked.get('session_id') or ''))}"
    for port, token in _addresses(*find_folders(Path(start), os.environ)):
        with suppress(OSError):
            answer = _get(port, f"/{token}/{target}")
            head, _, body = answer.partition(b"\r\n\r\n")
            text = body.decode()[:_LONGEST]
            if b" 200 " in head.partition(b"\r\n")[0] and text.isprintable() and text:
                return text
    return NEUTRAL


def _addresses(folder: Path, home: Path) -> Iterator[tuple[int, str]]:
    """Where the project's own proxy may listen, and the always-on one."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        note = json.loads((folder / _NOTE).read_bytes())
        yield int(note["port"]), str(note["token"])
    with suppress(OSError, ValueError, KeyError, TypeError):
        note = json.loads((home / _ALWAYS_ON / _NOTE).read_bytes())
        yield int(note["port"]), (folder / _TOKEN).read_text("ascii").strip()


def _get(port: int, target: str) -> bytes:
    with socket.create_connection((_HOST, port), _SECONDS) as connection:
        connection.sendall(f"GET {target} HTTP/1.0\r\nHost: {_HOST}:{port}\r\n\r\n".encode())
        answer = b""
        while len(answer) < _MOST_BYTES and (piece := connection.recv(_MOST_BYTES)):
            answer += piece
    return answer
