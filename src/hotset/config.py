"""What an operator chose: flag over environment over file over default. The only reader of the environment and of TOML.

A project's own folder is never a source of settings: a cloned repository must not be able to say where keys are sent.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from ipaddress import ip_address
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hotset.errors import BadConfig
from hotset.nouns.alert import THRESHOLDS, Threshold
from hotset.nouns.embedding import AUTO, OFF, Embedding
from hotset.nouns.knobs import Knobs
from hotset.nouns.price import Price, Prices
from hotset.nouns.profiles import DEFAULT, PROFILES
from hotset.nouns.remembering import Remembering
from hotset.nouns.tool import Tooling
from hotset.settings import checked, knobs_in, remembering_in, thresholds_in, tooling_in

DEFAULT_PORT = 4747

SERVERS = "servers.json"
"""Where MCP servers stand, in the form in which every client writes them: beside the user's file, and in a project's tools."""

TOOLS = "tools"
"""Where a project's tools are, in its data folder."""

MEMORY = "memory"
"""Where what is derived of its memories lies there."""

_DEFAULT_URLS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_PRICE_FIELDS = {each.name: each.type for each in fields(Price) if each.name != "listed"}
_AT_MOST_ONE = ("read",)  # a cached token never costs more than an uncached one
_AT_LEAST_ONE = ("write", "step", "window", "longest_reply", "long_input", "long_output")
_LEAST_BUDGET = 1000  # tokens; an agent's system text and tools alone take more
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_SUMMARY = {"summary_model": "", "summary_upstream": "", "summary_every": 10, "summary_seconds": 60}
_EMBEDDING = {"minilm": AUTO, "embedding_url": "", "embedding_model": "", "embedding_size": 0}
_PROJECT_MARKS = (".git", ".hg", ".jj", "pyproject.toml", "package.json", "Cargo.toml", "go.mod")


@dataclass(frozen=True, slots=True)
class Upstream:
    """A provider, or anything that speaks like one."""

    name: str
    url: str
    """What stands in front of `/chat/completions` or `/v1/messages`; never ends with a slash."""
    proxy: str | None = None
    """The HTTP proxy of this machine, where the environment names one for that host."""


@dataclass(frozen=True, slots=True)
class Summarising:
    """How older work is summed up."""

    model: str = ""
    """The small model that writes summaries; empty leaves them to rules."""
    upstream: str = "openai"
    """Where it is called."""
    every: int = 10
    """After how many steps of the model a summary is made; 0 makes none."""
    seconds: float = 60.0
    """How long it may take to write one. Nobody waits for it but the next summary."""
    key: str = field(default="", repr=False)
    """The key for it: never a client's. From the environment alone."""


