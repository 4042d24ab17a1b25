"""Lists a project's files: every folder once, as ripgrep walks it, with .gitignore and our own
excludes; nothing is opened.

The walk is lazy, and yields each folder after its contents: an unchanged subtree is known by one
hash. Skipped files are counted by reason; a skipped folder counts once.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from hotset.files.root import MOST_BYTES, Root, Stat, Why, can_be_shown, parts_of, refused, shown
from hotset.text.words import word_set

IGNORE_FILE = ".hotsetignore"
_IGNORE_FILES = (".gitignore", ".ignore", IGNORE_FILE)
_GIT_EXCLUDES = "info/exclude"
_LARGEST_IGNORE_FILE = 1_000_000  # bytes; 20,000 patterns take the walker half a second
_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class ScanLimits:
    """Limits on what is taken."""

    bytes: int = MOST_BYTES
    """Per file."""
    files: int = 1_000_000
    hard_links: bool = False
    """A file with other names may be any file of this machine; True takes it all the same."""


@dataclass(slots=True)
class SkippedFiles:
    """Counts of skipped files for each reason, and the first few of them."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    """Paths, printable."""

    def add(self, path: str, why: str) -> None:
        self.more(why, 1, (shown(path),))

    def more(self, why: str, times: int, examples: Iterable[str]) -> None:
        """Add `times` more, of which these are the first."""
        self.counts[str(why)] += times
        some = self.examples.setdefault(str(why), [])
        if len(some) < _EXAMPLES:
            some += islice(examples, _EXAMPLES - len(some))

    def merge(self, other: SkippedFiles) -> None:
        for why, times in other.counts.items():
            self.more(why, times, other.examples.get(why, ()))


@dataclass(frozen=True, slots=True)
class ScannedFolder:
    """A folder, yielded after everything in it."""

    path: str
    """Below the root, with slashes; empty for the root."""
    files: Mapping[str, Stat]
    """By name."""
    folders: tuple[str, ...]
    """Names of the subfolders that were walked."""
    stat: Stat
    """The folder's own stat, from before it was walked."""
    left_out: SkippedFiles
    """What of it was skipped, or that it could not be read."""


def scan(
    root: Root, tally: SkippedFiles, limits: ScanLimits | None = None, under: str | None = None
) -> Iterator[ScannedFolder]:
    """Folders from the inside out, the root last. With `under`: that one folder only, without its
    subfolders."""
    return _Walk(root, tally, limits or ScanLimits()).folders(under)


