"""What failed and what resolved it, and steps that led to success: only where an outcome confirms them."""

from __future__ import annotations

from told_sessions import PASSED, Told, fixed

from hotset.nouns.memory import MemoryKind, Pitfall, Procedure, Standing
from hotset.sources.memory.encoding.acting import acts
from hotset.sources.memory.encoding.troubles import mishaps


def pitfalls(told: Told) -> list[Pitfall]:
    return [each.detail for each in told.memories(MemoryKind.PITFALL) if isinstance(each.detail, Pitfall)]


def begun() -> Told:
    return Told().user("Make the report of invoices faster, it takes minutes for a year.")


def test_a_trouble_that_the_same_check_confirms_as_resolved_is_a_pitfall():
    (pitfall,) = pitfalls(fixed(Told()))
    assert pitfall.what == "`pytest -q tests/test_parser.py` fails with ModuleNotFoundError"
    assert pitfall.instead == "ran `uv sync`"
    assert "\"ModuleNotFoundError: No module named 'yaml'\"" in pitfall.why
    assert "data, not an instruction" in pitfall.why


def test_a_command_that_was_wrong_and_the_one_that_worked_in_its_place_are_a_pitfall():
    told = begun().runs("rtk bun run test", "error: unrecognized subcommand 'bun'", 2).runs("bun run test", "12 pass\n0 fail")
    (pitfall,) = pitfalls(told)
    assert pitfall.instead == "ran `bun run test` instead"


def test_a_setting_that_was_edited_is_told():
    told = (
        begun()
        .runs("npm run build", "Error: Cannot find module 'x'\nenvironment", 1)
        .edits("tsconfig.json")
        .runs("npm run build", "done")
    )
    (pitfall,) = pitfalls(told)
    assert pitfall.instead == "edited tsconfig.json"


def test_what_a_makefile_does_and_what_a_build_leaves_behind_resolve_troubles():
    for helped in ("make vendor", "make -j4 install", "npm run build"):
        told = (
            begun()
            .runs("pytest -q", "E   ModuleNotFoundError: No module named 'datefmt'", 1)
            .runs(helped)
            .runs("pytest -q", PASSED)
        )
        (pitfall,) = pitfalls(told)
        assert pitfall.instead == f"ran `{helped}`"


def test_a_build_beside_an_edit_is_only_a_check():
    told = begun().runs("pytest -q", "E   ConfigError: no such key", 1).edits("setup.cfg").runs("make").runs("pytest -q", PASSED)
    (pitfall,) = pitfalls(told)
    assert pitfall.instead == "edited setup.cfg"


def test_a_trouble_that_was_never_resolved_is_no_pitfall_but_stays_in_its_episode():
    told = begun().runs("pytest -q", "E   KeyError: 'year'", 1).says("It fails.")
    assert pitfalls(told) == []
    (episode,) = told.memories(MemoryKind.EPISODE)
    assert "not resolved" in episode.text


def test_how_work_goes_is_no_pitfall():
    lint = begun().runs("ruff check .", "Found 3 errors.", 1).edits("src/report.py").runs("ruff check .", "All checks passed!")
    missed = (
        begun()
        .does("Edit", {"file_path": "a.py"}, "<tool_use_error>String to replace not found in file.</tool_use_error>")
        .edits("a.py")
    )
    script = begun().does("Write", {"file_path": "repro.py", "content": "x"}, "ok")
    script.runs("python repro.py", "NameError: x", 1).does("Write", {"file_path": "repro.py", "content": "y"}, "ok").runs(
        "python repro.py", "fine"
    )
    test = begun().runs("pytest -q", "E   AssertionError: 3 != 4", 1).edits("src/report.py").runs("pytest -q", PASSED)
    declined = begun().runs("git push", "The user doesn't want to proceed with this tool use.").runs("git push", "ok")
    assert [pitfalls(told) for told in (lint, missed, script, test, declined)] == [[]] * 5


def test_after_many_changes_nobody_knows_what_resolved_it():
    told = begun().runs("pytest -q", "E   KeyError: 'year'", 1)
    for name in "abcde":
        told.edits(f"src/{name}.py")
    assert pitfalls(told.runs("pytest -q", PASSED)) == []


def test_a_check_on_more_settles_one_on_less_and_not_the_other_way_round():
    more = begun().runs("pytest -q tests/test_a.py", "E   KeyError: 'year'", 1).edits("src/a.py").runs("pytest -q", PASSED)
    less = (
        begun()
        .runs("pytest -q tests/test_a.py", "E   KeyError: 'year'", 1)
        .edits("src/a.py")
        .runs("pytest -q tests/test_b.py", PASSED)
    )
    settled = [[each.by is not None for each in mishaps(acts(told.material().line))] for told in (more, less)]
    assert settled == [[True], [False]]


def test_steps_that_led_to_a_check_that_passed_are_a_procedure():
    told = (
        Told()
        .user("Regenerate the client of the billing API.")
        .runs("uv run scripts/generate_client.py billing", "wrote 12 files")
    )
    told.edits("CHANGELOG.md").runs("pytest -q", PASSED).says("The client is generated anew and the tests pass.")
    (memory,) = told.memories(MemoryKind.PROCEDURE)
    assert memory.standing is Standing.ACTIVE
    assert isinstance(memory.detail, Procedure)
    assert memory.detail.when == "Regenerate the client of the billing API"
    assert memory.detail.steps == ("edit CHANGELOG.md", "run `uv run scripts/generate_client.py billing`", "run `pytest -q`")


def test_without_a_check_that_passed_or_with_steps_of_one_occasion_there_is_no_procedure():
    goal = "Regenerate the client of the billing API."
    unchecked = Told().user(goal).runs("uv run scripts/generate_client.py billing", "ok").says("Done.")
    failing = (
        Told().user(goal).runs("uv run scripts/generate_client.py billing", "ok").runs("pytest -q", "1 failed", 1).says("Hm.")
    )
    one_off = Told().user(goal).runs("curl -o x https://a.example/3f9ac81b7d", "ok").runs("pytest -q", PASSED).says("Done.")
    only_checks = Told().user(goal).runs("ruff check", "All checks passed!").runs("pytest -q", PASSED).says("Done.")
    assert [told.memories(MemoryKind.PROCEDURE) for told in (unchecked, failing, one_off, only_checks)] == [[]] * 4
