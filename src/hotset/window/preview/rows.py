"""Previews of output whose lines are entries: search hits, file listings, tables and diffs. Shows
some entries of each file or folder, odd ones, and those near the query; gaps count the rest."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotset.window.preview.content import Body, ToolQuery, closeness
from hotset.window.preview.excerpt import (
    ExcerptView,
    Label,
    LineSpan,
    Reading,
    Worth,
    longest_line,
    no_label,
    no_slice,
)
from hotset.window.preview.rarity import forms, odd_lines, odd_rows, odd_spans
from hotset.window.preview.trouble import alarms, failure_spans, failures

HIT = re.compile(
    r"(?P<path>(?:[A-Za-z]:)?[\w./@+~$()\[\]-]{1,240}?)(?::(?P<line>\d{1,7}):|-\d{1,7}-|:(?=\s*\S))"
)
UNDER_HEADING = re.compile(r"\s{0,6}\d{1,7}[:-]")
HEADING = re.compile(r"(?:[A-Za-z]:)?[\w./@+~$()\[\]-]{1,240}\.\w{1,10}")
_LONGEST_GROUP = 12  # most lines of one file shown together: a hit with its context
_HITS_LABELS = 0.2  # which files have hits matters more than any single hit
_WIDEST_HIT = 240
_MOST_HITS = 4000  # lines of a search that are laid out by files
_HITS = 0.6  # of them have the name of a file before them
_SLICE_LINES = 100
_WITH_CONTEXT = 2  # times the room: of a longer text, the lines around hits are left out
_FILE_NAME = Worth.ASKED + 15  # more than any hit: which files have hits is asked first
_PER_GROUP = 3.0  # how much less each further hit of the same file is worth
_CONTEXT_LESS = 40.0  # how much less a hit's context is worth than any hit
_MATCH = re.compile(r"[^:\n]{0,240}?(?:^|:)\s{0,6}\d{1,7}:")


@dataclass(frozen=True, slots=True)
class _Group:
    """Adjacent hits of one file."""

    path: str
    first: int
    end: int
    rank: int
    """Number of earlier groups of the same file."""


def read_hits(body: Body, query: ToolQuery) -> Reading:
    lines = body.lines
    files = _files(lines)
    groups = list(_groups(lines, files))
    scores = closeness(["\n".join(lines[group.first : group.end]) for group in groups], query)
    spans: list[LineSpan] = []
    for group, score in zip(groups, scores, strict=True):
        worth = Worth.ASKED - _PER_GROUP * min(group.rank, 12) + 12 * score
        hits = [at for at in range(group.first, group.end) if _is_match(lines[at])]
        if 0 < len(hits) < group.end - group.first:  # the rest is context
            spans.extend(body.span(at, at + 1, worth) for at in hits)
            worth -= _CONTEXT_LESS
        spans.append(body.span(group.first, group.end, worth, least=1))
    spans.extend(
        odd_spans(
            body,
            odd_lines(
                [UNDER_HEADING.sub("", HIT.sub("", line, count=1), count=1) for line in lines]
            ),
        )
    )
    return Reading(spans, _label_counts(body, files), label_share=_HITS_LABELS, widest=_WIDEST_HIT)


def view_hits(body: Body, query: ToolQuery) -> ExcerptView:
    """Hits under the names of their files, each name once: half of most hits is their path. No
    lines if the text is laid out so already, or has no names."""
    places = [HIT.match(line) for line in body.lines[:_MOST_HITS]]
    if len(body.lines) > _MOST_HITS or sum(map(bool, places)) < _HITS * len(body.lines):
        return ExcerptView((), Reading((), no_label), no_slice, 0, no_slice)
    widest = min(_WIDEST_HIT, longest_line(query.room))
    lines: list[str] = []
    at: list[int] = []  # the place of each line in the text
    files: list[tuple[int, int]] = []  # the lines of each file
    path = ""
    hits = [bool(place) and _is_match(line) for line, place in zip(body.lines, places, strict=True)]
    context = [bool(place) and not hit for place, hit in zip(places, hits, strict=True)]
    bare = any(hits) and sum(map(len, body.lines)) > _WITH_CONTEXT * query.room
    for index, (line, place) in enumerate(zip(body.lines, places, strict=True)):
        if place and place["path"] != path:
            path = place["path"]
            lines.append(path)
            at.append(index)
            files.append((len(lines) - 1, len(lines)))
        if line == "--" or (bare and context[index]):
            continue
        lines.append(_clipped(line[len(path) + 1 :] if place else line, widest))
        at.append(index)
        if files:
            files[-1] = files[-1][0], len(lines)

    def numbers(first: int, end: int) -> tuple[int, int]:
        return body.first + at[first] + 1, body.first + at[end - 1] + 1

    def mark(first: int, end: int) -> str:
        low, high = numbers(first, end)
        return f"… line {low} …" if low == high else f"… lines {low}-{high} …"

    def slice_(first: int, end: int) -> str:
        low, high = numbers(first, end)
        return f'lines="{low}-{min(high, low + _SLICE_LINES)}"'

    odd = odd_lines([UNDER_HEADING.sub("", line, count=1) for line in lines])
    spans = [
        *_file_spans(lines, files, query),
        *odd_spans(Body(0, lines), odd),
    ]
    left = sum(context) if bare else 0
    preface = f"[{left:,} lines around the hits left out]" if left else ""
    reading = Reading(
        spans,
        no_label,
        preface,
        label_share=0.0,
        widest=_WIDEST_HIT,
        before_scores=_FILE_NAME,
        above_of={at: first for first, end in files for at in range(first + 1, end)},
    )
    return ExcerptView(lines, reading, mark, len(f"… lines {body.end}-{body.end} …"), slice_)


def _clipped(line: str, widest: int) -> str:
    return line if len(line) <= widest else f"{line[: widest - 2]} …"


def _file_spans(
    lines: Sequence[str], files: Sequence[tuple[int, int]], query: ToolQuery
) -> Iterator[LineSpan]:
    """The name of each file with its best hit, then its further hits; context comes last."""
    scores = closeness(lines, query)
    best = closeness(["\n".join(lines[first:end]) for first, end in files], query)
    crowded = len(files) * _WIDEST_HIT > 2 * query.room  # of many files, only the names come first
    for (first, end), near in zip(files, best, strict=True):
        hits = [at for at in range(first + 1, end) if _is_match(lines[at])] or list(
            range(first + 1, end)
        )
        yield LineSpan(first, first + 1, _FILE_NAME + 12 * near)
        ranked = sorted(hits, key=lambda at: (-scores[at], at))
        for rank, at in enumerate(ranked):
            worth = Worth.ASKED + 12 * near + 6 * scores[at] - _PER_GROUP * min(rank, 12)
            yield LineSpan(at, at + 1, worth if rank or crowded else max(worth, _FILE_NAME))
        yield LineSpan(first, end, Worth.REST + 10 * near, least=2)


def _is_match(line: str) -> bool:
    """True for a hit, false for a line of its context."""
    return _MATCH.match(line) is not None


def _label_counts(body: Body, names: Sequence[str], unnamed: str = "") -> Label:
    """A label with the number of lines in a gap per file or folder. Lines without one are counted
    as `unnamed`, or not at all."""

    def label(first: int, end: int) -> Sequence[str]:
        counts = Counter(names[first - body.first : end - body.first])
        return [f"{name or unnamed} ({count})" for name, count in counts.items() if name or unnamed]

    return label


def _files(lines: Sequence[str]) -> list[str]:
    """The file that each line is a hit in; empty if none."""
    files = []
    heading = ""
    for line in lines:
        if heading and UNDER_HEADING.match(line):
            files.append(heading)
        elif len(line) < 250 and HEADING.fullmatch(line):
            heading = line
            files.append(line)
        else:
            found = HIT.match(line)
            files.append(found["path"] if found else "")
    return files


def _groups(lines: Sequence[str], files: Sequence[str]) -> list[_Group]:
    """Single hits, or hits with their context."""
    groups: list[_Group] = []
    seen: Counter[str] = Counter()
    start = 0
    together = "--" in lines[:200]
    for index in range(1, len(lines) + 1):
        apart = (
            index == len(lines)
            or files[index] != files[start]
            or lines[index] == "--"
            or index - start >= _LONGEST_GROUP
        )
        if apart or not together:
            groups.append(_Group(files[start], start, index, seen[files[start]]))
            seen[files[start]] += 1
            start = index
    return groups


ENTRY = re.compile(
    r"(?:[A-Za-z]:)?(?:\.{0,2}/)?[\w.@+~$()\[\]{}, -]{1,120}(?:/[\w.@+~$()\[\]{}, "
    r"-]{1,120}){0,30}/?\*?"
)
LONG_ENTRY = re.compile(r"[-dlcbps][rwxsStT-]{9}[.@+]?\s")
BRANCH = re.compile(r"[\s│|]{0,200}[├└|`+]")
_FLAGS = re.compile(r"(?:[-*+?!A-Z]{1,2}|\d{1,12})[ \t]+")
"""What a program puts before a name: the state of a file, its size, a mark."""
_COUNTED = re.compile(r"(?: \(\d+ \w+\)|:\d+)$")
"""What a search puts behind a file: how often it found something there."""
_FOLDER = re.compile(r"(?P<folder>[^\n:]{1,400}):")
_MACHINE_MADE = re.compile(
    r"(?:^|/)(?:\.git|node_modules|__pycache__|\.venv|dist|build|target|\.cache|vendor)/"
)
_LESS = 30.0  # how much less a generated entry is worth
_LONGEST_RUN = 8  # most entries of one folder shown together
_LAST_ENTRIES = 3
_FEWEST_ENTRIES = 3  # lines that make a listing
_ENTRIES = 0.85  # of its lines are entries
_DIFFERENT = 0.6  # least share of distinct entries: a name is not listed twice
_SEVERAL_WORDS = 0.3  # most entries with several words: a report about files is not a listing
_PER_LEVEL = 4.0  # how much less an entry is worth per level of folders
_PER_RANK = 4.0  # how much less each further run of the same folder is worth


def read_listing(body: Body, query: ToolQuery) -> Reading:
    lines = body.lines
    folders = _folders(lines)
    runs = list(_folder_runs(folders))
    scores = closeness(["\n".join(lines[first:end]) for first, end in runs], query)
    highest = min((folder.count("/") for folder in folders), default=0)
    seen: Counter[str] = Counter()
    spans = [body.span(max(0, len(lines) - _LAST_ENTRIES), len(lines), Worth.HEAD)]
    for (first, end), score in zip(runs, scores, strict=True):
        folder = folders[first]
        depth = folder.count("/") - highest
        worth = (
            Worth.ASKED - _PER_LEVEL * min(depth, 6) - _PER_RANK * min(seen[folder], 6) + 12 * score
        )
        worth -= _LESS if _MACHINE_MADE.search(f"{lines[first]}/") else 0.0
        if not seen[folder]:
            spans.append(body.span(first, first + 1, worth + 2))  # every folder, before more of any
        seen[folder] += 1
        spans.append(body.span(first, end, worth, least=1))
    odd = odd_rows(zip(*map(_traits, lines), strict=True))
    spans.extend(
        odd_spans(
            body,
            {
                index: oddity
                for index, oddity in odd.items()
                if not _MACHINE_MADE.search(f"{lines[index]}/")
            },
        )
    )
    spans.extend(_strangers(body))
    return Reading(spans, _label_counts(body, folders, "."))


def is_listing(sample: Sequence[str]) -> bool:
    """True if nearly all lines are names, distinct, and mostly single words."""
    entries = [line for line in sample if is_entry(line)]
    if (
        len(sample) < _FEWEST_ENTRIES
        or len(entries) <= _ENTRIES * len(sample)
        or len(set(entries)) <= _DIFFERENT * len(entries)
    ):
        return False
    return sum(1 for line in entries if " " in _name(line)) <= _SEVERAL_WORDS * len(entries)


def is_entry(line: str) -> bool:
    if _is_drawn(line):
        return True
    bare = _name(line)
    return (
        bool(ENTRY.fullmatch(bare))
        and ("/" in bare or "." in bare or " " not in bare)
        and bare.count(" ") < 3
    )


def _is_drawn(line: str) -> bool:
    """True for a row of a long listing, or a branch of a tree."""
    return bool(LONG_ENTRY.match(line) or (BRANCH.match(line) and not line.rstrip().endswith("|")))


def _name(line: str) -> str:
    """The name in an entry; empty for entries recognized by their form alone."""
    if _is_drawn(line):
        return ""
    bare = line.strip().rstrip(":")
    found = _FLAGS.match(bare)
    return _COUNTED.sub("", bare[found.end() :] if found else bare)


def _strangers(body: Body) -> Iterator[LineSpan]:
    """Lines among the entries that are none, with what belongs to them: mostly errors."""
    lines = body.lines
    if any(not is_entry(lines[index]) for index in alarms(lines)):
        line_forms = forms(lines)
        yield from failure_spans(
            body,
            line_forms,
            (each for each in failures(lines, line_forms) if not is_entry(lines[each.first])),
        )


def _traits(line: str) -> tuple[str, ...]:
    """Features in which an entry can be odd: its extension, and in long listings its mode, owner
    and size."""
    name = line.rstrip("/*").rsplit("/", 1)[-1]
    stem, dot, ending = name.rpartition(".")
    fields = line.split(None, 5)[:5] if LONG_ENTRY.match(line) else ()
    return (f"{dot}{ending}" if stem else "", *(fields or [""] * 5))


def _folder_runs(folders: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Adjacent entries of one folder."""
    start = 0
    for index in range(1, len(folders) + 1):
        if (
            index == len(folders)
            or folders[index] != folders[start]
            or index - start >= _LONGEST_RUN
        ):
            yield start, index
            start = index


