"""Tools that only read, called twice in a conversation: the model sees which turn the answer comes
from."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from hotset.config import SERVERS, TOOLS
from hotset.nouns.page import Kind
from hotset.nouns.tooling import Tooling
from hotset.sources.tools.found.servers import add_servers
from hotset.testing import Call, Say
from tests.proxy.talking import Talk, asked
from tests.proxy.wire import DIALECTS
from tests.runtime import notes_server

HINTS = {"readOnlyHint": True, "idempotentHint": True}
READ = {
    "name": "read_file",
    "description": "Read a file.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
    "annotations": HINTS,
}
CALL = Call("use_tool", {"name": "files__read_file", "arguments": {"path": "a.txt"}})


@pytest.mark.row("C2")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.rest_slow
def test_an_answer_from_the_store_names_the_turn_it_comes_from(pair, dialect, tmp_path):
    project, data = tmp_path / "project", tmp_path / "data"
    project.mkdir()
    (project / "a.txt").write_text("one")
    (tmp_path / "tools.json").write_text(json.dumps([READ]))
    server = Path(notes_server.__file__)
    entry = {"command": sys.executable, "args": ["-I", "-S", str(server), str(tmp_path)]}
    add_servers(data / TOOLS / SERVERS, {"files": entry})
    says = [Say(calls=(CALL,)), Say("It says one."), Say(calls=(CALL,)), Say("Still.")]
    tooling = Tooling(answer_from_store=True, list_seconds=600.0, call_seconds=600.0)
    world = pair(says, strict=True, project=project, tooling=tooling)
    talk = Talk(world.address, dialect)

    talk.say("What does a.txt say?")
    talk.say("And now?")

    assert (tmp_path / "calls").read_text().split() == ["read_file"]
    parts = [
        part
        for message in asked(world.upstream.requests[-1]).messages
        for part in message.parts
        if part.kind.family is Kind.TOOL_RESULT
    ]
    text = parts[-1].content.decode()
    assert "[hotset: same call as in turn 1, unchanged; not run again." in text
    assert text.endswith("one")
    assert "hotset" not in talk.wrote
