"""From the store to what memories are made of: the line of a session, its pages with as much of their text as is looked at.

Of long texts the head and the tail are read, and cut at line ends before secrets are sealed: no token has a line end in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hotset.errors import NotFound, PageDamaged
from hotset.nouns.memory import Ending
from hotset.nouns.page import ROOT, Chain, Kind, Page, SessionId
from hotset.nouns.turn import Session, Turn
from hotset.sealing import seal
from hotset.sources.memory.encoding.persons import is_person
from hotset.sources.memory.encoding.speaking import spoken
from hotset.store.port import Store, Where
from hotset.text.characters import squeezed
from hotset.window.page_text import NOT_SEARCHED, is_binary, is_ours

OUTCOME = "Outcome"
"""The event by which somebody tells how a turn came out: `{"outcome": "success"}`."""

_PROMPT, _RESPONSE, _RESULT = (16_000, 2_000), (8_000, 4_000), (2_000, 2_000)  # characters at both ends that are looked at
_ARGUMENT = 2_000  # characters of one argument of a call; those of an edit are a file
_SEARCHED = 1 << 20  # bytes of a result in which taint is sought
_DEEPEST = 8  # of a call's arguments
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: .{1,300}$", re.MULTILINE)
_MOST_PATCHED = 50
_ASIDE = re.compile(
    r"(?i)title generator|(?:generate|write|create|come up with)[^.\n]{0,40}\btitle\b|summari[sz]e (?:this"
    r"|the) (?:coding )?conversation"
    r"|new conversation topic|you are an agent for claude code|\bsub-?agent\b[^.\n]{0,60}\byou\b"
    r"|\byou are (?:a|an|the) [\w -]{0,30}sub-?agent"
)
"""What the system text says where nobody but a program asks."""
_ASIDE_HEAD = 600  # characters of a system text in which it says so
_TITLE_REPLY = re.compile(r'\s*\{\s*"(?:isNewTopic|title|is_new_topic)"')
_HANDED_OVER = 40  # characters of a first prompt that stands in another agent's call


@dataclass(frozen=True, slots=True)
class Said:
    """A page with its text, sealed."""

    page: Page
    text: str
    """What is looked at of it. Of a call: its arguments as JSON, each cut."""
    outside: bytes = field(default=b"", repr=False)
    """Where others wrote it: all of it, squeezed (see `taint`), to search in. Not sealed, and never a part of anything."""


@dataclass(frozen=True, slots=True)
class Material:
    """All that an encoding knows."""

    session: Session
    line: tuple[Said, ...]
    """In the order of the conversation."""
    endings: Mapping[int, Ending]
    """How turns came out, by their number, where somebody told."""
    now: float


def read_session(store: Store, session: SessionId, now: float) -> Material:
    """The line that ends with the session's last turn of a person: what programs ask by themselves is left out.

    Raises `NotFound` where there is no such session. Pages that cannot be read are left out.
    """
    turns = list(store.turns(session))
    pages = _pages(store, session)
    line = tuple(each for page in _line(store, session, turns, pages) if (each := _read(store, page)) is not None)
    return Material(store.session(session), line, _endings(store, session), now)


def said(page: Page, content: bytes) -> Said:
    """A page with what is looked at of its content."""
    family = page.kind.family
    if family is Kind.TOOL_CALL:
        return Said(page, _arguments(content))
    if family is Kind.TOOL_RESULT:
        text = "" if is_binary(content) else _ends(content, *_RESULT)
        return Said(page, text, squeezed(content[:_SEARCHED]))
    text = _ends(content, *(_PROMPT if page.kind is Kind.PROMPT else _RESPONSE))
    outside = page.kind is Kind.PROMPT and not is_person(text, agent=page.agent)
    return Said(page, text, squeezed(content[:_SEARCHED]) if outside else b"")


def _read(store: Store, page: Page) -> Said | None:
    if page.kind in NOT_SEARCHED or is_ours(page):
        return None
    try:
        return said(page, store.content(page.digest))
    except (NotFound, PageDamaged):
        return None


def _pages(store: Store, session: SessionId) -> dict[Chain, list[Page]]:
    by_message: dict[Chain, list[Page]] = {}
    for page in store.pages(Where(session=session)):
        by_message.setdefault(page.chain, []).append(page)
    return by_message


def _line(store: Store, session: SessionId, turns: Sequence[Turn], pages: Mapping[Chain, Sequence[Page]]) -> Iterator[Page]:
    """The latest line of a person and, where it begins with a summary of what was forgotten, the one before it, and so on."""
    parents = {node.chain: node.parent for node in store.nodes(session) if not node.aside}
    tails: dict[Chain, tuple[Turn, list[Chain]]] = {}
    for turn in turns:
        chains = _chains(turn.tail, parents)
        if chains:
            tails[chains[0]] = (turn, chains)  # the latest of those that began alike
    handed = _handed_over(store, pages)
    lines: list[list[Chain]] = []
    for turn, chains in sorted(tails.values(), key=lambda each: -each[0].number):
        first = _first_prompt(store, chains, pages)
        if _is_aside(store, turn, first, handed):
            continue
        lines.append(chains)
        if not spoken(first).summary:
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


def _first_prompt(store: Store, chains: Sequence[Chain], pages: Mapping[Chain, Sequence[Page]]) -> str:
    """The first words on a line that are a person's, or a summary."""
    for chain in chains:
        for page in pages.get(chain, ()):
            if page.kind is Kind.PROMPT and (each := _read(store, page)) is not None:
                own = spoken(each.text)
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
    """Did a program ask: an agent another agent, or a client for a title?"""
    head = msgspec.json.encode(first[:200]).decode("utf-8", "replace").strip('"')[:_HANDED_OVER]
    if len(head) >= _HANDED_OVER and head in handed:
        return True
    if turn.system is None:
        return False
    try:
        system = store.content(turn.system)[:_ASIDE_HEAD].decode("utf-8", "replace")
    except (NotFound, PageDamaged):
        return False
    return _ASIDE.search(system) is not None


