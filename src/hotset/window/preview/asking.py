"""What a call asked for: its command, the files it names, and the words that what it brings should
be about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import msgspec

from hotset.text.stops import CALL
from hotset.text.words import humps
from hotset.window.preview.content import ContentOrigin

_LONGEST_ARGUMENTS = 16 * 1024
_LONGEST_COMMAND = 4 * 1024  # of a script, what it runs first tells enough
_COMMAND_KEYS = ("command", "cmd", "script", "input", "code")
_PATH_KEYS = (
    "file_path",
    "path",
    "filename",
    "file",
    "absolute_path",
    "target_file",
    "relative_workspace_path",
    "notebook_path",
)
_PATH = re.compile(r"[\w./~@+-]{0,200}\.[A-Za-z][A-Za-z0-9]{0,9}\b")
_PROGRAM = re.compile(
    r"(?:^|[;&|\n(]|\bxargs\b|\bthen\b|\bdo\b)[ \t]*"
    r"(?:\w+=\S*\s+|sudo\s+|time\s+|timeout\s+\S+\s+|npx\s+|rtk\s+|bundle\s+exec\s+|python3?\s+-m\s+)*"
    r"([\w./-]{1,80})(?:[ \t]+([\w./:-]{1,80}))?"
)
_WORD = re.compile(r"[A-Za-z_$][\w$]{2,79}")
_SECTION = 64  # characters of a word beyond which it is no name
_STEM = 0.4  # what a part of a name counts, against the name itself
_DIGITS = 4  # of a score: machines may disagree about the last ones, previews must not


@dataclass(frozen=True, slots=True)
class ToolQuery:
    """What a call was after."""

    command: str = ""
    """The shell command, where there is one."""
    paths: tuple[str, ...] = ()
    """Files that the call names."""
    words: frozenset[str] = frozenset()
    """Names as they are written."""
    stems: frozenset[str] = frozenset()
    """The parts of names, in lower case: what is left of a name when it is written another way."""
    room: int = 0
    """How many characters may be shown."""
    pointed: tuple[int, ...] = ()
    """Lines of the text that somebody pointed to, from 0."""

    def programs(self) -> list[tuple[str, str]]:
        """What the command runs: programs with their first argument, in order."""
        return [
            (name.rsplit("/", 1)[-1], argument or "")
            for name, argument in _PROGRAM.findall(self.command[:_LONGEST_COMMAND])
        ]


def asked(origin: ContentOrigin, room: int = 0) -> ToolQuery:
    """What the call's arguments and the words before it tell."""
    text = origin.arguments[:_LONGEST_ARGUMENTS].decode("utf-8", "replace")
    values = _arguments(text)
    command = next(
        (value for key in _COMMAND_KEYS if (value := values.get(key))), "" if values else text
    )
    named = [values[key] for key in _PATH_KEYS if values.get(key)]
    paths = (
        *named,
        *(path for path in _PATH.findall(command[:_LONGEST_COMMAND]) if not path.startswith("-")),
    )
    spoken = [
        word
        for value in (*values.values(), "" if values else text)
        for word in _WORD.findall(value)
    ]
    found = [word for piece in origin.sought for word in _WORD.findall(piece)]
    words = frozenset(word for word in (*spoken, *found) if word.lower() not in CALL)
    return ToolQuery(command, paths, words, frozenset(_stems(words)), room, origin.pointed)


def closeness(parts: Sequence[str], asked: ToolQuery) -> list[float]:
    """How near each part of a text is to what was asked for, from 0 to 1: rare words that it shares
    count most, and how often."""
    told = _telling(parts, asked)
    shared = [Counter([word for word in _WORD.findall(part) if word in told]) for part in parts]
    counts = Counter(
        key for found in shared for key in {key for word in found for key in told[word]}
    )
    rarity = {key: log((len(parts) + 1) / count) for key, count in counts.items()}
    scores = [_score(found, told, rarity, asked) if found else 0.0 for found in shared]
    best = max(scores, default=0.0)
    return [round(score / best, _DIGITS) for score in scores] if best > 0 else scores


def _telling(parts: Sequence[str], asked: ToolQuery) -> dict[str, tuple[str, ...]]:
    """The words of a text that tell how near it is: each with what it has in common with what was
    asked for."""
    told: dict[str, tuple[str, ...]] = {}
    for word in {word for part in parts for word in _WORD.findall(part)}:
        if word in asked.words:
            told[word] = (word,)
        elif keys := tuple(dict.fromkeys(stem for stem in _stems((word,)) if stem in asked.stems)):
            told[word] = keys
    return told


def _score(
    found: Counter[str],
    told: dict[str, tuple[str, ...]],
    rarity: dict[str, float],
    asked: ToolQuery,
) -> float:
    whole = sum(
        (1 + log(count)) * rarity[word] for word, count in found.items() if word in asked.words
    )
    stems = {key for word in found for key in told[word] if word not in asked.words}
    return whole + _STEM * sum(sorted(rarity[stem] for stem in stems))


def _arguments(text: str) -> dict[str, str]:
    """Arguments that are text, by name; empty where they are no JSON object."""
    try:
        decoded: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    if not isinstance(decoded, dict):
        return {}
    return {
        key: " ".join(map(str, value)) if isinstance(value, list) else value
        for key, value in decoded.items()
        if isinstance(value, str | list)
    }


def _stems(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        for hump in humps(name[:_SECTION]):
            stem = hump.lower()
            if len(stem) > 3 and stem not in CALL:
                yield stem
