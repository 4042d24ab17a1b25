"""`python -m hotset.testing.demo`: the show, then the real proxy for the current project."""

from __future__ import annotations

import os
import statistics
import sys
from dataclasses import replace
from pathlib import Path

import click

from hotset.config import Config
from hotset.runtime.reader import open_memories
from hotset.sources.memory import HOW, Reminder
from hotset.surfaces.cli.exit import run
from hotset.surfaces.cli.options import ProjectOptions, project_options
from hotset.surfaces.cli.terminal import count, size
from hotset.testing.demo.show import DemoResult, empty_folder, play
from hotset.testing.demo.view import PlainScreen, Screen, screen

_FOLDER = "demo"
_NEXT = "Where did we leave off?"


@click.command()
@project_options
@click.option("--once", is_flag=True)
@click.option("--fast", is_flag=True)
def demo(chosen: ProjectOptions, once: bool, fast: bool) -> None:
    config = chosen.config()
    folder = empty_folder(_demo_folder(config))
    with screen() as live:
        shown = play(folder, live, slowly=not fast and sys.stdout.isatty())
    _conclude(PlainScreen(), shown, folder, _next_reminder(replace(config, folder=folder)))
    if once:
        return
    sys.stdout.write(f"\nNow the real thing, for {config.project}:\n\n")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "hotset", "up", *chosen.flags()])  # noqa: S606 - we have nothing more to do


def _demo_folder(config: Config) -> Path:
    """A separate folder: a demonstration does not mix with real data."""
    return (
        config.folder.parent / _FOLDER
        if config.origins["data"] == "default"
        else config.folder / _FOLDER
    )


def _next_reminder(config: Config) -> Reminder | None:
    """The reminder that a new session would get, from the memories of this one."""
    with open_memories(config) as memories:
        memories.encode()
        return memories.remind(_NEXT, opens=True, max_tokens=config.memory.offer_tokens, how=HOW)


def _conclude(out: Screen, shown: DemoResult, folder: Path, reminder: Reminder | None) -> None:
    census = shown.held.census
    out.say(
        "\nWhat the window saved, charged by the scripted provider under the rules of a real "
        "prompt cache:"
    )
    out.say(
        f"  {shown.through.prompt:,} tokens of prompts instead of {shown.direct.prompt:,}; "
        f"${shown.through.dollars:.2f} instead "
        f"of ${shown.direct.dollars:.2f}: "
        f"{1 - shown.through.dollars / shown.direct.dollars:.0%} less."
    )
    out.say(
        f"  The model asked {count(shown.looks, 'time')} for more of something that it had "
        f"been shown in part, and got it "
        f"{'every time' if not shown.missed else f'NOT {shown.missed} times: please report this'}; the agent noticed nothing."  # noqa: E501
    )
    out.say("\nWhat was kept, counted in the store:")
    for kind, (pages, content) in shown.held.kinds.items():
        out.say(f"  {pages:>4} {kind:<13} {size(content):>9}")
    out.say(
        f"  The agent sent {size(shown.sent)} in {count(shown.calls, 'call')}, its history "
        f"again each time; "
        f"the store holds {size(census.content_bytes)}, in {size(census.stored_bytes)} on disk."
    )
    out.say(
        f"  {shown.found} of {shown.heard} replies survived kill -9; the proxy was back in "
        f"{shown.down:.1f} s; {_describe_session(shown)}."
    )
    if shown.held.largest is not None:
        page = shown.held.largest
        verdict = (
            "byte for byte what the tool gave back"
            if shown.byte_equal
            else "NOT what the tool gave back: please report this"
        )
        out.say(f"  hotset recall {page.id}: {size(page.size)}, {verdict}.")
    added = sorted(shown.added)
    out.say(
        f"  The proxy added {1000 * statistics.median(added):.1f} ms to a call in the middle, "
        f"{1000 * added[int(0.95 * len(added))]:.1f} ms at the 95th percentile."
    )
    if reminder is not None:
        out.say(
            f'\nTomorrow\'s session begins with "{_NEXT}" and is told, behind that, in '
            f"{reminder.tokens} tokens:"
        )
        for line in reminder.text.splitlines():
            out.say(f"  {line}")
    out.say("\nLook at it:")
    first = shown.sessions[0]
    for command in (
        "savings",
        f"diff {first} 20",
        "sessions",
        f"show {first}",
        "memory timeline",
        "verify",
    ):
        out.say(f"  hotset {command} --data {folder}")
    out.say("\nLook at it in a browser, turn by turn:")
    out.say(f"  hotset up --data {folder}      (prints the link)")
    out.say("\nConnect a real agent:")
    out.say("  hotset wrap claude      (or codex, opencode, aider, goose, anything)")


def _describe_session(shown: DemoResult) -> str:
    return (
        "the session went on as one"
        if len(shown.sessions) == 1
        else "the session did NOT go on as one: please report this"
    )


if __name__ == "__main__":
    sys.exit(run(demo, sys.argv[1:]))
