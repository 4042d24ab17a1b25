"""The settings in force: flag over environment over file over default. The only reader of the
environment and of TOML.

A project's own folder is never a source of settings: a cloned repository must not be able to say
where keys are sent.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from ipaddress import ip_address
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

from msgspec import Meta, Struct, ValidationError, structs, to_builtins

from hotset.errors import BadConfig
from hotset.nouns.alert import THRESHOLDS, Threshold
from hotset.nouns.embedding import AUTO, OFF, Embedding
from hotset.nouns.knobs import (
    DEFAULT_PROFILE,
    NEVER,
    PROFILES,
    STRATEGIES,
    Knobs,
    Limit,
    Prefetch,
    Prefetching,
    Remembering,
    Seconds,
)
from hotset.nouns.page import Kind
from hotset.nouns.pressure import PressureLimits
from hotset.nouns.price import Price, Prices
from hotset.nouns.tooling import Texts, Tooling
from hotset.places import (
    data_folder,
    home_folder,
    project_root as project_root,  # noqa: PLC0414 - for those who ask for settings
    user_file as user_file,  # noqa: PLC0414
)
from hotset.typed import convert

DEFAULT_PORT = 4747

SERVERS = "servers.json"
"""The file of MCP servers, in the form that every client uses: beside the user's file, and in a
project's tools."""

TOOLS = "tools"
"""The folder of a project's tools, in its data folder."""

MEMORY = "memory"
"""The folder of what is derived from its memories, in its data folder."""

_AGENT_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_LEAST_BUDGET = 1000  # tokens; an agent's system text and tools alone take more
_SWITCH = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(
    ("0", "false", "no", "off"), False
)
"""The words for yes and no in the environment, where every value is text."""


def _place(table: str, key: str = "", **more: str) -> Meta:
    """A setting's place in the file: `key` of a table, by default its own name."""
    return Meta(extra={"table": table, "key": key, **more})


class Settings(Struct, frozen=True):
    """Every setting that has a variable: `HOTSET_` and its name in capitals. `Config` describes
    them."""

    project: str = ""
    home: str = ""
    """Where the data folders of projects are; empty is the platform's own place."""
    data: str = ""
    """The data folder of this project; empty is one below `home`."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    openai_url: str = "https://api.openai.com/v1"
    anthropic_url: str = "https://api.anthropic.com"
    off: Annotated[bool, _place("window")] = False
    inject: Annotated[bool, _place("window", flag="--no-tools")] = True
    budget: Annotated[Any, _place("window")] = 0
    profile: Annotated[Any, _place("window")] = ""
    search: Annotated[bool, _place("search", "enabled")] = True
    minilm: Annotated[str, _place("search")] = AUTO
    embedding_url: Annotated[str, _place("search")] = ""
    embedding_model: Annotated[str, _place("search")] = ""
    embedding_size: Annotated[
        int, Meta(ge=0), _place("search", allowed="how many numbers a vector of the model has")
    ] = 0
    summary_model: Annotated[str, _place("summary", "model")] = ""
    summary_upstream: Annotated[str, _place("summary", "upstream")] = ""
    summary_every: Annotated[int, Meta(ge=0), _place("summary", "every")] = 10
    summary_seconds: Annotated[Seconds, _place("summary", "seconds")] = 60.0
    tools: Annotated[bool, _place("tools", "enabled")] = True
    memory: Annotated[bool, _place("memory", "enabled")] = True
    learn: Annotated[bool, _place("learn", "enabled")] = True
    patience: Annotated[float, Meta(ge=1, le=1000)] = 1.0


_WINDOW = ("off", "inject", "budget", "profile")
"""Settings of `[window]` that are not knobs."""

_NO_SETTINGS = ("window",)
_LIMIT_TABLES = ("limits", "tools", "files")
_UNSHORTENED = ("never", "whole")
"""Knobs that no file sets: the window's own size is `budget`."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """A provider, or any server with a provider's API."""

    name: str
    url: str
    """The part before `/chat/completions` or `/v1/messages`; never ends with a slash."""
    proxy: str | None = None
    """The HTTP proxy of this machine, where the environment names one for that host."""


@dataclass(frozen=True, slots=True)
class Summarising:
    """Settings of summaries of older work."""

    model: str = ""
    """The small model that writes summaries; empty leaves them to rules."""
    upstream: str = "openai"
    """The name of the upstream that is called."""
    every: int = 10
    """After how many steps of the model a summary is made; 0 makes none."""
    seconds: float = 60.0
    """How long writing one may take. Only the next summary waits for it."""
    key: str = field(default="", repr=False)
    """The API key for it: never a client's. From the environment alone."""


