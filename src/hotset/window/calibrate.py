"""From our count to the provider's: what an o200k token comes to with a model, learned from the
usage that it reports. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# What the model families' own tokens come to on prompts of coding agents, before anything was
# learned.
_PRIORS = (
    (re.compile(r"claude|anthropic"), 1.3),
    (re.compile(r"(^|/)(chat)?gpt-|(^|/)o\d|codex"), 1.01),
    (re.compile(r"gemini"), 1.17),
)
_DEFAULT = 1.1
_LOWEST, _HIGHEST = (
    0.5,
    3.0,
)  # beyond this the two did not count the same thing: a cut reply, a prompt that we did not see
_FEWEST = 400  # tokens; in shorter prompts what stands around the messages outweighs them
_PRIOR_WEIGHT = 20_000.0  # tokens; one long prompt outweighs the prior
_MOST_WEIGHT = (
    400_000.0  # tokens; older prompts fade behind these, so that a model which changes is followed
)
_MOST_AT_ONCE = 50_000.0  # tokens; one prompt is one sample of a kind of text, however long it is
_REACH = 1.25  # one report pulls no further than this; a steady pull still arrives


@dataclass(frozen=True, slots=True)
class Calibration:
    """What our count is multiplied by, and how many tokens that rests on."""

    ratio: float = _DEFAULT
    weight: float = _PRIOR_WEIGHT

    def scale(self, tokens: float) -> int:
        """The provider's count, as far as we can tell."""
        return round(tokens * self.ratio)

    def observed(self, estimated: int, reported: int) -> Calibration:
        """What is known after a prompt of `estimated` tokens by our count was reported as so many
        by the provider."""
        if estimated < _FEWEST or not _LOWEST <= reported / estimated <= _HIGHEST:
            return self
        ratio = min(max(reported / estimated, self.ratio / _REACH), self.ratio * _REACH)
        weight = min(float(estimated), _MOST_AT_ONCE)
        before = min(self.weight, _MOST_WEIGHT - weight)
        return Calibration(
            (self.ratio * before + ratio * weight) / (before + weight), before + weight
        )

    def as_numbers(self) -> dict[str, float]:
        """What a store keeps of it."""
        return {"ratio": self.ratio, "weight": self.weight}


def prior(model: str) -> Calibration:
    """What is known of a model before its first report."""
    name = model.lower()
    return Calibration(
        next((ratio for pattern, ratio in _PRIORS if pattern.search(name)), _DEFAULT)
    )


def from_numbers(numbers: Mapping[str, float], model: str) -> Calibration:
    """What `as_numbers` gave; the prior where these are not such numbers."""
    ratio, weight = numbers.get("ratio", 0.0), numbers.get("weight", 0.0)
    if not (_LOWEST <= ratio <= _HIGHEST and 0 < weight <= _MOST_WEIGHT):
        return prior(model)
    return Calibration(ratio, weight)
