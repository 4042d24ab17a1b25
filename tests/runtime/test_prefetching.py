"""Prefetch on its way: offered once with a new prompt, said again to the byte, and nothing at all
where anything is amiss."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from hotset.config import Config, load
from hotset.dialects import DIALECTS as SPOKEN
from hotset.nouns.candidate import Candidate
from hotset.nouns.knobs import Knobs, Prefetch, Prefetching
from hotset.nouns.link import link
from hotset.nouns.message import DialectName, Reply, Request
from hotset.nouns.page import SessionId
from hotset.nouns.search import Entry, EntryId, Hits, IndexHit, Query, Sort
from hotset.nouns.turn import Event, TurnRef
from hotset.runtime.planner import PlannedTurn, Planner
from hotset.sources.code.prefetches import Prefetches
from hotset.sources.code.source import CodeSource
from hotset.sources.port import TurnEnd
from hotset.testing import RamStore, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.window.prefetch import WITHIN
from tests.proxy.conftest import stopped
from tests.proxy.talking import Talk

PATIENT = Prefetch(mode=Prefetching.ON, excerpt=0.1, hint=0.1, seconds=30.0)
"""Offers what is likely, however busy the machine is that tests run on."""

PATH = "src/shop/basket.py"
FILE = "\n".join(
    f"def price_of_{n}(basket, rebate):\n    return basket.sum_{n} * rebate * {n * 7919}\n"
    for n in range(60)
)
MARK = "[AUTO-RETRIEVED: "


class Found:
    """An index that finds this one file, whatever is asked."""

    def __init__(self) -> None:
        self.queries: list[Query] = []
        self.touched: list[tuple[list[str], int, str]] = []

    def search(self, query: Query) -> Hits:
        self.queries.append(query)
        entries = (
            Entry(
                EntryId(f"{PATH}#{n}"),
                PATH,
                Sort.CODE,
                FILE[n * 200 : n * 200 + 600],
                "python",
                PATH,
                path=PATH,
                lines=(8 * n + 1, 8 * n + 24),
            )
            for n in range(8)
        )
        return Hits(tuple(IndexHit(entry, 1.0, 9.0, 0.6) for entry in entries))

    def touch(self, names: list[str], turn: int = 0, session: str = "") -> None:
        self.touched.append((names, turn, session))


class Hanging(Found):
    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def search(self, query: Query) -> Hits:
        self.go_on.wait()
        return super().search(query)


class Broken(Found):
    def search(self, query: Query) -> Hits:
        raise RuntimeError(f"broken: {len(query.words)}")


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return replace(
        load(project=str(tmp_path), data=str(tmp_path), environ={}), knobs=Knobs(prefetch=PATIENT)
    )


@pytest.fixture(params=list(DialectName))
def dialect(request: pytest.FixtureRequest) -> DialectName:
    return request.param


def body(dialect: DialectName, *messages: object) -> Request:
    talk = Talk(None, dialect)  # type: ignore[arg-type]
    talk.history = [
        {"role": "user", "content": each} if isinstance(each, str) else each for each in messages
    ]
    return SPOKEN[dialect].parse(talk.body)


def prepare(
    planner: Planner, request: Request, store: RamStore | None = None, now: float = 1.0
) -> PlannedTurn:
    prepared = planner.prepare(
        request, SPOKEN[request.dialect], store or RamStore(), now, "any", off=False
    )
    planner.went_out(prepared)
    return prepared


def judged(source: CodeSource, prepared: PlannedTurn, *reply: object) -> list[Event]:
    """The verdicts on earlier offers that this reply brings."""
    said = body(DialectName.ANTHROPIC, *reply).messages
    links = tuple(link(prepared.head, said))
    ref = TurnRef(SessionId("s1"), 7)
    end = TurnEnd(prepared.scene, (), ref, Reply(said, complete=True), links, heard=True)
    return [each for each in source.heard(end) if isinstance(each, Event)]


def source_with(config: Config, index: object) -> CodeSource:
    return CodeSource(lambda: index, config.knobs_for("").prefetch)  # type: ignore[arg-type,return-value]


def offered(prepared: PlannedTurn) -> list[Candidate]:
    return [each for each in prepared.plan.taken if each.source == "code"]


def planner_with(config: Config, index: object) -> Planner:
    return Planner(config, sources=[source_with(config, index)])


PROMPT = "Mend how the price of a basket is rounded with a rebate, please."
ANSWER = {"role": "assistant", "content": "Done."}


@pytest.mark.row("V7")
def test_an_offer_stands_behind_the_new_prompt_and_stays_there(config, dialect):
    planner = planner_with(config, Found())
    first = prepare(planner, body(dialect, PROMPT))
    later = prepare(planner, body(dialect, PROMPT, ANSWER, "Thanks. What else?"), now=2.0)

    said = [message.raw.decode() for message in first.outgoing.messages]
    assert MARK not in said[0]
    assert f"{MARK}{PATH}" in said[1]
    assert [message.raw.decode() for message in later.outgoing.messages][:2] == said
    assert offered(later) == []  # all that could be offered stands in the window


def test_an_offer_is_said_again_to_the_byte_by_whoever_reads_the_store(config, dialect):
    first = prepare(planner_with(config, Found()), body(dialect, PROMPT))
    assert first.behind is not None
    kept = RamStore()
    talk = replace(config, knobs=Knobs())

    # Another process, in which prefetch is off, has the row from the store alone.
    class Knowing(RamStore):
        def table(self, chains, as_of=None):
            del as_of
            row = first.behind
            return replace(
                kept.table(chains), hidden={row.chain: row} if row.chain in chains else {}
            )

    again = prepare(Planner(talk), body(dialect, PROMPT, ANSWER, "Go on."), Knowing())

    assert [each.raw for each in again.outgoing.messages[:2]] == [
        each.raw for each in first.outgoing.messages
    ]


def test_nothing_is_looked_for_where_it_is_off(config, dialect):
    index = Found()
    off = replace(config, knobs=Knobs(prefetch=Prefetch(mode=Prefetching.OFF)))
    plain = prepare(Planner(off), body(dialect, PROMPT))

    assert prepare(planner_with(off, index), body(dialect, PROMPT)).body == plain.body
    assert index.queries == []


@pytest.mark.row("V7")
def test_a_file_that_the_model_has_opened_is_not_offered_again(config):
    planner = planner_with(config, Found())
    history = ["Hello.", _calls("one", f"/home/me/{PATH}"), _result("one"), ANSWER, PROMPT]
    opened = prepare(planner, body(DialectName.ANTHROPIC, *history))
    history[1] = _calls("one", "README.md")
    other = prepare(planner, body(DialectName.ANTHROPIC, *history))

    assert offered(other)
    assert not offered(opened)


@pytest.mark.row("V7")
def test_what_is_offered_is_what_the_file_says_now(config, tmp_path):
    source = CodeSource(Found, PATIENT, tmp_path)  # type: ignore[arg-type,return-value]
    planner = Planner(config, sources=[source])
    file = tmp_path / PATH
    file.parent.mkdir(parents=True)

    assert not offered(prepare(planner, body(DialectName.ANTHROPIC, PROMPT)))
    file.write_text(FILE.replace("rebate", "discount"))
    assert not offered(prepare(planner, body(DialectName.ANTHROPIC, f"{PROMPT} Now.")))
    file.write_text(f"import math\n\n{FILE}")
    [first, *_] = offered(prepare(planner, body(DialectName.ANTHROPIC, f"{PROMPT} Then.")))
    assert first.origin.lines[0] == 3 + FILE[: FILE.index(first.origin.text)].count("\n")


def test_a_request_that_is_sent_again_gets_no_second_offer(config, dialect):
    index = Found()
    planner = planner_with(config, index)
    first = prepare(planner, body(dialect, PROMPT))
    searches = len(index.queries)
    again = prepare(planner, body(dialect, PROMPT), now=2.0)

    assert again.body == first.body
    assert len(index.queries) == searches


def test_what_tools_bring_is_no_prompt(config, dialect):
    index = Found()
    prepared = prepare(planner_with(config, index), body(dialect, PROMPT, *_read_once(dialect)))

    assert offered(prepared) == []
    assert index.queries == []


RACING = structs.replace(PATIENT, racing=True)
OPENING = "Have a look."
NOTES = "notes/price of a basket with a rebate"


def _reply(dialect: DialectName) -> Reply:
    """What a client sees of the reply that `_read_once` begins with."""
    return Reply(body(dialect, OPENING, *_read_once(dialect)).messages[1:2], complete=True)


def _end(prepared: PlannedTurn, dialect: DialectName) -> TurnEnd:
    reply = _reply(dialect)
    said = tuple(link(prepared.head, reply.messages))
    return TurnEnd(prepared.scene, (), None, reply, said, heard=True)


def _raced(
    planner: Planner, prefetcher: CodeSource, dialect: DialectName, *, wait: bool
) -> tuple[PlannedTurn, PlannedTurn]:
    """A reply with a call left; the client runs it and comes back, and comes back again."""
    prefetcher.heard(_end(prepare(planner, body(dialect, OPENING)), dialect))
    while wait and prefetcher.busy:
        time.sleep(0.001)
    with_results = prepare(planner, body(dialect, OPENING, *_read_once(dialect)), now=2.0)
    return with_results, prepare(
        planner, body(dialect, OPENING, *_read_once(dialect), ANSWER, "Go on."), now=3.0
    )


@pytest.mark.row("V9")
def test_what_was_found_while_tools_ran_stands_behind_their_results(config, dialect):
    racing = replace(config, knobs=Knobs(prefetch=RACING))
    prefetcher = source_with(racing, Found())
    planner = Planner(racing, sources=[prefetcher])
    results, later = _raced(planner, prefetcher, dialect, wait=True)

    assert offered(results)
    said = [message.raw for message in results.outgoing.messages]
    assert MARK.encode() in said[-1]
    assert [message.raw for message in later.outgoing.messages][: len(said)] == said


@pytest.mark.row("V9")
def test_a_search_that_loses_its_race_is_not_waited_for(config, dialect):
    """It hangs until the request is planned, however long a prompt may wait for an offer."""
    hanging = Hanging()
    forever = structs.replace(RACING, seconds=1e6)
    racing = replace(config, knobs=Knobs(prefetch=forever))
    prefetcher = source_with(racing, hanging)
    planner = Planner(racing, sources=[prefetcher])
    try:
        opening = prepare(Planner(config), body(dialect, OPENING))
        prefetcher.heard(_end(opening, dialect))
        results = prepare(planner, body(dialect, OPENING, *_read_once(dialect)), now=2.0)
    finally:
        hanging.go_on.set()
    assert offered(results) == []
    assert (
        results.body == prepare(Planner(config), body(dialect, OPENING, *_read_once(dialect))).body
    )


def test_nothing_races_unless_somebody_wants_it(config, dialect):
    index = Found()
    source = source_with(config, index)
    prepared = prepare(Planner(config, sources=[source]), body(dialect, OPENING))
    asked_for_the_prompt = len(index.queries)
    source.heard(_end(prepared, dialect))

    assert len(index.queries) == asked_for_the_prompt


def _read_once(dialect: DialectName) -> list[dict[str, object]]:
    """Another file is read whose name has the words of the one that the index finds."""
    given = json.dumps({"path": NOTES})
    if dialect is DialectName.ANTHROPIC:
        return [_calls("one", NOTES), _result("one")]
    if dialect is DialectName.OPENAI_CHAT:
        call = {
            "id": "t1",
            "type": "function",
            "function": {"name": "read_file", "arguments": given},
        }
        return [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "t1", "content": "x = 1"},
        ]
    return [
        {"type": "function_call", "call_id": "t1", "name": "read_file", "arguments": given},
        {"type": "function_call_output", "call_id": "t1", "output": "x = 1"},
    ]


@pytest.mark.parametrize("broken", [Broken, lambda: None], ids=["raises", "is not there"])
def test_a_broken_index_changes_nothing(config, dialect, broken):
    without = prepare(Planner(config), body(dialect, PROMPT))
    assert prepare(planner_with(config, broken()), body(dialect, PROMPT)).body == without.body


def test_an_index_that_hangs_changes_nothing_and_is_not_asked_for_ever(config, dialect):
    hanging = Hanging()
    hasty = replace(config, knobs=Knobs(prefetch=structs.replace(PATIENT, seconds=0.01)))
    planner = planner_with(hasty, hanging)
    try:
        for number in range(5):
            prompt = f"{PROMPT} {number}"
            assert (
                prepare(planner, body(dialect, prompt)).body
                == prepare(Planner(config), body(dialect, prompt)).body
            )
    finally:
        hanging.go_on.set()
    assert len(hanging.queries) <= 2  # two searches hang


def test_an_offer_takes_no_more_than_its_share_of_what_is_free(config, dialect):
    tight = replace(config, budget=3000)
    prepared = prepare(planner_with(tight, Found()), body(dialect, PROMPT))
    roomy = prepare(planner_with(config, Found()), body(dialect, PROMPT))

    assert offered(roomy)
    assert sum(each.tokens for each in offered(prepared)) <= 300


@pytest.mark.row("V8")
def test_what_became_of_an_offer_is_told_once_and_counts_as_a_view_in_its_turn(config):
    index = Found()
    prefetcher = source_with(config, index)
    planner = Planner(config, sources=[prefetcher])
    prepared = prepare(planner, body(DialectName.ANTHROPIC, PROMPT))
    [taken] = offered(prepared)
    line = max(taken.origin.text.split("\n"), key=len).strip()

    told = judged(prefetcher, prepared, _calls("one", line))
    again = judged(prefetcher, prepared, _calls("one", line))

    while prefetcher.busy:
        time.sleep(0.001)
    assert [each.detail["verdict"] for each in told] == ["used"]
    assert Prefetches().after(told[0]) == Prefetches(used=1, saved=taken.tokens)
    assert index.touched == [([taken.origin.id], 7, "s1")]
    assert again == []


@pytest.mark.row("V8")
def test_an_excerpt_whose_file_is_opened_is_expanded(config):
    prefetcher = source_with(config, Found())
    planner = Planner(config, sources=[prefetcher])
    prepared = prepare(planner, body(DialectName.ANTHROPIC, PROMPT))

    [told] = judged(prefetcher, prepared, _calls("one", PATH))
    assert told.detail["verdict"] == "expanded"
    assert told.detail["saved"] == 0


@pytest.mark.row("V8")
def test_what_nobody_touches_is_wasted(config):
    index = Found()
    prefetcher = source_with(config, index)
    planner = Planner(config, sources=[prefetcher])
    history: list[object] = [PROMPT]
    told = []
    for number in range(WITHIN):
        prepared = prepare(planner, body(DialectName.ANTHROPIC, *history), now=2.0 + number)
        call = _calls(f"c{number}", "README.md")
        told += judged(prefetcher, prepared, call)
        history += [call, _result(f"c{number}")]

    assert [each.detail["verdict"] for each in told] == ["wasted"]
    assert index.touched == []


def _calls(id: str, path: str) -> dict[str, object]:
    use = {"type": "tool_use", "id": f"toolu_{id}", "name": "read_file", "input": {"path": path}}
    return {"role": "assistant", "content": [use]}


def _result(id: str) -> dict[str, object]:
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": f"toolu_{id}", "content": "x = 1"}],
    }


# Through the real proxy.


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(lambda _: Say("So be it."), now=stopped, strict=True) as running:
        yield running


@pytest.fixture
def serving(
    tmp_path: Path, upstream: ScriptedUpstream
) -> Callable[..., contextlib.AbstractContextManager[LocalProxy]]:
    def serve(**settings: object) -> LocalProxy:
        urls = {"openai_url": upstream.openai_url, "anthropic_url": upstream.anthropic_url}
        return LocalProxy(tmp_path / "data", **urls, **settings)  # type: ignore[arg-type]

    return serve


def test_an_index_that_cannot_be_opened_holds_no_call_up(serving, upstream, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    (folder / "index").write_text("no folder")
    with serving(knobs=Knobs(prefetch=PATIENT)) as proxy:
        talk = Talk(proxy.address, "anthropic")
        talk.say(PROMPT)
        assert talk.text == "So be it."
    assert MARK not in upstream.requests[-1].decoded.decode()
