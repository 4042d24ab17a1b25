"""A large import beside a proxy that serves: nobody waits for it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from hotset.errors import BadInput
from hotset.nouns.message import DialectName
from hotset.nouns.page import ROOT, Gist, Kind, Page, PageId, Role, SessionId, digest
from hotset.nouns.turn import Session
from hotset.store.exchange import write_lines
from hotset.store.port import Blob, Row
from hotset.store.sqlite import SqliteStore
from hotset.surfaces.proxy.address import Address
from hotset.testing import Say, ScriptedUpstream
from tests.campaign import sample
from tests.proxy.test_killed import serving
from tests.proxy.wire import DIALECTS, post, question
from tests.waiting import ask, wait_until

_PAGE_BYTES = 20_000
_SESSION = SessionId("s0123456789a")


def _rows(size: int) -> Iterator[Row]:
    """An export of about so many bytes, of tool results that do not compress well."""
    rng = random.Random(2)
    for number in range(size // _PAGE_BYTES):
        yield Blob(digest(content := _content(rng, number)), content)
    yield Session(_SESSION, "", "agent", DialectName.ANTHROPIC, 1000.0, "what was imported")
    rng = random.Random(2)
    yield from (_page(number, _content(rng, number)) for number in range(size // _PAGE_BYTES))


def _page(number: int, content: bytes) -> Page:
    id, place = PageId(f"p{number:015x}"), (_SESSION, "agent", number + 1, 0)
    said = (Kind.TOOL_RESULT, Role.TOOL, None, digest(content), len(content))
    return Page(id, *place, *said, "text/plain", 1000.0, ROOT, 0)


def _content(rng: random.Random, number: int) -> bytes:
    return b"result %d " % number + rng.randbytes(_PAGE_BYTES // 2 - 10).hex().encode()


def _calls(address: Address, name: str, over: threading.Event) -> list[str]:
    """What was wrong with its replies."""
    wrong: list[str] = []
    for number in range(1_000_000):
        if over.is_set():
            return wrong
        dialect, stream = DIALECTS[number % 3], number % 2 == 0
        answer = post(
            address, dialect, question(dialect, f"{name} asks question {number}", stream=stream)
        )
        if (
            answer.header("x-hotset-degraded")
            or b": hotset: " in answer.body
            or not answer.header("x-hotset-session")
        ):
            wrong.append(f"{number}: {answer.header('x-hotset-degraded')}")
    return wrong


@pytest.mark.row("C9")
@pytest.mark.slow
def test_no_call_waits_for_an_import(tmp_path):
    """1 GB in the campaign."""
    export = tmp_path / "export.jsonl"
    with export.open("wb") as file:
        file.writelines(write_lines(_rows(sample(25, 1000) << 20)))
    over = threading.Event()
    with (
        ScriptedUpstream(lambda _: Say("a reply")) as upstream,
        serving(tmp_path / "data", upstream.url) as up,
        ThreadPoolExecutor(3) as pool,
    ):
        asking = [pool.submit(_calls, up.address, f"client {n}", over) for n in range(3)]
        try:
            wait_until(lambda: (ask(up.address) or {"kept": 0})["kept"] > 3)
            begun = time.monotonic()
            command = [
                sys.executable,
                "-m",
                "hotset",
                "import",
                str(export),
                "--data",
                str(up.folder),
                "--json",
            ]
            told = subprocess.run(
                command, capture_output=True, timeout=sample(120, 3600), check=False
            )
        finally:
            over.set()
        took = time.monotonic() - begun
        assert told.returncode == 0, told.stderr
        assert [each.result(120) for each in asking] == [[], [], []]
        status = ask(up.address)
        print(
            f"imported in {took:.1f} s beside {status['requests']} calls, of which "
            f"{status['late']} were late"
        )
        assert status["requests"] > 5 + took  # it did serve meanwhile
        assert (status["late"], status["bypassed"]) == (0, 0)
        up.settle()
        assert up.stop() == 0
    with SqliteStore.open(tmp_path / "data") as store:
        assert store.census().pages > (sample(25, 1000) << 20) // _PAGE_BYTES


def test_an_import_that_was_killed_leaves_a_part_that_is_whole_and_goes_on_when_it_is_run_again(
    tmp_path,
):
    export, folder = tmp_path / "export.jsonl", tmp_path / "data"
    with export.open("wb") as file:
        file.writelines(write_lines(_rows(6 << 20)))
    total = 2 * ((6 << 20) // _PAGE_BYTES) + 1
    command = [
        sys.executable,
        "-m",
        "hotset",
        "import",
        str(export),
        "--data",
        str(folder),
        "--json",
    ]
    with SqliteStore.open(folder) as store:
        importing = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: store.census().blobs > 20)
        importing.kill()
        importing.wait()
        there = store.census()
        assert there.blobs + there.pages + there.sessions < total
        assert list(store.verify()) == []
        again = subprocess.run(command, capture_output=True, check=True, timeout=120)
        assert json.loads(again.stdout)["new"] == total - there.blobs - there.pages - there.sessions
        assert list(store.verify()) == []


def test_an_import_that_is_wrong_at_its_end_changes_nothing(tmp_path):
    with SqliteStore.open(tmp_path / "data") as store:
        for wrong in (
            Gist(PageId("p-none"), 0, (), (), ()),
            replace(_page(1, _content(random.Random(2), 1)), session=SessionId("s-none")),
        ):
            with pytest.raises(BadInput):
                store.load([*_rows(1 << 20), wrong])
            assert store.census().blobs == 0
