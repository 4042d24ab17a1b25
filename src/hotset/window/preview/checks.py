"""Test and build output: failures with their tracebacks whole, the summary, and passes only counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotset.window.preview.asking import Asked
from hotset.window.preview.body import Body
from hotset.window.preview.excerpt import Reading, Span, Worth
from hotset.window.preview.output import alarms, ends
from hotset.window.preview.rarity import odd_lines, shown

_PASSED = re.compile(r"\bPASS(?:ED)?\b|\bpassed\b|\.\.\. ?ok\b|✓|✔|\(pass\)|^ok\b|^\.+(?:\s*\[ *\d+%\])?$")
_SUMMARY = re.compile(
    r"=+ .{1,200} =+|(?:Tests?|Test Suites|Test Files|Ran|FAILED|Found|Finished|Snapshots|error:"
    r"|\s*\d+ (?:pass|fail|error|problem|warning))\b"
)
_TITLE = re.compile(r"_{3,} .{1,200} _{3,}|\s*● |--- FAIL|\s*FAIL |={10,}$|-{20,}$")
_SECTION = re.compile(r"={3,} .{1,200} ={3,}$")
_POINT = re.compile(r"E {2,}\S|>  +\S|\S+\.\w+:\d+: \w*(?:Error|Exception|Failure)|\s+(?:Expected|Received|expected|actual):? ")
_TITLE_LENGTH = 300
_RUNNING_OFF = 40  # lines of one failure that are shown together
_MASK = re.compile(r"\d+|0x[0-9a-f]+|'[^']{0,80}'|\"[^\"]{0,80}\"")
_REPEATED = 0.5  # how much less each further failure of the same form is worth


def read(body: Body, asked: Asked) -> Reading:
    lines = body.lines
    spans = [*_before_passes(body, ends(body, asked.room)), *shown(body, odd_lines(lines))]
    seen: Counter[str] = Counter()
    for first, end, worth in _failures(lines):
        form = _MASK.sub("#", lines[first][:200])
        less = min(9.0, _REPEATED * seen[form])
        seen[form] += 1
        spans.append(Span(body.first + first, body.first + end, worth - less, least=1))
    spans.extend(Span(body.first + index, body.first + index + 1, Worth.FAILURE + 1) for index in _summaries(lines))
    spans.extend(Span(body.first + max(0, index - 2), body.first + index + 1, Worth.FAILURE + 2) for index in _points(lines))
    return Reading(spans, _Passes(body))


def _before_passes(body: Body, spans: Sequence[Span]) -> Iterator[Span]:
    """The beginning tells what is run; the passes that follow it are only counted."""
    passed = next((index for index, line in enumerate(body.lines) if _PASSED.search(line[:_TITLE_LENGTH])), len(body.lines))
    for span in spans:
        end = min(span.end, body.first + passed) if span.first == body.first else span.end
        if span.first < end:
            yield span._replace(end=end)


@dataclass(frozen=True, slots=True)
class _Passes:
    """Says how many passes stand in a gap."""

    body: Body

    def __call__(self, first: int, end: int) -> Sequence[str]:
        passed = sum(1 for line in self.body.lines[first - self.body.first : end - self.body.first] if _PASSED.search(line[:400]))
        return [f"{passed:,} lines of passes"] if passed else []


def _failures(lines: Sequence[str]) -> Iterator[tuple[int, int, float]]:
    """Each failure: the lines that belong to it, and how bad it is."""
    bad = alarms(lines)
    end = 0
    for index, line in enumerate(lines):
        worth = bad.get(index, 0.0)
        if index < end:
            continue
        if line.startswith("Traceback (most recent call last)"):
            end = _traceback_end(lines, index)
        elif worth == Worth.FAILURE or _TITLE.match(line, 0, _TITLE_LENGTH):
            end = _paragraph_end(lines, index)
        elif worth:
            end = index + 1
        else:
            continue
        yield index, end, worth or Worth.FAILURE


def _traceback_end(lines: Sequence[str], first: int) -> int:
    """A traceback ends with the first line that is not indented: the exception itself."""
    end = first + 1
    while end < len(lines) and end - first < _RUNNING_OFF and (lines[end].startswith((" ", "\t")) or not lines[end]):
        end += 1
    return min(end + 1, len(lines))


def _paragraph_end(lines: Sequence[str], first: int) -> int:
    """A failure ends with an empty line, a pass, another title or a new section of the report."""
    end = first + 1
    while end < len(lines) and end - first < _RUNNING_OFF and lines[end].strip() and not _PASSED.search(lines[end][:200]):
        if _TITLE.match(lines[end], 0, _TITLE_LENGTH) or _SECTION.match(lines[end], 0, _TITLE_LENGTH):
            break
        end += 1
    return end


def _points(lines: Sequence[str]) -> list[int]:
    """Where a test says what it expected, and where it stands."""
    return [index for index, line in enumerate(lines) if _POINT.match(line, 0, _TITLE_LENGTH)]


def _summaries(lines: Sequence[str]) -> list[int]:
    low = max(0, len(lines) - 20)
    return [index for index in range(low, len(lines)) if _SUMMARY.match(lines[index][:400])]
