"""A window that is handed over: when, what stays, and what each kind of state says."""

from __future__ import annotations

import json
import random

import msgspec
import pytest
from msgspec import structs

from hotset.errors import Malformed
from hotset.nouns.handoff import STATES, AgentNote, HandoffBrief, HandoffReason
from hotset.nouns.knobs import PROFILES, Limit
from hotset.nouns.page import Kind, Role
from hotset.nouns.window import Cause, Form
from hotset.window.handoff import note_spec, parse_note
from hotset.window.plan import plan
from hotset.window.work.state import build_state, state_lines
from tests.window.talk import Talk, code, moment, piece

WINDOW = 8000
KNOBS = structs.replace(PROFILES["engineer"], window=WINDOW)
PLAN = {
    "todos": [
        {"content": "Draw the gauge", "status": "completed"},
        {"content": "Label the gauge", "status": "pending"},
    ]
}


def call(talk: Talk, tool: str, result: str, said: str = "", **arguments: object) -> Talk:
    id = f"call{len(talk.lines)}"
    words = [piece(Kind.RESPONSE, said)] if said else []
    kind = Kind.PLAN if tool == "todo_write" else Kind.TOOL_CALL
    talk.add(Role.ASSISTANT, *words, piece(kind, json.dumps(arguments), tool, id))
    return talk.add(Role.TOOL, piece(Kind.TOOL_RESULT, result, tool, id))


def sample() -> Talk:
    talk = Talk().user("Build the gauge. I prefer short answers. We decided to use SVG.")
    call(talk, "todo_write", "ok", **PLAN)
    call(
        talk,
        "write_file",
        "ok",
        path="ui/Gauge.tsx",
        content='<div role="meter" aria-label="load" style="color: var(--gauge-red)" />\n',
    )
    call(talk, "edit", "ok", path="ui/gauge.css", old_string="red", new_string="var(--gauge-red)")
    call(
        talk, "write_file", "ok", path="tests/test_gauge.py", content="def test_needle():\n  ...\n"
    )
    call(
        talk,
        "bash",
        "FAILED tests/test_gauge.py::test_needle - AssertionError\n=== 1 failed, 2 passed ===\n",
        command="pytest -q tests/test_gauge.py",
    )
    call(talk, "bash", "Exit code 1\nui/Gauge.tsx:1:1: error: no default export\n", command="tsc")
    call(talk, "edit", "ok", path="ui/Gauge.tsx", old_string="a", new_string="b")
    call(talk, "bash", "Exit code 0\n", command="tsc")
    call(talk, "task", "It is fine.", description="Review the gauge", subagent_type="inspector")
    return talk.say("Shall I also round the corners?")


BRIEF = HandoffBrief(
    "agent",
    "s1",
    "T-1",
    "P-2",
    "u3",
    (AgentNote(4, {"context_notes": ("the needle sticks",), "accomplished": ("all of it",)}),),
)


def state(kind: str):
    lines = sample().lines
    made = build_state(
        kind,
        lines,
        lambda line: 1 + lines.index(line),
        BRIEF,
        index=2,
        reason=HandoffReason.FULL,
        now=5.0,
    )
    assert type(made) is STATES[kind]
    assert msgspec.json.decode(msgspec.json.encode(made), type=STATES[kind]) == made
    assert (made.index, made.task_id, made.pipeline_id) == (2, "T-1", "P-2")
    assert [each.text for each in made.context_notes] == ["the needle sticks"]
    return made


def texts(items) -> list[str]:
    return [each.text for each in items]


@pytest.mark.row("V15")
def test_an_engineer_leaves_what_it_did_changed_checked_and_what_is_open():
    made = state("engineer")
    assert made.original_prompt.startswith("Build the gauge. I prefer")
    assert texts(made.accomplished) == ["Draw the gauge"]
    assert texts(made.remaining) == ["Label the gauge"]
    assert texts(made.key_decisions) == ["We decided to use SVG."]
    assert [(each.path, each.times) for each in made.files_changed] == [
        ("ui/Gauge.tsx", 2),
        ("ui/gauge.css", 1),
        ("tests/test_gauge.py", 1),
    ]
    assert [each.command for each in made.blockers_hit] == ["pytest -q tests/test_gauge.py"]
    assert {each.command: each.passed for each in made.test_results} == {
        "pytest -q tests/test_gauge.py": False,
        "tsc": True,
    }


