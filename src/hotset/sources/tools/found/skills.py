"""Agent Skills: folders with a SKILL.md. Its text is read; typed functions of its scripts are
tools; nothing is run.

A skill of the project hides one of the user's that has the same name. It is never trusted by
itself: a person who cloned the project did not choose it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePath

import msgspec

from hotset.errors import BadInput, Malformed, NotFound, StoreFailed
from hotset.files.lru import Lru
from hotset.files.open import read_regular
from hotset.files.private_folder import private_folder
from hotset.files.root import MOST_BYTES, NotTaken, Root, Stat, Why, parts_of, shown
from hotset.files.write import write_atomically
from hotset.nouns.tool import OriginKind, Stdio, Tool, ToolOrigin
from hotset.sources.tools.found.folders import (
    DEEPEST,
    EXCLUDED,
    Frontmatter,
    Listing,
    ToolFault,
    content_marks,
    entries,
    host_launch,
    link_marks,
    listing,
    read_frontmatter,
    script_of,
    split_frontmatter,
    stamp_of,
)
from hotset.sources.tools.found.signatures import Function, Script, own_names
from hotset.sources.tools.running import host_calls
from hotset.sources.tools.tool_names import RESERVED, full_name, slug
from hotset.text.charset import decode
from hotset.typed import msgpack_decoder

SKILL_FILE = "SKILL.md"
_MOST_FOLDERS = 2000
_LONGEST_NAME = 200
_LONGEST_DESCRIPTION = (
    4000  # characters; the specification allows 1,024, and some that people use have twice as many
)
_PLACES = (".agents/skills", ".claude/skills")
_SCRIPTS = "scripts"
_SCRIPT = re.compile(r"scripts/[^_/][^/]*\.py")
_FORMAT = "1"  # of what is made of a skill; counted up when the same files give other tools
_FILE_PARAMETER = {
    "type": "object",
    "properties": {
        "file": {
            "type": "string",
            "description": "A file of the skill; without it, its instructions and its files.",
        }
    },
    "additionalProperties": False,
}

READ_ONLY = "hotset-read-only"
"""In the `metadata` of a SKILL.md: the functions that only read, or `all`."""
_READS = b'{"idempotentHint":true,"readOnlyHint":true}'

_MOST_BYTES = 262_144  # of one file: what a model can read at all
_SHOWN_FILES = 200
_PROPOSED = 3

CACHE_FILE = "skills.kept"
"""In the folder of a project's tools."""

_LARGEST = 256_000_000  # bytes; 10,000 tools take some 5 MB
_SETTLED_NS = 2_000_000_000  # the coarsest clock of a file system in use ticks every two seconds
_DIGEST = hashlib.sha256().digest_size


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


@dataclass(frozen=True, slots=True)
class SkillScan:
    skills: tuple[Skill, ...] = ()
    troubles: tuple[str, ...] = ()
    """One sentence for each thing that was left out, or should be mended."""
    faults: tuple[ToolFault, ...] = ()


_looks: Lru[tuple[object, ...], SkillScan] = Lru("skill scans", count=4096)


def skill_folders(project: Path, home: Path, more: Sequence[str] = ()) -> tuple[SkillFolder, ...]:
    """Where clients look for skills, the project's first. `more` are folders of the user's, or of
    any project if relative."""
    named = [Path(each).expanduser() for each in more]
    own = [*(each for each in named if each.is_absolute()), *(home / each for each in _PLACES)]
    theirs = {path.resolve() for path in own}
    came = [
        *(project / each for each in named if not each.is_absolute()),
        *(project / each for each in _PLACES),
    ]
    return (
        *(
            SkillFolder(path, trusted=False, within=project)
            for path in came
            if path.resolve() not in theirs
        ),
        *(SkillFolder(path, trusted=True) for path in own),
    )


