"""A session's line in stretches, one for each goal of its user. Pure; a prompt is judged by what came before it alone.

So a longer line has the same stretches, with the same beginnings, and only its last one may have grown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hotset.nouns.page import Chain, Kind
from hotset.sources.memory.encoding.persons import ends_in_action, is_person
from hotset.sources.memory.encoding.reading import Said, is_title
from hotset.sources.memory.encoding.speaking import Spoken, spoken
from hotset.text.sentences import without_fences
from hotset.text.terms import topic_words

_PAUSE = 6 * 3600.0  # seconds between what was said last and a prompt after which it is another sitting
_SHORT = 7  # words of a prompt that says nothing without the one before it
_SHARED = 0.34  # of a prompt's telling words; from there on it speaks of the same
_SHARED_BY_ORDER = 0.6
_MOST_WORDS = 60  # telling words of a prompt by which it is compared
_REMEMBERED = 400  # telling words of a stretch

_CARRIES_ON = re.compile(
    r"(?:(?:ok(?:ay)?|alright|great|nice|cool|perfect|good|fine|thanks?|thank you|thx|awesome|wow|sure|yes"
    r"|yep|yeah|yup|no|nope|nah"
    r"|right|correct|exactly|agreed|hmm+|hm|oh|ah|so|well|and|but|also|or|then|still|wait|actually|sorry"
    r"|again|instead|not|now|same"
    r"|maybe|it|it's|its|that|that's|thats|this|these|those|they|them|he|she|why|what about|how about|which|where is|when|who"
    r"|you|your|i mean|i meant|i see|i think|i thought|i'd|i would|i still|i understand|i appreciate"
    r"|i was hoping|i really|besides|however|unfortunately|i don't|i dont|i didn't|seems|looks|sounds"
    r"|doesn't|does it|did|did you|are you|can we|is it"
    r"|isn't|is that|is this|was|shouldn't|should it|if|because|since|nevermind|never mind|continue|go on"
    r"|go ahead|proceed|do it|do that|do so"
    r"|keep going|retry|try again|undo|revert|commit|push|merge|lgtm|done|stop|let's do|lets do"
    r"|for example|e\.g|option|both|neither|either"
    r"|first|second|the first|the second|the last|another|one more|mention|make it|make this|make these"
    r"|please (?:continue|proceed|fix it|do)"
    r"|merci|bitte|danke|oui|ja|nein|oui|ok)\b)",
    re.IGNORECASE,
)
"""Words with which somebody goes on about the same."""
_ORDER = re.compile(
    r"(?:(?:ok(?:ay)?|alright|now|next|then|please|also|great|thanks?|so|and|hey|hi|hello|cool|perfect)[,.! ]+)*"
    r"(?:(?:can|could|would|will) you (?:please )?|please |i(?:'d| would) like (?:you )?to "
    r"|i want (?:you )?to |i need (?:you )?to |let's |lets |we (?:need|have) to |help me )?"
    r"(?:add|implement|create|build|write|fix|refactor|rename|remove|delete|update|upgrade|migrate|move"
    r"|make|change|replace|set up|setup"
    r"|investigate|research|review|analy[sz]e|debug|explain|document|test|deploy|release|publish|port"
    r"|convert|integrate|design|read|find"
    r"|check|look|improve|optimi[sz]e|clean|generate|redesign|extract|split|merge|book|cancel|plan|compare|recommend|suggest)\b",
    re.IGNORECASE,
)
_ASKS_BACK = re.compile(r"\?[\s\"')*_]*$")
_AWAITS = re.compile(
    r"\b(?:would you like|do you want|shall i|should i|let me know (?:if|which|what|how)|please (?:confirm"
    r"|provide|choose|let me)|could you (?:please )?(?:provide|confirm|tell))\b",
    re.IGNORECASE,
)
_LAST = 400  # characters at the end of a reply in which it asks for something


@dataclass(frozen=True, slots=True)
class Prompted:
    """Something the user said, and where."""

    place: int
    text: str
    handed: bool = False
    """In a document that somebody else may have written."""
    person: bool = True
    """Proven to be the user's own words."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a line that is about one goal."""

    first: int
    end: int
    """Places in the line: `line[first:end]`."""
    prompts: tuple[Prompted, ...]
    """The first is the goal."""
    stopped: tuple[int, ...] = ()
    """Where the user stopped the model."""

    @property
    def goal(self) -> Prompted:
        return self.prompts[0]


