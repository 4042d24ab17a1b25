"""Errors that a question quotes, compared with those that episodes and pitfalls know. Pure.

An error comes again with other paths, numbers, addresses and names; the words around them stay.
"""

from __future__ import annotations

import builtins
import re

from hotset.nouns.memory import Episode, MemoryRecord, Pitfall, Trouble
from hotset.text.stops import QUESTION

LEAST_MATCH = 0.6
"""Of an error's words: from here on it counts as the same error."""

_ERROR = re.compile(
    r"[A-Z]\w*(?:Error|Exception|Failure|Fault|Interrupt|Warning)\b|\berror\s*(?::|\[|TS\d|\d)"
    r"|\bE[A-Z]{4,}\b|\blint/\w+|\b(?:fatal|panic|err!|abort(?:ed)?)\b\s*:?|\bexit(?:ed)? "
    r"(?:with )?(?:code|status)\b"
    r"|(?i:\b(?:not found|no such|denied|refused|timed? ?out|cannot|can't|could not|couldn't|"
    r"unable to|failed to|undefined|unrecogni[sz]ed|unknown|unexpected|invalid|missing|no module|"
    r"is not (?:a|an|defined|callable|installed|assignable)|does not exist|doesn't exist|"
    r"already (?:exists|in use)|out of memory|segmentation fault|deadlock|assert(?:ion)? ))"
)
_VALUE = re.compile(
    r"'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`"
    r"|[\w~.@+-]*/[\w./@~+:-]+|\b[\w-]+\.(?:py|js|ts|tsx|jsx|go|rs|java|rb|c|h|cpp|json|toml|ya?ml)\b"
    r"|\b0x[0-9a-f]+\b|\b(?=\w*\d)[0-9a-f-]{7,}\b|\b\d[\w.:]*",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_][\w-]*")
_MOST_LINES = 3
_LONGEST_LINE = 300
_FEWEST_WORDS = 3
_CODE = re.compile(r"\b(?:[A-Z]{1,6}\d{2,5}|E[A-Z]{4,}|[A-Z]\w*(?:Error|Exception))\b")
_ANY_PROGRAM = frozenset(dir(builtins)) | {"ERROR", "AssertionError"}
_SAME_CODE = 0.8
_UNRESOLVED = 0.8  # of a match: what resolved it is wanted


def quoted_error(query: str) -> str:
    """The lines of a question that sound like an error; empty if there are none."""
    lines = (line.strip()[:_LONGEST_LINE] for line in query.splitlines())
    return "\n".join([line for line in lines if _ERROR.search(line)][-_MOST_LINES:])


def error_words(text: str) -> frozenset[str]:
    """The words of an error without its paths, numbers, addresses and quoted names."""
    return _words(_VALUE.sub(" ", text))


def error_codes(text: str) -> frozenset[str]:
    """Names of errors that say by themselves what went wrong: `TS2322`, `ERESOLVE`, `HTTPError`.
    Those of any program (`ValueError`) do not."""
    return frozenset(_CODE.findall(text)) - _ANY_PROGRAM


def matching_trouble(memory: MemoryRecord, error: str) -> tuple[float, Trouble | None]:
    """How much of a known error's words the quoted one has, and the trouble of an episode that
    matches best."""
    asked = _words(error) | error_words(error)
    codes = error_codes(error)
    match memory.detail:
        case Episode(troubles=troubles):
            found = [
                (_likeness((f"{each.kind} {each.said}",), asked, codes) * _resolution(each), at)
                for at, each in enumerate(troubles)
            ]
            best, at = max(found, default=(0.0, -1))
            return best, troubles[at] if best else None
        case Pitfall(what=what, why=why):
            return _likeness((why, f"{what} {why}", memory.title), asked, codes), None
    return 0.0, None


def trouble_line(trouble: Trouble) -> str:
    """An error and what resolved it, in a line."""
    end = f"resolved by {'; '.join(trouble.resolved)}" if trouble.resolved else "resolved later"
    kind = "" if trouble.kind in trouble.said else f"{trouble.kind}: "
    return f"{kind}{trouble.said} ({end if trouble.is_resolved else 'not resolved'})"


def text_with_resolution(memory: MemoryRecord, error: str) -> str:
    """A memory's text, with what resolved the quoted error where its episode met it."""
    found, trouble = matching_trouble(memory, error) if error else (0.0, None)
    if trouble is None or found < LEAST_MATCH:
        return memory.text
    return f"{memory.text}\nThe same error: {trouble_line(trouble)}."


def _likeness(known: tuple[str, ...], asked: frozenset[str], codes: frozenset[str]) -> float:
    """The best share of words; a common code is enough where little else is known of the error."""
    shares = [_share(part, asked) for part in known]
    is_coded = any(codes & error_codes(part) for part in known)
    return max(*shares, _SAME_CODE if is_coded and not any(shares) else 0.0)


def _share(known: str, asked: frozenset[str]) -> float:
    words = error_words(known)
    return len(words & asked) / len(words) if len(words) >= _FEWEST_WORDS else 0.0


def _resolution(trouble: Trouble) -> float:
    return 1.0 if trouble.is_resolved else _UNRESOLVED


def _words(text: str) -> frozenset[str]:
    words = (word.lower() for word in _WORD.findall(text))
    return frozenset(word for word in words if word not in _UNTELLING)


_UNTELLING = QUESTION - {"no", "not"} | {
    *("says", "data", "instruction", "fails", "error", "exit", "run", "failed"),
}
"""Also the words that pitfalls put around an error."""
