"""What a session was offered once it is offered for ever; and what may be offered at all."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Future
from dataclasses import replace

import pytest
from msgspec import structs
from tests.proxy.shelf import Shelf

from hotset.config import load
from hotset.dialects import DIALECTS
from hotset.nouns.deposit import NoteWritten, PlanMade, RequestReceived
from hotset.nouns.link import link
from hotset.nouns.message import DialectName
from hotset.nouns.turn import Event, TurnId
from hotset.runtime.planner import Planner
from hotset.sources.port import TurnEnd
from hotset.sources.tools import ToolSource
from hotset.testing import RamStore
from hotset.testing.proxy import PATIENCE
from hotset.window.retrieval_tools import OUR_TOOLS
from hotset.window.toolbox_tools import FIND, USE

DIALECT = DIALECTS[DialectName.ANTHROPIC]
THEIRS = [{"name": "read_file", "input_schema": {"type": "object"}}]
MANY = [
    {"name": f"tool_{n}", "description": "of the client " * 20, "input_schema": {"type": "object"}}
    for n in range(30)
]
"""More than a provider needs to cache them."""
HOUR = 3600.0


def create_issue(title: str) -> str:
    """Create an issue on GitHub."""
    return title


def send_mail(to: str) -> str:
    """Send a mail to somebody."""
    return to


def asked(*said, tools=THEIRS):
    messages = [
        {"role": "assistant" if at % 2 else "user", "content": each}
        if isinstance(each, str)
        else each
        for at, each in enumerate(said)
    ]
    fields = {"model": "claude-sonnet-5", "max_tokens": 999, "tools": tools, "messages": messages}
    return DIALECT.parse(json.dumps(fields).encode())


class Line:
    """A proxy's part: plans, and keeps what is to be kept."""

    def __init__(self, folder, store: RamStore, tools: Shelf, **config) -> None:
        settings = load(project=str(folder), data=str(folder), environ={})
        chosen = replace(settings, **{"patience": PATIENCE, **config})
        self.source = ToolSource(tools, chosen.tooling.ghosts, PATIENCE)
        self.planner = Planner(chosen, sources=[self.source])
        self.store = store

    def ask(self, request, now: float, reply: str = "", *, kept: bool = True):
        prepared = self.planner.prepare(request, DIALECT, self.store, now, "anthropic", off=False)
        if kept:
            id = TurnId(f"t{now}")
            kept = self.planner.went_out(prepared)
            notes = [replace(note, turn=id) for note in kept if isinstance(note, NoteWritten)]
            self.notes = [note for note in notes if note.space.name == "offer"]
            self.troubles = [each.detail["reason"] for each in kept if isinstance(each, Event)]
            self._keep(
                RequestReceived(request, now, "agent", id=id),
                *notes,
                PlanMade(id, prepared.sent, prepared.plan.fresh),
            )
            if reply:
                body = {
                    "role": "assistant",
                    "content": [{"type": "text", "text": reply}],
                    "type": "message",
                    "usage": {},
                }
                said = DIALECT.read(json.dumps(body).encode(), streamed=False)
                links = tuple(link(prepared.head, said.messages))
                end = TurnEnd(prepared.scene, (), None, said, links, heard=True)
                self._keep(*(replace(note, turn=id) for note in self.source.heard(end)))
        return prepared

    def _keep(self, *deposits) -> None:
        keeping: list[Future] = [self.store.keep(each) for each in deposits]
        for each in keeping:
            each.result()


@pytest.fixture
def store():
    return RamStore()


@pytest.fixture
def shelf():
    return Shelf(github=[create_issue], post=[send_mail])


@pytest.fixture
def line(tmp_path, store, shelf):
    return Line(tmp_path, store, shelf)


def names(prepared) -> list[str]:
    return [spec.name for spec in prepared.specs if spec.name not in OUR_TOOLS]


def test_what_was_offered_outlives_the_process_the_servers_and_the_order_of_finds(
    tmp_path, store, shelf, line
):
    first = line.ask(asked("Create an issue."), 1.0, "Done.")
    other = Shelf(post=[send_mail])

    for tools in (other, Shelf(), shelf):
        here = Line(tmp_path, store, tools)
        later = here.ask(asked("Create an issue.", "Done.", "Send a mail to Ann."), 2.0, kept=False)
        assert later.specs == first.specs
        assert here.source.took(later.scene, later.plan.taken) == ()

    assert names(first) == [FIND, USE, "github__create_issue"]


