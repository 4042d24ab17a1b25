"""What clients say about themselves in headers, as data."""

from __future__ import annotations

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
"""Headers that name a session, the surest first. Whoever sends one wins over everything that we could infer."""

_AGENT_HEADER = b"x-hotset-agent"
_LONGEST = 200


def session_key(headers: Headers) -> str:
    """The session's name as the client gave it, told apart by the header that carried it."""
    given = {name.lower(): value for name, value in reversed(headers)}
    for name in SESSION_HEADERS:
        if value := given.get(name, b"").strip():
            return f"{name.decode()}:{value[:_LONGEST].decode('latin-1')}"
    return ""


def agent(headers: Headers) -> str:
    """Who asks: a header of ours, or the first product of the user agent (`claude-cli/2.1 (cli)` is claude-cli)."""
    said = header(headers, _AGENT_HEADER).strip() or header(headers, b"user-agent").split("/")[0].strip()
    return said[:_LONGEST].lower() or "unknown"


def client(headers: Headers) -> str:
    """What tells one client program from another, without its version: an update must not end a session."""
    return header(headers, b"user-agent").split("/")[0][:_LONGEST]
