"""`hotset sessions`, `hotset show` and `hotset recall`: list sessions, show one turn by turn, and
print the exact bytes of a page."""

from __future__ import annotations

import base64
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import click
import msgspec

from hotset.errors import BadInput
from hotset.nouns.bill import Bill
from hotset.nouns.page import Kind, Page, SessionId
from hotset.nouns.turn import Node, Outcome, Reference, Session, Turn
from hotset.nouns.usage import Usage
from hotset.runtime.reader import (
    Parent,
    Store,
    Where,
    did_you_mean,
    find_content,
    find_reference,
    find_session,
    gist_of,
    metadata_of,
    open_existing,
    open_or_empty,
    parents_in,
)
from hotset.surfaces.cli.options import (
    ProjectOptions,
    as_json,
    examples,
    limit_option,
    parse_moment,
    project_options,
)
from hotset.surfaces.cli.terminal import (
    count,
    emit,
    emit_json,
    moment,
    one_line,
    plain,
    plain_line,
    shortened,
    size,
    span,
    table,
    width,
)

_DEEPEST = 4  # levels of indentation: a table has no room for more

_ID_WIDTH, _KIND_WIDTH, _SIZE_WIDTH = 16, 13, 8
_COLOURS = {
    Kind.PROMPT: "green",
    Kind.RESPONSE: "cyan",
    Kind.THINKING: "bright_black",
    Kind.TOOL_CALL: "yellow",
    Kind.TOOL_RESULT: "blue",
    Kind.SYSTEM: "magenta",
}


@dataclass(frozen=True, slots=True)
class SessionLine:
    """One session and its counts."""

    session: Session
    turns: int
    branches: int
    last: float
    """When its last turn began or ended."""
    model: str
    parent: SessionId | None = None
    """The session that this one belongs to, as a subagent or a continuation."""
    kinship: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """What its client or program said about it; the agent's kind is `kind`."""


@click.command(
    epilog=examples(
        "hotset sessions",
        "hotset sessions --since 2d --agent claude-cli",
        "hotset sessions --limit 1 --json",
    )
)
@project_options
@limit_option(20)
@click.option("--since", metavar="WHEN", help="Active since: 30m, 12h, 2d, 1w or 2026-11-15.")
@click.option("--agent", help="Only this agent's.")
@as_json
def sessions(
    chosen: ProjectOptions, limit: int, since: str | None, agent: str | None, as_json: bool
) -> None:
    """The sessions of this project, last used first; subagents and continued sessions below their
    parent."""
    now = time.time()
    config = chosen.config()
    earliest = parse_moment(since, now) if since else None
    with open_or_empty(config) as store:
        every = store.recent_sessions()
        above = parents_in(store)
        listed = (
            describe(store, each, above.get(each.id))
            for each in every
            if agent in (None, each.agent)
        )
        latest = list(
            islice((line for line in listed if earliest is None or line.last >= earliest), limit)
        )
        said = metadata_of(store, [line.session.id for line in latest])
        latest = [replace(line, metadata=said.get(line.session.id, {})) for line in latest]
    lines = arrange_families(latest)
    if as_json:
        emit_json([line for line, _ in lines])
    if not lines:
        near = did_you_mean(agent or "", {each.agent for each in every})
        none = (
            f"no session is kept yet for {config.project}; start one with: "
            f"{chosen.hint('wrap AGENT')}"
        )
        chosen.say(
            none if not every else f"no such session; {near}see all: {chosen.hint('sessions')}"
        )
    if as_json or not lines:
        return
    table(
        ("session", "last", "agent", "model", "turns", "branches", "title"),
        [
            (
                f"{'  ' * (depth - 1)}└ {line.session.id}" if depth else line.session.id,
                f"{span(now - line.last)} ago",
                line.session.agent,
                line.model,
                str(line.turns),
                str(line.branches),
                line.session.title or line.session.key,
            )
            for line, depth in lines
        ],
        right=(4, 5),
    )
    chosen.say(f"\nLook at one with: {chosen.hint(f'show {latest[0].session.id}')}")


