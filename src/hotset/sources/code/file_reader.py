"""Files for agents: within a token budget, with a note on what was left out, never anything outside
of the project.

What the index skips by a rule is not read here either: that is what the person consented to.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from hotset.errors import NotFound
from hotset.files.root import NotTaken, Root, Why, below, parts_of, shown
from hotset.nouns.retrieval import Pieces, Span
from hotset.sources.code.parsers import ParseResult, Parsers
from hotset.sources.code.scan import ScanLimits, SkippedFiles, SkippedPath, left_out, scan
from hotset.sources.code.symbols import CodeSymbol, has_symbols
from hotset.sources.code.texts import read_text
from hotset.text.characters import MARK, mark_invisible
from hotset.text.clip import clip
from hotset.text.languages import language_of
from hotset.tokens import count
from hotset.window.slice.fit import Cut, count_fitting
from hotset.window.slice.lines import Text, by_lines, from_the_start, merge_spans, show, span_name
from hotset.window.slice.symbol import by_symbol

BUDGET = 2000
MOST_BYTES = 5_000_000  # a file that is asked for by name may be longer than one that is indexed
NOTE_ROOM = 60  # tokens kept for the line that says what was left out
LEAST_ROOM = 20
_PROPOSED = 5
_RULES = {
    Why.IGNORED: ".gitignore, .ignore or .hotsetignore excludes {}",
    Why.EXCLUDED: "{} is left out by its name, as files of tools are",
    Why.STRANGE_IGNORE: "{} is no regular file, and nothing is read until it is gone",
}


@dataclass(frozen=True, slots=True)
class CodeText:
    text: str
    tokens: int
    truncated: bool
    """Less than requested; the text says what is missing and how to get it."""


def get_file(
    root: Path,
    path: str,
    *,
    lines: Sequence[Span | Pieces] = (),
    symbol: str = "",
    budget: int = BUDGET,
    parsers: Parsers | None = None,
) -> CodeText:
    """A file, some of its lines, or one of its symbols. Raises `NotFound`, with a sentence for the
    caller.

    Pass `parsers` to call it more than once: starting one and unpacking a grammar takes half a
    second.
    """
    with Root(root) as opened:
        path, text = file_text(opened, below(root, path))
    room = max(LEAST_ROOM, budget - NOTE_ROOM)
    if symbol:
        cut = _cut_symbol(text, path, symbol, room, parsers)
    elif lines:
        cut = by_lines(text, lines, room, count)
    else:
        cut = from_the_start(text, room, count)
    if not cut.text and not cut.whole:
        raise NotFound(f"{path}: {cut.note}; see outline(path) or get_file(path, lines)")
    return _render_file(path, cut.text, cut.note, truncated=not cut.whole)


def file_text(root: Root, path: str) -> tuple[str, str]:
    """A file's normalised path and its text. Raises `NotFound`."""
    check_readable(root, path)
    if root.is_folder(path):
        raise NotFound(f"{path or '.'} is a folder: use outline(path)")
    try:
        return "/".join(parts_of(path)), read_text(root, path, MOST_BYTES)[1].text
    except NotTaken as error:
        raise NotFound(_refusal_text(root, path, SkippedPath(path, error.why))) from error


def check_readable(root: Root, path: str) -> None:
    """Raises `NotFound` for a file or folder that does not exist or that a rule skips."""
    try:
        found = left_out(root, path, ScanLimits(bytes=MOST_BYTES))
    except NotTaken as error:
        found = SkippedPath(path, error.why)
    if found is not None:
        raise NotFound(_refusal_text(root, path, found))


def parse_text(text: str, path: str, parsers: Parsers | None) -> ParseResult:
    language = language_of(path, text)
    if parsers is not None:
        return parsers.symbols(text, language)
    with Parsers(processes=1) as own:
        return own.symbols(text, language)


def _cut_symbol(text: str, path: str, name: str, room: int, parsers: Parsers | None) -> Cut:
    """The symbol's lines by the file's grammar; by brackets and indentation if that finds no such
    name."""
    wanted = name.strip().rstrip("()").replace("::", ".").replace("#", ".")
    found = parse_text(text, path, parsers).symbols
    spans = [(each.first, each.last) for each in found if each.qualified == wanted]
    spans = spans or [
        (each.first, each.last) for each in found if f".{each.qualified}".endswith(f".{wanted}")
    ]
    if spans:
        several = f"{len(spans)} definitions: " if len(spans) > 1 else ""
        return show(Text(text), merge_spans(spans), room, count, what=several)
    cut = by_symbol(text, name, room, count)
    if cut.text or not found:
        return cut
    near = get_close_matches(wanted, [each.qualified for each in found], _PROPOSED, 0.4) or [
        each.qualified for each in found[:_PROPOSED]
    ]
    return Cut("", whole=False, note=f"no symbol {shown(name)[:80]!r}; it has {', '.join(near)}")