def is_title(line: Sequence[Said]) -> bool:
    """A client asked for a title: a prompt and a few words of JSON."""
    spoken_pages = [each for each in line if each.page.kind in (Kind.PROMPT, Kind.RESPONSE, Kind.TOOL_CALL)]
    return len(spoken_pages) <= 3 and any(  # what is asked, maybe about what, and the title
        each.page.kind is Kind.RESPONSE and _TITLE_REPLY.match(each.text) for each in spoken_pages
    )


def _endings(store: Store, session: SessionId) -> dict[int, Ending]:
    told: dict[int, Ending] = {}
    for event in store.events(session):
        outcome = str(event.detail.get("outcome", ""))
        if event.name == OUTCOME and outcome in set(Ending):
            told[event.turn] = Ending(outcome)
    return told


def _ends(content: bytes, head: int, tail: int) -> str:
    """The text's head and tail, sealed; all of it where it is short."""
    most = 4 * (head + tail)  # bytes of so many characters
    if len(content) <= most:
        text = content.decode("utf-8", "replace")
        if len(text) <= head + tail:
            return seal(text).text
    else:
        text = f"{content[: 4 * head].decode('utf-8', 'ignore')}\n{content[-4 * tail :].decode('utf-8', 'ignore')}"
    return f"{seal(_until_border(text[:head])).text}\n{seal(_from_border(text[-tail:])).text}"


def _until_border(text: str) -> str:
    return text[: max(text.rfind("\n"), text.rfind(" "), 0)]


def _from_border(text: str) -> str:
    borders = [at for at in (text.find("\n"), text.find(" ")) if at >= 0]
    return text[min(borders) + 1 :] if borders else ""


def _arguments(content: bytes) -> str:
    """A call's arguments with each text in them cut and sealed; as JSON, or as they are where they are none."""
    try:
        decoded = msgspec.json.decode(content)
    except (ValueError, RecursionError):
        return _short(content.decode("utf-8", "replace"))
    if isinstance(decoded, str):
        return _short(decoded)
    return msgspec.json.encode(_shortened(decoded, 0)).decode()


def _shortened(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _short(value)
    if depth >= _DEEPEST:
        return None
    if isinstance(value, dict):
        return {_short(str(key)): _shortened(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        return [_shortened(each, depth + 1) for each in value[:100]]
    return value


def _short(text: str) -> str:
    """Its beginning, and which files a patch is for."""
    if len(text) <= _ARGUMENT:
        return seal(text).text
    rest = [found.group() for found, _ in zip(_PATCHED.finditer(text, _ARGUMENT), range(_MOST_PATCHED), strict=False)]
    return seal("\n".join((_until_border(text[:_ARGUMENT]), *rest))).text
