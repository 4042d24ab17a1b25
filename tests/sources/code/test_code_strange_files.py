"""Bad input by its number in the catalogue of what content and files can be like."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from code_project import GRAMMARS, RamIndex, run, write

from hotset.errors import NotFound
from hotset.files.root import NotTaken, Root, Why
from hotset.sources.code.file_reader import get_file
from hotset.sources.code.indexer import IndexReport
from hotset.sources.code.parsers import Parsers
from hotset.sources.code.scan import ScanLimits, SkippedFiles, scan

_GOOD = {"good.py": "def found():\n    return 'needle'\n"}


@pytest.fixture
def indexed(root: Path, data: Path, parsers: Parsers):
    """Indexes the project with a good file beside whatever is strange in it: the good one is always
    found."""

    def go(limits: ScanLimits | None = None) -> tuple[IndexReport, RamIndex]:
        write(root, _GOOD)
        index = RamIndex()
        report = run(root, index, data, parsers, limits)
        assert "needle" in index.text()
        return report, index

    return go


def test_66_what_is_binary_is_counted_and_not_indexed(root, indexed) -> None:
    write(root, {"a.py": b"x = 1\0\0\1", "b.txt": bytes(range(128, 256)) * 50, "c.png": b"\x89PNG"})
    report, index = indexed()
    assert report.refused[Why.BINARY] == 3
    assert set(index.by_whole) == {"good.py"}


def test_67_a_minified_megabyte_is_not_indexed_and_fifty_are_not_even_read(root, indexed) -> None:
    write(root, {"app.js": "var a=1;" * 100_000, "data.json": '{"a":' + "1" * 500_000 + "}"})
    (root / "huge.js").write_bytes(b"a=1;" * 12_500_000)
    report, index = indexed()
    assert report.refused[Why.MINIFIED] == 1
    assert report.refused[Why.TOO_LARGE] == 1
    assert max(len(entry.text) for entry in index.by_whole["data.json"].values()) <= 6000


def test_68_lines_end_alike_whatever_ended_them_and_keep_their_numbers(root, indexed) -> None:
    body = "".join(f"x{at} = {at}{end}" for at, end in enumerate(["\r\n", "\n", "\r"] * 40))
    write(root, {"mixed.py": body.encode() + b"def last():\r\n    pass\r\n"})
    _, index = indexed()
    entry = next(each for each in index.by_whole["mixed.py"].values() if "def last" in each.text)
    assert "\r" not in entry.text
    assert entry.lines[1] == 122


def test_69_characters_that_hide_or_turn_others_do_not_reach_a_title(root, indexed) -> None:
    write(root, {"a.py": "def f\u202e\u200bg(): pass\n# \U000e0041\ndef h(): pass\n"})
    _, index = indexed()
    titles = "".join(entry.title for entry in index.by_whole["a.py"].values())
    assert not any(character in titles for character in "\u202e\u200b\U000e0041")


def test_70_a_pile_of_accents_is_text_of_bounded_size(root, indexed) -> None:
    write(root, {"zalgo.md": "# Z" + "\u0301" * 200_000 + "\n"})
    _, index = indexed()
    assert max(len(entry.title) for entry in index.by_whole["zalgo.md"].values()) < 1000


def test_71_two_names_that_look_alike_are_two_files(root, indexed) -> None:
    write(root, {"caf\u00e9.py": "a = 1\n", "cafe\u0301.py": "b = 2\n"})
    _, index = indexed()
    assert {"caf\u00e9.py", "cafe\u0301.py"} <= set(index.by_whole)


def test_72_names_that_cannot_be_shown_are_counted(root, indexed, capfd) -> None:
    write(
        root,
        {"new\nline.py": "x", "bidi\u202e.py": "x", "back\\slash.py": "x", "esc\x1b[2J.py": "x"},
    )
    (Path(os.fsdecode(os.fsencode(root) + b"/bad\xff.py"))).write_bytes(b"x")
    report, index = indexed()
    assert report.refused[Why.STRANGE_NAME] == 5
    assert set(index.by_whole) == {"good.py"}
    assert all("\n" not in each for some in report.examples.values() for each in some)


def test_72_names_that_are_no_utf_8_are_counted_without_a_word_on_stderr(
    root, indexed, capfd
) -> None:
    names = (
        b"caf\xe9.py",
        b"[x]{y}!\xff 1.py",
        b"sub/caf\xe9.py",
        b"d\xff/inner.py",
        b"caf\xe9/inner.py",
    )
    write(root, {"sub/cafe.py": "x = 1\n", "caf\u00e9.py": "x = 1\n", "sub/a 1.py": "x = 1\n"})
    for name in names:
        path = Path(os.fsdecode(os.fsencode(root) + b"/" + name))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    report, index = indexed()
    assert report.refused[Why.STRANGE_NAME] == 5
    assert "caf\ufffd.py" in report.examples[Why.STRANGE_NAME]
    assert set(index.by_whole) == {"good.py", "sub/cafe.py", "sub/a 1.py", "caf\u00e9.py"}
    assert capfd.readouterr() == ("", "")


def test_73_a_loop_of_links_is_not_walked(root, indexed) -> None:
    (root / "a").mkdir()
    (root / "a" / "up").symlink_to(root)
    (root / "self").symlink_to("self")
    report, _ = indexed()
    assert report.refused[Why.LINK] == 2


@pytest.mark.row("V17")
def test_74_nothing_outside_of_the_root_is_read_through_a_link(root, tmp_path, indexed) -> None:
    outside = tmp_path / "outside"
    write(outside, {"secret.py": "outsider = 1\n"})
    (root / "file.py").symlink_to(outside / "secret.py")
    (root / "folder").symlink_to(outside)
    report, index = indexed()
    assert report.refused[Why.LINK] == 2
    assert "outsider" not in index.text()
    for path in ("file.py", "folder/secret.py"):
        with pytest.raises(NotFound):
            get_file(root, path)


def test_74_a_folder_that_becomes_a_link_between_scan_and_reading_is_not_followed(
    root, tmp_path
) -> None:
    write(tmp_path / "outside", {"a.py": "outsider"})
    write(root, {"inner/a.py": "insider"})
    with Root(root) as opened:
        list(scan(opened, SkippedFiles()))
        (root / "inner").rename(root / "moved")
        (root / "inner").symlink_to(tmp_path / "outside")
        with pytest.raises(NotTaken):
            opened.read("inner/a.py")


def test_75_a_hard_link_may_be_anything_and_is_taken_only_if_that_is_wanted(
    root, tmp_path, indexed, data, parsers
) -> None:
    write(tmp_path, {"elsewhere": "outsider = 1\n"})
    os.link(tmp_path / "elsewhere", root / "notes.txt")
    report, index = indexed()
    assert report.refused[Why.HARD_LINK] == 1
    assert "outsider" not in index.text()
    index = RamIndex()
    run(root, index, data / "other", parsers, ScanLimits(hard_links=True))
    assert "outsider" in index.text()


def test_76_a_pipe_is_no_file(root, indexed) -> None:
    os.mkfifo(root / "pipe.py")
    report, _ = indexed()
    assert report.refused[Why.SPECIAL] == 1


def test_77_a_device_is_no_file(root, indexed) -> None:
    (root / "zero.py").symlink_to("/dev/zero")
    report, _ = indexed()
    assert report.refused[Why.LINK] == 1


@pytest.mark.parametrize("folder", ["", "inner", "node_modules", "deep/er"])
@pytest.mark.parametrize("kind", ["pipe", "device", "outside", "folder", "huge"])
def test_76_and_77_an_ignore_file_that_is_none_is_reported_and_holds_nobody_up(  # noqa: PLR0917 - fixtures
    folder, kind, root, data, parsers, tmp_path
) -> None:
    write(
        root,
        {"good.py": "x = 1\n", f"{folder}/b.py": "x = 1\n"} if folder else {"good.py": "x = 1\n"},
    )
    ignore = root / folder / ".gitignore"
    match kind:
        case "pipe":
            os.mkfifo(ignore)
        case "device":
            ignore.symlink_to("/dev/zero")
        case "outside":
            ignore.symlink_to(write(tmp_path, {"rules": "x"}) / "rules")
        case "folder":
            ignore.mkdir()
        case _:
            ignore.write_bytes(b"x\n" * 600_000)
    report = run(root, RamIndex(), data, parsers)
    assert report.files == 0
    assert report.examples[Why.STRANGE_IGNORE] == [f"{folder}/.gitignore".lstrip("/")]
    ignore.rmdir() if kind == "folder" else ignore.unlink()
    assert run(root, RamIndex(), data, parsers).files >= 1


@pytest.mark.row("V3")
def test_78_a_file_of_a_terabyte_of_nothing_is_too_large(root, indexed) -> None:
    with (root / "sparse.txt").open("wb") as file:
        file.truncate(1 << 40)
    report, _ = indexed()
    assert report.refused[Why.TOO_LARGE] == 1


def test_79_a_file_that_is_replaced_while_it_is_read_is_never_half_of_each(root) -> None:
    path = root / "changing.txt"
    path.write_bytes(b"a" * 500_000)
    done = threading.Event()

    def rewrite() -> None:
        while not done.is_set():
            for letter in (b"a", b"b"):
                path.write_bytes(letter * 500_000)

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        with Root(root) as opened:
            deadline = time.monotonic() + 0.5
            while time.monotonic() < deadline:
                with suppress(NotTaken):
                    assert len(set(opened.read("changing.txt").data)) <= 1
    finally:
        done.set()
        writer.join()


_UNREADABLE = """
import os, sys
from pathlib import Path
import rignore, re2  # before the rights to do so are gone
sys.path.insert(0, sys.argv[3])
from code_project import RamIndex, run
from hotset.sources.code.parsers import Parsers
run(Path(sys.argv[4]), RamIndex(), Path(sys.argv[4]) / "data", Parsers())  # all that is imported on the way, too
if os.geteuid() == 0:
    os.setegid(65534); os.seteuid(65534)