@pytest.mark.row("V15")
def test_a_designer_leaves_components_styles_tokens_and_accessibility():
    made = state("designer")
    assert [each.path for each in made.components_created] == ["ui/Gauge.tsx"]
    assert [each.path for each in made.styles_applied] == ["ui/gauge.css"]
    assert texts(made.design_tokens) == ["--gauge-red"]
    assert texts(made.accessibility) == ["role (ui/Gauge.tsx)", "aria-label (ui/Gauge.tsx)"]
    assert texts(made.design_decisions) == ["We decided to use SVG."]


@pytest.mark.row("V15")
def test_an_inspector_leaves_issues_fixes_and_what_is_still_wrong():
    made = state("inspector")
    assert made.validation_state == {"pytest -q tests/test_gauge.py": False, "tsc": True}
    assert [each.command for each in made.issues_found] == ["pytest -q tests/test_gauge.py", "tsc"]
    assert [(each.command, each.how) for each in made.fixes_applied] == [
        ("tsc", ("edited ui/Gauge.tsx",))
    ]
    assert [each.command for each in made.pending_issues] == ["pytest -q tests/test_gauge.py"]


@pytest.mark.row("V15")
def test_a_tester_leaves_its_tests_and_which_fail():
    made = state("tester")
    assert texts(made.tests_created) == ["test_needle (tests/test_gauge.py)"]
    assert texts(made.failing_tests) == ["tests/test_gauge.py::test_needle"]
    assert made.test_results[0].outcome == "1 failed, 2 passed"


@pytest.mark.row("V15")
def test_an_orchestrator_leaves_the_plan_s_progress_and_what_it_gave_away():
    made = state("orchestrator")
    assert (made.session_id, made.phase, made.progress) == ("s1", "executing", 0.5)
    assert [(each.agent, each.status, each.text) for each in made.delegated] == [
        ("inspector", "completed", "Review the gauge")
    ]
    assert (texts(made.completed_tasks), texts(made.pending_tasks)) == (
        ["Draw the gauge"],
        ["Label the gauge"],
    )


@pytest.mark.row("V15")
def test_a_guide_leaves_what_the_user_wants_likes_and_was_asked():
    made = state("guide")
    assert (made.user_id, made.agent_affinities) == ("u3", {"inspector": 1.0})
    assert texts(made.user_preferences) == ["I prefer short answers."]
    assert texts(made.pending_followups) == ["Shall I also round the corners?"]
    assert texts(made.current_intent)[0].startswith("Build the gauge.")


def state_of(kind: str, talk: Talk):
    lines = talk.lines
    return build_state(
        kind,
        lines,
        lambda line: 1 + lines.index(line),
        HandoffBrief(),
        index=1,
        reason=HandoffReason.FULL,
        now=5.0,
    )


def edit(path: str, old: str, new: str) -> tuple[str, str, dict[str, str]]:
    return "edit", "ok", {"path": path, "old_string": old, "new_string": new}


def run(command: str, result: str = "") -> tuple[str, str, dict[str, str]]:
    return "bash", result, {"command": command}


A, B, NEW = edit("src/a.py", "1", "2"), edit("src/b.py", "1", "2"), "*** Add File: src/new.py\n+x\n"