def find_skills(folders: Sequence[SkillFolder], kept: SkillCache | None = None) -> SkillScan:
    """Every skill of these folders; of two with one name the first. What has not changed is not
    read again: not by this process, and, where something is `kept`, not by the next one."""
    troubles: list[str] = []
    roots = _roots(folders, troubles)
    skills: dict[str, Skill] = {}
    faults: list[ToolFault] = []
    for folder, root in roots.items():
        for place, names in _places(root, roots, troubles):
            looked = _look(place, names, folder.trusted, kept)
            troubles += looked.troubles
            faults += looked.faults
            for skill in looked.skills:
                if (other := skills.get(skill.source.name)) is None:
                    skills[skill.source.name] = skill
                else:
                    troubles.append(
                        f"skill {shown(str(place))} is left out: {shown(str(other.folder))} "
                        f"has the same name"
                    )
    if kept is not None:
        kept.save()
    return SkillScan(tuple(skills.values()), tuple(troubles), tuple(faults))


def _roots(folders: Sequence[SkillFolder], troubles: list[str]) -> Mapping[SkillFolder, Path]:
    """The folders that exist, each once, and where each really is. One that a project leads
    elsewhere is none."""
    roots: dict[SkillFolder, Path] = {}
    for folder in folders:
        real = folder.path.resolve()
        if not real.is_dir() or real in roots.values():
            continue
        if folder.within is None or real.is_relative_to(folder.within.resolve()):
            roots[folder] = real
        else:
            troubles.append(
                f"{shown(str(folder.path))} is left out: it is a link that leads out of the project"
            )
    return roots


def _places(
    root: Path, roots: Mapping[SkillFolder, Path], troubles: list[str]
) -> Iterator[tuple[Path, frozenset[str]]]:
    """Folders with a SKILL.md, and what lies in them; not looking for more inside of one."""
    waiting = [(root, 0)]
    looked = 0
    while waiting:
        folder, depth = waiting.pop()
        looked += 1
        if looked > _MOST_FOLDERS:
            troubles.append(
                f"{shown(str(root))} has more than {_MOST_FOLDERS:,} folders: the rest is not "
                f"looked at"
            )
            return
        noted = Listing()
        below = list(entries(folder, noted))
        if not noted.whole:
            troubles.append(
                f"{shown(str(folder))} cannot be read, or not all of it: it has too much in "
                f"it, or is not yours"
            )
        names = frozenset(entry.name for entry in below)
        if SKILL_FILE in names:
            yield folder, names
            continue
        if SKILL_FILE.lower() in names:
            troubles.append(
                f"skill {shown(str(folder))} is left out: its file must be called "
                f"{SKILL_FILE}, in just these letters"
            )
        for entry in reversed(below):
            if entry.is_symlink():
                if not _is_found_anyway(folder / entry.name, roots):
                    troubles.append(
                        f"{shown(entry.path)} is left out: it is a link that leads out of the "
                        f"folders with skills"
                    )
            elif (
                depth < DEEPEST
                and entry.name not in EXCLUDED
                and entry.is_dir(follow_symlinks=False)
            ):
                waiting.append((folder / entry.name, depth + 1))


def _is_found_anyway(link: Path, roots: Mapping[SkillFolder, Path]) -> bool:
    """A link to another place where we look: it is found there. One to a file is nothing to us."""
    try:
        target = link.resolve()
        return not target.is_dir() or any(target.is_relative_to(root) for root in roots.values())
    except (OSError, RuntimeError):
        return True


