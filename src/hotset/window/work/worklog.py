"""What a stretch of work was: what was wanted, done, found, changed, decided, went wrong and is
open; and whether that work is finished.

Pure and linear in what is read: of long texts only the ends. Everything is in the words of the
conversation: nothing is concluded that is not written there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hotset.files.lru import Lru, memo
from hotset.nouns.memory import Ending
from hotset.nouns.page import Kind
from hotset.nouns.window import Line, Piece
from hotset.text.clip import clip
from hotset.text.sentences import report_sentences, without_fences
from hotset.text.terms import topic_words
from hotset.text.words import once
from hotset.window.line_numbers import own_numbers
from hotset.window.names import joined_within, names
from hotset.window.work.calls import (
    Act,
    ActKind,
    WorkPage,
    acts,
    edit_lines,
    edit_sides,
    result_verdict,
)
from hotset.window.work.decisions import SpokenText, standing_sentences
from hotset.window.work.endings import (
    PlanItems,
    has_moved_on,
    has_sealed,
    is_decision,
    plan_items,
    user_verdict,
)
from hotset.window.work.file_changes import Sides, StandingChange, changed_files, standing_changes
from hotset.window.work.mishaps import Mishap, mishaps
from hotset.window.work.prompts import PromptWords, asks_back, goes_on, prompt_words

# characters that are read at both ends of a text
_PROMPT, _RESPONSE, _RESULT = (16_000, 2_000), (8_000, 4_000), (2_000, 2_000)
_MOST_DECISIONS, _MOST_OPEN = 6, 12
_LONGEST_SIDE = 80
_SHORTEST_SENTENCE = 24
_SENTENCE_LENGTH = 240
"""Characters of a sentence; what a longer one says more is paid for with its worth."""


@dataclass(frozen=True, slots=True)
class ToolRun:
    """A command or a check, with the outcomes that it reported, oldest first."""

    command: str
    outcomes: tuple[str, ...]
    failed: tuple[bool, ...]
    """For each outcome."""
    at: int
    """The latest line in which it was called, counted from the first of the stretch."""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that was written or edited and not removed again."""

    path: str
    """As it was written in the call."""
    old: str
    """The first line that the latest edit replaced; empty if it replaced none."""
    new: str
    """The first line that it wrote; empty if unknown."""
    times: int
    at: int


@dataclass(frozen=True, slots=True)
class WorkError:
    """A failure and what resolved it."""

    kind: str
    message: str
    """The most telling line, verbatim. Outside text."""
    command: str
    """What failed."""
    resolved: tuple[str, ...]
    """What was done until it worked, in our words."""
    is_resolved: bool
    at: int


@dataclass(frozen=True, slots=True)
class KeySentence:
    """A sentence of the model that tells something."""

    text: str
    worth: float
    """High for causes, findings and outcomes with names and numbers, low for plans."""
    at: int


@dataclass(frozen=True, slots=True)
class WorkSummary:
    """What a stretch of work was. All in the order of the conversation."""

    wanted: tuple[str, ...] = ()
    """The user's own words, prompt by prompt."""
    done: tuple[ToolRun, ...] = ()
    """Commands and checks that reported an outcome."""
    files: tuple[ChangedFile, ...] = ()
    errors: tuple[WorkError, ...] = ()
    decisions: tuple[str, ...] = ()
    ticked: tuple[str, ...] = ()
    """Items of the plan that are done."""
    open: tuple[str, ...] = ()
    """Items of the plan, and of the last reply's lists, that are not."""
    reply: str = ""
    """The model's last text; empty if calls follow it."""


def read_work(lines: Sequence[Line]) -> WorkSummary:
    """What these lines did. The same lines give the same summary."""
    return WorkReading(lines).summary()


