"""Failures in a stretch of work, and what resolved each of them.

A failure is resolved if the same action works or the same check passes: by an outcome, not by a
claim. Reading missing files and actions the user refused are no failures.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hotset.text.words import once
from hotset.window.work.calls import Act, ActKind, shell_words

_SOON = 6  # actions within which another command counts as a retry
_ALIKE = 0.5  # of the words of two commands
_MOST_RESOLVED = 6
_SCRIPT = "script"
"""The family of checks that are arbitrary scripts: two of them have nothing in common."""
_BUILDS = frozenset({"build", "make"})
"""Checks that produce something: they may be the fix if nothing else was done."""
_NOT_THERE = re.compile(
    r"(?:no (?:module|command|such \w+)(?: named)?|not found|unknown|cannot find|could not "
    r"find|does not exist|invalid)\b"
    r"[^'\"`]{0,20}['\"`(](?P<what>[\w./@:=-]{2,80})",
    re.IGNORECASE,
)
"""An error about a word: if the command contains the word, the command is at fault."""
_MISUSE = re.compile(
    r"unrecognized|unknown (?:flag|option|command|argument|subcommand|shorthand)|unexpected "
    r"(?:argument"
    r"|option)|command not found|no such (?:option|command)"
    r"|(?:invalid|illegal|bad) (?:option|flag|argument)|is not (?:recognized|a \w+ command)"
    r"|not a \w+ command|none of the others can be|mutually exclusive"
    r"|cannot be used with|requires? an? (?:argument|value)|missing (?:required "
    r")?(?:argument|script|option)|did you mean",
    re.IGNORECASE,
)
_LONGEST_STEP = 120


@dataclass(frozen=True, slots=True)
class Mishap:
    """A failed action and what became of it."""

    failed: Act
    by: Act | None = None
    """The action that worked in the end."""
    instead: bool = False
    """That was a different action, in its place."""
    between: tuple[Act, ...] = ()
    """Changes in between: edits and commands, each target once."""
    final: tuple[Act, ...] = ()
    """Changes after the last occurrence of the error: these resolved it, earlier ones did not."""
    tries: int = 1
    """Occurrences of the same error, each after a change."""
    lately: Act | None = None
    """The action's last failure, maybe for another reason."""

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
    """Failures in order; one action that fails with the same error again is one failure, with
    another error it is two."""
    found: list[_OpenFailure] = []
    waiting: list[_OpenFailure] = []
    for number, act in enumerate(acts):
        if act.doing in (ActKind.READ, ActKind.PLAN):
            continue
        if act.failed:
            again = [each for each in waiting if _same(each.mishap.failed, act)]
            known = [each.fail_again(act, number, acts) for each in again]
            if not any(known):
                watched = _OpenFailure(Mishap(act), number, number)
                found.append(watched)
                waiting.append(watched)
        elif act.passed:
            waiting = [each for each in waiting if not each.try_to_settle(act, number, acts)]
    for each in waiting:
        if each.mended >= 0:
            each.settle(acts[each.mended], each.mended + 1, acts)
    return [each.mishap for each in found]


def step(act: Act) -> str:
    """An action in a few words of ours."""
    if act.doing is ActKind.EDIT:
        return f"{'wrote' if act.made else 'edited'} {act.target[:_LONGEST_STEP]}"
    if act.command:
        return f"ran `{act.command[:_LONGEST_STEP].replace('`', chr(39))}`"
    return f"called {act.tool} {act.target[:_LONGEST_STEP]}".strip()


