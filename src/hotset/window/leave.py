"""Stubs for steps that leave: one for each stretch of steps, or one per page if messages must stay.
A stub holds what left, when, its topics, what was done, and the call that brings it back."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import chain, groupby
from typing import NamedTuple

from hotset.files.lru import Lru
from hotset.nouns.handoff import AnyState
from hotset.nouns.knobs import FormKnobs, Knobs
from hotset.nouns.page import Kind
from hotset.nouns.window import WHOLE, Cause, Form, Line, Piece, Shown, Spot, Stub
from hotset.text.call_shape import names_path
from hotset.text.clip import clip
from hotset.window.arguments import ArgumentUse, arguments, spoken
from hotset.window.moment import Moment, no_bound
from hotset.window.names import count_names, distinct_names, words_within
from hotset.window.preview.opaque import is_opaque
from hotset.window.preview.trouble import alarms, is_trouble
from hotset.window.step_sizes import Step, WeighedConversation
from hotset.window.summary import headline, summaries_within
from hotset.window.work.worklog import read_work, work_lines

_CHARS_PER_TOKEN = 4


@dataclass(slots=True)
class Departure:
    """What leaves with one plan."""

    cause: Cause | None = None
    rows: list[Shown] = field(default_factory=list)
    stubs: list[Stub] = field(default_factory=list)
    handoff: AnyState | None = None
    """The state that its successor begins with, if the whole window is handed over."""


def leave(
    weighed: WeighedConversation,
    leaving: Sequence[Step],
    knobs: Knobs,
    moment: Moment,
    cause: Cause,
    *,
    finished: Container[int] = (),
) -> Departure:
    """The departure of these steps, given in conversation order; `finished` are the numbers of
    those whose work is done."""
    departure = Departure(cause)
    for run in runs_of(leaving):
        if run[0].sticky:
            stub_pages(departure, weighed, run[0], knobs, moment)
        else:
            for done, some in groupby(run, lambda step: step.number in finished):
                _collapse(departure, weighed, list(some), knobs, moment, done=done)
    return departure


def stub_pages(
    departure: Departure, weighed: WeighedConversation, step: Step, knobs: Knobs, moment: Moment
) -> None:
    """Replaces the results of a step whose messages stay by their references."""
    for spot, tokens in weighed.stubbable(step):
        _stub_page(departure, _Page.of(weighed, step, spot, tokens), knobs, moment)


def mend(
    weighed: WeighedConversation, knobs: Knobs, moment: Moment
) -> tuple[WeighedConversation, Departure]:
    """The conversation after its client changed what had left, and the stubs rebuilt for that.

    A step that left only in part comes back whole: a call and its result are sent together or not
    at all. A stub that covers steps which no longer exist is rebuilt from the others.
    """
    runs, partly = _departed_steps(weighed)
    cut = [run for run in runs if not _is_intact(weighed, run)]
    if not cut and not partly:
        return weighed, Departure()
    departure = Departure(Cause.REWOUND)
    back = {
        line.chain
        for step in (*partly, *(step for run in cut for step in run))
        for line in weighed.inside(step)
    }
    whole = weighed.with_back(back)
    for run in cut:
        for some in runs_of(run):
            if not some[0].sticky:
                _collapse(departure, whole, some, knobs, moment)
    return whole.after(departure.rows), departure


def _departed_steps(weighed: WeighedConversation) -> tuple[list[list[Step]], list[Step]]:
    """The runs of steps that left, each up to the stub of the next; and the steps that left only in
    part."""
    runs: list[list[Step]] = []
    partly: list[Step] = []
    for step in weighed.steps if weighed.departed else ():
        gone = [row for line in weighed.inside(step) if (row := weighed.gone(line)) is not None]
        if not gone:
            continue
        if len(gone) <= step.last - step.first:
            partly.append(step)
        elif runs and step.first == runs[-1][-1].last + 1 and not gone[0].text:
            runs[-1].append(step)
        else:
            runs.append([step])
    return runs, partly


def _is_intact(weighed: WeighedConversation, run: Sequence[Step]) -> bool:
    """True if exactly one stub is in front and covers these steps and no others."""
    lines = weighed.lines[run[0].first : run[-1].last + 1]
    rows = {row.spot: row.text for line in lines if (row := weighed.gone(line)) is not None}
    first, *others = rows.values()
    return not any(others) and is_stub_of(first.decode("utf-8", "replace"), tuple(rows))


def fold(departure: Departure, weighed: WeighedConversation, knobs: Knobs, moment: Moment) -> None:
    """If logs take too much of the window, shortens the older ones, by enough to last a long
    time."""
    after = weighed.after(departure.rows)
    logs = [
        (line, row) for line in weighed.lines if (row := after.gone(line)) is not None and row.text
    ]
    most = knobs.forms.logs_share * moment.room(knobs)
    over = sum(row.tokens for _, row in logs) - most
    if over > 0:
        new = {stub.spots[0] for stub in departure.stubs}
        old = [log for log in logs if log[1].spot not in new]
        _shrink(
            departure,
            old,
            over + most / 2,
            moment,
            lambda log: fold_log(log, knobs.forms.folded_share),
        )


def squeeze(
    departure: Departure, weighed: WeighedConversation, knobs: Knobs, moment: Moment
) -> None:
    """If the window would still be nearly full, shortens all logs to their reference, then stubs
    the largest late results.

    A full window overflows again with the next call, and each time the prefix breaks: room is made
    for several calls. Results of the latest step leave only if they do not fit at all.
    """
    after, room = weighed.after(departure.rows), moment.room(knobs)
    over = after.total - knobs.squeezed * room
    if after.total <= _NEARLY_FULL * room or over <= 0:
        return
    logs = [(line, row) for line in weighed.lines if (row := after.gone(line)) is not None]
    over -= _shrink(departure, logs, over, moment, bare_reference)
    spare = (1 - knobs.squeezed) * room
    stub_late(departure, weighed, over, spare, knobs=knobs, moment=moment)


def stub_late(
    departure: Departure,
    weighed: WeighedConversation,
    over: float,
    latest_spare: float,
    *,
    knobs: Knobs,
    moment: Moment,
) -> None:
    """Replaces the largest results that stay by their references until `over` tokens are saved;
    those of the latest step only if more than `latest_spare` is missing."""
    after = weighed.after(departure.rows)
    late = [
        _Page.of(weighed, step, spot, tokens)
        for step in weighed.steps
        if after.is_resident(step)
        for spot, tokens in after.stubbable(step)
        if spot.chain not in moment.orders.pinned
    ]
    latest = weighed.steps[-1].number
    for page in sorted(late, key=lambda page: (page.step == latest, -page.tokens)):
        spare = latest_spare if page.step == latest else 0.0
        if over <= spare:
            return
        over -= _stub_page(departure, page, knobs, moment)


def _shrink(
    departure: Departure,
    logs: Sequence[tuple[Line, Shown]],
    much: float,
    moment: Moment,
    shorter: Callable[[str], str],
) -> float:
    """Shortens the oldest logs until `much` tokens are saved; returns the tokens saved."""
    saved = 0
    for line, row in logs:
        if saved >= much:
            break
        text = shorter(row.text.decode("utf-8", "replace")).encode("utf-8", "replace")
        tokens = moment.count(text) + line.extra
        if tokens < row.tokens:
            departure.rows.append(
                Shown(
                    row.spot,
                    Form.GONE,
                    text,
                    tokens,
                    row.whole,
                    departure.cause or row.cause,
                    moment.now,
                )
            )
            saved += row.tokens - tokens
    return saved


def _turn(weighed: WeighedConversation, step: Step, moment: Moment) -> int:
    """The turn of a step's reply; the number of the step if no store numbers turns."""
    return moment.turn_of(weighed.lines[step.first].chain) or step.number


