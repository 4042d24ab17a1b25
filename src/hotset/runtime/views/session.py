"""One session as a person reads it: its turns page by page, what made each larger, one turn's
request as the client sent it beside what the model saw, what left the window, and search inside.
Surfaces read it from here."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher

from hotset.config import Config
from hotset.dialects import DIALECTS
from hotset.errors import HotsetError, NotFound
from hotset.nouns.bill import Bill
from hotset.nouns.page import Kind, Page, SessionId
from hotset.nouns.search import Filter, Query, SearchHit
from hotset.nouns.turn import Outcome, Reference, Session, Turn, TurnRef
from hotset.runtime.audit import RETRIEVED, TYPES, sentence
from hotset.runtime.decision import PageChange, difference
from hotset.runtime.handoffs import handoffs_in
from hotset.runtime.reader import find_reference
from hotset.runtime.search import find_text
from hotset.runtime.views.project import ViewedProject
from hotset.runtime.views.sessions import SessionRow, list_family
from hotset.runtime.views.words import CAUSE_WORDS, FORM_WORDS, break_words
from hotset.store.port import BranchStart, Store, Where
from hotset.text.terms import excerpt, terms
from hotset.window.price import dollars, price_of

_HAPPENED = frozenset({RETRIEVED, "Ordered", *TYPES["bypass"], *TYPES["handoff"]}).union(
    TYPES["eviction"], TYPES["compaction"]
)
"""Events that are told with their turn."""

_HEAD = 200  # characters of a text's beginning
_MOST_READ = 4096  # bytes of a page that its beginning is taken from
_MOST_DIFF = 120_000  # bytes of a text that is compared
_MOST_LINES = 3_000
_MOST_HIDDEN = 20_000  # characters of a message that the client never saw
_MOST_DRIVERS = 4
_MOST_SENTENCES = 12
_CHARS_PER_TOKEN = 4
_SEARCH_SECONDS = 2.0
_FOLLOW_SECONDS = 0.5  # for pages that were kept a moment ago
_EXCERPT_LINES = 5
_NAMES = {
    Kind.PROMPT: "prompt",
    Kind.RESPONSE: "the model's answer",
    Kind.THINKING: "thinking",
    Kind.TOOL_CALL: "calls",
    Kind.SYSTEM: "system text",
}


@dataclass(frozen=True, slots=True)
class HandoffRow:
    """A handoff to a successor: the same session, a window that begins again."""

    turn: int
    """The successor's first turn."""
    kind: str
    reason: str
    turns: str
    tokens: int
    """That left the window."""
    text: str
    """The state as the successor read it."""


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session and what belongs to it."""

    id: str
    title: str
    agent: str
    dialect: str
    key: str
    model: str
    started: float
    last: float
    turns: int
    latest: int
    """The number of its latest turn."""
    family: tuple[SessionRow, ...]
    """Its family as a tree, itself included."""
    branches: tuple[BranchStart, ...]
    handoffs: tuple[HandoffRow, ...]


@dataclass(frozen=True, slots=True)
class GrowthDriver:
    """What a turn added to the conversation, of one kind."""

    what: str
    tokens: int
    """By our own count."""
    pages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn in a list."""

    number: int
    started: float
    seconds: float
    branch: int
    outcome: str
    error: str
    model: str
    came: str
    """The beginning of what the client added."""
    said: str
    """The beginning of what the model answered."""
    prompt: int
    """Tokens of the prompts of all its calls."""
    sent: int
    """Estimated tokens of its request as sent."""
    whole: int
    """Estimated tokens of everything."""
    cache_read: int
    output: int
    dollars: float
    whole_dollars: float
    is_measured: bool
    """The provider reported its usage."""
    rounds: int
    """Calls of it that the client does not see."""
    faults: int
    broke: str
    """Why its prompt did not extend the one before; empty if it did."""
    grew: tuple[GrowthDriver, ...]
    """What it added, most tokens first."""
    happened: tuple[str, ...]
    """What left, what the model asked back, what was bypassed, in sentences."""


