"""Turns of several rounds as a provider would stream them: what the model says, with calls of ours
among the client's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from hotset.dialects import DIALECTS
from hotset.dialects.port import Round, TurnView
from hotset.nouns.message import Answer, DialectName, Part
from hotset.nouns.page import Kind
from hotset.testing.upstream import Call, Fault, Say
from hotset.testing.upstream.cache import Charge
from hotset.testing.upstream.http_connection import event_frames
from hotset.testing.upstream.wires import WIRES, WireTurn, to_json

OURS = frozenset({"retrieve_context", "search_history", "get_turn_range"})

_BODY: dict[str, Any] = {
    "model": "scripted",
    "stream_options": {"include_usage": True},
    "include": ["reasoning.encrypted_content"],
    "store": False,
}


def reply(
    name: DialectName,
    say: Say,
    number: int,
    *,
    streamed: bool,
    faults: Sequence[Fault] = (),
    **body: Any,
) -> bytes:
    """What the provider answers in this round of a turn; `number` tells its ids from those of the
    others."""
    turn = WireTurn(
        say,
        _BODY | body,
        Charge(fresh=10 + number, read=100, written=7),
        f"seed/{number}",
        1_760_000_000 + number,
    )
    wire = WIRES[name]
    return (
        b"".join(event_frames(wire.events(turn), faults, wire))
        if streamed
        else to_json(wire.document(turn))
    )


@dataclass(frozen=True)
class Told:
    """A turn that is over."""

    view: TurnView
    client: bytes
    """All that the client got."""
    rounds: tuple[Round, ...]
    answers: tuple[tuple[bytes, ...], ...]


def told(
    name: DialectName,
    bodies: Sequence[bytes],
    *,
    streamed: bool,
    size: int = 1 << 20,
    answer_last: bool = True,
) -> Told:
    """A turn as the fault loop drives it: every round is answered, and the client's turn comes
    where a call is its own."""
    view = DIALECTS[name].view(OURS, streamed=streamed)
    client, rounds, answers = b"", list[Round](), list[tuple[bytes, ...]]()
    for number, body in enumerate(bodies):
        for start in range(0, len(body), size):
            client += view.take(body[start : start + size])
        rounds.append(view.round())
        is_answered = number < len(bodies) - 1 or (
            answer_last and rounds[-1].foreign and rounds[-1].calls
        )
        if is_answered:
            results = [Answer(call.id, f"what {call.name} found") for call in rounds[-1].calls]
            answers.append(DIALECTS[name].answer(results))
    return Told(view, client + view.close(), tuple(rounds), tuple(answers))


def said(name: DialectName, bodies: Sequence[bytes], *, streamed: bool) -> list[tuple[Any, ...]]:
    """What the client should see of these rounds: everything but our calls; in chat one text of
    each kind, with a blank line between those of two rounds."""
    replies = [DIALECTS[name].read(body, streamed=streamed) for body in bodies]
    return flat(
        name,
        [
            part
            for each in replies
            for message in each.messages
            for part in message.parts
            if part.tool not in OURS
        ],
    )


def flat(name: DialectName, parts: Sequence[Part]) -> list[tuple[Any, ...]]:
    shown = [(part.kind, part.content, part.tool, part.call) for part in parts]
    if name is not DialectName.OPENAI_CHAT:
        return shown
    kinds = (Kind.THINKING, Kind.RESPONSE)
    texts = [
        (kind, b"\n\n".join(each[1] for each in shown if each[0] is kind and each[1]))
        for kind in kinds
    ]
    return [
        *((kind, text, "", "") for kind, text in texts if text),
        *(each for each in shown if each[2]),
    ]


_words = st.sampled_from(
    ["Let me look.", "é 😀 “so”", "data: [DONE]", '{"a": 1}', "two\n\nlines", 'say "message_stop"']
)
_texts = st.one_of(st.just(""), _words)
_own = st.builds(
    Call, st.sampled_from(sorted(OURS)), st.just({"id": "p0123456789abcde", "lines": "1-20"})
)
_foreign = st.builds(
    Call, st.sampled_from(["Bash", "read_file"]), st.just({"command": "ls -l", "n": 1.5})
)
_asking = st.builds(
    Say,
    text=_texts,
    thinking=_texts,
    calls=st.lists(_own, min_size=1, max_size=3).map(tuple),
    chunks=st.integers(0, 3),
)
_speaking = st.builds(Say, text=_words, thinking=_texts, chunks=st.integers(0, 3))
_mixed = st.builds(
    Say,
    text=_texts,
    thinking=_texts,
    calls=st.tuples(st.lists(_own, max_size=2), st.lists(_foreign, min_size=1, max_size=2)).flatmap(
        lambda both: st.permutations([*both[0], *both[1]]).map(tuple)
    ),
)


def turns() -> st.SearchStrategy[list[Say]]:
    """Up to three rounds that call only our tools, then one that ends the turn."""
    return st.tuples(st.lists(_asking, max_size=3), st.one_of(_speaking, _mixed)).map(
        lambda both: [*both[0], both[1]]
    )


def endless() -> st.SearchStrategy[list[Say]]:
    """Rounds that call our tools up to the last."""
    return st.lists(_asking, min_size=1, max_size=3)
