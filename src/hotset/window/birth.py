"""The form of a tool result when it is first shown: whole, an excerpt, or a pointer to what the
window already holds (the same result, the diff to it, or the lines that both have)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from hotset.nouns.knobs import ROOMY, Knobs, Limit
from hotset.nouns.page import Chain, Kind
from hotset.nouns.window import WHOLE, Cause, Form, Piece, Shown, Spot
from hotset.text.call_shape import file_ending, lines_named, names_path, path_of, reads_file
from hotset.window.arguments import arguments, spoken
from hotset.window.instructions import instructs
from hotset.window.line_numbers import own_numbers
from hotset.window.moment import Moment
from hotset.window.names import TERMINAL_CODE, coined_names, distinct_names, names, words_within
from hotset.window.preview import (
    NO_TASK,
    ContentOrigin,
    ContentType,
    Preview,
    TaskText,
    closing,
    preview,
)
from hotset.window.repeats import LEAST, RepeatedLines, ShownResults, content_id, pointers
from hotset.window.step_sizes import WeighedConversation

_INDEXED = 200_000  # characters searched for names
_LOOKED_BACK = 12  # pieces: only the latest calls show what is being searched for
_NONE: Mapping[int, Shown] = {}
_SAYING = frozenset({Kind.PROMPT, Kind.RESPONSE})

MakePreview = Callable[[str, ContentOrigin, int], Preview | None]


def births(weighed: WeighedConversation, knobs: Knobs, moment: Moment) -> list[Shown]:
    """Rows for the results after the latest request, which were never shown."""
    new = range(weighed.sent + 1, len(weighed.lines))
    if not any(weighed.answering[index] for index in new):
        return []
    return list(
        _rows(weighed, knobs, moment, lambda place, _: place.row is None and place.at in new)
    )


def rebirths(weighed: WeighedConversation, knobs: Knobs, moment: Moment) -> list[Shown]:
    """Rows for results that pointed to a result above them which has left."""
    return list(
        _rows(
            weighed,
            knobs,
            moment,
            lambda place, seen: (
                place.row is not None and not _points_to_visible(place.result, place.row, seen)
            ),
        )
    )


def shorten_results(
    weighed: WeighedConversation, chains: Container[Chain], chars: int, knobs: Knobs, moment: Moment
) -> list[Shown]:
    """Rows that show the results in these messages in so many characters each."""
    limit = Limit(chars, chars)
    tight = replace(knobs, window=max(knobs.window, ROOMY), limit=limit, limits={}, tools={})
    return list(
        _rows(
            weighed,
            tight,
            moment,
            lambda place, _: (
                weighed.lines[place.at].chain in chains and len(place.result.piece.content) > chars
            ),
        )
    )


def shorten_alone(content: bytes, tool: str, given: bytes, knobs: Knobs) -> str | None:
    """The excerpt of a result outside any conversation of ours; None if it is shown unchanged."""
    result = Result(Piece(Kind.TOOL_RESULT, content, 0, tool=tool), given)
    form, text = _choose_form(
        result,
        ShownResults(lambda _: 0),
        lambda: SearchTarget(frozenset(names(spoken(given)))),
        knobs,
    )
    return text if form is Form.EXCERPT else None


class LongResult(NamedTuple):
    """A result that is longer than its limit, for measurements."""

    at: int
    """Index of its line."""
    result: Result
    limit: Limit
    sought: SearchTarget

    def excerpt(self, knobs: Knobs) -> str:
        """What is shown of it at first; empty if it is shown unchanged."""
        body = _body(self.result, keeps_numbers=False)
        return _excerpt(self.result, body, self.limit, lambda: self.sought, knobs)[1]


def long_results(weighed: WeighedConversation, knobs: Knobs) -> Iterator[LongResult]:
    for place in _result_places(weighed):
        limit = _own_limit(place.result, knobs)
        if 0 < limit.over < len(place.result.piece.content):
            yield LongResult(place.at, place.result, limit, _search_target(weighed, place))


def _rows(
    weighed: WeighedConversation,
    knobs: Knobs,
    moment: Moment,
    wanting: Callable[[ResultPlace, ShownResults], bool],
) -> Iterator[Shown]:
    """A row for each result for which `wanting` is true, given the results above it."""
    seen = ShownResults(partial(_turn, weighed, moment))
    for place in _result_places(weighed):
        moment.check()
        result, row = place.result, place.row
        if wanting(place, seen):
            spot = Spot(weighed.lines[place.at].chain, place.position)
            sought = partial(_search_target, weighed, place)
            form, text = _choose_form(result, seen, sought, knobs, moment.preview)
            made = _row(spot, result.piece, form, text, moment)
            if row is None or (made.form, made.text) != (row.form, row.text):
                yield made
            row = made
        seen.note(result.call, result.piece.content, row, place.at)


def _turn(weighed: WeighedConversation, moment: Moment, at: int) -> int:
    """The turn whose calls brought the results of this line."""
    step = weighed.steps[max(0, bisect_right(weighed.steps, at, key=lambda each: each.first) - 1)]
    return moment.turn_of(weighed.lines[step.first].chain) or step.number


def _result_places(weighed: WeighedConversation) -> Iterator[ResultPlace]:
    """Every result whose message has not left."""
    calls: dict[str, Piece] = {}
    for index, line in enumerate(weighed.lines):
        if not weighed.answering[index]:
            for piece in line.pieces:
                if piece.call:
                    calls[piece.call] = piece
            continue
        own = weighed.rows.get(line.chain, _NONE)
        if WHOLE in own:
            continue
        for position in line.results:
            piece = line.pieces[position]
            call = calls.get(piece.call)
            yield ResultPlace(
                index, position, Result(piece, call.content if call else b""), own.get(position)
            )


# A NamedTuple, like the next: every plan makes one per result, in a third of a dataclass's time.
class Result(NamedTuple):
    """A tool result with its call's arguments."""

    piece: Piece
    arguments: bytes

    @property
    def call(self) -> tuple[str, bytes]:
        """Tool and arguments: equal for two calls that are the same."""
        return self.piece.tool, self.arguments

    @property
    def kind(self) -> Kind:
        """The piece's kind; a file counts as FILE only if a tool for files read it.

        A file printed by a shell is output like any other; a tool reads a file to edit it. The
        window that an editor shows is such a file, whatever was called.
        """
        kind = self.piece.kind
        if kind not in (Kind.FILE, Kind.TOOL_RESULT):
            return kind
        if _BY_NUMBER.match(self.piece.content):
            return Kind.FILE
        if kind is Kind.FILE:
            return kind if names_path(self.arguments) else Kind.TOOL_RESULT
        return Kind.FILE if reads_file(self.piece.tool, self.arguments) else kind


