"""Arguments as JSON has them, made into what a function's annotations ask for. Stdlib only, and for
older Pythons, too."""

from __future__ import annotations

import base64
import collections
import enum
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_UNIONS = (typing.Union, getattr(types, "UnionType", typing.Union))
_TRUTH = {"true": True, "false": False}
_DURATION = re.compile(
    r"(?P<sign>-?)P(?:(?P<weeks>[\d.]+)W)?(?:(?P<days>[\d.]+)D)?"
    r"(?:T(?:(?P<hours>[\d.]+)H)?(?:(?P<minutes>[\d.]+)M)?(?:(?P<seconds>[\d.]+)S)?)?"
)
_SHOWN = 80  # characters of a value that does not fit


class Unfit(Exception):
    """An argument that the function cannot take; the message says which one, and why."""


def kinds(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of its parameters; nothing where they cannot be known, as when they are imported
    for type checkers only."""
    try:
        return typing.get_type_hints(function)
    except Exception:
        # annotations are code, and may fail in any way; the function may work all the same
        return {}


def fitted(
    arguments: Mapping[str, Any],
    kinds: Mapping[str, Any],
    names: Iterable[str],
    required: Iterable[str],
) -> dict[str, Any]:
    """Raises `Unfit`. Null for something that has a default of its own is that default: models
    write it so."""
    names, required = list(names), list(required)
    if odd := [name for name in arguments if name not in names]:
        raise Unfit(f"there is no argument {odd[0]!r}; there are {', '.join(names) or 'none'}")
    if missing := [name for name in required if name not in arguments]:
        raise Unfit(f"{', '.join(map(repr, missing))} is missing")
    made = {}
    for name, value in arguments.items():
        try:
            made[name] = _fit(value, kinds.get(name, Any))
        except Unfit as error:
            if value is not None or name in required:
                raise Unfit(f"{name!r} {error}") from None
    return made


def _fit(value: Any, kind: Any) -> Any:  # noqa: C901, PLR0911 - one case a kind of type
    kind = getattr(
        kind, "__supertype__", getattr(kind, "__value__", kind)
    )  # NewType; `type X = ...`
    origin = typing.get_origin(kind) or kind
    parts = typing.get_args(kind)
    if origin in _UNIONS:
        return _fit_any(value, parts)
    if origin is typing.Literal:
        return _fit_literal(value, parts)
    if kind is None or kind is type(None):
        if value is not None:
            raise Unfit(_must("null", value))
        return None
    if not isinstance(origin, type) or origin is object:
        return value
    make = _PLAIN.get(origin) or _imported().get(origin)
    if make is not None:
        return make(value)
    if issubclass(origin, enum.Enum):
        return _fit_enum(value, origin)
    if _is_record(origin):
        return _fit_record(value, origin)
    if issubclass(origin, tuple):
        return _fit_tuple(value, parts)
    if issubclass(origin, collections.abc.Mapping):
        return _fit_mapping(value, origin, parts)
    if origin in _COLLECTIONS:
        return _COLLECTIONS[origin](
            _fit(each, parts[0] if parts else Any) for each in _as(list, "a list", value)
        )
    validate = getattr(origin, "model_validate", None)
    if callable(validate):
        return _tried(validate, value, f"an object that makes a {origin.__name__}")
    return value


def _fit_any(value: Any, kinds: tuple[Any, ...]) -> Any:
    """The value as the first type that takes it. One that takes it unchanged goes first, so that
    "5" stays text where text is allowed."""
    made = []
    for kind in kinds:
        try:
            made.append(_fit(value, kind))
        except Unfit:
            continue
    if not made:
        raise Unfit(_must(" or ".join(_name(kind) for kind in kinds), value))
    return next((each for each in made if type(each) is type(value) and each == value), made[0])


def _fit_literal(value: Any, wanted: tuple[Any, ...]) -> Any:
    for each in wanted:
        plain = each.value if isinstance(each, enum.Enum) else each
        if plain == value and type(plain) is type(value):
            return each
    for each in wanted:
        if not isinstance(value, (dict, list)) and str(value) == str(each):
            return each
    raise Unfit(_must(f"one of {', '.join(map(repr, wanted))}", value))


def _fit_enum(value: Any, kind: type[enum.Enum]) -> Any:
    for each in kind:
        if each.value == value or str(each.value) == str(value):
            return each
    if isinstance(value, str) and value in kind.__members__:
        return kind[value]
    raise Unfit(_must(f"one of {', '.join(repr(each.value) for each in kind)}", value))


def _is_record(kind: type) -> bool:
    return any(
        hasattr(kind, mark)
        for mark in ("__dataclass_fields__", "__attrs_attrs__", "__struct_fields__", "__total__")
    ) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))


def _fit_record(value: Any, kind: type) -> Any:
    """A dataclass, a record of attrs or msgspec, a named tuple, a TypedDict: from an object with
    its fields."""
    given = _as(dict, f"an object that makes a {kind.__name__}", value)
    inside = kinds(kind)
    made = {}
    for name, each in given.items():
        try:
            made[name] = _fit(each, inside.get(name, Any))
        except Unfit as error:
            raise Unfit(f"has a {name!r} that {error}") from None
    return _tried(lambda fields: kind(**fields), made, f"an object that makes a {kind.__name__}")


def _fit_tuple(value: Any, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    values = _as(list, "a list", value)
    if not parts:
        return tuple(values)
    if len(parts) == 2 and parts[1] is ...:
        return tuple(_fit(each, parts[0]) for each in values)
    if len(values) != len(parts):
        raise Unfit(_must(f"a list of {len(parts)}", value))
    return tuple(_fit(each, parts[at]) for at, each in enumerate(values))


def _fit_mapping(value: Any, kind: Any, parts: tuple[Any, ...]) -> Any:
    key, inside = parts if len(parts) == 2 else (Any, Any)
    made = {
        _fit(name, key): _fit(each, inside) for name, each in _as(dict, "an object", value).items()
    }
    return collections.OrderedDict(made) if kind is collections.OrderedDict else made


def _text(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return typing.cast("str", _as(str, "text", value))


def _number(value: Any) -> Any:
    """Models write numbers as text at times; anything else that Python would make a number of is
    none."""
    return (
        float(value)
        if type(value) in (int, float)
        else _tried(float, _as(str, "a number", value), "a number")
    )


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return (
        value
        if type(value) is int
        else _tried(int, _as(str, "a whole number", value), "a whole number")
    )


def _truth(value: Any) -> bool:
    if isinstance(value, str) and value.lower() in _TRUTH:
        return _TRUTH[value.lower()]
    return typing.cast("bool", _as(bool, "true or false", value))


def _bytes(value: Any) -> bytes:
    return typing.cast(
        "bytes",
        _tried(
            lambda text: base64.b64decode(text, validate=True), _as(str, "base64", value), "base64"
        ),
    )


def _duration(kind: Any) -> Callable[[Any], Any]:
    """Seconds, or as ISO 8601 writes it: PT1H30M."""

    def made(value: Any) -> Any:
        if type(value) in (int, float):
            return kind(seconds=value)
        what = "a duration as PT1H30M, or seconds"
        found = _DURATION.fullmatch(_as(str, what, value))
        if found is None or not any(found.groups()):
            raise Unfit(_must(what, value))
        parts = found.groupdict()
        sign = -1 if parts.pop("sign") else 1
        return sign * _tried(
            lambda given: kind(**{name: float(each) for name, each in given.items() if each}),
            parts,
            what,
        )

    return made


def _moment(what: str) -> Callable[[Any], Callable[[Any], Any]]:
    """Before 3.11 Python did not know that Z is UTC."""

    def of(kind: Any) -> Callable[[Any], Any]:
        return lambda value: _tried(
            lambda text: kind.fromisoformat(re.sub("[zZ]$", "+00:00", text)),
            _as(str, what, value),
            what,
        )

    return of


def _from_text(what: str) -> Callable[[Any], Callable[[Any], Any]]:
    return lambda kind: lambda value: _tried(kind, _as(str, what, value), what)


def _decimal(kind: Any) -> Callable[[Any], Any]:
    return lambda value: _tried(lambda given: kind(str(given)), value, "a decimal number")


def _path(_: Any) -> Callable[[Any], Any]:
    return _from_text("a path")(sys.modules["pathlib"].Path)


_PLAIN: dict[Any, Callable[[Any], Any]] = {
    str: _text,
    int: _whole,
    float: _number,
    bool: _truth,
    bytes: _bytes,
}
_IMPORTED: tuple[tuple[str, str, Callable[[Any], Callable[[Any], Any]]], ...] = (
    ("pathlib", "Path", _path),
    ("pathlib", "PurePath", _path),
    ("datetime", "datetime", _moment("a time as 2026-11-16T12:00:00Z")),
    ("datetime", "date", _moment("a date as 2026-11-16")),
    ("datetime", "time", _moment("a time of day as 12:00:00")),
    ("datetime", "timedelta", _duration),
    ("uuid", "UUID", _from_text("a UUID")),
    ("decimal", "Decimal", _decimal),
)


def _imported() -> dict[Any, Callable[[Any], Any]]:
    """Types of modules that are imported already: a script with such an annotation has imported
    them."""
    return {
        kind: made(kind)
        for module, name, made in _IMPORTED
        if (kind := getattr(sys.modules.get(module), name, None)) is not None
    }


_COLLECTIONS: dict[Any, Callable[[Any], Any]] = {
    list: list,
    set: set,
    frozenset: frozenset,
    collections.deque: collections.deque,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Collection: list,
    collections.abc.Iterable: list,
    collections.abc.Iterator: iter,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
}


def _as(kind: type, what: str, value: Any) -> Any:
    if not isinstance(value, kind):
        raise Unfit(_must(what, value))
    return value


def _tried(make: Callable[[Any], Any], value: Any, what: str) -> Any:
    try:
        return make(value)
    except Exception as error:  # a class of the skill may refuse in its own way
        raise Unfit(f"{_must(what, value)}: {error}") from None


def _must(what: str, value: Any) -> str:
    given = repr(value)
    return f"must be {what}, not {given if len(given) <= _SHOWN else given[:_SHOWN] + '...'}"


def _name(kind: Any) -> str:
    return "null" if kind is type(None) else getattr(kind, "__name__", str(kind))
