"""What a page is about, by cheap rules: keywords, names, files and a token estimate. Pure, linear
in what it looks at, and without secrets: a gist is shown where its page is not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

from hotset.nouns.page import Gist, Kind, Page
from hotset.text.stops import PAGE
from hotset.text.words import once, word_set

_LOOKED_AT = 32 * 1024
_BEYOND = 8 * 1024  # a secret that begins in what is looked at ends in this
_KEYWORDS, _ENTITIES, _FILES = 12, 16, 32
_LONGEST_WORD = 32
_LONGEST_NAME = 100
_LONGEST_PATH = 200
# letters and digits mixed beyond this are keys and hashes more often than names; those stay out
_SECRET_LENGTH = 20
# longer words are several tokens; comes to about 4 bytes a token on prose, 3.5 on code, 3 on JSON
_CHARS_PER_PIECE = 7
_IMAGE_TOKENS = 1600  # what providers charge at most for one image, give or take

# Text is cut into pieces first, and each piece is judged by itself: no pattern can run over the
# whole text again and again.
_CUT = re.compile(r"[\s\"'`<>()\[\]{},;=|]+")
_TOKEN = re.compile(r"[^\W_]+|[^\w\s]{1,2}|_+")
_WORD = re.compile(r"[^\W\d_]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TICKET = re.compile(r"#\d{1,8}|[A-Z]{2,10}-\d{1,8}|[0-9a-f]{7,12}")
_LINE_NUMBER = re.compile(r"(:\d{1,7}){1,2}$")
_PATH = re.compile(r"(~|\.{1,2})?/?[\w.@+-]+(/[\w.@+-]+)*/?")
_ESCAPES = re.compile(r"\\[nrt\"\\/]")
_EXTENSIONS = word_set("""
        c cc cfg conf cpp cs css csv dart env ex go gradle h hpp html ini ipynb java js json jsonl
        jsx kt lock log lua md mjs php pl proto py pyi r rb rs rst scala sh sql svelte swift tf toml
        ts tsx txt vue xml yaml yml zig
        """)
_NAME_OF_ERROR = ("Error", "Exception", "Warning", "Failure", "Failed", "Panic")


def gist(page: Page, content: bytes) -> Gist:
    """The gist of a page with this content."""
    if page.kind is Kind.IMAGE or page.media.startswith(("image/", "audio/", "video/")):
        return Gist(page.id, _IMAGE_TOKENS, (), (), ())
    text = content[:_LOOKED_AT].decode("utf-8", "replace")
    pieces = [piece for piece in _CUT.split(_unescaped(page, _without_secrets(content))) if piece]
    files = once(_paths(pieces), _FILES)
    return Gist(
        page=page.id,
        tokens=_tokens(text, len(content)),
        keywords=_commonest(_words(pieces), _KEYWORDS),
        entities=_entities(pieces, frozenset(files)),
        files=files,
    )


def _without_secrets(content: bytes) -> str:
    from hotset.sealing import find  # noqa: PLC0415 - a proxy starts without it; gists are worked out later

    text = content[: _LOOKED_AT + _BEYOND].decode("utf-8", "replace")
    pieces: list[str] = []
    at = 0
    for found in find(text):
        if found.span.start >= _LOOKED_AT:
            break
        pieces.append(text[at : found.span.start])
        at = found.span.end
    return " ".join((*pieces, text[at:_LOOKED_AT]))


def _tokens(text: str, size: int) -> int:
    """Counted on what was looked at, and taken to be alike in the rest."""
    if not text:
        return 0
    counted = sum(
        -(-len(piece) // _CHARS_PER_PIECE) if piece.isascii() else len(piece)
        for piece in _TOKEN.findall(text)
    )
    return max(1, round(counted * max(1.0, size / _LOOKED_AT)))


def _unescaped(page: Page, text: str) -> str:
    """In JSON, line ends and quotes are written as escapes; they would stick to the words beside
    them."""
    return (
        _ESCAPES.sub(" ", text)
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


def _entities(pieces: Iterable[str], files: frozenset[str]) -> tuple[str, ...]:
    names = Counter(_names(pieces, files))
    errors = [name for name in names if name.endswith(_NAME_OF_ERROR)]
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
    """Snake case, camel case or the name of an error: a word that somebody coined."""
    inner = name.strip("_")
    if len(inner) < 3:
        return False
    camel = any(a.islower() and b.isupper() for a, b in pairwise(inner))
    return "_" in inner or camel or (len(inner) > 7 and inner.endswith(_NAME_OF_ERROR))


def _paths(pieces: Iterable[str]) -> Iterator[str]:
    for piece in pieces:
        if len(piece) > _LONGEST_PATH or "//" in piece:
            continue
        path = _LINE_NUMBER.sub("", piece.rstrip(".,:!?*"))
        if _PATH.fullmatch(path) and _is_path(path) and not _looks_secret(path.rsplit("/", 1)[-1]):
            yield path


def _is_path(path: str) -> bool:
    """Something with a known ending, or something rooted: `and/or` is neither."""
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


def _commonest(items: Iterable[str], most: int) -> tuple[str, ...]:
    return tuple(item for item, _ in Counter(items).most_common(most))
