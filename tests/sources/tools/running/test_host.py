"""The functions of a skill's scripts are called in a process of their own, as their annotations
ask."""

from __future__ import annotations

import base64
import itertools
import json
import re
import sys
import textwrap
import types
import venv
from pathlib import Path

import pytest
from running_stories import told as played

from hotset.sources.tools.found.folders import host_launch
from hotset.sources.tools.found.signatures import read_script
from hotset.sources.tools.running.host_arguments import Unfit, fitted, kinds
from hotset.sources.tools.running.host_calls import render_value

KINDS = """
from __future__ import annotations
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, NewType, Optional, TypedDict, Union
from uuid import UUID

class Colour(Enum):
    RED = "red"
    GREEN = 2

class Pair(NamedTuple):
    left: int
    right: Path

class Options(TypedDict, total=False):
    depth: int

@dataclass
class Leaf:
    name: str
    size: float = 0.0
    secret: InitVar[int] = 0
    kinds: ClassVar[int] = 1

@dataclass
class Node:
    name: str
    size: float = 0.0
    children: list[Node] = field(default_factory=list)

    def __repr__(self):
        return f"Node({self.name!r}, {self.size}, {self.children})"

Id = NewType("Id", int)

def take(value: {kind}) -> str:
    return repr(value)
"""  # noqa: E501


class Client:
    """Asks a host, one thing after the other or several at once."""

    def __init__(self, channel):
        self.channel = channel
        self.ids = itertools.count(1)

    async def say(self, method, params=None, **more):
        await self.channel.send(
            json.dumps(
                {"jsonrpc": "2.0", "method": method, "params": params or {}, **more}
            ).encode()
        )

    async def hear(self):
        message = await self.channel.receive()
        return None if message is None else json.loads(message)

    async def ask(self, method, params=None):
        id = next(self.ids)
        await self.say(method, params, id=id)
        said = await self.hear()
        assert said is None or said["id"] == id
        return said

    async def call(self, name, **arguments):
        said = await self.ask("tools/call", {"name": name, "arguments": arguments})
        return said["result"]


@pytest.fixture
def skill(tmp_path):
    """Writes scripts and tells a story with a client of their host."""

    def write(**scripts):
        for name, text in scripts.items():
            path = tmp_path / "scripts" / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(textwrap.dedent(text))

    def play(story, *names):
        async def whole(supervisor):
            scripts = [tmp_path / "scripts" / f"{name}.py" for name in names or ("tools",)]
            channel = await supervisor.start(host_launch(tmp_path, scripts), cwd=str(tmp_path))
            try:
                return await story(Client(channel))
            finally:
                await channel.close()

        return played(whole)

    write.play = play
    write.folder = tmp_path / "scripts"
    return write


def one(skill, script, name, **arguments):
    """The result of one call of one script."""
    skill(tools=script)
    return skill.play(lambda client: client.call(name, **arguments))


def names(script):
    """That a script defines."""
    module = types.ModuleType("script_of_a_test")
    sys.modules["script_of_a_test"] = module  # where its dataclasses look for their types
    exec(script.replace("{kind}", "Any"), module.__dict__)
    return module.__dict__


def taker(kind):
    return names(KINDS.replace("{kind}", kind))["take"]


def text_of(result):
    (block,) = result["content"]
    return block["text"]


def test_a_host_says_when_it_is_ready_lists_its_functions_and_calls_them(skill):
    skill(
        tools='def add(a: int, b: int = 2) -> dict:\n    """Adds."""\n    return {"sum": a + b}\n'
    )

    async def story(client):
        return (
            await client.ask("ready"),
            (await client.ask("tools/list"))["result"]["tools"],
            await client.call("add", a=3),
        )

    ready, listed, called = skill.play(story)
    assert ready == {"id": 1, "result": {}}
    assert [(tool["name"], tool["description"]) for tool in listed] == [("add", "Adds.")]
    assert called["isError"] is False
    assert called["structuredContent"] == {"sum": 5}


