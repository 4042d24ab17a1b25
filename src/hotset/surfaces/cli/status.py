"""`hotset status` and `hotset savings`: the proxy, the store, the window's figures, and savings in
tokens and money."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from hotset.config import ClientSwitches, Config
from hotset.errors import BadInput, NotFound, StoreFailed
from hotset.nouns.turn import Event
from hotset.runtime.handoff_cost import HandoffCost
from hotset.runtime.metrics import (
    Account,
    AmountSaved,
    Metrics,
    Savings,
    SessionAccount,
    UnusedTools,
    empty_ledger,
    over_store,
    savings as saved_in,
    unused_tools,
)
from hotset.runtime.reader import (
    Census,
    IndexGlance,
    find_session_id,
    glance_at_index,
    has_store,
    open_existing,
)
from hotset.surfaces.cli.options import (
    ProjectOptions,
    as_json,
    describe_window,
    examples,
    parse_moment,
    project_options,
)
from hotset.surfaces.cli.savings_groups import print_groups
from hotset.surfaces.cli.terminal import (
    count,
    emit,
    emit_json,
    moment,
    money,
    plain,
    plain_line,
    shortened,
    size,
    span,
    width,
)
from hotset.surfaces.proxy.address import Address, find_proxy

_OUR_OWN = ("nonce",)
"""Fields of the proxy's status that are not printed."""

_MOST_BEHIND = 1000
"""Most pages that are counted: counting more takes longer, and tells no more."""

_LATELY = 24 * 3600.0
"""Seconds for which an alert is shown."""

_HEADINGS = (
    ("", "session"),
    ("", "turns"),
    ("tokens", "measured"),
    ("everything", "estimated"),
    ("cost", "measured"),
    ("everything", "estimated"),
    ("", "saved"),
)
_GAP = "  "
_SHORTEST_TITLE = 24


def _prefetch_figures(each: Mapping[str, int]) -> str:
    """The prefetch figures; a proxy of an older version has none."""
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
    ("prefetched: used, wasted", lambda each: _prefetch_figures(each.get("prefetches") or {})),
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
    """The content of the store, and the window's figures."""

    census: Census
    metrics: Metrics
    alerts: tuple[Event, ...]
    """Raised within the last day."""
    unused: UnusedTools | None = None


@click.command(
    epilog=examples(
        "hotset status", "hotset status --json", "hotset status --json | jq .proxy.metrics"
    )
)
@project_options
@as_json
def status(chosen: ProjectOptions, as_json: bool) -> None:
    """Whether a proxy serves this project, what went through it, how much is kept, and the window's
    figures."""
    config = chosen.config()
    address, report = find_proxy(config)
    kept, indexed, trouble = _read_store(config, (report or {}).get("index", ()))
    on_disk = _bytes_below(config.folder)
    if as_json:
        proxy = {
            name: value for name, value in (report or {}).items() if name not in _OUR_OWN
        } or None
        if proxy is not None and address is not None:
            proxy |= {"port": address.port, **address.announce()}
        emit_json(
            {
                "project": config.project.as_posix(),
                "folder": str(config.folder),
                "window": config.window,
                "clients": config.clients,
                "proxy": proxy,
                "store": kept.census if kept else None,
                "trouble": trouble,
                "index": indexed,
                "metrics": kept.metrics if kept else None,
                "unused_tools": kept.unused if kept else None,
                "alerts": [{"time": each.time, **each.detail} for each in kept.alerts]
                if kept
                else [],
                "disk": on_disk,
            }
        )
        return
    emit(f"project  {config.project}")
    if report is not None and address is not None:
        _print_proxy(report, address)
    else:
        emit("proxy    none serves; start with: hotset up")
        emit(f"window   {describe_window(config.window)}")
    for name, switches in config.clients.items():
        emit(f"client   {name}: {_describe_switches(switches)}")
    if trouble:
        emit(click.style(f"trouble  {plain(trouble)}", fg="red"))
    if kept is None:
        emit(f"store    {'cannot be read' if trouble else 'empty'}, in {config.folder}")
        _print_index(indexed)
        return
    census = kept.census
    emit(
        f"store    {count(census.sessions, 'session')}, {count(census.turns, 'turn')}, "
        f"{count(census.pages, 'page')}; "
        f"{size(census.content_bytes)} of content in {size(census.stored_bytes)}"
    )
    _print_index(indexed)
    emit(f"disk     {size(on_disk)} in {config.folder}")
    if kept.unused is not None and kept.unused.names:
        emit(f"unused   {_describe_unused(kept.unused)}")
    _print_figures((report or {}).get("metrics"), kept.metrics)
    _print_alerts(config, (report or {}).get("alerts", ()), kept.alerts)


