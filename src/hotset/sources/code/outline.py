"""Outlines for agents: what a file defines, or the files of a folder do, as much of it as a budget
of tokens holds."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from hotset.files.root import NotTaken, Root, below, parts_of
from hotset.sources.code.files import (
    BUDGET,
    LEAST_ROOM,
    NOTE_ROOM,
    CodeText,
    check,
    file_text,
    parsed,
)
from hotset.sources.code.parsers import ParseResult, Parsers
from hotset.sources.code.scan import ScanLimits, SkippedFiles, scan
from hotset.sources.code.structure import is_told
from hotset.sources.code.symbols import CodeSymbol
from hotset.sources.code.texts import read_text
from hotset.text.characters import marked
from hotset.text.clip import clip
from hotset.text.languages import language_of
from hotset.tokens import count
from hotset.window.slice.fit import fitting
from hotset.window.slice.lines import span_name

_DOC = 80  # characters of a comment in an outline
_MOST_FILES = 50_000  # of a folder; who outlines more wants another tool
# symbols of one file of many; a file of a thousand functions would leave no room for the others
_MOST_OF_ONE = 25
_USUAL_OF_ONE = 250  # tokens of what a file defines, with comments
_LEAST_OF_ONE = 15  # tokens; where fewer are left, no file's symbols fit
_MISSES = 3  # files in a row whose symbols did not fit; the next ones' hardly will
_SECONDS = 3.0  # of parsing the files of a folder: a model waits
_SLACK = 20  # tokens by which the sum of pieces may miss the whole
_STRETCHES = 3  # of lost lines that are told
_LATER = frozenset(
    (
        "test",
        "tests",
        "spec",
        "specs",
        "__tests__",
        "testdata",
        "fixtures",
        "example",
        "examples",
        "docs",
        "vendor",
    )
)
_VALUES = ("variable", "constant", "macro")
_NO_CODE = frozenset(("json", "markdown", "yaml", "toml", "ini", "rst"))


def outline_path(
    root: Path, path: str = "", *, budget: int = BUDGET, parsers: Parsers | None = None
) -> CodeText:
    """What a file defines, or what the files of a folder do. Raises `NotFound`."""
    path = below(root, path)
    with Root(root) as opened:
        if opened.is_folder(path):
            check(opened, path)
            return _folder_outline(opened, "/".join(parts_of(path)), budget, parsers)
        path, text = file_text(opened, path)
    found = parsed(text, path, parsers)
    size = f"{text.count(chr(10)) + (not text.endswith(chr(10))):,} lines"
    if found.gave_up:
        head = (
            f"{path} ({size}): could not be parsed, its grammar gave up; get_file(path, lines) "
            f"shows it"
        )
        return _fitted(head, [], budget)
    if not found.symbols:
        return _fitted(f"{path} ({size}): no symbols found{_lost(found)}", [], budget)
    head = f"{path} ({size}, {len(found.symbols):,} symbols{_lost(found)})"
    return _fitted(head, [_line(each, depth) for each, depth in _depths(found.symbols)], budget)


def _lost(found: ParseResult) -> str:
    if not found.lost:
        return ""
    some = ", ".join(span_name(*span) for span in found.lost[:_STRETCHES])
    more = " and others" if len(found.lost) > _STRETCHES else ""
    return f"; parsed in part: lines {some}{more} could not be, and what they define may be missing"


def _depths(found: Sequence[CodeSymbol]) -> Iterator[tuple[CodeSymbol, int]]:
    """How far in each stands: by what it is inside of, which its scope need not be; a method of Go
    stands beside its type."""
    around: list[tuple[tuple[str, ...], int]] = []
    for each in found:
        while around and not (
            around[-1][0] == each.scope[: len(around[-1][0])] and each.last <= around[-1][1]
        ):
            around.pop()
        yield each, len(around)
        around.append(((*each.scope, each.name), each.last))


def _line(symbol: CodeSymbol, depth: int) -> str:
    said = marked(
        (symbol.signature or symbol.name) + (f"  # {clip(symbol.doc, _DOC)}" if symbol.doc else "")
    )[0]
    return f"{'  ' * depth}{symbol.first}-{symbol.last} {said}"


def _fitted(head: str, lines: Sequence[str], budget: int) -> CodeText:
    room = max(LEAST_ROOM, budget - NOTE_ROOM)
    pieces = [f"{head}\n", *(f"{line}\n" for line in lines)]
    kept = max(1, fitting(pieces, room, count))
    text = "".join(pieces[:kept]).rstrip("\n")
    left = len(pieces) - kept
    if left:
        text += (
            f"\n[{left:,} of {len(lines):,} symbols left out: a larger max_tokens shows them, "
            f"get_file(path, symbol) any of them]"
        )
    return CodeText(text, count(text), truncated=bool(left))


def _folder_outline(root: Root, path: str, budget: int, parsers: Parsers | None) -> CodeText:
    files = sorted(islice(_files(root, path), _MOST_FILES))
    if not files:
        return _fitted(f"{path or '.'}/: no files that are indexed", [], budget)
    head = f"{path or '.'}/ ({len(files):,}{' or more' * (len(files) == _MOST_FILES)} files)"
    room = max(LEAST_ROOM, budget - NOTE_ROOM) - count(f"{head}\n")
    if count("\n".join(_named(files))) > room:
        return _names_outline(head, path, files, room)
    if parsers is not None:
        return _files_outline(head, path, files, room, _Symbols(root, parsers))
    with Parsers(processes=1) as own:
        return _files_outline(head, path, files, room, _Symbols(root, own))


def _files(root: Root, path: str) -> Iterator[str]:
    """Of a folder and all in it; of the rest of the project nothing is looked at."""
    if not path:
        for folder in scan(root, SkippedFiles()):
            yield from _in(folder.path, folder.files)
        return
    waiting = [path]
    while waiting:
        for folder in scan(root, SkippedFiles(), under=waiting.pop()):
            yield from _in(folder.path, folder.files)
            waiting += _in(folder.path, folder.folders)


def _in(folder: str, names: Sequence[str] | Mapping[str, object]) -> Iterator[str]:
    return (f"{folder}/{name}" if folder else name for name in names)


def _named(files: Sequence[str]) -> list[str]:
    """Every file in short: a line for each folder, with the names in it."""
    return [f"{folder or '.'}/: {', '.join(names)}" for folder, names in _by_folder(files).items()]


def _by_folder(files: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for file in files:
        folder, _, name = file.rpartition("/")
        found.setdefault(folder, []).append(name)
    return found


@dataclass(frozen=True, slots=True)
class _Symbols:
    root: Root
    parsers: Parsers

    def lines(self, file: str, *, brief: bool) -> list[str]:
        """What a file defines on its outside, below its path; nothing where that is nothing.

        In brief: without comments, and of a file that has more than that without its variables.
        """
        try:
            text = read_text(self.root, file, ScanLimits().bytes)[1].text
        except NotTaken:
            return []
        found = parsed(text, file, self.parsers)
        if found.gave_up:
            return [f"{file} (could not be parsed)"]
        outer = [each for each, depth in _depths(found.symbols) if not depth]
        if brief:
            outer = [replace(each, doc="") for each in outer if each.kind not in _VALUES] or outer
        lines = [f"  {_line(each, 0)}" for each in outer[:_MOST_OF_ONE]]
        more = [f"  … {len(outer) - _MOST_OF_ONE:,} more"] * (len(outer) > _MOST_OF_ONE)
        return [file, *lines, *more] if lines else []


def _files_outline(
    head: str, path: str, files: Sequence[str], room: int, symbols: _Symbols
) -> CodeText:
    """Every file by its name; and, while there is room, what each defines, the ones first that tell
    most about a project."""
    left = room - count("\n".join(_named(files)))
    telling = [file for file in sorted(files, key=_weight) if is_told(language_of(file))]
    brief = left < _USUAL_OF_ONE * len(telling)
    shown: dict[str, list[str]] = {}
    missing: list[str] = []
    misses, until = 0, time.monotonic() + _SECONDS
    for file in telling:
        if left < _LEAST_OF_ONE or misses == _MISSES or time.monotonic() > until:
            missing.append(file)
            continue
        lines = symbols.lines(file, brief=brief)
        cost = count("\n".join(lines)) - count(file.rpartition("/")[2])
        if not lines:
            continue
        if cost <= left:
            shown[file] = lines
            left, misses = left - cost, 0
        else:
            missing.append(file)
            misses += 1
    text = _joined(head, files, shown)
    while shown and count(text) > room + count(
        f"{head}\n"
    ):  # tokens of pieces are not quite those of the whole
        missing.append(shown.popitem()[0])
        text = _joined(head, files, shown)
    if missing:
        whose = (
            f"symbols of {len(missing):,} of {len(files):,} files"
            if len(files) > 1
            else "its symbols"
        )
        text += (
            f"\n[{whose} left out: "
            f'outline(path="{_onward(path, missing)}") shows more of them, '
            f"or a larger max_tokens]"
        )
    return CodeText(text, count(text), truncated=bool(missing))


def _weight(file: str) -> tuple[bool, bool, str]:
    """Code before documents and settings, and tests and examples after both."""
    *folders, name = file.lower().split("/")
    is_later = (
        not _LATER.isdisjoint(folders)
        or name.startswith("test_")
        or "_test." in name
        or ".test." in name
    )
    return is_later, language_of(file).name in _NO_CODE, file


def _joined(head: str, files: Sequence[str], shown: Mapping[str, Sequence[str]]) -> str:
    blocks = [line for file in sorted(shown) for line in shown[file]]
    return "\n".join((head, *blocks, *_named([file for file in files if file not in shown])))


def _onward(path: str, missing: Sequence[str]) -> str:
    """What to ask for next: the folder that misses most, or a file where all are in the one that
    was asked for."""
    ((folder, _),) = Counter(file.rpartition("/")[0] for file in missing).most_common(1)
    return folder if folder != path else missing[0]


def _names_outline(head: str, path: str, files: Sequence[str], room: int) -> CodeText:
    """Where not even all names fit: every folder with how many it has, then names instead of
    numbers while there is room."""
    named = _by_folder(files)
    numbers = {folder: _number(folder, len(names)) for folder, names in named.items()}
    if count("\n".join(numbers.values())) > room:
        inner = Counter(_child(path, folder) for folder in named for _ in named[folder])
        numbers = {folder: _number(folder, number) for folder, number in inner.items()}
        named = {folder: names for folder, names in named.items() if folder == path}
    left = room - count("\n".join(numbers.values())) - _SLACK
    lines = dict(numbers)
    unnamed = len(files)
    for folder, names in named.items():
        whole = f"{folder or '.'}/: {', '.join(names)}"
        cost = count(whole) - count(numbers[folder])
        if cost <= left:
            lines[folder] = whole
            left -= cost
            unnamed -= len(names)
    kept = fitting([f"{line}\n" for line in lines.values()], room, count)
    folders = f" and {len(lines) - kept:,} of {len(lines):,} folders" if kept < len(lines) else ""
    onward = max(
        (folder for folder in lines if folder != path),
        key=lambda each: len(named.get(each, ())),
        default="",
    )
    ask = (
        f'outline(path="{onward}") shows some of them'
        if onward
        else "search_code finds files by what they hold"
    )
    text = "\n".join((head, *islice(lines.values(), kept)))
    text += f"\n[names of {unnamed:,} files{folders} left out: {ask}, or a larger max_tokens]"
    return CodeText(text, count(text), truncated=True)


def _number(folder: str, files: int) -> str:
    return f"{folder or '.'}/: {files:,} file{'s' * (files > 1)}"


def _child(path: str, folder: str) -> str:
    """The folder right below `path` in which another one is; the path itself where it is that."""
    inside = folder.removeprefix(path).strip("/").split("/")[0]
    return "/".join(filter(None, (path, inside)))
