"""Messages that say what the plan shows of them. The same words in the same message are put there
once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hotset.dialects.port import Dialect
from hotset.files.lru import Lru
from hotset.nouns.link import Link
from hotset.nouns.message import DialectName, Message
from hotset.nouns.window import Plan, Spot

_MOST_BYTES = 32 << 20
"""Changed messages that are held on to: those of some dozen long sessions."""

_Words = tuple[tuple[int, bytes], ...]
_Key = tuple[DialectName, bytes, _Words | None]
"""What was said by whom, and what is said instead; None where it is a message of our own."""


class MessageRewriter:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._said: Lru[_Key, Message] = Lru(weight=_MOST_BYTES)

    def reworded(self, link: Link, plan: Plan, dialect: Dialect) -> Message:
        message = link.message
        words: _Words = tuple(
            (position, row.text)
            for position in range(len(message.parts))
            if (row := plan.shown.get(Spot(link.chain, position))) is not None and row.text
        )
        said = self._once(
            (dialect.name, message.raw, words), lambda: _reworded(message, words, dialect)
        )
        return replace(said, span=message.span)

    def said(self, text: bytes, dialect: Dialect) -> Message:
        """A message of our own, which stands in place of others from now on."""
        return self._once((dialect.name, text, None), lambda: dialect.say(text.decode()))

    def _once(self, key: _Key, make: Callable[[], Message]) -> Message:
        said = self._said.get(key)
        if said is None:
            said = make()
            self._said.put(key, said, len(key[1]) + len(said.raw))
        return said


def _reworded(message: Message, words: _Words, dialect: Dialect) -> Message:
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
