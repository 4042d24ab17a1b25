"""The options that commands share, and the settings made from them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from hotset.config import Config, load
from hotset.errors import BadInput
from hotset.nouns.knobs import PROFILES
from hotset.surfaces.cli.terminal import say
from hotset.text.moments import parse_moment as _moment

_Given = TypeVar("_Given")
_Parsed = TypeVar("_Parsed")


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """Settings of the window; None leaves one to the environment and the user's file."""

    off: bool | None
    budget: int | None
    profile: str | None
    inject: bool | None

    def settings(self) -> dict[str, Any]:
        """Keyword arguments for `load`."""
        return asdict(self)

    def flags(self) -> list[str]:
        """The same choice, as arguments for another hotset process."""
        given = [
            flag
            for flag, is_set in (("--off", self.off), ("--no-tools", self.inject is False))
            if is_set
        ]
        pairs = (("--budget", self.budget), ("--profile", self.profile))
        return given + [
            word for name, value in pairs if value is not None for word in (name, str(value))
        ]


@dataclass(frozen=True, slots=True)
class ProjectOptions:
    """The project that a command is about, and how much it prints."""

    data: str | None
    project: str | None
    quiet: bool

    def config(self, switches: WindowOptions | None = None) -> Config:
        """The settings in force. Raises `BadConfig`."""
        return load(
            project=self.project, data=self.data, **(switches.settings() if switches else {})
        )

    def say(self, text: str = "") -> None:
        """Prints a message on stderr, unless --quiet."""
        say(text, quiet=self.quiet)

    def hint(self, command: str) -> str:
        """A command for the person to type, with the options of the same project."""
        return shlex.join(["hotset", *command.split(), *self.flags()])

    def flags(self) -> list[str]:
        """The same choice, as arguments for another hotset process."""
        pairs = (("--data", self.data), ("--project", self.project))
        return [word for name, value in pairs if value is not None for word in (name, value)]


def project_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --data, --project and --quiet; the command gets them as its first argument, a
    `ProjectOptions`."""

    @click.option("--data", metavar="DIR", help="The folder that holds this project's store.")
    @click.option(
        "--project", metavar="PATH", help="The project; default: the one around the current folder."
    )
    @click.option("-q", "--quiet", is_flag=True, help="Print only data and errors.")
    @wraps(command)
    def chosen(
        *args: Any, data: str | None, project: str | None, quiet: bool, **kwargs: Any
    ) -> Any:
        return command(ProjectOptions(data, project, quiet), *args, **kwargs)

    return chosen


def window_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the switches of the window; the command gets them as `switches`."""

    @click.option(
        "--off",
        is_flag=True,
        default=None,
        help="Send every request unchanged; still keep it.",
    )
    @click.option(
        "--budget",
        metavar="N",
        type=int,
        help="Tokens that a prompt may have. [default: the model's window]",
    )
    @click.option(
        "--profile",
        metavar="NAME",
        help=(
            f"One for every agent: {', '.join(PROFILES)}, or your own, [profiles.NAME] in TOML. "
            f"[default: by its own name]"
        ),
    )
    @click.option(
        "--no-tools",
        is_flag=True,
        default=None,
        help="Do not offer hotset's tools: the client has them over MCP.",
    )
    @wraps(command)
    def with_switches(
        *args: Any,
        off: bool | None,
        budget: int | None,
        profile: str | None,
        no_tools: bool | None,
        **kwargs: Any,
    ) -> Any:
        return command(
            *args,
            switches=WindowOptions(off, budget, profile, False if no_tools else None),
            **kwargs,
        )

    return with_switches


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """Whether to index the project's files; by default as the person answered when asked."""

    yes: bool
    no: bool

    def flags(self) -> list[str]:
        """The same choice, as arguments for another hotset process. Consent itself is stored."""
        return ["--no-index"] if self.no else []


def index_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --yes and --no-index; the command gets them as `indexing`."""

    @click.option(
        "--yes",
        is_flag=True,
        help="Allow indexing of the project's files without a question.",
    )
    @click.option(
        "--no-index", is_flag=True, help="Do not index the project's files now, and do not ask."
    )
    @wraps(command)
    def with_indexing(*args: Any, yes: bool, no_index: bool, **kwargs: Any) -> Any:
        if yes and no_index:
            raise click.UsageError("--yes and --no-index do not go together")
        return command(*args, indexing=IndexOptions(yes, no_index), **kwargs)

    return with_indexing


def describe_window(window: Mapping[str, Any]) -> str:
    """The settings of the window in one line; `window` is `Config.window`, or the same from a
    proxy's status."""
    if window["off"]:
        return "off: requests go out as they come"
    parts = [f"profile {window['profile']}" if window["profile"] else "each agent by its own kind"]
    parts += [f"at most {window['budget']:,} tokens"] if window["budget"] else []
    parts += [] if window["inject"] else ["no tools of ours"]
    return f"on, {', '.join(parts)}"


def limit_option(
    default: int, most: int | None = None, help: str = "At most so many."
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds -n and --limit, for a list."""
    return click.option(
        "-n",
        "--limit",
        type=click.IntRange(1, most),
        default=default,
        show_default=True,
        help=help,
    )


def parse_option(option: str, parse: Callable[[_Given], _Parsed], value: _Given) -> _Parsed:
    """The parsed value; an error names the option."""
    try:
        return parse(value)
    except BadInput as error:
        raise BadInput(f"{option} {error}") from None


def parse_moment(typed: str, now: float, option: str = "--since") -> float:
    """Parses a time: `2d` is two days before now; a date is its first moment in local time."""
    return parse_option(option, lambda value: _moment(value, now), typed)


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def examples(*lines: str) -> str:
    """An epilog that shows how a command is used; click must not wrap it."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
