"""An MCP client against servers of every era, the polite ones and the others."""

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest
from plain_servers import plain, text

from hotset.errors import ToolFailed
from hotset.nouns.tool import OriginKind, Stdio, ToolOrigin
from hotset.sources.tools.running.mcp_client import (
    HANDSHAKES,
    MODERN,
    NoAnswer,
    NotDelivered,
    NotUnderstood,
    PipeConnection,
    greet,
)
from hotset.sources.tools.running.processes import ServerGone, Supervisor

SDK = Path(__file__).with_name("sdk_server.py")
SECONDS = 20.0


def with_session(source, use, known="", cwd="/"):
    """What `use` makes of a session with the server."""

    async def run():
        supervisor = Supervisor()
        connection = PipeConnection(await supervisor.start(source.launch, cwd=cwd))
        try:
            return await use(await greet(source, connection, SECONDS, known))
        finally:
            await connection.close()
            supervisor.close()

    return asyncio.run(run())


def calls(*asked, seconds=SECONDS):
    async def use(session):
        return [await session.call(name, arguments, seconds) for name, arguments in asked]

    return use


async def listing(session):
    return await session.list_tools(SECONDS)


def sdk():
    return ToolOrigin("sdk", OriginKind.SERVER, Stdio((sys.executable, str(SDK))))


@pytest.mark.parametrize("known", ["", MODERN])
@pytest.mark.slow
def test_a_server_of_the_official_sdk_is_understood_in_both_eras(known):
    async def use(session):
        listed = await session.list_tools(SECONDS)
        return (
            listed,
            await session.call("add", {"a": 2, "b": 3}, SECONDS),
            await session.call("fail", {}, SECONDS),
        )

    listed, sum, failed = with_session(sdk(), use, known)

    assert listed.protocol == (known or HANDSHAKES[0])
    assert (listed.server, listed.instructions) == ("sdk 1.2.3", "words of the server")
    add = next(tool for tool in listed.tools if tool.own_name == "add")
    assert (add.name, add.source, add.origin, add.description) == (
        "sdk__add",
        "sdk",
        OriginKind.SERVER,
        "Adds.",
    )
    assert msgspec.json.decode(add.parameters)["required"] == ["a", "b"]
    assert msgspec.json.decode(add.annotations) == {"readOnlyHint": True}
    assert (text(sum), sum.structured, sum.failed) == ("5", b'{"result":5}', False)
    assert failed.failed


@pytest.mark.parametrize("version", HANDSHAKES)
def test_every_version_of_the_handshake_is_spoken(tmp_path, version):
    listed = with_session(plain(tmp_path, "plain", version), listing)
    assert (listed.protocol, listed.server, listed.instructions) == (
        version,
        "plain 1",
        "old words",
    )


def test_a_version_that_nobody_knows_is_refused(tmp_path):
    with pytest.raises(NotUnderstood, match="2031-01-01"):
        with_session(plain(tmp_path, "plain", "2031-01-01"), listing)


def test_a_server_of_the_new_era_alone_is_found_out_and_greeted_in_it(tmp_path):
    listed = with_session(plain(tmp_path, "plain", "modern"), listing)
    assert (listed.protocol, listed.instructions) == (MODERN, "modern words")


def test_on_a_pipe_the_handshake_goes_first_since_some_servers_end_at_anything_else(tmp_path):
    (heard,) = with_session(plain(tmp_path), calls(("heard", {})))
    assert text(heard).split() == ["initialize", "notifications/initialized", "tools/call"]


def test_a_server_that_is_known_to_be_modern_is_not_asked_for_a_handshake(tmp_path):
    (heard,) = with_session(plain(tmp_path, "plain", "both"), calls(("heard", {})), known=MODERN)
    assert text(heard).split() == ["server/discover", "tools/call"]


def test_tools_are_listed_page_by_page(tmp_path):
    in_one, in_pages = (
        with_session(plain(tmp_path), listing),
        with_session(plain(tmp_path, "plain", "paged"), listing),
    )
    assert len(in_one.tools) > 10
    assert in_pages.tools == in_one.tools


def test_a_server_that_repeats_a_cursor_is_cut_off(tmp_path):
    async def use(session):
        listed = await session.list_tools(SECONDS)
        return listed, text(await session.call("heard", {}, SECONDS)).split().count("tools/list")

    listed, asked = with_session(plain(tmp_path, "plain", "circle"), use)
    assert [tool.own_name for tool in listed.tools] == ["tool-0", "tool-1", "tool-2"]
    assert asked <= 5


def test_a_list_without_end_ends(tmp_path):
    listed = with_session(plain(tmp_path, "plain", "endless"), listing)
    assert len(listed.tools) == 200


def test_a_server_without_tools_has_none(tmp_path):
    assert with_session(plain(tmp_path, "plain", "no-tools"), listing).tools == ()


def test_what_is_no_tool_is_left_out_and_the_rest_is_kept(tmp_path):
    titled, bare, spaced = with_session(plain(tmp_path, "plain", "odd"), listing).tools
    assert (titled.title, titled.description, titled.annotations) == (
        "A title",
        "the titled",
        b'{"readOnlyHint":true}'.replace(b":", b": "),
    )
    assert (bare.description, bare.parameters, bare.annotations) == (
        "",
        b'{"type":"object"}',
        b"{}",
    )
    assert (spaced.own_name, spaced.name) == ("a b.c", "plain__a_b_c")


def test_an_error_of_the_server_is_a_failure_of_the_tool(tmp_path):
    (returned,) = with_session(plain(tmp_path), calls(("nothing", {})))
    assert returned.failed
    assert text(returned) == "no tool nothing"


