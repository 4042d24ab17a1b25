"""A skill, as it was found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hotset.nouns.tool import Source, Tool
from hotset.sources.tools.found.folders import listing

SKILL_FILE = "SKILL.md"


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
    source: Source
    tools: tuple[Tool, ...]
    """First the one that reads it, named like the skill itself; then one for each typed function of its scripts."""
    folder: Path
    name: str
    """As it calls itself."""
    description: str

    @property
    def files(self) -> tuple[str, ...]:
        """Below its folder, as they are now; not read, and without links."""
        return tuple(path for path in listing(self.folder).files if path != SKILL_FILE)


@dataclass(frozen=True, slots=True)
class Found:
    skills: tuple[Skill, ...] = ()
    troubles: tuple[str, ...] = ()
    """One sentence for each thing that was left out, or should be mended."""
