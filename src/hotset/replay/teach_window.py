"""Teachers that replay recorded sessions: how much is shown of results, when steps leave, and what
stays of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from hotset.errors import HotsetError
from hotset.learn.gate import SessionPair
from hotset.nouns.knobs import Knobs, Limit
from hotset.nouns.page import PageId
from hotset.replay.teaching import (
    FEWEST,
    ChosenMoves,
    Gain,
    Proposal,
    TeachingMaterial,
    Values,
    choose,
)
from hotset.replay.trials import FormCounts, TeachingSession
from hotset.store.port import Store
from hotset.window.preview.line_scores import SIGNS, WEIGHTS

_BESIDE = 2.0
"""What a fault costs beside its tokens, as a multiple of these, where a change only shows more: a
call that the user waits for, and that the model may not think of. It decides; what is told to
people has the tokens once."""
_MOST_DEARER = 0.005  # in tokens alone, for fewer faults


class ByReplay:
    """A teacher whose changes show in what recorded sessions would have cost."""

    def compare(
        self, material: TeachingMaterial, before: Knobs, after: Knobs, proposal: Proposal
    ) -> Sequence[SessionPair]:
        beside = _BESIDE if proposal.is_safe else 0.0
        return material.trials.pairs(material.newer, before, after, beside=beside)


_LONGER, _SHORTER = (1.5, 2.0, 4.0), (0.7, 0.5, 0.25)
_MANY_BACK, _FEW_BACK = 0.2, 0.08
"""Of the results that were shown short, how many are asked back for longer, or shorter, forms to be
tried; between the two, both."""
_FEWEST_RESULTS = 5
_MOST_KEYS = 8
_LEAST_OVER = 600  # characters: below, an excerpt says no more than its frame


class LimitsTeacher(ByReplay):
    """How much is shown of results, by tool and by a file's ending: what is asked back often is
    shown longer, what is not, shorter."""

    def propose(self, material: TeachingMaterial, knobs: Knobs) -> Iterator[Proposal]:
        older = material.older
        if len(older) < FEWEST:
            return
        forms = material.trials.forms(older, knobs)
        ids = {session.id for session in older}
        live = asked_back_live(material.store, ids) if material.store is not None else {}
        keys = [
            key
            for key, counts in sorted(forms.items(), key=lambda one: (-one[1].short, one[0]))
            if counts.short >= _FEWEST_RESULTS and not key.startswith("limits.")
        ][:_MOST_KEYS]
        limits = {key: current_limit(key, knobs, older) for key in keys}
        for factors, is_safe in ((_LONGER, True), (_SHORTER, False)):
            moves = [
                {key: _as_value(limits[key].times(factor))}
                for key in keys
                for factor in factors
                if _is_worth_trying(forms[key], is_longer=is_safe, live=live.get(key, 0))
                and limits[key].over * factor >= _LEAST_OVER
            ]
            best = choose(material, knobs, moves, beside=_BESIDE if is_safe else 0.0)
            if best is not None and not _is_dearer(material, knobs, best):
                yield self._proposal(best, limits, forms, is_safe=is_safe)

    def _proposal(
        self,
        best: ChosenMoves,
        limits: Mapping[str, Limit],
        forms: Mapping[str, FormCounts],
        *,
        is_safe: bool,
    ) -> Proposal:
        said = [
            f"{name_results(key)} are shown whole up to {value['over']:,} characters instead of "
            f"{limits[key].over:,}: {forms[key].back} of {forms[key].short} shown short were "
            f"asked back"
            for key, value in best.knobs.items()
        ]
        counts = sum((forms[key] for key in best.knobs), FormCounts())
        return Proposal(
            best.knobs,
            "; ".join(said),
            {"short": counts.short, "back": counts.back, "whole": counts.whole} | _earlier(best),
            is_safe,
            best.gain.scale,
        )


def _is_dearer(material: TeachingMaterial, knobs: Knobs, best: ChosenMoves) -> bool:
    """True if it surely costs more in tokens alone."""
    after = knobs.with_changes(best.knobs)
    gain = Gain.of(material.trials.pairs(material.older, knobs, after))
    return gain.mean + gain.error < -_MOST_DEARER


def _is_worth_trying(counts: FormCounts, *, is_longer: bool, live: int) -> bool:
    rate = max(counts.rate, (counts.back + live) / max(1, counts.short + live))
    return rate > _FEW_BACK if is_longer else rate < _MANY_BACK


def _as_value(limit: Limit) -> Values:
    return {"over": limit.over, "room": limit.room}


def current_limit(key: str, knobs: Knobs, sessions: Iterable[TeachingSession]) -> Limit:
    """The limit that most results with this key have, for a window of 128,000 tokens or more."""
    table, _, name = key.partition(".")
    own = {"files": knobs.files, "tools": knobs.tools}.get(table, {}).get(name)
    if own is not None:
        return own
    found: dict[Limit, int] = {}
    for session in sessions:
        for result in session.results.values():
            if key in result.keys:
                tool = "" if table == "tools" else result.tool
                held = knobs.tools.get(tool) or knobs.limits.get(result.kind) or knobs.limit
                found[held] = found.get(held, 0) + 1
    return max(found, key=lambda each: (found[each], each.over), default=knobs.limit)


def name_results(key: str) -> str:
    table, _, name = key.partition(".")
    return f".{name} files" if table == "files" else f"{name} results"


def _earlier(best: ChosenMoves) -> dict[str, float]:
    return {"earlier_sessions": best.sessions, "earlier_gain": round(best.gain.mean, 5)}


def asked_back_live(store: Store, sessions: Container[str]) -> dict[str, int]:
    """How often results were asked back in these sessions when they went through hotset, by the
    knob of their limit."""
    ids = [
        id
        for event in store.events(name="Retrieved")
        if event.detail.get("refault") and event.session in sessions
        for id in str(event.detail.get("ids", "")).split()
    ]
    found: dict[str, int] = {}
    for id in ids:
        with suppress(HotsetError):
            key = f"tools.{store.page(PageId(id)).tool}"
            found[key] = found.get(key, 0) + 1
    return found


_FACTORS: Mapping[str, tuple[float, ...]] = {
    "keep": (0.5, 0.75, 1.5),
    "regret": (0.4, 0.7, 1.5),
    "patience": (0.5, 2.0),
    "rest": (0.5, 2.0),
    "finished": (0.0, 3.0),
    "written": (0.25, 0.5, 2.0),
    "entry": (0.5, 2.0),
    "index": (0.0, 2.0),
    "forms.again": (0.5, 2.0),
    "forms.logs_share": (0.5, 1.5),
}
"""Of each knob's value now."""
_OTHERS: Sequence[Values] = ({"low": 0.1}, {"early": False}, {"early": True})


