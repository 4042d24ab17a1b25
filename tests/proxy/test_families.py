"""Subagents through the proxy: in sessions of their own, linked to the one that started them, also
after a restart."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hotset.nouns.page import SessionId
from hotset.store.kinship import LINKED, Parent, parents
from hotset.store.sqlite import SqliteStore
from hotset.testing import Call, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from tests.proxy.conftest import Pair
from tests.proxy.wire import DIALECTS, post, question

TASK = "Look through the folder for every use of the tokenizer and report the lines"
AGENT = {"user-agent": "someagent/1.0"}


def _asks(dialect: str, text: str, *, stream: bool) -> bytes:
    """A request with a tool that starts subagents, in the dialect's own form."""
    body: dict[str, Any] = json.loads(question(dialect, text, stream=stream))
    schema = {"type": "object", "properties": {"prompt": {"type": "string"}}}
    tool = {
        "anthropic": {"name": "Task", "input_schema": schema},
        "openai-chat": {"type": "function", "function": {"name": "Task", "parameters": schema}},
        "openai-responses": {"type": "function", "name": "Task", "parameters": schema},
    }[dialect]
    return json.dumps({**body, "tools": [tool]}).encode()


def _families(folder: Path) -> tuple[list[SessionId], dict[SessionId, Parent]]:
    with closing(SqliteStore.open(folder)) as store:
        return [session.id for session in store.sessions()], dict(
            parents(store.events(name=LINKED))
        )


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [False, True], ids=["document", "stream"])
@pytest.mark.rest_slow
def test_subagents_of_one_reply_are_linked_by_what_they_were_told_also_after_a_restart(
    tmp_path, dialect, stream
):
    calls = (Call("Task", {"prompt": TASK}), Call("Task", {"prompt": f"{TASK} again"}))
    with ScriptedUpstream(
        [Say("I let two look.", calls=calls), Say("Found."), Say("Found."), Say("Hello.")]
    ) as upstream:
        for texts in (("Mend the parser", TASK), (f"{TASK} again", "Something else")):
            with LocalProxy(
                tmp_path, openai_url=upstream.openai_url, anthropic_url=upstream.anthropic_url
            ) as proxy:
                for text in texts:
                    assert (
                        post(
                            proxy.address, dialect, _asks(dialect, text, stream=stream), AGENT
                        ).status
                        == 200
                    )

    (main, one, two, other), above = _families(tmp_path)

    assert {child: parent.session for child, parent in above.items()} == {one: main, two: main}
    assert {parent.evidence for parent in above.values()} == {"call"}
    assert other not in above


@pytest.mark.parametrize(
    ("mains", "subs"),
    [
        ({"x-session-id": "ses_1"}, {"x-session-id": "ses_2", "x-parent-session-id": "ses_1"}),
        (
            {"session-id": "1", "thread-id": "1"},
            {"session-id": "1", "thread-id": "2", "x-codex-parent-thread-id": "1"},
        ),
        (
            {"x-claude-code-session-id": "1"},
            {"x-claude-code-session-id": "1", "x-claude-code-agent-id": "a"},
        ),
    ],
    ids=["opencode", "codex", "claude-code"],
)
def test_a_subagent_that_its_client_names_is_linked_by_its_headers(pair, mains, subs):
    world: Pair = pair()
    for headers in (mains, subs, subs):
        post(world.address, "openai-responses", question("openai-responses", "Hello"), headers)
    world.settle()

    (main, sub), above = _families(world.folder)

    assert [turn.number for turn in world.turns()] == [1, 1, 2]
    assert (above[sub].session, above[sub].kinship, above[sub].evidence) == (
        main,
        "subagent",
        "header",
    )


def test_no_header_that_names_a_parent_of_ours_leaves_the_machine(pair):
    world: Pair = pair()
    post(
        world.address,
        "openai-chat",
        question("openai-chat", "Hello"),
        {"x-hotset-parent": "secret", "x-parent-session-id": "1"},
    )

    (received,) = world.upstream.wait_for_requests(1)

    assert received.header("x-hotset-parent") == ""
    assert received.header("x-parent-session-id") == "1"
