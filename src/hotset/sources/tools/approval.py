"""What a person accepted of tools, and what they allow and deny by patterns over names.

A tool is pinned as it was first seen. From then on the catalogue hands out the pinned text and no
other: what a server says later waits beside it until a person has looked. Nothing here says
"ready": that follows from the texts and the hashes each time they are read, so that writing into
the file makes no tool ready.

Patterns come from the user's own file (for everything) and from `hotset tools allow|deny` (for one
project). A denial wins over a permission of the same place; what a person decided for this project
wins over their file. A list of permissions in their file shuts out everything else.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import translate
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import msgspec

from hotset.errors import BadConfig, HotsetError
from hotset.nouns.note import Scope, Space
from hotset.nouns.tool import OriginKind, Tool
from hotset.store.port import Store
from hotset.store.stored_value import StoredValue
from hotset.text.characters import visible
from hotset.text.suspicion import suspect

_RULES = Space("tool_rules", Scope.MACHINE)


class ToolState(StrEnum):
    READY = "ready"
    CHANGED = "changed"
    """Its source describes it differently now; a person has to look."""
    FLAGGED = "flagged"
    """Something about it could deceive a model or a person; a person has to look."""
    DENIED = "denied"
    """A rule of the person's own."""
    UNAPPROVED = "unapproved"
    """Its source lies in the project's folder, and no person allowed it to run."""
    GONE = "gone"
    """Its source does not offer it any more."""


@dataclass(frozen=True, slots=True)
class KnownTool:
    """A tool of the catalogue."""

    tool: Tool
    """As it was accepted; `new` is how its source describes it since then."""
    state: ToolState
    why: str = ""
    """Why it is not ready, and what can be done; empty where it is."""
    new: Tool | None = None
    """What waits for a person's word."""
    warnings: tuple[str, ...] = ()
    """What is odd about it, for a person who looks. It works all the same."""
    digest: str = ""
    """Of what a person would approve: `new` where there is one, otherwise `tool`; the stamp of a
    source that waits as a whole."""
    is_shown_unapproved: bool = False
    """It is a skill of the project that is not approved yet; its name and description may be shown,
    as nothing about them is odd. Nothing else of it is shown, and nothing is run."""


class ToolPin(msgspec.Struct, frozen=True, omit_defaults=True):
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


class CatalogueEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the catalogue keeps of a tool."""

    name: str
    """As models call it; it stays, whatever happens around it."""
    pin: ToolPin
    waits: ToolPin | None = None
    approved: str = ""
    """The digest that a person approved, where that was needed."""
    gone: bool = False


def digest(tool: Tool) -> str:
    """The hash of everything that a model sees of a tool. Key order and white space of JSON do not
    count; every character does."""
    parts = (
        tool.own_name,
        tool.title,
        tool.description,
        _canonical(tool.parameters),
        _canonical(tool.annotations),
    )
    hashed = sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8))  # so that nothing can move from one part into the next
        hashed.update(data)
    return hashed.hexdigest()


def pinned(tool: Tool, more: Sequence[str] = ()) -> ToolPin:
    """Pins a tool as it is now; `more` is what is odd about it beside the others."""
    tool = storable(tool)
    found = suspect(tool)
    return ToolPin(
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


def is_same(pin: ToolPin, tool: Tool) -> bool:
    return pin.digest == digest(storable(tool))


def storable(tool: Tool) -> Tool:
    """The tool with text that UTF-8 can encode: halves of surrogate pairs and broken bytes are
    replaced."""
    if all(
        text.isascii()
        for text in (tool.own_name, tool.title, tool.description, tool.parameters, tool.annotations)
    ):
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
    """True if UTF-8 can encode it."""
    return text.isascii() or _clean(text.encode("utf-8", "replace")) == text


def listed_again(
    entry: CatalogueEntry, tool: Tool, more: Callable[[], Sequence[str]], *, follow: bool
) -> CatalogueEntry:
    """A known tool, as its source describes it now. `follow` where its owner is the person or the
    program itself."""
    if is_same(entry.pin, tool):
        return msgspec.structs.replace(
            entry, waits=None, gone=False, pin=_with_depends(entry.pin, tool)
        )
    if follow:
        return msgspec.structs.replace(entry, pin=pinned(tool, more()), waits=None, gone=False)
    if entry.waits is not None and is_same(entry.waits, tool):
        return msgspec.structs.replace(entry, gone=False)
    return msgspec.structs.replace(entry, waits=pinned(tool, more()), gone=False)


def accepted(entry: CatalogueEntry) -> CatalogueEntry:
    """The entry after a person approved what there is now."""
    pin = entry.waits or entry.pin
    true = digest(
        _tool(pin, entry.name, "", OriginKind.SERVER)
    )  # of the text that was shown, not of the digest in the file
    return msgspec.structs.replace(
        entry, pin=msgspec.structs.replace(pin, digest=true), waits=None, approved=true
    )


def known(
    entry: CatalogueEntry, source: str, origin: OriginKind, *, shadows: Sequence[str] = ()
) -> KnownTool:
    """A tool and its state, as far as they follow from itself; `shadows` are tools of others that
    it tells the model about."""
    tool = _tool(entry.pin, entry.name, source, origin)
    new = _tool(entry.waits, entry.name, source, origin) if entry.waits else None
    seen = entry.waits or entry.pin
    now = digest(tool)
    base = KnownTool(tool, ToolState.READY, "", new, seen.warnings, digest(new) if new else now)
    look = f"a person can review it: `hotset tools approve {entry.name}`"
    if entry.gone:
        return replace(base, state=ToolState.GONE, why=f"{source} no longer offers it")
    if now != entry.pin.digest:
        return replace(
            base,
            state=ToolState.CHANGED,
            why=f"its text in the catalogue is not the one that was accepted; {look}",
        )
    flags = (
        *seen.flags,
        *(
            f"it tells the model what to do about {each}, a tool of another source"
            for each in shadows
        ),
    )
    if flags and entry.approved != base.digest:
        return replace(base, state=ToolState.FLAGGED, why=f"{visible('; '.join(flags))}; {look}")
    if new is not None:
        return replace(
            base,
            state=ToolState.CHANGED,
            why=f"its description changed since it was accepted; {look}",
        )
    return base


def readable(tool: Tool) -> str:
    """A tool as a person reads it, line by line; what cannot be seen is named."""
    lines = [
        f"name: {tool.own_name}",
        *([f"title: {tool.title}"] if tool.title else []),
        "description:",
    ]
    lines += [f"  {line}" for line in tool.description.split("\n")]
    for label, raw in (("parameters", tool.parameters), ("annotations", tool.annotations)):
        if raw != b"{}":
            lines += [f"{label}:", *(f"  {line}" for line in _pretty(raw).split("\n"))]
    return "\n".join(map(visible, lines))


def diff(known: KnownTool) -> str:
    """What would change by approving, for a person; empty where nothing waits."""
    if known.new is None:
        return ""
    old, new = readable(known.tool).split("\n"), readable(known.new).split("\n")
    return "\n".join(
        difflib.unified_diff(
            old, new, f"{known.tool.name} (accepted)", f"{known.tool.name} (now)", lineterm=""
        )
    )


def _tool(pin: ToolPin, name: str, source: str, origin: OriginKind) -> Tool:
    parameters, annotations = pin.parameters.encode(), pin.annotations.encode()
    return Tool(
        name,
        source,
        origin,
        pin.own_name,
        pin.description,
        parameters,
        pin.title,
        annotations,
        pin.depends,
    )


def _with_depends(pin: ToolPin, tool: Tool) -> ToolPin:
    return (
        pin if pin.depends == tool.depends else msgspec.structs.replace(pin, depends=tool.depends)
    )


def _clean(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _canonical(raw: bytes) -> bytes:
    try:
        return msgspec.json.encode(msgspec.json.decode(raw), order="sorted")
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return raw


def _pretty(raw: bytes) -> str:
    try:
        text = msgspec.json.format(
            msgspec.json.encode(msgspec.json.decode(raw), order="sorted"), indent=2
        )
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return raw.decode("utf-8", "replace")
    return text.decode()


class ProjectRules(msgspec.Struct, frozen=True):
    """The rules of one project."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class ToolRules:
    """The rules of one project, as read last. Changes are made under the catalogue's lock."""

    def __init__(
        self,
        store: Callable[[], Store],
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        old_file: Path | None = None,
    ) -> None:
        """`allow` and `deny` are the patterns of the person's own settings."""
        self.trouble = ""
        self._value = StoredValue(_RULES, ProjectRules, store, old_file=old_file)
        self._old_file = old_file
        self._settings = ProjectRules(tuple(allow), tuple(deny))
        self._project: ProjectRules | None = None

    def version(self) -> object:
        """A value that differs whenever a rule changed, in the project or in the settings."""
        return self._settings, self.follow()

    def follow(self) -> ProjectRules:
        """Reads the rules of this project. What cannot be read denies everything: a rule may have
        been lost in it."""
        try:
            self._project, self.trouble = self._value.read(), ""
            if self._old_file is not None and self._old_file.exists():
                self.trouble = (
                    f"{self._old_file} cannot be understood or taken "
                    f"over, so every tool is "
                    f"denied: mend or remove it"
                )
                self._project = _DENY_ALL
        except HotsetError as error:
            self.trouble = f"the rules of this project cannot be read: {error}"
            self._project = self._project or _DENY_ALL
        return self._project

    def why_denied(self, name: str, source: str) -> str:
        """Why the rules that `follow` read last deny it; empty where it may be used. Give a
        source's name alone to ask about all of it."""
        rules = self._project or self.follow()
        if pattern := _match(rules.deny, name, source):
            return (
                f"it is denied in this project by {pattern!r}; a person can say `hotset tools "
                f"allow {pattern}`"
            )
        if _match(rules.allow, name, source):
            return ""
        if pattern := _match(self._settings.deny, name, source):
            return (
                f"it is denied by {pattern!r} in the [tools] settings; "
                f"a person can say `hotset "
                f"tools allow {name}`"
            )
        if self._settings.allow and not _match(self._settings.allow, name, source):
            return (
                f"the [tools] settings allow other tools only; a person can say `hotset tools "
                f"allow {name}`"
            )
        return ""

    def deny(self, pattern: str, now: float) -> None:
        """Raises `BadConfig` where the earlier rules cannot be read."""
        self._change(
            lambda rules: ProjectRules(_without(rules.allow, pattern), _with(rules.deny, pattern)),
            now,
        )

    def allow(self, pattern: str, now: float) -> None:
        """Takes a denial back, or lets through what the person's file shuts out. Raises as `deny`
        does."""
        self._change(
            lambda rules: ProjectRules(_with(rules.allow, pattern), _without(rules.deny, pattern)),
            now,
        )

    def _change(self, change: Callable[[ProjectRules], ProjectRules], now: float) -> None:
        self.follow()
        if self.trouble:
            raise BadConfig(self.trouble)
        self._value.change(change, now)
        self.follow()


_DENY_ALL = ProjectRules(deny=("*",))


def _with(patterns: tuple[str, ...], pattern: str) -> tuple[str, ...]:
    return patterns if pattern in patterns else (*patterns, pattern)


def _without(patterns: tuple[str, ...], pattern: str) -> tuple[str, ...]:
    return tuple(each for each in patterns if each != pattern)


def _match(patterns: tuple[str, ...], name: str, source: str) -> str:
    """The first pattern that fits the tool's name or its source's."""
    if not patterns:
        return ""
    together = _compiled(patterns)
    if not (together.match(name) or together.match(source)):
        return ""
    return next(
        (
            each
            for each in patterns
            if _compiled((each,)).match(name) or _compiled((each,)).match(source)
        ),
        patterns[0],
    )


@lru_cache(256)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)))
