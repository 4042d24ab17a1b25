"""A program that uses the library has stdout and stderr for itself, whatever goes wrong: the
`hotset` logger is told."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.upstream.script import Received

PRELUDE = """
import asyncio, os, sys, threading, time
from pathlib import Path
import anthropic, openai
import hotset
from hotset.errors import DiskFull, HotsetError, StoreFailed
from hotset.testing import RamStore
URL, DATA, HERE = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object", "properties": {}}}}]

def openai_client(kind=openai.OpenAI):
    return kind(base_url=URL + "/v1", api_key="k", max_retries=0)

def anthropic_client(kind=anthropic.Anthropic):
    return kind(base_url=URL, api_key="k", max_retries=0)

def ask(client, text="hello", **more):
    return client.chat.completions.create(
        model="gpt-5.5", messages=[{"role": "user", "content": text}], tools=TOOLS, **more
    )

def ask_anthropic(client, **more):
    return client.messages.create(
        model="claude-sonnet-5", max_tokens=500, messages=[{"role": "user", "content": "hello"}], **more
    )

def use(memory):
    client = memory.wrap(openai_client())
    for number in range(2):
        ask(client, f"hello {number}")
    for _ in ask(client, stream=True):
        pass
    for _ in ask_anthropic(memory.wrap(anthropic_client()), stream=True):
        pass
    for look in (lambda: memory.search("hello"), memory.savings, lambda: memory.memories.recall("hello")):
        try:
            look()
        except HotsetError:
            pass
