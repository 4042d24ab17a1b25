"""Sessions of 1.6 MB each through a proxy that may take little more memory than after its start.

    make bench-pressure
    PRESSURE_CASES="60:200 12:24" make bench-pressure    # MB more : sessions

The proxy is a process of its own in a memory group (cgroup v2 or v1), so that the kernel kills it
if it takes more; where no group can be made, there is nothing to show, and it says so. Each session
is two requests over the scripted upstream. Memory "after start" is that after one small session of
the same kind (two results of 2 kB), when the code that sessions need is loaded and no cache holds
anything to speak of. A proxy that had no request yet is shown beside it.

It fails if a request is not served, the proxy is killed, a level is skipped, or memory does not
come back: to the normal level, and to 5 % more than after start once no request came for a while.
Then everything that can be read again is gone, so it is also shown after one more small session.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Self

from bench.overhead import resident
from bench.results import tell
from hotset.testing import Say, ScriptedUpstream

CASES = os.environ.get("PRESSURE_CASES", "60:200 12:24")
AT_ONCE = int(os.environ.get("PRESSURE_AT_ONCE", "2"))
RESULTS, RESULT = 40, 40_000  # of a session; characters of a tool's result
SMALL_RESULTS, SMALL_RESULT = 2, 2_000
QUIET_SECONDS, BACK_SECONDS = 6.0, 60.0
IDLE_SECONDS = 330.0  # memory that is not short any more is emptied after 300
MOST_AFTER_PCT = 5.0
GROUPS = Path("/sys/fs/cgroup")
WORDS = [
    f"{a}{b}" for a in ("read", "write", "open", "close") for b in ("er", "ing", "able", "_file")
]
WORDS += ["the", "of", "to", "in", "is", "that", "value", "name", "file", "line", "return", "if"]
Process = subprocess.Popen[bytes]
LEVELS = ("normal", "elevated", "high", "critical")


def main() -> None:
    found: dict[str, dict[str, float]] = {}
    wrong: list[str] = []
    for case in CASES.split():
        more, sessions = map(int, case.split(":"))
        with memory_group() as group, tempfile.TemporaryDirectory() as place:
            if group is None:
                print("skipped: no memory group can be made here (that takes root and a cgroup)")
                return
            name = f"{more} MB more"
            with proxy(Path(place) / "run", group) as running:
                found[name] = run(running, group, more << 20, sessions)
        wrong += [f"{name}: {each}" for each in broken_promises(found[name])]
        tell("pressure", {name: {"hotset": figures} for name, figures in found.items()})
    if wrong:
        sys.exit("\n".join(wrong))
    print("\nall served, never killed, every level in its turn, memory back")


def run(
    running: tuple[str, Process, ScriptedUpstream], group: Group, more: int, sessions: int
) -> dict[str, float]:
    root, process, upstream = running
    pid = process.pid
    start = rest_of(root, pid)
    session(root, 0, SMALL_RESULTS, SMALL_RESULT)
    base = rest_of(root, pid)
    most = base * (1 + MOST_AFTER_PCT / 100)
    group.limit(base + more)
    seen = Watcher(root, pid)
    before, began = len(upstream.requests), time.monotonic()
    with seen, ThreadPoolExecutor(AT_ONCE) as pool:
        served = [
            status == 200
            for both in pool.map(lambda number: session(root, number), range(1, sessions + 1))
            for status in both
        ]
    ended = time.monotonic()
    if process.poll() is not None:
        return {"sessions": sessions, "served_pct": 100 * sum(served) / len(served), "killed": 1}
    while ask(root)["memory"]["level"] != "normal" and time.monotonic() - ended < BACK_SECONDS:
        time.sleep(0.2)
    back = time.monotonic() - ended
    while True:
        after, status = rest_of(root, pid), ask(root)
        rest = time.monotonic() - ended
        is_back = after <= most and status["memory"]["level"] == "normal"
        if is_back or rest > IDLE_SECONDS:
            break
    events = changes(root)
    session(root, sessions + 1, SMALL_RESULTS, SMALL_RESULT)
    again = rest_of(root, pid)
    print("levels:", " ".join(f"{a}>{b}" for a, b in events))
    print("largest caches:", *(f"{c['name']} {c['bytes'] / 1e6:.1f}" for c in status["caches"][:6]))
    return {
        "sessions": sessions,
        "minutes": (ended - began) / 60,
        "served_pct": 100 * sum(served) / len(served),
        "reached_upstream": len(upstream.requests) - before,
        "bypassed": status["bypassed"],
        "killed": 0,
        "highest_level": max((LEVELS.index(b) for _, b in events), default=0),
        "changes": len(events),
        "in_order": float(is_in_order(events)),
        "level_at_end": LEVELS.index(status["memory"]["level"]),
        "back_seconds": back,
        "rss_mb_no_request": start / 1e6,
        "rss_mb_start": base / 1e6,
        "limit_mb": (base + more) / 1e6,
        "rss_mb_highest": seen.highest / 1e6,
        "rss_mb_after": after / 1e6,
        "rest_seconds": rest,
        "rss_after_pct": 100 * (after - base) / base,
        "rss_mb_again": again / 1e6,
        "refused_by_kernel": group.refused(),
    }


def is_in_order(events: list[tuple[str, str]]) -> bool:
    """True if every level was left for its neighbour, from where the last change led."""
    steps = [abs(LEVELS.index(b) - LEVELS.index(a)) == 1 for a, b in events]
    joins = [one[1] == two[0] for one, two in pairwise([("", "normal"), *events])]
    return all(steps) and all(joins)


def broken_promises(found: dict[str, float]) -> list[str]:
    """Sentences about what should not be so."""
    if found["killed"]:
        return ["the kernel killed the proxy"]
    checks = {
        f"{found['served_pct']:.1f} % of the requests were served": found["served_pct"] == 100,
        "levels did not come in their order": found["in_order"] == 1,
        "the level is not normal at the end": found["level_at_end"] == 0,
        "memory was never short: take more sessions, or less memory": found["highest_level"] > 0,
        f"memory is {found['rss_after_pct']:.1f} % more than after start, and may be "
        f"{MOST_AFTER_PCT} % more": found["rss_after_pct"] <= MOST_AFTER_PCT,
    }
    return [sentence for sentence, is_so in checks.items() if not is_so]


class Watcher(threading.Thread):
    """Looks at the proxy's memory all the time."""

    def __init__(self, root: str, pid: int) -> None:
        super().__init__(daemon=True)
        self._root, self._pid, self._over = root, pid, threading.Event()
        self.highest = 0.0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.wait(0.1):
            self.highest = max(self.highest, rss(self._pid))


