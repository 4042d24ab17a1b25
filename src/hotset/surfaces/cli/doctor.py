"""`hotset doctor`: find out why nothing is kept. Each finding is one line with what to do."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apsw
import click

from hotset import __version__
from hotset.config import Config, is_client
from hotset.errors import HotsetError, StoreTooNew
from hotset.files.open import open_regular
from hotset.runtime.reader import (
    DATABASE,
    STORE_VERSION,
    has_store,
    open_to_look,
)
from hotset.runtime.views.health import (
    Finding,
    Level,
    check_contents,
    check_folder,
    check_serving,
    fail,
    ok,
    warn,
)
from hotset.surfaces.cli.agents import (
    BASE_URLS,
    Routing,
    UrlTarget,
    find_routings,
    no_proxy_variables,
    redact_url,
    target_of,
)
from hotset.surfaces.cli.connect import CLIENTS
from hotset.surfaces.cli.connections import (
    MCP,
    PROXY,
    ClientConnection,
    list_connections,
    list_silent_runs,
)
from hotset.surfaces.cli.exit import FAILED, FOUND, OK
from hotset.surfaces.cli.options import ProjectOptions, as_json, examples, project_options
from hotset.surfaces.cli.terminal import count, emit, emit_json, plain, span
from hotset.surfaces.proxy.address import (
    Address,
    find_proxy,
    is_alive,
    kept_token,
    read_note,
)
from hotset.surfaces.proxy.always_on import list_projects, shared_folder, unknown_folder

_OLDEST_SQLITE = (3, 51, 3)  # earlier ones can corrupt a WAL when it is reset
_FORMAT_AT = 60  # offset of the store's format number in SQLite's header


@dataclass(frozen=True, slots=True)
class CheckScene:
    """The input of all checks, gathered once."""

    config: Config
    env: Mapping[str, str]
    now: float
    address: Address | None
    """The note of the last proxy."""
    status: Mapping[str, Any] | None
    """Its answer to `/hotset/status`; None where it does not answer."""

    @property
    def serving(self) -> Address | None:
        return self.address if self.status is not None else None

    @property
    def always_on(self) -> Address | None:
        """The note of the always-on proxy, with the user's own token."""
        return read_note(shared_folder(self.config))


_COLOURS = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}
_EXITS = {Level.OK: OK, Level.WARN: FOUND, Level.FAIL: FAILED}


@click.command(epilog=examples("hotset doctor", "hotset doctor --quiet", "hotset doctor --json"))
@project_options
@as_json
def doctor(chosen: ProjectOptions, as_json: bool) -> int:
    """Find out why nothing is kept, and what to do.

    Failures of hotset are silent: the agent goes on working, but nothing is kept. Exits with 0 if
    all is well, 1 for a warning, 2 for a failure. --quiet shows only warnings and failures.
    """
    findings = examine(chosen.config(), os.environ)
    worst = max((finding.level for finding in findings), key=list(Level).index, default=Level.OK)
    if as_json:
        emit_json({"level": worst, "findings": findings})
    else:
        for finding in findings:
            if not (chosen.quiet and finding.level is Level.OK):
                _print_finding(finding)
    return _EXITS[worst]


def examine(config: Config, env: Mapping[str, str]) -> list[Finding]:
    """The findings of every check, for an agent with this environment."""
    address, status = find_proxy(config)
    scene = CheckScene(config, env, time.time(), address, status)
    # The folder's modes are checked before opening the store fixes them.
    folder = lambda scene: check_folder(scene.config)  # noqa: E731 - as the others
    checks = (check_proxy, folder, check_store, check_routing, check_clients)
    return [finding for check in checks for finding in check(scene)]


def _print_finding(finding: Finding) -> None:
    mark = click.style(f"{finding.level:<4}", fg=_COLOURS[finding.level])
    emit(f"{mark}  {finding.about:<11}  {plain(finding.says)}")
    if finding.todo:
        emit(f"{'':<19}→ {plain(finding.todo)}")


def check_proxy(scene: CheckScene) -> Iterator[Finding]:
    status, address = scene.status, scene.address
    if status is None or address is None:
        says = "no proxy serves this project" + (
            f" (process {address.pid} left a note and is gone)" if address else ""
        )
        yield warn(
            "proxy", says, "start one with: hotset up   or run an agent with: hotset wrap claude"
        )
        return
    yield ok(
        "proxy",
        f"serves on port {address.port} for {span(status['uptime'])} (process {address.pid})",
    )
    if status["version"] != __version__:
        yield warn(
            "version",
            f"the proxy is {status['version']}, this is {__version__}",
            "stop the proxy and start it again",
        )
    else:
        yield ok("version", f"hotset {__version__}, proxy and command line alike")
    yield from check_serving(scene.config, status)
    yield _check_traffic(scene)


