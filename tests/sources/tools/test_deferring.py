"""What was found in a session is called by its own name as long as its definition is known, and
told in words otherwise."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.proxy.shelf import Shelf
from tests.proxy.test_toolbox import create_issue

from hotset.config import Upstream, load
from hotset.dialects import DIALECTS
from hotset.nouns.deposit import RequestReceived
from hotset.nouns.link import link
from hotset.nouns.message import Answer, DialectName, Loading, ToolSpec
from hotset.nouns.page import ROOT
from hotset.nouns.tooling import Deferring, Tooling
from hotset.nouns.turn import TurnId
from hotset.nouns.window import Hidden
from hotset.runtime.planner import Planner
from hotset.runtime.session_notes import Deferrals, FoundTools, is_taken
from hotset.sources.tools import ToolSource
from hotset.testing import RamStore
from hotset.window.deferred_tools import ANCHOR
from hotset.window.toolbox_tools import FIND

ANTHROPIC, RESPONSES, CHAT = (
    DialectName.ANTHROPIC,
    DialectName.OPENAI_RESPONSES,
    DialectName.OPENAI_CHAT,
)
DIALECT = DIALECTS[ANTHROPIC]
SCHEMA = b'{"type":"object","properties":{"title":{"type":"string"}}}'
ISSUE, MAIL = (
    ToolSpec(name, f"Does {name}.", SCHEMA, Loading.WHEN_FOUND)
    for name in ("github__create_issue", "post__send")
)
TOOLS = [{"name": "read_file", "input_schema": {"type": "object"}}]


def asked(*said: str, model: str = "claude-sonnet-5"):
    messages = [
        {"role": ("user", "assistant")[n % 2], "content": each} for n, each in enumerate(said)
    ]
    body = {"model": model, "max_tokens": 999, "tools": TOOLS, "messages": messages}
    return DIALECT.parse(json.dumps(body).encode())


def found(chain, *specs: ToolSpec) -> Hidden:
    """A turn in which the model searched, hidden before what it said to its client."""
    use = {"type": "tool_use", "id": "toolu_1", "name": FIND, "input": {"query": "x"}}
    call = json.dumps({"role": "assistant", "content": [use]}).encode()
    return Hidden(chain, before=(call, *DIALECT.answer([Answer("toolu_1", "words", tools=specs)])))


def config(folder, deferred=Deferring.ON, **settings):
    return replace(
        load(project=str(folder), data=str(folder), environ={}),
        tooling=Tooling(deferred=deferred),
        **settings,
    )


@pytest.fixture
def store():
    return RamStore()


@pytest.fixture
def line():
    request = asked("Hello.", "I found it.", "Go on.", "And more.", "Thanks.")
    return tuple(link(ROOT, request.messages))


def keep(store: RamStore, notes) -> None:
    id = TurnId("t")
    store.keep(
        RequestReceived(asked("Hello."), 1.0, "agent", id=id),
        *(replace(note, turn=id) for note in notes),
    ).result()


def test_definitions_come_back_in_the_order_in_which_they_were_found_and_the_first_of_a_name_holds(
    tmp_path, store, line
):
    before = Deferrals(config(tmp_path))
    other = replace(ISSUE, description="Says something else by now.")
    rows = [found(line[1].chain, ISSUE), found(line[3].chain, MAIL, other)]
    keep(store, [*before.keep(rows[:1], [ISSUE]), *before.keep(rows[1:], [MAIL, other])])
    hidden = {row.chain: row for row in rows}

    for deferrals in (before, Deferrals(config(tmp_path))):
        recalled = deferrals.recalled(line, hidden, DIALECT, store, deferred=True)
        assert recalled == FoundTools((ISSUE, MAIL))
        assert deferrals.recalled(line[:2], hidden, DIALECT, store, deferred=True).tools == (ISSUE,)


def test_what_was_found_is_told_in_words_where_its_definition_was_lost_or_the_upstream_takes_none(
    tmp_path, store, line
):
    hidden = {line[1].chain: found(line[1].chain, ISSUE), line[3].chain: found(line[3].chain, MAIL)}
    kept = Deferrals(config(tmp_path))
    keep(store, kept.keep([hidden[line[1].chain]], [ISSUE]))

    lost = Deferrals(config(tmp_path)).recalled(line, hidden, DIALECT, store, deferred=True)
    assert lost.tools == (ISSUE,)
    assert list(lost.spelled) == [line[3].chain]
    assert b'"content":"post__send"' in lost.spelled[line[3].chain].before[1]

    never = kept.recalled(line, hidden, DIALECT, store, deferred=False)
    assert never.tools == ()
    assert list(never.spelled) == [line[1].chain, line[3].chain]
    assert b"Does github__create_issue. Arguments: " in never.spelled[line[1].chain].before[1]
    assert not any(
        DIALECT.loaded_tools(raw) for row in never.spelled.values() for raw in row.before
    )


def test_a_row_that_cannot_be_read_is_a_definition_that_was_lost(tmp_path, store, line):
    row = found(line[1].chain, ISSUE)
    [kept] = Deferrals(config(tmp_path)).keep([row], [ISSUE])
    keep(store, [replace(kept, value=b"{")])

    recalled = Deferrals(config(tmp_path)).recalled(
        line, {row.chain: row}, DIALECT, store, deferred=True
    )

    assert recalled.tools == ()
    assert list(recalled.spelled) == [row.chain]


def test_where_nothing_was_found_nothing_is_asked_of_the_store(tmp_path, line):
    row = Hidden(
        line[1].chain, before=DIALECT.answer([Answer("toolu_1", "words about a tool_reference")])
    )

    recalled = Deferrals(config(tmp_path)).recalled(
        line, {row.chain: row}, DIALECT, None, deferred=True
    )

    assert recalled == FoundTools()


@pytest.mark.parametrize(
    ("asking", "is_asked"),
    [
        ((Deferring.AUTO, "anthropic", "claude-sonnet-5"), True),
        ((Deferring.AUTO, "anthropic", "claude-3-7-sonnet-latest"), False),
        ((Deferring.AUTO, "gateway", "claude-sonnet-5"), False),
        ((Deferring.AUTO, "unheard-of", "claude-sonnet-5"), False),
        ((Deferring.ON, "gateway", "glm-5"), True),
        ((Deferring.OFF, "anthropic", "claude-sonnet-5"), False),
    ],
)
def test_a_session_defers_where_its_upstream_takes_it(tmp_path, store, asking, is_asked):
    deferred, upstream, model = asking
    settings = config(tmp_path, deferred)
    settings = replace(
        settings,
        upstreams={**settings.upstreams, "gateway": Upstream("gateway", "https://llm.example.org")},
    )
    planner = Planner(settings, sources=[ToolSource(Shelf(github=[create_issue]), 5)])

    prepared = planner.prepare(
        asked("Hello.", model=model), DIALECT, store, 1.0, upstream, off=False
    )

    assert prepared.deferred is is_asked
    assert (ANCHOR in prepared.specs) is is_asked
    assert (b"defer_loading" in prepared.body) is is_asked


def test_nothing_is_deferred_unless_somebody_wants_it(tmp_path, store):
    planner = Planner(
        load(project=str(tmp_path), data=str(tmp_path), environ={}),
        sources=[ToolSource(Shelf(github=[create_issue]), 5)],
    )

    assert not planner.prepare(
        asked("Hello."), DIALECT, store, 1.0, "anthropic", off=False
    ).deferred


def test_an_upstream_that_refused_is_not_asked_again_for_that_model(tmp_path, store):
    deferrals = Deferrals(config(tmp_path))

    deferrals.refused("anthropic", "claude-sonnet-5")

    assert not deferrals.allowed(asked("Hello."), DIALECT, "anthropic")
    assert deferrals.allowed(asked("Hello.", model="claude-opus-5"), DIALECT, "anthropic")
    assert deferrals.allowed(asked("Hello."), DIALECT, "gateway")


def test_a_session_that_began_without_goes_on_without(tmp_path, store):
    """The first deferred tool would change what the provider has cached."""
    shelf = Shelf(github=[create_issue])
    began = Planner(config(tmp_path, Deferring.OFF), sources=[ToolSource(shelf, 5)])
    first = began.prepare(asked("Hello."), DIALECT, store, 1.0, "anthropic", off=False)
    keep(store, began.went_out(first))

    later = Planner(config(tmp_path), sources=[ToolSource(shelf, 5)]).prepare(
        asked("Hello.", "Hi.", "Go on."), DIALECT, store, 2.0, "anthropic", off=False
    )

    assert later.specs == first.specs
    assert not later.scene.defers  # what it finds is told in words, too


def test_sessions_behind_different_upstreams_share_no_offer(tmp_path, store):
    """Of one client, and while the cache is warm: one of the upstreams can defer tools."""
    settings = config(tmp_path, Deferring.AUTO)
    settings = replace(
        settings,
        upstreams={**settings.upstreams, "gateway": Upstream("gateway", "https://llm.example.org")},
    )
    planner = Planner(settings, sources=[ToolSource(Shelf(github=[create_issue]), 5)])
    many = [
        {
            "name": f"tool_{n}",
            "description": "of the client " * 20,
            "input_schema": {"type": "object"},
        }
        for n in range(30)
    ]

    def opened(words: str, upstream: str) -> bool:
        body = {
            "model": "claude-sonnet-5",
            "max_tokens": 99,
            "tools": many,
            "messages": [{"role": "user", "content": words}],
        }
        prepared = planner.prepare(
            DIALECT.parse(json.dumps(body).encode()), DIALECT, store, 1.0, upstream, off=False
        )
        planner.went_out(prepared)
        return prepared.deferred

    assert [
        opened("One.", "gateway"),
        opened("Two.", "anthropic"),
        opened("Three.", "gateway"),
    ] == [False, True, False]


@pytest.mark.parametrize(
    ("dialect", "host", "model", "taken"),
    [
        (ANTHROPIC, "api.anthropic.com", "claude-opus-4-5-20251101", True),
        (ANTHROPIC, "API.Anthropic.com", "claude-sonnet-4-5", True),
        (ANTHROPIC, "api.anthropic.com", "claude-haiku-4-5-20251001", True),
        (ANTHROPIC, "api.anthropic.com", "claude-opus-4-7", True),
        (ANTHROPIC, "api.anthropic.com", "claude-sonnet-5", True),
        (ANTHROPIC, "api.anthropic.com", "claude-fable-5-1", True),
        (ANTHROPIC, "api.anthropic.com", "claude-opus-4-20250514", False),
        (ANTHROPIC, "api.anthropic.com", "claude-sonnet-4-0", False),
        (ANTHROPIC, "api.anthropic.com", "claude-opus-4-1-20250805", False),
        (ANTHROPIC, "api.anthropic.com", "claude-3-5-haiku-20241022", False),
        (ANTHROPIC, "api.anthropic.com", "glm-5", False),
        (ANTHROPIC, "api.z.ai", "claude-sonnet-5", False),
        (ANTHROPIC, "api.anthropic.com.example.org", "claude-sonnet-5", False),
        (ANTHROPIC, "", "claude-sonnet-5", False),
        (RESPONSES, "api.openai.com", "gpt-5.4", True),
        (RESPONSES, "api.openai.com", "gpt-5.4-mini-2026-03-05", True),
        (RESPONSES, "api.openai.com", "gpt-5.10", True),
        (RESPONSES, "api.openai.com", "gpt-6-astra", True),
        (RESPONSES, "api.openai.com", "gpt-6.1", True),
        (RESPONSES, "api.openai.com", "gpt-5.3-codex", False),
        (RESPONSES, "api.openai.com", "gpt-5", False),
        (RESPONSES, "api.openai.com", "gpt-4.1", False),
        (RESPONSES, "api.openai.com", "o3", False),
        (RESPONSES, "openrouter.ai", "gpt-5.4", False),
        (CHAT, "api.openai.com", "gpt-5.4", False),
        (ANTHROPIC, "api.openai.com", "claude-sonnet-5", False),
    ],
)
def test_by_itself_only_the_provider_and_models_that_are_known_to_take_it(
    dialect, host, model, taken
):
    deferral = DIALECTS[dialect].deferral
    assert is_taken(Deferring.AUTO, deferral, host, model) is taken
    assert is_taken(Deferring.ON, deferral, host, model)
    assert not is_taken(Deferring.OFF, deferral, host, model)


def test_every_provider_says_where_that_is_written_and_when_it_was_read():
    known = [each.deferral for each in DIALECTS.values() if each.deferral]
    assert len(known) == 2
    assert all("2026-" in each.source for each in known)
