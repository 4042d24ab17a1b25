"""`client = "auto"`: the client's own tools that its latest sessions did not call are not in the
list, and work all the same."""

from __future__ import annotations

import json

import pytest

from hotset.nouns.tooling import ClientListing, Tooling
from hotset.testing import Call, Say
from tests.proxy.talking import (
    SHORTENING,
    Talk,
    asked,
    assert_each_extends_the_one_before,
    looking,
    tools,
)

DIALECTS = ["anthropic", "openai-chat", "openai-responses"]
NAMES = ("read_file", "notebook_edit", "web_fetch")
OURS = ("find_tools", "use_tool")
AUTO = Tooling(client=ClientListing.AUTO)
KNOBS = SHORTENING.turned({"toolbox.unused": 2})
ARGUMENTS = {"path": "a.ipynb", "text": 'é "quoted"'}


@pytest.fixture(params=DIALECTS)
def dialect(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["document", "stream"])
def stream(request):
    return request.param


def _own(dialect, **extra):
    listed = tools(dialect, *NAMES)
    for each in listed:
        inner = each.get("function", each)
        inner["description"] = f"{inner['name'].replace('_', ' ')}: works."
    return {"tools": listed, **extra}


def _talk(world, dialect, stream, **extra):
    return Talk(world.address, dialect, stream, extra=_own(dialect, **extra))


def _use(name, arguments):
    return Call("use_tool", {"name": name, "arguments": arguments})


def _two_sessions():
    return [looking("a.py"), Say("Read."), looking("b.py"), Say("Read.")]


def _learn(world, dialect, stream):
    for number in range(2):
        talk = _talk(world, dialect, stream)
        talk.say(f"Read file number {number}.")
        talk.results("nothing in it")
        world.settle()


def _listed(request):
    return [tool.name for tool in asked(request).tools]


def test_an_unused_tool_is_found_called_and_back_in_the_list_of_the_next_session(
    pair, dialect, stream
):
    script = [
        *_two_sessions(),
        Say("Looking.", calls=(Call("find_tools", {"query": "edit a notebook"}),)),
        Say("Editing.", calls=(_use("notebook_edit", ARGUMENTS),)),
        Say("Done."),
        Say("Hello."),
    ]
    world = pair(script, strict=True, tooling=AUTO, knobs=KNOBS)
    _learn(world, dialect, stream)

    talk = _talk(world, dialect, stream)
    talk.say("Edit the notebook.")

    [call] = talk.calls
    assert (call.tool, json.loads(call.content)) == ("notebook_edit", ARGUMENTS)
    assert "use_tool" not in talk.wrote
    talk.results("edited")
    assert talk.text == "Done."
    first, found, after = world.upstream.requests[4:7]
    assert _listed(first)[0] == "read_file"
    assert not {"notebook_edit", "web_fetch"} & set(_listed(first))
    assert set(OURS) <= set(_listed(first))
    assert b"notebook edit: works." in found.body
    assert_each_extends_the_one_before([first, found])
    assert _listed(after) == _listed(first)
    assert b"edited" in after.body

    world.settle()
    _talk(world, dialect, stream).say("Something else.")
    last = _listed(world.upstream.requests[-1])
    assert last[:2] == ["read_file", "notebook_edit"]
    assert "web_fetch" not in last


def test_two_calls_at_once_reach_the_client_side_by_side(pair, dialect, stream):
    both = (Call("read_file", {"path": "a.py"}), _use("web_fetch", {"url": "x"}))
    world = pair(
        [*_two_sessions(), Say("Both.", calls=both), Say("Done.")], tooling=AUTO, knobs=KNOBS
    )
    _learn(world, dialect, stream)

    talk = _talk(world, dialect, stream)
    talk.say("Read and fetch.")

    assert {call.tool: json.loads(call.content) for call in talk.calls} == {
        "read_file": {"path": "a.py"},
        "web_fetch": {"url": "x"},
    }
    talk.results("one", "two")
    assert talk.text == "Done."


def test_a_tool_that_is_called_by_its_own_name_reaches_the_client(pair, dialect, stream):
    direct = Say("So.", calls=(Call("web_fetch", {"url": "x"}),))
    world = pair([*_two_sessions(), direct, Say("Done.")], tooling=AUTO, knobs=KNOBS)
    _learn(world, dialect, stream)

    talk = _talk(world, dialect, stream)
    talk.say("Fetch it.")

    assert [call.tool for call in talk.calls] == ["web_fetch"]


def test_arguments_that_are_no_object_are_answered_and_not_handed_over(pair, dialect, stream):
    script = [
        *_two_sessions(),
        Say("So.", calls=(Call("use_tool", {"name": "web_fetch", "arguments": [1]}),)),
        Say("Never mind."),
    ]
    world = pair(script, tooling=AUTO, knobs=KNOBS)
    _learn(world, dialect, stream)

    talk = _talk(world, dialect, stream)
    talk.say("Fetch it.")

    assert talk.calls == []
    assert b"arguments must be a JSON object" in world.upstream.requests[-1].body


def test_the_list_stays_for_the_whole_session_also_after_a_restart(pair, dialect, stream):
    script = [*_two_sessions(), looking("c.py"), Say("Read."), Say("Again.")]
    world = pair(script, strict=True, tooling=AUTO, knobs=KNOBS)
    _learn(world, dialect, stream)
    talk = _talk(world, dialect, stream)
    talk.say("Read another one.")
    talk.results("text")
    world.settle()
    again = pair([Say("Again.")], strict=True, tooling=AUTO, knobs=KNOBS)
    talk.address = again.address
    talk.say("Once more.")

    lists = [_listed(each) for each in (*world.upstream.requests[4:], *again.upstream.requests)]
    assert len(lists) == 3
    assert lists[0] == lists[1] == lists[2]
    assert "web_fetch" not in lists[0]


@pytest.mark.parametrize("why", ["off", "forced", "structured", "few"])
def test_untouched_by_default_if_the_client_decides_and_before_enough_sessions(
    pair, dialect, stream, why
):
    forced = {
        "anthropic": {"type": "any"},
        "openai-chat": "required",
        "openai-responses": "required",
    }
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    format = {"type": "json_schema", "name": "x", "schema": schema}
    structured = {
        "anthropic": {"output_config": {"format": {"type": "json_schema", "schema": schema}}},
        "openai-chat": {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "x", "schema": schema},
            }
        },
        "openai-responses": {"text": {"format": format}},
    }
    world = pair(
        [*_two_sessions(), Say("Hello.")],
        tooling=Tooling() if why == "off" else AUTO,
        knobs=KNOBS if why != "few" else SHORTENING,
    )
    _learn(world, dialect, stream)
    extra = {"forced": {"tool_choice": forced[dialect]}, "structured": structured[dialect]}
    talk = _talk(world, dialect, stream, **extra.get(why, {}))
    talk.say("Hello.")

    assert tuple(_listed(world.upstream.requests[-1])[:3]) == NAMES


def test_a_knob_says_of_a_tool_whether_it_stays(pair):
    world = pair(
        [*_two_sessions(), Say("Hello.")],
        strict=True,
        tooling=AUTO,
        knobs=KNOBS.turned({"toolbox.client": {"web_fetch": True, "read_file": False}}),
    )
    _learn(world, "anthropic", stream=False)

    _talk(world, "anthropic", stream=False).say("Hello.")

    listed = set(_listed(world.upstream.requests[-1]))
    assert listed & set(NAMES) == {"web_fetch"}
