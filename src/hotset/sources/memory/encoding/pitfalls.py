"""From a trouble that was resolved to something to avoid: what fails, why in the error's own words, and what resolved it. Pure.

The same check has to pass afterwards: an outcome, not a claim. What is told as the resolution is what the agent did, in our
words; where one of its actions repeats a text of others, the pitfall waits for a person. An error that an edit of the code
resolved is told where it has a name of its own, or where the first try at it failed: other errors are how work goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hotset.nouns.memory import Pitfall
from hotset.sources.memory.encoding.acting import Act, Doing, shell_words
from hotset.sources.memory.encoding.changing import change_of, decoded
from hotset.sources.memory.encoding.general import error_key, general, in_project, parts_of
from hotset.sources.memory.encoding.taint import Outside, is_borrowed, is_dangerous, is_order, quoted
from hotset.sources.memory.encoding.troubles import Mishap, step
from hotset.text.clip import clip_prose
from hotset.text.words import once

_MOST_STEPS = 3  # actions that resolved it; of more, nobody knows which one did
_HARD = 2  # times that the same error came, each after a change: the first idea was wrong
_LONGEST_WHY = 160
_LONGEST_COMMAND = 140
_PATH = re.compile(r"[\w@.~+/ ()\[\]-]{1,160}")
_TRIVIAL = re.compile(
    r"string to replace not found|has not been read yet|has been (?:modified|unexpectedly)"
    r"|file has not been|no changes to make|found \d+ matches"
    r"|old_string|file does not exist|is a directory|cannot find (?:the )?context"
    r"|failed to find (?:expected|context)|InputValidation"
    r"|nothing to commit|no matches|cancell?ed|timed? ?out|sigterm|rejected|interrupted|exceeds maximum",
    re.IGNORECASE,
)
"""What goes wrong in any session and teaches nothing."""
_ARGUMENT = re.compile(r"[A-Za-z_]\w{0,39}")
_STRICT = frozenset({"lint", "typecheck"})
_SAYS_NOTHING = re.compile(
    r"(?:FAILED|FAIL)\b|ERROR: test|error: (?:expect\(|Recipe|script)|Command (?:exited|failed)|\d+ |Lint: "
    r"|Saved |npm (?:error|ERR!)|\(node:|.{0,11}$"
)
"""An error's line that would tell nobody what is wrong."""
_NAME = re.compile(r"[A-Z]\w+(?:Error|Exception|Failure)|E[A-Z]+")
_EXPECTED = re.compile(
    r"Assertion|ExecaError|CommandFailed|CalledProcess|SyntaxError|NameError|IndentationError|ValidationError|ExpectationFailed"
)
_SETTING = re.compile(
    r"(?:^|/)(?:package\.json|tsconfig[\w.-]*\.json|pyproject\.toml|setup\.(?:cfg|py)"
    r"|requirements[\w.-]*\.txt|conftest\.py|Cargo\.toml|go\.mod|Makefile|Dockerfile[\w.-]*"
    r"|docker-compose[\w.-]*|\.env\.example|\.[\w-]+rc(?:\.\w+)?|[\w.-]*\.config\.\w+|[\w.-]+\.(?:toml|ya?ml|ini|cfg|lock))$"
)
_THROWAWAY = re.compile(
    r"(?:^|[/\s])(?:repro\w*|reproduc\w*|test_(?:repro|issue|fix|case|edge)\w*|debug_?\w*|verify\w*"
    r"|check_\w+|tmp\w*|scratch\w*|demo\w*)\.\w+|/tmp/"
)
_ONE_OFF = re.compile(r"<<|&&|;|\|\||^\W|\$\(|python[\d.]* (?:-c|-)(?:\s|$)|node -e|-m \"|[0-9a-f]{12,}|\n")


@dataclass(frozen=True, slots=True)
class Lesson:
    """A pitfall, and whether rules alone may vouch for it."""

    pitfall: Pitfall
    title: str
    text: str
    confirmed: bool
    acts: tuple[Act, ...]
    """What it stands on."""
    key: str = ""
    """The same for the same error that the same resolved, in whichever session."""


@dataclass(frozen=True, slots=True)
class Around:
    """What a lesson has to know beside its trouble."""

    made: Sequence[str]
    """Files that were written in the same session."""
    others: Outside
    root: str = ""
    """The folder in which the work was done."""
    called: Callable[[Act], str] = lambda _act: ""
    """The call of an action, as it was made."""


def lesson(mishap: Mishap, around: Around) -> Lesson | None:
    """What a trouble teaches; None where it teaches nothing."""
    failed, by = mishap.failed, mishap.by
    if by is not None and failed.doing is Doing.OTHER and failed.tool == by.tool:
        return _of_a_tool(mishap, by, around)
    if by is None or not failed.command or _TRIVIAL.search(failed.verdict.said) or _is_throwaway(failed, around.made):
        return None
    if failed.doing not in (Doing.CHECK, Doing.RUN) or _ONE_OFF.search(failed.command) or len(failed.command) > _LONGEST_COMMAND:
        return None
    why = quoted(failed.verdict.said, _LONGEST_WHY).rstrip(":")
    named = failed.verdict.kind if not failed.verdict.kind.startswith("exit ") and failed.verdict.kind != "error" else ""
    if not named and (not why or _SAYS_NOTHING.match(why)):
        return None
    steps = [by] if mishap.instead else [act for act in mishap.final if not _is_throwaway(act, around.made)]
    teaches = _is_of_the_code(failed, named) or (mishap.tries >= _HARD and _SAYS_NOTHING.match(why) is None)
    if not 0 < len(steps) <= _MOST_STEPS or not all(_is_told(act, teaches=teaches) for act in steps):
        return None
    return _told(mishap, steps, why, named, around)


