"""`hotset index`, and the question that `up` and `wrap` ask: on real projects, in real processes,
on a real terminal."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hotset.index import open_index
from hotset.nouns.deposit import NoteWritten
from hotset.nouns.note import Scope, Space
from hotset.nouns.search import Entry, EntryId, Query, Sort
from hotset.store.sqlite import SqliteStore
from tests.cli.conftest import Desk, Ran, in_a_process
from tests.waiting import wait_until

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"[:36]
FILES = {
    "src/uploads.py": (
        '"""Sends files away."""\n\n\ndef retry_upload(name):\n    '
        '"""Tries again when the wire '
        'breaks."""\n'
    ),
    "src/clock.go": (
        "package clock\n\n// Tick counts marmalades.\nfunc Tick(n int) int {\n\treturn n + 1\n}\n"
    ),
    "README.md": "# Shop\n\nSells marmalade to bears.\n",
    "settings.py": f'GITHUB_TOKEN = "{TOKEN}"\nREGION = "north"\n',
    ".env": f"TOKEN={TOKEN}\n",
    ".gitignore": "build/\n",
    "build/out.py": "def ignored_by_git(): ...\n",
    "logo.png": "\x89PNG\r\n\x1a\n\0\0\0",
}


@pytest.fixture
def shop(desk: Desk) -> Desk:
    """A desk with a small project on it."""
    write(desk.project, FILES)
    return desk


def write(root: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "latin-1")


def everything_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


