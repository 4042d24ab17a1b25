"""Every source of a project's tools as its files say it now: servers, skills, and what agents wrote. Nothing is run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hotset.config import TOOLS, Config
from hotset.nouns.tool import Source, Tool
from hotset.sources.tools.found.created import read_created
from hotset.sources.tools.found.kept import FILE, Kept
from hotset.sources.tools.found.servers import read_servers
from hotset.sources.tools.found.skills import Skill, find_skills, skill_folders

CREATED = "created"
"""The folder of what agents wrote, in the folder of a project's tools."""

_REST_SECONDS = 1.0  # between two looks at the files: a model's next call comes later than that


@dataclass(frozen=True, slots=True)
class Gathered:
    servers: Mapping[str, Source] = field(default_factory=dict)
    skills: Mapping[str, Skill] = field(default_factory=dict)
    created: Source | None = None
    """None while no agent has written any."""
    written: tuple[Tool, ...] = ()
    """What agents wrote."""
    troubles: tuple[str, ...] = ()

    @property
    def sources(self) -> Mapping[str, Source]:
        found = {**self.servers, **{name: skill.source for name, skill in self.skills.items()}}
        return {**found, self.created.name: self.created} if self.created else found


class Gathering:
    """Looks again when it is asked and a moment has passed. Use it from any thread."""

    def __init__(self, config: Config, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._folders = skill_folders(config.project, config.user, config.tooling.skills)
        self._kept = Kept(config.folder / TOOLS / FILE)
        self._written = config.folder / TOOLS / CREATED
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._looked = float("-inf")
        self._gathered = Gathered()

    def now(self, *, at_once: bool = False) -> Gathered:
        """What there is, the same object while nothing changed; `at_once` for whoever has just changed something."""
        with self._lock:
            if at_once or self._monotonic() - self._looked >= _REST_SECONDS:
                found = self._look()
                self._gathered = self._gathered if found == self._gathered else found
                self._looked = self._monotonic()
            return self._gathered

    def _look(self) -> Gathered:
        servers: dict[str, Source] = {}
        troubles: list[str] = []
        for file in self._config.servers:
            read = read_servers(file, self._config.environ)
            servers |= {source.name: source for source in read.sources}
            troubles += read.troubles
        found = find_skills(self._folders, self._kept)
        skills = {skill.source.name: skill for skill in found.skills}
        for name in servers.keys() & skills.keys():
            troubles.append(f"skill {name} is left out: a server has the same name")
            del skills[name]
        written = read_created(self._written)
        return Gathered(servers, skills, written.source, written.tools, (*troubles, *found.troubles, *written.troubles))
