"""A session as memories are made of it: its line of pages, and the spans of that line that are
about one goal each.

Of long texts the head and the tail are read, and cut at line ends before secrets are sealed: no
token has a line end in it. A prompt is judged by what came before it alone, so a longer line has
the same spans, and only its last one may have grown.
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
from hotset.sources.memory.encode.speakers import (
    PromptWords,
    ends_in_action,
    is_person,
    prompt_words,
)
from hotset.sources.memory.memory_writer import known_content
from hotset.store.port import Store, Where
from hotset.text.characters import squeeze
from hotset.text.sentences import without_fences
from hotset.text.terms import topic_words
from hotset.window.page_text import NOT_SEARCHED, is_binary, is_ours

OUTCOME = "Outcome"
"""The event by which somebody tells how a turn came out: `{"outcome": "success"}`."""

_PROMPT, _RESPONSE, _RESULT = (
    (16_000, 2_000),
    (8_000, 4_000),
    (2_000, 2_000),
)  # characters at both ends that are looked at
_ARGUMENT = 2_000  # characters of one argument of a call; those of an edit are a file
_SEARCHED = 1 << 20  # bytes of a result in which taint is sought
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
"""What the system text says where nobody but a program asks."""
_ASIDE_HEAD = 600  # characters of a system text in which it says so
_TITLE_REPLY = re.compile(r'\s*\{\s*"(?:isNewTopic|title|is_new_topic)"')
_HANDED_OVER = 40  # characters of a first prompt that stands in another agent's call


@dataclass(frozen=True, slots=True)
class Utterance:
    """A page with its text, sealed."""

    page: Page
    text: str
    """What is looked at of it. Of a call: its arguments as JSON, each cut."""
    outside: bytes = field(default=b"", repr=False)
    """Where others wrote it: all of it, squeezed (see `taint`), to search in. Not sealed, and never
    a part of anything."""


@dataclass(frozen=True, slots=True)
class Material:
    """All that an encoding knows."""

    session: Session
    line: tuple[Utterance, ...]
    """In the order of the conversation."""
    endings: Mapping[int, Ending]
    """How turns came out, by their number, where somebody told."""
    now: float


def read_session(store: Store, session: SessionId, now: float) -> Material:
    """The line that ends with the session's last turn of a person: what programs ask by themselves
    is left out.

    Raises `NotFound` where there is no such session. Pages that cannot be read are left out.
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
    """A page with what is looked at of its content."""
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
    """The latest line of a person and, where it begins with a summary of what was forgotten, the
    one before it, and so on."""
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
    """The first words on a line that are a person's, or a summary."""
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
    """Did a program ask: an agent another agent, or a client for a title?"""
    head = msgspec.json.encode(first[:200]).decode("utf-8", "replace").strip('"')[:_HANDED_OVER]
    if len(head) >= _HANDED_OVER and head in handed:
        return True
    if turn.system is None:
        return False
    system = (known_content(store, turn.system) or b"")[:_ASIDE_HEAD].decode("utf-8", "replace")
    return _ASIDE.search(system) is not None


def is_title(line: Sequence[Utterance]) -> bool:
    """A client asked for a title: a prompt and a few words of JSON."""
    spoken_pages = [
        each for each in line if each.page.kind in (Kind.PROMPT, Kind.RESPONSE, Kind.TOOL_CALL)
    ]
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
    """A call's arguments with each text in them cut and sealed; as JSON, or as they are where they
    are none."""
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
    rest = (found.group() for found in islice(_PATCHED.finditer(text, _ARGUMENT), _MOST_PATCHED))
    return seal("\n".join((_until_border(text[:_ARGUMENT]), *rest))).text


_PAUSE = (
    6 * 3600.0
)  # seconds between what was said last and a prompt after which it is another sitting
_SHORT = 7  # words of a prompt that says nothing without the one before it
_SHARED = 0.34  # of a prompt's telling words; from there on it speaks of the same
_SHARED_BY_ORDER = 0.6
_MOST_WORDS = 60  # telling words of a prompt by which it is compared
_REMEMBERED = 400  # telling words of a stretch

