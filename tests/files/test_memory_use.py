"""Memory of this process and its group, read from the files that Linux keeps about them."""

from __future__ import annotations

import sys

import pytest

from hotset.files.memory_use import SystemMemory, release_freed


def write(root, **files):
    for name, text in files.items():
        file = root / name.replace("__", "/").replace("_DOT_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def system(tmp_path):
    """A `/proc` and a `/sys/fs/cgroup` to fill; the process has 100 pages."""
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    (proc / "self").mkdir(parents=True)
    groups.mkdir()
    (proc / "self" / "statm").write_text("500 100 50 1 0 90 0\n")

    def read(group, limit=0):
        (proc / "self" / "cgroup").write_text(group)
        return SystemMemory(limit, proc=proc, groups=groups).read()

    read.proc, read.groups = proc, groups
    return read


def group_v2(folder, current, most="max", high="max", files=0):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.current").write_text(f"{current}\n")
    (folder / "memory.max").write_text(f"{most}\n")
    (folder / "memory.high").write_text(f"{high}\n")
    (folder / "memory.stat").write_text(
        f"anon {current - files}\nactive_file {files // 2}\ninactive_file {files - files // 2}\n"
    )


def test_of_a_group_counts_what_the_kernel_cannot_drop(system):
    (system.groups / "cgroup.controllers").write_text("memory\n")
    group_v2(system.groups / "jobs" / "agent", 900, most=1000, files=300)
    reading = system("0::/jobs/agent\n")
    assert (reading.used, reading.limit, reading.source) == (600, 1000, "cgroup v2")
    assert reading.share == 0.6


@pytest.mark.row("V14")
def test_the_tightest_of_all_groups_around_a_process_counts(system):
    (system.groups / "cgroup.controllers").write_text("memory\n")
    group_v2(system.groups / "jobs" / "agent", 100, most=1000)
    group_v2(system.groups / "jobs", 900, most=5000, high=1000)
    reading = system("0::/jobs/agent\n")
    assert (reading.used, reading.limit) == (900, 1000)


def test_a_container_may_see_its_own_group_as_the_root(system):
    (system.groups / "cgroup.controllers").write_text("memory\n")
    group_v2(system.groups, 500, most=1000)
    assert system("0::/docker/0123\n").limit == 1000


def test_version_1_has_other_names_and_a_huge_number_for_no_limit(system):
    folder = system.groups / "memory" / "jobs"
    folder.mkdir(parents=True)
    for where, limit in ((folder, 1000), (folder.parent, 9223372036854771712)):
        (where / "memory.limit_in_bytes").write_text(f"{limit}\n")
        (where / "memory.usage_in_bytes").write_text("700\n")
        (where / "memory.stat").write_text(
            "cache 9\ntotal_active_file 50\ntotal_inactive_file 50\n"
        )
    reading = system("4:cpu,memory:/jobs\n0::/\n")
    assert (reading.used, reading.limit, reading.source) == (600, 1000, "cgroup v1")


def test_without_groups_there_is_no_limit_unless_one_is_set(system):
    reading = system("0::/\n")
    assert (reading.limit, reading.source) == (0, "")
    assert reading.used == reading.rss > 0
    own = system("0::/\n", limit=reading.rss * 2)
    assert (own.share, own.source) == (0.5, "own limit")


def test_stalls_are_those_of_the_group_and_otherwise_of_the_machine(system):
    (system.proc / "pressure").mkdir()
    (system.proc / "pressure" / "memory").write_text(
        "some avg10=3.50 avg60=0.00 avg300=0.00 total=1\n"
        "full avg10=1.25 avg60=0.00 avg300=0.00 total=1\n"
    )
    reading = system("0::/\n")
    assert (reading.stalled, reading.all_stalled) == (3.5, 1.25)
    (system.groups / "cgroup.controllers").write_text("memory\n")
    group_v2(system.groups / "agent", 100)
    (system.groups / "agent" / "memory.pressure").write_text("some avg10=70.00 avg60=0.00\n")
    assert system("0::/agent\n").stalled == 70


def test_a_system_without_these_files_has_no_pressure(tmp_path):
    reading = SystemMemory(1, proc=tmp_path / "proc", groups=tmp_path / "groups").read()
    assert (reading.rss, reading.limit) == (0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's own files")
def test_the_memory_of_this_process_is_what_it_takes():
    before = SystemMemory().read().rss
    block = bytearray(64 << 20)
    grown = SystemMemory().read().rss - before
    assert grown > (64 << 20) * 0.9
    del block
    release_freed()
    assert SystemMemory().read().rss < before + (32 << 20)
