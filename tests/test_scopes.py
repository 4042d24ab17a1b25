"""Nothing in hotset starts a thread, a task, an executor or a queue of its own: a scope does."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "src" / "hotset"
FREE = ("files/scope.py", "testing/", "sources/tools/running/host_calls.py")
"""The one place; servers of tests; and a file that runs in a Python without hotset."""

_CALLS = frozenset({"create_task", "ensure_future", "start_new_thread", "TaskGroup"})
_CLASSES = frozenset(
    {
        *("Thread", "Timer", "ThreadPoolExecutor", "ProcessPoolExecutor", "Pool"),
        *("Queue", "SimpleQueue", "LifoQueue", "PriorityQueue"),
    }
)
_RAW = re.compile("|".join(_CALLS | _CLASSES))
_LARGEST = 256
"""Entries of a function's own cache: a larger one is a `memo`, which pressure empties."""


def raw_calls(text: str) -> Iterator[tuple[int, str]]:
    """Calls that start something outside of a scope, by line: also `loop.create_task`, which no
    import shows."""
    for node in ast.walk(ast.parse(text)) if _RAW.search(text) else ():
        if isinstance(node, ast.Call):
            called = node.func
            name = (
                called.attr
                if isinstance(called, ast.Attribute)
                else called.id
                if isinstance(called, ast.Name)
                else ""
            )
            if name in _CALLS | _CLASSES:
                yield node.lineno, name


def unlisted_caches(text: str) -> Iterator[tuple[int, str]]:
    """Functions that remember more results than a few, and not as one of the caches."""
    for node in ast.walk(ast.parse(text)) if "cache" in text else ():
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "lru_cache":
            given = [*node.args, *(each.value for each in node.keywords)]
            size = ast.unparse(given[0]) if given else "128"
            if eval(size, {}) > _LARGEST:
                yield node.lineno, size
        elif isinstance(node, ast.FunctionDef):
            for mark in node.decorator_list:
                if getattr(mark, "id", "") in ("cache", "lru_cache") and _many(node):
                    yield node.lineno, node.name


def _many(function: ast.FunctionDef) -> bool:
    """True if its arguments may have any number of values."""
    return (
        any(
            each.annotation is not None and ast.unparse(each.annotation) in ("str", "bytes", "int")
            for each in function.args.args
        )
        and function.name not in BOUNDED
    )


BOUNDED = {
    "_compile",  # the patterns of secrets: as many as there are kinds
    "_kinds_from",  # bytes
    "grammar",  # languages
    "_query",  # languages
    "_pattern",  # the tables of words in one module
    "_stemmer",  # languages
    "topics",  # memories of one session's judgement: the cache ends with it
}


def house() -> list[Path]:
    return [
        path
        for path in sorted(HOUSE.rglob("*.py"))
        if not path.relative_to(HOUSE).as_posix().startswith(FREE)
    ]


@pytest.mark.row("V14")
def test_only_scopes_start_threads_tasks_executors_and_queues():
    found = {
        f"{path.relative_to(HOUSE)}:{line}: {name}"
        for path in house()
        for line, name in raw_calls(path.read_text("utf-8"))
    }
    assert found == set()


@pytest.mark.row("V14")
@pytest.mark.parametrize(
    "planted",
    [
        "asyncio.create_task(work())",
        "loop.create_task(work())",
        "self._loop.create_task(work())",
        "asyncio.get_running_loop().create_task(work())",
        "asyncio.ensure_future(work())",
        "threading.Thread(target=work).start()",
        "Thread(target=work).start()",
        "ThreadPoolExecutor(4)",
        "queue.SimpleQueue()",
        "asyncio.Queue()",
        "_thread.start_new_thread(work, ())",
    ],
)
def test_a_planted_one_is_caught(planted):
    assert len(list(raw_calls(f"def begin(self, loop, work):\n    {planted}\n"))) == 1


@pytest.mark.row("V14")
def test_the_linter_catches_a_planted_one(tmp_path):
    ruff = shutil.which("ruff") or str(ROOT / ".venv" / "bin" / "ruff")
    if not Path(ruff).exists():
        pytest.skip("ruff is not installed")
    text = "import asyncio\nimport threading\nfrom queue import SimpleQueue\n\n"
    text += "asyncio.create_task(None)\nthreading.Thread()\nSimpleQueue()\n"
    command = [ruff, "check", "--select", "TID251", "--output-format", "concise", "-"]
    command += ["--config", str(ROOT / "pyproject.toml")]
    command += ["--stdin-filename", str(HOUSE / "runtime" / "planted.py")]
    ran = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ran.stdout.count("TID251") == 3, ran.stdout + ran.stderr


@pytest.mark.row("V14")
def test_every_cache_of_more_than_a_few_results_is_one_of_the_list():
    found = {
        f"{path.relative_to(HOUSE)}:{line}: {name}"
        for path in sorted(HOUSE.rglob("*.py"))
        if path.relative_to(HOUSE).as_posix() != "files/lru.py"  # which makes them
        for line, name in unlisted_caches(path.read_text("utf-8"))
    }
    # `nouns` may not import the list; runtime/pressure adds its cache to it
    assert {each.partition(":")[0] for each in found} <= {"nouns/link.py"}
    assert list(unlisted_caches("@lru_cache(9999)\ndef f(x: str): ...\n"))
    assert list(unlisted_caches("@cache\ndef f(x: str): ...\n"))
