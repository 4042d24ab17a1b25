"""After a compaction or /clear of a client, does the next request carry one reference, and does no
other request carry one?

    python -m bench.compaction                     recorded sessions   (make bench-compaction)
    python -m bench.compaction --clients FOLDER    real clients; FOLDER holds `codex` and `pi`

Recorded sessions of HOTSET_BENCH_DATA (default: ../shared/data) go through a real proxy in the
order in which they happened: of each conversation its first request, the last before each
compaction, the first after it and the last, with the times, session names and marks of its client.
`nothing before`: the first recorded session began with /clear. `silent`: a mark without a
reference, because another session ran beside the one before, or that was too long ago.

Real clients run in a folder of their own against a scripted upstream: Codex until it compacts by
itself, pi until it is told to. `npm install @openai/codex @mariozechner/pi-coding-agent` has them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.proxy.wire import post

from bench.results import tell
from hotset.nouns.knobs import Knobs
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.upstream.script import Received

HERE = Path(__file__).parent
DATA = (
    Path(os.environ.get("HOTSET_BENCH_DATA", HERE.parent.parent / "shared" / "data"))
    / "trajectories"
)
_PI = "The conversation history before this point was compacted into the following summary:\n\n"
_TOLD = {"compacted": b"[hotset: the client compacted", "cleared": b"[hotset: the user began anew"}
_CLEAR = "<command-name>/clear</command-name>"
_TOOL = "any_tool"
_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True)
class RecordedClient:
    """How the client of a set speaks."""

    dialect: str
    agent: str
    session: str
    """The header with its session's name; empty if it has none."""


CLIENTS = {
    "codex-agentv": RecordedClient("openai-responses", "codex_cli_rs/0.1", "session_id"),
    "cc-packmind": RecordedClient("anthropic", "claude-cli/2.1 (cli)", "x-claude-code-session-id"),
    "cc-cipherbox": RecordedClient("anthropic", "claude-cli/2.1 (cli)", "x-claude-code-session-id"),
    "pi-mono": RecordedClient("anthropic", "Anthropic/JS 0.91", ""),
    "mini-gemini3-150": RecordedClient("openai-chat", "litellm/1", ""),
    "tau-airline-gpt4o": RecordedClient("openai-chat", "litellm/1", ""),
}


@dataclass(frozen=True)
class Sending:
    """One request of a recorded session."""

    time: float
    session: str
    messages: list[dict[str, Any]]
    cut: str
    """What its client did before it: compacted, cleared, or nothing."""
    first: bool
    """It is the first since then."""


def sendings(session: dict[str, Any], name: str, after: float) -> Iterator[Sending]:
    """The requests that matter of one session; without times it begins at `after`."""
    every, id = session["msgs"], session["id"]
    cuts = [at for at, each in enumerate(every) if each.get("x") == "compact"]
    for begin, end in pairwise((-1, *cuts, len(every))):
        head = [_summary(every[begin], name)] if begin >= 0 else []
        part = every[begin + 1 : end]
        reply = next((at for at, each in enumerate(part) if each["r"] == "assistant"), len(part))
        opening = [*head, *part[:reply]]
        clears = any(_CLEAR in (each.get("t") or "") for each in part[:reply])
        cut = "compacted" if head else "cleared" if clears else ""
        times = [each["ts"] for each in part if each.get("ts")] or [after]
        if opening:
            yield Sending(times[0], id, opening, cut, first=True)
        last = max((at for at, each in enumerate(part) if each["r"] != "assistant"), default=0)
        if last > reply:
            yield Sending(times[-1], id, [*head, *part[: last + 1]], cut, first=False)


def _summary(each: dict[str, Any], name: str) -> dict[str, Any]:
    """A compaction as its client sends it."""
    if name == "pi-mono":
        return {"r": "user", "t": f"{_PI}<summary>\n{each['t']}\n</summary>"}
    return each if each["t"] else {"r": "compaction", "t": str(each.get("ts"))}


def body(client: RecordedClient, messages: list[dict[str, Any]]) -> bytes:
    """A request in the client's dialect."""
    write = {
        "anthropic": _anthropic,
        "openai-chat": _chat,
        "openai-responses": _responses,
    }[client.dialect]
    return json.dumps(write(messages)).encode()