def key_sentences(lines: Sequence[Line]) -> list[KeySentence]:
    """The model's sentences with their worth, each once; later ones are worth more."""
    replies = [
        (at, text)
        for at, line in enumerate(lines)
        for piece in line.pieces
        if piece.kind is Kind.RESPONSE and (text := _ends(piece.content, *_RESPONSE)).strip()
    ]
    found: dict[str, KeySentence] = {}
    for place, (at, reply) in enumerate(replies):
        late = (place + 1) / len(replies)  # later findings correct earlier ones
        for text in report_sentences(reply):
            if len(text) >= _SHORTEST_SENTENCE and not text.endswith((":", "?")):
                found.setdefault(text, KeySentence(text, sentence_worth(text) + late, at))
    return list(found.values())


def is_finished(lines: Sequence[Line], following: Sequence[Line]) -> bool:
    """True if the work of `lines` is done, seen from what follows it.

    Finished by the user: content, or having it committed, or on to something else; not with a
    complaint, an interruption, or the answer to a question. Finished by the agent, where the user
    has not spoken: a plan without open items or with one more ticked off, or a check that passed
    after the last change, and work on other files since.
    """
    reading = _read_once(lines) if following else WorkReading(lines)
    if not reading.acts:
        return _has_moved_on(reading, following)
    prompt = _next_prompt(following)
    if prompt is not None:
        return _is_settled_by(prompt, reading)
    return reading.ends_by_plan() or (reading.is_green() and _works_elsewhere(reading, following))


def finished_work(lines: Sequence[Line]) -> list[tuple[int, int]]:
    """The pieces of finished work in a conversation, as index ranges `lines[first:end]`.

    A piece begins with a prompt or behind a call that ticked off an item of the plan. Neighbours
    that are finished stay apart: each is one piece of work.
    """
    cuts = _cuts(lines)
    return [
        (first, end) for first, end in pairwise(cuts) if is_finished(lines[first:end], lines[end:])
    ]


def _read_once(lines: Sequence[Line]) -> WorkReading:
    """The reading of a stretch that is over: every plan of its session asks for it again."""
    key = tuple(map(id, lines))
    known = _read.get(key)
    if known is None:
        known = tuple(lines), WorkReading(lines)  # the lines too, so that no other gets their ids
        size = sum(len(piece.content) for line in lines for piece in line.pieces)
        _read.put(key, known, size + _AROUND * len(lines))
    return known[1]


