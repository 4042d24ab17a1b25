"""Recorded sessions as occasions to prefetch: what the index would have found at each prompt, and
what became of it."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from hotset.index.embed.table import WordVectors
from hotset.index.local import LocalIndex
from hotset.index.port import Index
from hotset.nouns.knobs import Knobs, Prefetch
from hotset.nouns.message import Usage
from hotset.nouns.page import Kind, Page, PageId, Role, SessionId, digest
from hotset.nouns.search import Entry, EntryId, Hits, IndexHit, Query, Sort
from hotset.nouns.window import Line, Piece
from hotset.replay.conversation import RecordedConversation, TextUnits, split_conversations
from hotset.replay.formats import read
from hotset.replay.measure import Figures, StudiedConversation, measure
from hotset.replay.policies import PlannedShowing, Rules, text_of
from hotset.replay.report import Ruling
from hotset.tokens import count
from hotset.window.arguments import spoken
from hotset.window.names import names
from hotset.window.page_text import page_stretches as stretches_of, page_title as title, path_in
from hotset.window.prefetch import (
    WITHIN,
    Prompt,
    Signs,
    asked_in,
    closeness_to_prompt,
    found_by_both,
    is_file,
    is_in_window,
    queries,
    weigh,
)
from hotset.window.price import units

_PATIENT = Prefetch(seconds=10.0)  # of a search: nothing waits for it here
_ASKING = 60  # tokens of a call that reads a file
_SLICE = 2000  # tokens that a fault brings back
_NUMBERED = re.compile(r"^\s*(\d+)(?:→|\t|:|\|)", re.MULTILINE)
_SHOWS = re.compile(
    r"(?:^|&&|;)\s*(?:cat|nl(?: -ba)?|head(?: -n ?(?P<head>\d+))?)\s+[\w./-]+"
    r"(?:\s*\|\s*sed -n '(?P<first>\d+)(?:,(?P<last>\d+))?p')?"
    r"|(?:^|&&|;)\s*sed -n '(?P<first2>\d+)(?:,(?P<last2>\d+))?p'"
)
_OLD = ("old_string", "old_str", "oldText", "edits", "old")


@dataclass(frozen=True, slots=True)
class Find:
    """Something that could have been offered."""

    path: str
    signs: Signs
    cosine: float
    fit: float
    """How well it answers the prompt, beside others of its file."""
    is_file: bool
    time: float
    tokens: int
    """Of the excerpt."""
    used: bool
    """One of the next actions copies from it what stands nowhere else in what the model sees."""
    lines: bool
    """One of them reads or edits these very lines."""
    file: bool
    """One of them reads or edits that file."""
    still: float | None
    """The share of its lines that the file still has, where one of them reads all of it."""
    carried: float
    """What it costs to send it once and to carry it to the end of its conversation, for a token of
    it; 1 is an uncached token."""
    saves: float
    """What the calls would have cost that are not needed when it is there."""
    saves_tokens: int
    """The tokens of these calls' prompts and results."""


@dataclass(frozen=True, slots=True)
class Case:
    """One prompt."""

    set: str
    finds: tuple[Find, ...]
    resident: int
    """How many finds stood in the window already."""


@dataclass(slots=True)
class Set:
    """A set, gone through."""

    cases: list[Case] = field(default_factory=list)
    cost: float = 0.0
    """Of all its sessions under our own policy, faults paid, nothing prefetched."""
    tokens: int = 0
    """Of all prompts."""


def study(name: str, file: Path, ruling: Ruling) -> Set:
    """At each prompt the index holds what earlier sessions and the earlier part of this one said,
    and nothing later."""
    sessions = sorted(
        read([file]), key=lambda session: next((m.time for m in session.messages if m.time), 0.0)
    )
    studied, figures = Set(), Figures()
    folder = Path(tempfile.mkdtemp(prefix="hotset-prefetch-"))
    try:
        with LocalIndex(folder / "index", WordVectors(), folds=False) as index:
            for session in sessions:
                memory = _Memory(session.id, index)
                for conversation in split_conversations(session):
                    rules = ruling.rules(conversation.model)
                    studied.cases.extend(_cases(name, conversation, memory, rules))
                    measure(
                        StudiedConversation.of(conversation),
                        policy_of(conversation, rules),
                        rules,
                        figures,
                        lambda: 0.0,
                    )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    studied.cost, studied.tokens = figures.cost + figures.fault_cost, figures.prompt
    return studied


@dataclass(slots=True)
class _Memory:
    """What was said so far in this session goes into the index, as the proxy's own source puts it
    there."""

    session: str
    index: Index
    time: float = 0.0
    paths: dict[str, str] = field(default_factory=dict)
    waiting: list[Entry] = field(default_factory=list)

    def take(self, line: Line) -> None:
        self.time = line.time or self.time
        for position, piece in enumerate(line.pieces):
            if piece.kind.family is Kind.TOOL_CALL:
                self.paths[piece.call] = path_in(piece.content)
            self.waiting.extend(self._entries(line, position, piece))

    def fold(self) -> None:
        self.index.add(self.waiting)
        self.waiting = []
        self.index.fold()

    def _entries(self, line: Line, position: int, piece: Piece) -> Iterator[Entry]:
        page = _page(self.session, line, position, piece, self.time)
        path = self.paths.get(piece.call, "") if piece.call else ""
        for number, stretch in enumerate(stretches_of(page, piece.content)):
            yield Entry(
                id=EntryId(f"{page.id}-{number}"),
                whole=page.id,
                sort=Sort.PAGE,
                text=stretch.text,
                kind=str(page.kind),
                title=title(page, path),
                session=self.session,
                turn=line.turn,
                time=self.time,
                path=path,
                lines=stretch.lines,
            )


