"""Which entries a filter accepts, decided on an entry or on an index's numbers for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import re2

from hotset.nouns.search import Entry, Filter, Sort

SORTS: Final = tuple(Sort)
"""In an index's own numbers."""

_GLOB = re.compile(r"[*?\[]|\{[^{}]*,[^{}]*\}")
_LONGEST_PATTERN = 4096  # as long as a path can be


@dataclass(frozen=True, slots=True)
class NumberFilter:
    """A filter in an index's own numbers; None is no condition, an empty set lets nothing
    through."""

    sorts: frozenset[int] | None = None
    kinds: frozenset[int] | None = None
    sessions: frozenset[int] | None = None
    agents: frozenset[int] | None = None
    paths: frozenset[int] | None = None
    turns: tuple[int, int] | None = None
    since: float | None = None
    until: float | None = None

    @property
    def sets(self) -> tuple[tuple[str, frozenset[int]], ...]:
        every = (
            ("sort", self.sorts),
            ("kind", self.kinds),
            ("session", self.sessions),
            ("agent", self.agents),
            ("path", self.paths),
        )
        return tuple((name, numbers) for name, numbers in every if numbers is not None)

    @property
    def nothing(self) -> bool:
        """No entry can fit."""
        return any(not numbers for _, numbers in self.sets)


def matches_filter(only: Filter, entry: Entry) -> bool:
    """Does every condition hold for this entry?"""
    return (
        (not only.sorts or entry.sort in only.sorts)
        and (not only.kinds or entry.kind in only.kinds)
        and (not only.sessions or entry.session in only.sessions)
        and (not only.agents or entry.agent in only.agents)
        and (only.turns is None or only.turns[0] <= entry.turn <= only.turns[1])
        and (only.since is None or only.since <= entry.time)
        and (only.until is None or entry.time < only.until)
        and (not only.path or path_matcher(only.path)(entry.path))
    )


@lru_cache(maxsize=64)
def path_matcher(wanted: str) -> Callable[[str], bool]:
    """A folder with all that is in it, a file, or a pattern: `*` and `?` stay in one folder, `**`
    does not, `{a,b}` is either.

    What has no slash in it is about names, in whichever folder: `a.py`, `*.py`, but not `./a.py` or
    `src/`. A file that is called like a pattern is found by its name.
    """
    anywhere = "/" not in wanted
    wanted = wanted.removeprefix("./").rstrip("/")
    inside = f"{wanted}/"
    if wanted in {"", "."}:
        return bool
    if len(wanted) > _LONGEST_PATTERN or not _GLOB.search(wanted):
        if anywhere:
            return lambda path: f"/{inside}" in f"/{path}/"
        return lambda path: path == wanted or path.startswith(inside)
    pattern = wanted if "/" in wanted else f"**/{wanted}"
    try:
        compiled = _compile_pattern(pattern)
    except re2.error:  # no pattern after all: `[` alone
        return lambda path: path == wanted or path.startswith(inside)
    return lambda path: path == wanted or compiled.fullmatch(_plain(path)) is not None


def _compile_pattern(pattern: str) -> re2._Regexp:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.dot_nl = True
    return re2.compile(_expression(_plain(pattern)), options)


def _expression(pattern: str) -> str:
    parts = []
    at = 0
    braces = _choices(pattern)
    while at < len(pattern):
        if pattern.startswith("**/", at):
            parts.append("(?:.*/)?")
            at += 3
        elif pattern.startswith("**", at):
            parts.append(".*")
            at += 2
        elif pattern[at] == "[" and (end := pattern.find("]", at + 2)) > 0:
            inside = pattern[at + 1 : end]
            negated = inside[0] in "!^"
            parts.append(f"[{'^/' if negated else ''}{_in_class(inside[negated:])}]")
            at = end + 1
        elif at in braces:
            parts.append({"{": "(?:", ",": "|", "}": ")"}[pattern[at]])
            at += 1
        else:
            parts.append({"*": "[^/]*", "?": "[^/]"}.get(pattern[at], re2.escape(pattern[at])))
            at += 1
    return "".join(parts)


def _choices(pattern: str) -> frozenset[int]:
    """Positions of the braces and commas of `{a,b}`; a brace without a comma, or without its other
    half, is a letter."""
    found: set[int] = set()
    open_ones: list[list[int]] = []
    for at, letter in enumerate(pattern):
        if letter == "{":
            open_ones.append([at])
        elif letter == "," and open_ones:
            open_ones[-1].append(at)
        elif letter == "}" and open_ones and len(places := open_ones.pop()) > 1:
            found.update((*places, at))
    return frozenset(found)


def _in_class(characters: str) -> str:
    return "".join(each if each == "-" else re2.escape(each) for each in characters)


def _plain(text: str) -> str:
    """RE2 reads UTF-8 alone; a path may hold what is none."""
    return text.encode("utf-8", "replace").decode()