def _describe_switches(switches: ClientSwitches) -> str:
    """`off, profile lean`."""
    given = {None: "", True: "off", False: "on"}[switches.off]
    profile = f"profile {switches.profile}" if switches.profile else ""
    budget = f"at most {switches.budget:,} tokens" if switches.budget else ""
    return ", ".join(filter(None, (given, profile, budget))) or "as all others"


def _print_proxy(proxy: dict[str, Any], address: Address) -> None:
    emit(f"proxy    {address.root}")
    emit(
        f"serving  since {moment(proxy['started'])} ({span(proxy['uptime'])}), "
        f"process {proxy['pid']}"
    )
    calls = (
        f"{count(proxy['requests'], 'call')}, {proxy['kept']:,} kept, "
        f"{proxy['bypassed']:,} bypassed"
    )
    if late := proxy.get("late"):
        calls += f", {late:,} answered before they were on disk"
    if proxy.get("retried"):
        calls += f", {proxy['retried']:,} hidden tried again"
    emit(
        f"calls    {calls}"
        + ("; ask: hotset doctor" if proxy["bypassed"] or proxy["store"] != "ok" else "")
    )
    if (wait := proxy.get("wait")) and wait["requests"]:
        emit(
            f"wait     {wait['p50_ms']:.1f} ms in the middle, {wait['p99_ms']:.1f} at the 99th "
            f"percentile, {wait['longest_ms']:.1f} at the longest, before a request goes on; "
            f"computing {wait['cpu_p50_ms']:.1f}, {wait['cpu_p99_ms']:.1f}, "
            f"{wait['cpu_longest_ms']:.1f} ms of it"
        )
    if proxy["store"] != "ok":
        emit(f"keeping  nothing at the moment: {proxy['store']}")
    if "memory" in proxy:  # a proxy of an older version has none
        emit(_describe_memory(proxy["memory"], proxy["caches"]))
    if "window" in proxy:
        emit(f"window   {describe_window(proxy['window'])}")
    for name, url in proxy["upstreams"].items():
        emit(f"to       {name}: {url}")
    _print_resting(proxy)


def _print_resting(proxy: Mapping[str, Any]) -> None:
    """What is left alone for a while because it failed."""
    for name, why in proxy.get("resting", {}).items():
        text = f"trouble  the tools of {name} rest after several failures: {plain(why)}"
        emit(click.style(text, fg="yellow"))
    for each in proxy.get("breakers", ()):
        if each["state"] != "closed" and not each["name"].startswith("tools of "):
            since = moment(each["since"]) if each["since"] else "now"
            text = f"trouble  {plain(each['name'])} rests since {since}: {plain(each['reason'])}"
            emit(click.style(text, fg="yellow"))


def _describe_memory(memory: Mapping[str, Any], caches: Sequence[Mapping[str, Any]]) -> str:
    """`memory   normal: 143 MB; caches have 12 MB`."""
    limit = f" of {size(memory['limit'])} ({memory['source']})" if memory["limit"] else ""
    text = f"memory   {memory['level']}: {size(memory['used'])}{limit}"
    text += f"; caches have {size(sum(each['bytes'] for each in caches))}"
    if memory["trouble"]:
        text += f"; it is not watched: {plain(memory['trouble'])}"
    if memory["level"] == "normal":
        return text
    prefetch = "" if memory["prefetch"] else ", prefetch is off"
    text += f", {100 * memory['share']:.0f} % of the usual at most{prefetch}"
    return click.style(f"{text}; since {moment(memory['since'])}", fg="yellow")


def _print_index(indexed: IndexGlance | None) -> None:
    if indexed is None:
        return
    behind = (
        f"{'more than ' * (indexed.behind > _MOST_BEHIND)}"
        f"{count(min(indexed.behind, _MOST_BEHIND), 'page')} behind the store"
    )
    parts = (
        f"{indexed.entries:,} stretches of text",
        behind if indexed.behind else "",
        f"{indexed.waiting:,} not folded yet" if indexed.waiting else "",
        f"vectors by {indexed.embedder}" if indexed.embedder else "no vectors yet",
        "a new one is being made" if indexed.building else "",
        f"written by process {indexed.writer}" if indexed.writer else "no process writes it now",
    )
    emit(f"index    {', '.join(each for each in parts if each)}")
    for trouble in indexed.troubles:
        emit(click.style(f"trouble  the index: {plain(trouble)}", fg="yellow"))


def _print_figures(since_start: Mapping[str, Any] | None, ever: Metrics) -> None:
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


