"""`hotset memory review`, `suggest` and `promote`: a person's verdicts on memories, and what they
become."""

from __future__ import annotations

import subprocess
from contextlib import closing
from typing import Any

import pytest

from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import (
    MemoryId,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    Procedure,
    Provenance,
    Relation,
    Standing,
    Trust,
)
from hotset.nouns.page import SessionId
from hotset.store.sqlite import SqliteStore
from tests.cli.conftest import Desk
from tests.cli.recordings import parser_session
from tests.cli.test_index import Terminal

UTC = "We always store dates in UTC"


def keep(desk: Desk, *memories: MemoryRecord, links: tuple[MemoryLink, ...] = ()) -> None:
    with closing(SqliteStore.open(desk.data)) as store:
        store.keep(Remembered(memories, links)).result(120)


def memory(id: str, text: str, kind: MemoryKind = MemoryKind.FACT, **more: Any) -> MemoryRecord:
    source = more.pop("source", Provenance("rules", SessionId("s1"), "claude-cli"))
    fields = {"created": 1_780_000_000.0, "trust": Trust.AGENT, "confidence": 0.5, **more}
    return MemoryRecord(MemoryId(id), kind, text[:60], text, source=source, **fields)


def steps(id: str, *commands: str, sessions: int = 1, **more: Any) -> MemoryRecord:
    others = tuple(f"session:s{number}" for number in range(2, sessions + 1))
    when = more.pop("when", "after a change in shop")
    text = f"{when}: " + "; ".join(f"run `{command}`" for command in commands)
    return memory(
        id,
        text,
        MemoryKind.PROCEDURE,
        source=Provenance("rules", SessionId("s1"), "claude-cli", (), others),
        detail=Procedure(when, tuple(f"run `{command}`" for command in commands)),
        trust=more.pop("trust", Trust.OUTCOME),
        **more,
    )


def shown(desk: Desk, id: str) -> dict[str, Any]:
    return desk.run("memory", "show", id, "--json").json()["memory"]


def waiting(desk: Desk) -> list[str]:
    return [each["id"] for each in desk.run("memory", "review", "--json").json()["waiting"]]


@pytest.fixture
def three(desk: Desk) -> Desk:
    keep(
        desk,
        memory("sem-aaaaaaaa", UTC, created=3.0),
        memory("sem-bbbbbbbb", "Releases are cut on Tuesdays", created=2.0),
        memory(
            "pit-cccccccc",
            "`npm test` fails",
            MemoryKind.PITFALL,
            created=1.0,
            standing=Standing.CANDIDATE,
        ),
    )
    return desk


@pytest.mark.row("M5")
def test_new_memories_are_looked_at_one_by_one_and_the_review_goes_on_where_it_stopped(three: Desk):
    terminal = Terminal(three, "memory", "review")
    terminal.sees(b"1 of 3")
    terminal.sees(b"[q]uit")
    terminal.types(b"k\n")
    terminal.sees(b"2 of 3")
    terminal.types(b"q\n")
    code, seen = terminal.ends()
    assert code == 0
    assert "1 memory decided, 2 left" in seen
    assert shown(three, "sem-aaaaaaaa")["trust"] == "person"

    terminal = Terminal(three, "memory", "review")
    terminal.sees(b"1 of 2")
    terminal.types(b"c\n")
    terminal.sees(b"What should it say?")
    terminal.types(b"Releases are cut on Wednesdays\n")
    terminal.sees(b"2 of 2")
    terminal.types(b"d\n")
    code, seen = terminal.ends()
    assert "2 memories decided, 0 left" in seen
    corrected = shown(three, "sem-bbbbbbbb")
    assert (corrected["text"], corrected["version"]) == ("Releases are cut on Wednesdays", 2)
    assert shown(three, "pit-cccccccc")["standing"] == "forgotten"
    assert three.run("memory", "review").code == 1


def test_without_a_terminal_it_lists_what_waits_and_how_to_decide(three: Desk):
    ran = three.run("memory", "review")
    assert ran.code == 0
    assert "sem-aaaaaaaa" in ran.out
    assert "hotset memory review --keep ID" in ran.err
    assert waiting(three) == ["sem-aaaaaaaa", "sem-bbbbbbbb", "pit-cccccccc"]


def test_options_decide_for_scripts_and_undo_takes_the_review_back(three: Desk):
    ran = three.run(
        "memory", "review", "--keep", "pit-cccccccc", "--not-a-person", "sem-aaaaaaaa",
        "--correct", "sem-bbbbbbbb", "Releases are cut on Fridays", "--json",
    ).json()  # fmt: skip
    assert [each["standing"] for each in ran["memories"]] == ["active"] * 3
    assert shown(three, "sem-aaaaaaaa")["trust"] == "outside"
    assert waiting(three) == []

    three.run("memory", "undo", ran["run"])

    assert shown(three, "pit-cccccccc")["standing"] == "candidate"
    assert shown(three, "sem-bbbbbbbb")["text"] == "Releases are cut on Tuesdays"
    assert len(waiting(three)) == 3


