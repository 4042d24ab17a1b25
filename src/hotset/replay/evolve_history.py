"""Search of earlier work on recorded sessions: which of the lines and names that an action copies
from what has left come back with one question.

The question is what the agent had at hand: its own words at that step, or else its last words or
the prompt. What it asks for is what the action copies from results that have left the window and
that neither the question nor anything in the window has. What the search reads is taken apart once;
then a configuration costs a fraction of a millisecond a question. `score_passages`, which the
proxy runs, gives the same scores (a test holds this).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING

from hotset.files.lru import memo
from hotset.nouns.knobs import HistoryKnobs, Knobs
from hotset.nouns.page import Kind, Role
from hotset.nouns.window import Line
from hotset.replay.conversation import RecordedConversation, TextUnits, find_actions
from hotset.replay.evolve_fitness import SessionScore, rounded, session_name
from hotset.replay.evolve_search import Gene
from hotset.replay.policies import text_of
from hotset.sources.history.passages import (
    PageOfPassages,
    RecentWork,
    count_phrases,
    quoted_phrases,
    rarity,
    wanted_terms,
    work_of_calls,
)
from hotset.text.terms import Term, hits
from hotset.text.words import lower_in_place
from hotset.tokens import count
from hotset.window.arguments import spoken, written_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Whole = NDArray[np.int64]

ROOM = 2000
"""Tokens of an answer."""

PASSAGES = (120, 200, 300, 450, 700)
"""Characters of a passage that are tried: each has to be taken apart once."""

_RESIDENT = 10  # the latest steps, which are in the window as a rule
_OF_ONE_SESSION = 24  # questions, evenly spread
_FEWEST = 3  # questions: a session with less says hardly anything
_FEWEST_WORDS = 5
_LONGEST_QUESTION = 1500  # characters
_MOST_BYTES = 1 << 20  # of what left, the latest
_HEADING = 24  # tokens of a page's heading
_AROUND = 4  # tokens around a passage
_LOOKED_AT = 80  # passages, the best: more than fit
_MOST_MISSES = 20
_SHORT_LINE = 6
_MS_PER_PASSAGE = 0.04
"""Of a search's time, as measured; a clock would make no two runs the same."""

_READ = frozenset({Role.TOOL, Role.ASSISTANT})
_SHARES = (Kind.TOOL_CALL, Kind.RESPONSE)


@dataclass(frozen=True, slots=True)
class PastPiece:
    """A text of the conversation that has left, or can leave."""

    message: int
    kind: Kind
    tool: str
    call: str
    """What the call was asked that brought it."""
    text: str


@dataclass(frozen=True, slots=True)
class LeftQuestion:
    """What an agent asks for at a step."""

    words: str
    wanted: tuple[str, ...]
    left: int
    """Messages before this one have left the window."""
    at: int
    """The message that asks."""


@dataclass(slots=True)
class _AskedSession:
    """A stretch of a session, its questions, and what was taken apart of it."""

    name: str
    pieces: Sequence[PastPiece]
    calls: Mapping[int, Mapping[str, str]]
    """The arguments of the calls before a question, by the message that asks."""
    questions: Sequence[LeftQuestion]
    read: dict[tuple[int, int], _ReadQuestion] = field(default_factory=dict)
    pages: dict[tuple[int, int], PageOfPassages] = field(default_factory=dict)

    def question(self, number: int, room: int) -> _ReadQuestion:
        if (number, room) not in self.read:
            self.read[number, room] = self._read(self.questions[number], room)
        return self.read[number, room]

    def _read(self, question: LeftQuestion, room: int) -> _ReadQuestion:
        numbers: dict[str, int] = {}
        left = _MOST_BYTES
        for number in range(len(self.pieces) - 1, -1, -1):
            piece = self.pieces[number]
            if piece.message < question.left and left > 0 and piece.text not in numbers:
                numbers[piece.text] = number
                left -= len(piece.text)
        pages = [self._page(number, room) for number in numbers.values()]
        work = work_of_calls(self.calls[question.at], HistoryKnobs(of_names=1.0))
        return read_question(question.words, pages, work)

    def _page(self, number: int, room: int) -> PageOfPassages:
        if (number, room) not in self.pages:
            each = self.pieces[number]
            made = PageOfPassages.of(each.kind, each.tool, each.call, each.text, room)
            self.pages[number, room] = made
        return self.pages[number, room]


