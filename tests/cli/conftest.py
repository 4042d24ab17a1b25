"""The command line as people run it: a process, its exit code, stdout and stderr."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hotset.dialects import DIALECTS
from hotset.nouns.deposit import ReplyReceived, RequestReceived
from hotset.nouns.message import DialectName
from hotset.nouns.turn import Outcome
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.cli.exit import run
from hotset.surfaces.cli.tree import hotset
from hotset.testing import ScriptedUpstream
from hotset.testing.proxy import PATIENCE
from tests.waiting import wait_until

NOW = 1_790_000_000.0
LARGE = "\n".join(f"{number:05d} a line of a large file" for number in range(2000))


@dataclass(frozen=True)
class Ran:
    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode()

    def json(self) -> Any:
        return json.loads(self.raw)


@dataclass(frozen=True)
class Desk:
    """A person's place: a home, a project, a data folder, and an environment that holds nothing
    else."""

    home: Path
    project: Path
    data: Path
    env: Mapping[str, str]
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "hotset", *arguments]

    def environ(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return {**self.env, **(more or {})}

    def run(self, *arguments: str, env: Mapping[str, str] | None = None, given: bytes = b"") -> Ran:
        """Runs a command to its end: those that start others in a process of their own, the rest in
        this one, for speed."""
        run = in_a_process if {*arguments[:1]} & {"up", "wrap", "demo"} else in_this_process
        return run(self, arguments, self.environ(env), given)

    def start(
        self, *arguments: str, env: Mapping[str, str] | None = None, **how: Any
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            self.command(*arguments), env=self.environ(env), cwd=self.project, **how
        )
        self.started.append(process)
        return process

    def clear(self) -> None:
        """Ends what a test that failed left running, so that it is not the next test that fails for
        it."""
        for process in self.started:
            with process:
                if process.poll() is None:
                    process.kill()

    @contextmanager
    def serving(
        self, *flags: str, env: Mapping[str, str] | None = None
    ) -> Iterator[dict[str, Any]]:
        """`hotset up` in a process of its own, until the block ends."""
        ready = self.home / "ready.json"
        ready.unlink(missing_ok=True)
        with (self.home / "up.log").open("wb") as log:
            proxy = self.start(
                "up",
                "--port",
                "0",
                "--ready-file",
                str(ready),
                *flags,
                env=env,
                stdout=log,
                stderr=log,
            )
        try:
            wait_until(lambda: ready.exists() or proxy.poll() is not None)
            assert ready.exists(), (self.home / "up.log").read_text()
            yield json.loads(ready.read_bytes())
        finally:
            proxy.terminate()
            proxy.wait(120)


def in_a_process(desk: Desk, arguments: tuple[str, ...], env: dict[str, str], given: bytes) -> Ran:
    done = subprocess.run(
        desk.command(*arguments),
        env=env,
        cwd=desk.project,
        input=given,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr.decode())


def in_this_process(
    desk: Desk, arguments: tuple[str, ...], env: dict[str, str], given: bytes
) -> Ran:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    stdin, environ = sys.stdin, dict(os.environ)
    sys.stdin = io.TextIOWrapper(io.BytesIO(given))
    os.environ.clear()
    os.environ.update(env)
    try:
        with redirect_stdout(out), redirect_stderr(err), chdir(desk.project):
            code = run(hotset, arguments)
    finally:
        sys.stdin = stdin
        os.environ.clear()
        os.environ.update(environ)
    said, complained = (stream.detach().getvalue() for stream in (out, err))  # type: ignore[attr-defined]
    return Ran(code, said, complained.decode())


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = desk_in(tmp_path)
    yield desk
    desk.clear()


def desk_in(place: Path) -> Desk:
    """An empty one. Those that no test changes may be shared by the tests of a module, for
    speed."""
    home, project = place / "home", place / "project"
    for folder in (home, project):
        folder.mkdir(mode=0o700)
    (project / ".git").mkdir()
    data = place / "data"
    env = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "HOTSET_DATA": str(data),
        "HOTSET_CONFIG": str(home / "config.toml"),
        "HOTSET_PATIENCE": str(PATIENCE),
        "COLUMNS": "120",
    }
    return Desk(home, project, data, env)


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as scripted:
        yield scripted


@pytest.fixture
def to_upstream(upstream: ScriptedUpstream) -> dict[str, str]:
    return sending_to(upstream)


def sending_to(upstream: ScriptedUpstream) -> dict[str, str]:
    """The environment in which hotset sends to the scripted upstream."""
    return {
        "HOTSET_OPENAI_URL": upstream.openai_url,
        "HOTSET_ANTHROPIC_URL": upstream.anthropic_url,
    }


@dataclass(frozen=True)
class Served:
    """A desk at which a proxy serves."""

    desk: Desk
    ready: dict[str, Any]
    env: dict[str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Shared by the tests of a module: they may ask it and look at it, and leave it as it is."""
    desk = desk_in(tmp_path_factory.mktemp("served"))
    with ScriptedUpstream() as upstream, desk.serving(env=sending_to(upstream)) as ready:
        yield Served(desk, ready, sending_to(upstream))


@pytest.fixture
def filled(desk: Desk) -> Desk:
    """A desk whose store holds a session of four turns, the last of which went back and
    branched."""
    fill(desk.data)
    return desk


def fill(
    folder: Path, prompt: str = "Fix the failing test", when: float = NOW, agent: str = "claude-cli"
) -> None:
    asks: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    calls = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "Read",
        "input": {"file_path": "src/app.py"},
    }
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": LARGE}
    line = [
        *asks,
        {"role": "assistant", "content": [{"type": "text", "text": "I will read it."}, calls]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "It was the clock."},
        {"role": "user", "content": "Thanks \x1b[31mred\x1b[0m"},
        {"role": "assistant", "content": "You are welcome."},
    ]
    other = [
        *line[:4],
        {"role": "user", "content": "Explain it instead"},
        {"role": "assistant", "content": "Gladly."},
    ]
    with closing(SqliteStore.open(folder)) as store:
        for number, (messages, upto) in enumerate(((line, 1), (line, 3), (line, 5), (other, 5))):
            turn(store, messages[:upto], messages[upto], when + 60 * number, agent)


def turn(
    store: SqliteStore,
    messages: list[dict[str, Any]],
    answer: dict[str, Any],
    when: float,
    agent: str,
) -> None:
    dialect = DIALECTS[DialectName.ANTHROPIC]
    body = {
        "model": "claude-test",
        "max_tokens": 100,
        "system": "You mend tests.",
        "messages": messages,
    }
    kept = store.keep(
        RequestReceived(dialect.parse(json.dumps(body).encode()), when, agent)
    ).result(120)
    assert kept.turn is not None
    content = answer["content"]
    reply = {
        "id": f"msg_{int(when)}",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": [{"type": "text", "text": content}] if isinstance(content, str) else content,
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 20},
    }
    raw = json.dumps(reply).encode()
    read = dialect.read(raw, streamed=False)
    store.keep(ReplyReceived(kept.turn, when + 2, Outcome.DONE, 200, raw, read)).result(120)