def test_a_verdict_is_kept_as_a_label_with_the_versions_before_and_after(three: Desk):
    three.run("memory", "review", "--correct", "sem-aaaaaaaa", "Dates are in UTC")
    three.run("memory", "review", "--drop", "sem-bbbbbbbb")

    with closing(SqliteStore.open(three.data)) as store:
        from hotset.sources.memory.curation import labels  # noqa: PLC0415

        found = {id: (each.verdict, each.before, each.after) for id, each in labels(store).items()}
    assert found == {"sem-aaaaaaaa": ("correct", 1, 2), "sem-bbbbbbbb": ("drop", 1, 2)}


def test_rules_do_not_take_a_persons_verdict_back(desk: Desk):
    told = parser_session(desk.project, 1).asks(UTC + ".").says("Noted.")
    folder = str(told.write(desk.home).parent)
    desk.run("memory", "learn", folder)
    [fact] = desk.run("memory", "list", "--kind", "fact", "--json").json()
    desk.run("memory", "review", "--not-a-person", fact["id"])

    told.asks("Go on with the parser").says("Done.").write(desk.home)
    desk.run("memory", "learn", folder)

    assert shown(desk, fact["id"])["trust"] == "outside"


def test_it_asks_which_of_two_holds_and_keeps_the_answer(desk: Desk):
    one = memory("sem-aaaaaaaa", "The port is 8000", trust=Trust.PERSON)
    two = memory("sem-bbbbbbbb", "The port is 9000", trust=Trust.PERSON)
    keep(desk, one, two, links=(MemoryLink(one.id, two.id, Relation.CONTRADICTS, 1.0),))
    found = desk.run("memory", "review", "--json").json()
    assert {each["id"] for each in found["conflicts"][0]} == {one.id, two.id}

    ran = desk.run("memory", "review", "--holds", two.id, one.id, "--json").json()

    assert shown(desk, one.id)["standing"] == "superseded"
    assert desk.run("memory", "review", "--json").json()["conflicts"] == []
    assert desk.run("memory", "undo", ran["run"]).code == 0
    assert shown(desk, one.id)["standing"] == "active"


def test_of_two_that_contradict_each_other_both_may_hold(desk: Desk):
    one = memory("sem-aaaaaaaa", "The port of the shop is 8000", trust=Trust.PERSON)
    two = memory("sem-bbbbbbbb", "The port of the admin is 9000", trust=Trust.PERSON)
    keep(desk, one, two, links=(MemoryLink(one.id, two.id, Relation.CONTRADICTS, 1.0),))
    ran = desk.run("memory", "review", "--both", one.id, two.id)
    assert ran.code == 0
    assert "undo" not in ran.err
    assert desk.run("memory", "review", "--json").json()["conflicts"] == []
    assert {shown(desk, each.id)["standing"] for each in (one, two)} == {"active"}


def test_a_review_that_is_interrupted_keeps_what_was_decided_and_says_how_to_take_it_back(
    three: Desk,
):
    terminal = Terminal(three, "memory", "review")
    terminal.sees(b"[k]eep")
    terminal.types(b"d\n")
    terminal.sees(b"2 of 3")
    terminal.types(b"\x04")
    code, said = terminal.ends()
    assert code == 0
    assert "1 memory decided, 2 left" in said
    assert "memory undo review-" in said
    assert len(waiting(three)) == 2


def test_a_pattern_is_neither_reviewed_nor_suggested(desk: Desk):
    source = Provenance("rules")
    keep(desk, memory("sem-aaaaaaaa", "Fix the tests", source=source, trust=Trust.PERSON))
    assert desk.run("memory", "review").code == 1
    assert desk.run("memory", "suggest").code == 1


@pytest.mark.row("M5")
def test_confirmed_facts_and_proven_checks_are_a_diff_that_git_applies(desk: Desk):
    subprocess.run(["git", "init", "-q"], cwd=desk.project, check=True)
    (desk.project / "AGENTS.md").write_bytes(
        b"# Shop\n\n## Conventions\n\n- Releases are cut on Tuesdays.\n\n## More\n\nno end"
    )
    keep(
        desk,
        memory("sem-aaaaaaaa", UTC, trust=Trust.PERSON),
        memory("sem-bbbbbbbb", "Releases are cut on Tuesdays", trust=Trust.PERSON),
        memory("sem-cccccccc", "The model thinks that tabs are better"),
        memory("sem-dddddddd", "We use Redis", trust=Trust.PERSON, standing=Standing.SUPERSEDED),
        steps("proc-aaaaaaaa", "make check", "uv run mypy", sessions=2),
        steps("proc-bbbbbbbb", "make once"),
        steps("proc-cccccccc", "grep <text>", sessions=3),
    )
    before = (desk.project / "AGENTS.md").read_bytes()

    ran = desk.run("memory", "suggest")

    assert ran.code == 0
    assert (desk.project / "AGENTS.md").read_bytes() == before
    subprocess.run(["git", "apply"], input=ran.raw, cwd=desk.project, check=True)
    after = (desk.project / "AGENTS.md").read_text()
    assert after == (
        f"# Shop\n\n## Conventions\n\n- Releases are cut on Tuesdays.\n- {UTC}\n\n## More\n\n"
        "no end\n\n## Checks\n\n- `make check`\n- `uv run mypy`\n"
    )
    assert desk.run("memory", "suggest").code == 1


