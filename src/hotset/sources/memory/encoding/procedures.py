"""From an episode that went well to steps that can be taken again. Pure, and careful: most episodes give none.

Only commands make a procedure: which files were edited belongs to that one task. A check has to have passed at the end, and
every step has to be the agent's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hotset.nouns.memory import Ending, Procedure
from hotset.sources.memory.encoding.acting import Act, Doing
from hotset.sources.memory.encoding.outcomes import Came
from hotset.sources.memory.encoding.taint import Outside, is_borrowed, is_dangerous
from hotset.sources.memory.encoding.words import cut, once

_FEWEST, _MOST = 2, 6
_MOST_FILES = 3  # edits of more files are a task of their own
_LONGEST_COMMAND = 120
_LONGEST_GOAL = 400  # characters of a prompt: who needs more says something that nobody asks again
_ONE_OFF = re.compile(
    r"<<|\$\(|`|python[\d.]* (?:-c|-)(?:\s|$)|node -e|[0-9a-f]{10,}|/tmp/|\bgit (?:add|commit|stash"
    r"|checkout|restore|reset|rm|mv|rebase|cherry-pick)\b"
    r"|\b(?:rm|mv|cp|mkdir|touch|kill|pkill|chmod|echo|sleep|true)\b|(?:^|[/\s])(?:repro\w*|reproduc\w*"
    r"|test_\w+|debug\w*|verify\w*|check_\w+)\.\w+"
    r"|\b(?:COMPLETE_TASK|submit)\b|https?://|@[\w-]+\.\w|#\d+|\d{4,}"
)
"""What belongs to one occasion."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A procedure, and whether rules alone may vouch for it."""

    procedure: Procedure
    title: str
    text: str
    confirmed: bool
    acts: tuple[Act, ...]


def recipe(title: str, goal: str, acts: Sequence[Act], came: Came, others: Outside) -> Recipe | None:
    """The steps of an episode; None unless they are few, general, and led to a check that passed."""
    if came.ending is not Ending.SUCCESS or not came.checked or len(goal) > _LONGEST_GOAL:
        return None
    edited = once(path for act in acts if act.doing is Doing.EDIT and not act.verdict.failed for path in act.files)
    ran = [act for act in acts if act.doing in (Doing.RUN, Doing.CHECK) and act.passed and act.command]
    steps = list({act.command: act for act in ran}.values())
    if len(edited) > _MOST_FILES or not _FEWEST <= len(steps) <= _MOST or all(act.doing is Doing.CHECK for act in steps):
        return None
    if any(_ONE_OFF.search(act.command) or len(act.command) > _LONGEST_COMMAND for act in steps):
        return None
    confirmed = not any(is_dangerous(act.command) or is_borrowed(act.command, act.place, others) for act in steps)
    told = tuple(f"edit {path}" for path in edited) + tuple(f"run `{act.command}`" for act in steps)
    when = cut(title, 100)
    return Recipe(
        procedure=Procedure(when=when, steps=told),
        title=when,
        text=f"{when}: {'; '.join(f'{number}. {each}' for number, each in enumerate(told, 1))}. The last check passed.",
        confirmed=confirmed,
        acts=tuple(steps),
    )