@dataclass(frozen=True, slots=True)
class Config:
    project: Path
    """The folder that the agent works in."""
    folder: Path
    """Where hotset keeps what belongs to this project."""
    port: int | None
    """The port that was asked for; 0 is any, None lets hotset choose one and stay with it."""
    upstreams: Mapping[str, Upstream]
    origins: Mapping[str, str]
    """For each setting, where its value came from."""
    own_prices: tuple[tuple[str, Mapping[str, float]], ...] = ()
    """What the user's file says about prices, by patterns of model names."""
    off: bool = False
    """Requests go out as they come; they are kept all the same."""
    inject: bool = True
    """Our tools are offered to the model beside the client's."""
    budget: int = 0
    """Tokens that a prompt may have; 0 is what the model's window allows."""
    profile: str = ""
    """The profile of every agent; empty gives each the profile of its own kind."""
    own_knobs: Mapping[str, Any] = field(default_factory=dict)
    """What the user's file says about single knobs: it stands over any profile."""
    own_alerts: Mapping[str, float] = field(default_factory=dict)
    """What the user's file says about thresholds."""
    knobs: Knobs | None = None
    """What a program chose by itself: it holds for every agent, instead of profiles and files."""
    summary: Summarising = field(default_factory=Summarising)
    search: bool = True
    """What is kept is indexed; otherwise searches look through the store itself."""
    embedding: Embedding = field(default_factory=Embedding)
    """What the index has vectors from."""
    patience: float = 1.0
    """How many times as long as usual a call waits for our own work: more for a slow machine."""
    tooling: Tooling = field(default_factory=Tooling)
    memory: Remembering = field(default_factory=Remembering)
    servers: tuple[Path, ...] = ()
    """The files that say which MCP servers there are: the user's own, and the project's, whose entries stand over those."""
    user: Path = field(default_factory=Path.home)
    """The person's own folder, in which programs keep skills."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """What `${NAME}` stands for in those files."""

    @property
    def prices(self) -> Prices:
        """What models cost: the list that comes with hotset, and what the user's file says over it."""
        return Prices(listed_prices(), self.own_prices)

    @property
    def window(self) -> dict[str, bool | int | str]:
        """The switches of the window, by name."""
        return {"off": self.off, "inject": self.inject, "budget": self.budget, "profile": self.profile}

    @property
    def thresholds(self) -> Mapping[str, Threshold]:
        """When a person is told, by name."""
        return {name: replace(each, limit=self.own_alerts.get(name, each.limit)) for name, each in THRESHOLDS.items()}

    def knobs_for(self, agent: str) -> Knobs:
        """What holds for an agent, by its name: kinds of agents are profiles too."""
        if self.knobs is not None:
            return self.knobs
        known = PROFILES.get(self.profile or agent, PROFILES[DEFAULT])
        return replace(known, **self.own_knobs) if self.own_knobs else known


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
    window = _table(file, "window", path)
    origins: dict[str, str] = {}

    def first(name: str, flag: object, default: object, *, spelled: str = "", table: Mapping[str, Any] = file) -> object:
        """What the first source says that says anything; `origins` remembers which."""
        sources = (
            (flag, spelled or f"--{name.replace('_', '-')}"),
            (env.get(f"HOTSET_{name.upper()}"), f"HOTSET_{name.upper()}"),
            (table.get(name), str(path)),
        )
        value, origins[name] = next(
            ((value, origin) for value, origin in sources if value not in (None, "")), (default, "default")
        )
        return value

    def pick(name: str, flag: str | None, default: str) -> str:
        value = first(name, flag, default)
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise BadConfig(f"{name} in {origins[name]} must be text or a number")
        return str(value)

    root = project_root(Path(pick("project", project, str(Path.cwd()))))
    home = Path(pick("home", None, str(_platform_home()))).expanduser()
    folder = Path(pick("data", data, str(home / "projects" / _folder_name(root)))).expanduser().absolute()
    wanted_port = pick("port", None if port is None else str(port), "")
    upstreams = {
        name: pick(f"{name}_url", flag, _DEFAULT_URLS[name])
        for name, flag in (("openai", openai_url), ("anthropic", anthropic_url))
    }
    upstreams |= _named(file, path, origins)
    chosen = {
        "off": first("off", off, default=False, table=window),
        "inject": first("inject", inject, default=True, spelled="--no-tools", table=window),
        "budget": first("budget", budget, 0, table=window),
        "profile": first("profile", profile, "", table=window),
    }
    own_knobs = knobs_in(window, path, beside=tuple(chosen))
    named_profile = _profile(chosen["profile"], origins["profile"])
    checked(replace(PROFILES[named_profile or DEFAULT], **own_knobs), path)
    summary = _summary_table(file, path)
    tooling = tooling_in(_table(file, "tools", path), path)
    memory = remembering_in(_table(file, "memory", path), path)
    patience = _patience(first("patience", None, 1.0), origins["patience"])
    for name in {"list_seconds", "call_seconds"} - file.get("tools", {}).keys():  # what the file names is as it says
        tooling = replace(tooling, **{name: patience * getattr(tooling, name)})
    if "offer_seconds" not in file.get("memory", {}):
        memory = replace(memory, offer_seconds=patience * memory.offer_seconds)
    searching = _search_table(file, path)
    search = first("search", None, default=True, table=searching)
    embedding = {name: first(name, None, default, table=searching) for name, default in _EMBEDDING.items()}
    summing = {name: first(name, None, default, table=summary) for name, default in _SUMMARY.items()}
    return Config(
        project=root,
        folder=folder,
        port=_port(wanted_port, origins["port"]) if wanted_port else None,
        upstreams={
            name: Upstream(name, url := _url(name, value, origins[f"{name}_url"]), _proxy_for(url, env))
            for name, value in upstreams.items()
        },
        origins=origins,
        own_prices=_own_prices(file, path),
        off=_yes_or_no("off", chosen["off"], origins["off"]),
        inject=_yes_or_no("inject", chosen["inject"], origins["inject"]),
        budget=budget_of(chosen["budget"], origins["budget"]),
        profile=named_profile,
        own_knobs=own_knobs,
        own_alerts=thresholds_in(_table(file, "alerts", path), path),
        summary=_summarising(summing, env.get("HOTSET_SUMMARY_KEY", ""), upstreams, origins),
        search=_yes_or_no("search", search, origins["search"]),
        embedding=_embedding(embedding, env.get("HOTSET_EMBEDDING_KEY", ""), origins),
        patience=patience,
        tooling=replace(
            tooling, enabled=_yes_or_no("tools", first("tools", None, default=tooling.enabled, table={}), origins["tools"])
        ),
        memory=replace(
            memory, enabled=_yes_or_no("memory", first("memory", None, default=memory.enabled, table={}), origins["memory"])
        ),
        servers=(path.parent / SERVERS, folder / TOOLS / SERVERS),
        user=Path(env["HOME"]) if env.get("HOME") else Path.home(),
        environ=env,
    )