@dataclass(frozen=True, slots=True)
class _Page:
    """A result at its place, with its tokens as shown."""

    step: int
    turn: Callable[[Moment], int]
    spot: Spot
    line: Line
    tokens: int

    @classmethod
    def of(cls, weighed: WeighedConversation, step: Step, spot: Spot, tokens: int) -> _Page:
        return cls(
            step.number,
            partial(_turn, weighed, step),
            spot,
            next(line for line in weighed.inside(step) if line.chain == spot.chain),
            tokens,
        )


def runs_of(leaving: Sequence[Step]) -> Iterator[list[Step]]:
    """Groups adjacent steps, which leave together; a step whose messages must stay is alone."""
    run: list[Step] = []
    for step in leaving:
        if run and (step.sticky or run[-1].sticky or step.first != run[-1].last + 1):
            yield run
            run = []
        run.append(step)
    if run:
        yield run


def read_ahead(contents: Iterable[bytes]) -> None:
    """Count the names of new pages now, so that the plan with which they leave need not: half of
    what an eviction computes."""
    for content in contents:
        count_names(_read(content))
        _skim(_read(content))


def _read(content: bytes) -> str:
    """As much of a page as an eviction reads."""
    return content[:_PAGE_READ].decode("utf-8", "replace")


def _collapse(
    departure: Departure,
    weighed: WeighedConversation,
    run: Sequence[Step],
    knobs: Knobs,
    moment: Moment,
    *,
    done: bool = False,
) -> None:
    first, last = run[0], run[-1]
    lines = weighed.lines[first.first : last.last + 1]
    summary = summaries_within(
        moment.summaries,
        first.number,
        last.number,
        int(knobs.forms.summary_share * _CHARS_PER_TOKEN * sum(map(weighed.of, run))),
    )
    numbered = ((_turn(weighed, step, moment), weighed.inside(step)) for step in run)
    log = log_entries(numbered, knobs.for_finished if done else knobs, moment.check)
    if done and not summary:
        log = chain(work_lines(read_work(lines)), log)
    stub = stub_of_run(weighed, run, knobs, moment)
    texts = (stretch_text(stub, log, summary), reference(stub))
    replace_run(departure, weighed, run, stub, texts, moment=moment)


