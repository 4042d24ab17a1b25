"""What would be offered with the prompts of recorded sessions, and how much of it would have been
used.

    make bench-prefetch

Reads three sets of HOTSET_BENCH_DATA (default: ../shared/data). Goes through each set's sessions in
their order of time; at each prompt the index holds what was said before, in this session and in
earlier ones. Weights are fitted to two sets and tested on the third, three times. Prints precision,
tokens and cost, how well the confidence is calibrated, and the weights fitted to all sets, which
are those that ship; draws `bench/results/calibration.svg`. `docs/prefetch.md` says what the figures
mean.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import chain
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.calibration import bins, draw
from bench.prefetch_cases import Case, Find, Set, study
from bench.results import tell
from hotset.config import listed_prices
from hotset.nouns.knobs import Prefetch
from hotset.nouns.price import Prices
from hotset.replay.report import Ruling
from hotset.tokens import count
from hotset.window.prefetch import ABOVE, SIGNS, WEIGHTS, PrefetchWeights, likelihood

HERE = Path(__file__).parent
DATA = (
    Path(os.environ.get("HOTSET_BENCH_DATA", HERE.parent.parent / "shared" / "data"))
    / "trajectories"
)
WINDOWS = {"codex-agentv": 128_000, "cc-packmind": 64_000, "pi-mono": 100_000}
BORDERS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.85, 0.9, 1.01)
HINT_TOKENS, HEADING_TOKENS = 45, 35
"""Of a hint, and of the line over an excerpt: those of a path of usual length."""
_RIDGE = 1.0  # keeps weights of what is rare in a set small
_STEPS = 50


def main() -> None:
    missing = [str(_file(name)) for name in WINDOWS if not _file(name).exists()]
    if missing:
        sys.exit(
            f"there is no {missing[0]}; say where the recorded sessions are: "
            f"HOTSET_BENCH_DATA=/path/to/data"
        )
    began = time.perf_counter()
    sets: dict[str, Set] = {}
    with get_context("spawn").Pool(2) as pool:
        for name, found in pool.imap_unordered(_studied, WINDOWS):
            sets[name] = found
            print(
                f"{name}: {len(found.cases)} prompts, after {time.perf_counter() - began:.0f} s",
                file=sys.stderr,
            )
    report({name: sets[name] for name in WINDOWS})


def report(sets: Mapping[str, Set]) -> None:
    held_out = {
        name: fitted(
            [case for other, found in sets.items() if other != name for case in found.cases]
        )
        for name in sets
    }
    tell(
        "prefetch",
        {name: dict(figures_by_method(found, held_out[name])) for name, found in sets.items()},
    )
    panels: dict[str, dict[str, Sequence[tuple[float, bool]]]] = {"excerpts": {}, "hints": {}}
    for name, found in sets.items():
        panels["excerpts"][name] = list(
            judged(found, held_out[name].excerpt, is_excerpt, excerpt_used, Prefetch().excerpts)
        )
        panels["hints"][name] = list(
            judged(found, held_out[name].hint, is_hint, hint_used, Prefetch().hints)
        )
    print("\ncalibration, each set by weights that were fitted to the others: said -> came (finds)")
    for title, lines in panels.items():
        for name, pairs in {**lines, "all": list(chain(*lines.values()))}.items():
            told = "  ".join(
                f"{each.said:.2f} -> {each.came:.2f} ({each.many})" for each in bins(pairs, BORDERS)
            )
            print(f"{title:<10}{name:<16}{told}")
    drawn = HERE / "results" / "calibration.svg"
    drawn.write_text(
        draw(
            {
                title: {name: bins(pairs, BORDERS) for name, pairs in lines.items()}
                for title, lines in panels.items()
            }
        )
    )
    print(f"\ncalibration: {drawn}\n")
    ours = fitted([case for found in sets.values() for case in found.cases])
    print(f"weights fitted to all sets, for {', '.join(SIGNS)}")
    for title, here, shipped in (
        ("excerpt", ours.excerpt, WEIGHTS.excerpt),
        ("hint", ours.hint, WEIGHTS.hint),
    ):
        print(f"{title:<10}{_told(here)}   shipped: {_told(shipped)}")


def is_excerpt(find: Find) -> bool:
    return find.is_file


def is_hint(find: Find) -> bool:
    del find
    return True


def excerpt_used(find: Find) -> bool:
    return find.used or find.lines


def hint_used(find: Find) -> bool:
    return find.used or find.file


Which = Callable[[Find], bool]


def fitted(cases: Sequence[Case]) -> PrefetchWeights:
    return PrefetchWeights(_fit(cases, is_excerpt, excerpt_used), _fit(cases, is_hint, hint_used))


def _fit(cases: Sequence[Case], which: Which, came: Which) -> tuple[float, ...]:
    """Logistic regression by Newton's method; the constant is not held small."""
    finds = [find for case in cases for find in case.finds if which(find)]
    signs: NDArray[np.float64] = np.array([astuple(find.signs) for find in finds])
    true: NDArray[np.float64] = np.array([came(find) for find in finds], float)
    held = np.diag([1e-6, *[_RIDGE] * (signs.shape[1] - 1)])
    weights = np.zeros(signs.shape[1])
    for _ in range(_STEPS):
        said = 1 / (1 + np.exp(-signs @ weights))
        slope = signs.T @ (said - true) + held @ weights
        weights -= np.linalg.solve((signs * (said * (1 - said))[:, None]).T @ signs + held, slope)
    return tuple(round(float(weight), 2) for weight in weights)


