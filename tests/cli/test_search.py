"""`hotset search`: over real conversations and a real project."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from hypothesis import given, strategies as st

from hotset.nouns.search import Entry, EntryId, Sort
from hotset.nouns.turn import Event, Reference
from hotset.store.port import Where
from hotset.store.sqlite import SqliteStore
from hotset.text.terms import excerpt, terms
from tests.cli.conftest import NOW, Desk, desk_in, fill, in_a_process
from tests.cli.test_terminal import on_a_terminal

FILES = {
    "src/uploads.py": "import time\n\n\n"
    + "".join(
        f"def {name}(file):\n    '''{doc}'''\n    return file\n\n\n"
        for name, doc in (
            ("retry_upload", "Tries again when the wire breaks."),
            ("count_bears", "How many bears wait for marmalade."),
        )
    ),
    "docs/bears.md": "# Bears\n\nThey eat marmalade at dawn.\n",
    "web/app.ts": (
        "export function drawClock(hands: number): string {\n  return `${hands} hands`;\n}\n"
    ),
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A desk with a conversation that is kept and a project that is indexed. No test changes it."""
    return furnished(desk_in(tmp_path_factory.mktemp("shop")))


@pytest.fixture
def own_shop(desk: Desk) -> Desk:
    """The same, for a test that changes it."""
    return furnished(desk)


def furnished(desk: Desk) -> Desk:
    fill(desk.data)
    for path, text in FILES.items():
        (desk.project / path).parent.mkdir(exist_ok=True)
        (desk.project / path).write_text(text)
    assert desk.run("index", "--yes").code == 0
    return desk


def paths(desk: Desk, *arguments: str) -> list[str]:
    return [
        each.get("path") or each["page"] for each in desk.run("search", *arguments, "--json").json()
    ]


def test_code_is_told_by_file_and_lines_with_the_lines_that_speak_of_it(shop: Desk):
    ran = shop.run("search", "retry_upload", "--type", "code")

    first, *lines = ran.out.splitlines()
    assert ran.code == 0
    assert first.startswith("src/uploads.py:")
    assert any("def retry_upload(file):" in line for line in lines)
    assert "\x1b" not in ran.out


def test_what_was_said_is_told_with_its_turn_and_the_command_that_shows_it(shop: Desk):
    ran = shop.run("search", "was it the clock", "--type", "page", "-n", "1")
    command = next(line.split() for line in ran.out.splitlines() if "hotset show" in line)

    assert "It was the clock." in ran.out
    assert "turn 2" in ran.out
    assert "It was the clock." in shop.run(*command[1:]).out


@pytest.mark.row("X1")
def test_pages_code_memories_and_tools_are_found_in_one_list(own_shop: Desk):
    skill = own_shop.home / ".agents" / "skills" / "clocks"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: clocks\ndescription: Winds and repairs a clock.\n---\nTurn the key.\n"
    )
    remembered = own_shop.run(
        "memory", "add", "The clock in the hall is five minutes slow.", "--json"
    ).json()["memory"]
    found = own_shop.run("search", "clock", "--json").json()
    first = {each["type"]: each for each in reversed(found)}
    told = own_shop.run("search", "clock")

    assert set(first) == {"page", "code", "memory", "tool"}
    assert [each["score"] for each in found] == sorted(
        (each["score"] for each in found), reverse=True
    )
    assert {each["score"] for each in first.values()} == {1.0}
    assert (first["memory"]["id"], first["memory"]["kind"]) == (remembered["id"], "fact")
    assert first["memory"]["show"] == f"hotset memory show {remembered['id']}"
    assert "five minutes slow" in first["memory"]["title"] + first["memory"]["text"]
    assert (first["tool"]["name"], first["tool"]["description"]) == (
        "clocks",
        "Winds and repairs a clock.",
    )
    for line in (
        "five minutes slow",
        "Winds and repairs a clock.",
        "from clocks",
        *(each["show"] for each in first.values()),
    ):
        assert line in told.out
    for each in first.values():
        if each["show"]:
            assert own_shop.run(*each["show"].split()[1:]).code == 0
    for wanted in (["memory"], ["tool"], ["code", "tool"], ["page", "memory"]):
        flags = [flag for each in wanted for flag in ("--type", each)]
        assert {
            each["type"] for each in own_shop.run("search", "clock", *flags, "--json").json()
        } == set(wanted)


