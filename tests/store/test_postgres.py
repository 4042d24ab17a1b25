"""What PostgreSQL adds to the contract of a store: projects apart, gateways beside each other, a
server that goes away."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pglast
import psycopg
import pytest
from hypothesis import given, strategies
from pglast import ast
from pglast.enums import BoolExprType
from pglast.visitors import Ancestor, Visitor

from hotset.errors import BadInput, StoreFailed
from hotset.nouns.page import Role
from hotset.store.postgres.connection import escape, unescape
from hotset.store.postgres.dialect import TABLE_NAMES
from hotset.store.postgres.people import People, join_project
from hotset.store.postgres.store import PostgresStore
from hotset.store.sqlite import SqliteStore
from hotset.testing.store_contract import CHECKS
from hotset.testing.store_talk import StoreTalk, text_message

_LOGGED = re.compile(r"LOG:  execute \S+: (.*?)(?=\n\d{4}-\d\d-\d\d |\Z)", re.DOTALL)


@given(strategies.text())
def test_any_text_comes_back(text):
    assert unescape(escape(text)) == text
    assert "\0" not in escape(text)


def test_a_text_that_looks_like_a_hash_stays_a_text():
    text = "\\x" + "0f" * 32
    assert escape(text) != text
    assert unescape(escape(text)) == text


class _Unfiltered(Visitor):
    """Collects the tables of a statement that are not narrowed to one desk."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def visit_RangeVar(self, ancestors: Ancestor, node: ast.RangeVar) -> None:  # noqa: N802 - its name
        if node.relname in TABLE_NAMES and not _is_narrowed(ancestors):
            self.found.append(node.relname)


def _is_narrowed(ancestors: Ancestor) -> bool:
    statement = next(
        each.node
        for each in _up(ancestors)
        if isinstance(each.node, ast.SelectStmt | ast.InsertStmt | ast.UpdateStmt | ast.DeleteStmt)
    )
    match statement:
        case ast.InsertStmt(
            cols=(ast.ResTarget(name="project"), ast.ResTarget(name="desk"), *_), selectStmt=rows
        ):
            written = [values[:2] for values in rows.valuesLists or ()]
            written = written or [[each.val for each in rows.targetList[:2]]]
            return all(_is_parameter(one, 1) and _is_parameter(two, 2) for one, two in written)
        case ast.InsertStmt():
            return False
        case ast.SelectStmt(fromClause=tables) if len(tables) != 1:
            return False
    required = list(_required(statement.whereClause))
    return all(
        any(name == column and _is_parameter(value, number) for name, value in required)
        for number, column in enumerate(("project", "desk"), 1)
    )


def _up(ancestors: Ancestor):
    while ancestors is not None and ancestors.node is not None:
        yield ancestors
        ancestors = ancestors.parent


def _required(condition: ast.Node | None):
    """Columns that must equal a value for the condition to hold."""
    match condition:
        case ast.BoolExpr(boolop=BoolExprType.AND_EXPR, args=parts):
            for part in parts:
                yield from _required(part)
        case ast.A_Expr(
            name=(ast.String(sval="="),),
            lexpr=ast.ColumnRef(fields=(ast.String(sval=column),)),
            rexpr=value,
        ):
            yield column, value


def _is_parameter(value: ast.Node, number: int) -> bool:
    return isinstance(value, ast.TypeCast) and getattr(value.arg, "number", 0) == number


def unfiltered(sql: str) -> list[str]:
    visitor = _Unfiltered()
    visitor(pglast.parse_sql(sql))
    return visitor.found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM page WHERE id = $1",
        "SELECT * FROM page WHERE project = $2::uuid AND desk = $1::uuid",
        "SELECT * FROM page WHERE project = $1::uuid",
        "SELECT * FROM page WHERE project = $1::uuid AND desk = $2::uuid OR true",
        "SELECT 1 FROM (SELECT * FROM node WHERE project = $1::uuid AND desk = $2::uuid) a, page",
        "INSERT INTO page (id, project) VALUES ($1::uuid, $2)",
        "INSERT INTO page (project, id) SELECT $1::uuid, id FROM page",
        "UPDATE page SET id = $2 WHERE id = $1",
        "DELETE FROM page",
    ],
)
def test_a_statement_without_its_desk_is_found(sql):
    assert unfiltered(sql)