class WorkReading:
    """A stretch of work as it is read: its pages and the calls among them."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.places: list[int] = []
        """The line of each page."""
        self.pages: list[WorkPage] = []
        self._lines = lines
        for at, line in enumerate(lines):
            for piece in line.pieces:
                if (page := _page(piece, answers=line.answers)) is not None:
                    self.places.append(at)
                    self.pages.append(page)
        self.acts = acts(self.pages)

    def summary(self) -> WorkSummary:
        failed = mishaps(self.acts)
        plan = self.plan()
        red = [_open_error(each) for each in failed if each.by is None and _is_check(each.failed)]
        return WorkSummary(
            wanted=tuple(text for _, text in self.prompts()),
            done=tuple(self._runs()),
            files=self.files(),
            errors=tuple(self._error(each) for each in failed),
            decisions=once((each.text for each in self.decided()), _MOST_DECISIONS),
            ticked=once(plan.done, _MOST_OPEN),
            open=once((*plan.open, *red), _MOST_OPEN),
            reply=self.last_reply(),
        )

    def plan(self) -> PlanItems:
        return plan_items(self._plans(), self.last_reply(), acted=bool(self.acts))

    def last_reply(self) -> str:
        """The model's last text; empty if calls follow it."""
        for page in reversed(self.pages):
            if page.kind is Kind.RESPONSE and page.text.strip():
                return page.text
            if page.kind is not Kind.PROMPT:
                return ""
        return ""

    def ends_by_plan(self) -> bool:
        """True if its last plan ticked off an item, or all, and nothing was changed since."""
        plans = self._plans()
        if not plans or self._last(ActKind.EDIT) > self._last(ActKind.PLAN):
            return False
        last = plan_items(plans[-1:], "", acted=False)
        before = plan_items(plans[:-1], "", acted=False)
        return bool(last.done) and (not last.open or len(last.done) > len(before.done))

    def is_green(self) -> bool:
        """True if a check passed after the last change, and none failed since."""
        checks = [act for act in self.acts if _is_check(act) and act.answered]
        return bool(checks) and checks[-1].passed and checks[-1].place > self._last(ActKind.EDIT)

    def is_red(self) -> bool:
        """True if the last check failed and nothing was changed since."""
        checks = [act for act in self.acts if _is_check(act) and act.answered]
        return bool(checks) and checks[-1].failed and checks[-1].place > self._last(ActKind.EDIT)

    def has_sealed(self) -> bool:
        """True if the user had the work committed, pushed or merged, and nothing failed at its
        end."""
        return any(has_sealed(text) for _, text in self.prompts()) and not self.acts[-1].failed

    def file_names(self) -> frozenset[str]:
        """The names of the files that were changed."""
        return frozenset(path.rsplit("/", 1)[-1] for path in changed_files(self.acts))

    def words(self) -> frozenset[str]:
        """The telling words of its prompts, calls and the heads of its replies."""
        texts = (
            page.text[:_HEAD]
            for page in self.pages
            if page.kind in (Kind.PROMPT, Kind.RESPONSE) or page.kind.family is Kind.TOOL_CALL
        )
        return frozenset().union(*map(_topic_words, texts))

    def _last(self, doing: ActKind) -> int:
        return max(
            (act.place for act in self.acts if act.doing is doing and not act.verdict.failed),
            default=-1,
        )

    def _plans(self) -> list[str]:
        """The calls that set a plan; one that was refused set none."""
        return [
            self.pages[act.place].text
            for act in self.acts
            if act.doing is ActKind.PLAN
            and not (act.answered and result_verdict(self._result(act), shell=False).failed)
        ]

    def _result(self, act: Act) -> str:
        return self.pages[act.result_place].text

    def prompts(self) -> Iterator[tuple[int, str]]:
        """The user's own words, each with its line."""
        for at, page in zip(self.places, self.pages, strict=True):
            if page.kind is Kind.PROMPT and (text := prompt_words(page.text).text):
                yield at, text

    def _runs(self) -> Iterator[ToolRun]:
        runs: dict[str, list[tuple[Act, str]]] = {}
        for act in self.acts:
            outcome = self._outcome(act)
            if outcome:
                runs.setdefault(called(act), []).append((act, outcome))
        for command, outcomes in runs.items():
            yield ToolRun(
                command,
                tuple(text for _, text in outcomes),
                tuple(act.failed for act, _ in outcomes),
                self.places[outcomes[-1][0].place],
            )

    def _outcome(self, act: Act) -> str:
        """The line of a result that says how it went; empty if none does."""
        if not act.answered or act.doing in (ActKind.PLAN, ActKind.READ, ActKind.EDIT):
            return act.verdict.message if act.failed and act.doing is ActKind.EDIT else ""
        text = self.pages[act.result_place].text
        return counted_line(text) or (act.verdict.message if act.failed else "")

    def changes(self) -> tuple[StandingChange, ...]:
        """The files that were changed, with the edits that stand."""
        return standing_changes(self.acts, self._sides)

    def _sides(self, act: Act, path: str) -> Sides:
        gone, came = edit_lines(self.pages[act.place].text, path)
        return tuple(gone), tuple(came)

    def files(self) -> tuple[ChangedFile, ...]:
        """The same, each with the first line that its latest edit changed."""
        found: list[ChangedFile] = []
        for each in self.changes():
            last = each.edits[-1].place
            old, new = edit_sides(self.pages[last].text)
            found.append(
                ChangedFile(
                    each.path,
                    old[:_LONGEST_SIDE],
                    new[:_LONGEST_SIDE],
                    len(each.edits),
                    self.places[last],
                )
            )
        return tuple(found)

    def _error(self, mishap: Mishap) -> WorkError:
        failed = mishap.failed
        return WorkError(
            failed.verdict.kind,
            failed.verdict.message,
            called(failed),
            mishap.resolved,
            mishap.by is not None,
            self.places[failed.place],
        )

    def decided(self) -> list[SpokenText]:
        """Sentences of the user and the model that decide something, and that still stand."""
        return standing_sentences(self._spoken(), is_decision, _decides, self.is_repeated)

    def said_by_user(self, mentions: Callable[[str], bool]) -> list[SpokenText]:
        """The user's own sentences of this sort that still stand."""
        own = (each for each in self._spoken() if each.is_user)
        return standing_sentences(own, mentions, mentions, self.is_repeated)

    def _spoken(self) -> Iterator[SpokenText]:
        for at, page in zip(self.places, self.pages, strict=True):
            if page.kind is Kind.PROMPT:
                yield SpokenText(at, prompt_words(page.text).text, is_user=True)
            elif page.kind is Kind.RESPONSE:
                yield SpokenText(at, page.text, is_user=False)

    def is_repeated(self, sentence: SpokenText) -> bool:
        """True if a result before this sentence has its words, however its lines are broken."""
        words = _WORD.findall(sentence.text)
        if not words:
            return False
        sign = max(words, key=len).encode()
        wanted = f" {' '.join(words).lower()} "
        return any(
            sign in piece.content and wanted in _folded(piece.content)
            for line in self._lines[: sentence.at]
            for piece in line.pieces
            if piece.is_result
        )