def _print_alerts(
    config: Config, standing: Sequence[Mapping[str, Any]], raised: Sequence[Event]
) -> None:
    for alert in standing:
        text = (
            f"{alert['name']} is {alert['value']:.4g}, {alert['side']} "
            f"{alert['threshold']:.4g}: "
            f"{alert['means']}"
        )
        emit(click.style(f"alert    {text}", fg="red"))
    for event in raised:
        means = (
            config.thresholds[name].means
            if (name := str(event.detail["name"])) in config.thresholds
            else ""
        )
        text = (
            f"{name} was {event.detail['value']:.4g} (threshold "
            f"{event.detail['threshold']:.4g}): "
            f"{means}"
        )
        emit(click.style(f"alert    {moment(event.time)}  {text}", fg="yellow"))


def _read_store(
    config: Config, troubles: Sequence[str]
) -> tuple[StoreReport | None, IndexGlance | None, str]:
    """The store's report, the index's state, and the error of the store."""
    try:
        with open_existing(config) as store:
            figures = over_store(store, config, time.time() - _LATELY)
            kept = StoreReport(store.census(), *figures, unused_tools(store, config))
            return kept, glance_at_index(config, store, troubles, _MOST_BEHIND + 1), store.only_read
    except NotFound:
        return None, glance_at_index(config, None, troubles, 0), ""
    except StoreFailed as error:
        return None, glance_at_index(config, None, troubles, 0), str(error)


