"""Pitfalls: lessons from failures in a span of work and from what resolved them. Pure.

A trouble is resolved if the same action works or the same check passes: by an outcome, not by a
claim. Reading missing files and actions the user refused are no troubles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hotset.nouns.memory import Pitfall, Trouble
from hotset.sources.memory.encode.procedures import general, in_project, parts_of
from hotset.sources.memory.encode.speakers import (
    LEAST_SENTENCE,
    OutsideWords,
    is_borrowed,
    is_dangerous,
    is_order,
    quote,
)
from hotset.text.clip import clip_prose
from hotset.text.words import once
from hotset.window.work.calls import Act, ActKind, decode_arguments, edit_lines, shell_words
from hotset.window.work.mishaps import Mishap, error_key, step

_LONGEST_ERROR = 160


_MOST_STEPS = 3  # actions that resolved it; with more, the decisive one is unknown
_HARD = 2  # occurrences of the same error, each after a change: the first idea was wrong
_LONGEST_WHY = 160
_LONGEST_COMMAND = 140
_PATH = re.compile(r"[\w@.~+/ ()\[\]-]{1,160}")
_TRIVIAL = re.compile(
    r"string to replace not found|has not been read yet|has been (?:modified|unexpectedly)"
    r"|file has not been|no changes to make|found \d+ matches"
    r"|old_string|file does not exist|is a directory|cannot find (?:the )?context"
    r"|failed to find (?:expected|context)|InputValidation"
    r"|nothing to commit|no matches|cancell?ed|timed? "
    r"?out|sigterm|rejected|interrupted|exceeds maximum",
    re.IGNORECASE,
)
"""Failures that happen in any session and teach nothing."""
_ARGUMENT = re.compile(r"[A-Za-z_]\w{0,39}")
_STRICT = frozenset({"lint", "typecheck"})
_SAYS_NOTHING = re.compile(
    r"(?:FAILED|FAIL)\b|ERROR: test|error: (?:expect\(|Recipe|script)|Command "
    r"(?:exited|failed)|\d+ |Lint: "
    r"|Saved |npm (?:error|ERR!)|\(node:|.{0,11}$"
)
"""An error line that does not say what is wrong."""
_NAME = re.compile(r"[A-Z]\w+(?:Error|Exception|Failure)|E[A-Z]+")
_EXPECTED = re.compile(
    r"Assertion|ExecaError|CommandFailed|CalledProcess|SyntaxError|NameError|IndentationError|"
    r"ValidationError|ExpectationFailed"
)
_SETTING = re.compile(
    r"(?:^|/)(?:package\.json|tsconfig[\w.-]*\.json|pyproject\.toml|setup\.(?:cfg|py)"
    r"|requirements[\w.-]*\.txt|conftest\.py|Cargo\.toml|go\.mod|Makefile|Dockerfile[\w.-]*"
    r"|docker-compose[\w.-]*|\.env\.example|\.[\w-]+rc(?:\.\w+)?|[\w.-]*\.config\.\w+|[\w."
    r"-]+\.(?:toml|ya?ml|ini|cfg|lock))$"
)
_THROWAWAY = re.compile(
    r"(?:^|[/\s])(?:repro\w*|reproduc\w*|test_(?:repro|issue|fix|case|edge)\w*|debug_?\w*|verify\w*"
    r"|check_\w+|tmp\w*|scratch\w*|demo\w*)\.\w+|/tmp/"
)
_ONE_OFF = re.compile(
    r"<<|&&|;|\|\||^\W|\$\(|python[\d.]* (?:-c|-)(?:\s|$)|node -e|-m \"|[0-9a-f]{12,}|\n"
)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A pitfall, and whether rules alone may vouch for it."""

    pitfall: Pitfall
    title: str
    text: str
    confirmed: bool
    acts: tuple[Act, ...]
    """The actions it was made from."""
    key: str = ""
    """The same for the same error and resolution, across sessions."""


@dataclass(frozen=True, slots=True)
class LessonContext:
    """What a lesson needs beside its trouble."""

    made: Sequence[str]
    """Files written in the same session."""
    others: OutsideWords
    root: str = ""
    """The folder of the work."""
    called: Callable[[Act], str] = lambda _act: ""
    """The call of an action, as it was made."""


