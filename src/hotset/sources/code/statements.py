"""What a file of SQL makes, statement by statement, where the grammar does not know its dialect."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hotset.nouns.retrieval import Span
from hotset.sources.code.symbols import MOST_SYMBOLS, Defined, Symbol, visible

_MAKES = re.compile(
    r"create\s+(?:or\s+(?:replace|alter)\s+)?(?:(?:temp|temporary|unlogged|unique|materialized|definer\s*=\s*\S{1,80})\s+){0,2}"
    r"(table|view|function|proc(?:edure)?|trigger|index|type)\s+(?:if\s+not\s+exists\s+)?((?:[\w$.@#]|\"[^\"]{1,80}\"|`[^`]{1,80}`|"
    r"\[[^\]]{1,80}\]){1,200})",
    re.IGNORECASE,
)
_STATEMENT = re.compile(r"(?:create|alter|drop)\s|go\s*$|delimiter\s", re.IGNORECASE)
_QUOTED_BODY = re.compile(r"\$\w{0,40}\$")
_HAVE_BODIES = ("function", "procedure", "trigger")
_LONGEST = 200


def with_statements(text: str, found: Defined) -> Defined:
    """Adds what the grammar lost. What it made of the lines that it lost, it may have put together wrongly, and is not taken."""
    lines = text.removesuffix("\n").split("\n")
    kept = [each for each in found.symbols if not any(each.first <= last and first <= each.last for first, last in found.lost)]
    known = [(each.first, each.last) for each in kept]
    added = list(_statements(lines, known))
    if len(kept) + len(added) > MOST_SYMBOLS:
        return Defined(lost=found.lost)
    kept = [each for each in kept if not any(one.first <= each.first and each.last <= one.last for one in added)]
    told = sorted((*kept, *added), key=lambda each: (each.first, -each.last))
    seen = {number for each in added for number in range(each.first, each.last + 1)}
    return Defined(tuple(told), tuple(span for span in found.lost if not seen.issuperset(range(span[0], span[1] + 1))))


def _statements(lines: Sequence[str], known: Sequence[Span]) -> Iterator[Symbol]:
    """Each begins at a line's beginning; what stands further in is part of another one."""
    starts = [number for number, line in enumerate(lines, 1) if _STATEMENT.match(line)]
    covered = {number for first, last in known for number in range(first, last + 1)}
    for start, behind in zip(starts, [*starts[1:], len(lines) + 1], strict=True):
        if start in covered or not (made := _MAKES.match(" ".join(lines[start - 1 : start + 1])[:1000])):
            continue
        kind = made[1].lower()
        kind = "procedure" if kind == "proc" else kind
        last = _last(lines, start, behind, has_body=kind in _HAVE_BODIES)
        first = start
        while first > 1 and lines[first - 2].startswith("--"):
            first -= 1
        yield Symbol(
            name=visible(re.sub(r"[\"`\[\]]", "", made[2]), _LONGEST),
            kind=kind,
            scope=(),
            signature=visible(lines[start - 1], _LONGEST).rstrip(" ;"),
            first=first,
            last=last,
            doc=visible(" ".join(line.lstrip("- ") for line in lines[first - 1 : start - 1]), _LONGEST),
        )


def _last(lines: Sequence[str], start: int, behind: int, *, has_body: bool) -> int:
    """Where its last line is: where it says so; otherwise in front of the next statement."""
    quoted = 0
    for number in range(start, behind):
        quoted += len(_QUOTED_BODY.findall(lines[number - 1]))
        ends = lines[number - 1].rstrip().endswith(";")
        if ends and (quoted >= 2 and quoted % 2 == 0 if has_body else True):
            return number
    last = behind - 1
    while last > start and (not lines[last - 1].strip() or lines[last - 1].startswith("--")):
        last -= 1
    return last
