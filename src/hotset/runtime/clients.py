"""What clients say about themselves in headers."""

from __future__ import annotations

import json
from collections.abc import Iterable

from hotset.nouns.call import Headers, header

SESSION_HEADERS = (
    b"x-hotset-session",
    b"x-claude-code-session-id",
    b"session_id",  # Codex
    b"session-id",
    b"conversation_id",
    b"conversation-id",
    b"x-session-id",
    b"x-conversation-id",
    b"x-opencode-session",
    b"x-session-affinity",
    b"x-thread-id",
    b"thread_id",
)
"""Headers that name a session, the most reliable first. A header wins over everything that we could
infer."""

PARENT_HEADERS = (
    b"x-hotset-parent",
    b"x-codex-parent-thread-id",
    b"x-parent-session-id",  # opencode
)
"""Headers that name the session whose agent started this one, under any of its
`SESSION_HEADERS`."""

_CLAUDE_SESSION, _CLAUDE_AGENT = b"x-claude-code-session-id", b"x-claude-code-agent-id"
_CLAUDE_PARENT_AGENT = b"x-claude-code-parent-agent-id"
_CODEX_PARENT, _CODEX_THREAD = b"x-codex-parent-thread-id", b"thread-id"
_OURS = b"x-hotset-session"
AGENT_HEADER = b"x-hotset-agent"
"""Names the agent, and with it its kind: the profile of that name."""
_KIND_HEADER, _METADATA_HEADER = b"x-hotset-kind", b"x-hotset-metadata"
_LONGEST = 200
_MOST_METADATA = 20


def session_key(headers: Headers) -> str:
    """The session's name from the client, prefixed by the header that carried it.

    Subagents of Claude Code and Codex carry the session of the agent that started them, and a name
    of their own.
    """
    given = _header_values(headers)
    if _OURS not in given:
        if _CLAUDE_SESSION in given and _CLAUDE_AGENT in given:
            return _key(_CLAUDE_AGENT, given[_CLAUDE_SESSION] + b"/" + given[_CLAUDE_AGENT])
        if _CODEX_PARENT in given and _CODEX_THREAD in given:
            return _key(_CODEX_THREAD, given[_CODEX_THREAD])
    return next((_key(name, given[name]) for name in SESSION_HEADERS if name in given), "")


def parent_keys(headers: Headers) -> tuple[str, ...]:
    """The keys that the parent session may have; none if no header names one."""
    given = _header_values(headers)
    keys: list[str] = []
    if _CLAUDE_SESSION in given and _CLAUDE_AGENT in given:
        if _CLAUDE_PARENT_AGENT in given:
            keys.append(
                _key(_CLAUDE_AGENT, given[_CLAUDE_SESSION] + b"/" + given[_CLAUDE_PARENT_AGENT])
            )
        keys.append(_key(_CLAUDE_SESSION, given[_CLAUDE_SESSION]))
    for parent in (given[name] for name in PARENT_HEADERS if name in given):
        keys += [_key(name, parent) for name in (_CODEX_THREAD, *SESSION_HEADERS)]
    if _CODEX_PARENT in given:  # an agent between the two that was not kept
        keys += [_key(name, given[name]) for name in SESSION_HEADERS if name in given]
    return tuple(dict.fromkeys(keys))


def _header_values(headers: Headers) -> dict[bytes, bytes]:
    """The header values, the first of each name."""
    return {
        name.lower(): stripped for name, value in reversed(headers) if (stripped := value.strip())
    }


def _key(name: bytes, value: bytes) -> str:
    return f"{name.decode()}:{value[:_LONGEST].decode('latin-1')}"


def agent(headers: Headers) -> str:
    """The agent's name: from our header, or the first product of the user agent (`claude-cli/2.1
    (cli)` is claude-cli)."""
    name = (
        header(headers, AGENT_HEADER).strip()
        or header(headers, b"user-agent").split("/")[0].strip()
    )
    return name[:_LONGEST].lower() or "unknown"


def metadata(headers: Headers) -> dict[str, str]:
    """Free metadata of a session: `x-hotset-metadata: run=42; ticket=AB-1`, or a JSON object; with
    the agent's kind from `x-hotset-kind`."""
    text = header(headers, _METADATA_HEADER).strip()
    pairs: Iterable[tuple[object, object]]
    try:
        given = json.loads(text) if text.startswith("{") else None
    except ValueError:
        given = None
    if isinstance(given, dict):
        pairs = given.items()
    else:
        named = (each.partition("=") for each in text.split(";"))
        pairs = [(name.strip(), value.strip()) for name, sign, value in named if sign]
    kept = [
        (str(name)[:_LONGEST], str(value)[:_LONGEST])
        for name, value in pairs
        if name and isinstance(value, str | int | float)
    ]
    kind = header(headers, _KIND_HEADER).strip()[:_LONGEST].lower()
    return dict(kept[:_MOST_METADATA]) | ({"kind": kind} if kind else {})


def client(headers: Headers) -> str:
    """The client program without its version: an update must not end a session."""
    return header(headers, b"user-agent").split("/")[0][:_LONGEST]
