"""The optimisers' side of `bench/evolve.py`: runs in an environment of its own, takes one line of
JSON, prints a point a line and reads what each was worth."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    {"optuna": optuna, "nevergrad": nevergrad}[asked["peer"]](asked)


def worth_of(point: dict[str, Any]) -> float:
    print(json.dumps(point), flush=True)
    return float(sys.stdin.readline())


def optuna(asked: dict[str, Any]) -> None:
    """The tree-structured Parzen estimator, with the knobs in force as its first point."""
    import optuna  # noqa: PLC0415

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=asked["seed"], multivariate=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.enqueue_trial({gene["name"]: _plain(gene, gene["start"]) for gene in asked["genes"]})

    def objective(trial: Any) -> float:
        return worth_of({gene["name"]: _suggested(trial, gene) for gene in asked["genes"]})

    study.optimize(objective, n_trials=asked["points"])


def _suggested(trial: Any, gene: dict[str, Any]) -> Any:
    if gene["choices"]:
        named = {_plain(gene, each): each for each in gene["choices"]}
        return named[trial.suggest_categorical(gene["name"], list(named))]
    suggest: Callable[..., Any] = (
        trial.suggest_int if isinstance(gene["start"], int) else trial.suggest_float
    )
    return suggest(gene["name"], gene["low"], gene["high"], log=gene["log"])


def _plain(gene: dict[str, Any], value: Any) -> Any:
    """A choice as Optuna takes it."""
    return json.dumps(value) if gene["choices"] else value


def nevergrad(asked: dict[str, Any]) -> None:
    """Its own choice of an optimiser."""
    import nevergrad as ng  # noqa: PLC0415

    space = ng.p.Dict(**{gene["name"]: _axis(ng, gene) for gene in asked["genes"]})
    space.random_state.seed(asked["seed"])
    optimizer = ng.optimizers.NGOpt(parametrization=space, budget=asked["points"])
    for _ in range(asked["points"]):
        point = optimizer.ask()
        optimizer.tell(point, -worth_of(dict(point.value)))


def _axis(ng: Any, gene: dict[str, Any]) -> Any:
    if gene["choices"]:
        return ng.p.Choice(gene["choices"])
    axis = (
        ng.p.Log(init=gene["start"], lower=gene["low"], upper=gene["high"])
        if gene["log"]
        else ng.p.Scalar(init=gene["start"], lower=gene["low"], upper=gene["high"])
    )
    return axis.set_integer_casting() if isinstance(gene["start"], int) else axis


if __name__ == "__main__":
    main()