def arrange_families(latest: Sequence[SessionLine]) -> list[tuple[SessionLine, int]]:
    """Sessions with their depth below their parent; a family is sorted by its member that was used
    last."""
    listed = {line.session.id: line for line in latest}
    below: dict[SessionId | None, list[SessionLine]] = {}
    for line in latest:
        below.setdefault(line.parent if line.parent in listed else None, []).append(line)
    arranged: dict[SessionId, tuple[SessionLine, int]] = {}
    for line in latest:
        top = line
        while top.parent in listed:
            top = listed[top.parent]
        waiting = [] if top.session.id in arranged else [(top, 0)]
        while waiting:
            here, depth = waiting.pop()
            arranged[here.session.id] = here, min(depth, _DEEPEST)
            waiting += [(each, depth + 1) for each in reversed(below.get(here.session.id, []))]
    return list(arranged.values())


def describe(store: Store, session: Session, parent: Parent | None = None) -> SessionLine:
    turns = list(store.turns(session.id))
    return SessionLine(
        session=session,
        turns=len(turns),
        branches=len({turn.branch for turn in turns}),
        last=max((max(turn.started, turn.finished) for turn in turns), default=session.started),
        model=turns[-1].model if turns else "",
        parent=parent.session if parent else None,
        kinship=parent.kinship if parent else "",
    )


@dataclass(frozen=True, slots=True)
class SessionStory:
    """The parts of a session that `show` prints."""

    session: Session
    turns: tuple[Turn, ...]
    pages: dict[int, list[Page]]
    """Pages by turn."""
    bills: dict[int, Bill]
    """Bills by turn."""
    parent: Parent | None
    children: tuple[tuple[Session, Parent], ...]
    """The sessions that belong to it, in the order of their start."""
    forks: dict[int, int]
    """For each branch but the first, the turn after which it leaves an older line; 0 if it began
    anew."""


@click.command(
    epilog=examples(
        "hotset show",
        "hotset show s3f9a --turns 10-20",
        "hotset show last --kind tool_result --full",
        "hotset show last --json | jq '.turns[].model'",
    )
)
@click.argument("session", default="last")
@project_options
@click.option("--turns", metavar="A-B", help="Only these turns: 7, 3-9, 12- or -5.")
@click.option(
    "--kind", type=click.Choice([kind.value for kind in Kind]), help="Only pages of this kind."
)
@click.option("--full", is_flag=True, help="Whole contents instead of first lines.")
@as_json
def show(
    chosen: ProjectOptions,
    session: str,
    *,
    turns: str | None,
    kind: str | None,
    full: bool,
    as_json: bool,
) -> None:
    """One session, turn by turn: messages, calls, results and branches.

    SESSION is an id, the beginning of one, or `last`, the one that was used last, which is the
    default.
    """
    bounds = parse_turns(turns) if turns else None
    with open_existing(chosen.config()) as store:
        story = read_story(
            store, find_session(store, session), bounds, Kind(kind) if kind else None
        )
        if as_json:
            emit_json(_document(store, story, full))
            return
        for line in _lines(store, story, full):
            emit(line)
        changed = _last_changed(story)
    shown = next((page.id for pages in story.pages.values() for page in pages), None)
    if shown is not None and not full:
        chosen.say(f"\nThe exact bytes of a page: {chosen.hint(f'recall {shown}')}")
    if changed:
        chosen.say(f"What a model saw instead: {chosen.hint(f'diff {story.session.id} {changed}')}")


def read_story(
    store: Store, session: Session, bounds: tuple[int, int] | None, kind: Kind | None
) -> SessionStory:
    pages: dict[int, list[Page]] = {}
    for page in store.pages(
        Where(session=session.id, turns=bounds, kinds=frozenset({kind} if kind else ()))
    ):
        pages.setdefault(page.turn, []).append(page)
    low, high = bounds or (0, sys.maxsize)
    turns = tuple(
        turn
        for turn in store.turns(session.id)
        if low <= turn.number <= high and (not kind or turn.number in pages)
    )
    numbers = {turn.number for turn in turns}
    bills = {bill.turn: bill for bill in store.bills(session.id) if bill.turn in numbers}
    above = parents_in(store)
    children = tuple(
        (each, above[each.id])
        for each in store.sessions()
        if each.id in above and above[each.id].session == session.id
    )
    return SessionStory(
        session,
        turns,
        pages,
        bills,
        above.get(session.id),
        children,
        forks(store.nodes(session.id)),
    )


