"""`hotset tools list|find|use|status|graph`: list, find and call tools."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from hotset.config import Config
from hotset.errors import BadInput, ToolFailed, ToolRefused
from hotset.sources import tools
from hotset.surfaces.cli.exit import FOUND, OK
from hotset.surfaces.cli.options import (
    ProjectOptions,
    as_json,
    examples,
    limit_option,
    project_options,
)
from hotset.surfaces.cli.progress import counting
from hotset.surfaces.cli.terminal import (
    count,
    emit,
    emit_json,
    plain,
    say,
    shortened,
    size,
    span,
    table,
    width,
)

if TYPE_CHECKING:
    from hotset.nouns.tool import ToolMetrics
    from hotset.sources.tools import LifeSummary, Toolbox

PATIENCE = 60.0
"""Seconds for servers that a person has just added: a first start may fetch packages."""

_MOST_LISTED = 200
_MOST_LINES = 10
_NONE_KNOWN = "no tool is known yet; add some: {}"


@contextmanager
def open_tools(config: Config, *, is_there: bool = True) -> Iterator[Toolbox]:
    """The toolbox for a command that changes something, or calls one tool. Every use is in the
    audit."""
    from hotset.runtime.reader import empty_where_missing, open_toolbox  # noqa: PLC0415 - with the store

    with empty_where_missing(config, is_there=is_there) as there, open_toolbox(there) as toolbox:
        yield toolbox


def look_at_tools(config: Config) -> AbstractContextManager[Toolbox]:
    """The toolbox for a command that only reads: it creates no store."""
    return open_tools(config, is_there=config.folder.exists())


def list_new_servers(
    toolbox: Toolbox, chosen: ProjectOptions, seconds: float | None = None
) -> None:
    """Lists the tools of new servers, and reports the servers that did not answer."""
    patience = chosen.config().tooling.list_seconds if seconds is None else seconds
    waiting = len(toolbox.unlisted())
    if waiting:
        with counting("asking servers for their tools", waiting, quiet=chosen.quiet) as counter:
            toolbox.stock(patience, lambda _: counter.step())
    else:
        toolbox.stock(0.0)
    for trouble in toolbox.troubles():
        chosen.say(f"hotset: {trouble}")


@click.command(
    "list",
    epilog=examples(
        "hotset tools list", "hotset tools list --source github", "hotset tools list --json"
    ),
)
@project_options
@click.option("--source", metavar="NAME", help="Only the tools of this server or skill.")
@limit_option(_MOST_LISTED)
@as_json
def list_(chosen: ProjectOptions, source: str | None, limit: int, *, as_json: bool) -> None:
    """Every tool that is known, with its state and its use."""
    from hotset.runtime.reader import did_you_mean  # noqa: PLC0415

    with look_at_tools(chosen.config()) as toolbox:
        list_new_servers(toolbox, chosen)
        every = list(toolbox.catalogue.tools())
        known = [each for each in every if source in (None, each.tool.source)]
        metrics = toolbox.metrics()
    if as_json:
        emit_json(
            [
                {
                    "name": each.tool.name,
                    "source": each.tool.source,
                    "origin": each.tool.origin,
                    "state": each.state,
                    "why": each.why,
                    "warnings": each.warnings,
                    **_life_as_json(metrics[each.tool.name]),
                    "description": each.tool.description,
                    "parameters": json.loads(each.tool.parameters),
                }
                for each in known
            ]
        )
    if not every:
        chosen.say(_NONE_KNOWN.format(chosen.hint("tools import")))
    elif not known:
        near = did_you_mean(source or "", {each.tool.source for each in every})
        chosen.say(f"no such source; {near}see all: {chosen.hint('tools list')}")
    if as_json or not known:
        return
    rows = [
        (
            each.tool.name,
            each.state,
            metrics[each.tool.name].tier,
            str(metrics[each.tool.name].calls),
            str(metrics[each.tool.name].failures or ""),
            _seconds_each(metrics[each.tool.name]),
            _last_use(metrics[each.tool.name]),
            _first_line(each.tool.description),
        )
        for each in known[:limit]
    ]
    heads = ("tool", "state", "tier", "calls", "failed", "takes", "last use", "what it does")
    table(heads, rows, right=(3, 4, 5, 6))
    if len(known) > limit:
        chosen.say(
            f"\n{len(known) - limit:,} more; show them with --limit, or find one: "
            f"{chosen.hint('tools find WORDS')}"
        )


@click.command(
    epilog=examples(
        'hotset tools find "read a file"',
        'hotset tools find "open an issue" --source github --json',
    )
)
@click.argument("query", nargs=-1, required=True)
@project_options
@click.option(
    "--source", metavar="NAME", multiple=True, help="Only the tools of this server or skill."
)
@limit_option(5, 20)
@as_json
def find(
    chosen: ProjectOptions,
    query: tuple[str, ...],
    source: tuple[str, ...],
    limit: int,
    *,
    as_json: bool,
) -> int:
    """The tools that fit a task, best first, as an agent gets them. The number is how likely each
    is the right one."""
    from hotset.nouns.tool import UNLIKELY  # noqa: PLC0415 - with the toolbox
    from hotset.runtime.reader import keep_search  # noqa: PLC0415 - with the store

    words = " ".join(query)
    with look_at_tools(chosen.config()) as toolbox:
        list_new_servers(toolbox, chosen)
        begun = time.monotonic()
        found = toolbox.look_for(words, limit, source)
        took = 1000 * (time.monotonic() - begun)
        is_empty = next(iter(toolbox.catalogue.tools()), None) is None
    ghosts = found.ghosts
    hits = [(ghost.tool.name, ghost.score) for ghost in ghosts]
    keep_search(chosen.config(), "hotset tools find", words, hits, ms=took)
    fits = any(ghost.score >= UNLIKELY for ghost in ghosts)
    if as_json:
        emit_json(
            [
                {
                    "name": ghost.tool.name,
                    "score": round(ghost.score, 4),
                    "unlikely": ghost.score < UNLIKELY,
                    "source": ghost.tool.source,
                    "description": ghost.tool.description,
                    "parameters": json.loads(ghost.tool.parameters),
                }
                for ghost in ghosts
            ]
            + [
                {
                    "name": known.tool.name,
                    "source": known.tool.source,
                    "description": known.tool.description,
                    "needs": f"hotset tools approve {known.tool.source}",
                }
                for known in found.waiting
            ]
        )
    for ghost in () if as_json else ghosts:
        first, _, rest = tools.compact(ghost.tool).partition("\n")
        emit(click.style(f"{ghost.score:.2f}  ", dim=True) + click.style(plain(first), fg="cyan"))
        if rest:
            emit("\n".join(f"      {line}" for line in plain(rest).split("\n")))
    for known in () if as_json else found.waiting:
        name = known.tool.source
        emit(click.style("      ", dim=True) + click.style(plain(name), fg="cyan"))
        emit(f"      {plain(shortened(_first_line(known.tool.description), max(40, width() - 6)))}")
        chosen.say(
            f"      it came with this project and needs approval: "
            f"{chosen.hint(f'tools approve {name}')}"
        )
    if is_empty:
        chosen.say(_NONE_KNOWN.format(chosen.hint("tools import")))
    elif not fits:
        nearest = "nothing fits well, and these are only the nearest" if ghosts else "no tool fits"
        chosen.say(
            f"{nearest}; ask in other words, or for one --source; see what there is: "
            f"{chosen.hint('tools list')}"
        )
    return OK if ghosts or found.waiting or is_empty else FOUND


@click.command(
    epilog=examples(
        """hotset tools use files__read_file '{"path": "README.md"}'""",
        "hotset tools use files__read_file path=README.md",
        "hotset tools use git__git_log repo_path=. max_count=3 --json",
    )
)
@click.argument("name")
@click.argument("arguments", nargs=-1)
@project_options
@as_json
def use(chosen: ProjectOptions, name: str, arguments: tuple[str, ...], *, as_json: bool) -> int:
    """Call a tool, with arguments as JSON or as NAME=VALUE."""
    with open_tools(chosen.config()) as toolbox:
        try:
            used = toolbox.use(name, _arguments(arguments))
        except (ToolFailed, ToolRefused) as error:
            say(f"hotset: {error}")
            return FOUND
    if as_json:
        emit_json(
            {
                "tool": used.tool.name,
                "failed": used.returned.failed or not used.ran,
                "seconds": round(used.seconds, 4),
                "content": json.loads(used.returned.content),
                "structured": json.loads(used.returned.structured)
                if used.returned.structured
                else None,
            }
        )
    else:
        emit(plain(used.text))
    return FOUND if used.returned.failed or not used.ran else OK


@click.command(epilog=examples("hotset tools status", "hotset tools status --json"))
@project_options
@as_json
def status(chosen: ProjectOptions, *, as_json: bool) -> None:
    """What runs and how much memory it takes, how tools live, and what waits for your approval."""
    config = chosen.config()
    with look_at_tools(config) as toolbox:
        list_new_servers(toolbox, chosen)
        known = list(toolbox.catalogue.tools())
        summed = toolbox.summary(_MOST_LINES)
        pinned = sorted(name for name, each in toolbox.metrics().items() if each.pinned)
        troubles = toolbox.troubles()
    running = tools.running_everywhere(config)
    states = Counter(each.state for each in known)
    waiting = [
        each
        for each in known
        if each.state
        in (tools.ToolState.CHANGED, tools.ToolState.FLAGGED, tools.ToolState.UNAPPROVED)
    ]
    if as_json:
        emit_json(
            {
                "sources": len({each.tool.source for each in known}),
                "tools": len(known),
                "states": states,
                "running": running,
                "lives": summed,
                "pinned": pinned,
                "pins": config.tooling.pins,
                "waiting": [
                    {"name": each.tool.name, "state": each.state, "why": each.why}
                    for each in waiting
                ],
                "troubles": troubles,
            }
        )
        if not known:
            chosen.say(_NONE_KNOWN.format(chosen.hint("tools import")))
        return
    by_state = ", ".join(f"{number:,} {state}" for state, number in sorted(states.items()))
    emit(
        (
            f"{count(len(known), 'tool')} of "
            f"{count(len({each.tool.source for each in known}), 'source')}"
        )
        + (f": {by_state}" if by_state else "")
    )
    if running:
        now = time.time()
        rows = [
            (
                each.source,
                str(each.pid or ""),
                size(each.bytes),
                str(each.calls),
                f"{span(now - each.since)} ago",
                _owner(each.whose, each.session),
            )
            for each in running
        ]
        table(("running", "pid", "memory", "calls", "started", "for"), rows, right=(1, 2, 3))
    else:
        emit("nothing runs")
    for line in _describe_lives(summed):
        emit(line)
    emit(f"pinned: {_few(pinned)} (by name: {', '.join(config.tooling.pins) or 'none'})")
    if not known:
        chosen.say(_NONE_KNOWN.format(chosen.hint("tools import")))
    whole = {
        each.tool.source for each in waiting if each.state is tools.ToolState.UNAPPROVED
    }  # approved as a whole
    asking = {
        each.tool.source if each.tool.source in whole else each.tool.name: each
        for each in reversed(waiting)
    }
    for name, each in sorted(asking.items())[:_MOST_LINES]:
        say(f"waits for you: {name}: {chosen.hint(f'tools approve {name}')}")
        say(f"  {shortened(plain(each.why), max(40, width() - 2))}")
    if len(asking) > _MOST_LINES:
        say(f"and {len(asking) - _MOST_LINES} more: {chosen.hint('tools list')}")


@click.command(
    epilog=examples(
        "hotset tools graph | dot -Tsvg > tools.svg", "hotset tools graph --json -o tools.json"
    )
)
@project_options
@as_json
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file instead of stdout.",
)
def graph(chosen: ProjectOptions, output: Path | None, *, as_json: bool) -> None:
    """Which tools are used together, resemble each other, or need each other, in Graphviz's DOT."""
    with look_at_tools(chosen.config()) as toolbox:
        tiers = {name: each.tier for name, each in toolbox.metrics().items()}
        snapshot = tools.GraphSnapshot(toolbox.graph.tools(), toolbox.graph.edges(), tiers)
    rendered = tools.render_json(snapshot) if as_json else tools.render_dot(snapshot)
    if not snapshot.uses:
        chosen.say(f"no tool was used yet; find one with: {chosen.hint('tools find WORDS')}")
    if output is None:
        emit(rendered.rstrip("\n"))
    else:
        output.write_text(rendered, encoding="utf-8")
        chosen.say(f"{count(len(snapshot.uses), 'tool')} written to {output}")


