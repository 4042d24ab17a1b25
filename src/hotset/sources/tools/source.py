"""Tools as a source: ghosts for a session that opens, answers to calls of the toolbox, search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hotset.dialects.port import OwnCall
from hotset.files.lru import Lru
from hotset.files.threads import DeadlinePool
from hotset.nouns.candidate import Candidate, OfferKind, OfferSlot
from hotset.nouns.deposit import Deposit
from hotset.nouns.finding import Query, SearchHit, Sort
from hotset.nouns.link import Link
from hotset.nouns.message import Answer, Loading, ToolSpec
from hotset.nouns.tool import UNLIKELY
from hotset.nouns.turn import Event, TurnId
from hotset.sources.port import Scene, Source, TurnEnd
from hotset.sources.tools.calls import LostReplies, PendingCall, ToolCalls
from hotset.sources.tools.offers import OfferDecision, ToolOffers, prompt_in, weigh
from hotset.sources.tools.toolbox import ToolLibrary
from hotset.store.port import Store
from hotset.text.clip import clip_prose
from hotset.window.deferring import at_once
from hotset.window.ghosts import beside, defers, ghost_spec, speaks_of
from hotset.window.toolbox_tools import FIND, TOOLBOX_SPECS
from hotset.window.tools import SPECS

_FIND_SECONDS = 0.25
"""How long a first request waits for its ghosts. A search takes ten milliseconds; an index that is
being opened takes longer."""

_MOST_TURNS = 1024
_RESERVED = frozenset(spec.name for spec in (*SPECS, *TOOLBOX_SPECS))
_LONGEST_TITLE = 200


@dataclass(frozen=True, slots=True)
class _Turn:
    """What the source knows of a turn that is under way."""

    decision: OfferDecision | None = None
    """None where it is decided with the plan."""
    trouble: str = ""
    """Why there are no ghosts, where that is a fault."""
    calls: ToolCalls | None = None


class ToolSource(Source):
    name = "tools"
    tools = TOOLBOX_SPECS
    standing = True

    def __init__(self, library: ToolLibrary, ghosts: int, patience: float = 1.0) -> None:
        """`ghosts` is how many tools of the library may stand in a session's list."""
        self.library = library
        self._ghosts = ghosts
        self._patience = patience
        self._offers = ToolOffers()
        self._lost = LostReplies()
        self._searches = DeadlinePool(1, "hotset-ghosts")
        self._turns: Lru[TurnId, _Turn] = Lru(count=_MOST_TURNS)

    def is_quiet(self, *, opens: bool) -> bool:
        return opens and self.library.empty

    def offer(self, scene: Scene, until: float) -> Sequence[Candidate]:
        del until  # the tools of a session are not left out for want of time, only its ghosts
        if not scene.offers_tools:
            return ()
        decision = self._offers.decided(scene, empty=self.library.empty)
        if decision is not None:
            self._turns.put(scene.turn, _Turn(decision))
            defers = decision.offer.deferred and scene.defers
            return [_standing(each, defers=defers) for each in decision.offer.tools]
        ghosts, trouble = self._ghost_candidates(scene)
        self._turns.put(scene.turn, _Turn(trouble=trouble))
        own = beside(TOOLBOX_SPECS, scene.request.tools)
        return [*(_standing(each, defers=scene.defers) for each in own), *ghosts]

    def stands(self, links: Sequence[Link], store: Store) -> Sequence[ToolSpec]:
        return self._offers.kept(links, store).tools

    def took(self, scene: Scene, taken: Sequence[Candidate]) -> Sequence[Deposit]:
        turn = self._turns.get(scene.turn)
        if turn is None:
            return ()
        specs = at_once([each.body for each in taken if isinstance(each.body, ToolSpec)])
        decision = turn.decision or self._offers.decide(scene, specs)
        self._offers.went_out(decision, scene.now)
        self._turns.put(scene.turn, replace(turn, decision=decision))
        detail: dict[str, str | int | float] = {"reason": turn.trouble, "call": scene.turn}
        events = [Event("Bypassed", scene.now, detail=detail)] if turn.trouble else []
        return (*decision.notes, *events)

    def owns(self, name: str) -> bool:
        return "__" in name and self.library.knows(name)

    async def answer(self, call: OwnCall, scene: Scene) -> Answer:
        turn = self._turns.get(scene.turn) or _Turn()
        calls = turn.calls
        if calls is None:
            again = self._lost.take(scene.head, scene.now)
            calls = ToolCalls(self.library, scene, prompt_in(scene.links), again, self._patience)
            self._turns.put(scene.turn, replace(turn, calls=calls))
        return await calls.answer(PendingCall(call, scene))

    def heard(self, end: TurnEnd) -> Sequence[Deposit]:
        turn = self._turns.pop(end.scene.turn)
        if turn is None:
            return ()
        if not end.heard:  # what was done for a reply that nobody got is not done again
            if turn.calls is not None and (done := turn.calls.unheard):
                self._lost.leave(end.scene.head, done, end.scene.now)
            return ()
        if turn.decision is None or not turn.decision.opens or not end.said:
            return ()
        note = self._offers.replied(end.scene.links, end.said, turn.decision.offer)
        return (note,) if note is not None else ()

    def find(self, query: Query, until: float) -> Sequence[SearchHit]:
        del until
        return tool_hits(self.library, query.words, query.most)

    def _ghost_candidates(self, scene: Scene) -> tuple[Sequence[Candidate], str]:
        """The tools that fit the prompt, best first, and why there are none where that is a
        fault."""
        query, theirs = prompt_in(scene.links), scene.request.tools
        if not self._ghosts or not self.library.ready or not query or defers(theirs):
            return (), ""
        finding = self._searches.submit_if_free(lambda: self.library.find(query, 2 * self._ghosts))
        if finding is None:
            return (), ""
        try:
            found = finding.result(_FIND_SECONDS * self._patience)
        except TimeoutError:
            return (), "looking for tools took too long"
        except Exception as error:
            # fail open: the session begins without ghosts, and can search for tools itself
            return (), f"a fault of ours in finding tools: {type(error).__name__}"
        knobs = scene.knobs.toolbox
        least = max(UNLIKELY, knobs.ghost_fit * max((each.score for each in found), default=0.0))
        fit = [each for each in found if each.score >= least and speaks_of(query, each.tool, knobs)]
        made = {spec.name: (spec, each.score) for each in fit if (spec := ghost_spec(each))}
        specs = beside([spec for name, (spec, _) in made.items() if name not in _RESERVED], theirs)
        return [_candidate(spec, OfferKind.GHOST, made[spec.name][1]) for spec in specs], ""