def test_a_line_that_makes_no_sense_is_refused_and_the_next_one_is_answered(skill):
    skill(tools="")

    async def story(client):
        refused = []
        for line in (b"{", b"[{}]", b'{"id": 1}', b'{"id": 1, "method": "x", "params": [1]}'):
            await client.channel.send(line)
            refused.append(await client.hear())
        refused.append(await client.ask("resources/list"))
        refused.append(await client.ask("tools/call", {"nom": 7}))
        return refused, (await client.ask("tools/list"))["result"]

    refused, listed = skill.play(story)
    assert [each["id"] for each in refused] == [None, None, 1, 1, 1, 2]
    assert all("the host failed" in each["error"]["message"] for each in refused)
    assert listed == {"tools": []}


def test_the_same_functions_are_offered_that_were_read_from_the_text(skill):
    text = '''
    import os

    def public(a: int, b: "str" = "", *, c: bool) -> None:
        """Does it."""
    async def later(a: int): ...
    def nothing() -> str: ...
    def replaced(a: int): ...
    replaced = 3
    def twice(a): ...
    def twice(a: int): ...
    class shadowed: ...
    def untyped(a, b: int): ...
    def many(*args: int): ...
    def named(**more: int): ...
    def positional(a: int, /): ...
    def _private(a: int): ...
    class Class:
        def method(self, a: int): ...
    if os:
        def inside(a: int): ...
    '''
    skill(tools=text)
    listed = skill.play(lambda client: client.ask("tools/list"))["result"]["tools"]
    read = read_script(textwrap.dedent(text)).functions
    assert (
        [tool["name"] for tool in listed]
        == [each.name for each in read]
        == ["public", "later", "nothing", "twice"]
    )
    for tool, each in zip(listed, read, strict=True):
        schema = json.loads(each.parameters)
        assert list(tool["inputSchema"]["properties"]) == list(schema["properties"])
        assert tool["inputSchema"]["required"] == schema["required"]


def test_functions_of_the_same_name_are_called_by_the_name_of_their_script(skill):
    skill(
        one="def go() -> str:\n    return 'one'\ndef only() -> int:\n    return 1\n",
        two="def go() -> str:\n    return 'two'\n",
    )

    async def story(client):
        names = [tool["name"] for tool in (await client.ask("tools/list"))["result"]["tools"]]
        said = [
            text_of(await client.call(name)) for name in ("one.go", "two.go", "only", "one.only")
        ]
        return names, said, (await client.call("go"))["isError"]

    names, said, refused = skill.play(story, "one", "two")
    assert sorted(names) == ["one.go", "only", "two.go"]
    assert said == ["one", "two", "1", "1"]
    assert refused


@pytest.mark.parametrize(
    ("value", "content", "structured"),
    [
        ("'text'", [{"type": "text", "text": "text"}], None),
        ("None", [], None),
        ("7", [{"type": "text", "text": "7"}], None),
        ("True", [{"type": "text", "text": "true"}], None),
        ("{'a': [1, None]}", [{"type": "text", "text": '{"a": [1, null]}'}], {"a": [1, None]}),
        (
            "[1, 'zwei', 2.5]",
            [{"type": "text", "text": '[1, "zwei", 2.5]'}],
            {"result": [1, "zwei", 2.5]},
        ),
        (
            "Pair(1, Colour.RED)",
            [{"type": "text", "text": '{"left": 1, "right": "red"}'}],
            {"left": 1, "right": "red"},
        ),
        ("Options(depth=1)", [{"type": "text", "text": '{"depth": 1}'}], {"depth": 1}),
        (
            "Leaf('a')",
            [{"type": "text", "text": '{"name": "a", "size": 0.0}'}],
            {"name": "a", "size": 0.0},
        ),
        ("(each for each in (1, 2))", [{"type": "text", "text": "[1, 2]"}], {"result": [1, 2]}),
        (
            "{1: Path('/a'), 'n': float('nan')}",
            [{"type": "text", "text": '{"1": "/a", "n": null}'}],
            {"1": "/a", "n": None},
        ),
        ("Path('/a')", [{"type": "text", "text": "/a"}], None),
        ("date(2026, 11, 16)", [{"type": "text", "text": "2026-11-16"}], None),
    ],
)
def test_a_result_is_told_as_what_it_is(value, content, structured):
    result = render_value(eval(value, names(KINDS)))
    assert (result["content"], result.get("structuredContent"), "isError" in result) == (
        content,
        structured,
        False,
    )


