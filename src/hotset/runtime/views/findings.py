"""What a person should do: findings over the latest sessions, those that cost most first, each a
sentence with its price and the action beside it. Surfaces read it from here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hotset.config import Config
from hotset.errors import HotsetError
from hotset.nouns.bill import Bill
from hotset.nouns.order import OrderAct
from hotset.nouns.page import Kind, Page
from hotset.nouns.turn import Event, Session, Turn
from hotset.nouns.window import Cause, Spot
from hotset.runtime.audit import RETRIEVED
from hotset.runtime.decision import logged_candidates
from hotset.runtime.metrics import known_prices, unused_tools
from hotset.runtime.views.words import break_words
from hotset.store.port import Store, Where
from hotset.window.ledger import PriceOf
from hotset.window.page_text import path_in
from hotset.window.price import dollars

_MOST_SESSIONS = 20
_MOST_TURNS, _MOST_OF_SESSION = 2_000, 500
"""Turns that are looked at, of all of these sessions and of one, the latest first: a session of
thousands of turns does not make the page slow."""

_READS = 4  # of one file in one session, from which on it is told
_TOLD = 5  # times a memory is told
_ASKED_BACK = 3  # times one page is asked back
_FILLS = 0.4  # of all tokens, by one tool
_FEWEST_TURNS = 5  # of a session that is said to have no cache hits
_NO_CACHE = 0.05
_LEAST_TOKENS = 2_000
_MOST_OF_A_KIND = 5
_CHARS_PER_TOKEN = 4
_DAY = 86_400.0
_WANTED_BREAKS = frozenset({Cause.PAYS, Cause.HANDOFF, Cause.PERSON})
"""They save more than they cost, or somebody wanted them: the savings tell them, not a finding."""


@dataclass(frozen=True, slots=True)
class FindingAction:
    """What to do about a finding."""

    kind: str
    """`order` (a POST of `act`), `settings` (a line for config.toml) or `command`."""
    label: str
    text: str
    """The settings or the command, to be copied; of an order, the same as a command."""
    act: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class CostFinding:
    """Something that costs money or time, and what to do about it."""

    kind: str
    sentence: str
    dollars: float | None
    """None where it cannot be told."""
    is_measured: bool
    """The provider's own count, at list prices; otherwise an estimate."""
    tokens: int
    action: FindingAction
    session: str = ""
    page: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings over the latest sessions."""

    rows: tuple[CostFinding, ...]
    sessions: int
    """Looked at."""
    turns: int
    since: float
    """When the first of these turns began; 0 without any."""


@dataclass(slots=True)
class _Looked:
    """A session with what was read of it."""

    session: Session
    turns: list[Turn]
    bills: list[Bill]
    pages: list[Page]
    events: list[Event]
    paths: dict[str, str] = field(default_factory=dict)
    """Files by the call that read them."""


def read_findings(store: Store, config: Config, now: float) -> Findings:
    """The findings, those that cost most first. Reads the latest sessions alone."""
    looked, prices = list(_look(store)), known_prices(config)
    found = [
        *_unused(store, config),
        *(each for one in looked for each in _of_session(store, one, prices)),
        *_fillers(looked, prices),
        *_told(store, prices, looked),
        *_bypassed(store, now),
    ]
    found.sort(key=lambda each: (-(each.dollars or 0.0), -each.tokens))
    starts = [one.turns[0].started for one in looked if one.turns]
    turns = sum(len(one.turns) for one in looked)
    return Findings(tuple(_cut_kinds(found)), len(looked), turns, min(starts, default=0.0))


def _look(store: Store) -> Iterator[_Looked]:
    left = _MOST_TURNS
    for use in store.session_uses(store.recent_ids()[:_MOST_SESSIONS]):
        if left <= 0 or use.last is None:
            continue
        id, last = use.session.id, use.last.number
        within = (max(1, last - min(left, _MOST_OF_SESSION) + 1), last)
        turns = list(store.turns(id, within))
        left -= len(turns)
        pages = list(store.pages(Where(session=id, turns=within)))
        one = _Looked(
            use.session,
            turns,
            list(store.bills(id, within=within)),
            pages,
            list(store.events(id, within=within)),
        )
        one.paths = _paths(store, pages)
        yield one


def _paths(store: Store, pages: Sequence[Page]) -> dict[str, str]:
    """The file of each call whose result is a file; calls with the same words are read once."""
    reads = {each.call for each in pages if each.kind is Kind.FILE and each.call}
    known: dict[str, str] = {}
    found: dict[str, str] = {}
    for page in pages:
        if page.kind.family is Kind.TOOL_CALL and page.call in reads:
            if page.digest not in known:
                try:
                    known[page.digest] = path_in(store.content(page.digest))
                except HotsetError:
                    known[page.digest] = ""
            found[page.call] = known[page.digest]
    return found


def _cut_kinds(found: Iterable[CostFinding]) -> Iterator[CostFinding]:
    """The first few of each kind: a hundred of one would hide the others."""
    seen = Counter[str]()
    for each in found:
        seen[each.kind] += 1
        if seen[each.kind] <= _MOST_OF_A_KIND:
            yield each


def _unused(store: Store, config: Config) -> Iterator[CostFinding]:
    unused = unused_tools(store, config)
    if unused is None or not unused.names:
        return
    named = ", ".join(unused.names[:3]) + (" and others" if len(unused.names) > 3 else "")
    yield CostFinding(
        "unused_tools",
        f"{len(unused.names)} of {unused.offered} tools ({named}) were not called in the latest "
        f"{_many(unused.sessions, 'session')}; their descriptions take {unused.tokens:,} tokens of "
        f"every prompt ({unused.prompt_pct:.0f} %).",
        unused.dollars,
        is_measured=False,
        tokens=unused.tokens,
        action=FindingAction(
            "settings", "Leave them out of new sessions", '[tools]\nclient = "auto"'
        ),
    )


def _of_session(store: Store, one: _Looked, prices: PriceOf) -> Iterator[CostFinding]:
    yield from _read_again(store, one, prices)
    yield from _without_cache(one, prices)
    yield from _broken(one, prices)
    yield from _asked_back(one, prices)


def _read_again(store: Store, one: _Looked, prices: PriceOf) -> Iterator[CostFinding]:
    reads: dict[str, list[Page]] = {}
    for page in one.pages:
        if page.kind is Kind.FILE and (path := one.paths.get(page.call, "")):
            reads.setdefault(path, []).append(page)
    for path, pages in reads.items():
        if len(pages) < _READS:
            continue
        tokens = _shown_tokens(store, pages[1:])
        if tokens < _LEAST_TOKENS:
            continue  # hotset showed the others as a line that points to the first
        same = ", each time changed" if len({each.digest for each in pages}) == len(pages) else ""
        turns = f"turns {pages[0].turn} to {pages[-1].turn}"
        yield CostFinding(
            "read_again",
            f"{path} was read {len(pages)} times in {_name(one)} ({turns}{same}): "
            f"{tokens:,} tokens were shown after the first time. Pinned, it stays in the window.",
            _write_dollars(one, prices, tokens),
            is_measured=False,
            tokens=tokens,
            action=_order(OrderAct.PIN, pages[-1].id, "Pin the latest"),
            session=one.session.id,
            page=pages[-1].id,
        )


def _shown_tokens(store: Store, pages: Sequence[Page]) -> int:
    """Tokens of these pages as they were first shown."""
    rows = store.table([page.chain for page in pages]).shown
    shown = (rows.get(Spot(page.chain, page.position)) for page in pages)
    return sum(
        row.tokens if row is not None else page.size // _CHARS_PER_TOKEN
        for row, page in zip(shown, pages, strict=True)
    )


def _without_cache(one: _Looked, prices: PriceOf) -> Iterator[CostFinding]:
    bills = [each for each in one.bills if not each.usage.estimated]
    prompt = sum(each.usage.prompt for each in bills)
    read = sum(each.usage.cache_read for each in bills)
    known = (prices(each.model, each.upstream) for each in bills)
    sells = [price for price in known if price.read < 1]
    if len(bills) < _FEWEST_TURNS or read > _NO_CACHE * prompt or not sells:
        return
    past = sum(each.usage.prompt for each in bills[:-1])
    saved = past * sells[-1].input * (1 - sells[-1].read) / 1e6
    yield CostFinding(
        "no_cache",
        f"{_name(one)} read {100 * read / max(1, prompt):.0f} % of its {prompt:,} prompt tokens "
        "from the provider's cache: something at the front of each prompt changes, or the client "
        "sets no cache marks.",
        saved,
        is_measured=True,
        tokens=prompt,
        action=FindingAction("command", "See what changes", f"hotset diff {one.session.id} last"),
        session=one.session.id,
    )


def _broken(one: _Looked, prices: PriceOf) -> Iterator[CostFinding]:
    found: dict[str, tuple[int, int, float]] = {}
    before = 0
    for bill in one.bills:
        prompt = bill.usage.prompt // max(1, bill.calls)
        if bill.broke:
            price = prices(bill.model, bill.upstream)
            again = max(0, min(prompt, before) - bill.usage.cache_read // max(1, bill.calls))
            more = again * price.input * (price.write - price.read) / 1e6
            turns, tokens, cost = found.get(bill.broke, (0, 0, 0.0))
            found[bill.broke] = turns + 1, tokens + again, cost + more
        before = prompt
    for cause, (turns, tokens, cost) in found.items():
        if tokens < _LEAST_TOKENS or cause in _WANTED_BREAKS:
            continue
        if cause == Cause.COLD:
            action = FindingAction(
                "settings", "Have the fixed part cached for longer", '[knobs]\ncache.fixed = "auto"'
            )
        else:
            action = FindingAction("command", "See what changed", f"hotset show {one.session.id}")
        yield CostFinding(
            "break",
            f"In {_name(one)} {_many(turns, 'prompt')} began anew, because {break_words(cause)}: "
            f"{tokens:,} tokens were written to the cache again.",
            cost,
            is_measured=False,
            tokens=tokens,
            action=action,
            session=one.session.id,
        )


def _asked_back(one: _Looked, prices: PriceOf) -> Iterator[CostFinding]:
    calls: dict[str, list[Event]] = {}
    for event in one.events:
        if event.name == RETRIEVED and event.detail.get("found") and event.detail.get("id"):
            calls.setdefault(str(event.detail["id"]), []).append(event)
    known: dict[str, Page] = {page.id: page for page in one.pages}
    for id, events in calls.items():
        if len(events) < _ASKED_BACK:
            continue
        tokens = sum(int(event.detail.get("tokens", 0)) for event in events)
        got = (name for event in events for name in str(event.detail.get("ids", "")).split())
        page = next((known[name] for name in (id, *got) if name in known), None)
        tool = page.tool if page is not None else ""
        what = f"a result of {tool}" if tool else "what stands behind one line"
        if tool:
            action = _order(OrderAct.WHOLE, tool, f"Never shorten {tool}")
        elif page is not None:
            action = _order(OrderAct.PIN, page.id, "Pin it")
        else:
            action = FindingAction("command", "Look at it", f"hotset recall {id}")
        yield CostFinding(
            "asked_back",
            f"The model asked for {what} ({id}) {len(events)} times in {_name(one)}: {tokens:,} "
            "tokens came back.",
            _write_dollars(one, prices, tokens),
            is_measured=False,
            tokens=tokens,
            action=action,
            session=one.session.id,
            page=page.id if page is not None else "",
        )


def _fillers(looked: Sequence[_Looked], prices: PriceOf) -> Iterator[CostFinding]:
    """Tools, and MCP servers with all of theirs, whose results are most of what was sent."""
    sizes, largest = Counter[str](), dict[str, Counter[str]]()
    every = 0
    for one in looked:
        for page in one.pages:
            every += page.size
            if page.kind.family is Kind.TOOL_RESULT and page.tool:
                name = _server(page.tool) or page.tool
                sizes[name] += page.size
                largest.setdefault(name, Counter())[page.tool] += page.size
    paid = sum(_prompt_dollars(each, prices) for one in looked for each in one.bills)
    for name, size in sizes.most_common(2):
        tokens = size // _CHARS_PER_TOKEN
        if size < _FILLS * every or tokens < _LEAST_TOKENS:
            continue
        tool = largest[name].most_common(1)[0][0]
        what = name if name == tool else f"The server {name.removeprefix('mcp__')}"
        yield CostFinding(
            "fills",
            f"{what} returned {100 * size / every:.0f} % of all that was in the latest "
            f"{_many(len(looked), 'session')} ({tokens:,} tokens), and has that share of what "
            "prompts cost.",
            paid * size / every,
            is_measured=False,
            tokens=tokens,
            action=FindingAction(
                "settings",
                f"Show less of {tool}'s long results",
                f'[knobs.tools]\n"{tool}" = {{over = 2500, room = 1800}}',
            ),
        )


def _told(store: Store, prices: PriceOf, looked: Sequence[_Looked]) -> Iterator[CostFinding]:
    """Memories that were told again and again."""
    times = Counter[str]()
    tokens = Counter[str]()
    cost: dict[str, float] = {}
    turns = 0
    for one in looked:
        logged = logged_candidates(store, [turn.id for turn in one.turns])
        turns += len(one.turns)
        for choices in logged.values():
            for each in choices:
                if each.is_taken and each.source == "memory":
                    times[each.key] += 1
                    tokens[each.key] += each.tokens
                    more = _write_dollars(one, prices, each.tokens) or 0.0
                    cost[each.key] = cost.get(each.key, 0.0) + more
    for key, many in times.most_common(_MOST_OF_A_KIND):
        if many < _TOLD:
            continue
        ids = key.replace(",", " ")
        yield CostFinding(
            "told_often",
            f"{ids} was told at {many} of the latest {turns:,} prompts ({tokens[key]:,} tokens). A "
            "rule that always holds is cheaper in AGENTS.md.",
            cost[key],
            is_measured=False,
            tokens=tokens[key],
            action=FindingAction("command", "Suggest it for AGENTS.md", "hotset memory suggest"),
        )


def _bypassed(store: Store, now: float) -> Iterator[CostFinding]:
    reasons = Counter(
        str(event.detail.get("reason", ""))
        for event in store.events(name="Bypassed")
        if now - event.time < 7 * _DAY
    )
    for reason, many in reasons.most_common(3):
        yield CostFinding(
            "bypassed",
            f"{_many(many, 'call')} went through unchanged in the last 7 days: {reason}.",
            None,
            is_measured=False,
            tokens=0,
            action=FindingAction("command", "Find out why", "hotset doctor"),
        )


def _order(act: OrderAct, about: str, label: str) -> FindingAction:
    return FindingAction("order", label, f"hotset window {act} {about}", act, about)


def _name(one: _Looked) -> str:
    title = one.session.title
    return f"“{title[:40]}{'…' if len(title) > 40 else ''}”" if title else one.session.id


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _server(tool: str) -> str:
    """The MCP server of a tool, as clients name it; empty for a tool of the client."""
    parts = tool.split("__")
    return "__".join(parts[:2]) if len(parts) > 2 and parts[0] == "mcp" else ""


def _write_dollars(one: _Looked, prices: PriceOf, tokens: int) -> float | None:
    """What writing these tokens once costs: the least that they cost."""
    bill = next(reversed(one.bills), None)
    if bill is None:
        return None
    price = prices(bill.model, bill.upstream)
    return tokens * price.input * price.write / 1e6


def _prompt_dollars(bill: Bill, prices: PriceOf) -> float:
    price = prices(bill.model, bill.upstream)
    whole = dollars(price, bill.usage, bill.calls)
    return whole - bill.usage.output * price.output / 1e6
