"""Agents as data: the variables and arguments that send one through the proxy for one run, and
those of their settings that would send them elsewhere.

Nothing on disk is edited. Files of other programs may be missing, broken or of an unknown shape;
then they are ignored.
"""

from __future__ import annotations

import json
import os
import re
import socket
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from hotset.config import Config, is_loopback
from hotset.surfaces.proxy.address import Address

_LOOPBACK = ("127.0.0.1", "localhost")
_PROXY_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_PI_EXTENSION = Path(__file__).resolve().parents[2] / "data" / "pi_extension.ts"

BASE_URLS = {
    "OPENAI_BASE_URL": ("openai", "HOTSET_OPENAI_URL"),
    "OPENAI_API_BASE": ("openai", "HOTSET_OPENAI_URL"),
    "ANTHROPIC_BASE_URL": ("anthropic", "HOTSET_ANTHROPIC_URL"),
    "ANTHROPIC_API_BASE": ("anthropic", "HOTSET_ANTHROPIC_URL"),
}
"""The variables with which clients are redirected, and our setting for the same provider."""

_CONNECT_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """The variables and arguments that one agent reads. Texts may hold {root}, {openai}, {origin}
    and {token}."""

    name: str
    commands: frozenset[str]
    env: Mapping[str, str]
    at_home: Mapping[str, str] = field(default_factory=dict)
    """Variables for calls that end at the agent's own provider, `home`; not set if the environment
    has them."""
    home: str = ""
    documents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Variables that hold JSON; ours is merged into what is there."""
    arguments: tuple[str, ...] = ()
    """Arguments, inserted right behind the command."""
    bare: frozenset[str] = frozenset()
    """Subcommands that talk to no model and take none of our arguments."""
    key: str = ""
    """The variable with the API key; without it, `keyless` replaces `arguments`."""
    keyless: tuple[str, ...] = ()
    note: str = ""
    """A warning for a person without that key."""
    caveat: str = ""
    """A warning that is always shown."""


def _codex(*more: str) -> tuple[str, ...]:
    settings = (
        'model_providers.hotset.name="hotset"',
        'model_providers.hotset.base_url="{origin}/v1"',
        # Every user of this machine can read a command line, so the token goes by the environment.
        'model_providers.hotset.env_http_headers={"x-hotset-token"="HOTSET_TOKEN"}',
        'model_providers.hotset.wire_api="responses"',
        *more,
        'model_provider="hotset"',
    )
    return tuple(word for setting in settings for word in ("-c", setting))


PROFILES = (
    AgentProfile(
        "Claude Code",
        frozenset({"claude"}),
        {"ANTHROPIC_BASE_URL": "{root}"},
        # Claude Code switches its tool search off for hosts it does not know; the proxy passes
        # those blocks untouched.
        at_home={"ENABLE_TOOL_SEARCH": "true"},
        home="api.anthropic.com",
    ),
    AgentProfile(
        "Codex",
        frozenset({"codex"}),
        {"HOTSET_TOKEN": "{token}"},
        arguments=_codex('model_providers.hotset.env_key="OPENAI_API_KEY"'),
        key="OPENAI_API_KEY",
        keyless=_codex("model_providers.hotset.requires_openai_auth=true"),
        note="OPENAI_API_KEY is not set, so Codex uses its own login; for a ChatGPT login, "
        "restart the proxy with HOTSET_OPENAI_URL=https://chatgpt.com/backend-api/codex",
        # Codex writes the provider's name into each thread and refuses one whose provider it does
        # not know.
        caveat=(
            "Codex finds and resumes a thread only under the provider "
            "it began with: for those of "
            "this run, wrap it again"
        ),
    ),
    AgentProfile(
        "opencode",
        frozenset({"opencode"}),
        {},
        documents={
            "OPENCODE_CONFIG_CONTENT": {
                "provider": {
                    "openai": {"options": {"baseURL": "{openai}"}},
                    "anthropic": {
                        "options": {"baseURL": "{openai}"}
                    },  # its Anthropic client needs the /v1 too
                }
            }
        },
    ),
    AgentProfile(
        "aider",
        frozenset({"aider"}),
        # litellm appends /v1/messages to the Anthropic one itself, and reads either name.
        {
            "OPENAI_API_BASE": "{openai}",
            "ANTHROPIC_API_BASE": "{root}",
            "ANTHROPIC_BASE_URL": "{root}",
        },
    ),
    AgentProfile(
        "goose",
        frozenset({"goose", "goosed"}),
        # goose resolves paths against its hosts like links on a page: without the last slash the
        # token would be cut off.
        {
            "OPENAI_HOST": "{origin}",
            "OPENAI_BASE_PATH": "{token}/v1/chat/completions",
            "ANTHROPIC_HOST": "{root}/",
        },
    ),
    AgentProfile(
        "pi",
        frozenset({"pi"}),
        # pi itself reads neither; the extension does.
        {"OPENAI_BASE_URL": "{openai}", "ANTHROPIC_BASE_URL": "{root}"},
        arguments=("-e", str(_PI_EXTENSION)),
        bare=frozenset({"install", "remove", "uninstall", "update", "list", "config"}),
    ),
)

ANY_OTHER = AgentProfile(
    "any other agent",
    frozenset(),
    {"OPENAI_BASE_URL": "{openai}", "OPENAI_API_BASE": "{openai}", "ANTHROPIC_BASE_URL": "{root}"},
)


@dataclass(frozen=True, slots=True)
class AgentSetup:
    """The environment and command of one run of an agent."""

    profile: AgentProfile
    changed: Mapping[str, str]
    """The variables that we set."""
    arguments: tuple[str, ...]
    """The arguments that we add."""
    command: tuple[str, ...]
    """The whole command, with them."""
    notes: tuple[str, ...]


def profile_of(command: str) -> AgentProfile:
    name = Path(command).name
    return next((profile for profile in PROFILES if name in profile.commands), ANY_OTHER)


def set_up(
    command: Sequence[str], root: str, env: Mapping[str, str], upstream_hosts: Collection[str]
) -> AgentSetup:
    """The variables and arguments with which this command goes through the proxy at `root`."""
    profile = profile_of(command[0])
    has_key = not profile.key or bool(env.get(profile.key))
    texts = profile.arguments if has_key else profile.keyless
    arguments = (
        ()
        if len(command) > 1 and command[1] in profile.bare
        else tuple(fill(text, root) for text in texts)
    )
    changed = {name: fill(text, root) for name, text in profile.env.items()}
    if profile.home in upstream_hosts:
        changed |= {name: text for name, text in profile.at_home.items() if name not in env}
    changed |= {
        name: _overlay_json(env.get(name, ""), _fill_all(ours, root))
        for name, ours in profile.documents.items()
    }
    changed |= no_proxy_variables(env)
    return AgentSetup(
        profile=profile,
        changed=changed,
        arguments=arguments,
        command=(command[0], *arguments, *command[1:]),
        notes=tuple(filter(None, (profile.caveat, "" if has_key else profile.note))),
    )


def no_proxy_variables(env: Mapping[str, str]) -> dict[str, str]:
    """The value of NO_PROXY that keeps loopback out of the machine's HTTP proxy."""
    if not any(env.get(name) or env.get(name.lower()) for name in _PROXY_NAMES):
        return {}
    there = [
        host.strip()
        for host in (env.get("NO_PROXY") or env.get("no_proxy") or "").split(",")
        if host.strip()
    ]
    missing = [host for host in _LOOPBACK if host not in there]
    if "*" in there or not missing:
        return {}
    whole = ",".join([*there, *missing])
    return {"NO_PROXY": whole, "no_proxy": whole}