@dataclass(frozen=True, slots=True)
class ClientSwitches:
    """What the file says of one client's window; None is what holds for all."""

    off: bool | None = None
    profile: str | None = None
    budget: int | None = None


_PLAIN_CLIENT = ClientSwitches()


@dataclass(frozen=True, slots=True)
class Config:
    project: Path
    """The folder that the agent works in."""
    folder: Path
    """The data folder of this project."""
    home: Path
    """The folder of what belongs to all projects of the user."""
    port: int | None
    """The port that was asked for; 0 is any, None lets hotset choose one and stay with it."""
    upstreams: Mapping[str, Upstream]
    origins: Mapping[str, str]
    """The source of each setting's value."""
    own_prices: tuple[tuple[str, Mapping[str, float]], ...] = ()
    """Prices of the user's file, by patterns of model names."""
    off: bool = False
    """Requests go out as they come; they are still kept."""
    inject: bool = True
    """Our tools are offered to the model beside the client's."""
    budget: int = 0
    """Tokens that a prompt may have; 0 is what the model's window allows."""
    profile: str = ""
    """The profile of every agent; empty gives each the profile of its own kind."""
    own_knobs: Mapping[str, Any] = field(default_factory=dict)
    """Knobs of the user's file, by dotted name; they override any profile."""
    own_profiles: Mapping[str, Knobs] = field(default_factory=dict)
    """Profiles of the user's file, by the name of the kind of agent that they are for."""
    clients: Mapping[str, ClientSwitches] = field(default_factory=dict)
    """Switches of the user's file for single clients, by name."""
    own_alerts: Mapping[str, float] = field(default_factory=dict)
    """Thresholds of the user's file."""
    knobs: Knobs | None = None
    """Knobs that a program set: they hold for every agent, instead of profiles and files."""
    summary: Summarising = field(default_factory=Summarising)
    search: bool = True
    """Pages are indexed; otherwise searches look through the store itself."""
    embedding: Embedding = field(default_factory=Embedding)
    """The source of the index's vectors."""
    patience: float = 1.0
    """Factor on every wait for our own work: more for a slow machine."""
    tooling: Tooling = field(default_factory=Tooling)
    memory: Remembering = field(default_factory=Remembering)
    learns: bool = True
    """New sessions get what the project's earlier ones taught."""
    pressure: PressureLimits = field(default_factory=PressureLimits)
    """When memory is short."""
    servers: tuple[Path, ...] = ()
    """The files that list MCP servers: the user's own, and the project's, whose entries override
    those."""
    user: Path = field(default_factory=Path.home)
    """The user's home folder, in which programs keep skills."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Values of `${NAME}` in those files."""

    @property
    def prices(self) -> Prices:
        """What models cost: the list that comes with hotset, overridden by the user's file."""
        return Prices(listed_prices(), self.own_prices)

    @property
    def window(self) -> dict[str, bool | int | str]:
        """The switches of the window, by name."""
        return {
            "off": self.off,
            "inject": self.inject,
            "budget": self.budget,
            "profile": self.profile,
        }

    @property
    def thresholds(self) -> Mapping[str, Threshold]:
        """Thresholds of alerts, by name."""
        return {
            name: replace(each, limit=self.own_alerts.get(name, each.limit))
            for name, each in THRESHOLDS.items()
        }

    def knobs_for(self, agent: str) -> Knobs:
        """The knobs for an agent, by its name: kinds of agents are profiles too."""
        if self.knobs is not None:
            return self.knobs
        name = self._switches(agent).profile or self.profile or agent
        if name not in self.own_profiles and name not in PROFILES:
            name = DEFAULT_PROFILE
        own = self.own_profiles.get(name)
        return PROFILES[name].turned(self.own_knobs) if own is None else own

    def is_off_for(self, agent: str) -> bool:
        """True if the agent's requests go out as they come."""
        own = self._switches(agent).off
        return self.off if own is None else own

    def budget_for(self, agent: str) -> int:
        """Tokens that a prompt of the agent may have; 0 is what the model's window allows."""
        own = self._switches(agent).budget
        return self.budget if own is None else own

    def _switches(self, agent: str) -> ClientSwitches:
        """The switches of the client whose name the agent's begins with: `codex` is codex_cli_rs
        too."""
        if not self.clients:
            return _PLAIN_CLIENT
        fits = [name for name in self.clients if is_client(name, agent)]
        return self.clients[max(fits, key=len)] if fits else _PLAIN_CLIENT

    @property
    def profiles(self) -> Mapping[str, Knobs]:
        """The knobs of every profile, those of the user's file included."""
        return {name: self.knobs_for(name) for name in (*PROFILES, *self.own_profiles)}

    @property
    def trial_profiles(self) -> Mapping[str, Knobs]:
        """The knobs of every profile that sessions can be tried with: also strategies of recall."""
        plain = self.knobs_for(DEFAULT_PROFILE)
        strategies = {name: plain.with_changes(values) for name, values in STRATEGIES.items()}
        return {**strategies, **self.profiles}