@dataclass(frozen=True, slots=True)
class TurnList:
    rows: tuple[TurnRow, ...]
    """The latest first."""
    total: int


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A stretch of a comparison."""

    op: str
    """`same`, `cut` (only the client sent it) or `added` (only the model saw it)."""
    text: str


@dataclass(frozen=True, slots=True)
class WindowChange:
    """Something that the model saw otherwise than the client sent it."""

    title: str
    form: str
    """How it was shown, in words."""
    cause: str
    """Why, in words."""
    is_fresh: bool
    """Decided for this turn."""
    whole: int
    tokens: int
    pages: tuple[str, ...]
    reference: str
    pieces: tuple[TextPiece, ...]
    is_clipped: bool
    """The texts are longer than what is compared here."""


@dataclass(frozen=True, slots=True)
class HiddenText:
    """Messages that the model saw and the client did not, around one of the client's."""

    turn: int
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnDifference:
    """One turn's request: as the client sent it, and as the model saw it."""

    turn: TurnRow
    is_planned: bool
    """False if it went out as it came."""
    changes: tuple[WindowChange, ...]
    """A page of them: those that this turn decided first."""
    total: int
    """How many there are."""
    hidden: tuple[HiddenText, ...]
    tools: tuple[str, ...]
    """Our tools, listed beside the client's."""
    retrievals: tuple[str, ...]
    uses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PageHead:
    """A page, and the beginning of its text."""

    id: str
    turn: int
    kind: str
    tool: str
    size: int
    head: str


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """A line that stands for pages which left."""

    id: str
    kind: str
    first: int
    last: int
    """Turns."""
    pages: int
    tokens: int
    time: float
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReferenceList:
    rows: tuple[ReferenceRow, ...]
    """The latest first."""
    total: int


@dataclass(frozen=True, slots=True)
class OpenedReference:
    reference: ReferenceRow
    rows: tuple[PageHead, ...]
    total: int


@dataclass(frozen=True, slots=True)
class SummaryRow:
    first: int
    last: int
    """Turns."""
    branch: int
    text: str
    by: str
    time: float


@dataclass(frozen=True, slots=True)
class FoundLine:
    number: int
    text: str
    marks: tuple[tuple[int, int], ...]
    """Ranges of the words that were sought."""


@dataclass(frozen=True, slots=True)
class FoundPage:
    page: str
    turn: int
    kind: str
    tool: str
    lines: tuple[FoundLine, ...]


@dataclass(frozen=True, slots=True)
class FoundInSession:
    rows: tuple[FoundPage, ...]
    note: str
    """How the words were loosened, or what did not serve."""


def read_session(store: Store, session: Session) -> SessionView:
    """A session without its turns."""
    use = store.session_uses([session.id])[0]
    last = use.last
    return SessionView(
        id=session.id,
        title=session.title,
        agent=session.agent,
        dialect=session.dialect,
        key=session.key.partition(":")[2],
        model=last.model if last else "",
        started=session.started,
        last=max(last.started, last.finished) if last else session.started,
        turns=use.turns,
        latest=last.number if last else 0,
        family=list_family(store, session.id),
        branches=tuple(store.branch_starts(session.id)),
        handoffs=tuple(
            HandoffRow(each.turn, each.kind, each.reason, each.turns, each.tokens, each.text)
            for each in handoffs_in(store, session.id)
        ),
    )


def list_turns(
    store: Store, config: Config, session: SessionId, offset: int = 0, limit: int = 50
) -> TurnList:
    """A page of a session's turns, the latest first."""
    use = store.session_uses([session])
    latest = use[0].last.number if use and use[0].last else 0
    last = latest - offset
    if last < 1:
        return TurnList((), latest)
    rows = _turn_rows(store, config, session, (max(1, last - limit + 1), last))
    return TurnList(tuple(reversed(rows)), latest)


def read_difference(
    store: Store, config: Config, ref: TurnRef, offset: int = 0, limit: int = 20
) -> TurnDifference:
    """One turn's request. Raises `NotFound` if there is no such turn."""
    here = (ref.number, ref.number)
    turn = next(store.turns(ref.session, here), None)
    if turn is None:
        raise NotFound(f"{ref.session} has no turn {ref.number}")
    found = difference(store, turn, DIALECTS, inject=config.inject)
    changes = sorted(found.changes, key=lambda each: not each.fresh)
    return TurnDifference(
        turn=_turn_rows(store, config, ref.session, here)[0],
        is_planned=found.planned,
        changes=tuple(_window_change(store, each) for each in changes[offset : offset + limit]),
        total=len(changes),
        hidden=tuple(
            HiddenText(
                each.turn,
                tuple(
                    raw.decode("utf-8", "replace")[:_MOST_HIDDEN]
                    for raw in (
                        *each.hidden.before,
                        *filter(None, (each.hidden.instead,)),
                        *each.hidden.after,
                    )
                ),
            )
            for each in found.spliced
        ),
        tools=found.tools,
        retrievals=tuple(map(sentence, found.retrievals)),
        uses=tuple(map(sentence, found.uses)),
    )


def list_references(
    store: Store, session: SessionId, offset: int = 0, limit: int = 50
) -> ReferenceList:
    """The references of a session, the latest first."""
    every = [_reference_row(each) for each in store.references(session)][::-1]
    return ReferenceList(tuple(every[offset : offset + limit]), len(every))


