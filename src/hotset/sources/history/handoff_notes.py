"""The tool with which an agent that hands over says what its successor must know."""

from __future__ import annotations

from hotset.dialects.port import OwnCall
from hotset.errors import Malformed
from hotset.nouns.candidate import Candidate, OfferKind, OfferSlot
from hotset.nouns.deposit import PageAdded
from hotset.nouns.message import Answer
from hotset.nouns.page import Kind
from hotset.sources.port import Scene
from hotset.window.handoff import note_spec, parse_note

_KEPT = "[hotset: kept for your successor]"


def offer_note_tool(scene: Scene) -> tuple[Candidate, ...]:
    """The tool, for agents that hand over: with every request of theirs, byte for byte."""
    if not scene.knobs.handoff.at or not scene.offers_tools:
        return ()
    spec = note_spec(scene.knobs.handoff.state)
    size = scene.count(f"{spec.name} {spec.description}".encode() + spec.parameters)
    tool = OfferSlot.TOOL_LIST
    return (Candidate("history", OfferKind.TOOL, spec.name, tool, spec, size, 1.0),)


async def keep_note(call: OwnCall, scene: Scene) -> Answer:
    """Keep the note as a page that searches find. The state is made from the call itself, so a
    store that fails loses nothing of it."""
    try:
        note = parse_note(call.arguments, scene.knobs.handoff.state)
    except Malformed as error:
        return Answer(call.id, f"[hotset: {error}]", failed=True)
    lines = (f"{field}: {text}" for field, texts in note.fields.items() for text in texts)
    if scene.here.session is not None:
        await scene.keep(
            PageAdded(
                scene.here.session,
                scene.agent,
                Kind.FINDING,
                "\n".join(lines).encode("utf-8", "replace"),
                scene.now,
                tool=call.name,
            )
        )
    return Answer(call.id, _KEPT)