def fill(text: str, root: str) -> str:
    """The text of a setting with the parts of a base URL in their places."""
    parts = urlsplit(root)
    origin, token = f"{parts.scheme}://{parts.netloc}", parts.path.strip("/")
    for name, value in (
        ("root", root),
        ("openai", f"{root}/v1"),
        ("origin", origin),
        ("token", token),
    ):
        text = text.replace(f"{{{name}}}", value)
    return text


def _fill_all(document: Any, root: str) -> Any:
    if isinstance(document, Mapping):
        return {name: _fill_all(value, root) for name, value in document.items()}
    return fill(document, root) if isinstance(document, str) else document


def _overlay_json(there: str, ours: Any) -> str:
    try:
        document = json.loads(there) if there else {}
    except ValueError:
        document = {}
    return json.dumps(_merge(document, ours))


def _merge(below: Any, above: Any) -> Any:
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{name: _merge(below.get(name), value) for name, value in above.items()}}


@dataclass(frozen=True, slots=True)
class Routing:
    """One place that sets where an agent sends its calls."""

    agent: str
    where: str
    """The variable or file that sets it."""
    url: str
    wins: bool
    """True if it overrides what `hotset wrap` sets."""


class UrlTarget(Enum):
    """The destination of a base URL."""

    HERE = "to this project's proxy"
    WRONG_TOKEN = "to this project's proxy, but with a wrong token"  # noqa: S105 - not a token
    DEAD = "to a port of this machine where nothing answers"
    LOCAL = "to another program on this machine"
    ELSEWHERE = "elsewhere"


