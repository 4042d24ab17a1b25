"""Do agents find the proxy? Variables and settings that lead them past it fail in silence:
everything works, nothing is kept."""

from __future__ import annotations

from collections.abc import Iterator

from hotset.surfaces.cli.agents import around_proxies
from hotset.surfaces.cli.checks.finding import CheckScene, Finding, fail, ok, warn
from hotset.surfaces.cli.clients import BASE_URLS, Leads, Routing, leads, routings, shown


def check(scene: CheckScene) -> Iterator[Finding]:
    yield from _variables(scene)
    yield from _http_proxy(scene)
    for routing in routings(scene.env, scene.config.project):
        yield _settings(scene, routing)


def _variables(scene: CheckScene) -> Iterator[Finding]:
    found = [(name, url) for name in BASE_URLS if (url := scene.env.get(name))]
    if not found:
        yield ok("environment", "no base URL is set here; `hotset wrap` sets it for its agent")
    for name, url in found:
        yield _judge(scene, name, url, f"unset {name}")
        if name.startswith("ANTHROPIC") and url.rstrip("/").endswith("/v1"):
            yield warn(
                "environment",
                f"{name} ends with /v1; clients add it themselves",
                f"set {name} without the /v1",
            )


def _judge(scene: CheckScene, name: str, url: str, undo: str) -> Finding:
    """What a base URL in `name` means for whoever follows it."""
    again = f"{undo}, or set it as `hotset up` shows; or use: hotset wrap AGENT"
    match leads(url, scene.serving):
        case Leads.HERE:
            return ok("environment", f"{name} leads to this project's proxy")
        case Leads.WRONG_TOKEN:
            return fail(
                "environment",
                f"{name} leads to the proxy with a wrong token: every call is refused",
                again,
            )
        case Leads.DEAD:
            return fail(
                "environment",
                f"{name} leads to {shown(url)}, where nobody answers",
                f"{again}; or run: hotset up",
            )
        case Leads.LOCAL:
            return warn(
                "environment",
                f"{name} leads to {shown(url)}, which is not this project's proxy",
                again,
            )
        case Leads.ELSEWHERE:
            setting = BASE_URLS[name][1]
            return warn(
                "environment",
                f"{name} leads to {shown(url)}, past the proxy: nothing is kept",
                f"{undo}; to have hotset go there, set {setting} to the same value",
            )


def _http_proxy(scene: CheckScene) -> Iterator[Finding]:
    if around_proxies(scene.env):
        yield warn(
            "http proxy",
            (
                "HTTP_PROXY or the like is set and NO_PROXY does not name loopback: calls to "
                "hotset may go to that proxy"
            ),
            'export NO_PROXY="$NO_PROXY,127.0.0.1,localhost"   (hotset wrap does it for its agent)',
        )


def _settings(scene: CheckScene, routing: Routing) -> Finding:
    about = routing.agent.lower()
    where = f"{routing.where} sends it to {shown(routing.url)}"
    match leads(routing.url, scene.serving):
        case Leads.HERE:
            return ok(about, f"{routing.where} sends it to this project's proxy")
        case Leads.WRONG_TOKEN:
            return fail(
                about,
                f"{routing.where} has the proxy's address with a wrong token",
                "put in the address that hotset up shows",
            )
        case Leads.DEAD:
            return fail(
                about, f"{where}, where nobody answers", "run: hotset up   or remove it there"
            )
        case _ if routing.wins:
            return warn(
                about,
                f"{where}, also under hotset wrap: nothing is kept",
                "remove it there, or put in hotset's address",
            )
        case _:
            return ok(about, f"{where}; hotset wrap overrides that")
