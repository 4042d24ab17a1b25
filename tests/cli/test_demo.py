"""`hotset demo`: a real proxy, a real kill, real numbers; no key and no network."""

from __future__ import annotations

import re
import signal
import subprocess

import pytest

from hotset.testing.demo.show import empty_folder
from tests.cli.conftest import Desk
from tests.waiting import wait_until


@pytest.mark.slow
def test_the_demonstration_shows_that_nothing_is_lost_and_goes_on_serving(desk: Desk):
    log = desk.home / "demo.log"
    with log.open("wb") as out:
        shown = desk.start("demo", "--fast", stdout=out, stderr=subprocess.STDOUT)
    wait_until(lambda: "Stop with Ctrl-C" in log.read_text() or shown.poll() is not None)

    told = log.read_text()
    survived = re.search(r"(\d+) of (\d+) replies survived kill -9", told)
    assert survived is not None, told
    assert survived[1] == survived[2]
    assert "the session went on as one" in told
    assert "byte for byte what the tool gave back" in told
    assert "NOT" not in told
    sessions = desk.run("sessions", "--json", "--data", str(desk.data / "demo")).json()
    assert [(line["session"]["dialect"], line["branches"]) for line in sessions] == [
        ("openai-responses", 1),
        ("anthropic", 2),
    ]
    assert [
        path.name for path in (desk.data / "demo").iterdir() if path.stat().st_mode & 0o077
    ] == []
    assert desk.run("status", "--json").json()["proxy"]["pid"] == shown.pid
    assert desk.run("sessions", "--json").json() == []
    shown.send_signal(signal.SIGINT)
    assert shown.wait(120) == 0


def test_a_folder_that_is_not_the_demonstration_s_own_is_left_alone(desk: Desk):
    mine = desk.data / "demo" / "precious.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")

    ran = desk.run("demo", "--once", "--fast")

    assert ran.code == 2
    assert "choose another folder with --data" in ran.err
    assert mine.read_text() == "mine"


def test_a_demonstration_begins_with_an_empty_folder(tmp_path):
    folder = empty_folder(tmp_path / "demo")
    (folder / "left.over").touch()

    assert [path.name for path in empty_folder(folder).iterdir()] == [".demo"]
    assert folder.stat().st_mode & 0o777 == 0o700
