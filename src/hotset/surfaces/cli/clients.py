"""Where agents on this machine are told to go: read from the environment and their settings files,
never written.

Files of other programs may be missing, broken or of a shape we do not know; then there is nothing
to tell.
"""

from __future__ import annotations

import json
import os
import re
import socket
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from hotset.config import Config, is_loopback
from hotset.surfaces.proxy.address import Address

BASE_URLS = {
    "OPENAI_BASE_URL": ("openai", "HOTSET_OPENAI_URL"),
    "OPENAI_API_BASE": ("openai", "HOTSET_OPENAI_URL"),
    "ANTHROPIC_BASE_URL": ("anthropic", "HOTSET_ANTHROPIC_URL"),
    "ANTHROPIC_API_BASE": ("anthropic", "HOTSET_ANTHROPIC_URL"),
}
"""The variables by which clients are sent elsewhere, and our setting for the same provider."""

_CONNECT_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Routing:
    """One place that says where one agent goes."""

    agent: str
    where: str
    """The variable or file that says it."""
    url: str
    wins: bool
    """It wins over what `hotset wrap` sets."""


class Leads(Enum):
    """Where a base URL leads."""

    HERE = "to this project's proxy"
    WRONG_TOKEN = "to this project's proxy, but with a wrong token"  # noqa: S105 - not a token
    DEAD = "to a port of this machine where nobody answers"
    LOCAL = "to another program on this machine"
    ELSEWHERE = "elsewhere"


def leads(url: str, address: Address | None) -> Leads:
    parts = _parts(url)
    if parts is None or not is_loopback(parts.hostname or ""):
        return Leads.ELSEWHERE
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if address is not None and port == address.port:
        return Leads.HERE if parts.path.startswith(f"/{address.token}") else Leads.WRONG_TOKEN
    return Leads.LOCAL if _answers(port) else Leads.DEAD


def shown(url: str) -> str:
    """A URL without what could be a secret in it: its path, query, user and password."""
    parts = _parts(url)
    if parts is None or not parts.hostname:
        return "something that is not a URL"
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}" + ("/****" if parts.path.strip("/") else "")


def routings(env: Mapping[str, str], project: Path) -> Iterator[Routing]:
    """Every place that is known to say where an agent goes."""
    home = Path(env.get("HOME") or "~").expanduser()
    yield from _of_claude(Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude"), project)
    yield from _of_codex(Path(env.get("CODEX_HOME") or home / ".codex") / "config.toml")
    settings = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
    for folder in (settings, project):
        for name in ("opencode.json", "opencode.jsonc"):
            yield from _of_opencode(folder / name)


def overriding(profile: str, config: Config, root: str) -> Iterator[str]:
    """Settings that would send a wrapped agent past the proxy."""
    for routing in routings(os.environ, config.project):
        if routing.agent == profile and routing.wins and not routing.url.startswith(root):
            yield (
                f"{routing.where} sends {routing.agent} to "
                f"{shown(routing.url)} and wins over the "
                f"environment; remove it there"
            )


def _of_claude(folder: Path, project: Path) -> Iterator[Routing]:
    files = (
        folder / "settings.json",
        project / ".claude" / "settings.json",
        project / ".claude" / "settings.local.json",
    )
    for file in files:
        url = _dig(_json(file), "env", "ANTHROPIC_BASE_URL")
        if isinstance(url, str) and url:
            yield Routing("Claude Code", str(file), url, wins=True)


def _of_codex(file: Path) -> Iterator[Routing]:
    settings = _toml(file)
    provider = settings.get("model_provider", "openai")
    url = _dig(settings, "model_providers", provider, "base_url") or settings.get("openai_base_url")
    if isinstance(url, str) and url:
        yield Routing("Codex", str(file), url, wins=False)


def _of_opencode(file: Path) -> Iterator[Routing]:
    settings = _json(file)
    for provider in ("openai", "anthropic"):
        url = _dig(settings, "provider", provider, "options", "baseURL")
        if isinstance(url, str) and url:
            yield Routing("opencode", str(file), url, wins=False)


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), _CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def _dig(value: Any, *names: Any) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) and isinstance(name, str) else None
    return value


def _json(file: Path) -> Any:
    text = _text(file)
    for candidate in (text, re.sub(r"(?m)^\s*//.*$|,(?=\s*[}\]])", "", text)):
        try:
            return json.loads(candidate)
        except ValueError:
            continue
    return {}


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(file))
    except tomllib.TOMLDecodeError:
        return {}


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