@dataclass(frozen=True, slots=True)
class HistoryPart:
    """Encode, store, retrieve and manage, by the search of earlier work."""

    asked: Sequence[_AskedSession]
    genes: Sequence[Gene]
    name: str = "history"

    @classmethod
    def of(
        cls, recorded: Sequence[Sequence[RecordedConversation]], genes: Sequence[Gene]
    ) -> HistoryPart:
        """`recorded`: each session's stretches, in order of time; its longest one is asked."""
        longest = (max(each, key=lambda part: len(part.lines)) for each in recorded)
        found = (_asked_session(each) for each in longest)
        return cls([each for each in found if len(each.questions) >= _FEWEST], genes)

    @property
    def sessions(self) -> Sequence[str]:
        return [each.name for each in self.asked]

    def judge(self, knobs: Knobs, session: int) -> SessionScore:
        asked = self.asked[session]
        answers = [
            _answer(question, asked.question(number, knobs.history.passage), knobs.history)
            for number, question in enumerate(asked.questions)
        ]
        return SessionScore(
            rounded(fmean(found for found, _, _ in answers)),
            rounded(fmean(spent for _, spent, _ in answers)),
            round(fmean(places for _, _, places in answers) * _MS_PER_PASSAGE, 1),
        )

    def shuffled(self, seed: int) -> HistoryPart:
        return replace(self, asked=[_shuffle(each, seed) for each in self.asked])


def history_genes(knobs: Knobs) -> list[Gene]:
    ranges = {
        "encode": (("of_call", 0.0, 2.0), ("of_page", 0.0, 1.5)),
        "store": (("calls", 0.0, 2.0), ("replies", 0.0, 3.0)),
        "retrieve": (
            ("of_neighbour", 0.0, 1.5),
            ("of_phrase", 0.0, 2.0),
            ("of_work", 0.0, 3.0),
            ("of_names", 0.0, 1.5),
            ("saturation", 0.1, 4.0),
            ("length", 0.0, 1.0),
        ),
        "manage": (("repeated", 0.2, 1.0),),
    }
    return [
        Gene("history.passage", knobs.history.passage, "encode", choices=PASSAGES),
        *(
            Gene(f"history.{name}", float(knobs.value(f"history.{name}")), part, low, high)
            for part, named in ranges.items()
            for name, low, high in named
        ),
    ]


def _asked_session(conversation: RecordedConversation) -> _AskedSession:
    lines = conversation.lines
    pieces = list(past_pieces(lines))
    questions = left_questions(conversation)
    return _AskedSession(
        session_name([conversation]),
        pieces,
        {each.at: _calls_before(lines, each.at) for each in questions},
        questions,
    )


def past_pieces(lines: Sequence[Line]) -> Iterator[PastPiece]:
    """Results, calls and words of the model, as a search reads them."""
    asked: dict[str, str] = {}
    for index, line in enumerate(lines):
        for piece in line.pieces:
            is_call = piece.kind.family is Kind.TOOL_CALL
            if is_call:
                asked[piece.call] = spoken(piece.content)
            if line.role in _READ and piece.content:
                text = written_text(piece.content) if is_call else ""
                yield PastPiece(
                    index,
                    piece.kind,
                    piece.tool,
                    asked.get(piece.call, "") if piece.call else "",
                    text or piece.content.decode("utf-8", "replace"),
                )


def _calls_before(lines: Sequence[Line], message: int) -> dict[str, str]:
    return {
        piece.call: spoken(piece.content)
        for line in lines[:message]
        for piece in line.pieces
        if piece.kind.family is Kind.TOOL_CALL
    }


