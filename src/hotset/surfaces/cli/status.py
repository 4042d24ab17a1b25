"""`hotset status`: is a proxy serving, what is kept, and how the window does."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from hotset.config import Config
from hotset.errors import NotFound, StoreFailed
from hotset.nouns.turn import Event
from hotset.runtime.ledger import Metrics, over_store
from hotset.runtime.reader import Census, Indexed, glance_at_index, open_existing
from hotset.surfaces.cli.options import Chosen, as_json, examples, of_project, switched
from hotset.surfaces.cli.terminal import count, emit, emit_json, moment, money, plain, size, span
from hotset.surfaces.proxy.address import Address, ask, read_note

_OUR_OWN = ("nonce",)
"""What the proxy tells that is of no use to anybody but us."""

_MOST_BEHIND = 1000
"""Pages that are counted: more of them take longer, and say no more."""

_LATELY = 24 * 3600.0
"""Seconds for which an alert is told."""


def _prefetched(each: Mapping[str, int]) -> str:
    """A proxy of an older version does not say."""
    if not each.get("offered"):
        return "-"
    return f"{each['offered']:,}: {each['used'] + each['expanded']:,}, {each['wasted']:,}"


_FIGURES: tuple[tuple[str, Callable[[Mapping[str, Any]], str]], ...] = (
    ("turns paid for", lambda each: f"{each['turns']:,}"),
    ("tokens a turn, measured", lambda each: f"{each['prompt_per_turn']:,}"),
    ("everything, estimated", lambda each: f"{each['whole_per_turn']:,}"),
    ("mean prompt", lambda each: f"{each['mean_context']:,}"),
    ("read from cache", lambda each: f"{each['cache_read_pct']:.1f} %"),
    ("turns with a retrieval", lambda each: f"{each['retrieval_pct']:.1f} %"),
    ("faults, refaults", lambda each: f"{each['faults']:,}, {each['refaults']:,}"),
    (
        "results not repeated",
        lambda each: "-" if each["dedup_pct"] is None else f"{each['dedup_pct']:.1f} %",
    ),
    (
        "repeats pointed to",
        lambda each: "-" if each.get("dedup_hit_pct") is None else f"{each['dedup_hit_pct']:.1f} %",
    ),
    ("summaries, failed", lambda each: f"{each['summaries']:,}, {each['summary_failures']:,}"),
    ("prefetched: used, wasted", lambda each: _prefetched(each.get("prefetches") or {})),
    ("prefix kept", lambda each: f"{each['prefix_kept_pct']:.1f} %"),
    ("overhead, 95th percentile", lambda each: f"{each['overhead_ms_p95']:.1f} ms"),
    ("cost, measured", lambda each: money(each["spent_dollars"])),
    (
        "saved, estimated",
        lambda each: f"{money(each['saved_dollars'])} ({each['saved_pct']:.0f} %)",
    ),
)


@dataclass(frozen=True, slots=True)
class StoreReport:
    """What the store says."""

    census: Census
    metrics: Metrics
    alerts: tuple[Event, ...]
    """Raised within the last day."""


@click.command(
    epilog=examples(
        "hotset status", "hotset status --json", "hotset status --json | jq .proxy.metrics"
    )
)
@of_project
@as_json
def status(chosen: Chosen, as_json: bool) -> None:
    """Is a proxy serving this project, since when, what went through it, how much is kept, and how
    the window does."""
    config = chosen.config()
    address = read_note(config.folder)
    said = ask(address, patience=config.patience) if address else None
    kept, indexed, trouble = _kept(config, (said or {}).get("index", ()))
    on_disk = _bytes_below(config.folder)
    if as_json:
        proxy = {
            name: value for name, value in (said or {}).items() if name not in _OUR_OWN
        } or None
        if proxy is not None and address is not None:
            proxy |= {"port": address.port, **address.announce()}
        emit_json(
            {
                "project": config.project.as_posix(),
                "folder": str(config.folder),
                "window": config.window,
                "proxy": proxy,
                "store": kept.census if kept else None,
                "trouble": trouble,
                "index": indexed,
                "metrics": kept.metrics if kept else None,
                "alerts": [{"time": each.time, **each.detail} for each in kept.alerts]
                if kept
                else [],
                "disk": on_disk,
            }
        )
        return
    emit(f"project  {config.project}")
    if said is not None and address is not None:
        _tell_proxy(said, address)
    else:
        emit("proxy    none serves; start with: hotset up")
        emit(f"window   {switched(config.window)}")
    if trouble:
        emit(click.style(f"trouble  {plain(trouble)}", fg="red"))
    if kept is None:
        emit(f"store    {'cannot be read' if trouble else 'empty'}, in {config.folder}")
        _tell_index(indexed)
        return
    census = kept.census
    emit(
        f"store    {count(census.sessions, 'session')}, {count(census.turns, 'turn')}, "
        f"{count(census.pages, 'page')}; "
        f"{size(census.content_bytes)} of content in {size(census.stored_bytes)}"
    )
    _tell_index(indexed)
    emit(f"disk     {size(on_disk)} in {config.folder}")
    _tell_figures((said or {}).get("metrics"), kept.metrics)
    _tell_alerts(config, (said or {}).get("alerts", ()), kept.alerts)


def _tell_proxy(said: dict[str, Any], address: Address) -> None:
    emit(f"proxy    {address.root}")
    emit(
        f"serving  since {moment(said['started'])} ({span(said['uptime'])}), process {said['pid']}"
    )
    told = (
        f"{count(said['requests'], 'call')}, {said['kept']:,} kept, {said['bypassed']:,} bypassed"
    )
    if late := said.get("late"):
        told += f", {late:,} answered before they were on disk"
    if said.get("retried"):
        told += f", {said['retried']:,} hidden tried again"
    emit(
        f"calls    {told}"
        + ("; ask: hotset doctor" if said["bypassed"] or said["store"] != "ok" else "")
    )
    if said["store"] != "ok":
        emit(f"keeping  nothing at the moment: {said['store']}")
    if "window" in said:  # a proxy of an older version does not say
        emit(f"window   {switched(said['window'])}")
    for name, url in said["upstreams"].items():
        emit(f"to       {name}: {url}")


def _tell_index(indexed: Indexed | None) -> None:
    if indexed is None:
        return
    behind = (
        f"{'more than ' * (indexed.behind > _MOST_BEHIND)}"
        f"{count(min(indexed.behind, _MOST_BEHIND), 'page')} behind the store"
    )
    told = (
        f"{indexed.entries:,} stretches of text",
        behind if indexed.behind else "",
        f"{indexed.waiting:,} not folded yet" if indexed.waiting else "",
        f"vectors by {indexed.embedder}" if indexed.embedder else "no vectors yet",
        "a new one is being made" if indexed.building else "",
        f"written by process {indexed.writer}" if indexed.writer else "nobody writes it now",
    )
    emit(f"index    {', '.join(each for each in told if each)}")
    for trouble in indexed.troubles:
        emit(click.style(f"trouble  the index: {plain(trouble)}", fg="yellow"))


def _tell_figures(since_start: Mapping[str, Any] | None, ever: Metrics) -> None:
    columns = [("since start", since_start)] if since_start and since_start["turns"] else []
    columns += [("all that is kept", asdict(ever))] if ever.turns else []
    if not columns:
        return
    emit("")
    first = max(len(name) for name, _ in _FIGURES)
    cells = [[figure(values) for _, figure in _FIGURES] for _, values in columns if values]
    widths = [
        max(len(heading), *map(len, column))
        for (heading, _), column in zip(columns, cells, strict=True)
    ]
    headings = "  ".join(
        heading.rjust(wide) for (heading, _), wide in zip(columns, widths, strict=True)
    )
    emit(click.style(f"{'':{first}}  {headings}", bold=True))
    for (name, _), *row in zip(_FIGURES, *cells, strict=True):
        emit(
            f"{name:<{first}}  "
            f"{'  '.join(cell.rjust(wide) for cell, wide in zip(row, widths, strict=True))}"
        )


def _tell_alerts(
    config: Config, standing: Sequence[Mapping[str, Any]], raised: Sequence[Event]
) -> None:
    for alert in standing:
        told = (
            f"{alert['name']} is {alert['value']:.4g}, {alert['side']} "
            f"{alert['threshold']:.4g}: "
            f"{alert['means']}"
        )
        emit(click.style(f"alert    {told}", fg="red"))
    for event in raised:
        means = (
            config.thresholds[name].means
            if (name := str(event.detail["name"])) in config.thresholds
            else ""
        )
        told = (
            f"{name} was {event.detail['value']:.4g} (threshold "
            f"{event.detail['threshold']:.4g}): "
            f"{means}"
        )
        emit(click.style(f"alert    {moment(event.time)}  {told}", fg="yellow"))


def _kept(
    config: Config, troubles: Sequence[str]
) -> tuple[StoreReport | None, Indexed | None, str]:
    """The last is what is wrong with the store."""
    try:
        with open_existing(config) as store:
            kept = StoreReport(store.census(), *over_store(store, config, time.time() - _LATELY))
            return kept, glance_at_index(config, store, troubles, _MOST_BEHIND + 1), store.only_read
    except NotFound:
        return None, glance_at_index(config, None, troubles, 0), ""
    except StoreFailed as error:
        return None, glance_at_index(config, None, troubles, 0), str(error)


def _bytes_below(folder: Path) -> int:
    """What the folder takes up on disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) if folder.exists() else 0