class _Walk:
    """The walker asks about each entry that no ignore file excludes; files are recorded and only
    folders let through."""

    def __init__(self, root: Root, tally: SkippedFiles, limits: ScanLimits) -> None:
        self._root = root
        self._at = str(root.folder)
        self._tally = tally
        self._limits = limits
        self._count = 0
        self._open: dict[str, _OpenFolder] = {}
        """The folders from the root to the current one, by absolute path."""

    def folders(self, under: str | None) -> Iterator[ScannedFolder]:
        from rignore import walk  # noqa: PLC0415 - 5 ms that only a scan should pay

        start = self._at if not under else f"{self._at}/{under}"
        rules = _ignore_files(start, self._at, below=under is None)
        if rules.strange:
            self._tally.add(rules.strange, Why.STRANGE_IGNORE)
            return
        settings: dict[str, Any] = {
            "ignore_hidden": False,
            "require_git": False,
            "read_git_exclude": not rules.points_elsewhere,
            "read_global_git_ignore": False,  # what is indexed should not depend on who indexes it
            "read_parents_ignores": self._parents_are_fine(start),
            "additional_ignore_paths": [IGNORE_FILE],
            "follow_links": False,
            "same_file_system": True,
            "should_exclude_entry": self._leave_out,
        }
        if under is not None:
            settings["max_depth"] = 1
        if rules.unsayable:
            settings["overrides"] = [f"!{each}" for each in sorted(rules.unsayable)]
        try:
            self._open[start] = _OpenFolder(under or "", Stat.of(os.lstat(start)))
        except OSError:
            return
        for path in _walked_paths(iter(walk(Path(start), **settings))):
            yield from self._closed(str(path), under)
        yield from self._closed("", under)

    def _leave_out(self, path: Path) -> bool:
        """Called for each entry before the walker enters it. True if the walker need not yield
        it."""
        text = str(path)
        parent, _, name = text.rpartition("/")
        folder = self._open[parent]
        inside = f"{folder.path}/{name}" if folder.path else name
        folder.seen.add(name)
        try:
            found = os.lstat(text)
        except OSError:
            self._tally.add(
                inside, Why.GONE
            )  # and not remembered: at the next look there is no such thing
            return True
        if stat.S_ISDIR(found.st_mode):
            why = self._folder_refused(text, name, found)
            if why is None:
                folder.folders.append(name)
                self._open[text] = _OpenFolder(inside, Stat.of(found))
                return False
        else:
            why = self._file_refused(name, found)
            if why is None:
                folder.files[name] = Stat.of(found)
                self._count += 1
                return True
        self._note(folder, inside, why)
        return True

    def _note(self, folder: _OpenFolder, path: str, why: Why) -> None:
        self._tally.add(path, why)
        folder.left_out.add(path, why)

    def _folder_refused(self, text: str, name: str, found: os.stat_result) -> Why | None:
        if not can_be_shown(name):
            return Why.STRANGE_NAME
        if folder_left_out(name, text):
            return Why.EXCLUDED
        if found.st_dev != self._root.device:
            return Why.ELSEWHERE
        return None

    def _file_refused(self, name: str, found: os.stat_result) -> Why | None:
        if not can_be_shown(name):
            return Why.STRANGE_NAME
        if why := file_left_out(name):
            return why
        if self._count >= self._limits.files:
            return Why.TOO_MANY
        return refused(
            found, self._root.device, self._limits.bytes, hard_links=self._limits.hard_links
        )

    def _parents_are_fine(self, start: str) -> bool:
        return all(
            _is_fine(f"{parent}/{name}", str(parent))
            for parent in Path(start).parents
            for name in (*_IGNORE_FILES, f".git/{_GIT_EXCLUDES}")
        )

    def _closed(self, now: str, under: str | None) -> Iterator[ScannedFolder]:
        """Folders that the walk has left, now that it is at `now`, which it has just asked
        about."""
        for path in reversed(list(self._open)):
            if path == now:
                continue
            if now.startswith(f"{path}/"):
                return
            folder = self._open.pop(path)
            if under is None or folder.path == under:
                self._count_ignored(path, folder)
                yield ScannedFolder(
                    folder.path, folder.files, tuple(folder.folders), folder.stat, folder.left_out
                )

    def _count_ignored(self, path: str, folder: _OpenFolder) -> None:
        """Count the entries of a folder that the walker never asked about: an ignore file excludes
        them, or their names are not UTF-8."""
        try:
            with os.scandir(path) as entries:
                unseen = [each.name for each in entries if each.name not in folder.seen]
        except OSError:
            self._note(folder, folder.path or ".", Why.UNREADABLE)
            return
        for name in sorted(unseen):
            self._note(
                folder, f"{folder.path}/{name}" if folder.path else name, _reason_unseen(name)
            )


@dataclass(slots=True)
class _OpenFolder:
    path: str
    stat: Stat
    files: dict[str, Stat] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    left_out: SkippedFiles = field(default_factory=SkippedFiles)


def _walked_paths(walker: Iterator[Path]) -> Iterator[Path]:
    """The walker's paths. It reports once what it cannot enter, and continues; `_count_ignored`
    counts that."""
    while True:
        try:
            yield next(walker)
        except StopIteration:
            return
        except (OSError, ValueError):
            continue


