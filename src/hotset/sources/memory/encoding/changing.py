"""What an edit changed, in one line: what stood there, and what stands there now. Pure.

The words are those of the agent that edited. What others wrote before, an order and what no rule recommends are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from hotset.sources.memory.encoding.taint import LEAST_SENTENCE, Outside, is_dangerous, is_order, quoted

_LONGEST = 70  # characters of a side
_SHORTEST = 3
_BEFORE = ("old_string", "old_str", "old_text", "oldText", "search", "old")
_AFTER = ("new_string", "new_str", "new_text", "newText", "replace", "new")
_SED = re.compile(r"\bs([/|#@,])((?:\\.|(?!\1).){2,200})\1((?:\\.|(?!\1).){0,200})\1")


def change_of(call: str, place: int, others: Outside) -> str:
    """Of an edit's call, `place` in the line; empty where it does not say, or not in words of its own."""
    old, new = _sides(call)
    if len(new) < _SHORTEST or _is_not_its_own(new, place, others):
        return ""
    told = quoted(new, _LONGEST)
    if not told:
        return ""
    before = quoted(old, _LONGEST) if len(old) >= _SHORTEST and not _is_doubtful(old) else ""
    return f"'{before}' became '{told}'" if before else f"added '{told}'"


def decoded(text: str) -> Mapping[str, Any]:
    """The arguments of a call; none where they are no JSON."""
    try:
        value = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _sides(call: str) -> tuple[str, str]:
    """The first line that differs, as it was and as it is."""
    arguments = decoded(call)
    old = next((value for name in _BEFORE if isinstance(value := arguments.get(name), str)), None)
    new = next((value for name in _AFTER if isinstance(value := arguments.get(name), str)), None)
    if old is not None and new is not None:
        return _first_difference(old.splitlines(), new.splitlines())
    text = " ".join(value for value in arguments.values() if isinstance(value, str)) if arguments else call
    if "*** " in text:
        lines = text.splitlines()
        return _first_difference(
            [line[1:] for line in lines if line.startswith("-")], [line[1:] for line in lines if line.startswith("+")]
        )
    swapped = _SED.search(text)
    return (swapped.group(2), swapped.group(3)) if swapped else ("", "")


def _first_difference(old: list[str], new: list[str]) -> tuple[str, str]:
    before, after = {line.strip() for line in old}, {line.strip() for line in new}
    gone = [line.strip() for line in old if line.strip() and line.strip() not in after]
    came = [line.strip() for line in new if line.strip() and line.strip() not in before]
    return (gone[0] if gone else "", came[0] if came else "")


def _is_not_its_own(text: str, place: int, others: Outside) -> bool:
    return _is_doubtful(text) or others.says(text, place, LEAST_SENTENCE)


def _is_doubtful(text: str) -> bool:
    return is_order(text) or is_dangerous(text)
