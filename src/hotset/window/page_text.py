"""A page as a search index sees it: its text without secrets and encoded data, cut into stretches
that are found separately, and its gist (keywords, names, files, a token estimate). Pure, linear in
the bytes read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec

from hotset.nouns.page import Gist, Kind, Page
from hotset.sealing import find, seal
from hotset.text.stops import PAGE
from hotset.text.words import once, word_set
from hotset.window.arguments import written_text
from hotset.window.retrieval_tools import OUR_TOOLS

NOT_SEARCHED = frozenset({Kind.SYSTEM, Kind.THINKING, Kind.OPAQUE, Kind.IMAGE})
"""Kinds of pages that are never searched: what clients send each time, and what holds no words."""

PATH_NAMES = ("file_path", "filepath", "path", "filename", "file", "uri", "url", "notebook_path")
"""Argument names for a file or an address."""

MOST_ARGUMENTS = 64 * 1024
"""Bytes of a call's arguments that are read for a path."""

_SAMPLE = 4096
_ODD = re.compile(r"[\x00-\x07\x0b\x0e-\x1a\x1c-\x1f\ufffd]")
_UNREADABLE = 0.1  # share of these above which bytes are not text
# characters at either end of a long page that can be found: ends matter in logs
_BEGIN, _END = 384 * 1024, 128 * 1024
_TITLED_KINDS = frozenset(
    {Kind.WEB_FETCH, Kind.PAPER, Kind.TEST_RESULT, Kind.AGENT_MESSAGE, Kind.PLAN, Kind.FINDING}
)
_ESCAPES: Mapping[str, str] = {
    "\\n": "\n",
    "\\r": "\r",
    "\\t": "\t",
    '\\"': '"',
    "\\/": "/",
    "\\\\": "\\",
}
_ESCAPE = re.compile(r'\\[nrt"/\\]')
# Data in letters: one very long word, or line after line of the same 60 to 80 signs.
_DATA = re.compile(
    r"[A-Za-z0-9+/_=-]{200,}|^(?:[ \t]*[A-Za-z0-9+/=]{60,80}\r?\n){4,}", re.MULTILINE
)


def page_stretches(page: Page, content: bytes) -> Iterator[TextStretch]:
    """The stretches of a page. Secrets are sealed in the whole text first: a cut could hide the
    beginning of one.

    Of more than half a million characters only the first three quarters of that and the last
    quarter can be found.
    """
    if page.kind in NOT_SEARCHED or is_ours(page) or is_binary(content):
        return
    text = seal(content.decode("utf-8", "replace")).text
    if page.kind.family is Kind.TOOL_CALL:
        if written := written_text(content):
            yield from stretches(_without_data(seal(written[:_BEGIN]).text))
            return
        # Arguments are JSON, in which a script is one long line; what was escaped is sealed again.
        unescaped = _ESCAPE.sub(lambda escape: _ESCAPES[escape[0]], text[:_BEGIN])
        for each in stretches(_without_data(seal(unescaped).text)):
            yield TextStretch(each.text, (0, 0))
    elif len(text) <= _BEGIN + _END:
        yield from stretches(_without_data(text))
    else:
        begin, end = _line_border(text, _BEGIN), _line_border(text, len(text) - _END)
        yield from stretches(_without_data(text[:begin]))
        yield from stretches(_without_data(text[end:]), 1 + text.count("\n", 0, end))


def page_title(page: Page, path: str) -> str:
    """The title of each stretch: the page's tool, or its kind if informative, and its sealed
    path."""
    what = page.tool or (str(page.kind).replace("_", " ") if page.kind in _TITLED_KINDS else "")
    return f"{what} {path}".strip()


def path_in(arguments: bytes) -> str:
    """The file or address named in a call's arguments."""
    try:
        named: Any = msgspec.json.decode(arguments[:MOST_ARGUMENTS])
    except (ValueError, RecursionError):
        return ""
    if not isinstance(named, dict):
        return ""
    return next((named[name] for name in PATH_NAMES if isinstance(named.get(name), str)), "")


def is_ours(page: Page) -> bool:
    """True for calls and results of our own tools: results of an earlier search are not
    searched."""
    return page.tool.rpartition("__")[2] in OUR_TOOLS


def is_binary(content: bytes) -> bool:
    """True if the first bytes are not text."""
    sample = content[:_SAMPLE]
    text = sample.decode("utf-8", "replace")
    return b"\0" in sample or len(_ODD.findall(text)) > _UNREADABLE * max(1, len(text))


def _without_data(text: str) -> str:
    """The text without encoded data; every line keeps its number."""
    return _DATA.sub(lambda data: "\n" * data[0].count("\n") or " ", text)


def _line_border(text: str, near: int) -> int:
    return text.rfind("\n", 0, near) + 1 or near