class ResultPlace(NamedTuple):
    """A result, its place in the conversation, and the form it already has."""

    at: int
    """Index of its line."""
    position: int
    """Index in that line."""
    result: Result
    row: Shown | None


def _own_limit(result: Result, knobs: Knobs) -> Limit:
    """The limit of a result by what it is."""
    kind = result.kind
    ending = file_ending(result.arguments) if knobs.files and kind is Kind.FILE else ""
    limit = knobs.limit_of(kind, result.piece.tool, ending)
    if 0 < limit.over < len(result.piece.content) and instructs(
        result.piece.tool, result.arguments, knobs.forms.instructions
    ):
        return max(limit, knobs.limit_of_instructions, key=lambda each: each.over)
    return limit


def _points_to_visible(result: Result, row: Shown, seen: ShownResults) -> bool:
    """True if what this row points to is still in the window, or if it points to nothing."""
    text, call, content = row.text.decode("utf-8", "replace"), result.call, result.piece.content
    match row.form:
        case Form.ECHO:
            return seen.echo(call, content) == text
        case Form.CHANGE:
            return seen.difference(call, content) == text
        case Form.OVERLAP:
            body = _body(result, keeps_numbers=not text.startswith(_NUMBERS_NOTE))
            return all(
                seen.shows(each, body.lines[each.first - 1 - body.shift : each.last - body.shift])
                for each in pointers(text)
            )
    return True


