"""Reads an ended session from the store as learning sees it: numbers, names of tools and kinds, and
how its work came out. Nothing that a tool, a file or the web said counts as a signal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from hotset.config import Config
from hotset.errors import Conflict, HotsetError, NotFound, PageDamaged
from hotset.learn.contexts import prompt_vector
from hotset.learn.events import OBSERVED, SessionFigures
from hotset.nouns.bill import Bill
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.memory import Ending
from hotset.nouns.note import Note, Space
from hotset.nouns.page import Kind, Page, PageId, Role, SessionId
from hotset.nouns.price import Prices
from hotset.nouns.turn import Event, Session, Turn
from hotset.nouns.window import WHOLE, Form, Spot
from hotset.runtime.audit import RETRIEVED, SEARCHED
from hotset.runtime.decision import logged_candidates
from hotset.runtime.learned_state import learn_event, take_decisions
from hotset.runtime.session_arm import SessionArm, arm_of_session
from hotset.runtime.strategy_log import observed_figures
from hotset.sources.memory import GoalWork, judge_session, read_session
from hotset.store.port import Store, Where
from hotset.window.price import price_of, units
from hotset.window.retrieval_tools import SEARCH
from hotset.window.work.calls import Act, ActKind
from hotset.window.work.endings import is_correction, is_revert

_SURE = 0.6
"""Confidence from which an outcome counts: what the client or the user said, or a check showed. A
model's own claim has less."""

CHOSEN = "chosen"
"""The arm of sessions that were not assigned by chance: they are compared with nothing."""

QUIET_SECONDS = 1800.0
"""Without a call for so long, a session counts as ended."""

_OBSERVED = Space("observed")
"""Sessions that were observed, by id, with the turns that they had: what goes on afterwards is
observed again, in place of the earlier figures."""
_MOST_LOOKED_AT = 200  # of the latest sessions, beside the calls
_MOST_READ = 4000  # bytes of a reply
_SUCCESS = {Ending.SUCCESS: 1.0, Ending.PARTIAL: 0.5, Ending.FAILURE: 0.0}
_MOST_FORMS = 40  # tools and kinds of one session
_SHORTER = frozenset({Form.EXCERPT, Form.OVERLAP, Form.CHANGE, Form.STUB, Form.GONE})
_HEDGES = re.compile(
    r"\b(?:i(?:'m| am) not (?:sure|certain)|i think|i believe|probably|possibly|perhaps|might be"
    r"|may be|it seems|presumably|hard to say)\b",
    re.IGNORECASE,
)


def observe_session(
    store: Store, session: SessionId, arm: SessionArm, prices: Prices, now: float
) -> SessionFigures:
    """What a session cost, needed and achieved. Raises `NotFound`."""
    turns = list(store.turns(session))
    events = list(store.events(session))
    bills = list(store.bills(session))
    works = judge_session(read_session(store, session, now))
    cost, whole, dollars = _costs(bills, prices)
    acts = [act for work in works for act in work.acts]
    prompts = [prompt for work in works for prompt in work.prompts if prompt.person]
    later = [prompt for work in works for prompt in work.prompts[1:] if prompt.person]
    searches = [each for each in events if _is_search(each)]
    checks = [act for act in acts if act.doing is ActKind.CHECK and act.answered]
    signals = Counter(
        prompts=len(prompts),
        follow_ups=len(later),
        reverted=sum(is_revert(act.command) for act in acts),
        tests_passed=sum(act.passed for act in checks),
        tests_failed=sum(act.failed for act in checks),
        hedges=_hedged(store, session),
        searches_after_offer=_searched_after_offer(store, turns, searches),
        abandoned=int(_is_abandoned(works, turns)),
    )
    return SessionFigures(
        session=session,
        arm=arm.name if arm.is_random else CHOSEN,
        changes=arm.changes,
        vector=prompt_vector(_first_prompt(works)),
        explored=dict(arm.explored),
        success=_success(works),
        reward=max(-1.0, min(1.0, (whole - cost) / whole)) if whole else None,
        cost=round(cost, 2),
        whole=round(whole, 2),
        turns=len(turns),
        faults=sum(bill.faults for bill in bills),
        refaults=sum(bill.refaults for bill in bills),
        searches=len(searches),
        corrections=sum(is_correction(prompt.text) for prompt in later),
        rereads=_rereads(acts),
        latency_ms=round(_mean([bill.overhead_ms for bill in bills]), 2),
        signals={name: float(count) for name, count in sorted(signals.items()) if count},
        forms=_forms(store, session, turns, events),
        dollars=dollars,
    )


