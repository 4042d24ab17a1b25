"""200 sessions of 1.6 MB each through a proxy that may take 60 MB more than after its start.

    make bench-pressure

The proxy is a process of its own in a memory group (cgroup v2 or v1) where one can be made, so that
the kernel kills it if it takes more; elsewhere `[pressure] limit_mb` sets the limit, and nothing
kills it. Each session is two requests over the scripted upstream. Its memory "after start" is that
after one such session, when everything that it needs is loaded.
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
from pathlib import Path
from typing import Self

from bench.overhead import resident
from bench.results import tell
from hotset.testing import Say, ScriptedUpstream

SESSIONS = int(os.environ.get("PRESSURE_SESSIONS", "200"))
BYTES = 1_600_000
AT_ONCE = int(os.environ.get("PRESSURE_AT_ONCE", "2"))
MORE = int(os.environ.get("PRESSURE_MORE_MB", "60")) << 20
RESULT = 40_000  # characters of a tool's result
QUIET_SECONDS, BACK_SECONDS = 6.0, 60.0
GROUPS = Path("/sys/fs/cgroup")
WORDS = [
    f"{a}{b}" for a in ("read", "write", "open", "close") for b in ("er", "ing", "able", "_file")
]
WORDS += ["the", "of", "to", "in", "is", "that", "value", "name", "file", "line", "return", "if"]
LEVELS = ("normal", "elevated", "high", "critical")


def main() -> None:
    with memory_group() as group, tempfile.TemporaryDirectory() as place:
        if group is None:
            print("no memory group can be made here: the limit is the proxy's own")
            with proxy(Path(place) / "first", 0) as (root, pid, upstream):
                limit = rest_of(root, pid) + MORE
        else:
            limit = 0
        with proxy(Path(place) / "run", limit >> 20, group) as (root, pid, upstream):
            found = run(root, pid, upstream, group)
    tell("pressure", {"memory group" if group else "own limit": {"hotset": found}})


def run(root: str, pid: int, upstream: ScriptedUpstream, group: Group | None) -> dict[str, float]:
    base = rest_of(root, pid)
    if group is not None:
        group.limit(base + MORE)
    seen = Watcher(root, pid)
    before = len(upstream.requests)
    with seen, ThreadPoolExecutor(AT_ONCE) as pool:
        statuses = [
            status
            for both in pool.map(lambda number: session(root, number), range(1, SESSIONS + 1))
            for status in both
        ]
    ended = time.monotonic()
    while level_of(root) != "normal" and time.monotonic() - ended < BACK_SECONDS:
        time.sleep(0.2)
    back = time.monotonic() - ended
    after = rest_of(root, pid)
    status = ask(root)
    events = changes(root)
    print("levels:", " ".join(f"{a}>{b}" for a, b in events))
    print("largest caches:", *(f"{c['name']} {c['bytes'] / 1e6:.1f}" for c in status["caches"][:6]))
    steps = [LEVELS.index(b) - LEVELS.index(a) for a, b in events]
    return {
        "sessions": SESSIONS,
        "served_pct": 100 * sum(each == 200 for each in statuses) / len(statuses),
        "reached_upstream": len(upstream.requests) - before,
        "bypassed": status["bypassed"],
        "highest_level": max((LEVELS.index(b) for _, b in events), default=0),
        "in_order": float(all(abs(step) == 1 for step in steps)),
        "changes": len(events),
        "level_at_end": LEVELS.index(status["memory"]["level"]),
        "back_seconds": back,
        "rss_mb_before": base / 1e6,
        "limit_mb": (base + MORE) / 1e6,
        "rss_mb_highest": seen.highest / 1e6,
        "rss_mb_after": after / 1e6,
        "rss_after_pct": 100 * (after - base) / base,
        "killed": float(not alive(pid)),
    }


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
        while not self._over.wait(0.1) and alive(self._pid):
            self.highest = max(self.highest, rss(self._pid))


class Group:
    """A memory group for one process."""

    def __init__(self, folder: Path, version: int) -> None:
        self.folder, self._limit = folder, ("memory.limit_in_bytes", "memory.max")[version - 1]

    def start(self, command: list[str]) -> list[str]:
        """The command, in this group from its first byte of memory on."""
        return ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs && exec "$@"', "sh", *command]

    def limit(self, count: float) -> None:
        (self.folder / self._limit).write_text(str(int(count)))


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
def proxy(
    place: Path, limit_mb: int, group: Group | None = None
) -> Iterator[tuple[str, int, ScriptedUpstream]]:
    place.mkdir(mode=0o700)
    (place / "project").mkdir()
    config = place / "config.toml"
    config.write_text(f"[pressure]\nlimit_mb = {limit_mb}\n")
    ready = place / "ready.json"
    with ScriptedUpstream(lambda _: Say("Done.")) as upstream:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(place),
            "HOTSET_CONFIG": str(config),
            "HOTSET_DATA": str(place / "data"),
            "HOTSET_OPENAI_URL": upstream.openai_url,
            "HOTSET_ANTHROPIC_URL": upstream.anthropic_url,
            "HOTSET_PATIENCE": "20",
        }
        command = [sys.executable, "-m", "hotset", "up", "--port", "0", "--no-index"]
        command += ["--ready-file", str(ready)]
        with (place / "log").open("wb") as log:
            process = subprocess.Popen(
                group.start(command) if group is not None else command,
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
            root = told["anthropic_base_url"]
            assert session(root, 0) == [200, 200]
            yield root, process.pid, upstream
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def session(root: str, number: int) -> list[int]:
    """Two requests of one conversation; their statuses."""
    chance = random.Random(number)
    messages: list[dict] = [{"role": "user", "content": f"Session {number}: read the files."}]
    for call in range(BYTES // RESULT):
        use = {
            "type": "tool_use",
            "id": f"toolu_{number}_{call}",
            "name": "read_file",
            "input": {"path": f"src/part{call}.py"},
        }
        messages.append({"role": "assistant", "content": [use]})
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": text(chance)}
        messages.append({"role": "user", "content": [result]})
    statuses = []
    for last in ("", "Go on."):
        if last:
            messages.append({"role": "assistant", "content": "Done."})
            messages.append({"role": "user", "content": last})
        statuses.append(post(root, messages))
    return statuses


def text(chance: random.Random) -> str:
    """Lines of ordinary words, which no other result has in this order."""
    lines, size = [], 0
    while size < RESULT:
        line = " ".join(chance.choices(WORDS, k=12))
        lines.append(line)
        size += len(line) + 1
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


def level_of(root: str) -> str:
    return ask(root)["memory"]["level"]


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


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


if __name__ == "__main__":
    main()
