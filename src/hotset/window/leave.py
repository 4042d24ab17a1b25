"""What stands in place of steps that leave: one stub for each stretch of them, or one for each page
where messages must stay. A stub says what left, when, what it was about, what was done, and the
call that brings it back."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hotset.nouns.knobs import FormKnobs, Knobs
from hotset.nouns.page import Kind
from hotset.nouns.window import WHOLE, Cause, Form, Line, Shown, Spot, Stub
from hotset.text.clip import clip
from hotset.window.arguments import ArgumentUse, arguments, names_path, spoken
from hotset.window.moment import Moment, no_bound
from hotset.window.names import coined_names, distinct_names, words_within
from hotset.window.preview.opaque import is_opaque
from hotset.window.preview.trouble import alarms, is_trouble
from hotset.window.step_sizes import Step, Weighed
from hotset.window.summary import summaries_within

_CHARS_PER_TOKEN = 4


@dataclass(slots=True)
class Departure:
    """What leaves with one plan."""

    cause: Cause | None = None
    rows: list[Shown] = field(default_factory=list)
    stubs: list[Stub] = field(default_factory=list)


def leave(
    weighed: Weighed, leaving: Sequence[Step], knobs: Knobs, moment: Moment, cause: Cause
) -> Departure:
    """Steps, in the order of the conversation, leave."""
    departure = Departure(cause)
    for run in _runs(leaving):
        if run[0].sticky:
            for spot, tokens in weighed.stubbable(run[0]):
                _stub_page(departure, _Page.of(weighed, run[0], spot, tokens), knobs, moment)
        else:
            _collapse(departure, weighed, run, knobs, moment)
    return departure


def mend(weighed: Weighed, knobs: Knobs, moment: Moment) -> tuple[Weighed, Departure]:
    """The conversation after its client changed what had left, and the stubs that are made anew for
    that.

    A step of which a part has left comes back whole: its call and its result are sent together or
    not at all. A stub tells of the steps that stand behind it: where some of them are no more, it
    is made anew from the others.
    """
    runs, partly = _left(weighed)
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
        for some in _runs(run):
            if not some[0].sticky:
                _collapse(departure, whole, some, knobs, moment)
    return whole.after(departure.rows), departure


def _left(weighed: Weighed) -> tuple[list[list[Step]], list[Step]]:
    """The runs of steps that left, each up to the stub of the next; and the steps of which only a
    part did."""
    runs: list[list[Step]] = []
    partly: list[Step] = []
    for step in weighed.steps:
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


def _is_intact(weighed: Weighed, run: Sequence[Step]) -> bool:
    """Does one stub stand in front, and does it tell of these steps and no others?"""
    lines = weighed.lines[run[0].first : run[-1].last + 1]
    rows = {row.spot: row.text for line in lines if (row := weighed.gone(line)) is not None}
    first, *others = rows.values()
    return not any(others) and tells_of(first.decode("utf-8", "replace"), tuple(rows))


def fold(departure: Departure, weighed: Weighed, knobs: Knobs, moment: Moment) -> None:
    """Where logs have come to fill the window, the older ones are folded: enough of them for a long
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
            lambda told: folded_log(told, knobs.forms.folded_share),
        )


def squeeze(departure: Departure, weighed: Weighed, knobs: Knobs, moment: Moment) -> None:
    """Where the window would still overflow: all logs shrink to their reference, then the largest
    late results leave too."""
    after, room = weighed.after(departure.rows), moment.room(knobs)
    if after.total <= room:
        return
    logs = [(line, row) for line in weighed.lines if (row := after.gone(line)) is not None]
    over = after.total - room - _shrink(departure, logs, after.total - room, moment, bare_reference)
    late = [
        _Page.of(weighed, step, spot, tokens)
        for step in weighed.steps
        if after.is_resident(step)
        for spot, tokens in after.stubbable(step)
    ]
    for page in sorted(late, key=lambda page: -page.tokens):
        if over <= 0:
            return
        over -= _stub_page(departure, page, knobs, moment)


