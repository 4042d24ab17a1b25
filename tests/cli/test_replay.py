"""`hotset replay`: recorded sessions in, one row a policy out."""

from __future__ import annotations

import gzip
import json
import os
import pty
import signal
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest

from hotset.nouns.knobs import StateName
from tests.cli.conftest import Desk

PROMISED = {
    *(
        "tokens_pct",
        "cost_pct",
        "faults_per_100",
        "cost_with_faults_pct",
        "miss_pct",
        "hit_pct",
        "mean_prompt",
        "peak_prompt",
    ),
    *("over_window_pct", "prefix_breaks", "plan_ms_p95"),
}
USUAL = ["default", "full", "truncate", "mask", "clear_tool_uses", "compact", "evict25"]


def text(part: int) -> str:
    lines = (f"a line that says number {number} of part {part}" for number in range(60))
    return "\n".join((f"part_{part}", *lines))


def messages(steps: int) -> list[dict[str, Any]]:
    """OpenAI messages of an agent that reads files."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "Mend the clock."}]
    for number in range(steps):
        call = {"name": "read", "arguments": json.dumps({"path": f"src/part_{number}.py"})}
        said += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"c{number}", "content": text(number)},
        ]
    return [*said, {"role": "assistant", "content": "Mended."}]


def write(path: Path, steps: int = 30) -> Path:
    path.parent.mkdir(exist_ok=True)
    raw = json.dumps({"model": "gpt-4o", "messages": messages(steps)}).encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


@pytest.fixture
def session(tmp_path: Path) -> str:
    return str(write(tmp_path / "clock.json"))


@pytest.mark.row("X6")
def test_json_is_one_object_with_every_promised_figure_for_every_policy(desk: Desk, session: str):
    ran = desk.run("replay", session, "--window", "9000", "--json")

    told = ran.json()
    assert (ran.code, ran.err) == (0, "")
    assert (told["set"], told["sessions"], told["calls"], list(told["policies"])) == (
        "clock",
        1,
        31,
        USUAL,
    )
    assert all(set(row) >= PROMISED for row in told["policies"].values())
    assert told["policies"]["full"]["cost_with_faults_pct"] == 100.0
    assert told["policies"]["default"]["cost_with_faults_pct"] < 100.0
    assert (
        told["policies"]["default"]["peak_prompt"] <= 9000 < told["policies"]["full"]["peak_prompt"]
    )


def test_several_sets_are_a_list_in_the_order_in_which_they_came(desk: Desk, tmp_path: Path):
    first, second = write(tmp_path / "b.json", 4), write(tmp_path / "a.json.gz", 5)
    told = desk.run("replay", str(first), str(second), "--policy", "full", "--json").json()

    assert [(each["set"], each["calls"]) for each in told] == [("b", 5), ("a", 6)]


def test_policies_are_chosen_by_name_and_all_of_them_by_all(desk: Desk, session: str):
    some = desk.run("replay", session, "--policy", "topic", "--policy", "full", "--json").json()
    every = desk.run("replay", session, "--policy", "all", "--json").json()

    assert list(some["policies"]) == ["topic", "full"]
    assert set(every["policies"]) == {
        *USUAL,
        "recency",
        "use",
        "size",
        "topic",
        "task",
        "iterations",
        "lean",
        "librarian",
        "archivalist",
        "academic",
        "architect",
        *get_args(StateName),
    }


def test_the_table_has_a_row_a_policy_and_a_sentence_beside_the_data(desk: Desk, session: str):
    ran = desk.run("replay", session, "--window", "9000")

    title, *_, last = ran.out.splitlines()
    assert title == "clock: 1 of 1 session, 31 calls, a window of 9,000 tokens"
    assert [line.split()[0] for line in ran.out.splitlines()[3:]] == USUAL
    assert last.startswith("evict25")
    assert ran.err.startswith("On this session hotset would have cost")
    assert desk.run("replay", session, "--window", "9000", "--quiet").err == ""


def test_no_figure_of_the_table_is_cut_where_the_terminal_is_narrow(desk: Desk, session: str):
    ran = desk.run("replay", session, "--window", "9000", env={"COLUMNS": "60"})

    assert "…" not in "".join(ran.out.splitlines()[1:])
    assert all(len(line.split()) == 11 for line in ran.out.splitlines()[3:])


def test_sessions_that_fit_the_window_count_only_where_all_are_asked_for(
    desk: Desk, tmp_path: Path
):
    folder = tmp_path / "runs"
    for name, steps in (("long", 30), ("short", 3), ("middle", 10)):
        write(folder / f"{name}.json", steps)

    told = desk.run("replay", str(folder), "--window", "9000", "--policy", "full", "--json").json()
    every = desk.run(
        "replay", str(folder), "--window", "9000", "--policy", "full", "--all", "--json"
    ).json()

    assert (told["set"], told["sessions"], told["sessions_read"]) == ("runs", 1, 3)
    assert (every["sessions"], every["sessions_read"]) == (3, 3)


def test_the_provider_s_rules_decide_what_a_broken_prefix_costs(desk: Desk, session: str):
    cost = {
        provider: desk.run(
            "replay",
            session,
            "--window",
            "9000",
            "--policy",
            "mask",
            "--provider",
            provider,
            "--json",
        ).json()
        for provider in ("anthropic", "openai")
    }

    assert (
        cost["anthropic"]["policies"]["mask"]["cost_pct"]
        > cost["openai"]["policies"]["mask"]["cost_pct"]
    )


def test_prices_of_the_user_s_own_hold(desk: Desk, session: str):
    before = desk.run("replay", session, "--policy", "full", "--json").json()["policies"]["full"]
    (desk.home / "config.toml").write_text('[prices."gpt-4o*"]\nread = 1.0\n')
    after = desk.run("replay", session, "--policy", "full", "--json").json()["policies"]["full"]

    assert before["hit_pct"] > 0
    assert after["hit_pct"] == 0


def test_a_file_that_is_no_session_is_told_with_what_would_be_one(desk: Desk, tmp_path: Path):
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"colour": "red"}')
    ran = desk.run("replay", str(wrong))

    assert (ran.code, ran.raw) == (2, b"")
    assert (
        "wrong.json: it holds a JSON object with colour, which is no session; read are: " in ran.err
    )
    assert desk.run("replay", str(write(tmp_path / "right.json", 4)), str(wrong)).code == 2
    assert desk.run("replay", str(tmp_path / "nothing.json")).code == 2
    assert desk.run("replay").code == 2


def test_what_else_lies_in_a_folder_is_passed_over_and_told(desk: Desk, tmp_path: Path):
    folder = tmp_path / "runs"
    write(folder / "a.json", 4)
    for number in range(7):
        (folder / f"note{number}.json").write_text('{"colour": "red"}')
    ran = desk.run("replay", str(folder), "--policy", "full")

    assert ran.code == 0
    assert ran.err.count("passed over: ") == 5
    assert "and 2 more like these" in ran.err
    (folder / "a.json").unlink()
    assert desk.run("replay", str(folder)).code == 2


def test_sessions_without_a_reply_are_a_finding(desk: Desk, tmp_path: Path):
    silent = tmp_path / "silent.json"
    silent.write_text(
        json.dumps([{"role": "user", "content": "hello"}, {"role": "user", "content": "anybody?"}])
    )
    ran = desk.run("replay", str(silent))

    assert (ran.code, ran.raw) == (1, b"")
    assert "no model replies" in ran.err


@pytest.mark.parametrize(
    "flags", [("--policy", "magic"), ("--window", "0"), ("--ttl", "-1"), ("--provider", "acme")]
)
def test_an_option_that_cannot_be_meant_is_a_usage_error(
    desk: Desk, session: str, flags: tuple[str, str]
):
    ran = desk.run("replay", session, *flags)

    assert (ran.code, ran.raw) == (2, b"")
    assert flags[0] in ran.err


def test_progress_is_shown_to_a_person_and_ctrl_c_ends_it_in_a_word(desk: Desk, tmp_path: Path):
    folder = tmp_path / "runs"
    for number in range(4000):
        write(folder / f"{number}.json", 40)
    leader, follower = pty.openpty()
    running = desk.start(
        "replay",
        str(folder),
        "--policy",
        "all",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=follower,
    )
    os.close(follower)
    seen = b""
    while b"reading" not in seen:
        seen += os.read(leader, 4096)
    running.send_signal(signal.SIGINT)
    try:  # reading on: a terminal that nobody reads holds up whoever writes to it
        while more := os.read(leader, 4096):
            seen += more
    except OSError:  # how a terminal says that nobody is left on its other side
        pass
    finally:
        os.close(leader)
    running.wait(120)
    assert running.stdout is not None
    with running.stdout as stdout:
        assert (running.returncode, stdout.read()) == (130, b"")
    assert b"hotset: stopped" in seen
    assert b"Traceback" not in seen


def test_a_knob_that_is_set_gets_a_row_of_its_own_and_the_table_says_what_differs(
    desk: Desk, session: str
):
    ran = desk.run(
        "replay",
        session,
        "--window",
        "9000",
        "--set",
        "keep=9",
        "--set",
        "forms.logs_share=0.3",
        "--policy",
        "default",
    )

    assert ran.code == 0
    rows = [line.split()[0] for line in ran.out.splitlines() if line.startswith("default")]
    assert rows == ["default", "default+set", "default+set:"]
    assert "default+set: keep 9 instead of 4, forms.logs_share 0.3 instead of 0.2" in ran.out

    told = desk.run("replay", session, "--window", "9000", "--set", "keep=9", "--json").json()
    assert list(told["policies"]) == ["default", "default+set", *USUAL[1:]]
    assert told["knobs"] == {"default+set": {"keep": 9}}
    assert told["policies"]["default+set"]["cost_pct"] > told["policies"]["default"]["cost_pct"]
    assert desk.run("replay", session, "--json").json()["knobs"] == {}


def test_a_knob_that_a_replay_cannot_judge_is_named(desk: Desk, session: str):
    ran = desk.run(
        "replay", session, "--window", "9000", "--set", "memory.reminders=9", "--policy", "default"
    )

    assert (ran.code, "memory.reminders had no effect" in ran.err) == (0, True)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("kep=8", "--set cannot say 'kep'"),
        ("kep=8", "Did you mean keep?"),
        ("form.topics=2", "Did you mean forms.topics?"),
        ("window=5000", "--set cannot say 'window'"),
        ("keep", "--set 'keep' must look like keep=8"),
        ("keep=", "--set 'keep=' must look like keep=8"),
        ("keep=many", "keep of --set must be a whole number from 1 to 10000, not 'many'"),
        ("forms.logs_share=2", "forms.logs_share of --set must be a share, from 0 to 1, not 2"),
        (
            "policy=random",
            "policy of --set must be one of recency, use, size, topic, task, not 'random'",
        ),
        (
            "low=0.99",
            "--set: low (0.99), what stays when pages leave, must not be above high (0.95)",
        ),
    ],
)
def test_a_knob_that_cannot_be_set_is_refused_with_what_is_allowed(
    desk: Desk, session: str, setting: str, says: str
):
    ran = desk.run("replay", session, "--set", setting)

    assert ran.code == 2
    assert says in " ".join(ran.err.split())


@pytest.mark.row("V5")
def test_a_profile_of_the_user_s_own_is_a_policy_to_replay(desk: Desk, session: str):
    (desk.home / "config.toml").write_text("[profiles.reviewer]\nbase = 'lean'\nkeep = 6\n")

    told = desk.run("replay", session, "--policy", "reviewer", "--policy", "lean", "--json").json()

    assert list(told["policies"]) == ["reviewer", "lean"]
    assert told["policies"]["reviewer"] != told["policies"]["lean"]


def test_knobs_are_set_for_policies_of_ours_only(desk: Desk, session: str):
    ran = desk.run("replay", session, "--policy", "full", "--set", "keep=8")

    assert (ran.code, "add --policy default" in ran.err) == (2, True)
