"""Which of two statements holds: what people said in two sessions, and what recall gives of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotset.config import Config, load
from hotset.index import open_index
from hotset.nouns.memory import MemoryKind, MemoryRecord, Standing
from hotset.sources.memory.project_memories import ProjectMemories
from hotset.store.port import Store
from hotset.store.sqlite import SqliteStore
from hotset.testing import Clock
from hotset.testing.store_talk import StoreTalk

DAY = 86_400.0
REPLACED = [
    ("We use Jest for unit tests.", "We no longer use Jest for unit tests."),
    ("Feature flags are stored in Unleash.", "Feature flags are no longer stored in Unleash."),
    ("We use Yarn for installs.", "We use pnpm instead of Yarn for installs."),
    ("We pin dependencies with pip-tools.", "We pin dependencies with uv instead of pip-tools."),
    ("All services log to Papertrail.", "All services log to Loki instead of Papertrail."),
    ("The cache lives in Redis.", "The cache now lives in Valkey."),
    ("Invoices are sent on Fridays.", "Invoices are now sent on Mondays."),
    ("The retry limit is 3.", "The retry limit is now 5."),
    ("We use Travis for CI.", "We switched from Travis to Buildkite."),
    ("CI runs on Jenkins.", "We switched CI from Jenkins to Buildkite."),
    ("We deploy to Heroku.", "We switched from Heroku to Fly."),
    ("We host the docs on Netlify.", "We moved the docs from Netlify to GitHub Pages."),
    ("Planning is on Mondays.", "Planning moved to Thursdays."),
    ("The changelog lives in docs/changes.md.", "The changelog moved to CHANGELOG.md."),
    ("The session limit is 20 minutes.", "The session limit is 45 minutes."),
    ("Uploads are limited to 10 MB.", "Uploads are limited to 25 MB."),
    ("Backups are kept for two weeks.", "Backups are kept for four weeks."),
    ("Our Postgres version is 14.", "Our Postgres version is 16 now."),
    ("We target Android 12.", "We target Android 14."),
    ("We support Internet Explorer 11.", "We dropped support for Internet Explorer 11."),
    ("Tom owns the payment gateway.", "Aisha owns the payment gateway."),
    ("Lena is our release manager.", "Omar is our release manager now."),
    ("The dev server listens on port 3000.", "The dev server listens on port 5173."),
    ("Deploys happen at 18:00.", "Deploys happen at 10:00."),
    ("Always rebase before you merge.", "Never rebase before you merge."),
    ("I prefer tabs over spaces.", "I prefer spaces over tabs."),
    ("Our main region is eu-west-1.", "Our main region is eu-central-1."),
]
APART = [
    ("The dev server listens on port 3000.", "The admin server listens on port 4000."),
    ("Planning is on Mondays.", "Demos are on Thursdays."),
    ("Tom owns the payment gateway.", "Aisha owns the mail gateway."),
    ("We use Jest for unit tests.", "We use Playwright for browser tests."),
    ("The session limit is 20 minutes.", "The upload limit is 45 minutes."),
    ("We target Android 12.", "We target iOS 17."),
    ("Uploads are limited to 10 MB.", "Downloads are limited to 25 MB."),
    ("Feature flags live in config/flags.yaml.", "Secrets live in config/vault.yaml."),
    ("Every migration needs a rollback.", "Every migration needs a review."),
    ("Deploys happen at 18:00.", "Backups happen at 03:00."),
    ("We dropped support for Internet Explorer 11.", "We support Safari 15."),
    ("Lena is our release manager.", "Omar is our security contact."),
    ("I prefer spaces over tabs in YAML.", "I prefer spaces over tabs."),
]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    environ = {"HOME": str(tmp_path), "HOTSET_CONFIG": str(tmp_path / "config.toml")}
    (tmp_path / "project").mkdir()
    return load(data=str(tmp_path / "data"), project=str(tmp_path / "project"), environ=environ)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(config: Config) -> Iterator[Store]:
    with contextlib.closing(SqliteStore.open(config.folder)) as store:
        yield store


@pytest.fixture
def memories(
    config: Config, store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ProjectMemories]:
    monkeypatch.setattr("hotset.sources.memory.project_memories.SECONDS", 30.0)
    with contextlib.closing(open_index(config.folder, folds=False)) as index:
        yield ProjectMemories(config, lambda: store, lambda: index, clock)


def said(memories: ProjectMemories, store: Store, clock: Clock, *sessions: str) -> None:
    """Each in a session of its own, a day apart."""
    for number, text in enumerate(sessions):
        StoreTalk(store, key=f"s{number}", time=clock()).turn(text, "All right.")
        clock.advance(DAY)
        memories.encode()


def facts(store: Store) -> list[MemoryRecord]:
    found = store.memories(frozenset({MemoryKind.FACT}))
    return sorted(found, key=lambda each: each.created)


@pytest.mark.row("M5")
@pytest.mark.parametrize(("old", "new"), REPLACED)
def test_what_holds_comes_first_and_what_it_replaced_names_it(
    memories: ProjectMemories, store: Store, clock: Clock, old: str, new: str
):
    said(memories, store, clock, old, new)
    before, now = facts(store)
    assert (before.standing, now.standing) == (Standing.SUPERSEDED, Standing.ACTIVE)
    found = memories.recall(old, kinds=[MemoryKind.FACT]).recall.items
    assert found[0].id == now.id
    assert f"was replaced by [{now.id}]" in memories.read(before.id).text


@pytest.mark.parametrize(("old", "new"), APART)
def test_statements_about_different_things_both_hold(
    memories: ProjectMemories, store: Store, clock: Clock, old: str, new: str
):
    said(memories, store, clock, old, new)
    assert [each.standing for each in facts(store)] == [Standing.ACTIVE, Standing.ACTIVE]
    assert not memories.conflicts()


def test_an_agent_that_recalls_one_of_two_that_collide_is_told_to_ask(
    memories: ProjectMemories, store: Store, clock: Clock
):
    for session in ("one", "other"):  # at the same time: nothing tells which is the later
        days = {"one": 30, "other": 90}[session]
        talk = StoreTalk(store, key=session, agent=session, time=clock())
        talk.turn(f"The logs are kept for {days} days.", "All right.")
    clock.advance(DAY)
    memories.encode()
    one, other = facts(store)
    assert one.standing is other.standing is Standing.ACTIVE
    text = memories.recall("how long are logs kept", kinds=[MemoryKind.FACT]).text
    assert f"contradicts [{other.id}]" in text
    assert f"contradicts [{one.id}]" in text
    assert "ask the user which holds" in text
    ((later, earlier),) = memories.conflicts()
    memories.settle_conflict(later.id, earlier.id)
    assert "contradicts" not in memories.recall("how long are logs kept").text
    assert not memories.conflicts()
