"""One session three ways: straight to the provider, through headroom's proxy and through hotset's,
call by call in turns.

    make bench-peers

The provider is scripted and keeps a prompt cache by Anthropic's rules, so what each way costs is
counted, not guessed; in a window of 200,000 tokens, which the session nearly fills, and in one of a
million. Then the same session once more with each proxy stopped and started again
after half of it. headroom (PyPI) gets a virtual environment of its own in the user's cache folder
at the first run; it is no dependency of hotset. It runs with its defaults, without its rate limit,
and told that it is offline, which spares it the seconds that it would wait for the internet.

Per way: cost and summed prompt in percent of direct (a token written to the cache counts 1.25, one
read from it 0.1); tokens of the last prompt; planted facts that stand in it, and those that stand
in it or come back through the proxy's own retrieval; added time a call; memory after the session;
seconds from start to first answer; growth of the last prompt and of the cost by the restart; calls
whose prompt did not extend the one before.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import SplitResult, urlsplit

from bench.peer_environment import peer_program
from bench.peers_session import MODEL, QUESTION, SYSTEM, TOOLS, Fact, Session, session
from bench.results import quantile, tell
from hotset.nouns.message import Usage
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.upstream.script import Received

HEADROOM = "0.42.0"
WRITE, READ = 1.25, 0.1  # of the price of an uncached input token
WINDOWS = (200_000, 1_000_000)
"""Tokens that a prompt may have, for hotset; headroom does not ask."""
START_SECONDS = 120.0
_MARK = {"cache_control": {"type": "ephemeral"}}
_PROBE = "Look it up again: "
_VOCABULARIES = "lib/python3*/site-packages/litellm/litellm_core_utils/tokenizers"


def main() -> None:
    recorded = session()
    print(
        f"{len(recorded.steps)} calls, {recorded.size // 4:,} tokens of tool output, "
        f"{len(recorded.facts)} facts"
    )
    headroom = [f"headroom-ai[proxy]=={HEADROOM}"]
    binary = peer_program("headroom", HEADROOM, "headroom", headroom)
    peers = [Headroom(binary)] if binary else []
    tell(
        "peers",
        {
            f"window of {window:,} tokens": compare(recorded, [Direct(), *peers, Hotset(window)])
            for window in WINDOWS
        },
    )


def compare(recorded: Session, ways: Sequence[Way]) -> dict[str, dict[str, float]]:
    """The figures of each way."""
    with contextlib.ExitStack() as stack:
        plain = run(
            recorded, [stack.enter_context(lane(way, recorded)) for way in ways], restart_at=None
        )
    with contextlib.ExitStack() as stack:
        again = [
            stack.enter_context(lane(way, recorded)) for way in ways if not isinstance(way, Direct)
        ]
        restarted = run(recorded, again, restart_at=len(recorded.steps) // 2)
    return figures(recorded, plain, restarted)


# The ways


class Way(Protocol):
    """How calls get to the provider."""

    name: str

    def start(self, upstream: ScriptedUpstream, folder: Path, port: int) -> Served: ...

    def recovered(self, facts: Sequence[Fact], lane: Lane) -> set[Fact]:
        """Of these facts, which no longer stand in the prompt, those that the way itself brings
        back."""
        ...


@dataclass(frozen=True, slots=True)
class Served:
    """A way that is open: where it is, and the process that serves it."""

    url: str
    process: subprocess.Popen[bytes] | None = None


class Direct:
    name = "direct"

    def start(self, upstream: ScriptedUpstream, _folder: Path, _port: int) -> Served:
        return Served(upstream.anthropic_url)

    def recovered(self, _facts: Sequence[Fact], _lane: Lane) -> set[Fact]:
        return set()


class Headroom:
    name = "headroom"

    def __init__(self, binary: Path) -> None:
        self._binary = binary

    def start(self, upstream: ScriptedUpstream, folder: Path, port: int) -> Served:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "HEADROOM_WORKSPACE_DIR": str(folder / "workspace"),
            "HEADROOM_OFFLINE": "1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            # Without its vocabularies it compresses nothing. It would download them; one of its
            # dependencies brings them along.
            "TIKTOKEN_CACHE_DIR": str(next(self._binary.parents[1].glob(_VOCABULARIES))),
        }
        command = [
            str(self._binary),
            "proxy",
            "--port",
            str(port),
            "--anthropic-api-url",
            upstream.anthropic_url,
        ]
        command += ["--no-rate-limit", "--no-subscription-tracking"]
        with (folder / "headroom.log").open("ab") as log:
            process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
        return Served(f"http://127.0.0.1:{port}", process)

    def recovered(self, facts: Sequence[Fact], lane: Lane) -> set[Fact]:
        """Its markers in the prompt carry hashes, by which it gives whole originals back."""
        hashes = set(re.findall(r"(?:<<ccr:|hash=)([a-f0-9]{12,24})", lane.prompt))
        originals = [lane.get(f"/v1/retrieve/{each}") for each in sorted(hashes)]
        return {fact for fact in facts if any(fact.value in original for original in originals)}


class Hotset:
    name = "hotset"

    def __init__(self, window: int) -> None:
        self._window = window

    def start(self, upstream: ScriptedUpstream, folder: Path, port: int) -> Served:
        ready = folder / "ready.json"
        ready.unlink(missing_ok=True)
        command = [
            sys.executable,
            "-m",
            "hotset",
            "up",
            "--quiet",
            "--port",
            str(port),
            "--data",
            str(folder / "data"),
        ]
        command += [
            "--project",
            str(folder),
            "--anthropic-url",
            upstream.anthropic_url,
            "--ready-file",
            str(ready),
            "--budget",
            str(self._window),
        ]
        process = subprocess.Popen(command)
        while not ready.exists():
            assert process.poll() is None, "hotset up ended"
            time.sleep(0.005)
        return Served(json.loads(ready.read_text())["anthropic_base_url"], process)

    def recovered(self, facts: Sequence[Fact], lane: Lane) -> set[Fact]:
        """The model asks with the tools that the proxy gave it; what the proxy answers is seen
        where the model sees it."""
        return {fact for fact in facts if fact.value in lane.probe(fact)}


# A session on its way


@dataclass(slots=True)
class Lane:
    """One client that leads the session over one way, and the provider at its end."""

    way: Way
    upstream: ScriptedUpstream
    folder: Path
    port: int
    served: Served
    messages: list[dict[str, Any]]
    start_seconds: float = 0.0
    seconds: list[float] = field(default_factory=list)
    """Of each call, to the last byte of its reply."""
    charges: list[Usage] = field(default_factory=list)
    """What the provider counted for each call of the client."""
    prompt: str = ""
    """The last prompt as the provider saw it, in plain text."""
    line: http.client.HTTPConnection | None = None

    def step(self, results: Sequence[str]) -> None:
        """One call; then what its tools bring is put behind the reply, as any agent does."""
        before = self.upstream.bill
        begun = time.perf_counter()
        reply = self.post(_body(self.messages))
        self.seconds.append(time.perf_counter() - begun)
        self.charges.append(_minus(self.upstream.bill, before))
        self.prompt = _text(self.upstream.requests[-1])
        self.messages.append({"role": "assistant", "content": reply["content"]})
        calls = [block for block in reply["content"] if block["type"] == "tool_use"]
        answers = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": text}
            for call, text in zip(calls, results, strict=True)
        ]
        if answers:
            self.messages.append({"role": "user", "content": answers})

    def probe(self, fact: Fact) -> str:
        """All that the model sees once it asked for a fact; the session itself goes on as if
        nothing had been asked."""
        seen = len(self.upstream.requests)
        self.post(_body([*self.messages, _said(f"{_PROBE}{fact.step}: {fact.question}")]))
        return "\n".join(_text(each) for each in self.upstream.requests[seen:])

    def restart(self) -> None:
        self.stop()
        self.served = self.way.start(self.upstream, self.folder, self.port)
        self.wait()

    def wait(self) -> None:
        """Until the way answers a call."""
        hello = {
            "model": MODEL,
            "max_tokens": 16,
            "messages": [{"role": "user", "content": "hello"}],
        }
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                self.post(hello)
            except (OSError, http.client.HTTPException):
                process = self.served.process
                assert process is None or process.poll() is None, (
                    f"{self.way.name} ended; see {self.folder}"
                )
                assert time.monotonic() < end, f"{self.way.name} does not answer; see {self.folder}"
                time.sleep(0.02)
            else:
                return

    def post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        headers = {
            "content-type": "application/json",
            "x-api-key": "no-key-needed",
            "anthropic-version": "2023-06-01",
        }
        reply = self._ask("POST", "/v1/messages", json.dumps(body).encode(), headers)
        return dict(json.loads(reply))

    def get(self, path: str) -> str:
        """Plain text of what is there; empty where nothing is."""
        try:
            return str(json.loads(self._ask("GET", path, None, {})).get("original_content", ""))
        except LookupError:
            return ""

    def stop(self) -> None:
        if self.line is not None:
            self.line.close()
            self.line = None
        process = self.served.process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _open(self, root: SplitResult) -> http.client.HTTPConnection:
        self.line = self.line or http.client.HTTPConnection(
            root.hostname or "", root.port, timeout=START_SECONDS
        )
        return self.line

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> bytes:
        root = urlsplit(self.served.url)
        try:
            try:
                self._open(root).request(method, root.path + path, body, headers)
            except BrokenPipeError:  # closed for being idle while the other ways had their turn
                self.line = None
                self._open(root).request(method, root.path + path, body, headers)
            assert self.line is not None
            response = self.line.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            if self.line is not None:
                self.line.close()
            self.line = None
            raise
        if response.status == 404 and method == "GET":
            raise LookupError(path)
        assert response.status == 200, (
            f"{self.way.name} answered {response.status}: {content[:300]!r}"
        )
        return content


@contextlib.contextmanager
def lane(way: Way, recorded: Session) -> Iterator[Lane]:
    """The way opened, with a provider of its own; both are gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=f"hotset-peers-{way.name}-"))
    # The clock stands still: what a cache forgets with time is not what is compared here.
    with ScriptedUpstream(Model(recorded), strict=True, now=lambda: 0.0) as upstream:
        port = _free_port()
        begun = time.perf_counter()
        made = Lane(
            way, upstream, folder, port, way.start(upstream, folder, port), [_said(QUESTION)]
        )
        try:
            made.wait()
            made.start_seconds = time.perf_counter() - begun
            yield made
        finally:
            made.stop()
            shutil.rmtree(folder, ignore_errors=True)


