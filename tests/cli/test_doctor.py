"""`hotset doctor` finds what fails in silence."""

from __future__ import annotations

import json
import time
from contextlib import closing

import apsw
import pytest

from hotset.nouns.turn import Event
from hotset.store.sqlite import SqliteStore
from hotset.store.store_files import DATABASE
from tests.cli.conftest import Desk, Ran, Served
from tests.cli.test_serving import ASK, python


def findings(ran: Ran, about: str) -> list[tuple[str, str]]:
    return [
        (each["level"], each["says"]) for each in ran.json()["findings"] if each["about"] == about
    ]


def worst(ran: Ran, about: str) -> str:
    return max((level for level, _ in findings(ran, about)), key=["ok", "warn", "fail"].index)


@pytest.mark.slow
def test_all_is_well_once_an_agent_s_calls_are_kept(desk: Desk, to_upstream):
    with desk.serving(env=to_upstream):
        desk.run("wrap", *python(ASK), env=to_upstream)
        ran = desk.run("doctor", "--json", env=to_upstream)

    assert (ran.code, ran.json()["level"]) == (0, "ok")
    assert {
        "proxy",
        "version",
        "traffic",
        "folder",
        "token",
        "disk",
        "sqlite",
        "format",
        "store",
        "bypassed",
    } <= {each["about"] for each in ran.json()["findings"]}


def test_every_finding_is_a_line_and_every_trouble_says_what_to_do(filled: Desk):
    ran = filled.run("doctor", env={"ANTHROPIC_BASE_URL": "https://elsewhere.example.com/v1"})

    lines = ran.out.splitlines()
    assert ran.code == 1
    assert all(line.startswith(("ok", "warn", "fail", " ")) for line in lines)
    assert sum(line.startswith(("warn", "fail")) for line in lines) == sum(
        "→" in line for line in lines
    )
    assert not any(
        line.startswith("ok") for line in filled.run("doctor", "--quiet").out.splitlines()
    )


def test_every_trouble_in_json_says_what_to_do(desk: Desk):
    told = desk.run("doctor", "--json").json()["findings"]

    assert all(bool(each["todo"]) == (each["level"] != "ok") for each in told)


def test_no_proxy_is_a_warning(filled: Desk):
    ran = filled.run("doctor", "--json")

    assert ran.code == 1
    assert findings(ran, "proxy") == [("warn", "no proxy serves this project")]


def test_a_note_of_a_proxy_that_is_gone_is_seen_through(filled: Desk):
    note = {
        "port": 9,
        "token": "t" * 32,
        "pid": 1,
        "nonce": "n",
        "version": "0.0.0",
        "started": 0.0,
    }
    (filled.data / "proxy.json").write_text(json.dumps(note))

    assert "left a note and is gone" in findings(filled.run("doctor", "--json"), "proxy")[0][1]


@pytest.mark.row("V17")
@pytest.mark.parametrize("name", [".", DATABASE])
def test_what_others_can_look_into_is_a_failure(filled: Desk, name: str):
    (filled.data / name).chmod(0o755 if name == "." else 0o644)

    ran = filled.run("doctor", "--json")

    assert ran.code == 2
    assert worst(ran, "folder") == "fail"


@pytest.mark.row("V17")
def test_a_token_that_others_can_read_is_a_failure(filled: Desk):
    token = filled.data / "token"
    token.write_text("x" * 32)
    token.chmod(0o640)

    ran = filled.run("doctor", "--json")

    assert ran.code == 2
    assert worst(ran, "token") == "fail"


def test_a_store_of_a_newer_hotset_is_a_failure_that_says_to_update(filled: Desk):
    connection = apsw.Connection(str(filled.data / DATABASE))
    connection.pragma("user_version", 99)
    connection.close()

    ran = filled.run("doctor", "--json")

    assert ran.code == 2
    assert findings(ran, "format")[0][1].startswith("format 99")
    assert (filled.run("sessions").code, "Traceback" in filled.run("sessions").err) == (2, False)


def test_a_store_that_cannot_be_read_is_a_failure(filled: Desk):
    (filled.data / DATABASE).write_bytes(b"garbage" * 1000)

    ran = filled.run("doctor", "--json")

    assert ran.code == 2
    assert worst(ran, "store") == "fail"


@pytest.mark.parametrize(
    ("url", "level", "says"),
    [
        ("https://elsewhere.example.com/team-secret", "warn", "past the proxy"),
        ("http://127.0.0.1:9/token", "fail", "nothing answers"),
        ("http://127.0.0.1:{port}/wrong-token", "fail", "wrong token"),
        ("{root}", "ok", "leads to this project's proxy"),
        ("{root}/v1", "warn", "ends with /v1"),
    ],
)
def test_a_base_url_is_followed_to_where_it_leads(served: Served, url, level, says):
    root = served.ready["anthropic_base_url"]
    here = url.format(root=root, port=root.split(":")[2].split("/")[0])

    ran = served.desk.run("doctor", "--json", env={**served.env, "ANTHROPIC_BASE_URL": here})

    assert worst(ran, "environment") == level
    assert says in str(findings(ran, "environment"))
    assert "secret" not in ran.out
    assert root.rsplit("/", 1)[1] not in ran.out


def test_the_machine_s_http_proxy_must_not_catch_loopback(desk: Desk):
    ran = desk.run("doctor", "--json", env={"HTTPS_PROXY": "http://proxy.example.com:3128"})

    assert worst(ran, "http proxy") == "warn"
    assert (
        findings(
            desk.run("doctor", "--json", env={"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}),
            "http proxy",
        )
        == []
    )


def test_clients_settings_are_read_and_never_quoted(desk: Desk):
    claude, codex, opencode = (
        desk.home / ".claude",
        desk.home / ".codex",
        desk.home / ".config" / "opencode",
    )
    for folder in (claude, codex, opencode):
        folder.mkdir(parents=True)
    (claude / "settings.json").write_text(
        '{"env": {"ANTHROPIC_BASE_URL": "https://a.example.com", "X": "sk-secret"}}'
    )
    (codex / "config.toml").write_text(
        'model_provider = "x"\n[model_providers.x]\nbase_url = "http://127.0.0.1:9/v1"\n'
    )
    (opencode / "opencode.jsonc").write_text(
        '{\n  // a comment\n  "provider": {"openai": {"options": {"baseURL": '
        '"https://o.example.com", "apiKey": "sk-secret"}}},}'
    )

    ran = desk.run("doctor", "--json")

    assert (worst(ran, "claude code"), worst(ran, "codex"), worst(ran, "opencode")) == (
        "warn",
        "fail",
        "ok",
    )
    assert "sk-secret" not in ran.out


def test_settings_that_are_broken_are_passed_over(desk: Desk):
    (desk.home / ".codex").mkdir()
    (desk.home / ".codex" / "config.toml").write_text("= not toml [[")
    (desk.home / ".claude").mkdir()
    (desk.home / ".claude" / "settings.json").write_text('["a list"]')

    assert desk.run("doctor", "--json").code == 1


def test_calls_that_were_not_kept_are_told_with_their_reason(filled: Desk):
    with closing(SqliteStore.open(filled.data)) as store:
        for reason in ("store: the disk is full", "store: the disk is full", "a fault of ours"):
            store.keep(Event("Bypassed", time.time(), detail={"reason": reason})).result(120)

    ran = filled.run("doctor", "--json")

    assert worst(ran, "bypassed") == "warn"
    assert "3 calls in the last week" in findings(ran, "bypassed")[0][1]
    assert "2 x store: the disk is full; 1 x a fault of ours" in findings(ran, "bypassed")[0][1]
