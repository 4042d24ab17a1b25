"""Finds failures: lines that report one, the lines that belong to them, and lines that report
success."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hotset.window.preview.content import Body
from hotset.window.preview.excerpt import LineSpan, Worth

_TROUBLE = re.compile(
    r"\b(?:errors?|exception|traceback|fatal|panic(?:ked)?|failed|failures?|fail|denied|"
    r"refused|cannot|undefined|not found"
    r"|no such|unexpected|segfault|abort(?:ed)?|critical)\b|[a-z](?:error|exception)\b|[✗✘\u00d7❌]"
)
_CAUTION = re.compile(r"\bwarn(?:ing|ings)?\b|deprecat|⚠")
_BAD = r"(?:errors?|fail(?:ed|ures?|ing)?|warnings?|problems?|exceptions?|skipped|broken|aborted)"
_NONE = re.compile(
    rf"\b(?:0|no|zero|without)(?: (?:tests?|any|new|other|known))? "
    rf"{_BAD}\b|\b{_BAD}(?:\(s\))?\s*[:=]\s*0\b(?![.\d])"
)
"""Reports of no trouble that use its words."""
_NOTHING_RUN = re.compile(r"no tests to run|no test files|no tests? found in|\bno tests ran\b")
"""Said of every package without tests: neither a pass nor a reason to worry."""
# Every match of the patterns above contains one of these: checking them first is ten times as fast.
_SIGNS = (
    *(
        "error",
        "exception",
        "traceback",
        "fatal",
        "panic",
        "fail",
        "denied",
        "refused",
        "cannot",
        "undefined",
        "not found",
        "no such",
    ),
    *(
        "unexpected",
        "segfault",
        "abort",
        "critical",
        "✗",
        "✘",
        "\u00d7",
        "❌",
        "warn",
        "deprecat",
        "⚠",
    ),
)
_LOOKED_AT = 600  # characters of a line
_PASSED = re.compile(
    r"\bPASS(?:ED)?\b|\b\d+ (?:tests? )?passed\b|\bpassed[.!)]*$|^\s*Passed\b|\.\.\. "
    r"?ok\b|✓|✔|\(pass\)|^ok\b"
    r"|\b(?i:tests) run: \d+, .{0,80}(?i:errors): 0\b"
)
# every match contains one of these, like the signs above
_PASS_SIGNS = ("PASS", "ass", "ok", "✓", "✔", "..", "rrors: 0")
_DOTS = re.compile(r"(?:\S{1,200} )?([.sxX]{2,})\s*(?:\[ *\d+%\])?")
_FAILED = re.compile(
    (
        r"\b[1-9]\d* "
        r"(?:fail|error)|\b(?:fail(?:ed|ures?)?|errors?)\s*[:=]\s*[1-9]|\bFAIL(?:ED|URE)?\b|"
        r"[✗✘\u00d7❌]"
    ),
    re.IGNORECASE,
)
_COUNT = re.compile(
    r"\btests run: (\d{1,7})|\b(\d{1,7}) (?:passed|passing|pass)\b|\bpassed:\s*(\d{1,7})",
    re.IGNORECASE,
)
_TITLE = re.compile(
    r"_{3,} .{1,200} _{3,}|\s*● \S|\s*--- FAIL|\s*FAIL\s+\S|\s*FAIL(?:ED|URE)?: "
    r"|\s{0,4}\d{1,4}\) \S|-{3,4} .{1,200} -{3,4}$"
)
_SECTION = re.compile(r"([=⎯-])\1{2,} .{1,200} \1{3,}$|={10,}$|-{20,}$")
_TITLE_LENGTH = 300
_RUNNING_OFF = 60  # lines of one failure shown together
_CONTINUED = 12  # lines that belong to a warning
_USUAL = 5  # lines of a form that is not part of any failure
_INTRODUCES = re.compile(r":\s*$|^# \S")
_HEADING = 60  # lines above that are searched for a heading
_ALIKE = 4  # consecutive lines of one form in a failure; further ones are left out

_EACH = 3  # failures of one form shown before others are
_REPEATED = 0.5  # how much less each further failure of the same form is worth
_MOST_LESS = 9.0
_ABOVE = 0.1
_TITLED = 3.0  # how much more the title of a report is worth than the rest of it


class FailureLines(NamedTuple):
    """A failure or a warning with the lines that belong to it."""

    first: int
    end: int
    worth: float
    form: str
    """The form of its first line."""
    is_report: bool
    """True if it has a title of its own, as a failed test has."""
    heading: int | None
    """The line it is under: its file or its suite."""


def alarms(lines: Sequence[str]) -> dict[int, float]:
    """Lines that report a failure or a warning, with their worth."""
    lowered = [line[:_LOOKED_AT].lower() for line in lines]
    whole = "\n".join(lowered)
    signs = [sign for sign in _SIGNS if sign in whole]
    return {
        index: worth
        for index, line in enumerate(lowered)
        for sign in signs
        if sign in line
        if (worth := _alarm(line))
    }


def is_trouble(line: str) -> bool:
    return _alarm(line[:_LOOKED_AT].lower()) == Worth.FAILURE


def matters(line: str) -> bool:
    """True if the line reports an error or a warning."""
    return _alarm(line[:_LOOKED_AT].lower()) > 0


def passes(line: str) -> int:
    """Number of tests that a line reports as passed; 0 if it also reports failures."""
    text = line[:_TITLE_LENGTH]
    if not any(sign in text for sign in _PASS_SIGNS):
        return 0
    if dots := _DOTS.fullmatch(text):
        return dots[1].count(".")
    if not _PASSED.search(text) or _FAILED.search(_NONE.sub("", text.lower())):
        return 0
    counted = _COUNT.search(text)
    return int(next(filter(None, counted.groups()))) if counted else 1


def failures(lines: Sequence[str], line_forms: Sequence[str]) -> Iterator[FailureLines]:
    """Each failure and each warning, in order, without overlaps. `line_forms` has the form of each
    line."""
    bad = alarms(lines)
    if not bad and not any(_TITLE.match(line, 0, _TITLE_LENGTH) for line in lines):
        return
    text = _Text(lines, bad, line_forms, Counter(line_forms))
    end = 0
    for index, line in enumerate(lines):
        titled = bool(_TITLE.match(line, 0, _TITLE_LENGTH))
        worth = bad.get(index, 0.0)
        if index < end or not (worth or titled) or (worth and passes(line)):
            continue
        if titled:
            end = text.report_end(index)
        elif line.startswith("Traceback (most recent call last)"):
            end = _traceback_end(lines, index)
        else:
            end = text.paragraph_end(index, worth)
        yield FailureLines(
            index, end, worth or Worth.FAILURE, line_forms[index], titled, text.heading(index)
        )


def pieces(failure: FailureLines, line_forms: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The lines of a failure without long runs of one form, such as stack frames."""
    start, alike = failure.first, 0
    for index in range(failure.first + 1, failure.end):
        alike = alike + 1 if line_forms[index] and line_forms[index] == line_forms[index - 1] else 0
        if alike >= _ALIKE:
            if start < index:
                yield start, index
            start = index + 1
    if start < failure.end:
        yield start, failure.end