class Model:
    """The assistant's side: the next call of the session, and when it is asked to look something
    up, a call that does."""

    def __init__(self, recorded: Session) -> None:
        self._recorded = recorded

    def __call__(self, request: Received) -> Say:
        body = request.json()
        if not body.get("tools"):
            return Say(text="hello")
        blocks = [block for message in body["messages"] for block in _blocks(message)]
        asked = next(
            (text for block in blocks if (text := block.get("text", "")).startswith(_PROBE)), None
        )
        if asked is not None:
            return self._look_up(asked, {tool["name"] for tool in body["tools"]}, blocks)
        done = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
        number = max((int(id.rpartition("_")[2]) + 1 for id in done), default=0)
        if number >= len(self._recorded.steps):
            return Say(text="That is the reason.")
        step = self._recorded.steps[number]
        return Say(text=step.text, calls=(Call(step.tool, step.arguments, id=f"step_{number:02}"),))

    def _look_up(self, asked: str, tools: set[str], blocks: Sequence[Mapping[str, Any]]) -> Say:
        """First what that call had brought, then a search; both are what a model would try."""
        number, _, question = asked.removeprefix(_PROBE).partition(": ")
        ways = {
            "retrieve_context": {"id": f"toolu_step_{int(number):02}", "question": question},
            "search_history": {"query": question},
        }
        tried = {block.get("name") for block in blocks if block.get("type") == "tool_use"}
        for name, arguments in ways.items():
            if name in tools and name not in tried:
                return Say(
                    calls=(
                        Call(name, arguments, id=f"probe_{name}_{zlib.crc32(asked.encode()):x}"),
                    )
                )
        return Say(text="I looked.")


