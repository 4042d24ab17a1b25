"""`hotset.wrap`: the client stays what it was, whatever happens to the memory behind it."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
from concurrent.futures import Future

import anthropic
import httpx2
import openai
import pytest

import hotset
from hotset.errors import BadInput, DiskFull, StoreFailed
from hotset.nouns.memory import Trust
from hotset.nouns.turn import Outcome
from hotset.store.sqlite import SqliteStore
from hotset.testing import Call, RamStore, Say
from hotset.testing.upstream.faults import (
    ErrorEvent,
    Fin,
    Gate,
    Gzipped,
    Hold,
    Reset,
    Split,
    Status,
)
from tests.library.agents import TOOLS, client_of

HI = {"model": "gpt-5.5", "messages": [{"role": "user", "content": "hi"}]}
ASKS = Say("Let me see.", calls=(Call("search_history", {"query": "x"}),))


def _turns(folder):
    with SqliteStore.open(folder) as store:
        return [turn for session in store.sessions() for turn in store.turns(session.id)]


def test_key_url_headers_timeouts_and_retries_stay(upstream, memory):
    up = upstream()
    client = openai.OpenAI(
        base_url=up.openai_url,
        api_key="sk-own",
        organization="org-1",
        timeout=7.5,
        max_retries=5,
        default_headers={"x-team": "red"},
        http_client=openai.DefaultHttpxClient(headers={"x-proxy-says": "hello"}),
    )
    wrapped = memory().wrap(client, agent="tester")
    assert type(wrapped) is openai.OpenAI
    assert (wrapped.api_key, wrapped.timeout, wrapped.max_retries, wrapped.base_url) == (
        "sk-own",
        7.5,
        5,
        client.base_url,
    )
    wrapped.chat.completions.create(**HI)
    got = up.requests[0]
    assert got.header("authorization") == "Bearer sk-own"
    assert (
        got.header("openai-organization"),
        got.header("x-team"),
        got.header("x-proxy-says"),
    ) == ("org-1", "red", "hello")
    assert not [name for name, _ in got.headers if name.startswith("x-hotset")]
    wrapped.close()
    assert client.is_closed()


@pytest.mark.parametrize("budget", [0, 20_000])
def test_a_client_has_the_toolbox_and_is_reminded_whatever_its_budget(upstream, memory, budget):
    def weather(city: str) -> str:
        """Forecast the weather of a city."""
        return f"clear in {city}"

    up, opened = upstream(), memory()
    opened.tools.register(weather)
    opened.memories.remember(
        "The staging database listens on port 5432.", by="person", trust=Trust.PERSON
    )
    question = [{"role": "user", "content": "Which port does the staging database listen on?"}]

    with opened.wrap(client_of("chat", up.url), budget=budget) as client:
        client.chat.completions.create(model="gpt-5.5", messages=question, tools=TOOLS["chat"])

    sent = up.requests[0].json()
    assert {"find_tools", "use_tool"} <= {tool["function"]["name"] for tool in sent["tools"]}
    assert "port 5432" in str(sent["messages"][1:])


def test_calls_go_through_the_clients_own_connections_and_hooks(upstream, memory):
    up, urls = upstream(), []
    http = httpx2.Client(event_hooks={"request": [lambda request: urls.append(str(request.url))]})
    with openai.OpenAI(base_url=up.openai_url, api_key="k", http_client=http) as client:
        memory().wrap(client).chat.completions.create(**HI)
    assert urls == [f"{up.openai_url}/chat/completions"]


def test_what_is_no_conversation_passes_untouched(upstream, memory, tmp_path):
    up = upstream()
    opened = memory()
    with opened.wrap(client_of("chat", up.url, default_headers={"x-hotset-agent": "me"})) as client:
        assert list(client.models.list())
    with opened.wrap(client_of("anthropic", up.url)) as claude:
        counted = claude.messages.count_tokens(model="claude-sonnet-5", messages=HI["messages"])
        assert counted.input_tokens > 0
    assert not up.requests[0].header("x-hotset-agent")
    opened.close()
    assert _turns(tmp_path / "data") == []


@pytest.mark.parametrize(
    "fault",
    [(Gzipped(),), (Gzipped(), Split(1)), (Split(1),)],
    ids=["gzip", "gzip-bytewise", "bytewise"],
)
@pytest.mark.parametrize("stream", [False, True])
def test_replies_in_any_shape_are_what_they_would_be_without_us(upstream, memory, fault, stream):
    script = [Say("one two three", fault=fault), Say("one two three", fault=fault)]
    with (
        client_of("chat", upstream(script).url) as plain,
        memory().wrap(client_of("chat", upstream(script).url)) as wrapped,
    ):
        said = [_said(client, stream) for client in (plain, wrapped)]
    assert said[0] == said[1] == "one two three"


def _said(client, stream, **more):
    if not stream:
        return client.chat.completions.create(**HI, **more).choices[0].message.content
    with client.chat.completions.create(**HI, **more, stream=True) as chunks:
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def test_errors_are_the_sdks_own_and_its_retries_work(upstream, memory, tmp_path):
    up = upstream([Say(fault=Status(429, retry_after=0)), Say("At last."), Say(fault=Status(400))])
    opened = memory()
    with opened.wrap(client_of("chat", up.url)) as client:
        patient = client.with_options(max_retries=1)
        assert patient.chat.completions.create(**HI).choices[0].message.content == "At last."
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(**HI)
        with up.refusing(), pytest.raises(openai.APIConnectionError) as caught:
            client.chat.completions.create(**HI)
    assert isinstance(caught.value.__cause__, httpx2.ConnectError)
    opened.close()
    assert [turn.outcome for turn in _turns(tmp_path / "data")] == [
        Outcome.REFUSED,
        Outcome.DONE,
        Outcome.REFUSED,
        Outcome.BROKEN,
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_a_follow_up_that_was_refused_is_tried_twice_more_and_then_raises_the_sdks_own_error(
    upstream, memory, stream
):
    refused = Say(fault=Status(429, "Slow down.", retry_after=0))
    up = upstream([ASKS, refused, refused, Say("Done."), ASKS, refused, refused, refused])
    with memory().wrap(client_of("chat", up.url)) as client:
        assert _said(client, stream, tools=TOOLS["chat"]) == "Let me see.\n\nDone."
        with pytest.raises(openai.APIError, match=r"Slow down\."):
            _said(client, stream, tools=TOOLS["chat"])
    assert len(up.requests) == 8


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fin(events=3), openai.APIConnectionError),
        (Reset(events=3), openai.APIConnectionError),
        (ErrorEvent(events=2), openai.APIError),
    ],
    ids=["broke-off", "reset", "error-event"],
)
@pytest.mark.parametrize("tools", [False, True], ids=["plain", "with-tools"])
def test_a_stream_that_breaks_off_breaks_off_for_the_caller(
    upstream, memory, tmp_path, *, fault, error, tools
):
    up = upstream([Say("words that do not all come", fault=fault)])
    opened = memory()
    with opened.wrap(client_of("chat", up.url)) as client, pytest.raises(error):
        _said(client, stream=True, **({"tools": TOOLS["chat"]} if tools else {}))
    opened.close()
    (turn,) = _turns(tmp_path / "data")
    assert turn.outcome is Outcome.BROKEN


@pytest.mark.parametrize("tools", [False, True], ids=["plain", "with-tools"])
def test_a_stream_that_the_sdk_leaves_at_its_last_event_is_whole_and_paid_for(
    upstream, memory, tmp_path, tools
):
    up = upstream([Say("one two three")])
    opened = memory()
    with opened.wrap(client_of("chat", up.url)) as client:
        more = {"tools": TOOLS["chat"]} if tools else {}
        assert (
            _said(client, stream=True, stream_options={"include_usage": True}, **more)
            == "one two three"
        )
    opened.close()
    with SqliteStore.open(tmp_path / "data") as store:
        assert [bill.usage.output > 0 for bill in store.bills()] == [True]
    assert [turn.outcome for turn in _turns(tmp_path / "data")] == [Outcome.DONE]


def test_a_timeout_is_the_clients_own(upstream, memory):
    up = upstream([Say("too late", delay=5.0)])
    with (
        memory().wrap(client_of("chat", up.url, timeout=0.2)) as client,
        pytest.raises(openai.APITimeoutError),
    ):
        client.chat.completions.create(**HI)


@pytest.mark.parametrize("awaits", [False, True], ids=["blocks", "awaits"])
def test_a_caller_who_leaves_in_mid_stream_hangs_up_on_the_provider_and_is_kept_as_left(
    upstream, memory, tmp_path, awaits
):
    up = upstream([Say("a b c d e f", fault=Hold(Gate(), events=3))])
    opened = memory()
    client = opened.wrap(client_of("chat", up.url, awaits=awaits))
    if awaits:
        asyncio.run(_leave(client))
    else:
        with client.chat.completions.create(**HI, stream=True) as chunks:
            next(iter(chunks))
        client.close()
    up.wait_for_cancel(0)
    opened.close()
    assert [turn.outcome for turn in _turns(tmp_path / "data")] == [Outcome.LEFT]


async def _leave(client):
    async with client, await client.chat.completions.create(**HI, stream=True) as chunks:
        async for _ in chunks:
            break


def test_a_task_that_is_cancelled_hangs_up_too(upstream, memory, tmp_path):
    up = upstream([Say("never", fault=Hold(Gate()))])
    opened = memory()

    async def main():
        async with opened.wrap(client_of("chat", up.url, awaits=True)) as client:
            asking = asyncio.create_task(client.chat.completions.create(**HI))
            await asyncio.to_thread(up.wait_for_requests, 1)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

    asyncio.run(main())
    up.wait_for_cancel(0)
    opened.close()
    assert [turn.outcome for turn in _turns(tmp_path / "data")] == [Outcome.LEFT]


def test_many_threads_and_many_tasks_share_one_memory(upstream, memory):
    up = upstream(lambda request: Say(f"echo {request.json()['messages'][0]['content']}"))
    opened = memory()
    heard: list[str] = []

    def ask(client, n):
        reply = client.chat.completions.create(
            model="gpt-5.5", messages=[{"role": "user", "content": f"thread {n}"}]
        )
        heard.append(reply.choices[0].message.content)

    async def main():
        async with opened.wrap(client_of("chat", up.url, awaits=True)) as client:
            asked = [{"role": "user", "content": f"task {n}"} for n in range(20)]
            replies = await asyncio.gather(
                *(
                    client.chat.completions.create(model="gpt-5.5", messages=[each])
                    for each in asked
                )
            )
            return [reply.choices[0].message.content for reply in replies]

    with opened.wrap(client_of("chat", up.url)) as client:
        threads = [threading.Thread(target=ask, args=(client, n)) for n in range(10)]
        for thread in threads:
            thread.start()
        told = asyncio.run(main())
        for thread in threads:
            thread.join()
    assert told == [f"echo task {n}" for n in range(20)]
    assert sorted(heard) == sorted(f"echo thread {n}" for n in range(10))


def test_a_blocking_client_works_inside_a_running_loop(upstream, memory):
    up = upstream()

    async def main():
        with memory().wrap(client_of("chat", up.url)) as client:
            return client.chat.completions.create(**HI).choices[0].message.content

    assert asyncio.run(main()) == "Message 1 said: hi"


class Failing(RamStore):
    def keep(self, *deposits):
        failed = Future()
        failed.set_exception(DiskFull("no room"))
        return failed


def _cannot_open():
    raise StoreFailed("the store is on fire")


@pytest.mark.parametrize(
    "open_store", [_cannot_open, Failing], ids=["cannot-be-opened", "cannot-keep"]
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_store_in_trouble_is_told_about_and_breaks_nothing(
    upstream, memory, open_store, stream, caplog
):
    up = upstream([Say("Hello."), Say("Hello.")])
    with memory(open_store=open_store).wrap(client_of("chat", up.url)) as client:
        for _ in range(2):
            assert _said(client, stream, tools=TOOLS["chat"]) == "Hello."
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert sum("the store keeps nothing" in each for each in told) == 1
    assert sum("bypassed" in each for each in told) <= 1


def test_a_client_outlives_its_memory(upstream, memory, caplog):
    up = upstream()
    opened = memory()
    with opened.wrap(client_of("chat", up.url, default_headers={"x-hotset-agent": "me"})) as client:
        opened.close()
        for _ in range(2):
            assert _said(client, stream=False) == "Message 1 said: hi"
    assert [
        record.message for record in caplog.records if "memory is closed" in record.message
    ] == ["the memory is closed; open it again with hotset.open(); requests go through untouched"]
    assert not up.requests[0].header("x-hotset-agent")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.slow
def test_a_forked_child_goes_on_without_the_memory(tmp_path, upstream):
    up = upstream()
    program = f"""
