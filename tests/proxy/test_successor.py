"""After a client compacted or cleared its conversation, the next request has one reference to all
that was before."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from hotset.errors import PageDamaged
from hotset.nouns.deposit import RequestReceived
from hotset.nouns.knobs import Knobs, SuccessorKnobs
from hotset.runtime.audit import EventFilter, find_events, sentence
from hotset.store.port import SessionOrigin
from hotset.testing import Call, Say
from hotset.testing.ram_store import RamStore
from hotset.testing.upstream.script import Received
from tests.proxy.talking import Talk, assert_each_extends_the_one_before
from tests.proxy.wire import DIALECTS

SUMMARIES = {
    "codex": "Another language model started to solve this problem and produced a summary of its "
    "thinking process. Here is the summary produced by the other language model:\nTokens expire.",
    "claude-code": "This session is being continued from a previous conversation that ran out of "
    "context. The summary below covers the earlier portion.\n\nTokens expire.",
    "pi": "The conversation history before this point was compacted into the following summary:\n\n"
    "<summary>\nTokens expire.\n</summary>",
    "gemini-cli": "<state_snapshot>\nTokens expire.\n</state_snapshot>",
    "langchain": "Here is a summary of the conversation to date:\n\nTokens expire.",
}
CLEARED = (
    "<command-name>/clear</command-name>\n            <command-message>clear</command-message>"
)
_REFERENCE = re.compile(r"\[CTX-REF:[^\]]*?(r[0-9a-f]{11})[^\]]*\]")
_TURNS = re.compile(r'get_turn_range\(first=(\d+), last=(\d+)(?:, session=\\*"(\w+)\\*")?\)')
_SECRET_LINE = "def expires_after(token): return token.issued + 7919"
_PLAN = [
    {"content": "Fix the expiry", "status": "completed"},
    {"content": "Write the migration", "status": "pending"},
]
_EDIT = {
    "path": "src/auth/token.py",
    "old_string": "return 0",
    "new_string": "return token.issued + 7919",
}
_STEPS = (
    ("done reading", Say("I look.", calls=(Call("read_file", {"path": "src/auth/token.py"}),))),
    ("done planning", Say("I plan.", calls=(Call("TodoWrite", {"todos": _PLAN}),))),
    ("done editing", Say("I edit.", calls=(Call("Edit", _EDIT),))),
)
_END = Say("The expiry is fixed; the cause was that tokens had no issue time.")


class _Model:
    """Reads, plans, edits and ends; asked about the past, it opens what it was given."""

    def __init__(self) -> None:
        self.asks: dict[str, Any] | None = None
        self.tool = "retrieve_context"

    def __call__(self, request: Received) -> Say:
        body = request.body.decode()
        if "a title, please" in body:
            return Say("Expiry of tokens")
        if self.asks is not None:
            asks, self.asks = self.asks, None
            return Say("", calls=(Call(self.tool, asks),))
        if "fix the expiry" not in body:
            return Say("All right.")
        return next((say for done, say in _STEPS if done not in body), _END)


def _work(talk: Talk) -> None:
    talk.say("fix the expiry of tokens")
    talk.results(f"{_SECRET_LINE}\ndone reading")
    talk.results("done planning")
    talk.results("done editing")
    assert talk.text.startswith("The expiry is fixed")


def _compact(talk: Talk, summary: str, then: str = "Now the migration.") -> None:
    """As most clients do: the summary takes the place of everything."""
    talk.history[:] = [{"role": "user", "content": summary}]
    talk.say(then)


def _body(world: Any) -> str:
    return str(world.upstream.requests[-1].decoded.decode())


def _references(body: str) -> list[str]:
    return [found[1] for found in _REFERENCE.finditer(body)]


@pytest.mark.row("V4", "V6")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("client", SUMMARIES)
@pytest.mark.rest_slow
def test_a_compacted_conversation_has_one_reference_to_all_that_was_before(pair, dialect, client):
    model = _Model()
    world = pair(model)
    talk = Talk(
        world.address, dialect, headers={"x-session-id": "one", "user-agent": f"{client}/1"}
    )
    _work(talk)
    assert not _references(_body(world))
    before = len(world.upstream.requests)

    _compact(talk, SUMMARIES[client])

    body = _body(world)
    [id] = _references(body)
    assert json.dumps(SUMMARIES[client])[1:-1] in body
    assert "Changed: src/auth/token.py" in body
    assert "Open: Write the migration" in body
    assert _SECRET_LINE not in body

    model.asks = {"id": id}
    talk.say("What did the function look like?")
    assert _SECRET_LINE in _body(world)
    model.tool, model.asks = "get_turn_range", {"first": 1, "last": 4}
    talk.say("And the turns?")
    assert _body(world).count(_SECRET_LINE) >= 2
    talk.say("Go on.")
    assert len(set(_references(_body(world)))) == 1
    assert_each_extends_the_one_before(world.upstream.requests[before:])
    assert "CTX-REF" not in talk.wrote

    with world.store() as store:
        [session] = store.sessions()
        [event] = find_events(store, EventFilter(types=frozenset({"compaction"})))
        assert (event.name, event.session, event.turn) == ("Compacted", session.id, 5)
        assert event.detail["ids"] == id
        assert store.reference(id).turns == (1, 4)
        assert id in sentence(event)


@pytest.mark.row("V4")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.rest_slow
def test_without_a_session_header_the_reference_opens_the_earlier_session(pair, dialect):
    """pi keeps its latest messages behind the summary; others keep none."""
    model = _Model()
    world = pair(model)
    talk = Talk(world.address, dialect, headers={"user-agent": "pi/1"})
    _work(talk)
    kept = talk.history[-1]
    summary = {"role": "user", "content": SUMMARIES["pi"]}
    talk.history[:] = [summary, kept]
    talk.say("Now the migration.")

    body = _body(world)
    [id] = _references(body)
    first, last, session = _TURNS.search(body).groups()
    model.tool, model.asks = (
        "get_turn_range",
        {"first": int(first), "last": int(last), "session": session},
    )
    talk.say("What were the turns?")
    assert _SECRET_LINE in _body(world)
    model.tool, model.asks = "retrieve_context", {"question": "when does expires_after end?"}
    talk.say("And the function?")
    assert _body(world).count(_SECRET_LINE) >= 2
    assert _references(_body(world))[0] == id

    # A second compaction: one reference to both.
    talk.history[:] = [{"role": "user", "content": SUMMARIES["pi"] + "\nAnd more."}]
    talk.say("Once more.")
    [second] = _references(_body(world))
    with world.store() as store:
        assert second != id
        assert {*store.reference(id).pages} <= {*store.reference(second).pages}


@pytest.mark.row("V4")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.rest_slow
def test_what_codex_compacts_in_the_middle_of_a_turn_stays_within_reach(pair, dialect):
    """It sends the same prompts again, and the summary behind them."""
    world = pair(_Model())
    talk = Talk(world.address, dialect, headers={"session_id": "019f", "user-agent": "codex/1"})
    _work(talk)
    talk.history[1:] = [{"role": "user", "content": SUMMARIES["codex"]}]
    talk.send()
    [id] = _references(_body(world))
    talk.results("done reading")
    assert _references(_body(world)) == [id]
    with world.store() as store:
        assert len(list(store.sessions())) == 1
        prompt = {page.kind for page in map(store.page, store.reference(id).pages)}
    assert "prompt" not in prompt  # it is sent still


@pytest.mark.row("V4")
def test_a_compaction_that_a_provider_made_counts(pair):
    world = pair(_Model())
    talk = Talk(world.address, "openai-responses", headers={"session_id": "019f"})
    _work(talk)
    talk.history[:] = [{"type": "compaction", "encrypted_content": "gAAAA"}]
    talk.say("Now the migration.")
    assert len(_references(_body(world))) == 1


@pytest.mark.row("V4")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.rest_slow
def test_a_user_who_clears_gets_a_reference_and_no_content(pair, dialect):
    world = pair(_Model())
    headers = {"user-agent": "claude-cli/2.1"}
    talk = Talk(world.address, dialect, headers={**headers, "x-claude-code-session-id": "one"})
    _work(talk)
    anew = Talk(world.address, dialect, headers={**headers, "x-claude-code-session-id": "two"})
    anew.history.append({"role": "user", "content": CLEARED})
    anew.say("Write a poem.")

    body = _body(world)
    assert len(_references(body)) == 1
    assert "Changed: src/auth/token.py" in body
    assert "the user began anew" in body
    assert "cause" not in body.partition("Changed:")[2].replace("because", "")
    assert _SECRET_LINE not in body
    anew.say("Another one.")
    assert_each_extends_the_one_before(world.upstream.requests[-2:])
    with world.store() as store:
        [event] = find_events(store, EventFilter(types=frozenset({"compaction"})))
        assert event.name == "Cleared"
        assert sentence(event).startswith("cleared by claude-cli")


def _cleared(world: Any, dialect: str = "anthropic", agent: str = "claude-cli/2.1") -> str:
    anew = Talk(
        world.address,
        dialect,
        headers={"user-agent": agent, "x-claude-code-session-id": "two"},
        history=[{"role": "user", "content": CLEARED}],
    )
    anew.say("Write a poem.")
    return _body(world)


_CLAUDE = {"user-agent": "claude-cli/2.1", "x-claude-code-session-id": "one"}


def test_it_can_be_switched_off(pair):
    knobs = Knobs(successor=SuccessorKnobs(compaction=False, clear="off"))
    world = pair(_Model(), knobs=knobs)
    talk = Talk(world.address, "anthropic", headers=_CLAUDE)
    _work(talk)
    assert not _references(_cleared(world))
    _compact(talk, SUMMARIES["claude-code"])
    assert not _references(_body(world))


@pytest.mark.parametrize("settings", [{"inject": False}, {"off": True}])
def test_without_our_tools_a_compacted_request_is_the_clients_own(pair, settings):
    world = pair(_Model(), **settings)
    talk = Talk(world.address, "anthropic", headers=_CLAUDE)
    _work(talk)
    _compact(talk, SUMMARIES["claude-code"])
    assert world.upstream.requests[-1].decoded == talk.sent[-1]


def test_another_client_a_side_request_and_a_new_conversation_get_none(pair):
    world = pair(_Model())
    talk = Talk(world.address, "anthropic", headers=_CLAUDE)
    _work(talk)
    assert not _references(_cleared(world, agent="other/1"))

    side = Talk(world.address, "anthropic", headers=_CLAUDE, extra={"tools": []})
    side.history.append({"role": "user", "content": SUMMARIES["claude-code"]})
    side.say("a title, please")
    assert not _references(_body(world))

    new = Talk(world.address, "anthropic", headers={**_CLAUDE, "x-claude-code-session-id": "3"})
    new.say("Write a poem.")
    assert not _references(_body(world))
    new.say(SUMMARIES["claude-code"])  # pasted: nothing is missing
    assert not _references(_body(world))


def test_a_conversation_that_went_on_elsewhere_is_no_successor_of_ours(pair):
    """It was compacted without us, and goes on through us now."""
    world = pair(_Model())
    _work(Talk(world.address, "anthropic", headers={"user-agent": "pi/1"}))
    summary = {"role": "user", "content": SUMMARIES["pi"]}
    replies = [{"role": "assistant", "content": f"The answer is {n}."} for n in range(2)]
    asked = {"role": "user", "content": "What is it?"}
    other = Talk(world.address, "anthropic", headers={"user-agent": "pi/1"})
    other.history += [summary, replies[0], asked, replies[1]]
    other.say("Write a poem.")
    assert not _references(_body(world))


class _Faulty(RamStore):
    """It cannot say where a request belongs."""

    def origin(self, asked: RequestReceived) -> SessionOrigin:
        raise PageDamaged(f"damaged: {asked.key}")


def test_where_the_past_cannot_be_read_the_window_works_without_the_reference(pair):
    store = _Faulty()
    world = pair(_Model(), open_store=lambda: store)
    talk = Talk(world.address, "anthropic", headers=_CLAUDE)
    _work(talk)
    _compact(talk, SUMMARIES["claude-code"])
    assert not _references(_body(world))
    assert "retrieve_context" in _body(world)
    world.settle()
    assert not list(store.events(name="Bypassed"))


def test_where_two_conversations_ran_side_by_side_none_is_taken_for_the_cleared_one(pair):
    world = pair(_Model())
    one = Talk(world.address, "anthropic", headers=_CLAUDE)
    other = Talk(world.address, "anthropic", headers={**_CLAUDE, "x-claude-code-session-id": "b"})
    one.say("fix the expiry of tokens")
    _work(other)
    one.results("done reading")
    assert not _references(_cleared(world))


@pytest.mark.parametrize(("seconds", "many"), [(60.0, 1), (600.0, 0)])
def test_a_conversation_that_begins_soon_after_gets_one_where_that_is_chosen(pair, seconds, many):
    now = [1_700_000_000.0]
    knobs = Knobs(successor=SuccessorKnobs(clear="soon"))
    world = pair(_Model(), knobs=knobs, clock=lambda: now[0])
    _work(Talk(world.address, "anthropic", headers=_CLAUDE))
    now[0] += seconds
    new = Talk(world.address, "anthropic", headers={**_CLAUDE, "x-claude-code-session-id": "3"})
    new.say("Write a poem.")
    assert len(_references(_body(world))) == many
    side = Talk(world.address, "anthropic", headers=_CLAUDE, extra={"tools": []})
    side.say("a title, please")
    assert not _references(_body(world))