def run(recorded: Session, lanes: Sequence[Lane], *, restart_at: int | None) -> dict[str, Run]:
    """Every lane takes each step before any takes the next, so that a noisy machine is equally
    noisy for all of them."""
    bases = {lane.way.name: lane.upstream.bill for lane in lanes}
    for number in range(len(recorded.steps) + 1):
        if number == restart_at:
            for each in lanes:
                before = each.upstream.bill
                each.restart()
                bases[each.way.name] = _plus(
                    bases[each.way.name], _minus(each.upstream.bill, before)
                )
        results = [recorded.steps[number].result] if number < len(recorded.steps) else []
        turn = number % len(lanes)
        for each in (*lanes[turn:], *lanes[:turn]):
            each.step(results)
        if sys.stderr.isatty():
            print(
                f"\rcall {number + 1} of {len(recorded.steps) + 1} ",
                end="",
                file=sys.stderr,
                flush=True,
            )
    return {
        each.way.name: _measured(recorded, each, _minus(each.upstream.bill, bases[each.way.name]))
        for each in lanes
    }


# What came of it


@dataclass(frozen=True, slots=True)
class Run:
    bill: Usage
    charges: tuple[Usage, ...]
    seconds: tuple[float, ...]
    visible: int
    recovered: int
    resident: float
    start_seconds: float

    @property
    def cost(self) -> float:
        return self.bill.input + WRITE * self.bill.cache_write + READ * self.bill.cache_read

    @property
    def last(self) -> int:
        return _prompt_of(self.charges[-1])

    @property
    def breaks(self) -> int:
        """Calls that read less from the cache than the call before them had left there."""
        left = [charge.cache_read + charge.cache_write for charge in self.charges]
        return sum(
            charge.cache_read < before
            for charge, before in zip(self.charges[1:], left, strict=False)
        )


