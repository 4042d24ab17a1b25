"""Pages of the store as a model reads them: their text, where they came from, and which are part of
a conversation's line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from hotset.dialects.parts import size_of
from hotset.errors import HotsetError
from hotset.nouns.page import ROOT, Chain, Kind, Page, PageId, SessionId
from hotset.nouns.retrieval import Place
from hotset.nouns.turn import Node
from hotset.sealing import seal
from hotset.store.port import Store, Where
from hotset.text.clip import safe_line
from hotset.window.page_text import MOST_ARGUMENTS, is_binary, path_in

_HEX_BYTES = 32


@dataclass(frozen=True, slots=True)
class PageText:
    text: str
    own: bool
    """The page's own text; otherwise ours, about content that is no text or cannot be read."""


def page_text(store: Store, page: Page, image: str = "") -> PageText:
    """A page's content as text, or a description of it. `image` says how an image can be looked at
    again."""
    try:
        content = store.content(page.digest)
    except HotsetError:
        lost = (
            f"({page.kind}, {page.size:,} bytes: damaged in the store; run the "
            "original tool call again)"
        )
        return PageText(lost, own=False)
    if page.kind is Kind.IMAGE and not page.media.startswith("text/"):
        size = size_of(content)
        pixels = f", {size[0]} x {size[1]} pixels" if size else ""
        opener = safe_line(page.tool) or "another tool"
        again = image or f"not shown here; open it with {opener}"
        what = f"{safe_line(page.media)}, {len(content):,} bytes{pixels}, image of turn {page.turn}"
        return PageText(f"({what}: {again})", own=False)
    if is_binary(content):
        begins = content[:_HEX_BYTES].hex(" ")
        what = f"{safe_line(page.media)}, {len(content):,} bytes of binary data: {begins}"
        return PageText(f"({what})", own=False)
    return PageText(content.decode("utf-8", "replace"), own=True)


def origin(store: Store, page: Page, here: SessionId | None) -> str:
    """`turn 12, tool read_file, src/a.py`, with the session where it is another one."""
    turn = (
        f"turn {page.turn}"
        if page.session == here
        else f"turn {page.turn} of session {page.session}"
    )
    what = f"tool {safe_line(page.tool)}" if page.tool else str(page.kind).replace("_", " ")
    if page.kind.family is Kind.TOOL_CALL:
        what = f"call of {what}"
    path = safe_line(seal(path_of(store, page)).text)
    return ", ".join(filter(None, (turn, what, path)))


def path_of(store: Store, page: Page) -> str:
    """What a result's call asked for, where its arguments name a file or an address."""
    if not page.call or page.kind.family is Kind.TOOL_CALL:
        return ""
    try:
        wanted = Where(
            session=page.session, call=page.call, kinds=frozenset({Kind.TOOL_CALL}), limit=1
        )
        call = next(store.pages(wanted), None)
        content = store.content(call.digest) if call and call.size <= MOST_ARGUMENTS else b"{}"
    except HotsetError:
        return ""
    return path_in(content)


def moment(time: float) -> str:
    """A page's time for a line of ours."""
    try:
        return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"


def line_nodes(store: Store, here: Place) -> list[Node]:
    """The messages of the line on which the question is asked, in their order."""
    if here.session is None:
        return []
    nodes = {node.chain: node for node in store.nodes(here.session)}
    if here.chains:
        return [nodes[chain] for chain in here.chains if chain in nodes]
    last = next((node for node in reversed(nodes.values()) if not node.aside), None)
    backwards: dict[Chain, Node] = {}
    while last is not None and last.chain not in backwards:
        backwards[last.chain] = last
        last = nodes.get(last.parent)
    return [*backwards.values()][::-1]


def on_line(pages: Iterable[Page], chains: frozenset[Chain]) -> Iterator[Page]:
    """Pages that the model could have seen: a rewound past is not its past. A page in no message is
    its session's."""
    return (page for page in pages if not chains or page.chain in chains or page.chain == ROOT)


def current_prompt(store: Store, here: Place) -> frozenset[PageId]:
    """Pages of the latest prompt on the line of the question: they stand in the window and are no
    find."""
    if here.session is None or not here.turn:
        return frozenset()
    said = store.pages(Where(session=here.session, kinds=frozenset({Kind.PROMPT})))
    prompts = [page for page in on_line(said, frozenset(here.chains)) if page.turn <= here.turn]
    return frozenset(page.id for page in prompts if page.chain == prompts[-1].chain)
