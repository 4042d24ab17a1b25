"""The tools that live, on disk: read, edited by hand, shared, cut off in mid-write."""

from __future__ import annotations

import json
import os
import random
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from tests.waiting import wait_until

from hotset.nouns.tool import Life, OriginKind, ToolStatus
from hotset.sources.tools.registry import (
    Registry,
    life_as_json,
    life_from,
    step,
    time_as_json,
    time_from,
)
from hotset.testing import Clock

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
HOUR = 3600.0
PROCESS = Path(__file__).with_name("life_process.py")

times = st.integers(0, 250_000_000_000_000).map(lambda ms: ms / 1000)
any_life = st.builds(
    Life,
    name=st.text(max_size=8),
    born=times,
    origin=st.sampled_from(OriginKind),
    calls=st.integers(0, 10**9),
    last_used=st.none() | times,
    seconds=st.integers(0, 10**9).map(lambda us: us / 1e6),
    failures=st.integers(0, 10**9),
    status=st.sampled_from(ToolStatus),
    inactive_since=st.none() | times,
    pinned=st.booleans(),
)


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def registry(tmp_path, clock):
    with closing(Registry(tmp_path / "tools", clock)) as opened:
        yield opened


def on_disk(registry: Registry) -> dict:
    return json.loads(registry.path.read_text("utf-8"))


def edit(registry: Registry, content: str | bytes) -> None:
    """As a person who saved the file some time ago."""
    registry.path.write_bytes(content.encode() if isinstance(content, str) else content)
    os.utime(registry.path, (NOW - 10**9, NOW - 10**9))


def damaged(registry: Registry) -> list[bytes]:
    return [
        path.read_bytes() for path in sorted(registry.path.parent.glob("registry.json.damaged-*"))
    ]


# What it holds


@pytest.mark.row("D1")
def test_each_tool_has_a_record_of_its_calls_times_and_failures(registry, clock):
    registry.used("repo__log", OriginKind.SERVER, 0.25)
    clock.advance(60)
    last = registry.used("repo__log", OriginKind.SERVER, 0.5, failed=True)

    assert last == Life(
        "repo__log",
        born=NOW,
        origin=OriginKind.SERVER,
        calls=2,
        last_used=NOW + 60,
        seconds=0.75,
        failures=1,
        status=ToolStatus.ACTIVE,
    )
    assert registry.lives() == {"repo__log": last}
    registry.flush()
    assert registry.lives() == {"repo__log": last}


@pytest.mark.row("D5")
def test_a_person_can_read_it(registry):
    registry.born("created__tidy", OriginKind.CREATED)

    assert registry.path.name == "registry.json"
    assert registry.path.read_text("utf-8") == (
        "{\n"
        '  "format": 1,\n'
        '  "tools": {\n'
        '    "created__tidy": {\n'
        '      "born": "2027-01-15T08:00:00.000Z",\n'
        '      "calls": 0,\n'
        '      "failures": 0,\n'
        '      "last_used": null,\n'
        '      "origin": "created",\n'
        '      "pinned": false,\n'
        '      "seconds": 0.0,\n'
        '      "status": "active"\n'
        "    }\n"
        "  }\n"
        "}\n"
    )


def test_an_inactive_tool_says_since_when_and_an_active_one_does_not(registry, clock):
    registry.born("created__tidy", OriginKind.CREATED)
    with registry.changing() as entries:
        entries.put(step(entries.get("created__tidy"), clock.advance(7 * HOUR)))
    assert (
        on_disk(registry)["tools"]["created__tidy"]["inactive_since"] == "2027-01-15T15:00:00.000Z"
    )

    registry.used("created__tidy", OriginKind.CREATED, 0.1)
    registry.flush()
    entry = on_disk(registry)["tools"]["created__tidy"]
    assert (entry["status"], "inactive_since" in entry) == ("active", False)


def test_only_its_owner_can_look_inside(registry):
    registry.born("created__tidy", OriginKind.CREATED)

    assert stat.S_IMODE(registry.path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in registry.path.parent.iterdir()} == {0o600}


def test_tools_that_nobody_used_are_implied(registry):
    registry.pin("repo__log", OriginKind.SERVER)
    lives = registry.lives({"repo__log": OriginKind.SERVER, "repo__diff": OriginKind.SERVER})

    assert (lives["repo__log"].pinned, lives["repo__diff"]) == (True, Life("repo__diff", born=NOW))
    assert list(registry.lives()) == ["repo__log"]