class _Body(NamedTuple):
    """A result's text as it can be shown."""

    note: tuple[str, ...]
    """What was changed in every line."""
    text: str
    shift: int = 0
    """What is added to a line's place, from 1, to get its number."""
    plain: UnnumberedText | None = None

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")


def _body(result: Result, *, keeps_numbers: bool) -> _Body:
    content = result.piece.content
    text = content.decode("utf-8", "replace")
    plain = None if keeps_numbers or _BY_NUMBER.match(content) else strip_numbers(text)
    if plain is None:
        return _Body((), _without_colours(text))
    return _Body((plain.note,), _without_colours(plain.text), plain.shift, plain)


def _choose_form(
    result: Result,
    seen: ShownResults,
    sought: Callable[[], SearchTarget],
    knobs: Knobs,
    make: MakePreview = preview,
) -> tuple[Form, str]:
    """The form of a new result and the text shown; an empty text if the result is shown
    unchanged."""
    piece, limit = result.piece, _own_limit(result, knobs)
    if piece.kind is Kind.IMAGE or (len(piece.content) <= LEAST and not 0 < limit.over <= LEAST):
        return Form.FULL, ""
    repeated = None
    body = _body(result, keeps_numbers=not limit.over)
    if knobs.echo and len(piece.content) > LEAST:
        if pointer := seen.echo(result.call, piece.content):
            return Form.ECHO, pointer
        pointer = seen.difference(result.call, piece.content)
        if pointer and len(pointer) <= knobs.forms.change_share * len(body.text):
            return Form.CHANGE, pointer
        if runs := seen.runs(body.lines, knobs.forms.repeat):
            repeated = RepeatedLines(body.lines, runs, body.shift, seen.turn_of)
    is_over = 0 < limit.over < len(body.text)
    if is_over and (piece.content in seen.shortened or seen.was_left_out(body.lines)):
        limit = limit.times(knobs.forms.again)
    fits = not limit.over or (repeated is not None and repeated.new <= limit.over)
    form, text = (Form.FULL, "") if fits else _excerpt(result, body, limit, sought, knobs, make)
    if repeated and not text:
        return Form.OVERLAP, repeated.text(body.note, content_id(piece.content))
    if repeated and (pointed := repeated.excerpt(text, knobs.forms.repeat)) != text:
        return Form.OVERLAP, pointed
    return form, text


def _excerpt(
    result: Result,
    body: _Body,
    limit: Limit,
    sought: Callable[[], SearchTarget],
    knobs: Knobs,
    make: MakePreview = preview,
) -> tuple[Form, str]:
    piece, text, made = result.piece, body.text, None
    if len(text) > limit.over:
        target = sought()
        origin = ContentOrigin(
            result.kind,
            piece.tool,
            result.arguments,
            target.names,
            _lines_pointed_to(result, text, body.plain, target.lines),
            body.shift,
            target.task,
            knobs.line_weights,
        )
        made = make(text, origin, limit.room)
    if made is None:
        return (Form.EXCERPT, "\n".join([*body.note, text])) if body.note else (Form.FULL, "")
    index = _names_left_out(
        text, made, min(knobs.room_for_names, int(knobs.forms.names_share * len(made.text)))
    )
    return Form.EXCERPT, "\n".join(
        [*body.note, made.text, *index, closing(made, content_id(piece.content))]
    )


def _without_colours(text: str) -> str:
    """The text without the codes of a terminal: no reader needs them, and no line is lost."""
    return TERMINAL_CODE.sub("", text) if "\x1b[" in text else text


def _lines_pointed_to(
    result: Result, text: str, plain: UnnumberedText | None, lines: Iterable[int]
) -> tuple[int, ...]:
    """Indexes in the shown text of these line numbers of its file, and of those that the call
    names; none if the part's start is unknown."""
    pointed = (*lines, *lines_named(result.arguments))
    if not pointed:
        return ()
    own = plain or own_numbers(text.split("\n"))
    shift = own.shift if own else None
    if shift is not None:
        return tuple(line - 1 - shift for line in pointed)
    if any(argument.text.isdigit() for argument in arguments(result.arguments)):
        return ()
    return tuple(line - 1 for line in lines)


