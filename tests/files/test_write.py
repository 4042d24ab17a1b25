"""Files that are written whole or not at all: also on a full disk, and by a process that is
killed."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from hotset.errors import DiskFull, StoreFailed
from hotset.files.write import (
    create_file,
    replace_file,
    write_atomically,
    write_error,
    write_output,
)
from tests.waiting import wait_until

WRITE_FOR_EVER = """
import sys
from pathlib import Path
from hotset.files.write import write_atomically

for number in range(10_000_000):
    write_atomically(Path(sys.argv[1]), (b"%07d" % number) * 20_000)
    if not number:
        print("written", flush=True)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file"


def test_a_file_is_replaced_whole_closed_to_others_and_nothing_is_left_beside_it(path):
    path.write_bytes(b"old")
    path.chmod(0o644)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [*path.parent.iterdir()] == [path]


def test_a_reader_never_sees_half_of_a_file_even_if_its_writer_is_killed(path):
    with subprocess.Popen(
        [sys.executable, "-c", WRITE_FOR_EVER, str(path)], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout.readline() == b"written\n"
        seen = set()

        def look():
            content = path.read_bytes()
            assert content == content[:7] * 20_000
            seen.add(content[:7])
            return len(seen) >= 20

        wait_until(look)
        writer.kill()
    look()


def test_a_block_that_fails_leaves_the_old_file_and_no_draft(path):
    path.write_bytes(b"old")
    with pytest.raises(TypeError), replace_file(path) as file:
        file.writelines([b"new", None])
    assert path.read_bytes() == b"old"
    assert [*path.parent.iterdir()] == [path]


def test_a_draft_that_a_killed_process_left_is_overwritten(path):
    (path.parent / ".new").write_bytes(b"half of something that was longer")
    with replace_file(path, ".new") as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert [*path.parent.iterdir()] == [path]


def test_where_nothing_can_be_written_the_file_is_as_it_was_and_a_sentence_says_so(path):
    path.write_bytes(b"old")
    with pytest.raises(
        StoreFailed, match="could not be written: No such file or directory; it is as it was"
    ):
        write_atomically(path.parent / "no" / "folder", b"new")
    with (
        _files_of_at_most(1000),
        pytest.raises(StoreFailed, match="File too large; it is as it was"),
    ):
        write_atomically(path, b"x" * 1_000_000)
    assert path.read_bytes() == b"old"
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_called_one(path, number):
    error = write_error(path, OSError(number, os.strerror(number)), "it is as it was")
    assert isinstance(error, DiskFull)
    assert str(error) == f"no room is left to write {path}; it is as it was"


def test_what_must_not_be_there_is_not_replaced(path):
    with create_file(path) as file:
        file.write(b"first")
    with pytest.raises(FileExistsError), create_file(path):
        pass
    path.unlink()
    path.symlink_to(path.parent / "elsewhere")
    with pytest.raises(FileExistsError), create_file(path):
        pass
    assert not (path.parent / "elsewhere").exists()


def test_output_goes_into_a_pipe_and_replaces_a_file(path):
    os.mkfifo(path)
    read = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write_output(path, [b"a", b"b"])
    reader.join()
    assert read == [b"ab"]
    assert stat.S_ISFIFO(path.stat().st_mode)
    path.unlink()
    write_output(path, [b"a", b"b"])
    assert path.read_bytes() == b"ab"


@contextmanager
def _files_of_at_most(size):
    """A limit on the files that this process writes: the nearest to a full disk that needs no
    rights."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