def test_looking_writes_nothing(registry):
    assert registry.lives() == {}
    assert not registry.is_pinned("repo__log")
    assert list(registry.path.parent.iterdir()) == []


def test_pins_come_and_go_and_a_removed_tool_is_forgotten(registry):
    registry.pin("repo__log", OriginKind.SERVER)
    registry.used("repo__diff", OriginKind.SERVER, 0.1)
    assert registry.is_pinned("repo__log")
    registry.unpin("repo__log")
    assert not registry.is_pinned("repo__log")
    assert registry.unpin("unheard-of") is None

    registry.remove("repo__log", "repo__diff", "unheard-of")
    assert registry.lives() == {}


def test_a_tool_that_is_written_anew_has_its_record_and_a_new_life(registry, clock):
    registry.used("created__tidy", OriginKind.CREATED, 1.0)
    clock.advance(9 * HOUR)
    again = registry.born("created__tidy", OriginKind.CREATED)

    assert (again.born, again.calls, again.status) == (NOW + 9 * HOUR, 1, ToolStatus.ACTIVE)


@given(any_life)
def test_a_life_comes_back_as_it_was_written(life):
    assert life_from(life.name, json.loads(json.dumps(life_as_json(life)))) == life


@given(times)
def test_a_time_comes_back_as_it_was_written(when):
    assert time_from(time_as_json(when)) == when


# Uses


def test_a_use_is_on_disk_soon_without_anybody_asking(registry):
    registry.used("repo__log", OriginKind.SERVER, 0.1)

    wait_until(registry.path.exists)
    assert on_disk(registry)["tools"]["repo__log"]["calls"] == 1


def test_every_use_is_on_disk_when_the_registry_is_closed(tmp_path):
    with closing(Registry(tmp_path)) as registry:
        for _ in range(500):
            registry.used("repo__log", OriginKind.SERVER, 0.001)
    with closing(Registry(tmp_path)) as registry:
        assert registry.lives()["repo__log"].calls == 500
        assert registry.lives()["repo__log"].seconds == pytest.approx(0.5)


def test_a_use_counts_from_the_moment_it_is_told_whoever_writes_meanwhile(registry):
    def use() -> None:
        for _ in range(100):
            registry.used("repo__log", OriginKind.SERVER, 0.001)

    seen = [0]
    with ThreadPoolExecutor(4) as threads:
        told = [threads.submit(use) for _ in range(3)]
        while not all(each.done() for each in told):
            registry.flush()
            life = registry.lives().get("repo__log")
            seen.append(life.calls if life else 0)
        for each in told:
            each.result()
    mine = registry.used("repo__log", OriginKind.SERVER, 0.001)

    assert seen == sorted(seen)
    assert mine.calls == registry.lives()["repo__log"].calls == 301


def test_uses_that_cannot_be_written_wait_and_are_told(registry):
    registry.born("repo__log", OriginKind.SERVER)
    obstacle = registry.path.with_name(".registry.json.new")
    obstacle.mkdir()
    for _ in range(3):
        registry.used("repo__log", OriginKind.SERVER, 0.1)
    wait_until(registry.troubles)
    assert "cannot write" in registry.troubles()[0]
    assert registry.lives()["repo__log"].calls == 3

    obstacle.rmdir()
    registry.used("repo__log", OriginKind.SERVER, 0.1)
    registry.flush()
    assert on_disk(registry)["tools"]["repo__log"]["calls"] == 4


def test_a_change_that_fails_changes_nothing_and_loses_no_use(registry):
    registry.used("repo__log", OriginKind.SERVER, 0.1)
    with suppress(ZeroDivisionError), registry.changing() as entries:
        entries.drop("repo__log")
        registry.used("repo__log", OriginKind.SERVER, 0.1)
        raise ZeroDivisionError
    assert registry.lives()["repo__log"].calls == 2
    registry.flush()
    assert on_disk(registry)["tools"]["repo__log"]["calls"] == 2


# Edits by hand