def _page(session: str, line: Line, position: int, piece: Piece, time: float) -> Page:
    return Page(
        id=PageId(f"{line.chain}:{position}"),
        session=SessionId(session),
        agent="",
        turn=line.turn,
        branch=0,
        kind=piece.kind,
        role=line.role,
        parent=None,
        digest=digest(piece.content),
        size=len(piece.content),
        media=piece.media,
        time=time,
        chain=line.chain,
        position=position,
        tool=piece.tool,
        call=piece.call,
    )


@dataclass(frozen=True, slots=True)
class _Act:
    """One of the next actions, with what its model sees."""

    message: int
    path: str
    args: dict[str, object]
    names: frozenset[str]
    lines: frozenset[str]
    seen: frozenset[str]
    """Names and lines that stand in what the model sees."""
    prompt: int
    """Tokens of that."""
    result: int | None
    """The message that answers it, where it reads a file."""
    later: int
    """Calls of the conversation that follow it."""

    @property
    def needs(self) -> frozenset[str]:
        return self.names | self.lines


def _cases(
    name: str, conversation: RecordedConversation, memory: _Memory, rules: Rules
) -> Iterator[Case]:
    policy = policy_of(conversation, rules)
    said = [TextUnits.of(text_of(line)) for line in conversation.lines]
    for index, line in enumerate(conversation.lines):
        behind = conversation.lines[index + 1 : index + 2]
        asks = line.role is Role.USER and bool(behind) and behind[0].role is Role.ASSISTANT
        prompt = asked_in(text_of(line)) if asks else ""
        if not prompt.strip():
            memory.take(line)
            continue
        memory.fold()
        asked = Prompt(prompt, line.time or memory.time)
        found = [
            memory.index.search(_before(query, asked.time)) for query in queries(asked, _PATIENT)
        ]
        yield _case(name, _Occasion(conversation, index, policy, said, rules), asked, found)
        memory.take(line)
    memory.fold()


def case_of_prompt(
    conversation: RecordedConversation, index: int, prompt: str, project: Index, rules: Rules
) -> Case:
    """The message with that number, whose prompt is this, with what the index of a project has for
    it."""
    said = [TextUnits.of(text_of(line)) for line in conversation.lines]
    asked = Prompt(prompt, conversation.lines[index].time)
    found = [project.search(query) for query in queries(asked, _PATIENT)]
    return _case(
        conversation.set,
        _Occasion(conversation, index, policy_of(conversation, rules), said, rules),
        asked,
        found,
    )


@dataclass(frozen=True, slots=True)
class _Occasion:
    """A prompt in its conversation."""

    conversation: RecordedConversation
    index: int
    policy: PlannedShowing
    said: Sequence[TextUnits]
    rules: Rules


def _case(name: str, at: _Occasion, asked: Prompt, found: Sequence[Hits]) -> Case:
    window = [block.text for block in at.policy.show(at.index + 1, asked.time, 0)[: at.index + 1]]
    acts = list(_acts(at.conversation, at.policy, at.index))
    every = [(hit, told) for hit, told in weigh(asked, found) if found_by_both(hit)]
    free = [(hit, told) for hit, told in every if not is_in_window(hit.entry.text, window)]
    later = sum(call > at.index for call in at.conversation.calls)
    carried = at.rules.price.write + at.rules.price.read * (later - 1)
    finds = tuple(_find(each, acts, at.said, carried, at.rules) for each in free)
    return Case(name, finds, len(every) - len(finds))


def _before(query: Query, now: float) -> Query:
    return replace(query, only=replace(query.only, until=now))


def policy_of(conversation: RecordedConversation, rules: Rules) -> PlannedShowing:
    return PlannedShowing(
        conversation, msgspec.structs.replace(Knobs(), window=rules.window), rules.price
    )


def _acts(conversation: RecordedConversation, policy: PlannedShowing, after: int) -> Iterator[_Act]:
    answers = {
        piece.call: at
        for at, line in enumerate(conversation.lines)
        for piece in line.pieces
        if line.role is Role.TOOL
    }
    left = WITHIN
    for at in range(after + 1, len(conversation.lines)):
        line = conversation.lines[at]
        calls = [piece for piece in line.pieces if piece.kind.family is Kind.TOOL_CALL][:left]
        if not calls:
            continue
        blocks = policy.show(at, line.time, 0)[:at]
        seen = frozenset().union(*(block.units.names | block.units.lines for block in blocks))
        for piece in calls:
            words = spoken(piece.content)
            answer = answers.get(piece.call)
            shown = command_lines(piece.content)
            reads = answer is not None and (
                conversation.lines[answer].pieces[0].kind is Kind.FILE or shown is not None
            )
            yield _Act(
                message=at,
                path=path_in(piece.content),
                args=_object(piece.content) if shown is None else shown,
                names=frozenset(names(words)),
                lines=TextUnits.of(words).lines,
                seen=seen,
                prompt=conversation.fixed + sum(block.tokens for block in blocks),
                result=answer if reads else None,
                later=sum(call > at for call in conversation.calls),
            )
        left -= len(calls)
        if left <= 0:
            return


