"""Previews of binary and base64: what it is, its length, and its first characters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hotset.window.preview.content import Body, ToolQuery
from hotset.window.preview.excerpt import ExcerptView, LineSpan, Reading, Worth, no_label, no_slice

_SAMPLE = 4096
_UNPRINTABLE_SHARE = 0.1
_LETTERS = re.compile(r"(?:data:[\w/+.-]{1,80};base64,)?[A-Za-z0-9+/_-]+={0,2}")
_ONE_RUN = 200  # characters without a space: longer than any name
_WRAPPED = 48  # characters: programs do not wrap base64 into shorter lines
_EVEN = 0.9  # of the lines are as long as the longest
_FEWEST = 500  # characters
_MAGIC = {
    "iVBORw0KGgo": "PNG image",
    "/9j/": "JPEG image",
    "R0lGOD": "GIF image",
    "UklGR": "WebP image or WAV sound",
    "JVBERi0": "PDF document",
    "UEsDB": "ZIP archive",
    "H4sI": "gzip archive",
    "\x7fELF": "ELF program",
    "\x89PNG": "PNG image",
    "%PDF": "PDF document",
    "PK\x03\x04": "ZIP archive",
}
_SHOWN = 80
_UNPRINTABLE = re.compile(r"[\ufffd\x00-\x07\x0b\x0e-\x1a\x1c-\x1f]")


def is_opaque(lines: Sequence[str]) -> bool:
    """True for unreadable characters, and for letters that form no words."""
    sample = "\n".join(lines[:200])[:_SAMPLE]
    odd = len(_UNPRINTABLE.findall(sample))
    return odd > _UNPRINTABLE_SHARE * len(sample) or _is_encoded(lines)


def view_opaque(body: Body, query: ToolQuery) -> ExcerptView:
    text = "\n".join(body.lines)
    encoded = text.partition(";base64,")[2] or text
    kind = next((name for magic, name in _MAGIC.items() if encoded.startswith(magic)), "")
    form = "base64" if _is_encoded(body.lines) else "binary"
    begins = "".join(c if c.isprintable() else "·" for c in text[: min(_SHOWN, query.room // 3)])
    line = f"[{form}{', ' + kind if kind else ''}: {len(text):,} characters, beginning {begins}]"
    reading = Reading([LineSpan(0, 1, Worth.HEAD)], no_label)
    return ExcerptView([line], reading, no_slice, 0, no_slice)


def _is_encoded(lines: Sequence[str]) -> bool:
    """True for base64: one long run, or lines of equal length with both cases and digits. Names,
    ids and hashes are not."""
    runs = [line.strip() for line in lines if line.strip()]
    widths = [len(run) for run in runs]
    widest = max(widths, default=0)
    if (
        sum(widths) < _FEWEST
        or widest < _WRAPPED
        or sum(1 for width in widths if width == widest) < _EVEN * len(runs) - 1
    ):
        return False
    if not all(map(_LETTERS.fullmatch, runs)):
        return False
    return widest >= _ONE_RUN or all(
        any(map(kind, "".join(runs))) for kind in (str.isupper, str.islower, str.isdigit)
    )
