"""The page of `hotset replay --html`: one file that loads nothing, in light and dark, with numbers
alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from math import ceil, floor, log10

from hotset.replay.estimate import ReplayedSession, ReplayEstimate
from hotset.replay.policies import DEFAULT, FULL
from hotset.surfaces.cli.terminal import count, money

_MOST_BARS = 30
_WIDE, _HIGH, _LEFT, _BELOW = 720, 260, 64, 32  # of the curve
_TICKS = 5
_MOST_POINTS = 300

_NAMES = {
    DEFAULT: "hotset",
    FULL: "full history: everything, at every call",
    "truncate": "results cut at 500 characters, the last 5 steps",
    "mask": "the last 10 results, a placeholder for older ones",
    "clear_tool_uses": "from half of the window on, the last 3 results",
    "compact": "at 75 % of the window, one summary of everything",
    "evict25": "at 75 % of the window, the oldest quarter leaves",
}

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --soft: #57606a; --line: #d8dee4; --back: #fff;
  --ours: #1a7f5a; --full: #a3acb5; --card: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9aa5b1; --line: #30363d;
  --back: #0d1117; --ours: #3fb98a; --full: #6b7681; --card: #161b22; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1rem 4rem; max-width: 50rem; background: var(--back);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.1rem; font-weight: 600; color: var(--soft); margin: 0; }
h2 { font-size: 1.1rem; margin: 2.5rem 0 .25rem; }
p { margin: .25rem 0 .75rem; }
.head { font-size: clamp(1.8rem, 6vw, 3rem); line-height: 1.15; font-weight: 700;
  margin: .5rem 0; } .head b { color: var(--ours); }
.soft { color: var(--soft); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .5rem; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 500; font-size: .85rem; }
.n { text-align: right; white-space: nowrap; } tr.us td { font-weight: 600; }
.bars { display: grid; grid-template-columns: max-content 1fr max-content; gap: .35rem .75rem;
  align-items: center; font-variant-numeric: tabular-nums; font-size: .9rem; }
.pair { display: grid; gap: 2px; } .bar { height: .55rem; border-radius: 2px; min-width: 1px; }
.full { background: var(--full); } .ours { background: var(--ours); }
.key span { display: inline-block; width: .8rem; height: .8rem; border-radius: 2px;
  margin: 0 .35rem 0 .9rem; vertical-align: -1px; } .key span:first-child { margin-left: 0; }
svg { width: 100%; height: auto; } svg text { fill: var(--soft); font-size: 12px; }
svg .grid { stroke: var(--line); } svg path { fill: none; stroke-width: 2.5; }
code { background: var(--card); padding: .15rem .4rem; border-radius: 4px;
  overflow-wrap: anywhere; } li { margin: .3rem 0; }
@media (max-width: 34rem) { .bars { grid-template-columns: 1fr; gap: .1rem; }
  .bars .n { text-align: left; margin-bottom: .6rem; } }
"""