@cache
def listed_prices() -> tuple[tuple[str, Price], ...]:
    """The prices that come with hotset, in the order in which they are tried. Read only when asked for: it takes ten ms."""
    from importlib.resources import files  # noqa: PLC0415 - read only when prices are

    file = tomllib.loads(files("hotset").joinpath("data", "prices.toml").read_text("utf-8"))
    families = {"": {}, **file["families"]}
    return tuple((pattern, Price(**families[table.pop("family", "")] | table)) for pattern, table in file["prices"].items())


def user_file(env: Mapping[str, str]) -> Path:
    """`HOTSET_CONFIG`, or `config.toml` where the platform keeps a user's settings."""
    if named := env.get("HOTSET_CONFIG"):
        return Path(named).expanduser()
    from platformdirs import user_config_path  # noqa: PLC0415 - read only when settings are

    return user_config_path("hotset") / "config.toml"


def project_root(start: Path) -> Path:
    """The nearest folder upwards that looks like a project; the folder itself where none does."""
    start = start.expanduser().resolve()
    home = Path.home()
    for folder in (start, *start.parents):
        if folder == home:
            break
        if any((folder / mark).exists() for mark in _PROJECT_MARKS):
            return folder
    return start


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


def _named(file: Mapping[str, Any], path: Path, origins: dict[str, str]) -> dict[str, str]:
    """Further upstreams: `[upstreams.NAME] url = "..."`."""
    named: dict[str, str] = {}
    tables = file.get("upstreams", {})
    for name, table in tables.items() if isinstance(tables, dict) else ():
        if not _NAME.fullmatch(name):
            raise BadConfig(f"upstream {name!r} in {path}: a name is lower-case letters, digits and dashes")
        if not isinstance(table, dict) or not isinstance(table.get("url"), str):
            raise BadConfig(f'upstream {name!r} in {path} needs a url = "https://..."')
        named[name] = table["url"]
        origins[f"{name}_url"] = str(path)
    return named


