"""What was acknowledged survives the loss of power, at whatever write it happens."""

import random
from dataclasses import replace

import pytest
from store_disks import PowerCutDisk

from hotset.errors import HotsetError, PageDamaged
from hotset.nouns.deposit import HiddenKept, PageAdded, PlanMade, Remembered
from hotset.nouns.memory import MemoryLink, MemoryUse, Relation, Used, Uses
from hotset.nouns.page import Kind, digest
from hotset.nouns.window import Hidden, SentRequest, Spot
from hotset.store.connection import Tuning
from hotset.store.sqlite import SqliteStore
from hotset.testing.store_memory_contract import fact
from hotset.testing.store_talk import StoreTalk, id_of, kept, shows

_PLAIN = Tuning(ballast_bytes=0)


def _live_through_cuts(tmp_path, seed, cuts, synchronous):
    """One store that goes on living, and images of its disk at `cuts` random moments."""
    images = tmp_path / "images"
    images.mkdir()
    disk = PowerCutDisk(images, seed, cuts)
    rng = random.Random(seed + 1)
    tuning = Tuning(ballast_bytes=0, vfs=disk.name, synchronous=synchronous, checkpoint_pages=30)
    with SqliteStore.open(tmp_path / "live", tuning) as store:
        turn = StoreTalk(store).turn("hello", "hi")
        session, id = turn.session, id_of(store, turn)
        disk.start(chance=0.05)
        while not disk.done:
            content = rng.randbytes(rng.choice((10, 300, 5000)))
            kind = rng.random()
            if kind < 0.3:
                memory = fact(content.hex()[:40], text=content.hex())
                link = MemoryLink(memory.id, memory.id, Relation.RELATED_TO)
                if kind < 0.1:
                    kept(store, Remembered((memory,)))
                    memory = replace(memory, version=2, why="again")
                kept(store, Remembered((memory,), (link,), (MemoryUse(memory.id, Used.READ, 1.0),)))
                disk.acknowledged.append((memory.id, content))
            elif kind < 0.6:
                note = kept(store, PageAdded(session, "a", Kind.FINDING, content, 1.0))
                disk.acknowledged.append((note.pages[0], content))
            else:
                row = replace(shows(digest(content)), text=content)
                kept(store, PlanMade(id, SentRequest(row.spot.chain, 1.0), (row,)))
                kept(store, HiddenKept(id, Hidden(row.spot.chain, (content[::-1],))))
                disk.acknowledged.append((row.spot.chain, content))
        acknowledged = list(disk.acknowledged)
        disk.start(chance=0)
    disk.unregister()
    return disk.images, acknowledged


def _survived(image, acknowledged):
    """Every acknowledged page, and nothing damaged; a sentence where that is not so."""
    try:
        store = SqliteStore.open(image, _PLAIN)
    except PageDamaged as error:  # by its seal, which is as new as it was when the power went
        return f"lost: {error}"
    with store:
        for id, content in acknowledged:
            try:
                found = _found(store, id)
            except HotsetError as error:
                return f"lost: {error}"
            if found != content:
                return "changed"
        damage = list(store.verify())
        return f"damaged: {damage}" if damage else ""


def _found(store, id):
    if id.startswith("sem-"):
        whole = [link.of for link in store.memory_links(id)] == [id] and store.memory_uses(
            [id]
        ) == {id: Uses(read=1, last=1.0)}
        return bytes.fromhex(store.memory(id).text) if whole else b"a part"
    return store.content(store.page(id).digest) if id.startswith("p") else _form(store, id)


def _form(store, chain):
    """What is shown for a message, if the rest of its table fits to it."""
    table = store.table([chain])
    text = table.shown[Spot(chain, 0)].text if table.shown else b""
    return (
        text
        if table.hidden == {chain: Hidden(chain, (text[::-1],))}
        and table.sent == SentRequest(chain, 1.0)
        else b"lost"
    )


@pytest.mark.row("V1")
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.slow
def test_nothing_acknowledged_is_lost_in_300_power_cuts(tmp_path, seed):
    images, acknowledged = _live_through_cuts(tmp_path, seed, 100, "FULL")
    assert len(images) == 100
    for image, count in images:
        assert _survived(image, acknowledged[:count]) == ""


@pytest.mark.slow
def test_the_same_cuts_do_lose_something_where_commits_are_not_synced(tmp_path):
    """The control: a simulation that cannot fail would prove nothing."""
    images, acknowledged = _live_through_cuts(tmp_path, 1, 100, "NORMAL")
    lost = [told for image, count in images if (told := _survived(image, acknowledged[:count]))]
    assert lost
    assert all("commits are missing" in told for told in lost)
