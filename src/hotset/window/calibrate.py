"""Converts our token count to the provider's: one ratio per model, learned from reported usage
(`Calibration`), and the tokens of each bill of a session (`Recount`). Pure.

A bill needs more than its model's ratio. Our count is off by one factor for logs and by another for
prose, and what is left out is mostly of one kind: in a session whose longest results were logs and
JSON, sending everything was estimated 22 % too high with one factor, and 1 % too high with a factor
per turn. A prompt extends the one before, so the difference of the two is what a turn added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hotset.nouns.bill import Bill
from hotset.nouns.usage import Usage

# Ratio by model family, measured on prompts of coding agents; used until a report arrives.
_PRIORS = (
    (re.compile(r"claude|anthropic"), 1.3),
    (re.compile(r"(^|/)(chat)?gpt-|(^|/)o\d|codex"), 1.01),
    (re.compile(r"gemini"), 1.17),
)
_DEFAULT = 1.1
# Outside these bounds the two counted different things: a cut reply, a prompt that we did not see.
_LOWEST_RATIO, _HIGHEST_RATIO = 0.5, 3.0
_FEWEST = 400  # tokens; in shorter prompts the overhead around the messages outweighs them
_PRIOR_WEIGHT = 20_000.0  # tokens; one long prompt outweighs the prior
_MOST_WEIGHT = 400_000.0  # tokens; older prompts fade, so that the ratio follows a changed model
_MOST_AT_ONCE = 50_000.0  # tokens; one prompt is one sample of a kind of text, however long it is
_REACH = 1.25  # factor by which one report may change the ratio; several still reach any value


@dataclass(frozen=True, slots=True)
class Calibration:
    """The factor for our count, and the number of tokens it was learned from."""

    ratio: float = _DEFAULT
    weight: float = _PRIOR_WEIGHT

    def scale(self, tokens: float) -> int:
        """The provider's count, estimated."""
        return round(tokens * self.ratio)

    def after_report(self, estimated: int, reported: int) -> Calibration:
        """The calibration after the provider counted `reported` tokens where we counted
        `estimated`."""
        if estimated < _FEWEST or not _LOWEST_RATIO <= reported / estimated <= _HIGHEST_RATIO:
            return self
        ratio = min(max(reported / estimated, self.ratio / _REACH), self.ratio * _REACH)
        weight = min(float(estimated), _MOST_AT_ONCE)
        before = min(self.weight, _MOST_WEIGHT - weight)
        return Calibration(
            (self.ratio * before + ratio * weight) / (before + weight), before + weight
        )

    def as_numbers(self) -> dict[str, float]:
        """The values to store."""
        return {"ratio": self.ratio, "weight": self.weight}


def prior(model: str) -> Calibration:
    """The calibration of a model before its first report."""
    name = model.lower()
    return Calibration(
        next((ratio for pattern, ratio in _PRIORS if pattern.search(name)), _DEFAULT)
    )


def from_numbers(numbers: Mapping[str, float], model: str) -> Calibration:
    """Inverse of `as_numbers`; the prior if the numbers are invalid."""
    ratio, weight = numbers.get("ratio", 0.0), numbers.get("weight", 0.0)
    if not (_LOWEST_RATIO <= ratio <= _HIGHEST_RATIO and 0 < weight <= _MOST_WEIGHT):
        return prior(model)
    return Calibration(ratio, weight)


_PREFIX_TOLERANCE = 0.05  # of a prompt: recalibration moves our count by this much between turns
_FEW_NEW = 100  # tokens: a turn that adds fewer is a worse sample than the whole prompt
_LOWEST_NEW, _HIGHEST_NEW = 0.3, 3.0  # outside these bounds the two counted different things


@dataclass(frozen=True, slots=True)
class RecountedBill:
    """A bill's estimates, in the provider's tokens."""

    sent: Usage
    whole: Usage


@dataclass(frozen=True, slots=True)
class _Turn:
    bill: Bill
    scale: float
    """Provider tokens per token of ours, over the whole prompt sent."""
    whole: float
    """Tokens of sending everything, by the provider's count."""


class Recount:
    """One session's turns with one model, in their order."""

    def __init__(self, step: int = 1) -> None:
        self._step = step
        """Granularity of the provider's cache, in tokens."""
        self._latest: _Turn | None = None

    def add(self, bill: Bill) -> RecountedBill:
        before = self._latest
        scale = self._scale(bill)
        if bill.sent == bill.whole:  # everything was sent: the provider's count is exact
            counted = _scale_usage(bill.sent, scale)
            self._latest = _Turn(bill, scale, counted.prompt)
            return RecountedBill(counted, counted)
        if before is not None and self._extends(before.bill, bill):
            read = before.whole
            new = self._new(before.bill.whole, bill.whole) * self._scale_of_new(before, bill, scale)
        else:
            # Another branch, or the cache has expired: assume the same kind of content as before.
            factor = (
                before.whole / before.bill.whole.prompt
                if before is not None and before.bill.whole.prompt
                else scale
            )
            read, new = (
                bill.whole.cache_read * factor,
                (bill.whole.input + bill.whole.cache_write) * factor,
            )
        self._latest = _Turn(bill, scale, read + new)
        return RecountedBill(
            _scale_usage(bill.sent, scale), split_usage(bill.whole, read, new, bill.whole.output)
        )

    def _scale(self, bill: Bill) -> float:
        """Provider tokens per token of ours. A report of several calls is a sum, so it is used only
        if there is no earlier scale."""
        if bill.calls > 1 and self._latest is not None:
            return self._latest.scale
        ours = bill.sent.prompt * max(1, bill.calls)
        return bill.usage.prompt / ours if ours else 1.0

    def _scale_of_new(self, before: _Turn, bill: Bill, scale: float) -> float:
        if bill.calls > 1 or before.bill.calls > 1 or bill.broke:
            return scale
        reported = bill.usage.prompt - before.bill.usage.prompt
        ours = self._new(before.bill.sent, bill.sent)
        return (
            scale
            * min(max((reported / scale + _FEW_NEW) / (ours + _FEW_NEW), _LOWEST_NEW), _HIGHEST_NEW)
            if scale
            else 0.0
        )

    def _extends(self, before: Bill, bill: Bill) -> bool:
        """True if the whole previous prompt is read from the cache."""
        pairs = ((before.sent, bill.sent), (before.whole, bill.whole))
        return all(
            abs(now.cache_read - then.prompt) <= _PREFIX_TOLERANCE * then.prompt + self._step
            for then, now in pairs
        )

    def _new(self, before: Usage, now: Usage) -> int:
        """Tokens added since `before`; the remainder that filled no cache step is not counted as
        new."""
        rest = min(max(before.prompt - now.cache_read, 0), self._step - 1)
        return max(0, now.input + now.cache_write - rest)


def _scale_usage(usage: Usage, factor: float) -> Usage:
    new = (usage.input + usage.cache_write) * factor
    return split_usage(usage, usage.cache_read * factor, new, usage.output)


def split_usage(like: Usage, read: float, new: float, output: int) -> Usage:
    """Usage of `read` and `new` tokens, the new ones split into written and uncached as in
    `like`."""
    uncached = like.input + like.cache_write
    written = new * like.cache_write / uncached if uncached else 0.0
    return Usage(round(new - written), round(read), round(written), output)