def _summary_table(file: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """`[summary]`, with each setting under the name that it has in the environment too."""
    table = {f"summary_{name}": value for name, value in _table(file, "summary", path).items()}
    if unknown := sorted(table.keys() - _SUMMARY.keys()):
        named = unknown[0].removeprefix("summary_")
        raise BadConfig(
            f"summary in {path} cannot say {named!r}; it can say model, upstream, every, seconds (a key: HOTSET_SUMMARY_KEY)"
        )
    return table


def _search_table(file: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """`[search]`, whose switch is `HOTSET_SEARCH` in the environment."""
    table = {"search" if name == "enabled" else name: value for name, value in _table(file, "search", path).items()}
    if unknown := sorted(table.keys() - {"search", *_EMBEDDING}):
        can = ", ".join(("enabled", *_EMBEDDING))
        raise BadConfig(f"search in {path} cannot say {unknown[0]!r}; it can say {can} (a key: HOTSET_EMBEDDING_KEY)")
    return table


def _embedding(chosen: Mapping[str, object], key: str, origins: Mapping[str, str]) -> Embedding:
    """The endpoint needs all three of its settings; MiniLM's vectors mean nothing beside an endpoint's."""
    minilm, url, model = (_text(name, chosen[name], origins[name]) for name in ("minilm", "embedding_url", "embedding_model"))
    size = _vector_size(chosen["embedding_size"], origins["embedding_size"])
    if minilm not in (AUTO, OFF):
        minilm = str(_weights(minilm, origins["minilm"]))
        if url:
            raise BadConfig(f"minilm ({origins['minilm']}) cannot ask for what embedding_url embeds; set one of them")
    for one, other in (("embedding_url", "embedding_model"), ("embedding_url", "embedding_size")):
        if bool(chosen[one]) != bool(chosen[other]):
            lacking, told = (other, one) if chosen[one] else (one, other)
            raise BadConfig(f"{told} ({origins[told]}) says nothing without {lacking}; set both, or none")
    if not url:
        return Embedding(minilm)
    return Embedding(OFF, _url("embedding", url, origins["embedding_url"]), model, size, key)


def _text(name: str, value: object, origin: str) -> str:
    if not isinstance(value, str):
        raise BadConfig(f"{name} ({origin}) must be text, not {value!r}")
    return value


def _weights(named: str, origin: str) -> Path:
    file = Path(named).expanduser()
    if not file.is_absolute() or not file.is_file():
        raise BadConfig(f"minilm ({origin}) must be {AUTO}, {OFF}, or the full path of MiniLM's model.safetensors, not {named!r}")
    return file


def _vector_size(value: object, origin: str) -> int:
    size = int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise BadConfig(f"embedding_size ({origin}) must be how many numbers a vector of the model has, not {value!r}")
    return size


def _summarising(chosen: Mapping[str, object], key: str, upstreams: Mapping[str, str], origins: Mapping[str, str]) -> Summarising:
    model, every, seconds = (str(chosen[f"summary_{name}"]) for name in ("model", "every", "seconds"))
    upstream = str(chosen["summary_upstream"] or ("anthropic" if model.startswith("claude") else "openai"))
    if upstream not in upstreams:
        raise BadConfig(
            f"summary_upstream ({origins['summary_upstream']}) must be one of {', '.join(upstreams)}, not {upstream!r}"
        )
    for name, value in (("summary_every", every), ("summary_seconds", seconds)):
        if not value.isdecimal():
            raise BadConfig(f"{name} ({origins[name]}) must be a whole number from 0 up, not {value!r}")
    return Summarising(model, upstream, int(every), float(seconds), key)


def _own_prices(file: Mapping[str, Any], path: Path) -> tuple[tuple[str, Mapping[str, float]], ...]:
    """Prices of the user's own: `[prices."PATTERN"]` with any of the fields of a `Price`."""
    tables = file.get("prices", {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise BadConfig(f'prices in {path} must be tables like [prices."gpt-5*"]')
    return tuple(
        (pattern.lower(), {name: _amount(name, value, f"prices.{pattern!r} in {path}") for name, value in table.items()})
        for pattern, table in tables.items()
    )


def _amount(name: str, value: object, origin: str) -> float:
    """A number that this field of a price can have."""
    if name not in _PRICE_FIELDS:
        raise BadConfig(f"{origin} cannot say {name!r}; it can say {', '.join(_PRICE_FIELDS)}")
    whole = _PRICE_FIELDS[name] == "int"
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not 0 <= value < inf:
        raise BadConfig(f"{name} of {origin} must be a {'whole ' if whole else ''}number from 0 up, not {value!r}")
    if name in _AT_MOST_ONE and value > 1:
        raise BadConfig(f"{name} of {origin} is a share of the input price, from 0 to 1, not {value!r}")
    if name in _AT_LEAST_ONE and value < 1:
        raise BadConfig(f"{name} of {origin} must be 1 or more, not {value!r}")
    return value


def _yes_or_no(name: str, value: object, origin: str) -> bool:
    """True and false; in the environment, where all is text, also the words for them."""
    said = str(value).strip().lower()
    if not isinstance(value, bool) and (origin != f"HOTSET_{name.upper()}" or said not in (*_YES, *_NO)):
        raise BadConfig(f"{name} ({origin}) must be true or false, not {value!r}")
    return said in _YES


def budget_of(value: object, origin: str) -> int:
    """What a prompt may have, in tokens; 0 for what the model's window allows. Raises `BadConfig`."""
    tokens = int(value) if isinstance(value, str) and value.isdigit() else value
    if isinstance(tokens, bool) or not isinstance(tokens, int) or (tokens and tokens < _LEAST_BUDGET):
        raise BadConfig(
            f"budget ({origin}) must be a number of tokens from {_LEAST_BUDGET} up, or 0 for what the model's window allows, "
            f"not {value!r}"
        )
    return tokens


def _profile(value: object, origin: str) -> str:
    if not isinstance(value, str) or (value and value not in PROFILES):
        raise BadConfig(f"profile ({origin}) must be one of {', '.join(PROFILES)}, not {value!r}")
    return value


def _url(name: str, value: str, origin: str) -> str:
    """A base URL in the form in which we append paths to it."""
    parts = urlsplit(value)
    try:
        port_is_bad = parts.port == 0
    except ValueError:
        port_is_bad = True
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or port_is_bad:
        raise BadConfig(f"{name}_url ({origin}) must look like https://host or https://host/v1, not {value!r}")
    if parts.username or parts.password:
        raise BadConfig(f"{name}_url ({origin}) must not carry a user name or password")
    bare = value.rstrip("/")
    if name == "anthropic":
        return bare.removesuffix("/v1")
    return bare if parts.path.strip("/") else f"{bare}/v1"


def _proxy_for(url: str, env: Mapping[str, str]) -> str | None:
    """The proxy that any other client on this machine would use for that URL; loopback never goes through one."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host):
        return None
    proxies = {name[: -len("_proxy")].lower(): value for name, value in env.items() if name.lower().endswith("_proxy") and value}
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


def _patience(value: object, origin: str) -> float:
    try:
        times = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else 0.0
    except ValueError:
        times = 0.0
    if not 1.0 <= times < inf:
        raise BadConfig(f"patience ({origin}) must be a number from 1 up, not {value!r}")
    return times


def _port(value: str, origin: str) -> int:
    if not value.isdigit() or int(value) > 65535:
        raise BadConfig(f"port ({origin}) must be a number from 0 to 65535, not {value!r}")
    return int(value)


def _platform_home() -> Path:
    from platformdirs import user_data_path  # noqa: PLC0415 - read only when settings are

    return user_data_path("hotset")


def _folder_name(root: Path) -> str:
    """Readable, and never the same for two projects."""
    name = re.sub(r"[^a-z0-9]+", "-", root.name.lower()).strip("-")[:32] or "root"
    return f"{name}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:8]}"