def test_an_offer_whose_reply_never_came_is_found_by_its_prompt(tmp_path, store, line):
    first = line.ask(asked("Create an issue."), 1.0)
    request = asked("Create an issue.", "Half a rep", "Go on.")

    here = Line(tmp_path, store, Shelf())
    later = here.ask(request, 2.0)
    again = Line(tmp_path, store, Shelf()).ask(
        asked("Create an issue.", "Half a rep", "Go on.", "A reply.", "And more."), 3.0, kept=False
    )

    assert names(first) == names(later) == names(again)
    assert len(here.notes) == 1


def test_two_prompts_without_a_reply_between_them_are_one_session(tmp_path, store, line):
    first = line.ask(asked("Create an issue."), 1.0)
    both = asked("Create an issue.", {"role": "user", "content": "Or no: send a mail to Ann."})

    assert names(line.ask(both, 2.0)) == names(first)


def test_sessions_that_begin_alike_are_told_apart_by_their_first_reply(
    tmp_path, store, shelf, line
):
    first = line.ask(asked("Create an issue."), 1.0, "One.")
    shelf.clear()
    shelf.add("gitlab", create_issue)
    second = line.ask(asked("Create an issue."), HOUR, "Two.")

    for each in (line, Line(tmp_path, store, shelf)):
        assert names(
            each.ask(asked("Create an issue.", "One.", "Go on."), HOUR + 1, kept=False)
        ) == names(first)
        assert names(
            each.ask(asked("Create an issue.", "Two.", "Go on."), HOUR + 2, kept=False)
        ) == names(second)
    assert names(first) == [FIND, USE, "github__create_issue"]
    assert names(second) == [FIND, USE, "gitlab__create_issue"]


def test_a_prompt_that_is_sent_again_is_offered_the_same_while_the_cache_is_warm(shelf, line):
    first = line.ask(asked("Create an issue."), 1.0)
    shelf.clear()
    shelf.add("gitlab", create_issue)

    assert names(line.ask(asked("Create an issue."), 2.0)) == names(first)


def test_an_old_session_gets_nothing_though_a_new_one_begins_with_the_same_words(
    tmp_path, store, shelf
):
    old = Line(tmp_path, store, Shelf())
    old.ask(asked("Create an issue."), 1.0, "One.")
    old.ask(asked("Create an issue.", "One.", "Go on."), 2.0, "Two.")
    new = Line(tmp_path, store, shelf)
    new.ask(asked("Create an issue."), HOUR, "Another.")

    later = Line(tmp_path, store, shelf).ask(
        asked("Create an issue.", "One.", "Go on.", "Two.", "And on."), HOUR + 1
    )

    assert names(later) == []
    assert names(new.ask(asked("Create an issue.", "Another.", "Go on."), HOUR + 2)) == [
        FIND,
        USE,
        "github__create_issue",
    ]


def test_a_conversation_that_began_elsewhere_is_offered_tools_with_its_first_request_here(
    tmp_path, store, shelf, line
):
    first = line.ask(asked("Hello.", "Hi.", "Create an issue."), 1.0)
    shelf.clear()

    later = Line(tmp_path, store, shelf).ask(
        asked("Hello.", "Hi.", "Create an issue.", "Done.", "Thanks."), 2.0
    )

    assert names(first) == names(later) == [FIND, USE, "github__create_issue"]


def test_a_plan_that_was_never_sent_leaves_no_trace(tmp_path, store, line):
    line.ask(asked("Create an issue."), 1.0, kept=False)

    assert not line.source._offers._known
    assert names(line.ask(asked("Create an issue.", "From elsewhere.", "Hello."), 2.0)) == [
        FIND,
        USE,
    ]


def test_sessions_of_one_client_share_what_the_provider_has_in_its_cache(line):
    first = line.ask(asked("Create an issue.", tools=MANY), 1.0)
    warm = line.ask(asked("Send a mail to Ann.", tools=MANY), 200.0)
    later = line.ask(asked("Send a mail to Bob.", tools=MANY), 2 * HOUR)
    small = [
        line.ask(asked(prompt), 2 * HOUR) for prompt in ("Create an issue.", "Send a mail to Ann.")
    ]

    assert names(first) == names(warm) == [FIND, USE, "github__create_issue"]
    assert names(later) == [FIND, USE, "post__send_mail"]
    assert [names(each)[-1] for each in small] == ["github__create_issue", "post__send_mail"]