_GIST_READ = 32 * 1024
_SECRET_REACH = 8 * 1024  # a secret that begins in the part read ends within this
_KEYWORDS, _ENTITIES, _FILES = 12, 16, 32
_LONGEST_WORD = 32
_LONGEST_NAME = 100
_LONGEST_PATH = 200
# longer mixes of letters and digits are more often keys and hashes than names, and are left out
_SECRET_LENGTH = 20
# longer words are several tokens; gives about 4 bytes per token on prose, 3.5 on code, 3 on JSON
_CHARS_PER_PIECE = 7
_IMAGE_TOKENS = 1600  # about the most that providers charge for one image

# Text is cut into pieces first and each piece is matched alone: no pattern can rescan the whole
# text.
_CUT = re.compile(r"[\s\"'`<>()\[\]{},;=|]+")
_TOKEN = re.compile(r"[^\W_]+|[^\w\s]{1,2}|_+")
_WORD = re.compile(r"[^\W\d_]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TICKET = re.compile(r"#\d{1,8}|[A-Z]{2,10}-\d{1,8}|[0-9a-f]{7,12}")
_LINE_NUMBER = re.compile(r"(:\d{1,7}){1,2}$")
_PATH = re.compile(r"(~|\.{1,2})?/?[\w.@+-]+(/[\w.@+-]+)*/?")
_ANY_ESCAPE = re.compile(r"\\[nrt\"\\/]")
_EXTENSIONS = word_set("""
        c cc cfg conf cpp cs css csv dart env ex go gradle h hpp html ini ipynb java js json jsonl
        jsx kt lock log lua md mjs php pl proto py pyi r rb rs rst scala sh sql svelte swift tf toml
        ts tsx txt vue xml yaml yml zig
        """)
_ERROR_ENDINGS = ("Error", "Exception", "Warning", "Failure", "Failed", "Panic")


def make_gist(page: Page, content: bytes) -> Gist:
    """The gist of a page with this content."""
    if page.kind is Kind.IMAGE or page.media.startswith(("image/", "audio/", "video/")):
        return Gist(page.id, _IMAGE_TOKENS, (), (), ())
    text = content[:_GIST_READ].decode("utf-8", "replace")
    pieces = [
        piece for piece in _CUT.split(_strip_escapes(page, _without_secrets(content))) if piece
    ]
    files = once(_paths(pieces), _FILES)
    return Gist(
        page=page.id,
        tokens=_tokens(text, len(content)),
        keywords=_most_common(_words(pieces), _KEYWORDS),
        entities=_common_entities(pieces, frozenset(files)),
        files=files,
    )


def _without_secrets(content: bytes) -> str:
    text = content[: _GIST_READ + _SECRET_REACH].decode("utf-8", "replace")
    pieces: list[str] = []
    at = 0
    for found in find(text):
        if found.span.start >= _GIST_READ:
            break
        pieces.append(text[at : found.span.start])
        at = found.span.end
    return " ".join((*pieces, text[at:_GIST_READ]))


def _tokens(text: str, size: int) -> int:
    """Token estimate: counted on the part read, extrapolated to the rest."""
    if not text:
        return 0
    counted = sum(
        -(-len(piece) // _CHARS_PER_PIECE) if piece.isascii() else len(piece)
        for piece in _TOKEN.findall(text)
    )
    return max(1, round(counted * max(1.0, size / _GIST_READ)))


def _strip_escapes(page: Page, text: str) -> str:
    """JSON text without escapes for line ends and quotes, which would stick to the neighbouring
    words."""
    return (
        _ANY_ESCAPE.sub(" ", text)
        if page.kind.family is Kind.TOOL_CALL or page.media == "application/json"
        else text
    )


def _words(pieces: Iterable[str]) -> Iterator[str]:
    for piece in pieces:
        if "/" in piece or _looks_secret(piece):
            continue
        for word in _WORD.findall(piece):
            lower = word.lower()
            if 3 <= len(lower) <= _LONGEST_WORD and lower not in PAGE:
                yield lower


def _common_entities(pieces: Iterable[str], files: frozenset[str]) -> tuple[str, ...]:
    names = Counter(_names(pieces, files))
    errors = [name for name in names if name.endswith(_ERROR_ENDINGS)]
    return once((*errors, *(name for name, _ in names.most_common())), _ENTITIES)


def _names(pieces: Iterable[str], files: frozenset[str]) -> Iterator[str]:
    for piece in pieces:
        bare = piece.strip(".:!?*")
        if _looks_secret(bare) or bare in files or "/" in bare:
            continue
        if _TICKET.fullmatch(bare):
            if not bare.isalpha() and not (bare.isdigit() and len(bare) > 8):
                yield bare
            continue
        for name in _NAME.findall(bare):
            if len(name) <= _LONGEST_NAME and _is_made_up(name) and not _looks_secret(name):
                yield name


def _is_made_up(name: str) -> bool:
    """True for snake case, camel case or the name of an error."""
    inner = name.strip("_")
    if len(inner) < 3:
        return False
    camel = any(a.islower() and b.isupper() for a, b in pairwise(inner))
    return "_" in inner or camel or (len(inner) > 7 and inner.endswith(_ERROR_ENDINGS))


def _paths(pieces: Iterable[str]) -> Iterator[str]:
    for piece in pieces:
        if len(piece) > _LONGEST_PATH or "//" in piece:
            continue
        path = _LINE_NUMBER.sub("", piece.rstrip(".,:!?*"))
        if _PATH.fullmatch(path) and _is_path(path) and not _looks_secret(path.rsplit("/", 1)[-1]):
            yield path


def _is_path(path: str) -> bool:
    """True if it has a known extension or is rooted: `and/or` is neither."""
    name = path.rstrip("/").rsplit("/", 1)[-1]
    stem, _, extension = name.rpartition(".")
    if extension.lower() in _EXTENSIONS and (stem or "/" in path):
        return not stem.replace(".", "").isdigit()
    return path.startswith(("/", "./", "../", "~/")) and path.count("/") > 1


def _looks_secret(piece: str) -> bool:
    if len(piece) < _SECRET_LENGTH:
        return False
    run = max(_runs(piece), default="", key=len)
    return (
        len(run) >= _SECRET_LENGTH
        and any(c.isdigit() for c in run)
        and any(c.isalpha() for c in run)
    )


def _runs(piece: str) -> Iterator[str]:
    """Letters and digits without a break: names have breaks, keys do not."""
    yield from re.findall(r"[A-Za-z0-9+]+", piece[: 4 * _LONGEST_PATH])


def _most_common(items: Iterable[str], most: int) -> tuple[str, ...]:
    return tuple(item for item, _ in Counter(items).most_common(most))


# characters: after these a blank line ends a stretch; gives about 145 tokens on average
_ENOUGH_TEXT = 400
# characters; the embedder reads 512 tokens of a stretch, and dense text has one per two characters
_LONGEST_STRETCH = 1000
_MOST_LINES = 60
_CRUMB = 120  # characters: a shorter last piece is joined to the one before
_SPACE_WITHIN = 100  # characters before a cut within a line that are searched for a space


@dataclass(frozen=True, slots=True)
class TextStretch:
    text: str
    lines: tuple[int, int]
    """First and last, inclusive, from 1."""


def stretches(text: str, first: int = 1) -> Iterator[TextStretch]:
    """Stretches that cover every line with text; `first` is the number of the text's first line."""
    lines = text.split("\n")
    for start, end in _line_runs(lines):
        numbers = first + start, first + end - 1
        if len(lines[start]) > _LONGEST_STRETCH:
            yield from (TextStretch(part, numbers) for part in _parts_of_line(lines[start]))
        else:
            yield TextStretch("\n".join(lines[start:end]), numbers)


def _line_runs(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Start and end (exclusive) of lines that belong together; a very long line is alone."""
    held: tuple[int, int] | None = None
    for start, end in _trim_blank(lines):
        if held is not None and _is_crumb(lines, held, end):
            held = held[0], end
            continue
        if held is not None:
            yield held
        held = start, end
    if held is not None:
        yield held


def _trim_blank(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The runs without blank lines at either end."""
    for start, end in pairwise(_borders(lines)):
        filled = [at for at in range(start, end) if lines[at].strip()]
        if filled:
            yield filled[0], filled[-1] + 1


def _borders(lines: Sequence[str]) -> Iterator[int]:
    start = size = 0
    yield 0
    for at, line in enumerate(lines):
        if at > start and (
            size + len(line) > _LONGEST_STRETCH
            or at - start >= _MOST_LINES
            or len(lines[start]) > _LONGEST_STRETCH
        ):
            yield at
            start, size = at, 0
        size += len(line) + 1
        if size >= _ENOUGH_TEXT and not line.strip():
            yield at + 1
            start, size = at + 1, 0
    if start < len(lines):
        yield len(lines)


def _is_crumb(lines: Sequence[str], held: tuple[int, int], end: int) -> bool:
    """True if it is too short to be found by itself and fits into the run before it."""
    size = sum(len(line) + 1 for line in lines[held[1] : end])
    return (
        size < _CRUMB and end - held[0] <= _MOST_LINES and len(lines[held[0]]) <= _LONGEST_STRETCH
    )


def _parts_of_line(line: str) -> Iterator[str]:
    """A long line, cut at spaces if possible."""
    at = 0
    while at < len(line):
        end = at + _LONGEST_STRETCH
        if end < len(line):
            space = line.rfind(" ", end - _SPACE_WITHIN, end)
            end = space if space > at else end
        if line[at:end].strip():
            yield line[at:end]
        at = end
