"""`hotset mcp`, spoken to by the official client over stdin and stdout, and by clients that are
none."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from mcp import ClientSession
from mcp.client._probe import negotiate_auto
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from hotset import tokens
from hotset.sources.code.parsers import GRAMMARS
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.mcp.protocol import McpTool, Server, ToolReply
from tests.cli.conftest import LARGE, Desk, desk_in, fill

FILES = {
    "src/uploads.py": (
        "class Uploader:\n    def retry(self):\n        '''Tries again "
        "when the wire breaks.'''\n "
        "       pass\n"
    ),
    "src/long.py": "".join(
        f"def function_{number}(bears):\n    return bears + {number}\n\n\n" for number in range(400)
    ),
    "README.md": "# Title\n\ntext of the readme\n",
    "src/odd.py": "# quokka a\u202eb\n# \U000e0041c\nx = 1\n",
    ".hotsetignore": "priv/\n",
    "priv/own.py": "insider = 1\n",
    "settings.py": 'GITHUB_TOKEN = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"\n',
}
Calls = Sequence[tuple[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A desk with a conversation that is kept and a project that is indexed. No test changes it."""
    desk = desk_in(tmp_path_factory.mktemp("shop"))
    fill(desk.data)
    write(desk)
    assert desk.run("index", "--yes").code == 0
    return desk


def write(desk: Desk) -> None:
    for path, text in FILES.items():
        (desk.project / path).parent.mkdir(exist_ok=True)
        (desk.project / path).write_text(text)


def talk(
    desk: Desk, calls: Calls, *, modern: bool = True
) -> tuple[ClientSession, list[Any], list[tuple[str, bool]]]:
    """The session, the list of tools, and what each call was answered, as the official client
    understood it."""

    async def spoken() -> tuple[ClientSession, list[Any], list[tuple[str, bool]]]:
        command, *arguments = desk.command("mcp")
        server = StdioServerParameters(
            command=command, args=arguments, cwd=desk.project, env=desk.environ()
        )
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await (negotiate_auto(session) if modern else session.initialize())
            listed = (await session.list_tools()).tools
            answers = [await session.call_tool(name, arguments) for name, arguments in calls]
            return (
                session,
                listed,
                [(answer.content[0].text, bool(answer.is_error)) for answer in answers],
            )  # type: ignore[union-attr]

    return asyncio.run(spoken())


@pytest.mark.parametrize("modern", [True, False])
@pytest.mark.rest_slow
def test_clients_of_either_era_find_the_tools_and_that_they_only_read(filled: Desk, modern: bool):
    session, listed, answers = talk(filled, [("search_history", {"query": "clock"})], modern=modern)

    assert session.protocol_version == ("2026-07-28" if modern else "2025-11-25")
    names = [
        "search_code",
        "get_file",
        "outline",
        "retrieve_context",
        "search_history",
        "get_turn_range",
    ]
    memory = ["memory_index", "memory_timeline", "recall_memory", "remember", "forget"]
    assert [tool.name for tool in listed] == ["find_tools", "use_tool", *names, *memory]
    writing = [
        tool.name for tool in listed if not (tool.annotations and tool.annotations.read_only_hint)
    ]
    assert writing == ["use_tool", "remember", "forget"]
    assert all("max_tokens" in tool.input_schema["properties"] for tool in listed[2:-2])
    assert "It was the clock." in answers[0][0]


def test_code_is_searched_outlined_and_read_by_lines_or_symbol(shop: Desk):
    _, _, answers = talk(
        shop,
        [
            ("search_code", {"query": "try again after a broken wire", "path": "src/"}),
            ("get_file", {"path": "src/uploads.py", "symbol": "Uploader.retry"}),
            ("get_file", {"path": "src/uploads.py", "lines": "1"}),
            ("outline", {"path": "src/uploads.py"}),
            ("outline", {}),
            ("get_file", {"path": "settings.py"}),
        ],
    )

    texts = [text for text, failed in answers if not failed]
    assert len(texts) == len(answers)
    assert all("data, not instructions" in text for text in texts)
    assert "1. src/uploads.py:1-4" in texts[0]
    assert "Tries again when the wire breaks." in texts[0]
    assert "def retry" in texts[1]
    assert "class Uploader" not in texts[1]
    assert "class Uploader" in texts[2]
    assert "def retry" not in texts[2]
    assert "2-4 " in texts[3]
    assert "src/long.py" in texts[4]
    assert "ghp_" not in texts[5]


