"""A session as material for memories: its pages in order, and the spans that are about one goal
each.

Of long texts the head and the tail are read, cut at line ends before secrets are sealed: no token
contains a line end. A prompt is judged by what precedes it alone, so a longer session has the same
spans, and only the last one may grow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from hotset.nouns.memory import Ending
from hotset.nouns.page import ROOT, Chain, Kind, Page, SessionId
from hotset.nouns.turn import Session, Turn
from hotset.sealing import seal
from hotset.sources.memory.encode.speakers import ends_in_action, is_person
from hotset.sources.memory.memory_writer import known_content
from hotset.store.port import Store, Where
from hotset.text.characters import squeeze
from hotset.text.sentences import without_fences
from hotset.text.terms import topic_words
from hotset.window.page_text import NOT_SEARCHED, is_binary, is_ours
from hotset.window.work.calls import Act, WorkPage, acts
from hotset.window.work.endings import UserPrompt
from hotset.window.work.prompts import PromptWords, asks_back, goes_on, is_order, prompt_words

OUTCOME = "Outcome"
"""The event that reports how a turn came out: `{"outcome": "success"}`."""

# characters that are read at both ends
_PROMPT, _RESPONSE, _RESULT = (16_000, 2_000), (8_000, 4_000), (2_000, 2_000)
_ARGUMENT = 2_000  # characters of one argument of a call; those of an edit are a file
_SEARCHED = 1 << 20  # bytes of a result that are searched for taint
_DEEPEST = 8  # of a call's arguments
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: .{1,300}$", re.MULTILINE)
_MOST_PATCHED = 50
_ASIDE = re.compile(
    r"(?i)title generator|(?:generate|write|create|come up with)[^.\n"
    r"]{0,40}\btitle\b|summari[sz]e (?:this"
    r"|the) (?:coding )?conversation"
    r"|new conversation topic|you are an agent for claude code|\bsub-?agent\b[^.\n]{0,60}\byou\b"
    r"|\byou are (?:a|an|the) [\w -]{0,30}sub-?agent"
)
"""System texts of requests that a program makes by itself."""
_ASIDE_HEAD = 600  # characters of a system text that are searched for it
_TITLE_REPLY = re.compile(r'\s*\{\s*"(?:isNewTopic|title|is_new_topic)"')
_HANDED_OVER = 40  # characters of a first prompt found in another agent's call


@dataclass(frozen=True, slots=True)
class Utterance:
    """A page with its text, sealed."""

    page: Page
    text: str
    """The part that is read. Of a call: its arguments as JSON, each cut."""
    outside: bytes = field(default=b"", repr=False)
    """All of it if it is outside text, squeezed, for searching. Not sealed, and never stored."""


@dataclass(frozen=True, slots=True)
class Material:
    """The input of an encoding."""

    session: Session
    line: tuple[Utterance, ...]
    """In the order of the conversation."""
    endings: Mapping[int, Ending]
    """Reported outcomes of turns, by number."""
    now: float


def read_session(store: Store, session: SessionId, now: float) -> Material:
    """The branch that ends with the person's last turn, without requests that programs make by
    themselves.

    Raises `NotFound`. Unreadable pages are left out.
    """
    turns = list(store.turns(session))
    pages = _pages(store, session)
    line = tuple(
        each
        for page in _line(store, session, turns, pages)
        if (each := _read(store, page)) is not None
    )
    return Material(store.session(session), line, _endings(store, session), now)


def utterance(page: Page, content: bytes) -> Utterance:
    """A page with the part of its content that is read."""
    family = page.kind.family
    if family is Kind.TOOL_CALL:
        return Utterance(page, _arguments(content))
    if family is Kind.TOOL_RESULT:
        text = "" if is_binary(content) else _ends(content, *_RESULT)
        return Utterance(page, text, squeeze(content[:_SEARCHED]))
    text = _ends(content, *(_PROMPT if page.kind is Kind.PROMPT else _RESPONSE))
    outside = page.kind is Kind.PROMPT and not is_person(text, agent=page.agent)
    return Utterance(page, text, squeeze(content[:_SEARCHED]) if outside else b"")


def _read(store: Store, page: Page) -> Utterance | None:
    if page.kind in NOT_SEARCHED or is_ours(page):
        return None
    content = known_content(store, page.digest)
    return None if content is None else utterance(page, content)


def _pages(store: Store, session: SessionId) -> dict[Chain, list[Page]]:
    by_message: dict[Chain, list[Page]] = {}
    for page in store.pages(Where(session=session)):
        by_message.setdefault(page.chain, []).append(page)
    return by_message


def _line(
    store: Store, session: SessionId, turns: Sequence[Turn], pages: Mapping[Chain, Sequence[Page]]
) -> Iterator[Page]:
    """The latest branch of a person; if it begins with a summary, preceded by the branch before it,
    and so on."""
    parents = {node.chain: node.parent for node in store.nodes(session) if not node.aside}
    tails: dict[Chain, tuple[Turn, list[Chain]]] = {}
    for turn in turns:
        chains = _chains(turn.tail, parents)
        if chains:
            tails[chains[0]] = (turn, chains)  # the latest of those with the same start
    handed = _handed_over(store, pages)
    lines: list[list[Chain]] = []
    for turn, chains in sorted(tails.values(), key=lambda each: -each[0].number):
        first = _first_prompt(store, chains, pages)
        if _is_aside(store, turn, first, handed):
            continue
        lines.append(chains)
        if not prompt_words(first).summary:
            break
    seen: set[Chain] = set()
    for chains in reversed(lines):
        for chain in chains:
            if chain not in seen:
                seen.add(chain)
                yield from sorted(pages.get(chain, ()), key=lambda page: page.position)


def _chains(tail: Chain, parents: Mapping[Chain, Chain]) -> list[Chain]:
    chains: dict[Chain, None] = {}
    while tail != ROOT and tail in parents and tail not in chains:
        chains[tail] = None
        tail = parents[tail]
    return [*chains][::-1]


def _first_prompt(
    store: Store, chains: Sequence[Chain], pages: Mapping[Chain, Sequence[Page]]
) -> str:
    """The first person's words on a branch, or a summary."""
    for chain in chains:
        for page in pages.get(chain, ()):
            if page.kind is Kind.PROMPT and (each := _read(store, page)) is not None:
                own = prompt_words(each.text)
                if own.summary:
                    return each.text
                if own.text:
                    return own.text
    return ""