def test_claude_md_is_taken_where_it_is_the_one_and_agents_md_where_there_is_none(desk: Desk):
    subprocess.run(["git", "init", "-q"], cwd=desk.project, check=True)
    keep(desk, memory("sem-aaaaaaaa", UTC, trust=Trust.PERSON))
    new = desk.run("memory", "suggest")
    subprocess.run(["git", "apply"], input=new.raw, cwd=desk.project, check=True)
    assert (desk.project / "AGENTS.md").read_text() == f"## Conventions\n\n- {UTC}\n"

    (desk.project / "AGENTS.md").unlink()
    (desk.project / "CLAUDE.md").write_bytes(b"# Shop\r\n")
    ran = desk.run("memory", "suggest", "--json").json()
    assert ran["file"] == "CLAUDE.md"
    subprocess.run(["git", "apply"], input=ran["diff"].encode(), cwd=desk.project, check=True)
    assert (desk.project / "CLAUDE.md").read_bytes() == (
        f"# Shop\r\n\r\n## Conventions\r\n\r\n- {UTC}\r\n".encode()
    )


@pytest.mark.parametrize(
    "before", ["A\r\nB", "A\n\x1b[1mB\x1b[0m", "", "\ufeffA\n", "A\u2028\x0cB\n"]
)
def test_a_diff_in_a_pipe_applies_to_any_text_to_the_byte(desk: Desk, before: str):
    subprocess.run(["git", "init", "-q"], cwd=desk.project, check=True)
    keep(desk, memory("sem-aaaaaaaa", UTC, trust=Trust.PERSON))
    file = desk.project / "AGENTS.md"
    file.write_bytes(before.encode())
    ran = desk.run("memory", "suggest")
    subprocess.run(["git", "apply"], input=ran.raw, cwd=desk.project, check=True)
    assert file.read_bytes().startswith(before.encode())
    assert file.read_bytes().decode().rstrip().endswith(f"- {UTC}")


def test_nothing_is_suggested_for_a_file_outside_the_project(desk: Desk):
    keep(desk, memory("sem-aaaaaaaa", UTC, trust=Trust.PERSON))
    for name in ("../AGENTS.md", "/etc/hostname"):
        ran = desk.run("memory", "suggest", "--file", name)
        assert (ran.code, ran.out) == (2, "")
        assert "is not in the project" in ran.err


RELEASE = "to release the shop"


@pytest.mark.row("M5")
def test_a_procedure_that_proved_itself_three_times_becomes_a_skill_after_a_yes(desk: Desk):
    keep(
        desk,
        steps("proc-aaaaaaaa", "make tag", "make publish", sessions=3, when=RELEASE),
        steps("proc-bbbbbbbb", "make docs", sessions=2, when="to write the docs"),
    )
    drafts = desk.run("memory", "suggest", "--skills", "--json").json()
    assert [each["procedure"] for each in drafts] == ["proc-aaaaaaaa"]
    assert not (desk.project / ".agents").exists()
    assert desk.run("memory", "promote", "proc-bbbbbbbb", "--yes").code == 1

    terminal = Terminal(desk, "memory", "promote", "proc-aaaaaaaa", "--name", "release-shop")
    terminal.sees(b"Write it to")
    terminal.types(b"n\n")
    assert terminal.ends()[0] == 1
    assert not (desk.project / ".agents").exists()

    ran = desk.run("memory", "promote", "proc-aaaaaaaa", "--name", "release-shop", "--yes")

    assert ran.code == 0, ran.err
    file = desk.project / ".agents" / "skills" / "release-shop" / "SKILL.md"
    assert file.read_text().startswith("---\nname: release-shop\ndescription: ")
    assert "1. run `make tag`\n2. run `make publish`" in file.read_text()
    found = desk.run("tools", "find", "release the shop", "--json").json()
    assert "release-shop" in str(found)
    used = desk.run("tools", "use", "release-shop")
    assert "make publish" in used.out, used.err
    assert (
        desk.run("memory", "promote", "proc-aaaaaaaa", "--name", "release-shop", "--yes").code == 2
    )


@pytest.mark.parametrize("name", ["Release", "a--b", "../x", "a b", "-a"])
def test_a_name_that_no_skill_may_have_is_refused(desk: Desk, name: str):
    keep(desk, steps("proc-aaaaaaaa", "make tag", "make publish", sessions=3))
    ran = desk.run("memory", "promote", "proc-aaaaaaaa", "--yes", f"--name={name}")
    assert ran.code == 2
    assert "a skill's name" in ran.err