def _standing(spec: ToolSpec, *, defers: bool) -> Candidate:
    """A tool that the session has: it stays."""
    if defers and spec.name == FIND:
        spec = replace(spec, loading=Loading.FINDS)
    return _candidate(spec, OfferKind.TOOL, 1.0)


def _candidate(spec: ToolSpec, kind: OfferKind, worth: float) -> Candidate:
    tokens = weigh(spec)
    return Candidate(ToolSource.name, kind, spec.name, OfferSlot.TOOL_LIST, spec, tokens, worth)


def tool_hits(library: ToolLibrary, words: str, most: int) -> list[SearchHit]:
    """The tools that fit, and skills of the project that would once they are approved. What hardly
    fits is left out."""
    found = library.look_for(words, most)
    fitting = [
        (ghost.tool, ghost.score, "tools find") for ghost in found.ghosts if ghost.score >= UNLIKELY
    ]
    waiting = [(known.tool, UNLIKELY, "tools approve") for known in found.waiting]
    return [
        SearchHit(
            Sort.TOOL,
            score,
            tool.name,
            f"from {tool.source}: {clip_prose(tool.description, _LONGEST_TITLE)}",
            f"hotset {command} {tool.name}",
            detail={"name": tool.name, "source": tool.source, "description": tool.description},
        )
        for tool, score, command in (*fitting, *waiting)[:most]
    ]