def _names_left_out(text: str, made: Preview, room: int) -> Iterator[str]:
    """A line with names that occur only in the omitted parts, ranked by frequency per length."""
    if not room or made.type is ContentType.OPAQUE:
        return
    found = distinct_names(Counter(coined_names(text[:_INDEXED])), made.text)
    ranked = sorted((-count / (len(name) + 1), name) for name, count in found.items())
    if listed := words_within((name for _, name in ranked), room):
        yield f"[hotset: left-out names: {' '.join(listed)}]"


def _row(spot: Spot, piece: Piece, form: Form, text: str, moment: Moment) -> Shown:
    shown = text.encode("utf-8", "replace")
    tokens = moment.count(shown) if shown else piece.tokens
    if tokens >= piece.tokens:
        form, shown, tokens = Form.FULL, b"", piece.tokens
    return Shown(spot, form, shown, tokens, piece.tokens, Cause.BIRTH, moment.now)


def _search_target(weighed: WeighedConversation, place: ResultPlace) -> SearchTarget:
    """Names in the latest prompt and in the calls before this one, and what any prompt mentions
    about the file being read."""
    asked: list[Piece] = []
    for before in range(place.at - 1, -1, -1):
        line = weighed.lines[before]
        if not weighed.answering[before]:
            asked += [
                each
                for each in line.pieces
                if each.kind in _SAYING or each.kind.family is Kind.TOOL_CALL
            ]
        if any(each.kind is Kind.PROMPT for each in line.pieces) or len(asked) > _LOOKED_BACK:
            break
    mentioned = (
        _mentions_in_prompts(weighed, place)
        if names_path(place.result.arguments)
        else SearchTarget()
    )
    return SearchTarget(
        mentioned.names.union(name for piece in asked for name in names(_words_of(piece))),
        mentioned.lines,
        _task_text(asked, _latest_prompt(weighed, place)),
    )


def _task_text(asked: Sequence[Piece], prompt: str) -> TaskText:
    """The prompt, and the model's words and calls since, the latest first."""
    since = [each for each in asked if each.kind is not Kind.PROMPT]
    said = next((each for each in since if each.kind is Kind.RESPONSE), None)
    before = "\n".join(_words_of(each) for each in since if each is not said)
    return TaskText(_words_of(said) if said else "", prompt, before)


def _latest_prompt(weighed: WeighedConversation, place: ResultPlace) -> str:
    return next(
        (
            _words_of(piece)
            for at in range(place.at - 1, -1, -1)
            for piece in reversed(weighed.lines[at].pieces)
            if piece.kind is Kind.PROMPT
        ),
        "",
    )


def _mentions_in_prompts(weighed: WeighedConversation, place: ResultPlace) -> SearchTarget:
    """What earlier prompts mention about the file that this result is from."""
    path = path_of(place.result.arguments)
    prompts = (
        piece
        for line in weighed.lines[: place.at]
        for piece in line.pieces
        if piece.kind is Kind.PROMPT
    )
    return find_mentions(path, (_words_of(prompt) for prompt in prompts))


def _words_of(piece: Piece) -> str:
    return (
        spoken(piece.content)
        if piece.kind.family is Kind.TOOL_CALL
        else piece.content.decode("utf-8", "replace")
    )


_NUMBERS_NOTE = "[hotset: lines "
_FEWEST_NUMBERED = 5  # lines: with fewer, the note costs what it saves
_MOST_UNNUMBERED = 12
"""Lines without a number, such as a client's reminder; with more of them it is not a file
listing."""
_BY_NUMBER = re.compile(rb"(?:[^\n]{0,200}\n){0,3}\[File: [^\n]{1,400} lines total")
"""The frame of an editor whose edits name lines by number, which have to be read then."""


@dataclass(frozen=True, slots=True)
class UnnumberedText:
    """A text without its line numbers; the lines keep their order."""

    text: str
    first: int
    last: int
    shift: int
    """What is added to a line's place, from 1, to get its number."""

    @property
    def note(self) -> str:
        return f"{_NUMBERS_NOTE}{self.first}-{self.last}, shown without their numbers]"