def load(
    *,
    project: str | None = None,
    data: str | None = None,
    port: int | None = None,
    openai_url: str | None = None,
    anthropic_url: str | None = None,
    off: bool | None = None,
    inject: bool | None = None,
    budget: int | None = None,
    profile: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """The settings in force. Raises `BadConfig` with the setting's name and where it was set."""
    env = os.environ if environ is None else environ
    path = user_file(env)
    file = _read(path)
    flags = {
        "project": project,
        "data": data,
        "port": port,
        "openai_url": openai_url,
        "anthropic_url": anthropic_url,
        "off": off,
        "inject": inject,
        "budget": budget,
        "profile": profile,
    }
    chosen, origins = _settings(flags, env, file, path)
    tables = {
        name: _table(file, name, path)
        for name in (
            "window",
            "knobs",
            "summary",
            "search",
            "tools",
            "memory",
            "learn",
            "pressure",
            "alerts",
        )
    }
    own_knobs = _values(Knobs, tables["window"], f"[window] in {path}", beside=_WINDOW)
    own_knobs |= _values(Knobs, tables["knobs"], f"[knobs] in {path}")
    own_profiles = _own_profiles(_table(file, "profiles", path), own_knobs, path)
    named_profile = _profile(chosen.profile, origins["profile"], own_profiles)
    if named_profile not in own_profiles:
        shares_table = "knobs" if tables["knobs"].keys() & {"low", "high"} else "window"
        _check_shares(
            PROFILES[named_profile or DEFAULT_PROFILE].turned(own_knobs),
            f"[{shares_table}] in {path}",
        )
    handing = "knobs" if "handoff" in tables["knobs"] else "window"
    for below in PROFILES.values():
        _check_handoff(below.turned(own_knobs), f"[{handing}] in {path}")
    for name in ("summary", "search", "learn"):
        _check_names(name, tables[name], path)
    patience = chosen.patience  # values of the file are taken as they are
    waits = {
        "list_seconds": patience * Tooling().list_seconds,
        "call_seconds": patience * Tooling().call_seconds,
    }
    tooling = Tooling(**waits | _values(Tooling, tables["tools"], f"[tools] in {path}"))
    offer = {"offer_seconds": patience * Remembering().offer_seconds}
    memory = Remembering(**offer | _values(Remembering, tables["memory"], f"[memory] in {path}"))
    root = project_root(Path(chosen.project or Path.cwd()))
    home = home_folder(chosen.home)
    folder = data_folder(root, chosen.data, home)
    urls = {"openai": chosen.openai_url, "anthropic": chosen.anthropic_url} | _named_upstreams(
        file, path, origins
    )
    return Config(
        project=root,
        folder=folder,
        home=home,
        port=None if origins["port"] == "default" else chosen.port,
        upstreams={
            name: Upstream(
                name, url := _url(name, value, origins[f"{name}_url"]), _proxy_for(url, env)
            )
            for name, value in urls.items()
        },
        origins=origins,
        own_prices=_own_prices(file, path),
        off=chosen.off,
        inject=chosen.inject,
        budget=budget_of(chosen.budget, origins["budget"]),
        profile=named_profile,
        own_knobs=own_knobs,
        own_profiles=own_profiles,
        clients=_clients(_table(file, "clients", path), own_profiles, origins, path),
        own_alerts=_alerts(tables["alerts"], f"[alerts] in {path}"),
        summary=_summarising(chosen, env.get("HOTSET_SUMMARY_KEY", ""), urls, origins),
        search=chosen.search,
        embedding=_embedding(chosen, env.get("HOTSET_EMBEDDING_KEY", ""), origins),
        patience=chosen.patience,
        tooling=structs.replace(tooling, enabled=chosen.tools),
        memory=structs.replace(memory, enabled=chosen.memory),
        learns=chosen.learn,
        pressure=_pressure(tables["pressure"], f"[pressure] in {path}"),
        servers=(path.parent / SERVERS, folder / TOOLS / SERVERS),
        user=Path(env["HOME"]) if env.get("HOME") else Path.home(),
        environ=env,
    )


def is_client(client: str, agent: str) -> bool:
    """True if a session's agent is that client: its name, alone or followed by more words."""
    rest = agent.lower().removeprefix(client)
    return agent.lower().startswith(client) and not rest[:1].isalnum()


@cache
def listed_prices() -> tuple[tuple[str, Price], ...]:
    """The prices that come with hotset, in the order in which they are tried. Read on demand: it
    takes 10 ms."""
    from importlib.resources import files  # noqa: PLC0415 - read only when prices are

    file = tomllib.loads(files("hotset").joinpath("data", "prices.toml").read_text("utf-8"))
    families = {"": {}, **file["families"]}
    return tuple(
        (pattern, Price(**families[table.pop("family", "")] | table))
        for pattern, table in file["prices"].items()
    )


def parse_knobs(words: Iterable[str], origin: str) -> dict[str, Any]:
    """Parses words like `keep=8` and `prefetch.mode=on` into knobs by name. Raises `BadConfig`."""
    knobs: dict[str, Any] = {}
    known = [name for name in Knobs().by_name() if name not in _NO_SETTINGS]
    for word in words:
        name, equals, text = (part.strip() for part in word.partition("="))
        if not equals or not text:
            raise BadConfig(f"{origin} {word!r} must look like keep=8")
        if name not in known:
            _refuse_knob(name, known, origin)
        given = _parse_value(text)
        group, _, rest = name.rpartition(".")
        knobs |= _values(Knobs, {group: {rest: given}} if group else {rest: given}, origin)
    _check_shares(PROFILES[DEFAULT_PROFILE].turned(knobs), origin)
    return knobs


def parse_orders(words: Iterable[str], origin: str) -> dict[str, Any]:
    """As `parse_knobs`, but as JSON can hold it, and with entries of tables:
    `tools.Bash={over=9000, room=6000}`; a limit may be `never`. Raises `BadConfig`."""
    plain: list[str] = []
    orders: dict[str, Any] = {}
    tables = [name for name, value in Knobs().by_name().items() if isinstance(value, Mapping)]
    for word in words:
        name, equals, text = (part.strip() for part in word.partition("="))
        table = next((each for each in tables if name.startswith(f"{each}.")), "")
        is_limit = table in _LIMIT_TABLES or name == "limit"
        given = {"over": 0} if is_limit and text in _UNSHORTENED else _parse_value(text)
        if not equals or not text:
            raise BadConfig(f"{origin} {word!r} must look like keep=8")
        if not table:
            plain.append(f"{name}={{over = 0}}" if given == {"over": 0} else word)
            continue
        entry = {name.removeprefix(f"{table}."): given}
        group, _, rest = table.rpartition(".")
        values = _values(Knobs, {group: {rest: entry}} if group else {rest: entry}, origin)
        orders |= {f"{table}.{key}": value for key, value in values[table].items()}
    found: dict[str, Any] = to_builtins({**parse_knobs(plain, origin), **orders}, order="sorted")
    return found


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"given = {text}")["given"]
    except tomllib.TOMLDecodeError:
        return text  # a bare word, such as a policy


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"{path} is not TOML: {error}") from error
    except OSError as error:
        raise BadConfig(f"{path} cannot be read: {error.strerror}") from error


