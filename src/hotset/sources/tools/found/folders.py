"""Folders and files that tools come from: listings, content hashes, Python scripts, frontmatter.

No link is followed out of a folder, and nothing is read twice that has not changed.

Frontmatter is YAML that can say nothing but texts, lists and maps; this is the only user of PyYAML.
Every value is text as it was written: nothing becomes a number, a date or an object. Anchors,
aliases and tags are refused: a skill needs none, and they are what YAML is attacked with.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from hotset.errors import Malformed
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
_scripts: Lru[_Key, Script] = Lru("scripts", count=_REMEMBERED)
_marks: Lru[_Key, str] = Lru("script marks", count=_REMEMBERED)

Value = str | list["Value"] | dict[str, "Value"]


@dataclass(frozen=True, slots=True)
class ToolFault:
    """An error in a tool's file, for whoever can mend it."""

    name: str
    """Of the skill, or the full name of a tool that an agent wrote."""
    text: str
    """File, line, and what is wrong."""
    trusted: bool = True
    """False for a skill of the project: its words are shown after approval alone."""


_LONGEST_HEAD = 65_536  # characters
_DEEPEST_FIELD = 8
_FENCE = re.compile(r"-{3}[ \t]*")
_LINE_ENDS = re.compile(r"\r\n?")
_ENTRY = re.compile(r"(\s*)([A-Za-z0-9_][\w.-]{0,99}):[ \t]+(\S.*)")
_STRUCTURED = ("'", '"', "|", ">", "[", "{", "&", "*", "!", "#", "- ", "? ")


@dataclass(slots=True)
class Listing:
    """What a folder holds, by path below it."""

    files: dict[str, Stat] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    """The target of each, as written."""
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
    """A content hash for each file; of one that cannot be read, its size, time and inode."""
    marks = {path: _mark(root, path, at, hard_links=hard_links) for path, at in found.files.items()}
    return {**marks, **link_marks(root.folder, found)}


def link_marks(folder: Path, found: Listing) -> Mapping[str, str]:
    """For each link its target, and the stat of that."""
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
    """The stat of a path, links followed; None where there is none."""
    try:
        return Stat.of(path.stat())
    except OSError:
        return None


def lstat_of(path: Path) -> Stat | None:
    """The stat of a path, links not followed; None where there is none."""
    try:
        return Stat.of(path.lstat())
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
    """A hash of how a source is launched and of its files; `files` are content marks by path."""
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


@dataclass(frozen=True, slots=True)
class Frontmatter:
    fields: dict[str, Value]
    body: str
    """What follows, with `\\n` behind each line."""
    troubles: tuple[str, ...] = field(default=())
    """What was read all the same, and should be mended."""


def read_frontmatter(text: str) -> Frontmatter:
    """Reads frontmatter as people write it: an unquoted colon in a value, Windows' line ends, a
    byte order mark. Raises `Malformed`."""
    head, body = split_frontmatter(text)
    try:
        return Frontmatter(_fields(head), body)
    except Malformed as error:
        try:
            fields = _fields(_quoted(head))
        except Malformed:
            raise error from None
        return Frontmatter(
            fields, body, (f"{error}; it was read as if each value stood in quotes: quote them",)
        )


def split_frontmatter(text: str) -> tuple[str, str]:
    """The frontmatter between two lines of dashes, and the text after it. Raises `Malformed` where
    there is none."""
    lines = _LINE_ENDS.sub("\n", text.removeprefix("\ufeff")).split("\n")
    if not _FENCE.fullmatch(lines[0]):
        raise Malformed(
            "it does not begin with a line ---: put its name and description between two such lines"
        )
    length = 0
    for at, line in enumerate(lines[1:], 1):
        if _FENCE.fullmatch(line):
            return "\n".join(lines[1:at]) + "\n", "\n".join(lines[at + 1 :])
        length += len(line) + 1
        if length > _LONGEST_HEAD:
            raise Malformed(
                f"more than {_LONGEST_HEAD:,} characters stand in front of its second line ---: "
                f"shorten that"
            )
    raise Malformed("a second line --- is missing behind its name and description")


class _Refused(Exception):
    """Something that is not allowed in frontmatter; the message says what."""


def _fields(head: str) -> dict[str, Value]:
    import yaml  # noqa: PLC0415 - 20 ms that only those with skills pay

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        value = _built(yaml.parse(head, Loader=loader))
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 2}: " if error.problem_mark else ""
        raise Malformed(f"{line}{error.problem or 'not YAML'}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Malformed("its frontmatter has characters that YAML does not allow") from error
    except _Refused as error:
        raise Malformed(str(error)) from error
    if not isinstance(value, dict):
        raise Malformed("its frontmatter is no list of fields like `name: ...`")
    return value


def _built(events: Iterable[Any]) -> Value | None:
    """The value that a stream of events describes. Not recursive: nesting is the writer's
    choice."""
    root: list[Value] = []
    holders: list[list[Value] | dict[str, Value]] = [root]
    keys: list[str | None] = [None]
    for event in events:
        kind = type(event).__name__
        _refuse(event, kind, len(holders), documents=len(root))
        if kind in ("MappingEndEvent", "SequenceEndEvent"):
            holders.pop()
            keys.pop()
        elif kind in ("ScalarEvent", "MappingStartEvent", "SequenceStartEvent"):
            value: Value = (
                event.value if kind == "ScalarEvent" else {} if kind == "MappingStartEvent" else []
            )
            keys[-1] = _put(holders[-1], keys[-1], value)
            if not isinstance(value, str):
                holders.append(value)
                keys.append(None)
    return root[0] if root else None


def _refuse(event: Any, kind: str, depth: int, documents: int) -> None:
    line = event.start_mark.line + 2 if event.start_mark else 0
    if kind == "AliasEvent" or getattr(event, "anchor", None) is not None:
        raise _Refused(
            f"line {line}: anchors and aliases (& and *) are not allowed: write the value "
            f"out, or in quotes"
        )
    if getattr(event, "tag", None) is not None:
        raise _Refused(
            f"line {line}: tags (!) are not allowed: write the value alone, or in quotes"
        )
    if depth > _DEEPEST_FIELD:
        raise _Refused(f"line {line}: nested deeper than {_DEEPEST_FIELD} levels")
    if kind == "DocumentStartEvent" and documents:
        raise _Refused(f"line {line}: a second document begins")


def _put(holder: list[Value] | dict[str, Value], key: str | None, value: Value) -> str | None:
    """Puts a value where it belongs; gives back the key that now waits for one."""
    if isinstance(holder, list):
        holder.append(value)
        return None
    if key is not None:
        holder[key] = value
        return None
    if not isinstance(value, str):
        raise _Refused("a key is no plain text")
    if value in holder:
        raise _Refused(f"{value[:100]} stands there twice: keep one")
    return value


def _quoted(head: str) -> str:
    """Each plain value in quotes, with the deeper lines that go on with it."""
    lines: list[str] = []
    depth: int | None = None
    """Of the value that may go on; None where none can."""
    for line in head.split("\n"):
        indent = len(line) - len(line.lstrip())
        if depth is not None and line.strip() and indent > depth:
            lines[-1] = f"{lines[-1][:-1]} {_escaped(line.strip())}'"
            continue
        match = _ENTRY.fullmatch(line)
        if match and not match[3].startswith(_STRUCTURED):
            lines.append(f"{match[1]}{match[2]}: '{_escaped(match[3].rstrip())}'")
            depth = indent
        else:
            lines.append(line)
            depth = None
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.replace("'", "''")
