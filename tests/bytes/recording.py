"""The bodies that went upstream when they were recorded, and how those of today differ from
them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

FILE = Path(__file__).with_name("recorded.json.zst")
_OPTIONS = {
    zstd.CompressionParameter.compression_level: 19,
    zstd.CompressionParameter.window_log: 25,
}
_ABOVE, _SHOWN, _WIDTH = 2, 4, 160
"""Lines of a difference: equal ones above it, those of each side, and how wide they are."""


def normalise(body: bytes) -> bytes:
    """A body as it is compared. The one place for what may differ from the recording, such as texts
    that were reworded."""
    return body


def load() -> dict[str, list[bytes]]:
    """Session to its bodies; empty where nothing is recorded."""
    if not FILE.exists():
        return {}
    read = {zstd.DecompressionParameter.window_log_max: 25}
    recorded = json.loads(zstd.decompress(FILE.read_bytes(), options=read))
    return {
        name: [body.encode("utf-8", "surrogateescape") for body in bodies]
        for name, bodies in recorded.items()
    }


def save(recorded: Mapping[str, Sequence[bytes]]) -> None:
    told = {
        name: [body.decode("utf-8", "surrogateescape") for body in recorded[name]]
        for name in sorted(recorded)
    }
    FILE.write_bytes(zstd.compress(json.dumps(told, indent=0).encode(), options=_OPTIONS))


def difference(recorded: Sequence[bytes], sent: Sequence[bytes]) -> str:
    """The first body that differs, its number and the lines where it begins to; empty where there
    is none."""
    for number, (then, now) in enumerate(zip_longest(recorded, sent), 1):
        if then is None or now is None:
            return f"{len(recorded)} calls were recorded, {len(sent)} were sent"
        if normalise(then) != normalise(now):
            return (
                f"call {number} of {len(recorded)}:\n"
                f"{_first_lines(normalise(then), normalise(now))}"
            )
    return ""


def _first_lines(then: bytes, now: bytes) -> str:
    before, after = _lines(then), _lines(now)
    if before == after:  # only the spelling of the JSON differs
        before, after = _pieces(then), _pieces(now)
    at = next(at for at, (one, other) in enumerate(zip_longest(before, after)) if one != other)
    column = _same(*(side[at] if at < len(side) else "" for side in (before, after)))
    left = max(0, column - _WIDTH // 3)  # the difference itself is shown, however long its line is
    told = [f"  {line[:_WIDTH]}" for line in before[max(0, at - _ABOVE) : at]]
    told += [f"- {line[left : left + _WIDTH]}" for line in before[at : at + _SHOWN]]
    told += [f"+ {line[left : left + _WIDTH]}" for line in after[at : at + _SHOWN]]
    return "\n".join(told)


def _same(one: str, other: str) -> int:
    """How many characters both begin with."""
    return next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )


def _lines(body: bytes) -> list[str]:
    """The body with a line for each field, and for each line of the texts in it."""
    try:
        spread = json.dumps(json.loads(body), indent=1, ensure_ascii=False)
    except ValueError:
        return _pieces(body)
    return spread.replace("\\n", "\n").splitlines()


def _pieces(body: bytes) -> list[str]:
    text = body.decode("utf-8", "backslashreplace")
    return [text[at : at + _WIDTH] for at in range(0, len(text), _WIDTH)]
