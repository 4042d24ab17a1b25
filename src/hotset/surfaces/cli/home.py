"""`hotset` alone: where things stand in this project, and the one next step."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from hotset.config import Config
from hotset.errors import NotFound, StoreFailed
from hotset.nouns.turn import Session
from hotset.runtime.glance import SessionGlance, describe_glance, glance_at
from hotset.runtime.metrics import AmountSaved, empty_ledger
from hotset.runtime.reader import Store, candidates_in, open_existing
from hotset.surfaces.cli.options import ProjectOptions
from hotset.surfaces.cli.terminal import count, emit, money, plain_line, shortened, span, width
from hotset.surfaces.proxy.address import Address, find_proxy

_AGENTS = ("claude", "codex", "opencode", "aider", "goose")
_RECORDINGS = (Path(".claude") / "projects", Path(".codex") / "sessions")
"""Below a person's home: where agents keep their sessions."""


@dataclass(frozen=True, slots=True)
class ProjectState:
    """What is kept for a project."""

    sessions: int = 0
    latest: Session | None = None
    last: float = 0.0
    """When the latest session was last used."""
    glance: SessionGlance | None = None
    """Of the latest session."""
    spent: float = 0.0
    """Dollars, of everything that is kept."""
    saved: AmountSaved | None = None
    candidates: int = 0
    """Memories that wait for a person."""
    trouble: str = ""


def show_home() -> None:
    """Prints it: a few lines, the last one is what to do next."""
    chosen = ProjectOptions(None, None, False)
    config = chosen.config()
    address, report = find_proxy(config)
    state = _read_state(config)
    rows = [
        ("hotset", str(config.project)),
        ("serving", _describe_proxy(address, report)),
        ("kept", _describe_kept(state)),
    ]
    if state.glance is not None:
        rows.append(("window", describe_glance(state.glance)))
    if state.saved is not None:
        rows.append(("saved", _describe_saved(state)))
    if state.candidates:
        noun = "memory" if state.candidates == 1 else "memories"
        rows.append(("waits", f"{state.candidates:,} new {noun} for you to look at"))
    if state.trouble:
        rows.append(("trouble", state.trouble))
    for name, text in rows:
        emit(f"{name:<8} {shortened(plain_line(text), max(20, width() - 9))}")
    step, why = _next_step(state, report)
    emit(f"{'next':<8} {click.style(step, bold=True)}   {why}")
    chosen.say("all commands: hotset --help")


def _read_state(config: Config) -> ProjectState:
    try:
        with open_existing(config) as store:
            return _state_of(store, config)
    except NotFound:
        return ProjectState()
    except StoreFailed as error:
        return ProjectState(trouble=str(error))


def _state_of(store: Store, config: Config) -> ProjectState:
    every = store.recent_sessions()
    if not every:
        return ProjectState()
    ledger = empty_ledger(config)
    for bill in store.bills():
        ledger.add(bill)
    total = ledger.total()
    latest = every[0]
    return ProjectState(
        sessions=len(every),
        latest=latest,
        last=max((max(each.started, each.finished) for each in store.turns(latest.id)), default=0),
        glance=glance_at(store, config, latest.id),
        spent=total.measured.dollars,
        saved=total.saved if total.turns else None,
        candidates=candidates_in(store),
    )


def _describe_proxy(address: Address | None, report: Mapping[str, Any] | None) -> str:
    if report is None or address is None:
        return "no"
    bypassed = f", {report['bypassed']:,} bypassed" if report["bypassed"] else ""
    calls = f"{count(report['requests'], 'call')}, {report['kept']:,} kept{bypassed}"
    return f"on port {address.port} for {span(report['uptime'])}: {calls}"


def _describe_kept(state: ProjectState) -> str:
    if state.trouble:
        return "cannot be read"
    if state.latest is None:
        return "nothing yet"
    ago = f"the last {span(time.time() - state.last)} ago" if state.last else "none was used"
    title = f": {state.latest.title}" if state.latest.title else ""
    return f"{count(state.sessions, 'session')}, {ago}{title}"


def _describe_saved(state: ProjectState) -> str:
    assert state.saved is not None
    return (
        f"{money(state.saved.dollars)} so far, {state.saved.dollars_pct:.0f} % of what sending "
        f"everything would have cost; paid {money(state.spent)}"
    )


def _next_step(state: ProjectState, report: Mapping[str, Any] | None) -> tuple[str, str]:
    """The command to type next, and why."""
    if state.trouble:
        return "hotset doctor", "says what is wrong, and what to do"
    if report is not None and (report["bypassed"] or report["store"] != "ok"):
        return "hotset doctor", "calls went through without being kept"
    if state.latest is None and report is None:
        return _first_step()
    if state.candidates:
        return "hotset memory review", "keep, correct or drop what was learned"
    if report is not None:
        return "hotset top", "see the window while an agent works"
    agent = state.latest.agent if state.latest is not None else ""
    known = next((each for each in _AGENTS if agent.startswith(each)), _AGENTS[0])
    return f"hotset wrap {known}", "go on with an agent through the proxy"


def _first_step() -> tuple[str, str]:
    recorded = next((each for each in _RECORDINGS if any(_entries(Path.home() / each))), None)
    if recorded is None:
        return "hotset demo", "see it work: no key, no network; then: hotset wrap claude"
    return (
        f"hotset replay ~/{recorded} --html report.html",
        "what it would have saved you so far; then: hotset wrap claude",
    )


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
