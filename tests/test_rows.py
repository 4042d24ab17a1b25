"""The map of promises and the tests that hold them say the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from hotset.surfaces.cli.promises import PROMISES, TOPICS, RowState
from tests.rows import STATES

TESTS = Path(__file__).parent
_OUTSIDE = frozenset({"proxy", "cli", "clients", "library"})


def test_every_promise_that_is_called_working_is_held_by_a_test():
    promised = {id for id, state in STATES.items() if state is not RowState.PLANNED}

    assert promised - set(carried()) == set()


def test_every_promise_that_is_called_working_is_driven_from_outside():
    outside = {id for path in TESTS.rglob("*.py") if is_outside(path) for id, _ in rows_in(path)}

    assert {id for id, state in STATES.items() if state is RowState.WORKING} - outside == set()


def test_no_test_carries_a_row_that_is_unknown_or_only_planned():
    known = {id for id, state in STATES.items() if state is not RowState.PLANNED}

    assert {id: where for id, where in carried().items() if id not in known} == {}


def test_every_promise_stands_once_and_a_partial_one_says_what_works():
    assert len(STATES) == len(PROMISES)
    assert {promise.id[0] for promise in PROMISES} == set(TOPICS)
    assert [
        promise.id
        for promise in PROMISES
        if (promise.state is RowState.PARTLY) != bool(promise.yet)
    ] == []


def is_outside(path: Path) -> bool:
    """Its tests go through the proxy, MCP, the CLI or the library."""
    return path.relative_to(TESTS).parts[0] in _OUTSIDE or "LocalProxy(" in path.read_text("utf-8")


@cache
def carried() -> dict[str, str]:
    """Row ids and a place that carries each, read from the source: no collection, so it is the same
    in every worker."""
    return {
        id: f"{path.relative_to(TESTS)}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        for id, line in rows_in(path)
    }


def rows_in(path: Path) -> Iterator[tuple[str, int]]:
    text = path.read_text("utf-8")
    for node in ast.walk(ast.parse(text)) if "mark.row(" in text else ():
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and ast.unparse(node.func) == "pytest.mark.row"
        ):
            for argument in node.args:
                yield ast.literal_eval(argument), node.lineno