def judged(
    found: Set, weights: Sequence[float], which: Which, came: Which, most: int
) -> Iterator[tuple[float, bool]]:
    """The best finds of each prompt, one a file, whatever their likelihood: what was said of them,
    and what came of them."""
    for case in found.cases:
        for sure, find in _best(
            case, [likelihood(find.signs, weights) for find in case.finds], which
        )[:most]:
            yield sure, came(find)


def _best(case: Case, sure_of: Sequence[float], which: Which) -> list[tuple[float, Find]]:
    """The likeliest file first, of each the stretch that fits best."""
    judged = ((sure, find) for sure, find in zip(sure_of, case.finds, strict=True) if which(find))
    ranked = sorted(judged, key=lambda each: (-each[0], -each[1].time))
    of_file: dict[str, list[tuple[float, Find]]] = {}
    for sure, find in ranked:
        of_file.setdefault(find.path, []).append((sure, find))
    return [max(finds, key=lambda each: each[1].fit) for finds in of_file.values()]


@dataclass(frozen=True, slots=True)
class Method:
    excerpt: float
    hint: float
    raw: bool = False
    """By the cosine itself."""


METHODS = {
    "hotset": Method(Prefetch().excerpt, Prefetch().hint),
    "excerpts .7": Method(0.7, 2.0),
    "excerpts .5": Method(0.5, 2.0),
    "cosine .9": Method(Prefetch().excerpt, Prefetch().hint, raw=True),
    "cosine .5": Method(0.5, 2.0, raw=True),
}


def figures_by_method(
    found: Set, weights: PrefetchWeights
) -> Iterator[tuple[str, dict[str, float]]]:
    for name, method in METHODS.items():
        yield name, _figures(found, weights, method)


def _figures(found: Set, weights: PrefetchWeights, method: Method) -> dict[str, float]:
    excerpts: list[Find] = []
    hints: list[Find] = []
    offered = 0
    added = 0.0
    for case in found.cases:
        mine = _above(case, weights.excerpt, is_excerpt, method.excerpt, raw=method.raw)[
            : Prefetch().excerpts
        ]
        paths = {find.path for find in mine}
        others = [
            find
            for find in _above(case, weights.hint, is_hint, method.hint, raw=method.raw)
            if find.path not in paths
        ]
        excerpts += mine
        hints += others[: Prefetch().hints]
        offered += bool(mine or others)
        added += sum(find.carried for find in [*mine, *others][:1]) * count(ABOVE.encode())
    added += sum(find.carried * (find.tokens + HEADING_TOKENS) for find in excerpts)
    added += sum(find.carried * HINT_TOKENS for find in hints)
    still = [find.still for find in excerpts if find.still is not None]
    return {
        "prompts": len(found.cases),
        "offered_pct": _share(offered, len(found.cases)),
        "excerpts": len(excerpts),
        "not_wasted_pct": _share(sum(map(excerpt_used, excerpts)), len(excerpts)),
        "used_pct": _share(sum(find.used for find in excerpts), len(excerpts)),
        "expanded_pct": _share(sum(find.lines for find in excerpts), len(excerpts)),
        "still_true_pct": _share(sum(still), len(still)),
        "hints": len(hints),
        "hints_ok_pct": _share(sum(map(hint_used, hints)), len(hints)),
        "saved_calls": sum(find.saves > 0 for find in excerpts),
        "tokens_added": sum(find.tokens + HEADING_TOKENS for find in excerpts)
        + HINT_TOKENS * len(hints),
        "cost_pct": round(
            100 * (1 + (added - sum(find.saves for find in excerpts)) / found.cost), 3
        ),
    }


def _above(
    case: Case, weights: Sequence[float], which: Which, least: float, *, raw: bool
) -> list[Find]:
    best = _best(
        case,
        [find.cosine if raw else likelihood(find.signs, weights) for find in case.finds],
        which,
    )
    return [find for sure, find in best if sure >= least]


def _share(part: float, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


def _told(weights: Sequence[float]) -> str:
    return " ".join(f"{weight:6.2f}" for weight in weights)


def _studied(name: str) -> tuple[str, Set]:
    return name, study(
        name, _file(name), Ruling(Prices(listed_prices()), "anthropic", WINDOWS[name])
    )


def _file(name: str) -> Path:
    return DATA / f"{name}.jsonl.gz"


if __name__ == "__main__":
    main()