def test_bytes_are_told_as_a_blob_and_pictures_as_pictures(skill):
    skill(
        tools=(
            "def give(png: bool) -> bytes:\n    return b'\\x89PNG\\r\\n\\x1a\\n...' if png else "
            "b'\\x00\\xff'\n"
        )
    )

    async def story(client):
        return await client.call("give", png=True), await client.call("give", png=False)

    picture, blob = skill.play(story)
    assert (picture["content"][0]["type"], picture["content"][0]["mimeType"]) == (
        "image",
        "image/png",
    )
    assert base64.b64decode(blob["content"][0]["resource"]["blob"]) == b"\x00\xff"


@pytest.mark.parametrize(
    ("kind", "given", "seen"),
    [
        ("int", 3, "3"),
        ("int", "3", "3"),
        ("int", 3.0, "3"),
        ("float", 3, "3.0"),
        ("float", "2.5", "2.5"),
        ("bool", "false", "False"),
        ("str", 12, "'12'"),
        ("bytes", "AP8=", "b'\\x00\\xff'"),
        ("Path", "a/b", "PosixPath('a/b')"),
        ("Colour", "red", "<Colour.RED: 'red'>"),
        ("Colour", "GREEN", "<Colour.GREEN: 2>"),
        ("Literal['a', 2]", 2, "2"),
        ("Literal['a', 2]", "2", "2"),
        ("list[int]", ["1", 2], "[1, 2]"),
        ("Sequence[Path]", ["a"], "[PosixPath('a')]"),
        ("set[int]", [1, 1], "{1}"),
        ("tuple[int, str]", ["1", "b"], "(1, 'b')"),
        ("tuple[int, ...]", [1, "2"], "(1, 2)"),
        ("dict[int, float]", {"1": 2}, "{1: 2.0}"),
        ("Mapping[str, Any]", {"a": [1]}, "{'a': [1]}"),
        ("Optional[int]", None, "None"),
        ("int | str", "5", "'5'"),
        ("Union[int, list[int]]", ["5"], "[5]"),
        ("Annotated[int, 'a number']", "5", "5"),
        ("Id", "5", "5"),
        ("Node", {"name": "a", "children": [{"name": "b"}]}, ("Node('a', 0.0, "
            "[Node('b', 0.0, [])])")),
        ("Pair", {"left": "1", "right": "b"}, "Pair(left=1, right=PosixPath('b'))"),
        ("Options", {"depth": "3"}, "{'depth': 3}"),
        ("datetime", "2026-11-16T12:00:00Z", ("datetime.datetime(2026, 11, 16, 12, 0, "
            "tzinfo=datetime.timezone.utc)")),
        ("date", "2026-11-16", "datetime.date(2026, 11, 16)"),
        ("timedelta", "PT1H30M", "datetime.timedelta(seconds=5400)"),
        ("timedelta", 1.5, "datetime.timedelta(seconds=1, microseconds=500000)"),
        ("Decimal", "0.1", "Decimal('0.1')"),
        ("UUID", "12345678123456781234567812345678", "UUID('12345678-1234-5678-1234-567812345678')"),  # noqa: E501
        ("Any", {"a": 1}, "{'a': 1}"),
        ("'unknown.type'", {"a": 1}, "{'a': 1}"),
    ],
)  # fmt: skip
def test_an_argument_is_made_what_its_annotation_says(kind, given, seen):
    assert repr(fitted({"value": given}, kinds(taker(kind)), ["value"], ["value"])["value"]) == seen