def _describe_lives(summed: LifeSummary) -> Iterator[str]:
    """How tools live, line by line: what goes next and why, and what is inactive."""
    yield (
        f"lives: {summed.active:,} active, {summed.inactive:,} inactive; "
        f"{summed.created:,} of {summed.capacity:,} that agents may create"
    )
    for first in summed.candidates[:1]:
        if first.ttl_left is not None:
            yield (
                f"next to leave: {first.name}, inactive; in {span(first.ttl_left)}, or for the "
                f"next tool over the {summed.capacity:,}"
            )
        else:
            yield (
                f"next to leave: {first.name}, score {first.score:.2f} ({first.tier}), when agents "
                f"create more than {summed.capacity:,}"
            )
    for each in summed.inactive_tools[:_MOST_LINES]:
        left = "it stays" if each.ttl_left is None else f"{span(each.ttl_left)} left"
        yield f"  inactive: {each.name}, {left}"
    if (more := len(summed.inactive_tools) - _MOST_LINES) > 0:
        yield f"  and {more:,} more are inactive"


def _life_as_json(metrics: ToolMetrics) -> dict[str, Any]:
    """A tool's metrics, beside what the list says of it anyway."""
    fields = msgspec.to_builtins(metrics)
    return {key: fields[key] for key in fields if key not in ("name", "origin")}