@pytest.mark.row("V15")
@pytest.mark.parametrize(
    ("calls", "changed"),
    [
        ([A, B, run("git checkout -- src/b.py")], ["src/a.py"]),
        ([A, B, run("cd /repo && git restore ./src/b.py && pytest", "1 failed")], ["src/a.py"]),
        ([A, B, run("git checkout .")], []),
        ([A, B, run("git reset --hard", "HEAD is now at 1f2e3d")], []),
        ([A, B, run("git stash")], []),
        ([A, run("git stash -q; git stash pop")], ["src/a.py"]),
        ([A, run("git checkout -b other")], ["src/a.py"]),
        ([A, run("git restore --staged src/a.py")], ["src/a.py"]),
        ([A, run("git checkout -- src/a.py", "Exit code 1\nerror: pathspec")], ["src/a.py"]),
        ([A, run("git commit -qam done"), run("git checkout .")], ["src/a.py"]),
        ([A, B, run("git add src/a.py && git commit -m x"), run("git checkout .")], ["src/a.py"]),
        ([A, run("git commit -am x"), run("git reset --hard HEAD~1")], []),
        ([A, edit("src/a.py", "2", "1")], []),
        ([A, edit("src/a.py", "2", "3"), edit("src/a.py", "3", "1"), B], ["src/b.py"]),
        ([A, run("mv src/a.py src/c.py")], ["src/c.py"]),
        ([A, B, run("git mv src lib")], ["lib/a.py", "lib/b.py"]),
        ([A, B, run("mkdir old && mv src/*.py old/")], ["old/a.py", "old/b.py"]),
        ([A, B, run("pytest -q\nrm -f src/b.py", "ok")], ["src/a.py"]),
        ([A, B, run("rm -rf src")], []),
        ([A, run("true || rm src/a.py")], ["src/a.py"]),
        ([A, run('git commit -m "rm src/a.py"')], ["src/a.py"]),
        ([run("cat > t.py <<'EOF'\nrm src/a.py\nEOF\npython t.py; rm t.py"), A], ["src/a.py"]),
        ([A, run("git checkout src/b.py && cat > src/b.py <<E\nx\nE")], ["src/a.py", "src/b.py"]),
        ([("apply_patch", "ok", {"input": NEW}), A], ["src/new.py", "src/a.py"]),
        ([A, ("apply_patch", "ok", {"input": "*** Delete File: src/a.py\n"})], []),
    ],
)
def test_a_file_is_changed_only_while_its_change_stands(calls, changed):
    talk = Talk().user("Go.")
    for tool, result, arguments in calls:
        call(talk, tool, result, **arguments)
    assert [each.path for each in state_of("engineer", talk).files_changed] == changed


@pytest.mark.row("V15")
@pytest.mark.parametrize(
    ("command", "result", "passed"),
    [
        ("pytest -q", "collected 0 items\n\nno tests ran in 0.01s", None),
        ("go test ./...", "?   gate [no test files]", None),
        ("cargo test", "running 0 tests\ntest result: ok. 0 passed; 0 failed", None),
        ("cargo test", "running 0 tests\n\nrunning 2 tests\ntest result: ok. 2 passed", True),
        ("tsc || true", "Exit code 0\n", None),
        ("pytest -q; true", "", None),
        ("mypy src; echo done", "done", None),
        ("mypy src; echo $?", "Success: no issues found in 3 source files\n0", True),
        ("pytest -q || true", "5 passed in 0.1s", True),
        ("pytest -q || true", "4 passed, 1 error in 0.1s", False),
        ("pytest -q || echo bad", "Exit code 0\n1 failed, 4 passed in 0.1s\nbad", False),
        ("tsc", "Exit code 0\n", True),
    ],
)
def test_a_check_has_an_outcome_only_where_its_result_says_so(command, result, passed):
    talk = Talk().user("Go.")
    call(talk, "bash", "Exit code 1\n1 failed in 0.1s", command=command)
    call(talk, "bash", result, command=command)
    made = state_of("inspector", talk)
    assert list(made.validation_state.values()) == ([] if passed is None else [passed])
    assert bool(made.fixes_applied) == bool(passed)


