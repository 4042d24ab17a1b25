"""Prompts as people write them get the tools that they need, through the real proxy and the real
toolbox."""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hotset import tokens
from hotset.config import SERVERS, TOOLS, load
from hotset.nouns.embedding import OFF, Embedding
from hotset.sources.tools.found.servers import add_servers
from hotset.sources.tools.toolbox import Toolbox
from hotset.testing import Call, RamStore, Say
from hotset.window.ghosts import GHOSTS_ABOVE
from tests.proxy.talking import OURS, Talk, asked, assert_each_extends_the_one_before
from tests.proxy.wire import DIALECTS
from tests.sources.tools.plain_queries import LIBRARY

SERVER = Path(__file__).parents[2] / "bench" / "tools_server.py"
SYSTEM = "You are the agent of a small company. Be brief, be kind, and never guess. " * 400
"""Shared by all sessions, and much longer than a prompt."""
PROMPTS = (
    (
        "The login page crashes on Safari. Please open an issue on GitHub, lest we forget it.",
        "github__create_issue",
    ),
    (
        "Show me the last commits on this branch, I want to know what changed since Friday.",
        "git__git_log",
    ),
    ("Send Anna an email that the release is delayed until Tuesday.", "mail__send_email"),
    ("Which events are in my calendar tomorrow afternoon?", "calendar__list_events"),
    ("Tell the deploys channel on Slack that version 2.3 is out.", "slack__slack_post_message"),
    ("Which tables does our database have?", "database__list_tables"),
    (
        "Take a screenshot of the page at http://localhost:3000, I want to see the layout.",
        "browser__browser_take_screenshot",
    ),
    ("Merge pull request 42 once the checks are green.", "github__merge_pull_request"),
    ("Find the emails from our accountant about the invoice.", "mail__search_emails"),
    ("Put a meeting with Bob into my calendar for Monday at ten.", "calendar__create_event"),
)
NOTHING_FITS = (
    "Hello, how are you?",
    "Why is the parser so slow on long inputs? Think about it before you change anything.",
    "Rename the class Foo to Bar everywhere and run the tests.",
)


@pytest.fixture
def toolbox(tmp_path):
    """Eight servers, which are processes of their own."""
    entries = {}
    for server in {tool.source for tool in LIBRARY}:
        own = tmp_path / "servers" / server
        own.mkdir(parents=True)
        schema = {
            "type": "object",
            "properties": {"what": {"type": "string", "description": "What it is about"}},
        }
        listed = [
            {"name": tool.own_name, "description": tool.description, "inputSchema": schema}
            for tool in LIBRARY
            if tool.source == server
        ]
        (own / "tools.json").write_text(json.dumps(listed))
        entries[server] = {"command": sys.executable, "args": ["-I", "-S", str(SERVER), str(own)]}
    add_servers(tmp_path / "data" / TOOLS / SERVERS, entries)
    config = load(
        project=str(tmp_path / "data"), data=str(tmp_path / "data"), environ={"HOME": str(tmp_path)}
    )
    store = RamStore()
    opened = Toolbox(replace(config, embedding=Embedding(OFF)), lambda: store)
    with contextlib.closing(opened):
        opened.warm()
        yield opened


def _names(request) -> list[str]:
    return [tool.name for tool in asked(request).tools if "__" in tool.name]


def _told(request) -> str:
    """What stands behind the last prompt about tools."""
    parts = [part.content.decode() for each in asked(request).messages for part in each.parts]
    return next((part for part in reversed(parts) if part.startswith(GHOSTS_ABOVE)), "")


def _lines(told: str) -> list[str]:
    return [line for line in told.splitlines() if line.startswith("- ")]


@pytest.mark.row("L3")
@pytest.mark.rest_slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_natural_prompts_that_open_a_session_get_their_tools_in_its_list(pair, toolbox, dialect):
    world = pair([Say("Done.")] * 20, strict=True, toolbox=toolbox)

    for prompt in (*(each for each, _ in PROMPTS), *NOTHING_FITS):
        Talk(world.address, dialect).say(prompt)

    requests = world.upstream.requests
    right = [name in _names(sent) for (_, name), sent in zip(PROMPTS, requests, strict=False)]
    assert sum(right) >= 8
    assert all(len(_names(sent)) <= 5 for sent in requests)
    assert [_names(sent) for sent in requests[len(PROMPTS) :]] == [[]] * len(NOTHING_FITS)