"""  # noqa: E501

LOGGED = """
import logging
logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
"""

PROGRAMS = {
    "all is well": """
        async def work(memory):
            client = memory.wrap(openai_client(openai.AsyncOpenAI))
            await ask(client)
            await ask_anthropic(memory.wrap(anthropic_client(anthropic.AsyncAnthropic)))
            async with await ask(client, stream=True) as stream:
                await anext(aiter(stream))
            left = asyncio.create_task(ask(client, "later"))
            await asyncio.sleep(0)
            left.cancel()
            try:
                await left
            except asyncio.CancelledError:
                pass
        memory = hotset.open(HERE, data=DATA / "loops")
        for _ in range(2):
            asyncio.run(work(memory))
        nowhere = openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="k", max_retries=0)
        for stream in (False, True):
            try:
                ask(memory.wrap(nowhere), stream=stream)
            except openai.APIConnectionError:
                pass
        with hotset.open(HERE, data=DATA) as memory:
            use(memory)

            @memory.tools.register
            def break_down(x: int) -> str:
                "Breaks down."
                raise ValueError("out of order")

            memory.tools.use("break_down", {"x": 1})
    """,
    "nobody closes anything": """
        client = hotset.wrap(openai_client())
        ask(client)
        stream = ask(client, stream=True)
        next(iter(stream))
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn every program with threads that forks
        child = os.fork()
        if not child:
            try:
                ask(client, "from the child")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        other = hotset.open(HERE, data=DATA)
        cut = ask(other.wrap(openai_client()), stream=True)
        next(iter(cut))
        other.close()
        try:
            list(cut)
        except Exception:
            pass
        threading.Thread(target=ask, args=(client, "while the program ends")).start()
    """,  # noqa: E501
    "the store goes and the disk is full": """
        import resource, shutil, signal
        gone = hotset.open(HERE, data=DATA / "gone")
        use(gone)
        (DATA / "gone").rename(DATA / "elsewhere")  # at once: the background still makes files in it
        shutil.rmtree(DATA / "elsewhere", ignore_errors=True)
        use(gone)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        memory = hotset.open(HERE, data=DATA / "full")
        use(memory)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        ask(memory.wrap(openai_client()), "more " * 20_000)
        use(memory)
    """,  # noqa: E501
    "the store fails and so does the background": """
        DATA.mkdir()
        (DATA / "torn").mkdir()
        (DATA / "torn" / "store.db").write_bytes(b"this is no database " * 500)
        (DATA / "file").write_text("a file")
        (DATA / "theirs").mkdir()
        os.chown(DATA / "theirs", 12345, 12345) if os.geteuid() == 0 else (DATA / "theirs").chmod(0)
        for name in ("torn", "file/inside", "theirs"):
            memory = hotset.open(HERE, data=DATA / name)
            ask(memory.wrap(openai_client()))
            ask_anthropic(memory.wrap(anthropic_client()))
        class Failing(RamStore):
            def keep(self, *deposits):
                raise DiskFull("no room is left")
            def close(self):
                raise StoreFailed("it does not close")
        class Odd(RamStore):
            def __getattribute__(self, name):
                if name in ("pages_after", "memories_after", "ungisted", "sessions", "table", "bills"):
                    raise RuntimeError("a bug")
                return super().__getattribute__(name)
        use(hotset.open(HERE, data=DATA / "failing", open_store=Failing))
        odd = hotset.open(HERE, data=DATA / "odd", open_store=Odd)
        for number in range(3):
            ask(odd.wrap(openai_client()), f"hello {number}")
        def die():
            raise RuntimeError("a bug in a thread")
        dead = threading.Thread(target=die, name="hotset-test")
        dead.start()
        dead.join()
    """,  # noqa: E501
    "the index is no index and servers fail": """
        import json
        (DATA / "tools").mkdir(parents=True)
        DATA.chmod(0o700)
        (DATA / "index").write_text("a file")
        def server(*lines):
            return {"command": sys.executable, "args": ["-c", "\\n".join(lines)]}
        servers = {
            "loud": server("import sys", f"open({str(HERE / 'ran')!r}, 'w')", "print('on stderr', file=sys.stderr)", "print(1)"),
            "crash": server("raise SystemExit('it crashed')"),
            "gone": {"command": "/no/such/program"},
        }
        (DATA / "tools" / "servers.json").write_text(json.dumps({"mcpServers": servers}))
        with hotset.open(HERE, data=DATA) as memory:
            for name in servers:
                try:
                    memory.tools.find("anything")
                    memory.tools.use(name + "__x", {})
                except HotsetError:
                    pass
            use(memory)
        assert (HERE / "ran").exists()
    """,  # noqa: E501
}
"""What a program does, by what is the matter."""

TROUBLED = {
    "the store fails and so does the background": [
        "the store keeps nothing",
        "bypassed: store: no room is left",
        "bypassed: a fault of ours in planning: RuntimeError",
        "hotset-test ended: RuntimeError",
        "the memory did not end well: StoreFailed",
    ],
}
"""What the logger is told of it."""


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def _answer(request: Received) -> Say:
    """The model uses our tools once in a while."""
    asks = b'"search_history"' in request.body and b"Let me see" not in request.body
    return (
        Say("Let me see.", calls=(Call("search_history", {"query": "x"}),)) if asks else Say("Hi.")
    )


@pytest.fixture
def ran(tmp_path: Path):
    """Runs a program to its end, as a person would: nothing is set up for it."""

    def run(what: str, before: str = "") -> Ran:
        program = tmp_path / "program.py"
        program.write_text(
            before + PRELUDE + textwrap.dedent(PROGRAMS[what]) + '\nprint("its own")\n'
        )
        env = {
            "HOME": str(tmp_path),
            "PATH": os.environ["PATH"],
            "HOTSET_CONFIG": str(tmp_path / "none.toml"),
        }
        (tmp_path / "project").mkdir()
        with ScriptedUpstream(_answer) as upstream:
            done = subprocess.run(
                [
                    sys.executable,
                    str(program),
                    upstream.anthropic_url,
                    str(tmp_path / "data"),
                    str(tmp_path / "project"),
                ],
                capture_output=True,
                text=True,
                env=env,
                cwd=tmp_path / "project",
                timeout=120,
                check=False,
            )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.mark.parametrize("what", PROGRAMS)
@pytest.mark.slow
def test_a_program_says_only_what_it_says_itself(ran, what: str):
    done = ran(what)

    assert (done.err, done.out, done.code) == ("", "its own\n", 0)


@pytest.mark.parametrize("what", TROUBLED)
@pytest.mark.slow
def test_whoever_asks_for_the_log_is_told_of_the_trouble(ran, what: str):
    done = ran(what, LOGGED)

    assert done.out == "its own\n"
    assert [trouble for trouble in TROUBLED[what] if f"hotset: {trouble}" not in done.err] == []
    assert "Traceback" not in done.err