class Group:
    """A memory group for one process."""

    def __init__(self, folder: Path, version: int) -> None:
        self.folder, self._limit = folder, ("memory.limit_in_bytes", "memory.max")[version - 1]
        self._refused = ("memory.failcnt", "")[version - 1]

    def start(self, command: list[str]) -> list[str]:
        """The command, in this group from its first byte of memory on."""
        return ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs && exec "$@"', "sh", *command]

    def limit(self, count: float) -> None:
        (self.folder / self._limit).write_text(str(int(count)))

    def refused(self) -> int:
        """How often the limit was hit, and the kernel had to make room; 0 where it is not told."""
        return int((self.folder / self._refused).read_text()) if self._refused else 0


@contextlib.contextmanager
def memory_group() -> Iterator[Group | None]:
    """One below our own group; None where we may not make one."""
    made = None
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, names, path = line.split(":", 2)
            version = 2 if number == "0" else 1 if "memory" in names.split(",") else 0
            own = (GROUPS if version == 2 else GROUPS / "memory") / path.lstrip("/")
            folder = own / f"hotset-bench-{os.getpid()}"
            counter = ("memory.usage_in_bytes", "memory.current")[version - 1]
            if version and (own / counter).exists():
                folder.mkdir()
                made = Group(folder, version)
                break
    try:
        yield made
    finally:
        if made is not None:
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                with contextlib.suppress(OSError):
                    made.folder.rmdir()
                    break
                time.sleep(0.1)


