"""What a person allows and denies, by patterns over the names of tools and of sources.

Patterns come from the user's own file (for everything) and from `hotset tools allow|deny` (for one project). A denial wins over a
permission of the same place; what a person said of this project wins over their file. A list of permissions in their file shuts
out everything else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache
from pathlib import Path

import msgspec

from hotset.errors import BadConfig
from hotset.files.write import write_atomically
from hotset.sources.tools.shelves import Stamp

FILE = "rules.json"


class Said(msgspec.Struct, frozen=True):
    """What was said of one project."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class Rules:
    """Of one project. Changes are made under the catalogue's lock."""

    def __init__(self, folder: Path, allow: Sequence[str] = (), deny: Sequence[str] = ()) -> None:
        self.path = folder / FILE
        self.trouble = ""
        self._allow, self._deny = tuple(allow), tuple(deny)
        self._said = Said()
        self._stamp: Stamp | None = None

    def stamp(self) -> Stamp | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def version(self) -> object:
        """Another one whenever a rule changed, wherever it stands."""
        return self.stamp(), self._allow, self._deny

    def why_denied(self, name: str, source: str) -> str:
        """Empty where it may be used. The whole of a source is asked about with its name alone."""
        said = self._read()
        if pattern := _match(said.deny, name, source):
            return f"it is denied in this project by {pattern!r}; a person can say `hotset tools allow {pattern}`"
        if _match(said.allow, name, source):
            return ""
        if pattern := _match(self._deny, name, source):
            return f"it is denied by {pattern!r} in the [tools] settings; a person can say `hotset tools allow {name}`"
        if self._allow and not _match(self._allow, name, source):
            return f"the [tools] settings allow other tools only; a person can say `hotset tools allow {name}`"
        return ""

    def deny(self, pattern: str) -> None:
        """Raises `BadConfig` where what was said before cannot be read."""
        said = self._sound()
        self._write(Said(tuple(each for each in said.allow if each != pattern), _with(said.deny, pattern)))

    def allow(self, pattern: str) -> None:
        """Takes a denial back, or lets through what the person's file shuts out. Raises as `deny` does."""
        said = self._sound()
        self._write(Said(_with(said.allow, pattern), tuple(each for each in said.deny if each != pattern)))

    def _read(self) -> Said:
        """A file that cannot be understood denies everything: a rule may have been lost in it."""
        stamp = self.stamp()
        if stamp != self._stamp or stamp is None:
            self._stamp, self.trouble = stamp, ""
            try:
                self._said = msgspec.json.decode(self.path.read_bytes(), type=Said) if stamp else Said()
            except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
                self.trouble = f"{self.path} cannot be understood, so every tool is denied: mend or remove it"
                self._said = Said(deny=("*",))
        return self._said

    def _sound(self) -> Said:
        said = self._read()
        if self.trouble:
            raise BadConfig(self.trouble)
        return said

    def _write(self, said: Said) -> None:
        write_atomically(self.path, msgspec.json.format(msgspec.json.encode(said), indent=2))


def _with(patterns: tuple[str, ...], pattern: str) -> tuple[str, ...]:
    return patterns if pattern in patterns else (*patterns, pattern)


def _match(patterns: tuple[str, ...], name: str, source: str) -> str:
    """The first pattern that fits the tool's name or its source's."""
    if not patterns:
        return ""
    together = _compiled(patterns)
    if not (together.match(name) or together.match(source)):
        return ""
    return next((each for each in patterns if _compiled((each,)).match(name) or _compiled((each,)).match(source)), patterns[0])


@lru_cache(256)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)))