def _render_file(path: str, content: str, note: str, *, truncated: bool) -> CodeText:
    content, hidden = mark_invisible(content)
    notes = [note] * bool(note) + [f"{hidden:,} hidden characters shown as {MARK}"] * bool(hidden)
    head = f"[{path}{': ' + '; '.join(notes) if notes else ''}]"
    text = f"{head}\n{content}" if content else head
    return CodeText(text, count(text), truncated)


def _refusal_text(root: Root, path: str, found: SkippedPath) -> str:
    if found.why is Why.STRANGE_NAME:
        return (
            f"{shown(path)[:200]!r} is not below the project's folder: give a path like src/app.py"
        )
    if found.why is Why.GONE:
        return f"no file {shown(path)}{_suggest_names(root, found.path)}"
    if found.why is Why.SECRET:
        return f"{shown(path)} is not read: {found.why}"
    rule = _RULES.get(found.why, "{}: " + found.why).format(shown(found.path))
    return f"{shown(path)} is not read: {rule}. Use your own file tool"


def _suggest_names(root: Root, path: str) -> str:
    """Similar names of existing files, as the end of a sentence."""
    folder, _, name = path.rpartition("/")
    there = next(scan(root, SkippedFiles(), under=folder), None)
    names = [] if there is None else [*there.files, *(f"{each}/" for each in there.folders)]
    near = get_close_matches(name, names, _PROPOSED, 0.5)
    return f"; there is {', '.join(map(shown, near))}" if near else ""


_DOC = 80  # characters of a comment in an outline
_MOST_FILES = 50_000  # of a folder; who outlines more wants another tool
# symbols of one file of many; a file of a thousand functions would leave no room for the others
_MOST_OF_ONE = 25
_USUAL_OF_ONE = 250  # tokens of what a file defines, with comments
_LEAST_OF_ONE = 15  # tokens; where fewer are left, no file's symbols fit
_MISSES = 3  # files in a row whose symbols did not fit; the next ones' hardly will
_SECONDS = 3.0  # of parsing the files of a folder: a model waits
_SLACK = 20  # tokens by which the sum of pieces may miss the whole
_STRETCHES = 3  # of lost lines that are listed
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
    """The symbols of a file, or of the files of a folder. Raises `NotFound`."""
    path = below(root, path)
    with Root(root) as opened:
        if opened.is_folder(path):
            check_readable(opened, path)
            return _folder_outline(opened, "/".join(parts_of(path)), budget, parsers)
        path, text = file_text(opened, path)
    found = parse_text(text, path, parsers)
    size = f"{text.count(chr(10)) + (not text.endswith(chr(10))):,} lines"
    if found.gave_up:
        head = f"{path} ({size}): could not be parsed; read it: get_file(path, lines)"
        return _fit_outline(head, [], budget)
    if not found.symbols:
        return _fit_outline(f"{path} ({size}): no symbols found{_describe_lost(found)}", [], budget)
    head = f"{path} ({size}, {len(found.symbols):,} symbols{_describe_lost(found)})"
    return _fit_outline(
        head, [_line(each, depth) for each, depth in _depths(found.symbols)], budget
    )


def _describe_lost(found: ParseResult) -> str:
    if not found.lost:
        return ""
    some = ", ".join(span_name(*span) for span in found.lost[:_STRETCHES])
    more = " and others" if len(found.lost) > _STRETCHES else ""
    return f"; parsed in part: definitions in lines {some}{more} may be missing"


def _depths(found: Sequence[CodeSymbol]) -> Iterator[tuple[CodeSymbol, int]]:
    """The nesting depth of each symbol: by the lines that contain it, which may differ from its
    scope; a method of Go is beside its type."""
    around: list[tuple[tuple[str, ...], int]] = []
    for each in found:
        while around and not (
            around[-1][0] == each.scope[: len(around[-1][0])] and each.last <= around[-1][1]
        ):
            around.pop()
        yield each, len(around)
        around.append(((*each.scope, each.name), each.last))


def _line(symbol: CodeSymbol, depth: int) -> str:
    text = mark_invisible(
        (symbol.signature or symbol.name) + (f"  # {clip(symbol.doc, _DOC)}" if symbol.doc else "")
    )[0]
    return f"{'  ' * depth}{symbol.first}-{symbol.last} {text}"


def _fit_outline(head: str, lines: Sequence[str], budget: int) -> CodeText:
    room = max(LEAST_ROOM, budget - NOTE_ROOM)
    pieces = [f"{head}\n", *(f"{line}\n" for line in lines)]
    kept = max(1, count_fitting(pieces, room, count))
    text = "".join(pieces[:kept]).rstrip("\n")
    left = len(pieces) - kept
    if left:
        text += (
            f"\n[left out {left:,} of {len(lines):,} symbols: raise max_tokens, "
            "or get_file(path, symbol)]"
        )
    return CodeText(text, count(text), truncated=bool(left))


