"""What went wrong in a stretch of work, and what was done before it went right. Pure.

A trouble is settled when the same action works, or the same check passes: an outcome, and nobody's word. Reading what is not
there, and what a person did not allow, are no troubles.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from hotset.nouns.memory import Trouble
from hotset.sources.memory.encoding.acting import Act, Doing, shell_words
from hotset.sources.memory.encoding.general import error_key
from hotset.sources.memory.encoding.taint import quoted
from hotset.text.words import once

_LONGEST_SAID = 160
_SOON = 6  # actions within which another command counts as a try at the same
_ALIKE = 0.5  # of the words of two commands
_MOST_RESOLVED = 6
_SCRIPT = "script"
"""The family of checks that are scripts of all kinds: two of them have nothing in common."""
_BUILDS = frozenset({"build", "make"})
"""Checks that leave something behind: where nothing else was done, that was what helped."""
_NOT_THERE = re.compile(
    r"(?:no (?:module|command|such \w+)(?: named)?|not found|unknown|cannot find|could not find|does not exist|invalid)\b"
    r"[^'\"`]{0,20}['\"`(](?P<what>[\w./@:=-]{2,80})",
    re.IGNORECASE,
)
"""An error about a word: where the command says that word, the command is at fault."""
_MISUSE = re.compile(
    r"unrecognized|unknown (?:flag|option|command|argument|subcommand|shorthand)|unexpected (?:argument"
    r"|option)|command not found|no such (?:option|command)"
    r"|(?:invalid|illegal|bad) (?:option|flag|argument)|is not (?:recognized|a \w+ command)"
    r"|not a \w+ command|none of the others can be|mutually exclusive"
    r"|cannot be used with|requires? an? (?:argument|value)|missing (?:required )?(?:argument|script|option)|did you mean",
    re.IGNORECASE,
)
_LONGEST_STEP = 120


@dataclass(frozen=True, slots=True)
class Mishap:
    """An action that failed, with what became of it."""

    failed: Act
    by: Act | None = None
    """The action that worked in the end."""
    instead: bool = False
    """That was another one, in its place."""
    between: tuple[Act, ...] = ()
    """What changed something in between: edits and commands, each target once."""
    final: tuple[Act, ...] = ()
    """What changed something after the same error was seen for the last time: that resolved it, what came before did not."""
    tries: int = 1
    """How often the same error came, each time after something had been changed."""
    lately: Act | None = None
    """The same action when it failed the last time, maybe for another reason."""

    @property
    def noun(self) -> Trouble:
        return Trouble(
            kind=self.failed.verdict.kind,
            said=quoted(self.failed.verdict.said, _LONGEST_SAID),
            tool=self.failed.tool,
            target=self.failed.target,
            resolved=self.resolved,
            is_resolved=self.by is not None,
            page=self.failed.result,
        )

    @property
    def resolved(self) -> tuple[str, ...]:
        """What was done, in our words."""
        if self.by is None:
            return ()
        steps = [step(act) for act in self.between]
        if self.instead:
            steps.append(f"{step(self.by)} instead")
        return once(steps, _MOST_RESOLVED)


def mishaps(acts: Sequence[Act]) -> list[Mishap]:
    """In the order in which they happened; an action that failed several times in a row is one."""
    found: list[_Watched] = []
    waiting: list[_Watched] = []
    for number, act in enumerate(acts):
        if act.doing in (Doing.READ, Doing.PLAN):
            continue
        if act.failed:
            again = [each for each in waiting if _same(each.failed, act)]
            for each in again:
                each.fail_again(act, number, acts)
            if not again:
                watched = _Watched(act, number, number)
                found.append(watched)
                waiting.append(watched)
        elif act.passed:
            waiting = [each for each in waiting if not each.settled(act, number, acts)]
    for each in waiting:
        each.settle_by_mending(acts)
    return [Mishap(each.failed, each.by, each.instead, each.between, each.final, each.tries, each.lately) for each in found]


def step(act: Act) -> str:
    """What was done, in a few words of ours."""
    if act.doing is Doing.EDIT:
        return f"{'wrote' if act.made else 'edited'} {act.target[:_LONGEST_STEP]}"
    if act.command:
        return f"ran `{act.command[:_LONGEST_STEP].replace('`', chr(39))}`"
    return f"called {act.tool} {act.target[:_LONGEST_STEP]}".strip()


@dataclass(slots=True)
class _Watched:
    """A failure that waits for what settles it."""

    failed: Act
    number: int
    last: int
    """Where the same error was seen last."""
    by: Act | None = None
    instead: bool = False
    between: tuple[Act, ...] = field(default=())
    final: tuple[Act, ...] = field(default=())
    tries: int = 1
    lately: Act | None = None
    mended: int = -1
    """Where a check mended what it found, and found nothing more."""

    def fail_again(self, act: Act, number: int, acts: Sequence[Act]) -> None:
        self.mended, self.lately = -1, act
        if error_key(act.verdict.kind, act.verdict.said) == error_key(self.failed.verdict.kind, self.failed.verdict.said):
            self.tries += bool(_between(acts[self.last + 1 : number]))
            self.last = number

    def settled(self, act: Act, number: int, acts: Sequence[Act]) -> bool:
        """Did this action, which worked, settle it?"""
        same = _same(self.failed, act)
        if same and act.fixes and not self.failed.fixes:
            self.mended = number
            return False
        if not same and not _in_its_place(self.failed, act, number - self.number):
            return False
        self.by, self.instead = act, not same
        self.between = _between(acts[self.number + 1 : number])
        self.final = _between(acts[self.last + 1 : number])
        return True

    def settle_by_mending(self, acts: Sequence[Act]) -> None:
        if self.mended >= 0:
            self.by = acts[self.mended]
            self.between = _between(acts[self.number + 1 : self.mended + 1])
            self.final = _between(acts[self.last + 1 : self.mended + 1])


def is_misuse(act: Act) -> bool:
    """The command itself was wrong: it has to be another one, and no edit makes it work."""
    said = f"{act.verdict.kind} {act.verdict.said}"
    if _MISUSE.search(said):
        return True
    named = _NOT_THERE.search(said)
    return named is not None and named.group("what") in shell_words(act.command)


def _same(one: Act, other: Act) -> bool:
    """The same action, or the same check on at least as much."""
    if one.doing is not other.doing:
        return False
    if one.doing is Doing.EDIT:
        return bool(set(one.files) & set(other.files)) or one.target == other.target
    if not one.command:
        return one.tool == other.tool and one.target == other.target
    if one.command == other.command:
        return True
    return bool(one.family) and one.family == other.family != _SCRIPT and not is_misuse(one) and _covers(other, one)


def _covers(more: Act, less: Act) -> bool:
    """Is what one check looks at a part of what the other does? Without any name, a check looks at everything."""
    wide, narrow = (frozenset(word for word in shell_words(act.command) if not word.startswith("-")) for act in (more, less))
    return wide <= narrow or narrow <= wide


def _in_its_place(one: Act, other: Act, distance: int) -> bool:
    """Another way to do the same, soon after."""
    if distance > _SOON or one.doing is Doing.EDIT or other.doing is Doing.EDIT:
        return False
    if one.family != other.family:
        return False
    if one.command and other.command:
        mine, others = shell_words(one.command), shell_words(other.command)
        shared = len(mine & others)
        return is_misuse(one) and len(mine) > 1 and shared >= _ALIKE * max(len(mine), len(others))
    return not one.command and not other.command and one.tool == other.tool and one.doing is Doing.OTHER


def _between(acts: Sequence[Act]) -> tuple[Act, ...]:
    worked = [act for act in acts if not act.verdict.failed]
    changing = [act for act in worked if act.doing in (Doing.EDIT, Doing.RUN, Doing.OTHER) or act.fixes]
    changing = changing or [act for act in worked if act.family in _BUILDS]
    return tuple({(act.doing, act.target): act for act in changing}.values())