import logging, os, warnings, openai, hotset
warnings.simplefilter("ignore")
logging.basicConfig()
memory = hotset.open({str(tmp_path)!r}, data={str(tmp_path / "data")!r})
client = memory.wrap(openai.OpenAI(base_url={up.openai_url!r}, api_key="k"))
child = os.fork()
reply = client.chat.completions.create(model="gpt-5.5", messages=[dict(role="user", content=f"hi {{child == 0}}")])
print(reply.choices[0].message.content, flush=True)
if child: os.waitpid(child, 0)
"""  # noqa: E501
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert sorted(told.stdout.split("\n")) == [
        "",
        "Message 1 said: hi False",
        "Message 1 said: hi True",
    ]
    assert "the memory was opened before this process was forked" in told.stderr
    assert [turn.outcome for turn in _turns(tmp_path / "data")] == [Outcome.DONE]


@pytest.mark.parametrize(
    "last",
    ["", "concurrent.futures.ThreadPoolExecutor().submit(time.sleep, 3)"],
    ids=["at once", "later"],
)
@pytest.mark.slow
def test_a_program_that_never_closes_anything_ends_and_loses_nothing(tmp_path, upstream, last):
    """Also where its end takes a while: then it starts no threads any more, and our background
    would like some."""
    up = upstream([ASKS, Say("Done.")])
    program = f"""
