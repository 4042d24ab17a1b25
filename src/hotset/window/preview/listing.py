"""Listings: some entries of every folder, odd ones, those near what was asked for, and gaps that
count entries per folder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotset.window.preview.asking import ToolQuery, closeness
from hotset.window.preview.body import Body
from hotset.window.preview.excerpt import LineSpan, Reading, Worth
from hotset.window.preview.forms import forms
from hotset.window.preview.rarity import odd_rows, shown
from hotset.window.preview.trouble import alarms, failures, reported

ENTRY = re.compile(
    r"(?:[A-Za-z]:)?(?:\.{0,2}/)?[\w.@+~$()\[\]{}, -]{1,120}(?:/[\w.@+~$()\[\]{}, "
    r"-]{1,120}){0,30}/?\*?"
)
LONG_ENTRY = re.compile(r"[-dlcbps][rwxsStT-]{9}[.@+]?\s")
BRANCH = re.compile(r"[\s│|]{0,200}[├└|`+]")
_FLAGS = re.compile(r"(?:[-*+?!A-Z]{1,2}|\d{1,12})[ \t]+")
"""What a program puts before a name: the state of a file, its size, a mark."""
_FOLDER = re.compile(r"(?P<folder>[^\n:]{1,400}):")
_MACHINE_MADE = re.compile(
    r"(?:^|/)(?:\.git|node_modules|__pycache__|\.venv|dist|build|target|\.cache|vendor)/"
)
_LESS = 30.0  # how much less an entry is worth that nobody wrote
_RUN = 8  # entries of one folder that are shown together at most
_LAST = 3
_FEWEST = 3  # lines that make a listing
_ENTRIES = 0.85  # of its lines are entries
_DIFFERENT = 0.6  # of its entries are there once: a name is not listed twice
_SEVERAL_WORDS = (
    0.3  # of its entries are in several words: what a program does to files is not a listing
)
_PER_LEVEL = 4.0  # how much less an entry is worth for each folder that it is inside of
_PER_RANK = 4.0  # how much less each further run of the same folder is worth


def read(body: Body, asked: ToolQuery) -> Reading:
    lines = body.lines
    folders = _folders(lines)
    runs = list(_runs(folders))
    scores = closeness(["\n".join(lines[first:end]) for first, end in runs], asked)
    highest = min((folder.count("/") for folder in folders), default=0)
    seen: Counter[str] = Counter()
    spans = [LineSpan(max(body.first, body.end - _LAST), body.end, Worth.HEAD)]
    for (first, end), score in zip(runs, scores, strict=True):
        folder = folders[first]
        depth = folder.count("/") - highest
        worth = (
            Worth.ASKED - _PER_LEVEL * min(depth, 6) - _PER_RANK * min(seen[folder], 6) + 12 * score
        )
        worth -= _LESS if _MACHINE_MADE.search(f"{lines[first]}/") else 0.0
        if not seen[folder]:
            spans.append(
                LineSpan(body.first + first, body.first + first + 1, worth + 2)
            )  # every folder, before more of any
        seen[folder] += 1
        spans.append(LineSpan(body.first + first, body.first + end, worth, least=1))
    odd = odd_rows(zip(*map(_traits, lines), strict=True))
    spans.extend(
        shown(
            body,
            {
                index: oddity
                for index, oddity in odd.items()
                if not _MACHINE_MADE.search(f"{lines[index]}/")
            },
        )
    )
    spans.extend(_strangers(body))
    return Reading(spans, _Folders(body.first, folders))


def is_listing(sample: Sequence[str]) -> bool:
    """Are nearly all lines names, all of them different, and few of them in several words?"""
    entries = [line for line in sample if is_entry(line)]
    if (
        len(sample) < _FEWEST
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


@dataclass(frozen=True, slots=True)
class _Folders:
    """Says how many entries of which folders stand in a gap."""

    offset: int
    folders: Sequence[str]

    def __call__(self, first: int, end: int) -> Sequence[str]:
        counts = Counter(self.folders[first - self.offset : end - self.offset])
        return [f"{folder or '.'} ({count})" for folder, count in counts.items()]


def _is_drawn(line: str) -> bool:
    """A row of a long listing, or a branch of a tree."""
    return bool(LONG_ENTRY.match(line) or (BRANCH.match(line) and not line.rstrip().endswith("|")))


def _name(line: str) -> str:
    """What an entry names; nothing of those whose form already tells that they are entries."""
    if _is_drawn(line):
        return ""
    bare = line.strip().rstrip(":")
    found = _FLAGS.match(bare)
    return bare[found.end() :] if found else bare


def _strangers(body: Body) -> Iterator[LineSpan]:
    """What stands among the entries and is none, with what belongs to it: mostly what went
    wrong."""
    lines = body.lines
    if any(not is_entry(lines[index]) for index in alarms(lines)):
        of = forms(lines)
        yield from reported(
            body, of, (each for each in failures(lines, of) if not is_entry(lines[each.first]))
        )


def _traits(line: str) -> tuple[str, ...]:
    """By what an entry can be unlike others: its ending, and in long listings its mode, owner and
    size."""
    name = line.rstrip("/*").rsplit("/", 1)[-1]
    stem, dot, ending = name.rpartition(".")
    fields = line.split(None, 5)[:5] if LONG_ENTRY.match(line) else ()
    return (f"{dot}{ending}" if stem else "", *(fields or [""] * 5))


def _runs(folders: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Entries of one folder that stand together."""
    start = 0
    for index in range(1, len(folders) + 1):
        if index == len(folders) or folders[index] != folders[start] or index - start >= _RUN:
            yield start, index
            start = index


def _folders(lines: Sequence[str]) -> list[str]:
    """The folder that each entry stands in."""
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