def stub_of_run(
    weighed: WeighedConversation, run: Sequence[Step], knobs: Knobs, moment: Moment
) -> Stub:
    """The stub for adjacent steps that leave together."""
    first, last = run[0], run[-1]
    lines = weighed.lines[first.first : last.last + 1]
    # Equal reasoning items share one chain.
    spots = list(dict.fromkeys(Spot(line.chain, WHOLE) for line in lines))
    turns = _turn(weighed, first, moment), _turn(weighed, last, moment)
    beside = (*weighed.lines[: first.first], *weighed.lines[last.last + 1 :])
    return stub_of(spots, lines, turns, beside, forms=knobs.forms, moment=moment)


def replace_run(
    departure: Departure,
    weighed: WeighedConversation,
    run: Sequence[Step],
    stub: Stub,
    texts: Iterable[str],
    *,
    moment: Moment,
    at_any_length: bool = False,
    around: int | None = None,
) -> None:
    """Lets adjacent steps leave: the first of these texts that is shorter stands in their place. If
    none is, they stay. `around` are the tokens around a text; by default those around their first
    message."""
    assert departure.cause is not None
    lines = weighed.lines[run[0].first : run[-1].last + 1]
    before = sum(map(weighed.of, run))
    for stub_text in texts:
        text = stub_text.encode("utf-8", "replace")
        tokens = moment.count(text) + (lines[0].extra if around is None else around)
        if tokens < before or at_any_length:
            break
    else:  # even the reference would be longer than the steps
        return
    wholes = {Spot(line.chain, WHOLE): line.whole for line in lines}
    forms = [(text, tokens), *((b"", 0) for _ in stub.spots[1:])]
    departure.stubs.append(stub)
    departure.rows += [
        Shown(spot, Form.GONE, content, weight, wholes[spot], departure.cause, moment.now)
        for spot, (content, weight) in zip(stub.spots, forms, strict=True)
    ]


