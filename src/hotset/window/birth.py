"""The form of a result, decided the first time it is shown: whole, an excerpt, or a pointer to what
is in the window already (the same result, or what changed since)."""

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
from hotset.window.arguments import arguments, names_path, spoken
from hotset.window.moment import Moment
from hotset.window.names import coined_names, distinct_names, names, words_within
from hotset.window.preview import ContentOrigin, ContentType, Preview, closing, preview
from hotset.window.step_sizes import Weighed

LEAST = 400
"""Characters below which a result is never exchanged for a pointer: the pointer would hardly be
shorter."""

_ID_LENGTH = 12
_INDEXED = 200_000  # characters that are looked at for names
_LOOKED_BACK = (
    12  # pieces: the latest few calls tell what is looked for; older ones looked for something else
)
_BEGINS, _BEGINS_SHOWN = 1000, 80  # characters of a result by which one is told from another
_NONE: Mapping[int, Shown] = {}
_SAYING = frozenset({Kind.PROMPT, Kind.RESPONSE})


def births(weighed: Weighed, knobs: Knobs, moment: Moment) -> list[Shown]:
    """Rows for the results behind the latest request that were never shown."""
    new = range(weighed.sent + 1, len(weighed.lines))
    if not any(weighed.answering[index] for index in new):
        return []
    return list(
        _rows(weighed, knobs, moment, lambda place, _: place.row is None and place.at in new)
    )


def rebirths(weighed: Weighed, knobs: Knobs, moment: Moment) -> list[Shown]:
    """Rows for the results that pointed to one above them which has left."""
    return list(
        _rows(
            weighed,
            knobs,
            moment,
            lambda place, seen: place.row is not None and not seen.bears(place.result, place.row),
        )
    )


def shorten_alone(content: bytes, tool: str, given: bytes, knobs: Knobs) -> str | None:
    """What is shown of a result that stands in no conversation of ours; None where it is shown as
    it came."""
    result = Result(Piece(Kind.TOOL_RESULT, content, 0, tool=tool), given)
    sought = SearchTarget(frozenset(names(spoken(given))))
    form, text = _choose_form(
        result, knobs.limit_of(result.kind, tool), sought, ShownResults(), knobs
    )
    return text if form is Form.EXCERPT else None


def _rows(
    weighed: Weighed,
    knobs: Knobs,
    moment: Moment,
    wanting: Callable[[ResultPlace, ShownResults], bool],
) -> Iterator[Shown]:
    """Each result that wants a row gets one, in view of what stands above it."""
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


def _result_places(weighed: Weighed) -> Iterator[ResultPlace]:
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
    """The name by which a model asks for content: the same on any machine."""
    return "c" + digest(content)[:_ID_LENGTH]


class Result(
    NamedTuple
):  # of every result in every plan, like the next: made in a third of the time of a dataclass
    """What a call brought, and what the call said."""

    piece: Piece
    arguments: bytes

    @property
    def call(self) -> tuple[str, bytes]:
        """What makes two calls the same."""
        return self.piece.tool, self.arguments

    @property
    def kind(self) -> Kind:
        """What a shell prints of a file is output like any other: only what a tool for files read
        is read to be edited."""
        kind = self.piece.kind
        return Kind.TOOL_RESULT if kind is Kind.FILE and not names_path(self.arguments) else kind


class ResultPlace(NamedTuple):
    """A result, where it stands, and the form that it has already."""

    at: int
    """Where its line stands."""
    position: int
    """In that line."""
    result: Result
    row: Shown | None


@dataclass(slots=True)
class ShownResults:
    """What stands in the window already, by content and by where it comes from."""

    whole: set[bytes] = field(default_factory=set)
    """Results of which nothing was left out."""
    shortened: set[bytes] = field(default_factory=set)
    changed: set[bytes] = field(default_factory=set)
    """Results that are shown as what changed since another one."""
    latest: dict[tuple[str, bytes], bytes] = field(default_factory=dict)
    """The latest result of the same call that is shown whole, by tool and arguments."""
    last: dict[tuple[str, bytes], bytes] = field(default_factory=dict)
    """The latest result of the same call, in whatever form."""

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

    def bears(self, result: Result, row: Shown) -> bool:
        """Does what this row points to still stand? True where it points to nothing."""
        if row.form is Form.ECHO:
            told = _echo(result, self)
        elif row.form is Form.CHANGE:
            told = _change(result, result.piece.content.decode("utf-8", "replace"), self)
        else:
            return True
        return told.encode("utf-8", "replace") == row.text

    def limit(self, result: Result, knobs: Knobs) -> Limit:
        limit = knobs.limit_of(result.kind, result.piece.tool)
        return limit.times(knobs.forms.again) if result.piece.content in self.shortened else limit


def _is_complete(row: Shown, content: bytes) -> bool:
    """Were only line numbers left out? Then a note was added and no line is missing."""
    return row.text.count(b"\n") == content.count(b"\n") + 1


