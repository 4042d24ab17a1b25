"""Tools that agents wrote: one Python file each, in one folder of ours, checked by parsing before
it is written.

A file is one tool: the function that is called like the file. So an unused tool can be deleted
without taking another with it; what else the file defines only helps it.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from hotset.errors import Malformed, NotFound
from hotset.files.lock import hold_folder
from hotset.files.root import NotTaken, Root, shown
from hotset.files.write import write_atomically
from hotset.nouns.tool import OriginKind, Tool, ToolOrigin
from hotset.sources.tools.found.folders import (
    Listing,
    ToolFault,
    content_marks,
    host_launch,
    listing,
    script_of,
    stamp_of,
)
from hotset.sources.tools.found.signatures import Script, own_names, read_script
from hotset.sources.tools.tool_names import full_name

SOURCE = "created"

_MOST_BYTES = 262_144
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,49}")
_ENDING = ".py"
_FORMAT = "1"  # of what is made of a file; counted up when the same file gives another tool


@dataclass(frozen=True, slots=True)
class CreatedFolder:
    tools: tuple[Tool, ...] = ()
    source: ToolOrigin | None = None
    """None while there are none."""
    troubles: tuple[str, ...] = ()
    """Files that are no tools, and why."""
    faults: tuple[ToolFault, ...] = ()


def create(folder: Path, name: str, code: str) -> Tool:
    """Writes a tool. Raises `Malformed` where the name or the code cannot be one, and says what to
    change."""
    _check_name(name)
    data = _encoded(code)
    tool = _tool(name, read_script(code), name)
    with hold_folder(folder) as here:
        if clash := _clash(here, name):
            raise Malformed(
                f"there is a tool {clash} already: remove it first, or choose another name"
            )
        write_atomically(here / f"{name}{_ENDING}", data)
    return next((each for each in read_created(folder).tools if each.name == tool.name), tool)


def read_created(folder: Path) -> CreatedFolder:
    """The tools, their source, and what else lies in the folder. Files that have not changed are
    not read again."""
    if not folder.is_dir():
        return CreatedFolder()
    with Root(folder) as root:
        there = listing(root.folder, deepest=0)
        strange = (*there.links, *there.special)
        troubles = [
            f"{shown(path)} among the created tools is not read: a link, or no regular file"
            for path in strange
        ]
        scripts: dict[str, Script] = {}
        faults: list[ToolFault] = []
        for path, at in there.files.items():
            name = path.removesuffix(_ENDING)
            if name == path or name.startswith("."):
                continue
            try:
                _check_name(name)
                script = script_of(root, path, at, hard_links=False)
                _tool(name, script, name)
                scripts[name] = script
            except NotTaken as error:
                troubles.append(f"the created tool {shown(path)} is not read: {error.why}")
            except Malformed as error:
                troubles.append(f"the created tool {shown(path)} cannot be used: {error}")
                where = shown(str(root.folder / path))
                faults.append(ToolFault(full_name(SOURCE, name), f"{where}: {error}"))
        if not scripts:
            return CreatedFolder(troubles=tuple(troubles), faults=tuple(faults))
        own = own_names(scripts)
        tools = tuple(_tool(name, script, own[name, name]) for name, script in scripts.items())
        used = Listing({f"{name}{_ENDING}": there.files[f"{name}{_ENDING}"] for name in scripts})
        return CreatedFolder(
            tools,
            _source(root.folder, content_marks(root, used, hard_links=False)),
            tuple(troubles),
            tuple(faults),
        )


class CreatedTools:
    """The folder of created tools, by a tool's own or full name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> bytes | None:
        """A tool's code; None where there is none. Like the other methods, raises `NotFound` for an
        invalid name."""
        own = _own_name(name)
        if not self._folder.is_dir():
            return None
        with Root(self._folder) as root:
            try:
                return root.read(f"{own}{_ENDING}", _MOST_BYTES).data
            except NotTaken:
                return None

    def remove(self, name: str) -> bytes:
        """Deletes a tool and gives its code back. Raises `NotFound`."""
        own = _own_name(name)
        with hold_folder(self._folder) as here:
            data = self.read(own)
            if data is None:
                near = get_close_matches(
                    own, [path.stem for path in here.glob(f"*{_ENDING}")], 3, 0.5
                )
                raise NotFound(
                    f"no created tool {own}" + (f"; there is {', '.join(near)}" if near else "")
                )
            (here / f"{own}{_ENDING}").unlink()
        return data

    def put_back(self, name: str, code: bytes) -> None:
        """Writes a tool that was removed, byte for byte. Raises `Malformed` where another one
        has its name."""
        own = _own_name(name)
        if len(code) > _MOST_BYTES:
            raise Malformed(
                f"the code of {own} has {len(code):,} bytes; at most {_MOST_BYTES:,} are kept"
            )
        with hold_folder(self._folder) as here:
            if clash := _clash(here, own):
                raise Malformed(f"there is another tool {clash} now: remove it first")
            write_atomically(here / f"{own}{_ENDING}", code)


