"""The sessions whose bytes are recorded: each a client, its tools' results, and what the model
replies."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from hotset.nouns.knobs import Knobs, Limit, Remembering
from hotset.nouns.tooling import Deferring, Tooling
from hotset.testing import Call, Say
from hotset.testing.upstream.script import Received
from tests.bytes import texts
from tests.bytes.stage import TOOLS, Stage, StagedTalk
from tests.proxy.shelf import Shelf
from tests.proxy.talking import retrieve, tools
from tests.runtime import notes_server

_ANTHROPIC, _CHAT, _RESPONSES = "anthropic", "openai-chat", "openai-responses"
_SMALL = 14_000
"""Tokens of a window in which steps have to leave."""

_TIGHT = 6_000

_COLD = 4000.0
"""Seconds after which no provider has anything in its cache."""

_SHORT = Knobs(limit=Limit(3000, 2000), limits={})


def read(path: str, id: str = "") -> Call:
    return Call("read_file", {"path": path}, id)


def run(command: str, id: str = "") -> Call:
    return Call("shell", {"command": command}, id)


def ask(name: str, /, **arguments: Any) -> Call:
    return Call(name, arguments)


def births(stage: Stage, dialect: str, *, stream: bool, **settings: Any) -> None:
    """Results of every content type, most of them too long to be shown whole."""
    stage.start(**settings)
    work = [
        (read("src/billing.py"), texts.code("billing", 400)),
        (run("curl -s localhost/invoices"), texts.rows()),
        (run("journalctl -u billing"), texts.log()),
        (run("git diff HEAD~3"), texts.diff()),
        (run("pytest -v"), texts.pytest_output()),
        (run("psql -c 'select * from goods'"), texts.table()),
        (read("docs/manual.md"), texts.prose()),
        (ask("fetch_url", url="https://goods.example/list"), texts.page()),
        (run("cat data.csv"), "\n".join(f"{n},{n * 7919 % 977},ok" for n in range(900))),
        (run("true"), ""),
        (run("echo done"), "done"),
    ]
    stage.replies += [
        *(
            Say(f"Step {number}.", calls=(call,), thinking="What next?")
            for number, (call, _) in enumerate(work)
        ),
        Say("Both.", calls=(read("src/first.py"), run("git log --stat"))),
        Say("The rounding is wrong."),
    ]
    talk = stage.talk(dialect, stream=stream, **_system(dialect))
    talk.say("Find out why the totals differ: look at everything.")
    for _, text in work:
        talk.results(text)
    talk.results(texts.code("first", 260), texts.log(400))


def repeats(stage: Stage, dialect: str, *, stream: bool) -> None:
    """Files are read again, unchanged and changed, in the same turn and much later."""
    stage.start()
    first, other = texts.code("basket", 70), texts.code("order", 90)
    changed = texts.edited(first, 11, 12, 40)
    results = [
        first,
        first,
        other,
        changed,
        changed,
        first,
        texts.edited(other, *range(0, 90, 3)),
        first + "\n\nX = 1\n",
    ]
    paths = ["basket", "basket", "order", "basket", "basket", "basket", "order", "basket"]
    stage.replies += [
        *(Say("I read.", calls=(read(f"src/{path}.py"),)) for path in paths),
        Say("Twice.", calls=_twice()),
    ]
    stage.replies += [
        Say("Compared."),
        Say("Once more.", calls=(read("src/basket.py"),)),
        Say("The same."),
    ]
    talk = stage.talk(dialect, stream=stream)
    talk.say("Compare the two modules while I edit them.")
    for text in results:
        talk.results(text)
    talk.results(texts.pytest_output(90), texts.pytest_output(90))
    talk.say("And now?")
    talk.results(changed)


def _twice() -> tuple[Call, ...]:
    return run("pytest -q"), run("pytest -q")


def pressure(
    stage: Stage,
    dialect: str,
    *,
    stream: bool,
    config: str = "",
    headers: dict[str, str] | None = None,
) -> None:
    """So many steps that older ones leave, in batches: by pressure, and after a pause, when the
    cache is cold."""
    stage.start(config, budget=_SMALL)
    steps = [_step(number) for number in range(22)]
    stage.replies += [
        Say(
            f"{said} I found that part {number} fails because RATE is wrong there.",
            calls=(call,),
            thinking=f"Part {number}.",
        )
        for number, (said, call, _) in enumerate(steps)
    ]
    stage.replies += [
        Say("Two.", calls=(run("pytest"), run("git diff"))),
        Say("All read."),
        Say("Thanks to you."),
    ]
    talk = stage.talk(dialect, stream=stream, headers=headers, **_system(dialect))
    talk.say("Read all parts of the project and tell me which one rounds.")
    for number, (_, _, text) in enumerate(steps):
        if number == 15:
            stage.pause(_COLD)
        talk.results(text)
    talk.results(texts.pytest_output(100), texts.diff(2))
    talk.say("Thank you.")


def _step(number: int) -> tuple[str, Call, str]:
    """What the model says, does and gets: it reads, tests and writes."""
    module = texts.code(f"part{number}", 12 + number)
    if number % 5 == 3:
        return (
            "Let me test it.",
            run(f"pytest tests/test_{number}.py"),
            f"E   assert {number} == 9.57\n1 failed, {number} passed",
        )
    if number % 5 == 4:
        return (
            "I fix it.",
            ask("write_file", path=f"src/part_{number}.py", content=module),
            "written",
        )
    return "I read it.", read(f"src/part_{number}.py"), module


def recalls(stage: Stage, dialect: str, *, stream: bool) -> None:
    """The model asks for what was shortened or left, in every way that our tools know; the client
    sees none of it."""
    stage.start(budget=_TIGHT, knobs=_SHORT)
    stage.replies += [
        Say("First.", calls=(read("src/zero.py", "one"),)),
        Say("Then.", calls=(run("curl -s localhost/invoices", "two"),)),
        Say("And.", calls=(run("journalctl -u billing", "three"), run("psql", "four"))),
        Say("I look.", calls=(retrieve(dialect, "one", symbol="zero_77"),)),
        Say(
            calls=(
                retrieve(dialect, "one", lines="200-230"),
                retrieve(dialect, "two", path="$.data[3:5]"),
            )
        ),
        Say(
            calls=(
                retrieve(dialect, "three", regex="CardRefused"),
                retrieve(dialect, "four", rows="5-9"),
            )
        ),
        Say(
            calls=(retrieve(dialect, "three", question="which card was refused?", max_tokens=400),)
        ),
        Say("It was refused."),
    ]
    talk = stage.talk(dialect, stream=stream)
    talk.say("What is wrong with the invoices?")
    talk.results(texts.code("zero", 200))
    talk.results(texts.rows(200))
    talk.results(texts.log(500), texts.table(150))
    for number in range(6):
        stage.replies.append(Say("Next.", calls=(read(f"src/part_{number}.py"),)))
    stage.replies.append(Say("Read."))
    talk.say("Now read the parts.")
    for number in range(6):
        talk.results(texts.code(f"part{number}", 25))
    stage.replies += [
        Say("I search.", calls=(ask("search_history", query="CardRefused insufficient funds"),)),
        Say(calls=(ask("get_turn_range", first=1, last=2, max_tokens=900),)),
        Say(
            calls=(
                ask("retrieve_context", iteration=2),
                ask("retrieve_context", tool="shell", max_tokens=300),
            )
        ),
        Say("Here it is."),
    ]
    stage.pause(60)
    talk.say("Which error was it?")
    stage.replies += [
        Say(calls=(ask("retrieve_context", id="c000000000000"), ask("search_history"))),
        Say(calls=(ask("retrieve_context", topic="overdue invoices of the harbour"),)),
        Say(
            "Both.",
            calls=(read("src/last.py"), ask("search_history", query="part3_7 price", type="file")),
        ),
        Say("Done."),
    ]
    stage.pause(60)
    talk.say("And what about the harbour?")
    talk.results(texts.code("last", 10))
    for _ in range(2):
        stage.replies.append(Say("I see."))
        talk.say(texts.prose(4))
    stage.replies += [_bring_back, Say("Bye.")]
    talk.say("What came before?")


def _bring_back(request: Received) -> Say:
    """The model asks for what the first reference in its window stands for."""
    [reference, *_] = re.findall(r"\br[0-9a-f]{11}\b", request.decoded.decode())
    return Say(
        calls=(
            ask("retrieve_context", id=reference),
            ask("retrieve_context", id=reference, lines="40-60"),
        )
    )


def forks(stage: Stage, dialect: str, *, stream: bool) -> None:
    """The client edits its past, goes back, and goes on in two lines; results are cleared, a prompt
    is said again."""
    stage.start(budget=_TIGHT)

    def work(talk: StagedTalk, name: str, steps: int) -> None:
        stage.replies += [
            Say(f"{name} {number}.", calls=(read(f"{name}_{number}.py"),))
            for number in range(steps)
        ]
        stage.replies.append(Say(f"{name} is read."))
        talk.say(f"Read {name}.")
        for number in range(steps):
            talk.results(texts.code(f"{name}{number}", 30))

    talk = stage.talk(dialect, stream=stream)
    work(talk, "alpha", 8)
    kept = list(talk.history)
    work(talk, "beta", 5)
    other = stage.talk(dialect, stream=stream)
    other.history = kept[:-3]
    work(other, "gamma", 6)
    stage.replies += [Say("As you say."), Say("Again."), Say("Other."), Say("Back.")]
    talk.history = [*talk.history[:-3], {"role": "user", "content": "Forget what came after."}]
    talk.send()
    talk.history.pop()
    talk.send()
    other.history[0] = {"role": "user", "content": "Read alpha, but slowly."}
    other.say("What changed?")
    talk.say("Where were we?")


def restarts(stage: Stage, dialect: str, *, stream: bool) -> None:
    """The proxy ends in mid-session; the next one has the page table from disk, and other
    settings."""
    stage.start(budget=_TIGHT // 2, knobs=_SHORT)
    stage.replies += [
        Say("First.", calls=(read("0.py", "one"),)),
        Say("Next.", calls=(read("1.py"),)),
        Say("I need more.", calls=(retrieve(dialect, "one", symbol="part0_99"),)),
        Say("Next.", calls=(read("2.py"),)),
        Say("Both.", calls=(read("3.py"), retrieve(dialect, "one", symbol="part0_11"))),
        *(Say("Next.", calls=(read(f"{number}.py"),)) for number in range(4, 10)),
        Say("Done."),
    ]
    talk = stage.talk(dialect, stream=stream)
    talk.say("Read the files.")
    for number in range(10):
        if number in (4, 7):
            stage.start(budget=_TIGHT // 2, knobs=_SHORT if number == 4 else Knobs())
        talk.results(texts.code(f"part{number}", 150))


def create_issue(title: str, body: str = "") -> str:
    """Create an issue on GitHub."""
    return f"Issue 17 is open: {title} {body}".strip()


def list_rows(table: str) -> str:
    """List the rows of a table."""
    return "\n".join(f"{number:05} {table} row {number * 7919}" for number in range(900))


def break_down() -> str:
    """Always breaks down."""
    raise ValueError("out of order")


_ISSUE, _ROWS = "github__create_issue", "store__list_rows"


def toolbox(
    stage: Stage, dialect: str, *, stream: bool, deferred: Deferring = Deferring.AUTO
) -> None:
    """Tools are found, used and shown as ghosts; a result is too long, one tool fails, the proxy is
    started anew."""
    shelf = Shelf(github=[create_issue], store=[list_rows, break_down])
    settings: dict[str, Any] = {
        "toolbox": shelf,
        "tooling": Tooling(deferred=deferred),
        "knobs": _SHORT,
    }
    own = deferred is Deferring.ON
    find = partial(ask, "tool_search" if own and dialect == _RESPONSES else "find_tools")
    use = (
        (lambda name, **given: Call(name, given))
        if own
        else (lambda name, **given: ask("use_tool", name=name, arguments=given))
    )
    stage.start(**settings)
    stage.replies += [
        Say("I look.", calls=(find(query="open an issue on github"),), thinking="Which tool?"),
        Say("I do it.", calls=(use(_ISSUE, title="It broke"),)),
        Say("Issue 17.", calls=(read("a.py"),)),
        Say("And the rows.", calls=(find(query="rows of a table"),)),
        Say(calls=(use(_ROWS, table="people"), read("b.py"))),
        Say("It fails.", calls=(ask("use_tool", name="store__break_down", arguments={}),)),
        Say(
            calls=(
                find(query="send a parcel to the moon"),
                ask("use_tool", name="moon__send", arguments={}),
            )
        ),
        Say("Done."),
    ]
    talk = stage.talk(dialect, stream=stream)
    talk.say("Please look after it.")
    talk.results(texts.code("a", 90))
    talk.results(texts.code("b", 20))
    stage.start(**settings)
    stage.replies += [Say(calls=(use(_ISSUE, title="Again"),)), Say("Issue 18.")]
    talk.say("Create an issue for the other one, too.")
    stage.pause(_COLD)
    stage.replies += [Say("Yes.", calls=(Call(_ISSUE, {"title": "Third"}),)), Say("Issue 19.")]
    another = stage.talk(dialect, stream=stream)
    another.say("Please create an issue.")


def servers(stage: Stage, dialect: str, *, stream: bool) -> None:
    """The toolbox as the product makes it, over a server that is a process of its own."""
    folder = stage.folder / "tools"
    folder.mkdir(mode=0o700, parents=True)
    entry = {
        "command": sys.executable,
        "args": ["-I", "-S", str(Path(notes_server.__file__)), str(folder)],
    }
    (folder / "servers.json").write_text(json.dumps({"mcpServers": {"notes": entry}}))
    stage.start(tooling=Tooling(), knobs=_SHORT)
    stage.pause(1)
    stage.replies += [
        Say(calls=(ask("find_tools", query="keep a note under a title"),)),
        Say(
            calls=(
                ask(
                    "use_tool",
                    name="notes__add_note",
                    arguments={"title": "one", "text": "the first"},
                ),
            )
        ),
        Say(calls=(ask("use_tool", name="notes__long_list", arguments={"limit": 2000}),)),
        Say(calls=(ask("use_tool", name="notes__read_note", arguments={"titel": "one"}),)),
        Say("Kept."),
        Say(calls=(Call("notes__read_note", {"title": "one"}),)),
        Say("The first."),
    ]
    talk = stage.talk(dialect, stream=stream)
    talk.say("Please add a note about it.")
    talk.say("Read it again.")


def memories(stage: Stage, dialect: str, *, stream: bool) -> None:
    """What one session learned is told with the prompts of the next ones, and read whole by the
    model."""
    memory = Remembering(quiet_seconds=0.3, offer_seconds=60.0)
    stage.start(memory=memory)
    failed = (
        "E   ModuleNotFoundError: No module named 'dateutil'\ntests/test_dates.py:3: "
        "ModuleNotFoundError\n[exit code: 1]"
    )
    results = (
        failed,
        "[exit code: 0]",
        "Successfully installed python-dateutil-2.9.0\n[exit code: 0]",
        "4 passed\n[exit code: 0]",
    )
    work = (
        Say("I run the tests.", calls=(run("pytest tests/test_dates.py"),)),
        Say("dateutil is missing.", calls=(run("echo python-dateutil==2.9.0 >> constraints.txt"),)),
        Say("Now I install it.", calls=(run("pip install -c constraints.txt python-dateutil"),)),
        Say("Again.", calls=(run("pytest tests/test_dates.py"),)),
        Say("Fixed: dateutil was not installed; all four tests of the date parser pass now."),
    )
    prompts = (
        (
            "The date parser's tests fail: please fix tests/test_dates.py. Remember that we pin "
            "dependencies in constraints.txt."
        ),
        (
            "The tests of the date parser fail again with an import error in tests/test_dates.py. "
            "Find out why and fix it."
        ),
    )
    for prompt in prompts:
        stage.replies += work
        talk = stage.talk(dialect, stream=stream)
        talk.say(prompt)
        for text in results:
            talk.results(text)
        stage.pause(90_000)
    stage.start(memory=memory)
    stage.pause(1)
    stage.replies += [
        Say("In constraints.txt."),
        Say(calls=(ask("search_history", query="dateutil", session="all"),)),
        Say("So."),
    ]
    talk = stage.talk(dialect, stream=stream)
    talk.say("Where do we pin dependencies of the date parser?")
    stage.pause(60)
    talk.say("What did we do about dateutil in tests/test_dates.py?")


def continued(stage: Stage, dialect: str, *, stream: bool) -> None:
    """The provider holds the conversation: requests name the reply that they continue."""
    stage.start()
    stage.replies += [
        Say("Let me see.", calls=(ask("search_history", query="weather"),)),
        Say("It rained.", calls=(read("rain.txt"),)),
        Say("Much.", calls=(ask("search_history", query="rain"), read("snow.txt", "snow"))),
        Say("Gladly."),
        Say("Yes."),
    ]
    talk = stage.talk(dialect, stream=stream, store=True)
    talk.say("Was there rain?")
    for text in ("rain " * 2000, "snow"):
        calls, talk.history = talk.calls, []
        talk.extra["previous_response_id"] = talk.reply.response_id
        talk.send({"type": "function_call_output", "call_id": calls[0].call, "output": text})
    talk.history = []
    talk.extra["previous_response_id"] = talk.reply.response_id
    talk.say("Go on.")


def images(stage: Stage, dialect: str, *, stream: bool) -> None:
    """Images in prompts and results, which leave and come back."""
    stage.start(budget=_SMALL, knobs=_SHORT)
    talk = stage.talk(dialect, stream=stream)
    stage.replies.append(Say("A cat.", calls=(Call("shell", {"command": "screenshot"}, "shot"),)))
    talk.send(
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, _image("cat")]}
    )
    for number in range(12):
        stage.replies.append(Say(f"Shot {number}.", calls=(run("screenshot"),)))
        [call] = talk.calls
        content = [
            {"type": "text", "text": texts.log(30)},
            _image(f"shot {number}", 1200 + number, 800),
        ]
        talk.send(
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": call.call, "content": content}],
            }
        )
    stage.replies += [
        Say(calls=(retrieve(dialect, "shot"),)),
        Say("I saw it."),
    ]
    stage.pause(60)
    talk.results("no more")
    stage.replies.append(Say("Bye."))
    talk.say("Thanks.")


def _image(seed: str, width: int = 640, height: int = 480) -> dict[str, Any]:
    data = texts.picture(seed, width, height)
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def switches(stage: Stage, dialect: str, *, stream: bool) -> None:
    """Switched off by header and by setting, without our tools, with our tools from the client, and
    on again."""
    stage.start()
    talk = stage.talk(dialect, stream=stream)
    brought: dict[str, Any] = {}
    for settings, headers, extra in (
        ({}, {}, {}),
        ({}, {"x-hotset-window": "off"}, {}),
        ({"off": True}, {}, {}),
        ({"inject": False, "budget": _SMALL}, {}, {}),
        ({}, {}, brought),
        ({}, {}, {}),
    ):
        stage.start(**settings)
        talk.headers, talk.extra = headers, {"tools": tools(dialect, *TOOLS), **extra}
        stage.replies += [Say("I read.", calls=(read("src/a.py"), run("journalctl"))), Say("Read.")]
        talk.say("Read it.")
        talk.results(texts.code("a", 400), texts.log(200))
        brought["tools"] = [*tools(dialect, *TOOLS), *_brought(stage, dialect)]
        fresh = stage.talk(dialect, stream=stream, headers=headers, **extra)
        stage.replies += [Say("I read.", calls=(read("src/a.py"),)), Say("Read.")]
        fresh.say("Read it.")
        fresh.results(texts.code("a", 400))


def _brought(stage: Stage, dialect: str) -> list[dict[str, Any]]:
    """Our tools as a client names them that has them over MCP."""
    body = json.loads(stage.upstream.requests[0].decoded)
    ours = json.loads(json.dumps(body["tools"][len(TOOLS) :]))
    for tool in ours:
        spec = tool["function"] if dialect == _CHAT else tool
        spec["name"] = f"mcp__hotset__{spec['name']}"
    return ours


def _system(dialect: str) -> dict[str, Any]:
    text = "You are a careful engineer. " + texts.prose(2)
    if dialect == _ANTHROPIC:
        return {"system": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]}
    return {"instructions": text} if dialect == _RESPONSES else {}


SESSIONS: dict[str, Callable[[Stage], None]] = {
    "births-anthropic": partial(births, dialect=_ANTHROPIC, stream=False),
    "births-chat-stream": partial(births, dialect=_CHAT, stream=True, budget=60_000),
    "births-responses-stream": partial(births, dialect=_RESPONSES, stream=True),
    "repeats-anthropic-stream": partial(repeats, dialect=_ANTHROPIC, stream=True),
    "repeats-chat": partial(repeats, dialect=_CHAT, stream=False),
    "repeats-responses": partial(repeats, dialect=_RESPONSES, stream=False),
    "pressure-anthropic-stream": partial(pressure, dialect=_ANTHROPIC, stream=True),
    "pressure-chat": partial(pressure, dialect=_CHAT, stream=False),
    "pressure-responses-stream": partial(pressure, dialect=_RESPONSES, stream=True),
    "recalls-anthropic-stream": partial(recalls, dialect=_ANTHROPIC, stream=True),
    "recalls-chat-stream": partial(recalls, dialect=_CHAT, stream=True),
    "recalls-responses": partial(recalls, dialect=_RESPONSES, stream=False),
    "forks-anthropic": partial(forks, dialect=_ANTHROPIC, stream=False),
    "forks-chat-stream": partial(forks, dialect=_CHAT, stream=True),
    "restarts-responses-stream": partial(restarts, dialect=_RESPONSES, stream=True),
    "restarts-anthropic-stream": partial(restarts, dialect=_ANTHROPIC, stream=True),
    "toolbox-chat-stream": partial(toolbox, dialect=_CHAT, stream=True),
    "deferred-anthropic-stream": partial(
        toolbox, dialect=_ANTHROPIC, stream=True, deferred=Deferring.ON
    ),
    "deferred-responses": partial(toolbox, dialect=_RESPONSES, stream=False, deferred=Deferring.ON),
    "servers-responses-stream": partial(servers, dialect=_RESPONSES, stream=True),
    "memories-chat": partial(memories, dialect=_CHAT, stream=False),
    "memories-anthropic-stream": partial(memories, dialect=_ANTHROPIC, stream=True),
    "continued-responses-stream": partial(continued, dialect=_RESPONSES, stream=True),
    "images-anthropic": partial(images, dialect=_ANTHROPIC, stream=False),
    "switches-anthropic-stream": partial(switches, dialect=_ANTHROPIC, stream=True),
    "switches-chat": partial(switches, dialect=_CHAT, stream=False),
    "summaries-responses-stream": partial(
        pressure, dialect=_RESPONSES, stream=True, config="[summary]\nevery = 3\n"
    ),
    "lean-chat": partial(pressure, dialect=_CHAT, stream=False, headers={"x-hotset-agent": "lean"}),
    "academic-anthropic": partial(
        pressure, dialect=_ANTHROPIC, stream=False, headers={"x-hotset-agent": "academic"}
    ),
}