def _last_changed(story: SessionStory) -> int:
    """The latest turn in which less was sent than the client gave; 0 if there is none."""
    return max(
        (bill.turn for bill in story.bills.values() if bill.sent.prompt < bill.whole.prompt),
        default=0,
    )


def forks(nodes: Iterable[Node]) -> dict[int, int]:
    turn_of: dict[str, int] = {}
    found: dict[int, int] = {}
    for node in nodes:
        turn_of[node.chain] = node.turn
        if node.branch and not node.aside:
            found.setdefault(node.branch, turn_of.get(node.parent, 0))
    return found


def parse_turns(typed: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{0,9})(-?)(\d{0,9})", typed)
    if match is None or not (match[1] or match[3]):
        raise BadInput(f"--turns {typed}: use 7, 3-9, 12- or -5")
    low = int(match[1] or 1)
    return low, int(match[3]) if match[3] else (sys.maxsize >> 1 if match[2] else low)


def _lines(store: Store, story: SessionStory, full: bool) -> Iterator[str]:
    session = story.session
    branches = len(story.forks) + 1
    parts = [
        session.id,
        plain_line(session.agent),
        session.dialect,
        moment(session.started),
        count(len(story.turns), "turn"),
    ]
    if branches > 1:
        parts.append(f"{branches} branches")
    yield click.style("  ".join(parts), bold=True)
    if session.title:
        yield plain_line(session.title)
    if story.parent is not None:
        yield f"{story.parent.kinship} of {plain_line(story.parent.session)}"
    for child, link in story.children:
        yield shortened(f"└ {child.id}  {link.kinship}  {plain_line(child.title)}", width())
    branch = 0
    for turn in story.turns:
        yield ""
        if turn.branch != branch:
            branch = turn.branch
            yield click.style(_branch_line(branch, story.forks), fg="red")
        yield _turn_line(turn, story.bills.get(turn.number))
        for page in story.pages.get(turn.number, []):
            yield from _page_lines(store, page, full)


def _branch_line(branch: int, forks: dict[int, int]) -> str:
    if branch == 0:
        return "── back on branch 0"
    after = forks.get(branch, 0)
    return f"── branch {branch}, " + (f"leaves after turn {after}" if after else "begins anew")


def _turn_line(turn: Turn, bill: Bill | None) -> str:
    parts = [
        f"turn {turn.number}",
        plain_line(turn.model),
        turn.outcome if turn.outcome is not Outcome.DONE else "",
    ]
    if turn.error:
        parts.append(plain_line(turn.error))
    if turn.usage.prompt:
        parts.append(_tokens(turn.usage))
        if (
            bill is not None and bill.calls > 1
        ):  # the figure before is the last call's: the size of the context
            parts.append(f"billed for {bill.calls} calls: {_tokens(bill.usage)}")
    elif bill is not None and bill.usage.estimated:
        calls = f" for {bill.calls} calls" if bill.calls > 1 else ""
        parts.append(f"{_tokens(bill.usage)}{calls}, estimated")
    if turn.finished:
        parts.append(span(turn.finished - turn.started))
    return click.style("  ".join(part for part in parts if part), bold=True)


def _tokens(usage: Usage) -> str:
    cached = f" ({usage.cache_read:,} cached)" if usage.cache_read else ""
    return f"{usage.prompt:,}{cached} → {usage.output:,} tokens"


