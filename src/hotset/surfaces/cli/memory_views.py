"""`hotset memory list|show|search|timeline|why|graph|economics`: read memories, their origin, links
and costs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from hotset.errors import BadInput, NotFound
from hotset.nouns.memory import (
    MemoryId,
    MemoryKind,
    MemoryLink,
    MemoryRecord,
    Relation,
    Standing,
    Task,
)
from hotset.nouns.turn import Event
from hotset.runtime.reader import keep_search
from hotset.sources.memory import KINDS, NAMED_KINDS
from hotset.surfaces.cli.exit import FOUND, OK
from hotset.surfaces.cli.memories import (
    ago,
    as_text,
    colour,
    index_new,
    no_encode,
    open_project_memories,
    open_updated_memories,
    print_details,
    print_list,
    relation,
    resolve_session,
    title,
    wrap_lines,
)
from hotset.surfaces.cli.options import (
    ProjectOptions,
    as_json,
    examples,
    limit_option,
    parse_moment,
    project_options,
)
from hotset.surfaces.cli.terminal import count, emit, emit_json, plain, shortened, width

if TYPE_CHECKING:
    from hotset.sources.memory import (
        Breach,
        Economics,
        ProjectMemories,
        RecalledItem,
        SessionEconomics,
    )

_LISTED = 50
_FOUND = 5
_EXCERPT_LINES = 4
_MOST_LINKED = 30  # other memories whose titles are looked up
_AGO = re.compile(r"\d{1,6}[smhdw]")
_STANDINGS = (*map(str, Standing), "any")

_kinds = click.option(
    "--kind",
    "kinds",
    type=click.Choice([str(kind) for kind in MemoryKind if kind in NAMED_KINDS]),
    multiple=True,
    help="Only this kind; repeatable.",
)

_LONGEST_LABEL = 60
_STYLES = {
    Relation.DERIVED_FROM: "solid",
    Relation.RELATED_TO: "dotted",
    Relation.CONTRADICTS: "bold",
    Relation.SUPERSEDES: "dashed",
}
_SESSIONS_LISTED = 20
_BREACHES = {
    "ratio": (
        "Index and timeline took {value} of what memories took; more than {limit} is too much."
    ),
    "savings": "Only {value} was saved; at least {limit} should be.",
    "full_loads": "{value} memories were read in one task; more than {limit} are too many.",
    "discovery_tokens": (
        "Index and timeline took {value} tokens in a session; more than {limit} are too many."
    ),
    "timeline_tokens": "A timeline took {value} tokens; more than {limit} are too many.",
    "tokens_saved": "Only {value} tokens were saved; a session should save {limit}.",
}
"""The limits, in words."""
_REMEDIES = {
    "compress": "Older work leaves the timeline sooner now",
    "rescore": "Topics that are shown and never read come later now",
    "compose": "Topics that were read together are one topic now",
    "reorganise": "Topics that nobody touched for long left the index, and equal ones are one now",
    "split": "The timeline has a part for each topic now",
    "bypass": "Tasks of this kind are shown no memories for a day",
}
"""What was done about them, in words."""


@click.command(
    "list",
    epilog=examples(
        "hotset memory list",
        "hotset memory list --kind pitfall --kind procedure",
        'hotset memory list --since "last week" --topic auth',
        "hotset memory list --standing candidate      what waits for your yes",
        "hotset memory list --limit 1000 --json",
    ),
)
@project_options
@_kinds
@click.option("--topic", metavar="WORDS", default="", help="Only what is about this.")
@click.option(
    "--since", metavar="WHEN", help='Only since then: 2d, 2026-11-15, "last week", yesterday.'
)
@click.option("--until", metavar="WHEN", help="Only until then.")
@click.option(
    "--standing",
    type=click.Choice(_STANDINGS),
    help="Only these. [default: all but forgotten and merged]",
)
@limit_option(_LISTED)
@no_encode
@as_json
def list_(
    chosen: ProjectOptions,
    kinds: tuple[str, ...],
    *,
    topic: str,
    since: str | None,
    until: str | None,
    standing: str | None,
    limit: int,
    no_encode: bool,
    as_json: bool,
) -> None:
    """What is remembered, newest first."""
    now = time.time()
    earliest = parse_period("--since", since, now)[0] if since else None
    latest = parse_period("--until", until, now)[1] if until else None
    standings = frozenset(
        Standing if standing == "any" else {Standing(standing)} if standing else ()
    )
    with open_updated_memories(chosen, no_encode=no_encode, lists=True) as memories:
        found = list(
            memories.list(
                kinds=frozenset(map(MemoryKind, kinds)),
                standings=standings,
                topic=topic,
                since=earliest,
                until=latest,
                limit=limit + 1,
            )
        )
        narrowed = bool(kinds or topic or since or until or standing) or (
            not found and has_any(memories)
        )
    listed = found[:limit]
    if as_json:
        emit_json(listed)
    elif listed:
        print_list(listed, now)
    if not listed:
        chosen.say(
            f"{'no such memory' if narrowed else 'nothing is remembered yet'}"
            f"{_hint_for_more(chosen, narrowed)}"
        )
    elif len(found) > limit:
        chosen.say(
            f"\nand more; show them with --limit, or find one: {chosen.hint('memory search WORDS')}"
        )


@click.command(
    epilog=examples(
        "hotset memory show sem-7ha2c0de",
        "hotset memory show ep-2026-01 --json",
        "hotset memory show sem-7h --version 1",
    )
)
@click.argument("id", type=as_text)
@project_options
@click.option("--version", "number", type=click.IntRange(min=1), help="As it was in this version.")
@no_encode
@as_json
def show(
    chosen: ProjectOptions, id: str, *, number: int | None, no_encode: bool, as_json: bool
) -> None:
    """One memory, by its id or a unique beginning of it: its text, where it comes from, its links,
    versions and use."""
    with open_updated_memories(chosen, no_encode=no_encode) as memories:
        shown = memories.details(id)
        version = (
            shown.memory
            if number is None
            else next((v for v in shown.versions if v.version == number), None)
        )
        titles = _titles(memories, [end for link in shown.links for end in (link.of, link.to)])
    if version is None:
        raise NotFound(
            f"{shown.memory.id} has {count(len(shown.versions), 'version')}, and no {number}"
        )
    if as_json:
        emit_json(replace(shown, memory=version))
    else:
        print_details(shown, version, titles, time.time())


@click.command(
    epilog=examples(
        'hotset memory search "how did we fix the flaky upload test"',
        'hotset memory search "what was decided about the schema last week" -n 3',
        'hotset memory search "tests fail after the upgrade" --task debugging',
        "hotset memory search deploy --kind procedure --json",
    )
)
@click.argument("query", nargs=-1, required=True)
@project_options
@_kinds
@click.option(
    "--task",
    type=click.Choice(tuple(map(str, Task))),
    help="What it is for. [default: by the words of the query]",
)
@limit_option(_FOUND, 100)
@no_encode
@as_json
def search(
    chosen: ProjectOptions,
    query: tuple[str, ...],
    *,
    kinds: tuple[str, ...],
    task: str | None,
    limit: int,
    no_encode: bool,
    as_json: bool,
) -> int:
    """Find memories and parts of conversations by meaning, words and time; each with why it was
    chosen.

    Words such as "yesterday", "last week" or "in March" narrow the search to that time. A question
    such as "what did we do last week" or "what changed since the release" lists that time by day.
    """
    from hotset.surfaces.cli.standup import print_days  # noqa: PLC0415 - it imports this module

    words = " ".join(query)
    with open_updated_memories(chosen, no_encode=no_encode, lists=True) as memories:
        index_new(memories, chosen)
        begun = time.monotonic()
        answer = memories.recall(words, task=task or "", kinds=kinds, most=limit, max_tokens=0)
        took = 1000 * (time.monotonic() - begun)
        recall = answer.recall
        is_empty = not recall.items and not has_any(memories)
    listed = {each.id for day in answer.days for each in day.memories}
    items = recall.items if answer.days else recall.items[:limit]
    hits = [(each.id, each.score) for each in items]
    keep_search(chosen.config(), "hotset memory search", words, hits, ms=took)
    if as_json:
        emit_json([_item_document(each) for each in items])
    else:
        now = time.time()
        print_days(answer.days, ids=True)
        for each in items:
            if each.id not in listed:
                _print_item(each, now)
    if recall.lacking:
        lacking = ", ".join(sorted(recall.lacking))
        chosen.say(
            f"hotset: searched without {lacking}, which did not answer in time; the order may "
            f"be worse"
        )
    if is_empty:
        chosen.say(f"nothing is remembered yet{_hint_for_more(chosen)}")
    elif not items:
        what = _describe_period(recall.since, recall.until) or "that"
        chosen.say(
            f"nothing is remembered of {what}; see what there is: {chosen.hint('memory list')}"
        )
    return OK if items or is_empty else FOUND


def _describe_period(since: float | None, until: float | None) -> str:
    """`2026-03-01 to 2026-03-31`; empty unless both ends are known."""
    if since is None or until is None:
        return ""
    first, last = (time.strftime("%Y-%m-%d", time.localtime(each)) for each in (since, until - 1.0))
    return first if first == last else f"{first} to {last}"


@click.command(
    epilog=examples(
        "hotset memory timeline",
        "hotset memory timeline --topic auth",
        'hotset memory timeline "the release" --json',
    )
)
@click.argument("query", nargs=-1)
@project_options
@click.option(
    "--topic", "topics", metavar="WORDS", multiple=True, help="Only this topic; repeatable."
)
@click.option(
    "--max-tokens",
    type=click.IntRange(50, 20_000),
    default=500,
    show_default=True,
    help="At most so many tokens.",
)
@no_encode
@as_json
def timeline(
    chosen: ProjectOptions,
    query: tuple[str, ...],
    *,
    topics: tuple[str, ...],
    max_tokens: int,
    no_encode: bool,
    as_json: bool,
) -> None:
    """What was done and decided lately, and what is under way, as an agent reads it."""
    with open_updated_memories(chosen, no_encode=no_encode, lists=True) as memories:
        rendered = memories.timeline(" ".join(query), topics=topics, max_tokens=max_tokens)
    if as_json:
        emit_json(rendered)
    elif rendered.text.strip():
        emit(plain(rendered.text))
    if not rendered.text.strip():
        what = "nothing of that is remembered" if query or topics else "nothing is remembered yet"
        chosen.say(f"{what}{_hint_for_more(chosen, query, topics)}")


@click.command(
    epilog=examples("hotset memory why sem-7ha2c0de", "hotset memory why sem-7ha2c0de --json")
)
@click.argument("id", type=as_text)
@project_options
@no_encode
@as_json
def why(chosen: ProjectOptions, id: str, *, no_encode: bool, as_json: bool) -> None:
    """Where a memory comes from, what it replaced, how often it was used, and why it has its
    form."""
    with open_updated_memories(chosen, no_encode=no_encode) as memories:
        memory = memories.get(id)
        reasons = memories.why(memory.id)
    if as_json:
        emit_json({"id": memory.id, "title": memory.title, "why": reasons})
    else:
        emit(
            click.style(memory.id, fg=colour(memory.kind), bold=True)
            + f"  {shortened(title(memory), width() - len(memory.id) - 2)}"
        )
        for reason in reasons:
            first, *rest = wrap_lines(reason, "  ")
            emit("\n".join([f"- {first[2:]}", *rest]))


@click.command(
    epilog=examples(
        "hotset memory graph",
        "hotset memory graph sem-7ha2c0de --depth 2",
        "hotset memory graph --dot | dot -Tsvg > memories.svg",
    )
)
@click.argument("id", type=as_text, default="")
@project_options
@click.option(
    "--depth",
    type=click.IntRange(1, 20),
    default=1,
    show_default=True,
    help="How many links away from ID.",
)
@click.option("--dot", "as_dot", is_flag=True, help="Print it for Graphviz.")
@no_encode
@as_json
def graph(
    chosen: ProjectOptions, id: str, *, depth: int, as_dot: bool, no_encode: bool, as_json: bool
) -> None:
    """Links between memories: all of them, or those around one."""

    if as_dot and as_json:
        raise click.UsageError("--dot and --json do not go together")
    with open_updated_memories(chosen, no_encode=no_encode, lists=not id) as memories:
        root = memories.get(id).id if id else None
        drawn = memories.graph(root or "", depth=depth)
    linked = {end for link in drawn.links for end in (link.of, link.to)}
    shown = [memory for memory in drawn.memories if memory.id in linked or memory.id == root]
    if as_json:
        briefly = [
            {
                "id": m.id,
                "kind": m.kind,
                "title": m.title,
                "standing": m.standing,
                "created": m.created,
            }
            for m in shown
        ]
        emit_json({"memories": briefly, "links": drawn.links})
    elif as_dot:
        emit(dot(shown, drawn.links))
    else:
        for line in tree(shown, drawn.links, root):
            emit(shortened(line, width()))
    if not drawn.links and not drawn.memories:
        chosen.say(f"nothing is remembered yet{_hint_for_more(chosen)}")
    elif not drawn.links:
        chosen.say(
            f"no links yet; find what memories have in common: {chosen.hint('memory consolidate')}"
        )


def parse_period(option: str, typed: str, now: float) -> tuple[float | None, float | None]:
    """Parses a period into its start and end: `2d` is two days ago; a day and "last week" are
    whole. Raises `BadInput`."""
    from hotset.sources.memory import local_offset, time_words  # noqa: PLC0415 - loaded on demand

    if _AGO.fullmatch(typed):
        moment = parse_moment(typed, now)
        return moment, moment
    period = time_words(typed, now, local_offset)
    if period.words or (period.since is None and period.until is None):
        raise BadInput(
            f"{option} {typed!r}: use 12h, 2d or 1w, a date like 2026-11-15, or words such as "
            f'"last week"'
        )
    return (period.since if period.since is not None else period.until), (
        period.until if period.until is not None else now
    )


def has_any(memories: ProjectMemories) -> bool:
    return next(iter(memories.list(standings=frozenset(Standing), limit=1)), None) is not None


def _hint_for_more(chosen: ProjectOptions, *narrowed: object) -> str:
    if any(narrowed):
        return "; see all: " + chosen.hint("memory list --standing any")
    return (
        f"; sessions have to go through hotset ({chosen.hint('wrap AGENT')}), or learn from "
        f"those that you have: {chosen.hint('memory learn')}"
    )


def _titles(memories: ProjectMemories, ids: list[MemoryId]) -> dict[MemoryId, str]:
    titles = {}
    for id in list(dict.fromkeys(ids))[:_MOST_LINKED]:
        with suppress(NotFound):
            titles[id] = title(memories.get(id))
    return titles


def _item_document(item: RecalledItem) -> dict[str, Any]:
    return {
        "id": item.id,
        "kind": item.kind,
        "title": item.title,
        "text": item.text,
        "time": item.time,
        "score": round(item.score, 4),
        "why": item.why,
        "signals": {name: round(value, 4) for name, value in item.signals.items()},
        "standing": None if item.memory is None else item.memory.standing,
        "page": item.page,
        "speaker": item.speaker,
    }


def _print_item(item: RecalledItem, now: float) -> None:
    about = ", ".join(filter(None, (item.kind, item.speaker, ago(item.time, now))))
    heading = " ".join(plain(item.title).split())
    head = f"{item.score:.2f}  {item.id}  {about}"
    emit(
        click.style(f"{item.score:.2f}  ", dim=True)
        + click.style(item.id, fg=colour(item.kind), bold=True)
        + f"  {plain(about)}  {shortened(heading, max(20, width() - len(head) - 2))}"
    )
    if " ".join(plain(item.text).split()) != heading:
        emit("\n".join(wrap_lines(item.text, " " * 6, _EXCERPT_LINES)))
    if item.why:
        emit(
            click.style("\n".join(wrap_lines(f"because {'; '.join(item.why)}", " " * 6)), dim=True)
        )
    if item.memory is None and item.page is not None:
        emit(click.style(f"      hotset recall {item.page}", dim=True))
    emit("")


def tree(
    memories: Sequence[MemoryRecord], links: Sequence[MemoryLink], root: MemoryId | None = None
) -> Iterator[str]:
    """The links as lines, each once: below the root if one is named, otherwise below the first
    memory of each group."""
    known = {memory.id: memory for memory in memories}
    drawing = _TreeDrawing(known, _links_by_end(links))
    for id in [root] if root is not None else [memory.id for memory in memories]:
        if id not in drawing.opened:
            yield _label(id, known)
            yield from drawing.branches(id)


def dot(memories: Sequence[MemoryRecord], links: Sequence[MemoryLink]) -> str:
    lines = [
        "digraph memories {",
        "  rankdir=LR;",
        '  node [shape=box, style=rounded, fontname="sans-serif"];',
    ]
    for memory in memories:
        shape = "rounded" if memory.standing is Standing.ACTIVE else "rounded,dashed"
        label = f"{memory.id}\n{title(memory)[:_LONGEST_LABEL]}"
        lines.append(
            f"  {_quote(memory.id)} [label={_quote(label)}, "
            f'color="{KINDS[memory.kind].colour or "gray"}", style="{shape}"];'
        )
    for link in links:
        about = f'label="{link.relation}", style={_STYLES[link.relation]}'
        lines.append(f"  {_quote(link.of)} -> {_quote(link.to)} [{about}];")
    return "\n".join([*lines, "}"])


def _links_by_end(links: Sequence[MemoryLink]) -> dict[MemoryId, list[MemoryLink]]:
    found: dict[MemoryId, list[MemoryLink]] = {}
    for link in links:
        for end in dict.fromkeys((link.of, link.to)):
            found.setdefault(end, []).append(link)
    return found


class _TreeDrawing:
    """Draws each memory once."""

    def __init__(
        self,
        known: Mapping[MemoryId, MemoryRecord],
        beside: Mapping[MemoryId, Sequence[MemoryLink]],
    ) -> None:
        self.opened: set[MemoryId] = set()
        self._known = known
        self._beside = beside
        self._drawn: set[MemoryLink] = set()

    def branches(self, id: MemoryId) -> Iterator[str]:
        """Lines below a memory. Not recursive: a chain of facts that replaced each other may be
        longer than Python's stack."""
        stack = self._open(id, "")
        while stack:
            indent, here, link, is_last = stack.pop()
            other = link.to if link.of == here else link.of
            again = " (above)" if other in self.opened else ""
            yield (
                f"{indent}{'└─' if is_last else '├─'} {relation(link, here)} "
                f"{_label(other, self._known)}{again}"
            )
            if not again:
                stack += self._open(other, indent + ("   " if is_last else "│  "))

    def _open(self, id: MemoryId, indent: str) -> list[tuple[str, MemoryId, MemoryLink, bool]]:
        """The links below a memory, in reverse order."""
        self.opened.add(id)
        links = [link for link in self._beside.get(id, ()) if link not in self._drawn]
        self._drawn.update(links)
        return [(indent, id, link, link is links[-1]) for link in reversed(links)]