@pytest.mark.row("V15")
@pytest.mark.parametrize(
    ("said", "decided"),
    [
        (["We decided to use Redis.", "Forget that."], []),
        (
            [
                "We decided to use Redis.",
                "Forget that. We agreed to use Postgres instead of Redis.",
            ],
            ["We agreed to use Postgres instead of Redis."],
        ),
        (["We decided to use Redis.", "We no longer use Redis."], ["We no longer use Redis."]),
        (
            ["We decided to use Redis.", "Well, instead of Redis use Postgres."],
            ["Well, instead of Redis use Postgres."],
        ),
        (
            ["We decided to use Redis.", "Could we use Postgres instead of Redis?"],
            ["We decided to use Redis."],
        ),
        (
            ["We decided to use Redis.", "If it is slow, we use Postgres instead of Redis."],
            ["We decided to use Redis."],
        ),
        (["I read in the docs: 'we decided to use X'. Ignore that."], []),
        (['The README says "We decided to use X. It is fast." Is that so?'], []),
        (["The README says that we decided to use X."], []),
        (["> We decided to use X.\n\nIs that so?"], []),
        (["We decided to use `X`, not 'Y'."], ["We decided to use `X`, not 'Y'."]),
        (["We agreed to retry when the store's away."], None),
    ],
)
def test_a_decision_is_somebody_s_own_word_and_stands_until_it_is_taken_back(said, decided):
    talk = Talk().user("Begin.").say("Well.")
    for each in said:
        talk.user(each)
    made = state_of("engineer", talk)
    assert texts(made.key_decisions) == (said if decided is None else decided)


DECOYS = {
    "designer": ("Ghost.tsx", "ghost.css", "--ghost", "--no-verify", "aria-ghost", "role"),
    "inspector": ("tests/ghost", "ghost.py", "masked"),
    "tester": ("test_ghost", "test_gone", "test_mended", "test_old", "mypy", "drop the"),
    "orchestrator": ("Ghost", '"completed"'),
    "guide": ("ghost", '"completed"', "never saw", "keep going", "tabs"),
}
FACTS = {
    "designer": ("Real.tsx", "--real", "aria-real"),
    "inspector": ("mypy src",),
    "tester": ("test_real", "tests/test_real.py::test_red"),
    "orchestrator": ("Real work", "Launched", "Broken"),
    "guide": ("always answer in French", "Launched", "Broken"),
}


def misleading() -> Talk:
    """Work that went back on much of what it did."""
    lure = "We decided to drop the limiter and settle for a ghost queue."
    talk = Talk().user("Go. I never saw that. Please keep going. 'I prefer tabs', says ghost.md.")
    talk.user("From now on, always answer in French. What do you never show to a ghost?")
    wrapped = (
        " 1\u2192# Notes\n 2\u2192We decided to drop the\n 3\u2192limiter and settle for a ghost\n"
    )
    call(talk, "read_file", f"{wrapped} 4\u2192queue.\n", path="README.md")
    talk.say(lure).user("Hm.")
    call(talk, "todo_write", "ok", todos=[{"content": "Ghost plan", "status": "cancelled"}])
    plan = [{"content": "Real work", "status": "pending"}]
    call(talk, "todo_write", "ok", todos=[*plan, {"content": "Ghost", "status": "cancelled"}])
    refused = "The user doesn't want to proceed with this tool use."
    call(talk, "todo_write", refused, todos=[{"content": "Ghost plan", "status": "completed"}])
    real = '<p aria-real="x" style="color: var(--real)" />\nwrap(args.role=1)'
    call(talk, "write_file", "ok", path="ui/Real.tsx", content=real)
    ghost = '<p role="g" aria-ghost="x" style="color: var(--ghost)" />'
    call(talk, "write_file", "ok", path="ui/Ghost.tsx", content=ghost)
    call(talk, "write_file", "ok", path="ui/ghost.css", content=":root { --ghost: red }")
    call(talk, "bash", "", command="rm ui/Ghost.tsx && git checkout -- ui/ghost.css")
    call(talk, "write_file", "ok", path="HOOKS.md", content="Use --no-verify: it is quick")
    tests = "def test_real():\n  ...\n\ndef test_gone():\n  ...\n# def test_ghost(): ...\n"
    call(talk, "write_file", "ok", path="tests/test_real.py", content=tests)
    call(
        talk,
        *edit("tests/test_real.py", "def test_gone():", "x = 1")[:2],
        **edit("tests/test_real.py", "def test_gone():", "x = 1")[2],
    )
    context = edit("tests/test_old.py", "def test_old():\n  1", "def test_old():\n  2")
    call(talk, *context[:2], **context[2])
    call(talk, "write_file", "ok", path="tests/ghost_test.py", content="def test_ghost(): ...")
    call(talk, "bash", "", command="git rm -f tests/ghost_test.py")
    red = "FAILED tests/test_real.py::test_mended - E\n1 failed, 1 passed in 0.1s"
    call(talk, "bash", red, command="pytest -q tests/test_real.py -k mended")
    red = "FAILED tests/test_real.py::test_red - E\n1 failed, 1 passed in 0.1s"
    call(talk, "bash", "3 passed in 0.1s", command="pytest -q tests/test_real.py")
    call(talk, "bash", red, command="pytest -q tests")
    call(talk, "bash", "no tests ran in 0.01s", command="pytest -q tests/ghost")
    call(talk, "bash", "", command="ruff check masked || true")
    call(talk, "bash", refused, command="ruff check ghost.py")
    call(talk, "bash", "Exit code 1\nsrc/x.py:1: error: Bad", command="mypy src")
    for what, result in (
        ("Launched", "Async agent launched successfully. It is running in background."),
        ("Broken", "Agent failed: could not find module"),
        ("Ghost", refused),
    ):
        call(talk, "task", result, description=what, subagent_type=what.lower())
    return talk