def _costs(bills: Collection[Bill], prices: Prices) -> tuple[float, float, float | None]:
    """What was paid, and what full history would have cost, in uncached input tokens; and what was
    paid in dollars, None where the price of a model is not known."""
    cost = whole = dollars = 0.0
    is_known = bool(bills)
    for bill in bills:
        price = price_of(bill.model, prices, bill.upstream)
        paid = units(price, bill.usage if bill.usage.prompt else bill.sent, bill.calls)
        cost += paid
        whole += units(price, bill.whole)
        dollars += paid * price.input / 1e6
        is_known = is_known and price.listed
    return cost, whole, round(dollars, 6) if is_known else None


def _success(works: Sequence[GoalWork]) -> float | None:
    """The mean over the goals whose outcome is known for sure; None if none is."""
    known = [
        _SUCCESS[work.outcome.ending]
        for work in works
        if work.outcome.confidence >= _SURE and work.outcome.ending in _SUCCESS
    ]
    return round(_mean(known), 4) if known else None


def _is_abandoned(works: Sequence[GoalWork], turns: Sequence[Turn]) -> bool:
    """True if the user stopped the last work, or its last reply never reached the client."""
    stopped = bool(works) and works[-1].outcome.why == "the user stopped it"
    return stopped or bool(turns and turns[-1].outcome in ("left", "broken"))


def _rereads(acts: Sequence[Act]) -> int:
    """Files that were read again though nothing had changed them since."""
    seen: set[str] = set()
    again = 0
    for act in acts:
        if act.doing is ActKind.EDIT:
            seen.difference_update(act.files)
        elif act.doing is ActKind.READ and act.target:
            again += act.target in seen
            seen.add(act.target)
    return again


def _is_search(event: Event) -> bool:
    return event.name == SEARCHED or (
        event.name == RETRIEVED and event.detail.get("tool") == SEARCH
    )


def _searched_after_offer(store: Store, turns: Sequence[Turn], searches: Sequence[Event]) -> int:
    """Turns that searched though their prompt came with an offer: it was not what was needed."""
    searched = {event.turn for event in searches}
    ids = [turn.id for turn in turns if turn.number in searched]
    logged = logged_candidates(store, ids).values()
    return sum(any(each.is_taken for each in candidates) for candidates in logged)


def _hedged(store: Store, session: SessionId) -> int:
    """Replies of the model that say how unsure it is."""
    pages = store.pages(Where(session=session, kinds=frozenset({Kind.RESPONSE})))
    return sum(_is_hedge(store, page) for page in pages if page.role is Role.ASSISTANT)


def _is_hedge(store: Store, page: Page) -> bool:
    try:
        text = store.content(page.digest)[:_MOST_READ].decode("utf-8", "replace")
    except (NotFound, PageDamaged):
        return False
    return _HEDGES.search(text) is not None