import anthropic, concurrent.futures, hotset, os, time
os.chdir({str(tmp_path)!r})
client = hotset.wrap(anthropic.Anthropic(base_url={up.anthropic_url!r}, api_key="k"))
print(client.messages.create(model="claude-sonnet-5", max_tokens=900, tools={TOOLS["anthropic"]!r},
    messages=[dict(role="user", content="hi")]).content[-1].text)
{last}
"""
    environment = {**os.environ, "HOTSET_DATA": str(tmp_path / "data")}
    told = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=environment,
    )
    assert (told.stdout, told.stderr) == ("Done.\n", "")
    with SqliteStore.open(tmp_path / "data") as store:
        assert [bill.calls for bill in store.bills()] == [2]
    assert [turn.outcome for turn in _turns(tmp_path / "data")] == [Outcome.DONE]


def test_wrapping_twice_is_wrapping_once(upstream, memory):
    up = upstream([ASKS, Say("Done.")])
    opened = memory()
    twice = opened.wrap(opened.wrap(client_of("chat", up.url)), agent="other")
    with twice as client:
        assert _said(client, stream=False, tools=TOOLS["chat"]) == "Let me see.\n\nDone."
    names = [tool["function"]["name"] for tool in up.requests[0].json()["tools"]]
    assert names.count("search_history") == 1


def test_what_is_no_client_is_told_what_is(memory):
    with pytest.raises(
        BadInput,
        match=(
            r"hotset\.wrap takes a client of openai or anthropic, or a model made of one, not "
            r"builtins\.str"
        ),
    ):
        memory().wrap("openai")


def test_off_means_the_callers_own_bytes(upstream, memory):
    up = upstream()
    with memory().wrap(client_of("anthropic", up.url)) as claude:
        for headers in ({}, {"x-hotset-window": "off"}):
            claude.messages.create(
                model="claude-sonnet-5",
                max_tokens=900,
                tools=TOOLS["anthropic"],
                messages=HI["messages"],
                extra_headers=headers,
            )
    assert [len(request.json()["tools"]) for request in up.requests] == [4, 1]
    assert not up.requests[1].header("x-hotset-window")


def test_importing_hotset_imports_nothing_else():
    program = (
        "import sys; before = set(sys.modules); import hotset; "
        "print(sorted(set(sys.modules) - "
        "before))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert told.stdout == "['hotset']\n"
    assert {"open", "wrap", "Window"} <= set(dir(hotset))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = hotset.nonsense


def test_the_library_does_without_the_proxys_parts(tmp_path):
    """aiohttp and the web server take longer to import than everything else together."""
    program = f"""
import sys, hotset
hotset.open({str(tmp_path)!r}, data={str(tmp_path / "d")!r}).close()
print({{"aiohttp", "uvicorn", "starlette", "click"}} & set(sys.modules))
"""
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert told.stdout == "set()\n"


def test_anthropic_clients_of_both_kinds_are_wrapped_as_they_are(memory):
    opened = memory()
    for kind in (anthropic.Anthropic, anthropic.AsyncAnthropic, openai.OpenAI, openai.AsyncOpenAI):
        assert type(opened.wrap(kind(api_key="k"))) is kind
