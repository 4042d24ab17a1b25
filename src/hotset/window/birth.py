"""The form of a page, decided the first time it is shown: whole, an excerpt, or a pointer to what
stands already."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hotset.nouns.knobs import Knobs, Limit
from hotset.nouns.page import Kind, digest
from hotset.nouns.window import WHOLE, Cause, Form, Piece, Shown, Spot
from hotset.window.arguments import arguments, names_path, spoken
from hotset.window.change import changes
from hotset.window.moment import Moment
from hotset.window.names import apart, coined, names, within
from hotset.window.numbering import Bare, bare
from hotset.window.passages import Sought, told_of
from hotset.window.preview import ContentOrigin, ContentType, Preview, closing, preview
from hotset.window.weighing import Weighed

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


def alone(content: bytes, tool: str, given: bytes, knobs: Knobs) -> str | None:
    """What is shown of a result that stands in no conversation of ours; None where it is shown as
    it came."""
    result = Result(Piece(Kind.TOOL_RESULT, content, 0, tool=tool), given)
    sought = Sought(frozenset(names(spoken(given))))
    form, text = _born(result, knobs.limit_of(result.kind, tool), sought, Seen(), knobs)
    return text if form is Form.EXCERPT else None


def _rows(
    weighed: Weighed, knobs: Knobs, moment: Moment, wanting: Callable[[ResultPlace, Seen], bool]
) -> Iterator[Shown]:
    """Each result that wants a row gets one, in view of what stands above it."""
    seen = Seen()
    for place in _places(weighed):
        moment.check()
        result, row = place.result, place.row
        if wanting(place, seen):
            limit = seen.limit(result, knobs)
            sought = (
                _sought(weighed, place) if 0 < limit.over < len(result.piece.content) else Sought()
            )
            spot = Spot(weighed.lines[place.at].chain, place.position)
            row = _row(spot, result.piece, *_born(result, limit, sought, seen, knobs), moment)
            yield row
        seen.note(result, row)


def _places(weighed: Weighed) -> Iterator[ResultPlace]:
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
class Seen:
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


def _born(
    result: Result, limit: Limit, sought: Sought, seen: Seen, knobs: Knobs
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
    result: Result, text: str, limit: Limit, sought: Sought, knobs: Knobs
) -> tuple[Form, str]:
    plain = bare(text)
    note = [plain.note] if plain else []
    text = plain.text if plain else text
    piece = result.piece
    origin = ContentOrigin(
        piece.kind,
        piece.tool,
        result.arguments,
        sought.names,
        _pointed(result, plain, sought.lines),
    )
    made = preview(text, origin, limit.room) if len(text) > limit.over else None
    if made is None:
        return (Form.EXCERPT, "\n".join([*note, text])) if plain else (Form.FULL, "")
    index = _index(
        text, made, min(knobs.room_for_names, int(knobs.forms.names_share * len(made.text)))
    )
    return Form.EXCERPT, "\n".join(
        [*note, made.text, *index, closing(made, content_id(piece.content))]
    )


def _pointed(result: Result, plain: Bare | None, lines: Iterable[int]) -> tuple[int, ...]:
    """Places in a text of lines of its file. A part of a file that does not say where it begins
    could be any."""
    if plain is None and any(argument.text.isdigit() for argument in arguments(result.arguments)):
        return ()
    first = plain.first if plain else 1
    return tuple(line - first for line in lines)


def _index(text: str, made: Preview, room: int) -> Iterator[str]:
    """A line with names that stand in the gaps only: those that come up most for their length."""
    if not room or made.type is ContentType.OPAQUE:
        return
    found = apart(Counter(coined(text[:_INDEXED])), made.text)
    ranked = sorted((-count / (len(name) + 1), name) for name, count in found.items())
    if told := within((name for _, name in ranked), room):
        yield f"[hotset: names in what was left out: {' '.join(told)}]"


def _echo(result: Result, seen: Seen) -> str:
    """Where the same result stands already; nothing where it does not. What changed back must not
    seem to be unchanged."""
    content, last = result.piece.content, seen.last.get(result.call)
    size = f"{len(content):,} characters, not repeated"
    again = f'retrieve_context(id="{content_id(content)}") shows it again]'
    if content in seen.whole and last in (None, content):
        return f"[hotset: the same result as above, unchanged ({size}); {again}"
    if content in seen.whole:
        return (
            "[hotset: this call's result is not that of the last time; it is exactly that "
            "earlier result above which begins"
            f" {json.dumps(_beginning(content), ensure_ascii=False)} ({size}); {again}"
        )
    if content == last and content in seen.changed:
        return (
            f"[hotset: the same as the last result of this call, of "
            f"which the changed lines stand "
            f"above ({size}); {again}"
        )
    return ""


def _beginning(content: bytes) -> str:
    lines = (line.strip() for line in content[:_BEGINS].decode("utf-8", "replace").splitlines())
    return next((line for line in lines if line), "")[:_BEGINS_SHOWN]


def _change(result: Result, text: str, seen: Seen) -> str:
    """What changed since the result of the same call that stands whole; nothing where nothing can
    be compared."""
    before = seen.latest.get(result.call)
    difference = changes(before.decode("utf-8", "replace"), text) if before is not None else ""
    if not difference:
        return ""
    compared = "the result of the same call above, except for these lines (- as it was"
    if seen.last.get(result.call) != before:  # what came since stands there as changes only
        compared = (
            "the last result of the same call that stands whole above, "
            "except for these lines (- "
            "as it was there"
        )
    return (
        f"[hotset: as {compared}, + as it is now); "
        f'retrieve_context(id="{content_id(result.piece.content)}") shows it whole]\n{difference}'
    )


def _row(spot: Spot, piece: Piece, form: Form, text: str, moment: Moment) -> Shown:
    told = text.encode("utf-8", "replace")
    tokens = moment.count(told) if told else piece.tokens
    if tokens >= piece.tokens:
        form, told, tokens = Form.FULL, b"", piece.tokens
    return Shown(spot, form, told, tokens, piece.tokens, Cause.BIRTH, moment.now)


def _sought(weighed: Weighed, place: ResultPlace) -> Sought:
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
    told = _told(weighed, place) if names_path(place.result.arguments) else Sought()
    return Sought(
        told.names.union(name for piece in asked for name in names(_said(piece))), told.lines
    )


def _told(weighed: Weighed, place: ResultPlace) -> Sought:
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
    return told_of(path, (_said(prompt) for prompt in prompts))


def _said(piece: Piece) -> str:
    return (
        spoken(piece.content)
        if piece.kind.family is Kind.TOOL_CALL
        else piece.content.decode("utf-8", "replace")
    )
