"""What is sent again although the window shows it: the lines of results on recorded sessions.

    make bench-repeats

Reads the six sets of HOTSET_BENCH_DATA (default: ../shared/data) and plans every call, at the
windows of `bench/replay.py`. A line is *asked for again* if it belongs to a run of lines, 3 lines
and 240 characters at least, that an earlier result shows in the same order at that moment; line
numbers are left out of account. Looked for here without the code that decides. A pointer *dangles*
if the turn that it names does not show the lines that it stands for; all pointers of all prompts
are checked. `whole` recognises whole results only, as hotset did before; `off` recognises nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context

from msgspec import structs

from bench.replay import DATA, MARKS
from bench.results import tell
from hotset.config import listed_prices
from hotset.nouns.knobs import Knobs
from hotset.nouns.page import Role
from hotset.nouns.price import Price, Prices
from hotset.nouns.window import WHOLE, Form, PageTable, SentRequest, Shown, Spot
from hotset.replay.conversation import RecordedConversation
from hotset.replay.formats import read
from hotset.replay.report import Ruling, gather
from hotset.tokens import count
from hotset.window.plan import Moment, plan

_LINES, _CHARACTERS = 3, 240  # of a run that counts
_ALONE = 24  # characters of a line that counts by itself
_NUMBER = re.compile(r"^\s*L?\d+(?:→|\t|:|\s?[|│])\s?")
_POINTER = re.compile(r'^… lines? (\d+)(?:-(\d+))?: as in turn (\d+)( but.*?)?, from ".*" …$')
_NOTE = re.compile(r"\[hotset: lines (\d+)-\d+, shown without their numbers\]")
_NO_LINES = structs.replace(Knobs().forms, repeat=10_000_000)
_METHODS: Mapping[str, Knobs] = {
    "hotset": Knobs(),
    "whole": Knobs(forms=_NO_LINES),
    "off": Knobs(echo=False),
}


def main() -> None:
    sets: dict[str, dict[str, dict[str, float]]] = {}
    jobs = [(name, method) for name in MARKS for method in _METHODS]
    with get_context("fork").Pool(2) as pool:
        for (name, method), found in zip(jobs, pool.imap(_measure, jobs), strict=True):
            sets.setdefault(name, {})[method] = found
    for methods in sets.values():
        for figures in methods.values():
            figures["tokens_saved"] = methods["off"]["tokens_born"] - figures["tokens_born"]
    tell("repeats", sets)


def _measure(job: tuple[str, str]) -> dict[str, float]:
    name, method = job
    window = MARKS[name].window
    ruling = Ruling(Prices(listed_prices()), "anthropic", window)
    (gathered,) = gather(read([DATA / f"{name}.jsonl.gz"]), ruling)
    found: Counter[str] = Counter()
    for _, conversation in gathered.counted:
        knobs = structs.replace(_METHODS[method], window=window)
        _Replayed(conversation, knobs, ruling.rules(conversation.model).price, found).run()
    again, alone = found["again"], found["alone"]
    return {
        "results": found["results"],
        "again_lines": again,
        "not_sent_pct": 100 * (1 - found["again_sent"] / again) if again else 100.0,
        "any_line_not_sent_pct": 100 * (1 - found["alone_sent"] / alone) if alone else 100.0,
        "pointers": found["pointers"],
        "dangling": found["dangling"],
        "tokens_born": found["tokens"],
    }


@dataclass(slots=True)
class _Replayed:
    conversation: RecordedConversation
    knobs: Knobs
    price: Price
    found: Counter[str]
    rows: dict[Spot, Shown] = field(default_factory=dict)

    def run(self) -> None:
        before, sent = 0, None
        for upto in filter(None, self.conversation.calls):
            lines = self.conversation.lines[:upto]
            now = lines[-1].time
            standing = [_bare(text) for _, _, text in self._standing(before)]
            moment = Moment(now, self.price, count, self.conversation.fixed)
            made = plan(lines, PageTable(self.rows, {}, sent), (), self.knobs, moment)
            self.rows |= {row.spot: row for row in made.fresh}
            self._count_again(before, upto, standing)
            if made.fresh:
                self._check_pointers(upto)
            before, sent = upto, SentRequest(lines[-1].chain, now, made.tokens)

    def _standing(self, upto: int) -> Iterator[tuple[int, Shown | None, str]]:
        """What is shown of the results before a message: turn, form and text."""
        turn = 0
        for at, line in enumerate(self.conversation.lines[:upto]):
            is_next = at == 0 or self.conversation.lines[at - 1].role is not Role.ASSISTANT
            turn += line.role is Role.ASSISTANT and is_next
            if not line.answers or Spot(line.chain, WHOLE) in self.rows:
                continue
            for position in line.results:
                row = self.rows.get(Spot(line.chain, position))
                shown = row.text if row and row.text else line.pieces[position].content
                yield turn, row, shown.decode("utf-8", "replace")

    def _count_again(self, first: int, upto: int, standing: Sequence[Sequence[str]]) -> None:
        where: dict[str, list[tuple[int, int]]] = {}
        for number, lines in enumerate(standing):
            for at, line in enumerate(lines):
                if len(line) > 8:
                    where.setdefault(line, []).append((number, at))
        for line in self.conversation.lines[first:upto]:
            for position in line.results if line.answers else ():
                piece, row = line.pieces[position], self.rows.get(Spot(line.chain, position))
                self.found["results"] += 1
                self.found["tokens"] += row.tokens if row else piece.tokens
                text = piece.content.decode("utf-8", "replace")
                shown = row.text.decode("utf-8", "replace") if row and row.text else text
                self._count_result(_bare(text), frozenset(_bare(shown)), where, standing)

    def _count_result(
        self,
        lines: Sequence[str],
        shown: frozenset[str],
        where: Mapping[str, Sequence[tuple[int, int]]],
        standing: Sequence[Sequence[str]],
    ) -> None:
        at = 0
        while at < len(lines):
            places = where.get(lines[at], ())[-40:]
            many = max((_run(lines, at, standing[n], place) for n, place in places), default=0)
            run = lines[at : at + many]
            if many >= _LINES and sum(len(line) + 1 for line in run) >= _CHARACTERS:
                telling = [line for line in run if len(line) > 8]
                self.found["again"] += len(telling)
                self.found["again_sent"] += sum(line in shown for line in telling)
            telling = [line for line in lines[at : at + max(1, many)] if len(line) >= _ALONE]
            self.found["alone"] += sum(line in where for line in telling)
            self.found["alone_sent"] += sum(line in where and line in shown for line in telling)
            at += max(1, many)

    def _check_pointers(self, upto: int) -> None:
        standing = list(self._standing(upto))
        above: list[tuple[int, str]] = []
        contents = (
            line.pieces[position].content
            for line in self.conversation.lines[:upto]
            if line.answers and Spot(line.chain, WHOLE) not in self.rows
            for position in line.results
        )
        for (turn, row, text), content in zip(standing, contents, strict=True):
            if row is not None and row.form is Form.OVERLAP:
                own = content.decode("utf-8", "replace").split("\n")
                first = int(note[1]) - 1 if (note := _NOTE.match(text)) else 0
                lead = _lead(own) if first or note else 0
                for found in filter(None, map(_POINTER.match, text.split("\n"))):
                    low, high = int(found[1]) - 1, int(found[2] or found[1])
                    lines = own[low - first + lead : high - first + lead]
                    self.found["pointers"] += 1
                    self.found["dangling"] += not _stands(
                        lines, int(found[3]), above, masked=bool(found[4])
                    )
            above.append((turn, "\n".join(["", *_bare(text), ""])))


def _lead(lines: Sequence[str]) -> int:
    """Lines before the first that is numbered."""
    return next((at for at, line in enumerate(lines) if _NUMBER.match(line)), 0)


def _stands(
    lines: Sequence[str], turn: int, above: Sequence[tuple[int, str]], *, masked: bool
) -> bool:
    wanted = "\n".join(["", *(_NUMBER.sub("", line).strip() for line in lines), ""])
    texts = [text for of, text in above if of == turn]
    if masked:  # numbers and ids differ
        wanted = re.sub(r"\w*\d\w*", "#", wanted)
        texts = [re.sub(r"\w*\d\w*", "#", text) for text in texts]
    return bool(lines) and any(wanted in text for text in texts)


def _bare(text: str) -> list[str]:
    return [_NUMBER.sub("", line).strip() for line in text.split("\n")]


def _run(lines: Sequence[str], at: int, other: Sequence[str], place: int) -> int:
    many = 0
    while (
        at + many < len(lines)
        and place + many < len(other)
        and lines[at + many] == other[place + many]
    ):
        many += 1
    return many


if __name__ == "__main__":
    main()