def _stub_page(departure: Departure, page: _Page, knobs: Knobs, moment: Moment) -> int:
    """Replaces a result by its reference; returns the tokens saved."""
    assert departure.cause is not None
    piece = page.line.pieces[page.spot.position]
    alone = Line(page.line.chain, page.line.role, (piece,))
    turn = page.turn(moment)
    stub = stub_of(
        [page.spot],
        [alone],
        (turn, turn),
        (),
        forms=knobs.forms,
        moment=moment,
    )
    text = reference(stub).encode()
    tokens = moment.count(text)
    if tokens >= page.tokens:
        return 0
    departure.stubs.append(stub)
    departure.rows.append(
        Shown(page.spot, Form.STUB, text, tokens, piece.tokens, departure.cause, moment.now)
    )
    return page.tokens - tokens


_NEARLY_FULL = 0.9
"""Of the room: the next call would overflow."""

_PAGE_READ = 60_000
"""Bytes read of one page."""

_OPEN_TASK = re.compile(r"^\s*[-*] \[ \] .+$", re.MULTILINE)
_A_LIST = 2

_LOOKED_AT = 600  # characters of a line that may report an error
_ENTITIES_ROOM = 80  # characters of names in a reference beside its topics
_HINTS_ROOM = 60
_SUMMARY_ROOM = 100
_MARKS = re.compile(r"[\[\]|]")  # they separate the parts of a reference
_RARITY_NAMES = 32  # of the commonest names are compared with the rest of the conversation
_RARITY_READ = 2000  # bytes of each page there
_TOPIC = re.compile(
    r"(?:[\w.@+-]*/)*[\w@+-][\w.@+-]*\.[a-z][a-z0-9]{0,5}"
    r"|[^/]*[A-Za-z0-9]_[A-Za-z0-9][^/]*|[^/]*[a-z][A-Z][^/]*|#[0-9a-fA-F]{6}"
)
"""A file or an identifier; `and/or`, `wrapKey/unwrapKey`, `e.g` and `3.11` are none."""
_PATH_PARTS = 2  # of a path in a reference: a file is told by its name and folder
_ABBREVIATION = re.compile(r"(?:[A-Za-z]{1,2}\.)+[A-Za-z]{0,2}")
_FILE = re.compile(r"[\w./-]*[./][a-z_]\w*")  # a file or module may be named after errors
_HEADING = "Done there, by turn:"
_NAMED = "Names there:"
_NAMED_BEFORE = "Names that came up there:"
"""The same in logs of earlier versions."""
_CALLED_WEIGHS = 4
"""Weight of a name that a call used, relative to one that a result mentioned: it was acted upon."""


def stub_of(
    spots: Sequence[Spot],
    lines: Sequence[Line],
    turns: tuple[int, int],
    beside: Sequence[Line],
    *,
    forms: FormKnobs,
    moment: Moment,
) -> Stub:
    """The stub for lines that leave together; `beside` are the other lines of the conversation."""
    paths, others, called = _commonest(lines, beside, moment.check)
    topics = (paths + others)[: forms.topics]
    return Stub(
        id=_id(spots),
        kind=_kind(lines),
        spots=tuple(spots),
        turns=turns,
        tokens=sum(line.whole for line in lines),
        time=moment.now,
        topics=tuple(topics),
        entities=tuple((paths + others)[: forms.entities]),
        hints=tuple([name for name in called if name not in topics][: forms.hints]),
        summary=_summary(lines),
    )


_KINDS = {
    Kind.RESPONSE: "conversation",
    Kind.WEB_FETCH: "research",
    Kind.PAPER: "research",
    Kind.FINDING: "research",
    Kind.FILE: "code_analysis",
    Kind.PLAN: "plan_discussion",
}


