"""A skill as a model reads it: first its instructions and the names of its files, then single files, without secrets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from hotset.errors import BadInput, Malformed, NotFound
from hotset.files.root import MOST_BYTES, NotTaken, Root, Stat, Why, parts_of, shown
from hotset.sources.tools.found.folders import listing
from hotset.sources.tools.found.frontmatter import split
from hotset.sources.tools.found.skill import SKILL_FILE, Skill
from hotset.text.decoding import decode

_MOST_BYTES = 262_144  # of one file: what a model can read at all
_SHOWN_FILES = 200
_PROPOSED = 3


def read_skill(skill: Skill, file: str = "") -> str:
    """Its instructions with a list of its files; or one of these. Raises `NotFound` with a sentence for whoever asked."""
    try:
        root = Root(skill.folder)
    except BadInput as error:
        raise NotFound(f"the skill {skill.name} is not there any more: look for another") from error
    with root:
        if file and file != SKILL_FILE:
            return _read(root, skill, _real(root, file), _MOST_BYTES)
        return "\n".join((_instructions(_read(root, skill, SKILL_FILE, MOST_BYTES)), *_overview(skill)))


def _instructions(text: str) -> str:
    try:
        return split(text)[1].strip()
    except Malformed:  # somebody is just changing it
        return text.strip()


def _overview(skill: Skill) -> Iterator[str]:
    yield f"\n[The skill {skill.name} lies in {shown(str(skill.folder))}"
    found = listing(skill.folder)
    files = {path: at for path, at in found.files.items() if path != SKILL_FILE}
    if callable_tools := [tool.name for tool in skill.tools if tool.own_name]:
        yield f"Tools that run its scripts: {', '.join(callable_tools)}"
    if files:
        yield f"Its files; {skill.source.name} with `file` reads one:"
    yield from (f"- {shown(path)} ({_size(at)})" for path, at in list(files.items())[:_SHOWN_FILES])
    left = len(files) - _SHOWN_FILES
    if left > 0 or not found.whole:
        yield f"- and {f'{left:,} ' if left > 0 else ''}more"
    if others := len(found.links) + len(found.special):
        yield f"- {others} more cannot be read: links, or no regular files"
    yield "]"


def _real(root: Root, file: str) -> str:
    """The path below the folder, with links that stay in it resolved; what leads out stays as it is, and is refused."""
    try:
        parts = parts_of(file)
        real = os.path.realpath(root.folder.joinpath(*parts))
    except (NotTaken, ValueError, OSError):
        return file
    return str(Path(real).relative_to(root.folder)) if Path(real).is_relative_to(root.folder) else file


def _read(root: Root, skill: Skill, path: str, most: int) -> str:
    from hotset.sealing import seal, secret_file  # noqa: PLC0415 - patterns of secrets: half a second at first

    text, why = None, Why.SECRET
    if secret_file(path) is None:
        try:
            text, why = decode(root.read(path, most, hard_links=skill.source.trusted).data), Why.BINARY
        except NotTaken as error:
            why = error.why
    if text is None:
        raise NotFound(_why_not(root, skill, path, why))
    return seal(text).text


def _why_not(root: Root, skill: Skill, path: str, why: Why) -> str:
    asked = shown(path)[:200]
    if why is Why.STRANGE_NAME:
        return f"{asked!r} is no path below the skill's folder: give one like references/guide.md"
    if why is Why.TOO_LARGE:
        return f"{asked} of the skill {skill.name} is longer than {_MOST_BYTES:,} bytes: look at a part of it with another tool"
    if why is not Why.GONE:
        return f"{asked} of the skill {skill.name} is not read: {why}"
    near = get_close_matches(path, listing(root.folder).files, _PROPOSED, 0.4)
    return f"the skill {skill.name} has no file {asked}" + (f"; there is {', '.join(map(shown, near))}" if near else "")


def _size(at: Stat) -> str:
    return f"{at.size:,} bytes" if at.size < 10_000 else f"{at.size / 1000:,.0f} KB"