def _table(file: Mapping[str, Any], name: str, path: Path) -> Mapping[str, Any]:
    table = file.get(name, {})
    if not isinstance(table, dict):
        raise BadConfig(f"{name} in {path} must be a table: [{name}]")
    return table


def _named_upstreams(
    file: Mapping[str, Any], path: Path, origins: dict[str, str]
) -> dict[str, str]:
    """Further upstreams: `[upstreams.NAME] url = "..."`."""
    named: dict[str, str] = {}
    tables = file.get("upstreams", {})
    for name, table in tables.items() if isinstance(tables, dict) else ():
        if not _NAME.fullmatch(name):
            raise BadConfig(
                f"upstream {name!r} in {path}: a name is lower-case letters, digits and dashes"
            )
        if not isinstance(table, dict) or not isinstance(table.get("url"), str):
            raise BadConfig(f'upstream {name!r} in {path} needs a url = "https://..."')
        named[name] = table["url"]
        origins[f"{name}_url"] = str(path)
    return named


def _settings(
    flags: Mapping[str, object], env: Mapping[str, str], file: Mapping[str, Any], path: Path
) -> tuple[Settings, dict[str, str]]:
    """Each setting's value from the first source that has one, and the name of that source."""
    chosen: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for setting in structs.fields(Settings):
        name, (bare, facts) = setting.name, _facts(setting.type)
        table, key = facts.get("table"), facts.get("key") or name
        given = env.get(f"HOTSET_{name.upper()}")
        sources = (
            (flags.get(name), facts.get("flag") or f"--{name.replace('_', '-')}"),
            (
                _SWITCH.get(given.strip().lower(), given) if given and bare is bool else given,
                f"HOTSET_{name.upper()}",
            ),
            ((_table(file, table, path) if table else file).get(key), str(path)),
        )
        value, origin = next(
            ((value, origin) for value, origin in sources if value not in (None, "")),
            (None, "default"),
        )
        origins[name] = origin
        if value is not None:
            at = (
                f"{key} of [{table}] in {path}"
                if key != name and origin == str(path)
                else f"{name} ({origin})"
            )
            chosen[name] = _value(setting.type, value, at, strict=bare is bool)
    return Settings(**chosen), origins