@pytest.mark.parametrize(
    ("kind", "given", "sentence"),
    [
        ("int", "three", "'value' must be a whole number, not 'three'"),
        ("int", 2.5, "'value' must be a whole number, not 2.5"),
        ("int", True, "'value' must be a whole number, not True"),
        ("int", None, "'value' must be a whole number, not None"),
        ("bool", 1, "'value' must be true or false, not 1"),
        ("str", ["x"], "'value' must be text, not ['x']"),
        ("Colour", "blue", "'value' must be one of 'red', 2, not 'blue'"),
        ("Literal['a', 2]", "b", "'value' must be one of 'a', 2, not 'b'"),
        ("list[int]", "1", "'value' must be a list, not '1'"),
        ("list[int]", ["x"], "must be a whole number, not 'x'"),
        ("tuple[int, int]", [1], "must be a list of 2"),
        (
            "Node",
            {"name": "a", "size": "big"},
            "'value' has a 'size' that must be a number, not 'big'",
        ),
        ("Node", {"nom": "a"}, "must be an object that makes a Node"),
        ("int | None", "x", "must be int or null, not 'x'"),
        ("date", "tomorrow", "must be a date as 2026-11-16, not 'tomorrow'"),
        ("bytes", "%%", "must be base64"),
    ],
)
def test_an_argument_that_does_not_fit_is_told_in_a_sentence(kind, given, sentence):
    with pytest.raises(Unfit, match=re.escape(sentence)):
        fitted({"value": given}, kinds(taker(kind)), ["value"], ["value"])


def test_arguments_and_results_go_through_the_host_as_annotated(skill):
    skill(
        tools=KINDS.replace("{kind}", "Node")
        + "def give(count: int) -> list[Leaf]:\n    return [Leaf('é')] * count\n"
    )

    async def story(client):
        taken = await client.call(
            "take", value={"name": "a", "children": [{"name": "b", "size": "1"}]}
        )
        return text_of(taken), (await client.call("give", count="2"))["structuredContent"]

    taken, given = skill.play(story)
    assert taken == "Node('a', 0.0, [Node('b', 1.0, [])])"
    assert given == {"result": [{"name": "é", "size": 0.0}] * 2}


def test_half_a_character_does_not_break_the_answer(skill):
    assert text_of(one(skill, "def give() -> str:\n    return 'a' + chr(0xd83d)\n", "give")) == "a?"


def test_missing_and_unknown_arguments_are_told_and_null_is_a_default(skill):
    skill(tools="def take(a: int, b: int = 5) -> int:\n    return a + b\n")

    async def story(client):
        calls = ({}, {"a": 1, "c": 2}, {"a": 1, "b": None})
        return [text_of(await client.call("take", **arguments)) for arguments in calls]

    missing, unknown, default = skill.play(story)
    assert missing == "take: 'a' is missing"
    assert unknown == "take: there is no argument 'c'; there are a, b"
    assert default == "6"


def test_a_script_is_imported_at_the_first_call_of_one_of_its_functions(skill):
    skill(
        tools=(
            "from pathlib import Path\nPath('imported').touch()\ndef go() -> str:\n    return "
            "__name__\n"
        ),
        other="1 / 0\ndef never() -> int: ...\n",
    )
    imported = skill.folder.parent / "imported"

    async def story(client):
        await client.ask("tools/list")
        before = imported.exists()
        await client.call("nothing_of_the_kind")
        return before or imported.exists(), text_of(await client.call("go")), imported.exists()

    assert skill.play(story, "tools", "other") == (False, "tools", True)


