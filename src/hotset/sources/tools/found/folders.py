"""What lies in a folder and in its files: nothing is followed out of it, and nothing is read twice
that has not changed."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from hotset.files.lru import Lru
from hotset.files.root import MOST_BYTES, NotTaken, Root, Stat, can_be_shown
from hotset.nouns.tool import Http, Launch, Stdio
from hotset.sources.tools.found.signatures import Script, read_script

DEEPEST = 6
MOST_ENTRIES = 10_000  # of one folder: what is beyond is not looked at
EXCLUDED = frozenset((".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__"))

_MOST_FILES = 1000  # of one skill
_REMEMBERED = 8192  # files: a few thousand skills
_Key = tuple[Path, str, Stat, bool]
"""Everything that is made of a file depends on: root, path, stat, whether hard links are read."""
_scripts: Lru[_Key, Script] = Lru(count=_REMEMBERED)
_marks: Lru[_Key, str] = Lru(count=_REMEMBERED)


@dataclass(slots=True)
class Listing:
    """What a folder holds, by path below it."""

    files: dict[str, Stat] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    """Where each points, as it says itself."""
    special: list[str] = field(default_factory=list)
    """Pipes, devices, and names that cannot be shown."""
    whole: bool = True
    """False where there is more than is looked at."""


def listing(
    folder: Path, under: str = "", *, deepest: int = DEEPEST, excluded: frozenset[str] = EXCLUDED
) -> Listing:
    """What lies below a folder, but not in folders of excluded names; nothing is opened."""
    found = Listing()
    waiting = [(under, 0)]
    while waiting:
        inside, depth = waiting.pop()
        for entry in entries(folder / inside, found):
            path = f"{inside}/{entry.name}" if inside else entry.name
            if len(found.files) >= _MOST_FILES:
                found.whole = False
                return found
            if not _note(entry, path, found) or entry.name in excluded:
                continue
            if depth < deepest:
                waiting.append((path, depth + 1))
            else:
                found.whole = False
    found.files = dict(sorted(found.files.items()))
    return found


def entries(folder: Path, found: Listing) -> Iterator[os.DirEntry[str]]:
    """In the order of their names."""
    try:
        with os.scandir(folder) as scanned:
            some = list(islice(scanned, MOST_ENTRIES + 1))
    except OSError:
        found.whole = False
        return
    if len(some) > MOST_ENTRIES:
        found.whole = False
    yield from sorted(some[:MOST_ENTRIES], key=lambda entry: entry.name)


def script_of(root: Root, path: str, at: Stat, *, hard_links: bool) -> Script:
    """A Python file's functions. Raises `NotTaken`."""

    def read() -> Script:
        return read_script(
            root.read(path, MOST_BYTES, hard_links=hard_links).data.decode("utf-8-sig", "replace")
        )

    return _scripts.get_or_make((root.folder, path, at, hard_links), read)


def content_marks(root: Root, found: Listing, *, hard_links: bool) -> Mapping[str, str]:
    """For each file what tells its content from any other; of what cannot be read, what can be
    known without."""
    marks = {path: _mark(root, path, at, hard_links=hard_links) for path, at in found.files.items()}
    return {**marks, **link_marks(root.folder, found)}


def link_marks(folder: Path, found: Listing) -> Mapping[str, str]:
    """For each link where it leads, and what can be known of that without reading it."""
    return {
        path: f"link to {target}, {stat_of(folder / path)}" for path, target in found.links.items()
    }


def _mark(root: Root, path: str, at: Stat, *, hard_links: bool) -> str:
    def read() -> str:
        return hashlib.sha256(root.read(path, MOST_BYTES, hard_links=hard_links).data).hexdigest()

    try:
        return _marks.get_or_make((root.folder, path, at, hard_links), read)
    except NotTaken:
        return f"{at.size} {at.mtime_ns} {at.inode}"


def stat_of(path: Path) -> Stat | None:
    """Of what a path leads to; None where that is nothing, or cannot be known."""
    try:
        return Stat.of(path.stat())
    except OSError:
        return None


def _note(entry: os.DirEntry[str], path: str, found: Listing) -> bool:
    """Writes down what it is; True for a folder."""
    try:
        at = entry.stat(follow_symlinks=False)
        if not can_be_shown(entry.name):
            found.special.append(path)
        elif stat.S_ISLNK(at.st_mode):
            found.links[path] = str(Path(entry.path).readlink())
        elif stat.S_ISDIR(at.st_mode):
            return True
        elif stat.S_ISREG(at.st_mode):
            found.files[path] = Stat.of(at)
        else:
            found.special.append(path)
    except OSError:
        return False
    return False


def stamp_of(launch: Launch | None, files: Mapping[str, str] | None = None) -> str:
    """`files`: for each by its name, what tells its content from any other."""
    parts: list[object] = []
    match launch:
        case Stdio(command, env, cwd):
            parts = ["stdio", list(command), sorted(env.items()), cwd]
        case Http(url, headers):
            parts = ["http", url, sorted(headers.items())]
    parts.append(sorted((files or {}).items()))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def host_launch(folder: Path, scripts: Sequence[Path]) -> Stdio:
    """How the functions of scripts are served, in the folder's own Python where it has one.

    Nothing compiled is written beside the scripts: a skill's folder is its author's, and its files
    are hashed.
    """
    own = folder / ".venv" / "bin" / "python"
    python = str(own.absolute()) if own.is_file() else sys.executable
    host = Path(__file__).parent.with_name("running") / "host.py"
    return Stdio(
        (
            python,
            "-I",
            "-B",
            str(host),
            str(folder.absolute()),
            *(str(script.absolute()) for script in scripts),
        )
    )
