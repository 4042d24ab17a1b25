"""A shelf after its source has said what there is: what is new, what differs, what is gone, and under which names. Pure.

Names stay as they were given out. A second source that comes out at the same name gets a hash behind its own; a tool that would
have had another one's name, or that looks like it, is flagged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

import msgspec

from hotset.nouns.tool import Origin, Source, Tool
from hotset.sources.tools.names import Others
from hotset.sources.tools.naming import LONGEST, full_name, slug
from hotset.sources.tools.pinning import Entry, listed_again, pinned, storable
from hotset.sources.tools.shelves import Stored
from hotset.sources.tools.suspicion import OUR_TOOLS
from hotset.text.characters import visible

MOST_TOOLS = 20_000
"""That one source may list: a longer list is somebody's mistake, or their attack."""
LARGEST = 1 << 20
"""Characters that a tool may say of itself: no model could read more."""

_FOLLOWED = frozenset({Origin.SKILL, Origin.CREATED, Origin.CALLABLE})
"""Whoever can change these can change us: a person's own files, what was written here after consent, the program itself."""
_SUFFIX = 6


@dataclass(frozen=True, slots=True)
class Change:
    """What a list changed, by the names of tools."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    flagged: tuple[str, ...] = ()
    """Of those that were added or changed."""
    refused: tuple[str, ...] = ()
    """Sentences about what of the list was not taken."""

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.flagged or self.refused)


def listed(
    before: Stored | None, source: Source, tools: Sequence[Tool], others: Others, *, instructions: str, now: float
) -> tuple[Stored, Change]:
    shelf = before or Stored(source.name, source.origin, head=_head(source, others))
    entries = dict(shelf.tools)
    by_own = {entry.pin.own_name: name for name, entry in entries.items()}
    follow = source.origin in _FOLLOWED
    taken, refused = _taken(tools)
    added, changed = [], []
    for tool in taken:
        if (name := by_own.get(tool.own_name)) is None:
            name = _name(tool, shelf, entries, others)
            entries[name] = Entry(name, pinned(tool, _odd(tool, name, others)))
            added.append(name)
        else:
            old = entries[name]
            entries[name] = listed_again(old, tool, partial(_odd, tool, name, others), follow=follow)
            if (entries[name].pin, entries[name].waits) != (old.pin, old.waits):
                changed.append(name)
    here = {tool.own_name for tool in taken}
    removed = [name for name, entry in entries.items() if entry.pin.own_name not in here and not entry.gone]
    entries |= {name: msgspec.structs.replace(entries[name], gone=True) for name in removed}
    label = {"stamp": source.stamp, "trusted": source.trusted, "listed_at": now, "away": False}
    words = _words(instructions, shelf.words, follow=follow)
    after = msgspec.structs.replace(shelf, **label, words=words, tools=entries)
    return after, Change(tuple(added), tuple(changed), tuple(removed), refused=tuple(refused))


def _taken(tools: Sequence[Tool]) -> tuple[list[Tool], list[str]]:
    """What of a list can be kept, each of its names once; and sentences about the rest."""
    taken: dict[str, Tool] = {}
    refused = []
    for tool in map(storable, tools[:MOST_TOOLS]):
        size = len(tool.own_name) + len(tool.title) + len(tool.description) + len(tool.parameters) + len(tool.annotations)
        if size > LARGEST:
            refused.append(f"{visible(tool.own_name[:64])} is left out: it says {size:,} characters of itself")
        elif taken.setdefault(tool.own_name, tool) != tool:
            refused.append(f"{visible(tool.own_name[:64])} is listed twice: the first one is taken")
    if len(tools) > MOST_TOOLS:
        refused.append(f"{len(tools) - MOST_TOOLS:,} tools are left out: a source may list {MOST_TOOLS:,}")
    return list(taken.values()), refused


def _head(source: Source, others: Others) -> str:
    """What stands in front of its tools' names: a second source of the same slug gets a hash behind it."""
    head = slug(source.name)
    return f"{head[:32].rstrip('_-')}-{_hash(source.name)}" if others.have_head(head) else head


def _name(tool: Tool, shelf: Stored, entries: Mapping[str, Entry], others: Others) -> str:
    """As the source's finder named it, unless that is taken."""
    name = tool.name if shelf.head == slug(shelf.name) else full_name(shelf.head, tool.own_name)
    if name not in entries and name not in OUR_TOOLS and not others.have(name):
        return name
    return f"{name[: LONGEST - _SUFFIX - 1].rstrip('_')}_{_hash(shelf.name + '/' + tool.own_name)}"


def _odd(tool: Tool, name: str, others: Others) -> list[str]:
    """What is odd about its name beside the others'."""
    odd = []
    if full := others.alike(name):
        odd.append(f"its name {name} looks like {full}, a tool of another source")
    if own := others.alike_own(tool.own_name):
        odd.append(f"its name {tool.own_name[:64]!r} looks like {own[:64]!r}, which another source has")
    if tool.name != name and others.have(tool.name):
        odd.append(f"it would have the name of {tool.name}, a tool of another source")
    if tool.name in OUR_TOOLS:
        odd.append(f"it would have the name of hotset's own {tool.name}")
    return odd


def _words(text: str, before: Entry | None, *, follow: bool) -> Entry | None:
    """A server's instructions, kept as if they were the description of a tool without a name."""
    if before is None:
        return Entry("", pinned(_speaking(text))) if text else None
    if not text:
        return msgspec.structs.replace(before, gone=True)
    return listed_again(before, _speaking(text), list, follow=follow)


def _speaking(text: str) -> Tool:
    return Tool("", "", Origin.SERVER, "", text[:LARGEST], b"{}")


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_SUFFIX]
