"""What memories leave behind: no secret through any door, no word in events and logs, files for
their owner alone, and of what was erased nothing.
"""

from __future__ import annotations

import json
import logging
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from hotset.config import Config, load
from hotset.nouns.memory import Checkpoint, MemoryKind, Pitfall, Procedure, Standing, Trust
from hotset.runtime.reader import open_memories
from hotset.sources.memory.project_memories import ProjectMemories
from hotset.store.sqlite import SqliteStore
from hotset.testing.secrets import planted
from hotset.testing.store_talk import StoreTalk

WORD = "zamboni"
SECRET = next(each for each in planted(7, 60) if each.secret in each.text)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "project").mkdir()
    environ = {"HOME": str(tmp_path), "HOTSET_CONFIG": str(tmp_path / "config.toml")}
    return load(data=str(tmp_path / "data"), project=str(tmp_path / "project"), environ=environ)


def tell(
    memories: ProjectMemories, text: str = f"The {WORD} stands behind the rink.", **more: object
) -> str:
    return memories.remember(text, by="person", trust=Trust.PERSON, **more).id  # type: ignore[arg-type]


def by_file(memories: ProjectMemories, text: str, folder: Path) -> None:
    (folder / "semantic").mkdir(parents=True)
    pattern = {
        "id": "sem-001",
        "pattern": text,
        "category": text,
        "correct_approach": text,
        "conditions": [text],
    }
    (folder / "semantic" / "patterns.json").write_text(json.dumps({"patterns": [pattern]}))
    memories.import_(folder, "loki")


DOORS: dict[str, Callable[[ProjectMemories, str, Path], object]] = {
    "text": lambda memories, text, _: tell(memories, text),
    "title": lambda memories, text, _: tell(memories, title=text),
    "topics": lambda memories, text, _: tell(memories, topics=[text]),
    "checkpoint": lambda memories, text, _: tell(
        memories, kind="ledger", detail=Checkpoint((text,), text, (text,), (text,), text)
    ),
    "pitfall": lambda memories, text, _: tell(
        memories, kind="pitfall", detail=Pitfall(text, text, text)
    ),
    "procedure": lambda memories, text, _: tell(
        memories, kind="procedure", detail=Procedure(text, (text,))
    ),
    "edited text": lambda memories, text, _: memories.edit(tell(memories), text=text),
    "edited title": lambda memories, text, _: memories.edit(tell(memories), title=text),
    "edited topics": lambda memories, text, _: memories.edit(tell(memories), topics=[text]),
    "why it was forgotten": lambda memories, text, _: memories.forget(tell(memories), why=text),
    "a file": by_file,
}


@pytest.mark.parametrize("door", DOORS)
def test_no_secret_comes_in_through_any_door(config: Config, tmp_path: Path, door: str):
    with open_memories(config) as memories:
        DOORS[door](memories, SECRET.text, tmp_path / "theirs")
        memories.recall("what is known?")
        every = list(memories.list(standings=frozenset(Standing), limit=None))
        said = "".join(str(memories.details(memory.id)) for memory in every)
    assert every
    assert SECRET.secret in SECRET.text
    assert SECRET.secret not in said
    assert not _files_with(config, SECRET.secret)


def test_what_was_said_in_a_session_is_in_no_event_and_no_log_and_every_file_is_the_owner_s_alone(
    config: Config, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    with SqliteStore.open(config.folder) as store:
        talk = StoreTalk(store, time=1_700_000_000.0)
        talk.hears(
            talk.asks(f"Implement the {WORD} export. From now on the {WORD} is on port 8080.").turn,
            f"The {WORD} is done.",
        )
        session = next(iter(store.sessions())).id
    with open_memories(config) as memories:
        memories.continuity.switch(on=True)
        memories.encode()
        memories.consolidate()
        for ask in (memories.index, memories.timeline, memories.recall, memories.unfold):
            ask(f"where is the {WORD}?", session=session)
        memories.read(next(iter(memories.list())).id, session=session)
        memories.settle_up(session, "session")
        memories.rollback(session=session)
    with SqliteStore.open(config.folder) as store:
        events = list(store.events())
        assert any(event.name for event in events)
        assert not [event for event in events if WORD in str(event.detail)]
    assert WORD not in caplog.text
    paths = [config.folder, *config.folder.rglob("*")]
    assert {oct(stat.S_IMODE(path.stat().st_mode)) for path in paths if path.is_file()} == {"0o600"}
    assert {oct(stat.S_IMODE(path.stat().st_mode)) for path in paths if path.is_dir()} == {"0o700"}


def test_of_what_was_erased_nothing_is_left_whatever_was_made_of_it(config: Config):
    with open_memories(config) as memories:
        id = tell(
            memories,
            f"The {WORD} stands behind the rink.",
            topics=[WORD],
            title=f"About the {WORD}",
        )
        tell(memories, "Invoices are exported as CSV files.")
        memories.consolidate()
        memories.recall(WORD)
        memories.index(WORD)
        memories.timeline(WORD)
        memories.forget(id)
        memories.restore([id])
        memories.forget(id, erase=True)
        assert [memory.kind for memory in memories.list()] == [MemoryKind.FACT]
        assert WORD not in memories.index().text + memories.timeline().text
    assert not _files_with(config, WORD)


def _files_with(config: Config, words: str) -> list[str]:
    return [
        path.name
        for path in config.folder.rglob("*")
        if path.is_file() and words.encode() in path.read_bytes()
    ]