index = RamIndex()
report = run(Path(sys.argv[1]), index, Path(sys.argv[2]), Parsers())
print(report.refused, sorted(index.by_whole))
"""  # noqa: E501


@pytest.mark.row("V3")
def test_80_what_may_not_be_read_is_reported_and_the_rest_goes_on(root, data, tmp_path) -> None:
    write(root, {"good.txt": "found", "closed.txt": "unreachable", "closed/a.txt": "unreachable"})
    (root / "closed.txt").chmod(0)
    (root / "closed").chmod(0)
    data.mkdir()
    for folder in (data, tmp_path, root):
        folder.chmod(0o777)
    if os.geteuid() == 0:
        os.chown(data, 65534, 65534)
        for parent in tmp_path.parents[:3]:
            parent.chmod(0o755)
    try:
        command = [
            sys.executable,
            "-c",
            _UNREADABLE,
            str(root),
            str(data),
            str(Path(__file__).parent),
            str(write(tmp_path / "warm", {"a.md": "# a"})),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        (root / "closed").chmod(0o700)
    assert "'cannot be read': 2" in done.stdout, done.stderr
    assert "['good.txt']" in done.stdout


_UNREADABLE_STILL = """
import json, os, sys
from pathlib import Path
import rignore, re2  # before the rights to do so are gone
sys.path.insert(0, sys.argv[3])
from code_project import RamIndex, run
from hotset.sources.code.parsers import Parsers
run(Path(sys.argv[4]), RamIndex(), Path(sys.argv[4]) / "data", Parsers())
if os.geteuid() == 0:
    os.setegid(65534); os.setresuid(65534, 65534, 0)
