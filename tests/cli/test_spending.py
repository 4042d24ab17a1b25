"""What the file says of money and of single clients, as `hotset status` shows it of a real
proxy."""

from __future__ import annotations

import json
import urllib.request
from contextlib import closing
from typing import Any

import pytest

from hotset.store.sqlite import SqliteStore
from tests.cli.conftest import Desk
from tests.waiting import wait_until

WORDS = "a prompt of some length that costs something, said more than once. " * 100
TOOL = {"name": "read_file", "input_schema": {"type": "object", "properties": {}}}


def post(ready: dict[str, Any], session: str, agent: str = "some-agent/1.0") -> bytes:
    """One call of an agent, as it sent it."""
    body = json.dumps(
        {
            "model": "claude-sonnet-5",
            "max_tokens": 100,
            "tools": [TOOL],
            "messages": [{"role": "user", "content": f"{session}: {WORDS}"}],
        }
    ).encode()
    headers = {
        "content-type": "application/json",
        "x-api-key": "k",
        "x-hotset-session": session,
        "user-agent": agent,
    }
    url = f"{ready['anthropic_base_url']}/v1/messages"
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as reply:
        assert reply.status == 200
        reply.read()
    return body


def alerts(desk: Desk) -> dict[str, Any]:
    return {each["name"]: each for each in desk.run("status", "--json").json()["proxy"]["alerts"]}


def raised(desk: Desk) -> list[tuple[str, str | None]]:
    with closing(SqliteStore.open(desk.data)) as store:
        return [
            (str(each.detail["name"]), each.session)
            for each in store.events()
            if each.name == "Alert"
        ]


@pytest.mark.row("C8")
@pytest.mark.slow
def test_what_a_day_and_a_session_may_cost_is_told_once_each_over_all_proxies(
    desk: Desk, to_upstream
):
    (desk.home / "config.toml").write_text(
        "[alerts]\ndollars_per_day = 0.001\ndollars_per_session = 0.0015\n"
    )

    with desk.serving(env=to_upstream) as ready:
        post(ready, "one")
        wait_until(lambda: alerts(desk).keys() == {"dollars_per_day", "dollars_per_session"})
        post(ready, "two")
        wait_until(lambda: len(raised(desk)) == 3)
        told = desk.run("status").out
    with desk.serving(env=to_upstream) as ready:
        assert alerts(desk) == {}  # nothing was spent since it started
        post(ready, "one")
        wait_until(lambda: alerts(desk))
        assert alerts(desk)["dollars_per_day"]["value"] > 0.003  # the first proxy's calls count

    assert "alert    dollars_per_day is" in told
    assert sorted(name for name, _ in raised(desk)) == [
        "dollars_per_day",
        "dollars_per_session",
        "dollars_per_session",
    ]
    assert len(set(raised(desk))) == 3


def test_a_client_that_is_off_in_the_file_is_passed_on_untouched_and_the_others_are_not(
    desk: Desk, to_upstream, upstream
):
    (desk.home / "config.toml").write_text(
        '[clients.codex]\noff = true\n[clients.aider]\nprofile = "lean"\nbudget = 50_000\n'
    )

    with desk.serving(env=to_upstream) as ready:
        sent = [post(ready, agent, agent) for agent in ("codex_cli_rs/0.9", "codexer/1", "aider/1")]
        told = desk.run("status")

    received = [each.decoded for each in upstream.requests]
    assert [got == given for got, given in zip(received, sent, strict=True)] == [True, False, False]
    assert "client   codex: off\n" in told.out
    assert "client   aider: profile lean, at most 50,000 tokens\n" in told.out
