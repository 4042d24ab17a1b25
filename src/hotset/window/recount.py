"""Our count of a bill in the provider's tokens: what came new with a turn, as the provider counted
the part that was sent. Pure.

One factor for a whole session would not do. Our count is off by one factor for logs and by another
for prose, and what is left out is mostly of one kind: in a session whose longest results were logs
and JSON, sending everything was estimated 22 % too high with one factor, and 1 % too high with the
factor of each turn. A prompt extends the one before: the two tell what a turn added.
"""

from __future__ import annotations

from dataclasses import dataclass

from hotset.nouns.bill import Bill
from hotset.nouns.message import Usage

_NEAR = 0.05  # of a prompt: by so much our count moves between two turns when it is calibrated anew
_SMALL = 100  # tokens: a turn that adds fewer says less about itself than all that was sent says
_LOWEST, _HIGHEST = 0.3, 3.0  # beyond this the two did not count the same thing


@dataclass(frozen=True, slots=True)
class Recounted:
    """A bill's estimates, in the provider's tokens."""

    sent: Usage
    whole: Usage


@dataclass(frozen=True, slots=True)
class _Turn:
    bill: Bill
    scale: float
    """How many tokens the provider counted for one of ours, of all that was sent."""
    whole: float
    """What everything came to, in the provider's tokens."""


class Recount:
    """One session's turns with one model, in their order."""

    def __init__(self, step: int = 1) -> None:
        self._step = step
        """Tokens in which the provider's cache counts."""
        self._latest: _Turn | None = None

    def add(self, bill: Bill) -> Recounted:
        before = self._latest
        scale = self._scale(bill)
        if (
            bill.sent == bill.whole
        ):  # everything was sent: what the provider counted is what there was
            counted = _scaled(bill.sent, scale)
            self._latest = _Turn(bill, scale, _prompt(counted))
            return Recounted(counted, counted)
        if before is not None and self._extends(before.bill, bill):
            read = before.whole
            new = self._new(before.bill.whole, bill.whole) * self._scale_of_new(before, bill, scale)
        else:
            # Another branch, or nothing is cached any more: of the same content as what came
            # before, as far as we know.
            factor = (
                before.whole / _prompt(before.bill.whole)
                if before is not None and _prompt(before.bill.whole)
                else scale
            )
            read, new = (
                bill.whole.cache_read * factor,
                (bill.whole.input + bill.whole.cache_write) * factor,
            )
        self._latest = _Turn(bill, scale, read + new)
        return Recounted(_scaled(bill.sent, scale), _split(bill.whole, read, new))

    def _scale(self, bill: Bill) -> float:
        """A report of several calls is a sum: it tells about one only roughly, and counts where
        nothing else is known."""
        if bill.calls > 1 and self._latest is not None:
            return self._latest.scale
        ours = _prompt(bill.sent) * max(1, bill.calls)
        return _prompt(bill.usage) / ours if ours else 1.0

    def _scale_of_new(self, before: _Turn, bill: Bill, scale: float) -> float:
        if bill.calls > 1 or before.bill.calls > 1 or bill.broke:
            return scale
        reported = _prompt(bill.usage) - _prompt(before.bill.usage)
        ours = self._new(before.bill.sent, bill.sent)
        return (
            scale * min(max((reported / scale + _SMALL) / (ours + _SMALL), _LOWEST), _HIGHEST)
            if scale
            else 0.0
        )

    def _extends(self, before: Bill, bill: Bill) -> bool:
        """Is all of the prompt before in what is read from the cache?"""
        pairs = ((before.sent, bill.sent), (before.whole, bill.whole))
        return all(
            abs(now.cache_read - _prompt(then)) <= _NEAR * _prompt(then) + self._step
            for then, now in pairs
        )

    def _new(self, before: Usage, now: Usage) -> int:
        """What was not there before. The last part of what was, which fills no step of the cache,
        is no news."""
        rest = min(max(_prompt(before) - now.cache_read, 0), self._step - 1)
        return max(0, now.input + now.cache_write - rest)


def _prompt(usage: Usage) -> int:
    return usage.input + usage.cache_read + usage.cache_write


def _scaled(usage: Usage, factor: float) -> Usage:
    return _split(usage, usage.cache_read * factor, (usage.input + usage.cache_write) * factor)


def _split(like: Usage, read: float, new: float) -> Usage:
    """So many tokens, what is not read divided into written and uncached as it was."""
    uncached = like.input + like.cache_write
    written = new * like.cache_write / uncached if uncached else 0.0
    return Usage(round(new - written), round(read), round(written), like.output)