root, index, parsers = Path(sys.argv[1]), RamIndex(), Parsers()
def told():
    return sorted(run(root, index, Path(sys.argv[2]), parsers).examples.get("cannot be read", ()))
said = [told(), told()]
(root / "closed.txt").chmod(0o644)
said += [told(), told()]
(root / "closed").chmod(0o755)
said += [told()]
print(json.dumps([said, sorted(index.by_whole)]))
"""


def test_80_what_may_not_be_read_is_named_in_every_run_until_it_can_be(
    root, data, tmp_path
) -> None:
    write(
        root,
        {"good.txt": "found", "closed.txt": "reached at last", "closed/a.txt": "reached at last"},
    )
    data.mkdir()
    for folder in (data, tmp_path, root):
        folder.chmod(0o777)
    if os.geteuid() == 0:
        for path in (data, *root.rglob("*"), root):
            os.chown(path, 65534, 65534)
        for parent in tmp_path.parents[:3]:
            parent.chmod(0o755)
    (root / "closed.txt").chmod(0)
    (root / "closed").chmod(0)
    warm = write(tmp_path / "warm", {"a.md": "# a"})
    command = [
        sys.executable,
        "-c",
        _UNREADABLE_STILL,
        str(root),
        str(data),
        str(Path(__file__).parent),
        str(warm),
    ]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    said, indexed = json.loads(done.stdout)
    both, one = ["closed", "closed.txt"], ["closed"]
    assert said == [both, both, one, one, []]
    assert indexed == ["closed.txt", "closed/a.txt", "good.txt"]


@pytest.mark.slow
def test_81_ten_thousand_files_of_nothing_are_counted(root, data, parsers) -> None:
    for at in range(100):
        (root / f"d{at}").mkdir()
        for each in range(100):
            (root / f"d{at}" / f"f{each}.txt").write_bytes(b"")
    report = run(root, RamIndex(), data, parsers)
    assert report.refused[Why.EMPTY] == 10_000


def test_81_files_beyond_the_limit_are_counted(root, data, parsers) -> None:
    write(root, {f"f{at}.txt": "x" for at in range(50)})
    report = run(root, RamIndex(), data, parsers, ScanLimits(files=20))
    assert (report.files, report.refused[Why.TOO_MANY]) == (20, 30)


@pytest.mark.parametrize(
    "glob",
    [
        "**/" * 50 + "a",
        "*a" * 60 + "b",
        "{a,b}" * 40,
        "[" * 1000,
        "*" * 5000,
        "a" * 900_000,
        "{" * 2000,
        "\\",
    ],
)
def test_82_an_ignore_file_with_a_catastrophic_pattern_takes_no_time(glob, root) -> None:
    write(root, {".gitignore": glob + "\n", "a" * 200 + ".py": "x = 1\n", "b/c.py": "y = 1\n"})
    began = time.process_time()
    with Root(root) as opened:
        assert list(scan(opened, SkippedFiles()))
    assert time.process_time() - began < 2


def test_88_python_files_are_parsed_and_never_run(root, tmp_path, indexed) -> None:
    trace = tmp_path / "ran"
    write(
        root,
        {"evil.py": f"open({str(trace)!r}, 'w')\n", "conftest.py": f"open({str(trace)!r}, 'w')\n"},
    )
    _, index = indexed()
    assert "evil.py" in index.by_whole
    assert not trace.exists()


def test_89_yaml_tags_are_text(root, tmp_path, indexed) -> None:
    trace = tmp_path / "ran"
    write(root, {"evil.yaml": f"!!python/object/apply:os.system ['touch {trace}']\nkey: 1\n"})
    _, index = indexed()
    assert "!!python/object" in index.text()
    assert not trace.exists()


def test_90_archives_are_not_opened(root, tmp_path, indexed) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../../slipped.py", "outsider = 1\n" * 1000)
    write(root, {"a.zip": packed.getvalue(), "b.docx": packed.getvalue()})
    report, _ = indexed()
    assert report.refused[Why.BINARY] == 2
    assert not list(tmp_path.rglob("slipped.py"))


def test_deep_nesting_of_folders_and_of_code_is_walked(root, indexed) -> None:
    write(
        root,
        {
            "d/" * 60 + "deep.py": "".join("    " * at + f"def f{at}():\n" for at in range(90))
            + "    " * 90
            + "pass\n"
        },
    )
    report, index = indexed()
    assert report.in_part == {}
    assert "d/" * 60 + "deep.py" in index.by_whole


@pytest.mark.row("V17")
def test_secrets_never_reach_the_index_by_name_or_by_content(root, indexed) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    write(
        root,
        {
            ".env": "KEY=needless",
            "id_rsa": "-----BEGIN",
            "app.py": f"def connect():\n    token = '{token}'\n    return token\n",
        },
    )
    report, index = indexed()
    assert report.refused[Why.SECRET] == 2
    assert {"app.py", "good.py"} == set(index.by_whole)
    assert token not in index.text()
    assert "needless" not in index.text()


def test_a_grammar_folder_is_private(root, data) -> None:
    assert GRAMMARS.stat().st_mode & 0o777 == 0o700
