"""`hotset wrap`: run an agent through the proxy, with nothing left behind."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import click
import msgspec

from hotset.config import Config
from hotset.errors import HotsetError
from hotset.store.folder import private_folder
from hotset.surfaces.cli import clients, lease
from hotset.surfaces.cli.agents import Setup, set_up
from hotset.surfaces.cli.consenting import ask_once
from hotset.surfaces.cli.ending import FOUND
from hotset.surfaces.cli.options import Chosen, Indexing, Switches, examples, of_indexing, of_project, of_window
from hotset.surfaces.cli.terminal import count, emit, say
from hotset.surfaces.proxy.address import Address, ask, read_note

_START_SECONDS = 20.0
_STOP_SECONDS = 1.0
_POLL_SECONDS = 0.02
_LOG_FILE = "wrap.log"
_LOG_MOST = 1 << 20
_NO_SUCH_COMMAND = 127

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
@of_project
@of_window
@of_indexing
@click.option("--print", "print_only", is_flag=True, help="Print the environment as export lines; run nothing.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="AGENT [ARGS]...")
def wrap(chosen: Chosen, *, switches: Switches, indexing: Indexing, print_only: bool, command: tuple[str, ...]) -> int:
    """Run an agent through the proxy, starting one if none serves this project.

    Sets what the agent needs to find it (Claude Code, Codex, opencode, aider, goose; the usual variables for any other),
    for this run only, and ends as the agent ends.
    """
    if command[0].startswith("-"):
        raise click.UsageError(
            f"wrap has no option {command[0]}; options of `hotset up` are given to it by the environment (HOTSET_OPENAI_URL, ...)"
        )
    config = chosen.config(switches)
    running = _running(config)
    if print_only:
        return _print(config, command, running)
    if shutil.which(command[0]) is None:
        say(f"hotset: there is no command {command[0]}; check the name, or give its path")
        return _NO_SUCH_COMMAND
    if not indexing.no:
        ask_once(chosen, config, yes=indexing.yes)
    if running is not None:
        with lease.joined(config.folder, running.pid):
            return _run(chosen, config, command, running.root)
    with _own_proxy([*chosen.flags(), *switches.flags(), *indexing.flags()], config) as root:
        return _run(chosen, config, command, root)


def _running(config: Config) -> Address | None:
    note = read_note(config.folder)
    return note if note is not None and ask(note) is not None else None


def _print(config: Config, command: tuple[str, ...], running: Address | None) -> int:
    if running is None:
        say("hotset: no proxy serves this project, and one started now would end at once; run: hotset up")
        return FOUND
    setup = set_up(command, running.root, os.environ, _hosts(config))
    for name, value in setup.changed.items():
        emit(f"export {name}={shlex.quote(value)}")
    if setup.arguments:
        emit(f"# {setup.profile.name} also wants arguments: {shlex.join(setup.command)}")
    return 0


def _run(chosen: Chosen, config: Config, command: tuple[str, ...], root: str) -> int:
    setup = set_up(command, root, os.environ, _hosts(config))
    if not chosen.quiet:
        _tell(setup, config, root)
    note = read_note(config.folder)
    before = ask(note) if note else None
    for name, url in (before or {}).get("upstreams", {}).items():
        if name in config.upstreams and config.upstreams[name].url != url:
            say(f"hotset: the proxy that serves sends {name} to {url}; to change that, start it again", quiet=chosen.quiet)
    for setting, value in (before or {}).get("window", {}).items():
        if value != config.window.get(setting, value):
            say(f"hotset: the proxy that serves has {setting} = {value}; to change that, start it again", quiet=chosen.quiet)
    code = _play(setup.command, {**os.environ, **setup.changed})
    after = _settled(note) if note else None
    if before is not None and after is not None:
        _sum_up(chosen, before, after)
    return code


def _settled(note: Address) -> dict[str, Any] | None:
    """What the proxy says when the agent's last reply is on disk as well: a millisecond after its end, as a rule."""
    deadline = time.monotonic() + _STOP_SECONDS
    while (status := ask(note)) is not None and status.get("keeping") and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return status


def _hosts(config: Config) -> frozenset[str]:
    return frozenset(urlsplit(upstream.url).hostname or "" for upstream in config.upstreams.values())