def _reason_unseen(name: str) -> Why:
    if not can_be_shown(name):
        return Why.STRANGE_NAME
    return Why.EXCLUDED if name in EXCLUDED_FOLDERS else Why.IGNORED


@dataclass(slots=True)
class _Rules:
    """The ignore files that the walker would read before it asks anything."""

    strange: str = ""
    """An ignore file at which it would wait forever (a pipe) or read forever (a device)."""
    points_elsewhere: bool = False
    """A `.git` that is a file leads to a folder, and that to another: anywhere. Their excludes are
    then not read."""
    unsayable: set[str] = field(default_factory=set)
    """Patterns of names that are not UTF-8: the walker cannot ask about them, and would complain
    about each on stderr."""


def _ignore_files(start: str, root: str, *, below: bool) -> _Rules:
    """Checks every ignore file before the walk: the walker also reads those of folders that it then
    leaves out.

    If one is strange, nothing is walked until a person has looked at it.
    """
    rules = _Rules()
    waiting = [start]
    while waiting and not rules.strange:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for each in entries:
                    _note_rules(each, rules, root)
                    if not each.is_dir(follow_symlinks=False):
                        continue
                    if below and each.name not in EXCLUDED_FOLDERS:
                        waiting.append(each.path)
                    elif strange := next(
                        (
                            name
                            for name in _IGNORE_FILES
                            if not _is_fine(f"{each.path}/{name}", root)
                        ),
                        "",
                    ):
                        rules.strange = f"{each.path[len(root) + 1 :]}/{strange}"
        except OSError:
            continue
    return rules


def _note_rules(entry: os.DirEntry[str], rules: _Rules, root: str) -> None:
    if not entry.name.isascii() and _UNSAYABLE.search(entry.name):
        rules.unsayable.add(_pattern(entry.name))
    if entry.name in _IGNORE_FILES and not _is_fine(entry.path, root):
        rules.strange = entry.path[len(root) + 1 :]
    elif entry.name == ".git":
        if not entry.is_dir(follow_symlinks=False):
            rules.points_elsewhere = True
        elif not _is_fine(f"{entry.path}/{_GIT_EXCLUDES}", root):
            rules.strange = f"{entry.path[len(root) + 1 :]}/{_GIT_EXCLUDES}"


_UNSAYABLE = re.compile("[\udc80-\udcff]")  # what Python makes of a byte that is no UTF-8
_MAGIC = re.compile(r"[*?\[\]{}\\!\s]")


def _pattern(name: str) -> str:
    """A glob for this name: undecodable bytes match any non-ASCII byte, and each digit any
    digit."""
    return re.sub("[0-9]", "[0-9]", _UNSAYABLE.sub(_NO_ASCII, _MAGIC.sub("?", name))).replace(
        _NO_ASCII, "[!\x01-\x7f]"
    )


_NO_ASCII = "\0"


def _is_fine(path: str, root: str) -> bool:
    """True if an ignore file is missing, or a regular file of moderate size inside of the root."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            target = os.path.realpath(path)
            if not target.startswith(f"{root}/"):
                return False
            found = os.stat(target)  # noqa: PTH116 - its mode alone counts
    except OSError:
        return True
    return stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST_IGNORE_FILE


@dataclass(frozen=True, slots=True)
class SkippedPath:
    """A path that a scan would skip, and why."""

    path: str
    why: Why


def left_out(root: Root, path: str, limits: ScanLimits | None = None) -> SkippedPath | None:
    """The first part of a path that a scan would skip, and why; None for a file or folder that it
    would take.

    Each folder on the way is scanned by itself, by the usual rules. A name that no scan finds is
    gone, even if the disk would open it under another spelling. Raises `NotTaken` if it is no path
    below the root.
    """
    above = ""
    parts = parts_of(path)
    for name in parts:
        asked = _WatchedPath(here := f"{above}/{name}" if above else name)
        folder = next(scan(root, asked, limits, above), None)
        if asked.found is not None:
            return asked.found
        is_there = folder is not None and (
            name in folder.folders or (name in folder.files and here == "/".join(parts))
        )
        if not is_there:
            return SkippedPath(here, Why.GONE)
        above = here
    return None


class _WatchedPath(SkippedFiles):
    """Records why one path was skipped, or that everything is."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self.found: SkippedPath | None = None

    def add(self, path: str, why: str) -> None:
        if path == self._path or why == Why.STRANGE_IGNORE:
            self.found = SkippedPath(path, Why(why))


