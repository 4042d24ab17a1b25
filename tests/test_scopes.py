"""Nothing in hotset starts a thread, a task, a process, an executor or a queue of its own: a scope
does. And what grows with use is one of the caches, or reviewed here."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "src" / "hotset"
FREE = (
    *("files/scope.py", "files/child_process.py"),
    *("testing/", "sources/tools/running/host_calls.py"),
)
"""The one place, and that of processes; servers of tests; and a file that runs in a Python without
hotset."""

_CALLS = frozenset(
    {
        *("create_task", "ensure_future", "start_new_thread", "TaskGroup"),
        *("create_subprocess_exec", "create_subprocess_shell", "subprocess_exec"),
        *("subprocess_shell", "posix_spawn"),
    }
)
_CLASSES = frozenset(
    {
        *("Thread", "Timer", "ThreadPoolExecutor", "ProcessPoolExecutor", "Pool"),
        *("Queue", "SimpleQueue", "LifoQueue", "PriorityQueue", "Popen"),
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


def growing_maps(text: str) -> Iterator[str]:
    """Maps, sets and lists that begin empty and belong to an object or a module: `Class._name`.
    Whatever is not bounded by itself may grow with use."""
    tree = ast.parse(text)
    yield from _empty(tree.body)
    for each in ast.walk(tree):
        if not isinstance(each, ast.ClassDef):
            continue
        found = [name for name in _empty(each.body) if name.startswith("_")]
        for begin in each.body:
            if isinstance(begin, ast.FunctionDef) and begin.name in {"__init__", "__post_init__"}:
                own = (name for name in _empty(ast.walk(begin)) if name.startswith("self."))
                found += [name.removeprefix("self.") for name in own]
        yield from (f"{each.name}.{name}" for name in found)


def _empty(nodes: Iterable[ast.AST]) -> Iterator[str]:
    return (name for name, value in _assignments(nodes) if _begins_empty(value))


def _assignments(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    for node in nodes:
        if isinstance(node, ast.Assign):
            yield ast.unparse(node.targets[0]), node.value
        elif (
            isinstance(node, ast.AnnAssign)
            and node.value is not None
            and not ast.unparse(node.annotation).startswith("Mapping")  # nothing is added to it
        ):
            yield ast.unparse(node.target), node.value


_GROWING = frozenset({"dict", "set", "list", "defaultdict", "OrderedDict", "Counter"})


def _begins_empty(value: ast.expr) -> bool:
    if isinstance(value, ast.Dict | ast.List):
        return not (value.keys if isinstance(value, ast.Dict) else value.elts)
    if not isinstance(value, ast.Call):
        return False
    made = getattr(value.func, "id", getattr(value.func, "attr", ""))
    if made == "field":
        return any(ast.unparse(each.value) in _GROWING for each in value.keywords)
    if made == "deque":
        return all(each.arg != "maxlen" for each in value.keywords)
    return made in _GROWING and not (value.args and made in ("dict", "set", "list"))


REVIEWED = {
    "ends with one call, reply, search or document": """
        dialects.anthropic.hand_over.AnthropicRenamer._held
        dialects.chat.hand_over.ChatRenamer._held
        dialects.chat.view._Editor._name dialects.chat.view._Editor._calls
        dialects.chat.view._Editor._texts dialects.chat.view._Editor._shown_texts
        dialects.chat.view._Editor._earlier_texts dialects.chat.view._Editor._waiting
        dialects.responses.hand_over.ResponsesRenamer._held dialects.responses.view._Editor._items
        dialects.responses.view._Editor._before dialects.sse.Splitter._line
        dialects.sse.Splitter._data dialects.view.IndexMap._hidden dialects.view.IndexMap._known
        dialects.view._View._got dialects.view._View._rounds dialects.view.DocumentView._bodies
        index.hybrid_search.Signals.failed runtime.maintenance._Lines._empty
        store.postgres.mirror.RecordingConnection.written
        runtime.record.Record._got runtime.record.Record._beside_request
        runtime.record.Record._beside_reply runtime.reply_bytes.StreamTail._held
        runtime.turn.OwnTools._others sealing.sealer.KnownSecrets._by_head
        sources.history.page_search._Pages._known sources.memory.memory_text._Renderer._lines
        sources.memory.memory_text._Renderer._unnamed sources.memory.memory_text._Renderer.shown
        sources.memory.usefulness._Conversation._before sources.tools.found.signatures.Schemas.defs
        sources.tools.found.signatures.Schemas.unknown
        sources.tools.found.signatures.Schemas._foreign sources.tools.schemas._Counting._known
        sources.tools.schemas._Counting._open surfaces.library.transport.Exchange._orders
        surfaces.library.transport.Exchange.extensions surfaces.proxy.app.Upload._first
        window.evict.StepNames._inside window.evict.StepNames._called
        window.repeats.ShownResults._texts window.repeats.ShownResults._shown
        window.repeats.ShownResults._where window.work.worklog.WorkReading.places
        window.work.file_changes._Tree.files window.work.file_changes._Tree._staged
        window.work.file_changes._Tree._stashed window.work.worklog.WorkReading.pages""",
    "ends with one piece of background work or one command": """
        index.vectors.VectorsWriter._files sources.code.scan._Walk._open
        sources.memory.consolidation._Trace.gone sources.memory.consolidation._Trace.left
        sources.memory.duplicates.GoalIndex._postings
        sources.memory.exchange.loki._LokiExport._links_of
        sources.memory.exchange.loki._LokiExport._learnings
        sources.memory.exchange.merge.Shards._pieces sources.memory.overview._OverviewFold._touched
        sources.memory.patterns.ThingCounts._seen sources.memory.patterns._ClusterCounts.ids
        sources.memory.patterns._ClusterCounts.sessions
        sources.memory.patterns._ClusterCounts.things
        sources.memory.patterns._ClusterCounts.endings
        sources.memory.patterns._ClusterCounts.topics sources.memory.patterns._ClusterCounts.tasks
        sources.memory.patterns._ClusterCounts.titles sources.memory.supersede._Table._latest
        sources.memory.supersede._Table._written sources.memory.supersede._Table._links
        sources.memory.supersede._Table._absorbed sources.memory.supersede._Table._new
        store.exchange.RowImport._seen store.exchange.ImportCheck._seen
        store.exchange.ImportCheck._awaited store.exchange.ImportCheck._followed
        store.exchange.ImportCheck._memories store.memory_versions.MemoryMerge._ours
        store.memory_versions.MemoryMerge._put_behind store.sealed.SealedRows._moved
        store.sealed.SealedRows._pages""",
    "holds what is open, runs or waits, within a scope's budget or a limit of its own": """
        files.deadline_pool.DeadlinePool._threads files.deadline_pool.DeadlinePool._open
        files.scope._turns files.scope.ResourceScope._counts files.scope.ResourceScope._tasks
        files.scope.ResourceScope._threads files.scope.ResourceScope._executors
        files.scope.ResourceScope._files runtime.background.BoundedPool._waiting
        runtime.background.BoundedPool._running runtime.background.BoundedPool._idle
        runtime.keeper.Keeper._under_way runtime.summaries.Summariser._waiting
        sources.tools.catalogue.ToolSync._asking sources.tools.registry.Registry._uses
        sources.tools.registry.Registry._leaving
        sources.tools.running.host_calls._Host._wanted
        sources.tools.running.mcp_client.PipeConnection._waiting
        sources.tools.running.mcp_client.PipeConnection._sending
        sources.tools.running.mcp_http.HttpConnection._farewells
        sources.tools.running.processes.Supervisor._servers
        sources.tools.running.processes.ServerProcess._outputs
        sources.tools.running.processes.Messages._messages
        sources.tools.running.processes.Messages._pieces
        sources.tools.running.server_pool.ServerPool._servers
        sources.tools.running.server_pool.ServerPool._leaving
        sources.tools.running.server_pool.ServerPool._closing
        sources.tools.running.server_supervisor._Supervisor._reapers
        sources.tools.running.server_supervisor._Supervisor._descriptors
        surfaces.proxy.front.Front._open surfaces.proxy.front.Front._places
        store.connection._open_here store.connection._sizes
        store.stored_value.GatheredValue._waiting""",
    "has an entry for each source, kind, language, alert, type or encoding of our own code": """
        runtime.keeper.Keeper.event_counts runtime.watch.Watch._raised
        runtime.offer_round.OfferRound._failing sources.code.grammars._loaded
        sources.memory.time_parser.FORMS sources.tools.running.host._LOADED typed._known""",
    "has an entry for each configured server, tool file, skill, script or function": """
        sources.tools.answers.ToolAnswers._writes sources.tools.catalogue.ToolSync._failed
        sources.tools.catalogue.ToolSync._refused sources.tools.found.skills.SkillCache._read
        sources.tools.found.skills.SkillCache._live
        sources.tools.running.host_calls.ScriptFunctions._modules
        sources.tools.running.host_calls.ScriptFunctions._stamps
        sources.tools.running.host_calls._Script.functions
        sources.tools.running.mcp_client.McpSession._mirrors
        sources.tools.running.server_pool.ServerPoolThread._past
        sources.tools.tool_files.ToolFiles._troubles sources.tools.tool_files.NameIndex._stamps
        sources.tools.tool_files.NameIndex._rows sources.tools.tool_files.NameIndex._full
        sources.tools.tool_files.NameIndex._own sources.tools.toolbox.Toolbox._bound""",
    "is bounded where it is added to, by a constant of its module": """
        index.entries.Entries._name_words index.entries._Names._known
        index.hybrid_search.IndexSearch._condemned sources.code.parsers.Parsers._gave_up
        sources.tools.tool_search.PastUses._uses store.connection.Readers._idle
        store.postgres.connection.DeskReaders._idle
        window.ledger.Ledger._books""",
    "is one of the caches, or within one": """
        dialects.envelope.BodyCache.fronts files.lru.Lru._entries index.hot.HotReranker._read
        sources.memory.relevance.TellableMemories._known
        sources.memory.relevance.TellableMemories._often
        tokens.encodings.LoadedEncodings._loaded""",
    "has an entry for each turn of today, where a person watches spending": """
        runtime.spending.Spending._today runtime.spending.Spending._sessions""",
    "is what a program holds itself: its windows, its open projects": """
        surfaces.library.api._shared surfaces.library.window.Conversation._messages""",
    "sums by model and upstream; a model that no provider knows has no bill": """
        window.ledger._Book.measured window.ledger._Book.whole window.ledger._Book.prices
        window.ledger._Book._recounts window.ledger._Book._compared
        window.ledger._ClosedBooks.measured window.ledger._ClosedBooks.prices""",
}
"""Why they do not grow without end. A new one is an `Lru` or a `memo`, or belongs here."""


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
        "subprocess.Popen(['true'])",
        "Popen(['true'])",
        "asyncio.create_subprocess_exec('true')",
        "loop.subprocess_exec(work, 'true')",
    ],
)
def test_a_planted_one_is_caught(planted):
    assert len(list(raw_calls(f"def begin(self, loop, work):\n    {planted}\n"))) == 1


@pytest.mark.row("V14")
def test_the_linter_catches_a_planted_one(tmp_path):
    ruff = shutil.which("ruff") or str(ROOT / ".venv" / "bin" / "ruff")
    if not Path(ruff).exists():
        pytest.skip("ruff is not installed")
    text = "import asyncio\nimport subprocess\nimport threading\nfrom queue import SimpleQueue\n\n"
    text += "asyncio.create_task(None)\nthreading.Thread()\nSimpleQueue()\n"
    text += "subprocess.Popen([])\nasyncio.create_subprocess_exec('true')\n"
    command = [ruff, "check", "--select", "TID251", "--output-format", "concise", "-"]
    command += ["--config", str(ROOT / "pyproject.toml")]
    command += ["--stdin-filename", str(HOUSE / "runtime" / "planted.py")]
    ran = subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ran.stdout.count("TID251") == 5, ran.stdout + ran.stderr


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


@pytest.mark.row("V14")
def test_every_map_that_may_grow_is_a_cache_or_was_reviewed():
    found = {
        f"{'.'.join(path.relative_to(HOUSE).with_suffix('').parts)}.{name}"
        for path in sorted(HOUSE.rglob("*.py"))
        # commands and their searches end with their process
        if not path.relative_to(HOUSE)
        .as_posix()
        .startswith(("testing/", "surfaces/cli/", "replay/"))
        for name in growing_maps(path.read_text("utf-8"))
    }
    found = {each.replace(".__init__.", ".") for each in found}
    reviewed = [name for names in REVIEWED.values() for name in names.split()]

    assert found - set(reviewed) == set()
    assert set(reviewed) - found == set(), "these are gone"
    assert len(reviewed) == len(set(reviewed))


@pytest.mark.row("V14")
@pytest.mark.parametrize(
    ("planted", "name"),
    [
        ("_known: dict[str, int] = {}", "_known"),
        ("class A:\n    def __init__(self):\n        self._seen = set()", "A._seen"),
        ("class A:\n    _by: dict[str, int] = field(default_factory=dict)", "A._by"),
        ("class A:\n    def __init__(self):\n        self._all = deque()", "A._all"),
    ],
)
def test_a_planted_map_is_caught(planted, name):
    assert list(growing_maps(planted)) == [name]