def _kind(lines: Iterable[Line]) -> str:
    """What most of the tokens of these lines are; what calls were asked does not count."""
    tokens: Counter[str] = Counter()
    for line in lines:
        for piece in line.pieces:
            if piece.is_result or piece.kind in _KINDS:
                tokens[_KINDS.get(piece.kind, "tool_results")] += piece.tokens
    return max(tokens, key=tokens.__getitem__, default="conversation")


def _summary(lines: Sequence[Line]) -> str:
    """The sentence that tells most; without one, the last call or the tool."""
    if not (text := headline(lines, _SUMMARY_ROOM)):
        calls = [
            piece for line in lines for piece in line.pieces if piece.kind.family is Kind.TOOL_CALL
        ]
        tools = dict.fromkeys(piece.tool for line in lines for piece in line.pieces if piece.tool)
        text = (
            f"{calls[-1].tool} {_one_line(spoken(calls[-1].content)[:_SUMMARY_ROOM].encode())}"
            if calls
            else ", ".join(tools)
        )
    return clip(" ".join(_MARKS.sub(" ", text).split()).strip(" *#-"), _SUMMARY_ROOM)


def reference(stub: Stub) -> str:
    """The stub's one line for the model. Hints and entities already in the topics are omitted."""
    first, last = stub.turns
    when = f" @ {datetime.fromtimestamp(stub.time, UTC):%Y-%m-%d %H:%M}" if stub.time else ""
    turns = f"turns {first}-{last}" if last > first else f"turn {first}"
    summary = f" | {stub.summary}" if stub.summary else ""
    hints = words_within(_not_in(stub.hints, stub.topics), _HINTS_ROOM)
    entities = words_within(_not_in(stub.entities, (*stub.topics, *hints)), _ENTITIES_ROOM)
    about = "".join(
        f" | {label}: {', '.join(listed)}"
        for label, listed in (("Topics", stub.topics), ("Entities", entities), ("Ask for", hints))
        if listed
    )
    return (
        f"[CTX-REF:{stub.kind} | {turns} ({stub.tokens:,} tokens){when}{summary}{about}"
        f' | retrieve_context(id="{stub.id}")]'
    )


def is_stub_of(text: str, spots: Sequence[Spot]) -> bool:
    """True if this text is the stub of exactly these pages."""
    return bare_reference(text).endswith(f'retrieve_context(id="{_id(spots)}")]')


def _not_in(words: Iterable[str], listed: Iterable[str]) -> list[str]:
    """The words that occur in none of the listed texts."""
    known = " ".join(listed)
    return [word for word in words if word not in known]


def stretch_text(stub: Stub, log: Iterable[str], summary: str = "") -> str:
    """The text in place of a stretch of work: the reference, the summary if there is one, and the
    log."""
    parts = [reference(stub)]
    if summary:
        parts.append(summary)
    return "\n".join([*parts, _HEADING, *log])


def fold_log(text: str, share: float) -> str:
    """A log shortened to its reference and names, up to a share of its length; a folded log becomes
    its reference alone."""
    head, _, log = text.partition("\n")
    if log.startswith((_NAMED, _NAMED_BEFORE)):
        return head
    kept = words_within(_by_count(count_names(log)), int(share * len(log)))
    return f"{head}\n{_NAMED} {' '.join(kept)}" if kept else head


def bare_reference(text: str) -> str:
    """The reference alone, without the log."""
    return text.partition("\n")[0]


def log_entries(
    steps: Iterable[tuple[int, Sequence[Line]]], knobs: Knobs, check: Callable[[], None] = no_bound
) -> Iterator[str]:
    """The log of steps that leave together: each one's number, the model's text and calls, and
    errors.

    Call arguments are kept as written, because later calls repeat them more than anything else. A
    name already in the log is not listed again.
    """
    seen: set[str] = set()
    for number, lines in steps:
        check()
        text = "\n".join(_entry(number, lines, knobs, seen))
        seen.update(count_names(text))
        yield text