def _anthropic(messages: list[dict[str, Any]]) -> dict[str, Any]:
    written: list[dict[str, Any]] = []
    for each in messages:
        if each["r"] == "system":
            continue
        role = "assistant" if each["r"] == "assistant" else "user"
        blocks: list[dict[str, Any]] = []
        if each["r"] == "tool":
            blocks.append(
                {"type": "tool_result", "tool_use_id": each["id"], "content": each["t"] or "-"}
            )
        elif (each.get("t") or "").strip():
            blocks.append({"type": "text", "text": each["t"]})
        blocks += [
            {"type": "tool_use", "id": call["id"], "name": call["n"], "input": _arguments(call)}
            for call in each.get("calls") or ()
        ]
        if written and written[-1]["role"] == role:
            written[-1]["content"] += blocks
        elif blocks:
            written.append({"role": role, "content": blocks})
    tools = [{"name": _TOOL, "input_schema": _SCHEMA}]
    return {"model": "claude-sonnet-5", "max_tokens": 1000, "messages": written, "tools": tools}


def _arguments(call: dict[str, Any]) -> Any:
    if not isinstance(call["a"], str):
        return call["a"]
    try:
        given = json.loads(call["a"])
    except ValueError:
        given = None
    return given if isinstance(given, dict) else {"text": call["a"]}


def _chat(messages: list[dict[str, Any]]) -> dict[str, Any]:
    written = []
    for each in messages:
        one: dict[str, Any] = {"role": each["r"], "content": each.get("t") or ""}
        if each["r"] == "tool":
            one["tool_call_id"] = each["id"]
        if each.get("calls"):
            one["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["n"], "arguments": json.dumps(_arguments(call))},
                }
                for call in each["calls"]
            ]
        written.append(one)
    tools = [{"type": "function", "function": {"name": _TOOL, "parameters": _SCHEMA}}]
    return {"model": "gpt-5.4", "messages": written, "tools": tools}


def _responses(messages: list[dict[str, Any]]) -> dict[str, Any]:
    written: list[dict[str, Any]] = []
    for each in messages:
        if each["r"] == "compaction":
            written.append({"type": "compaction", "encrypted_content": each["t"]})
        elif each["r"] == "tool":
            written.append(
                {"type": "function_call_output", "call_id": each["id"], "output": each["t"]}
            )
        elif each.get("t"):
            written.append({"role": each["r"], "content": each["t"]})
        written += [
            {
                "type": "function_call",
                "call_id": call["id"],
                "name": call["n"],
                "arguments": json.dumps(_arguments(call)),
            }
            for call in each.get("calls") or ()
        ]
    tools = [{"type": "function", "name": _TOOL, "parameters": _SCHEMA, "strict": False}]
    return {"model": "gpt-5.4", "store": False, "input": written, "tools": tools}


def recorded(name: str, clear: str) -> dict[str, float]:
    """Counts over the sessions of one set."""
    client = CLIENTS[name]
    every: list[Sending] = []
    with gzip.open(DATA / f"{name}.jsonl.gz") as lines:
        for line in lines:
            after = max((each.time for each in every), default=0.0) + 60
            every += sendings(json.loads(line), name, after)
    every.sort(key=lambda each: each.time)
    counts: Counter[str] = Counter()
    now = [0.0]
    known: set[str] = set()
    with (
        tempfile.TemporaryDirectory() as folder,
        ScriptedUpstream(lambda _: Say("Yes.")) as upstream,
        LocalProxy(
            Path(folder) / "data",
            openai_url=upstream.openai_url,
            anthropic_url=upstream.anthropic_url,
            knobs=Knobs().turned({"successor.clear": clear}),
            clock=lambda: now[0],
        ) as proxy,
    ):
        for each in every:
            now[0] = each.time
            headers = {"user-agent": client.agent}
            if client.session:
                headers[client.session] = each.session
            post(proxy.address, client.dialect, body(client, each.messages), headers)
            sent = upstream.requests[-1].decoded
            got = next((cut for cut, mark in _TOLD.items() if mark in sent), "")
            alone = each.cut == "cleared" and not known
            marked = each.first and each.cut != ""
            counts["requests"] += 1
            counts[f"{each.cut} marks"] += marked
            counts[f"{each.cut} found"] += marked and got == each.cut
            counts["nothing before"] += marked and alone
            counts["silent"] += marked and not got and not alone
            counts["false"] += got not in ("", each.cut)
            known.add(each.session)
    names = ("requests", *(f"{cut} {what}" for cut in _TOLD for what in ("marks", "found")))
    return {name: counts[name] for name in (*names, "nothing before", "silent", "false")}


# Real clients


