"""The line that stays of what left: what it was, how much, when, what it was about, and the call that brings it back."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from hotset.nouns.page import Kind
from hotset.nouns.window import Line, Piece, Spot, Stub
from hotset.window.names import names, spoken
from hotset.window.steps import answers

_TOPICS, _ENTITIES, _HINTS = 5, 24, 3
_MENTIONED = 600
"""Characters of names that a stretch's log ends with."""

_SAID = 100
_ERRORS = ("error", "Error", "ERROR", "failed", "FAILED", "Traceback", "fatal:")


def stub_of(spots: Sequence[Spot], lines: Sequence[Line], turns: tuple[int, int], kind: str, time: float) -> Stub:
    """What is known of lines that leave together."""
    paths, others = _commonest(lines)
    return Stub(
        id=_id(spots),
        kind=kind,
        spots=tuple(spots),
        turns=turns,
        tokens=sum(line.extra + sum(piece.tokens for piece in line.pieces) for line in lines),
        time=time,
        topics=tuple((paths + others)[:_TOPICS]),
        entities=tuple((paths + others)[:_ENTITIES]),
        hints=tuple(paths[:_HINTS]),
    )


def reference(stub: Stub) -> str:
    """One line, as the model sees it."""
    first, last = stub.turns
    count = last - first + 1
    when = f" @ {datetime.fromtimestamp(stub.time, UTC):%H:%M}" if stub.time else ""
    turns = f"turns {first}-{last}" if count > 1 else f"turn {first}"
    topics = f" | Topics: {', '.join(stub.topics)}" if stub.topics else ""
    return (
        f"[CTX-REF:{stub.kind} | {turns}, {count} {'turns' if count > 1 else 'turn'} ({stub.tokens:,} tokens){when}{topics}"
        f' | retrieve_context(id="{stub.id}")]'
    )


def stretch(stub: Stub, log: Iterable[str], summary: str = "") -> str:
    """What stands in place of a stretch of work: the reference, a summary where there is one, and what was done."""
    entries = [entry for entry in log if entry]
    told = [reference(stub)]
    if summary:
        told.append(summary)
    if entries:
        told += ["What was done there:", *entries]
    written = "\n".join(told)
    missing = [name for name in stub.entities if name not in written]
    if missing:
        told.append(f"Also there: {' '.join(_within(missing, _MENTIONED))}")
    return "\n".join(told)


def entry(lines: Sequence[Line], number: int, room: int) -> str:
    """One line of a log: what the model said and called in one step, and how it went."""
    pieces = [piece for line in lines for piece in line.pieces]
    said = next((_line(piece) for piece in pieces if piece.kind is Kind.RESPONSE and piece.content.strip()), "")
    done = "; ".join(
        f"{piece.tool} {' '.join(spoken(piece.content).split())}".strip()
        for piece in pieces
        if piece.kind.family is Kind.TOOL_CALL and not answers_call(piece)
    )
    went = next((found for line in lines if answers(line) for piece in line.pieces if (found := _error(piece))), "")
    told = _clip(done, room) if done else _clip(said, 2 * room)
    if done and said:
        told = f"{_clip(said, min(_SAID, room // 2))} | {told}"
    return f"- {number}: {told}" + (f" -> {_clip(went, room // 2)}" if went else "")


def answers_call(piece: Piece) -> bool:
    return piece.kind.family is Kind.TOOL_RESULT


def _line(piece: Piece) -> str:
    return " ".join(piece.content[:1000].decode("utf-8", "replace").split())


def _error(piece: Piece) -> str:
    if piece.kind.family is not Kind.TOOL_RESULT:
        return ""
    text = piece.content[:20_000].decode("utf-8", "replace")
    if not any(word in text for word in _ERRORS):
        return ""
    return next((" ".join(line.split()) for line in text.splitlines() if any(word in line for word in _ERRORS)), "")


def _commonest(lines: Sequence[Line]) -> tuple[list[str], list[str]]:
    """Paths, and other names, the most frequent first; calls count more, because they were acted upon."""
    found: Counter[str] = Counter()
    for line in lines:
        for piece in line.pieces:
            if piece.kind is Kind.IMAGE or piece.kind is Kind.THINKING:
                continue
            called = piece.kind.family is Kind.TOOL_CALL
            text = spoken(piece.content) if called else piece.content[:40_000].decode("utf-8", "replace")
            for name in names(text):
                found[name] += 4 if called else 1
    ranked = [name for name, _ in sorted(found.items(), key=lambda item: (-item[1], item[0]))]
    paths = [name for name in ranked if "/" in name]
    return paths, [name for name in ranked if "/" not in name]


def _within(words: Iterable[str], room: int) -> list[str]:
    kept: list[str] = []
    for word in words:
        room -= len(word) + 1
        if room < 0:
            break
        kept.append(word)
    return kept


def _clip(text: str, room: int) -> str:
    return text if len(text) <= room else text[: max(0, room - 1)] + "…"


def _id(spots: Sequence[Spot]) -> str:
    """The same pages get the same name, on any machine."""
    told = "\n".join(f"{spot.chain}:{spot.position}" for spot in spots)
    return "r" + hashlib.sha256(told.encode()).hexdigest()[:11]