def test_memories_and_tools_are_found_where_nothing_else_is_kept_and_nothing_is_made(desk: Desk):
    skill = desk.home / ".agents" / "skills" / "clocks"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: clocks\ndescription: Winds and repairs a clock.\n---\nTurn the key.\n"
    )

    (found,) = desk.run("search", "repair the clock", "--json").json()

    assert (found["type"], found["name"]) == ("tool", "clocks")
    assert not desk.data.exists()


def test_both_are_searched_unless_one_is_asked_for(shop: Desk):
    types = {each["type"] for each in shop.run("search", "clock", "--json").json()}
    code = {each["type"] for each in shop.run("search", "clock", "--type", "code", "--json").json()}

    assert types == {"page", "code"}
    assert code == {"code"}


def test_a_search_is_narrowed_by_path_language_and_number(shop: Desk):
    assert set(paths(shop, "marmalade", "--type", "code")) == {"src/uploads.py", "docs/bears.md"}
    assert set(paths(shop, "marmalade", "--path", "docs/", "--type", "code")) == {"docs/bears.md"}
    assert set(paths(shop, "marmalade", "--path", "**/*.py", "--type", "code")) == {
        "src/uploads.py"
    }
    assert set(paths(shop, "marmalade", "--path", "**/*.{py,ts}", "--type", "code")) == {
        "src/uploads.py"
    }
    assert set(paths(shop, "marmalade", "--path", "bears.md", "--type", "code")) == {
        "docs/bears.md"
    }
    assert set(paths(shop, "marmalade", "--kind", "markdown")) == {"docs/bears.md"}
    assert len(paths(shop, "marmalade", "-n", "1")) == 1


@pytest.mark.parametrize("path", ["docs", "docs/", "docs/bears.md", "docs/*.md", "**/*.md"])
def test_a_path_may_be_given_from_the_root_of_the_machine(shop: Desk, path: str):
    assert set(paths(shop, "marmalade", "--path", f"{shop.project}/{path}", "--type", "code")) == {
        "docs/bears.md"
    }
    assert set(paths(shop, "marmalade", "--path", f"{shop.project}", "--type", "code")) == {
        "docs/bears.md",
        "src/uploads.py",
    }
    assert paths(shop, "marmalade", "--path", f"{shop.project}2/{path}", "--type", "code") == []


@pytest.mark.row("V2")
def test_a_search_is_narrowed_by_session_kind_and_time(own_shop: Desk):
    fill(own_shop.data, "Explain the marmalade clock", time.time(), "codex")
    older, newer = (
        each["session"]["id"] for each in reversed(own_shop.run("sessions", "--json").json())
    )

    def sessions(*flags: str) -> set[str]:
        ran = own_shop.run(
            "search", "explain the clock", "--type", "page", "-n", "50", "--json", *flags
        )
        return {each["session"] for each in ran.json()}

    assert newer in sessions()
    assert sessions("--session", older) == {older}
    assert sessions("--session", "last") == {newer}
    assert sessions("--since", "1h") == {newer}
    kinds = {
        each["kind"]
        for each in own_shop.run("search", "clock", "--kind", "response", "--json").json()
    }
    assert kinds == {"response"}


def test_conditions_that_cannot_hold_together_are_told(shop: Desk):
    for flags in (
        ("--type", "code", "--session", "last"),
        ("--kind", "python", "--type", "page"),
        ("--kind", "nonsense"),
    ):
        ran = shop.run("search", "clock", *flags)
        assert (ran.code, ran.raw) == (2, b"")
        assert ran.err.startswith("hotset: --")


def test_what_was_kept_a_moment_ago_is_found(own_shop: Desk):
    assert own_shop.run("search", "periwinkle", "--type", "page", "--json").json() == []

    fill(own_shop.data, "Paint the periwinkle fence", NOW + 1e6, "codex")

    assert (
        "periwinkle"
        in own_shop.run("search", "periwinkle", "--type", "page", "--json").json()[0]["text"]
    )


def test_a_file_that_was_changed_is_found_as_it_is(own_shop: Desk):
    (own_shop.project / "web/app.ts").write_text("export function drawSundial(): void {}\n")
    (own_shop.project / "web/new.ts").write_text("export function drawHourglass(): void {}\n")

    assert "web/new.ts" in paths(own_shop, '"drawHourglass"')
    assert "web/app.ts" in paths(own_shop, '"drawSundial"')
    assert not any(
        "drawClock" in each["text"]
        for each in own_shop.run("search", '"drawClock"', "--json").json()
    )