@dataclass(slots=True)
class _Open:
    """A stretch that is being put together."""

    first: int
    prompts: list[Prompted]
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

    def closed(self, end: int) -> Stretch:
        return Stretch(self.first, end, tuple(self.prompts), tuple(self.stopped))


def own_words(line: Sequence[Said]) -> frozenset[int]:
    """The places of the prompts that are, by their form and by what stands before them, a person's own words."""
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


def returned(line: Sequence[Said]) -> frozenset[int]:
    """The places of user messages that hold the result of an action which the model wrote as text."""
    return frozenset(
        place
        for place, reply in _replies(line)
        if ends_in_action(reply) and not is_person(line[place].text, agent=line[place].page.agent)
    )


def _replies(line: Sequence[Said]) -> Iterator[tuple[int, str]]:
    """Of each prompt its place, and the words of the model right before it: none where it had called a tool."""
    before = ""
    for place, said in enumerate(line):
        if said.page.kind is Kind.PROMPT:
            yield place, before
        else:
            before = said.text if said.page.kind is Kind.RESPONSE else ""


def stretches(line: Sequence[Said], own: frozenset[int] | None = None) -> Iterator[Stretch]:
    """The goals of a line, in their order. What comes before the first words of a user belongs to none.

    `own` are the places of a person's own words, where that was looked into already.
    """
    now: _Open | None = None
    fresh = False
    own, results = own_words(line) if own is None else own, returned(line)
    for place, said in enumerate(() if is_title(line) else line):
        heard = spoken(said.text) if said.page.kind is Kind.PROMPT and place not in results else Spoken()
        fresh = fresh or heard.fresh
        if heard.text and (now is None or fresh or _opens(now, heard, said.page.time)):
            if now is not None:
                yield now.closed(place)
            now, fresh = _Open(place, []), False
        if now is not None:
            _follow(now, place, said, heard, own=place in own)
    if now is not None:
        yield now.closed(len(line))


def goes_on(text: str) -> bool:
    """Does somebody go on about the same: by a word that says so, or by saying too little for anything else?"""
    bare = text.strip().lstrip("\"'(*-")
    return len(bare.split()) < _SHORT or _CARRIES_ON.match(bare) is not None


def _follow(now: _Open, place: int, said: Said, heard: Spoken, *, own: bool) -> None:
    kind, now.time = said.page.kind, said.page.time
    if heard.interrupted:
        now.stopped.append(place)
    if heard.text:
        now.prompts.append(Prompted(place, heard.text, heard.handed, own))
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


def _opens(now: _Open, heard: Spoken, time: float) -> bool:
    """Does this prompt open a goal of its own?"""
    if not now.answered:
        # Nobody answered yet: a client may say in several messages what belongs together.
        return False
    text = without_fences(heard.text).strip()
    if time - now.time > _PAUSE and not _is_bare(text):
        return True
    if not now.ended or goes_on(text):
        return False
    share = _share(text, now)
    if _ORDER.match(text):
        return share < (_SHARED if now.asks else _SHARED_BY_ORDER)
    return not now.asks and share < _SHARED


def _is_bare(text: str) -> bool:
    return len(text.split()) < 3  # "go on", "commit"


def _share(text: str, now: _Open) -> float:
    words = set(_telling(text))
    return sum(word in now.words for word in words) / len(words) if words else 1.0


def _telling(text: str) -> list[str]:
    found: list[str] = []
    for word in topic_words(text):
        found.append(word)
        if len(found) >= _MOST_WORDS:
            break
    return found