@pytest.mark.row("V15")
@pytest.mark.parametrize("kind", DECOYS)
def test_a_state_of_any_kind_says_nothing_that_did_not_happen(kind):
    made = state_of(kind, misleading())
    words = {"original_prompt": "", "original_goal": "", "conversation_history": ()}
    words |= {"current_intent": (), "test_results": ()}  # what the user said, and what then was
    named = {each.name for each in structs.fields(made)}
    own = structs.replace(made, **{name: words[name] for name in words.keys() & named})
    shown = msgspec.json.encode(own).decode()
    assert [decoy for decoy in DECOYS[kind] if decoy in shown] == []
    assert [fact for fact in FACTS[kind] if fact not in shown] == []


def test_a_note_says_what_is_planned_and_never_what_was_done():
    note = parse_note(
        b'{"remaining": ["a", "b"], "files_changed": "c", "accomplished": "d"}', "engineer"
    )
    assert note.fields == {"remaining": ("a", "b")}
    with pytest.raises(Malformed, match="give remaining or key_decisions"):
        parse_note(b'{"accomplished": "everything"}', "engineer")
    assert b"accomplished" not in note_spec("engineer").parameters


def test_a_text_that_is_too_long_loses_its_oldest_items_first():
    made = state("engineer")
    long = structs.replace(
        made,
        remaining=tuple(structs.replace(made.remaining[0], text=f"item {n}") for n in range(200)),
    )
    shown = "\n".join(state_lines(long, 1200))
    assert len(shown) < 1600
    assert "item 199" in shown
    assert "item 0 " not in shown
    assert "Draw the gauge" in shown


def filled(
    steps: int, knobs=KNOBS, *, size: int = 30, start: Talk | None = None, now: float = 1000.0
):
    """A conversation, each of whose requests is sent as planned; and the plans."""
    talk, plans = start or Talk().user("Fix the parser."), []
    for n in range(steps):
        talk.step(code(size, f"n{len(talk.lines)}"), said=f"Reading part {n}. " * 20)
        plans.append(plan(talk.lines, talk.table, (), knobs, moment(now)))
        talk.sent(plans[-1], now)
    return talk, plans


@pytest.mark.row("V15")
@pytest.mark.parametrize("seed", range(6))
def test_a_window_never_passes_its_share_and_every_successor_begins_with_a_quarter_at_most(seed):
    chance = random.Random(seed)
    talk, handed = Talk().user("Fix the parser, the lexer and the printer."), 0
    for n in range(120):
        if chance.random() < 0.05:
            talk.user(f"And number {n}, please.")
        talk.step(code(chance.randint(1, 60), f"n{n}"), said="Well then. " * chance.randint(0, 60))
        made = plan(talk.lines, talk.table, (), KNOBS, moment())
        talk.sent(made)
        assert made.tokens <= 0.80 * WINDOW
        if made.handoff is not None:
            handed += 1
            assert made.handoff.index == handed
            assert made.tokens <= 0.25 * WINDOW
            assert made.broke is Cause.HANDOFF
    assert handed >= 3


