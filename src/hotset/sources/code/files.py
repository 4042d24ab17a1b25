"""Files for agents: within a budget of tokens, saying what was left out, never anything outside of
the project.

What the index leaves out by a rule is not read here either: that is what the person who allowed it
was told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from hotset.errors import NotFound
from hotset.files.root import NotTaken, Root, Why, below, parts_of, shown
from hotset.nouns.retrieval import Pieces, Span
from hotset.sources.code.parsers import ParseResult, Parsers
from hotset.sources.code.scan import ScanLimits, SkippedFiles, SkippedPath, left_out, scan
from hotset.sources.code.texts import read_text
from hotset.text.characters import MARK, marked
from hotset.text.languages import language_of
from hotset.tokens import count
from hotset.window.slice.fit import Cut
from hotset.window.slice.lines import Text, by_lines, from_the_start, merged, show
from hotset.window.slice.symbol import by_symbol

BUDGET = 2000
MOST_BYTES = 5_000_000  # a file that is asked for by name may be longer than one that is indexed
NOTE_ROOM = 60  # tokens kept for the line that says what was left out
LEAST_ROOM = 20
_PROPOSED = 5
_RULES = {
    Why.IGNORED: ".gitignore, .ignore or .hotsetignore excludes {}",
    Why.EXCLUDED: "{} is left out by its name, like all that tools put into a project",
    Why.STRANGE_IGNORE: "{} is no ordinary file, and nothing is read while it is there",
}


@dataclass(frozen=True, slots=True)
class CodeText:
    text: str
    tokens: int
    truncated: bool
    """Less than was asked for; the text says what is missing and how to get it."""


def get_file(
    root: Path,
    path: str,
    *,
    lines: Sequence[Span | Pieces] = (),
    symbol: str = "",
    budget: int = BUDGET,
    parsers: Parsers | None = None,
) -> CodeText:
    """A file, some of its lines, or one of its symbols. Raises `NotFound`, with a sentence for
    whoever asked.

    Whoever asks more than once brings `parsers`: starting one and unpacking a grammar takes half a
    second.
    """
    with Root(root) as opened:
        path, text = file_text(opened, below(root, path))
    room = max(LEAST_ROOM, budget - NOTE_ROOM)
    if symbol:
        cut = _symbol(text, path, symbol, room, parsers)
    elif lines:
        cut = by_lines(text, lines, room, count)
    else:
        cut = from_the_start(text, room, count)
    if not cut.text and not cut.whole:
        raise NotFound(
            f"{path}: {cut.note}; outline(path) tells what it defines, get_file(path, lines) "
            f"shows any part of it"
        )
    return _told(path, cut.text, cut.note, truncated=not cut.whole)


def file_text(root: Root, path: str) -> tuple[str, str]:
    """The path of a file, as it is told, and its text. Raises `NotFound`."""
    check(root, path)
    if root.is_folder(path):
        raise NotFound(f"{path or '.'} is a folder: outline(path) tells what is in it")
    try:
        return "/".join(parts_of(path)), read_text(root, path, MOST_BYTES)[1].text
    except NotTaken as error:
        raise NotFound(_why_not(root, path, SkippedPath(path, error.why))) from error


def check(root: Root, path: str) -> None:
    """Raises `NotFound` for a file or a folder that is not there, or that a rule leaves out."""
    try:
        found = left_out(root, path, ScanLimits(bytes=MOST_BYTES))
    except NotTaken as error:
        found = SkippedPath(path, error.why)
    if found is not None:
        raise NotFound(_why_not(root, path, found))


def parsed(text: str, path: str, parsers: Parsers | None) -> ParseResult:
    language = language_of(path, text)
    if parsers is not None:
        return parsers.symbols(text, language)
    with Parsers(processes=1) as own:
        return own.symbols(text, language)


def _symbol(text: str, path: str, name: str, room: int, parsers: Parsers | None) -> Cut:
    """By the file's grammar; by brackets and indentation where that knows no such name."""
    wanted = name.strip().rstrip("()").replace("::", ".").replace("#", ".")
    found = parsed(text, path, parsers).symbols
    spans = [(each.first, each.last) for each in found if each.qualified == wanted]
    spans = spans or [
        (each.first, each.last) for each in found if f".{each.qualified}".endswith(f".{wanted}")
    ]
    if spans:
        several = f"{len(spans)} places define it: " if len(spans) > 1 else ""
        return show(Text(text), merged(spans), room, count, what=several)
    cut = by_symbol(text, name, room, count)
    if cut.text or not found:
        return cut
    near = get_close_matches(wanted, [each.qualified for each in found], _PROPOSED, 0.4) or [
        each.qualified for each in found[:_PROPOSED]
    ]
    return Cut("", whole=False, note=f"no symbol {shown(name)[:80]!r}; it has {', '.join(near)}")


def _told(path: str, content: str, note: str, *, truncated: bool) -> CodeText:
    content, hidden = marked(content)
    said = [note] * bool(note) + [f"{hidden:,} hidden characters are shown as {MARK}"] * bool(
        hidden
    )
    head = f"[{path}{': ' + '; '.join(said) if said else ''}]"
    text = f"{head}\n{content}" if content else head
    return CodeText(text, count(text), truncated)


def _why_not(root: Root, path: str, found: SkippedPath) -> str:
    if found.why is Why.STRANGE_NAME:
        return (
            f"{shown(path)[:200]!r} is no path below the project's folder: give one like src/app.py"
        )
    if found.why is Why.GONE:
        return f"no file {shown(path)}{_beside(root, found.path)}"
    if found.why is Why.SECRET:
        return f"{shown(path)} is not read: {found.why}"
    rule = _RULES.get(found.why, "{}: " + found.why).format(shown(found.path))
    return f"{shown(path)} is not read: {rule}. If you need it, read it with your own file tool"


def _beside(root: Root, path: str) -> str:
    """Names that may have been meant, of what is there instead."""
    folder, _, name = path.rpartition("/")
    there = next(scan(root, SkippedFiles(), under=folder), None)
    names = [] if there is None else [*there.files, *(f"{each}/" for each in there.folders)]
    near = get_close_matches(name, names, _PROPOSED, 0.5)
    return f"; there is {', '.join(map(shown, near))}" if near else ""