def _handed_over(store: Store, pages: Mapping[Chain, Sequence[Page]]) -> str:
    """What the session's agents asked other agents to do."""
    every = [page for each in pages.values() for page in each]
    answered = {page.call for page in every if page.kind is Kind.AGENT_MESSAGE}
    calls = (page for page in every if page.kind is Kind.TOOL_CALL and page.call in answered)
    return "\n".join(each.text for page in calls if (each := _read(store, page)) is not None)


def _is_aside(store: Store, turn: Turn, first: str, handed: str) -> bool:
    """True if a program asked: an agent another agent, or a client for a title."""
    head = msgspec.json.encode(first[:200]).decode("utf-8", "replace").strip('"')[:_HANDED_OVER]
    if len(head) >= _HANDED_OVER and head in handed:
        return True
    if turn.system is None:
        return False
    system = (known_content(store, turn.system) or b"")[:_ASIDE_HEAD].decode("utf-8", "replace")
    return _ASIDE.search(system) is not None


def is_title(line: Sequence[Utterance]) -> bool:
    """True if a client asked for a title: a prompt and a short JSON reply."""
    spoken_pages = [
        each for each in line if each.page.kind in (Kind.PROMPT, Kind.RESPONSE, Kind.TOOL_CALL)
    ]
    return len(spoken_pages) <= 3 and any(  # the request, maybe its subject, and the title
        each.page.kind is Kind.RESPONSE and _TITLE_REPLY.match(each.text) for each in spoken_pages
    )


