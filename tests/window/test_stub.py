"""What stays of steps that left."""

from __future__ import annotations

import base64
import json
import re

import pytest

from hotset.nouns.knobs import FormKnobs, Knobs
from hotset.nouns.page import Kind, Role
from hotset.nouns.window import Line, Spot, Stub
from hotset.window.leave import (
    bare_reference,
    fold_log,
    log_entries,
    reference,
    stretch_text,
    stub_of,
)
from hotset.window.names import names
from tests.window.talk import Talk, code, moment, piece


def _log(talk: Talk, knobs: Knobs | None = None) -> list[str]:
    steps: list[tuple[int, list[Line]]] = []
    for line in talk.lines:
        if line.role is Role.ASSISTANT:
            steps.append((len(steps) + 1, [line]))
        elif steps:
            steps[-1][1].append(line)
    return list(log_entries(steps, knobs or Knobs()))


def _stub(
    talk: Talk, turns: tuple[int, int], forms: FormKnobs | None = None, now: float = 60.0
) -> Stub:
    spots = [Spot(line.chain, -1) for line in talk.lines]
    return stub_of(spots, talk.lines, turns, (), forms=forms or FormKnobs(), moment=moment(now))


def _many(functions: int) -> str:
    """Functions whose names have nothing in common."""
    return "\n".join(
        code(1, f"of_{chr(97 + n // 26)}{chr(97 + n % 26)}_length") for n in range(functions)
    )


def _call(
    talk: Talk, tool: str, result: str = "ok", kind: Kind = Kind.TOOL_RESULT, **arguments: object
) -> Talk:
    talk.add(Role.ASSISTANT, piece(Kind.TOOL_CALL, json.dumps(arguments), tool, "c"))
    return talk.add(Role.TOOL, piece(kind, result, tool, "c"))


def test_short_arguments_stand_in_the_log_with_their_names_where_the_tool_does_not_tell_them():
    [grep] = _log(_call(Talk(), "Grep", pattern="x", path="src", output_mode="count", head_limit=5))
    [read] = _log(_call(Talk(), "Read", file_path="src/a.py", offset=120, limit=40))
    [wait] = _log(_call(Talk(), "wait", ids=["a", "b"], note="so long a text " * 6))

    assert grep.split("\n") == ["1. [Grep]", "x", "path=src output_mode=count head_limit=5"]
    assert read.split("\n") == ["1. [Read]", "src/a.py", "offset=120 limit=40"]
    assert wait.split("\n") == ["1. [wait]", "ids=a ids=b", ("so long a text " * 6).strip()]


def test_arguments_stand_in_the_log_as_they_were_written_each_on_its_own_lines():
    command = "cat > probe.py <<'EOF'\nimport probe_module\nEOF\npython3 probe.py"
    [told] = _log(_call(Talk(), "bash", command=command, timeout=16000))

    assert told.split("\n") == ["1. [bash]", *command.split("\n"), "timeout=16000"]


def test_a_long_argument_is_told_by_its_beginning_and_the_names_in_the_rest():
    [told] = _log(_call(Talk(), "run", path="src/big_one.py", script=code(3) + _many(80)))

    assert "\nsrc/big_one.py\ndef f_0(a, b):\n    return a + b + 0\n" in told
    assert " …\n… " in told
    assert len(told) < 600


def test_what_a_call_wrote_is_told_at_length_and_what_it_replaced_hardly_at_all():
    old, new = code(40, "before"), code(40, "after")
    [told] = _log(_call(Talk(), "edit", path="src/a.py", edits=[{"oldText": old, "newText": new}]))

    assert new.strip() in told
    assert "after_39" in told
    assert "before_9(" not in told


def test_less_of_what_was_written_is_told_in_a_small_window():
    talk = _call(Talk(), "write", path="src/a.py", content=code(90))

    assert len(_log(talk, Knobs(window=64_000))[0]) < len(_log(talk)[0]) - 1000


def test_open_tasks_of_a_list_stay_word_for_word():
    plan = (
        "# Plan\n"
        + code(200)
        + "\n- [x] Read the code\n- [ ] Split `main()` in two\n  - [ ] Write the tests for both\n"
    )
    [written] = _log(_call(Talk(), "write", path="PLAN.md", content=plan))
    [read] = _log(_call(Talk(), "read", plan, Kind.FILE, path="PLAN.md"))

    for told in (written, read):
        assert "\n- [ ] Split `main()` in two\n- [ ] Write the tests for both\n" in told
        assert "- [x]" not in told


