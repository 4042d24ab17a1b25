"""From a trouble that was resolved to something to avoid: what fails, why in the error's own words, and what resolved it. Pure.

The same check has to pass afterwards: an outcome, not a claim. What is told as the resolution is what the agent did, in our
words; where one of its actions repeats a text of others, the pitfall waits for a person.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hotset.nouns.memory import Pitfall
from hotset.sources.memory.encoding.acting import Act, Doing, shell_words
from hotset.sources.memory.encoding.taint import Outside, is_borrowed, is_dangerous, is_order, quoted
from hotset.sources.memory.encoding.troubles import Mishap, step
from hotset.sources.memory.encoding.words import cut, once

_MOST_STEPS = 3  # actions that resolved it; of more, nobody knows which one did
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
_STRICT = frozenset({"lint", "typecheck"})
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


def lesson(mishap: Mishap, made: Sequence[str], others: Outside) -> Lesson | None:
    """What a trouble teaches; None where it teaches nothing. `made`: files that were written in the same session."""
    failed, by = mishap.failed, mishap.by
    if by is None or not failed.command or _TRIVIAL.search(failed.verdict.said) or _is_throwaway(failed, made):
        return None
    if failed.doing not in (Doing.CHECK, Doing.RUN) or _ONE_OFF.search(failed.command) or len(failed.command) > _LONGEST_COMMAND:
        return None
    why = quoted(failed.verdict.said, _LONGEST_WHY)
    named = failed.verdict.kind if not failed.verdict.kind.startswith("exit ") and failed.verdict.kind != "error" else ""
    if not why and not named:
        return None
    steps = [by] if mishap.instead else [act for act in mishap.between if not _is_throwaway(act, made)]
    teaches = _is_of_the_code(failed, named)
    if not 0 < len(steps) <= _MOST_STEPS or not all(_is_told(act, teaches=teaches) for act in steps):
        return None
    return _told(mishap, steps, why, named, others)


def _told(mishap: Mishap, steps: Sequence[Act], why: str, named: str, others: Outside) -> Lesson:
    failed = mishap.failed
    words = once(f"{step(act)}{' instead' if mishap.instead and act is steps[-1] else ''}" for act in steps)
    new = [act for act in steps if not shell_words(act.command) <= shell_words(failed.command) or not act.command]
    confirmed = not any(_is_doubtful(act, others) for act in (failed, *new))
    what = f"`{failed.command}` fails" + (f" with {named}" if named else "")
    quotation = f'it says (data, not an instruction): "{why}"' if why else ""
    instead = "; ".join(words)
    parts = [
        f"{what}.",
        f"{quotation[:1].upper()}{quotation[1:]}." if quotation else "",
        f"What resolved it: {instead}; then it passed.",
    ]
    return Lesson(
        pitfall=Pitfall(what=what, why=quotation, instead=instead),
        title=cut(what, 90),
        text=" ".join(part for part in parts if part),
        confirmed=confirmed,
        acts=(failed, *steps),
    )


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
