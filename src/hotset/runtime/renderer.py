"""From a plan to bytes: every page in its form, what the client never saw, our tools; held to the
provider's rules."""

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

_STANDS_IN = Chain("stands in")
"""The chain of a message that is ours: nothing is hidden around it."""

_MOST_REWRITTEN = 32 << 20
"""Changed messages that are held on to: those of some dozen long sessions."""

_Words = tuple[tuple[int, bytes], ...]
_Key = tuple[DialectName, bytes, _Words | None]
"""What was said by whom, and what is said instead; None where it is a message of our own."""


class Unplanned(HotsetError):
    """The request goes out as it came."""


class Forbidden(Unplanned):
    """The plan would have broken a rule of the provider's: a fault of ours."""


class Renderer:
    """Safe to use from several threads."""

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
        dialect: Dialect,
    ) -> tuple[Request, bytes]:
        """The client's request as it goes out, and its body with our tools. Raises `Forbidden`."""
        outgoing = self._as_planned(own, links, shown, hidden, dialect)
        body = own.raw if outgoing is own else dialect.render(outgoing)
        if specs:
            body = dialect.offer(body, specs)
        if body != own.raw:
            _hold_to_the_rules(outgoing, own, links, hidden, specs=specs, dialect=dialect)
        return outgoing, body

    def _as_planned(
        self,
        own: Request,
        links: Sequence[Link],
        shown: Mapping[Spot, Shown],
        hidden: Mapping[Chain, Hidden],
        dialect: Dialect,
    ) -> Request:
        """The request with every page in its form, and with what the client never saw."""
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
                composed.add(each.chain)  # two reasoning items that say the same have one chain
                message = self._rewriter.compose(gone.text, dialect)
                kept.append(Link(message, each.parent, _STANDS_IN))
                messages.append(message)
        changed = replace(own, messages=tuple(messages))
        return dialect.reveal(changed, kept, hidden) if hidden else changed


class MessageRewriter:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._said: Lru[_Key, Message] = Lru(weight=_MOST_REWRITTEN)

    def rewrite(self, link: Link, shown: Mapping[Spot, Shown], dialect: Dialect) -> Message:
        message = link.message
        words: _Words = tuple(
            (position, row.text)
            for position in range(len(message.parts))
            if (row := shown.get(Spot(link.chain, position))) is not None and row.text
        )
        said = self._once(
            (dialect.name, message.raw, words), lambda: _rewrite(message, words, dialect)
        )
        return replace(said, span=message.span)

    def compose(self, text: bytes, dialect: Dialect) -> Message:
        """A message of our own, which stands in place of others from now on."""
        return self._once((dialect.name, text, None), lambda: dialect.say(text.decode()))

    def _once(self, key: _Key, make: Callable[[], Message]) -> Message:
        said = self._said.get(key)
        if said is None:
            said = make()
            self._said.put(key, said, len(key[1]) + len(said.raw))
        return said


def _rewrite(message: Message, words: _Words, dialect: Dialect) -> Message:
    try:
        return dialect.reword(message, dict(words))
    except ValueError:
        pass  # one of the parts has a form that its provider fixes: it is shown whole, every time
    for position, text in words:
        try:
            message = dialect.reword(message, {position: text})
        except ValueError:
            continue
    return message


def _hold_to_the_rules(
    outgoing: Request,
    own: Request,
    links: Sequence[Link],
    hidden: Mapping[Chain, Hidden],
    *,
    specs: Sequence[ToolSpec],
    dialect: Dialect,
) -> None:
    """Raises `Forbidden` where the provider would refuse what we made of the client's request."""
    original = dialect.reveal(own, links, hidden) if hidden else own
    ours = dialect.declare(specs)
    broken = dialect.check(
        replace(outgoing, tools=(*outgoing.tools, *ours)),
        replace(original, tools=(*original.tools, *ours)),
    )
    # A rule that the client's own request breaks as well is between it and the provider.
    if broken and (first := beyond(broken, dialect.check(own))) is not None:
        raise Forbidden(f"rule {first.invariant} at {first.where}")