_CARRIES_ON = re.compile(
    r"(?:(?:ok(?:ay)?|alright|great|nice|cool|perfect|good|fine|thanks?|thank "
    r"you|thx|awesome|wow|sure|yes"
    r"|yep|yeah|yup|no|nope|nah"
    r"|right|correct|exactly|agreed|hmm+|hm|oh|ah|so|well|and|but|also|or|then|still|wait|"
    r"actually|sorry"
    r"|again|instead|not|now|same"
    r"|maybe|it|it's|its|that|that's|thats|this|these|those|they|them|he|she|why|what "
    r"about|how about|which|where is|when|who"
    r"|you|your|i mean|i meant|i see|i think|i thought|i'd|i would|i still|i understand|i "
    r"appreciate"
    r"|i was hoping|i really|besides|however|unfortunately|i don't|i dont|i "
    r"didn't|seems|looks|sounds"
    r"|doesn't|does it|did|did you|are you|can we|is it"
    r"|isn't|is that|is this|was|shouldn't|should it|if|because|since|nevermind|never "
    r"mind|continue|go on"
    r"|go ahead|proceed|do it|do that|do so"
    r"|keep going|retry|try again|undo|revert|commit|push|merge|lgtm|done|stop|let's do|lets do"
    r"|for example|e\.g|option|both|neither|either"
    r"|first|second|the first|the second|the last|another|one more|mention|make it|make "
    r"this|make these"
    r"|please (?:continue|proceed|fix it|do)"
    r"|merci|bitte|danke|oui|ja|nein|oui|ok)\b)",
    re.IGNORECASE,
)
"""Words with which somebody goes on about the same."""
_ORDER = re.compile(
    r"(?:(?:ok(?:ay)?|alright|now|next|then|please|also|great|thanks?|so|and|hey|hi|hello|"
    r"cool|perfect)[,.! ]+)*"
    r"(?:(?:can|could|would|will) you (?:please )?|please |i(?:'d| would) like (?:you )?to "
    r"|i want (?:you )?to |i need (?:you )?to |let's |lets |we (?:need|have) to |help me )?"
    r"(?:add|implement|create|build|write|fix|refactor|rename|remove|delete|update|upgrade|"
    r"migrate|move"
    r"|make|change|replace|set up|setup"
    r"|investigate|research|review|analy[sz]e|debug|explain|document|test|deploy|release|"
    r"publish|port"
    r"|convert|integrate|design|read|find"
    r"|check|look|improve|optimi[sz]e|clean|generate|redesign|extract|split|merge|book|cancel|"
    r"plan|compare|recommend|suggest)\b",
    re.IGNORECASE,
)
_ASKS_BACK = re.compile(r"\?[\s\"')*_]*$")
_AWAITS = re.compile(
    r"\b(?:would you like|do you want|shall i|should i|let me know "
    r"(?:if|which|what|how)|please (?:confirm"
    r"|provide|choose|let me)|could you (?:please )?(?:provide|confirm|tell))\b",
    re.IGNORECASE,
)
_LAST = 400  # characters at the end of a reply in which it asks for something


@dataclass(frozen=True, slots=True)
class UserPrompt:
    """Something the user said, and where."""

    place: int
    text: str
    handed: bool = False
    """In a document that somebody else may have written."""
    person: bool = True
    """Proven to be the user's own words."""


@dataclass(frozen=True, slots=True)
class GoalSpan:
    """A part of a line that is about one goal."""

    first: int
    end: int
    """Places in the line: `line[first:end]`."""
    prompts: tuple[UserPrompt, ...]
    """The first is the goal."""
    stopped: tuple[int, ...] = ()
    """Where the user stopped the model."""

    @property
    def goal(self) -> UserPrompt:
        return self.prompts[0]


