"""Commands that are loaded when they are asked for: a group shows its help without importing any of
them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class CommandEntry:
    where: str
    """`module:attribute`; imported only when the command runs or shows its own help."""
    short: str


Sections = Mapping[str, Mapping[str, CommandEntry]]
"""By the title under which help shows them, and by name."""


class LazyGroup(click.Group):
    def __init__(self, *args: Any, sections: Sections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sections = sections
        self._entries = {
            name: entry for section in sections.values() for name, entry in section.items()
        }

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self._entries)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        entry = self._entries.get(name)
        if entry is None:
            return None
        module, attribute = entry.where.split(":")
        command: click.Command = getattr(import_module(f"hotset.surfaces.cli.{module}"), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = self.near(ctx, args[0])
            if not near:
                raise
            names = " or ".join(f"{ctx.command_path} {name}" for name in near)
            raise click.UsageError(
                f"No such command {args[0]!r}. Did you mean {names}?", ctx
            ) from error

    def near(self, ctx: click.Context, typed: str) -> list[str]:
        """The commands that may have been meant."""
        from difflib import get_close_matches  # noqa: PLC0415 - for those who mistype

        return get_close_matches(typed, self.list_commands(ctx), 3, 0.5)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.short) for name, entry in section.items()])
