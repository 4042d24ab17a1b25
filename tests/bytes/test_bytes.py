"""The bytes that go upstream are those that were recorded. `HOTSET_RECORD_BYTES=1` records them
anew, without `-n`."""

from __future__ import annotations

import json
import os

import pytest

from tests.bytes.recording import difference, load, save
from tests.bytes.sessions import SESSIONS
from tests.bytes.stage import Stage

RECORDING = os.environ.get("HOTSET_RECORD_BYTES") == "1"


@pytest.mark.slow
@pytest.mark.parametrize("name", SESSIONS)
def test_a_recorded_session_sends_the_same_bytes(name, tmp_path):
    with Stage(tmp_path) as stage:
        SESSIONS[name](stage)
        sent = stage.bodies
    recorded = load()
    if RECORDING:
        assert "PYTEST_XDIST_WORKER" not in os.environ, (
            "record without -n: all sessions are in one file"
        )
        save({**{each: recorded[each] for each in SESSIONS if each in recorded}, name: sent})
        return
    if found := difference(recorded[name], sent):
        pytest.fail(f"{name}, {found}", pytrace=False)


def test_every_session_is_recorded():
    assert RECORDING or load().keys() == SESSIONS.keys()


def test_a_difference_names_the_call_and_shows_where_it_begins():
    then = json.dumps(
        {"model": "m", "messages": [{"content": "a\nb\n" + "x" * 500 + "c"}]}
    ).encode()
    found = difference([b"{}", then], [b"{}", then.replace(b"xc", b"xd")])

    assert found.startswith("call 2 of 2:\n")
    assert any(line.startswith("- ") and "xc" in line for line in found.splitlines())
    assert any(line.startswith("+ ") and "xd" in line for line in found.splitlines())
    assert len(found) < 2000


def test_a_difference_in_spelling_alone_is_one():
    assert "+ " in difference([b'{"a": 1}'], [b'{"a":1}'])
    assert difference([b"{}"], [b"{}", b"{}"]) == "1 calls were recorded, 2 were sent"
    assert not difference([b"{}"], [b"{}"])
