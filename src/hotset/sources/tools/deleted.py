"""The tools that were deleted, in `deleted.json`: where the content of each is kept, and how it had fared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hotset.nouns.tool import Life
from hotset.sources.tools.documents import Checked, Document
from hotset.sources.tools.registry import life_as_json, life_from, time_as_json, time_from

FILE = "deleted.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Deleted:
    life: Life
    content: str
    """Where its code is kept."""
    when: float
    earlier: tuple[str, ...] = ()
    """Where the code is kept of tools that had its name before it, the latest last."""


class Deletions:
    """One project's. Nothing leaves it but what is restored."""

    def __init__(self, folder: Path) -> None:
        self._document = Document(folder / FILE, _check)

    def all(self) -> Mapping[str, Deleted]:
        return {name: _from(name, entry) for name, entry in self._document.read()["tools"].items()}

    def note(self, life: Life, content: str, now: float) -> None:
        """Raises `StoreFailed`."""
        with self._document.changing() as document:
            known = document["tools"].get(life.name)
            before = () if known is None else _contents(_from(life.name, known))
            earlier = [each for each in before if each != content]
            entry = {"content": content, "when": time_as_json(now), "earlier": earlier, "life": life_as_json(life)}
            document["tools"][life.name] = entry

    def forget(self, name: str) -> None:
        """Raises `StoreFailed`."""
        with self._document.changing() as document:
            document["tools"].pop(name, None)

    def troubles(self) -> Sequence[str]:
        return self._document.troubles()


def _contents(deleted: Deleted) -> tuple[str, ...]:
    return (*deleted.earlier, deleted.content)


def _from(name: str, entry: Any) -> Deleted:
    """Raises `ValueError` with what is wrong."""
    if not (isinstance(entry, dict) and isinstance(entry.get("content"), str)):
        raise ValueError(f"{name}: it is not said where its content is kept")  # noqa: TRY004 - of a file, not of a program
    earlier = entry.get("earlier", [])
    if not isinstance(earlier, list) or not all(isinstance(each, str) for each in earlier):
        raise ValueError(f"{name}: what was there earlier is not a list of places")
    return Deleted(life_from(name, entry.get("life", {})), entry["content"], time_from(entry.get("when", 0)), tuple(earlier))


def _check(found: dict[str, Any] | None, copy: dict[str, Any] | None) -> Checked:
    if found is None:
        return Checked({"format": _FORMAT, "tools": {}}) if copy is None else _check(copy, None)
    if not isinstance(found.get("tools", {}), dict):
        return replace(_check(None, copy), wrong=("its tools are not an object",))
    good = {} if copy is None else _check(copy, None).value["tools"]
    tools, wrong = {}, []
    for name, entry in found.get("tools", {}).items():
        try:
            _from(name, entry)
            tools[name] = entry
        except ValueError as error:
            wrong.append(str(error))
            tools |= {name: good[name]} if name in good else {}
    return Checked({"format": _FORMAT, **found, "tools": tools}, tuple(wrong))
