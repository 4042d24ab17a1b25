"""What a person accepted of a tool, and what becomes of it when its source says something else. Pure.

A tool is pinned as it was first seen. From then on the catalogue hands out the pinned text and no other: what a server says later
waits beside it until a person has looked. Nothing here says "ready": that follows from the texts and the hashes each time they
are read, so that nobody makes a tool ready by writing that it is.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256

import msgspec

from hotset.nouns.tool import Origin, Tool
from hotset.sources.tools.suspicion import suspect
from hotset.text.characters import visible


class State(StrEnum):
    READY = "ready"
    CHANGED = "changed"
    """Its source describes it differently now; a person has to look."""
    FLAGGED = "flagged"
    """Something about it could deceive a model or a person; a person has to look."""
    DENIED = "denied"
    """A rule of the person's own."""
    UNAPPROVED = "unapproved"
    """Its source lies in the project's folder, and nobody said that it may run."""
    GONE = "gone"
    """Its source does not offer it any more."""


@dataclass(frozen=True, slots=True)
class Known:
    """A tool of the catalogue."""

    tool: Tool
    """As it was accepted; what its source says since then is `new`."""
    state: State
    why: str = ""
    """Why it is not ready, and what can be done; empty where it is."""
    new: Tool | None = None
    """What waits for a person's word."""
    warnings: tuple[str, ...] = ()
    """What is odd about it, for a person who looks. It works all the same."""
    digest: str = ""
    """Of what a person would approve: `new` where there is one, otherwise `tool`; the stamp of a source that waits as a whole."""
    is_told: bool = False
    """It is a skill of the project that nobody approved yet; its name and description may be told all the same, as nothing about
    them is odd. Nothing else of it is told, and nothing is run."""


