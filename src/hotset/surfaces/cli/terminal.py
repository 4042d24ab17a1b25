"""Terminal output: data on stdout, everything else on stderr; colour and progress bars only on a
terminal."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hotset.text.amounts import (  # its commands import all of this from here
    count as count,  # noqa: PLC0414
    size as size,  # noqa: PLC0414
    span as span,  # noqa: PLC0414
)

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")

_PIPE_WIDTH = 120
_NARROWEST = 20
_GAP = "  "
_STYLED = re.compile(r"(\x1b\[(?:[012]|3[1-7])m)")  # the escapes that `click.style` writes
_UNSEEN = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def say(text: str = "", *, quiet: bool = False) -> None:
    """Prints a message on stderr, unless `quiet`."""
    if not quiet:
        click.echo(safe_text(text), err=True)


def emit(text: str) -> None:
    """Prints data on stdout."""
    click.echo(safe_text(text))


def emit_json(value: Any) -> None:
    """Prints nouns, or anything made of them, as JSON."""
    import msgspec  # noqa: PLC0415 - only for --json

    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    emit(_UNSEEN.sub(lambda found: _escape(found[0]), text))


def console(*, stderr: bool = False) -> Console:
    """A rich console. rich itself honours NO_COLOR and notices a pipe."""
    from rich.console import Console  # noqa: PLC0415

    return Console(stderr=stderr, highlight=False)


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[int] = ()
) -> None:
    """Prints a table on stdout. The last column is cut where the terminal is narrow; the others are
    always whole."""
    cells = [[plain_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[index]) for row in (headings, *cells)) for index in range(len(headings))]
    room = max(_NARROWEST, width() - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1))
    for number, row in enumerate((headings, *cells)):
        front = [
            cell.rjust(wide) if index in right else cell.ljust(wide)
            for index, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ]
        line = _GAP.join((*front[:-1], shortened(row[-1], room)))
        emit(line if number else click.style(line, bold=True))


def money(dollars: float) -> str:
    """Dollars; small amounts with enough digits to differ from zero."""
    digits = 2 if abs(dollars) >= 1 or not dollars else 4
    return f"{'-' if dollars < 0 else ''}${abs(dollars):,.{digits}f}"


def moment(when: float) -> str:
    """A point in time, on this machine's clock."""
    return datetime.fromtimestamp(when, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def plain(text: str) -> str:
    """Text without control codes: an agent's content could move the cursor or recolour the
    terminal."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for c in text.replace("\r\n", "\n")
    )


def plain_line(text: str) -> str:
    """`plain` on one line: for a name, a model or an error within a line of ours."""
    return plain(text).replace("\n", " ").replace("\t", " ")


def safe_text(text: str) -> str:
    """Text for a terminal: of the unprintable characters only line ends, tabs and our own colours
    stay."""
    if text.isprintable():
        return text
    return "".join(
        piece if _STYLED.fullmatch(piece) else plain(piece) for piece in _STYLED.split(text)
    )


def _escape(text: str) -> str:
    """The JSON escape of an invisible character: C1 codes, direction marks, characters of no
    width."""
    units = text.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def shortened(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


def width() -> int:
    """Characters in a line: the terminal's, or a default for a pipe."""
    return shutil.get_terminal_size((_PIPE_WIDTH, 24)).columns


def one_line(content: bytes, room: int) -> str:
    """The beginning of some content, on one line."""
    begin = content[: 4 * room + 64]
    text = plain(" ".join(begin.decode("utf-8", "replace").split()))
    return shortened(text if begin == content else f"{text}…", room)
