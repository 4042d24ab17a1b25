"""Repeats: which lines of a new result the window shows already, and the text that points to them.

A repeat is recognised by its content, whatever was called. A pointer names the turn whose result
shows the lines, and stands only for lines that are shown there: what an excerpt left out is sent.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from hotset.files.lru import memo
from hotset.nouns.link import Link
from hotset.nouns.page import Kind, digest
from hotset.nouns.window import Cause, Form, Shown, Spot

LEAST = 400
"""Characters below which a result is never replaced by a pointer, which would hardly be shorter."""

_ID_LENGTH = 12
_BEGINS, _BEGINS_SHOWN = 1000, 80  # characters: the beginning that identifies a result
_CLOSES = b"\n[hotset: left out "

Call = tuple[str, bytes]
"""Tool and arguments: equal for two calls that are the same."""


def content_id(content: bytes) -> str:
    """The id by which a model requests content; the same on any machine."""
    return "c" + digest(content)[:_ID_LENGTH]


class ShownResult(NamedTuple):
    """An earlier result as the window shows it."""

    lines: Sequence[str]
    at: int
    """Index of its message."""


@dataclass(slots=True)
class ShownResults:
    """The results already in the window, by content, by call and by line."""

    turn_of: Callable[[int], int]
    """The turn of the message with this index."""
    whole: dict[bytes, int] = field(default_factory=dict)
    """Results shown without omissions, with the index of the latest message that does so."""
    shortened: dict[bytes, None] = field(default_factory=dict)
    """Results of which some lines are left out, in their order."""
    changed: dict[bytes, int] = field(default_factory=dict)
    """Results shown as a diff to an earlier one."""
    latest: dict[Call, bytes] = field(default_factory=dict)
    """The latest result of the same call shown whole."""
    last: dict[Call, bytes] = field(default_factory=dict)
    """The latest result of the same call, in any form."""
    _texts: list[tuple[bytes, int]] = field(default_factory=list)
    """What is shown of each result that shows lines of its own and is not read yet, and the index
    of its message."""
    _shown: list[ShownResult] = field(default_factory=list)
    """Those that are read."""
    _where: dict[str, int] = field(default_factory=dict)
    """The latest of these that has a line."""

    def note(self, call: Call, content: bytes, row: Shown | None, at: int) -> None:
        """Adds a result with the form in which it is shown."""
        if call[1]:
            self.last[call] = content
        form = Form.FULL if row is None else row.form
        if row is not None and form in (Form.EXCERPT, Form.OVERLAP):
            self._texts.append((row.text, at))
            if form is Form.EXCERPT and _is_complete(row, content):
                form = Form.FULL
            elif form is Form.EXCERPT or _CLOSES in row.text[-_BEGINS:]:
                self.shortened[content] = None
        elif form is Form.FULL:
            self._texts.append((content, at))
        if form is Form.FULL:
            self.whole[content] = at
            if call[1]:
                self.latest[call] = content
        elif form is Form.CHANGE:
            self.changed[content] = at

    def echo(self, call: Call, content: bytes) -> str:
        """A pointer to the same result above; empty if there is none.

        A result that changed back must not look unchanged.
        """
        last = self.last.get(call)
        size = f"{len(content):,} characters"
        again = f'show again: retrieve_context(id="{content_id(content)}")]'
        if content in self.whole:
            turn = self.turn_of(self.whole[content])
            if last in (None, content):
                return (
                    f"[hotset: unchanged, same as the result above (turn {turn}, {size}); {again}"
                )
            return (
                "[hotset: changed since the last call; same as the earlier result "
                f"above that starts with {json.dumps(_beginning(content), ensure_ascii=False)} "
                f"(turn {turn}, {size}); {again}"
            )
        if content == last and content in self.changed:
            turn = self.turn_of(self.changed[content])
            return (
                "[hotset: unchanged since the last call, whose diff is above "
                f"(turn {turn}, {size}); {again}"
            )
        return ""

    def difference(self, call: Call, content: bytes) -> str:
        """The diff to the latest whole result of the same call; empty if there is nothing to
        compare."""
        before = self.latest.get(call)
        if before is None:
            return ""
        difference = changes(_decode(before), _decode(content))
        if not difference:
            return ""
        compared = "result"
        if self.last.get(call) != before:  # later results are shown as diffs only
            compared = "last whole result"
        return (
            f"[hotset: diff to this call's {compared} above (turn "
            f"{self.turn_of(self.whole[before])}; - old, + new); show "
            f'all: retrieve_context(id="{content_id(content)}")]\n{difference}'
        )

    def runs(self, lines: Sequence[str], least: int) -> list[LineRun]:
        """The stretches of these lines, of at least so many characters, that the window shows."""
        if sum(map(len, lines)) > _MOST_COMPARED:
            return []
        self._read()
        hits = Counter(
            self._where[line]
            for line in lines
            if len(line) >= _TELLING and line in self._where and not _is_ours(line)
        )
        near = sorted(hits, key=lambda each: (-hits[each], -each))[:_MOST_SOURCES]
        return list(_find_runs(lines, [self._shown[each] for each in near], least)) if near else []

    def was_left_out(self, lines: Sequence[str]) -> bool:
        """True if these lines are of one result that is shown without most of them: the model asks
        for what an excerpt left out."""
        self._read()
        telling = [line for line in lines if len(line) >= _TELLING and line not in self._where]
        # Not the first ones: they may be a frame with the ids of this call.
        sample = telling[len(telling) // 8 :: len(telling) // 4 or 1]
        wanted = [line.encode("utf-8", "replace") for line in sample]
        pages = list(self.shortened)[-_MOST_PAGES:]
        return bool(wanted) and any(all(line in page for line in wanted) for page in pages)

    def shows(self, pointed: Pointed, lines: Sequence[str]) -> bool:
        """True if the turn that a pointer names still shows these lines."""
        self._read()
        as_shown: Callable[[str], str] = str if pointed.is_exact else mask
        wanted = "\n".join(["", *map(as_shown, lines), ""])
        return bool(lines) and any(
            wanted in "\n".join(["", *map(as_shown, each.lines), ""])
            and self.turn_of(each.at) == pointed.turn
            for each in self._shown
        )

    def _read(self) -> None:
        """Splits what was noted since the last time into lines; of very much, the latest."""
        for text, at in self._texts[-_MOST_READ:]:
            lines = _lines_of(text) if len(text) <= _MOST_KEPT else _split(text)
            self._where.update(dict.fromkeys(lines, len(self._shown)))
            self._shown.append(ShownResult(lines, at))
        self._texts.clear()


_MOST_READ = 400  # latest results that a new one is compared with
_MOST_KEPT = 16_000  # bytes of a text whose lines are kept for the next plan


@memo("lines of results", 2048, each=8000)
def _lines_of(text: bytes) -> Sequence[str]:
    """Kept: every plan with a new result reads what the window shows."""
    return _split(text)


def _split(text: bytes) -> Sequence[str]:
    return _decode(text).split("\n") if len(text) <= _MOST_COMPARED else ()


def _decode(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _is_complete(row: Shown, content: bytes) -> bool:
    """True if only line numbers were removed: one note was added and no line is missing."""
    return row.text.count(b"\n") == content.count(b"\n") + 1


def _beginning(content: bytes) -> str:
    lines = (line.strip() for line in content[:_BEGINS].decode("utf-8", "replace").splitlines())
    return next((line for line in lines if line), "")[:_BEGINS_SHOWN]


_TELLING = 16  # characters of a line that tells one text from another
_MOST_SOURCES = 6  # earlier results with which a new one is compared
_MOST_PAGES = 40  # latest shortened results in which left-out lines are looked for
_FEW_LINES = 3
"""Adjoining lines that differ in a time or an id and are shown all the same: so few may be what was
asked for."""
_VOLATILE = re.compile(
    r"(?<=Chunk ID: )\w+"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?"
    r"|\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?"
    r"|\b\d+(?:\.\d+)?(?=\s?(?:[mnu\u00b5]?s|sec|secs|seconds|minutes)\b)"
    r"|\b0x[0-9a-f]{6,}\b"
    r"|\b[Pp](?:id|ID)[ :=]+\d+"
    r"|\btmp[a-z0-9_]{8}\b"
    r"|\[[. -]*[=#>]{2}[=#>. -]*\].*|[\u2588-\u2591]{2}.*"
)
"""Times, durations, ids of chunks, processes and temporary files, addresses, progress."""


class LineRun(NamedTuple):
    """Adjoining lines of a new result that an earlier one shows."""

    first: int
    end: int
    at: int
    """Index of the message of the earlier one."""
    is_exact: bool
    """False if they differ in times and ids."""


def mask(line: str) -> str:
    """The line without what differs each time a command runs."""
    return _VOLATILE.sub("#", line)


def _is_ours(line: str) -> bool:
    """True for a line that hotset may have written: it is no line of a result."""
    return line.startswith(("[hotset:", "… "))


def _find_runs(
    lines: Sequence[str], sources: Sequence[ShownResult], least: int
) -> Iterator[LineRun]:
    """The longest runs, from the first line on."""
    keys = ["\0" if _is_ours(line) else mask(line) for line in lines]
    there = [[mask(line) for line in each.lines] for each in sources]
    places: list[dict[str, list[int]]] = [{} for _ in sources]
    for own, of in zip(there, places, strict=True):
        for place, key in enumerate(own):
            if len(key) >= _TELLING:
                of.setdefault(key, []).append(place)
    done = at = 0
    while at < len(keys):
        best = max(
            (
                (*_reach(keys, own, at, place, done), -number)
                for number, (own, of) in enumerate(zip(there, places, strict=True))
                for place in of.get(keys[at], ())[-_MOST_PLACES:]
            ),
            default=(0, 0, 0, 0),
        )
        size, first, start, number = best[0], best[1], best[2], -best[3]
        if size < least:
            at += 1
            continue
        count = _length(keys, there[number], first, start)
        yield from _stretches(lines, sources[number], (first, start, count), least)
        done = at = first + count


_MOST_PLACES = 8  # of one line in an earlier result


def _reach(
    keys: Sequence[str], own: Sequence[str], at: int, place: int, done: int
) -> tuple[int, int, int]:
    """Characters of the run through this line, and where it begins here and there."""
    back = 0
    while at - back > done and place > back and keys[at - back - 1] == own[place - back - 1]:
        back += 1
    first, start = at - back, place - back
    count = _length(keys, own, first, start)
    return sum(len(key) + 1 for key in keys[first : first + count]), first, start


def _length(keys: Sequence[str], own: Sequence[str], first: int, start: int) -> int:
    most = min(len(keys) - first, len(own) - start)
    return next(
        (number for number in range(most) if keys[first + number] != own[start + number]), most
    )


def _stretches(
    lines: Sequence[str], source: ShownResult, run: tuple[int, int, int], least: int
) -> Iterator[LineRun]:
    """The parts of a run that a pointer can stand for: all but a few lines that differ in a time or
    an id."""
    first, start, count = run
    same = [lines[first + each] == source.lines[start + each] for each in range(count)]
    parts: list[tuple[int, int]] = []
    low = high = 0
    for is_same, group in groupby(same):
        many = len(list(group))
        if not is_same and many <= _FEW_LINES:
            parts.append((low, high))
            low = high + many
        high += many
    for begin, end in (*parts, (low, high)):
        if sum(len(line) + 1 for line in lines[first + begin : first + end]) >= least:
            yield LineRun(first + begin, first + end, source.at, all(same[begin:end]))


_POINTER = re.compile(
    r"^… lines? (?P<first>\d+)(?:-(?P<last>\d+))?: as in turn (?P<turn>\d+)"
    r"(?P<masked> but for times and ids)?, from \".*\" …$",
    re.MULTILINE,
)
_GAP = re.compile(r"… lines? (?P<first>\d+)(?:-(?P<last>\d+))?(?P<cut> \()?")
_QUOTED = 60  # characters of a line that is quoted


class Pointed(NamedTuple):
    """What a pointer stands for: lines of its own result, by number, and who shows them."""

    first: int
    last: int
    turn: int
    is_exact: bool


def pointers(text: str) -> list[Pointed]:
    """The pointers in a shown text."""
    return [
        Pointed(
            int(found["first"]),
            int(found["last"] or found["first"]),
            int(found["turn"]),
            not found["masked"],
        )
        for found in _POINTER.finditer(text)
    ]


@dataclass(frozen=True, slots=True)
class RepeatedLines:
    """A result's lines, and the runs of them that the window shows."""

    lines: Sequence[str]
    runs: Sequence[LineRun]
    shift: int
    """What is added to a line's place, from 1, to get its number."""
    turn_of: Callable[[int], int]

    @property
    def new(self) -> int:
        """Characters of the lines that the window does not show."""
        held = sum(len(line) + 1 for run in self.runs for line in self.lines[run.first : run.end])
        return sum(len(line) + 1 for line in self.lines) - held

    def text(self, note: Iterable[str], id: str) -> str:
        """The new lines, with a pointer for each run, and the call that shows all."""
        places = [(at, at + 1) for at in range(len(self.lines))]
        held = sum(run.end - run.first for run in self.runs)
        count = f"{held:,} of {len(self.lines):,} lines are above"
        closing = f'[hotset: {count}; show all: retrieve_context(id="{id}")]'
        return "\n".join([*note, *self._point(places, self.lines), closing])

    def excerpt(self, shown: str, least: int) -> str:
        """An excerpt of the result, with pointers for what it shows of the runs."""
        lines = shown.split("\n")
        return "\n".join(self._point(list(self._places(lines)), lines, least))

    def _point(
        self, places: Sequence[tuple[int, int] | None], shown: Sequence[str], least: int = 0
    ) -> Iterator[str]:
        within = [self._run_of(place) for place in places]
        for run, group in groupby(range(len(shown)), key=within.__getitem__):
            part = list(group)
            held = sum(len(shown[each]) + 1 for each in part)
            first, last = places[part[0]], places[part[-1]]
            if run is None or first is None or last is None or held < least:
                yield from (shown[each] for each in part)
            else:
                yield self._pointer(run, first[0], last[1])

    def _run_of(self, place: tuple[int, int] | None) -> LineRun | None:
        if place is None:
            return None
        return next(
            (run for run in self.runs if run.first <= place[0] and place[1] <= run.end), None
        )

    def _places(self, shown: Iterable[str]) -> Iterator[tuple[int, int] | None]:
        """The places of an excerpt's lines and gaps; None for a line that is no line of the
        result."""
        at = 0
        for line in shown:
            if gap := _GAP.match(line):
                last = int(gap["last"] or gap["first"]) - self.shift
                if gap["cut"]:
                    yield None
                else:
                    yield max(0, int(gap["first"]) - 1 - self.shift), last
                at = last
            elif at < len(self.lines) and line == self.lines[at]:
                yield at, at + 1
                at += 1
            else:
                yield None

    def _pointer(self, run: LineRun, first: int, end: int) -> str:
        low, high = first + 1 + self.shift, end + self.shift
        numbers = f"line {low}" if low == high else f"lines {low}-{high}"
        begins = next((line for line in map(str.strip, self.lines[first:end]) if line), "")
        quoted = json.dumps(begins[:_QUOTED], ensure_ascii=False)
        masked = "" if run.is_exact else " but for times and ids"
        return f"… {numbers}: as in turn {self.turn_of(run.at)}{masked}, from {quoted} …"