@pytest.mark.row("D5")
def test_what_a_person_edits_holds_at_once(registry):
    registry.used("repo__log", OriginKind.SERVER, 0.1)
    registry.flush()
    edit(registry, registry.path.read_text("utf-8").replace('"pinned": false', '"pinned": true'))

    assert registry.is_pinned("repo__log")
    registry.used("repo__log", OriginKind.SERVER, 0.1)
    registry.flush()
    assert (registry.lives()["repo__log"].calls, registry.is_pinned("repo__log")) == (2, True)
    assert registry.troubles() == ()


def test_a_person_may_write_little_and_in_their_own_way(registry):
    entry = {
        "a": {},
        "b": {"pinned": True, "born": "2026-11-16"},
        "c": {
            "status": "inactive",
            "inactive_since": 1_770_332_458.0,
            "calls": 3.0,
            "last_used": "2026-02-01T10:00:00+02:00",
        },
    }
    edit(registry, b"\xef\xbb\xbf" + json.dumps({"tools": entry}).encode())

    assert registry.lives() == {
        "a": Life("a", born=0.0),
        "b": Life("b", born=1_794_787_200.0, pinned=True),
        "c": Life(
            "c",
            0.0,
            calls=3,
            last_used=1_769_932_800.0,
            status=ToolStatus.INACTIVE,
            inactive_since=1_770_332_458.0,
        ),
    }
    assert registry.troubles() == ()


@settings(max_examples=30, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_keys_that_mean_nothing_here_are_kept(tmp_path_factory, value):
    with closing(Registry(tmp_path_factory.mktemp("tools"))) as registry:
        edit(registry, json.dumps({"tools": {"repo__log": {"note": value}}, "mine": value}))
        registry.used("repo__log", OriginKind.SERVER, 0.1)
        registry.flush()
        said = on_disk(registry)

    assert (
        said["mine"],
        said["tools"]["repo__log"]["note"],
        said["tools"]["repo__log"]["calls"],
    ) == (value, value, 1)


@pytest.mark.parametrize(
    "slip",
    ['{"tools": ', "[]", '{"tools": []}', "null", "", "\x00\x00", "{" * 5000, "[" * 5000],
    ids=["cut", "a list", "no tools", "nothing", "empty", "zeros", "nested", "nested lists"],
)
def test_a_file_that_makes_no_sense_is_set_aside_told_and_mended_from_its_copy(registry, slip):
    registry.pin("repo__log", OriginKind.SERVER)
    edit(registry, slip)

    assert registry.is_pinned("repo__log")
    assert damaged(registry) == [slip.encode()]
    (told,) = registry.troubles()
    assert "registry.json.damaged-1" in told
    assert "registry.json.last" in told
    assert on_disk(registry)["tools"]["repo__log"]["pinned"] is True


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("calls", -1),
        ("calls", "many"),
        ("calls", 1.5),
        ("calls", 10**40),
        ("calls", True),
        ("pinned", "yes"),
        ("origin", "elsewhere"),
        ("status", "asleep"),
        ("born", "yesterday"),
        ("born", -5),
        ("last_used", [1]),
        ("inactive_since", 1e300),
    ],
)
def test_a_slip_of_the_hand_costs_one_entry_its_edit_and_no_other(registry, key, value):
    registry.pin("repo__log", OriginKind.SERVER)
    registry.pin("repo__diff", OriginKind.SERVER)
    said = on_disk(registry)
    said["tools"]["repo__log"][key] = value
    said["tools"]["repo__diff"]["calls"] = 7
    edit(registry, json.dumps(said))

    lives = registry.lives()
    assert (lives["repo__log"].calls, lives["repo__log"].pinned, lives["repo__diff"].calls) == (
        0,
        True,
        7,
    )
    assert [json.loads(kept) for kept in damaged(registry)] == [said]
    assert "repo__log" in registry.troubles()[0]
    assert on_disk(registry)["tools"]["repo__diff"]["calls"] == 7


def test_a_file_that_was_cut_at_any_byte_is_mended_and_told(tmp_path):
    with closing(Registry(tmp_path / "whole", Clock(NOW))) as registry:
        registry.pin("repo__log", OriginKind.SERVER)
        whole, lives = registry.path.read_bytes(), registry.lives()
    for length in range(len(whole) - 1):  # the last byte is a line's end
        with closing(Registry(tmp_path / f"cut-{length}", Clock(NOW))) as registry:
            registry.path.with_name("registry.json.last").write_bytes(whole)
            edit(registry, whole[:length])
            assert registry.lives() == lives
            assert len(registry.troubles()) == 1
            assert damaged(registry) == [whole[:length]]
            assert registry.path.read_bytes() == whole