def _shrink(
    departure: Departure,
    logs: Sequence[tuple[Line, Shown]],
    much: float,
    moment: Moment,
    shorter: Callable[[str], str],
) -> float:
    """The oldest logs become shorter, until that has saved so much; tells how many tokens it did
    save."""
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


@dataclass(frozen=True, slots=True)
class _Page:
    """A result at its place, as it is shown."""

    step: int
    spot: Spot
    line: Line
    tokens: int

    @classmethod
    def of(cls, weighed: Weighed, step: Step, spot: Spot, tokens: int) -> _Page:
        return cls(
            step.number,
            spot,
            next(line for line in weighed.inside(step) if line.chain == spot.chain),
            tokens,
        )


def _runs(leaving: Sequence[Step]) -> Iterator[list[Step]]:
    """Steps that stand side by side leave together; one whose messages must stay is alone."""
    run: list[Step] = []
    for step in leaving:
        if run and (step.sticky or run[-1].sticky or step.first != run[-1].last + 1):
            yield run
            run = []
        run.append(step)
    if run:
        yield run


def _collapse(
    departure: Departure, weighed: Weighed, run: Sequence[Step], knobs: Knobs, moment: Moment
) -> None:
    assert departure.cause is not None
    first, last = run[0], run[-1]
    lines = weighed.lines[first.first : last.last + 1]
    spots = list(
        dict.fromkeys(Spot(line.chain, WHOLE) for line in lines)
    )  # reasoning items that say the same have one chain
    stub = stub_of(
        spots, lines, (first.number, last.number), "conversation", forms=knobs.forms, moment=moment
    )
    before = sum(map(weighed.of, run))
    summary = summaries_within(
        moment.summaries,
        first.number,
        last.number,
        int(knobs.forms.summary_share * _CHARS_PER_TOKEN * before),
    )
    log = log_entries(((step.number, weighed.inside(step)) for step in run), knobs, moment.check)
    for told in (stretch_text(stub, log, summary), reference(stub)):
        text = told.encode("utf-8", "replace")
        tokens = moment.count(text) + lines[0].extra
        if tokens < before:
            break
    else:  # so little that even its reference would be longer
        return
    wholes = {Spot(line.chain, WHOLE): line.whole for line in lines}
    forms = [(text, tokens), *((b"", 0) for _ in spots[1:])]
    departure.stubs.append(stub)
    departure.rows += [
        Shown(spot, Form.GONE, said, weight, wholes[spot], departure.cause, moment.now)
        for spot, (said, weight) in zip(spots, forms, strict=True)
    ]


