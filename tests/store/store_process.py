"""Processes that the fault tests start: writers that are killed, writers that share a folder.

It stays single-threaded while it forks, which pytest's own process could not promise.
"""

import contextlib
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from hotset.errors import Conflict
from hotset.nouns.deposit import PageAdded, PlanMade, Remembered
from hotset.nouns.memory import MemoryId, MemoryLink, MemoryUse, Relation, Used
from hotset.nouns.page import Kind, PageId, SessionId, digest
from hotset.nouns.window import SentRequest
from hotset.store.connection import Tuning
from hotset.store.sqlite import SqliteStore
from hotset.testing.store_memory_contract import fact
from hotset.testing.store_talk import StoreTalk, id_of, kept, shows

_TUNING = Tuning(ballast_bytes=0, checkpoint_pages=50)
_AT_ONCE = 3  # what a writer hands over together


def content_of(writer, number):
    """What a writer keeps as its n-th note: the same for whoever asks."""
    rng = random.Random(f"{writer}:{number}")
    return rng.randbytes(rng.choice((5, 200, 6000))) + f"{writer}:{number}".encode()


def killed_writers(folder, seed, kills):
    """Kills a writer again and again; after each kill everything that it had acknowledged must be
    there."""
    rng = random.Random(seed)
    folder = Path(folder)
    with SqliteStore.open(folder, _TUNING) as store:
        turn = StoreTalk(store).turn("hello", "hi")
        session, id = turn.session, id_of(store, turn)
    acknowledged = {}
    reopened = []
    for round_number in range(kills):
        acks = _kill_one(folder, (session, id), f"{seed}-{round_number}", rng)
        began = time.perf_counter()
        store = SqliteStore.open(folder, _TUNING)
        store.census()
        reopened.append((time.perf_counter() - began) * 1000)
        with store:
            for number, page in acks:
                _expect(store, page, content_of(f"{seed}-{round_number}", number))
                acknowledged[page] = (f"{seed}-{round_number}", number)
            _expect_whole_deposits(store)
    with SqliteStore.open(folder, _TUNING) as store:
        for page, (writer, number) in acknowledged.items():
            _expect(store, page, content_of(writer, number))
        damage = [str(each) for each in store.verify()]
    return {"acknowledged": len(acknowledged), "damage": damage, "reopened_ms": reopened}


def contending_writers(folder, writers, versions):
    """Several processes write the next version of one memory, each again and again until it was
    first."""
    children = []
    for writer in range(writers):
        pid = os.fork()
        if pid == 0:
            _child(lambda writer=writer: _write_versions(Path(folder), writer, versions))
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    with SqliteStore.open(Path(folder), _TUNING) as store:
        every = [
            (memory.version, *memory.text.split(" by "))
            for memory in store.memory_versions(fact("shared").id)
        ]
        uses = sum(each.read for each in store.memory_uses().values())
        damage = [str(each) for each in store.verify()]
    return {"versions": every, "conflicts": uses, "damage": damage}


def shared_writers(folder, writers, notes):
    """Several processes open one folder at once, which does not exist yet, and write as fast as
    they can."""
    children = {}
    for writer in range(writers):
        out, into = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(out)
            _child(lambda writer=writer, into=into: _write_notes(Path(folder), writer, notes, into))
        os.close(into)
        children[pid] = out
    reports = []
    for pid, out in children.items():
        with os.fdopen(out) as file:
            reports.append(json.loads(file.read() or "{}"))
        os.waitpid(pid, 0)
    lost = []
    with SqliteStore.open(Path(folder), _TUNING) as store:
        for writer, report in enumerate(reports):
            for number, page in enumerate(report.get("pages", ())):
                try:
                    _expect(store, page, content_of(writer, number))
                except Exception as error:
                    lost.append(str(error))
        damage = [str(each) for each in store.verify()]
        pages = store.census().pages
    waits = sorted(wait for report in reports for wait in report.get("waits", ()))
    errors = [
        report.get("error", "no report") for report in reports if report.get("error", "no report")
    ]
    return {
        "errors": errors,
        "lost": lost,
        "damage": damage,
        "pages": pages,
        "p99_ms": waits[int(len(waits) * 0.99)],
    }


def _kill_one(folder, place, writer, rng):
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(out)
        _child(lambda: _write_for_ever(folder, *place, writer, into))
    os.close(into)
    with os.fdopen(out) as acks:
        lines = []
        wanted = rng.choice((0, 1, 2, 5, 10, 25))
        while len(lines) < wanted and (line := acks.readline()):
            lines.append(line)
        time.sleep(rng.random() * 0.004)  # the moment of the kill is the point of the test
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        lines += acks.readlines()
    return [
        (int(number), PageId(page))
        for number, page in (line.split() for line in lines if line.endswith("\n"))
    ]