def _folders(lines: Sequence[str]) -> list[str]:
    """The folder of each entry."""
    folders = []
    current = ""
    for line in lines:
        found = _FOLDER.fullmatch(line)
        if found and " " not in line.strip():
            current = found["folder"]
            folders.append(current)
            continue
        path = line.rsplit(" ", 1)[-1] if LONG_ENTRY.match(line) else line.strip()
        folder = path.rstrip("/").rpartition("/")[0]
        folders.append(folder or current)
    return folders


COMMAS, SEMICOLONS, TABS, PIPES, WIDE = (
    re.compile(each) for each in (",", ";", "\t", r"\|", " {2,}")
)
"""Cell separators; the last one is for aligned columns."""

_HEADER_LINES = 2
_FIRST_ROWS = 5
_SAME_CELLS = 0.9  # of the lines have as many cells as most
_FEWEST_CELLS = 3
_LONGEST_CELL = 200
_TABLE_SAMPLE = 120  # lines examined for the separator
_MOST_COLUMNS = 40  # columns read


def read_table(body: Body, query: ToolQuery) -> Reading:
    lines = body.lines
    scores = closeness(lines, query)
    spans = [body.span(0, min(len(lines), _HEADER_LINES), Worth.HEAD + 5, least=1)]
    spans.append(
        body.span(
            0,
            min(len(lines), _HEADER_LINES + _FIRST_ROWS),
            Worth.HEAD,
            least=1,
        )
    )
    spans.append(body.span(max(0, len(lines) - 3), len(lines), Worth.HEAD - 1, least=1))
    spans.extend(
        body.span(
            index,
            index + 1,
            Worth.REST + 10 * (1 - index / len(lines)) + Worth.ASKED * score,
        )
        for index, score in enumerate(scores)
    )
    spans.extend(odd_spans(body, odd_rows(zip(*_cells(lines), strict=True))))
    return Reading(spans, label_rows)


