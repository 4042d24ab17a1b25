"""How a page reads: its content as text, and where it came from in a few words that nothing in it can fake."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from hotset.dialects.parts import size_of
from hotset.errors import HotsetError
from hotset.nouns.page import Kind, Page, SessionId
from hotset.sealing import seal
from hotset.sources.history.pages import is_binary, path_of
from hotset.store.port import Store
from hotset.text.clip import plain

_HEX_BYTES = 32


@dataclass(frozen=True, slots=True)
class Told:
    text: str
    own: bool
    """The page's own text; otherwise ours, about content that is no text or cannot be read."""


def tell(store: Store, page: Page, image: str = "") -> Told:
    """A page's content as text; what cannot be text is told instead. `image` says how an image can be looked at again."""
    try:
        content = store.content(page.digest)
    except HotsetError:
        return Told(f"({page.kind}, {page.size:,} bytes: damaged in the store, get it again from where it came)", own=False)
    if page.kind is Kind.IMAGE and not page.media.startswith("text/"):
        size = size_of(content)
        pixels = f", {size[0]} x {size[1]} pixels" if size else ""
        again = image or f"it cannot be shown here again, only looked at with {plain(page.tool) or 'a tool that opens it'}"
        return Told(f"({plain(page.media)}, {len(content):,} bytes{pixels}, an image of turn {page.turn}: {again})", own=False)
    if is_binary(content):
        begins = content[:_HEX_BYTES].hex(" ")
        return Told(f"({plain(page.media)}, {len(content):,} bytes of binary data that begin with {begins})", own=False)
    return Told(content.decode("utf-8", "replace"), own=True)


def origin(store: Store, page: Page, here: SessionId | None) -> str:
    """`turn 12, tool read_file, src/a.py`, with the session where it is another one."""
    told = [f"turn {page.turn}" if page.session == here else f"turn {page.turn} of session {page.session}"]
    told.append(f"tool {plain(page.tool)}" if page.tool else str(page.kind).replace("_", " "))
    if page.kind.family is Kind.TOOL_CALL:
        told[-1] = f"call of {told[-1]}"
    path = plain(seal(path_of(store, page)).text)
    return ", ".join([*told, path] if path else told)


def moment(time: float) -> str:
    try:
        return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"
