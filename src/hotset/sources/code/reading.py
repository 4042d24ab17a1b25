"""Files and outlines for agents: within a budget of tokens, saying what was left out, never anything outside of the project."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from hotset.errors import NotFound
from hotset.nouns.retrieval import Pieces, Span
from hotset.sources.code.languages import language_of
from hotset.sources.code.opening import NotTaken, Root, Why, parts_of, shown
from hotset.sources.code.parsing import Parsers
from hotset.sources.code.scan import Limits, Tally, scan
from hotset.sources.code.symbols import Symbol
from hotset.sources.code.texts import read_text
from hotset.tokens import count
from hotset.window.pieces import lines_of
from hotset.window.slice.fit import Cut, fitting
from hotset.window.slice.lines import Text, by_lines, from_the_start, merged, show
from hotset.window.slice.symbol import by_symbol

BUDGET = 2000
_MOST_BYTES = 5_000_000  # a file that is asked for by name may be longer than one that is indexed
_NOTE_ROOM = 60  # tokens kept for the line that says what was left out
_LEAST_ROOM = 20
_PROPOSED = 5
_DOC = 80  # characters of a comment in an outline
_MOST_OUTLINED = 200  # files of a folder whose symbols are looked up; the rest is listed by name


@dataclass(frozen=True, slots=True)
class Told:
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
) -> Told:
    """A file, some of its lines, or one of its symbols. Raises `NotFound`, with a sentence for whoever asked.

    Whoever asks more than once brings `parsers`: starting one and unpacking a grammar takes half a second.
    """
    with Root(root) as opened:
        try:
            text = read_text(opened, path, _MOST_BYTES)[1].text
        except NotTaken as error:
            raise NotFound(_why_not(opened, path, error.why)) from error
    path = "/".join(parts_of(path))
    room = max(_LEAST_ROOM, budget - _NOTE_ROOM)
    if symbol:
        cut = _symbol(text, path, symbol, room, parsers)
    elif lines:
        cut = by_lines(text, lines, room, count)
    else:
        cut = from_the_start(text, room, count)
    return _told(path, cut)


def outline(root: Path, path: str = "", *, budget: int = BUDGET, parsers: Parsers | None = None) -> Told:
    """What a file defines, or what the files of a folder do. Raises `NotFound`."""
    with Root(root) as opened:
        try:
            if opened.is_folder(path):
                return _folder_outline(opened, "/".join(parts_of(path)), budget, parsers)
            text = read_text(opened, path, _MOST_BYTES)[1].text
        except NotTaken as error:
            raise NotFound(_why_not(opened, path, error.why)) from error
    path = "/".join(parts_of(path))
    found = _symbols(text, path, parsers)
    if not found:
        return _fitted(f"{path} ({_lines(text)} lines): no symbols found", [], budget, "")
    head = f"{path} ({_lines(text)} lines, {len(found)} symbols)"
    return _fitted(head, [_line(each) for each in found], budget, "symbols; get_file with a symbol or lines shows one")


def _symbol(text: str, path: str, name: str, room: int, parsers: Parsers | None) -> Cut:
    """By the file's grammar; by brackets and indentation where that knows no such name."""
    wanted = name.strip().rstrip("()").replace("::", ".").replace("#", ".")
    found = _symbols(text, path, parsers)
    spans = [(each.first, each.last) for each in found if each.qualified == wanted]
    spans = spans or [(each.first, each.last) for each in found if f".{each.qualified}".endswith(f".{wanted}")]
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


def _symbols(text: str, path: str, parsers: Parsers | None) -> tuple[Symbol, ...]:
    language = language_of(path, text)
    if parsers is not None:
        return parsers.symbols(text, language).symbols
    with Parsers(processes=1) as own:
        return own.symbols(text, language).symbols


def _folder_outline(root: Root, path: str, budget: int, parsers: Parsers | None) -> Told:
    files = sorted(_files(root, path))
    if not files:
        return _fitted(f"{path or '.'}/: no files that are indexed", [], budget, "")
    if parsers is None:
        with Parsers(processes=1) as own:
            return _files_outline(root, path, files, budget, own)
    return _files_outline(root, path, files, budget, parsers)


def _files_outline(root: Root, path: str, files: Sequence[str], budget: int, parsers: Parsers) -> Told:
    """First every file by name; then, while there is room, what each defines on its outside."""
    head = f"{path or '.'}/ ({len(files)} files)"
    plain = _fitted(head, list(files), budget, "files; outline of a folder in it shows them")
    if plain.truncated or len(files) > _MOST_OUTLINED:
        return plain
    lines: list[str] = []
    for file in files:
        lines.append(file)
        try:
            text = read_text(root, file, Limits().bytes)[1].text
        except NotTaken:
            continue
        found = parsers.symbols(text, language_of(file, text)).symbols
        lines += [f"  {_line(each)}" for each in found if not each.scope]
    full = _fitted(head, lines, budget, "")
    return plain if full.truncated else full


def _files(root: Root, path: str) -> Iterator[str]:
    inside = f"{path}/" if path else ""
    for folder in scan(root, Tally()):
        if f"{folder.path}/".startswith(inside) or not inside:
            yield from (f"{folder.path}/{name}" if folder.path else name for name in folder.files)


def _line(symbol: Symbol) -> str:
    indent = "  " * len(symbol.scope)
    doc = symbol.doc if len(symbol.doc) <= _DOC else symbol.doc[: _DOC - 1] + "…"
    return f"{indent}{symbol.first}-{symbol.last} {symbol.signature or symbol.name}" + (f"  # {doc}" if doc else "")


def _fitted(head: str, lines: Sequence[str], budget: int, more: str) -> Told:
    room = max(_LEAST_ROOM, budget - _NOTE_ROOM)
    pieces = [f"{head}\n", *(f"{line}\n" for line in lines)]
    kept = max(1, fitting(pieces, room, count))
    text = "".join(pieces[:kept]).rstrip("\n")
    left = len(pieces) - kept
    if left:
        text += f"\n[{left:,} of {len(lines):,} {more or 'lines'} left out]"
    return Told(text, count(text), truncated=bool(left))


def _told(path: str, cut: Cut) -> Told:
    head = f"[{path}{': ' + cut.note if cut.note else ''}]"
    text = f"{head}\n{cut.text}" if cut.text else head
    return Told(text, count(text), truncated=not cut.whole)


def _why_not(root: Root, path: str, why: Why) -> str:
    if why is Why.STRANGE_NAME:
        return f"{shown(path)[:200]!r} is no path below the project's folder: give one like src/app.py"
    if why is not Why.GONE:
        return f"{shown(path)} is not read: {why}"
    parts = parts_of(path)
    try:
        beside = root.names("/".join(parts[:-1]))
    except NotTaken:
        beside = []
    near = get_close_matches(parts[-1], beside, _PROPOSED, 0.5) if parts else []
    return f"no file {shown(path)}" + (f"; there is {', '.join(map(shown, near))}" if near else "")


def _lines(text: str) -> int:
    return len(lines_of(text))