def _folder_outline(root: Root, path: str, budget: int, parsers: Parsers | None) -> CodeText:
    files = sorted(islice(_files(root, path), _MOST_FILES))
    if not files:
        return _fit_outline(f"{path or '.'}/: no files that are indexed", [], budget)
    head = f"{path or '.'}/ ({len(files):,}{' or more' * (len(files) == _MOST_FILES)} files)"
    room = max(LEAST_ROOM, budget - NOTE_ROOM) - count(f"{head}\n")
    if count("\n".join(_list_names(files))) > room:
        return _names_outline(head, path, files, room)
    if parsers is not None:
        return _files_outline(head, path, files, room, _Symbols(root, parsers))
    with Parsers(processes=1) as own:
        return _files_outline(head, path, files, room, _Symbols(root, own))


def _files(root: Root, path: str) -> Iterator[str]:
    """The files of a folder and its subfolders; the rest of the project is not scanned."""
    if not path:
        for folder in scan(root, SkippedFiles()):
            yield from _join_paths(folder.path, folder.files)
        return
    waiting = [path]
    while waiting:
        for folder in scan(root, SkippedFiles(), under=waiting.pop()):
            yield from _join_paths(folder.path, folder.files)
            waiting += _join_paths(folder.path, folder.folders)


def _join_paths(folder: str, names: Sequence[str] | Mapping[str, object]) -> Iterator[str]:
    return (f"{folder}/{name}" if folder else name for name in names)


def _list_names(files: Sequence[str]) -> list[str]:
    """All files in short: a line for each folder, with the names in it."""
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
        """The outermost symbols of a file, below its path; empty if there are none.

        In brief: without comments, and without variables if the file has other symbols.
        """
        try:
            text = read_text(self.root, file, ScanLimits().bytes)[1].text
        except NotTaken:
            return []
        found = parse_text(text, file, self.parsers)
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
    """All files by name; and, while there is room, their symbols, the most informative files
    first."""
    left = room - count("\n".join(_list_names(files)))
    telling = [file for file in sorted(files, key=_weight) if has_symbols(language_of(file))]
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
    text = _join_outline(head, files, shown)
    while shown and count(text) > room + count(
        f"{head}\n"
    ):  # tokens of pieces are not quite those of the whole
        missing.append(shown.popitem()[0])
        text = _join_outline(head, files, shown)
    if missing:
        whose = (
            f"symbols of {len(missing):,} of {len(files):,} files"
            if len(files) > 1
            else "its symbols"
        )
        onward = _next_path(path, missing)
        text += f'\n[left out {whose}: raise max_tokens, or outline(path="{onward}")]'
    return CodeText(text, count(text), truncated=bool(missing))


def _weight(file: str) -> tuple[bool, bool, str]:
    """Sort key: code before documents and settings, and tests and examples after both."""
    *folders, name = file.lower().split("/")
    is_later = (
        not _LATER.isdisjoint(folders)
        or name.startswith("test_")
        or "_test." in name
        or ".test." in name
    )
    return is_later, language_of(file).name in _NO_CODE, file


def _join_outline(head: str, files: Sequence[str], shown: Mapping[str, Sequence[str]]) -> str:
    blocks = [line for file in sorted(shown) for line in shown[file]]
    return "\n".join((head, *blocks, *_list_names([file for file in files if file not in shown])))


def _next_path(path: str, missing: Sequence[str]) -> str:
    """The path to ask for next: the folder with most missing files, or a file if all are in the
    requested folder."""
    ((folder, _),) = Counter(file.rpartition("/")[0] for file in missing).most_common(1)
    return folder if folder != path else missing[0]


def _names_outline(head: str, path: str, files: Sequence[str], room: int) -> CodeText:
    """If not even all names fit: every folder with its count, then names instead of counts while
    there is room."""
    named = _by_folder(files)
    numbers = {folder: _count_line(folder, len(names)) for folder, names in named.items()}
    if count("\n".join(numbers.values())) > room:
        inner = Counter(_child_folder(path, folder) for folder in named for _ in named[folder])
        numbers = {folder: _count_line(folder, number) for folder, number in inner.items()}
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
    kept = count_fitting([f"{line}\n" for line in lines.values()], room, count)
    folders = f" and {len(lines) - kept:,} of {len(lines):,} folders" if kept < len(lines) else ""
    onward = max(
        (folder for folder in lines if folder != path),
        key=lambda each: len(named.get(each, ())),
        default="",
    )
    ask = f'outline(path="{onward}")' if onward else "search_code(query)"
    text = "\n".join((head, *islice(lines.values(), kept)))
    text += f"\n[left out names of {unnamed:,} files{folders}: raise max_tokens, or {ask}]"
    return CodeText(text, count(text), truncated=True)


def _count_line(folder: str, files: int) -> str:
    return f"{folder or '.'}/: {files:,} file{'s' * (files > 1)}"


def _child_folder(path: str, folder: str) -> str:
    """The folder right below `path` that contains `folder`; `path` itself if they are equal."""
    inside = folder.removeprefix(path).strip("/").split("/")[0]
    return "/".join(filter(None, (path, inside)))
