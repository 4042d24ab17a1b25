"""Chooses among the sources' candidates for a request: by worth per token, within caps and
budgets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hotset.nouns.candidate import Candidate, Choice, OfferKind, OfferSlot, OfferVerdict
from hotset.nouns.knobs import Knobs
from hotset.nouns.page import Kind
from hotset.nouns.window import WHOLE, Line, Shown, Spot
from hotset.window.ghosts import GHOSTS_ABOVE

_MOSTLY = 0.5
"""Share of a candidate's distinctive lines that must be in the window for it to count as
covered."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """The limits for one kind of candidate."""

    least: float
    """Minimum probability of use."""
    most: int
    """Maximum number of this kind."""
    room: int
    """Tokens shared by all candidates with this budget."""
    budget: str
    """Kinds with the same budget name share its room."""


def choose_tools(offers: Sequence[Candidate], knobs: Knobs, most_ghosts: int) -> tuple[Choice, ...]:
    """Choices for the tool list: every tool already in it, and the ghosts that fit."""
    listed = [each for each in offers if each.slot is OfferSlot.TOOL_LIST]
    room = round(knobs.toolbox.ghost_share * knobs.window)
    rules = {
        OfferKind.TOOL: _Rule(0.0, len(offers), 1 << 60, "tools"),
        OfferKind.GHOST: _Rule(_least_ghost(listed, knobs), most_ghosts, room, "ghosts"),
    }
    return _choose(listed, rules, None)


def choose_texts(
    offers: Sequence[Candidate],
    free: int,
    knobs: Knobs,
    count: Callable[[bytes], int],
    window: Callable[[], Collection[str]],
    *,
    most_ghosts: int = 0,
) -> tuple[Choice, ...]:
    """Choices for the text after the last message, within the `free` tokens that the plan leaves.

    `window` returns the texts that the model sees anyway.
    """
    texts = [each for each in offers if each.slot is not OfferSlot.TOOL_LIST]
    if not texts:
        return ()
    prefetch = knobs.prefetch
    headings = {each.heading for each in texts if each.kind is not OfferKind.REMINDER}
    headed = sum(count(heading.encode()) for heading in headings)
    share = int(free * prefetch.share) - headed
    rules = {
        OfferKind.REFERENCE: _Rule(0.0, 1, free, "references"),
        OfferKind.REMINDER: _Rule(0.0, 1, free, "reminders"),
        OfferKind.HANDOFF_NOTE: _Rule(0.0, 1, free, "handoff notes"),
        OfferKind.EXCERPT: _Rule(prefetch.excerpt, prefetch.excerpts, share, "prefetch"),
        OfferKind.HINT: _Rule(prefetch.hint, prefetch.hints, share, "prefetch"),
        OfferKind.GHOST: _Rule(1.0, 0, 0, "ghosts"),
    }
    if any(each.kind is OfferKind.GHOST for each in texts):
        least = _least_ghost(texts, knobs)
        room = _ghost_room(free, knobs, count, window())
        rules[OfferKind.GHOST] = _Rule(least, most_ghosts, room, "ghosts")
    return _choose(texts, rules, window)


def _least_ghost(offers: Sequence[Candidate], knobs: Knobs) -> float:
    """How likely a ghost must be: the best one decides whether the prompt asks for a tool at all;
    if it does, further ones cost little."""
    worths = [each.worth for each in offers if each.kind is OfferKind.GHOST]
    asks = max(worths, default=0.0) >= knobs.toolbox.ghost
    return knobs.toolbox.ghost * (knobs.toolbox.ghost_fit if asks else 1.0)


def _ghost_room(
    free: int, knobs: Knobs, count: Callable[[bytes], int], window: Collection[str]
) -> int:
    """Tokens for ghosts behind a prompt: those that stand in the window count, too, because every
    call of the session reads them."""
    above = count(GHOSTS_ABOVE.encode())
    used = round(knobs.window) - free
    stand = sum(count(text.encode()) for text in window if text.startswith(GHOSTS_ABOVE))
    share = max(knobs.toolbox.ghost_tokens // 3, round(knobs.toolbox.ghost_cost * used)) - stand
    return min(free, knobs.toolbox.ghost_tokens, share) - above


def _choose(
    offers: Sequence[Candidate],
    rules: Mapping[OfferKind, _Rule],
    window: Callable[[], Collection[str]] | None,
) -> tuple[Choice, ...]:
    """One choice for each candidate, in their order."""
    seen = window() if window is not None and any(each.covers for each in offers) else ()
    verdicts = [_first_verdict(each, rules[each.kind], seen) for each in offers]
    keys: set[str] = set()
    many: dict[OfferKind, int] = {}
    for at, each in enumerate(offers):
        if verdicts[at] is not OfferVerdict.TAKEN:
            continue
        if each.key in keys:
            verdicts[at] = OfferVerdict.SAME
        elif many.get(each.kind, 0) >= rules[each.kind].most:
            verdicts[at] = OfferVerdict.CAPPED
        else:
            keys.add(each.key)
            many[each.kind] = many.get(each.kind, 0) + 1
    taken = [at for at, verdict in enumerate(verdicts) if verdict is OfferVerdict.TAKEN]
    # If they do not all fit, the highest worth per token goes first.
    taken.sort(key=lambda at: -offers[at].worth / max(1, offers[at].tokens))
    left = {rule.budget: rule.room for rule in rules.values()}
    for at in taken:
        budget = rules[offers[at].kind].budget
        if offers[at].tokens > left[budget]:
            verdicts[at] = OfferVerdict.NO_ROOM
        else:
            left[budget] -= offers[at].tokens
    return tuple(Choice(each, verdict) for each, verdict in zip(offers, verdicts, strict=True))


def _first_verdict(offer: Candidate, rule: _Rule, seen: Collection[str]) -> OfferVerdict:
    if offer.worth < rule.least:
        return OfferVerdict.UNLIKELY
    if offer.covers and is_covered(offer.covers, seen):
        return OfferVerdict.COVERED
    return OfferVerdict.TAKEN


def is_covered(lines: Sequence[str], window: Collection[str]) -> bool:
    """True if most of these lines are in the window's texts."""
    there = sum(any(line in text for text in window) for line in lines)
    return there >= _MOSTLY * len(lines)


def visible_texts(
    lines: Sequence[Line], shown: Mapping[Spot, Shown], hidden: Iterable[str]
) -> Iterator[str]:
    """The texts that the model sees; `hidden` are those that the client never saw."""
    for line in lines:
        gone = shown.get(Spot(line.chain, WHOLE))
        if gone is not None:
            yield _decode(gone.text)
            continue
        for position, piece in enumerate(line.pieces):
            row = shown.get(Spot(line.chain, position))
            yield _decode(row.text if row is not None and row.text else piece.content)
            if piece.kind.family is Kind.TOOL_CALL:  # in JSON, lines of text are no lines
                yield _decode(piece.content.replace(b"\\n", b"\n").replace(b'\\"', b'"'))
    yield from hidden


def _decode(content: bytes) -> str:
    return content.decode("utf-8", "replace")