def _check_names(table: str, given: Mapping[str, Any], path: Path) -> None:
    """Raises `BadConfig` if a table has a name that is not a setting."""
    settings = ((setting.name, _facts(setting.type)[1]) for setting in structs.fields(Settings))
    known = [facts["key"] or name for name, facts in settings if facts.get("table") == table]
    for name in sorted(given.keys() - set(known)):
        key = {"summary": "HOTSET_SUMMARY_KEY", "search": "HOTSET_EMBEDDING_KEY"}.get(table)
        _refuse_name(name, known, f"{table} in {path}", f" (a key: {key})" if key else "")


def _values(
    group: type[Struct],
    table: Mapping[str, Any],
    origin: str,
    prefix: str = "",
    beside: Iterable[str] = (),
) -> dict[str, Any]:
    """The values of a table for a group of settings, checked, by dotted name. Raises
    `BadConfig`."""
    known = {
        each.name: each.type for each in structs.fields(group) if each.name not in _NO_SETTINGS
    }
    values: dict[str, Any] = {}
    for name, given in table.items():
        at = f"{prefix}{name} of {origin}"
        if name in beside:
            continue
        if name not in known:
            _refuse_name(
                name, [*beside, *known], f"{prefix[:-1]} of {origin}" if prefix else origin
            )
        if not _is_group(known[name]):
            values[f"{prefix}{name}"] = _value(known[name], given, at)
            continue
        inner = {"mode": given} if known[name] is Prefetch and isinstance(given, str) else given
        if not isinstance(inner, dict):
            shorter = f"{_allowed(Prefetching)}, or " if known[name] is Prefetch else ""
            names = ", ".join(known[name].__struct_fields__)
            raise BadConfig(f"{at} must be {shorter}a table of {names}, not {given!r}")
        values |= _values(known[name], inner, origin, f"{prefix}{name}.")
    return values


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct) and kind is not Limit


