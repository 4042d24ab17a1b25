"""The four sources, and a fifth, hold the contract of the port; the plan decides among them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.proxy.shelf import Shelf

from hotset.config import load
from hotset.dialects import DIALECTS
from hotset.index import open_index
from hotset.nouns.candidate import Candidate, OfferKind, OfferSlot, OfferVerdict
from hotset.nouns.knobs import Knobs, Prefetch, Prefetching
from hotset.nouns.message import DialectName
from hotset.runtime.planner import Planner
from hotset.sources.code import CodeSource
from hotset.sources.history import HistorySource
from hotset.sources.memory import MemorySource, ProjectMemories
from hotset.sources.port import Scene, Source
from hotset.sources.tools import ToolSource
from hotset.testing import RamStore
from hotset.testing.source_contract import CHECKS, make_scene

ON = Prefetch(mode=Prefetching.ON, excerpt=0.0, hint=0.0)


def create_issue(title: str) -> str:
    """Create an issue about something."""
    return title


class Weather(Source):
    """A fifth source: what the weather is, for every prompt."""

    name = "weather"

    def is_quiet(self, *, opens: bool) -> bool:
        del opens
        return False

    def seconds(self, scene: Scene) -> float:
        del scene
        return 30.0

    def offer(self, scene: Scene, until: float) -> list[Candidate]:
        del scene, until
        slot = OfferSlot.BEHIND_PROMPT
        return [Candidate(self.name, OfferKind.HINT, "sky", slot, "It rains.", 4, 0.95)]


@pytest.fixture
def opened(tmp_path):
    config = load(project=str(tmp_path), data=str(tmp_path), environ={})
    index, store = open_index(config.folder, config.embedding), RamStore()
    yield {
        "history": lambda: HistorySource(lambda: store, lambda: index),
        "code": lambda: CodeSource(lambda: index, ON),
        "tools": lambda: ToolSource(Shelf(github=[create_issue]), 5, 60.0),
        "memory": lambda: MemorySource(
            ProjectMemories(config, lambda: store, lambda: index), config.memory
        ),
        "weather": Weather,
    }
    index.close()


@pytest.mark.parametrize("name", ["history", "code", "tools", "memory", "weather"])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_source_holds_the_contract(opened, name, check):
    check(opened[name])


@pytest.mark.row("X1")
def test_a_fifth_source_is_asked_decided_about_and_shown_without_a_change_elsewhere(tmp_path):
    config = load(project=str(tmp_path), data=str(tmp_path), environ={})
    planner = Planner(replace(config, knobs=Knobs(prefetch=ON)), sources=[Weather()])
    scene = make_scene(RamStore(), "What is it like outside?")
    dialect = DIALECTS[DialectName.ANTHROPIC]

    planned = planner.prepare(scene.request, dialect, scene.store, 1.0, "anthropic", off=False)

    [choice] = planned.plan.choices
    assert choice.verdict is OfferVerdict.TAKEN
    assert b"It rains." in planned.body
    assert b"It rains." not in scene.request.raw