def render_page(found: ReplayEstimate, command: str) -> str:
    """The page; `command` prints it again."""
    body = "\n".join(
        (
            *_headline(found),
            *_sessions(found.sessions),
            *_curve(found),
            *_shares(found),
            *_policies(found),
            *_assumptions(found),
            f"<h2>Your own sessions</h2><p><code>{escape(command)}</code></p>",
        )
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>hotset replay: {escape(_verdict(found))}</title>"
        f"<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _verdict(found: ReplayEstimate) -> str:
    less = found.saved >= 0
    return f"{_money(abs(found.saved))} {'less' if less else 'more'}, {abs(found.saved_pct):.0f} %"


def _headline(found: ReplayEstimate) -> Iterator[str]:
    sessions = len(found.sessions)
    saves = found.saved >= 0
    yield f"<h1>{count(sessions, 'recorded session')}, {count(found.calls, 'call')} to a model</h1>"
    yield (
        f'<p class="head">With hotset the prompts would have cost '
        f"<b>{_money(abs(found.saved))} {'less' if saves else 'more'}</b>: "
        f"{abs(found.saved_pct):.0f} %.</p>"
    )
    yield (
        f"<p>{_money(found.ours)} instead of {_money(found.full)} for sending everything, at list "
        f"prices and under the provider's own cache rules, what is asked back included. "
        f"{_describe_faults(found)}</p>"
    )
    if found.over_window_pct >= 1:
        yield (
            f'<p class="soft">Of 100 whole prompts {found.over_window_pct:.0f} would not have '
            f"fitted the window at all.</p>"
        )


def _describe_faults(found: ReplayEstimate) -> str:
    if not found.faults_per_100:
        return "No action would have had to ask anything back."
    often = "fewer than 1" if found.faults_per_100 < 1 else f"{found.faults_per_100:.0f}"
    return f"{often.capitalize()} of 100 actions would have had to ask something back."


def _sessions(every: Sequence[ReplayedSession]) -> Iterator[str]:
    if not every:
        return
    dearest = max(max(each.full, each.ours) for each in every) or 1.0
    yield f"<h2>Cost by session</h2>{_key()}"
    yield '<div class="bars" role="list">'
    for number, each in enumerate(every[:_MOST_BARS], 1):
        change = f"{100 * (each.ours / each.full - 1):+.0f} %" if each.full else ""
        told = f"session {number}: {_money(each.full)} whole, {_money(each.ours)} with hotset"
        yield (
            f"<div>{number}. {escape(each.model or 'unknown model')}, "
            f"{count(each.calls, 'call')}</div>"
            f'<div class="pair" role="listitem" aria-label="{escape(told)}">'
            f'<div class="bar full" style="width:{100 * each.full / dearest:.2f}%"></div>'
            f'<div class="bar ours" style="width:{100 * each.ours / dearest:.2f}%"></div></div>'
            f'<div class="n">{_money(each.full)} → {_money(each.ours)} {change}</div>'
        )
    yield "</div>"
    if rest := every[_MOST_BARS:]:
        full, ours = sum(each.full for each in rest), sum(each.ours for each in rest)
        yield (
            f'<p class="soft">and {count(len(rest), "session")} more: {_money(full)} → '
            f"{_money(ours)}</p>"
        )


def _curve(found: ReplayEstimate) -> Iterator[str]:
    """Two lines: dollars paid up to each call of the sessions."""
    most = max((*found.full_by_call, *found.ours_by_call), default=0.0)
    calls = len(found.full_by_call)
    if calls < 2 or most <= 0:
        return
    top = _round_up(most)

    def place(number: float, dollars: float) -> str:
        across = _LEFT + (_WIDE - _LEFT - 8) * number / (calls - 1)
        return f"{across:.1f} {8 + (_HIGH - _BELOW - 8) * (1 - dollars / top):.1f}"

    def line(values: Sequence[float], colour: str) -> str:
        every = range(0, len(values), ceil(len(values) / _MOST_POINTS))
        points = dict.fromkeys((*every, len(values) - 1))
        path = "L".join(place(number, values[number]) for number in points)
        return f'<path d="M{path}" style="stroke:var(--{colour})"/>'

    yield f"<h2>What is paid as sessions grow</h2>{_key()}"
    yield (
        f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="Dollars paid up to each call: '
        f'{_money(found.full_by_call[-1])} whole, {_money(found.ours_by_call[-1])} with hotset">'
    )
    for step in range(_TICKS + 1):
        dollars = top * step / _TICKS
        height = 8 + (_HIGH - _BELOW - 8) * (1 - step / _TICKS)
        yield (
            f'<path class="grid" style="stroke-width:1" d="M{_LEFT} {height:.1f}H{_WIDE - 8}"/>'
            f'<text x="{_LEFT - 8}" y="{height + 4:.1f}" text-anchor="end">'
            f"{_money(dollars)}</text>"
        )
    for number in sorted({0, (calls - 1) // 2, calls - 1}):
        across = place(number, 0).split()[0]
        yield (
            f'<text x="{across}" y="{_HIGH - 8}" text-anchor="middle">'
            f"{'call ' if not number else ''}{number + 1}</text>"
        )
    yield line(found.full_by_call, "full") + line(found.ours_by_call, "ours") + "</svg>"
    yield (
        '<p class="soft">All sessions together, by the number of the call within its session.</p>'
    )


def _shares(found: ReplayEstimate) -> Iterator[str]:
    if not found.shares:
        return
    most = max(each.percent for each in found.shares) or 1.0
    yield "<h2>What fills the window</h2>"
    yield '<p class="soft">Of all tokens that sending everything sends, again with each call.</p>'
    yield '<div class="bars">'
    for each in found.shares:
        yield (
            f"<div>{escape(each.name)}</div>"
            f'<div><div class="bar full" style="width:{100 * each.percent / most:.2f}%"></div>'
            f'</div><div class="n">{each.percent:.1f} %</div>'
        )
    yield "</div>"


def _policies(found: ReplayEstimate) -> Iterator[str]:
    yield "<h2>What others do, on the same sessions</h2>"
    yield (
        '<table><thead><tr><th>policy</th><th class="n">cost</th><th class="n">of full history'
        '</th><th class="n">actions in 100 that lack something</th></tr></thead><tbody>'
    )
    for each in sorted(found.policies, key=lambda each: each.dollars):
        name = escape(_NAMES.get(each.name, each.name))
        yield (
            f"<tr{' class=us' if each.name == DEFAULT else ''}><td>{name}</td>"
            f'<td class="n">{_money(each.dollars)}</td><td class="n">{each.percent:.0f} %</td>'
            f'<td class="n">{each.faults_per_100:.1f}</td></tr>'
        )
    yield "</tbody></table>"


def _assumptions(found: ReplayEstimate) -> Iterator[str]:
    windows = " to ".join(f"{tokens:,}" for tokens in sorted({found.windows[0], found.windows[-1]}))
    rows = [
        (
            "This is a replay: no model was called. The recorded agent does not react to what it "
            "would have been shown."
        ),
        "Prompts only. Replies cost the same either way and are left out.",
        (
            "An action lacks something if it copies a path, a name, a number or a line that "
            "nothing shown has any more. Each reply with such an action pays for one more call "
            "that brings it back; a loss that nobody copies is not seen."
        ),
        (
            "Prices are list prices per model; a prefix that is unchanged since the call before is "
            "read from the cache, and a pause longer than the provider's cache lives makes it cold."
        ),
        (
            f"A prompt may have {windows} tokens. Full history is charged even where it would not "
            f"have fitted."
        ),
        (
            f"{len(found.sessions):,} of {count(found.sessions_read, 'session')} are counted: "
            f"those of 16 calls or more that overflow the window, or all where none does."
        ),
        (
            "Nothing of what was said is on this page: no prompts, paths, ids or dates; tools "
            "over MCP are counted together."
        ),
    ]
    if found.unlisted:
        names = ", ".join(escape(name or "a model that is not named") for name in found.unlisted)
        rows.insert(4, f"No list price is known for {names}: a guess stands in.")
    yield f"<h2>What this assumes</h2><ul>{''.join(f'<li>{each}</li>' for each in rows)}</ul>"


def _key() -> str:
    return (
        '<p class="key soft"><span class="full"></span>everything'
        '<span class="ours"></span>with hotset</p>'
    )


def _money(dollars: float) -> str:
    """Dollars as a headline has them: cents where there are any."""
    return f"${dollars:,.2f}" if abs(dollars) >= 0.1 else money(dollars)


def _round_up(value: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    unit = 10.0 ** floor(log10(value))
    steps: Iterable[float] = (1, 2, 5, 10)
    return next(step * unit for step in steps if step * unit >= value)