class MovesTeacher(ByReplay):
    """Knobs that are moved one by one, then the best of them together."""

    def __init__(self, moves: Callable[[Knobs], Iterator[Values]]) -> None:
        self._moves = moves

    def propose(self, material: TeachingMaterial, knobs: Knobs) -> Iterator[Proposal]:
        best = choose(material, knobs, list(self._moves(knobs)))
        if best is None:
            return
        changed = ", ".join(
            f"`{name}` is {_number(value)} instead of {_number(_value_now(knobs, name))}"
            for name, value in best.knobs.items()
        )
        why = f"{changed}: {best.sessions} earlier sessions cost {best.gain.percent:.1f} % less"
        yield Proposal(best.knobs, why, _earlier(best), scale=best.gain.scale)


_LINES = "lines."
_LINE_FACTORS = (0.5, 2.0)
_MOST_LINES = 8  # signs, those of the greatest weight
_LINE_WEIGHTS: Mapping[str, float] = dict(zip(SIGNS, WEIGHTS, strict=True))


def line_moves(knobs: Knobs) -> Iterator[Values]:
    """Other weights of the signs that count most in which lines of a result are shown."""
    signs = sorted(SIGNS[1:], key=lambda sign: -abs(_LINE_WEIGHTS[sign]))[:_MOST_LINES]
    for sign in signs:
        now = _value_now(knobs, f"{_LINES}{sign}")
        yield from ({f"{_LINES}{sign}": round(now * factor, 3)} for factor in _LINE_FACTORS)


def _value_now(knobs: Knobs, name: str) -> Any:
    value = knobs.value(name)
    return _LINE_WEIGHTS[name.removeprefix(_LINES)] if value is None else value


def window_moves(knobs: Knobs) -> Iterator[Values]:
    """When steps leave, and what stays of them."""
    for name, factors in _FACTORS.items():
        now = knobs.value(name)
        for factor in factors:
            new = max(1, round(now * factor)) if isinstance(now, int) and now else now * factor
            if name == "index" and not factor:
                new = 0
            if new != now:
                yield {name: new}
    for values in _OTHERS:
        if any(knobs.value(name) != value for name, value in values.items()):
            yield dict(values)


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
