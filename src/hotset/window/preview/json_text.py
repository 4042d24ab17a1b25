"""JSON previews: the shape, a catalogue of the rows, then values by path: those that are odd or
near the query."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from hotset.text.clip import clip
from hotset.text.outline import paragraphs
from hotset.typed import decode, json_decoder
from hotset.window.preview.content import Body, ToolQuery, closeness
from hotset.window.preview.excerpt import (
    ExcerptView,
    LineSpan,
    Reading,
    Worth,
    longest_line,
    no_label,
    room_above,
)
from hotset.window.preview.opaque import is_opaque, view_opaque as opaque_view
from hotset.window.preview.rarity import odd_rows
from hotset.window.preview.rows import label_rows
from hotset.window.preview.trouble import alarms

_ROW = 300  # characters of a value shown as one, without indents; longer ones are opened
_DEEPEST = 6
_MOST = 4000  # values read; beyond them, only the last ones
_LAST = 5
_KEPT = 5  # odd values for which a catalogue leaves room
_WITH_MENTIONS = 1.15  # room for values together with the names in the gaps around them
_KEYS = 24
_TRIED = 20  # lines parsed before a text counts as JSON lines
_LONG = 400  # characters: longer lines are not written by hand
_STRING_LINE = 240
_PARAGRAPH = 500
_LONGEST_PATH = 24  # of a path in a mark
_LONGEST_MARK = _LONGEST_PATH + len("… 1,000,000 from  …")
_INDENT = re.compile(r"\s*\n\s*")
# A part of a long line, cut between words if possible.
_CHUNK = re.compile(rf".{{1,{_STRING_LINE}}}(?:\s|$)|.{{1,{_STRING_LINE}}}")
_BLOB_SHOWN = 120  # characters of room for the beginning of encoded bytes
_TITLES = (
    "title",
    "name",
    "subject",
    "summary",
    "headline",
    "label",
    "path",
    "file",
    "filename",
    "email",
    "login",
    "username",
)
_ID = re.compile(
    r"(?:\w*_)?(?:i?id|uuid|uid|key|number|code|sku|slug|ref)|\w+(?:Id|ID|Key|Number|Code)"
)
_NAMING = 0.5  # least share of rows that a naming column distinguishes
_LONGEST_NAME = 60
_LISTED_NAME, _SHORTEST_NAME = 40, 12  # characters of a row's name in a catalogue
_OF_ROWS = 0.93  # of a catalogue; the rest names its columns and rows
_LONGEST_CELL_READ = 400
_CATEGORIES_INSIDE, _COUNTED = 8, 3  # counted values of a column inside rows, and such columns


class _Entry(NamedTuple):
    """A value at its path, as written in the source."""

    path: str
    text: str
    place: float
    """From 0, the first of its siblings, to 1, the last."""
    is_text: bool = False
    """True for a line of a long text, written by people rather than by a program."""


class _Rows(NamedTuple):
    """The items of an array, and the columns that name them."""

    cells: Mapping[str, Mapping[str, str]]
    """By path: short values of each item and of objects in it, by the rest of their path."""
    naming: Sequence[str]
    """Columns that name an item: at most an id and a title."""


def is_json(text: str) -> bool:
    stripped = text.strip()
    if stripped[:1] + stripped[-1:] not in ("{}", "[]"):
        return False
    try:
        decode(_bytes(stripped), msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def is_json_lines(lines: Sequence[str]) -> bool:
    tried = [line for line in lines[: 2 * _TRIED] if line.strip()][:_TRIED]
    return len(tried) > 2 and sum(is_json(line) for line in tried) >= 0.9 * len(tried)


def is_laid_out(body: Body) -> bool:
    """True if it is formatted for readers, line by line; many rows are not, however they are
    indented."""
    return (
        max(map(len, body.lines)) <= _LONG
        and records(_bytes("\n".join(body.lines).strip())) is None
    )


def read_json_lines(body: Body, query: ToolQuery) -> Reading:
    """The reading of JSON lines: each line is a row."""
    lines = body.lines
    scores = closeness(lines, query)
    spans = [
        body.span(0, 1, Worth.HEAD),
        body.span(len(lines) - 1, len(lines), Worth.HEAD - 1),
    ]
    table = records_of(lines)
    odd = (
        {int(path): Worth.ODD + oddity for path, oddity in table.odd().items() if path.isdigit()}
        if table
        else {}
    )
    news = {**odd, **alarms(lines)}
    for index, score in enumerate(scores):
        worth = Worth.OUTLINE * (1 - index / len(lines)) / 2 + Worth.ASKED * score
        spans.append(body.span(index, index + 1, max(worth, news.get(index, 0.0))))
    first = next((line for line in lines if line.strip()), "")
    return Reading(
        spans, label_rows, f"[{len(lines):,} JSON lines; {shape(first)}]" if is_json(first) else ""
    )


def view_json(body: Body, query: ToolQuery) -> ExcerptView:
    """The view of JSON that is not laid out in lines: each line shows a value as written in the
    source."""
    text = "\n".join(body.lines)
    raw = _bytes(_INDENT.sub(" ", text.strip()))
    longest = longest_line(query.room)
    entries = list(_entries("$", raw, 0, 0.0))
    lines = list(_lines(entries, longest))
    units = list(_units(entries))
    scores = closeness(["\n".join(lines[first:end]) for first, end in units], query)
    table = records(raw)
    rows = _rows(raw, table) if table else _Rows({}, ())
    news = {**_odd(table, entries), **dict.fromkeys(alarms(lines), Worth.HEAD)}
    spans = [
        LineSpan(
            first,
            end,
            news[first] if end - first == 1 and first in news else _worth(entries[first], score),
            least=1,
        )
        for (first, end), score in zip(units, scores, strict=True)
    ]
    if table:
        spans.extend(_first_and_last(table, entries, rows.naming))
        lines = [
            _label_row(line, entries[at].path, rows, longest) if at in news else line
            for at, line in enumerate(lines)
        ]
    paths = [entry.path for entry in entries]
    preface = f"[JSON: {shape(text)}]"
    if table:
        room = room_above(query.room, preface, _LONGEST_MARK + 1)
        above = _above(table, rows, room, [len(lines[at]) for at in news or (0,)], longest)
    else:
        above = ()
    reading = Reading(spans, no_label, preface, above, label_share=0.0)
    return ExcerptView(lines, reading, partial(_mark, paths), _LONGEST_MARK, partial(_path, paths))


def _size(raw: bytes) -> int:
    """The length of a value without its layout."""
    if not _ROW < len(raw) <= 2 * _ROW:  # at most half of it is spaces
        return len(raw)
    try:
        return len(msgspec.json.format(raw, indent=-1))
    except (msgspec.DecodeError, RecursionError):
        return len(raw)


def _rows(raw: bytes, table: Records) -> _Rows:
    """The items of the table's array with their naming columns; members of an object are named by
    keys."""
    path, inner = "$", raw
    while path != table.path and inner:
        within = (
            each
            for each in members_at(path, inner)
            if f"{table.path}.".startswith((f"{each[0]}.", f"{each[0]}["))
        )
        path, inner = next(within, ("", b""))
    cells = (
        {row: dict(_flat(value)) for row, value in members_at(path, inner)[: len(table.paths)]}
        if inner[:1] == b"["
        else {}
    )
    return _Rows(cells, _naming(list(cells.values())))


def _flat(row: bytes) -> Iterator[tuple[str, str]]:
    for key, value in members_at("", row):
        for inner, cell in members_at(key, value) if value[:1] == b"{" else [(key, value)]:
            if cell[:1] not in (b"{", b"["):
                yield inner, _text(cell[:_LONGEST_CELL_READ]).strip('"')


def _naming(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The columns that name rows: the shortest id, and a title; those of an inner object if rows
    have none."""
    counts = Counter(key for row in rows for key in row)
    apart = [
        key
        for key, count in counts.items()
        if count > _NAMING * len(rows) and len({row.get(key) for row in rows}) > _NAMING * len(rows)
    ]
    own = [key for key in apart if not _is_inside(key)]
    ids = sorted(filter(_is_id, own), key=lambda key: sum(len(row.get(key, "")) for row in rows))
    titles = sorted(
        (key for key in own if _last(key) in _TITLES), key=lambda key: _TITLES.index(_last(key))
    )
    inside = (
        [key for key in apart if key not in own and _last(key) in ("name", "title", "id")]
        if not titles
        else []
    )
    return [*ids[:1], *(titles or ([] if ids else sorted(inside, key=_last, reverse=True)))[:1]]


