"""What an image costs, by the providers' rules. An estimate: how a client asked for detail is not
looked at."""

from __future__ import annotations

import re
from math import ceil

_UNKNOWN = 1600  # about a screenshot, with most providers
_CLAUDE_PATCH, _OPENAI_PATCH, _OPENAI_TILE, _GEMINI_TILE = 28, 32, 512, 768
_GEMINI_TILE_TOKENS, _GEMINI_3_TOKENS = 258, 1100

# model -> most pixels on the long edge, most tokens.
# https://platform.claude.com/docs/en/build-with-claude/vision, 2026-11
_CLAUDE_SMALL = re.compile(r"claude-(3|(opus|sonnet)-4(-[1-6]|-2\d{7}|$)|haiku-4)")
_SMALL, _LARGE = (1568, 1568), (2576, 4784)

# model -> tokens a patch, most patches; first match wins.
# https://platform.openai.com/docs/guides/images-vision, 2026-11
_PATCHED = (
    (re.compile(r"gpt-(4\.1|5)-mini"), 1.62, 1536),
    (re.compile(r"gpt-(4\.1|5)-nano"), 2.46, 1536),
    (re.compile(r"o4-mini"), 1.72, 1536),
    (re.compile(r"gpt-5\.([4-9]|\d\d)|gpt-[6-9]"), 1.2, 10_000),
)
# model -> tokens for the image, tokens a tile
_TILED = (
    (re.compile(r"gpt-4o-mini"), 2833, 5667),
    (re.compile(r"gpt-5"), 70, 140),
    (re.compile(r"o[13]"), 75, 150),
    (re.compile(r"gpt-|chatgpt-"), 85, 170),
)


def image(size: tuple[int, int] | None, model: str = "") -> int:
    """The tokens of an image of this width and height; of one of usual size where they are not
    known."""
    if size is None or min(size) <= 0:
        return _UNKNOWN
    name = model.lower().rpartition("/")[2]
    if name.startswith("gemini"):
        return _gemini(size, name)
    for pattern, each, most in _PATCHED:
        if pattern.match(name):
            return ceil(each * min(most, _patches(size, _OPENAI_PATCH)))
    for pattern, once, each in _TILED:
        if pattern.match(name):
            return once + each * _patches(_for_tiles(size), _OPENAI_TILE)
    return _claude(size, name)


def _claude(size: tuple[int, int], name: str) -> int:
    longest, most = _SMALL if _CLAUDE_SMALL.match(name) else _LARGE
    return min(most, _patches(_within(size, longest), _CLAUDE_PATCH))


def _gemini(size: tuple[int, int], name: str) -> int:
    if not name.startswith(("gemini-1", "gemini-2")):
        return _GEMINI_3_TOKENS
    return _GEMINI_TILE_TOKENS * (
        1 if max(size) <= _GEMINI_TILE // 2 else _patches(size, _GEMINI_TILE)
    )


def _for_tiles(size: tuple[int, int]) -> tuple[int, int]:
    """OpenAI's own order: into a square of 2048, then the short edge down to 768."""
    width, height = _within(size, 2048)
    shrink = min(1.0, 768 / min(width, height))
    return round(width * shrink), round(height * shrink)


def _within(size: tuple[int, int], longest: int) -> tuple[int, int]:
    shrink = min(1.0, longest / max(size))
    return max(1, round(size[0] * shrink)), max(1, round(size[1] * shrink))


def _patches(size: tuple[int, int], edge: int) -> int:
    return ceil(size[0] / edge) * ceil(size[1] / edge)
