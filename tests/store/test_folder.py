"""The folder is its owner's alone, whatever the umask, and is not reached through planted links."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from hotset.errors import StoreFailed
from hotset.nouns.turn import Event
from hotset.store.connection import Tuning
from hotset.store.sqlite import SqliteStore
from hotset.testing.store_talk import StoreTalk, kept

_TUNING = Tuning(ballast_bytes=4096)


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.row("V17")
def test_files_are_0600_and_folders_0700_under_any_umask(tmp_path, umask):
    with SqliteStore.open(tmp_path / "new" / "deep" / "s", _TUNING) as store:
        StoreTalk(store).turn("hello", "hi")
        list(store.sessions())
        names = {path.name for path in store.folder.iterdir()}
        assert {"store.db", "store.db-wal", "store.db-shm", "ballast"} <= names
        for path in store.folder.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        for folder in (store.folder, store.folder.parent, store.folder.parent.parent):
            assert stat.S_IMODE(folder.stat().st_mode) & 0o077 == 0 or folder != store.folder
        assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700


@pytest.mark.row("V17")
def test_modes_that_somebody_widened_are_narrowed_again(tmp_path):
    with SqliteStore.open(tmp_path / "s", _TUNING):
        pass
    (tmp_path / "s").chmod(0o755)
    (tmp_path / "s" / "store.db").chmod(0o644)
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        kept(store, Event("x", 1.0))
        assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
        for path in store.folder.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


@pytest.mark.row("V17")
@pytest.mark.parametrize(
    "name",
    [
        "store.db",
        "store.db-wal",
        "store.db-shm",
        "ballast",
        "store.opening",
        "store.in-use",
        "store.seal",
    ],
)
def test_a_planted_link_is_refused_and_its_target_is_left_alone(tmp_path, name):
    folder = tmp_path / "s"
    folder.mkdir(mode=0o700)
    target = tmp_path / "precious"
    target.write_bytes(b"precious")
    target.chmod(0o644)
    (folder / name).symlink_to(target)
    with pytest.raises(StoreFailed, match="symbolic link"):
        SqliteStore.open(folder, _TUNING)
    assert target.read_bytes() == b"precious"
    assert stat.S_IMODE(target.stat().st_mode) == 0o644


@pytest.mark.row("V17")
def test_a_folder_that_is_a_link_is_refused_and_one_below_a_link_is_not(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(StoreFailed, match="symbolic link"):
        SqliteStore.open(tmp_path / "link", _TUNING)
    with SqliteStore.open(tmp_path / "link" / "s", _TUNING) as store:
        assert store.folder == tmp_path / "real" / "s"


@pytest.mark.row("V17")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_or_file_of_another_user_is_refused(tmp_path):
    with SqliteStore.open(tmp_path / "s", _TUNING):
        pass
    os.chown(tmp_path / "s" / "store.db", 12345, -1)
    with pytest.raises(StoreFailed, match="another user"):
        SqliteStore.open(tmp_path / "s", _TUNING)
    os.chown(tmp_path / "s", 12345, -1)
    with pytest.raises(StoreFailed, match="another user"):
        SqliteStore.open(tmp_path / "s", _TUNING)


@pytest.mark.parametrize("planted", ["folder", "fifo"])
def test_something_else_at_the_path_is_told(tmp_path, planted):
    (tmp_path / "s").mkdir()
    path = tmp_path / "s" / "store.db"
    path.mkdir() if planted == "folder" else os.mkfifo(path)
    with pytest.raises(StoreFailed, match=r"store\.db"):
        SqliteStore.open(tmp_path / "s", _TUNING)


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path):
    (tmp_path / "s").write_text("a file")
    for folder in (tmp_path / "s", tmp_path / "s" / "below"):
        with pytest.raises(StoreFailed, match="folder"):
            SqliteStore.open(folder, _TUNING)


def test_many_threads_open_a_new_folder_at_once(tmp_path):
    def act(number):
        with SqliteStore.open(tmp_path / "s", _TUNING) as store:
            kept(store, Event(f"e{number}", 1.0))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(act, range(16)))
    with SqliteStore.open(tmp_path / "s", _TUNING) as store:
        assert len(list(store.events())) == 16
