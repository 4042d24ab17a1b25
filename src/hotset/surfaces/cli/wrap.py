"""`hotset wrap`: run an agent through the proxy, without changing any file."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import click

from hotset.config import Config
from hotset.errors import HotsetError
from hotset.files.child_process import DEVNULL, ChildProcess
from hotset.surfaces.cli.agents import (
    ANY_OTHER,
    BASE_URLS,
    AgentSetup,
    overriding_settings,
    redact_url,
    set_up,
)
from hotset.surfaces.cli.connections import forget_silent_run, keep_silent_run
from hotset.surfaces.cli.consent import keep_learned, offer_indexing, offer_learning
from hotset.surfaces.cli.exit import FAILED, FOUND, OK, signals_to
from hotset.surfaces.cli.options import (
    IndexOptions,
    ProjectOptions,
    WindowOptions,
    examples,
    index_options,
    project_options,
    window_options,
)
from hotset.surfaces.cli.proxy_supervisor import ProxySupervisor, running_proxy
from hotset.surfaces.cli.terminal import count, emit, plain, say
from hotset.surfaces.proxy.address import Address, ask_proxy, make_link

_SETTLE_SECONDS = 1.0
_POLL_SECONDS = 0.02
_MOST_FINDINGS = 5
_NO_SUCH_COMMAND = 127

_TELLS_ONLY = frozenset({"--version", "-V", "--help", "-h"})  # arguments without a call

_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_FROM_KEYBOARD = (signal.SIGINT, signal.SIGQUIT)


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog=examples(
        "hotset wrap claude",
        'hotset wrap codex exec "fix the tests"',
        "hotset wrap python my_agent.py",
        'eval "$(hotset wrap --print aider)"',
    ),
)
@project_options
@window_options
@index_options
@click.option(
    "--print",
    "print_only",
    is_flag=True,
    help="Print the environment as export lines; run nothing.",
)
@click.option(
    "--agent",
    metavar="KIND",
    default="",
    help="The kind of this agent: a profile of hotset or of your own, [profiles.KIND] in TOML.",
)
@click.option(
    "--learn/--no-learn",
    default=None,
    help="Learn from earlier sessions of this project in the background; or never, and do not ask.",
)
@click.argument(
    "command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="AGENT [ARGS]..."
)
def wrap(
    chosen: ProjectOptions,
    *,
    switches: WindowOptions,
    indexing: IndexOptions,
    print_only: bool,
    agent: str,
    learn: bool | None,
    command: tuple[str, ...],
) -> int:
    """Run an agent through the proxy, starting one if none serves this project.

    Sets what the agent needs to find it (Claude Code, Codex, opencode, aider, goose; the usual
    variables for any other), for this run only, and ends as the agent ends. A proxy that ends
    before the agent is started again at the same address.
    """
    if command[0].startswith("-"):
        raise click.UsageError(
            f"wrap has no option {command[0]}; options of `hotset up` are given to it by the "
            f"environment (HOTSET_OPENAI_URL, ...)"
        )
    config = chosen.config(switches)
    if agent and agent not in config.profiles:
        raise click.UsageError(f"--agent must be one of {', '.join(config.profiles)}")
    found = running_proxy(config)
    if print_only:
        return _print_environment(config, command, found, agent)
    if shutil.which(command[0]) is None:
        say(f"hotset: there is no command {command[0]}; check the name, or give its path")
        return _NO_SUCH_COMMAND
    if not indexing.no:
        offer_indexing(chosen, config, yes=indexing.yes)
    folders: Sequence[Path] = ()
    with suppress(HotsetError):  # the agent runs in any case
        folders = offer_learning(chosen, config, learn)
    flags = [*chosen.flags(), *switches.flags(), *indexing.flags()]
    with (
        ProxySupervisor(config, flags, found, lambda why: say(f"hotset: {why}")) as proxy,
        _learning(chosen, config, folders),
    ):
        code = _run_agent(chosen, config, command, proxy, agent)
    return code or (FAILED if proxy.lost else OK)


@contextmanager
def _learning(chosen: ProjectOptions, config: Config, folders: Sequence[Path]) -> Iterator[None]:
    """Learns from earlier sessions in a process of its own, which ends with us; the next `wrap`
    goes on with what is left."""
    if not folders:
        yield
        return
    nice = ["nice", "-n", "10"] if shutil.which("nice") else []
    learn = ["-m", "hotset", "memory", "learn", "--quiet", *chosen.flags(), *map(str, folders)]
    with ChildProcess(
        [*nice, sys.executable, *learn],
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            yield
        finally:
            code = process.poll()
            process.terminate()
            process.wait()
    if code in (OK, FOUND):
        with suppress(HotsetError):
            keep_learned(config)


def _print_environment(
    config: Config, command: tuple[str, ...], found: Address | None, agent: str
) -> int:
    if found is None:
        say(
            "hotset: no proxy serves this project, and one started now would end at once; "
            "run: hotset up"
        )
        return FOUND
    setup = set_up(command, found.root_for(agent), os.environ, _hosts(config))
    for name, value in setup.changed.items():
        emit(f"export {name}={shlex.quote(value)}")
    if setup.arguments:
        emit(f"# {setup.profile.name} also wants arguments: {shlex.join(setup.command)}")
    return 0


def _run_agent(
    chosen: ProjectOptions,
    config: Config,
    command: tuple[str, ...],
    proxy: ProxySupervisor,
    agent: str,
) -> int:
    root = proxy.address.root_for(agent)
    setup = set_up(command, root, os.environ, _hosts(config))
    if not chosen.quiet:
        _print_setup(setup, config, root)
        with suppress(HotsetError):  # an older proxy makes no link
            link = make_link(proxy.address, patience=config.patience)
            say(f"hotset: dashboard  {link}  (works once; again: hotset open)")
    before = ask_proxy(proxy.address, patience=config.patience)
    for name, url in (before or {}).get("upstreams", {}).items():
        if name in config.upstreams and config.upstreams[name].url != url:
            chosen.say(
                f"hotset: the proxy that serves sends {name} to {url}; to change that, start "
                f"it again"
            )
    for setting, value in (before or {}).get("window", {}).items():
        if value != config.window.get(setting, value):
            chosen.say(
                f"hotset: the proxy that serves has {setting} = {value}; to change that, "
                f"start it again"
            )
    env = {**os.environ, **setup.changed}
    code = _run_in_our_place(setup.command, env)
    after = _await_kept(proxy.address, config.patience)
    if before is not None and after is not None and not chosen.quiet:
        counted = proxy.restarts == 0
        arrived, kept, bypassed = (
            after[name] - before[name] * counted for name in ("requests", "kept", "bypassed")
        )
        _print_summary(chosen, kept, bypassed, proxy)
        if counted:
            _note_silence(config, setup, arrived)
        if not kept and counted:
            _print_why_nothing_was_kept(chosen, config, setup, env, arrived)
    return code


def _await_kept(note: Address, patience: float) -> dict[str, Any] | None:
    """The proxy's status once the agent's last reply is on disk: usually a millisecond after its
    end."""
    deadline = time.monotonic() + _SETTLE_SECONDS * patience
    while (
        (status := ask_proxy(note, patience=patience)) is not None
        and status.get("keeping")
        and time.monotonic() < deadline
    ):
        time.sleep(_POLL_SECONDS)
    return status


def _hosts(config: Config) -> frozenset[str]:
    return frozenset(
        urlsplit(upstream.url).hostname or "" for upstream in config.upstreams.values()
    )


def _print_setup(setup: AgentSetup, config: Config, root: str) -> None:
    """Prints what was set, without the token."""
    token = root.rsplit("/", 1)[-1]
    if setup.profile is ANY_OTHER:
        say(
            f"hotset: {Path(setup.command[0]).name} is no agent that hotset knows: only its "
            f"environment was set, by"
        )
    else:
        say(f"hotset: {setup.profile.name} goes through the proxy, by")
    for name, value in setup.changed.items():
        say(f"  {name}={shlex.quote(value.replace(token, '****'))}")
    if setup.arguments:
        say(f"  {shlex.join(setup.arguments).replace(token, '****')}")
    warnings = (
        *setup.notes,
        *_replaced_urls(setup.changed, config, root),
        *overriding_settings(setup.profile.name, config, root),
    )
    for warning in warnings:
        say(click.style(f"hotset: {warning}", fg="yellow"))


def _replaced_urls(changed: Mapping[str, str], config: Config, root: str) -> Iterator[str]:
    """Base URLs of the agent's environment that ours replace."""
    for name, (upstream, setting) in BASE_URLS.items():
        there = os.environ.get(name)
        if name not in changed or not there or there.startswith(root):
            continue
        if config.origins.get(f"{upstream}_url") == "default":
            yield (
                f"{name} was {redact_url(there)}; calls go to "
                f"{config.upstreams[upstream].url} instead. "
                f"To keep using it, set {setting} to that URL and start the proxy again"
            )