@dataclass(slots=True)
class _OpenSpan:
    """A stretch that is being put together."""

    first: int
    prompts: list[UserPrompt]
    stopped: list[int] = field(default_factory=list)
    words: dict[str, None] = field(default_factory=dict)
    ended: bool = False
    """The model replied, and calls nothing more."""
    asks: bool = False
    """Its last reply asks for something."""
    answered: bool = False
    time: float = 0.0

    def hear(self, text: str) -> None:
        for word in _telling(text):
            if len(self.words) < _REMEMBERED:
                self.words[word] = None

    def closed(self, end: int) -> GoalSpan:
        return GoalSpan(self.first, end, tuple(self.prompts), tuple(self.stopped))


def own_words(line: Sequence[Utterance]) -> frozenset[int]:
    """The places of the prompts that are, by their form and by what stands before them, a person's
    own words."""
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
    """The places of user messages that hold the result of an action which the model wrote as
    text."""
    return frozenset(
        place
        for place, reply in _replies(line)
        if ends_in_action(reply) and not is_person(line[place].text, agent=line[place].page.agent)
    )


def _replies(line: Sequence[Utterance]) -> Iterator[tuple[int, str]]:
    """Of each prompt its place, and the words of the model right before it: none where it had
    called a tool."""
    before = ""
    for place, said in enumerate(line):
        if said.page.kind is Kind.PROMPT:
            yield place, before
        else:
            before = said.text if said.page.kind is Kind.RESPONSE else ""


def goal_spans(line: Sequence[Utterance], own: frozenset[int] | None = None) -> Iterator[GoalSpan]:
    """The goals of a line, in their order. What comes before the first words of a user belongs to
    none.

    `own` are the places of a person's own words, where that was looked into already.
    """
    now: _OpenSpan | None = None
    fresh = False
    own, results = own_words(line) if own is None else own, action_results(line)
    for place, said in enumerate(() if is_title(line) else line):
        heard = (
            prompt_words(said.text)
            if said.page.kind is Kind.PROMPT and place not in results
            else PromptWords()
        )
        fresh = fresh or heard.fresh
        if heard.text and (now is None or fresh or _opens(now, heard, said.page.time)):
            if now is not None:
                yield now.closed(place)
            now, fresh = _OpenSpan(place, []), False
        if now is not None:
            _follow(now, place, said, heard, own=place in own)
    if now is not None:
        yield now.closed(len(line))


def goes_on(text: str) -> bool:
    """Does somebody go on about the same: by a word that says so, or by saying too little for
    anything else?"""
    bare = text.strip().lstrip("\"'(*-")
    return len(bare.split()) < _SHORT or _CARRIES_ON.match(bare) is not None


def _follow(now: _OpenSpan, place: int, said: Utterance, heard: PromptWords, *, own: bool) -> None:
    kind, now.time = said.page.kind, said.page.time
    if heard.interrupted:
        now.stopped.append(place)
    if heard.text:
        now.prompts.append(UserPrompt(place, heard.text, heard.handed, own))
        now.hear(heard.text)
        now.ended, now.asks = False, False
    elif kind is Kind.RESPONSE:
        end = said.text[-_LAST:].strip()
        now.ended, now.answered = True, True
        now.asks = _ASKS_BACK.search(end) is not None or _AWAITS.search(end) is not None
        now.hear(said.text[:_LAST])
    elif kind.family is Kind.TOOL_CALL:
        now.ended, now.answered = False, True
        now.hear(said.text[:_LAST])


def _opens(now: _OpenSpan, heard: PromptWords, time: float) -> bool:
    """Does this prompt open a goal of its own?"""
    if not now.answered:
        # Nobody answered yet: a client may say in several messages what belongs together.
        return False
    text = without_fences(heard.text).strip()
    if time - now.time > _PAUSE and len(text.split()) >= 3:  # more than "go on", "commit"
        return True
    if not now.ended or goes_on(text):
        return False
    share = _share(text, now)
    if _ORDER.match(text):
        return share < (_SHARED if now.asks else _SHARED_BY_ORDER)
    return not now.asks and share < _SHARED


def _share(text: str, now: _OpenSpan) -> float:
    words = set(_telling(text))
    return sum(word in now.words for word in words) / len(words) if words else 1.0


def _telling(text: str) -> list[str]:
    return list(islice(topic_words(text), _MOST_WORDS))