@pytest.mark.slow
@pytest.mark.row("X5")
def test_every_statement_names_its_desk(postgres):
    postgres.run_as_owner("ALTER ROLE hotset_team SET log_statement = 'all'")
    try:
        for check in CHECKS:
            check(postgres.open_fresh)
        with postgres.open_fresh() as store:
            StoreTalk(store).turn("a question", "an answer")
            assert list(store.verify()) == []
    finally:
        postgres.run_as_owner("ALTER ROLE hotset_team RESET log_statement")
    statements = set(_LOGGED.findall(postgres.log.read_text()))
    assert len(statements) > 100
    assert {sql: found for sql in statements if (found := unfiltered(sql))} == {}


@pytest.mark.row("X5")
def test_a_statement_that_forgets_its_desk_sees_nothing_of_another(postgres):
    token, other = postgres.new_token(), postgres.new_token()
    with PostgresStore(postgres.dsn, token) as mine, PostgresStore(postgres.dsn, other) as theirs:
        StoreTalk(mine).turn("mine", "yes")
        StoreTalk(theirs).turn("theirs", "no")
    with psycopg.connect(postgres.dsn) as connection:
        for table in TABLE_NAMES:
            assert connection.execute(f"SELECT * FROM {table}").fetchall() == []
        connection.execute("SELECT set_config('hotset.token', %s, true)", [other])
        [theirs] = connection.execute("SELECT project, desk FROM own_desk()").fetchall()
        connection.execute("SELECT set_config('hotset.token', %s, true)", [token])
        [found] = connection.execute("SELECT count(*) FROM session").fetchone()
        assert found == 1
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(
                "INSERT INTO session (project, desk, changed) VALUES (%s, %s, 1)", theirs
            )


@pytest.mark.row("V17")
def test_a_gateway_cannot_read_who_is_there_nor_any_token(postgres):
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        for table in ("project", "desk", "token", "access"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"SELECT * FROM {table}")
        for call in ("make_project('a', 'b')", "as_owner()", "note_access(NULL, 'a', 'b', 'c')"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"SELECT {call}")


@pytest.mark.row("V17")
def test_a_token_that_was_revoked_opens_nothing(postgres):
    token = postgres.new_token()
    with PostgresStore(postgres.dsn, token) as store:
        StoreTalk(store).turn("mine", "yes")
        people = People(postgres.dsn, token)
        [ann] = people.everyone()
        assert (ann.name, ann.role, ann.tokens) == ("ann", "owner", 1)
        newer = people.rotate()
        with pytest.raises(StoreFailed, match="but not write"):
            StoreTalk(store).turn("again", "no")
        with pytest.raises(StoreFailed, match="not good any more"):
            store.census()
    with PostgresStore(postgres.dsn, newer) as store:
        assert store.census().turns == 1
    assert People(postgres.dsn, newer).revoke("ann") == 1
    with pytest.raises(StoreFailed, match="not good any more"):
        PostgresStore(postgres.dsn, newer).census()


@pytest.mark.row("V17")
def test_roles_hold(postgres):
    owner = People(postgres.dsn, postgres.new_token())
    bob = join_project(postgres.dsn, owner.invite("bob", "member"))
    eve = join_project(postgres.dsn, owner.invite("eve", "reader"))
    with pytest.raises(BadInput, match="only an owner"):
        People(postgres.dsn, bob).invite("mallory", "owner")
    with pytest.raises(BadInput, match="only an owner"):
        People(postgres.dsn, bob).revoke("ann")
    with PostgresStore(postgres.dsn, bob) as store:
        StoreTalk(store).turn("mine", "yes")
    with PostgresStore(postgres.dsn, eve) as store:
        assert store.census().turns == 0
        with pytest.raises(StoreFailed, match="but not write"):
            StoreTalk(store).turn("mine", "yes")
    assert [each.did for each in owner.accesses()] == [
        *("joined", "invited as reader", "joined", "invited as member"),
        *("joined", "made the project"),
    ]
    with pytest.raises(BadInput, match="only an owner"):
        People(postgres.dsn, bob).accesses()


@pytest.mark.row("V17")
def test_an_invitation_is_good_once(postgres):
    owner = People(postgres.dsn, postgres.new_token())
    invitation = owner.invite("bob", "member")
    token = join_project(postgres.dsn, invitation)
    with pytest.raises(BadInput, match="ask an owner"):
        join_project(postgres.dsn, invitation)
    with pytest.raises(StoreFailed, match="not good any more"):
        PostgresStore(postgres.dsn, invitation).census()
    second = join_project(postgres.dsn, People(postgres.dsn, token).invite_self())
    with PostgresStore(postgres.dsn, token) as one, PostgresStore(postgres.dsn, second) as other:
        StoreTalk(one).turn("at one machine", "yes")
        assert other.census().turns == 1


