"""Counts tokens: of any text, of any size, in bounded time; repeated texts cost only their hash;
and of images, by the providers' rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from math import ceil

from hotset.files.lru import Lru
from hotset.tokens.encodings import Encoding, load

# characters; the library recurses over a run of spaces and fails somewhere above three times this
_SLICE = 1 << 15
_SEAM_NEAR = 1 << 10  # characters searched first for a cut: it is nearly always there
# Where an encoding always begins a new token: after a word or number that is followed by something
# other than a letter (a contraction belongs to its word), and at the beginning of a line.
_SEAM = re.compile(r"[A-Za-z0-9](?=[\x00-&(-/:-@\[-`{-\x7f])|\n(?=[^\s/])")
_WORTH_REMEMBERING = 512  # bytes; below this a count takes little longer than the hash
_MOST_REMEMBERED = 1 << 14  # pages of some dozen long sessions, in about 4 MB

_remembered: Lru[bytes, int] = Lru("token counts", count=_MOST_REMEMBERED)


def count(text: str | bytes, encoding: Encoding = Encoding.O200K) -> int:
    """The tokens of a text. Never raises because of its content: broken UTF-8 counts as the
    replacement character."""
    if len(text) < _WORTH_REMEMBERING:
        return _count(text, encoding)
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    key = blake2b(data, digest_size=16, person=encoding.encode()).digest()
    return _remembered.get_or_make(key, lambda: _count(text, encoding))


def warm(encoding: Encoding = Encoding.O200K) -> None:
    """Loads an encoding ahead of its first use."""
    load(encoding)


def _count(text: str | bytes, encoding: Encoding) -> int:
    encode = load(encoding)
    return sum(len(encode(piece)) for piece in _slices(_readable(text)))


def _readable(text: str | bytes) -> str:
    """The text without lone surrogates, which no encoding accepts."""
    if isinstance(text, bytes):
        return text.decode("utf-8", "replace")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _slices(text: str) -> Iterator[str]:
    """Pieces of the text whose counts add up to its own. Only a slice without a seam (one endless
    word) is cut anywhere."""
    here = 0
    while len(text) - here > _SLICE:
        end = _seam(text, here, here + _SLICE)
        yield text[here:end]
        here = end
    yield text[here:]


def _seam(text: str, begin: int, end: int) -> int:
    for near in (end - _SEAM_NEAR, begin):
        ends = [found.end() for found in _SEAM.finditer(text, near, end)]
        if ends:
            return ends[-1]
    return end


_USUAL_IMAGE = 1600  # about a screenshot, with most providers
_CLAUDE_PATCH, _OPENAI_PATCH, _OPENAI_TILE, _GEMINI_TILE = 28, 32, 512, 768
_GEMINI_TILE_TOKENS, _GEMINI_3_TOKENS = 258, 1100

# model -> most pixels on the long edge, most tokens.
# https://platform.claude.com/docs/en/build-with-claude/vision, 2026-11
_CLAUDE_SMALL = re.compile(r"claude-(3|(opus|sonnet)-4(-[1-6]|-2\d{7}|$)|haiku-4)")
_SMALL_CLAUDE, _LARGE_CLAUDE = (1568, 1568), (2576, 4784)

# model -> tokens a patch, most patches; first match wins.
# https://platform.openai.com/docs/guides/images-vision, 2026-11
_OPENAI_PATCHED = (
    (re.compile(r"gpt-(4\.1|5)-mini"), 1.62, 1536),
    (re.compile(r"gpt-(4\.1|5)-nano"), 2.46, 1536),
    (re.compile(r"o4-mini"), 1.72, 1536),
    (re.compile(r"gpt-5\.([4-9]|\d\d)|gpt-[6-9]"), 1.2, 10_000),
)
# model -> tokens for the image, tokens a tile
_OPENAI_TILED = (
    (re.compile(r"gpt-4o-mini"), 2833, 5667),
    (re.compile(r"gpt-5"), 70, 140),
    (re.compile(r"o[13]"), 75, 150),
    (re.compile(r"gpt-|chatgpt-"), 85, 170),
)


def image(size: tuple[int, int] | None, model: str = "") -> int:
    """The tokens of an image of this width and height; a usual value if the size is unknown."""
    if size is None or min(size) <= 0:
        return _USUAL_IMAGE
    name = model.lower().rpartition("/")[2]
    if name.startswith("gemini"):
        return _gemini(size, name)
    for pattern, each, most in _OPENAI_PATCHED:
        if pattern.match(name):
            return ceil(each * min(most, _patches(size, _OPENAI_PATCH)))
    for pattern, once, each in _OPENAI_TILED:
        if pattern.match(name):
            return once + each * _patches(_for_tiles(size), _OPENAI_TILE)
    return _claude(size, name)


def _claude(size: tuple[int, int], name: str) -> int:
    longest, most = _SMALL_CLAUDE if _CLAUDE_SMALL.match(name) else _LARGE_CLAUDE
    return min(most, _patches(_scale_down(size, longest), _CLAUDE_PATCH))


def _gemini(size: tuple[int, int], name: str) -> int:
    if not name.startswith(("gemini-1", "gemini-2")):
        return _GEMINI_3_TOKENS
    return _GEMINI_TILE_TOKENS * (
        1 if max(size) <= _GEMINI_TILE // 2 else _patches(size, _GEMINI_TILE)
    )


def _for_tiles(size: tuple[int, int]) -> tuple[int, int]:
    """OpenAI's own order: into a square of 2048, then the short edge down to 768."""
    width, height = _scale_down(size, 2048)
    shrink = min(1.0, 768 / min(width, height))
    return round(width * shrink), round(height * shrink)


def _scale_down(size: tuple[int, int], longest: int) -> tuple[int, int]:
    shrink = min(1.0, longest / max(size))
    return max(1, round(size[0] * shrink)), max(1, round(size[1] * shrink))


def _patches(size: tuple[int, int], edge: int) -> int:
    return ceil(size[0] / edge) * ceil(size[1] / edge)