_WORD = re.compile(r"\w+")


def _folded(content: bytes) -> str:
    """The words of a result in one line, without signs and line numbers."""
    lines = content.decode("utf-8", "replace").splitlines()
    numbering = own_numbers(lines)
    bare = "\n".join(numbering.bare if numbering is not None else lines)
    return f" {' '.join(_WORD.findall(bare)).lower()} "


def _decides(sentence: str) -> bool:
    return is_decision(sentence) and not _TALK.match(sentence)


_COUNTED = re.compile(
    r"(?<![\w.])\d+ "
    r"(?:pass(?:ed)?|fail(?:ed)?|passing|failing|errors?|problems?|skipped|tests?)\b|^Tests?:"
    r"|^test result:|^Ran \d+"
    r"|^All checks passed|^(?:ok|FAIL)\s",
)
_BANNER = re.compile(
    r"[>$+] |(?:running|collecting|collected|found|executing) \d+ (?:test|item)", re.IGNORECASE
)
"""What a run begins with: a script's name and version, how many tests there are."""
_NOTHING_RAN = re.compile(r"\[?no tests? (?:to run|files)\]?")
_SHORT_COUNT = re.compile(r"\d+ (?:pass|fail)$")  # of bun, one a line, above how many there were
_EDGE = 20  # lines at either end of an output, where the outcome is reported
_LONGEST_LINE = 240


def counted_line(text: str) -> str:
    """The last line that counts tests, errors or problems, near either end of an output. If
    nothing ran: that line, and its count."""
    lines = text.splitlines()
    edges = lines if len(lines) <= 2 * _EDGE else [*lines[:_EDGE], *lines[-_EDGE:]]
    plain = (" ".join(line[:_LONGEST_LINE].split()).strip(" =-") for line in edges)
    counted = [line for line in plain if _COUNTED.search(line) and not _BANNER.match(line)]
    ran = [line for line in counted if not _NOTHING_RAN.search(line)]
    if not ran:
        return f"no tests to run ({len(counted)} x)" if counted else ""
    short = [line for line in ran[:-1] if _SHORT_COUNT.fullmatch(line)]
    return ", ".join((*(line for line in short if not line.startswith("0 ")), ran[-1]))


_TELLING = re.compile(
    r"\b(?:because|caus(?:e|es|ed)|reason|turns? "
    r"out|found|problem|bug|issue|confirm(?:s|ed)?|explains?|means|decid\w+|instead"
    r"|better|fix(?:es|ed)?|fails?|failed|wrong|missing|only|never|must|cannot|does not|did "
    r"not|no longer|works?|passe?[sd]?"
    r"|verified|left|remain\w*|open|todo|not yet|still)\b",
    re.IGNORECASE,
)
_TALK = re.compile(
    r"(?:now|next|first|then|let me|let['\u2019]s|I(?:['\u2019]ll| will| am going to| need "
    r"to)|I(?:['\u2019]m| am) \w+ing"
    r"|I (?:look|check|read|start|run|write))\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\b\d+\b")


