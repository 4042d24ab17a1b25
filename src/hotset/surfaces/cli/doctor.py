"""`hotset doctor`: find out why nothing is kept. Each finding is one line with what to do."""

from __future__ import annotations

import os
import shutil
import stat
import struct
import time
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import apsw
import click

from hotset import __version__
from hotset.config import Config, is_client
from hotset.errors import HotsetError, StoreTooNew
from hotset.files.open import open_regular
from hotset.nouns.turn import Event
from hotset.runtime.reader import (
    BALLAST_BYTES,
    DATABASE,
    STORE_VERSION,
    Store,
    Where,
    has_store,
    open_to_look,
    wal_and_shm,
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
from hotset.surfaces.cli.terminal import count, emit, emit_json, plain, size, span
from hotset.surfaces.proxy.address import (
    Address,
    find_proxy,
    is_alive,
    kept_token,
    read_note,
)
from hotset.surfaces.proxy.always_on import list_projects, shared_folder, unknown_folder

_LOW_BYTES = 500_000_000
_BIG_WAL = 64 << 20  # the store empties it at 32 MB; twice that means that a process holds it
_OLDEST_SQLITE = (3, 51, 3)  # earlier ones can corrupt a WAL when it is reset
_FORMAT_AT = 60  # offset of the store's format number in SQLite's header
_RECENT_SECONDS = 7 * 86400
_REASONS = 3
_SAMPLE = 20


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    about: str
    level: Level
    says: str
    todo: str = ""
    """What to do about it; empty if all is well."""


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


def ok(about: str, says: str) -> Finding:
    return Finding(about, Level.OK, says)


def warn(about: str, says: str, todo: str) -> Finding:
    return Finding(about, Level.WARN, says, todo)


def fail(about: str, says: str, todo: str) -> Finding:
    return Finding(about, Level.FAIL, says, todo)


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
    checks = (check_proxy, check_folder, check_store, check_routing, check_clients)
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
    if status["store"] != "ok":
        yield warn(
            "keeping",
            f"the proxy keeps nothing now: {status['store']}",
            "see the findings on the store below",
        )
    if "memory" in status:  # a proxy of an older version has none
        yield _check_memory(status["memory"])
    yield from _check_upstreams(scene)
    yield _check_traffic(scene)


def _check_memory(memory: Mapping[str, Any]) -> Finding:
    used = f"{size(memory['used'])} used"
    if memory["limit"]:
        used += f" of {size(memory['limit'])} ({memory['source']})"
    if memory["level"] == "normal":
        return ok("memory", used)
    return warn(
        "memory",
        f"memory is short, level {memory['level']}: {used}; caches are small now"
        + ("" if memory["prefetch"] else " and prefetch is off"),
        "raise the limit of its group or of [pressure], or end other programs",
    )


def _check_upstreams(scene: CheckScene) -> Iterator[Finding]:
    assert scene.status is not None
    for name, url in scene.status["upstreams"].items():
        chosen = scene.config.upstreams.get(name)
        if chosen is not None and chosen.url != url:
            yield warn(
                "upstream",
                (
                    f"the proxy sends {name} to {url}; settings here "
                    f"({scene.config.origins.get(f'{name}_url')}) say {chosen.url}"
                ),
                "stop the proxy and start it again",
            )


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


def check_folder(scene: CheckScene) -> Iterator[Finding]:
    folder = scene.config.folder
    if not folder.exists():
        yield warn(
            "folder",
            f"{folder} is not there: nothing was ever kept for this project",
            "start with: hotset up",
        )
        return
    yield from _check_privacy(folder)
    yield from _check_token(folder / "token")
    yield from _check_disk(folder)


def _check_privacy(folder: Path) -> Iterator[Finding]:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        yield fail(
            "folder", f"{folder} is not a folder", "move it away, or choose another with --data"
        )
        return
    if found.st_uid != os.geteuid():
        yield fail(
            "folder",
            f"{folder} belongs to another user (uid {found.st_uid})",
            "choose a folder of your own with --data",
        )
        return
    open_ones = [path for path in (folder, *sorted(folder.iterdir())) if _open_to_others(path)]
    if open_ones:
        names = ", ".join(path.name for path in open_ones[:3])
        yield fail(
            "folder", f"others can look into {folder}: {names}", f"run: chmod -R go-rwx {folder}"
        )
    else:
        yield ok("folder", f"{folder}, only yours")


def _open_to_others(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISLNK(mode) and bool(mode & 0o077)


def _check_token(path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield ok("token", "not made yet; the first start makes one")
    elif path.is_symlink() or not path.is_file():
        yield fail(
            "token", f"{path} is not a regular file", "remove it; the next start makes a new one"
        )
    elif path.stat().st_mode & 0o077:
        yield fail(
            "token",
            f"{path} can be read by others",
            f"run: chmod 600 {path}   or delete it to get a new one",
        )
    else:
        yield ok("token", "in a file that only you can read")


def _check_disk(folder: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(folder).free
    if free < _LOW_BYTES:
        yield warn(
            "disk",
            f"{size(free)} free on the disk of {folder}",
            "make room; calls go through, but cannot be kept on a full disk",
        )
    else:
        yield ok("disk", f"{size(free)} free")
    if not has_store(folder):
        return
    ballast = folder / "ballast"
    if not ballast.exists() or ballast.stat().st_size < BALLAST_BYTES:
        yield warn(
            "ballast",
            "the reserve for a full disk is used up",
            "make room; the reserve comes back by itself",
        )
    wal, _ = wal_and_shm(folder / DATABASE)
    grown = wal.stat().st_size if wal.exists() else 0
    if grown > _BIG_WAL:
        yield warn(
            "wal",
            f"the write-ahead log has grown to {size(grown)}",
            "stop every hotset of this project once",
        )
    else:
        yield ok("wal", f"the write-ahead log is {size(grown)}")


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
    yield from _check_contents(scene)


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


def _check_contents(scene: CheckScene) -> Iterator[Finding]:
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
        census = store.census()
        contents = (
            f"{count(census.sessions, 'session')}, {count(census.pages, 'page')}, "
            f"{size(census.content_bytes)}"
        )
        read = _read_latest(store)
        yield ok(
            "store",
            (
                f"opens; {contents} in {size(census.stored_bytes)}; the latest "
                f"{count(read, 'page')} read back whole"
            ),
        )
        yield from _check_bypasses(scene, store.events())
    except HotsetError as error:
        yield fail("store", str(error), "run: hotset verify, then: hotset repair")
    finally:
        store.close()


def _read_latest(store: Store) -> int:
    """Reads the newest pages back, which checks their hashes. `hotset verify` does it for all."""
    newest = deque(store.sessions(), maxlen=1)
    pages = deque(
        (page for session in newest for page in store.pages(Where(session=session.id))),
        maxlen=_SAMPLE,
    )
    for page in pages:
        store.content(page.digest)
    return len(pages)


def _check_bypasses(scene: CheckScene, events: Iterable[Event]) -> Iterator[Finding]:
    recent = [
        event
        for event in events
        if event.name == "Bypassed" and scene.now - event.time < _RECENT_SECONDS
    ]
    if not recent:
        yield ok("bypassed", "no call went past the store in the last week")
        return
    reasons = Counter(str(event.detail.get("reason", "unknown")) for event in recent).most_common(
        _REASONS
    )
    why = "; ".join(f"{times:,} x {plain(reason)}" for reason, times in reasons)
    last = span(scene.now - max(event.time for event in recent))
    yield warn(
        "bypassed",
        f"{count(len(recent), 'call')} in the last week, the last {last} ago: {why}",
        _advice(reasons[0][0]),
    )


def _advice(reason: str) -> str:
    if reason.startswith("store"):
        return "the findings on disk and store say what is wrong; nothing has to be restarted"
    if reason.startswith("unreadable"):
        return "the agent sent something that is no request; it got the provider's own answer"
    return "those calls went through unchanged; if it goes on, report it"


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
