"""Files and folders of ours, whatever somebody put in their place."""

from __future__ import annotations

import os
import socket
import stat

import pytest

from hotset.errors import StoreFailed
from hotset.files.open import NotRegular, open_private, open_regular
from hotset.files.private_folder import private_folder


def _link(path):
    (path.parent / "target").write_text("somebody else's")
    path.symlink_to(path.parent / "target")


def _pipe(path):
    os.mkfifo(path)


def _folder(path):
    path.mkdir()


def _socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)  # the whole path may be too long for one


@pytest.mark.parametrize("plant", [_link, _pipe, _folder, _socket])
def test_what_is_no_regular_file_is_refused_and_neither_followed_nor_waited_for(
    tmp_path, monkeypatch, plant
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "file"
    plant(path)
    with pytest.raises(NotRegular):
        open_private(path)
    with pytest.raises((NotRegular, OSError)):
        open_regular(path)
    if plant is _link:
        assert (tmp_path / "target").read_text() == "somebody else's"


def test_a_file_of_ours_is_made_closed_to_others_and_is_closed_where_it_was_open(tmp_path):
    path = tmp_path / "file"
    for before in (None, 0o644, 0o400):
        if before is not None:
            path.chmod(before)
        if before == 0o400 and os.geteuid() != 0:
            with pytest.raises(StoreFailed, match="nothing can be added"):
                open_private(path)
            continue
        os.close(open_private(path))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_reading_makes_and_changes_nothing(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(FileNotFoundError):
        open_regular(path)
    path.write_bytes(b"abc")
    path.chmod(0o644)
    file = open_regular(path)
    assert os.read(file, 10) == b"abc"
    os.close(file)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_private_folder_is_made_with_its_parents_closed_to_others_and_a_read_only_one_stays_so(
    tmp_path,
):
    folder = private_folder(tmp_path / "a" / "b")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    assert private_folder(folder) == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o555)
    private_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o500


def test_a_link_is_no_private_folder_and_one_that_is_gone_is_not_made_unasked(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(StoreFailed, match="symbolic link"):
        private_folder(tmp_path / "link")
    with pytest.raises(StoreFailed, match="is gone"):
        private_folder(tmp_path / "gone", makes=False)
    assert not (tmp_path / "gone").exists()