def open_reference(store: Store, id: str, offset: int = 0, limit: int = 50) -> OpenedReference:
    """A reference with its pages. Raises `NotFound`."""
    found = find_reference(store, id)
    if found is None:
        raise NotFound(f"no reference {id}")
    reference, pages = found
    heads = tuple(_page_head(store, each) for each in pages[offset : offset + limit])
    return OpenedReference(_reference_row(reference), heads, len(pages))


def list_summaries(store: Store, session: SessionId) -> tuple[SummaryRow, ...]:
    """The latest version of each summary of a session, in the order of its turns."""
    rows = (
        SummaryRow(*each.turns, each.branch, each.text, each.by, each.time)
        for each in store.summaries(session)
    )
    return tuple(sorted(rows, key=lambda each: (each.branch, each.first)))


def search_session(
    project: ViewedProject, session: SessionId, words: str, limit: int = 20
) -> FoundInSession:
    """Pages of a session that fit these words, best first."""
    history = next((each for each in project.sources if each.name == "history"), None)
    index = project.open_index() if history is not None else None
    if history is None or index is None:
        return FoundInSession((), "conversations are not indexed here: search = true")
    if not words.strip():
        return FoundInSession((), "")
    with suppress(HotsetError):  # the latest turns may be missing then
        history.follow(project.store, index, time.monotonic() + _FOLLOW_SECONDS)
    only = Filter(sessions=frozenset({session}))
    found = find_text([(history, Query(words, only, limit, _SEARCH_SECONDS))])
    lacking = f"searched without {found.lacking}; the order may be worse" if found.lacking else ""
    rows = tuple(_found_page(hit, words) for group in found.groups for hit in group)
    return FoundInSession(rows, "; ".join(filter(None, (found.note, lacking))))


def _turn_rows(
    store: Store, config: Config, session: SessionId, within: tuple[int, int]
) -> list[TurnRow]:
    bills = {each.turn: each for each in store.bills(session, within=within)}
    pages: dict[int, list[Page]] = {}
    for page in store.pages(Where(session=session, turns=within)):
        pages.setdefault(page.turn, []).append(page)
    happened: dict[int, list[str]] = {}
    for event in store.events(session, within=within):
        if event.name in _HAPPENED:
            happened.setdefault(event.turn, []).append(sentence(event))
    return [
        _turn_row(
            store,
            config,
            turn,
            bills.get(turn.number),
            pages.get(turn.number, []),
            happened.get(turn.number, []),
        )
        for turn in store.turns(session, within)
    ]


def _turn_row(  # noqa: PLR0917 - what was read of one turn
    store: Store,
    config: Config,
    turn: Turn,
    bill: Bill | None,
    pages: Sequence[Page],
    happened: Sequence[str],
) -> TurnRow:
    spent = whole = 0.0
    if bill is not None:
        price = price_of(bill.model, config.prices, bill.upstream)
        spent = dollars(price, bill.usage, bill.calls)
        whole = dollars(price, bill.whole)
    new = [each for each in pages if each.role != "assistant"]
    replied = [each for each in pages if each.role == "assistant"]
    return TurnRow(
        number=turn.number,
        started=turn.started,
        seconds=max(0.0, turn.finished - turn.started) if turn.finished else 0.0,
        branch=turn.branch,
        outcome="" if turn.outcome is Outcome.DONE else turn.outcome,
        error=turn.error[:_HEAD],
        model=turn.model,
        came=_beginning(store, new),
        said=_beginning(store, replied),
        prompt=bill.usage.prompt if bill else turn.usage.prompt,
        sent=bill.sent.prompt if bill else 0,
        whole=bill.whole.prompt if bill else 0,
        cache_read=bill.usage.cache_read if bill else turn.usage.cache_read,
        output=bill.usage.output if bill else turn.usage.output,
        dollars=spent,
        whole_dollars=whole,
        is_measured=bill is not None and not bill.usage.estimated,
        rounds=bill.calls - 1 if bill else 0,
        faults=bill.faults if bill else 0,
        broke=break_words(bill.broke) if bill else "",
        grew=_drivers(store, pages),
        happened=tuple(happened[:_MOST_SENTENCES]),
    )