def _measured(recorded: Session, lane: Lane, bill: Usage) -> Run:
    """Memory first: looking facts up is not part of the session."""
    process = lane.served.process
    resident = _resident(process.pid) if process is not None else 0.0
    gone = [fact for fact in recorded.facts if fact.value not in lane.prompt]
    return Run(
        bill=bill,
        charges=tuple(lane.charges),
        seconds=tuple(lane.seconds),
        visible=len(recorded.facts) - len(gone),
        recovered=len(lane.way.recovered(gone, lane)),
        resident=resident,
        start_seconds=lane.start_seconds,
    )


def figures(
    recorded: Session, plain: Mapping[str, Run], restarted: Mapping[str, Run]
) -> dict[str, dict[str, float]]:
    direct = plain["direct"]
    told = {}
    for name, one in plain.items():
        added = [
            1e3 * (here - there) for here, there in zip(one.seconds, direct.seconds, strict=True)
        ]
        told[name] = {
            "cost_pct": 100 * one.cost / direct.cost,
            "tokens_pct": 100
            * sum(map(_prompt_of, one.charges))
            / sum(map(_prompt_of, direct.charges)),
            "last_tokens": one.last,
            "facts": len(recorded.facts),
            "facts_visible": one.visible,
            "facts_recoverable": one.visible + one.recovered,
            "cache_breaks": one.breaks,
        }
        if name == "direct":
            told[name]["call_p50_ms"] = 1e3 * quantile(list(one.seconds), 0.5)
            continue
        told[name] |= {
            "p50_ms": quantile(added, 0.5),
            "p95_ms": quantile(added, 0.95),
            "rss_mb": one.resident,
            "start_s": one.start_seconds,
            "restart_growth_pct": 100 * (restarted[name].last / one.last - 1),
            "restart_cost_growth_pct": 100 * (restarted[name].cost / one.cost - 1),
            "restart_breaks": restarted[name].breaks,
            "restart_facts_recoverable": restarted[name].visible + restarted[name].recovered,
        }
    return told


def _resident(pid: int) -> float:
    """Megabytes of a process and of those that it started."""
    listed = subprocess.check_output(["ps", "-A", "-o", "pid=,ppid=,rss="], text=True).split("\n")
    rows = [tuple(map(int, row.split())) for row in listed if row.strip()]
    family = {pid}
    for _ in range(3):  # generations
        family |= {child for child, parent, _ in rows if parent in family}
    return sum(kilobytes for each, _, kilobytes in rows if each in family) / 1024


def _prompt_of(charge: Usage) -> int:
    return charge.input + charge.cache_read + charge.cache_write


def _minus(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.input - other.input,
        one.cache_read - other.cache_read,
        one.cache_write - other.cache_write,
        one.output - other.output,
    )


def _plus(one: Usage, other: Usage) -> Usage:
    return _minus(one, _minus(Usage(), other))


def _body(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Marked as coding agents do it: the end of the system prompt, and the newest block, which
    moves with every call."""
    *before, newest = messages
    blocks = newest["content"]
    marked = {**newest, "content": [*blocks[:-1], {**blocks[-1], **_MARK}]}
    system = [{"type": "text", "text": SYSTEM, **_MARK}]
    return {
        "model": MODEL,
        "max_tokens": 4096,
        "system": system,
        "tools": TOOLS,
        "messages": [*before, marked],
    }


def _said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])


def _text(request: Received) -> str:
    """Every string in a request, as a model reads it: without JSON's escapes."""
    found: list[str] = []
    pending: list[Any] = [request.json()]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value
    return "\n".join(found)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