def failure_spans(
    body: Body,
    line_forms: Sequence[str],
    found: Iterable[FailureLines],
    further: float = Worth.OUTLINE,
) -> Iterator[LineSpan]:
    """Spans for every failure and warning; repeated forms are worth less than new ones.

    `further` is the worth of failures whose form was already shown a few times.
    """
    seen: Counter[str] = Counter()
    for failure in found:
        times = seen[failure.form]
        seen[failure.form] += 1
        worth = _worth_of(failure, times, further)
        if failure.heading is not None:
            yield body.span(failure.heading, failure.heading + 1, worth + _ABOVE)
        if failure.is_report:
            yield body.span(failure.first, failure.first + 1, worth + _TITLED)
        for first, end in pieces(failure, line_forms):
            yield body.span(first, end, worth, least=1)


def _worth_of(failure: FailureLines, times: int, further: float) -> float:
    less = min(_MOST_LESS, _REPEATED * times)
    if failure.is_report or times < _EACH:
        return failure.worth - less
    return (further if failure.worth == Worth.FAILURE else Worth.OUTLINE) - less


class _Text(NamedTuple):
    """A text that is searched for failures."""

    lines: Sequence[str]
    bad: dict[int, float]
    forms: Sequence[str]
    counts: Counter[str]

    def report_end(self, first: int) -> int:
        """End of a report: the next report, a new section, a pass, or a line further left after an
        empty one."""
        lines, end = self.lines, first + 1
        left = _indent(lines[first])
        while end < len(lines) and end - first < _RUNNING_OFF and not self._is_other(end, left):
            if not lines[end - 1].strip() and lines[end].strip() and left > 1 > _indent(lines[end]):
                break
            end += 1
        return _without_blanks(lines, first, end)

    def paragraph_end(self, first: int, worth: float) -> int:
        """End of a failure without a title: also an empty line or the next failure. A warning
        includes what is indented below it."""
        lines, end = self.lines, first + 1
        left = _indent(lines[first])
        most = _RUNNING_OFF if worth == Worth.FAILURE else _CONTINUED
        while (
            end < len(lines)
            and end - first < most
            and lines[end].strip()
            and not self._is_other(end, left)
        ):
            inside = _indent(lines[end]) > left
            if not inside and (end in self.bad or worth < Worth.FAILURE):
                break
            end += 1
        return end

    def heading(self, index: int) -> int | None:
        """The line that an indented line is under; for others, the line above that introduces
        it."""
        lines, left = self.lines, _indent(self.lines[index])
        if not left:
            introduced = index > 0 and _INTRODUCES.search(lines[index - 1][-_TITLE_LENGTH:])
            return index - 1 if introduced else None
        for above in range(index - 1, max(-1, index - _HEADING), -1):
            if not lines[above].strip():
                return None
            if _indent(lines[above]) < left:
                return above
        return None

    def _is_other(self, index: int, left: int) -> bool:
        """True if this line is not part of what is above it."""
        line = self.lines[index]
        if (
            _TITLE.match(line, 0, _TITLE_LENGTH)
            or _SECTION.match(line, 0, _TITLE_LENGTH)
            or passes(line)
        ):
            return True
        return (
            _indent(line) <= left
            and index not in self.bad
            and self.counts[self.forms[index]] >= _USUAL
            and bool(line.strip())
        )


def _traceback_end(lines: Sequence[str], first: int) -> int:
    """End of a traceback, after its first unindented line: the exception itself."""
    end = first + 1
    while (
        end < len(lines)
        and end - first < _RUNNING_OFF
        and (lines[end].startswith((" ", "\t")) or not lines[end])
    ):
        end += 1
    return min(end + 1, len(lines))


def _without_blanks(lines: Sequence[str], first: int, end: int) -> int:
    while end > first + 1 and not lines[end - 1].strip():
        end -= 1
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _alarm(line: str) -> float:
    if "no test" in line and _NOTHING_RUN.search(line) and "error" not in line:
        return 0.0
    text = _NONE.sub("", line)
    if _TROUBLE.search(text):
        return Worth.FAILURE
    return Worth.WARNING if _CAUTION.search(text) else 0.0