def _look(place: Path, names: frozenset[str], trusted: bool, kept: SkillCache | None) -> SkillScan:
    """One skill, or why it is none.

    Of a skill that is not trusted every file counts, also what Python compiled or a package manager
    installed: code that is not looked at could come in there after a person approved the rest.
    """
    deepest = DEEPEST if _SCRIPTS in names else 0
    there = listing(place, deepest=deepest, excluded=EXCLUDED if trusted else frozenset())
    links = link_marks(place, there)
    own_python = ".venv" in names and (place / ".venv/bin/python").is_file()
    key = (
        place,
        trusted,
        tuple(sorted(names)),
        own_python,
        there.whole,
        *there.files.items(),
        *links.items(),
        *there.special,
    )

    def look() -> SkillScan:
        troubles: list[str] = []
        broken: list[str] = []
        try:
            with Root(place) as root:
                skill = _skill(root, there, trusted, troubles, broken)
        except BadInput as error:
            text = f"{shown(str(place / SKILL_FILE))}: {error}"
            return SkillScan(
                troubles=(*troubles, f"skill {shown(str(place))} is left out: {error}"),
                faults=(ToolFault(slug(place.name), text, trusted),),
            )
        faults = (ToolFault(skill.source.name, text, trusted) for text in broken)
        return SkillScan((skill,), tuple(troubles), tuple(faults))

    def read() -> SkillScan:
        newest = max((max(at.mtime_ns, at.ctime_ns) for at in there.files.values()), default=0)
        return kept.get(key, newest, look) if kept is not None else look()

    return _looks.get_or_make(key, read)


def _skill(
    root: Root, there: Listing, trusted: bool, troubles: list[str], broken: list[str]
) -> Skill:
    """Raises `BadInput` where it cannot be used at all. `broken` gets the errors of its scripts."""
    where = f"skill {shown(str(root.folder))}"
    head = _head(root, trusted)
    troubles += [f"{where}: {each}" for each in head.troubles]
    name, description = _name_and_description(head, root.folder)
    source = slug(name)
    if source in RESERVED:
        raise Malformed(f"the name {source} is hotset's own: rename it")
    scripts = _scripts(root, there, trusted, troubles, broken)
    if scripts and not trusted and not there.whole:
        troubles.append(
            f"{where} can be read, but not run: it has more files than hotset can watch"
        )
        scripts = {}
    launch = host_launch(root.folder, [root.folder / each for each in scripts]) if scripts else None
    marks = content_marks(root, there, hard_links=trusted) if launch else {}
    tools = {
        tool.name: tool
        for tool in (
            _reader(source, description),
            *_tools(source, description, scripts, _read_only(head)),
        )
    }
    stamp = stamp_of(launch, {**marks, SKILL_FILE: _digest(head), "": _FORMAT})
    made = ToolOrigin(source, OriginKind.SKILL, launch, stamp, shared=True, trusted=trusted)
    return Skill(made, tuple(tools.values()), root.folder, name, description)


def _head(root: Root, trusted: bool) -> Frontmatter:
    try:
        data = root.read(SKILL_FILE, MOST_BYTES, hard_links=trusted).data
    except NotTaken as error:
        raise Malformed(f"{SKILL_FILE} is not read: {error.why}") from error
    return read_frontmatter(data.decode("utf-8", "replace"))


def _name_and_description(head: Frontmatter, place: Path) -> tuple[str, str]:
    name, description = head.fields.get("name"), head.fields.get("description")
    if not isinstance(description, str) or not description.strip():
        raise Malformed("it has no description: nobody would know when to use it")
    called = name if isinstance(name, str) and name.strip() else place.name
    return shown(" ".join(called.split()))[:_LONGEST_NAME], description.strip()[
        :_LONGEST_DESCRIPTION
    ]


def _read_only(head: Frontmatter) -> str:
    """The functions that only read, as the frontmatter's metadata names them."""
    metadata = head.fields.get("metadata")
    value = metadata.get(READ_ONLY, "") if isinstance(metadata, dict) else ""
    return value if isinstance(value, str) else ""