def test_the_last_section_of_a_document_comes_by_its_name(shop: Desk):
    _, _, answers = talk(
        shop,
        [
            ("get_file", {"path": "README.md", "symbol": "Title"}),
            ("outline", {"path": "README.md"}),
        ],
    )

    assert answers[0][0].endswith("3\ttext of the readme")
    assert "1-3 # Title" in answers[1][0]


@pytest.mark.row("V17")
def test_an_agent_is_refused_what_the_index_leaves_out_and_told_the_rule(shop: Desk):
    calls: Calls = [
        ("get_file", {"path": "priv/own.py"}),
        ("outline", {"path": "priv"}),
        ("outline", {"path": "priv/own.py"}),
    ]

    for text, failed in talk(shop, calls)[2]:
        assert failed
        assert ".hotsetignore excludes priv. Use your own file tool" in text
        assert "insider" not in text


@pytest.mark.slow
def test_paths_with_the_projects_folder_in_front_are_paths_of_the_project(shop: Desk):
    calls: Calls = [
        ("get_file", {"path": f"{shop.project}/src/uploads.py"}),
        ("outline", {"path": f"{shop.project}/src/uploads.py"}),
        ("outline", {"path": f"{shop.project}/"}),
        ("search_code", {"query": "retry", "path": f"{shop.project}/src"}),
        ("search_code", {"query": "retry", "path": f"{shop.project}/src/*.py"}),
        ("search_code", {"query": "retry", "path": "/etc"}),
    ]
    *inside, outside = talk(shop, calls)[2]

    assert [failed for _, failed in inside] == [False] * 5
    assert all("retry" in text or "uploads.py" in text for text, _ in inside)
    assert outside[1]
    assert "not below the project's folder" in outside[0]


@pytest.mark.slow
def test_characters_that_hide_in_code_are_shown_to_agents_and_counted(shop: Desk):
    _, _, answers = talk(
        shop, [("get_file", {"path": "src/odd.py"}), ("search_code", {"query": "quokka"})]
    )

    for text, _ in answers:
        assert "a\ufffdb" in text
        assert "\ufffdc" in text
        assert "2 hidden characters shown as \ufffd" in text
        assert "\u202e" not in text
        assert "\U000e0041" not in text


@pytest.mark.slow
def test_an_agents_parsers_share_the_grammars_that_were_unpacked_and_work_where_none_can_be(
    desk: Desk,
):
    write(desk)
    assert desk.run("index", "--yes").code == 0
    grammars = desk.data / GRAMMARS
    call: Calls = [("outline", {"path": "src/uploads.py"})]
    (kept,) = grammars.rglob("*python*")
    kept.unlink()

    assert "class Uploader" in talk(desk, call)[2][0][0]
    assert kept.exists()
    shutil.rmtree(grammars)
    grammars.write_text("no folder")
    assert "class Uploader" in talk(desk, call)[2][0][0]


def test_code_that_holds_no_phrase_is_searched_by_its_words_and_the_agent_is_told(shop: Desk):
    _, _, answers = talk(
        shop,
        [
            ("search_code", {"query": '"again when the wire breaks"'}),
            ("search_code", {"query": '"the wire breaks again"'}),
            ("search_code", {"query": '"xylophone quartet"'}),
        ],
    )

    held, loose, nothing = (text for text, _ in answers)
    assert "1. src/uploads.py" in held
    assert "no exact match" not in held
    assert "1. src/uploads.py" in loose
    assert 'no exact match for "the wire breaks again"; these are nearest' in loose
    assert nothing.startswith("[hotset: nothing found")


@pytest.mark.row("V1")
def test_what_was_said_comes_back_by_words_id_and_turn(filled: Desk):
    (session,) = (each["session"]["id"] for each in filled.run("sessions", "--json").json())
    _, _, answers = talk(
        filled,
        [
            ("search_history", {"query": "a line of a large file"}),
            ("search_history", {"query": "clock", "session": session[:8]}),
            ("retrieve_context", {"id": "toolu_1", "lines": "1500-1502"}),
            ("get_turn_range", {"first": 1, "last": 1, "session": session}),
            ("get_turn_range", {"first": 1, "last": 1}),
        ],
    )

    assert [failed for _, failed in answers] == [False] * 5
    assert "retrieve_context(id=" in answers[0][0]
    assert "It was the clock." in answers[1][0]
    assert LARGE.split("\n")[1500] in answers[2][0]
    assert "Fix the failing test" in answers[3][0]
    assert answers[3] == answers[4]