def label_rows(first: int, end: int) -> Sequence[str]:
    return [f"{end - first:,} rows"]


def separates(between: re.Pattern[str], lines: Sequence[str]) -> bool:
    """True if nearly every line has the same number of cells, none of them long."""
    if len(lines) < _FEWEST_CELLS:
        return False
    cells = [between.split(line.strip(" ")) for line in lines]
    count, times = Counter(map(len, cells)).most_common(1)[0]
    short = sum(1 for row in cells if max(map(len, row)) <= _LONGEST_CELL)
    return count >= _FEWEST_CELLS and min(times, short) > _SAME_CELLS * len(lines)


def _cells(lines: Sequence[str]) -> list[list[str]]:
    """All rows, each with as many cells as the widest."""
    sample = lines[:_TABLE_SAMPLE]
    between = next(
        (each for each in (TABS, PIPES, SEMICOLONS, COMMAS, WIDE) if separates(each, sample)),
        COMMAS,
    )
    cells = [
        [cell.strip() for cell in between.split(line.strip(" "), maxsplit=_MOST_COLUMNS)]
        for line in lines
    ]
    widest = max(map(len, cells), default=0)
    return [[*row, *[""] * (widest - len(row))] for row in cells]


_DIFF_FILE = re.compile(
    r"diff --git a/\S+ b/(?P<path>\S+)|\+\+\+ (?:b/)?(?P<new>\S+)|Index: (?P<index>\S+)"
    r"|\*\*\* (?:Update|Add|Delete) File: (?P<patch>\S+)"
)
_FILE_HEADER = re.compile(
    r"diff --git |index [0-9a-f]+\.\.|--- |\+\+\+ |Index: |new file|deleted "
    r"file|similarity|rename |\*\*\* "
)
_FIRST_OF_HEADER = ("diff --git ", "Index: ", "*** ")
_HUNK = re.compile(r"@@")
_STAT = re.compile(
    r" \S.{0,200}\| +\d+|\s*\d+ files? changed|commit [0-9a-f]{7,40}|Author: |Date: "
)
_CONTEXT = 25.0  # how much less a whole hunk is worth than its changes
_PER_CHANGE = 3.0  # how much less each further change of the same file is worth
_LONGEST_HUNK = 60  # lines; longer ones are offered in parts


