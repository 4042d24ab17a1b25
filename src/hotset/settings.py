"""What `[window]`, `[alerts]`, `[tools]` and `[memory]` of the user's file may say, each value checked as it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from math import inf
from pathlib import Path
from typing import Any

from hotset.errors import BadConfig
from hotset.nouns.alert import THRESHOLDS
from hotset.nouns.knobs import NEVER, Knobs, Limit, Prefetch, Prefetching
from hotset.nouns.page import Kind
from hotset.nouns.profiles import POLICY_NAMES
from hotset.nouns.remembering import Remembering
from hotset.nouns.tool import Deferring, Tooling

_KNOBS = {each.name: str(each.type) for each in fields(Knobs) if each.name != "window"}
"""What `[window]` may say of the knobs, by type; the window's own size is `budget`."""

_TOOLING = {each.name: str(each.type) for each in fields(Tooling)}
_REMEMBERING = {each.name: str(each.type) for each in fields(Remembering)}
_SHARES = ("high", "low")
_AT_LEAST_ONE_OF = ("keep", "patience", "limit")


def knobs_in(table: Mapping[str, Any], path: Path, *, beside: Sequence[str]) -> dict[str, Any]:
    """The knobs that `[window]` sets, by name; `beside` are the settings in it that are no knobs. Raises `BadConfig`."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        if name in _KNOBS:
            found[name] = _READERS[_KNOBS[name]](name, value, f"[window] in {path}")
        elif name not in beside:
            raise BadConfig(f"[window] in {path} cannot say {name!r}; it can say {', '.join((*beside, *_KNOBS))}")
    return found


def checked(knobs: Knobs, path: Path) -> None:
    """Raises `BadConfig` where knobs contradict each other."""
    if knobs.low > knobs.high:
        raise BadConfig(
            f"[window] in {path}: low ({knobs.low:g}), what stays when pages leave, must not be above high ({knobs.high:g}), "
            "at which they leave"
        )


def thresholds_in(table: Mapping[str, Any], path: Path) -> dict[str, float]:
    """The thresholds that `[alerts]` sets, by name; `false` is none. Raises `BadConfig`."""
    for name in table:
        if name not in THRESHOLDS:
            raise BadConfig(f"[alerts] in {path} cannot say {name!r}; it can say {', '.join(THRESHOLDS)}")
    origin = f"[alerts] in {path}"
    return {name: THRESHOLDS[name].never if value is False else _number(name, value, origin) for name, value in table.items()}


def tooling_in(table: Mapping[str, Any], path: Path) -> Tooling:
    """What `[tools]` says. Raises `BadConfig`."""
    origin = f"[tools] in {path}"
    for name in table:
        if name not in _TOOLING:
            raise BadConfig(f"{origin} cannot say {name!r}; it can say {', '.join(_TOOLING)}")
    return Tooling(**{name: _READERS[_TOOLING[name]](name, value, origin) for name, value in table.items()})


def remembering_in(table: Mapping[str, Any], path: Path) -> Remembering:
    """What `[memory]` says. Raises `BadConfig`."""
    origin = f"[memory] in {path}"
    for name in table:
        if name not in _REMEMBERING:
            raise BadConfig(f"{origin} cannot say {name!r}; it can say {', '.join(_REMEMBERING)}")
    return Remembering(**{name: _READERS[_REMEMBERING[name]](name, value, origin) for name, value in table.items()})


def _number(name: str, value: object, origin: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
        raise BadConfig(f"{name} of {origin} must be a number from 0 up, not {value!r}")
    if name in _SHARES and value > 1:
        raise BadConfig(f"{name} of {origin} is a share of the window, from 0 to 1, not {value!r}")
    return float(value)


def _whole_number(name: str, value: object, origin: str) -> int:
    least = 1 if name in _AT_LEAST_ONE_OF else 0
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadConfig(f"{name} of {origin} must be a whole number from {least} up, not {value!r}")
    return value


def _truth(name: str, value: object, origin: str) -> bool:
    if not isinstance(value, bool):
        raise BadConfig(f"{name} of {origin} must be true or false, not {value!r}")
    return value


def _texts(name: str, value: object, origin: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise BadConfig(f'{name} of {origin} must be a list of texts, such as ["github__*"], not {value!r}')
    return tuple(value)


def _policy(name: str, value: object, origin: str) -> str:
    if value not in POLICY_NAMES:
        raise BadConfig(f"{name} of {origin} must be one of {', '.join(POLICY_NAMES)}, not {value!r}")
    return str(value)


def _limit(name: str, value: object, origin: str) -> Limit:
    """`{over = 3000, room = 2000}`; `{over = 0}` never shortens."""
    given = value if isinstance(value, dict) and set(value) <= {"over", "room"} and "over" in value else None
    if given is None:
        raise BadConfig(f"{name} of {origin} must look like {{over = 3000, room = 2000}}, in characters, not {value!r}")
    over = _whole_number(f"{name}.over", given["over"], origin)
    if not over:
        return NEVER
    if "room" not in given:
        example = f"{{over = {over}, room = {max(1, over * 2 // 3)}}}"
        raise BadConfig(f"{name} of {origin} must also say its room, how long what is shown may be: {example}, in characters")
    room = _whole_number(f"{name}.room", given["room"], origin)
    if not 1 <= room <= over:
        raise BadConfig(f"{name}.room of {origin} must be from 1 to {over}, which is its over, not {room}")
    return Limit(over, room)


def _limits_of_kinds(name: str, value: object, origin: str) -> dict[Kind, Limit]:
    return {_kind(kind, f"{name} of {origin}"): limit for kind, limit in _limits_of_tools(name, value, origin).items()}


def _limits_of_tools(name: str, value: object, origin: str) -> dict[str, Limit]:
    if not isinstance(value, dict):
        raise BadConfig(f"{name} of {origin} must be a table: [window.{name}]")
    return {each: _limit(f"{name}.{each}", limit, origin) for each, limit in value.items()}


def _kinds(name: str, value: object, origin: str) -> frozenset[Kind]:
    if not isinstance(value, list):
        raise BadConfig(f'{name} of {origin} must be a list of kinds like ["plan"], not {value!r}')
    return frozenset(_kind(each, f"{name} of {origin}") for each in value)


def _kind(value: object, origin: str) -> Kind:
    try:
        return Kind(str(value))
    except ValueError:
        raise BadConfig(f"{origin} knows the kinds {', '.join(Kind)}, not {value!r}") from None


def _prefetch(name: str, value: object, origin: str) -> Prefetch:
    """`"hints"`, or a table: `{mode = "on", excerpt = 0.8}`."""
    given = {"mode": value} if isinstance(value, str) else value
    known = {each.name: str(each.type) for each in fields(Prefetch)}
    if not isinstance(given, dict) or not set(given) <= set(known):
        raise BadConfig(f"{name} of {origin} must be off, hints or on, or a table of {', '.join(known)}, not {value!r}")
    read: dict[str, Any] = {each: _PREFETCH_READERS[known[each]](f"{name}.{each}", told, origin) for each, told in given.items()}
    return Prefetch(**read)


def _prefetching(name: str, value: object, origin: str) -> Prefetching:
    if value not in tuple(Prefetching):
        raise BadConfig(f"{name} of {origin} must be one of {', '.join(Prefetching)}, not {value!r}")
    return Prefetching(str(value))


def _deferring(name: str, value: object, origin: str) -> Deferring:
    if value not in tuple(Deferring):
        raise BadConfig(f"{name} of {origin} must be one of {', '.join(Deferring)}, not {value!r}")
    return Deferring(str(value))


def _at_most_one(name: str, value: object, origin: str) -> float:
    if (number := _number(name, value, origin)) > 1:
        raise BadConfig(f"{name} of {origin} must be from 0 to 1, not {value!r}")
    return number


_PREFETCH_READERS: Mapping[str, Callable[[str, object, str], Any]] = {
    "Prefetching": _prefetching,
    "float": _at_most_one,
    "int": _whole_number,
    "bool": _truth,
}

_READERS: Mapping[str, Callable[[str, object, str], Any]] = {
    "int": _whole_number,
    "float": _number,
    "bool": _truth,
    "str": _policy,
    "Prefetch": _prefetch,
    "Deferring": _deferring,
    "Limit": _limit,
    "Mapping[Kind, Limit]": _limits_of_kinds,
    "Mapping[str, Limit]": _limits_of_tools,
    "frozenset[Kind]": _kinds,
    "tuple[str, ...]": _texts,
}
"""How a knob is read from TOML, by its type."""
