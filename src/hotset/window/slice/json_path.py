"""Values of a JSON text by a path: `$.a.b[3]`, `[*]`, `[1:5]`, `['key']`, `..name`. The values come
back as they were written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from hotset.window.slice.fit import Count, Cut, clipped, fits, fitting
from hotset.window.slice.json_text import document, elements, fields, names, shape
from hotset.window.slice.lines import rest_of

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
_MOST_VALUES = 1000  # what a path may find: about as many as fit into the largest answer


@dataclass(frozen=True, slots=True)
class _Step:
    name: str | None = None
    bounds: tuple[int | None, int | None] | None = None
    """Of a slice of an array; (None, None) is all of it, and all members of an object."""
    index: int | None = None
    deep: bool = False
    """At any depth below."""


@dataclass(frozen=True, slots=True)
class _Value:
    path: str
    raw: bytes


class _NoSuchPath(Exception):
    """Says what is there instead."""


def by_path(text: str, path: str, room: int, count: Count) -> Cut:
    whole = document(text)
    if whole is None:
        return Cut(
            "", whole=False, note="this is not JSON; ask with lines, regex, symbol or question"
        )
    path = path.strip()
    path = path if path.startswith("$") else f"${'' if path[:1] in ('.', '[') else '.'}{path}"
    try:
        found = _walk(_Value("$", whole), _steps(path))
    except _NoSuchPath as reason:
        return Cut("", whole=False, note=str(reason))
    if len(found) == 1:
        return _one(text, found[0], room, count)
    return _several(found, path, room, count)


def _steps(path: str) -> tuple[_Step, ...]:
    rest = path.removeprefix("$")
    steps = []
    at = 0
    while at < len(rest):
        match = _STEP.match(rest, at)
        if match is None or match.end() == at:
            raise _NoSuchPath(
                f"cannot read the path at {rest[at : at + 20]!r}; write it like "
                f"$.items[0:5].name or $['a key'][*]"
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
            raise _NoSuchPath(_nothing(values, step))
        values = following
    return values


def _below(value: _Value, step: _Step, depth: int = 0) -> Iterator[_Value]:
    """A value and all below it, as far as what is looked for can be there."""
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
            yield _Value(f"{value.path}{_written(step.name)}", inside[step.name])
        elif step.bounds is not None:
            members = list(inside.items())[slice(*step.bounds)]
            yield from (_Value(f"{value.path}{_written(name)}", raw) for name, raw in members)
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


def _written(name: str) -> str:
    return f".{name}" if re.fullmatch(r"[^\W\d][\w-]*", name) else f"['{name}']"


def _nothing(values: Sequence[_Value], step: _Step) -> str:
    """What stands there instead of what was asked for."""
    at = values[0]
    wanted = step.name if step.name is not None else "such element"
    inside = fields(at.raw)
    if inside is not None:
        return f"no {wanted} in {at.path}; its keys: {names(list(inside)) or 'none'}"
    several = elements(at.raw)
    if several is None:
        return f"no {wanted} in {at.path}: it is {at.raw[:60].decode('utf-8', 'replace')}"
    keys = fields(several[0]) if several else None
    first = f"; the keys of its first: {names(list(keys))}" if keys else ""
    return f"no {wanted} in {at.path}: it is an array of {len(several):,}{first}"


def _one(text: str, value: _Value, room: int, count: Count) -> Cut:
    raw = value.raw.decode("utf-8", "replace")
    if fits(raw, room, count):
        return Cut(raw, whole=True, note=f"{value.path}: all of it")
    several = elements(value.raw)
    if several is not None:
        return _several(
            [_Value(f"{value.path}[{at}]", raw) for at, raw in enumerate(several)],
            f"{value.path}[*]",
            room,
            count,
        )
    inside = fields(value.raw)
    if inside is not None:
        return _members(value.path, inside, room, count)
    part = clipped(raw, room, count)
    note = (
        f"{value.path}: the first {len(part):,} of {len(raw):,} characters; "
        f"{rest_of(text, raw, len(part))} for the rest"
    )
    return Cut(part, whole=False, note=note)


def _several(values: Sequence[_Value], path: str, room: int, count: Count) -> Cut:
    lines = [f"{value.path}: {value.raw.decode('utf-8', 'replace')}\n" for value in values]
    kept = fitting(lines, room, count)
    many = f"{len(lines):,}{'' if len(lines) < _MOST_VALUES else ' or more'}"
    if kept == len(lines):
        return Cut(
            "".join(lines).removesuffix("\n"),
            whole=len(lines) < _MOST_VALUES,
            note=f"{many} values",
        )
    if kept == 0:
        part = clipped(lines[0], room, count)
        note = (
            f"the first {len(part):,} characters of the first of {many} values; "
            f'path="{values[0].path}" for it'
        )
        return Cut(
            part, whole=False, note=f'{note}; path="{_from(path, values, 1)}" for the others'
        )
    note = (
        f"value{'s 1-' if kept > 1 else ' '}{kept:,} of {many}; "
        f'path="{_from(path, values, kept)}" for more'
    )
    return Cut("".join(lines[:kept]).removesuffix("\n"), whole=False, note=note)


def _from(path: str, values: Sequence[_Value], kept: int) -> str:
    """The path that goes on behind the first values: its only slice from there on; the next value
    where it has several."""
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


def _members(path: str, inside: dict[str, bytes], room: int, count: Count) -> Cut:
    """An object's members in order, the large ones by their shape."""
    share = max(8, room // 4)
    lines = []
    for name, raw in inside.items():
        text = raw.decode("utf-8", "replace")
        whole = fits(text, share, count)
        lines.append(f"{path}{_written(name)}: {text if whole else f'({shape(raw)})'}\n")
    kept = fitting(lines, room, count)
    first = f"{path}{_written(next(iter(inside)))}"
    note = (
        f"{path}: {kept:,} of {len(lines):,} members, large ones by "
        f'their shape; path="{first}" '
        f"for one of them"
    )
    if kept < len(lines):
        note += f', path="{path}[{kept}:]" for more'
    return Cut("".join(lines[:kept]).removesuffix("\n"), whole=False, note=note)