def test_a_shared_offer_too_is_found_by_its_prompt_where_no_reply_came(tmp_path, store, line):
    first = line.ask(asked("Create an issue.", tools=MANY), 1.0)
    line.ask(asked("Send a mail to Ann.", tools=MANY), 200.0)
    request = asked("Send a mail to Ann.", "Half a rep", "Go on.", tools=MANY)

    assert names(Line(tmp_path, store, Shelf()).ask(request, 201.0)) == names(first)


def test_ghosts_take_no_more_than_their_share_of_the_window_and_count_in_it(tmp_path, store):
    def create_issue(title: str) -> str:
        return title

    create_issue.__doc__ = (
        "Create an issue on GitHub. "
        + "It takes a title, which should say in a few words what is wrong. " * 9
    )
    shelf = Shelf(github=[create_issue])
    roomy = Line(tmp_path, store, shelf).ask(asked("Create an issue."), 1.0)
    tight = Line(tmp_path, RamStore(), shelf, budget=1000).ask(asked("Create an issue."), 1.0)
    bare = Line(tmp_path, RamStore(), Shelf()).ask(asked("Create an issue."), 1.0)

    assert names(tight) == [FIND, USE]
    assert bare.estimated < tight.estimated < roomy.estimated


@pytest.mark.parametrize("ghosts", [0, 1, 5])
def test_an_operator_says_how_many_ghosts_there_may_be(tmp_path, store, shelf, ghosts):
    config = load(project=str(tmp_path), data=str(tmp_path), environ={})
    line = Line(tmp_path, store, shelf, tooling=structs.replace(config.tooling, ghosts=ghosts))

    offered = names(line.ask(asked("Create an issue and send a mail."), 1.0))

    assert len(offered) == 2 + min(ghosts, 2)


def test_an_index_that_does_not_answer_costs_a_moment_and_the_ghosts(tmp_path, store):
    hold = threading.Event()

    class Hanging(Shelf):
        def find(self, *_, **__):
            hold.wait(30)
            return ()

    line = Line(tmp_path, store, Hanging(github=[create_issue]), patience=1)
    first, troubles = line.ask(asked("Create an issue."), 1.0), line.troubles
    second = line.ask(asked("Create an issue, please."), 2.0)
    hold.set()

    assert names(first) == names(second) == [FIND, USE]
    assert (troubles, line.troubles) == (["looking for tools took too long"], [])


def test_an_index_that_is_not_open_yet_is_not_waited_for(tmp_path, store, shelf):
    shelf.ready = False

    assert names(Line(tmp_path, store, shelf).ask(asked("Create an issue."), 1.0)) == [FIND, USE]


def test_a_tool_that_the_client_brings_later_makes_way(line):
    line.ask(asked("Create an issue."), 1.0, "Done.")
    theirs = [*THEIRS, {"name": "github__create_issue", "input_schema": {"type": "object"}}]

    later = line.ask(asked("Create an issue.", "Done.", "Again.", tools=theirs), 2.0)

    assert names(later) == [FIND, USE]


def test_where_openai_takes_no_more_tools_those_of_the_toolbox_stay_out(tmp_path, store, shelf):
    dialect = DIALECTS[DialectName.OPENAI_CHAT]
    tools = [
        {"type": "function", "function": {"name": f"t{n}", "parameters": {}}} for n in range(124)
    ]
    fields = {
        "model": "gpt-5.4",
        "tools": tools,
        "messages": [{"role": "user", "content": "Create an issue."}],
    }
    planner = Line(tmp_path, store, shelf).planner

    prepared = planner.prepare(
        dialect.parse(json.dumps(fields).encode()), dialect, store, 1.0, "openai", off=False
    )

    assert {spec.name for spec in prepared.specs} == OUR_TOOLS


def test_without_a_toolbox_an_opening_is_planned_at_once(tmp_path, store, shelf):
    opening = asked("Hello.")
    for tools, quick in ((Shelf(), True), (shelf, False)):
        planner = Line(tmp_path, store, tools).planner
        planner.prepare(opening, DIALECT, store, 1.0, "anthropic", off=False)
        assert planner.is_quick(opening) is quick