def _label(id: MemoryId, known: Mapping[MemoryId, MemoryRecord]) -> str:
    memory = known.get(id)
    return f"[{id}]" if memory is None else f"[{id}] {title(memory)}"


def _quote(text: str) -> str:
    """A string for Graphviz: JSON's escapes of quotes and newlines are its own."""
    return json.dumps(text, ensure_ascii=False)


@click.command(
    epilog=examples(
        "hotset memory economics",
        "hotset memory economics --session last",
        "hotset memory economics --json",
    )
)
@project_options
@click.option(
    "--session",
    metavar="ID",
    type=as_text,
    default="",
    help="Only this session: an id, the beginning of one, or `last`.",
)
@limit_option(_SESSIONS_LISTED, help="At most so many sessions.")
@as_json
def economics(chosen: ProjectOptions, *, session: str, limit: int, as_json: bool) -> None:
    """What memory cost in each session, what it saved, and what was done about it, newest first.

    Savings are compared with loading all memories once a session. When a limit is crossed, memories
    are shown in another way from then on.
    """
    with open_project_memories(chosen, lists=True) as memories:
        found = memories.economics(resolve_session(chosen, session))[:limit]
    if as_json:
        emit_json([_economics_document(each) for each in found])
    elif found:
        _print_economics(found, time.time())
    if not found:
        chosen.say(
            f"no agent has used memories yet; run a session first: {chosen.hint('wrap AGENT')}"
        )