def _scripts(
    root: Root, there: Listing, trusted: bool, troubles: list[str], broken: list[str]
) -> dict[str, Script]:
    """Those that have something to call, by path; others are left to be read."""
    found: dict[str, Script] = {}
    where = f"skill {shown(str(root.folder))}"
    strange = [
        path for path in (*there.links, *there.special) if f"{path}/".startswith(f"{_SCRIPTS}/")
    ]
    troubles += [
        f"{where}: {shown(path)} is not read: a link, or no regular file" for path in strange
    ]
    for path, at in there.files.items():
        if not _SCRIPT.fullmatch(path):
            continue
        try:
            script = script_of(root, path, at, hard_links=trusted)
        except NotTaken as error:
            troubles.append(f"{where}: {shown(path)} is not read: {error.why}")
            continue
        if script.trouble:
            troubles.append(f"{where}: {shown(path)}: {script.trouble}")
            broken.append(f"{shown(str(root.folder / path))}, {script.trouble}")
        if any(map(_is_for_models, script.functions)):
            found[path] = script
    return found


def _is_for_models(function: Function) -> bool:
    """True if a model can call it: its arguments can be given as JSON, and it is no command line
    program."""
    takes_nothing = b'"properties":{}' in function.parameters
    return not function.foreign and not (
        takes_nothing and (function.name == "main" or not function.returns)
    )


def _reader(source: str, description: str) -> Tool:
    return Tool(
        full_name(source, ""),
        source,
        OriginKind.SKILL,
        "",
        description,
        json.dumps(_FILE_PARAMETER).encode(),
    )


def _tools(
    source: str, about: str, scripts: Mapping[str, Script], read_only: str
) -> Iterator[Tool]:
    """The tools of scripts. A function without a description is described by its name and its
    skill. `read_only` names those that only read: `all`, or some."""
    reads = re.findall(r"\w+", read_only)
    by_name = {PurePath(path).stem: script for path, script in scripts.items()}
    own = own_names(by_name)
    for name, script in by_name.items():
        for each in script.functions:
            if not _is_for_models(each):
                continue
            called = own[name, each.name]
            description = (
                each.description or f"{each.name.replace('_', ' ')}. {about.partition('. ')[0]}"
            )
            full = full_name(source, called)
            yield Tool(
                full,
                source,
                OriginKind.SKILL,
                called,
                description,
                each.parameters,
                annotations=_READS if reads == ["all"] or each.name in reads else b"{}",
                depends=each.depends,
            )


def _digest(head: Frontmatter) -> str:
    """A hash of the frontmatter; the rest of the file is read when it is needed."""
    return hashlib.sha256(json.dumps(head.fields).encode()).hexdigest()


def read_skill(skill: Skill, file: str = "") -> str:
    """Its instructions with a list of its files; or one of these. Raises `NotFound` with a sentence
    for a model."""
    try:
        root = Root(skill.folder)
    except BadInput as error:
        raise NotFound(f"the skill {skill.name} is gone: look for another") from error
    with root:
        if file and file != SKILL_FILE:
            return _read_file(root, skill, _real(root, file), _MOST_BYTES)
        return "\n".join(
            (_instructions(_read_file(root, skill, SKILL_FILE, MOST_BYTES)), *_overview(skill))
        )


def _instructions(text: str) -> str:
    try:
        return split_frontmatter(text)[1].strip()
    except Malformed:  # it is being changed
        return text.strip()


def _overview(skill: Skill) -> Iterator[str]:
    yield f"\n[The skill {skill.name} lies in {shown(str(skill.folder))}"
    found = listing(skill.folder)
    files = {path: at for path, at in found.files.items() if path != SKILL_FILE}
    if callable_tools := [tool.name for tool in skill.tools if tool.own_name]:
        yield f"Tools that run its scripts: {', '.join(callable_tools)}"
    if files:
        yield f"Its files; read one: {skill.source.name} with `file`:"
    yield from (f"- {shown(path)} ({_size(at)})" for path, at in list(files.items())[:_SHOWN_FILES])
    left = len(files) - _SHOWN_FILES
    if left > 0 or not found.whole:
        yield f"- and {f'{left:,} ' if left > 0 else ''}more"
    if others := len(found.links) + len(found.special):
        yield f"- {others} more cannot be read: links, or no regular files"
    yield "]"


