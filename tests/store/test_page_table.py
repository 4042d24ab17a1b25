"""The page table: any life of it comes back as a simple model says, in every store, now and as of
any turn."""

import subprocess
import sys
import threading

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from hotset.errors import BadInput
from hotset.nouns.bill import Bill, Summary
from hotset.nouns.deposit import Billed, HiddenKept, PlanMade
from hotset.nouns.page import Chain, digest
from hotset.nouns.turn import Event, TurnRef
from hotset.nouns.window import WHOLE, Form, Hidden, PageTable, SentRequest
from hotset.store import page_table
from hotset.store.connection import Tuning
from hotset.store.sqlite import SqliteStore
from hotset.testing.ram_store import RamStore
from hotset.testing.store_talk import StoreTalk, id_of, kept, shows

_TUNING = Tuning(ballast_bytes=0)
_CHAINS = [Chain(digest(b"%d" % number)) for number in range(6)]
_TURNS = 4
_turn = st.integers(0, _TURNS - 1)
_chain = st.sampled_from(_CHAINS)
_raw = st.binary(max_size=3)
_shown = st.builds(
    shows,
    _chain,
    st.sampled_from(["", "a", "zażółć", "long " * 400]),
    st.sampled_from([WHOLE, 0, 1]),
    st.sampled_from(Form),
    time=st.floats(-10, 10),
)
_hidden = st.builds(
    Hidden,
    _chain,
    st.lists(_raw, max_size=2).map(tuple),
    _raw,
    st.lists(_raw, max_size=2).map(tuple),
    st.integers(0, 2),
)
_plan = st.tuples(
    st.just("plan"),
    _turn,
    st.tuples(
        st.builds(SentRequest, _chain, st.floats(-10, 10), st.integers(0, 9)),
        st.lists(_shown, max_size=4),
    ),
)
_hide = st.tuples(st.just("hide"), _turn, _hidden)
_life = st.lists(st.one_of(_plan, _hide), max_size=25)
_lines = st.lists(
    st.permutations(_CHAINS).flatmap(
        lambda line: st.integers(0, len(line)).map(lambda end: line[:end])
    ),
    min_size=1,
    max_size=3,
)


class _Model:
    """A list of everything that was decided, read from its beginning each time."""

    def __init__(self, turns):
        self._turns = turns
        self._acts = []

    def add(self, act, turn, what):
        self._acts.append((act, self._turns[turn], what))

    def table(self, line, as_of=None):
        acts = self._acts
        if as_of is not None:
            plans = [
                number
                for number, (act, turn, _) in enumerate(acts)
                if act == "plan" and turn == as_of
            ]
            acts = acts[: plans[-1] + 1] if plans else []
        shown, hidden, sent = {}, {}, None
        for act, _, what in acts:
            if act == "hide":
                hidden[what.chain] = what
                continue
            request, rows = what
            shown.update({row.spot: row for row in rows})
            if request.head in line and (
                sent is None or line.index(request.head) >= line.index(sent.head)
            ):
                sent = request
        return PageTable(
            {spot: row for spot, row in shown.items() if spot.chain in line},
            {chain: row for chain, row in hidden.items() if chain in line},
            sent,
        )