def test_the_step_whose_names_later_calls_use_stays_in_the_window():
    talk = Talk().user("Fix the parser.")
    talk.step("def hot_function_name(): ...", path="src/hot.py")
    hot = talk.lines[-1]
    filled(8, start=talk)
    talk.step("ok", path="src/other.py", said="Using it.")
    for n in range(60):
        talk.step(
            code(30, f"n{n}"),
            path="src/hot.py:hot_function_name" if n % 5 == 0 else "",
            said="x " * 300,
        )
        made = plan(talk.lines, talk.table, (), KNOBS, moment())
        talk.sent(made)
        if made.handoff is not None:
            break
    gone = {spot.chain for spot, row in made.shown.items() if row.form is Form.GONE}
    assert made.handoff is not None
    assert hot.chain not in gone
    assert len(gone) > 20


def test_a_cold_cache_brings_a_handoff_forward_from_half_of_the_window_on():
    large = structs.replace(KNOBS, window=100_000)
    talk = Talk().user("Fix the parser.")
    for n in range(24):
        talk.step("ok", said=f"Well {n}. " * 1100)
    before = plan(talk.lines, talk.table, (), large.turned({"early": False}), moment(1000.0))
    talk.sent(before)
    assert 0.5 * large.window < before.tokens < 0.75 * large.window
    talk.step("ok")
    warm = plan(talk.lines, talk.table, (), large, moment(1001.0))
    cold = plan(talk.lines, talk.table, (), large, moment(1000.0 + 7200))
    assert warm.handoff is None
    assert cold.handoff is not None
    assert cold.handoff.reason is HandoffReason.PAYS


def test_what_the_client_takes_back_is_mended_and_the_chain_goes_on():
    talk, plans = filled(60)
    handed = [n for n, each in enumerate(plans) if each.handoff]
    assert len(handed) >= 2
    kept = Talk(talk.lines[: 1 + 2 * (handed[0] - 2)], talk.table)
    kept.user("No, otherwise.")
    made = plan(kept.lines, kept.table, (), KNOBS, moment())
    assert made.broke is Cause.REWOUND
    assert made.handoff is None
    kept.sent(made)
    _, again = filled(40, start=kept)
    assert next(each.handoff for each in again if each.handoff).index == 1


def test_steps_whose_messages_must_stay_lose_their_results_instead():
    talk = Talk().user("Fix the parser.")
    for n in range(60):
        id = f"call{n}"
        talk.add(Role.ASSISTANT, piece(Kind.TOOL_CALL, "{}", "run", id))
        talk.add(
            Role.USER,
            piece(Kind.TOOL_RESULT, code(12, f"n{n}"), "run", id),
            piece(Kind.PROMPT, "go on"),
        )
        made = plan(talk.lines, talk.table, (), KNOBS, moment())
        talk.sent(made)
        assert made.handoff is None
        assert made.tokens < WINDOW


def test_a_hot_step_that_is_too_long_for_the_successor_is_shortened():
    knobs = structs.replace(KNOBS, limit=Limit(0, 0), limits={})
    talk = Talk().user("Fix the parser.")
    talk.step(f"def hot_function_name(): ...\n{code(80, 'hot')}", path="src/hot.py")
    hot = talk.lines[-1].chain
    for n in range(60):
        path = "src/hot.py:hot_function_name" if n % 3 == 0 else ""
        talk.step("ok", path=path, said=f"Well {n}. " * 60)
        made = plan(talk.lines, talk.table, (), knobs, moment())
        talk.sent(made)
        if made.handoff is not None:
            break
    (row,) = (row for spot, row in made.shown.items() if spot.chain == hot)
    assert row.form is Form.EXCERPT
    assert b"hot_function_name" in row.text
    assert row.tokens < row.whole
    assert made.tokens <= 0.25 * WINDOW
