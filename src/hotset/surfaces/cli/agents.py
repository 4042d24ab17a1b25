"""How each agent is told where to go, as data: variables and arguments, for this one run; nothing
on disk is edited."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_LOOPBACK = ("127.0.0.1", "localhost")
_PROXY_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_PI_EXTENSION = Path(__file__).resolve().parents[2] / "data" / "pi_extension.ts"


@dataclass(frozen=True, slots=True)
class Profile:
    """What one agent listens to. Texts may hold {root}, {openai}, {origin} and {token}."""

    name: str
    commands: frozenset[str]
    env: Mapping[str, str]
    at_home: Mapping[str, str] = field(default_factory=dict)
    """Variables for when calls end at the agent's own provider, `home`; set only where nobody has
    set them."""
    home: str = ""
    documents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Variables that hold JSON; ours is laid over what is there."""
    arguments: tuple[str, ...] = ()
    """Put right behind the command."""
    bare: frozenset[str] = frozenset()
    """Subcommands that talk to no model and take no arguments of ours."""
    key: str = ""
    """The variable with the API key; without it, `keyless` takes the place of `arguments`."""
    keyless: tuple[str, ...] = ()
    note: str = ""
    """What a person without that key should know."""
    caveat: str = ""
    """What everybody should know."""


def _codex(*more: str) -> tuple[str, ...]:
    settings = (
        'model_providers.hotset.name="hotset"',
        'model_providers.hotset.base_url="{origin}/v1"',
        # Everybody on this machine can read a command line, so the token goes by the environment.
        'model_providers.hotset.env_http_headers={"x-hotset-token"="HOTSET_TOKEN"}',
        'model_providers.hotset.wire_api="responses"',
        *more,
        'model_provider="hotset"',
    )
    return tuple(word for setting in settings for word in ("-c", setting))


PROFILES = (
    Profile(
        "Claude Code",
        frozenset({"claude"}),
        {"ANTHROPIC_BASE_URL": "{root}"},
        # Claude Code switches its tool search off for hosts it does not know; the proxy passes
        # those blocks untouched.
        at_home={"ENABLE_TOOL_SEARCH": "true"},
        home="api.anthropic.com",
    ),
    Profile(
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
    Profile(
        "opencode",
        frozenset({"opencode"}),
        {},
        documents={
            "OPENCODE_CONFIG_CONTENT": {
                "provider": {
                    "openai": {"options": {"baseURL": "{openai}"}},
                    "anthropic": {
                        "options": {"baseURL": "{openai}"}
                    },  # its Anthropic client wants the /v1 too
                }
            }
        },
    ),
    Profile(
        "aider",
        frozenset({"aider"}),
        # litellm puts /v1/messages behind the Anthropic one itself, and reads either name.
        {
            "OPENAI_API_BASE": "{openai}",
            "ANTHROPIC_API_BASE": "{root}",
            "ANTHROPIC_BASE_URL": "{root}",
        },
    ),
    Profile(
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
    Profile(
        "pi",
        frozenset({"pi"}),
        # pi itself reads neither; the extension does.
        {"OPENAI_BASE_URL": "{openai}", "ANTHROPIC_BASE_URL": "{root}"},
        arguments=("-e", str(_PI_EXTENSION)),
        bare=frozenset({"install", "remove", "uninstall", "update", "list", "config"}),
    ),
)

ANY_OTHER = Profile(
    "any other agent",
    frozenset(),
    {"OPENAI_BASE_URL": "{openai}", "OPENAI_API_BASE": "{openai}", "ANTHROPIC_BASE_URL": "{root}"},
)


@dataclass(frozen=True, slots=True)
class Setup:
    """What one run of an agent gets."""

    profile: Profile
    changed: Mapping[str, str]
    """The variables that we set."""
    arguments: tuple[str, ...]
    """The arguments that we add."""
    command: tuple[str, ...]
    """The whole command, with them."""
    notes: tuple[str, ...]


def profile_of(command: str) -> Profile:
    name = Path(command).name
    return next((profile for profile in PROFILES if name in profile.commands), ANY_OTHER)


def set_up(
    command: Sequence[str], root: str, env: Mapping[str, str], upstream_hosts: Collection[str]
) -> Setup:
    """The variables and arguments with which this command goes through the proxy at `root`."""
    profile = profile_of(command[0])
    has_key = not profile.key or bool(env.get(profile.key))
    texts = profile.arguments if has_key else profile.keyless
    arguments = (
        ()
        if len(command) > 1 and command[1] in profile.bare
        else tuple(_fill(text, root) for text in texts)
    )
    changed = {name: _fill(text, root) for name, text in profile.env.items()}
    if profile.home in upstream_hosts:
        changed |= {name: text for name, text in profile.at_home.items() if name not in env}
    changed |= {
        name: _laid_over(env.get(name, ""), _fill_all(ours, root))
        for name, ours in profile.documents.items()
    }
    changed |= around_proxies(env)
    return Setup(
        profile=profile,
        changed=changed,
        arguments=arguments,
        command=(command[0], *arguments, *command[1:]),
        notes=tuple(filter(None, (profile.caveat, "" if has_key else profile.note))),
    )


def around_proxies(env: Mapping[str, str]) -> dict[str, str]:
    """Loopback must not go through the machine's HTTP proxy: what NO_PROXY has to say then."""
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


def _fill(text: str, root: str) -> str:
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
    return _fill(document, root) if isinstance(document, str) else document


def _laid_over(there: str, ours: Any) -> str:
    try:
        document = json.loads(there) if there else {}
    except ValueError:
        document = {}
    return json.dumps(_merged(document, ours))


def _merged(below: Any, above: Any) -> Any:
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{name: _merged(below.get(name), value) for name, value in above.items()}}
