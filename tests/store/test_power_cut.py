"""What was acknowledged survives the loss of power, at whatever write it happens."""

import random

import pytest
from store_disks import PowerCutDisk

from hotset.errors import HotsetError
from hotset.nouns.deposit import Noted
from hotset.nouns.page import Kind
from hotset.store.connecting import Tuning
from hotset.store.sqlite import SqliteStore
from hotset.testing.store_talk import Talk, kept

_PLAIN = Tuning(ballast_bytes=0)


def _live_through_cuts(tmp_path, seed, cuts, synchronous):
    """One store that goes on living, and images of its disk at `cuts` random moments."""
    images = tmp_path / "images"
    images.mkdir()
    disk = PowerCutDisk(images, seed, cuts)
    rng = random.Random(seed + 1)
    tuning = Tuning(ballast_bytes=0, vfs=disk.name, synchronous=synchronous, checkpoint_pages=30)
    with SqliteStore.open(tmp_path / "live", tuning) as store:
        session = Talk(store).turn("hello", "hi").session
        disk.start(chance=0.05)
        while not disk.done:
            content = rng.randbytes(rng.choice((10, 300, 5000)))
            note = kept(store, Noted(session, "a", Kind.FINDING, content, 1.0))
            disk.acknowledged.append((note.pages[0], content))
        acknowledged = list(disk.acknowledged)
        disk.start(chance=0)
    disk.unregister()
    return disk.images, acknowledged


def _survived(image, acknowledged):
    """Every acknowledged page, and nothing damaged; a sentence where that is not so."""
    with SqliteStore.open(image, _PLAIN) as store:
        for id, content in acknowledged:
            try:
                found = store.content(store.page(id).digest)
            except HotsetError as error:
                return f"lost: {error}"
            if found != content:
                return "changed"
        damage = list(store.verify())
        return f"damaged: {damage}" if damage else ""


@pytest.mark.row("V1")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_acknowledged_is_lost_in_300_power_cuts(tmp_path, seed):
    images, acknowledged = _live_through_cuts(tmp_path, seed, 100, "FULL")
    assert len(images) == 100
    for image, count in images:
        assert _survived(image, acknowledged[:count]) == ""


def test_the_same_cuts_do_lose_something_where_commits_are_not_synced(tmp_path):
    """The control: a simulation that cannot fail would prove nothing."""
    images, acknowledged = _live_through_cuts(tmp_path, 1, 100, "NORMAL")
    lost = [image for image, count in images if _survived(image, acknowledged[:count])]
    assert lost
