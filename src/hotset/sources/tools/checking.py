"""A call's arguments against its tool's schema: a model hears what is wrong, and the schema, before anything runs.

A schema is its server's word, and can be hostile. It may not fetch anything, point out of itself, make a regular expression
backtrack for long, or be so large or intertwined that checking takes noticeable time. Such a schema is not checked, and the call
goes to the server, which checks itself.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from hotset.nouns.tool import Tool
from hotset.sources.tools.arguments import read_arguments, read_call, shown
from hotset.sources.tools.bounding import MOST_WORK, Unbounded, extent, work
from hotset.sources.tools.compact import compact

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

__all__ = ["check", "compact", "read_arguments", "read_call"]

_LARGEST_SCHEMA = 256 * 1024  # bytes; the largest of 228 tools of 21 public servers has 6 kB
_BACKTRACKS = 10_000  # of one regular expression with look-around; all others take linear time
_REGEX_BYTES = 1 << 20
_MOST_LINES = 8
_MOST_CHOICES = 20
_LONGEST = 240  # characters of a place or a sentence of the library's
_SCHEMAS_FAULT = frozenset({"BacktrackLimitExceeded", "RegexEngineFailure", "Referencing"})

_LIMITS = {
    "minimum": "be at least {}",
    "maximum": "be at most {}",
    "exclusiveMinimum": "be more than {}",
    "exclusiveMaximum": "be less than {}",
    "multipleOf": "be a multiple of {}",
    "minLength": "have at least {} characters",
    "maxLength": "have at most {} characters",
    "minItems": "have at least {} items",
    "maxItems": "have at most {} items",
    "pattern": "match {}",
}

_Wrong = Callable[[Mapping[str, Any]], list[str]]
"""What is wrong with arguments, line by line."""


def check(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Empty where they fit, or cannot be checked; otherwise what is wrong, line by line, and how the tool is called."""
    look = _compiled(tool.parameters)
    wrong = look(arguments) if look else []
    if not wrong:
        return ""
    more = [f"... and {len(wrong) - _MOST_LINES} more"] if len(wrong) > _MOST_LINES else []
    return "\n".join([*wrong[:_MOST_LINES], *more, f"It is called so: {compact(tool)}"])


@lru_cache(128)
def _compiled(parameters: bytes) -> _Wrong | None:
    """None where the schema cannot be checked."""
    if len(parameters) > _LARGEST_SCHEMA:
        return None
    import jsonschema_rs  # noqa: PLC0415 - 30 ms that only the first call of a tool pays

    regexes = jsonschema_rs.FancyRegexOptions(_BACKTRACKS, _REGEX_BYTES, _REGEX_BYTES)
    try:
        schema = msgspec.json.decode(parameters)
        if not isinstance(schema, dict):
            return None
        work(schema, 1)
        validator = jsonschema_rs.validator_for(schema, offline=True, validate_formats=False, mask="it", pattern_options=regexes)
    except (msgspec.MsgspecError, ValueError, RecursionError, Unbounded):
        return None

    def wrong(arguments: Mapping[str, Any]) -> list[str]:
        try:
            parts, depth = extent(arguments)
            if parts * work(schema, depth) > MOST_WORK:
                return []
            errors = list(islice(validator.iter_errors(dict(arguments)), 4 * _MOST_LINES))
        except (ValueError, TypeError, RecursionError, Unbounded):  # not only JSON in it, or too much of it
            return []
        lines = list(dict.fromkeys(line for error in errors for line in _lines(error, schema)))
        return [*lines, *_misspelt(arguments, schema, lines)] if lines else []

    return wrong


def _lines(error: ValidationError, schema: Mapping[str, Any]) -> Iterator[str]:
    """One thing that is wrong, as a model should hear it."""
    if type(error.kind).__name__ in _SCHEMAS_FAULT:
        return
    at, told = _place(error.instance_path), error.kind.value
    match error.kind.name:
        case "required":
            yield f"{_place([*error.instance_path, told])}: required and missing"
        case "additionalProperties" | "unevaluatedProperties" if isinstance(error.instance, dict):
            known = [each for each in _known(schema, error) if each not in error.instance]
            yield from (f"{f'{at}: ' if error.instance_path else ''}{_unknown(each, known)}" for each in told)
        case "type":
            yield f"{at}: must be {' or '.join(map(_a, told))}, not {shown(error.instance)}"
        case "enum":
            yield f"{at}: must be one of {', '.join(map(shown, told[:_MOST_CHOICES]))}, not {shown(error.instance)}"
        case "const":
            yield f"{at}: must be {shown(told)}, not {shown(error.instance)}"
        case "anyOf" | "oneOf" if isinstance(told, list):
            yield from _of_forms(error, told, schema)
        case word if word in _LIMITS:
            yield f"{at}: must {_LIMITS[word].format(shown(told))}, not {shown(error.instance)}"
        case _:
            yield f"{at}: {error.message[:_LONGEST]}"


def _of_forms(error: ValidationError, forms: Sequence[Sequence[ValidationError]], schema: Mapping[str, Any]) -> Iterator[str]:
    """Of several forms none fits: the types where only these differ, otherwise what the nearest form lacks."""
    at = _place(error.instance_path)
    if not all(forms):
        yield f"{at}: fits several of the forms of which it must have one"
    elif all(_is_type(form[0]) and form[0].instance_path == error.instance_path for form in forms):
        types = dict.fromkeys(kind for form in forms for kind in form[0].kind.value)
        yield f"{at}: must be {' or '.join(map(_a, types))}, not {shown(error.instance)}"
    else:
        for each in min(forms, key=_distance):
            yield from _lines(each, schema)


def _distance(form: Sequence[ValidationError]) -> tuple[bool, int, int]:
    """A form of another type is farthest; one that fails deep inside is nearest."""
    return _is_type(form[0]), -max(len(each.instance_path) for each in form), len(form)


def _is_type(error: ValidationError) -> bool:
    return error.kind.name == "type"


def _known(schema: Mapping[str, Any], error: ValidationError) -> tuple[str, ...]:
    """The arguments that there are where one was unknown."""
    here: Any = schema
    for step in error.schema_path[:-1]:
        here = here.get(step) if isinstance(here, dict) else None
    found = here.get("properties") if isinstance(here, dict) else None
    return tuple(found) if isinstance(found, dict) else ()


def _misspelt(arguments: Mapping[str, Any], schema: Mapping[str, Any], lines: Sequence[str]) -> Iterator[str]:
    """Where something is wrong anyway: arguments that the schema lets pass, and that were probably meant to be others."""
    properties = schema.get("properties")
    known = tuple(properties) if isinstance(properties, dict) else ()
    missing = [each for each in known if each not in arguments]
    for name in arguments:
        line = _unknown(name, missing)
        if name not in known and "did you mean" in line and line not in lines:
            yield line


def _unknown(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"unknown argument {shown(name)}{f' (did you mean {near[0]}?)' if near else ''}"


def _place(path: Sequence[str | int]) -> str:
    told = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    return told[:_LONGEST] or "arguments"


def _a(kind: str) -> str:
    return kind if kind == "null" else f"an {kind}" if kind[0] in "aio" else f"a {kind}"