def _forms(
    store: Store, session: SessionId, turns: Sequence[Turn], events: Iterable[Event]
) -> dict[str, tuple[int, int, int]]:
    """How many results of each tool and kind were shown short, how many of those the model asked
    for again, and how many were shown whole."""
    asked: set[PageId] = {
        PageId(id)
        for event in events
        if event.name == RETRIEVED and event.detail.get("refault")
        for id in str(event.detail.get("ids", "")).split()
    }
    pages = [page for page in store.pages(Where(session=session)) if _is_result(page)]
    chains = list(dict.fromkeys(node.chain for node in store.nodes(session)))
    table = store.table(chains) if turns else None
    counts: dict[str, list[int]] = {}
    for page in pages:
        row = table.shown.get(Spot(page.chain, page.position)) if table is not None else None
        gone = table.shown.get(Spot(page.chain, WHOLE)) if table is not None else None
        is_short = any(each is not None and each.form in _SHORTER for each in (row, gone))
        for key in (f"tool:{page.tool}", f"kind:{page.kind}"):
            if key in counts or len(counts) < _MOST_FORMS:
                short, back, full = counts.setdefault(key, [0, 0, 0])
                asks = page.id in asked
                counts[key] = [short + is_short, back + (is_short and asks), full + (not is_short)]
    return {key: (each[0], each[1], each[2]) for key, each in sorted(counts.items())}


def _is_result(page: Page) -> bool:
    return bool(page.call) and page.kind.family is Kind.TOOL_RESULT


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def observe_ended(
    store: Store, config: Config, now: float, *, quiet: float = QUIET_SECONDS, most: int = 0
) -> int:
    """Observe every session that ended and was not observed yet, or went on since then; `most` of
    the latest. Returns how many there were."""
    latest = store.recent_sessions()[: most or None]
    known = store.notes(_OBSERVED, [each.id for each in latest]) if latest else {}
    looked_at = [
        each for at, each in enumerate(latest) if each.id not in known or at < _MOST_LOOKED_AT
    ]
    seen = 0
    for session in reversed(looked_at):
        mark, turns = known.get(session.id), list(store.turns(session.id))
        if (mark is None or _is_more(turns, mark)) and _is_over(turns, now, quiet):
            seen += _observe(store, config, session, turns, mark=mark, now=now)
    return seen


def _mark_of(turns: Collection[Turn]) -> bytes:
    return f"turns {len(turns)}".encode()


def _is_more(turns: Collection[Turn], mark: Note) -> bool:
    """True if there are turns that were not observed."""
    word, _, many = (mark.value or b"").partition(b" ")
    return word == b"turns" and len(turns) > int(many)  # an earlier version's mark is without


def _is_over(turns: Collection[Turn], now: float, quiet: float) -> bool:
    """True for a session that went through hotset and has been quiet for long."""
    last = max((turn.finished or turn.started for turn in turns), default=now)
    return now - last >= quiet and any(turn.usage.prompt or turn.reply for turn in turns)


def _observe(
    store: Store,
    config: Config,
    session: Session,
    turns: Collection[Turn],
    *,
    mark: Note | None,
    now: float,
) -> bool:
    try:
        arm = arm_of_session(store, session.id)
        figures = observe_session(store, session.id, arm, config.prices, now)
        ended = max(turn.finished or turn.started for turn in turns)
        if mark is not None:
            figures = replace(figures, earlier=_earlier_figures(store, session.id))
        event = learn_event(OBSERVED, figures, ended)
        version = mark.version if mark is not None else 0
        seen = NoteWritten(_OBSERVED, session.id, _mark_of(turns), now, expects=version)
        store.keep(seen, event).result()
    except Conflict:  # another process was faster
        return False
    except HotsetError:  # a damaged page: the rest of the store goes on
        return False
    return True


def _earlier_figures(store: Store, session: SessionId) -> SessionFigures | None:
    found = observed_figures(store).get(session)
    return replace(found, earlier=None) if found is not None else None


def tend_learning(store: Store, config: Config, now: float) -> None:
    """Observe the sessions that ended lately, and decide. Blocks: for a thread beside the calls."""
    if observe_ended(store, config, now, most=_MOST_LOOKED_AT):
        take_decisions(store, now)


def _first_prompt(works: Sequence[GoalWork]) -> str:
    return next((work.prompts[0].text for work in works if work.prompts[0].person), "")