def strip_numbers(text: str) -> UnnumberedText | None:
    """A consecutively numbered text without its line numbers; None if it is not numbered, or if
    its lines would not be those of the file."""
    lines = text.split("\n")
    own = own_numbers(lines)
    if own is None or own.shift is None or not own.is_exact:
        return None
    at = [
        index
        for index, number in enumerate(own.numbers)
        if number is not None and number == index + 1 + own.shift
    ]
    others = len(lines) - len(at)
    if others > _MOST_UNNUMBERED or len(at) < _FEWEST_NUMBERED:
        return None
    bare = set(at)
    return UnnumberedText(
        "\n".join(own.bare[index] if index in bare else line for index, line in enumerate(lines)),
        at[0] + 1 + own.shift,
        at[-1] + 1 + own.shift,
        own.shift,
    )


_HEADING = re.compile(r"#{1,6} ")
_QUOTED = re.compile(r"`([^`\n]{3,120})`")
_WORD = re.compile(r"[A-Za-z_$][\w$]{2,79}")
_LINES_NAMED = re.compile(r"\b(?:lines?|L)[ ~≈#:]{0,3}(\d{1,6})(?:\s?[-\u2013]\s?~?(\d{1,6}))?")
_SECTION = 80  # lines: a longer section is about more than one file
_LINES_BEFORE, _LINES_BEHIND = 1, 6  # lines around a mention that is under no heading
_PROMPT_READ = 60_000  # characters read of one text
_SHORTEST_FILE_NAME = 4  # characters: a shorter name also occurs inside other words


@dataclass(frozen=True, slots=True)
class SearchTarget:
    """What to look for in a file."""

    names: frozenset[str] = frozenset()
    lines: tuple[int, ...] = ()
    """Line numbers, from 1."""
    task: TaskText = NO_TASK


def find_mentions(path: str, texts: Iterable[str]) -> SearchTarget:
    """What these texts mention about a file, found by its file name: paths may be written
    differently."""
    name = path.rpartition("/")[2]
    if len(name) < _SHORTEST_FILE_NAME or "." not in name:
        return SearchTarget()
    mention = re.compile(rf"(?<![\w.-]){re.escape(name)}(?!\w)(?::(?P<line>\d{{1,6}}))?")
    passages = [
        passage
        for text in texts
        if name in text
        for passage in _passages(text[:_PROMPT_READ].split("\n"), mention)
    ]
    found = chain.from_iterable((*names(passage), *_quoted_words(passage)) for passage in passages)
    lines = chain.from_iterable(_line_numbers(passage, mention) for passage in passages)
    return SearchTarget(frozenset(found) - {name}, tuple(dict.fromkeys(lines)))


def _passages(lines: Sequence[str], mention: re.Pattern[str]) -> Iterator[str]:
    until = 0
    for index, line in enumerate(lines):
        if index >= until and mention.search(line):
            first, end = _section(lines, index)
            yield "\n".join(lines[max(first, until) : end])
            until = end


def _section(lines: Sequence[str], index: int) -> tuple[int, int]:
    """The lines under the same heading; the neighbouring lines if there is no heading or too many
    lines."""
    head = next(
        (at for at in range(index, max(-1, index - _SECTION), -1) if _HEADING.match(lines[at])),
        None,
    )
    if head is not None:
        end = next(
            (at for at in range(head + 1, len(lines)) if _ends_section(lines[at], lines[head])),
            len(lines),
        )
        if end - head < _SECTION:
            return head, end
    return max(0, index - _LINES_BEFORE), min(len(lines), index + _LINES_BEHIND)


def _ends_section(line: str, heading: str) -> bool:
    """True for a heading of the same or a higher level."""
    return bool(_HEADING.match(line)) and line.index(" ") <= heading.index(" ")


def _quoted_words(passage: str) -> Iterator[str]:
    for quoted in _QUOTED.findall(passage):
        yield from _WORD.findall(quoted)


def _line_numbers(passage: str, mention: re.Pattern[str]) -> Iterator[int]:
    for first, last in _LINES_NAMED.findall(passage):
        yield int(first)
        if last:
            yield int(last)
    for found in mention.finditer(passage):
        if found["line"]:
            yield int(found["line"])