def _check_traffic(scene: CheckScene) -> Finding:
    assert scene.status is not None
    requests, kept, bypassed = (scene.status[name] for name in ("requests", "kept", "bypassed"))
    last = scene.status.get("last") or 0.0
    if not requests and scene.always_on is not None and scene.always_on.pid == scene.status["pid"]:
        return ok("traffic", "no call since the always-on proxy opened this project")
    if not requests:
        return warn(
            "traffic",
            "no call has come yet",
            "run the agent with: hotset wrap AGENT, or set its base URL (hotset up shows it)",
        )
    calls = f"{count(requests, 'call')}, {kept:,} kept" + (
        f", the last {span(scene.now - last)} ago" if last else ""
    )
    if bypassed:
        return warn(
            "traffic",
            f"{calls}; {bypassed:,} went through without being kept",
            "see `bypassed` below for the reasons",
        )
    return ok("traffic", calls)


def check_store(scene: CheckScene) -> Iterator[Finding]:
    yield from _check_sqlite()
    database = scene.config.folder / DATABASE
    if not has_store(scene.config.folder):
        yield ok("store", "empty: nothing was kept yet")
        return
    if database.exists():
        if not database.is_file():  # opening a pipe would wait for its other end
            yield fail("store", f"{database} is not a regular file", "move it away")
            return
        yield _check_format(database)
    yield from _check_opening(scene)


def _check_sqlite() -> Iterator[Finding]:
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")[:3]) < _OLDEST_SQLITE:
        yield fail("sqlite", f"SQLite {version} can damage a store", "run: pip install -U apsw")
    else:
        yield ok("sqlite", f"SQLite {version} (apsw {apsw.apsw_version()})")


def _check_format(database: Path) -> Finding:
    try:
        file = open_regular(database)
    except (OSError, HotsetError) as error:
        return fail(
            "format",
            f"{database} cannot be read: {error}",
            "move it away, or choose another folder with --data",
        )
    try:
        header = os.pread(file, 100, 0)
    except OSError as error:
        return fail("format", f"{database} cannot be read: {error.strerror}", "move it away")
    finally:
        os.close(file)
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        return fail("format", f"{database} does not look like a store", "run: hotset repair")
    (version,) = struct.unpack_from(">I", header, _FORMAT_AT)
    if version > STORE_VERSION:
        return fail(
            "format",
            f"format {version}; this hotset knows up to {STORE_VERSION}",
            "run: pip install -U hotset",
        )
    return ok(
        "format",
        f"format {version}"
        + ("" if version == STORE_VERSION else f"; becomes {STORE_VERSION} when it is next used"),
    )


def _check_opening(scene: CheckScene) -> Iterator[Finding]:
    try:
        store = open_to_look(scene.config.folder)
    except StoreTooNew:
        return  # reported by `format`
    except HotsetError as error:
        yield fail("store", str(error), "run: hotset repair")
        return
    try:
        if store.only_read:
            todo = (
                "run: hotset repair"
                if store.missing()
                else "give it back its rights, or choose another folder with --data"
            )
            yield fail("store", f"nothing can be kept: {store.only_read}", todo)
        yield from check_contents(store, scene.now)
    except HotsetError as error:
        yield fail("store", str(error), "run: hotset verify, then: hotset repair")
    finally:
        store.close()


def check_routing(scene: CheckScene) -> Iterator[Finding]:
    yield from _check_variables(scene)
    yield from _check_http_proxy(scene)
    for routing in find_routings(scene.env, scene.config.project):
        yield _judge_settings(scene, routing)


def _check_variables(scene: CheckScene) -> Iterator[Finding]:
    found = [(name, url) for name in BASE_URLS if (url := scene.env.get(name))]
    if not found:
        yield ok("environment", "no base URL is set here; `hotset wrap` sets it for its agent")
    for name, url in found:
        yield _judge_variable(scene, name, url, f"unset {name}")
        if name.startswith("ANTHROPIC") and url.rstrip("/").endswith("/v1"):
            yield warn(
                "environment",
                f"{name} ends with /v1; clients add it themselves",
                f"set {name} without the /v1",
            )