def test_more_names_of_a_file_are_told_than_of_what_a_shell_printed():
    text = _many(400)
    [read] = _log(_call(Talk(), "read", text, Kind.FILE, path="src/a.py"))
    [printed] = _log(_call(Talk(), "bash", text, Kind.FILE, command="cat src/a.py"))

    assert len(list(names(read))) > 2 * len(list(names(printed)))


def test_what_went_wrong_and_what_was_named_is_told_and_no_name_twice():
    talk = _call(
        Talk(),
        "run",
        "all fine\nTypeError: bad_value in load_rows\nsrc/rows.py src/rows.py",
        command="go",
    )
    first, second = _log(_call(talk, "run", "src/rows.py other_rows.py", command="again"))

    assert "-> TypeError: bad_value in load_rows" in first
    assert "src/rows.py" in first
    assert "src/rows.py" not in second
    assert "other_rows.py" in second


def test_what_nobody_copies_is_not_told_of_a_result():
    blob = base64.b64encode(bytes(range(256)) * 20).decode()
    log = "\n".join(
        f"2026-11-03T09:00:01.{n:03}Z order ord_{n:05} took 0.{n:03}s" for n in range(200)
    )
    told = [
        _log(_call(Talk(), "run", text, command="go"))[0].split("\n")[2:]
        for text in (blob, f"\ufffd\x01 k{blob}\x00" * 9, log)
    ]

    assert told == [[], [], ["-> ord_00000 (200 alike)"]]


def test_an_image_leaves_a_word():
    [told] = _log(_call(Talk(), "screenshot", "\x89PNG", kind=Kind.IMAGE))

    assert told.split("\n") == ["1. [screenshot]", "-> image"]


def test_a_stretch_says_what_it_was_how_much_and_how_to_get_it_back():
    talk = Talk().step(code(30), path="src/steps.py")
    stub = _stub(talk, (3, 4))

    text = stretch_text(stub, ["3. looked"], "- it was fine")

    assert text.split("\n")[1:] == [
        "- it was fine",
        "Done there, by turn:",
        "3. looked",
    ]
    assert reference(stub).startswith(
        f"[CTX-REF:tool_results | turns 3-4 ({stub.tokens:,} tokens) @ 1970-01-01 "
        f"00:01 | run src/steps.py | Topics: src/steps.py"
    )
    assert f'retrieve_context(id="{stub.id}")' in text
    assert set(stub.topics) <= set(names(" ".join([code(30), "src/steps.py"])))


def test_a_reference_is_one_line_that_tells_what_its_topics_do_not():
    names_in_it = (
        " ".join(f"src/part_{word}.py" for word in "abcdefg") + " OrderHandler load_rows load_rows"
    )
    talk = _call(Talk(), "grep", names_in_it, pattern="charge_card", path="src/part_a.py")
    stub = _stub(talk, (3, 3), now=1_800_000_000.0)
    told = reference(stub)

    form = (
        r"\[CTX-REF:tool_results \| turn 3 \([\d,]+ tokens\) @ (.+?) \| [^|]+ \| (.+) \| "
        r"retrieve_context\(id=\"(\w+)\"\)\]"
    )
    found = re.fullmatch(form, told)
    assert found is not None
    assert (found[1], found[3]) == ("2027-01-15 08:00", stub.id)
    about = dict(part.split(": ") for part in found[2].split(" | "))
    assert about["Ask for"] == "charge_card"
    assert "load_rows" in about["Entities"].split(", ")
    said = [name for names in about.values() for name in names.split(", ")]
    assert len(said) == len(set(said))
    assert len(told) < 340


def test_a_reference_says_nothing_twice_where_its_topics_tell_all():
    talk = _call(Talk(), "read", "ok", path="src/rows.py")
    stub = _stub(talk, (3, 3))

    assert reference(stub).endswith(f'| Topics: src/rows.py | retrieve_context(id="{stub.id}")]')


@pytest.mark.row("V4")
@pytest.mark.parametrize(
    ("kind", "result", "said"),
    [
        ("code_analysis", Kind.FILE, "Reading."),
        ("research", Kind.WEB_FETCH, "Reading."),
        ("tool_results", Kind.TEST_RESULT, "Running."),
        ("conversation", Kind.TOOL_RESULT, "The cause is this: " + "it never sleeps. " * 40),
    ],
)
def test_a_reference_has_the_type_of_what_it_mostly_holds(kind, result, said):
    talk = Talk()
    talk.add(
        Role.ASSISTANT,
        piece(Kind.RESPONSE, said),
        piece(Kind.TOOL_CALL, '{"path": "src/a.py"}', "read", "c"),
    )
    talk.add(Role.TOOL, piece(result, "a result of some words " * 9, "read", "c"))

    assert reference(_stub(talk, (3, 3))).startswith(f"[CTX-REF:{kind} | turn 3 ")