def _write_for_ever(folder, session, id, writer, into):
    """Notes in batches; behind each batch its forms, so that a kill may fall between and inside of
    both."""
    store = SqliteStore.open(folder, _TUNING)
    number = 0
    while True:
        batch = [
            store.keep(
                PageAdded(
                    SessionId(session), writer, Kind.FINDING, content_of(writer, number + i), 1.0
                )
            )
            for i in range(_AT_ONCE)
        ]
        forms = [_form_of(writer, number + i) for i in range(_AT_ONCE)]
        planned = store.keep(PlanMade(id, SentRequest(forms[-1].spot.chain, 1.0), tuple(forms)))
        memories = tuple(
            _memory_of(writer, number + i, run=f"{writer}:{number}") for i in range(_AT_ONCE)
        )
        links = tuple(
            MemoryLink(memories[0].id, other.id, Relation.RELATED_TO, 1.0, memories[0].run)
            for other in memories[1:]
        )
        remembered = store.keep(Remembered(memories, links))
        for future in batch:
            os.write(into, f"{number} {future.result().pages[0]}\n".encode())
            number += 1
        planned.result()
        for i, row in enumerate(forms, number - _AT_ONCE):
            os.write(into, f"{i} {row.spot.chain}\n".encode())
        remembered.result()
        for i, memory in enumerate(memories, number - _AT_ONCE):
            os.write(into, f"{i} {memory.id}\n".encode())


def _form_of(writer, number):
    content = content_of(writer, number)
    return replace(shows(digest(content)), text=content)


def _memory_of(writer, number, **traits):
    return fact(f"{writer}-{number}", text=content_of(writer, number).hex(), **traits)


def _write_versions(folder, writer, versions):
    shared = fact("shared", text="0 by nobody")
    with SqliteStore.open(folder, _TUNING) as store:
        kept(store, Remembered((shared,)))
        for _ in range(versions):
            _add_one(store, shared.id, f"w{writer}")


def _add_one(store, id, who):
    """Counts on from the latest version; whoever was second reads again."""
    while True:
        latest = store.memory(id)
        try:
            text = f"{int(latest.text.split()[0]) + 1} by {who}"
            kept(store, Remembered((replace(latest, version=latest.version + 1, text=text),)))
        except Conflict:
            kept(store, Remembered(uses=(MemoryUse(id, Used.READ, 1.0),)))
        else:
            return


def _write_notes(folder, writer, notes, into):
    report = {"error": "", "pages": [], "waits": []}
    try:
        with SqliteStore.open(folder, _TUNING) as store:
            session = StoreTalk(store, key=f"w{writer}").turn("hello", "hi").session
            for number in range(notes):
                began = time.perf_counter()
                note = kept(
                    store,
                    PageAdded(session, f"w{writer}", Kind.FINDING, content_of(writer, number), 1.0),
                )
                report["waits"].append((time.perf_counter() - began) * 1000)
                report["pages"].append(note.pages[0])
    except Exception as error:
        report["error"] = f"{type(error).__name__}: {error}"
    with os.fdopen(into, "w") as file:
        json.dump(report, file)


def _child(act):
    """A forked child never returns into its parent's code."""
    with contextlib.suppress(BaseException):
        act()
    os._exit(0)


def _expect_whole_deposits(store):
    """What was remembered together is there together, or not at all."""
    links = Counter(link.run for link in store.memory_links())
    for run, versions, _ in store.memory_runs():
        if (versions, links.pop(run, 0)) != (_AT_ONCE, _AT_ONCE - 1):
            raise AssertionError(f"of {run} only a part is there")
    if links:
        raise AssertionError("links without their memories")


def _expect(store, page, content):
    if page.startswith("sem-"):
        if store.memory(MemoryId(page)).text != content.hex():
            raise AssertionError(f"{page} came back changed")
        return
    if not page.startswith("p"):
        if [row.text for row in store.table([page]).shown.values()] != [content]:
            raise AssertionError(f"the form of {page} is lost or changed")
        return
    found = store.content(store.page(PageId(page)).digest)
    if found != content:
        raise AssertionError(f"page {page} came back changed")


if __name__ == "__main__":
    act = {"killed": killed_writers, "shared": shared_writers, "contending": contending_writers}[
        sys.argv[1]
    ]
    print(json.dumps(act(sys.argv[2], *map(int, sys.argv[3:]))))
