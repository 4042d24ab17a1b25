"""Renders a plan to bytes: every page in its form, the hidden messages, our tools; checked against
the provider's rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hotset.dialects.port import Dialect
from hotset.dialects.rules import beyond
from hotset.errors import HotsetError
from hotset.files.lru import Lru
from hotset.nouns.link import Link
from hotset.nouns.message import DialectName, Message, Request, ToolSpec
from hotset.nouns.page import Chain
from hotset.nouns.window import WHOLE, Hidden, Shown, Spot
from hotset.runtime.cache_marks import NO_MARKS, CacheMarks, mark_messages

_REPLACEMENT = Chain("replacement")
"""The chain of a message of ours: nothing is hidden around it."""

_MOST_REWRITTEN = 32 << 20
"""Bytes of rewritten messages that are cached: those of some dozen long sessions."""

_Words = tuple[tuple[int, bytes], ...]
_Key = tuple[DialectName, bytes, _Words | None]
"""The original message and its new texts; None for a message of our own."""


class Unplanned(HotsetError):
    """The request goes out unchanged."""


class Forbidden(Unplanned):
    """The plan would have broken a rule of the provider: a fault of ours."""


class Renderer:
    """Renders requests as planned. Thread-safe."""

    def __init__(self) -> None:
        self._rewriter = MessageRewriter()

    def render(
        self,
        own: Request,
        links: Sequence[Link],
        shown: Mapping[Spot, Shown],
        hidden: Mapping[Chain, Hidden],
        *,
        specs: Sequence[ToolSpec],
        marks: CacheMarks = NO_MARKS,
        dialect: Dialect,
    ) -> tuple[Request, bytes]:
        """The client's request as it goes out, and its body with our tools and cache marks. Raises
        `Forbidden`."""
        outgoing = self._as_planned(own, links, shown, hidden, dialect)
        marked, body = draw_body(outgoing, specs, marks, dialect)
        if body != own.raw:
            _check_rules(marked, own, links, hidden, specs=specs, dialect=dialect)
        return outgoing, body

    def _as_planned(
        self,
        own: Request,
        links: Sequence[Link],
        shown: Mapping[Spot, Shown],
        hidden: Mapping[Chain, Hidden],
        dialect: Dialect,
    ) -> Request:
        """The request with every page in its form, and with the hidden messages."""
        touched = {spot.chain for spot, row in shown.items() if row.text or spot.position == WHOLE}
        if not touched and not hidden:
            return own
        kept: list[Link] = []
        messages: list[Message] = []
        composed: set[Chain] = set()
        for each in links:
            gone = shown.get(Spot(each.chain, WHOLE)) if each.chain in touched else None
            if gone is None:
                kept.append(each)
                is_touched = each.chain in touched
                messages.append(
                    self._rewriter.rewrite(each, shown, dialect) if is_touched else each.message
                )
            elif gone.text and each.chain not in composed:
                composed.add(each.chain)  # two reasoning items with equal content share a chain
                message = self._rewriter.compose(gone.text, dialect)
                kept.append(Link(message, each.parent, _REPLACEMENT))
                messages.append(message)
        changed = replace(own, messages=tuple(messages))
        return dialect.reveal(changed, kept, hidden) if hidden else changed


def draw_body(
    outgoing: Request, specs: Sequence[ToolSpec], marks: CacheMarks, dialect: Dialect
) -> tuple[Request, bytes]:
    """The request with our cache marks in its messages, and its body with all of them and with our
    tools."""
    marked = mark_messages(outgoing, marks, dialect)
    body = dialect.offer(dialect.render(marked), specs) if specs else dialect.render(marked)
    if dialect.marking is not None and marks.everywhere and marked is not outgoing:
        body = dialect.marking.mark_fixed(body, lasting=marks.lasting)
    elif dialect.marking is not None and marks.lasting:
        body = dialect.marking.lengthen_fixed(body)
    return marked, body


class MessageRewriter:
    """Rewrites messages, with a cache. Thread-safe."""

    def __init__(self) -> None:
        self._messages: Lru[_Key, Message] = Lru("rewritten messages", weight=_MOST_REWRITTEN)

    def rewrite(self, link: Link, shown: Mapping[Spot, Shown], dialect: Dialect) -> Message:
        message = link.message
        words: _Words = tuple(
            (position, row.text)
            for position in range(len(message.parts))
            if (row := shown.get(Spot(link.chain, position))) is not None and row.text
        )
        rewritten = self._once(
            (dialect.name, message.raw, words), lambda: _rewrite(message, words, dialect)
        )
        return replace(rewritten, span=message.span)

    def compose(self, text: bytes, dialect: Dialect) -> Message:
        """A message of our own, which replaces others from now on."""
        return self._once((dialect.name, text, None), lambda: dialect.say(text.decode()))

    def _once(self, key: _Key, make: Callable[[], Message]) -> Message:
        message = self._messages.get(key)
        if message is None:
            message = make()
            self._messages.put(key, message, len(key[1]) + len(message.raw))
        return message


def _rewrite(message: Message, words: _Words, dialect: Dialect) -> Message:
    try:
        return dialect.reword(message, dict(words))
    except ValueError:
        pass  # the provider fixes the form of one of the parts: that part is always shown whole
    for position, text in words:
        try:
            message = dialect.reword(message, {position: text})
        except ValueError:
            continue
    return message


def _check_rules(
    outgoing: Request,
    own: Request,
    links: Sequence[Link],
    hidden: Mapping[Chain, Hidden],
    *,
    specs: Sequence[ToolSpec],
    dialect: Dialect,
) -> None:
    """Raises `Forbidden` if the provider would refuse what we made of the client's request."""
    original = dialect.reveal(own, links, hidden) if hidden else own
    ours = dialect.declare(specs)
    broken = dialect.check(
        replace(outgoing, tools=(*outgoing.tools, *ours)),
        replace(original, tools=(*original.tools, *ours)),
    )
    # A rule that the client's own request breaks as well is not our concern.
    if broken and (first := beyond(broken, dialect.check(own))) is not None:
        raise Forbidden(f"rule {first.invariant} at {first.where}")