def test_words_in_quotes_that_nothing_holds_so_are_searched_one_by_one_and_that_is_said(shop: Desk):
    held, loose = '"def retry_upload"', '"upload retry def"'

    exact = shop.run("search", held, "--type", "code", "--json")
    ran = shop.run("search", loose, "--type", "code", "--json")

    assert {(each["path"], each["loose"]) for each in exact.json()} == {("src/uploads.py", False)}
    assert "no exact match" not in exact.err
    assert ("src/uploads.py", True) in {(each["path"], each["loose"]) for each in ran.json()}
    assert f"hotset: no exact match for {loose}; these are nearest" in ran.err


def test_what_comes_near_a_phrase_by_its_meaning_alone_is_not_said_to_hold_its_words(shop: Desk):
    ran = shop.run("search", '"no such bears anywhere xyz"', "--type", "code")

    assert ran.code == 0
    assert "these are nearest" in ran.err
    assert "hold the words" not in ran.err


def test_a_phrase_that_what_was_said_holds_is_not_loosened_for_the_sake_of_code(shop: Desk):
    ran = shop.run("search", '"it was the clock"', "--json")

    assert {each["type"] for each in ran.json()} == {"page"}
    assert not any(each["loose"] for each in ran.json())


def test_a_phrase_of_words_that_nothing_holds_finds_nothing(shop: Desk):
    ran = shop.run("search", '"xylophone quartet"')

    assert ran.code == 1
    assert "nothing found" in ran.err
    assert "no exact match" not in ran.err


def test_files_that_are_not_indexed_are_told_of(filled: Desk):
    ran = filled.run("search", "clock")

    assert ran.code == 0
    assert "not indexed; to search them, too: hotset index" in ran.err
    assert "not indexed" not in filled.run("search", "clock", "--type", "page").err
    assert not (filled.data / "code.db").exists()


def test_nothing_found_is_a_finding_with_advice(shop: Desk):
    ran = shop.run("search", "xylophone")
    narrowed = shop.run("search", "marmalade", "--path", "web/")

    assert (ran.code, ran.raw) == (1, b"")
    assert "nothing found for 'xylophone'; try" in ran.err
    assert "try it without --path" in narrowed.err


def test_nothing_to_search_is_told_and_nothing_is_made(desk: Desk):
    ran = desk.run("search", "anything")

    assert (ran.code, ran.raw) == (0, b"")
    assert "nothing to search yet" in ran.err
    assert not desk.data.exists()


def test_no_character_of_a_query_does_any_harm(shop: Desk):
    operators = (
        '"',
        '"unclosed phrase',
        "NEAR(a b)",
        "a AND OR NOT (b",
        "'; DROP TABLE entry; --",
        "(a+)+$",
        "*",
        "title:x^9",
        " ",
    )

    assert {shop.run("search", query).code for query in operators} <= {0, 1}
    assert "the query is empty" in shop.run("search", " ").err
    assert paths(shop, "retry_upload", "--type", "code")[0] == "src/uploads.py"


@pytest.mark.slow
def test_words_are_marked_for_eyes_and_for_nobody_else(shop: Desk):
    assert b"\x1b[33m\x1b[1mretry_upload" in on_a_terminal(
        shop, "search", "retry_upload", "--project", str(shop.project)
    )
    assert b"\x1b[3" not in on_a_terminal(
        shop, "search", "retry_upload", "--project", str(shop.project), env={"NO_COLOR": "1"}
    )
    assert b"\x1b" not in in_a_process(shop, ("search", "retry_upload"), shop.environ(), b"").raw


def test_what_an_agent_read_cannot_steer_the_terminal(shop: Desk):
    assert b"\x1b" not in shop.run("search", "Thanks red", "--type", "page").raw


def test_a_secret_that_was_said_is_not_shown(desk: Desk):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"[:36]
    fill(desk.data, f"Deploy the marmalade with {token}")

    ran = desk.run("search", "deploy marmalade")

    assert "Deploy the marmalade" in ran.out
    assert token not in ran.out


@given(st.text(), st.text(max_size=40), st.integers(1, 20), st.integers(0, 50))
def test_an_excerpt_is_a_part_of_what_was_found_with_marks_inside_its_lines(
    text, query, most, first
):
    lines = (first, first + text.count("\n")) if first else (0, 0)
    shown = excerpt(Entry(EntryId("a"), "a", Sort.CODE, text, lines=lines), terms(query), most)

    assert len(shown) <= most
    for line in shown:
        assert all(0 <= start < end <= len(line.text) for start, end in line.marks)
        assert line.number == 0 or first <= line.number <= lines[1]


