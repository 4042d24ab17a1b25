"""What changed between two versions of a text, for a reader who has the older one before them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

_MOST_COMPARED = 400_000  # characters
# lines between the first and the last difference; more is another text, not another version
_MOST_CHANGED = 600
_CONTEXT = 2
_NUMBERED = re.compile(r"^\s*\d+(?:→|\t| {2}|:|\|)")


def changes(before: str, text: str) -> str:
    """A unified difference; empty where there is none, or where it would tell of another text.

    Line numbers that a tool printed are no part of a line: an insertion would change all behind it.
    """
    if len(before) > _MOST_COMPARED or len(text) > _MOST_COMPARED:
        return ""
    return "\n".join(_difference(before.splitlines(), text.splitlines()))


def _difference(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    bare_old, bare_new = [_bare(line) for line in old], [_bare(line) for line in new]
    start = _common(bare_old, bare_new)
    end = _common(bare_old[start:][::-1], bare_new[start:][::-1])
    old_end, new_end = len(old) - end, len(new) - end
    if max(old_end, new_end) - start > _MOST_CHANGED or old_end == start == new_end:
        return
    matcher = difflib.SequenceMatcher(
        None, bare_old[start:old_end], bare_new[start:new_end], autojunk=False
    )
    yield from _marked(new[max(0, start - _CONTEXT) : start], " ")
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from _unchanged(new, start + c, start + d)
        else:
            yield from _marked(old[start + a : start + b], "-")
            yield from _marked(new[start + c : start + d], "+")
    yield from _marked(new[new_end : new_end + _CONTEXT], " ")


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines at the front are the same."""
    return next(
        (index for index, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )


def _unchanged(new: Sequence[str], first: int, last: int) -> Iterator[str]:
    if last - first <= 2 * _CONTEXT + 1:
        yield from _marked(new[first:last], " ")
        return
    yield from _marked(new[first : first + _CONTEXT], " ")
    yield f"… lines {first + _CONTEXT + 1}-{last - _CONTEXT}: unchanged …"
    yield from _marked(new[last - _CONTEXT : last], " ")


def _marked(lines: Sequence[str], mark: str) -> Iterator[str]:
    for line in lines:
        yield mark + line


def _bare(line: str) -> str:
    return _NUMBERED.sub("", line)