class Terminal:
    """A person's: what they see, and what they type."""

    def __init__(self, desk: Desk, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            desk.command(*arguments),
            env=desk.environ({"TERM": "xterm", **(env or {})}),
            cwd=desk.project,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        self.seen = b""

    def sees(self, words: bytes) -> None:
        while words not in self.seen:
            assert self._read(), self.seen.decode()

    def types(self, text: bytes) -> None:
        os.write(self._ours, text)

    def ends(self) -> tuple[int, str]:
        while self._read():
            pass
        os.close(self._ours)
        return self.process.wait(120), self.seen.decode()

    def _read(self) -> bool:
        try:
            piece = os.read(self._ours, 65536)
        except OSError:  # the other end is closed
            return False
        self.seen += piece
        return bool(piece)


def on_a_terminal(
    desk: Desk, *arguments: str, typed: bytes = b"", env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    terminal = Terminal(desk, *arguments, env=env)
    if typed:
        terminal.sees(b"Index it?")
        terminal.types(typed)
    return terminal.ends()


@pytest.mark.row("V17")
def test_nobody_there_to_be_asked_is_told_what_to_do_and_nothing_is_read(shop: Desk):
    ran = in_a_process(shop, ("index",), shop.environ(), b"")

    assert (ran.code, ran.raw) == (2, b"")
    assert "hotset index --yes" in ran.err
    assert not shop.data.exists()


@pytest.mark.row("V3")
def test_a_project_is_indexed_and_told_of_in_numbers(shop: Desk):
    ran = in_a_process(shop, ("index", "--yes"), shop.environ(), b"")

    assert ran.code == 0
    assert "5 files" in ran.out
    assert "1 file of secrets" in ran.out
    assert "1 binary" in ran.out
    assert "1 ignored by the project" in ran.out
    assert "hotset search" in ran.err
    assert "\x1b" not in ran.out + ran.err


def test_what_is_left_out_is_named_in_every_run_and_in_the_status(shop: Desk):
    first = settled(shop).run("index")
    walked = shop.run("index", "--json").json()
    status = shop.run("index", "--status")
    told = shop.run("index", "--status", "--json").json()["code"]

    for line in (
        "1 file of secrets: .env",
        "1 binary: logo.png",
        "1 ignored by the project: build",
    ):
        assert line in first.out
        assert line in status.out
    assert walked["examples"]["a file of secrets"] == [".env"]
    assert walked["examples"] == told["examples"]
    assert walked["skipped"] == told["refused"]


@pytest.mark.row("V3")
def test_what_did_not_change_is_not_read_again(shop: Desk):
    shop.run("index", "--yes")
    again = shop.run("index", "--json").json()
    write(shop.project, {"src/uploads.py": "def retry_upload_twice(): ...\n"})
    after = shop.run("index", "--json").json()

    assert (again["files"], again["changed"]) == (5, 0)
    assert (after["files"], after["changed"]) == (5, 1)


def settled(desk: Desk) -> Desk:
    """Indexed, long after it was written."""
    for path in (*desk.project.rglob("*"), desk.project):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    assert desk.run("index", "--yes").code == 0
    wait_until(lambda: "changed" in desk.run("index").out)
    return desk


@pytest.mark.parametrize("lost", ["index", "code.db"])
@pytest.mark.rest_slow
def test_an_index_that_was_lost_is_made_again_though_no_file_changed(shop: Desk, lost: str):
    settled(shop)
    for each in shop.data.glob(f"{lost}*"):
        shutil.rmtree(each) if each.is_dir() else each.unlink()

    assert shop.run("index").code == 0
    assert "src/uploads.py" in found(shop, "retry_upload")


@pytest.mark.parametrize("damaged", ["index/entries.db", "code.db"])
@pytest.mark.rest_slow
def test_an_index_that_was_damaged_is_made_again_though_no_file_changed(shop: Desk, damaged: str):
    settled(shop)
    (shop.data / damaged).write_bytes(b"no database at all " * 500)

    assert shop.run("index").code == 0
    assert "src/uploads.py" in found(shop, "retry_upload")


@pytest.mark.row("V3")
@pytest.mark.slow
def test_an_unchanged_project_is_watched_and_its_first_change_found(shop: Desk):
    with watching(settled(shop)):
        wait_until(lambda: saved_and_found(shop))


def test_what_nobody_allows_any_more_is_asked_for_though_no_file_changed(shop: Desk):
    settled(shop)
    with SqliteStore.open(shop.data) as store:
        store.keep(NoteWritten(Space("code consent", Scope.MACHINE), "", None, 1.0)).result()

    ran = shop.run("index")

    assert (ran.code, ran.raw) == (2, b"")
    assert "needs your consent" in ran.err


def test_a_folder_in_a_project_means_the_project(shop: Desk):
    assert shop.run("index", "src", "--yes", "--json").json()["project"] == str(shop.project)
    assert shop.run("index", "no-such-folder", "--yes").code == 2


@pytest.mark.row("V3")
@pytest.mark.row("V17")
def test_the_question_says_what_is_read_where_it_is_kept_and_how_to_undo_it(shop: Desk):
    code, seen = on_a_terminal(shop, "index", typed=b"y\n")

    assert code == 0
    for told in (str(shop.project), str(shop.data), "hotset index --revoke", "secrets", "5 files"):
        assert told in seen
    assert "Index it?" not in on_a_terminal(shop, "index")[1]


@pytest.mark.row("V17")
def test_a_no_is_remembered_and_nothing_is_read(shop: Desk):
    code, seen = on_a_terminal(shop, "index", typed=b"n\n")

    assert code == 1
    assert "Nothing is read" in seen
    assert {path.name.partition(".")[0] for path in shop.data.iterdir()} <= {"store", "ballast"}
    assert shop.run("index", "--status", "--json").json()["answer"] == "denied"
    assert shop.run("index").code == 2


@pytest.mark.row("V3")
@pytest.mark.slow
def test_progress_is_for_whoever_watches(shop: Desk):
    assert on_a_terminal(shop, "index", "--yes")[0] == 0
    assert "fast to search" not in on_a_terminal(shop, "index", "--quiet")[1]
    assert "fast to search" not in in_a_process(shop, ("index",), shop.environ(), b"").err


def test_the_status_tells_what_is_indexed_and_how_fresh_it_is(shop: Desk):
    before = shop.run("index", "--status")
    shop.run("index", "--yes")
    wait_until(lambda: shop.run("index", "--json").json()["changed"] == 0)
    fresh = shop.run("index", "--status", "--json").json()
    write(shop.project, {"src/new.py": "def brand_new(): ...\n"})

    assert (before.code, "not indexed" in before.out) == (1, True)
    assert (fresh["code"]["files"], fresh["answer"], fresh["indexer"]) == (5, "granted", None)
    assert fresh["index"]["embedder"].startswith("table")
    assert shop.run("index", "--status", "--json").json()["fresh"] is False
    assert (
        "something changed since; to bring it up to date: hotset index"
        in shop.run("index", "--status").out
    )


@pytest.mark.row("V17")
def test_secrets_reach_neither_the_index_nor_the_manifest(shop: Desk):
    shop.run("index", "--yes")

    assert shop.run("search", "GITHUB_TOKEN region", "--json").json()[0]["path"] == "settings.py"
    assert TOKEN.encode() not in everything_below(shop.data)


def test_what_is_revoked_is_gone_from_the_disk(shop: Desk):
    shop.run("index", "--yes")
    assert b"marmalade" in everything_below(shop.data)

    ran = shop.run("index", "--revoke")

    assert ran.code == 0
    assert "removed" in ran.err
    assert b"marmalade" not in everything_below(shop.data)
    assert {
        path.name
        for path in shop.data.iterdir()
        if path.name.partition(".")[0] not in ("store", "ballast")
    } <= {"code.indexing"}
    assert shop.run("index", "--status", "--json").json()["answer"] == "unanswered"
    assert shop.run("index").code == 2
    assert "nothing to search yet" in shop.run("search", "marmalade").err
    assert "nothing of this project is indexed" in shop.run("index", "--revoke").err


@pytest.mark.slow
def test_what_is_revoked_is_gone_from_the_disk_though_another_process_has_the_index_open(
    shop: Desk,
):
    shop.run("index", "--yes")
    with closing(open_index(shop.data)) as held:
        assert held.fold()  # it has the role now, and the files of the index open
        assert held.search(Query("marmalade")).hits

        ran = in_a_process(shop, ("index", "--revoke", "--json"), shop.environ(), b"")

        assert (ran.code, ran.json()) == (
            0,
            {"project": str(shop.project), "revoked": True, "held_by": None},
        )
        left = everything_below(shop.data)
        assert b"marmalade" not in left
        assert b"uploads" not in left
        assert not held.search(Query("marmalade")).hits
        held.add([Entry(EntryId("1"), "w", Sort.PAGE, "it goes on with what others add")])
        assert held.search(Query("others add")).hits


@pytest.mark.slow
def test_a_revocation_says_one_thing(shop: Desk):
    shop.run("index", "--yes")
    with closing(open_index(shop.data)) as held:
        assert held.fold()
        ran = in_a_process(shop, ("index", "--revoke"), shop.environ(), b"")

    assert ran.code == 0
    assert "nothing made from the files" in ran.err
    assert "run this again" not in ran.err
    assert shop.run("index", "--revoke", "--json").json()["revoked"] in (True, False)


def test_what_was_never_indexed_can_be_revoked(desk: Desk):
    ran = desk.run("index", "--revoke")

    assert (ran.code, "nothing of this project is indexed" in ran.err) == (0, True)
    assert not desk.data.exists()


@pytest.mark.slow
def test_an_interrupted_run_says_that_the_next_one_goes_on_and_it_does(desk: Desk):
    write(desk.project, {f"notes/{number:04}.txt": f"note {number}\n" for number in range(3000)})
    run = desk.start("index", "--yes", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until((desk.data / "code.indexing").exists)

    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=120)

    assert run.returncode == 130
    assert b"goes on from here" in said
    if (desk.data / "code.db").exists():
        status = desk.run("index", "--status")
        assert "something changed since" not in status.out
        assert "interrupted" in status.out
        assert desk.run("index", "--status", "--json").json()["unfinished"] is True
    assert desk.run("index", "--json").json()["files"] == 3000
    assert desk.run("index", "--status", "--json").json()["unfinished"] is False


@contextmanager
def watching(desk: Desk, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    how = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with desk.start("index", "--watch", "--yes", *arguments, **how) as watch:
        assert watch.stderr is not None
        try:
            while b"watching" not in (line := watch.stderr.readline()):
                assert line
            yield watch
        finally:
            watch.kill()


def saved_and_found(desk: Desk) -> bool:
    """A file that somebody saves again and again is found by what it says."""
    with (desk.project / "src/late.py").open("a") as file:
        file.write("def arrives_at_midnight(): ...\n")
    return "src/late.py" in found(desk, '"arrives_at_midnight"')


def found(desk: Desk, words: str) -> list[str]:
    ran = desk.run("search", words, "--type", "code", "--json")
    return [each["path"] for each in ran.json()] if ran.code == 0 else []


def test_a_file_that_is_changed_while_it_is_watched_is_found(shop: Desk):
    with watching(shop):
        wait_until(lambda: saved_and_found(shop))


@pytest.mark.slow
def test_beside_a_watcher_nothing_is_left_to_do(shop: Desk):
    with watching(shop):
        first = shop.run("index")
        write(
            shop.project,
            {"src/later.py": "def later(): ...\n", "new/folder/a.py": "def a(): ...\n"},
        )
        (shop.project / "README.md").unlink()
        second = shop.run("index", "--json")
        watch_too = shop.run("index", "--watch")

    assert (
        first.code,
        "5 files" in first.out,
        "another hotset keeps it up to date" in first.err,
    ) == (0, True, True)
    assert (second.code, second.json()["files"]) == (0, 6)
    assert (watch_too.code, "indexes this project already" in watch_too.err) == (2, True)


@pytest.mark.row("V17")
@pytest.mark.slow
def test_whoever_watches_stops_when_the_permission_is_taken_back(shop: Desk):
    with watching(shop) as watch:
        assert shop.run("index", "--revoke").code == 0
        assert watch.wait(120) == 0

    assert "nothing to search yet" in shop.run("search", "marmalade").err


@pytest.mark.slow
def test_a_watch_ends_with_whoever_started_it(shop: Desk):
    with watching(shop, "--while-stdin") as watch:
        assert watch.stdin is not None
        watch.stdin.close()
        assert watch.wait(120) == 0


AGENT = (sys.executable, "-c", "print('the agent runs')")


@pytest.mark.row("V17")
@pytest.mark.slow
def test_wrap_asks_once_before_the_agent_starts(shop: Desk, to_upstream):
    code, seen = on_a_terminal(shop, "wrap", *AGENT, typed=b"n\n", env=to_upstream)

    assert code == 0
    assert seen.index("Index it?") < seen.index("the agent runs")
    assert "Index it?" not in on_a_terminal(shop, "wrap", *AGENT, env=to_upstream)[1]


@pytest.mark.slow
def test_wrap_asks_nobody_where_nobody_is(shop: Desk, to_upstream):
    ran = shop.run("wrap", *AGENT, env=to_upstream)

    assert (ran.code, ran.out) == (0, "the agent runs\n")
    assert "Index it?" not in ran.err
    assert shop.run("index", "--status", "--json").json()["answer"] == "unanswered"


@pytest.mark.slow
def test_wrap_without_index_does_not_ask(shop: Desk, to_upstream):
    assert "Index it?" not in on_a_terminal(shop, "wrap", "--no-index", *AGENT, env=to_upstream)[1]
    assert shop.run("wrap", "--no-index", "--yes", *AGENT, env=to_upstream).code == 2


@pytest.mark.slow
def test_nobody_is_asked_about_their_home_folder(shop: Desk, to_upstream):
    home = {**to_upstream, "HOTSET_PROJECT": str(shop.home)}

    assert "Index it?" not in on_a_terminal(shop, "wrap", *AGENT, env=home)[1]


@pytest.mark.slow
def test_up_indexes_in_the_background_what_it_is_allowed_to(shop: Desk, to_upstream):
    with shop.serving("--yes", env=to_upstream):
        wait_until(lambda: "src/uploads.py" in found(shop, "retry_upload"))
        wait_until(lambda: saved_and_found(shop))
        indexer = shop.run("index", "--status", "--json").json()["indexer"]

    assert indexer is not None
    wait_until(lambda: not Path(f"/proc/{indexer}").exists() or not Path("/proc").exists())


@pytest.mark.slow
def test_up_reads_nothing_without_an_answer(shop: Desk, to_upstream):
    with shop.serving(env=to_upstream):
        status: Ran = shop.run("index", "--status")

    assert "to index them" in status.out
    assert not (shop.data / "code.db").exists()


@pytest.mark.row("V17")
@pytest.mark.slow
def test_no_module_of_the_project_is_imported_by_what_wrap_starts(shop: Desk, to_upstream):
    for name in ("click", "msgspec", "uvicorn", "numpy", "hotset"):
        write(
            shop.project,
            {f"{name}.py": "open('/'.join(__file__.split('/')[:-1]) + '/imported', 'w')"},
        )
    python, *command = shop.command("wrap", "--yes", sys.executable, "-P", "-c", "input()")
    with subprocess.Popen(
        [python, "-P", *command],
        env=shop.environ(to_upstream),
        cwd=shop.project,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as wrap:
        wait_until((shop.data / "code.db").exists)
        _, said = wrap.communicate(b"\n")

    assert (wrap.returncode, b"no call was kept" in said) == (0, True)
    assert not (shop.project / "imported").exists()
