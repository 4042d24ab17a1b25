"""Messages that were understood before: a client resends its history with every call, and only the tail of it is new."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hotset.dialects.parts import UNKNOWN, Call, Calls
from hotset.dialects.resent import Resent
from hotset.files.lru import Lru
from hotset.nouns.message import Message, Span
from hotset.nouns.page import Kind

_MOST_BYTES = 8 << 20  # about twenty-five sessions of 300 KB; what is understood of them takes as much again
_AROUND = 1500  # bytes that the objects of a message take, however short it is
_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class _Understood:
    message: Message
    makes: tuple[tuple[str, Call], ...]
    """The calls that it makes."""
    needs: tuple[tuple[str, Call], ...]
    """The earlier calls by which its results were told; with other ones it would be read differently."""


class Memo:
    """Bounded by bytes, the longest unused leaves first. Safe from any thread."""

    def __init__(self) -> None:
        self._known: Lru[bytes, _Understood] = Lru(weight=_MOST_BYTES)
        self.bodies = Resent()

    def recall(self, raw: bytes, span: Span, calls: Calls) -> Message | None:
        """The message in these bytes, if it was understood before after the same calls; `calls` then has its own as well."""
        known = self._known.get(raw)
        if known is None or any(calls.get(id, UNKNOWN) != call for id, call in known.needs):
            return None
        calls.update(known.makes)
        message = known.message
        return Message(message.role, raw, message.parts, message.essence, message.aside, span)

    def keep(self, message: Message, calls: Calls) -> None:
        if len(message.raw) > _LARGEST:
            return
        made, needed = _calls_of(message)
        known = _Understood(message, _with(made, calls), _with(needed, calls))
        self._known.put(message.raw, known, len(message.raw) + _AROUND)


def _calls_of(message: Message) -> tuple[set[str], set[str]]:
    made = {part.call for part in message.parts if part.call and part.kind.family is Kind.TOOL_CALL}
    return made, {part.call for part in message.parts if part.call} - made


def _with(ids: Iterable[str], calls: Calls) -> tuple[tuple[str, Call], ...]:
    return tuple((id, calls.get(id, UNKNOWN)) for id in ids)
