"""All servers of one hotset: what is started for whom, what makes room, and what is done about
those that fail."""

import asyncio
import os
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from msgspec import structs
from plain_servers import QUICK, ends, plain, pool, starts, text

from hotset.errors import MemoryClosed, ToolFailed
from hotset.nouns.tool import OriginKind, Stdio, ToolOrigin
from hotset.nouns.tooling import Tooling
from hotset.sources.tools.running.server_pool import ServerPoolThread


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def folders(parent, many):
    made = [parent / f"folder-{number}" for number in range(many)]
    for each in made:
        each.mkdir()
    return made


def sources(parent, many):
    return [
        plain(folder, f"source-{number}") for number, folder in enumerate(folders(parent, many))
    ]


def names(servers):
    return {each.source for each in servers.running()}


def a_fifo(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def test_of_thirty_sources_two_are_used_and_two_processes_run(tmp_path):
    with pool(tmp_path) as servers:
        many = sources(tmp_path, 30)
        assert servers.running() == ()
        servers.call(many[3], "echo", {"text": "x"})
        servers.call(many[17], "echo", {"text": "x"})
        servers.call(many[3], "echo", {"text": "x"})
        assert names(servers) == servers.loaded() == {"source-3", "source-17"}
        assert sum(len(starts(tmp_path / f"folder-{number}")) for number in range(30)) == 2


def test_what_runs_is_told_with_its_pid_its_memory_and_its_calls(tmp_path):
    clock = Clock()
    with pool(tmp_path, clock=clock) as servers:
        servers.call(plain(tmp_path), "echo", {"text": "x"}, session="mine")
        clock.now += 5
        servers.call(plain(tmp_path), "echo", {"text": "x"}, session="mine", pinned=True)
        (running,) = servers.running()
    assert (running.source, running.session, running.pid) == (
        "plain",
        "mine",
        starts(tmp_path)[0],
    )
    assert (running.since, running.last_used, running.calls, running.pinned) == (
        1000.0,
        1005.0,
        2,
        True,
    )
    assert running.protocol == "2025-11-25"
    assert running.bytes > 1 << 20


def test_a_process_that_was_started_to_be_listed_ends_again(tmp_path):
    with pool(tmp_path) as servers:
        listed = servers.list_tools(plain(tmp_path))
        assert "plain__echo" in {tool.name for tool in listed.tools}
        assert servers.running() == ()
        assert ends(starts(tmp_path)[0])


def test_a_process_that_runs_anyway_is_listed_and_goes_on(tmp_path):
    with pool(tmp_path) as servers:
        servers.call(plain(tmp_path), "count", {}, session="mine")
        servers.list_tools(plain(tmp_path))
        assert text(servers.call(plain(tmp_path), "count", {}, session="mine")) == "2"
        assert len(starts(tmp_path)) == 1


def test_twenty_first_calls_at_once_start_one_process(tmp_path):
    with pool(tmp_path) as servers, ThreadPoolExecutor(20) as threads:
        counted = [threads.submit(servers.call, plain(tmp_path), "count", {}) for _ in range(20)]
        assert sorted(int(text(each.result())) for each in counted) == list(range(1, 21))
    assert len(starts(tmp_path)) == 1


def test_two_sessions_of_a_source_that_keeps_state_do_not_see_each_other(tmp_path):
    with pool(tmp_path) as servers:
        source = plain(tmp_path)
        counted = [
            text(servers.call(source, "count", {}, session=session))
            for session in ("a", "b", "a", "a", "b")
        ]
        assert counted == ["1", "1", "2", "3", "2"]
        assert {each.session for each in servers.running()} == {"a", "b"}
        assert len(starts(tmp_path)) == 2


def test_sessions_of_a_source_that_keeps_nothing_share_one_process(tmp_path):
    with pool(tmp_path) as servers:
        source = plain(tmp_path, shared=True)
        assert [
            text(servers.call(source, "count", {}, session=session)) for session in ("a", "b", "c")
        ] == ["1", "2", "3"]
        (running,) = servers.running()
        assert running.session == ""


def test_what_ran_for_a_session_goes_with_it_and_nothing_else_does(tmp_path):
    own, other, shared = folders(tmp_path, 3)
    with pool(tmp_path) as servers:
        servers.call(plain(own, "own"), "count", {}, session="a")
        servers.call(plain(other, "other"), "count", {}, session="b")
        servers.call(plain(shared, "shared", shared=True), "count", {}, session="a")
        servers.end_session("a")
        assert names(servers) == {"other", "shared"}
        assert ends(starts(own)[0])
        servers.end_session("nobody")
        assert names(servers) == {"other", "shared"}


def test_over_the_limit_the_least_recently_used_makes_room(tmp_path):
    clock = Clock()
    with pool(tmp_path, structs.replace(QUICK, limit=3), clock=clock) as servers:
        many = sources(tmp_path, 4)
        for number in (0, 1, 2, 0, 3):
            clock.now += 1
            servers.call(many[number], "echo", {"text": "x"})
        assert names(servers) == {"source-0", "source-2", "source-3"}
        assert ends(starts(tmp_path / "folder-1")[0])


def test_room_is_made_before_another_process_is_used_not_afterwards(tmp_path):
    fifo = a_fifo(tmp_path)
    with (
        pool(tmp_path, structs.replace(QUICK, limit=1)) as servers,
        ThreadPoolExecutor(1) as threads,
    ):
        first, second = sources(tmp_path, 2)
        servers.call(first, "echo", {"text": "x"})
        waiting = threads.submit(servers.call, second, "wait", {"fifo": str(fifo)})
        with fifo.open("w"):
            assert ends(starts(tmp_path / "folder-0")[0])
        waiting.result()


def test_a_pinned_process_never_makes_room(tmp_path):
    clock = Clock()
    with pool(tmp_path, structs.replace(QUICK, limit=2), clock=clock) as servers:
        many = sources(tmp_path, 3)
        for number, pinned in ((0, True), (1, False), (2, False)):
            clock.now += 1
            servers.call(many[number], "echo", {"text": "x"}, pinned=pinned)
        assert names(servers) == {"source-0", "source-2"}
        clock.now += 1_000_000
        servers.tend()
        assert names(servers) == {"source-0"}


def test_a_pinned_process_of_one_session_stops_when_it_was_idle_longest(tmp_path):
    clock = Clock()
    with pool(tmp_path, structs.replace(QUICK, idle_seconds=60), clock=clock) as servers:
        servers.call(plain(tmp_path), "echo", {"text": "x"}, session="mine", pinned=True)
        clock.now += 299
        servers.tend()
        assert len(servers.running()) == 1
        clock.now += 2
        servers.tend()
        assert servers.running() == ()


def test_where_all_are_in_use_one_more_may_run_until_one_is_free(tmp_path):
    fifo = a_fifo(tmp_path)
    with (
        pool(tmp_path, structs.replace(QUICK, limit=1)) as servers,
        ThreadPoolExecutor(1) as threads,
    ):
        busy, other = sources(tmp_path, 2)
        waiting = threads.submit(servers.call, busy, "wait", {"fifo": str(fifo)})
        with fifo.open("w") as free:  # opens when the server reads it: it is in mid-call
            assert text(servers.call(other, "echo", {"text": "meanwhile"})) == "meanwhile"
            assert names(servers) == {"source-0"}
            free.write("done")
        assert text(waiting.result()) == "done"
        assert ends(starts(tmp_path / "folder-1")[0])


def test_an_idle_process_ends_and_one_that_is_used_often_is_kept_longer(tmp_path):
    clock = Clock()
    with pool(tmp_path, structs.replace(QUICK, idle_seconds=60), clock=clock) as servers:
        rare, frequent = sources(tmp_path, 2)
        servers.call(rare, "echo", {"text": "x"})
        for _ in range(30):
            servers.call(frequent, "echo", {"text": "x"})
        clock.now += 55
        servers.tend()
        assert names(servers) == {"source-0", "source-1"}
        clock.now += 60
        servers.tend()
        assert names(servers) == {"source-1"}
        clock.now += 190
        servers.tend()
        assert servers.running() == ()
        assert ends(starts(tmp_path / "folder-1")[0])


@pytest.mark.slow
def test_an_idle_process_ends_by_itself_and_so_does_the_thread_when_nothing_runs(tmp_path):
    with pool(tmp_path, structs.replace(QUICK, idle_seconds=0), linger=0) as servers:
        servers.call(plain(tmp_path), "echo", {"text": "x"})
        assert ends(starts(tmp_path)[0])
        for thread in [each for each in threading.enumerate() if each.name == "hotset-tools"]:
            thread.join(120)
            assert not thread.is_alive()
        assert text(servers.call(plain(tmp_path), "count", {})) == "1"


def test_a_source_that_changed_gets_another_process_and_the_old_one_answers_what_it_was_asked(
    tmp_path,
):
    fifo = a_fifo(tmp_path)
    old = plain(tmp_path)
    new = replace(old, stamp="another")
    with pool(tmp_path) as servers, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(servers.call, old, "wait", {"fifo": str(fifo)})
        with fifo.open("w") as free:
            assert text(servers.call(new, "count", {})) == "1"
            first, second = starts(tmp_path)
            assert {each.pid for each in servers.running()} == {first, second}
            free.write("to the end")
        assert text(waiting.result()) == "to the end"
        assert ends(first)
        assert text(servers.call(new, "count", {})) == "2"


def test_a_crash_in_mid_call_is_told_with_its_last_words_but_no_key_and_not_tried_again(tmp_path):
    key = "a-key-of-no-known-shape"
    source = plain(tmp_path, env={"KEY": key})
    with pool(tmp_path) as servers:
        with pytest.raises(ToolFailed, match="it hurts") as told:
            servers.call(source, "crash", {})
        assert "check before you call it again" in str(told.value)
        assert key not in str(told.value)
        assert len(starts(tmp_path)) == 1
        assert text(servers.call(source, "count", {})) == "1"


def test_the_last_words_that_are_told_are_few(tmp_path):
    with pool(tmp_path) as servers, pytest.raises(ToolFailed) as told:
        servers.call(plain(tmp_path, env={"KEY": "x " * 10_000}), "crash", {})
    assert len(str(told.value)) < 1000


def test_a_process_that_died_while_nobody_used_it_is_started_again_for_the_next_call(tmp_path):
    with pool(tmp_path) as servers:
        servers.call(plain(tmp_path), "count", {})
        (pid,) = starts(tmp_path)
        os.kill(pid, 9)
        assert ends(pid)
        assert text(servers.call(plain(tmp_path), "count", {})) == "1"
        assert len(starts(tmp_path)) == 2


@pytest.mark.slow
def test_a_server_that_hangs_is_given_up_and_the_others_go_on(tmp_path):
    hanging, other = sources(tmp_path, 2)
    with pool(tmp_path, Tooling(call_seconds=2)) as servers, ThreadPoolExecutor(1) as threads:
        servers.call(other, "echo", {"text": "x"})
        servers.call(hanging, "echo", {"text": "x"})
        given_up = threads.submit(servers.call, hanging, "hang", {})
        assert text(servers.call(other, "echo", {"text": "meanwhile"})) == "meanwhile"
        with pytest.raises(ToolFailed, match=r"in 2 s.*hotset tools status"):
            given_up.result()
        assert "hanging" not in servers.troubles()


@pytest.mark.slow
def test_a_server_that_hangs_twice_in_a_row_is_replaced(tmp_path):
    with pool(tmp_path, Tooling(call_seconds=1.5)) as servers:
        for counted in ("1", "2"):
            assert text(servers.call(plain(tmp_path), "count", {})) == counted
            with pytest.raises(ToolFailed):
                servers.call(plain(tmp_path), "hang", {})
        assert text(servers.call(plain(tmp_path), "count", {})) == "3"
        with pytest.raises(ToolFailed):
            servers.call(plain(tmp_path), "hang", {})
        with pytest.raises(ToolFailed):
            servers.call(plain(tmp_path), "hang", {})
        assert ends(starts(tmp_path)[0])
        assert text(servers.call(plain(tmp_path), "count", {})) == "1"


def test_a_server_that_never_greets_is_given_up(tmp_path):
    with pool(tmp_path, Tooling(list_seconds=0.3, call_seconds=0.6)) as servers:
        with pytest.raises(ToolFailed, match=r"tools in 0\.3 s"):
            servers.list_tools(plain(tmp_path, "plain", "mute"))
        with pytest.raises(ToolFailed, match=r"0\.6 s"):
            servers.call(plain(tmp_path, "plain", "mute"), "echo", {})
        assert ends(starts(tmp_path)[0])


def test_a_broken_source_fails_with_its_traceback_and_works_at_the_next_call_when_it_is_mended(
    tmp_path,
):
    broken, mended = plain(tmp_path, "plain", "broken"), plain(tmp_path)
    with pool(tmp_path) as servers:
        for _ in range(4):
            with pytest.raises(ToolFailed, match="this server is broken"):
                servers.call(broken, "count", {})
        assert "this server is broken" in servers.troubles()["plain"]
        assert text(servers.call(mended, "count", {})) == "1"
        assert servers.troubles() == {}


@pytest.mark.slow
def test_a_source_that_fails_again_and_again_is_left_alone_for_longer_and_longer_and_then_tried_once(  # noqa: E501
    tmp_path,
):
    clock = Clock()
    broken = plain(tmp_path, "plain", "broken")

    def fails(servers):
        before = len(starts(tmp_path))
        with pytest.raises(ToolFailed):
            servers.call(broken, "count", {})
        return "tried" if len(starts(tmp_path)) > before else "left alone"

    with pool(tmp_path, clock=clock) as servers:
        assert [fails(servers) for _ in range(4)] == ["tried", "tried", "tried", "left alone"]
        with pytest.raises(ToolFailed, match="tried again in 30 s"):
            servers.call(broken, "count", {})
        for rest in (30, 60, 120, 240, 480, 600, 600):
            clock.now += rest - 1
            assert fails(servers) == "left alone"
            clock.now += 1
            assert [fails(servers), fails(servers)] == ["tried", "left alone"]
        servers.stop("plain")
        assert fails(servers) == "tried"


def test_a_start_that_succeeds_makes_up_for_those_that_failed(tmp_path):
    moody = plain(tmp_path, "plain", "moody")
    with pool(tmp_path) as servers:
        for is_broken in (True, True, False, True, True):
            servers.end_session("mine")
            (tmp_path / "mood").write_text("broken" if is_broken else "")
            if is_broken:
                with pytest.raises(ToolFailed, match="this server is broken"):
                    servers.call(moody, "count", {}, session="mine")
            else:
                assert text(servers.call(moody, "count", {}, session="mine")) == "1"
        assert servers.troubles() == {}


def test_failures_that_lie_far_apart_are_no_reason_to_leave_a_source_alone(tmp_path):
    clock = Clock()
    with pool(tmp_path, clock=clock) as servers:
        for _ in range(6):
            clock.now += 31
            with pytest.raises(ToolFailed):
                servers.call(plain(tmp_path, "plain", "broken"), "count", {})
        assert len(starts(tmp_path)) == 6
        assert servers.troubles() == {}


def test_a_program_that_does_not_exist_is_told(tmp_path):
    nothing = ToolOrigin("nothing", OriginKind.SERVER, Stdio(("/no/such/program",)))
    with pool(tmp_path) as servers, pytest.raises(ToolFailed, match="nothing did not start"):
        servers.call(nothing, "echo", {})


def test_a_source_that_is_only_read_has_nothing_to_run(tmp_path):
    with pool(tmp_path) as servers, pytest.raises(ToolFailed, match="nothing to run"):
        servers.call(ToolOrigin("read", OriginKind.SKILL), "echo", {})


@pytest.mark.slow
def test_stopping_a_source_ends_its_calls_too(tmp_path):
    fifo = a_fifo(tmp_path)
    with pool(tmp_path) as servers, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(servers.call, plain(tmp_path), "wait", {"fifo": str(fifo)})
        with fifo.open("w"):
            servers.stop("plain")
            with pytest.raises(ToolFailed):
                waiting.result()
        assert servers.running() == ()
        assert ends(starts(tmp_path)[0])


def test_a_process_runs_in_the_folder_of_the_project_unless_it_is_told_another(tmp_path):
    code = "import os; open(os.environ['NOTE'], 'w').write(os.getcwd())"
    inside = tmp_path / "inside"
    inside.mkdir()
    with pool(tmp_path) as servers:
        for cwd, expected in (("", tmp_path), (str(inside), inside)):
            launch = Stdio((sys.executable, "-c", code), {"NOTE": str(tmp_path / "note")}, cwd)
            with pytest.raises(ToolFailed):
                servers.call(ToolOrigin("where", OriginKind.SERVER, launch, stamp=cwd), "echo", {})
            assert (tmp_path / "note").read_text() == str(expected.resolve())


def test_calls_from_an_event_loop_do_not_block_it_and_can_be_cancelled(tmp_path):
    async def run(servers):
        source = plain(tmp_path)
        await servers.call_async(source, "count", {})
        hanging = asyncio.create_task(servers.call_async(source, "hang", {}))
        counted = await asyncio.gather(
            *(servers.call_async(source, "count", {}) for _ in range(10))
        )
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        await servers.call_async(source, "count", {})
        return [text(each) for each in counted], text(await servers.call_async(source, "heard", {}))

    with pool(tmp_path) as servers:
        counted, heard = asyncio.run(run(servers))
    assert counted == [str(number) for number in range(2, 12)]
    assert "notifications/cancelled" in heard


def test_closing_ends_everything_and_what_comes_later_is_refused(tmp_path):
    many = sources(tmp_path, 3)
    servers = ServerPoolThread(QUICK, project=tmp_path)
    for source in many:
        servers.call(source, "echo", {"text": "x"})
    pids = [starts(tmp_path / f"folder-{number}")[0] for number in range(3)]
    servers.close()
    assert all(ends(pid) for pid in pids)
    assert not [each for each in threading.enumerate() if each.name == "hotset-tools"]
    servers.close()
    assert servers.running() == ()
    with pytest.raises(MemoryClosed, match="closed"):
        servers.call(many[0], "echo", {"text": "x"})


@pytest.mark.slow
def test_closing_in_mid_call_ends_the_call(tmp_path):
    fifo = a_fifo(tmp_path)
    servers = ServerPoolThread(QUICK, project=tmp_path)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(servers.call, plain(tmp_path), "wait", {"fifo": str(fifo)})
        with fifo.open("w"):
            servers.close()
            with pytest.raises((ToolFailed, MemoryClosed)):
                waiting.result()
    assert ends(starts(tmp_path)[0])


def test_a_forked_process_is_told_to_open_its_own(tmp_path):
    with pool(tmp_path) as servers:
        servers.call(plain(tmp_path), "echo", {"text": "x"})
        code = _in_a_fork(lambda: servers.call(plain(tmp_path), "echo", {"text": "x"}))
        assert code == 0
        assert text(servers.call(plain(tmp_path), "echo", {"text": "still here"})) == "still here"


def _in_a_fork(call):
    """0 where it raised what it should, 1 where it did not."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # threads and forks; that is what this is about
        pid = os.fork()
    if pid == 0:
        try:
            call()
        except MemoryClosed:
            os._exit(0)
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_nothing_is_started_by_a_pool_that_is_only_made(tmp_path):
    before = threading.active_count()
    servers = ServerPoolThread(QUICK, project=tmp_path)
    assert (servers.running(), servers.troubles(), threading.active_count()) == ((), {}, before)
    servers.stop("anything")
    servers.end_session("any")
    servers.tend()
    assert threading.active_count() == before
    servers.close()
