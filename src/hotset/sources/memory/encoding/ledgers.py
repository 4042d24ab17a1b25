"""Where unfinished work stands, when its session ends: what was done, what is open, and the last error. Pure, by rules.

What is open is taken from the agent's own list of things to do, from what its last reply leaves open, and from the check that is
red. Words that others wrote before, and orders, are left out: this is told to whoever goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hotset.nouns.memory import Checkpoint, Ending
from hotset.sources.memory.encoding.acting import Act, Doing, check_family
from hotset.sources.memory.encoding.changing import decoded
from hotset.sources.memory.encoding.general import in_project, is_file, is_throwaway, parts_of
from hotset.sources.memory.encoding.outcomes import Came
from hotset.sources.memory.encoding.procedures import work_root
from hotset.sources.memory.encoding.taint import LEAST_SENTENCE, Outside, is_dangerous, is_order, quoted
from hotset.sources.memory.encoding.troubles import Mishap
from hotset.sources.memory.encoding.wording import changed_files
from hotset.text.clip import clip_prose
from hotset.text.sentences import without_fences
from hotset.text.terms import topic_words
from hotset.text.words import once

_MOST = 6  # points of a list
_LONGEST = 120  # characters of a point
_MOST_FILES = 6
_LONGEST_ERROR = 140
_LONGEST_COMMAND = 80
_FEWEST_WORDS = 2  # that tell something: "commit" and "go on" leave nothing open
_SCRIPT = "script"
_CLIENTS = re.compile(r"(?:^|/)\.(?:claude|codex|cursor|gemini)/")
"""What an agent's client keeps for itself."""
_LISTS = ("todos", "plan", "items", "tasks", "todoList", "todo_list")
_WORDS = ("content", "step", "text", "title", "description", "task", "subject")
_DONE = frozenset({"completed", "done", "complete", "finished", "cancelled", "canceled"})
_DOING = frozenset({"in_progress", "in-progress", "doing", "active"})
_BOX = re.compile(r"^\s*[-*] \[( |x|X)\] +(\S.{2,200})$", re.MULTILINE)
_LEFT = re.compile(
    r"^\W*(?:next steps?|remaining(?: work| tasks| items| steps)?|still (?:open|to do|missing)|to ?do|not (?:yet )?done"
    r"|left to do|open (?:points|items|questions))\W*$",
    re.IGNORECASE,
)
_POINT = re.compile(r"^\s*(?:[-*\u2022]|\d{1,2}[.)])\s+(\S.{2,200})$")
_MARKUP = re.compile(r"\*\*|`|__")


@dataclass(frozen=True, slots=True)
class Left:
    """What a session left."""

    checkpoint: Checkpoint
    title: str
    text: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """What is known of a stretch of work when it ends."""

    title: str
    acts: Sequence[Act]
    mishaps: Sequence[Mishap]
    came: Came
    reply: str
    """What the model said last."""
    asked: str
    """What the user said last, where that was more than the goal."""
    calls: Mapping[int, str]
    """By their place: the calls of the agent's own lists."""
    place: int
    """Of the end in the line."""


def left_by(ended: Ended, others: Outside) -> Left | None:
    """None where nothing is open, or nobody could go on with it."""
    lists = _Lists.of(ended)
    own = [_own(point, ended.place, others) for point in lists.open]
    open_points = once((point for point in own if point), _MOST)
    root = work_root(ended.acts)
    changed = (path for path in changed_files(ended.acts) if is_file(path) and not _CLIENTS.search(path))
    files = once((in_project(path, root) for path in changed), _MOST_FILES)
    red = next((each for each in reversed(ended.mishaps) if each.by is None and _is_of_the_project(each.failed)), None)
    ended_badly = ended.came.ending in (Ending.PARTIAL, Ending.FAILURE)
    if ended.came.ending is Ending.SUCCESS or not (open_points or (files and (ended_badly or red is not None))):
        return None
    done = once((point for each in lists.done if (point := _own(each, ended.place, others))), _MOST)
    blockers = (_error(red),) if red is not None and ended_badly else ()
    says_something = ended_badly and len(set(topic_words(ended.asked))) >= _FEWEST_WORDS
    asked = _own(ended.asked, ended.place, others) if says_something else ""
    following = open_points or ((f"the user said: {asked}",) if asked else _make_it_pass(red))
    if not following and not blockers:
        return None  # its episode says as much
    checkpoint = Checkpoint(done=done, doing=clip_prose(ended.title, _LONGEST), next=following, blockers=blockers)
    return Left(
        checkpoint=checkpoint,
        title=clip_prose(f"Unfinished: {ended.title}", 90),
        text=_text(checkpoint, ended.came.why, files),
        files=files,
    )