@contextlib.contextmanager
def proxy(place: Path, group: Group) -> Iterator[tuple[str, Process, ScriptedUpstream]]:
    place.mkdir(mode=0o700)
    (place / "project").mkdir()
    ready = place / "ready.json"
    with ScriptedUpstream(lambda _: Say("Done.")) as upstream:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(place),
            "HOTSET_CONFIG": str(place / "config.toml"),
            "HOTSET_DATA": str(place / "data"),
            "HOTSET_OPENAI_URL": upstream.openai_url,
            "HOTSET_ANTHROPIC_URL": upstream.anthropic_url,
            "HOTSET_PATIENCE": "20",
        }
        command = [sys.executable, "-m", "hotset", "up", "--port", "0", "--no-index"]
        command += ["--ready-file", str(ready)]
        with (place / "log").open("wb") as log:
            process = subprocess.Popen(
                group.start(command),
                env=env,
                cwd=place / "project",
                stdout=log,
                stderr=log,
            )
        try:
            while not ready.exists():
                assert process.poll() is None, (place / "log").read_text()
                time.sleep(0.05)
            told = json.loads(ready.read_bytes())
            yield told["anthropic_base_url"], process, upstream
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def session(root: str, number: int, results: int = RESULTS, size: int = RESULT) -> list[int]:
    """Two requests of one conversation; their statuses."""
    chance = random.Random(number)
    messages: list[dict] = [{"role": "user", "content": f"Session {number}: read the files."}]
    for call in range(results):
        use = {
            "type": "tool_use",
            "id": f"toolu_{number}_{call}",
            "name": "read_file",
            "input": {"path": f"src/part{call}.py"},
        }
        messages.append({"role": "assistant", "content": [use]})
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": text(chance, size)}
        messages.append({"role": "user", "content": [result]})
    statuses = []
    for last in ("", "Go on."):
        if last:
            messages.append({"role": "assistant", "content": "Done."})
            messages.append({"role": "user", "content": last})
        statuses.append(post(root, messages))
    return statuses


def text(chance: random.Random, size: int) -> str:
    """Lines of ordinary words, which no other result has in this order."""
    lines, long = [], 0
    while long < size:
        line = " ".join(chance.choices(WORDS, k=12))
        lines.append(line)
        long += len(line) + 1
    return "\n".join(lines)


def post(root: str, messages: list[dict]) -> int:
    tool = {"name": "read_file", "input_schema": {"type": "object", "properties": {}}}
    body = {
        "model": "claude-sonnet-5",
        "max_tokens": 1000,
        "tools": [tool],
        "messages": messages,
    }
    request = urllib.request.Request(
        f"{root}/v1/messages", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=600) as reply:
            json.load(reply)
            return reply.status
    except OSError as error:
        print("not served:", type(error).__name__, flush=True)
        return 0


def ask(root: str) -> dict:
    with urllib.request.urlopen(f"{root}/hotset/status", timeout=60) as reply:
        return json.load(reply)


def changes(root: str) -> list[tuple[str, str]]:
    """The kept events, from the proxy's own store."""
    from hotset.store.sqlite import SqliteStore  # noqa: PLC0415

    folder = Path(ask(root)["folder"])
    with contextlib.closing(SqliteStore.open(folder)) as store:
        events = [event.detail for event in store.events() if event.name == "Pressure"]
    return [(str(each["from"]), str(each["to"])) for each in events]


def rest_of(root: str, pid: int) -> int:
    """Its memory when everything is kept and nothing runs in the background any more."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        before = cpu(pid)
        time.sleep(QUIET_SECONDS)
        if not ask(root)["keeping"] and cpu(pid) - before < 0.1 * QUIET_SECONDS:
            break
    return rss(pid)


def rss(pid: int) -> int:
    try:
        return int(resident(pid) * (1 << 20))
    except (StopIteration, OSError):  # it was killed
        return 0


def cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