def _value(kind: Any, given: object, at: str, *, strict: bool = True) -> Any:
    """The value converted to its type. `at` names the setting and where it was set. Raises
    `BadConfig`."""
    if kind is Limit:
        return _limit(given, at)
    if get_origin(kind) is Mapping:
        names, values = get_args(kind)
        name, _, origin = at.partition(" of ")
        if not isinstance(given, dict):
            raise BadConfig(f"{at} must be a table: [window.{name}]")
        return {
            _value(names, each, f"a name in {at}"): _value(
                values, value, f"{name}.{each} of {origin}"
            )
            for each, value in given.items()
        }
    try:
        value = convert(given, kind, strict=strict)
    except ValidationError:
        value = None
    if value is None or (isinstance(value, float) and not isfinite(value)):
        raise BadConfig(f"{at} must be {_allowed(kind)}, not {given!r}")
    return value


def _allowed(kind: Any) -> str:
    """The allowed values of a setting of that type, in words."""
    bare, facts = _facts(kind)
    if "allowed" in facts:
        return str(facts["allowed"])
    if bare is bool:
        return "true or false"
    if bare in (int, float):
        unit = str(facts.get("unit", ""))
        number = (
            f"{unit}," if unit.startswith("a ") else "a whole number" if bare is int else "a number"
        )
        return (
            f"{number} from {facts['ge']} {'to {}'.format(facts['le']) if 'le' in facts else 'up'}"
        )
    if kind == Texts or get_origin(bare) is tuple:
        names = [each for each in get_args(get_args(kind)[0]) if isinstance(each, str)]
        known = f"tools, of {', '.join(names)}" if names else 'texts, such as ["github__*"]'
        return f"a list of {known}"
    if get_origin(bare) is frozenset:
        return f"a list of kinds, of {', '.join(Kind)}"
    choices = get_args(bare) or (() if bare is str else bare)
    return f"one of {', '.join(choices)}" if choices else "text"


def _facts(kind: Any) -> tuple[Any, dict[str, Any]]:
    """The type without its annotations, and the annotations: its range, and a setting's place."""
    if get_origin(kind) is not Annotated:
        return kind, {}
    facts: dict[str, Any] = {}
    for meta in kind.__metadata__:
        facts |= {end: most for end in ("ge", "le") if (most := getattr(meta, end)) is not None} | (
            meta.extra or {}
        )
    return kind.__origin__, facts


def _refuse_name(name: str, known: Iterable[str], where: str, more: str = "") -> NoReturn:
    from difflib import get_close_matches  # noqa: PLC0415 - where a name is wrong

    known = list(known)
    near = get_close_matches(name, known, 1)
    meant = f". Did you mean {near[0]}?" if near else ""
    raise BadConfig(f"{where} cannot say {name!r}; it can say {', '.join(known)}{more}{meant}")


def _refuse_knob(name: str, known: Iterable[str], origin: str) -> NoReturn:
    """As `_refuse_name`, but knobs are too many to name them all."""
    from difflib import get_close_matches  # noqa: PLC0415 - where a name is wrong

    first, *others = get_close_matches(name, list(known), 3, cutoff=0.4) or [""]
    meant = f". Did you mean {first}?" if first else ""
    further = f" Or {' or '.join(others)}?" if others else ""
    raise BadConfig(f"{origin} cannot say {name!r}; see docs/knobs.md{meant}{further}")


def _limit(given: object, at: str) -> Limit:
    """Parses `{over = 3000, room = 2000}`; `{over = 0}` never shortens."""
    if not isinstance(given, dict) or "over" not in given or not set(given) <= {"over", "room"}:
        raise BadConfig(
            f"{at} must look like {{over = 3000, room = 2000}}, in characters, not {given!r}"
        )
    name, _, origin = at.partition(" of ")
    kinds = get_type_hints(Limit, include_extras=True)
    over = _value(kinds["over"], given["over"], f"{name}.over of {origin}")
    if not over:
        return NEVER
    if "room" not in given:
        example = f"{{over = {over}, room = {max(1, over * 2 // 3)}}}"
        raise BadConfig(
            f"{at} must also say its room, how long what is shown may be: {example}, in characters"
        )
    room = _value(kinds["room"], given["room"], f"{name}.room of {origin}")
    if not 1 <= room <= over:
        raise BadConfig(
            f"{name}.room of {origin} must be from 1 to {over}, which is its over, not {room}"
        )
    return Limit(over, room)


def _check_shares(knobs: Knobs, where: str) -> None:
    """Raises `BadConfig` where knobs contradict each other."""
    if knobs.low > knobs.high:
        raise BadConfig(
            f"{where}: low ({knobs.low:g}), what stays when pages leave, must not be above "
            f"high ({knobs.high:g}), "
            "at which they leave"
        )
    _check_handoff(knobs, where)