def _seconds_each(metrics: ToolMetrics) -> str:
    return f"{metrics.seconds / metrics.calls:.2g} s" if metrics.calls else ""


def _last_use(metrics: ToolMetrics) -> str:
    return "" if metrics.last_used is None else f"{span(time.time() - metrics.last_used)} ago"


def _few(names: list[str]) -> str:
    more = len(names) - _MOST_LINES
    shown = ", ".join(names[:_MOST_LINES]) or "none yet"
    return f"{shown} and {more:,} more" if more > 0 else shown


def _arguments(typed: tuple[str, ...]) -> dict[str, Any]:
    """The arguments of a call: one JSON object, or any number of `name=value`, each value JSON or
    else text."""
    if len(typed) == 1 and typed[0].lstrip().startswith("{"):
        try:
            given = json.loads(typed[0])
        except ValueError as error:
            raise BadInput(f"the arguments are not JSON: {error}") from error
        return dict(given)
    found: dict[str, Any] = {}
    for word in typed:
        name, separator, value = word.partition("=")
        if not separator or not name:
            raise BadInput(
                f"{word!r}: write arguments as NAME=VALUE, or all of them as one JSON object"
            )
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _owner(whose: str, session: str) -> str:
    return f"{whose}, session {session[:12]}" if session else whose


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