def _turns_of(store):
    """Two sessions with two turns each."""
    talks = [StoreTalk(store, key="one"), StoreTalk(store, key="two")]
    return [
        talk.turn(f"question {number}", "answer") for number in range(_TURNS // 2) for talk in talks
    ]


def _live(store, turns, life, model):
    for act, turn, what in life:
        id = id_of(store, turns[turn])
        kept(
            store, PlanMade(id, what[0], tuple(what[1])) if act == "plan" else HiddenKept(id, what)
        )
        model.add(act, turn, what)


@given(_life, _life, _lines)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@pytest.mark.slow
def test_whatever_is_decided_a_table_is_what_a_simple_model_says_now_and_as_of_any_turn(
    tmp_path_factory, life, later, lines
):
    with SqliteStore.open(tmp_path_factory.mktemp("s") / "s", _TUNING) as sqlite:
        for store in (sqlite, RamStore()):
            turns = _turns_of(store)
            model = _Model(turns)
            _live(store, turns, life, model)
            other = RamStore()
            other.load(store.dump())
            for each in (store, other):
                for line in lines:
                    assert each.table(line) == model.table(line)
                    assert [each.table(line, turn) for turn in turns] == [
                        model.table(line, turn) for turn in turns
                    ]
            _live(other, turns, later, model)
            assert [other.table(line) for line in lines] == [model.table(line) for line in lines]
            assert not list(store.verify())


def test_a_table_is_the_same_whether_its_rows_are_remembered_or_not(tmp_path):
    line = [Chain(digest(b"%d" % number)) for number in range(600)]
    rows = tuple(
        shows(chain, f"form {number} " * 40, form=Form.EXCERPT) for number, chain in enumerate(line)
    )
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        id = id_of(store, StoreTalk(store).turn("hello", "hi"))
        kept(store, PlanMade(id, SentRequest(line[-1], 1.0), rows))
        expected = {row.spot: row for row in rows}
        assert store.table(line).shown == store.table(line).shown == expected
        narrow = page_table.PageTables(
            room=50_000
        )  # less than the line takes: rows are let go while it is read
        with store._reading() as connection:
            for way in (line, line[::-1], line):
                assert narrow.table(connection, way, None).shown == expected


def test_a_version_tells_of_commits_by_threads_and_processes(tmp_path):
    with (
        SqliteStore.open(tmp_path / "s", _TUNING) as store,
        SqliteStore.open(tmp_path / "s", _TUNING) as beside,
    ):
        before = store.version()
        assert store.version() == before
        kept(beside, Event("by another store", 1.0))
        after = store.version()
        assert after != before
        thread = threading.Thread(target=lambda: kept(store, Event("by another thread", 1.0)))
        thread.start()
        thread.join()
        assert store.version() != after
        after = store.version()
        code = (
            "import sys\n"
            "from pathlib import Path\n"
            "from hotset.nouns.turn import Event\n"
            "from hotset.store.sqlite import SqliteStore\n"
            "with SqliteStore.open(Path(sys.argv[1])) as store: store.keep(Event('by another "
            "process', 1.0)).result()"
        )
        subprocess.run([sys.executable, "-c", code, tmp_path / "s"], check=True, timeout=120)
        assert store.version() != after


def test_forms_that_one_process_decides_another_sends(tmp_path):
    with (
        SqliteStore.open(tmp_path / "s", _TUNING) as one,
        SqliteStore.open(tmp_path / "s", _TUNING) as two,
    ):
        talk = StoreTalk(one)
        turn = talk.turn("hello", "hi")
        for number in range(3):
            row = shows(talk.line[0], f"form {number}")
            kept(
                one if number % 2 else two,
                PlanMade(id_of(one, turn), SentRequest(talk.line[0], float(number)), (row,)),
            )
            assert (
                one.table(talk.line)
                == two.table(talk.line)
                == PageTable({row.spot: row}, {}, SentRequest(talk.line[0], float(number)))
            )


def test_a_deposit_that_cannot_be_stored_fails_alone(tmp_path):
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        talk = StoreTalk(store)
        turn = talk.turn("hello", "hi")
        id, chain = id_of(store, turn), talk.line[0]
        before = list(store.dump())
        for bad in (
            PlanMade(id, SentRequest(chain, float("nan"))),
            PlanMade(
                id,
                SentRequest(chain, 1.0),
                (shows(chain, "kept?"), shows(chain, "x", tokens=2**70, position=1)),
            ),
            HiddenKept(id, Hidden(chain, (b"kept?",), asides=2**70)),
            Billed(id, Bill("\ud800", "upstream")),
            Summary(turn.session, (1, 1), 0, 1, "\ud800", "rules", 1.0),
        ):
            with pytest.raises(BadInput):
                kept(store, bad)
        assert list(store.dump()) == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT max(step) FROM shown",
        "SELECT max(step) FROM hidden",
        "SELECT max(step) FROM sent",
        "SELECT 1 FROM sent WHERE session = ? AND turn = ? ORDER BY step DESC LIMIT 1",
        "SELECT 1 FROM bill WHERE seq > ? AND session = ? ORDER BY seq LIMIT 256",
        "SELECT 1 FROM summary WHERE seq > ? AND session = ? ORDER BY seq LIMIT 256",
        "SELECT 1 FROM page WHERE seq > ? AND digest = ? ORDER BY seq LIMIT 256",
        "SELECT 1 FROM blob WHERE digest >= ? ORDER BY digest LIMIT 8",
        page_table._SPOTS,
        page_table._HIDDEN,
        page_table._SENT,
    ],
)
def test_indexes_answer_what_is_asked_at_every_turn(tmp_path, sql):
    with SqliteStore.open(tmp_path / "s", _TUNING) as store, store._reading() as connection:
        plan = " ".join(
            row[3]
            for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", ("x",) * sql.count("?"))
        )
        assert "INDEX" in plan
        assert "SCAN" not in plan


def test_a_turn_of_another_session_has_no_table_here(tmp_path):
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        talk = StoreTalk(store)
        turn = talk.turn("hello", "hi")
        kept(
            store,
            PlanMade(
                id_of(store, turn), SentRequest(talk.line[0], 1.0), (shows(talk.line[0], "x"),)
            ),
        )
        stranger = StoreTalk(store, key="stranger").turn("hello", "hi")
        assert store.table(talk.line, TurnRef(stranger.session, 1)) == PageTable()
