"""What a client inserts into a prompt, and the prompt without it."""

from __future__ import annotations

_NOTES = (
    "system-reminder",
    "local-command-caveat",
    "local-command-stdout",
    "environment_context",
    "permissions instructions",
    "user_instructions",
    "INSTRUCTIONS",
)


def asked_in(text: str) -> str:
    """The user's text without what a client inserted: files named there are not part of the
    question."""
    for name in _NOTES:
        mark, end = f"<{name}>", f"</{name}>"
        kept, at = [], 0
        while (begin := text.find(mark, at)) >= 0:
            kept.append(text[at:begin])
            close = text.find(end, begin)
            at = close + len(end) if close >= 0 else len(text)
        text = "".join((*kept, text[at:]))
    return text
