"""From an episode that went well to steps that can be taken again. Pure, and careful: most episodes give none.

Three sorts are worth it. A *routine*: which checks a change in this project has to pass. A *recipe*: the commands of this project
that the work took, with the files that were edited and the checks behind them. A *round*: which tools of another trade were
called, one after the other, until the user was content. Looking, tidying up, committing and what was written for the moment are
no steps. What led to success has to be certain: a check that passed at the end, or a person's word.

One session makes a procedure that is not sure; the same steps in another session are the same procedure, and make it surer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotset.nouns.memory import Ending, Procedure
from hotset.sources.memory.encoding.acting import Act, Doing, check_family, is_look
from hotset.sources.memory.encoding.general import (
    TESTS,
    general,
    in_project,
    is_throwaway,
    parts_of,
    project_of,
    root_of,
    told_key,
)
from hotset.sources.memory.encoding.outcomes import Came
from hotset.sources.memory.encoding.taint import LEAST_COMMAND, Outside, is_borrowed, is_dangerous, is_order, is_plain_check
from hotset.text.clip import clip_prose
from hotset.text.words import once

_MOST_CHECKS = 5
_MOST_RUNS = 4  # commands beside checks; of more, nobody knows which ones it took
_MOST_EDITED = 3  # files; edits of more are a task of their own
_MOST_TOOLS = 6
_FEWEST = 2
_SURE = 0.75  # of an ending, where no check speaks: a person said so, or had it committed
_LONGEST_TITLE = 90
_SCRIPT = "script"
_ANY = re.compile(
    r"(?:\S+ )*?(?:pytest|unittest|tox|nox|jest|vitest|cargo (?:test|build|check|clippy)|go (?:test|build|vet)"
    r"|make(?: test| check| all)?"
    r"|(?:npm|pnpm|yarn|bun|deno)(?: run)? (?:test|lint|build|check))(?: (?:-\S+|<tests>|<id>|\./\.\.\.))*"
)
"""A check that anybody would try first: alone, it teaches nothing."""
_NARROW = re.compile(r".* (?:<file>|<text>|(?!\S*runtests)[\w./-]+\.(?:[jt]sx?|mdx?|py|json|ya?ml|css))(?: |$)")
"""A check of one file: a look at what was just written."""
_INSTALLS = re.compile(
    r"(?:npm|pnpm|yarn|bun) (?:install|ci|i)|uv sync|poetry install|bundle install"
    r"|pip3? install (?:-r|-e) \S+|\S+ wait\b"
)
_TAGS = re.compile(r"(?:rtk )?git (?:tag|push)\b")
_PUSHES = re.compile(r"(?:rtk )?git push\b(?: --?[\w-]+)*(?: [\w-]+)?")
_ASKS = re.compile(
    r"(?:get|list|search|find|read|query|look|lookup|fetch|check|describe|show|view|calculate|compute|think|count|status|browser_"
    r"|take_screenshot|navigate|screenshot)(?:_|$|(?=[A-Z]))"
)
"""Tools that look and reckon."""
_RECKONS = re.compile(r"calculate|compute|think|count")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A procedure, and whether rules alone may vouch for it."""

    procedure: Procedure
    title: str
    text: str
    confirmed: bool
    acts: tuple[Act, ...]
    key: str
    """The same for the same steps in the same project, in whichever session."""


def recipes(title: str, acts: Sequence[Act], came: Came, others: Outside) -> Iterator[Recipe]:
    """What an episode showed to work: at most a routine, and a recipe or a round."""
    if came.ending is not Ending.SUCCESS:
        return
    way = _Way(acts)
    if came.checked and (routine := _routine(way, others)) is not None:
        yield routine
    if came.checked or came.confidence >= _SURE:
        found = _recipe(title, way, others, checked=came.checked) or _round(acts, others, came)
        if found is not None:
            yield found


def work_root(acts: Sequence[Act]) -> str:
    """The folder in which files were edited; where none was named from the top, in which any were looked at."""
    edited = [path for act in acts if act.doing is Doing.EDIT for path in act.files]
    return root_of(edited) or root_of(path for act in acts for path in act.files)


@dataclass(frozen=True, slots=True)
class _Step:
    """A command that worked."""

    act: Act
    said: str
    """As it was given."""
    told: str
    """As it would be given next time."""


class _Way:
    """What of an episode's actions may be done again."""

    def __init__(self, acts: Sequence[Act]) -> None:
        self.root = work_root(acts)
        edits = [act for act in acts if act.doing is Doing.EDIT and not act.verdict.failed]
        self.edited = once(
            in_project(path, self.root) for act in edits for path in act.files if not is_throwaway(in_project(path, self.root))
        )
        named = [path for act in acts for path in act.files if not is_throwaway(in_project(path, self.root))]
        self.project = project_of(self.root, self.edited) or project_of(self.root, named)
        made = [path.rsplit("/", 1)[-1] for act in acts if act.made for path in act.files]
        self._made = frozenset((*made, *(name.split(".", 1)[0] for name in made)))
        self._first = edits[0].place if edits else -1
        self.checks = self._checks(acts)
        self.runs = self._runs(acts)

    def _checks(self, acts: Sequence[Act]) -> tuple[_Step, ...]:
        """Those that passed in the end, in the order in which they first did, after something had been changed."""
        found: dict[str, _Step | None] = {}
        for act in acts:
            if act.doing is not Doing.CHECK or act.fixes or act.family == _SCRIPT or not act.answered or act.verdict.open:
                continue
            for part in parts_of(act.command):
                family = check_family(part)
                told = general(part, self.root) if family and family != _SCRIPT else ""
                if told and act.passed and act.place > self._first:
                    found[told] = _Step(act, part, told)
                elif told and act.failed and told in found:
                    found[told] = None
        passed = [step for step in found.values() if step is not None and not _NARROW.match(step.told)]
        known = {told_key(step.told): step for step in reversed(passed)}
        others = tuple(f" {key}" for key in known)
        # A wrapper around a check is that check.
        return tuple(step for key, step in reversed(known.items()) if not key.endswith(others))

    def _runs(self, acts: Sequence[Act]) -> tuple[_Step, ...]:
        found: dict[str, _Step] = {}
        for act in acts:
            if act.doing is Doing.RUN and act.passed:
                for part in parts_of(act.command):
                    told = "" if is_look(part.removeprefix("rtk ")) or self._names_made(part) else general(part, self.root)
                    if not told and found and _TAGS.match(next(reversed(found))) and (pushed := _PUSHES.match(part)):
                        told = pushed.group()  # what was tagged is not out before
                    if told and not check_family(part) and not _INSTALLS.match(told):
                        found.setdefault(told, _Step(act, part, told))
        return tuple(found.values())

    def _names_made(self, part: str) -> bool:
        """A script or a module that was written on the way is this session's own."""
        words = [word.strip("'\"") for word in part.split()[1:]]
        return any(word.rsplit("/", 1)[-1] in self._made or word.rsplit(".", 1)[-1] in self._made for word in words)