def target_of(url: str, address: Address | None) -> UrlTarget:
    parts = _parts(url)
    if parts is None or not is_loopback(parts.hostname or ""):
        return UrlTarget.ELSEWHERE
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if address is not None and port == address.port:
        return (
            UrlTarget.HERE if parts.path.startswith(f"/{address.token}") else UrlTarget.WRONG_TOKEN
        )
    return UrlTarget.LOCAL if _is_listening(port) else UrlTarget.DEAD


def redact_url(url: str) -> str:
    """A URL without its possible secrets: path, query, user and password."""
    parts = _parts(url)
    if parts is None or not parts.hostname:
        return "something that is not a URL"
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}" + ("/****" if parts.path.strip("/") else "")


def find_routings(env: Mapping[str, str], project: Path) -> Iterator[Routing]:
    """Every known place that sets where an agent sends its calls."""
    home = Path(env.get("HOME") or "~").expanduser()
    claude = Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    codex = Path(env.get("CODEX_HOME") or home / ".codex") / "config.toml"
    opencode = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
    for file in (
        claude / "settings.json",
        project / ".claude" / "settings.json",
        project / ".claude" / "settings.local.json",
    ):
        yield from _routing("Claude Code", file, _dig(_json(file), "env", "ANTHROPIC_BASE_URL"))
    yield from _routing("Codex", codex, _codex_url(_toml(codex)))
    for folder in (opencode, project):
        for file in (folder / "opencode.json", folder / "opencode.jsonc"):
            settings = _json(file)
            for provider in ("openai", "anthropic"):
                url = _dig(settings, "provider", provider, "options", "baseURL")
                yield from _routing("opencode", file, url)


def overriding_settings(profile: str, config: Config, root: str) -> Iterator[str]:
    """Settings that would send a wrapped agent past the proxy."""
    for routing in find_routings(os.environ, config.project):
        if routing.agent == profile and routing.wins and not routing.url.startswith(root):
            yield (
                f"{routing.where} sends {routing.agent} to "
                f"{redact_url(routing.url)} and wins over the "
                f"environment; remove it there"
            )


def _routing(agent: str, file: Path, url: Any) -> Iterator[Routing]:
    if isinstance(url, str) and url:
        yield Routing(agent, str(file), url, wins=agent == "Claude Code")


def _codex_url(settings: Mapping[str, Any]) -> Any:
    provider = settings.get("model_provider", "openai")
    return _dig(settings, "model_providers", provider, "base_url") or settings.get(
        "openai_base_url"
    )


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _is_listening(port: int) -> bool:
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