def _run_in_our_place(command: tuple[str, ...], env: Mapping[str, str]) -> int:
    """Runs the agent with our terminal and signals, and returns its exit code."""
    agent: ChildProcess | None = None

    def forward(number: int, _frame: FrameType | None) -> None:
        if agent is not None and not (number in _FROM_KEYBOARD and _in_foreground()):
            with suppress(ProcessLookupError):
                agent.send_signal(number)

    with signals_to(forward, *_FORWARDED, *_FROM_KEYBOARD):
        agent = ChildProcess(command, env=dict(env))
        code = agent.wait()
    return 128 - code if code < 0 else code


def _in_foreground() -> bool:
    """True if Ctrl-C reaches the agent without us: the terminal sends it to the whole foreground
    group."""
    try:
        return os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _print_summary(
    chosen: ProjectOptions, kept: int, bypassed: int, proxy: ProxySupervisor
) -> None:
    if proxy.restarts:
        say(
            f"hotset: the proxy ended and was started again {count(proxy.restarts, 'time')}; "
            f"its log: {proxy.log}"
        )
    if bypassed:
        say(
            f"hotset: {count(bypassed, 'call')} went through without being kept; ask: "
            f"{chosen.hint('doctor')}"
        )
    if kept or proxy.restarts:
        since = " since then" if proxy.restarts else ""
        say(f"hotset: kept {count(kept, 'call')}{since}; look with: {chosen.hint('show last')}")


