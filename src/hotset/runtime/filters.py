"""Filters of a search as a person, a program or a model writes them, and a model's calls with
them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hotset.errors import BadInput, Malformed
from hotset.nouns.page import Kind, including
from hotset.nouns.retrieval import Retrieval, Search
from hotset.nouns.search import Filter, Sort
from hotset.text.languages import LANGUAGES
from hotset.text.moments import parse_moment
from hotset.window.retrieval_tools import SEARCH, decode_arguments, parse_call, parse_session

RECORDS = ("reference", "checkpoint", "handoff")
"""Kinds of records."""

_OTHER_NAMES = {
    "user": "prompt",
    "user_prompt": "prompt",
    "user_message": "prompt",
    "assistant": "response",
    "agent_response": "response",
    "tool": "tool_result",
    "result": "tool_result",
    "call": "tool_call",
    "code_file": "file",
    "code": "file",
    "test": "test_result",
    "web": "web_fetch",
}
"""Kinds as models call them."""

_SPAN = re.compile(r"\s*(\d{1,9})?\s*(-)?\s*(\d{1,9})?\s*")
_FAR = 1 << 31


def parse_kinds(names: Iterable[str]) -> tuple[frozenset[str], frozenset[Sort]]:
    """Kinds of pages with their special cases, and languages; and the types that have them: every
    type if none is named. Raises `BadInput`."""
    kinds: set[str] = set()
    sorts: set[Sort] = set()
    for typed in names:
        name = re.sub(r"[\s-]+", "_", typed.lower())
        name = _OTHER_NAMES.get(name, name)
        if name in set(Kind):
            kinds |= {str(each) for each in including(Kind(name))}
            sorts.add(Sort.PAGE)
        elif name in RECORDS:
            kinds.add(name)
            sorts.add(Sort.RECORD)
        elif name in LANGUAGES:
            kinds.add(name)
            sorts.add(Sort.CODE)
        else:
            raise BadInput(
                f"{typed[:40]}: pages are {', '.join(Kind)}; records are {', '.join(RECORDS)}; "
                f"languages are {', '.join(LANGUAGES)}"
            )
    return frozenset(kinds), frozenset(sorts or Sort)


def parse_turns(typed: str) -> tuple[int, int]:
    """`12`, `12-20`, `12-` or `-20`: first and last turn. Raises `BadInput`."""
    found = _SPAN.fullmatch(typed)
    if found is None or not (found[1] or found[3]):
        raise BadInput(f"{typed[:40]}: use 12, 12-20, 12- or -20")
    first = int(found[1] or 1)
    last = int(found[3]) if found[3] else first if not found[2] else _FAR
    if last < first:
        raise BadInput(f"{typed[:40]}: the first comes after the last")
    return first, last


_NAMES = {
    "content_type": "type",
    "kind": "type",
    "types": "type",
    "agents": "agent",
    "session_id": "session",
    "scope": "session",
}
_FILTERS = ("type", "agent", "turns", "since", "until", "session")
_PAIR = re.compile(
    r"(\w+)\s*[=:]\s*"
    r"(\"[^\"]*\"|'[^']*'|[^\s;&,]+(?:,\s*(?!\w+\s*[=:])[^\s;&,]+)*)"
)
_MOST_CHARS = 1000  # of one filter


def read_call(name: str, arguments: bytes, now: float) -> Retrieval:
    """The request in a call of one of our tools, with the filters of a search: as arguments, or
    together in `only`. Raises `Malformed` with a sentence for the model."""
    call = parse_call(name, arguments)
    if not isinstance(call, Search):
        return call
    given = _given_filters(decode_arguments(name, arguments, ""))
    session = parse_session(given.get("session", ""))
    try:
        return replace(call, session=session, only=_filter(given, now))
    except BadInput as error:
        raise Malformed(f"{SEARCH}: {error}") from None


def _given_filters(given: Mapping[str, Any]) -> dict[str, str]:
    """Filters by name, however a model writes them: `type=file since=2d`, an object, or
    arguments of their own, which win."""
    together = given.get("only") or given.get("filter") or given.get("filters") or {}
    if not isinstance(together, Mapping):
        typed = _joined(together)[:_MOST_CHARS]
        together = {pair[1]: pair[2].strip("\"',") for pair in _PAIR.finditer(typed)}
        if typed.strip() and not together:
            raise Malformed(f'{SEARCH}: only must be like "type=file,prompt since=2d"')
    unknown = sorted({_plain(key) for key in together} - {*_FILTERS})
    if unknown:
        raise Malformed(f"{SEARCH}: no filter {unknown[0][:40]!r}; filters: {', '.join(_FILTERS)}")
    pairs = (*together.items(), *given.items())
    found = {_plain(key): _joined(value).strip() for key, value in pairs if value}
    return {key: found[key] for key in _FILTERS if found.get(key)}


def _plain(name: str) -> str:
    return _NAMES.get(name.lower(), name.lower())


def _joined(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _filter(given: Mapping[str, str], now: float) -> Filter:
    """Raises `BadInput`."""
    several = {
        key: [name for each in given.get(key, "").split(",") if (name := each.strip())]
        for key in ("type", "agent")
    }
    kinds, sorts = parse_kinds(each for each in several["type"] if each not in ("any", "all"))
    if kinds and sorts != {Sort.PAGE}:
        raise BadInput(f"types are {', '.join(Kind)}")
    return Filter(
        kinds=kinds,
        agents=frozenset(several["agent"]),
        turns=parse_turns(given["turns"]) if "turns" in given else None,
        since=parse_moment(given["since"], now) if "since" in given else None,
        until=parse_moment(given["until"], now) if "until" in given else None,
    )