def left_questions(conversation: RecordedConversation) -> list[LeftQuestion]:
    """The steps that copy something which had left, with what the agent had at hand."""
    lines, replies = conversation.lines, conversation.calls
    if len(replies) <= _RESIDENT:
        return []
    units = [TextUnits.of(text_of(line)) for line in lines]
    found: list[LeftQuestion] = []
    for action in find_actions(lines, units):
        place = bisect_right(replies, action.message) - 1
        if place < _RESIDENT or (found and action.message <= found[-1].at):
            continue
        left = replies[place - _RESIDENT]
        words = _at_hand(lines, action.message)
        wanted = tuple(
            need
            for need, seen in action.needs.items()
            if seen[-1] < left
            and any(lines[at].role is Role.TOOL for at in seen)
            and not any(lines[at].role in (Role.USER, Role.SYSTEM) for at in seen)
            and need not in words
        )
        if wanted and words:
            found.append(LeftQuestion(words, wanted, left, action.message))
    if len(found) <= _OF_ONE_SESSION:
        return found
    return [found[at * len(found) // _OF_ONE_SESSION] for at in range(_OF_ONE_SESSION)]


def _at_hand(lines: Sequence[Line], message: int) -> str:
    """The agent's words at a step; where it says too little, its last words, or the prompt."""
    for index in range(message, -1, -1):
        wanted = (Kind.RESPONSE,) if index == message else (Kind.RESPONSE, Kind.PROMPT)
        words = "\n".join(
            piece.content.decode("utf-8", "replace")
            for piece in lines[index].pieces
            if piece.kind in wanted
        ).strip()
        if len(words.split()) >= _FEWEST_WORDS:
            return words[:_LONGEST_QUESTION]
    return ""


def _shuffle(session: _AskedSession, seed: int) -> _AskedSession:
    """Each question wants as many lines of any text that has left."""
    rng = Random(f"{seed} {session.name}")  # noqa: S311 - no secret
    questions = []
    for each in session.questions:
        lines = [
            bare
            for piece in session.pieces
            if piece.message < each.left and piece.kind.family is not Kind.TOOL_CALL
            for line in piece.text.split("\n")
            if len(bare := line.strip()) > _SHORT_LINE
        ]
        wanted = tuple(rng.choice(lines) for _ in each.wanted) if lines else each.wanted
        questions.append(replace(each, wanted=wanted))
    return replace(session, name=f"{session.name}-{seed}", questions=questions)


@dataclass(frozen=True, slots=True)
class _ReadQuestion:
    """What a search reads for a question, before any weights."""

    pages: Sequence[PageOfPassages]
    page: Whole
    """The page of each passage."""
    term: Whole
    place: Whole
    often: Floats
    """`often[i]` times stands term `term[i]` in passage `place[i]`."""
    rare: Floats
    is_work: NDArray[np.bool_]
    """The term is of the latest calls, not of the question."""
    length: Floats
    """Of each passage, relative to the mean."""
    in_name: Floats
    in_page: Floats
    at_work: Floats
    unit: float
    phrases: Floats
    share: Whole
    """Of each page: 0 a result, 1 a call, 2 words of the model."""
    first: Whole
    """The number of each page's first passage."""
    known: dict[int, _KnownPassage] = field(default_factory=dict)
    """Passages that came among the best, with what they cost."""

    def scores(self, knobs: HistoryKnobs) -> Floats:
        import numpy as np  # noqa: PLC0415

        rare = np.where(self.is_work, self.rare * knobs.of_names, self.rare)
        norm = knobs.saturation * (1 - knobs.length + knobs.length * self.length)
        gained = rare[self.term] * self.often * (knobs.saturation + 1)
        gained /= self.often + norm[self.place]
        own = np.bincount(self.place, weights=gained, minlength=len(self.page))
        beside = np.zeros_like(own)
        same = self.page[1:] == self.page[:-1]
        beside[1:] = np.where(same, own[:-1], 0.0)
        beside[:-1] = np.maximum(beside[:-1], np.where(same, own[1:], 0.0))
        whole = knobs.of_call * self.in_name + knobs.of_page * self.in_page
        whole += knobs.of_work * self.unit * self.at_work
        scores = own + knobs.of_neighbour * beside + whole[self.page]
        scores *= 1 + knobs.of_phrase * self.phrases * (own > 0)
        shares = np.array([1.0, knobs.calls, knobs.replies])
        found = (self.in_name > 0) | (self.in_page > 0)
        result: Floats = scores * shares[self.share][self.page] * found[self.page]
        return result

    def passage(self, number: int) -> _KnownPassage:
        if number not in self.known:
            page = int(self.page[number])
            text = self.pages[page].parts[number - int(self.first[page])].text
            self.known[number] = _KnownPassage.of(page, text)
        return self.known[number]


@dataclass(frozen=True, slots=True)
class _KnownPassage:
    page: int
    text: str
    tokens: int
    lines: frozenset[str]

    @classmethod
    def of(cls, page: int, text: str) -> _KnownPassage:
        bare = (line.strip() for line in text.split("\n"))
        lines = frozenset(line for line in bare if len(line) > _SHORT_LINE)
        return cls(page, text, _tokens(text), lines)


@memo("stems of evolution", 100_000)
def _tokens(text: str) -> int:
    return count(text.encode("utf-8", "replace")) + _AROUND


def read_question(words: str, pages: Sequence[PageOfPassages], work: RecentWork) -> _ReadQuestion:
    """Everything that `score_passages` computes before it weighs; `work` with names of weight 1."""
    import numpy as np  # noqa: PLC0415

    asked, wanted = wanted_terms(words, work)
    sizes = [len(each.parts) for each in pages]
    first = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    many = max(1, int(first[-1]))
    terms: list[int] = []
    places: list[int] = []
    often: list[float] = []
    spread = [0] * len(wanted)
    in_page = np.zeros((len(pages), len(asked)))
    for page, each in enumerate(pages):
        for number, counts in enumerate(_counts(each, wanted)):
            spread[number] += len(counts)
            if counts and number < len(asked):
                in_page[page, number] = 1.0
            for place, times in counts.items():
                terms.append(number)
                places.append(int(first[page]) + place)
                often.append(times)
    rare = np.array(
        [term.weight * rarity(many, here) for term, here in zip(wanted, spread, strict=True)]
    )
    of_asked = rare[: len(asked)]
    names = np.zeros((len(pages), len(asked)))
    for page, each in enumerate(pages):
        low = lower_in_place(each.name)
        names[page] = [each.names(term, low) for term in asked]
    texts = [part.text for each in pages for part in each.parts]
    lengths = np.array([len(text) for text in texts], np.float64)
    phrases = quoted_phrases(words)
    return _ReadQuestion(
        pages,
        np.repeat(np.arange(len(pages)), sizes),
        np.array(terms, np.int64),
        np.array(places, np.int64),
        np.array(often, np.float64),
        rare,
        np.arange(len(wanted)) >= len(asked),
        lengths / max(1.0, float(lengths.sum()) / many),
        names @ of_asked,
        in_page @ of_asked,
        np.array([each.at_work(work) for each in pages], np.float64),
        float(np.log(1 + many)),
        np.array([count_phrases(text, phrases) if phrases else 0 for text in texts], np.float64),
        np.array([_share_of(each.kind) for each in pages], np.int64),
        first,
    )


def _counts(page: PageOfPassages, wanted: Sequence[Term]) -> Iterator[Mapping[int, int]]:
    """As `PageOfPassages.counts`, without a look at the terms that the page does not have."""
    for term in wanted:
        counts: dict[int, int] = {}
        for at in hits(page.text, page.low, term):
            place = bisect_right(page.starts, at) - 1
            if place >= 0:
                counts[place] = counts.get(place, 0) + 1
        yield counts


def _share_of(kind: Kind) -> int:
    return _SHARES.index(kind.family) + 1 if kind.family in _SHARES else 0


def _answer(
    question: LeftQuestion, read: _ReadQuestion, knobs: HistoryKnobs
) -> tuple[float, float, int]:
    """The share of what is wanted that comes back, the share of the room that was read until then,
    and how many passages were weighed. Nothing found takes the whole room."""
    import numpy as np  # noqa: PLC0415

    missing = set(question.wanted)
    room, read_until = ROOM, 0
    seen: set[str] = set()
    chosen: set[int] = set()
    misses = 0
    scores = read.scores(knobs)
    for number in np.argsort(-scores, kind="stable")[:_LOOKED_AT]:
        if scores[number] <= 0 or not missing:
            break
        each = read.passage(int(number))
        if each.lines and len(each.lines & seen) > knobs.repeated * len(each.lines):
            continue
        cost = each.tokens + (0 if each.page in chosen else _HEADING)
        if cost > room:
            misses += 1
            if misses > _MOST_MISSES:
                break
            continue
        room -= cost
        seen |= each.lines
        chosen.add(each.page)
        if found := {need for need in missing if need in each.text}:
            missing -= found
            read_until = ROOM - room
    share = 1 - len(missing) / len(question.wanted)
    spent = (share * read_until / ROOM) + (1 - share)
    return share, spent, len(read.page)