def _entry(number: int, lines: Sequence[Line], knobs: Knobs, seen: set[str]) -> Iterator[str]:
    pieces = [piece for line in lines for piece in line.pieces]
    calls = [piece for piece in pieces if piece.kind.family is Kind.TOOL_CALL]
    reply = next(
        (
            _one_line(piece.content[:_PAGE_READ])
            for piece in pieces
            if piece.kind is Kind.RESPONSE and piece.content.strip()
        ),
        "",
    )
    tools = f"[{', '.join(dict.fromkeys(piece.tool for piece in calls))}]" if calls else ""
    yield " ".join(
        part
        for part in (f"{number}.", clip(reply, knobs.said if calls else 2 * knobs.entry), tools)
        if part
    )
    for piece in calls:
        yield from _call_lines(piece, knobs, seen)
    files = {piece.call for piece in calls if names_path(piece.content)}
    for line in lines:
        if line.answers:
            yield from _results(line, knobs, files, seen)


_OBVIOUS = frozenset(
    {
        *("command", "cmd", "script", "code", "input", "query", "pattern", "url", "prompt"),
        *("path", "file_path", "filepath", "filename", "file", "target_file", "absolute_path"),
        *("content", "status", "step", "text", "description"),
    }
)
"""Names of arguments that their values tell."""
_KEYED = 24  # characters of an argument that stands behind its name: longer ones are copied whole


def _call_lines(call: Piece, knobs: Knobs, seen: set[str]) -> Iterator[str]:
    """A call's arguments; short ones that say nothing by themselves share a line, each with its
    name."""
    named: list[str] = []
    for place, argument in enumerate(arguments(call.content)):
        text = argument.text.strip()
        is_obvious = argument.name.lower() in _OBVIOUS and not place
        is_short = len(text) <= _KEYED and "\n" not in text
        if argument.use is ArgumentUse.GIVEN and argument.name and is_short and not is_obvious:
            named += [f"{argument.name}={text}"] if text else []
            continue
        if named:
            yield " ".join(named)
            named = []
        yield from _argument_lines(text, _room(argument.use, knobs), knobs.forms, seen)
    if named:
        yield " ".join(named)


def _room(use: ArgumentUse, knobs: Knobs) -> int:
    return {
        ArgumentUse.GIVEN: knobs.entry,
        ArgumentUse.WRITTEN: max(knobs.entry, knobs.room_for_written),
        ArgumentUse.REPLACED: knobs.forms.replaced,
    }[use]