def _check_handoff(knobs: Knobs, where: str) -> None:
    """Raises `BadConfig` where a successor would begin with a window that is to be handed over."""
    at, start = knobs.handoff.at, knobs.handoff.start
    if at and start >= at:
        raise BadConfig(
            f"{where}: handoff.start ({start:g}), what a successor begins with, must be below "
            f"handoff.at ({at:g}), at which it would hand over again"
        )


def _pressure(table: Mapping[str, Any], origin: str) -> PressureLimits:
    limits = PressureLimits(**_values(PressureLimits, table, origin))
    if not limits.elevated <= limits.high <= limits.critical:
        raise BadConfig(
            f"{origin}: elevated, high and critical must not fall, each is the next one"
        )
    return limits


def _alerts(table: Mapping[str, Any], origin: str) -> dict[str, float]:
    """The thresholds that `[alerts]` sets, by name; `false` is none. Raises `BadConfig`."""
    for name in sorted(table.keys() - THRESHOLDS.keys()):
        _refuse_name(name, THRESHOLDS, origin)
    limit = Annotated[float, Meta(ge=0)]
    return {
        name: THRESHOLDS[name].never
        if value is False
        else _value(limit, value, f"{name} of {origin}")
        for name, value in table.items()
    }


def _embedding(chosen: Settings, key: str, origins: Mapping[str, str]) -> Embedding:
    """The embedding's settings. An endpoint needs all three of its own; MiniLM's vectors cannot be
    mixed with an endpoint's."""
    minilm, url = chosen.minilm, chosen.embedding_url
    if minilm not in (AUTO, OFF):
        minilm = str(_weights(minilm, origins["minilm"]))
        if url:
            raise BadConfig(
                f"minilm ({origins['minilm']}) cannot ask for what embedding_url embeds; set "
                f"one of them"
            )
    for other in ("embedding_model", "embedding_size"):
        if bool(url) != bool(getattr(chosen, other)):
            lacking, given = (other, "embedding_url") if url else ("embedding_url", other)
            raise BadConfig(
                f"{given} ({origins[given]}) says nothing without {lacking}; set both, or none"
            )
    if not url:
        return Embedding(minilm)
    return Embedding(
        OFF,
        _url("embedding", url, origins["embedding_url"]),
        chosen.embedding_model,
        chosen.embedding_size,
        key,
    )


def _weights(named: str, origin: str) -> Path:
    file = Path(named).expanduser()
    if not file.is_absolute() or not file.is_file():
        raise BadConfig(
            f"minilm ({origin}) must be {AUTO}, {OFF}, or the full path of MiniLM's "
            f"model.safetensors, not {named!r}"
        )
    return file


def _summarising(
    chosen: Settings, key: str, upstreams: Mapping[str, str], origins: Mapping[str, str]
) -> Summarising:
    model = chosen.summary_model
    upstream = chosen.summary_upstream or ("anthropic" if model.startswith("claude") else "openai")
    if upstream not in upstreams:
        raise BadConfig(
            f"summary_upstream ({origins['summary_upstream']}) must be one of "
            f"{', '.join(upstreams)}, not {upstream!r}"
        )
    return Summarising(model, upstream, chosen.summary_every, chosen.summary_seconds, key)


def _own_prices(file: Mapping[str, Any], path: Path) -> tuple[tuple[str, Mapping[str, float]], ...]:
    """The user's own prices: `[prices."PATTERN"]` with any of the fields of a `Price`."""
    tables = file.get("prices", {})
    if not isinstance(tables, dict) or not all(
        isinstance(table, dict) for table in tables.values()
    ):
        raise BadConfig(f'prices in {path} must be tables like [prices."gpt-5*"]')
    kinds = {
        name: kind
        for name, kind in get_type_hints(Price, include_extras=True).items()
        if name != "listed"
    }
    for pattern, table in tables.items():
        for name in sorted(table.keys() - kinds.keys()):
            _refuse_name(name, kinds, f"prices.{pattern!r} in {path}")
    return tuple(
        (
            pattern.lower(),
            {
                name: _value(kinds[name], value, f"{name} of prices.{pattern!r} in {path}")
                for name, value in table.items()
            },
        )
        for pattern, table in tables.items()
    )