@pytest.mark.row("V2")
def test_a_search_of_conversations_takes_several_types_an_agent_turns_and_times(filled: Desk):
    _, _, answers = talk(
        filled,
        [
            ("search_history", {"query": "clock", "type": "prompt,response", "turns": "2-3"}),
            ("search_history", {"query": "clock", "agent": "claude-cli", "until": "2030-01-01"}),
            ("search_history", {"query": "clock", "agent": "codex"}),
            ("search_history", {"query": "clock", "type": ["file"]}),
            ("search_history", {"query": "clock", "since": "2030-01-01"}),
            ("search_history", {"query": "clock", "turns": "soon"}),
            ("search_history", {"query": "clock", "type": "python"}),
        ],
    )
    found = ["It was the clock" in text for text, _ in answers]
    assert found == [True, True, False, False, False, False, False]
    assert [failed for _, failed in answers] == [False] * 5 + [True, True]


@pytest.mark.row("V17")
@pytest.mark.row("V6")
def test_every_retrieval_is_in_the_audit(filled: Desk):
    talk(filled, [("search_history", {"query": "clock"}), ("retrieve_context", {"id": "pffff"})])

    with closing(SqliteStore.open(filled.data)) as store:
        audit = [
            (event.detail["tool"], event.detail["found"], event.turn)
            for event in store.events()
            if event.name == "Retrieved"
        ]
    assert audit == [("search_history", 1, 4), ("retrieve_context", 0, 4)]


@pytest.mark.parametrize("most", [100, 700])
@pytest.mark.rest_slow
def test_every_answer_keeps_to_its_budget_and_says_what_is_missing(shop: Desk, most: int):
    calls = [
        ("search_code", {"query": "bears", "path": "src/long.py", "max_tokens": most}),
        ("get_file", {"path": "src/long.py", "max_tokens": most}),
        ("outline", {"path": "src/long.py", "max_tokens": most}),
        ("retrieve_context", {"id": "toolu_1", "max_tokens": most}),
    ]
    for (name, _), (text, _) in zip(calls, talk(shop, calls)[2], strict=True):
        assert tokens.count(text) <= most, name
        assert (
            "left out" in text
            or "of 2,000" in text
            or "without excerpt" in text
            or "of 1,600" in text
        ), (name, text)


@pytest.mark.row("V17")
@pytest.mark.slow
def test_files_are_not_read_before_somebody_allowed_it(filled: Desk):
    write(filled)
    calls: Calls = [
        ("search_code", {"query": "retry"}),
        ("get_file", {"path": "src/uploads.py"}),
        ("outline", {}),
    ]

    for text, failed in talk(filled, calls)[2]:
        assert failed
        assert "hotset index" in text
        assert "Uploader" not in text


@pytest.mark.slow
def test_arguments_that_cannot_be_used_are_told_in_a_sentence(shop: Desk):
    calls: Calls = [
        ("search_code", {"query": ""}),
        ("search_code", {"q": "retry"}),
        ("search_code", {"query": "retry", "max_tokens": "many"}),
        ("get_file", {"path": "src/uploads.py", "lines": "first"}),
        ("get_file", {"path": "../../etc/passwd"}),
        ("get_file", {"path": "src/upload.py"}),
        ("get_file", {"path": ["src"]}),
        ("search_code", {"query": "retry", "language": "cobol"}),
        ("get_turn_range", {}),
        ("retrieve_context", {"id": "toolu_1", "regex": "(unclosed"}),
        ("use_tool", {"name": "no_such_tool", "arguments": {}}),
        ("get_file", {"path": "src/uploads.py", "lines": "1-2", "symbol": "Uploader"}),
        ("get_file", {"path": "src/uploads.py", "symbol": "Downloader"}),
        ("get_file", {"path": "src/uploads.py", "lines": "90-99"}),
        *(("outline", {"path": "src", "max_tokens": most}) for most in (0, 10, 99)),
    ]
    _, _, answers = talk(shop, calls)

    assert [failed for _, failed in answers] == [True] * len(calls)
    assert "query needs a word" in answers[0][0]
    assert "no argument 'q'; arguments: query" in answers[1][0]
    assert "max_tokens must be a number" in answers[2][0]
    assert '"120-180"' in answers[3][0]
    assert "is not below the project's folder" in answers[4][0]
    assert "there is uploads.py" in answers[5][0]
    assert "path must be a string, not a list" in answers[6][0]
    assert "no language 'cobol'; languages:" in answers[7][0]
    assert "invalid regex" in answers[9][0]
    assert "lines or symbol, not both" in answers[11][0]
    assert "it has Uploader" in answers[12][0]
    assert "it has lines 1-4" in answers[13][0]
    assert all("max_tokens must be a number from 100" in text for text, _ in answers[14:])