def test_an_exception_is_told_with_the_scripts_own_frames(skill):
    result = one(
        skill,
        """
        import json

        def outer(text: str) -> dict:
            return inner(text)

        def inner(text: str) -> dict:
            try:
                return json.loads(text)
            except ValueError as error:
                raise RuntimeError("cannot read it") from error
        """,
        "outer",
        text="{",
    )
    told_ = text_of(result)
    assert result["isError"]
    assert told_.endswith("RuntimeError: cannot read it")
    assert "return inner(text)" in told_
    assert "JSONDecodeError" in told_
    assert "host.py" not in told_


@pytest.mark.parametrize("message", ["x" * 100_000, "y\n" * 50_000])
def test_a_traceback_has_an_end(skill, message):
    result = one(skill, f"def fail() -> None:\n    raise ValueError({message!r})\n", "fail")
    assert len(text_of(result)) <= 4_000
    assert "ValueError" in text_of(result)
    assert "in fail" in text_of(result)


def test_what_calls_sys_exit_fails_alone(skill):
    skill(
        tools=(
            "import sys\ndef leave(code: int) -> None:\n    "
            "sys.exit(code)\ndef stay() -> str:\n  "
            "  return 'here'\n"
        )
    )

    async def story(client):
        return await client.call("leave", code=3), await client.call("stay")

    left, stayed = skill.play(story)
    assert "SystemExit: 3" in text_of(left)
    assert text_of(stayed) == "here"


def test_what_ends_the_process_is_heard_as_its_end(skill):
    skill(
        tools=(
            "import os, sys\ndef die() -> None:\n    print('going', flush=True)\n    os._exit(9)\n"
        )
    )

    async def story(client):
        return await client.ask("tools/call", {"name": "die"}), client.channel.last_words()

    assert skill.play(story) == (None, "going\n[it ended with exit status 9]")


def test_a_broken_script_fails_with_its_traceback_and_works_once_it_is_mended(skill):
    skill(tools="def go() -> str\n    return 'one'\n", other="def fine() -> int:\n    return 1\n")

    async def story(client):
        said = [await client.call("go"), await client.call("fine")]
        skill(tools="import no_such_module\ndef go() -> str:\n    return 'two'\n")
        said.append(await client.call("go"))
        skill(tools="def go() -> str:\n    return 'three'\n")
        said.append(await client.call("go"))
        return [text_of(each) for each in said]

    syntax, fine, missing, mended = skill.play(story, "tools", "other")
    assert "SyntaxError" in syntax
    assert "tools.py" in syntax
    assert fine == "1"
    assert missing.endswith("ModuleNotFoundError: No module named 'no_such_module'")
    assert mended == "three"


def test_changed_code_is_used_at_the_next_call_also_of_a_module_beside_it(skill):
    skill(tools="import words\ndef go() -> str:\n    return words.WORD\n", words="WORD = 'a'\n")

    async def story(client):
        said = []
        for word in "abcdba":
            skill(words=f"WORD = {word!r}\n")
            said.append(text_of(await client.call("go")))
        return said

    assert skill.play(story) == list("abcdba")


def test_what_has_not_changed_keeps_what_it_knows_also_when_it_was_only_touched(skill):
    skill(tools="CALLS = []\ndef go() -> int:\n    CALLS.append(1)\n    return len(CALLS)\n")

    async def story(client):
        said = [text_of(await client.call("go"))]
        (skill.folder / "tools.py").touch()
        return [*said, text_of(await client.call("go"))]

    assert skill.play(story) == ["1", "2"]


def test_what_a_script_prints_is_no_part_of_the_protocol_and_it_has_nothing_to_read(skill):
    skill(
        tools="""
        import os, subprocess, sys
        print("at import")
        def go() -> list:
            print("printed")
            os.write(1, b"written\\n")
            subprocess.run(["echo", "by a process"])
            return [sys.stdin.read(), subprocess.run(["cat"], capture_output=True).stdout.decode()]
        """
    )

    async def story(client):
        result = await client.call("go")
        return result["structuredContent"], client.channel.garbage, client.channel

    read, garbage, channel = skill.play(story)
    assert (read, garbage) == ({"result": ["", ""]}, 0)
    assert channel.last_words().splitlines() == ["at import", "printed", "written", "by a process"]


