"""What each signal counts when memories are put in order. Data alone: whoever adapts them to a store makes another set.

The defaults are round numbers near those that are chosen on four fifths of LongMemEval's questions and do best on the rest; with
any one of them 30 % greater or smaller, recall@5, @10 and NDCG@10 there change by less than a point. The
set says nothing of how memories that are used, outdated or wanted by a task should count: those weights are a judgement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True)
class Weights:
    """A field for each signal, by its name in `Recalled.signals`. A score is the sum of every signal times its weight."""

    words: float = 1.0
    """Full text of its own words; the best candidate has 1."""
    meaning: float = 0.3
    """The cosine of its vector and the question's, above what any candidate has."""
    window: float = 0.2
    """Full text of what was said around it."""
    closely: float = 0.6
    """Each word of the question against each of its words, by meaning; of the first few."""
    pointed: float = 0.2
    """A memory that fits points to it."""
    session: float = 0.3
    """An episode that fits has it in it."""
    speaker: float = 0.9
    """A person said it, and the question does not ask what the model said."""
    told: float = 0.25
    """Who asks about themselves told of themselves here."""
    number: float = 0.2
    """The question asks for a number or a date, and there is one in it."""
    when: float = 1.2
    """It was said in the time that the question speaks of."""
    recent: float = 0.1
    latest: float = 0.2
    """Of a question for the latest or the first: how late, or early, it is among the candidates."""
    used: float = 0.15
    kind: float = 0.6
    """The task wants memories of its kind."""
    failed: float = 0.3
    """It went wrong, and the task is to find out why something does."""
    outdated: float = -1.0
    """Something else holds now."""

    def as_dict(self) -> dict[str, float]:
        return {name: float(getattr(self, name)) for name in SIGNALS}


SIGNALS: tuple[str, ...] = tuple(field.name for field in fields(Weights))

DEFAULT = Weights()


def from_dict(given: Mapping[str, float]) -> Weights:
    """What it does not name is as by default; what is no signal is left out."""
    return replace(DEFAULT, **{name: float(value) for name, value in given.items() if name in SIGNALS})