def test_a_plan_makes_a_plan_discussion_and_its_finding_is_the_summary():
    talk = Talk()
    plan = json.dumps({"plan": [{"step": f"step {n} of the work"} for n in range(20)]})
    found = "The retry loop in src/retry.py fails because backoff_base is 0."
    talk.add(
        Role.ASSISTANT, piece(Kind.RESPONSE, found), piece(Kind.PLAN, plan, "update_plan", "c")
    )
    talk.add(Role.TOOL, piece(Kind.TOOL_RESULT, "Plan updated", "update_plan", "c"))

    told = reference(_stub(talk, (3, 3)))

    assert told.startswith("[CTX-REF:plan_discussion | ")
    assert f" | {found} | " in told


@pytest.mark.row("V4")
def test_topics_tell_one_reference_from_another_and_are_no_prose():
    text = "open_file and/or e.g. 3.11 zebra_crossing zebra_crossing src/common.py src/common.py"
    talk = _call(Talk(), "grep", f"{text} src/common.py alpha_beta", command="go")
    other = Talk()
    for _ in range(9):
        _call(other, "grep", "src/common.py open_file alpha_beta", command="go")
    spots = [Spot(line.chain, -1) for line in talk.lines]

    stub = stub_of(
        spots, talk.lines, (1, 1), other.lines, forms=FormKnobs(topics=9), moment=moment(60.0)
    )

    names_only = [name for name in stub.topics if "/" not in name]
    assert names_only == ["zebra_crossing", "open_file", "alpha_beta"]
    assert "and/or" not in stub.topics


def test_topics_are_no_row_of_numbers():
    talk = _call(
        Talk(),
        "run",
        "\n".join(f"{n * 7919 + 10000} row_{n:03}" for n in range(90)) + " balance_of",
        command="go",
    )
    stub = _stub(talk, (3, 3))

    assert set(stub.topics) == {"balance_of", "row_000"}


@pytest.mark.parametrize(
    "fine",
    [
        "-rw-r--r-- 1 ada ada 90 Jan  4 10:00 errors.py",
        "src/errors.py",
        "0 errors, 0 failed",
        "import hotset.errors_of",
    ],
)
def test_what_is_only_called_like_an_error_is_none(fine):
    [told] = _log(_call(Talk(), "run", f"{fine}\nfine", command="go"))
    [bad] = _log(_call(Talk(), "run", f"{fine}\nKeyError: no such row\nfine", command="go"))

    assert [line for line in told.split("\n") if line.startswith("-> ") and " " in line[3:]] == []
    assert "-> KeyError: no such row" in bad.split("\n")


def test_a_log_is_folded_to_the_names_in_it_and_then_to_its_reference():
    talk = _call(
        Talk(),
        "edit",
        "done",
        path="src/rows.py",
        old="a",
        new="def load_rows(path):\n    return path\n" * 20,
    )
    stub = _stub(talk, (3, 3))
    told = stretch_text(stub, _log(talk))

    once = fold_log(told, 0.5)

    assert once.split("\n")[0] == reference(stub)
    assert {"load_rows", "src/rows.py"} <= set(names(once.split("\n")[1]))
    assert len(once) < len(told)
    assert fold_log(once, 0.5) == bare_reference(told) == reference(stub)
    assert fold_log(reference(stub), 0.5) == reference(stub)
    earlier = f"{reference(stub)}\nNames that came up there: load_rows src/rows.py"
    assert fold_log(earlier, 0.5) == reference(stub)  # as an earlier version wrote it


def test_how_many_names_a_reference_has_is_a_knob():
    names_in_it = " ".join(f"src/part_{word}.py" for word in "abcdefg")
    talk = _call(Talk(), "grep", names_in_it, pattern="charge_card", path="src/part_a.py")

    assert len(_stub(talk, (3, 3)).topics) == 5
    few = _stub(talk, (3, 3), FormKnobs(topics=2, entities=3, hints=0))
    assert (len(few.topics), len(few.entities), few.hints) == (2, 3, ())