def _page_lines(store: Store, page: Page, full: bool) -> Iterator[str]:
    head = f"  {page.id:<{_ID_WIDTH}} {page.kind:<{_KIND_WIDTH}} {size(page.size):>{_SIZE_WIDTH}}  "
    tool = f"{plain_line(page.tool)} " if page.tool else ""
    colour = _COLOURS.get(page.kind.family)
    if not page.media.startswith("text/") and page.media != "application/json":
        yield click.style(head, fg=colour) + f"{tool}[{plain_line(page.media)}]"
        return
    content = store.content(page.digest)
    if full:
        yield click.style(f"{head}{tool}", fg=colour)
        yield from (f"    {line}" for line in plain(content.decode("utf-8", "replace")).split("\n"))
        return
    room = max(20, width() - len(head) - len(tool))
    yield click.style(head, fg=colour) + tool + one_line(content, room)


def _document(store: Store, story: SessionStory, full: bool) -> dict[str, Any]:
    def page_of(page: Page) -> dict[str, Any]:
        document: dict[str, Any] = msgspec.to_builtins(page)
        if full:
            document["content"] = store.content(page.digest).decode("utf-8", "replace")
        return document

    def billed_of(turn: Turn) -> dict[str, Any] | None:
        """The sum over all calls of the turn; `usage` is the last call's, as the client got it."""
        bill = story.bills.get(turn.number)
        return (
            {"calls": bill.calls, **msgspec.to_builtins(bill.usage)} if bill is not None else None
        )

    return {
        "session": story.session,
        "parent": story.parent.session if story.parent else None,
        "kinship": story.parent.kinship if story.parent else "",
        "children": [child.id for child, _ in story.children],
        "forks": {str(branch): turn for branch, turn in story.forks.items()},
        "turns": [
            {
                **msgspec.to_builtins(turn),
                "billed": billed_of(turn),
                "pages": [page_of(page) for page in story.pages.get(turn.number, [])],
            }
            for turn in story.turns
        ],
    }


@click.command(
    epilog=examples(
        "hotset recall p3f9a",
        "hotset recall toolu_01A09q90qw90lq917835lq9 > result.txt",
        "hotset recall r971514e2f17",
        "hotset recall p3f9a --json",
    )
)
@click.argument("id")
@project_options
@as_json
def recall(chosen: ProjectOptions, id: str, as_json: bool) -> None:
    """The exact bytes of one page, on stdout. A terminal shows control codes instead of obeying
    them.

    ID is a page's id or the beginning of one, a tool call's id (for its result), a reference's id
    (r..., for every page that it stands for), or the SHA-256 of a content.
    """
    with open_existing(chosen.config()) as store:
        if (found := find_reference(store, id)) is not None:
            _show_reference(store, *found, as_json=as_json)
            return
        page, address = find_content(store, id)
        content = store.content(address)
        about = gist_of(store, page, content) if page is not None else None
        said = metadata_of(store, [page.id]).get(page.id, {}) if page is not None else {}
    if as_json:
        emit_json(
            {
                "page": page,
                "metadata": said,
                "gist": about,
                "digest": address,
                "size": len(content),
                **_content_fields(content),
            }
        )
        return
    if (
        sys.stdout.isatty()
    ):  # control codes are shown, not executed; a file or a pipe gets the bytes
        emit(plain(content.decode("utf-8", "replace")).removesuffix("\n"))
        return
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _show_reference(
    store: Store, reference: Reference, pages: Sequence[Page], *, as_json: bool
) -> None:
    """The pages of a reference, whole and in order."""
    if as_json:
        contents = [
            {**msgspec.to_builtins(page), **_content_fields(store.content(page.digest))}
            for page in pages
        ]
        emit_json({"reference": reference, "pages": contents})
        return
    first, last = reference.turns
    parts = [
        reference.id,
        reference.kind,
        f"turns {first}-{last}" if last > first else f"turn {first}",
        count(len(pages), "page"),
        f"{reference.tokens:,} tokens",
        plain_line(", ".join(reference.topics)),
    ]
    emit(click.style("  ".join(filter(None, parts)), bold=True))
    for page in pages:
        emit("")
        for line in _page_lines(store, page, full=True):
            emit(line)


def _content_fields(content: bytes) -> dict[str, Any]:
    """Content that is text as text, anything else in base64: both come back byte for byte."""
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}
