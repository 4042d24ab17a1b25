"""What a command costs to start: the CPU time of its process, over the store that the demo makes.

    make bench-startup

Each command is run nine times in turns with bare Python (`python -c pass`), so that a busy machine
shows in both. `cpu_ms` is the middle one's user and system time, `least_ms` the least. `wrap` is
what `hotset wrap` has computed when its agent begins, without the proxy that it starts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.results import quantile, tell

RUNS = 9
WRAPS = 5
BARE = [sys.executable, "-c", "pass"]
HOTSET = [sys.executable, "-c", "from hotset.surfaces.cli import main; main()"]
"""The console script."""

COMMANDS = {
    "hotset": [],
    "statusline": ["statusline"],
    "status": ["status"],
    "sessions": ["sessions"],
    "savings": ["savings"],
    "show": ["show", "last"],
    "search": ["search", "retry with backoff"],
    "memory search": ["memory", "search", "retry with backoff"],
    "tools find": ["tools", "find", "open an issue"],
    "top --once": ["top", "--once"],
    "--help": ["--help"],
}
AGENT = 'cat "/proc/$PPID/stat" > "$0"'


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="hotset-startup-") as folder:
        env = {**os.environ, "HOTSET_HOME": f"{folder}/home", "HOME": folder}
        # As after an installation: compiled once.
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        env["PYTHONPYCACHEPREFIX"] = f"{folder}/compiled"
        project = Path(folder, "project")
        project.mkdir()
        demo = [sys.executable, "-m", "hotset.testing.demo", "--once", "--fast"]
        subprocess.run(demo, cwd=project, env=env, check=True, stdout=subprocess.DEVNULL)
        env["HOTSET_DATA"] = str(Path(folder, "home", "projects", "demo"))
        sets = {
            name: compare([*HOTSET, *arguments], project, env)
            for name, arguments in COMMANDS.items()
        }
        sets["wrap"] = {"hotset": figures([wrapped(project, env) for _ in range(WRAPS)])}
    tell("startup", sets)


def compare(command: Sequence[str], project: Path, env: Mapping[str, str]) -> dict:
    """The command and bare Python, in turns."""
    taken: dict[str, list[float]] = {"bare": [], "hotset": []}
    run(command, project, env)  # compiles
    for _ in range(RUNS):
        taken["bare"].append(run(BARE, project, env))
        taken["hotset"].append(run(command, project, env))
    return {name: figures(each) for name, each in taken.items()}


def figures(taken: list[float]) -> dict[str, float]:
    return {"cpu_ms": quantile(taken, 0.5), "least_ms": min(taken)}


def run(command: Sequence[str], project: Path, env: Mapping[str, str]) -> float:
    """Milliseconds of CPU time that a process took, to its end."""
    none = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=project, env=env, stdin=none, stdout=none, stderr=none)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return (usage.ru_utime + usage.ru_stime) * 1e3


def wrapped(project: Path, env: Mapping[str, str]) -> float:
    """Milliseconds of CPU time that `hotset wrap` had taken when its agent began."""
    found = project / "stat"
    command = [*HOTSET, "wrap", "--no-index", "--no-learn", "sh", "-c", AGENT, str(found)]
    subprocess.run(command, cwd=project, env=env, check=True, capture_output=True)
    fields = found.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1e3 / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
