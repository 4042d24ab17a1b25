"""Rows of JSON: objects alike, in an array, in an object or line by line. What they hold, one by
one and together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from hotset.window.preview.rarity import odd_rows

_FEWEST = 12  # objects that make a table
_SHARE = 0.6  # of the text, that they take at least
_ALIKE = 0.8  # of what stands beside them are objects too
_DEEPEST = 4
_COLUMNS = 40  # that are looked at, those that most rows have
_ROWS = 2000  # that are looked at, from the first on
_LONGEST_CELL = 80
_LISTED_CELL = 40
_CATEGORIES = 8  # values of a column that are counted one by one
_LONGEST_KEY = 80

_values = msgspec.json.Decoder(list[msgspec.Raw])
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Records:
    """Objects that are most of a text."""

    path: str
    """Of what holds them."""
    size: int
    paths: Sequence[str]
    """Of each of them that was looked at."""
    columns: Mapping[str, Sequence[str]]
    """By key: what stands there in each row, without quotes; empty where the row has no such
    key."""

    def odd(self) -> dict[str, float]:
        """The paths of rows that stand out, and of the values by which they do: how odd, from 0 to
        1."""
        rows = odd_rows(self.columns.values())
        cells = {
            joined(self.paths[row], key): rows[row]
            for key, column in self.columns.items()
            for row in odd_rows([column])
            if row in rows
        }
        return {**cells, **{self.paths[row]: oddity for row, oddity in rows.items()}}

    def counted(self) -> str:
        """How many there are, and which values come up how often, where they are few."""
        told = [
            f"{key}: {said}"
            for key, column in self.columns.items()
            if (said := _categories(column))
        ]
        return "; ".join([f"{self.size:,} rows in {self.path}", *told])

    def catalogue(self, room: int, width: int) -> list[str]:
        """All rows in as many columns as there is room for, first the one that names them; nothing
        where not even that fits."""
        lines: list[str] = []
        chosen: list[str] = []
        for key in self._by_use() if self.size == len(self.paths) else ():
            longer = list(self._listed([*chosen, key], width))
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

    def _listed(self, keys: Sequence[str], width: int) -> Iterator[str]:
        """Lines of ours, none longer than `width` but for a row that is."""
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
    """The array or object of objects that a JSON text mostly is; None where it is something
    else."""
    path, inner = "$", raw
    for _ in range(_DEEPEST):
        opened = dict(opened_at(path, inner))
        table = _table(path, opened) if len(inner) >= _SHARE * len(raw) else None
        if table is not None or not opened:
            return table
        path, inner = max(opened.items(), key=lambda each: len(each[1]))
    return None


def records_of(lines: Sequence[str]) -> Records | None:
    """JSON lines: a row's path is its number."""
    return _table(
        "",
        {str(number): line.strip().encode("utf-8", "replace") for number, line in enumerate(lines)},
    )


def opened_at(path: str, raw: bytes) -> list[tuple[str, bytes]]:
    """What an array or an object is made of, by path; nothing of any other value."""
    try:
        if raw[:1] == b"[":
            return [
                (f"{path}[{index}]", bytes(value).strip())
                for index, value in enumerate(_values.decode(raw))
            ]
        if raw[:1] == b"{":
            return [
                (joined(path, key), bytes(value).strip())
                for key, value in _members.decode(raw).items()
            ]
    except (msgspec.DecodeError, RecursionError):
        pass
    return []


def joined(path: str, key: str) -> str:
    return f"{path}.{key}" if key.isidentifier() else f"{path}['{key[:_LONGEST_KEY]}']"


def _table(path: str, values: Mapping[str, bytes]) -> Records | None:
    rows = [_cells(raw) for raw in islice(values.values(), _ROWS)]
    if len(rows) < _FEWEST or sum(1 for row in rows if row) < _ALIKE * len(rows):
        return None
    keys = [key for key, _ in Counter(key for row in rows for key in row).most_common(_COLUMNS)]
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
    """A value as it is written, on one line; of a long one, its beginning."""
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
    """Numbers with a fraction measure something; they name nothing."""
    return all("." in value and value.replace(".", "", 1).isdigit() for value in column)