def _find(
    found: tuple[IndexHit, Signs],
    acts: Sequence[_Act],
    said: Sequence[TextUnits],
    carried: float,
    rules: Rules,
) -> Find:
    (hit, told), entry = found, found[0].entry
    holds = TextUnits.of(entry.text)
    touching = [act for act in acts if _is_same(entry.path, act)]
    copied = [act for act in acts if any(holds.holds(need) for need in act.needs - act.seen)]
    saves, saves_tokens = _saved(entry, holds, acts, said, rules)
    return Find(
        path=entry.path,
        signs=told,
        cosine=hit.by_meaning or 0.0,
        fit=closeness_to_prompt(hit, told),
        is_file=is_file(entry),
        time=entry.time,
        tokens=count(entry.text.encode()),
        used=bool(copied),
        lines=any(_on_lines(entry, holds, act) for act in touching),
        file=bool(touching),
        still=_still(holds, touching, said),
        carried=carried,
        saves=saves,
        saves_tokens=saves_tokens,
    )


def _saved(
    entry: Entry, holds: TextUnits, acts: Sequence[_Act], said: Sequence[TextUnits], rules: Rules
) -> tuple[float, int]:
    """A call that reads the file is not needed where all that is copied from its result stands in
    the excerpt; a fault is not, where the excerpt has what an action misses."""
    price, total, tokens = rules.price, 0.0, 0
    for number, act in enumerate(acts):
        if act.result is not None and _is_same(entry.path, act):
            new = {
                n for later in acts[number + 1 :] for n in later.needs if said[act.result].holds(n)
            } - act.seen
            if new and all(holds.holds(need) for need in new):
                size = _weight(said[act.result])
                total += price.read * act.prompt + (price.write + price.read * act.later) * size
                total += units(price, Usage(output=_ASKING))
                tokens += act.prompt + size * (1 + act.later)
        missed = {
            need
            for need in act.needs - act.seen
            if any(each.holds(need) for each in said[: act.message])
        }
        if missed and all(holds.holds(need) for need in missed):
            total += (
                price.read * act.prompt + price.write * _SLICE + units(price, Usage(output=_ASKING))
            )
            tokens += act.prompt + _SLICE
    return total, tokens


def _still(holds: TextUnits, touching: Sequence[_Act], said: Sequence[TextUnits]) -> float | None:
    whole = [
        act.result
        for act in touching
        if act.result is not None and not {"offset", "limit"} & act.args.keys()
    ]
    if not whole or not holds.lines:
        return None
    return len(holds.lines & said[whole[0]].lines) / len(holds.lines)


def _weight(said: TextUnits) -> int:
    return count("\n".join(said.lines).encode())


def _is_same(path: str, act: _Act) -> bool:
    if not path:
        return False
    touched = [act.path] if act.path else [name for name in act.names if "." in name]
    return any(_ends_with(path, other) or _ends_with(other, path) for other in touched)


def _ends_with(path: str, name: str) -> bool:
    name = name.removeprefix("./")
    return path == name or path.endswith(f"/{name.lstrip('/')}")


def _on_lines(entry: Entry, holds: TextUnits, act: _Act) -> bool:
    """Does it read lines of the stretch, or edit one of them?"""
    if any(name in act.args for name in _OLD):
        return any(line in holds.lines for line in act.lines)
    first, many = act.args.get("offset"), act.args.get("limit")
    if not isinstance(first, int) and not isinstance(many, int):
        return True
    begin = first if isinstance(first, int) else 1
    end = begin + many - 1 if isinstance(many, int) else begin + 10**6
    own = [int(number) for number in _NUMBERED.findall(entry.text)]
    low, high = (own[0], own[-1]) if own else entry.lines
    return low <= end and begin <= high


def command_lines(content: bytes) -> dict[str, object] | None:
    """Which lines a bare shell command shows of a file, as a call that reads one would say it; None
    for any other."""
    command = content.decode("utf-8", "replace")
    if command.startswith("{") or "<<" in command or not (found := _SHOWS.search(command)):
        return None
    if told := found["first"] or found["first2"]:
        first, last = int(told), int(found["last"] or found["last2"] or told)
        return {"offset": first, "limit": max(1, last - first + 1)}
    return {"offset": 1, "limit": int(found["head"])} if found["head"] else {}


def _object(content: bytes) -> dict[str, object]:
    try:
        decoded = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {}
    return decoded if isinstance(decoded, dict) else {}