def _routine(way: _Way, others: Outside) -> Recipe | None:
    """Which checks a change has to pass. One that anybody would try first is none."""
    steps = [step for step in way.checks if not (_ANY.fullmatch(step.told) and TESTS in step.told)]
    if not way.edited or not 0 < len(steps) <= _MOST_CHECKS or (len(steps) == 1 and _ANY.fullmatch(steps[0].told)):
        return None
    where = f" in {way.project}" if way.project else ""
    told = tuple(f"run `{step.told}`" for step in steps)
    title = clip_prose(f"Check a change{where}: {', '.join(step.told for step in steps)}", _LONGEST_TITLE)
    return Recipe(
        procedure=Procedure(when=f"after a change{where}", steps=told),
        title=title,
        text=f"After a change{where}: {_numbered(told)}. The work was done when all of these passed.",
        confirmed=not any(_is_doubtful(step, others) for step in steps),
        acts=tuple(step.act for step in steps),
        key="\0".join(("routine", way.project, *sorted(told_key(step.told) for step in steps))),
    )


def _recipe(title: str, way: _Way, others: Outside, *, checked: bool) -> Recipe | None:
    """The commands that the work took beside its checks, between what was edited and what was checked."""
    runs, checks = way.runs, way.checks if checked else ()
    if not 0 < len(runs) <= _MOST_RUNS:
        return None
    edited = way.edited if len(way.edited) <= _MOST_EDITED else ()
    if len(runs) + len(checks) + len(edited) < _FEWEST:
        return None
    told = (
        *((f"edit {', '.join(edited)}",) if edited else ()),
        *(f"run `{step.told}`" for step in runs),
        *(f"check with `{step.told}`" for step in checks[:_MOST_CHECKS]),
    )
    where = f"In {way.project}, for work such as" if way.project else "For work such as"
    how = "The checks passed." if checks else "The user was content with it."
    doubtful = any(_is_doubtful(step, others) for step in (*runs, *checks)) or any(
        is_order(re.sub(r"[/._-]", " ", path)) for path in edited
    )
    return Recipe(
        procedure=Procedure(when=clip_prose(title, _LONGEST_TITLE), steps=told),
        title=clip_prose(title, _LONGEST_TITLE),
        text=f"{where} \u201c{clip_prose(title, _LONGEST_TITLE)}\u201d: {_numbered(told)}. {how}",
        confirmed=not doubtful,
        acts=tuple(step.act for step in (*runs, *checks)),
        key="\0".join(("recipe", way.project, *sorted(step.told for step in runs))),
    )


def _round(acts: Sequence[Act], others: Outside, came: Came) -> Recipe | None:
    """Which tools were called until the one thing was done that the user wanted; of several, each has a round of its own."""
    called = [act for act in acts if act.doing is Doing.OTHER and act.passed]
    changing = {_plain(act.tool): act for act in called if not _ASKS.match(_plain(act.tool))}
    if len(changing) != 1 or came.confidence < _SURE or any(act.command or act.doing is Doing.EDIT for act in acts):
        return None
    ((what, last),) = changing.items()
    steps = {_plain(act.tool): act for act in called if act.place <= last.place and not _RECKONS.match(_plain(act.tool))}
    names = once((*(name for name in steps if name != what), what))
    if not _FEWEST <= len(names) <= _MOST_TOOLS:
        return None
    done = what.replace("_", " ")
    told = tuple(f"call {name}" for name in names)
    return Recipe(
        procedure=Procedure(when=f"to {done}", steps=told),
        title=clip_prose(f"To {done}", _LONGEST_TITLE),
        text=f"To {done}: {_numbered(told)}. The user was content with it.",
        confirmed=not any(others.says(name, act.place, LEAST_COMMAND) for name, act in steps.items()),
        acts=tuple(steps.values()),
        key=f"round\0{what}",
    )


def _is_doubtful(step: _Step, others: Outside) -> bool:
    """Others may have talked the agent into it: into the command, or into all of it but what it was done to."""
    words = step.told.split("<", 1)[0].split()
    leads = [" ".join(words), " ".join(words[:-1])]
    return (
        is_dangerous(step.said)
        or is_borrowed(step.said, step.act.place, others)
        or any(" " in lead and not is_plain_check(lead) and others.says(lead, step.act.place, LEAST_COMMAND) for lead in leads)
    )


def _plain(tool: str) -> str:
    return tool.rpartition("__")[2]


def _numbered(steps: Sequence[str]) -> str:
    return "; ".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