def sentence_worth(sentence: str) -> float:
    """Score of a sentence: high for causes, findings and outcomes with names and numbers, low for
    plans."""
    coined = len(set(names(sentence)))
    telling = len({word.lower() for word in _TELLING.findall(sentence)})
    worth = (
        1.5 * min(2, telling)
        + min(3, coined)
        + 0.5 * bool(_NUMBER.search(sentence))
        - len(sentence) / _SENTENCE_LENGTH
    )
    return worth - 2.5 if _TALK.match(sentence) else worth


_HEAD = 400  # characters of a text that say what it is about
_SHARED = 0.34  # of a prompt's telling words; from there on it is about the same
_SOON = 12  # lines after a stretch in which other work shows


_AROUND = 2000  # bytes that objects take, for each line
_read: Lru[tuple[int, ...], tuple[tuple[Line, ...], WorkReading]] = Lru("read work", weight=8 << 20)


@memo("topic words", 2048)  # every plan looks at the same heads again
def _topic_words(text: str) -> frozenset[str]:
    return frozenset(topic_words(text))


def _page(piece: Piece, *, answers: bool) -> WorkPage | None:
    family = piece.kind.family
    if family is Kind.TOOL_CALL:
        return WorkPage(
            piece.kind, piece.content.decode("utf-8", "replace"), piece.tool, piece.call
        )
    if answers and piece.call:
        text = "" if piece.kind is Kind.IMAGE else _ends(piece.content, *_RESULT)
        kind = piece.kind if family is Kind.TOOL_RESULT else Kind.TOOL_RESULT
        return WorkPage(kind, text, piece.tool, piece.call)
    if piece.kind is Kind.PROMPT:
        return WorkPage(piece.kind, _ends(piece.content, *_PROMPT))
    if piece.kind is Kind.RESPONSE:
        return WorkPage(piece.kind, _ends(piece.content, *_RESPONSE))
    return None


def _ends(content: bytes, head: int, tail: int) -> str:
    """The text's head and tail, cut at line ends; all of it if it is short."""
    if len(content) <= head + tail:
        return content.decode("utf-8", "replace")
    first = content[:head].rpartition(b"\n")[0] or content[:head]
    last = content[-tail:].partition(b"\n")[2] or content[-tail:]
    return f"{first.decode('utf-8', 'ignore')}\n{last.decode('utf-8', 'ignore')}"


def called(act: Act) -> str:
    """A call in one line: its command, or its tool and target."""
    return act.command or f"{act.tool} {act.target}".strip()


def _is_check(act: Act) -> bool:
    return act.doing is ActKind.CHECK


def _open_error(mishap: Mishap) -> str:
    last = mishap.lately or mishap.failed
    return f"`{called(mishap.failed)}` fails with {last.verdict.kind}"


def _next_prompt(following: Sequence[Line]) -> PromptWords | None:
    """The user's next words, or that they stopped the model."""
    for line in following:
        for piece in line.pieces:
            if piece.kind is Kind.PROMPT and not piece.call:
                prompt = prompt_words(_ends(piece.content, *_PROMPT))
                if prompt.text or prompt.interrupted or prompt.summary or prompt.fresh:
                    return prompt
    return None


def _is_settled_by(prompt: PromptWords, reading: WorkReading) -> bool:
    """True if the user's next words show that the work is done."""
    if prompt.interrupted or prompt.summary:
        return False
    verdict = user_verdict(prompt.text)
    if prompt.fresh or verdict is Ending.SUCCESS or has_moved_on(prompt.text):
        return True
    reply = reading.last_reply()
    if verdict is Ending.PARTIAL or asks_back(reply) or not reply:
        return False
    if reading.has_sealed():
        return True
    return not goes_on(prompt.text) and (
        _is_about_something_else(prompt.text, reading)
        or not (reading.is_red() or reading.plan().open)
    )


