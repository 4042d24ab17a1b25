"""Who searches for a prompt gives the index what is left of the prompt's time: the less it is, the
less the search does."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from hotset.config import load
from hotset.index import open_index
from hotset.index.hybrid_search import SearchTier, tier_for
from hotset.nouns.knobs import Prefetch
from hotset.nouns.memory import Trust
from hotset.nouns.search import Hits, Query
from hotset.sources.code import CodeSource
from hotset.sources.memory import MemorySource, ProjectMemories
from hotset.testing import RamStore
from hotset.testing.source_contract import make_scene


class Watched:
    """An index, and how thoroughly it was asked to search."""

    def __init__(self, index: Any) -> None:
        self._index = index
        self.tiers: list[SearchTier] = []

    def search(self, query: Query) -> Hits:
        self.tiers.append(tier_for(query.deadline))
        return self._index.search(query)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)


@pytest.fixture
def index(tmp_path):
    with contextlib.closing(open_index(tmp_path, folds=False)) as index:
        yield Watched(index)


@pytest.mark.row("V10")
@pytest.mark.parametrize(
    ("left", "tier"),
    [(0.1, SearchTier.FULL), (0.015, SearchTier.WARM), (0.001, SearchTier.HOT)],
)
def test_a_prefetch_searches_as_thoroughly_as_the_time_that_is_left_allows(index, left, tier):
    source = CodeSource(lambda: index, Prefetch(), monotonic=lambda: 100.0)
    source.offer(make_scene(RamStore(), "Fix the JWT expiration bug"), 100.0 + left)
    assert index.tiers == [tier]


@pytest.mark.row("V10")
def test_a_prefetch_that_is_late_does_not_search(index):
    source = CodeSource(lambda: index, Prefetch(), monotonic=lambda: 100.0)
    assert source.offer(make_scene(RamStore(), "Fix the JWT expiration bug"), 100.0) == ()
    assert index.tiers == []


def test_a_reminder_needs_no_search(index, tmp_path):
    config = load(project=str(tmp_path), data=str(tmp_path / "data"), environ={})
    config = replace(config, memory=structs.replace(config.memory, offer_seconds=100.0))
    store = RamStore()
    memories = ProjectMemories(config, lambda: store, lambda: index)
    memories.remember("The staging database listens on port 5432.", by="person", trust=Trust.PERSON)
    index.tiers.clear()  # to remember something is a search too
    source = MemorySource(memories, config.memory)
    prompt = "Which port does the staging database listen on?"
    (told,) = source.offer(make_scene(store, prompt), time.monotonic())
    assert "5432" in str(told.body)
    assert index.tiers == []