def _bytes_below(folder: Path) -> int:
    """The size of the folder on disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) if folder.exists() else 0


@click.command(
    epilog=examples(
        "hotset savings",
        "hotset savings --since 7d",
        "hotset savings --by model --since 30d",
        "hotset savings --session last --json | jq .total.saved",
    )
)
@project_options
@click.option(
    "--by",
    type=click.Choice(["day", "session", "client", "model"]),
    help="A row for each of these, instead of sessions alone.",
)
@click.option(
    "--session", metavar="ID", help="Only this session: an id, the beginning of one, or `last`."
)
@click.option("--since", metavar="WHEN", help="Only what was billed since: 24h, 7d or 2026-11-01.")
@as_json
def savings(
    chosen: ProjectOptions, *, by: str | None, session: str | None, since: str | None, as_json: bool
) -> None:
    """What was saved: the provider's own count beside what sending everything would have cost.

    Measured: what the provider reported, at list prices; our own count, marked ~, if it reported
    nothing. Estimated: what was never sent, by our count and the same cache rules, corrected by how
    far our count was off for what was sent.
    """
    config = chosen.config()
    earliest = parse_moment(since, time.time()) if since else None
    if by and session:
        raise BadInput("--by groups all sessions; leave out --session")
    if by:
        print_groups(chosen, config, by, earliest, as_json=as_json)
        return
    if session is None and not has_store(config.folder):
        found = Savings(empty_ledger(config).total(), (), 0)  # looking must not make a store
        unused = None
    else:
        with open_existing(config) as store:
            found = saved_in(store, config, find_session_id(store, session), earliest)
            unused = unused_tools(store, config)
    if as_json:
        emit_json(
            {
                "since": earliest,
                "total": found.total,
                "uncounted": found.uncounted,
                "sessions": found.sessions,
                "unused_tools": unused,
                "handoffs": found.handoffs,
            }
        )
    if not found.sessions:
        when = " since then" if since else ""
        chosen.say(
            f"no turn was paid for{when} yet; come back after a session: "
            f"{chosen.hint('wrap claude')}"
        )
    if as_json:
        return
    for line in _savings_lines(found):
        emit(line)
    if found.sessions and unused is not None and unused.names:
        emit(f"\nunused      {_describe_unused(unused)}")
        chosen.say(f"            {', '.join(map(plain_line, unused.names))}")
        chosen.say('            leave them out of new sessions: client = "auto" in [tools]')
    _say_limits(chosen, found)


def _say_limits(chosen: ProjectOptions, found: Savings) -> None:
    """Says how far the figures can be trusted."""
    if found.uncounted:
        chosen.say(f"\n{_describe_unbilled(found.uncounted)}")
    if found.total.estimated_turns and found.sessions:
        chosen.say(f"\n{_describe_estimate(found.total)}")
    if found.total.unlisted:
        chosen.say(
            f"* no list price is known for {', '.join(map(plain_line, found.total.unlisted))}: a "
            f"guess is used instead"
        )


def _savings_lines(found: Savings) -> Iterator[str]:
    if len(found.sessions) > 1:
        yield from _session_lines(found.sessions, found.total, width())
        yield ""
    if found.sessions:
        yield from _total_lines(found.total)
    if found.handoffs.handoffs:
        yield f"\nhandoffs    {_describe_handoffs(found.handoffs)}"


def _describe_unused(unused: UnusedTools) -> str:
    """What the schemas of tools that no recent session called take of every prompt."""
    return (
        f"{len(unused.names)} of {count(unused.offered, 'tool')} not called in the latest "
        f"{count(unused.sessions, 'session')}: {unused.tokens:,} tokens of every prompt "
        f"({unused.prompt_pct:.0f} %), {money(unused.dollars)}"
    )


def _describe_handoffs(cost: HandoffCost) -> str:
    return (
        f"{count(cost.handoffs, 'handoff')} sent {cost.rewritten:,} tokens anew, "
        f"{cost.state_tokens:,} of them for states: {money(cost.dollars)} more than reading on"
    )


def _describe_unbilled(turns: int) -> str:
    if turns == 1:
        return "1 more turn has no bill: no usage was reported, or hotset did not plan it"
    return f"{turns:,} more turns have no bill: no usage was reported, or hotset did not plan them"


def _describe_estimate(total: Account) -> str:
    where = (
        ""
        if total.estimated_turns == total.turns
        else f" for {total.estimated_turns:,} of {total.turns:,} turns"
    )
    return f"no usage was reported{where}: our own count is shown instead, marked (~)"


def _describe_saved(saved: AmountSaved) -> str:
    if saved.tokens >= 0:
        return f"{saved.tokens_pct:.1f} % of it was not sent"
    return (
        f"{-saved.tokens:,} more were sent: our tools, and calls in "
        f"which the model got something "
        f"back"
    )


def _total_lines(total: Account) -> Iterator[str]:
    measured, estimated, saved = total.measured, total.estimated, total.saved
    hidden = f", {total.hidden_calls:,} of them hidden" if total.hidden_calls else ""
    breaks = ", ".join(f"{number} {cause}" for cause, number in total.breaks.items())
    mark = "*" if total.unlisted else ""
    how = (
        "measured"
        if not total.estimated_turns
        else "estimated"
        if total.estimated_turns == total.turns
        else "partly estimated"
    )
    rows = (
        ("turns", f"{total.turns:,}", f"{count(total.calls, 'call')} to the provider{hidden}"),
        (
            "sent",
            f"{measured.prompt:,} tokens",
            f"{how}; {measured.cache_read_pct:.1f} % read from the provider's cache",
        ),
        ("everything", f"{estimated.prompt:,} tokens", f"estimated; {_describe_saved(saved)}"),
        ("cost", f"{money(measured.dollars)}{mark}", f"{how}, at list prices"),
        (
            "everything",
            f"{money(estimated.dollars)}{mark}",
            "estimated, under the same cache rules",
        ),
        ("saved", f"{money(saved.dollars)}{mark}", f"estimated, {saved.dollars_pct:.1f} %"),
        (
            "prefix",
            f"kept on {total.prefix_kept_pct:.1f} %",
            f"of turns; breaks: {breaks or 'none'}",
        ),
        (
            "faults",
            f"{total.faults_per_100:.1f} per 100 turns",
            f"{total.refaults_per_100:.1f} for what we had shortened",
        ),
        (
            "overhead",
            f"{total.overhead_ms_p50:.1f} ms",
            f"in the middle, {total.overhead_ms_p95:.1f} ms at the 95th percentile",
        ),
    )
    wide = max(len(figure) for _, figure, _ in rows)
    for name, figure, what in rows:
        line = f"{name:<10}  {figure:>{wide}}  {what}"
        yield click.style(line, bold=True) if name == "saved" else line


def _session_lines(sessions: Sequence[SessionAccount], total: Account, wide: int) -> Iterator[str]:
    """One row per session. Figures are always whole; a title without room beside them is put
    below."""
    rows = [(each.session.id, *_cells(each.account)) for each in sessions]
    heads = tuple(zip(*_HEADINGS, strict=True))
    cells = (*heads, *rows, ("together", *_cells(total)))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        _GAP.join(
            [
                row[0].ljust(widths[0]),
                *(cell.rjust(each) for cell, each in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in cells
    ]
    beside = wide - len(lines[0]) - len(_GAP)
    for line in lines[: len(heads)]:
        yield click.style(line.rstrip(), bold=True)
    for line, each in zip(lines[len(heads) :], sessions, strict=False):
        title = plain_line(each.session.title or each.session.key)
        if beside >= _SHORTEST_TITLE:
            yield f"{line}{_GAP}{shortened(title, beside)}"
        else:
            yield line
            yield f"{_GAP}{shortened(title, max(_SHORTEST_TITLE, wide - len(_GAP)))}"
    yield click.style(lines[-1], bold=True)


def _cells(account: Account) -> tuple[str, ...]:
    mark = "*" if account.unlisted else ""
    about = "~" if account.estimated_turns else ""
    return (
        f"{account.turns:,}",
        f"{about}{account.measured.prompt:,}",
        f"{account.estimated.prompt:,}",
        f"{about}{money(account.measured.dollars)}{mark}",
        f"{money(account.estimated.dollars)}{mark}",
        f"{account.saved.dollars_pct:.0f} %",
    )