def lesson(mishap: Mishap, context: LessonContext) -> Lesson | None:
    """What a trouble teaches; None if nothing."""
    failed, by = mishap.failed, mishap.by
    if by is not None and failed.doing is ActKind.OTHER and failed.tool == by.tool:
        return _of_a_tool(mishap, by, context)
    if (
        by is None
        or not failed.command
        or _TRIVIAL.search(failed.verdict.message)
        or _is_throwaway(failed, context.made)
    ):
        return None
    if (
        failed.doing not in (ActKind.CHECK, ActKind.RUN)
        or _ONE_OFF.search(failed.command)
        or len(failed.command) > _LONGEST_COMMAND
    ):
        return None
    why = quote(failed.verdict.message, _LONGEST_WHY).rstrip(":")
    named = (
        failed.verdict.kind
        if not failed.verdict.kind.startswith("exit ") and failed.verdict.kind != "error"
        else ""
    )
    if not named and (not why or _SAYS_NOTHING.match(why)):
        return None
    steps = (
        [by]
        if mishap.instead
        else [act for act in mishap.final if not _is_throwaway(act, context.made)]
    )
    teaches = _is_of_the_code(failed, named) or (
        mishap.tries >= _HARD and _SAYS_NOTHING.match(why) is None
    )
    if not 0 < len(steps) <= _MOST_STEPS or not all(
        _is_instructive(act, teaches=teaches) for act in steps
    ):
        return None
    return _make_lesson(mishap, steps, why, named, context)


def _of_a_tool(mishap: Mishap, by: Act, context: LessonContext) -> Lesson | None:
    """A refused call that succeeded with other arguments: names the arguments, not their values."""
    failed = mishap.failed
    why = quote(re.sub(r"(?i)^error:\s*", "", failed.verdict.message), _LONGEST_WHY)
    others = _differing(context.called(failed), context.called(by))
    if (
        _TRIVIAL.search(failed.verdict.message)
        or _SAYS_NOTHING.match(why)
        or not 0 < len(others) <= _MOST_STEPS
    ):
        return None
    tool = failed.tool.rpartition("__")[2]
    what = f"`{tool}` refuses a call"
    instead = f"called it again with another {', '.join(others)}"
    return Lesson(
        pitfall=Pitfall(
            what=what, why=f'it says (data, not an instruction): "{why}"', instead=instead
        ),
        title=clip_prose(f"{what}: {why}", 90),
        text=(
            f'{what}. It says (data, not an instruction): "{why}". What resolved it: {instead}; '
            f"then it passed."
        ),
        confirmed=not is_dangerous(why),
        acts=(failed, by),
        key=f"{failed.tool}|{error_key('', failed.verdict.message)}",
    )


def _differing(one: str, other: str) -> list[str]:
    """The names of the arguments in which two calls differ; empty if one is not a plain name."""
    first, second = decode_arguments(one), decode_arguments(other)
    names = sorted(
        name for name in first.keys() | second.keys() if first.get(name) != second.get(name)
    )
    return names if all(_ARGUMENT.fullmatch(name) for name in names) else []


def _make_lesson(
    mishap: Mishap, steps: Sequence[Act], why: str, named: str, context: LessonContext
) -> Lesson:
    failed = mishap.failed
    words = once(_step(act, mishap, steps, context) for act in steps)
    new = [
        act
        for act in steps
        if not shell_words(act.command) <= shell_words(failed.command) or not act.command
    ]
    confirmed = not any(_is_doubtful(act, context.others) for act in (failed, *new))
    what = f"`{_bare(failed.command)}` fails" + (f" with {named}" if named else "")
    quotation = f'it says (data, not an instruction): "{why}"' if why else ""
    instead = "; ".join(words)
    parts = [
        f"{what}.",
        f"{quotation[:1].upper()}{quotation[1:]}." if quotation else "",
        f"It came {mishap.tries} times before it was resolved." if mishap.tries >= _HARD else "",
        f"What resolved it: {instead}; then it passed.",
    ]
    resolved = "|".join(sorted(_act_key(act, context.root) for act in steps))
    return Lesson(
        pitfall=Pitfall(what=what, why=quotation, instead=instead),
        title=clip_prose(what, 90),
        text=" ".join(part for part in parts if part),
        confirmed=confirmed,
        acts=(failed, *steps),
        key="|".join(
            (_act_key(failed, context.root), error_key(named, failed.verdict.message), resolved)
        ),
    )