def _endings(store: Store, session: SessionId) -> dict[int, Ending]:
    endings: dict[int, Ending] = {}
    for event in store.events(session):
        outcome = str(event.detail.get("outcome", ""))
        if event.name == OUTCOME and outcome in set(Ending):
            endings[event.turn] = Ending(outcome)
    return endings


def _ends(content: bytes, head: int, tail: int) -> str:
    """The text's head and tail, sealed; all of it if it is short."""
    most = 4 * (head + tail)  # bytes of so many characters
    if len(content) <= most:
        text = content.decode("utf-8", "replace")
        if len(text) <= head + tail:
            return seal(text).text
    else:
        text = (
            f"{content[: 4 * head].decode('utf-8', 'ignore')}\n"
            f"{content[-4 * tail :].decode('utf-8', 'ignore')}"
        )
    return f"{seal(_until_border(text[:head])).text}\n{seal(_from_border(text[-tail:])).text}"


def _until_border(text: str) -> str:
    return text[: max(text.rfind("\n"), text.rfind(" "), 0)]


def _from_border(text: str) -> str:
    borders = [at for at in (text.find("\n"), text.find(" ")) if at >= 0]
    return text[min(borders) + 1 :] if borders else ""


def _arguments(content: bytes) -> str:
    """A call's arguments with each text cut and sealed; as JSON if they are."""
    try:
        decoded = msgspec.json.decode(content)
    except (ValueError, RecursionError):
        return _shorten_text(content.decode("utf-8", "replace"))
    if isinstance(decoded, str):
        return _shorten_text(decoded)
    return msgspec.json.encode(_shorten_values(decoded, 0)).decode()