def _choose_form(
    result: Result, limit: Limit, sought: SearchTarget, seen: ShownResults, knobs: Knobs
) -> tuple[Form, str]:
    """The form of a new result, and what is shown of it; nothing where it is shown as it came."""
    piece = result.piece
    if piece.kind is Kind.IMAGE or (len(piece.content) <= LEAST and not 0 < limit.over <= LEAST):
        return Form.FULL, ""
    text = piece.content.decode("utf-8", "replace")
    if knobs.echo and len(text) > LEAST:
        if told := _echo(result, seen):
            return Form.ECHO, told
        if (told := _change(result, text, seen)) and len(told) <= knobs.forms.change_share * len(
            text
        ):
            return Form.CHANGE, told
    return _excerpt(result, text, limit, sought, knobs) if limit.over else (Form.FULL, "")


def _excerpt(
    result: Result, text: str, limit: Limit, sought: SearchTarget, knobs: Knobs
) -> tuple[Form, str]:
    plain = strip_numbers(text)
    note = [plain.note] if plain else []
    text = plain.text if plain else text
    piece = result.piece
    origin = ContentOrigin(
        piece.kind,
        piece.tool,
        result.arguments,
        sought.names,
        _lines_pointed_to(result, plain, sought.lines),
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


def _lines_pointed_to(
    result: Result, plain: UnnumberedText | None, lines: Iterable[int]
) -> tuple[int, ...]:
    """Places in a text of lines of its file. A part of a file that does not say where it begins
    could be any."""
    if plain is None and any(argument.text.isdigit() for argument in arguments(result.arguments)):
        return ()
    first = plain.first if plain else 1
    return tuple(line - first for line in lines)


def _names_left_out(text: str, made: Preview, room: int) -> Iterator[str]:
    """A line with names that stand in the gaps only: those that come up most for their length."""
    if not room or made.type is ContentType.OPAQUE:
        return
    found = distinct_names(Counter(coined_names(text[:_INDEXED])), made.text)
    ranked = sorted((-count / (len(name) + 1), name) for name, count in found.items())
    if told := words_within((name for _, name in ranked), room):
        yield f"[hotset: left-out names: {' '.join(told)}]"


def _echo(result: Result, seen: ShownResults) -> str:
    """Where the same result stands already; nothing where it does not. What changed back must not
    seem to be unchanged."""
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
    """What changed since the result of the same call that stands whole; nothing where nothing can
    be compared."""
    before = seen.latest.get(result.call)
    difference = changes(before.decode("utf-8", "replace"), text) if before is not None else ""
    if not difference:
        return ""
    compared = "result"
    if seen.last.get(result.call) != before:  # what came since stands there as changes only
        compared = "last whole result"
    return (
        f"[hotset: diff to this call's {compared} above (- old, + new); show "
        f'all: retrieve_context(id="{content_id(result.piece.content)}")]\n{difference}'
    )


def _row(spot: Spot, piece: Piece, form: Form, text: str, moment: Moment) -> Shown:
    told = text.encode("utf-8", "replace")
    tokens = moment.count(told) if told else piece.tokens
    if tokens >= piece.tokens:
        form, told, tokens = Form.FULL, b"", piece.tokens
    return Shown(spot, form, told, tokens, piece.tokens, Cause.BIRTH, moment.now)


def _search_target(weighed: Weighed, place: ResultPlace) -> SearchTarget:
    """What the latest prompt and the words before the call are about, and what any prompt said
    about the file that it reads."""
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
    told = _mentioned(weighed, place) if names_path(place.result.arguments) else SearchTarget()
    return SearchTarget(
        told.names.union(name for piece in asked for name in names(_words_of(piece))), told.lines
    )


def _mentioned(weighed: Weighed, place: ResultPlace) -> SearchTarget:
    path = next(
        (argument.text for argument in arguments(place.result.arguments) if "." in argument.text),
        "",
    )
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
# lines between the first and the last difference; more is another text, not another version
_MOST_CHANGED = 600
_DIFF_CONTEXT = 2
_ANY_NUMBER = re.compile(r"^\s*\d+(?:→|\t| {2}|:|\|)")


def changes(before: str, text: str) -> str:
    """A unified difference; empty where there is none, or where it would tell of another text.

    Line numbers that a tool printed are no part of a line: an insertion would change all behind it.
    """
    if len(before) > _MOST_COMPARED or len(text) > _MOST_COMPARED:
        return ""
    return "\n".join(_difference(before.splitlines(), text.splitlines()))


def _difference(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    bare_old, bare_new = [_unnumbered(line) for line in old], [_unnumbered(line) for line in new]
    start = _common_lines(bare_old, bare_new)
    end = _common_lines(bare_old[start:][::-1], bare_new[start:][::-1])
    old_end, new_end = len(old) - end, len(new) - end
    if max(old_end, new_end) - start > _MOST_CHANGED or old_end == start == new_end:
        return
    matcher = difflib.SequenceMatcher(
        None, bare_old[start:old_end], bare_new[start:new_end], autojunk=False
    )
    yield from _prefixed(new[max(0, start - _DIFF_CONTEXT) : start], " ")
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from _unchanged(new, start + c, start + d)
        else:
            yield from _prefixed(old[start + a : start + b], "-")
            yield from _prefixed(new[start + c : start + d], "+")
    yield from _prefixed(new[new_end : new_end + _DIFF_CONTEXT], " ")


def _common_lines(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines at the front are the same."""
    return next(
        (index for index, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )


def _unchanged(new: Sequence[str], first: int, last: int) -> Iterator[str]:
    if last - first <= 2 * _DIFF_CONTEXT + 1:
        yield from _prefixed(new[first:last], " ")
        return
    yield from _prefixed(new[first : first + _DIFF_CONTEXT], " ")
    yield f"… lines {first + _DIFF_CONTEXT + 1}-{last - _DIFF_CONTEXT}: unchanged …"
    yield from _prefixed(new[last - _DIFF_CONTEXT : last], " ")


def _prefixed(lines: Sequence[str], mark: str) -> Iterator[str]:
    for line in lines:
        yield mark + line


def _unnumbered(line: str) -> str:
    return _ANY_NUMBER.sub("", line)


_LINE_NUMBER = re.compile(r" {0,8}(\d{1,7})(?:→|\t)")
_FEWEST_NUMBERED = 5  # lines: of fewer, the note would take what it saves
_MOST_UNNUMBERED = 12
"""Lines without a number, such as a reminder that a client added; with more of them it is no
listing of a file."""


@dataclass(frozen=True, slots=True)
class UnnumberedText:
    """A text without its line numbers. Each line stands where it stood."""

    text: str
    first: int
    last: int

    @property
    def note(self) -> str:
        return f"[hotset: lines {self.first}-{self.last}, shown without their numbers]"


def strip_numbers(text: str) -> UnnumberedText | None:
    """A text whose lines are numbered one by one, without the numbers; None where they are not."""
    if not _LINE_NUMBER.match(text):
        return None
    lines: list[str] = []
    first = expected = others = 0
    for line in text.split("\n"):
        found = _LINE_NUMBER.match(line)
        number = int(found[1]) if found else 0
        if found and (not expected or number == expected):
            first = first or number
            expected = number + 1
            lines.append(line[found.end() :])
        else:
            others += 1
            lines.append(line)
    if others > _MOST_UNNUMBERED or len(lines) - others < _FEWEST_NUMBERED:
        return None
    return UnnumberedText("\n".join(lines), first, expected - 1)


_HEADING = re.compile(r"#{1,6} ")
_QUOTED = re.compile(r"`([^`\n]{3,120})`")
_WORD = re.compile(r"[A-Za-z_$][\w$]{2,79}")
_LINES_NAMED = re.compile(r"\b(?:lines?|L)[ ~≈#:]{0,3}(\d{1,6})(?:\s?[-\u2013]\s?~?(\d{1,6}))?")
_SECTION = 80  # lines: a longer section is about more than one file
_LINES_BEFORE, _LINES_BEHIND = (
    1,
    6,
)  # lines that belong to a mention where no heading says what does
_PROMPT_READ = 60_000  # characters of one text that are looked at
_SHORTEST_FILE_NAME = 4  # characters: a shorter name stands in other words too


@dataclass(frozen=True, slots=True)
class SearchTarget:
    """What is looked for in a file."""

    names: frozenset[str] = frozenset()
    lines: tuple[int, ...] = ()
    """Numbers of its lines, from 1."""


def find_mentions(path: str, texts: Iterable[str]) -> SearchTarget:
    """What these texts say about a file; they may write its path in another way, but not its
    name."""
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
    """What stands under the same heading; the lines beside, where there is none or too much stands
    under it."""
    head = next(
        (at for at in range(index, max(-1, index - _SECTION), -1) if _HEADING.match(lines[at])),
        None,
    )
    if head is not None:
        end = next(
            (at for at in range(head + 1, len(lines)) if _closes(lines[at], lines[head])),
            len(lines),
        )
        if end - head < _SECTION:
            return head, end
    return max(0, index - _LINES_BEFORE), min(len(lines), index + _LINES_BEHIND)


def _closes(line: str, heading: str) -> bool:
    """Is it a heading of the same level, or of a higher one?"""
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
    """Of results that were shown for the first time."""

    all: int = 0
    """What the conversation had before, word for word or in an older version that still stood."""
    pointed: int = 0
    """Of these, the ones that became a line which points there, or what changed since."""


NO_REPEATS = Repeats()


def repeats(links: Sequence[Link], fresh: Iterable[Shown]) -> Repeats:
    """What a plan made of the results that are new with it."""
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
