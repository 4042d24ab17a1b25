"""The form of a tool result when it is first shown: whole, an excerpt, or a pointer to what the
window already holds (the same result, or the diff to it)."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from hotset.nouns.knobs import Knobs, Limit
from hotset.nouns.link import Link
from hotset.nouns.page import Kind, digest
from hotset.nouns.window import WHOLE, Cause, Form, Piece, Shown, Spot
from hotset.text.call_shape import lines_named, names_path, path_of, reads_file
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
from hotset.window.step_sizes import WeighedConversation

LEAST = 400
"""Characters below which a result is never replaced by a pointer, which would hardly be shorter."""

_ID_LENGTH = 12
_INDEXED = 200_000  # characters searched for names
_LOOKED_BACK = 12  # pieces: only the latest calls show what is being searched for
_BEGINS, _BEGINS_SHOWN = 1000, 80  # characters: the beginning that identifies a result
_NONE: Mapping[int, Shown] = {}
_SAYING = frozenset({Kind.PROMPT, Kind.RESPONSE})


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
                place.row is not None and not seen.points_to_visible(place.result, place.row)
            ),
        )
    )


def shorten_alone(content: bytes, tool: str, given: bytes, knobs: Knobs) -> str | None:
    """The excerpt of a result outside any conversation of ours; None if it is shown unchanged."""
    result = Result(Piece(Kind.TOOL_RESULT, content, 0, tool=tool), given)
    sought = SearchTarget(frozenset(names(spoken(given))))
    form, text = _choose_form(result, _own_limit(result, knobs), sought, ShownResults(), knobs)
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
        text = self.result.piece.content.decode("utf-8", "replace")
        return _excerpt(self.result, text, self.limit, self.sought, knobs)[1]


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
    seen = ShownResults()
    for place in _result_places(weighed):
        moment.check()
        result, row = place.result, place.row
        if wanting(place, seen):
            limit = seen.limit(result, knobs)
            sought = (
                _search_target(weighed, place)
                if 0 < limit.over < len(result.piece.content)
                else SearchTarget()
            )
            spot = Spot(weighed.lines[place.at].chain, place.position)
            row = _row(
                spot, result.piece, *_choose_form(result, limit, sought, seen, knobs), moment
            )
            yield row
        seen.note(result, row)


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


def content_id(content: bytes) -> str:
    """The id by which a model requests content; the same on any machine."""
    return "c" + digest(content)[:_ID_LENGTH]


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


@dataclass(slots=True)
class ShownResults:
    """The results already in the window, by content and by call."""

    whole: set[bytes] = field(default_factory=set)
    """Results shown without omissions."""
    shortened: set[bytes] = field(default_factory=set)
    changed: set[bytes] = field(default_factory=set)
    """Results shown as a diff to an earlier one."""
    latest: dict[tuple[str, bytes], bytes] = field(default_factory=dict)
    """The latest result of the same call shown whole, by tool and arguments."""
    last: dict[tuple[str, bytes], bytes] = field(default_factory=dict)
    """The latest result of the same call, in any form."""

    def note(self, result: Result, row: Shown | None) -> None:
        content, call = result.piece.content, result.call
        if result.arguments:
            self.last[call] = content
        if (
            row is None
            or row.form is Form.FULL
            or (row.form is Form.EXCERPT and _is_complete(row, content))
        ):
            self.whole.add(content)
            if result.arguments:
                self.latest[call] = content
        elif row.form is Form.EXCERPT:
            self.shortened.add(content)
        elif row.form is Form.CHANGE:
            self.changed.add(content)

    def points_to_visible(self, result: Result, row: Shown) -> bool:
        """True if what this row points to is still in the window, or if it points to nothing."""
        if row.form is Form.ECHO:
            text = _echo(result, self)
        elif row.form is Form.CHANGE:
            text = _change(result, result.piece.content.decode("utf-8", "replace"), self)
        else:
            return True
        return text.encode("utf-8", "replace") == row.text

    def limit(self, result: Result, knobs: Knobs) -> Limit:
        limit = _own_limit(result, knobs)
        return limit.times(knobs.forms.again) if result.piece.content in self.shortened else limit


def _own_limit(result: Result, knobs: Knobs) -> Limit:
    """The limit of a result by what it is."""
    limit = knobs.limit_of(result.kind, result.piece.tool)
    if 0 < limit.over < len(result.piece.content) and instructs(
        result.piece.tool, result.arguments, knobs.forms.instructions
    ):
        return max(limit, knobs.limit_of_instructions, key=lambda each: each.over)
    return limit


def _is_complete(row: Shown, content: bytes) -> bool:
    """True if only line numbers were removed: one note was added and no line is missing."""
    return row.text.count(b"\n") == content.count(b"\n") + 1


def _choose_form(
    result: Result, limit: Limit, sought: SearchTarget, seen: ShownResults, knobs: Knobs
) -> tuple[Form, str]:
    """The form of a new result and the text shown; an empty text if the result is shown
    unchanged."""
    piece = result.piece
    if piece.kind is Kind.IMAGE or (len(piece.content) <= LEAST and not 0 < limit.over <= LEAST):
        return Form.FULL, ""
    text = piece.content.decode("utf-8", "replace")
    if knobs.echo and len(text) > LEAST:
        if pointer := _echo(result, seen):
            return Form.ECHO, pointer
        if (pointer := _change(result, text, seen)) and len(
            pointer
        ) <= knobs.forms.change_share * len(text):
            return Form.CHANGE, pointer
    return _excerpt(result, text, limit, sought, knobs) if limit.over else (Form.FULL, "")


def _excerpt(
    result: Result, text: str, limit: Limit, sought: SearchTarget, knobs: Knobs
) -> tuple[Form, str]:
    plain = None if _BY_NUMBER.match(result.piece.content) else strip_numbers(text)
    note = [plain.note] if plain else []
    text = _without_colours(plain.text if plain else text)
    piece = result.piece
    origin = ContentOrigin(
        result.kind,
        piece.tool,
        result.arguments,
        sought.names,
        _lines_pointed_to(result, text, plain, sought.lines),
        plain.shift if plain else 0,
        sought.task,
    )
    made = preview(text, origin, limit.room) if len(text) > limit.over else None
    if made is None:
        return (Form.EXCERPT, "\n".join([*note, text])) if plain else (Form.FULL, "")
    index = _names_left_out(
        text, made, min(knobs.room_for_names, int(knobs.forms.names_share * len(made.text)))
    )
    return Form.EXCERPT, "\n".join(
        [*note, made.text, *index, closing(made, content_id(piece.content))]
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


def _echo(result: Result, seen: ShownResults) -> str:
    """A pointer to the same result above; empty if there is none.

    A result that changed back must not look unchanged.
    """
    content, last = result.piece.content, seen.last.get(result.call)
    size = f"{len(content):,} characters"
    again = f'show again: retrieve_context(id="{content_id(content)}")]'
    if content in seen.whole and last in (None, content):
        return f"[hotset: unchanged, same as the result above ({size}); {again}"
    if content in seen.whole:
        return (
            "[hotset: changed since the last call; same as the earlier result "
            f"above that starts with {json.dumps(_beginning(content), ensure_ascii=False)} "
            f"({size}); {again}"
        )
    if content == last and content in seen.changed:
        return f"[hotset: unchanged since the last call, whose diff is above ({size}); {again}"
    return ""


def _beginning(content: bytes) -> str:
    lines = (line.strip() for line in content[:_BEGINS].decode("utf-8", "replace").splitlines())
    return next((line for line in lines if line), "")[:_BEGINS_SHOWN]


def _change(result: Result, text: str, seen: ShownResults) -> str:
    """The diff to the latest whole result of the same call; empty if there is nothing to
    compare."""
    before = seen.latest.get(result.call)
    difference = changes(before.decode("utf-8", "replace"), text) if before is not None else ""
    if not difference:
        return ""
    compared = "result"
    if seen.last.get(result.call) != before:  # later results are shown as diffs only
        compared = "last whole result"
    return (
        f"[hotset: diff to this call's {compared} above (- old, + new); show "
        f'all: retrieve_context(id="{content_id(result.piece.content)}")]\n{difference}'
    )


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


_MOST_COMPARED = 400_000  # characters
# lines between the first and the last difference; with more, it is another text, not a version
_MOST_CHANGED = 600
_DIFF_CONTEXT = 2
_ANY_NUMBER = re.compile(r"^\s*\d+(?:→|\t| {2}|:|\|)")


def changes(before: str, text: str) -> str:
    """A unified diff; empty if the texts are equal, too long, or too different.

    Line numbers that a tool printed are not compared: one insertion would change every line after
    it.
    """
    if len(before) > _MOST_COMPARED or len(text) > _MOST_COMPARED:
        return ""
    return "\n".join(_difference(before.splitlines(), text.splitlines()))


def _difference(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    bare_old, bare_new = (
        [_strip_number(line) for line in old],
        [_strip_number(line) for line in new],
    )
    start = _common_lines(bare_old, bare_new)
    end = _common_lines(bare_old[start:][::-1], bare_new[start:][::-1])
    old_end, new_end = len(old) - end, len(new) - end
    if max(old_end, new_end) - start > _MOST_CHANGED or old_end == start == new_end:
        return
    matcher = difflib.SequenceMatcher(
        None, bare_old[start:old_end], bare_new[start:new_end], autojunk=False
    )
    yield from _prefix_lines(new[max(0, start - _DIFF_CONTEXT) : start], " ")
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from _render_unchanged(new, start + c, start + d)
        else:
            yield from _prefix_lines(old[start + a : start + b], "-")
            yield from _prefix_lines(new[start + c : start + d], "+")
    yield from _prefix_lines(new[new_end : new_end + _DIFF_CONTEXT], " ")


def _common_lines(old: Sequence[str], new: Sequence[str]) -> int:
    """Number of equal lines at the beginning."""
    return next(
        (index for index, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )


def _render_unchanged(new: Sequence[str], first: int, last: int) -> Iterator[str]:
    if last - first <= 2 * _DIFF_CONTEXT + 1:
        yield from _prefix_lines(new[first:last], " ")
        return
    yield from _prefix_lines(new[first : first + _DIFF_CONTEXT], " ")
    yield f"… lines {first + _DIFF_CONTEXT + 1}-{last - _DIFF_CONTEXT}: unchanged …"
    yield from _prefix_lines(new[last - _DIFF_CONTEXT : last], " ")


def _prefix_lines(lines: Sequence[str], mark: str) -> Iterator[str]:
    for line in lines:
        yield mark + line


def _strip_number(line: str) -> str:
    return _ANY_NUMBER.sub("", line)


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
        return f"[hotset: lines {self.first}-{self.last}, shown without their numbers]"


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


_POINTED = (Form.ECHO, Form.CHANGE)


@dataclass(frozen=True, slots=True)
class Repeats:
    """Counts of repeated results among those shown for the first time."""

    all: int = 0
    """Results that repeat an earlier one, exactly or as a newer version of one still in the
    window."""
    pointed: int = 0
    """Of these, the ones shown as a pointer or as a diff."""


NO_REPEATS = Repeats()


def repeats(links: Sequence[Link], fresh: Iterable[Shown]) -> Repeats:
    """Counts the repeats among the results that are new in a plan."""
    born = {row.spot: row.form for row in fresh if row.cause is Cause.BIRTH}
    if not born:
        return NO_REPEATS
    pointed = sum(form in _POINTED for form in born.values())
    again = 0
    had: set[bytes] = set()
    for link in links:
        for position, part in enumerate(link.message.parts):
            if not part.call or part.kind.family is Kind.TOOL_CALL or len(part.content) <= LEAST:
                continue
            form = born.get(Spot(link.chain, position))
            again += form is not None and form not in _POINTED and part.content in had
            had.add(part.content)
    return Repeats(pointed + again, pointed)
