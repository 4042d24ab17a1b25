"""`hotset keep`: content of a person's or a program's own."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Desk

FOUND = b"src/app.py:3: the token is never renewed \xff\n"


@pytest.mark.row("V1")
def test_a_finding_that_is_piped_in_is_found_and_comes_back_byte_for_byte(filled: Desk):
    ran = filled.run(
        "keep", "--session", "last", "--agent", "inspector", "--meta", "run=7", given=FOUND
    )
    assert ran.code == 0
    id = ran.out.strip()

    assert filled.run("recall", id).raw == FOUND
    (hit,) = filled.run("search", "token renewed", "--kind", "finding", "--json").json()
    assert (hit["page"], hit["agent"], hit["turn"]) == (id, "inspector", 4)
    about = filled.run("recall", id, "--json").json()
    assert about["metadata"] == {"run": "7"}


def test_the_first_page_of_a_project_opens_its_store_and_a_session(desk: Desk):
    (desk.project / "report.md").write_bytes(FOUND)
    kept = desk.run("keep", "report.md", "--session", "review", "--json").json()
    (session,) = desk.run("sessions", "--json").json()
    assert session["session"]["id"] == kept["session"]
    assert desk.run("keep", "report.md", "--session", "review", "--json").json() != kept
    assert len(desk.run("sessions", "--json").json()) == 1


@pytest.mark.parametrize(
    ("arguments", "given"),
    [((), b""), (("--meta", "nonsense"), FOUND), (("--parent", "pffff"), FOUND)],
)
def test_what_cannot_be_kept_is_refused(desk: Desk, arguments, given):
    ran = desk.run("keep", *arguments, given=given)
    assert ran.code in (1, 2)
    assert ran.out == ""