def _is_id(key: str) -> bool:
    return _ID.fullmatch(_last(key)) is not None


def _is_inside(key: str) -> bool:
    return key.count(".") > 1


def _bare(key: str) -> str:
    return key.removeprefix(".")


def _last(key: str) -> str:
    return key.rpartition(".")[2]


def _label_row(line: str, path: str, rows: _Rows, longest: int) -> str:
    """A line with a value of a row, labelled with the row's name; unchanged if the line is the
    whole row."""
    row = next((holder for holder in _holders(path) if holder in rows.cells), path)
    label = ", ".join(
        f"{_bare(key)} {name[:_LONGEST_NAME]}"
        for key in rows.naming
        if (name := rows.cells.get(row, {}).get(key))
    )
    head = f"… {path}:"
    if row == path or not label or not line.startswith(head):
        return line
    labelled = f"… {path} ({label}):{line[len(head) :]}"
    return labelled if len(labelled) <= longest else f"{labelled[: longest - 2]} …"


def _holders(path: str) -> Iterator[str]:
    """Every array item on a path."""
    end = path.find("]")
    while end != -1:
        yield path[: end + 1]
        end = path.find("]", end + 1)


def _first_and_last(
    table: Records, entries: Sequence[_Entry], naming: Sequence[str]
) -> Iterator[LineSpan]:
    """Spans of the first and the last row; of a row that is opened, its naming values."""
    last = table.paths[-1] if table.size == len(table.paths) else f"{table.path}[{table.size - 1}]"
    yield LineSpan(0, 1, Worth.ASKED)
    for row, worth in ((table.paths[0], Worth.HEAD - 1), (last, Worth.HEAD - 2)):
        wanted = {row, *(row + key for key in naming)}
        yield from (
            LineSpan(at, at + 1, worth) for at, entry in enumerate(entries) if entry.path in wanted
        )


