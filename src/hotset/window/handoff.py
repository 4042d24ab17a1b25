"""Hands a window over to a successor: all but the latest and the hottest steps leave at once, and
the state of the work stands in their place.

The user's messages stay, word for word. The state begins with the reference that brings back what
left, so it is kept, mended and found like any other stub.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from hotset.errors import Malformed
from hotset.nouns.candidate import Candidate, OfferKind, OfferSlot
from hotset.nouns.handoff import AgentNote, AnyState, HandoffReason, HandoffState, noted_fields
from hotset.nouns.knobs import Knobs, StateName
from hotset.nouns.message import ToolSpec
from hotset.nouns.page import Role
from hotset.nouns.window import Cause, Form, Line, Shown
from hotset.typed import decode
from hotset.window.birth import shorten_results
from hotset.window.evict import StepNames, may_leave, pays, shown_anew
from hotset.window.leave import (
    Departure,
    bare_reference,
    reference,
    replace_run,
    runs_of,
    stub_late,
    stub_of_run,
    stub_pages,
)
from hotset.window.moment import Moment
from hotset.window.retrieval_tools import TEXT, Fields, decode_arguments, spec
from hotset.window.step_sizes import Step, WeighedConversation
from hotset.window.work.state import build_state, program_notes, state_lines

HANDOFF_NOTE = "handoff_note"

_LEAST_SHARE = 0.1
"""Of the window, that must leave: otherwise the next call would hand over again."""

_MORE = 1.25
"""Times `start`, that a successor begins with at most."""

_STATE_SHARE = 0.3
"""Of what a successor begins with, for the state."""

_EXCERPT = 0.75  # of its room; beside it stand names, and how it is brought back
_LEAST_RESULT = 300  # characters of one that stays; less says nothing
_LEAST_STATE, _MOST_STATE = 1200, 24_000  # characters
_CHARS_PER_TOKEN = 4
_REFERENCE = 110  # tokens of one, about
_AROUND = 8  # tokens around a message of ours
_COOLS = 0.9
"""Weight of a use, for each step since."""

_HEADING = re.compile(rb"^\[hotset: handoff (\d+)", re.MULTILINE)


def note_spec(state: StateName) -> ToolSpec:
    """The tool with which an agent of this kind says what its successor must know."""
    return spec(
        HANDOFF_NOTE,
        "Tell your successor, who continues in a fresh window, what it must know.",
        [],
        **dict.fromkeys(noted_fields(state), TEXT),
    )


def parse_note(arguments: bytes, state: StateName, turn: int = 0) -> AgentNote:
    """The note in a call of `handoff_note`. Raises `Malformed`."""
    example = f'send {{"{noted_fields(state)[0]}": "..."}}'
    given = decode_arguments(HANDOFF_NOTE, arguments, example)
    fields = Fields(HANDOFF_NOTE, given)
    found = {name: texts for name in noted_fields(state) if (texts := _texts(given, name, fields))}
    if not found:
        raise Malformed(f"{HANDOFF_NOTE}: give {' or '.join(noted_fields(state))}; {example}")
    return AgentNote(turn, found)


def _texts(given: object, name: str, fields: Fields) -> tuple[str, ...]:
    several = given.get(name) if isinstance(given, dict) else None
    if isinstance(several, list):
        return tuple(str(each).strip() for each in several if str(each).strip())
    return (text,) if (text := fields.text(name)) else ()


def hand_off(weighed: WeighedConversation, knobs: Knobs, moment: Moment) -> Departure | None:
    """The departure with which a successor begins; None if none is due."""
    may = [step for step in weighed.steps if weighed.is_resident(step)]
    reason = handoff_reason(weighed, may, knobs, moment)
    if reason is None:
        return None
    departure = Departure(Cause.HANDOFF)
    departure.rows += _bare_logs(weighed, moment)
    room = _room(knobs.handoff.start, knobs, moment)
    chars = round(_CHARS_PER_TOKEN * _STATE_SHARE * knobs.handoff.start * knobs.window)
    state = moment.asked or state_of(weighed, reason, knobs, moment)
    text = _state_text(state, min(_MOST_STATE, max(_LEAST_STATE, chars)))
    free = room - moment.count(text.encode())
    leaving, shortened = _leaving(weighed.after(departure.rows), may, free, knobs, moment)
    departure.rows += [dataclasses.replace(row, cause=Cause.HANDOFF) for row in shortened]
    runs = list(runs_of(leaving))
    last = next((run for run in reversed(runs) if not run[0].sticky), None)
    if last is None:  # no message of them may leave
        return None
    for run in runs:
        if run[0].sticky:
            stub_pages(departure, weighed, run[0], knobs, moment)
            continue
        stub = stub_of_run(weighed, run, knobs, moment)
        if run is last:
            texts = [f"{reference(stub)}\n{text}"]
            replace_run(
                departure,
                weighed,
                run,
                stub,
                texts,
                moment=moment,
                around=_AROUND,
                at_any_length=True,
            )
        else:
            texts = [reference(stub)]
            replace_run(departure, weighed, run, stub, texts, moment=moment, around=_AROUND)
    departure.rows += shown_anew(departure, weighed, knobs, moment)
    _fit(departure, weighed, room, knobs, moment)
    ids = tuple(stub.id for stub in departure.stubs)
    departure.handoff = replace(state, references=ids)
    return departure


def _bare_logs(weighed: WeighedConversation, moment: Moment) -> Iterator[Shown]:
    """Rows that shorten the states and logs of earlier departures to their reference: the new state
    has all of it."""
    for line in weighed.lines:
        row = weighed.gone(line)
        if row is not None and row.text:
            text = bare_reference(row.text.decode("utf-8", "replace")).encode("utf-8", "replace")
            tokens = moment.count(text) + _AROUND
            if tokens < row.tokens:
                yield Shown(row.spot, Form.GONE, text, tokens, row.whole, Cause.HANDOFF, moment.now)


def offer_notes(state: AnyState | None, moment: Moment) -> tuple[Candidate, ...]:
    """What a program said with a handoff, for a successor that begins without its state because
    nothing could leave yet."""
    notes = "; ".join(" ".join(each.text.split()) for each in program_notes(state))
    if not notes:
        return ()
    text = f"[hotset: noted at the handoff to you: {notes}]"
    tokens = moment.count(text.encode("utf-8", "replace")) + _AROUND
    return (
        Candidate(
            "handoff",
            OfferKind.HANDOFF_NOTE,
            HANDOFF_NOTE,
            OfferSlot.BEHIND_PROMPT,
            text,
            tokens,
            1.0,
        ),
    )


def handoff_reason(
    weighed: WeighedConversation, may: Sequence[Step], knobs: Knobs, moment: Moment
) -> HandoffReason | None:
    """Why this window is handed over now; None if it is not."""
    if moment.asked is not None:
        return HandoffReason.ASKED if len(may) > 1 else None
    chosen = knobs.handoff
    if not chosen.at:
        return None
    leave = [step for step in may if may_leave(weighed, step, knobs, moment)]
    if sum(map(weighed.of, leave)) < _LEAST_SHARE * knobs.window / moment.scale:
        return None
    at = max(chosen.at, knobs.high) if moment.program_decides else chosen.at
    if weighed.total > _room(at, knobs, moment):
        return HandoffReason.FULL
    is_early = knobs.early and not moment.program_decides
    is_early = is_early and weighed.total > _room(min(chosen.early, chosen.at), knobs, moment)
    # While the provider's cache holds it, what is there may grow up to its share.
    if is_early and weighed.lost and pays(weighed, leave, knobs.regret, knobs, moment):
        return HandoffReason.PAYS
    return None


def state_of(
    weighed: WeighedConversation, reason: HandoffReason, knobs: Knobs, moment: Moment
) -> AnyState:
    """The state of the work as it stands."""
    replies = {
        line.chain: turn
        for line, turn in zip(weighed.lines, _reply_numbers(weighed.lines), strict=True)
    }

    def turn_of(line: Line) -> int:
        return moment.turn_of(line.chain) or replies[line.chain]

    rows = (weighed.gone(line) for line in weighed.lines)
    before = [latest_index(row.text) for row in rows if row is not None]
    return build_state(
        knobs.handoff.state,
        weighed.lines,
        turn_of,
        moment.brief(),
        index=1 + max(before, default=0),
        reason=reason,
        now=moment.now,
    )


def _reply_numbers(lines: Sequence[Line]) -> Iterator[int]:
    """Turns where no store numbers them: each reply ends one."""
    turn, was_reply = 1, False
    for line in lines:
        is_reply = line.role is Role.ASSISTANT
        turn += was_reply and not is_reply
        was_reply = is_reply
        yield turn


def latest_index(text: bytes) -> int:
    """The number of the handoff whose state a stub holds; 0 if it holds none."""
    found = _HEADING.search(text)
    return int(found[1]) if found else 0


def _state_text(state: HandoffState, room: int) -> str:
    first, last = state.turns
    heading = (
        f"[hotset: handoff {state.index}; you continue this work in a fresh window. The user's "
        f"messages stand here whole; of turns {first}-{last} this is known, retrieve_context "
        "brings the rest]"
    )
    return "\n".join([heading, *state_lines(state, room)])


def _room(share: float, knobs: Knobs, moment: Moment) -> float:
    """Tokens, by our count, of messages in such a share of the window."""
    return share * knobs.window / moment.scale - moment.fixed


def _leaving(
    weighed: WeighedConversation,
    may: Sequence[Step],
    room: float,
    knobs: Knobs,
    moment: Moment,
) -> tuple[list[Step], list[Shown]]:
    """The steps that leave, in conversation order: all but the latest, and but the hottest that fit
    beside them; and rows that shorten results of these where they would not fit whole."""
    pinned = [step for step in may if moment.orders.pinned.intersection(_chains(weighed, step))]
    free = room - (weighed.total - sum(map(weighed.of, may)))
    kept = list(pinned)
    free -= sum(map(weighed.of, pinned)) + _REFERENCE
    latest = min(knobs.keep, len(may) - 1)
    for step in reversed(may[-latest:]):
        if step is not may[-1] and weighed.of(step) > free:
            break
        if step not in kept:
            kept.append(step)
            free -= weighed.of(step)
    older = [step for step in may if step not in kept]
    heat = _heats(weighed, older)
    hottest = sorted(older, key=lambda step: -heat[step.number])
    rows: list[Shown] = []
    most = min(knobs.handoff.hot, len(older) - 1)
    for step in [step for step in hottest[:most] if heat[step.number]]:
        shorter = _shorten_step(weighed, step, free - _REFERENCE, knobs, moment)
        cost = weighed.after(shorter).of(step) + _REFERENCE
        if cost <= free:
            kept.append(step)
            rows += shorter
            free -= cost
    return [step for step in may if step not in kept], rows


def _shorten_step(
    weighed: WeighedConversation, step: Step, room: float, knobs: Knobs, moment: Moment
) -> list[Shown]:
    """Rows with which a step takes so many tokens, if shorter results are enough for that."""
    if weighed.of(step) <= room:
        return []
    spots = list(weighed.stubbable(step))
    around = weighed.of(step) - sum(tokens for _, tokens in spots)
    chars = round(_EXCERPT * _CHARS_PER_TOKEN * (room - around) / max(1, len(spots)))
    if chars < _LEAST_RESULT:
        return []
    chains = {spot.chain for spot, _ in spots}
    return shorten_results(weighed, chains, chars, knobs, moment)


def _fit(
    departure: Departure,
    weighed: WeighedConversation,
    room: float,
    knobs: Knobs,
    moment: Moment,
) -> None:
    """Replaces results that stay by their references, if the successor would begin with more than
    it may."""
    most = _room(_MORE * knobs.handoff.start, knobs, moment)
    many = -1
    while (total := weighed.after(departure.rows).total) > most and len(departure.rows) > many:
        many = len(departure.rows)
        stub_late(departure, weighed, total - room, most - room, knobs=knobs, moment=moment)
        departure.rows += shown_anew(departure, weighed, knobs, moment)


def _chains(weighed: WeighedConversation, step: Step) -> list[str]:
    return [line.chain for line in weighed.inside(step)]


def _heats(weighed: WeighedConversation, steps: Sequence[Step]) -> dict[int, float]:
    """How much later calls used what each step brought: a use counts less the longer ago it
    was."""
    names = StepNames(weighed)
    latest = weighed.steps[-1].number
    heat: dict[int, float] = {}
    for step in steps:
        brought = names.inside(step) - names.called(step)
        heat[step.number] = sum(
            _COOLS ** (latest - later.number)
            for later in weighed.steps[step.number :]
            if not brought.isdisjoint(names.called(later))
        )
    return heat


def decode_state(value: bytes) -> AnyState:
    """A state as it was stored. Raises `msgspec.MsgspecError`."""
    state: AnyState = decode(value, AnyState)
    return state
