"""With nothing kept, every list is empty, says what to do, ends well and makes no folder; and what
was mistyped is guessed."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hotset.dialects import DIALECTS
from hotset.nouns.deposit import ReplyReceived, RequestReceived
from hotset.nouns.message import DialectName
from hotset.nouns.turn import Outcome
from hotset.store.sqlite import SqliteStore
from tests.cli.conftest import NOW, Desk, desk_in, fill, in_a_process

LISTS: dict[str, tuple[Any, str]] = {
    # The JSON of an empty list, as far as it is told here, and what to do.
    "sessions": ([], "hotset wrap AGENT"),
    "sessions --agent codex": ([], "hotset wrap AGENT"),
    "checkpoints": ([], "hotset sessions"),
    "handoffs": ([], "hotset wrap --agent engineer claude"),
    "savings": ({"sessions": [], "uncounted": 0}, "hotset wrap"),
    "search anything": ([], "hotset index"),
    "memory list": ([], "hotset memory learn"),
    "memory list --kind fact": ([], "hotset memory list"),
    "memory timeline": ({"text": "", "lines": []}, "hotset memory learn"),
    "memory search anything": ([], "hotset memory learn"),
    "memory graph": ({"memories": [], "links": []}, "hotset memory learn"),
    "memory economics": ([], "hotset wrap AGENT"),
    "memory restore": ([], "hotset memory list"),
    "memory undo": ([], "hotset memory list"),
    "tools list": ([], "hotset tools import"),
    "tools find anything": ([], "hotset tools import"),
    "tools status": ({"tools": 0, "sources": 0, "running": []}, "hotset tools import"),
    "evolve list": ([], "hotset evolve"),
    "continuity show": ({"on": False, "text": None, "memories": []}, "hotset continuity on"),
}
SAY_IT_AS_DATA = ("tools status",)  # there is something to tell


@pytest.fixture(params=["no folder", "an empty store"])
def nothing(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    desk = desk_in(tmp_path)
    if request.param == "an empty store":
        SqliteStore.open(desk.data).close()
    return desk


@pytest.mark.parametrize("command", LISTS)
def test_an_empty_list_says_so_and_what_to_do_and_ends_well(nothing: Desk, command: str):
    shape, advice = LISTS[command]
    was_there = nothing.data.exists()

    plain, asked_json = nothing.run(*command.split()), nothing.run(*command.split(), "--json")

    assert (plain.code, asked_json.code) == (0, 0)
    assert plain.raw == b"" or command in SAY_IT_AS_DATA
    told = asked_json.json()
    assert ({name: told[name] for name in shape} if isinstance(shape, dict) else told) == shape
    assert advice in plain.err
    assert advice in asked_json.err
    assert nothing.data.exists() is was_there
    assert nothing.run(*command.split(), "--quiet").err == ""


@pytest.mark.parametrize(
    "command",
    ["show", "diff", "show last", "recall p123", "export", "memory show sem-1", "memory why sem-1"],
)
def test_what_is_named_and_not_there_is_a_finding_that_says_what_to_do(nothing: Desk, command: str):
    was_there = nothing.data.exists()

    ran = nothing.run(*command.split())

    if command != "export" or not was_there:  # an empty store is exported as one
        assert (ran.code, ran.raw) == (1, b"")
        assert ran.err.startswith("hotset: no")
        assert "hotset " in ran.err.removeprefix("hotset: ")
    assert nothing.data.exists() is was_there


def test_the_real_process_says_and_ends_the_same(nothing: Desk):
    ran = in_a_process(nothing, ("sessions", "--json"), nothing.environ(), b"")

    assert (ran.code, ran.json()) == (0, [])
    assert "no session is kept yet" in ran.err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("sesions", "hotset sessions"),
        ("shwo", "hotset show"),
        ("timeline", "hotset memory timeline"),
        ("memory lst", "hotset memory list"),
        ("memory serach x", "hotset memory search"),
        ("tools usse x", "hotset tools use"),
        ("evolve stats", "hotset evolve status"),
    ],
)
def test_a_command_that_was_mistyped_is_guessed(desk: Desk, typed: str, meant: str):
    ran = desk.run(*typed.split())

    assert (ran.code, ran.raw) == (2, b"")
    assert f"Did you mean {meant}" in ran.err


def test_a_command_that_is_like_no_other_is_told_as_before(desk: Desk):
    ran = desk.run("xyzzy")

    assert ran.code == 2
    assert "No such command 'xyzzy'." in ran.err
    assert "mean" not in ran.err


def test_an_id_that_was_mistyped_is_guessed(filled: Desk):
    session = filled.run("sessions", "--json").json()[0]["session"]["id"]
    page = filled.run("show", "--json").json()["turns"][0]["pages"][0]["id"]
    memory = filled.run("memory", "add", "Releases are cut on Tuesdays").out.strip()

    for typed, command in (
        (session, "show"),
        (session, "diff"),
        (page, "recall"),
        (memory, "memory show"),
        (memory, "memory why"),
    ):
        wrong = typed[:-1] + ("0" if typed[-1] != "0" else "1")
        ran = filled.run(*command.split(), wrong)
        assert (ran.code, ran.raw) == (1, b""), command
        assert f"did you mean {typed}" in ran.err, command
    assert "did you mean last" in filled.run("show", "lst").err
    assert (
        f"did you mean {session}"
        in filled.run("savings", "--session", session[:5] + "zz" + session[7:]).err
    )
    assert "did you mean" not in filled.run("show", "xyzzy").err
    assert "did you mean 4, its last" in filled.run("diff", session, "9").err
    assert "did you mean claude-cli" in filled.run("sessions", "--agent", "claude-cly").err


def test_show_and_diff_take_the_last_session_and_turn(filled: Desk):
    fill(filled.data, "Another task", NOW - 100_000, "codex")

    assert filled.run("show").out == filled.run("show", "last").out
    assert "Another task" in filled.run("show").out
    assert (
        filled.run("diff").out
        == filled.run("diff", "last").out
        == filled.run("diff", "last", "last").out
    )
    assert "turn 4" in filled.run("diff").out


def says(store: SqliteStore, session: str, *texts: str, when: float, parent: str = "") -> None:
    dialect = DIALECTS[DialectName.OPENAI_CHAT]
    messages = [
        {"role": ("user", "assistant")[place % 2], "content": text}
        for place, text in enumerate(texts)
    ]
    request = dialect.parse(json.dumps({"model": "gpt-5", "messages": messages}).encode())
    asked = RequestReceived(
        request,
        when,
        "agent",
        f"x-session-id:{session}",
        parents=(f"x-session-id:{parent}",) if parent else (),
    )
    turn = store.keep(asked).result(120).turn
    assert turn is not None
    store.keep(ReplyReceived(turn, when + 1, Outcome.DONE, 200, b"{}")).result(120)


def test_last_is_the_session_that_was_used_last_whatever_the_clock_says(desk: Desk):
    with closing(SqliteStore.open(desk.data)) as store:
        says(store, "one", "First", when=NOW)
        says(store, "two", "Second", when=NOW + 100)
        says(store, "one", "First", "Well", "More", when=NOW - 500)

    assert "First" in desk.run("show").out
    assert [line["session"]["title"] for line in desk.run("sessions", "--json").json()] == [
        "First",
        "Second",
    ]
    assert desk.run("savings", "--session", "last", "--json").code == 0
    (row,) = [
        json.loads(line)
        for line in desk.run("export", "--session", "last").out.splitlines()
        if '"is":"session"' in line
    ]
    assert row["title"] == "First"


@pytest.fixture
def family(desk: Desk) -> Desk:
    with closing(SqliteStore.open(desk.data)) as store:
        says(store, "old", "An old task", when=NOW - 900)
        says(store, "main", "Mend the parser", when=NOW)
        says(store, "one", "Look for uses", when=NOW + 1, parent="main")
        says(store, "other", "Something else", when=NOW + 2)
        says(store, "below", "Count them", when=NOW + 3, parent="one")
        says(store, "two", "Write a test", when=NOW + 4, parent="main")
    return desk


def test_sessions_stand_below_the_one_that_they_belong_to(family: Desk):
    lines = family.run("sessions", "--json").json()
    ids = {line["session"]["title"]: line["session"]["id"] for line in lines}

    assert [line["session"]["title"] for line in lines] == [
        "Mend the parser",
        "Write a test",
        "Look for uses",
        "Count them",
        "Something else",
        "An old task",
    ]
    above = {line["session"]["title"]: (line["parent"], line["kinship"]) for line in lines}
    assert above["Look for uses"] == above["Write a test"] == (ids["Mend the parser"], "subagent")
    assert above["Count them"] == (ids["Look for uses"], "subagent")
    assert above["Mend the parser"] == above["Something else"] == above["An old task"] == (None, "")
    rows = family.run("sessions").out.splitlines()[1:]
    assert [row[: row.index("s")] for row in rows] == ["", "└ ", "└ ", "  └ ", "", ""]


def test_a_limit_takes_those_that_were_used_last_and_keeps_their_parent_known(family: Desk):
    lines = family.run("sessions", "--json", "--limit", "2").json()

    assert [line["session"]["title"] for line in lines] == ["Write a test", "Count them"]
    assert all(line["parent"] for line in lines)


def test_show_names_the_parent_and_the_children(family: Desk):
    ids = {
        line["session"]["title"]: line["session"]["id"]
        for line in family.run("sessions", "--json").json()
    }
    main, sub = (
        family.run("show", ids[title], "--json").json()
        for title in ("Mend the parser", "Look for uses")
    )

    assert (main["parent"], main["children"]) == (None, [ids["Look for uses"], ids["Write a test"]])
    assert (sub["parent"], sub["kinship"], sub["children"]) == (
        ids["Mend the parser"],
        "subagent",
        [ids["Count them"]],
    )
    assert f"subagent of {ids['Mend the parser']}" in family.run("show", ids["Look for uses"]).out
    assert (
        f"└ {ids['Write a test']}  subagent  Write a test"
        in family.run("show", ids["Mend the parser"]).out
    )


def test_a_family_is_exported_and_imported(family: Desk, tmp_path: Path):
    before = family.run("sessions", "--json").raw
    exported = family.run("export").raw
    elsewhere = {"HOTSET_DATA": str(tmp_path / "elsewhere")}
    family.run("import", "-", env=elsewhere, given=exported)

    assert family.run("sessions", "--json", env=elsewhere).raw == before


def test_a_session_without_its_parent_still_says_which_it_was(family: Desk, tmp_path: Path):
    child = family.run("sessions", "--json", "--limit", "1").json()[0]
    exported = family.run("export", "--session", child["session"]["id"]).raw
    elsewhere = {"HOTSET_DATA": str(tmp_path / "elsewhere")}
    family.run("import", "-", env=elsewhere, given=exported)

    assert family.run("sessions", "--json", env=elsewhere).json() == [child]
    assert f"subagent of {child['parent']}" in family.run("show", env=elsewhere).out