def test_what_nobody_asked_for_does_no_harm_and_a_changed_list_is_noted(tmp_path):
    async def use(session):
        before = session.connection.changed
        first = await session.call("twice", {}, SECONDS)
        second = await session.call("echo", {"text": "still here"}, SECONDS)
        noted = session.connection.changed
        await session.list_tools(SECONDS)
        return before, text(first), text(second), noted, session.connection.changed

    assert with_session(plain(tmp_path), use) == (False, "first", "still here", True, False)


@pytest.mark.parametrize(
    "method", ["roots/list", "sampling/createMessage", "elicitation/create", "tools/list"]
)
def test_a_server_that_asks_for_folders_models_or_people_is_told_that_there_are_none(
    tmp_path, method
):
    (told,) = with_session(plain(tmp_path), calls(("ask", {"method": method})))
    reply = msgspec.json.decode(text(told))
    assert (reply["id"], reply["error"]["code"]) == ("from-the-server", -32601)


def test_a_server_that_asks_for_a_sign_of_life_gets_one(tmp_path):
    (told,) = with_session(plain(tmp_path), calls(("ask", {"method": "ping"})))
    assert msgspec.json.decode(text(told))["result"] == {}


def test_a_call_that_takes_too_long_is_given_up_and_its_server_told_so(tmp_path):
    async def use(session):
        with pytest.raises(NoAnswer, match=r"0\.2 s"):
            await session.call("hang", {}, 0.2)
        await session.call("echo", {"text": "behind it"}, SECONDS)
        return await session.call("heard", {}, SECONDS)

    assert "notifications/cancelled" in text(with_session(plain(tmp_path), use)).split()


def test_a_call_that_is_cancelled_is_cancelled_at_the_server(tmp_path):
    async def use(session):
        call = asyncio.create_task(session.call("hang", {}, SECONDS))
        await session.call("echo", {"text": "now it hangs"}, SECONDS)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return await session.call("heard", {}, SECONDS)

    assert "notifications/cancelled" in text(with_session(plain(tmp_path), use)).split()


def test_a_server_that_ends_in_mid_call_is_gone_and_says_why(tmp_path):
    async def use(session):
        with pytest.raises(ServerGone) as gone:
            await session.call("crash", {}, SECONDS)
        assert not isinstance(gone.value, NotDelivered)
        with pytest.raises(NotDelivered):
            await session.call("echo", {"text": "anybody?"}, SECONDS)
        return session.connection.gone, session.connection.last_words()

    is_gone, words = with_session(plain(tmp_path), use)
    assert is_gone
    assert "it hurts" in words


@pytest.mark.parametrize(
    "result",
    [
        {"content": "words"},
        {"content": ["words"]},
        {"content": [], "isError": "yes"},
        {"content": None},
        [],
        "words",
        5,
        True,
    ],
)
@pytest.mark.rest_slow
def test_a_result_that_the_protocol_does_not_know_is_told_as_such(tmp_path, result):
    with pytest.raises(NotUnderstood):
        with_session(plain(tmp_path), calls(("strange", {"result": result})))


def test_a_tool_that_wants_to_ask_a_person_first_fails_and_says_so(tmp_path):
    wants = {
        "resultType": "input_required",
        "inputRequests": {"a": {"method": "elicitation/create"}},
        "requestState": "s",
    }
    (returned,) = with_session(
        plain(tmp_path, "plain", "modern"), calls(("strange", {"result": wants}))
    )
    assert returned.failed
    assert "ask a person" in text(returned)


@pytest.mark.slow
def test_a_tool_that_wants_to_be_called_again_is_until_it_is_done_or_will_never_be(tmp_path):
    wants = {"resultType": "input_required", "requestState": "again"}
    done, never = with_session(
        plain(tmp_path, "plain", "modern"), calls(("later", {}), ("strange", {"result": wants}))
    )
    assert (text(done), done.failed) == ("done", False)
    assert never.failed


def test_a_kind_of_result_that_is_none_of_a_tool_is_not_taken_for_one(tmp_path):
    with pytest.raises(NotUnderstood, match="task"):
        with_session(
            plain(tmp_path, "plain", "modern"),
            calls(("strange", {"result": {"resultType": "task"}})),
        )


def test_text_that_is_half_an_emoji_or_no_text_at_all_arrives_readable(tmp_path):
    (returned,) = with_session(plain(tmp_path), calls(("mangled", {})))
    (block,) = msgspec.json.decode(returned.content)
    assert (block["text"], block["x"]) == ("? \ufffd", None)


@pytest.mark.slow
def test_a_large_result_comes_whole_and_one_beyond_all_measure_ends_the_server(tmp_path):
    async def use(session):
        large = await session.call("huge", {"size": 20 << 20}, SECONDS)
        with pytest.raises(ServerGone):
            await session.call("huge", {"size": 40 << 20}, SECONDS)
        return len(text(large))

    assert with_session(plain(tmp_path), use) == 20 << 20


def test_arguments_beyond_all_measure_are_not_sent(tmp_path):
    with pytest.raises(ToolFailed, match="put them in a file"):
        with_session(plain(tmp_path), calls(("echo", {"text": "x" * (33 << 20)})))


def test_many_calls_at_once_get_each_its_own_answer(tmp_path):
    async def use(session):
        return await asyncio.gather(
            *(session.call("echo", {"text": str(number)}, SECONDS) for number in range(200))
        )

    assert [text(each) for each in with_session(plain(tmp_path), use)] == [
        str(number) for number in range(200)
    ]


def test_a_server_that_ends_before_it_is_greeted_is_gone(tmp_path):
    with pytest.raises(ServerGone):
        with_session(plain(tmp_path, "plain", "broken"), listing)
