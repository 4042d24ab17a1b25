"""The options that commands share, and the settings that follow from them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from hotset.config import Config, load


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which project, and how much to say."""

    data: str | None
    project: str | None
    quiet: bool

    def config(self) -> Config:
        """Raises `BadConfig`."""
        return load(project=self.project, data=self.data)

    def hint(self, command: str) -> str:
        """A command for the person to type, about the same project."""
        return shlex.join(["hotset", *command.split(), *self.flags()])

    def flags(self) -> list[str]:
        """The same choice, as arguments for another hotset process."""
        pairs = (("--data", self.data), ("--project", self.project))
        return [word for name, value in pairs if value is not None for word in (name, value)]


def of_project(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --data, --project and --quiet; the command gets them as its first argument, a `Chosen`."""

    @click.option("--data", metavar="DIR", help="The folder that holds this project's store.")
    @click.option("--project", metavar="PATH", help="The project; default: the one around the current folder.")
    @click.option("-q", "--quiet", is_flag=True, help="Say nothing but data and errors.")
    @wraps(command)
    def chosen(*args: Any, data: str | None, project: str | None, quiet: bool, **kwargs: Any) -> Any:
        return command(Chosen(data, project, quiet), *args, **kwargs)

    return chosen


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def examples(*lines: str) -> str:
    """An epilog that shows how a command is used; click must not wrap it."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
