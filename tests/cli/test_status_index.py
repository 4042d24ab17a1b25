"""What `hotset status` tells of the index."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from contextlib import closing

import pytest

from hotset.index import open_index
from hotset.index.database import DATABASE, EntryRows, Generations
from hotset.nouns.search import Entry, EntryId, Sort
from hotset.sources.history.pages import follow
from hotset.store.sqlite import SqliteStore
from tests.waiting import wait_until

from .conftest import Desk

HEAVY = ("numpy", "tantivy", "tokie", "tree_sitter")


def test_without_an_index_nothing_is_said_of_one(filled: Desk):
    assert filled.run("status", "--json").json()["index"] is None
    assert "index " not in filled.run("status").out
    assert not (filled.data / "index").exists()


def test_an_index_is_told_with_how_far_it_is_behind_the_store(filled: Desk):
    with (
        closing(open_index(filled.data, folds=False)) as index,
        closing(SqliteStore.open(filled.data)) as store,
    ):
        before = filled.run("status", "--json").json()["index"]
        follow(store, index, time.monotonic() + 30)
        followed = filled.run("status", "--json").json()["index"]
        index.fold()
        folded = filled.run("status", "--json").json()["index"]
        writer = index.state().writer
    pages = filled.run("status", "--json").json()["store"]["pages"]

    assert before == {
        "entries": 0, "waiting": 0, "behind": pages, "embedder": "", "writer": None, "building": False, "troubles": []  # noqa: E501
    }  # fmt: skip
    assert followed["entries"] == followed["waiting"] > 0
    assert (followed["behind"], followed["writer"]) == (0, None)
    assert (folded["entries"], folded["waiting"], folded["writer"]) == (
        followed["entries"],
        0,
        writer,
    )
    assert folded["embedder"].startswith("table-")
    assert (
        f"index    {folded['entries']:,} stretches of text, vectors by table-"
        in filled.run("status").out
    )
    assert "no process writes it now" in filled.run("status").out


def test_what_is_behind_and_what_waits_is_told_to_people(filled: Desk):
    with closing(open_index(filled.data, folds=False)) as index:
        index.add(
            [Entry(EntryId("a"), "a", Sort.CODE, "one"), Entry(EntryId("b"), "b", Sort.CODE, "two")]
        )
    with closing(EntryRows(filled.data / "index")) as rows:
        Generations(rows).new("of another embedder")
    told = filled.run("status").out
    assert "2 stretches of text" in told
    assert "behind the store, 2 not folded yet, no vectors yet, a new one is being made" in told


def test_a_damaged_index_is_told_and_left_as_it_is(filled: Desk):
    open_index(filled.data, folds=False).close()
    database = filled.data / "index" / DATABASE
    database.write_bytes(b"no database at all" * 1000)
    told = filled.run("status", "--json").json()
    assert "is damaged; it is made again" in told["index"]["troubles"][0]
    assert told["store"]["turns"] == 4
    assert "trouble  the index: " in filled.run("status").out
    assert database.read_bytes().startswith(b"no database at all")


def test_it_is_told_without_loading_what_searches(filled: Desk):
    open_index(filled.data, folds=False).close()
    code = (
        "import sys; from hotset.surfaces.cli.exit import run; from "
        "hotset.surfaces.cli.tree import hotset;"
        f"run(hotset, ('status', '--json')); print([each for each in {HEAVY} if each in "
        f"sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=filled.project,
        env=filled.environ(),
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert json.loads(ran.stdout)["index"]["entries"] == 0
    assert ran.stderr.decode().strip() == "[]"


@pytest.mark.slow
def test_what_only_the_proxy_knows_of_its_troubles_is_told(desk: Desk, to_upstream):
    away = {
        "HOTSET_EMBEDDING_URL": "http://127.0.0.1:9",
        "HOTSET_EMBEDDING_MODEL": "small",
        "HOTSET_EMBEDDING_SIZE": "3",
    }
    body = {"model": "gpt-test", "messages": [{"role": "user", "content": "hello"}]}
    with desk.serving(env={**to_upstream, **away}) as ready:
        assert desk.run("status", "--json").json()["proxy"]["index"] == []
        headers = {"content-type": "application/json", "authorization": "Bearer k"}
        url = f"{ready['openai_base_url']}/chat/completions"
        with urllib.request.urlopen(
            urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=120
        ) as answer:
            assert answer.status == 200
        wait_until(lambda: "the embeddings endpoint at 127.0.0.1" in desk.run("status").out)
        told = desk.run("status", "--json").json()
    assert told["index"]["troubles"] == told["proxy"]["index"] != []
    assert told["index"]["entries"] > 0
