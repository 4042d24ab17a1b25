"""What was made of skills, kept on disk for the next process: parsing a thousand of them takes it
seconds, this milliseconds.

Derived, and safe to delete at any time. A file that is damaged, or that another version of the
parser wrote, is as good as none. A look is kept under everything that it depended on: of each file
its path, size, inode and times. What changed a moment ago is not kept: it may change again before a
file system's clock has ticked, and would look as it was.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hotset.errors import NotFound, StoreFailed
from hotset.files.folder import private_folder
from hotset.files.open import read_regular
from hotset.files.write import write_atomically
from hotset.nouns.tool import OriginKind, Stdio, Tool, ToolOrigin
from hotset.sources.tools.found.folders import listing

CACHE_FILE = "skills.kept"
"""In the folder of a project's tools."""

_LARGEST = 256_000_000  # bytes; 10,000 tools take some 5 MB
_SETTLED_NS = 2_000_000_000  # the coarsest clock of a file system in use ticks every two seconds
_DIGEST = hashlib.sha256().digest_size

SKILL_FILE = "SKILL.md"


class SkillCache:
    """Not for two threads at once. Processes may share the file: the last one that learned
    something wins."""

    def __init__(self, path: Path, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._path = path
        self._clock_ns = clock_ns
        self._made_by = ""
        self._read: dict[str, msgspec.Raw] = {}
        self._live: dict[str, msgspec.Raw] = {}
        """What this process needed: the rest is of skills that are gone or have changed."""
        self._is_new = False

    def get(self, key: object, newest_ns: int, make: Callable[[], SkillScan]) -> SkillScan:
        """`key` says, by its `repr`, everything that the look depends on; `newest_ns` is when the
        last of its files changed."""
        if (
            not self._made_by
        ):  # once: the code that this process runs stays, whatever becomes of its files
            self._made_by = _made_by()
            self._read = _read(self._path, self._made_by)
        name = hashlib.sha256(repr(key).encode("utf-8", "surrogatepass")).hexdigest()
        if (raw := self._read.get(name)) is not None and (known := _decode(raw)) is not None:
            self._live[name] = raw
            return known
        found = make()
        if self._clock_ns() - newest_ns > _SETTLED_NS and (encoded := _encode(found)) is not None:
            self._live[name] = encoded
            self._is_new = True
        return found

    def save(self) -> None:
        """Writes what was learned, if anything was. What cannot be written costs the next process
        its time, and nothing else."""
        if not self._is_new:
            return
        self._is_new = False
        body = _BODY.encode(_Body(self._made_by, self._live))
        with suppress(StoreFailed, OSError):
            private_folder(self._path.parent)
            write_atomically(self._path, hashlib.sha256(body).digest() + body)


class _CachedSkill(msgspec.Struct, array_like=True):
    source: str
    stamp: str
    trusted: bool
    command: tuple[str, ...]
    """Empty where nothing runs."""
    folder: str
    name: str
    description: str
    tools: tuple[Tool, ...]


class _CachedScan(msgspec.Struct, array_like=True):
    skills: tuple[_CachedSkill, ...]
    troubles: tuple[str, ...]


class _Body(msgspec.Struct):
    made_by: str
    looks: dict[str, msgspec.Raw]


_BODY = msgspec.msgpack.Encoder()
_BODIES = msgspec.msgpack.Decoder(_Body)
_LOOKS = msgspec.msgpack.Decoder(_CachedScan)


def _made_by() -> str:
    """What the same files would have to be parsed again for: other code of ours, another Python to
    read or to run scripts."""
    made = hashlib.sha256(
        repr((sys.version, sys.executable, __file__)).encode("utf-8", "surrogatepass")
    )
    for path in sorted(Path(__file__).parent.glob("*.py")):
        made.update(path.read_bytes())
    return made.hexdigest()


def _read(path: Path, made_by: str) -> dict[str, msgspec.Raw]:
    try:
        data = read_regular(path, _LARGEST)
        if hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
            return {}
        body = _BODIES.decode(data[_DIGEST:])
    except (NotFound, msgspec.MsgspecError):
        return {}
    return body.looks if body.made_by == made_by else {}


def _decode(raw: msgspec.Raw) -> SkillScan | None:
    try:
        found = _LOOKS.decode(raw)
    except msgspec.MsgspecError:
        return None
    return SkillScan(tuple(map(_decode_skill, found.skills)), found.troubles)


def _decode_skill(kept: _CachedSkill) -> Skill:
    launch = Stdio(kept.command) if kept.command else None
    source = ToolOrigin(
        kept.source, OriginKind.SKILL, launch, kept.stamp, shared=True, trusted=kept.trusted
    )
    return Skill(source, kept.tools, Path(kept.folder), kept.name, kept.description)


def _encode(found: SkillScan) -> msgspec.Raw | None:
    """None for what would not come back as it is."""
    skills = tuple(
        _CachedSkill(
            skill.source.name,
            skill.source.stamp,
            skill.source.trusted,
            skill.source.launch.command if isinstance(skill.source.launch, Stdio) else (),
            str(skill.folder),
            skill.name,
            skill.description,
            skill.tools,
        )
        for skill in found.skills
    )
    try:
        raw = msgspec.Raw(_BODY.encode(_CachedScan(skills, found.troubles)))
    except (UnicodeEncodeError, msgspec.MsgspecError):  # names that are no text
        return None
    return raw if _decode(raw) == found else None


@dataclass(frozen=True, slots=True)
class SkillFolder:
    """A folder with skills in it."""

    path: Path
    trusted: bool
    """The user's own; False for one that came with a project."""
    within: Path | None = None
    """Where it has to lie, whatever links are on the way to it; None is anywhere."""


@dataclass(frozen=True, slots=True)
class Skill:
    source: ToolOrigin
    tools: tuple[Tool, ...]
    """First the one that reads it, named like the skill itself; then one for each typed function of
    its scripts."""
    folder: Path
    name: str
    """As it calls itself."""
    description: str

    @property
    def files(self) -> tuple[str, ...]:
        """Below its folder, as they are now; not read, and without links."""
        return tuple(path for path in listing(self.folder).files if path != SKILL_FILE)


@dataclass(frozen=True, slots=True)
class SkillScan:
    skills: tuple[Skill, ...] = ()
    troubles: tuple[str, ...] = ()
    """One sentence for each thing that was left out, or should be mended."""
