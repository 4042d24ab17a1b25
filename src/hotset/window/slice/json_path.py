"""Values of a JSON text by path: `$.a.b[3]`, `[*]`, `[1:5]`, `['key']`, `..name`; and rows of a
table or elements of an array by number. Values are returned as written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from hotset.nouns.retrieval import Span
from hotset.typed import json_decoder
from hotset.window.slice.fit import Count, Cut, clip_to_tokens, count_fitting, fits, tokens
from hotset.window.slice.lines import by_lines, merge_spans, rest_of, span_name

_STEP = re.compile(
    r"""(?P<deep>\.\.)?(?:
        \.?(?P<name>[^.\[\]*'"\s][^.\[\]]*)
      | \.?(?P<all>\*|\[\s*\*?\s*\])
      | \[\s*(?P<index>-?\d{1,15})\s*\]
      | \[\s*(?P<first>-?\d{1,15})?\s*:\s*(?P<last>-?\d{1,15})?\s*\]
      | \[\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)')\s*\]
    )""",
    re.VERBOSE,
)
_SLICE = re.compile(r"\[\s*(?:\*|(?P<first>\d{1,15})?\s*:\s*(?P<last>\d{1,15})?)\s*\]|\.\*")
_INDEX = re.compile(r"\[(\d+)\]")
_DEEPEST = 64
_MOST_VALUES = 1000  # found by one path: about as many as fit into the largest answer


@dataclass(frozen=True, slots=True)
class _Step:
    name: str | None = None
    bounds: tuple[int | None, int | None] | None = None
    """A slice of an array; (None, None) is all of it, or all members of an object."""
    index: int | None = None
    deep: bool = False
    """At any depth below."""


@dataclass(frozen=True, slots=True)
class _Value:
    path: str
    raw: bytes


class _NoSuchPath(Exception):
    """The path matches nothing; the message names what is there instead."""


def by_path(text: str, path: str, room: int, count: Count) -> Cut:
    whole = find_json(text)
    if whole is None:
        return Cut("", whole=False, note="not JSON; use lines, regex, symbol or question")
    path = path.strip()
    path = path if path.startswith("$") else f"${'' if path[:1] in ('.', '[') else '.'}{path}"
    try:
        found = _walk(_Value("$", whole), _steps(path))
    except _NoSuchPath as reason:
        return Cut("", whole=False, note=str(reason))
    if len(found) == 1:
        return _cut_one(text, found[0], room, count)
    return _cut_several(found, path, room, count)


def _steps(path: str) -> tuple[_Step, ...]:
    rest = path.removeprefix("$")
    steps = []
    at = 0
    while at < len(rest):
        match = _STEP.match(rest, at)
        if match is None or match.end() == at:
            raise _NoSuchPath(
                f"invalid path at {rest[at : at + 20]!r}; write it like $.items[0:5].name "
                "or $['a key'][*]"
            )
        at = match.end()
        steps.append(_step(match))
    return tuple(steps)


def _step(match: re.Match[str]) -> _Step:
    deep = match["deep"] is not None
    if match["all"]:
        return _Step(bounds=(None, None), deep=deep)
    if match["index"]:
        return _Step(index=int(match["index"]), deep=deep)
    name = next(
        (match[group] for group in ("name", "double", "single") if match[group] is not None), None
    )
    if name is not None:
        return _Step(name=name.strip() if match["name"] else name, deep=deep)
    return _Step(bounds=(_number(match["first"]), _number(match["last"])), deep=deep)


def _number(typed: str | None) -> int | None:
    return None if typed is None else int(typed)


def _walk(root: _Value, steps: Sequence[_Step]) -> list[_Value]:
    values = [root]
    for step in steps:
        bases = (
            base for value in values for base in (_below(value, step) if step.deep else (value,))
        )
        following = list(
            islice((after for base in bases for after in _follow(base, step)), _MOST_VALUES)
        )
        if not following:
            raise _NoSuchPath(_no_such_value(values, step))
        values = following
    return values


def _below(value: _Value, step: _Step, depth: int = 0) -> Iterator[_Value]:
    """A value and everything below it that can contain the wanted name."""
    if step.name is not None and step.name.encode("utf-8", "replace") not in value.raw:
        return
    yield value
    if depth < _DEEPEST:
        for each in _follow(value, _Step(bounds=(None, None))):
            yield from _below(each, step, depth + 1)


def _follow(value: _Value, step: _Step) -> Iterator[_Value]:
    inside = fields(value.raw)
    if inside is not None:
        if step.name is not None and step.name in inside:
            yield _Value(f"{value.path}{_member_path(step.name)}", inside[step.name])
        elif step.bounds is not None:
            members = list(inside.items())[slice(*step.bounds)]
            yield from (_Value(f"{value.path}{_member_path(name)}", raw) for name, raw in members)
        return
    several = elements(value.raw)
    if several is None:
        return
    if step.index is not None or (step.name or "").isdecimal():
        index = step.index if step.index is not None else int(step.name or 0)
        if -len(several) <= index < len(several):
            yield _Value(f"{value.path}[{index % len(several)}]", several[index])
    elif step.bounds is not None:
        first, last, _ = slice(*step.bounds).indices(len(several))
        yield from (_Value(f"{value.path}[{at}]", several[at]) for at in range(first, last))


def _member_path(name: str) -> str:
    return f".{name}" if re.fullmatch(r"[^\W\d][\w-]*", name) else f"['{name}']"


def _no_such_value(values: Sequence[_Value], step: _Step) -> str:
    """An error that names what is there instead."""
    at = values[0]
    wanted = step.name if step.name is not None else "such element"
    inside = fields(at.raw)
    if inside is not None:
        return f"no {wanted} in {at.path}; keys: {name_list(list(inside)) or 'none'}"
    several = elements(at.raw)
    if several is None:
        return f"no {wanted} in {at.path}: it is {at.raw[:60].decode('utf-8', 'replace')}"
    keys = fields(several[0]) if several else None
    first = f"; keys of its first: {name_list(list(keys))}" if keys else ""
    return f"no {wanted} in {at.path}: it is an array of {len(several):,}{first}"


def _cut_one(text: str, value: _Value, room: int, count: Count) -> Cut:
    raw = value.raw.decode("utf-8", "replace")
    if fits(raw, room, count):
        return Cut(raw, whole=True, note=f"{value.path}: all of it")
    several = elements(value.raw)
    if several is not None:
        return _cut_several(
            [_Value(f"{value.path}[{at}]", raw) for at, raw in enumerate(several)],
            f"{value.path}[*]",
            room,
            count,
        )
    inside = fields(value.raw)
    if inside is not None:
        return _cut_members(value.path, inside, room, count)
    part = clip_to_tokens(raw, room, count)
    note = (
        f"{value.path}: first {len(part):,} of {len(raw):,} characters; rest: "
        f"{rest_of(text, raw, len(part))}"
    )
    return Cut(part, whole=False, note=note)


def _cut_several(values: Sequence[_Value], path: str, room: int, count: Count) -> Cut:
    lines = [f"{value.path}: {value.raw.decode('utf-8', 'replace')}\n" for value in values]
    kept = count_fitting(lines, room, count)
    many = f"{len(lines):,}{'' if len(lines) < _MOST_VALUES else ' or more'}"
    if kept == len(lines):
        return Cut(
            "".join(lines).removesuffix("\n"),
            whole=len(lines) < _MOST_VALUES,
            note=f"{many} values",
        )
    if kept == 0:
        part = clip_to_tokens(lines[0], room, count)
        note = (
            f"first {len(part):,} characters of the first of {many} values; all: "
            f'path="{values[0].path}"'
        )
        return Cut(part, whole=False, note=f'{note}; others: path="{_from(path, values, 1)}"')
    shown = f"values 1-{kept:,}" if kept > 1 else f"value {kept:,}"
    note = f'{shown} of {many}; more: path="{_from(path, values, kept)}"'
    return Cut("".join(lines[:kept]).removesuffix("\n"), whole=False, note=note)


def _from(path: str, values: Sequence[_Value], kept: int) -> str:
    """The path that continues after the first values: its only slice from there on, or the next
    value if it has several slices."""
    slices = list(_SLICE.finditer(path))
    if len(slices) != 1 or ".." in path:
        return values[kept].path
    found = slices[0]
    index = _INDEX.match(values[kept].path, found.start())
    if found.end() == len(path):
        first = int(found["first"] or 0) + kept
    elif index is not None and path.startswith(values[kept].path[: index.start()]):
        first = int(index[1])
    else:
        return values[kept].path
    return f"{path[: found.start()]}[{first}:{found['last'] or ''}]{path[found.end() :]}"


def _cut_members(path: str, inside: dict[str, bytes], room: int, count: Count) -> Cut:
    """An object's members in order, the large ones by their shape."""
    share = max(8, room // 4)
    lines = []
    for name, raw in inside.items():
        text = raw.decode("utf-8", "replace")
        whole = fits(text, share, count)
        lines.append(f"{path}{_member_path(name)}: {text if whole else f'({shape(raw)})'}\n")
    kept = count_fitting(lines, room, count)
    first = f"{path}{_member_path(next(iter(inside)))}"
    note = f'{path}: {kept:,} of {len(lines):,} members, large ones by shape; one: path="{first}"'
    if kept < len(lines):
        note += f', more: path="{path}[{kept}:]"'
    return Cut("".join(lines[:kept]).removesuffix("\n"), whole=False, note=note)


_RULE = re.compile(r"(?=.*(?:--|==))[\s|+:=-]+")
"""The line below a table header: Markdown, psql, or a box of dashes."""

_HEADER = 6  # lines within which a header ends
_LONGEST_ROW = 50  # lines: beyond that an open quote is taken as a plain character
_CELLS = re.compile(r"[,\t;|]")


def by_rows(text: str, spans: Sequence[Span], room: int, count: Count) -> Cut:
    table = _array(text) or _table(text)
    if table is None:
        return by_lines(text, spans, room, count)
    header, rows = table
    wanted = [
        at for first, last in merge_spans(spans) for at in range(first, min(last, len(rows)) + 1)
    ]
    if not wanted:
        return Cut("", whole=False, note=f"no such rows; it has 1-{len(rows):,}")
    return _cut_rows(header, rows, wanted, room, count, text=text)


def _cut_rows(
    header: str, rows: Sequence[str], wanted: Sequence[int], room: int, count: Count, *, text: str
) -> Cut:
    left = room - tokens(header, count)
    pieces = [f"{rows[at - 1]}\n" for at in wanted]
    kept = count_fitting(pieces, left, count) if left > 0 else 0
    while kept and tokens(header + "".join(pieces[:kept]), count) > room:
        kept -= 1
    total = f"of {len(rows):,}"
    if kept == 0:
        row = rows[wanted[0] - 1]
        part = clip_to_tokens(row, room, count)
        note = f"first {len(part):,} of {len(row):,} characters of row {wanted[0]} {total}"
        return Cut(part, whole=False, note=f"{note}; rest: {rest_of(text, row, len(part))}")
    note = f"row{'' if kept == 1 else 's'} {_row_numbers(wanted[:kept])} {total}"
    if kept < len(wanted):
        note += f'; more: rows="{_row_numbers(wanted[kept:])}"'
    return Cut(
        (header + "".join(pieces[:kept])).removesuffix("\n"), whole=kept == len(wanted), note=note
    )


def _row_numbers(rows: Sequence[int]) -> str:
    return ",".join(span_name(*span) for span in merge_spans((at, at) for at in rows))


def _array(text: str) -> tuple[str, list[str]] | None:
    """The elements of an array, or of the only array in an object: results come wrapped."""
    whole = find_json(text)
    if whole is None:
        return None
    found = elements(whole)
    if found is None:
        inside = [elements(value) for value in (fields(whole) or {}).values()]
        arrays = [each for each in inside if each]
        found = arrays[0] if len(arrays) == 1 else None
    return None if found is None else ("", [each.decode("utf-8", "replace") for each in found])


def _table(text: str) -> tuple[str, list[str]] | None:
    """Header and rows with at least as many cells; a row with an open quote continues on the next
    line."""
    every = text.split("\n")
    rule = next(
        (at for at, line in enumerate(every[:_HEADER]) if at and _RULE.fullmatch(line)), None
    )
    if rule is not None:
        rows = [row for row in every[rule + 1 :] if row.strip() and not _RULE.fullmatch(row)]
        return ("\n".join(every[: rule + 1]) + "\n", rows) if rows else None
    first = [row for row in _whole_rows(every[: _HEADER + _LONGEST_ROW]) if row.strip()][:_HEADER]
    cells = len(_CELLS.findall(first[0])) if first else 0
    if (
        not cells
        or len(first) < 2
        or not all(len(_CELLS.findall(row)) >= cells for row in first[1:])
    ):
        return None
    rows = [row for row in _whole_rows(every) if row.strip()]
    return rows[0] + "\n", rows[1:]


def _whole_rows(every: Sequence[str]) -> Iterator[str]:
    row: list[str] = []
    quotes = 0
    for line in every:
        row.append(line)
        quotes += line.count('"')
        if quotes % 2 == 0 or len(row) > _LONGEST_ROW:
            yield "\n".join(row)
            row, quotes = [], 0
    if row:
        yield "\n".join(row)


_OBJECT = json_decoder(dict[str, msgspec.Raw])
_ARRAY = json_decoder(list[msgspec.Raw])
_ANY = json_decoder(msgspec.Raw)
_BEGINS = re.compile(r"^[ \t]*[\[{]", re.MULTILINE)

Fields = dict[str, bytes]
Elements = list[bytes]


def find_json(text: str) -> bytes | None:
    """The JSON that a text is, or contains after a heading; JSON lines become an array. None if
    there is none."""
    stripped = text.strip()
    whole = stripped.encode("utf-8", "replace")
    if stripped[:1] in ("{", "[") and _is_json(whole):
        return whole
    rows = [line for line in stripped.split("\n") if line.strip()]
    if len(rows) > 1 and all(row.lstrip()[:1] in ("{", "[") for row in rows):
        each = [row.strip().encode("utf-8", "replace") for row in rows]
        if all(map(_is_json, each)):
            return b"[" + b",".join(each) + b"]"
    begins = _BEGINS.search(stripped)
    ends = max(stripped.rfind("}"), stripped.rfind("]"))
    if begins and begins.end() <= ends:
        inner = stripped[begins.start() : ends + 1].encode("utf-8", "replace")
        return inner if _is_json(inner) else None
    return None


def fields(value: bytes) -> Fields | None:
    """An object's members; None if it is no object."""
    if not value.lstrip().startswith(b"{"):
        return None
    return {name: bytes(raw) for name, raw in _OBJECT.decode(value).items()}


def elements(value: bytes) -> Elements | None:
    """An array's elements; None if it is no array."""
    if not value.lstrip().startswith(b"["):
        return None
    return [bytes(raw) for raw in _ARRAY.decode(value)]


def shape(value: bytes) -> str:
    """A short description of a value."""
    inside = fields(value)
    if inside is not None:
        return f"object with {len(inside):,} keys"
    several = elements(value)
    return f"array of {len(several):,}" if several is not None else f"{len(value):,} characters"


def name_list(of: Sequence[str], most: int = 20) -> str:
    """The first `most` names and the number of the others."""
    return ", ".join(name[:60] for name in of[:most]) + (
        f" and {len(of) - most:,} more" if len(of) > most else ""
    )


def _is_json(value: bytes) -> bool:
    try:
        _ANY.decode(value)
    except (ValueError, RecursionError):
        return False
    return True