def budget_of(value: object, origin: str) -> int:
    """A prompt's limit in tokens; 0 for what the model's window allows. Raises `BadConfig`."""
    tokens = int(value) if isinstance(value, str) and value.isdigit() else value
    if (
        isinstance(tokens, bool)
        or not isinstance(tokens, int)
        or (tokens and tokens < _LEAST_BUDGET)
    ):
        raise BadConfig(
            f"budget ({origin}) must be a number of tokens from {_LEAST_BUDGET} up, or 0 for "
            f"what the model's window allows, "
            f"not {value!r}"
        )
    return tokens


def _profile(value: object, origin: str, own: Iterable[str] = ()) -> str:
    known = (*PROFILES, *own)
    if not isinstance(value, str) or (value and value not in known):
        raise BadConfig(f"profile ({origin}) must be one of {', '.join(known)}, not {value!r}")
    return value


def _own_profiles(
    tables: Mapping[str, Any], own_knobs: Mapping[str, Any], path: Path
) -> dict[str, Knobs]:
    """The profiles of the file: `[profiles.NAME]` with knobs, and `base`, the profile whose other
    knobs it has. They override `[window]`."""
    made: dict[str, Knobs] = {}
    for name, table in tables.items():
        origin = f"[profiles.{name}] in {path}"
        if not _AGENT_NAME.fullmatch(name) or not isinstance(table, dict):
            raise BadConfig(
                f"{origin} must be a table of knobs, and its name of small letters, digits, - and _"
            )
        base = _profile(table.get("base", DEFAULT_PROFILE), f"base of {origin}", made)
        below = made[base] if base in made else PROFILES[base].turned(own_knobs)
        made[name] = below.turned(_values(Knobs, table, origin, beside=("base",)))
        _check_shares(made[name], origin)
    return made


def _clients(
    tables: Mapping[str, Any], own: Iterable[str], origins: Mapping[str, str], path: Path
) -> dict[str, ClientSwitches]:
    """`[clients.NAME]` of the file. A flag and the environment win over it, as over all of the
    file."""
    made: dict[str, ClientSwitches] = {}
    for name, table in tables.items():
        origin = f"[clients.{name}] in {path}"
        if not _AGENT_NAME.fullmatch(name) or not isinstance(table, dict):
            raise BadConfig(
                f"{origin} must be a table of switches, and its name of small letters, digits, "
                f"- and _"
            )
        for switch in sorted(table.keys() - {"off", "profile", "budget"}):
            _refuse_name(switch, ("off", "profile", "budget"), origin)
        given = {
            switch: value
            for switch, value in table.items()
            if origins[switch] in ("default", str(path))
        }
        made[name] = ClientSwitches(
            _value(bool, given["off"], f"off of {origin}") if "off" in given else None,
            _profile(given["profile"], origin, own) if "profile" in given else None,
            budget_of(given["budget"], origin) if "budget" in given else None,
        )
    return made


def _url(name: str, value: str, origin: str) -> str:
    """A base URL in the form in which we append paths to it."""
    parts = urlsplit(value)
    try:
        port_is_bad = parts.port == 0
    except ValueError:
        port_is_bad = True
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.query
        or parts.fragment
        or port_is_bad
    ):
        raise BadConfig(
            f"{name}_url ({origin}) must look like https://host or https://host/v1, not {value!r}"
        )
    if parts.username or parts.password:
        raise BadConfig(f"{name}_url ({origin}) must not carry a user name or password")
    bare = value.rstrip("/")
    if name == "anthropic":
        return bare.removesuffix("/v1")
    return bare if parts.path.strip("/") else f"{bare}/v1"


def _proxy_for(url: str, env: Mapping[str, str]) -> str | None:
    """The proxy that any other client on this machine would use for that URL; loopback never goes
    through one."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host):
        return None
    proxies = {
        name[: -len("_proxy")].lower(): value
        for name, value in env.items()
        if name.lower().endswith("_proxy") and value
    }
    if not proxies:
        return None
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # noqa: PLC0415 - 30 ms, where there is one

    bypass = proxy_bypass_environment(host, {"no": proxies.get("no", "")})
    return None if bypass else proxies.get(parts.scheme) or proxies.get("all")


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