def _is_about_something_else(text: str, reading: WorkReading) -> bool:
    words = set(topic_words(without_fences(text)))
    own = reading.words()
    return bool(words) and sum(word in own for word in words) < _SHARED * len(words)


def _has_moved_on(reading: WorkReading, following: Sequence[Line]) -> bool:
    """Of talk without a call: it was answered, and the user says that something else comes now. A
    prompt in other words is no sign: of six such ends that were read, none was one."""
    prompt, reply = _next_prompt(following), reading.last_reply()
    if prompt is None or prompt.interrupted or not reply or asks_back(reply):
        return False
    return prompt.fresh or has_moved_on(prompt.text)


def _works_elsewhere(reading: WorkReading, following: Sequence[Line]) -> bool:
    """True if the next calls have started and name none of the files that were changed."""
    later = WorkReading(following[:_SOON])
    named = " ".join(later.pages[act.place].text for act in later.acts)
    return bool(later.acts) and not any(name in named for name in reading.file_names())


def _cuts(lines: Sequence[Line]) -> list[int]:
    """Where pieces of work begin."""
    found: list[int] = [0] if lines else []
    ticked = 0
    for at, line in enumerate(lines):
        for piece in line.pieces:
            if piece.kind is Kind.PROMPT and not piece.call:
                if at > found[-1] and prompt_words(_ends(piece.content, *_PROMPT)).text:
                    found.append(at)
                    ticked = 0
            elif piece.kind is Kind.PLAN:
                plan = plan_items([piece.content.decode("utf-8", "replace")], "", acted=False)
                if len(plan.done) > ticked and (end := _answered(lines, at)) > found[-1]:
                    found.append(end)
                ticked = len(plan.done)
    return [at for at in found if at < len(lines)]


def _answered(lines: Sequence[Line], at: int) -> int:
    """The index behind the results of a call."""
    end = at + 1
    while end < len(lines) and lines[end].answers:
        end += 1
    return end


_CHANGED_ROOM, _OPEN_ROOM, _DECIDED_ROOM, _AFTER_ROOM = 260, 200, 160, 80
_COMMAND_ROOM, _OUTCOME_ROOM, _RUNS = 70, 110, 4


def work_lines(work: WorkSummary) -> list[str]:
    """The changed files, commands with what made them work, decisions and open items, a line
    each."""
    changed = joined_within([file.path for file in work.files], _CHANGED_ROOM)
    return [
        *([f"Changed: {changed}"] if changed else ()),
        *_run_lines(work),
        *(f"Decided: {clip(text, _DECIDED_ROOM)}" for text in work.decisions[-1:]),
        *([f"Open: {clip('; '.join(work.open), _OPEN_ROOM)}"] if work.open else ()),
    ]


def _run_lines(work: WorkSummary) -> list[str]:
    """Calls with a known outcome: those that failed first, each with what made it work."""
    after: dict[str, tuple[str, ...]] = {}
    for error in work.errors:
        if error.is_resolved:
            after[error.command] = once((*after.get(error.command, ()), *error.resolved))
    worst = sorted(work.done, key=lambda run: not any(run.failed))[:_RUNS]
    return [
        f"Ran {clip(run.command, _COMMAND_ROOM)}: {_course(run, after.get(run.command, ()))}"
        for run in work.done
        if run in worst
    ]


def _course(run: ToolRun, after: Sequence[str]) -> str:
    last = run.outcomes[-1]
    first = next((text for text, bad in zip(run.outcomes, run.failed, strict=True) if bad), last)
    done = clip(", ".join(after), _AFTER_ROOM)
    return "".join(
        (
            clip(first, _OUTCOME_ROOM),
            f"; then {done}" if done else "",
            f"; finally: {clip(last, _OUTCOME_ROOM)}" if last != first else "",
        )
    )