def _real(root: Root, file: str) -> str:
    """The path below the folder, with links that stay in it resolved; what leads out stays as it
    is, and is refused."""
    try:
        parts = parts_of(file)
        real = os.path.realpath(root.folder.joinpath(*parts))
    except (NotTaken, ValueError, OSError):
        return file
    return (
        str(Path(real).relative_to(root.folder)) if Path(real).is_relative_to(root.folder) else file
    )


def _read_file(root: Root, skill: Skill, path: str, most: int) -> str:
    from hotset.sealing import seal, secret_file  # noqa: PLC0415 - patterns of secrets: half a second at first

    try:
        if secret_file(path) is not None:
            raise NotTaken(path, Why.SECRET)  # noqa: TRY301 - reported like any other refusal
        text = decode(root.read(path, most, hard_links=skill.source.trusted).data)
        if text is None:
            raise NotTaken(path, Why.BINARY)  # noqa: TRY301
        return seal(text).text
    except NotTaken as error:
        raise NotFound(_why_not(root, skill, path, error.why)) from error


def _why_not(root: Root, skill: Skill, path: str, why: Why) -> str:
    asked = shown(path)[:200]
    if why is Why.STRANGE_NAME:
        return f"{asked!r} is not below the skill's folder: give a path like references/guide.md"
    if why is Why.TOO_LARGE:
        return (
            f"{asked} of the skill {skill.name} is longer than {_MOST_BYTES:,} "
            "bytes: read a part of it with another tool"
        )
    if why is not Why.GONE:
        return f"{asked} of the skill {skill.name} is not read: {why}"
    near = get_close_matches(path, listing(root.folder).files, _PROPOSED, 0.4)
    return f"the skill {skill.name} has no file {asked}" + (
        f"; there is {', '.join(map(shown, near))}" if near else ""
    )


def _size(at: Stat) -> str:
    return f"{at.size:,} bytes" if at.size < 10_000 else f"{at.size / 1000:,.0f} KB"


class SkillCache:
    """What was made of skills, kept on disk for the next process: parsing a thousand of them takes
    seconds, reading this milliseconds.

    Derived, and safe to delete at any time. A file that is damaged, or that another version of the
    parser wrote, is ignored. A scan is kept under everything that it depended on: of each file its
    path, size, inode and times. What changed a moment ago is not kept: it may change again before a
    file system's clock has ticked, and would look as it was.

    Not for two threads at once. Processes may share the file: the last one that writes wins.
    """

    def __init__(self, path: Path, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._path = path
        self._clock_ns = clock_ns
        self._made_by = ""
        self._read: dict[str, msgspec.Raw] = {}
        self._live: dict[str, msgspec.Raw] = {}
        """What this process needed: the rest is of skills that are gone or have changed."""
        self._is_new = False

    def get(self, key: object, newest_ns: int, make: Callable[[], SkillScan]) -> SkillScan:
        """`key` is, by its `repr`, everything that the scan depends on; `newest_ns` is when the
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
    faults: tuple[ToolFault, ...]


class _Body(msgspec.Struct):
    made_by: str
    looks: dict[str, msgspec.Raw]


_BODY = msgspec.msgpack.Encoder()
_BODIES = msgpack_decoder(_Body)
_LOOKS = msgpack_decoder(_CachedScan)


def _made_by() -> str:
    """What the same files would have to be parsed again for: other code of ours, another Python to
    read or to run scripts."""
    made = hashlib.sha256(
        repr((sys.version, sys.executable, __file__)).encode("utf-8", "surrogatepass")
    )
    for path in (*sorted(Path(__file__).parent.glob("*.py")), Path(host_calls.__file__)):
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
    return SkillScan(tuple(map(_decode_skill, found.skills)), found.troubles, found.faults)


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
        raw = msgspec.Raw(_BODY.encode(_CachedScan(skills, found.troubles, found.faults)))
    except (UnicodeEncodeError, msgspec.MsgspecError):  # names that are no text
        return None
    return raw if _decode(raw) == found else None