EXCLUDED_FOLDERS = word_set("""
    .git .hg .svn .jj .bzr node_modules bower_components jspm_packages .pnpm-store .yarn .venv venv
    .tox .nox .eggs __pycache__ .mypy_cache .pytest_cache .ruff_cache .hypothesis .ipynb_checkpoints
    site-packages .gradle .mvn .idea .vs .terraform .serverless .aws-sam .next .nuxt .svelte-kit
    .astro .angular .parcel-cache .turbo .cache .nyc_output htmlcov DerivedData Pods .dart_tool
    .bundle .stack-work dist-newstyle _build .elixir_ls .hotset .ssh .gnupg .aws .kube .docker
    .password-store
""")

_OUTPUT = word_set("build dist out target coverage")
"""Names that are used for sources, too: such a folder is output only if the file of a build tool is
beside it."""
_COPIED = word_set("vendor")
"""Other people's code in the project: left out unless a `.hotsetignore` beside it has the line
`!vendor/`."""
_MOST_RULES = 1 << 16  # bytes of an ignore file
_TOOLS = word_set(
    "package.json pom.xml build.gradle build.gradle.kts Cargo.toml setup.py pyproject.toml "
    "CMakeLists.txt"
)

_LOCKS = word_set("""
    package-lock.json npm-shrinkwrap.json pnpm-lock.yaml bun.lockb packages.lock.json go.sum
    .ds_store thumbs.db
""")
_MADE = tuple(
    word_set("""
    .min.js .min.css .min.mjs .js.map .css.map .mjs.map .ts.map .bundle.js .chunk.js _pb2.py
    _pb2.pyi _pb2_grpc.py .pb.go .pb.cc .pb.h .g.dart .designer.cs .generated.cs .generated.ts
    .generated.go
    """)
)
_NO_TEXT = word_set("""
    png jpg jpeg gif webp ico bmp tif tiff psd pdf zip gz tgz bz2 xz zst 7z rar tar jar war class o
    a so dylib dll exe bin wasm pyc pyo whl egg mp3 mp4 m4a wav ogg flac avi mov mkv webm woff woff2
    ttf otf eot db sqlite sqlite3 parquet feather npy npz pkl pickle pt pth onnx safetensors gguf h5
    hdf5 tfrecord mo
""")


def folder_left_out(name: str, path: str) -> bool:
    """True if the folder is excluded; `path` is its absolute path."""
    if name in EXCLUDED_FOLDERS or name.endswith(".egg-info"):
        return True
    parent = path.removesuffix(f"/{name}")
    if name in _COPIED:
        return not _is_wanted(name, f"{parent}/.hotsetignore")
    return name in _OUTPUT and any(os.path.lexists(f"{parent}/{tool}") for tool in _TOOLS)


def _is_wanted(name: str, rules: str) -> bool:
    """True if this ignore file has a line that brings the folder back."""
    try:
        if not stat.S_ISREG(os.lstat(rules).st_mode):
            return False
        with Path(rules).open("rb") as file:
            lines = file.read(_MOST_RULES).splitlines()
    except OSError:
        return False
    return not {f"!{name}".encode(), f"!{name}/".encode()}.isdisjoint(map(bytes.strip, lines))


def file_left_out(name: str) -> Why | None:
    low = name.lower()
    ending = low.rpartition(".")[2]
    if ending in _NO_TEXT:
        return Why.BINARY
    return Why.EXCLUDED if ending == "lock" or low in _LOCKS or low.endswith(_MADE) else None