def _odd(table: Records | None, entries: Sequence[_Entry]) -> dict[int, float]:
    """The odd values of rows."""
    odd = table.odd() if table else {}
    return {
        at: Worth.ODD + odd[entry.path] for at, entry in enumerate(entries) if entry.path in odd
    }


def _above(
    table: Records, rows: _Rows, room: int, news: Sequence[int], longest: int
) -> tuple[str, ...]:
    """Counts over all rows and a catalogue of them, as far as the room beside the odd values
    allows."""
    columns = {**table.columns, **_categories_inside(table, rows)}
    summary = f"[{replace(table, columns=columns).describe_columns()}]"
    summary = summary if len(summary) <= longest else f"{summary[: longest - 2]}…]"
    kept = sum(size + _LONGEST_MARK for size in news[:_KEPT]) + _LONGEST_MARK
    beside = max(0, round(kept * _WITH_MENTIONS) - room // 9)  # a tenth is reserved for text anyway
    free = room - beside - len(summary) - 1
    return (summary, *_by_name(table, rows, free).catalogue(free, longest))


def _by_name(table: Records, rows: _Rows, room: int) -> Records:
    """The same rows with their naming columns first and no other ids. Ids are never shortened."""
    if not rows.naming:
        return table
    cells = rows.cells.values()
    ids = max(
        (len(row.get(key, "")) + 1 for key in filter(_is_id, rows.naming) for row in cells),
        default=0,
    )
    width = min(_LISTED_NAME, max(_SHORTEST_NAME, int(_OF_ROWS * room / len(cells)) - ids - 2))
    named = {
        _bare(key): [
            cell if _is_id(key) else clip(cell, width)
            for cell in (row.get(key, "") for row in cells)
        ]
        for key in rows.naming
    }
    others = {
        key: column
        for key, column in table.columns.items()
        if key not in named and len(set(column)) < len(column)
    }
    return replace(table, columns={**named, **others})


def _categories_inside(table: Records, rows: _Rows) -> dict[str, list[str]]:
    """Columns of inner objects with few distinct values, unless the objects themselves are as
    few."""
    few = {
        key
        for key, column in table.columns.items()
        if len(set(column)) <= _CATEGORIES_INSIDE
        and max(map(len, column)) <= _LISTED_NAME  # they are counted as they are
    }
    cells = rows.cells.values()
    keys = dict.fromkeys(
        key for row in cells for key in row if _is_inside(key) and key.split(".")[1] not in few
    )
    columns = {_bare(key): [row.get(key, "") for row in cells] for key in keys}
    return {
        key: columns[key]
        for key in [key for key in columns if 1 < len(set(columns[key])) <= _CATEGORIES_INSIDE][
            :_COUNTED
        ]
    }


def shape(text: str) -> str:
    """A short description of a value's structure."""
    try:
        decoded: Any = msgspec.json.decode(_bytes(text))
    except (msgspec.DecodeError, RecursionError):
        return "damaged"
    return _shape(decoded)


def _shape(value: Any, depth: int = 0) -> str:
    if isinstance(value, dict):
        if depth > 1:
            return f"object of {len(value):,}"
        keys = [_key(key, inner) for key, inner in list(value.items())[:_KEYS]]
        more = f", {len(value) - _KEYS:,} more" if len(value) > _KEYS else ""
        return f"object with {', '.join(keys)}{more}"
    if isinstance(value, list):
        inner = (
            f" of {_shape(value[0], depth + 1)}"
            if value and isinstance(value[0], dict | list)
            else ""
        )
        return f"array of {len(value):,}{', each an' + inner[3:] if inner else ''}"
    return type(value).__name__


def _key(key: str, value: Any) -> str:
    name = key[:40]
    if isinstance(value, list):
        return f"{name} (array of {len(value):,})"
    return f"{name} (object of {len(value):,})" if isinstance(value, dict) and value else name


def _entries(path: str, raw: bytes, depth: int, place: float) -> Iterator[_Entry]:
    """A value, or its members if it is long."""
    if len(raw) > _ROW and raw[:1] == b'"':
        yield from _string(path, raw, place)
    elif _size(raw) <= _ROW or depth >= _DEEPEST or raw[:1] not in (b"{", b"["):
        yield _Entry(path, _text(raw), place)
    else:
        inner = members_at(path, raw)
        for index, (name, value) in enumerate(inner):
            if index < _MOST or index >= len(inner) - _LAST:
                yield from _entries(name, value, depth + 1, index / max(1, len(inner) - 1))


def _string(path: str, raw: bytes, place: float) -> Iterator[_Entry]:
    """The lines of a long text inside JSON; a description if it is encoded bytes."""
    try:
        text: str = decode(raw, str)
    except msgspec.DecodeError:
        text = _text(raw)
    whole = text.split("\n")[:_MOST]
    if is_opaque(whole):
        yield _Entry(path, opaque_view(Body(0, whole), ToolQuery(room=_BLOB_SHOWN)).lines[0], place)
        return
    lines = [chunk.rstrip() for line in whole for chunk in _CHUNK.findall(line)]
    for index, line in enumerate(lines):
        yield _Entry(path, line, index / len(lines), is_text=True)


def _lines(entries: Sequence[_Entry], longest: int) -> Iterator[str]:
    """Each value after its path; a text names its path once."""
    before = ""
    for entry in entries:
        path = " " if entry.is_text and entry.path == before else f"{entry.path}:"
        line = f"… {path} {entry.text}"
        yield line if len(line) <= longest else f"{line[: longest - 2]} …"
        before = entry.path if entry.is_text else ""


def _units(entries: Sequence[_Entry]) -> Iterator[tuple[int, int]]:
    """Values one by one, texts by paragraphs."""
    start = 0
    while start < len(entries):
        end = start + 1
        while (
            end < len(entries)
            and entries[start].is_text
            and entries[end].is_text
            and entries[end].path == entries[start].path
        ):
            end += 1
        yield from paragraphs(
            [entry.text for entry in entries[start:end]], 0, end - start, _PARAGRAPH, start
        )
        start = end


def _worth(entry: _Entry, score: float) -> float:
    """Text written by people is worth more than program data, and addresses least."""
    if entry.is_text:
        return Worth.OUTLINE + 8 - 6 * entry.place + 20 * score
    address = 15 if "://" in entry.text[:12] else 0
    return Worth.OUTLINE - address - (10 * entry.place if entry.place < 1 else 0) + 20 * score


def _mark(paths: Sequence[str], first: int, end: int) -> str:
    """The mark of a gap, with a bounded length."""
    name = paths[first]
    name = name if len(name) <= _LONGEST_PATH else f"…{name[1 - _LONGEST_PATH :]}"
    return f"… {name} …" if end - first == 1 else f"… {end - first:,} from {name} …"


def _path(paths: Sequence[str], first: int, end: int) -> str:
    """The argument that brings back the beginning of a gap, or the value that contains the gap."""
    return (
        f'path="{paths[first]}"'
        if paths[first] == paths[end - 1] or end - first < _LAST
        else f'path="{_parent(paths[first])}"'
    )


def _parent(path: str) -> str:
    return path[: max(path.rfind("."), path.rfind("["), 1)]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


_FEWEST_ROWS = 12  # objects that make a table
_SHARE_OF_TEXT = 0.6  # least share of the text that they take
_ALIKE = 0.8  # of their siblings are objects too
_DEEPEST_TABLE = 4
_MOST_COLUMNS = 40  # columns read, those that most rows have
_MOST_ROWS = 2000  # rows read, from the first on
_LONGEST_CELL = 80
_LISTED_CELL = 40
_CATEGORIES = 8  # distinct values of a column that are counted one by one
_LONGEST_KEY = 80

_values = json_decoder(list[msgspec.Raw])
_members = json_decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Records:
    """Objects that make up most of a text."""

    path: str
    """Path of their array or object."""
    size: int
    paths: Sequence[str]
    """Paths of the rows that were read."""
    columns: Mapping[str, Sequence[str]]
    """By key: the value in each row, without quotes; empty if the row has no such key."""

    def odd(self) -> dict[str, float]:
        """The paths of odd rows and of their odd values: how odd, from 0 to 1."""
        rows = odd_rows(self.columns.values())
        cells = {
            join_path(self.paths[row], key): rows[row]
            for key, column in self.columns.items()
            for row in odd_rows([column])
            if row in rows
        }
        return {**cells, **{self.paths[row]: oddity for row, oddity in rows.items()}}

    def describe_columns(self) -> str:
        """The number of rows, and the counts of columns with few distinct values."""
        described = [
            f"{key}: {values}"
            for key, column in self.columns.items()
            if (values := _categories(column))
        ]
        return "; ".join([f"{self.size:,} rows in {self.path}", *described])

    def catalogue(self, room: int, width: int) -> list[str]:
        """All rows in as many columns as fit, the naming one first; empty if not even that fits."""
        lines: list[str] = []
        chosen: list[str] = []
        for key in self._by_use() if self.size == len(self.paths) else ():
            longer = list(self._render_rows([*chosen, key], width))
            if sum(len(line) + 1 for line in longer) > room:
                break
            chosen.append(key)
            lines = longer
        return lines

    def _by_use(self) -> list[str]:
        """Keys whose values name rows; then, in their order, those whose values differ."""
        listed = {
            key: len(set(column))
            for key, column in self.columns.items()
            if max(map(len, column)) <= _LISTED_CELL
        }
        naming = [
            key
            for key, distinct in listed.items()
            if distinct == len(self.paths) and not _is_measure(self.columns[key])
        ]
        return (
            [
                *naming,
                *(key for key, distinct in listed.items() if distinct > 1 and key not in naming),
            ]
            if naming
            else []
        )

    def _render_rows(self, keys: Sequence[str], width: int) -> Iterator[str]:
        """Lines of ours, none longer than `width` unless a single row is."""
        rows = [" ".join(cells) for cells in zip(*(self.columns[key] for key in keys), strict=True)]
        apart = " " if len(keys) == 1 else "; "
        line = f"… {', '.join(keys)} from row 0: {rows[0]}"
        for index, row in enumerate(rows[1:], 1):
            if len(line) + len(apart) + len(row) > width:
                yield line
                line = f"… {', '.join(keys)} from row {index}: {row}"
            else:
                line += f"{apart}{row}"
        yield line


def records(raw: bytes) -> Records | None:
    """The array or object of objects that makes up most of a JSON text; None for other texts."""
    path, inner = "$", raw
    for _ in range(_DEEPEST_TABLE):
        opened = dict(members_at(path, inner))
        table = _table(path, opened) if len(inner) >= _SHARE_OF_TEXT * len(raw) else None
        if table is not None or not opened:
            return table
        path, inner = max(opened.items(), key=lambda each: len(each[1]))
    return None


def records_of(lines: Sequence[str]) -> Records | None:
    """The table of JSON lines: a row's path is its number."""
    return _table(
        "",
        {str(number): line.strip().encode("utf-8", "replace") for number, line in enumerate(lines)},
    )


def members_at(path: str, raw: bytes) -> list[tuple[str, bytes]]:
    """The members of an array or object, by path; none for any other value."""
    try:
        if raw[:1] == b"[":
            return [
                (f"{path}[{index}]", bytes(value).strip())
                for index, value in enumerate(_values.decode(raw))
            ]
        if raw[:1] == b"{":
            return [
                (join_path(path, key), bytes(value).strip())
                for key, value in _members.decode(raw).items()
            ]
    except (msgspec.DecodeError, RecursionError):
        pass
    return []


def join_path(path: str, key: str) -> str:
    return f"{path}.{key}" if key.isidentifier() else f"{path}['{key[:_LONGEST_KEY]}']"


def _table(path: str, values: Mapping[str, bytes]) -> Records | None:
    rows = [_cells(raw) for raw in islice(values.values(), _MOST_ROWS)]
    if len(rows) < _FEWEST_ROWS or sum(1 for row in rows if row) < _ALIKE * len(rows):
        return None
    keys = [
        key for key, _ in Counter(key for row in rows for key in row).most_common(_MOST_COLUMNS)
    ]
    return Records(
        path,
        len(values),
        list(values)[: len(rows)],
        {key: [row.get(key, "") for row in rows] for key in keys},
    )


def _cells(raw: bytes) -> dict[str, str]:
    if raw[:1] != b"{":
        return {}
    try:
        return {key: _cell(bytes(value).strip()) for key, value in _members.decode(raw).items()}
    except (msgspec.DecodeError, RecursionError):
        return {}


def _cell(raw: bytes) -> str:
    """A value as written, on one line; a long one is cut."""
    text = raw[: 4 * _LONGEST_CELL].decode("utf-8", "replace")
    return " ".join(text.strip('"').split())[:_LONGEST_CELL]


def _categories(column: Sequence[str]) -> str:
    counts = Counter(column)
    if len(counts) > _CATEGORIES or any(len(value) > _LISTED_CELL for value in counts):
        return ""
    if len(counts) == 1:
        return f"{column[0]} in all"
    return ", ".join(f"{value or 'none'} ({count:,})" for value, count in counts.most_common())


def _is_measure(column: Sequence[str]) -> bool:
    """True for numbers with a fraction: they measure and do not name."""
    return all("." in value and value.replace(".", "", 1).isdigit() for value in column)