@pytest.mark.row("V2")
def test_pages_are_narrowed_by_several_kinds_agent_turns_and_time(own_shop: Desk):
    fill(own_shop.data, "Fix the marmalade clock", NOW + 86_400, agent="codex")

    def found(*arguments: str) -> set[tuple[str, int, str]]:
        ran = own_shop.run("search", "clock", "--type", "page", "-n", "50", *arguments, "--json")
        return {(each["agent"], each["turn"], each["kind"]) for each in ran.json()}

    assert {kind for _, _, kind in found("--kind", "prompt", "--kind", "response")} == {
        "prompt",
        "response",
    }
    for agent in ("codex", "claude-cli"):
        assert {agent} == {each for each, _, _ in found("--agent", agent)}
    assert found("--agent", "codex", "--agent", "claude-cli") == found()
    assert {turn for _, turn, _ in found("--turns", "2")} == {2}
    assert {agent for agent, _, _ in found("--since", "2026-09-22")} == {"codex"}
    assert {agent for agent, _, _ in found("--until", "2026-09-22")} == {"claude-cli"}
    assert own_shop.run("search", "clock", "--agent", "codex", "--type", "code").code == 2
    assert own_shop.run("search", "clock", "--turns", "9-3").code == 2


@pytest.mark.row("V2")
def test_index_files_that_are_missing_are_named_as_such(own_shop: Desk):
    assert own_shop.run("search", "marmalade").code == 0
    own_shop.run("index", "--yes")
    gone = [each for each in (own_shop.data / "index").rglob("*") if each.parent.name == "words"]
    assert gone, "nothing is folded: the test says nothing"
    for each in gone:
        each.unlink()

    ran = own_shop.run("search", "marmalade")
    assert "searched without words (index files missing or damaged" in ran.err


@pytest.mark.row("V1")
def test_references_checkpoints_handoffs_and_decisions_are_found(own_shop: Desk):
    with closing(SqliteStore.open(own_shop.data)) as store:
        (session,) = store.sessions()
        pages = tuple(page.id for page in store.pages(Where(session=session.id)))
        topics = ("zeppelin.py", "mooring mast")
        store.keep(
            Reference("rc0123456789ab", session.id, "code", pages, (1, 2), 900, NOW, topics),
            Event("Checkpoint", NOW, session.id, 2, {"mark": 25, "summary": "zeppelin moored"}),
            Event("Handoff", NOW, session.id, 3, {"reason": "context_75%", "to": "zeppelin crew"}),
        ).result(60)
    fill(own_shop.data, "Something new")  # the index follows pages
    for kind in ("fact", "handoff"):
        text = "We decided that the zeppelin lands at dawn" + " for the crew" * (kind == "handoff")
        assert own_shop.run("memory", "add", "--kind", kind, text).code == 0

    def kinds(*arguments: str) -> set[str]:
        ran = own_shop.run("search", "zeppelin", *arguments, "--json")
        return {each["kind"] for each in ran.json()}

    assert kinds("--type", "record") == {"reference", "checkpoint", "handoff"}
    assert kinds("--kind", "reference", "--session", session.id) == {"reference"}
    assert kinds("--type", "page") == set()
    assert kinds("--type", "memory") == {"fact", "handoff"}
    assert "rc0123456789ab" in own_shop.run("search", "mooring mast", "--type", "record").out


@pytest.mark.row("V1")
def test_a_hit_in_what_left_a_window_names_the_reference_that_opens_it(own_shop: Desk):
    fill(own_shop.data, "Something about a zeppelin")
    (found, *_) = own_shop.run("search", "zeppelin", "--type", "page", "--json").json()
    assert found["reference"] == ""
    assert "left the window" not in own_shop.run("search", "zeppelin").out

    with closing(SqliteStore.open(own_shop.data)) as store:
        pages = tuple(page.id for page in store.pages(Where(session=found["session"])))
        left = Reference("r0123456789a", found["session"], "code", pages, (1, 2), 900, NOW)
        store.keep(left).result(60)

    (found, *_) = own_shop.run("search", "zeppelin", "--type", "page", "--json").json()
    assert found["reference"] == "r0123456789a"
    assert "hotset recall r0123456789a" in own_shop.run("search", "zeppelin").out
    opened = own_shop.run("recall", "r0123456789a", "--json").json()
    assert found["page"] in [page["id"] for page in opened["pages"]]