@dataclass(frozen=True, slots=True)
class _Piece:
    first: int
    end: int


def read_diff(body: Body, query: ToolQuery) -> Reading:
    """Some changes of every file, each with the line that names the file; the rest of a header and
    the lines around changes come last."""
    lines = body.lines
    heads, hunks, stats = _pieces(lines)
    scores = closeness(["\n".join(lines[hunk.first : hunk.end]) for hunk in hunks], query)
    spans = [body.span(head.first, head.end, Worth.OUTLINE - _CONTEXT, least=1) for head in heads]
    spans.extend(body.span(at, at + 1, Worth.HEAD + 2) for at in stats)
    spans.extend(_odd_changes(body, heads))
    ranks: Counter[int] = Counter()
    for hunk, score in zip(hunks, scores, strict=True):
        head = bisect_right(heads, hunk.first, key=lambda piece: piece.first) - 1
        worth = Worth.ASKED - 10 * hunk.first / len(lines) + 10 * score
        spans.append(body.span(hunk.first, hunk.end, worth - _CONTEXT, least=4))
        for first, end in _changes(lines, hunk):
            less = _PER_CHANGE * min(ranks[head], 4)
            ranks[head] += 1
            if head >= 0:
                name = _naming_line(lines, heads[head])
                spans.append(body.span(name, name + 1, worth - less + 0.5))
            spans.append(body.span(first, end, worth - less, least=2))
    return Reading(spans, _label_changes(body))