def test_async_functions_are_awaited(skill):
    skill(
        tools="""
        import asyncio
        async def later(text: str) -> str:
            await asyncio.sleep(0)
            return text.upper()
        async def several() -> object:
            for each in (1, 2):
                yield each
        """
    )

    async def story(client):
        return text_of(await client.call("later", text="a")), text_of(await client.call("several"))

    assert skill.play(story) == ("A", "[1, 2]")


def test_calls_that_come_at_once_run_at_once(skill):
    skill(
        tools="""
        import threading
        together = threading.Barrier(3, timeout=120)
        def meet(name: str) -> str:
            together.wait()
            return name
        """
    )

    async def story(client):
        for id, name in enumerate("abc"):
            await client.say("tools/call", {"name": "meet", "arguments": {"name": name}}, id=id)
        return sorted([text_of((await client.hear())["result"]) for _ in range(3)])

    assert skill.play(story) == ["a", "b", "c"]


def test_calls_one_after_the_other_run_in_the_main_thread(skill):
    """Where signals, event loops and connections to a SQLite file work as in a program."""
    skill(
        tools="""
        import sqlite3, threading
        database = sqlite3.connect(":memory:")
        def go() -> bool:
            database.execute("select 1")
            return threading.current_thread() is threading.main_thread()
        """
    )

    async def story(client):
        return [text_of(await client.call("go")) for _ in range(3)]

    assert skill.play(story) == ["true"] * 3


def test_a_call_that_nobody_waits_for_any_more_is_not_answered(skill):
    skill(
        tools="""
        import threading
        gate = threading.Event()
        def wait() -> str:
            gate.wait(120)
            return "late"
        def open_gate() -> str:
            gate.set()
            return "open"
        """
    )

    async def story(client):
        await client.say("tools/call", {"name": "wait"}, id=7)
        await client.say("notifications/cancelled", {"requestId": 7})
        said = [text_of(await client.call("open_gate"))]
        return [*said, await client.ask("ready")]

    opened, pong = skill.play(story)
    assert opened == "open"
    assert pong["result"] == {}


@pytest.mark.parametrize("name", ["json", "calendar", "two words", "with-dash"])
def test_a_script_may_have_any_name(skill, name):
    skill(
        **{
            name: "import json\ndef go() -> str:\n    return json.dumps({'a': 1})\n"
            if name != "json"
            else "def go() -> int:\n    return 1\n"
        }
    )
    assert not skill.play(lambda client: client.call("go"), name)["isError"]


def test_nothing_is_written_into_the_folder(skill):
    skill(tools="import words\ndef go() -> str:\n    return words.WORD\n", words="WORD = 'a'\n")
    skill.play(lambda client: client.call("go"))
    assert sorted(path.name for path in skill.folder.iterdir()) == ["tools.py", "words.py"]


def test_a_skill_has_the_packages_of_its_own_python_and_none_of_ours(skill):
    folder = skill.folder.parent
    venv.create(folder / ".venv", with_pip=False, symlinks=True)
    packages = next((folder / ".venv" / "lib").iterdir()) / "site-packages"
    (packages / "only_there.py").write_text("WORD = 'own'\n")
    skill(
        tools="""
        import only_there, sys
        def go() -> list:
            return [only_there.WORD, sys.prefix]
        def ours() -> None:
            import hotset
        """
    )

    async def story(client):
        return (await client.call("go"))["structuredContent"], await client.call("ours")

    found, ours = skill.play(story)
    assert found == {"result": ["own", str(folder / ".venv")]}
    assert "ModuleNotFoundError" in text_of(ours)
    assert Path(sys.prefix) != folder / ".venv"
