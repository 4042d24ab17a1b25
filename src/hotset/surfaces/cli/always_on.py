"""`hotset service`: the always-on proxy of all projects of a user, as a systemd user unit or a
launchd agent."""

from __future__ import annotations

import logging
import os
import plistlib
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from hotset.config import Config
from hotset.errors import BadConfig
from hotset.files.lock import FileLock
from hotset.surfaces.cli.exit import FAILED, FOUND, OK
from hotset.surfaces.cli.index import index_follower
from hotset.surfaces.cli.learning_follower import learning_follower
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.terminal import count, emit, emit_json, moment, span
from hotset.surfaces.proxy.address import PROJECTS_PATH, Address, ask_proxy, is_alive, read_note
from hotset.surfaces.proxy.always_on import (
    USUAL_PORT,
    fixed_port,
    forget_port,
    free_port,
    keep_port,
    list_projects,
    shared_folder,
)

_UNIT = "hotset.service"
_LABEL = "hotset.always-on"
_STOP_SECONDS = 15.0
_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Autostart:
    """What starts the always-on proxy with every login of its user."""

    path: Path
    """The file that describes it."""
    text: str
    on: tuple[tuple[str, ...], ...]
    """Commands that start it now and with every login."""
    off: tuple[tuple[str, ...], ...]
    """Commands that stop it."""
    then_off: tuple[tuple[str, ...], ...]
    """The same, once the file is gone."""
    asks: tuple[str, ...]
    """A command that succeeds where the system can do this."""

    @property
    def works(self) -> bool:
        """True if the system starts such things for this user."""
        return shutil.which(self.asks[0]) is not None and _succeeds(self.asks, quiet=True)


@click.command(
    epilog=examples(
        "hotset service install",
        "hotset service install --print",
        "hotset service install --port 4801",
    )
)
@project_options
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help=f"Listen here. [default: the first free one from {USUAL_PORT} up]",
)
@click.option("--print", "only_print", is_flag=True, help="Show the unit, and write nothing.")
def install(chosen: ProjectOptions, port: int | None, *, only_print: bool) -> int:
    """Start the always-on proxy now and with every login: a systemd user unit, or a launchd agent
    on macOS. Installing it again changes its port or its command."""
    config = chosen.config()
    running = _running(config)
    stays = port or fixed_port(config) or (running.port if running is not None else None)
    if stays is None or (port is not None and (running is None or running.port != port)):
        stays = free_port(port)
    autostart = autostart_of(config, stays)
    if only_print:
        chosen.say(f"{autostart.path}:")
        emit(autostart.text.rstrip("\n"))
        return OK
    keep_port(config, stays)
    autostart.path.parent.mkdir(parents=True, exist_ok=True)
    autostart.path.write_text(autostart.text, "utf-8")
    chosen.say(f"wrote {autostart.path}; the port is {stays}")
    if not autostart.works:
        chosen.say(
            f"{autostart.asks[0]} does not answer here, so nothing was started. Where it does, run:"
        )
        for command in autostart.on:
            chosen.say(f"  {shlex.join(command)}")
        chosen.say(f"or keep this running: {chosen.hint('service run')}")
        return FOUND
    for command in (*(autostart.off if running is not None else ()), *autostart.on):
        if not _succeeds(command) and command in autostart.on:
            raise BadConfig(f"this failed: {shlex.join(command)}; its words are above")
    chosen.say("it runs, and starts with every login; next: hotset connect CLIENT --proxy")
    if autostart.asks[0] == "systemctl":
        chosen.say("to have it run without a login too: loginctl enable-linger")
    return OK


@click.command(epilog=examples("hotset service remove"))
@project_options
def remove(chosen: ProjectOptions) -> int:
    """Stop the always-on proxy and start it no more. What it kept stays."""
    config = chosen.config()
    autostart = autostart_of(config, fixed_port(config) or USUAL_PORT)
    was_there = autostart.path.exists()
    if was_there:
        works = autostart.works
        for command in autostart.off if works else ():
            _succeeds(command)
        autostart.path.unlink()
        for command in autostart.then_off if works else ():
            _succeeds(command)
    running = _running(config)
    if running is not None and not _stop(config, running):
        chosen.say(f"process {running.pid} does not end; end it with: kill -9 {running.pid}")
        return FAILED
    if not (forget_port(config) or was_there or running is not None):
        chosen.say("the always-on proxy is not installed, and does not run")
        return FOUND
    chosen.say("the always-on proxy was removed; everything that was kept stays")
    for each in list_projects(config):
        chosen.say(f"  clients of {each.project} may still call it: hotset disconnect CLIENT there")
    return OK


@click.command(epilog=examples("hotset service status", "hotset service status --json"))
@project_options
@as_json
def status(chosen: ProjectOptions, as_json: bool) -> int:
    """Whether the always-on proxy runs, where, and for which projects. Exits with 1 if it does
    not."""
    config = chosen.config()
    note = read_note(shared_folder(config))
    found = ask_proxy(note, PROJECTS_PATH, patience=config.patience) if note is not None else None
    port = note.port if note is not None and found is not None else fixed_port(config)
    path = autostart_of(config, port or USUAL_PORT).path
    unit = str(path) if path.exists() else None
    if as_json:
        shown = {name: value for name, value in (found or {}).items() if name != "nonce"}
        known = [{"project": each.project, "folder": each.folder} for each in list_projects(config)]
        emit_json(
            {"running": found is not None, "port": port, "unit": unit, "projects": known} | shown
        )
        return OK if found is not None else FOUND
    emit(f"unit      {unit or 'not installed; to do it: hotset service install'}")
    if found is None:
        emit(f"running   no{f'; its port is {port}' if port else ''}")
        return FOUND
    since = moment(found["started"])
    emit(
        f"running   on port {port} since {since} ({span(time.time() - found['started'])}), "
        f"process {found['pid']}"
    )
    for each in found["projects"]:
        calls = f"open, {count(each['calls'], 'call')}" if each["open"] else "closed until a call"
        emit(f"project   {each['project']}: {calls}; {each['folder']}")
    return OK