def _drivers(store: Store, pages: Sequence[Page]) -> tuple[GrowthDriver, ...]:
    found: dict[str, tuple[int, list[str]]] = {}
    for page in pages:
        family = page.kind.family
        name = page.tool or str(page.kind)
        what = f"{name} result" if family is Kind.TOOL_RESULT else _NAMES.get(family, family)
        tokens, ids = found.get(what, (0, []))
        gist = store.gist(page.id)
        more = gist.tokens if gist is not None else page.size // _CHARS_PER_TOKEN
        found[what] = (tokens + more, [*ids, page.id])
    rows = [GrowthDriver(what, tokens, tuple(ids)) for what, (tokens, ids) in found.items()]
    return tuple(sorted(rows, key=lambda each: -each.tokens)[:_MOST_DRIVERS])


def _beginning(store: Store, pages: Sequence[Page]) -> str:
    """The beginning of the text that says most: a prompt or an answer, else the last page's."""
    texts = [each for each in pages if each.kind in (Kind.PROMPT, Kind.RESPONSE)]
    page = next(reversed(texts or [each for each in pages if each.kind is not Kind.THINKING]), None)
    if page is None:
        return ""
    head = _head_of(store, page)
    return head if page.kind in (Kind.PROMPT, Kind.RESPONSE) else f"{page.tool} {head}".strip()


def _head_of(store: Store, page: Page) -> str:
    if not _is_text(page):
        return f"[{page.media}, {page.size:,} bytes]"
    try:
        text = store.content(page.digest)[:_MOST_READ].decode("utf-8", "replace")
    except HotsetError as error:
        return f"({error})"
    line = " ".join(text.split())
    return line if len(line) <= _HEAD else f"{line[: _HEAD - 1]}…"


def _is_text(page: Page) -> bool:
    return page.media.startswith("text/") or page.media == "application/json"


def _page_head(store: Store, page: Page) -> PageHead:
    return PageHead(page.id, page.turn, page.kind, page.tool, page.size, _head_of(store, page))


def _reference_row(reference: Reference) -> ReferenceRow:
    return ReferenceRow(
        reference.id,
        reference.kind,
        *reference.turns,
        len(reference.pages),
        reference.tokens,
        reference.time,
        reference.topics,
    )


def _window_change(store: Store, change: PageChange) -> WindowChange:
    sent = change.sent[:_MOST_DIFF].decode("utf-8", "replace")
    if len(change.pages) == 1 and _is_text(change.pages[0]):
        content = store.content(change.pages[0].digest)
        before = content[:_MOST_DIFF].decode("utf-8", "replace")
        is_clipped = len(content) > _MOST_DIFF
        pieces = tuple(compare_texts(before, sent))
    else:
        heads = (f"turn {each.turn}  {_head_of(store, each)}" for each in change.pages)
        before, is_clipped = "\n".join(heads), True
        pieces = tuple(
            TextPiece(op, text) for op, text in (("cut", before), ("added", sent)) if text
        )
    return WindowChange(
        title=_title(change),
        form=FORM_WORDS.get(change.form, change.form),
        cause=CAUSE_WORDS[change.cause],
        is_fresh=change.fresh,
        whole=change.whole,
        tokens=change.tokens,
        pages=tuple(each.id for each in change.pages),
        reference=change.reference.id if change.reference is not None else "",
        pieces=pieces,
        is_clipped=is_clipped,
    )


def _title(change: PageChange) -> str:
    if len(change.pages) == 1:
        page = change.pages[0]
        return f"{page.tool} {str(page.kind).replace('_', ' ')} of turn {page.turn}".strip()
    turns = sorted({each.turn for each in change.pages})
    span = (
        f"turns {turns[0]} to {turns[-1]}"
        if len(turns) > 1
        else f"turn {turns[0]}"
        if turns
        else ""
    )
    return f"{len(change.pages)} pages of {span}" if span else "messages"


def compare_texts(before: str, after: str) -> Iterator[TextPiece]:
    """What is in both texts, line by line, and what is in one alone."""
    one, other = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(one), len(other)) > _MOST_LINES:
        one, other = [before], [after]
    for op, first, last, begin, end in SequenceMatcher(None, one, other, False).get_opcodes():
        if op == "equal":
            yield TextPiece("same", "".join(one[first:last]))
            continue
        if last > first:
            yield TextPiece("cut", "".join(one[first:last]))
        if end > begin:
            yield TextPiece("added", "".join(other[begin:end]))


def _found_page(hit: SearchHit, words: str) -> FoundPage:
    lines = excerpt(hit.stretch, terms(words), _EXCERPT_LINES) if hit.stretch is not None else []
    return FoundPage(
        page=str(hit.detail.get("page", "")),
        turn=int(str(hit.detail.get("turn", 0))),
        kind=str(hit.detail.get("kind", "")),
        tool=str(hit.detail.get("tool", "")),
        lines=tuple(FoundLine(each.number, each.text, each.marks) for each in lines),
    )
