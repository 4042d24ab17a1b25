"""Memories in a line, and a topic's memories in one: cut from their own words, never worded anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hotset.nouns.memory import Checkpoint, Ending, Episode, Memory, MemoryKind, Pitfall, Procedure
from hotset.sources.memory.disclosing.telling import day, most_that_fit, one_line
from hotset.sources.memory.encoding.words import telling

LINE_TOKENS = 25
"""Episodes of 470 recorded sessions take 102 in full on average; their lines take 17, and the pages behind them 20,000."""

_MOST_READ = 300  # characters: more than so many tokens hold
_MOST_WORDS = 8


def line_of(memory: Memory, max_tokens: int = LINE_TOKENS) -> str:
    """What it says in a line: an episode's goal, what it changed and how it ended; what fails and what helps instead."""
    said = one_line(_said(memory), _MOST_READ)
    ending = f" ({memory.ending})" if memory.kind is MemoryKind.EPISODE and memory.ending is not Ending.UNKNOWN else ""
    return _cut(said, ending, max_tokens)


def topic_line(topic: str, memories: Sequence[Memory], max_tokens: int = LINE_TOKENS) -> str:
    """How many memories a topic has, since when it rests, and the words that most of their titles share."""
    counted = Counter(word for memory in memories for word in frozenset(telling(memory.title)))
    known = frozenset(telling(topic))
    ranked = sorted((-many, word) for word, many in counted.items() if word not in known)
    last = day(max((memory.created for memory in memories), default=0.0)) if memories else ""
    head = f"{one_line(topic, _MOST_READ // 4)} ({len(memories)}{f', {last}' if last else ''})"
    words = [word for _, word in ranked[:_MOST_WORDS]]

    def render(many: int) -> str:
        return f"{head}: {', '.join(words[:many])}" if many else head

    return render(max(0, most_that_fit(render, len(words), max_tokens)))


def _said(memory: Memory) -> str:
    title = memory.title or memory.text
    match memory.detail:
        case Episode(artifacts=artifacts) if artifacts:
            names = ", ".join(path.rsplit("/", 1)[-1] for path in artifacts[:2])
            return title if all(name in title for name in names.split(", ")) else f"{title} [{names}]"
        case Pitfall(what=what, instead=instead) if what:
            return f"{what}: {instead}" if instead else what
        case Procedure(when=when, steps=steps) if steps:
            return f"{when or title}: {'; '.join(steps)}"
        case Checkpoint(doing=doing) if doing:
            return f"{title}: {doing}" if doing not in title else title
        case _:
            return title


def _cut(said: str, ending: str, max_tokens: int) -> str:
    """Words from the front, as many as fit with what must stand behind them; of a single endless word some signs."""
    words = said.split(" ")

    def render(many: int) -> str:
        return " ".join(words[:many]) + ("…" if many < len(words) else "") + ending

    many = most_that_fit(render, len(words), max_tokens)
    if many > 0:
        return render(many)

    def render_signs(many: int) -> str:
        return f"{said[:many]}…{ending}"

    return render_signs(max(0, most_that_fit(render_signs, min(len(said), 4 * max_tokens), max_tokens)))