@pytest.mark.row("L3")
@pytest.mark.rest_slow
def test_a_long_system_prompt_that_sessions_share_does_not_keep_their_tools_away(pair, toolbox):
    world = pair([Say("Done.")] * 20, strict=True, toolbox=toolbox)

    for prompt, _ in PROMPTS:
        Talk(world.address, "anthropic", extra={"system": SYSTEM}).say(prompt)

    sent = world.upstream.requests
    given = [(_names(each), _told(each)) for each in sent]
    right = [
        name in names or name in told
        for (_, name), (names, told) in zip(PROMPTS, given, strict=True)
    ]
    assert sum(right) >= 8
    assert all(names == given[0][0] for names, _ in given)  # the provider has cached that list


@pytest.mark.row("L3")
@pytest.mark.rest_slow
def test_natural_prompts_of_one_session_get_theirs_as_text_where_the_list_is_frozen(pair, toolbox):
    world = pair([Say("Done.")] * 20, strict=True, toolbox=toolbox)
    talk = Talk(world.address, "anthropic", extra={"system": SYSTEM})

    talk.say("Hello.")
    for prompt, _ in PROMPTS:
        talk.say(prompt)

    first, *later = world.upstream.requests
    told = [_told(sent) for sent in later]
    assert sum(name in text for (_, name), text in zip(PROMPTS, told, strict=True)) >= 8
    assert all(_names(sent) == [] for sent in world.upstream.requests)
    assert _told(first) == ""
    assert all(tokens.count(text) <= 600 for text in told)
    assert all(len(_lines(text)) <= 5 for text in told)
    assert "hotset:" not in talk.wrote
    assert_each_extends_the_one_before(world.upstream.requests)


@pytest.mark.row("L3")
@pytest.mark.rest_slow
def test_the_first_ghost_has_its_arguments_the_others_a_line_and_none_is_named_twice(pair, toolbox):
    world = pair([Say("Done.")] * 5, strict=True, toolbox=toolbox)
    talk = Talk(world.address, "anthropic", extra={"system": SYSTEM})

    talk.say("Hello.")
    talk.say("Open an issue on GitHub about the crash, and list the issues there are.")
    talk.say("Now open an issue on GitHub about the other crash.")

    _, second, third = world.upstream.requests
    first, *others = _lines(_told(second))
    assert "(what?: string)" in first
    assert others
    assert not any("(" in line for line in others)
    assert _told(second).count("What it is about") == 1
    texts = "\n".join(
        part.content.decode() for each in asked(third).messages for part in each.parts
    )
    assert texts.count("- github__create_issue") == 1


@pytest.mark.row("L3")
@pytest.mark.rest_slow
def test_a_session_without_ghosts_has_the_two_tools_that_find_and_use_the_others(pair, toolbox):
    world = pair([Say("Hi.")], strict=True, toolbox=toolbox)

    Talk(world.address, "anthropic", extra={"system": SYSTEM}).say("Hello.")

    [sent] = world.upstream.requests
    listed = [tool.name for tool in asked(sent).tools]
    assert listed == ["read_file", *OURS, "find_tools", "use_tool"]


@pytest.mark.row("L3")
@pytest.mark.rest_slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_client_without_tools_gets_them_from_its_second_prompt_on(pair, toolbox, dialect):
    use = Call("use_tool", {"name": "mail__send_email", "arguments": {"what": "a delay"}})
    world = pair(
        [Say("Hello."), Say(calls=(use,)), Say("Sent."), Say("Bye.")], strict=True, toolbox=toolbox
    )
    talk = Talk(world.address, dialect, has_tools=False)

    talk.say("Good morning! Send Anna an email.")
    talk.say(PROMPTS[2][0])
    talk.say("Thanks, bye.")

    first, asks, answered, last = world.upstream.requests
    assert asked(first).tools == ()
    assert PROMPTS[2][1] in _names(asks) or PROMPTS[2][1] in _told(asks)
    assert {tool.name for tool in asked(asks).tools} >= {"find_tools", "use_tool"}
    assert asked(answered).tools == asked(asks).tools == asked(last).tools
    assert talk.text == "Bye."


@pytest.mark.row("L3")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_work_beside_a_session_with_tools_and_a_single_prompt_without_any_stay_as_they_are(
    pair, toolbox, dialect
):
    world = pair([Say("Done.")] * 4, strict=True, toolbox=toolbox)
    talk = Talk(world.address, dialect)
    talk.say("Hello.")
    talk.has_tools = False
    talk.say("Sum up this conversation: send Anna an email.")
    Talk(world.address, dialect, has_tools=False).say(PROMPTS[2][0])

    _, summed, alone = world.upstream.requests
    assert asked(summed).tools == asked(alone).tools == ()
