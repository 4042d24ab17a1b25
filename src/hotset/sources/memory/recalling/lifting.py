"""What memories that fit do for the words they were made of: they lift them, and what no longer holds sinks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hotset.nouns.memory import Episode, Memory
from hotset.sources.memory.recalling.ranking import Signals
from hotset.sources.memory.recalling.signals import Candidate

SAME_SESSION = 0.5
"""Of being outdated, for what else was said or done where something was decided that no longer holds."""

_MEANING_SHARE = 0.4  # beside words, in how well a memory fits


def lifts(
    candidates: Mapping[str, Candidate],
    signals: Mapping[str, Signals],
    memories: Mapping[str, Memory],
    replaced: Mapping[str, Memory | None],
) -> dict[str, Signals]:
    """For each page that was found. `replaced` are the memories that hold no longer, with what holds now, if anything does.

    A memory that was replaced lifts the words of the one that holds now instead of its own.
    """
    lift = _Lift()
    for id, share in _shares(signals, memories).items():
        memory = memories[id]
        if isinstance(memory.detail, Episode):
            lift.episode(memory, memory.detail, share)
        elif id in replaced:
            lift.replaced(memory, replaced[id], share)
        else:
            lift.holds(memory, share)
    return {key: lift.of(each) for key, each in candidates.items() if each.is_talk}


def _shares(signals: Mapping[str, Signals], memories: Mapping[str, Memory]) -> dict[str, float]:
    """How well each fits, beside the best of its kind: texts of another kind are of another length."""
    fit = {id: signals[id]["words"] + _MEANING_SHARE * signals[id]["meaning"] for id in memories}
    best: dict[str, float] = {}
    for id, memory in memories.items():
        best[memory.kind] = max(best.get(memory.kind, 0.0), fit[id])
    return {id: fit[id] / best[memory.kind] if best[memory.kind] else 0.0 for id, memory in memories.items()}


@dataclass(slots=True)
class _Lift:
    pages: dict[str, float] = field(default_factory=dict)
    stretches: dict[str, list[tuple[tuple[int, int], float]]] = field(default_factory=dict)
    """By session: turns of an episode, and how well it fits."""
    old_pages: set[str] = field(default_factory=set)
    old_sessions: set[str] = field(default_factory=set)
    moved: dict[str, set[str]] = field(default_factory=dict)
    """By session: those in which something was decided that this one replaced."""

    def episode(self, memory: Memory, episode: Episode, share: float) -> None:
        self.stretches.setdefault(memory.source.session or "", []).append((episode.turns, share))

    def holds(self, memory: Memory, share: float) -> None:
        for page in memory.source.pages:
            self.pages[page] = max(self.pages.get(page, 0.0), share)

    def replaced(self, old: Memory, new: Memory | None, share: float) -> None:
        self.old_pages.update(old.source.pages)
        if new is None:
            return
        self.holds(new, share)
        before, now = old.source.session, new.source.session
        if before and now and before != now:
            self.old_sessions.add(before)
            self.moved.setdefault(now, set()).add(before)

    def of(self, each: Candidate) -> Signals:
        fits = [share for turns, share in self.stretches.get(each.session, ()) if turns[0] <= each.turn <= turns[1]]
        fits += [share for session in self.moved.get(each.session, ()) for _, share in self.stretches.get(session, ())]
        signals = {"pointed": self.pages.get(each.key, 0.0), "session": max(fits, default=0.0)}
        if each.key in self.old_pages and each.key not in self.pages:
            signals["outdated"] = 1.0
        elif each.session in self.old_sessions:
            signals["outdated"] = SAME_SESSION
        return signals