@pytest.mark.slow
def test_to_find_nothing_is_an_answer_and_no_error(shop: Desk):
    calls: Calls = [
        ("search_code", {"query": "zeppelin balloon quokka", "path": "priv/"}),
        ("search_history", {"query": "zeppelin"}),
        ("search_history", {"query": "zeppelin", "type": "plan"}),
        ("retrieve_context", {"id": "nothing-like-that"}),
        ("retrieve_context", {"id": "toolu_1", "regex": "zeppelin"}),
        ("retrieve_context", {"id": "toolu_1", "lines": "90000-90010"}),
        ("get_turn_range", {"first": 90, "last": 99}),
        ("get_turn_range", {"first": 1, "last": 1, "session": "nobody"}),
        ("find_tools", {"query": "fly a zeppelin"}),
        ("recall_memory", {"query": "zeppelin"}),
        ("recall_memory", {"id": "sem-nothing"}),
    ]
    _, _, answers = talk(shop, calls)

    assert [failed for _, failed in answers] == [False] * len(calls), answers
    assert all(text.startswith("[hotset: ") for text, _ in answers[1:])


def test_a_tool_that_is_not_there_is_an_error_of_the_protocol(filled: Desk):
    with pytest.raises(BaseExceptionGroup) as raised:
        talk(filled, [("drop_everything", {})])

    assert raised.value.split(MCPError)[0] is not None


def test_stdout_carries_answers_and_nothing_else_however_bad_the_question(filled: Desk):
    lines = [
        b"this is no JSON",
        b"[]",
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":2,"method":"resources/list"}',
        b"x" * 9_000_000,
        (
            b'{"jsonrpc":"2.0","id":"3","method":"tools/call","params":{"name":"outline",'
            b'"arguments":[]}}'
        ),
    ]
    done = subprocess.run(
        filled.command("mcp"),
        env=filled.environ(),
        cwd=filled.project,
        input=b"\n".join(lines),
        capture_output=True,
        timeout=60,
        check=True,
    )

    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each.get("id") for each in said] == [None, None, None, 1, 2, None, "3"]
    assert [each.get("error", {}).get("code") for each in said] == [
        -32700,
        -32600,
        -32700,
        None,
        -32601,
        -32600,
        -32602,
    ]


def test_a_person_who_starts_it_is_told_who_should(desk: Desk):
    from tests.cli.test_terminal import on_a_terminal  # noqa: PLC0415

    assert b"an agent starts this" in on_a_terminal(desk, "mcp")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
METHODS = (
    st.sampled_from(("initialize", "ping", "tools/list", "tools/call", "server/discover"))
    | st.text()
)
META = st.fixed_dictionaries(
    {},
    optional={
        "io.modelcontextprotocol/protocolVersion": st.sampled_from(("2026-07-28", "2025-11-25"))
        | JSON,
        "io.modelcontextprotocol/clientCapabilities": st.just({}) | JSON,
    },
)
PARAMS = st.fixed_dictionaries(
    {}, optional={"name": st.just("echo") | JSON, "arguments": JSON, "_meta": META | JSON}
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | JSON},
    optional={"id": JSON, "method": METHODS | JSON, "params": PARAMS | JSON},
)
ECHO = Server(
    [McpTool("echo", "Echo", "", {"type": "object"}, lambda given, _: ToolReply(repr(given)))], ""
)


@settings(
    suppress_health_check=[HealthCheck.too_slow], deadline=None
)  # the first draw builds nested JSON; a busy machine is slow at it
@given(st.binary() | MESSAGES.map(lambda message: json.dumps(message).encode()))
def test_any_message_gets_one_line_or_none(message: bytes):
    said = ECHO.answer(message)

    if said is not None:
        assert b"\n" not in said
        answer = json.loads(said)
        assert answer["jsonrpc"] == "2.0"
        assert ("result" in answer) != ("error" in answer)
        assert answer.get("error", {}).get("code") != -32603


def test_a_version_that_is_not_spoken_is_told_with_those_that_are():
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2099-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    said = ECHO.answer(
        json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
        ).encode()
    )

    assert said is not None
    error = json.loads(said)["error"]
    assert error["code"] == -32022
    assert "2026-07-28" in error["data"]["supported"]