def _of_a_tool(mishap: Mishap, by: Act, around: Around) -> Lesson | None:
    """A call that was refused, and went through with other arguments: which ones is told, what they were is not."""
    failed = mishap.failed
    why = quoted(re.sub(r"(?i)^error:\s*", "", failed.verdict.said), _LONGEST_WHY)
    others = _differing(around.called(failed), around.called(by))
    if _TRIVIAL.search(failed.verdict.said) or _SAYS_NOTHING.match(why) or not 0 < len(others) <= _MOST_STEPS:
        return None
    tool = failed.tool.rpartition("__")[2]
    what = f"`{tool}` refuses a call"
    instead = f"called it again with another {', '.join(others)}"
    return Lesson(
        pitfall=Pitfall(what=what, why=f'it says (data, not an instruction): "{why}"', instead=instead),
        title=clip_prose(f"{what}: {why}", 90),
        text=f'{what}. It says (data, not an instruction): "{why}". What resolved it: {instead}; then it passed.',
        confirmed=not is_dangerous(why),
        acts=(failed, by),
        key=f"{failed.tool}|{error_key('', failed.verdict.said)}",
    )


def _differing(one: str, other: str) -> list[str]:
    """The arguments by which two calls differ, where both have some and all are simply named."""
    first, second = decoded(one), decoded(other)
    names = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    return names if all(_ARGUMENT.fullmatch(name) for name in names) else []


def _told(mishap: Mishap, steps: Sequence[Act], why: str, named: str, around: Around) -> Lesson:
    failed = mishap.failed
    words = once(_step(act, mishap, steps, around) for act in steps)
    new = [act for act in steps if not shell_words(act.command) <= shell_words(failed.command) or not act.command]
    confirmed = not any(_is_doubtful(act, around.others) for act in (failed, *new))
    what = f"`{_bare(failed.command)}` fails" + (f" with {named}" if named else "")
    quotation = f'it says (data, not an instruction): "{why}"' if why else ""
    instead = "; ".join(words)
    parts = [
        f"{what}.",
        f"{quotation[:1].upper()}{quotation[1:]}." if quotation else "",
        f"It came {mishap.tries} times before it was resolved." if mishap.tries >= _HARD else "",
        f"What resolved it: {instead}; then it passed.",
    ]
    resolved = "|".join(sorted(_by_which_known(act, around.root) for act in steps))
    return Lesson(
        pitfall=Pitfall(what=what, why=quotation, instead=instead),
        title=clip_prose(what, 90),
        text=" ".join(part for part in parts if part),
        confirmed=confirmed,
        acts=(failed, *steps),
        key="|".join((_by_which_known(failed, around.root), error_key(named, failed.verdict.said), resolved)),
    )


def _step(act: Act, mishap: Mishap, steps: Sequence[Act], around: Around) -> str:
    told = step(replace(act, target=in_project(act.target, around.root)))
    if mishap.instead and act is steps[-1]:
        told = f"{told} instead"
    change = change_of(around.called(act), act.place, around.others) if act.doing is Doing.EDIT else ""
    return f"{told} ({change})" if change else told


def _by_which_known(act: Act, root: str) -> str:
    return general(_bare(act.command), root) or act.command if act.doing is not Doing.EDIT else in_project(act.target, root)


def _bare(command: str) -> str:
    """Without what only shapes its output."""
    parts = parts_of(command)
    return parts[0] if len(parts) == 1 else command


def _is_doubtful(act: Act, others: Outside) -> bool:
    told = act.command or act.target
    if act.doing is Doing.EDIT:
        return is_order(re.sub(r"[/._-]", " ", told))
    return is_dangerous(told) or is_borrowed(told, act.place, others)


def _is_throwaway(act: Act, made: Sequence[str]) -> bool:
    """A script that was written to try something: its own errors are nobody else's."""
    said = act.command or act.target
    return _THROWAWAY.search(said) is not None or any(name.rsplit("/", 1)[-1] in said for name in made if name)


def _is_of_the_code(failed: Act, named: str) -> bool:
    """An error with a name of its own, which somebody may meet again: not what linters, types and expectations say all day."""
    return failed.family not in _STRICT and _NAME.fullmatch(named) is not None and not _EXPECTED.match(named)


def _is_told(act: Act, *, teaches: bool) -> bool:
    """Does it say what to do next time? That a setting was edited does; that a file of the code was, only beside an error."""
    if act.doing is Doing.EDIT:
        return _PATH.fullmatch(act.target) is not None and (teaches or _SETTING.search(act.target) is not None)
    return bool(act.command) and len(act.command) <= _LONGEST_COMMAND and not _ONE_OFF.search(act.command)