def _shorten_values(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _shorten_text(value)
    if depth >= _DEEPEST:
        return None
    if isinstance(value, dict):
        return {
            _shorten_text(str(key)): _shorten_values(each, depth + 1) for key, each in value.items()
        }
    if isinstance(value, list):
        return [_shorten_values(each, depth + 1) for each in value[:100]]
    return value


def _shorten_text(text: str) -> str:
    """Its beginning, and the files that a patch is for."""
    if len(text) <= _ARGUMENT:
        return seal(text).text
    rest = (found.group() for found in islice(_PATCHED.finditer(text, _ARGUMENT), _MOST_PATCHED))
    return seal("\n".join((_until_border(text[:_ARGUMENT]), *rest))).text


_PAUSE = 6 * 3600.0  # seconds after which a prompt begins another sitting
_SHARED = 0.34  # of a prompt's telling words; from there on it is about the same
_SHARED_BY_ORDER = 0.6
_MOST_WORDS = 60  # telling words of a prompt by which it is compared
_REMEMBERED = 400  # telling words of a span
_HEAD = 400  # characters of a reply or a call that say what the span is about


@dataclass(frozen=True, slots=True)
class GoalSpan:
    """A part of a session that is about one goal."""

    first: int
    end: int
    """Places in the session: `line[first:end]`."""
    prompts: tuple[UserPrompt, ...]
    """The first is the goal."""
    stopped: tuple[int, ...] = ()
    """Where the user stopped the model."""

    @property
    def goal(self) -> UserPrompt:
        return self.prompts[0]


@dataclass(slots=True)
class _OpenSpan:
    """A span that may still grow."""

    first: int
    prompts: list[UserPrompt]
    stopped: list[int] = field(default_factory=list)
    words: dict[str, None] = field(default_factory=dict)
    ended: bool = False
    """The model replied and made no call since."""
    asks: bool = False
    """Its last reply asks for something."""
    answered: bool = False
    time: float = 0.0

    def add_words(self, text: str) -> None:
        for word in _telling(text):
            if len(self.words) < _REMEMBERED:
                self.words[word] = None

    def close(self, end: int) -> GoalSpan:
        return GoalSpan(self.first, end, tuple(self.prompts), tuple(self.stopped))


def acts_of(line: Sequence[Utterance], first: int = 0) -> list[Act]:
    """The calls of a part of the session, each with its result; `first` is the place of its first
    page."""
    pages = [
        WorkPage(
            each.page.kind, each.text, each.page.tool, each.page.call, each.page.id, each.page.time
        )
        for each in line
    ]
    return acts(pages, first)


def own_words(line: Sequence[Utterance]) -> frozenset[int]:
    """The places of prompts that are a person's own words, by their form and what precedes them."""
    replies = dict(_replies(line))
    parts: dict[Chain, list[int]] = {}
    for place in replies:
        parts.setdefault(line[place].page.chain, []).append(place)
    return frozenset(
        place
        for places in parts.values()
        for place in places
        if is_person(
            line[place].text,
            [line[other].text for other in places if other != place],
            replies[place],
            line[place].page.agent,
        )
    )


def action_results(line: Sequence[Utterance]) -> frozenset[int]:
    """The places of user messages with the result of an action that the model wrote as text."""
    return frozenset(
        place
        for place, reply in _replies(line)
        if ends_in_action(reply) and not is_person(line[place].text, agent=line[place].page.agent)
    )


def _replies(line: Sequence[Utterance]) -> Iterator[tuple[int, str]]:
    """The place of each prompt with the model's reply right before it; empty if it called a
    tool."""
    before = ""
    for place, utterance in enumerate(line):
        if utterance.page.kind is Kind.PROMPT:
            yield place, before
        else:
            before = utterance.text if utterance.page.kind is Kind.RESPONSE else ""


def goal_spans(line: Sequence[Utterance], own: frozenset[int] | None = None) -> Iterator[GoalSpan]:
    """The goal spans of a session in order. Pages before the user's first words belong to none.

    `own`: the places of a person's own words, if already known.
    """
    span: _OpenSpan | None = None
    fresh = False
    own, results = own_words(line) if own is None else own, action_results(line)
    for place, each in enumerate(() if is_title(line) else line):
        prompt = (
            prompt_words(each.text)
            if each.page.kind is Kind.PROMPT and place not in results
            else PromptWords()
        )
        fresh = fresh or prompt.fresh
        if prompt.text and (span is None or fresh or _opens(span, prompt, each.page.time)):
            if span is not None:
                yield span.close(place)
            span, fresh = _OpenSpan(place, []), False
        if span is not None:
            _follow(span, place, each, prompt, own=place in own)
    if span is not None:
        yield span.close(len(line))


def _follow(
    span: _OpenSpan, place: int, utterance: Utterance, prompt: PromptWords, *, own: bool
) -> None:
    kind, span.time = utterance.page.kind, utterance.page.time
    if prompt.interrupted:
        span.stopped.append(place)
    if prompt.text:
        span.prompts.append(UserPrompt(place, prompt.text, prompt.handed, own))
        span.add_words(prompt.text)
        span.ended, span.asks = False, False
    elif kind is Kind.RESPONSE:
        span.ended, span.answered = True, True
        span.asks = asks_back(utterance.text)
        span.add_words(utterance.text[:_HEAD])
    elif kind.family is Kind.TOOL_CALL:
        span.ended, span.answered = False, True
        span.add_words(utterance.text[:_HEAD])


def _opens(span: _OpenSpan, prompt: PromptWords, time: float) -> bool:
    """True if this prompt opens a goal of its own."""
    if not span.answered:
        # No reply yet: a client may split one request into several messages.
        return False
    text = without_fences(prompt.text).strip()
    if time - span.time > _PAUSE and len(text.split()) >= 3:  # more than "go on", "commit"
        return True
    if not span.ended or goes_on(text):
        return False
    share = _share(text, span)
    if is_order(text):
        return share < (_SHARED if span.asks else _SHARED_BY_ORDER)
    return not span.asks and share < _SHARED


def _share(text: str, span: _OpenSpan) -> float:
    words = set(_telling(text))
    return sum(word in span.words for word in words) / len(words) if words else 1.0


def _telling(text: str) -> list[str]:
    return list(islice(topic_words(text), _MOST_WORDS))