def _print_economics(found: Sequence[SessionEconomics], now: float) -> None:
    """What memory cost, what it saved, and what was done about it, in sentences."""
    spent = sum(each.whole.spent for each in found)
    whole = sum(each.whole.available for each in found)
    sessions = count(len(found), "session")
    emit(
        f"Memory took {count(spent, 'token')} in {sessions}. Loading all of it each time would "
        f"have taken {whole:,}: {_describe_saving(whole - spent, whole)}."
    )
    for each in found:
        emit("")
        emit(
            click.style(each.session or "outside of a session", bold=True)
            + f", {ago(each.time, now)}"
        )
        for line in (_describe_cost(each.whole), *_remarks(each)):
            emit("\n".join(wrap_lines(line, "  ")))


def _describe_cost(one: Economics) -> str:
    parts = []
    if one.discovery_tokens:
        parts.append(f"{count(one.discovery_tokens, 'token')} for index and timeline")
    if one.read_tokens:
        loads = "once" if one.full_loads == 1 else f"{one.full_loads} times"
        parts.append(f"{count(one.read_tokens, 'token')} for memories that were shown {loads}")
    asked = "; the agent asked for none of it" if not one.asked else ""
    return (
        f"It took {' and '.join(parts) or 'nothing'}{asked}. All memories have "
        f"{count(one.available, 'token')}: {_describe_saving(one.saved, one.available)}."
    )