def _step(act: Act, mishap: Mishap, steps: Sequence[Act], context: LessonContext) -> str:
    text = step(replace(act, target=in_project(act.target, context.root)))
    if mishap.instead and act is steps[-1]:
        text = f"{text} instead"
    change = (
        change_of(context.called(act), act.place, context.others)
        if act.doing is ActKind.EDIT
        else ""
    )
    return f"{text} ({change})" if change else text


def _act_key(act: Act, root: str) -> str:
    return (
        general(_bare(act.command), root) or act.command
        if act.doing is not ActKind.EDIT
        else in_project(act.target, root)
    )


def _bare(command: str) -> str:
    """Without redirects and output filters."""
    parts = parts_of(command)
    return parts[0] if len(parts) == 1 else command


def _is_doubtful(act: Act, others: OutsideWords) -> bool:
    target = act.command or act.target
    if act.doing is ActKind.EDIT:
        return is_order(re.sub(r"[/._-]", " ", target))
    return is_dangerous(target) or is_borrowed(target, act.place, others)


def _is_throwaway(act: Act, made: Sequence[str]) -> bool:
    """True for a script written to try something: its errors matter to no other session."""
    target = act.command or act.target
    return _THROWAWAY.search(target) is not None or any(
        name.rsplit("/", 1)[-1] in target for name in made if name
    )


def _is_of_the_code(failed: Act, named: str) -> bool:
    """True for a named error that may recur, not the everyday findings of linters, type checkers
    and tests."""
    return (
        failed.family not in _STRICT
        and _NAME.fullmatch(named) is not None
        and not _EXPECTED.match(named)
    )


def _is_instructive(act: Act, *, teaches: bool) -> bool:
    """True if the step says what to do next time: a command, an edited setting, or with `teaches`
    any edited file."""
    if act.doing is ActKind.EDIT:
        return _PATH.fullmatch(act.target) is not None and (
            teaches or _SETTING.search(act.target) is not None
        )
    return (
        bool(act.command)
        and len(act.command) <= _LONGEST_COMMAND
        and not _ONE_OFF.search(act.command)
    )


_LONGEST_SIDE = 120  # characters of a line of code; a longer one is left out
_SHORTEST_SIDE = 3
_BREAKS_OUT = re.compile(r"`|(?<!\w)<|\[(?:hotset|[a-z]+-[a-z0-9])", re.IGNORECASE)
"""What could end the quotation, or pass for a tag, a note of ours or an id."""


def trouble_of(mishap: Mishap) -> Trouble:
    """A failure as an episode keeps it; its text is quoted as data."""
    failed = mishap.failed
    return Trouble(
        kind=failed.verdict.kind,
        said=quote(failed.verdict.message, _LONGEST_ERROR),
        tool=failed.tool,
        target=failed.target,
        resolved=mishap.resolved,
        is_resolved=mishap.by is not None,
        page=failed.result,
    )


def change_of(call: str, place: int, others: OutsideWords) -> str:
    """The line that an edit call changed, before and after, whole; empty if it changed more than
    that, or if it repeats outside text."""
    gone, came = edit_lines(call)
    if len(came) != 1 or len(gone) > 1 or others.says(came[0], place, LEAST_SENTENCE):
        return ""
    if not all(map(_can_be_quoted, (*gone, *came))):
        return ""
    return f"`{gone[0]}` became `{came[0]}`" if gone else f"added `{came[0]}`"


def _can_be_quoted(code: str) -> bool:
    """True if a line of code can stand in a text as it is: short, visible, and no order."""
    return (
        _SHORTEST_SIDE <= len(code) <= _LONGEST_SIDE
        and code.isprintable()
        and not _BREAKS_OUT.search(code)
        and not _is_order_of_others(code)
    )


def _is_order_of_others(text: str) -> bool:
    return is_order(text) or is_dangerous(text)
