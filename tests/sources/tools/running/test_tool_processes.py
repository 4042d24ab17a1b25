"""Servers are started, spoken to and ended; what goes wrong is told in a sentence; nothing of them
stays."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import os
import resource
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from running_stories import children, descriptors, left, pids, server, started, told
from tests.waiting import lives, wait_until

from hotset.errors import ToolFailed
from hotset.nouns.tool import Stdio
from hotset.sources.tools.found.folders import host_launch
from hotset.sources.tools.running.processes import Messages, ServerGone, Supervisor, memory_of

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

WRITES_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)), flush=True)"


def test_what_is_sent_comes_back_in_order(tmp_path):
    async def story(supervisor):
        channel = await started(supervisor, "echo", tmp_path)
        for number in range(50):
            await channel.send(b'{"number": %d}' % number)
        said = [json.loads(await channel.receive()) for _ in range(50)]
        await channel.close()
        return said

    assert told(story) == [{"number": number} for number in range(50)]


def test_a_message_of_two_megabytes_goes_there_and_back_whole(tmp_path):
    message = json.dumps({"text": "é" * 1_000_000}, ensure_ascii=False).encode()

    async def story(supervisor):
        channel = await started(supervisor, "echo", tmp_path)
        _, said = await asyncio.gather(channel.send(message), channel.receive())
        await channel.close()
        return said

    assert told(story) == message


@given(
    st.lists(
        st.sampled_from(
            [
                b'{"a": 1}',
                b"  {}\r",
                b'[{"b": 2}]',
                b"",
                b"[INFO] up",
                b"ready",
                b'{"text": "\xc3\xa9"}',
            ]
        ),
        max_size=12,
    ),
    st.lists(st.integers(1, 9), max_size=40),
    st.booleans(),
)
@pytest.mark.slow
def test_messages_are_the_same_however_the_bytes_come_in(lines, sizes, is_ended):
    stream = b"\n".join(lines) + (b"\n" if is_ended else b"")
    garbage = []
    messages = Messages(on_garbage=garbage.append, on_too_long=pytest.fail)
    for size in sizes:
        piece, stream = stream[:size], stream[size:]
        messages.data_received(piece)
    messages.data_received(stream)
    messages.connection_lost(None)

    async def heard():
        return [message async for message in until_none(messages.next)]

    said = [line.strip() for line in lines if line.strip()]
    assert asyncio.run(heard()) == [line for line in said if line.startswith((b"{", b"[{"))]
    assert garbage == [line for line in said if not line.startswith((b"{", b"[{"))]
    assert messages.garbage == len(garbage)


async def until_none(call):
    while (given_ := await call()) is not None:
        yield given_


def test_a_server_that_reads_nothing_makes_the_sender_wait_and_not_us_grow(tmp_path):
    async def story(supervisor):
        channel = await started(supervisor, "deaf", tmp_path)
        sending = asyncio.create_task(channel.send(b"{%s}" % (b" " * 4_000_000)))
        await channel.receive()
        await asyncio.sleep(0.05)
        waits = not sending.done()
        channel.kill()
        with pytest.raises(ServerGone):
            await sending
        return waits

    assert told(story)


@pytest.mark.slow
def test_a_server_that_writes_faster_than_anyone_reads_loses_nothing(tmp_path):
    async def story(supervisor):
        channel = await started(supervisor, "flood", tmp_path)
        await asyncio.sleep(0.3)
        assert lives(channel.pid)  # it has to wait for us
        numbers = []
        while (message := await channel.receive()) is not None:
            numbers.append(json.loads(message)["number"])
        await channel.close()
        return numbers

    assert told(story) == list(range(20_000))


def test_a_server_that_talks_much_on_stderr_never_has_to_wait_and_its_last_words_are_short(
    tmp_path,
):
    async def story(supervisor):
        channel = await started(supervisor, "chatty", tmp_path)
        await channel.send(b"{}")
        said = await channel.receive()
        words = channel.last_words()
        await channel.close()
        return said, words

    said, words = told(story)
    assert said == b"{}"
    assert words.endswith("line 39999 of what nobody asked for")
    assert 1_900 < len(words) <= 2_000


def test_lines_that_are_no_messages_are_passed_over_counted_and_remembered(tmp_path):
    async def story(supervisor):
        channel = await started(supervisor, "banner", tmp_path)
        said = await channel.receive()
        await channel.close()
        return said, channel.garbage, channel.last_words()

    assert told(story) == (b'{"first": 1}', 2, "ready\n[INFO] listening")


def test_a_message_without_an_end_ends_the_server_and_says_why(tmp_path):
    async def story(supervisor):
        channel = await started(supervisor, "endless", tmp_path)
        said = await channel.receive()
        await channel.close()
        return said, channel.last_words()

    said, words = told(story)
    assert said is None
    assert "more than 32 MiB" in words
    assert left(tmp_path) == set()


def test_the_last_words_of_a_server_that_died_tell_how(tmp_path):
    async def story(supervisor):
        channel = await started(supervisor, "crash", tmp_path)
        await channel.send(b"{}")
        ends = [await channel.receive(), await channel.receive()]
        words = channel.last_words()
        with pytest.raises(ServerGone, match="has ended"):
            await channel.send(b"{}")
        await channel.close()
        return ends, words

    assert told(story) == ([None, None], "something broke\n[it was ended by SIGSEGV]")


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("no-such-program",), "there is no program 'no-such-program'"),
        (("./text",), "'./text' is no file that may be executed; `chmod \\+x` it"),
        (("./shapeless",), "its first line should name its interpreter"),
        (("./orphaned",), "the interpreter that its first line names is missing"),
        (("/",), "is no file that may be executed"),
        ((), "has no command"),
        (("cat", "a\0b"), "null character"),
        (("cat", "x" * 3_000_000), "too long"),
    ],
)
@pytest.mark.rest_slow
def test_what_cannot_be_started_is_told_in_a_sentence(tmp_path, command, sentence):
    for name, content, mode in (
        ("text", "", 0o600),
        ("shapeless", "words", 0o700),
        ("orphaned", "#!/no/such/interpreter\n", 0o700),
    ):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(mode)

    async def story(supervisor):
        with pytest.raises(ToolFailed, match=sentence):
            await supervisor.start(Stdio(command), cwd=str(tmp_path))

    told(story)


@pytest.mark.parametrize(
    ("folder", "sentence"), [("missing", "does not exist"), ("file", "is not a folder")]
)
def test_a_folder_that_is_none_is_told_in_a_sentence(tmp_path, folder, sentence):
    (tmp_path / "file").write_text("")

    async def story(supervisor):
        with pytest.raises(ToolFailed, match=sentence):
            await supervisor.start(Stdio(("cat",)), cwd=str(tmp_path / folder))

    told(story)


def test_a_server_gets_a_few_variables_and_its_own_and_no_key(tmp_path, monkeypatch):
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": "/home/of",
        "LC_TIME": "C",
        "HTTPS_PROXY": "http://proxy",
        "OPENAI_API_KEY": "secret",
        "HOTSET_TOKEN": "secret",
        "LANG": "() { :; }",
    }
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")

    async def story():
        supervisor = Supervisor(environ)
        launch = Stdio(
            (sys.executable, "-I", "-c", WRITES_ENVIRONMENT), env={"HOME": "/other", "OWN": "value"}
        )
        channel = await supervisor.start(launch, cwd=str(tmp_path))
        said = json.loads(await channel.receive())
        await channel.close()
        supervisor.close()
        return said

    kept = {
        "PATH": environ["PATH"],
        "LC_TIME": "C",
        "HTTPS_PROXY": "http://proxy",
        "HOME": "/other",
        "OWN": "value",
    }
    said = asyncio.run(story())
    assert {
        name: value for name, value in said.items() if name != "LC_CTYPE"
    } == kept  # Python itself may set that one


@linux
def test_a_server_has_its_three_pipes_and_nothing_else_of_ours(tmp_path):
    program = (
        "import json, os; print(json.dumps({'open': os.listdir('/proc/self/fd'), 'cwd': "
        "os.getcwd(), "
        "'leads': os.getsid(0) == os.getpid()}), flush=True)"
    )

    async def story(supervisor):
        others = [await started(supervisor, "echo", tmp_path) for _ in range(2)]
        channel = await supervisor.start(
            Stdio((sys.executable, "-I", "-S", "-c", program)), cwd=str(tmp_path)
        )
        said = json.loads(await channel.receive())
        for each in (channel, *others):
            await each.close()
        return said

    said = told(story)
    assert len(said["open"]) == 4  # the fourth is how it looked
    assert (said["cwd"], said["leads"]) == (str(tmp_path), True)


def test_a_server_whose_stdin_ends_is_left_to_end_by_itself(tmp_path):
    program = "import sys, pathlib; sys.stdin.read(); pathlib.Path('bye').write_text('said')"

    async def story(supervisor):
        channel = await supervisor.start(
            Stdio((sys.executable, "-I", "-c", program)), cwd=str(tmp_path)
        )
        await channel.close()

    told(story)
    assert (tmp_path / "bye").read_text() == "said"


@pytest.mark.parametrize("kind", ["polite", "asleep"])
@pytest.mark.rest_slow
def test_a_server_that_does_not_hear_the_end_is_asked_to_terminate(tmp_path, kind):
    async def story(supervisor):
        channel = await started(supervisor, kind, tmp_path)
        await channel.receive()
        await channel.close()
        return channel.pid

    assert not lives(told(story))
    assert (tmp_path / "tidied").exists()


@pytest.mark.parametrize("kind", ["deaf", "stopped"])
@pytest.mark.slow
def test_a_server_that_does_not_hear_anything_is_killed(tmp_path, kind):
    async def story(supervisor):
        channel = await started(supervisor, kind, tmp_path)
        await channel.receive()
        await asyncio.gather(channel.close(), channel.close())

    told(story)
    assert pids(tmp_path)
    assert left(tmp_path) == set()


@linux
@pytest.mark.parametrize("kind", ["daemon", "family", "hopper"])
@pytest.mark.rest_slow
def test_what_a_server_leaves_behind_is_gone_when_it_is_closed(tmp_path, kind):
    async def story(supervisor):
        other, channel = (
            await started(supervisor, "echo", tmp_path),
            await started(supervisor, kind, tmp_path),
        )
        for each in (other, channel):
            await each.send(b"{}")
            await each.receive()
        await channel.close()
        remaining = left(tmp_path)
        await other.send(b"{}")
        return remaining, other.pid, await other.receive()

    remaining, other, said = told(story)
    assert remaining == {other}
    assert said == b"{}"
    assert len(pids(tmp_path)) > 2 or kind == "hopper"


def test_a_receive_that_waits_hears_of_the_end(tmp_path):
    async def story(supervisor):
        channel = await started(supervisor, "echo", tmp_path)
        waiting = asyncio.create_task(channel.receive())
        await asyncio.sleep(0)
        await channel.close()
        return await waiting

    assert told(story) is None


@pytest.mark.slow
def test_closing_the_warden_ends_every_server_at_once(tmp_path):
    async def story(supervisor):
        for kind in ("echo", "deaf", "stopped", "daemon"):
            channel = await started(supervisor, kind, tmp_path)
            if kind in ("echo", "daemon"):
                await channel.send(b"{}")
            await channel.receive()

    told(story)
    assert len(pids(tmp_path)) == 5
    assert left(tmp_path) == set()


@linux
def test_when_the_warden_is_killed_servers_go_on_and_the_next_start_finds_another(tmp_path):
    async def story(supervisor):
        first = await started(supervisor, "daemon", tmp_path)
        os.kill(supervisor._process.pid, signal.SIGKILL)
        second = await started(supervisor, "echo", tmp_path)
        for channel in (first, second):
            await channel.send(b"{}")
            assert await channel.receive() == b"{}"
        await first.close()
        assert left(tmp_path) == {second.pid}
        await second.close()

    told(story)


@linux
def test_when_a_guard_is_killed_its_server_and_what_that_left_are_killed(tmp_path):
    async def story(supervisor):
        channel = await started(supervisor, "daemon", tmp_path)
        await channel.send(b"{}")
        await channel.receive()
        (reaper,) = children(supervisor._process.pid)
        os.kill(reaper, signal.SIGKILL)
        assert await channel.receive() is None
        await asyncio.to_thread(wait_until, lambda: not left(tmp_path))
        await channel.close()

    told(story)
    assert len(pids(tmp_path)) == 2


@pytest.mark.parametrize("size", [1, 2_000_000])
@pytest.mark.rest_slow
def test_a_start_that_is_cancelled_leaves_nothing_and_the_next_one_works(tmp_path, size):
    launch = server("echo", tmp_path)
    long = Stdio((*launch.command, "x" * size))  # in one piece, and in many

    async def story(supervisor):
        for turns in range(12):
            starting = asyncio.create_task(supervisor.start(long, cwd=str(tmp_path)))
            for _ in range(turns):
                await asyncio.sleep(0)
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting
        channel = await started(supervisor, "echo", tmp_path)
        await asyncio.to_thread(wait_until, lambda: left(tmp_path) <= {channel.pid})
        await channel.close()

    told(story)


@linux
@pytest.mark.slow
def test_two_hundred_starts_and_stops_leak_no_descriptor_and_no_process(tmp_path):
    async def story(supervisor):
        async def once():
            channel = await supervisor.start(Stdio(("cat",)), cwd=str(tmp_path))
            await channel.send(b"{}")
            assert await channel.receive() == b"{}"
            await channel.close()

        await once()
        gc.collect()
        before = descriptors()
        for _ in range(20):
            await asyncio.gather(*(once() for _ in range(10)))
        await asyncio.to_thread(wait_until, lambda: not children(supervisor._process.pid))
        return before, descriptors()

    before, after = told(story)
    assert after <= before  # fewer, where something of an earlier test was collected meanwhile


@linux
def test_the_memory_of_a_server_includes_what_it_started(tmp_path):
    async def story(supervisor):
        alone, many = (
            await started(supervisor, "echo", tmp_path),
            await started(supervisor, "family", tmp_path),
        )
        for channel in (alone, many):
            await channel.send(b"{}")
            await channel.receive()
        memories = memory_of(alone.pid), memory_of(many.pid)
        await asyncio.gather(alone.close(), many.close())
        return memories, memory_of(alone.pid)

    (alone, many), gone = told(story)
    assert 1 << 20 < alone < 1 << 27
    assert many > 2 * alone
    assert gone == 0


def test_a_host_runs_in_the_folders_own_python_where_it_has_one(tmp_path):
    script = tmp_path / "scripts" / "tools.py"
    assert host_launch(tmp_path, [script]).command[0] == sys.executable
    own = tmp_path / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.symlink_to(sys.executable)
    command = host_launch(tmp_path, [script]).command
    assert command[0] == str(own)
    assert Path(command[3]).name == "host.py"
    assert command[4:] == (str(tmp_path), str(script))


def test_the_command_of_a_server_is_read_by_no_shell_and_may_hold_any_character(tmp_path):
    folder = tmp_path / "été 日本\n"
    folder.mkdir()
    said = '{"a": "$HOME; `id` é 日本"}'

    async def story(supervisor):
        channel = await supervisor.start(
            Stdio(("sh", "-c", 'pwd >&2; echo "$1$OWN"', "sh", said), env={"OWN": "  "}),
            cwd=str(folder),
        )
        message = await channel.receive()
        words = channel.last_words()
        await channel.close()
        return message.decode(), words

    message, words = told(story)
    assert message == said
    assert words.startswith(str(folder).strip())


def test_after_the_end_nothing_is_started_any_more(tmp_path):
    async def story(turns):
        supervisor = Supervisor()
        starting = asyncio.create_task(started(supervisor, "echo", tmp_path))
        for _ in range(turns):
            await asyncio.sleep(0)
        supervisor.close()
        for late in (starting, started(supervisor, "echo", tmp_path)):
            with pytest.raises(ToolFailed, match="about to end"):
                await late

    for turns in range(12):
        asyncio.run(story(turns))
    assert left(tmp_path) == set()


def limit_with(spare: int) -> int:
    """The limit of descriptors below which this many are free."""
    used = {int(path.name) for path in Path("/proc/self/fd").iterdir()}
    free = (number for number in itertools.count() if number not in used)
    return next(itertools.islice(free, spare, None))


@linux
def test_without_a_free_descriptor_a_start_fails_in_a_sentence_and_works_again_when_there_are_some(
    tmp_path,
):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def story(supervisor):
        before, refused = descriptors(), []
        for spare in range(12):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit_with(spare), hard))
            try:
                channel = await supervisor.start(Stdio(("cat",)), cwd=str(tmp_path))
                await channel.close()
            except ToolFailed as error:
                refused.append(str(error))
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        channel = await supervisor.start(Stdio(("cat",)), cwd=str(tmp_path))
        await channel.close()
        return before, descriptors(), refused

    before, after, refused = told(story)
    assert after == before + 1  # the supervisor's
    assert (
        "'cat' was not started: Too many open files; stop something else and try again" in refused
    )