def _describe_saving(saved: int, whole: int) -> str:
    if saved < 0:
        return f"{-saved:,} more than that were spent"
    return f"{saved:,} saved" + (f" ({saved / whole:.0%})" if whole else "")


def _remarks(each: SessionEconomics) -> Iterator[str]:
    """The limits that were crossed, and what was done about each."""
    acted = {str(event.detail.get("metric")): event for event in each.actions}
    for breach in each.breaches:
        done = acted.pop(str(breach.metric), None)
        then = "It is acted on when the session ends." if done is None else _describe_action(done)
        yield f"{_describe_breach(str(breach.metric), breach.value, breach.threshold)} {then}"
    for metric, event in acted.items():
        value, threshold = (float(event.detail.get(name, 0)) for name in ("value", "threshold"))
        yield f"{_describe_breach(metric, value, threshold)} {_describe_action(event)}"


def _describe_breach(metric: str, value: float, threshold: float) -> str:
    if value < 0:
        return "It took more than loading all memories would have."
    form = "{:.0%}" if metric in ("savings", "ratio") else "{:,.0f}"
    words = _BREACHES.get(metric, metric + " is {value}; the limit is {limit}.")
    return words.format(value=form.format(value), limit=form.format(threshold))


def _describe_action(event: Event) -> str:
    detail = event.detail
    if detail.get("note"):
        return f"Nothing was changed: {detail['note']}."
    before, after = (float(detail.get(name, 0)) for name in ("before", "after"))
    done = _REMEDIES.get(str(detail.get("remedy")), str(detail.get("remedy")))
    if after == before:
        return f"{done}."
    return f"{done}: {after:,.0f} instead of {before:,.0f} {detail.get('unit')}."


def _economics_document(each: SessionEconomics) -> dict[str, Any]:
    return {
        "session": each.session,
        "time": each.time,
        **_numbers(each.whole),
        "tasks": [_numbers(task) for task in each.tasks],
        "breaches": [_breach(breach) for breach in each.breaches],
        "actions": [{"time": event.time, **event.detail} for event in each.actions],
    }


def _numbers(one: Economics) -> dict[str, Any]:
    return {
        "task": one.task,
        "discovery_tokens": one.discovery_tokens,
        "read_tokens": one.read_tokens,
        "ratio": one.ratio,
        "savings": one.savings,
        "saved": one.saved,
        "available": one.available,
        "index_loads": one.index_loads,
        "timeline_loads": one.timeline_loads,
        "full_loads": one.full_loads,
        "asked": one.asked,
    }


def _breach(breach: Breach) -> dict[str, Any]:
    return {
        "metric": breach.metric,
        "value": breach.value,
        "threshold": breach.threshold,
        "remedy": breach.remedy,
    }
