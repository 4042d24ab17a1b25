"""What is recalled among hundreds of episodes and much talk, all made of sessions as the product
makes them: the procedure that is asked for, and what resolved an error that is pasted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from hotset.dialects.parts import kind_of_call, kind_of_result
from hotset.index.embed.table import WordVectors
from hotset.index.local import LocalIndex
from hotset.nouns.memory import Episode, MemoryKind, Pitfall, Task
from hotset.nouns.message import Part
from hotset.nouns.page import Kind, Role
from hotset.sealing import VERSION
from hotset.sources.history import follow
from hotset.sources.memory.memory_writer import follow_memories, remember_session
from hotset.sources.memory.recall import RecalledItem, RecallQuery, recall
from hotset.store.port import Store, Where
from hotset.testing.ram_store import RamStore
from hotset.testing.store_talk import StoreTalk, message

START, HOUR = 1_790_000_000.0, 3600.0
NOW = START + 400 * HOUR
PASSED = "============ 48 passed in 3.10s ============"
AREAS = (
    *("exporter", "importer", "billing page", "login form", "search box", "mailer", "scheduler"),
    *("report builder", "upload queue", "audit log", "currency table", "permission check"),
    *("avatar cropper", "calendar sync", "webhook sender", "rate limiter", "feature flags"),
    *("invoice archive", "address book", "session cache"),
)
WISHES = (
    "Speed up the {area}, its tests take too long to run.",
    "The tests of the {area} should cover empty input.",
    "How does the {area} decide what to do first?",
    "Run the {area} once more with the data of last month.",
    "Rename the settings of the {area} so that new people understand them.",
    "I think the {area} should run on its own; what do you say about its tests?",
    "Explain how the tests of the {area} are organised.",
    "Add a metric to the {area} that counts how often it runs.",
)
COMPILER = "{path}: error TS2322: Type 'string | undefined' is not assignable to type 'string'."
ERRORS: dict[str, tuple[str, str, str, str]] = {
    "python": (
        "python manage.py migrate",
        (
            "Traceback (most recent call last):\n"
            '  File "/home/ann/shop/manage.py", line 22, in <module>\n'
            "django.db.utils.OperationalError: could not connect to server: Connection refused"
        ),
        "docker compose up -d db",
        (
            "Traceback (most recent call last):\n"
            '  File "/srv/ci/build-88/manage.py", line 31, in main\n'
            "django.db.utils.OperationalError: could not connect to server: Connection refused\n"
        ),
    ),
    "pytest": (
        "pytest -q tests/test_totals.py",
        (
            "tests/test_totals.py:41: AssertionError\n"
            "E   AssertionError: fixture rates are stale, regenerate them with the rates tool\n"
            "1 failed in 0.20s"
        ),
        "python tools/rates.py --write",
        (
            ">       assert total(cart) == 12\n"
            "E   AssertionError: fixture rates are stale, regenerate them with the rates tool\n"
            "tests/unit/test_totals_2.py:87: AssertionError"
        ),
    ),
    "typescript": (
        "npx tsc --noEmit",
        COMPILER.format(path="src/cart.ts(14,7)"),
        "npm run generate:types",
        (
            "web/src/basket/cart.tsx(203,19): error TS2322: Type 'string | undefined' is not "
            "assignable to type 'string'."
        ),
    ),
    "npm": (
        "npm install",
        (
            "npm ERR! code ERESOLVE\nnpm ERR! ERESOLVE unable to resolve dependency tree\n"
            "npm ERR! Could not resolve dependency: peer react@^17.0.2 from react-beautiful@13.1.0"
        ),
        "npm install --legacy-peer-deps",
        (
            "npm ERR! code ERESOLVE\nnpm ERR! ERESOLVE unable to resolve dependency tree\n"
            "npm ERR! Could not resolve dependency: peer react@^18.2.0 from react-grid@2.0.4"
        ),
    ),
    "go": (
        "go test ./ledger",
        (
            "panic: runtime error: invalid memory address or nil pointer dereference\n"
            "[signal SIGSEGV: segmentation violation code=0x1 addr=0x18 pc=0x4a1b2c]\n"
            "goroutine 19 [running]:\nexample.com/ledger.(*Book).Post(0x0)\n"
            "\t/home/ann/ledger/book.go:88 +0x1c\nFAIL\texample.com/ledger\t0.012s"
        ),
        "go generate ./ledger",
        (
            "panic: runtime error: invalid memory address or nil pointer dereference\n"
            "[signal SIGSEGV: segmentation violation code=0x1 addr=0x40 pc=0x7f00aa]\n"
            "goroutine 7 [running]:\nexample.com/ledger.(*Book).Close(0x0)\n"
            "\t/srv/ci/ledger/book.go:131 +0x88"
        ),
    ),
    "http": (
        "python sync.py --all",
        (
            "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: "
            "https://api.example.com/v2/orders?page=7"
        ),
        "pip install tenacity",
        (
            "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: "
            "https://api.example.com/v2/customers?page=113"
        ),
    ),
}
"""By kind: a command, its error, what resolved it, and the error as somebody meets it later."""


def calls(talk: StoreTalk, prompt: str, *actions: tuple[str, dict[str, str], str]) -> None:
    """A prompt, then each call of a tool with its result."""
    turn = talk.asks(prompt).turn
    for at, (tool, arguments, result) in enumerate(actions):
        raw, id = json.dumps(arguments).encode(), f"call-{at}"
        call = Part(kind_of_call(tool), raw, "application/json", tool, id)
        talk.hears(turn, message(Role.ASSISTANT, call))
        kind = kind_of_result(tool, raw)
        turn = talk.asks(
            message(Role.TOOL, Part(kind, result.encode(), "text/plain", tool, id))
        ).turn
    talk.hears(turn, "That is done.")


def run(command: str, result: str = "", code: int = 0) -> tuple[str, dict[str, str], str]:
    told = f"Exit code {code}\n{result}" if code else result
    return "Bash", {"command": command}, told


def edit(path: str) -> tuple[str, dict[str, str], str]:
    given = {"file_path": path, "old_string": "a", "new_string": "b"}
    return "Edit", given, f"The file {path} has been updated."


def fill(store: Store) -> None:
    """Eight tasks in each of twenty areas, a routine that two sessions share, and six errors."""
    at = 0
    for area in AREAS:
        path = f"src/{area.replace(' ', '_')}.py"
        for number, wish in enumerate(WISHES):
            talk = StoreTalk(store, key=f"{area} {number}", time=START + at * HOUR)
            calls(talk, wish.format(area=area), edit(path), run(f"python -m demo {number}", "ok"))
            talk.turn(
                f"And what do you think about the tests of the {area}?",
                f"They run in a minute. I would run the tests of the {area} before each release.",
            )
            at += 1
    for name in ("mailer", "scheduler"):
        talk = StoreTalk(store, key=f"routine {name}", time=START + at * HOUR)
        path = f"src/{name}/routes.py"
        checks = run("make services"), run("make test DB=local", PASSED)
        calls(talk, f"Let the {name} retry a request that timed out.", edit(path), *checks)
        at += 1
    for name, (command, error, helped, _) in ERRORS.items():
        talk = StoreTalk(store, key=f"error {name}", time=START + at * HOUR)
        goal = f"Please get `{command}` to work again on this machine, I need it today."
        calls(talk, goal, run(command, error, 1), run(helped), run(command, "ok, done"))
        at += 1
    for session in list(store.sessions()):
        remember_session(store, session.id, NOW, lambda _: ())


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, LocalIndex]]:
    store = RamStore()
    fill(store)
    folder = tmp_path_factory.mktemp("index")
    with LocalIndex(folder, WordVectors(), sealing=VERSION, folds=False) as index:
        follow(store, index, time.monotonic() + 600)
        follow_memories(store, index, time.monotonic() + 600)
        index.fold()
        yield store, index


def told(filled: tuple[Store, LocalIndex], query: str) -> list[RecalledItem]:
    store, index = filled
    return list(recall(RecallQuery(query, NOW, deadline=60.0), index, store).items)


@pytest.mark.slow
@pytest.mark.row("M7")
@pytest.mark.parametrize(
    "query",
    [
        "how do I run the tests",
        "How are the tests run here?",
        "what is the command to run the tests",
        "how to run the tests locally?",
    ],
)
def test_how_the_tests_are_run_is_the_first_answer_among_hundreds_of_episodes(filled, query):
    store, _ = filled
    kinds = [memory.kind for memory in store.memories()]
    talk = list(store.pages(Where(kinds=frozenset({Kind.PROMPT, Kind.RESPONSE}))))
    assert kinds.count(MemoryKind.EPISODE) >= 150
    assert len(kinds) + len(talk) >= 800

    first, *others = told(filled, query)

    assert first.kind == "procedure"
    assert "make test DB=local" in first.text
    assert not {"said", "episode"}.isdisjoint(item.kind for item in others)


@pytest.mark.slow
@pytest.mark.row("M7")
@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("asked", ["{error}", "I get this, what is wrong?\n\n{error}"])
def test_an_error_that_is_pasted_brings_what_resolved_it_first(filled, name, asked):
    *_, helped, pasted = ERRORS[name]
    query = asked.format(error=pasted)

    first = told(filled, query)[0]

    assert first.kind in {"pitfall", "episode"}
    assert helped in first.text, first.text
    assert "it met the same error" in first.why


@pytest.mark.slow
def test_the_task_decides_whether_a_pitfall_is_told(filled):
    store, index = filled
    pitfalls = [each for each in store.memories() if isinstance(each.detail, Pitfall)]
    assert pitfalls
    words = "npm install of the frontend dependencies"
    debugging, exploring = (
        [item.kind for item in recall(asking, index, store).items]
        for task in (Task.DEBUGGING, Task.EXPLORATION)
        for asking in [RecallQuery(words, NOW, task=task, deadline=60.0)]
    )
    assert debugging.index("pitfall") <= 1 < exploring.index("pitfall")


@pytest.mark.slow
def test_an_error_that_only_an_episode_knows_is_found_by_it(filled):
    store, index = filled
    known = [
        each
        for each in store.memories()
        if isinstance(each.detail, Episode) and each.detail.troubles
    ]
    assert len(known) >= len(ERRORS)
    *_, helped, pasted = ERRORS["python"]
    only = frozenset({MemoryKind.EPISODE})
    first, *_ = recall(RecallQuery(pasted, NOW, kinds=only, deadline=60.0), index, store).items
    assert helped in first.text