def test_a_copy_that_was_cut_too_starts_anew_and_keeps_both(registry):
    registry.pin("repo__log", OriginKind.SERVER)
    edit(registry, '{"tools": {"repo__log"')
    registry.path.with_name("registry.json.last").write_bytes(b'{"tools"')

    assert registry.lives() == {}
    assert damaged(registry) == [b'{"tools": {"repo__log"', b'{"tools"']
    assert "started anew" in registry.troubles()[0]
    registry.pin("repo__log", OriginKind.SERVER)
    assert registry.is_pinned("repo__log")


def test_a_file_that_is_missing_comes_back_from_its_copy(registry):
    registry.pin("repo__log", OriginKind.SERVER)
    registry.path.unlink()

    assert registry.is_pinned("repo__log")
    assert "remove registry.json.last too" in registry.troubles()[0]


def test_damage_after_damage_is_kept_side_by_side(registry):
    registry.pin("repo__log", OriginKind.SERVER)
    for slip in ("one", "two", "three"):
        edit(registry, slip)
        assert registry.is_pinned("repo__log")

    assert damaged(registry) == [b"one", b"two", b"three"]


@pytest.mark.parametrize(
    "plant",
    [
        lambda path, other: path.symlink_to(other),
        lambda path, _: os.mkfifo(path),
        lambda path, _: path.mkdir(),
    ],
)
@pytest.mark.rest_slow
def test_what_is_no_file_is_set_aside_and_never_followed(registry, tmp_path, plant):
    other = tmp_path / "other.json"
    other.write_text('{"tools": {"evil": {}}}')
    registry.pin("repo__log", OriginKind.SERVER)
    registry.path.unlink()
    plant(registry.path, other)

    assert list(registry.lives()) == ["repo__log"]
    registry.pin("repo__diff", OriginKind.SERVER)
    assert other.read_text() == '{"tools": {"evil": {}}}'
    assert len(registry.troubles()) == 1


# Several processes


def test_two_processes_that_use_tools_at_once_lose_no_use(tmp_path):
    others = [
        started(tmp_path, tool, 40) for tool in ("created__mine", "created__mine", "created__other")
    ]
    for other in others:
        other.communicate(timeout=120)
    with closing(Registry(tmp_path)) as registry:
        lives = registry.lives()

    assert [other.returncode for other in others] == [0, 0, 0]
    assert (lives["created__mine"].calls, lives["created__other"].calls) == (80, 40)
    assert registry.troubles() == ()


@pytest.mark.row("D5")
@pytest.mark.slow
def test_a_process_that_is_killed_in_mid_write_costs_nothing_that_was_written(tmp_path):
    chance = random.Random(7)
    written = 0
    with closing(Registry(tmp_path)) as registry:
        registry.pin("repo__log", OriginKind.SERVER)
        for _ in range(20):
            other = started(tmp_path, "created__tidy", 10**6)
            assert other.stdout is not None
            for _ in range(chance.randrange(1, 4)):
                written = int(other.stdout.readline())
            time.sleep(chance.uniform(0, 0.004))  # anywhere between two writes
            other.kill()
            written = max(
                written,
                *(
                    int(line)
                    for line in other.stdout.read().splitlines(keepends=True)
                    if line.endswith("\n")
                ),
                0,
            )
            other.wait()
            other.stdout.close()
            life = registry.lives()["created__tidy"]
            assert life.calls >= written
            assert registry.is_pinned("repo__log")
        registry.used("created__tidy", OriginKind.CREATED, 0.1)
        registry.flush()

        assert registry.lives()["created__tidy"].calls == life.calls + 1
        assert registry.troubles() == ()
    assert damaged(registry) == []
    assert len(list(tmp_path.iterdir())) <= 4  # the file, its copy, the lock, and one draft at most


def started(folder: Path, tool: str, times: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(PROCESS), str(folder), tool, str(times)],
        stdout=subprocess.PIPE,
        text=True,
    )