@pytest.mark.row("X5")
def test_a_store_moves_to_postgres_and_back_row_for_row(postgres, tmp_path):
    with SqliteStore.open(tmp_path / "a") as first, SqliteStore.open(tmp_path / "b") as last:
        talk = StoreTalk(first)
        for number in range(20):
            talk.turn(f"question {number} \0 \\x{'0f' * 32}", f"answer {number}")
        with postgres.open_fresh() as between:
            between.load(first.dump())
            last.load(between.dump())
            assert list(between.dump()) == list(first.dump()) == list(last.dump())
            assert list(between.verify()) == []


@pytest.mark.row("X5")
def test_two_gateways_give_one_session_one_line(postgres):
    token = postgres.new_token()
    with PostgresStore(postgres.dsn, token) as one, PostgresStore(postgres.dsn, token) as other:
        talks = [StoreTalk(one, key="same"), StoreTalk(other, key="same")]
        history = []
        for number in range(100):
            talk = talks[number % 2]
            talk.history[:] = history
            talk.turn(f"question {number}", f"answer {number}")
            history = list(talk.history)
        [session] = one.sessions()
        turns = list(other.turns(session.id))
        assert [turn.number for turn in turns] == list(range(1, 101))
        assert {turn.branch for turn in turns} == {0}
        assert list(one.verify()) == []


@pytest.mark.row("X5")
def test_gateways_that_write_at_once_lose_nothing_and_number_everything_once(postgres):
    token = postgres.new_token()
    with PostgresStore(postgres.dsn, token) as one, PostgresStore(postgres.dsn, token) as other:

        def talk(number: int) -> None:
            store = (one, other)[number % 2]
            each = StoreTalk(store, key=f"session {number}")
            for turn in range(10):
                each.turn(f"question {number} {turn}", "answer")

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(talk, range(20)))
        assert one.census().turns == 200
        numbers = [number for number, _ in one.pages_after(0, 10_000)]
        assert numbers == sorted(set(numbers))
        assert len(numbers) == 400


def test_a_follower_misses_no_page_while_others_write(postgres):
    token = postgres.new_token()
    with PostgresStore(postgres.dsn, token) as one, PostgresStore(postgres.dsn, token) as other:
        done = threading.Event()

        def write() -> None:
            talk = StoreTalk(other)
            for number in range(50):
                talk.turn(f"question {number}", f"answer {number}")
            done.set()

        writing = threading.Thread(target=write)
        writing.start()
        seen, last = [], 0
        while True:
            was_done = done.is_set()
            some = one.pages_after(last, 10)
            seen += [page.id for _, page in some]
            if was_done and not some:
                break
            last = some[-1][0] if some else last
        writing.join()
        assert seen == [page.id for _, page in one.pages_after(0, 1000)]


def test_connections_that_the_server_cut_off_are_made_anew(postgres):
    with postgres.open_fresh() as store:
        talk = StoreTalk(store)
        talk.turn("before", "yes")
        postgres.cut_connections()
        talk.turn("after", "yes")
        postgres.cut_connections()
        assert store.census().turns == 2


def test_a_server_that_is_away_is_named_without_the_password():
    with pytest.raises(StoreFailed, match="does not answer") as failed:
        PostgresStore("host=/nowhere dbname=team user=me password=secret", "token").census()
    assert "secret" not in str(failed.value)


def test_a_message_with_every_kind_of_character_comes_back(postgres):
    with postgres.open_fresh() as store:
        talk = StoreTalk(store, agent="agent \0 \x01", key="key \\x" + "ab" * 32)
        asked = talk.asks(text_message(Role.USER, "\0\x01\x02 \\x \U0001f9ed"))
        [session] = store.sessions()
        assert (session.agent, session.key) == (talk.agent, talk.key)
        assert asked.turn is not None
        assert list(store.verify()) == []


@pytest.mark.row("V17")
def test_a_table_that_somebody_plants_in_front_is_not_met_with_the_owner_s_rights(postgres):
    token = postgres.new_token()
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute("SELECT set_config('hotset.token', %s, true)", [token])
        desk = connection.execute("SELECT project, desk FROM own_desk()").fetchone()
        connection.execute(
            "CREATE TEMP TABLE token (hash bytea, project uuid, desk uuid, is_invitation boolean,"
            " made timestamptz, expires timestamptz, revoked timestamptz, used timestamptz)"
        )
        connection.execute(
            "INSERT INTO token VALUES (hash_of('mine'), %s, %s, true, now(), 'infinity')", desk
        )
        assert connection.execute("SELECT join_project('mine', 1)").fetchone() == (None,)