class Pin(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool's texts at one moment, and the hash of them."""

    own_name: str
    description: str
    parameters: str
    digest: str
    title: str = ""
    annotations: str = "{}"
    depends: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the catalogue keeps of a tool."""

    name: str
    """As models call it; it stays, whatever happens around it."""
    pin: Pin
    waits: Pin | None = None
    approved: str = ""
    """The digest that a person said yes to, where it took one."""
    gone: bool = False


def digest(tool: Tool) -> str:
    """The hash of all that a model is told of a tool. Key order and white space of JSON do not count; every character does."""
    parts = (tool.own_name, tool.title, tool.description, _canonical(tool.parameters), _canonical(tool.annotations))
    hashed = sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8))  # so that nothing can move from one part into the next
        hashed.update(data)
    return hashed.hexdigest()


def pinned(tool: Tool, more: Sequence[str] = ()) -> Pin:
    """A tool as it is now, looked at; `more` is what is odd about it for whoever knows the others."""
    tool = storable(tool)
    found = suspect(tool)
    return Pin(
        tool.own_name,
        tool.description,
        tool.parameters.decode(),
        digest(tool),
        tool.title,
        tool.annotations.decode(),
        tool.depends,
        (*found.flags, *more),
        found.warnings,
        found.mentions,
    )


def is_same(pin: Pin, tool: Tool) -> bool:
    return pin.digest == digest(storable(tool))


def storable(tool: Tool) -> Tool:
    """Text that UTF-8 can say: halves of surrogate pairs and broken bytes become the sign for that."""
    if all(text.isascii() for text in (tool.own_name, tool.title, tool.description, tool.parameters, tool.annotations)):
        return tool
    return replace(
        tool,
        own_name=_clean(tool.own_name.encode("utf-8", "replace")),
        title=_clean(tool.title.encode("utf-8", "replace")),
        description=_clean(tool.description.encode("utf-8", "replace")),
        parameters=_clean(tool.parameters).encode(),
        annotations=_clean(tool.annotations).encode(),
    )


def is_text(text: str) -> bool:
    """UTF-8 can say it."""
    return text.isascii() or _clean(text.encode("utf-8", "replace")) == text


def listed_again(entry: Entry, tool: Tool, more: Callable[[], Sequence[str]], *, follow: bool) -> Entry:
    """A known tool, as its source describes it now. `follow` where its owner is the person or the program itself."""
    if is_same(entry.pin, tool):
        return msgspec.structs.replace(entry, waits=None, gone=False, pin=_with_depends(entry.pin, tool))
    if follow:
        return msgspec.structs.replace(entry, pin=pinned(tool, more()), waits=None, gone=False)
    if entry.waits is not None and is_same(entry.waits, tool):
        return msgspec.structs.replace(entry, gone=False)
    return msgspec.structs.replace(entry, waits=pinned(tool, more()), gone=False)


def accepted(entry: Entry) -> Entry:
    """A person said yes to what there is now."""
    pin = entry.waits or entry.pin
    true = digest(_tool(pin, entry.name, "", Origin.SERVER))  # of the text that was shown, whatever the file says
    return msgspec.structs.replace(entry, pin=msgspec.structs.replace(pin, digest=true), waits=None, approved=true)


def known(entry: Entry, source: str, origin: Origin, *, shadows: Sequence[str] = ()) -> Known:
    """A tool and its state, as far as they follow from itself; `shadows` are tools of others that it tells the model about."""
    tool = _tool(entry.pin, entry.name, source, origin)
    new = _tool(entry.waits, entry.name, source, origin) if entry.waits else None
    seen = entry.waits or entry.pin
    now = digest(tool)
    base = Known(tool, State.READY, "", new, seen.warnings, digest(new) if new else now)
    look = f"a person can look at it with `hotset tools approve {entry.name}`"
    if entry.gone:
        return replace(base, state=State.GONE, why=f"{source} does not offer it any more")
    if now != entry.pin.digest:
        return replace(base, state=State.CHANGED, why=f"its text in the catalogue is not the one that was accepted; {look}")
    flags = (*seen.flags, *(f"it tells the model what to do about {each}, a tool of another source" for each in shadows))
    if flags and entry.approved != base.digest:
        return replace(base, state=State.FLAGGED, why=f"{visible('; '.join(flags))}; {look}")
    if new is not None:
        return replace(base, state=State.CHANGED, why=f"{source} describes it differently since it was accepted; {look}")
    return base


def readable(tool: Tool) -> str:
    """A tool as a person reads it, line by line; what cannot be seen is named."""
    lines = [f"name: {tool.own_name}", *([f"title: {tool.title}"] if tool.title else []), "description:"]
    lines += [f"  {line}" for line in tool.description.split("\n")]
    for told, raw in (("parameters", tool.parameters), ("annotations", tool.annotations)):
        if raw != b"{}":
            lines += [f"{told}:", *(f"  {line}" for line in _pretty(raw).split("\n"))]
    return "\n".join(map(visible, lines))


def diff(known: Known) -> str:
    """What would change by approving, for a person; empty where nothing waits."""
    if known.new is None:
        return ""
    old, new = readable(known.tool).split("\n"), readable(known.new).split("\n")
    return "\n".join(difflib.unified_diff(old, new, f"{known.tool.name} (accepted)", f"{known.tool.name} (now)", lineterm=""))


def _tool(pin: Pin, name: str, source: str, origin: Origin) -> Tool:
    parameters, annotations = pin.parameters.encode(), pin.annotations.encode()
    return Tool(name, source, origin, pin.own_name, pin.description, parameters, pin.title, annotations, pin.depends)


def _with_depends(pin: Pin, tool: Tool) -> Pin:
    return pin if pin.depends == tool.depends else msgspec.structs.replace(pin, depends=tool.depends)


def _clean(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _canonical(raw: bytes) -> bytes:
    try:
        return msgspec.json.encode(msgspec.json.decode(raw), order="sorted")
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return raw


def _pretty(raw: bytes) -> str:
    try:
        text = msgspec.json.format(msgspec.json.encode(msgspec.json.decode(raw), order="sorted"), indent=2)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return raw.decode("utf-8", "replace")
    return text.decode()