def _tell(setup: Setup, config: Config, root: str) -> None:
    """What was set, for the eyes; the token is nobody's business."""
    token = root.rsplit("/", 1)[-1]
    say(f"hotset: {setup.profile.name} goes through the proxy, by")
    for name, value in setup.changed.items():
        say(f"  {name}={shlex.quote(value.replace(token, '****'))}")
    if setup.arguments:
        say(f"  {shlex.join(setup.arguments).replace(token, '****')}")
    warnings = (
        *setup.notes,
        *_replaced(setup.changed, config, root),
        *clients.overriding(setup.profile.name, config, root),
    )
    for warning in warnings:
        say(click.style(f"hotset: {warning}", fg="yellow"))


def _replaced(changed: Mapping[str, str], config: Config, root: str) -> Iterator[str]:
    """Where the agent would have gone, and will not now."""
    for name, (upstream, setting) in clients.BASE_URLS.items():
        there = os.environ.get(name)
        if name not in changed or not there or there.startswith(root):
            continue
        if config.origins.get(f"{upstream}_url") == "default":
            yield (
                f"{name} was {clients.shown(there)}; calls go to {config.upstreams[upstream].url} instead. "
                f"To go on to where it was, set {setting} to its value and start the proxy again"
            )


def _play(command: tuple[str, ...], env: Mapping[str, str]) -> int:
    """Runs the agent in our place: its terminal, its signals, its exit code."""
    agent: subprocess.Popen[bytes] | None = None

    def forward(number: int, _frame: FrameType | None) -> None:
        if agent is not None and not (number in _FROM_KEYBOARD and _in_foreground()):
            with suppress(ProcessLookupError):
                agent.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (*_FORWARDED, *_FROM_KEYBOARD)}
    try:
        agent = subprocess.Popen(command, env=dict(env))
        code = agent.wait()
    finally:
        for number, disposition in before.items():
            signal.signal(number, disposition)
    return 128 - code if code < 0 else code


def _in_foreground() -> bool:
    """A key like Ctrl-C reaches every process of the terminal's foreground group: the agent has got it already."""
    try:
        return os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


@contextmanager
def _own_proxy(flags: Sequence[str], config: Config) -> Iterator[str]:
    """A proxy of our own, which ends when we do, in whatever way."""
    private_folder(config.folder)
    ready = config.folder / f".ready-{os.getpid()}.json"
    ready.unlink(missing_ok=True)
    with lease.granted(config.folder) as (stdin, pipe):
        proxy = _start(flags, config.folder / _LOG_FILE, ready, stdin)
        os.close(stdin)
        lease.name_after(pipe, proxy.pid)
        try:
            root = _await_ready(proxy, ready, config.folder / _LOG_FILE)
        except BaseException:
            proxy.terminate()
            proxy.wait()
            raise
        yield root
    # Our hold is gone, so the proxy stops now, unless another wrap holds on to it: then it is not ours to wait for.
    with suppress(subprocess.TimeoutExpired):
        proxy.wait(_STOP_SECONDS)
        lease.clear_away(config.folder)


def _start(flags: Sequence[str], log: Path, ready: Path, stdin: int) -> subprocess.Popen[bytes]:
    fresh = os.O_TRUNC if log.exists() and log.stat().st_size > _LOG_MOST else 0
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | fresh, 0o600)
    try:
        return subprocess.Popen(
            # -P: we run in the project's folder, and what lies there must not be imported.
            [sys.executable, "-P", "-m", "hotset", "up", "--while-stdin", "--ready-file", str(ready), *flags],
            stdin=stdin,
            stdout=out,
            stderr=out,
            start_new_session=True,  # Ctrl-C is for the agent
        )
    finally:
        os.close(out)


def _await_ready(proxy: subprocess.Popen[bytes], ready: Path, log: Path) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if ready.exists():
            announced = msgspec.json.decode(ready.read_bytes(), type=dict[str, str | int])
            ready.unlink()
            return str(announced["anthropic_base_url"])
        if proxy.poll() is not None:
            raise HotsetError(f"the proxy did not start: {_last_line(log)} (all of it: {log})")
        time.sleep(_POLL_SECONDS)
    raise HotsetError(f"the proxy did not answer within {_START_SECONDS:.0f} s; see {log}")


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("hotset: ") if lines else "it said nothing"


def _sum_up(chosen: Chosen, before: Mapping[str, int], after: Mapping[str, int]) -> None:
    kept, bypassed = (after[name] - before[name] for name in ("kept", "bypassed"))
    if bypassed:
        say(
            f"hotset: {count(bypassed, 'call')} went through without being kept; ask: {chosen.hint('doctor')}", quiet=chosen.quiet
        )
    say(f"hotset: kept {count(kept, 'call')}; look with: {chosen.hint('show last')}", quiet=chosen.quiet)
