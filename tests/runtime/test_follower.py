"""What goes through a running hotset becomes findable beside it: at once, in one index, whatever
happens to that index."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import hotset
from hotset.config import load
from hotset.errors import BadConfig, StoreFailed
from hotset.index import open_index
from hotset.nouns.deposit import PageAdded
from hotset.nouns.page import Kind
from hotset.nouns.retrieval import Place, Retrieve, Search
from hotset.runtime.background import Background
from hotset.runtime.follower import Follower
from hotset.runtime.keeper import Keeper
from hotset.runtime.machine import Machine
from hotset.runtime.retrieval import answer
from hotset.sources.history import followed
from hotset.store.sqlite import SqliteStore
from hotset.testing import Call, RamStore, Say, ScriptedUpstream
from hotset.testing.proxy import LocalProxy
from hotset.testing.store_talk import StoreTalk, turn_of
from hotset.upstream.http import HttpWire
from tests.proxy.talking import Talk

_PATIENCE = 30.0


def wait(for_it, seconds: float = _PATIENCE):
    """What it gives, as soon as it gives something."""
    until = time.monotonic() + seconds
    while not (given := for_it()):
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)
    return given


def is_followed(folder: Path) -> bool:
    """The index of this folder holds everything that its store does."""
    if not (folder / "index").exists():
        return False
    with contextlib.closing(SqliteStore.open(folder)) as store:
        last = store.pages_after(0, 10_000)
        try:
            index = open_index(folder, folds=False)
        except StoreFailed:  # it is just being made
            return False
        with contextlib.closing(index):
            return bool(last) and followed(store, index) == last[-1][0]


@pytest.fixture
def world(tmp_path):
    """A proxy over an upstream that follows a script. The same folder each time."""
    with contextlib.ExitStack() as stack:

        def make(*says: Say) -> tuple[Talk, ScriptedUpstream, Path]:
            upstream = stack.enter_context(ScriptedUpstream(list(says)))
            proxy = LocalProxy(
                tmp_path / "data",
                openai_url=upstream.openai_url,
                anthropic_url=upstream.anthropic_url,
            )
            return (
                Talk(stack.enter_context(proxy).address, "anthropic"),
                upstream,
                tmp_path / "data",
            )

        yield make


def test_the_index_of_a_folder_that_was_moved_away_is_not_made(tmp_path):
    with pytest.raises(StoreFailed, match="put it back"):
        open_index(tmp_path / "data", makes_folder=False)

    assert not (tmp_path / "data").exists()


def searching(words: str, session: str = "this") -> Say:
    return Say(calls=(Call("search_history", {"query": words, "session": session}),))


def last_request(upstream: ScriptedUpstream) -> str:
    return upstream.requests[-1].body.decode()


@pytest.mark.slow
def test_what_was_kept_a_moment_ago_is_found_at_once(world):
    talk, upstream, folder = world(
        Say("The zeppelin is grey."),
        searching("zeppelin"),
        Say("Grey."),
        Say("Fine."),
        searching("airship"),
        Say("Blue."),
    )
    talk.say("What colour is the zeppelin?")
    talk.say("Again?")
    assert "The zeppelin is grey." in last_request(upstream).split("best matches")[1]
    wait(lambda: is_followed(folder))

    talk.say("The airship is blue.")
    talk.say("What colour is it?")

    assert talk.text == "Blue."
    assert "The airship is blue." in last_request(upstream).split("best matches")[-1]
    assert "search_history" not in talk.wrote


@pytest.mark.slow
def test_an_index_that_is_deleted_while_it_is_used_is_made_again(world):
    talk, upstream, folder = world(
        Say("The zeppelin is grey."), Say("Yes."), searching("zeppelin"), Say("Grey."), Say("Bye.")
    )
    talk.say("Hello.")
    wait(lambda: is_followed(folder))
    shutil.rmtree(folder / "index")

    talk.say("Go on.")
    talk.say("What colour?")
    assert "The zeppelin is grey." in last_request(upstream).split("best matches")[1]
    talk.say("Bye.")

    assert wait(lambda: is_followed(folder))


@pytest.mark.slow
def test_without_a_usable_index_the_store_itself_is_looked_through(world, caplog):
    talk, upstream, folder = world(
        Say("The zeppelin is grey."), searching("zeppelin"), Say("Grey."), Say("Bye.")
    )
    (folder / "index").write_text("this is no folder")
    talk.say("Hello.")
    wait(lambda: "searches look through the store instead" in caplog.text)

    talk.say("What colour?")

    assert "The zeppelin is grey." in last_request(upstream).split("best matches")[1]
    assert (folder / "index").read_text() == "this is no folder"


@pytest.mark.parametrize("search", [True, False])
def test_switched_off_nothing_is_followed(tmp_path, search):
    async def follows() -> int:
        store = RamStore()
        config = replace(load(data=str(tmp_path), project=str(tmp_path), environ={}), search=search)
        machine = Machine.start(config, lambda: store, HttpWire({}))
        session = StoreTalk(store).turn("hello", "hi").session
        await machine.keeper.keep(
            PageAdded(session, "agent", Kind.FINDING, b"the zeppelin is grey", 1.0)
        )
        following = machine.background.under_way("follow the store")
        await machine.close()
        return following

    assert asyncio.run(follows()) == int(search)
    assert not (tmp_path / "index").exists()


@pytest.mark.slow
def test_two_hotsets_over_one_folder_share_one_index(world):
    one, _, folder = world(Say("The zeppelin is grey."), Say("Bye."))
    two, upstream, _ = world(Say("Hi."), searching("zeppelin", "all"), Say("Grey."))
    one.say("Hello.")
    two.say("I am another.")
    wait(lambda: is_followed(folder))
    one.say("Bye.")

    two.say("What colour?")

    assert "The zeppelin is grey." in last_request(upstream).split("best matches")[1]
    assert wait(lambda: is_followed(folder))


@pytest.mark.slow
def test_a_program_that_uses_the_library_has_the_index_too(tmp_path):
    with hotset.open(tmp_path, data=tmp_path / "data") as memory:
        window = memory.window(model="claude-sonnet-5")
        window.add({"role": "user", "content": "The zeppelin is grey."})
        window.request()
        wait(lambda: is_followed(tmp_path / "data"))

    with (
        contextlib.closing(SqliteStore.open(tmp_path / "data")) as store,
        contextlib.closing(open_index(tmp_path / "data")) as index,
    ):
        assert (
            "The zeppelin is grey."
            in answer(Search("zeppelin", session="all"), store, Place(None), index=index).text
        )


@pytest.mark.slow
def test_nothing_heavy_is_loaded_and_no_index_made_before_something_is_kept(tmp_path):
    script = (
        "import sys, hotset; memory = hotset.open(sys.argv[1], data=sys.argv[1] + '/data');"
        "print([name for name in ('numpy', 'tantivy', 'tokie', 'hotset.index.local') if name "
        "in sys.modules]); memory.close()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"
    assert not (tmp_path / "data" / "index").exists()


# --- the answers
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path):
    """A session, and an index that knows nothing of it yet."""
    store = RamStore()
    talk = StoreTalk(store)
    talk.turn("Which airship?", "The zeppelin is grey.")
    asked = talk.asks("And the car?")
    talk.hears(asked.turn, "the vehicle's motor has failed")
    with contextlib.closing(open_index(tmp_path, folds=False)) as index:
        yield store, index, Place(turn_of(asked).session, 3)


def test_an_index_that_is_behind_is_brought_up_before_it_answers(kept):
    store, index, here = kept

    assert (
        "The zeppelin is grey."
        in answer(Search("zeppelin"), store, here, index=index, seconds=_PATIENCE).text
    )
    assert followed(store, index) == 4


class Slow:
    """An index for which every addition takes a quarter of a minute, by its own clock."""

    def __init__(self, index):
        self._index = index
        self.now = 0.0

    def __getattr__(self, name):
        return getattr(self._index, name)

    def add(self, entries, watermark):
        self._index.add(entries, watermark)
        self.now += 15.0


def test_what_there_was_no_time_to_index_is_looked_through(kept):
    store, index, here = kept
    for number in range(100):
        StoreTalk(store, key=f"s{number}").turn(
            f"question {number}", f"the balloon of number {number}"
        )
    slow = Slow(index)

    got = answer(
        Search("zeppelin balloon 99", session="all"),
        store,
        here,
        index=slow,
        seconds=60.0,
        clock=lambda: slow.now,
    )

    assert followed(store, index) < 204
    assert "the balloon of number 99" in got.text
    assert "The zeppelin is grey." in got.text


def test_a_topic_in_other_words_brings_the_part_that_speaks_of_it(kept):
    store, index, here = kept
    here = replace(
        here, turn=0
    )  # asked from outside: the latest prompt does not stand in the window

    got = answer(Retrieve(topic="car engine broke"), store, here, index=index, seconds=_PATIENCE)

    assert "And the car?" in got.text
    nearest = answer(
        Retrieve(topic="automobile engine"), store, here, index=index, seconds=_PATIENCE
    )
    assert "the vehicle's motor has failed" in nearest.text


def test_a_topic_stays_on_the_line_on_which_it_is_asked(kept):
    store, index, here = kept
    abandoned = StoreTalk(store)
    asked = abandoned.asks("Which airship?", "The invoice is overdue.")
    other = replace(here, session=turn_of(asked).session, turn=0, chains=tuple(abandoned.line[:1]))

    assert not answer(Retrieve(topic="invoice"), store, other, index=index, seconds=_PATIENCE).found
    assert answer(
        Retrieve(topic="invoice"), store, replace(other, chains=()), index=index, seconds=_PATIENCE
    ).found


def test_an_index_whose_rows_were_thrown_away_is_filled_again_before_it_answers(kept, tmp_path):
    store, index, here = kept
    assert answer(Search("automobile engine"), store, here, index=index, seconds=_PATIENCE).found
    for path in (tmp_path / "index").glob("entries.db*"):
        path.unlink()

    got = answer(Search("motor vehicle car"), store, here, index=index, seconds=_PATIENCE)

    assert "the vehicle's motor has failed" in got.text
    assert followed(store, index) == 4


class Broken:
    """An index whose disk is gone."""

    def __getattr__(self, name):
        def fails(*_, **__):
            raise StoreFailed("the disk is gone")

        return fails


def test_an_index_that_fails_costs_nothing_but_time(kept):
    store, _, here = kept

    assert "The zeppelin is grey." in answer(Search("zeppelin"), store, here, index=Broken()).text
    assert (
        "The zeppelin is grey."
        in answer(Retrieve(topic="zeppelin"), store, here, index=Broken()).text
    )


def test_an_index_that_cannot_be_opened_is_told_once_and_tried_again(caplog):
    opened = []

    def fails():
        opened.append(1)
        raise StoreFailed("somebody planted a link")

    async def run():
        store = RamStore()
        StoreTalk(store).turn("hello", "hi")
        keeper = Keeper(lambda: store, time.monotonic)
        keeper.open()
        follower = Follower(fails, keeper, Background(lambda *_: None))
        for _ in range(3):
            await asyncio.to_thread(follower._stint, store)
        trouble = follower.trouble
        await follower.close()
        return trouble

    assert asyncio.run(run()) == "StoreFailed"
    assert opened == [1, 1, 1]
    assert caplog.text.count("searches look through the store instead") == 1


# --- settings
# --------------------------------------------------------------------------------------------------


def test_the_index_is_switched_off_by_file_or_environment(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("[search]\nenabled = false\n")
    by_file = {"HOTSET_CONFIG": str(file)}

    assert load(environ={"HOTSET_CONFIG": "/nowhere.toml"}).search
    assert not load(environ={"HOTSET_CONFIG": "/nowhere.toml", "HOTSET_SEARCH": "off"}).search
    assert not load(environ=by_file).search
    assert load(environ={**by_file, "HOTSET_SEARCH": "on"}).search


@pytest.mark.parametrize(
    "said", ["[search]\nenabled = 3\n", "[search]\nspeed = 1\n", "search = 3\n"]
)
def test_a_setting_that_makes_no_sense_is_told(tmp_path, said):
    file = tmp_path / "config.toml"
    file.write_text(said)

    with pytest.raises(BadConfig, match="search"):
        load(environ={"HOTSET_CONFIG": str(file)})


@pytest.mark.slow
def test_the_model_finds_by_meaning_what_it_asks_for_in_other_words(world):
    talk, upstream, folder = world(
        Say("the vehicle's motor has failed"), searching("automobile engine"), Say("The motor.")
    )
    talk.say("Hello.")
    wait(lambda: is_followed(folder))

    talk.say("What was it?")

    assert "the vehicle's motor has failed" in last_request(upstream).split("best matches")[1]