_MOST_COMPARED = 400_000  # characters
# lines between the first and the last difference; with more, it is another text, not a version
_MOST_CHANGED = 600
_DIFF_CONTEXT = 2
_ANY_NUMBER = re.compile(r"^\s*\d+(?:→|\t| {2}|:|\|)")


def changes(before: str, text: str) -> str:
    """A unified diff; empty if the texts are equal, too long, or too different.

    Line numbers that a tool printed are not compared: one insertion would change every line after
    it.
    """
    if len(before) > _MOST_COMPARED or len(text) > _MOST_COMPARED:
        return ""
    return "\n".join(_difference(before.splitlines(), text.splitlines()))


def _difference(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    bare_old, bare_new = (
        [_strip_number(line) for line in old],
        [_strip_number(line) for line in new],
    )
    start = _common_lines(bare_old, bare_new)
    end = _common_lines(bare_old[start:][::-1], bare_new[start:][::-1])
    old_end, new_end = len(old) - end, len(new) - end
    if max(old_end, new_end) - start > _MOST_CHANGED or old_end == start == new_end:
        return
    matcher = difflib.SequenceMatcher(
        None, bare_old[start:old_end], bare_new[start:new_end], autojunk=False
    )
    yield from _prefix_lines(new[max(0, start - _DIFF_CONTEXT) : start], " ")
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from _render_unchanged(new, start + c, start + d)
        else:
            yield from _prefix_lines(old[start + a : start + b], "-")
            yield from _prefix_lines(new[start + c : start + d], "+")
    yield from _prefix_lines(new[new_end : new_end + _DIFF_CONTEXT], " ")


def _common_lines(old: Sequence[str], new: Sequence[str]) -> int:
    """Number of equal lines at the beginning."""
    return next(
        (index for index, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )


def _render_unchanged(new: Sequence[str], first: int, last: int) -> Iterator[str]:
    if last - first <= 2 * _DIFF_CONTEXT + 1:
        yield from _prefix_lines(new[first:last], " ")
        return
    yield from _prefix_lines(new[first : first + _DIFF_CONTEXT], " ")
    yield f"… lines {first + _DIFF_CONTEXT + 1}-{last - _DIFF_CONTEXT}: unchanged …"
    yield from _prefix_lines(new[last - _DIFF_CONTEXT : last], " ")


def _prefix_lines(lines: Sequence[str], mark: str) -> Iterator[str]:
    for line in lines:
        yield mark + line


def _strip_number(line: str) -> str:
    return _ANY_NUMBER.sub("", line)


POINTED = (Form.ECHO, Form.CHANGE, Form.OVERLAP)
"""Forms of results that the window has already, whole or in part."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """Counts of repeated results among those shown for the first time."""

    all: int = 0
    """Results that repeat an earlier one, exactly or as a newer version of one still in the
    window."""
    pointed: int = 0
    """Of these, the ones shown with a pointer or as a diff."""


NO_REPEATS = Repeats()


def repeats(links: Sequence[Link], fresh: Iterable[Shown]) -> Repeats:
    """Counts the repeats among the results that are new in a plan."""
    born = {row.spot: row.form for row in fresh if row.cause is Cause.BIRTH}
    if not born:
        return NO_REPEATS
    pointed = sum(form in POINTED for form in born.values())
    again = 0
    had: set[bytes] = set()
    for link in links:
        for position, part in enumerate(link.message.parts):
            if not part.call or part.kind.family is Kind.TOOL_CALL or len(part.content) <= LEAST:
                continue
            form = born.get(Spot(link.chain, position))
            again += form is not None and form not in POINTED and part.content in had
            had.add(part.content)
    return Repeats(pointed + again, pointed)
