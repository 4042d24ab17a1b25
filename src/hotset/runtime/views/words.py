"""How forms and their causes are called in front of a person."""

from __future__ import annotations

from hotset.nouns.window import Cause, Form

FORM_WORDS = {
    Form.EXCERPT: "an excerpt",
    Form.ECHO: "a line that points to the same result",
    Form.OVERLAP: "its new lines, and where the others are",
    Form.CHANGE: "what changed",
    Form.STUB: "a reference",
    Form.GONE: "a reference and a log",
}
CAUSE_WORDS = {
    Cause.BIRTH: "when it was first shown",
    Cause.OVERFLOW: "because the window would have overflowed",
    Cause.COLD: "because the provider's cache was cold anyway",
    Cause.REWOUND: "because the client had changed the past anyway",
    Cause.PAYS: "because reading it on would have cost more",
    Cause.GROWN: "because too many steps were in the window",
    Cause.HANDOFF: "because the agent handed its window over",
    Cause.PERSON: "because a person ordered it",
}

BREAK_WORDS = {
    Cause.OVERFLOW: "the window would have been full",
    Cause.COLD: "the provider had dropped its cache anyway",
    Cause.REWOUND: "the client changed an earlier part of the conversation",
    Cause.PAYS: "old steps left that would have cost more to read on",
    Cause.GROWN: "old steps left, because there were too many",
    Cause.HANDOFF: "the agent handed over to a successor",
    Cause.PERSON: "a person ordered it",
}


def break_words(cause: str) -> str:
    """Why a prompt did not extend the one before."""
    return BREAK_WORDS[Cause(cause)] if cause in BREAK_WORDS else cause