def _note_silence(config: Config, setup: AgentSetup, arrived: int) -> None:
    """Note for `hotset doctor` whether any call of a known agent arrived."""
    if setup.profile is ANY_OTHER or not _TELLS_ONLY.isdisjoint(setup.command):
        return
    client = Path(setup.command[0]).name
    with suppress(HotsetError, OSError):  # the agent's exit code is what counts
        if arrived:
            forget_silent_run(config, client)
        else:
            keep_silent_run(config, client, time.time())


def _print_why_nothing_was_kept(
    chosen: ProjectOptions, config: Config, setup: AgentSetup, env: Mapping[str, str], arrived: int
) -> None:
    """Prints a short form of what `hotset doctor` finds, with the agent's environment."""
    from hotset.runtime.views.health import Level  # noqa: PLC0415 - only where something may be wrong
    from hotset.surfaces.cli.doctor import examine  # noqa: PLC0415

    name = Path(setup.command[0]).name
    came = f"{count(arrived, 'call')} arrived" if arrived else f"nothing arrived from {name}"
    say(f"hotset: no call was kept: {came}")
    if not arrived and setup.profile is ANY_OTHER:
        say(
            f"  if it called a model, it does not read {_join_names(setup.profile.env)}: give it "
            f"the base URL by its own setting"
        )
    found = [
        each
        for each in examine(config, env)
        if each.level is not Level.OK and each.about != "traffic"
    ]
    for each in found[:_MOST_FINDINGS]:
        say(f"  {plain(each.says)}; {plain(each.todo)}")
    wrong = "more of that" if found else "it found nothing wrong"
    say(f"  {wrong}: {chosen.hint('doctor')}")


def _join_names(names: Iterable[str]) -> str:
    *front, last = names
    return f"{', '.join(front)} or {last}" if front else last