def _argument_lines(leaf: str, room: int, forms: FormKnobs, seen: set[str]) -> Iterator[str]:
    """An argument as written; a long one as its beginning, in whole lines, its open tasks, and the
    names in the rest."""
    if len(leaf) <= room:
        if leaf:
            yield leaf
        return
    head = _beginning(leaf, room // 2)
    yield f"{head} …"
    yield from _tasks(leaf[len(head) :], forms, seen)
    rest = _unseen(leaf[len(head) :], seen)
    if mentioned := words_within(distinct_names(rest, head), room // 2):
        seen.update(mentioned)
        yield f"… {' '.join(mentioned)}"


def _beginning(text: str, room: int) -> str:
    cut = text.rfind("\n", 0, room)
    return text[: cut if cut > room // 2 else room].rstrip()


def _tasks(text: str, forms: FormKnobs, seen: set[str]) -> Iterator[str]:
    """Open items of a task list: the work continues with them, and each is copied when it is ticked
    off."""
    tasks = [
        task for task in dict.fromkeys(map(str.strip, _OPEN_TASK.findall(text))) if task not in seen
    ]
    if len(tasks) >= _A_LIST:
        kept = words_within(tasks, forms.tasks)
        seen.update(kept)
        yield from kept


def _results(line: Line, knobs: Knobs, files: Container[str], seen: set[str]) -> Iterator[str]:
    for piece in line.pieces:
        if piece.kind is Kind.IMAGE:
            yield "-> image"
        elif piece.is_result:
            text = _read(piece.content)
            skimmed = _skim(text)
            if skimmed.error:
                yield f"-> {clip(skimmed.error, knobs.entry)}"
            yield from _tasks(text, knobs.forms, seen)
            read = piece.kind is Kind.FILE and piece.call in files
            room = max(knobs.mentions, knobs.room_for_read) if read else knobs.mentions
            if not room or skimmed.is_opaque:
                continue
            if found := words_within(_by_count(distinct_names(_unseen(text, seen), "")), room):
                seen.update(found)
                yield f"-> {' '.join(found)}"


def _unseen(text: str, seen: Container[str]) -> dict[str, int]:
    return {name: count for name, count in count_names(text).items() if name not in seen}


class _Skimmed(NamedTuple):
    error: str
    """The first line of a result that reports a failure."""
    is_opaque: bool


_skimmed: Lru[tuple[int, int], _Skimmed] = Lru("skimmed results", weight=2 << 20)


def _skim(text: str) -> _Skimmed:
    key = hash(text), len(text)
    if (known := _skimmed.get(key)) is None:
        known = _skim_anew(text)
        _skimmed.put(key, known, 200 + len(known.error))
    return known


def _skim_anew(text: str) -> _Skimmed:
    lines = text.splitlines()
    found = (
        lines[at] for at in alarms(lines) if is_trouble(_FILE.sub(" ", lines[at][:_LOOKED_AT]))
    )
    error = next((" ".join(line.split()) for line in found), "")
    return _Skimmed(error, is_opaque(text.split("\n")))


def _commonest(
    lines: Sequence[Line], beside: Sequence[Line], check: Callable[[], None]
) -> tuple[list[str], list[str], list[str]]:
    """Paths, other names, and the names that calls used, those that tell these lines from the rest
    of the conversation first; one per group of similar names."""
    found: Counter[str] = Counter()
    called: Counter[str] = Counter()
    for line in lines:
        check()
        for piece in line.pieces:
            if piece.kind in (Kind.IMAGE, Kind.THINKING):
                continue
            if piece.kind.family is Kind.TOOL_CALL:
                called.update(count_names(spoken(piece.content)))
            else:
                found.update(count_names(_read(piece.content)))
    for name, count in called.items():
        found[name] += _CALLED_WEIGHS * count
    counts: Counter[str] = Counter()
    for listed, count in distinct_names(found, "").items():
        name = listed.partition(" ")[0]
        if _TOPIC.fullmatch(name) and not _ABBREVIATION.fullmatch(name):
            counts["/".join(name.split("/")[-_PATH_PARTS:])] += count
    ranked = _by_rarity(counts, beside, check)
    return (
        [name for name in ranked if "/" in name],
        [name for name in ranked if "/" not in name],
        [name for name in _by_count(called) if name in counts],
    )


def _by_rarity(
    counts: Mapping[str, int], beside: Sequence[Line], check: Callable[[], None]
) -> list[str]:
    """Names by how often they occur here and how seldom elsewhere in the conversation."""
    common = sorted(counts, key=lambda name: -counts[name])
    first = [(name, name.encode()) for name in common[:_RARITY_NAMES]]
    elsewhere: Counter[str] = Counter()
    for line in beside:
        check()
        text = b"\n".join(piece.content[:_RARITY_READ] for piece in line.pieces)
        elsewhere.update(name for name, written in first if written in text)
    many = len(beside) + 1
    rarity = {name: math.log(1 + many / (1 + elsewhere[name])) for name, _ in first}
    return [
        *sorted(rarity, key=lambda name: -counts[name] * rarity[name]),
        *common[_RARITY_NAMES:],
    ]


def _by_count(counts: Mapping[str, int]) -> list[str]:
    return [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def _one_line(content: bytes) -> str:
    return " ".join(content.decode("utf-8", "replace").split())


def _id(spots: Sequence[Spot]) -> str:
    """An id made of the pages' chains: the same on any machine."""
    keys = "\n".join(f"{spot.chain}:{spot.position}" for spot in spots)
    return "r" + hashlib.sha256(keys.encode()).hexdigest()[:11]