def model(request: Received) -> Say:
    """Writes a file, reads until the client compacts, and ends."""
    text = request.decoded.decode()
    given = json.loads(text)
    names = [str(tool.get("name") or tool.get("type")) for tool in given.get("tools") or ()]
    if not names:
        return Say("Summary: auth.py was read and migrate.py written; the migration is open.")
    if re.search("Another language model started|history before this point was compacted", text):
        return Say("Done.")
    shell = next(name for name in names if name in ("exec_command", "shell_command", "bash"))
    key = "cmd" if shell == "exec_command" else "command"
    patch = "*** Begin Patch\n*** Add File: migrate.py\n+# written\n*** End Patch\n"
    steps = (f"apply_patch <<'EOF'\n{patch}EOF\n", f"cat auth.py; echo {request.index}")
    if "migrate.py" not in text:
        write = Call("write", {"path": "migrate.py", "content": "# written\n"})
        return Say("", calls=(write if "write" in names else Call(shell, {key: steps[0]}),))
    if request.index < 12:
        return Say("", calls=(Call(shell, {key: steps[1]}),))
    return Say("Enough.")


def real(name: str, clients: Path) -> dict[str, float]:
    """One run of a real client until it goes on after a compaction; prints what it was given."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ScriptedUpstream(model) as upstream,
        LocalProxy(
            Path(folder) / "data",
            openai_url=upstream.openai_url,
            anthropic_url=upstream.anthropic_url,
        ) as proxy,
    ):
        home, project = Path(folder) / "home", Path(folder) / "project"
        home.mkdir()
        project.mkdir()
        (project / "auth.py").write_text(
            "\n".join(f"def expires_{n}(token): return token.issued + {n}" for n in range(400))
        )
        own = {"HOME": str(home), "CODEX_HOME": str(home), _KEY: "none", "PI_OFFLINE": "1"}
        run = _run_codex if name == "codex" else _run_pi
        run(str(clients / name), proxy, project, {**os.environ, **own})
        waits = proxy.machine.tally.waits.figures()
        bodies = [each.decoded.decode() for each in upstream.requests]
    told = [each for each in bodies if _TOLD["compacted"].decode() in each]
    if told:
        shown = re.search(r"\[hotset: the client compacted.*?(?<!\\)\"", told[0])
        print(shown[0].replace("\\n", "\n") if shown else "")
    counts = [each.count("[CTX-REF") for each in told]
    return {
        "requests": len(bodies),
        "with one": counts.count(1),
        "with several": sum(counts) - len(counts),
        "cpu_p99_ms": waits.cpu_p99_ms,
        "cpu_longest_ms": waits.cpu_longest_ms,
    }


_KEY = "BENCH_KEY"


def _run_codex(program: str, proxy: LocalProxy, project: Path, environ: dict[str, str]) -> None:
    url = proxy.address.openai_base_url
    provider = f'{{name="bench",base_url="{url}",env_key="{_KEY}",wire_api="responses"}}'
    settings = (
        'model_provider="bench"',
        f"model_providers.bench={provider}",
        'model="gpt-5.4"',
        'sandbox_mode="danger-full-access"',
        "model_auto_compact_token_limit=14000",
    )
    options = ["--skip-git-repo-check", *(word for each in settings for word in ("-c", each))]
    for words in (["Fix the expiry in auth.py"], ["resume", "--last", "Now go on."]):
        subprocess.run(
            [program, "exec", *words[:-1], *options, words[-1]],
            cwd=project,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=True,
        )


def _run_pi(program: str, proxy: LocalProxy, project: Path, environ: dict[str, str]) -> None:
    agent = Path(environ["HOME"]) / ".pi" / "agent"
    agent.mkdir(parents=True)
    provider = {
        "baseUrl": proxy.address.anthropic_base_url,
        "api": "anthropic-messages",
        "apiKey": _KEY,
        "models": [{"id": "claude-sonnet-5", "contextWindow": 200_000, "maxTokens": 4000}],
    }
    (agent / "models.json").write_text(json.dumps({"providers": {"bench": provider}}))
    (agent / "settings.json").write_text('{"compaction": {"keepRecentTokens": 1500}}')
    with subprocess.Popen(
        [program, "--mode", "rpc", "--model", "bench/claude-sonnet-5"],
        cwd=project,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        prompts = ("Fix the expiry in auth.py", "", "Now the migration.", "Go on.")
        for words in prompts:
            order = {"type": "prompt", "message": words} if words else {"type": "compact"}
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            ends = "agent_end" if words else "compact"
            for line in process.stdout:
                event = json.loads(line)
                if ends in (event["type"], event.get("command")):
                    break
        process.terminate()


_SECONDS = 180


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--clients", type=Path, help="the folder with `codex` and `pi`")
    parser.add_argument("--clear", default="said", help="the knob successor.clear")
    parser.add_argument("--set", action="append", choices=CLIENTS, help="only these recordings")
    options = parser.parse_args()
    if options.clients is not None:
        tell(
            "compaction_clients",
            {each: {"hotset": real(each, options.clients)} for each in ("codex", "pi")},
        )
    else:
        names = options.set or list(CLIENTS)
        tell("compaction", {each: {"hotset": recorded(each, options.clear)} for each in names})


if __name__ == "__main__":
    main()