def _judge_variable(scene: CheckScene, name: str, url: str, undo: str) -> Finding:
    """The finding about a base URL in the variable `name`."""
    again = f"{undo}, or set it as `hotset up` shows; or use: hotset wrap AGENT"
    match target_of(url, scene.serving):
        case UrlTarget.HERE:
            return ok("environment", f"{name} leads to this project's proxy")
        case UrlTarget.WRONG_TOKEN:
            return fail(
                "environment",
                f"{name} leads to the proxy with a wrong token: every call is refused",
                again,
            )
        case UrlTarget.DEAD:
            return fail(
                "environment",
                f"{name} leads to {redact_url(url)}, where nothing answers",
                f"{again}; or run: hotset up",
            )
        case UrlTarget.LOCAL:
            return warn(
                "environment",
                f"{name} leads to {redact_url(url)}, which is not this project's proxy",
                again,
            )
        case UrlTarget.ELSEWHERE:
            setting = BASE_URLS[name][1]
            return warn(
                "environment",
                f"{name} leads to {redact_url(url)}, past the proxy: nothing is kept",
                f"{undo}; to have hotset go there, set {setting} to the same value",
            )


def _check_http_proxy(scene: CheckScene) -> Iterator[Finding]:
    if no_proxy_variables(scene.env):
        yield warn(
            "http proxy",
            (
                "HTTP_PROXY or the like is set and NO_PROXY does not name loopback: calls to "
                "hotset may go to that proxy"
            ),
            'export NO_PROXY="$NO_PROXY,127.0.0.1,localhost"   (hotset wrap does it for its agent)',
        )


def _judge_settings(scene: CheckScene, routing: Routing) -> Finding:
    about = routing.agent.lower()
    where = f"{routing.where} sends it to {redact_url(routing.url)}"
    if other := _served_as(scene, routing.url):
        return ok(about, f"{routing.where} sends it to the always-on proxy, as {other}")
    match target_of(routing.url, scene.serving):
        case UrlTarget.HERE:
            return ok(about, f"{routing.where} sends it to this project's proxy")
        case UrlTarget.WRONG_TOKEN:
            return fail(
                about,
                f"{routing.where} has the proxy's address with a wrong token",
                "put in the address that hotset up shows",
            )
        case UrlTarget.DEAD:
            return fail(
                about,
                f"{where}, where nothing answers",
                "run: hotset up   or hotset service install   or remove it there",
            )
        case _ if routing.wins:
            return warn(
                about,
                f"{where}, also under hotset wrap: nothing is kept",
                "remove it there, or put in hotset's address",
            )
        case _:
            return ok(about, f"{where}; hotset wrap overrides that")


def _served_as(scene: CheckScene, url: str) -> str:
    """The other project that a base URL at the always-on proxy stands for; empty if none."""
    own = scene.always_on
    if own is None or not is_alive(own, patience=scene.config.patience):
        return ""
    if target_of(url, own) is UrlTarget.HERE:
        return "the project unknown: its setting is one for all projects"
    for each in list_projects(scene.config):
        token = kept_token(Path(each.folder))
        is_other = token and each.folder != str(scene.config.folder)
        if is_other and target_of(url, replace(own, token=token)) is UrlTarget.HERE:
            return f"the project {each.project}"
    return ""


def check_clients(scene: CheckScene) -> Iterator[Finding]:
    """Clients that were sent to the proxy, and of which nothing arrived: some logins go straight to
    the provider, whatever base URL is set."""
    config = scene.config
    connected = list(list_connections(config))
    by_mcp = {each.client for each in connected if MCP in each.written}
    stores = {str(config.folder): config.folder, str(shared_folder(config)): unknown_folder(config)}
    for each in connected:
        if PROXY not in each.written or each.folder not in stores:
            continue
        since = f"connected to the proxy {span(scene.now - each.time)} ago"
        if _has_come(stores[each.folder], each):
            yield ok(each.client, f"{since}; its calls arrive")
        else:
            yield warn(
                each.client,
                f"{since}, in {each.path}, and no call of it came",
                f"run it once; if still none comes, its login goes past base URLs: "
                f"{_other_way(each.client, by_mcp)}",
            )
    for run in list_silent_runs(config):
        other = _other_way(run.client, by_mcp)
        yield warn(
            run.client,
            f"wrapped {span(scene.now - run.time)} ago, and none of its calls arrived",
            f"if it called a model, its login goes past base URLs: {other}",
        )


def _other_way(client: str, by_mcp: Collection[str]) -> str:
    if client in by_mcp:
        return "over MCP, as it is connected already, everything but the window works"
    if client in CLIENTS and MCP in CLIENTS[client].ways:
        return f"MCP works with every login: hotset connect {client} --mcp"
    return "use it with an API key"


def _has_come(folder: Path, connection: ClientConnection) -> bool:
    """True if the store has a call of that client since it was connected."""
    if not has_store(folder):
        return False
    try:
        with open_to_look(folder) as store:
            return any(
                session.started >= connection.time
                or any(turn.started >= connection.time for turn in store.turns(session.id))
                for session in store.sessions()
                if is_client(connection.client, session.agent)
            )
    except HotsetError:  # reported by `store`
        return True