def _naming_line(lines: Sequence[str], head: _Piece) -> int:
    """The line of a file's header that names it, the nearest to its changes."""
    named = [
        at
        for at in range(head.first, head.end)
        if (path := _path(lines[at])) and path != "/dev/null"
    ]
    return max(named, default=head.first)


def _label_changes(body: Body) -> Label:
    """A label with the lines that a gap adds and removes, and their files."""

    def label(first: int, end: int) -> Sequence[str]:
        lines = body.lines[first - body.first : end - body.first]
        added = sum(1 for line in lines if line.startswith("+") and not line.startswith("+++"))
        removed = sum(1 for line in lines if line.startswith("-") and not line.startswith("---"))
        files = dict.fromkeys(path for line in lines if (path := _path(line)))
        return [*([f"+{added} -{removed}"] if added or removed else ()), *files]

    return label


def _odd_changes(body: Body, heads: Sequence[_Piece]) -> Iterator[LineSpan]:
    """Changes unlike all others, each with the name of its file."""
    lines = body.lines
    changed = [
        index
        for index, line in enumerate(lines)
        if line.startswith(("+", "-")) and not line.startswith(("+++", "---"))
    ]
    for at, oddity in odd_lines([lines[index][1:] for index in changed]).items():
        index, worth = changed[at], Worth.HEAD + 3 + oddity
        head = bisect_right(heads, index, key=lambda piece: piece.first) - 1
        if head >= 0:
            name = _naming_line(lines, heads[head])
            yield body.span(name, name + 1, worth)
        yield body.span(index, index + 1, worth)


def _pieces(lines: Sequence[str]) -> tuple[list[_Piece], list[_Piece], list[int]]:
    """File headers, hunks, and single lines of statistics."""
    heads: list[_Piece] = []
    hunks: list[_Piece] = []
    stats: list[int] = []
    for first, end in _diff_runs(lines):
        if _HUNK.match(lines[first]):
            hunks.extend(
                _Piece(at, min(end, at + _LONGEST_HUNK)) for at in range(first, end, _LONGEST_HUNK)
            )
        elif _FILE_HEADER.match(lines[first]):
            heads.append(_Piece(first, end))
        else:
            stats.extend(index for index in range(first, end) if _STAT.match(lines[index]))
    return heads, hunks, stats


def _diff_runs(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Stretches that begin with a hunk or a file header; the first one can be anything."""
    start, header = 0, False
    for index, line in enumerate(lines):
        opens = bool(_FILE_HEADER.match(line)) and not (
            header and not line.startswith(_FIRST_OF_HEADER)
        )
        if index > start and (opens or _HUNK.match(line)):
            yield start, index
            start = index
        header = bool(_FILE_HEADER.match(line))
    if lines:
        yield start, len(lines)


def _changes(lines: Sequence[str], hunk: _Piece) -> Iterator[tuple[int, int]]:
    """Lines that change together."""
    first = -1
    for index in range(hunk.first, hunk.end + 1):
        changed = index < hunk.end and lines[index].startswith(("+", "-"))
        if changed and first < 0:
            first = index
        elif not changed and first >= 0:
            yield first, index
            first = -1


def _path(line: str) -> str:
    found = _DIFF_FILE.match(line)
    return next((group for group in found.groups() if group), "") if found else ""