@dataclass(slots=True)
class _OpenFailure:
    """A failure that is not resolved yet."""

    mishap: Mishap
    number: int
    last: int
    """Number of the last occurrence of the same error."""
    mended: int = -1
    """Number of a check that fixed what it found."""
    gone: int = -1
    """Number of the first failure with another error: what was done before it resolved this one."""

    def fail_again(self, act: Act, number: int, acts: Sequence[Act]) -> bool:
        """True if the action failed with the same error."""
        self.mended, self.mishap = -1, replace(self.mishap, lately=act)
        first = self.mishap.failed.verdict
        if error_key(act.verdict.kind, act.verdict.message) == error_key(first.kind, first.message):
            tries = self.mishap.tries + bool(_between(acts[self.last + 1 : number]))
            self.last, self.mishap = number, replace(self.mishap, tries=tries)
            self.gone = -1
            return True
        if self.gone < 0:
            self.gone = number
        return False

    def try_to_settle(self, act: Act, number: int, acts: Sequence[Act]) -> bool:
        """True if this successful action resolved it."""
        failed = self.mishap.failed
        same = _same(failed, act)
        if same and act.fixes and not failed.fixes:
            self.mended = number
            return False
        if not same and not _in_its_place(failed, act, number - self.number):
            return False
        self.settle(act, number, acts, instead=not same)
        return True

    def settle(self, by: Act, end: int, acts: Sequence[Act], *, instead: bool = False) -> None:
        end = self.gone if self.gone >= 0 else end
        between, final = (_between(acts[begin + 1 : end]) for begin in (self.number, self.last))
        self.mishap = replace(self.mishap, by=by, instead=instead, between=between, final=final)


def is_misuse(act: Act) -> bool:
    """True if the command itself was wrong, so that no edit makes it work."""
    message = f"{act.verdict.kind} {act.verdict.message}"
    if _MISUSE.search(message):
        return True
    named = _NOT_THERE.search(message)
    return named is not None and named.group("what") in shell_words(act.command)


def _same(one: Act, other: Act) -> bool:
    """True for the same action, or the same check on at least as much."""
    if one.doing is not other.doing:
        return False
    if one.doing is ActKind.EDIT:
        return bool(set(one.files) & set(other.files)) or one.target == other.target
    if not one.command:
        return one.tool == other.tool and one.target == other.target
    if one.command == other.command:
        return True
    return (
        bool(one.family)
        and one.family == other.family != _SCRIPT
        and not is_misuse(one)
        and _covers(other, one)
    )


def _covers(more: Act, less: Act) -> bool:
    """True if one check covers a part of the other. A check without names covers everything."""
    wide, narrow = (
        frozenset(word for word in shell_words(act.command) if not word.startswith("-"))
        for act in (more, less)
    )
    return wide <= narrow or narrow <= wide


def _in_its_place(one: Act, other: Act, distance: int) -> bool:
    """True for another way to do the same, soon after."""
    if distance > _SOON or one.doing is ActKind.EDIT or other.doing is ActKind.EDIT:
        return False
    if one.family != other.family:
        return False
    if one.command and other.command:
        mine, others = shell_words(one.command), shell_words(other.command)
        shared = len(mine & others)
        return is_misuse(one) and len(mine) > 1 and shared >= _ALIKE * max(len(mine), len(others))
    return (
        not one.command
        and not other.command
        and one.tool == other.tool
        and one.doing is ActKind.OTHER
    )


def _between(acts: Sequence[Act]) -> tuple[Act, ...]:
    worked = [act for act in acts if not act.verdict.failed]
    changing = [
        act
        for act in worked
        if act.doing in (ActKind.EDIT, ActKind.RUN, ActKind.OTHER) or act.fixes
    ]
    changing = changing or [act for act in worked if act.family in _BUILDS]
    return tuple({(act.doing, act.target): act for act in changing}.values())


_SPACE = re.compile(r"\s+")
_VALUES = re.compile(
    r"0x[0-9a-f]+|\b[0-9a-f]{7,}\b|\d+|'[^']*'|\"[^\"]*\"|`[^`]*`|\u2018[^\u2019]*\u2019",
    re.IGNORECASE,
)
_ANY_PATH = re.compile(
    r"(?:[\w~.@+-]*/)+[\w.@~+-]*|\b[\w@+-]+\.(?:[jt]sx?|py|rs|go|rb|java|css|json|ya?ml|toml|"
    r"md|sql)\b(?:[:(][\d:,]+\)?)?"
)
_ERROR_KEY = 100  # characters


def error_key(kind: str, message: str) -> str:
    """The same key for the same error, whatever its numbers, quoted names and paths."""
    line = message.strip().split("\n", 1)[0]
    return f"{kind}|{_SPACE.sub(' ', _VALUES.sub('#', _ANY_PATH.sub('/', line)))[:_ERROR_KEY]}"