@click.command(epilog=examples("hotset service run", "hotset service run --port 4801"))
@project_options
@click.option("--port", type=click.IntRange(1, 65535), help="Listen here.")
@click.option("--idle", type=float, hidden=True, help="Seconds until an idle project is closed.")
def run(chosen: ProjectOptions, port: int | None, idle: float | None) -> None:
    """Serve all projects in this terminal until Ctrl-C: what the unit executes."""
    from hotset.surfaces.proxy.front import IDLE_SECONDS, serve_all  # noqa: PLC0415 - 0.3 s

    config = chosen.config()
    out = logging.StreamHandler(sys.stderr)
    log = logging.getLogger("hotset")
    log.addHandler(out)
    log.setLevel(logging.WARNING if chosen.quiet else logging.INFO)
    log.propagate = False

    def ready(address: Address) -> None:
        projects = count(len(list_projects(config)), "project")
        chosen.say(f"hotset serves {projects} on port {address.port}; stop with Ctrl-C")

    serve_all(
        config,
        port or fixed_port(config) or free_port(None),
        ready=ready,
        beside=_beside,
        idle=IDLE_SECONDS if idle is None else idle,
    )
    chosen.say("stopped; what was under way is kept")


def _beside(config: Config) -> ExitStack:
    """Indexing and learning beside a project, as `hotset up` has them."""
    stack = ExitStack()
    stack.enter_context(index_follower(config))
    stack.enter_context(learning_follower(config))
    return stack


def autostart_of(config: Config, port: int, system: str = sys.platform) -> Autostart:
    """The unit of this system."""
    # -P: modules in the folder where it starts must not be imported.
    command = [sys.executable, "-P", "-m", "hotset", "service", "run", "--port", str(port)]
    env = {
        name: config.environ[name] for name in ("PATH", "HOTSET_CONFIG") if name in config.environ
    }
    if config.origins["home"] != "default":
        env["HOTSET_HOME"] = str(config.home)
    return _launchd(config, command, env) if system == "darwin" else _systemd(config, command, env)


def _systemd(config: Config, command: Sequence[str], env: Mapping[str, str]) -> Autostart:
    root = Path(config.environ.get("XDG_CONFIG_HOME") or config.user / ".config")
    variables = "".join(
        f"Environment={_quoted(f'{name}={value}')}\n" for name, value in env.items()
    )
    started = " ".join(_quoted(word, dollars=True) for word in command)
    text = (
        "[Unit]\nDescription=hotset, the proxy of all projects of this user\n\n"
        f"[Service]\nExecStart={started}\n{variables}"
        "Restart=on-failure\nRestartSec=5\nTimeoutStopSec=20\nUMask=0077\nNoNewPrivileges=yes\n\n"
        "[Install]\nWantedBy=default.target\n"
    )
    user = ("systemctl", "--user")
    return Autostart(
        root / "systemd" / "user" / _UNIT,
        text,
        on=((*user, "daemon-reload"), (*user, "enable", "--now", _UNIT)),
        off=((*user, "disable", "--now", _UNIT),),
        then_off=((*user, "daemon-reload"),),
        asks=(*user, "show-environment"),
    )


def _launchd(config: Config, command: Sequence[str], env: Mapping[str, str]) -> Autostart:
    path = config.user / "Library" / "LaunchAgents" / f"{_LABEL}.plist"
    log = str(shared_folder(config) / "log")
    described: dict[str, Any] = {
        "Label": _LABEL,
        "ProgramArguments": list(command),
        "EnvironmentVariables": dict(env),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "Umask": 0o077,
        "StandardErrorPath": log,
    }
    domain = f"gui/{os.getuid()}"
    return Autostart(
        path,
        plistlib.dumps(described).decode(),
        on=(("launchctl", "bootstrap", domain, str(path)),),
        off=(("launchctl", "bootout", f"{domain}/{_LABEL}"),),
        then_off=(),
        asks=("launchctl", "print", domain),
    )


def _quoted(word: str, *, dollars: bool = False) -> str:
    """A word as systemd reads it back."""
    word = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{word.replace("$", "$$") if dollars else word}"'


def _succeeds(command: Sequence[str], *, quiet: bool = False) -> bool:
    """Runs a command of the system; its errors go to ours, unless `quiet`."""
    errors = subprocess.DEVNULL if quiet else None
    out = subprocess.DEVNULL
    done = subprocess.run(command, stdout=out, stderr=errors, check=False, timeout=60)
    return done.returncode == 0


def _running(config: Config) -> Address | None:
    """The always-on proxy that answers now."""
    note = read_note(shared_folder(config))
    return note if note is not None and is_alive(note, patience=config.patience) else None


def _stop(config: Config, running: Address) -> bool:
    """Ends the process that answered; True once it is gone."""
    with suppress(ProcessLookupError):
        os.kill(running.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS * config.patience
    while time.monotonic() < deadline:
        if FileLock(shared_folder(config) / "lock").holder() is None:
            return True
        time.sleep(_POLL_SECONDS)
    return False