@dataclass(frozen=True, slots=True)
class _Lists:
    """What the agent set itself to do."""

    done: tuple[str, ...]
    open: tuple[str, ...]

    @classmethod
    def of(cls, ended: Ended) -> _Lists:
        """Its latest list, and what its last reply leaves open."""
        for place in sorted(ended.calls, reverse=True):
            points = list(_points(decoded(ended.calls[place])))
            if points:
                found = cls(tuple(text for text, state in points if state in _DONE), tuple(_open(points)))
                break
        else:
            found = cls((), ())
        if not ended.acts:  # advice to somebody is no list of one's own
            return found
        boxes = _BOX.findall(ended.reply)
        done = (*found.done, *(text for mark, text in boxes if mark != " "))
        return cls(done, (*found.open, *(text for mark, text in boxes if mark == " "), *_left_open(ended.reply)))


def _points(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    listed: list[Any] = next((arguments[name] for name in _LISTS if isinstance(arguments.get(name), list)), [])
    for point in listed:
        if isinstance(point, dict):
            text = next((point[name] for name in _WORDS if isinstance(point.get(name), str)), "")
            if text:
                yield text, str(point.get("status", "")).lower()


def _open(points: Sequence[tuple[str, str]]) -> list[str]:
    """What was begun first."""
    left = [(text, state) for text, state in points if state not in _DONE]
    return [text for text, state in left if state in _DOING] + [text for text, state in left if state not in _DOING]


def _left_open(reply: str) -> Iterator[str]:
    """The points under a heading that says that they are still to be done."""
    under = False
    for line in without_fences(reply).splitlines():
        point = _POINT.match(line)
        if point and under and not _BOX.match(line):
            yield point.group(1)
        elif line.strip():
            under = _LEFT.match(line.strip()) is not None


def _own(text: str, place: int, others: Outside) -> str:
    """In a line, where it is nobody else's and gives no orders."""
    plain = clip_prose(_MARKUP.sub("", text), _LONGEST)
    return "" if is_order(plain) or is_dangerous(plain) or others.says(plain, place, LEAST_SENTENCE) else plain


def _is_of_the_project(failed: Act) -> bool:
    """A check that will be there next time."""
    return failed.doing is Doing.CHECK and failed.family != _SCRIPT and bool(_checked_by(failed))


def _checked_by(failed: Act) -> str:
    parts = [part for part in parts_of(failed.command) if check_family(part)]
    return clip_prose(parts[0], _LONGEST_COMMAND) if parts and not is_throwaway(parts[0].split()[-1]) else ""


def _error(red: Mishap) -> str:
    last = red.lately or red.failed
    said = quoted(last.verdict.said, _LONGEST_ERROR)
    return f"`{_checked_by(red.failed)}` fails with {last.verdict.kind}" + (f' (data: "{said}")' if said else "")


def _make_it_pass(red: Mishap | None) -> tuple[str, ...]:
    return (f"make `{_checked_by(red.failed)}` pass",) if red is not None else ()


def _text(left: Checkpoint, why: str, files: Sequence[str]) -> str:
    parts = (
        f"Work on \u201c{left.doing}\u201d was left unfinished ({why}).",
        f"Done: {'; '.join(left.done)}." if left.done else "",
        f"Open: {'; '.join(left.next)}." if left.next else "",
        f"In the way: {'; '.join(left.blockers)}." if left.blockers else "",
        f"Files: {', '.join(files)}." if files else "",
    )
    return " ".join(part for part in parts if part)