def _own_name(name: str) -> str:
    """`word_count` for `created__word_count`. Raises `NotFound` for an invalid name."""
    own = name.removeprefix(f"{SOURCE}__")
    try:
        _check_name(own)
    except Malformed as error:
        raise NotFound(f"no created tool {shown(name)[:80]!r}: {error}") from error
    return own


def _check_name(name: str) -> None:
    """Raises `Malformed` unless the name can be that of a function and of a file on any system."""
    if not _NAME.fullmatch(name):
        raise Malformed(
            "its name must be of up to 50 letters, digits and `_`, the first a letter, like "
            "word_count"
        )
    if keyword.iskeyword(name) or name.lower() in sys.stdlib_module_names:
        raise Malformed(
            f"{name} is a word of Python's own: choose a name that says what the tool does"
        )


def _encoded(code: str) -> bytes:
    try:
        data = code.encode()
    except UnicodeEncodeError as error:
        raise Malformed("the code has half a character in it: write it anew in UTF-8") from error
    if len(data) > _MOST_BYTES:
        raise Malformed(
            f"the code has {len(data):,} bytes; at most {_MOST_BYTES:,} are taken: put data "
            f"into files"
        )
    return data


def _tool(name: str, script: Script, own_name: str) -> Tool:
    """Raises `Malformed` where the file is none."""
    function = next((each for each in script.functions if each.name == name), None)
    if function is None:
        raise Malformed(_no_function(name, script))
    if function.foreign:
        raise Malformed(
            f"no model can give {', '.join(function.foreign)}: take texts, numbers, lists or "
            f"dictionaries instead"
        )
    description = function.description or script.description
    if not description:
        raise Malformed(
            f"say in a docstring of {name} what it does and when to use it: nobody would find "
            f"it otherwise"
        )
    return Tool(
        full_name(SOURCE, name),
        SOURCE,
        OriginKind.CREATED,
        own_name,
        description,
        function.parameters,
        depends=function.depends,
    )


def _no_function(name: str, script: Script) -> str:
    if script.trouble:
        return f"the code cannot be read: {script.trouble}"
    others = ", ".join(each.name for each in script.functions[:5])
    found = f"; it has {others}: call the tool, or the function, alike" if others else ""
    return (
        f"the code has no function {name} whose parameters all have a type, like `def "
        f"{name}(text: str) -> int:`{found}"
    )


def _clash(folder: Path, name: str) -> str:
    """The stem of a file of that name, ignoring case, as some systems do; empty where there is
    none."""
    return next(
        (path.stem for path in folder.glob(f"*{_ENDING}") if path.stem.lower() == name.lower()), ""
    )


def _source(folder: Path, marks: Mapping[str, str]) -> ToolOrigin:
    launch = host_launch(folder, [folder / path for path in marks])
    return ToolOrigin(
        SOURCE, OriginKind.CREATED, launch, stamp_of(launch, {**marks, "": _FORMAT}), shared=True
    )
