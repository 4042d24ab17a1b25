"""Commands that are loaded when they are asked for: a group shows its help without importing any of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class Entry:
    where: str
    """`module:attribute`; imported only when the command runs or shows its own help."""
    short: str


Sections = Mapping[str, Mapping[str, Entry]]
"""By the title under which help shows them, and by name."""


class LazyGroup(click.Group):
    def __init__(self, *args: Any, sections: Sections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sections = sections
        self._entries = {name: entry for section in sections.values() for name, entry in section.items()}

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self._entries)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        entry = self._entries.get(name)
        if entry is None:
            return None
        module, attribute = entry.where.split(":")
        command: click.Command = getattr(import_module(f"hotset.surfaces.cli.{module}"), attribute)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.short) for name, entry in section.items()])
