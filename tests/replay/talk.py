"""Recorded sessions for tests: an agent that reads files and edits what it read."""

from __future__ import annotations

from hotset.nouns.page import Role
from hotset.replay.conversation import (
    RecordedCall,
    RecordedConversation,
    RecordedMessage,
    RecordedSession,
    split_conversations,
)

WORDS = "the quick brown fox jumps over a lazy dog and goes home again\n"


def step(number: int, result: str, *, asks: str = "") -> list[RecordedMessage]:
    """A reply that reads a file, and what came back."""
    call = RecordedCall(f"c{number}", "Read", f'{{"path": "{asks or f"src/file_{number}.py"}"}}')
    return [
        RecordedMessage(Role.ASSISTANT, f"I read on, step {number}.", (call,), time=100.0 * number),
        RecordedMessage(Role.TOOL, result, call=call.id, tool="Read", time=100.0 * number + 1),
    ]


def talk(
    results: list[str], *, name: str = "one", set: str = "tests", model: str = "claude-sonnet-4"
) -> RecordedSession:
    """A system text, a prompt, a step a result, and a last word."""
    opening = [
        RecordedMessage(Role.SYSTEM, "You mend tests."),
        RecordedMessage(Role.USER, "Mend tests/test_clock_9.py"),
    ]
    steps = [message for number, result in enumerate(results) for message in step(number, result)]
    return RecordedSession(
        name,
        set,
        model,
        (*opening, *steps, RecordedMessage(Role.ASSISTANT, "Done.", time=100.0 * len(results))),
    )


def long_result(number: int, size: int = 2000) -> str:
    """Text with one name that stands nowhere else, at its end."""
    return (WORDS * (size // len(WORDS) + 1))[:size] + f"\nid_{number}_end"


def only(recorded: RecordedSession) -> RecordedConversation:
    (conversation,) = split_conversations(recorded)
    return conversation
