"""How every benchmark tells what it found: a table for people, `bench/results/NAME.json` for
programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

Sets = Mapping[str, Mapping[str, Mapping[str, float]]]
"""set -> method -> metric -> value; our own method is named `hotset`."""


def tell(name: str, sets: Sets) -> None:
    for title, methods in sets.items():
        metrics = list(dict.fromkeys(metric for values in methods.values() for metric in values))
        width = max(16, *(len(metric) + 2 for metric in metrics))
        print(f"\n{title}")
        print(" " * 16 + "".join(f"{metric:>{width}}" for metric in metrics))
        for method, values in methods.items():
            cells = (
                f"{values[metric]:{width}.3f}" if metric in values else " " * width
                for metric in metrics
            )
            print(f"{method:<16}" + "".join(cells))
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"sets": sets}, indent=1) + "\n")


def quantile(values: list[float], share: float) -> float:
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(len(ranked) * share))]