def _stub_page(departure: Departure, page: _Page, knobs: Knobs, moment: Moment) -> int:
    """A result becomes its reference; tells how many tokens that saves."""
    assert departure.cause is not None
    piece = page.line.pieces[page.spot.position]
    alone = Line(page.line.chain, page.line.role, (piece,))
    stub = stub_of(
        [page.spot],
        [alone],
        (page.step, page.step),
        str(piece.kind),
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


_PAGE_READ = 60_000
"""Bytes of one page that are looked at."""

_OPEN_TASK = re.compile(r"^\s*[-*] \[ \] .+$", re.MULTILINE)
_A_LIST = 2

_LOOKED_AT = 600  # characters of a line that may report an error
_ENTITIES_ROOM = 80  # characters of names that a reference tells beside its topics
_HINTS_ROOM = 60
_FILE = re.compile(r"[\w./-]*[./][a-z_]\w*")  # a file or module may be called after errors
_HEADING = "Done there, by reply number:"
_NAMED = "Names there:"
_NAMED_BEFORE = "Names that came up there:"
"""The same in logs of earlier versions."""
_CALLED_WEIGHS = 4
"""How much more a name counts that a call used than one that a result mentioned: it was acted
upon."""


def stub_of(
    spots: Sequence[Spot],
    lines: Sequence[Line],
    turns: tuple[int, int],
    kind: str,
    *,
    forms: FormKnobs,
    moment: Moment,
) -> Stub:
    """What is known of lines that leave together."""
    paths, others, called = _commonest(lines, moment.check)
    topics = (paths + others)[: forms.topics]
    return Stub(
        id=_id(spots),
        kind=kind,
        spots=tuple(spots),
        turns=turns,
        tokens=sum(line.whole for line in lines),
        time=moment.now,
        topics=tuple(topics),
        entities=tuple((paths + others)[: forms.entities]),
        hints=tuple([name for name in called if name not in topics][: forms.hints]),
    )


def reference(stub: Stub) -> str:
    """One line, as the model sees it: of hints and entities, those that the topics do not tell."""
    first, last = stub.turns
    count = last - first + 1
    when = f" @ {datetime.fromtimestamp(stub.time, UTC):%Y-%m-%d %H:%M}" if stub.time else ""
    turns = f"turns {first}-{last}" if count > 1 else f"turn {first}"
    hints = words_within(_not_in(stub.hints, stub.topics), _HINTS_ROOM)
    entities = words_within(_not_in(stub.entities, (*stub.topics, *hints)), _ENTITIES_ROOM)
    about = "".join(
        f" | {label}: {', '.join(told)}"
        for label, told in (("Topics", stub.topics), ("Entities", entities), ("Ask for", hints))
        if told
    )
    return (
        f"[CTX-REF:{stub.kind} | {turns}, {count} {'turns' if count > 1 else 'turn'} "
        f"({stub.tokens:,} tokens){when}{about}"
        f' | retrieve_context(id="{stub.id}")]'
    )


def tells_of(told: str, spots: Sequence[Spot]) -> bool:
    """Does this stand in place of these pages, and of no others?"""
    return bare_reference(told).endswith(f'retrieve_context(id="{_id(spots)}")]')


def _not_in(words: Iterable[str], told: Iterable[str]) -> list[str]:
    """Those that stand in nothing that is told already."""
    known = " ".join(told)
    return [word for word in words if word not in known]


def stretch_text(stub: Stub, log: Iterable[str], summary: str = "") -> str:
    """What stands in place of a stretch of work: the reference, a summary where there is one, and
    what was done."""
    told = [reference(stub)]
    if summary:
        told.append(summary)
    return "\n".join([*told, _HEADING, *log])


def folded_log(told: str, share: float) -> str:
    """A log when there are too many: its reference and the names in it, up to a share of its
    length; then its reference."""
    head, _, log = told.partition("\n")
    if log.startswith((_NAMED, _NAMED_BEFORE)):
        return head
    kept = words_within(_ranked(Counter(coined_names(log))), int(share * len(log)))
    return f"{head}\n{_NAMED} {' '.join(kept)}" if kept else head


def bare_reference(told: str) -> str:
    """The reference alone."""
    return told.partition("\n")[0]


def log_entries(
    steps: Iterable[tuple[int, Sequence[Line]]], knobs: Knobs, check: Callable[[], None] = no_bound
) -> Iterator[str]:
    """The log of steps that leave together: for each its number, what the model said and called,
    and how it went.

    The arguments of calls stand as they were written, because later calls repeat them more than
    anything else. A name that was told once is not told again.
    """
    told: set[str] = set()
    for number, lines in steps:
        check()
        text = "\n".join(_entry(number, lines, knobs, told))
        told.update(coined_names(text))
        yield text


def _entry(number: int, lines: Sequence[Line], knobs: Knobs, told: set[str]) -> Iterator[str]:
    pieces = [piece for line in lines for piece in line.pieces]
    calls = [piece for piece in pieces if piece.kind.family is Kind.TOOL_CALL]
    said = next(
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
        for part in (f"{number}.", clip(said, knobs.said if calls else 2 * knobs.entry), tools)
        if part
    )
    for piece in calls:
        for argument in arguments(piece.content):
            yield from _argument(
                argument.text.strip(), _room(argument.use, knobs), knobs.forms, told
            )
    files = {piece.call for piece in calls if names_path(piece.content)}
    for line in lines:
        if line.answers:
            yield from _results(line, knobs, files, told)


def _room(use: ArgumentUse, knobs: Knobs) -> int:
    return {
        ArgumentUse.SAID: knobs.entry,
        ArgumentUse.WRITTEN: max(knobs.entry, knobs.room_for_written),
        ArgumentUse.REPLACED: knobs.forms.replaced,
    }[use]


def _argument(leaf: str, room: int, forms: FormKnobs, told: set[str]) -> Iterator[str]:
    """An argument as it was written; of a long one its beginning, in whole lines, its open tasks,
    and the names in the rest."""
    if len(leaf) <= room:
        if leaf:
            yield leaf
        return
    head = _beginning(leaf, room // 2)
    yield f"{head} …"
    yield from _tasks(leaf[len(head) :], forms, told)
    rest = Counter(name for name in coined_names(leaf[len(head) :]) if name not in told)
    if mentioned := words_within(distinct_names(rest, head), room // 2):
        told.update(mentioned)
        yield f"… {' '.join(mentioned)}"


def _beginning(text: str, room: int) -> str:
    cut = text.rfind("\n", 0, room)
    return text[: cut if cut > room // 2 else room].rstrip()


def _tasks(text: str, forms: FormKnobs, told: set[str]) -> Iterator[str]:
    """What a list says is still to be done: it is what the work goes on with, and each item is
    copied when it is ticked off."""
    tasks = [
        task for task in dict.fromkeys(map(str.strip, _OPEN_TASK.findall(text))) if task not in told
    ]
    if len(tasks) >= _A_LIST:
        kept = words_within(tasks, forms.tasks)
        told.update(kept)
        yield from kept


def _results(line: Line, knobs: Knobs, files: Container[str], told: set[str]) -> Iterator[str]:
    for piece in line.pieces:
        if piece.kind is Kind.IMAGE:
            yield "-> image"
        elif piece.is_result:
            text = piece.content[:_PAGE_READ].decode("utf-8", "replace")
            if went := _error(text):
                yield f"-> {clip(went, knobs.entry)}"
            yield from _tasks(text, knobs.forms, told)
            read = piece.kind is Kind.FILE and piece.call in files
            room = max(knobs.mentions, knobs.room_for_read) if read else knobs.mentions
            if found := _mentioned(text, room, told):
                told.update(found)
                yield f"-> {' '.join(found)}"


def _mentioned(text: str, room: int, told: set[str]) -> list[str]:
    """The names of a result that no line above has told: those that come up most."""
    if not room or is_opaque(text.split("\n")):
        return []
    return words_within(
        _ranked(
            distinct_names(Counter(name for name in coined_names(text) if name not in told), "")
        ),
        room,
    )


def _error(text: str) -> str:
    """The first line that reports a failure."""
    lines = text.splitlines()
    found = (
        lines[at] for at in alarms(lines) if is_trouble(_FILE.sub(" ", lines[at][:_LOOKED_AT]))
    )
    return next((" ".join(line.split()) for line in found), "")


def _commonest(
    lines: Sequence[Line], check: Callable[[], None]
) -> tuple[list[str], list[str], list[str]]:
    """Paths, other names, and the names that calls used, each the most frequent first; of those
    alike, one."""
    found: Counter[str] = Counter()
    called: Counter[str] = Counter()
    for line in lines:
        check()
        for piece in line.pieces:
            if piece.kind in (Kind.IMAGE, Kind.THINKING):
                continue
            if piece.kind.family is Kind.TOOL_CALL:
                called.update(coined_names(spoken(piece.content)))
            else:
                found.update(coined_names(piece.content[:_PAGE_READ].decode("utf-8", "replace")))
    for name, count in called.items():
        found[name] += _CALLED_WEIGHS * count
    ranked = [name.partition(" ")[0] for name in _ranked(distinct_names(found, ""))]
    return (
        [name for name in ranked if "/" in name],
        [name for name in ranked if "/" not in name],
        _ranked(called),
    )


def _ranked(counts: Mapping[str, int]) -> list[str]:
    return [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def _one_line(content: bytes) -> str:
    return " ".join(content.decode("utf-8", "replace").split())


def _id(spots: Sequence[Spot]) -> str:
    """The same pages get the same name, on any machine."""
    told = "\n".join(f"{spot.chain}:{spot.position}" for spot in spots)
    return "r" + hashlib.sha256(told.encode()).hexdigest()[:11]
