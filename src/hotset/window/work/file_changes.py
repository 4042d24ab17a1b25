"""The files that a stretch of work changed in the end: what was edited back, thrown away or removed
again is none. Pure.

Commands are read as they stand: no file is looked at. Where it is in doubt whether a change still
stands, it does not.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch

from hotset.window.work.calls import Act, ActKind

Sides = tuple[tuple[str, ...], tuple[str, ...]]
"""The lines that an edit took away and those that it wrote; empty where that is unknown."""

_UNKNOWN: Sides = ((), ())
_MOVES_FILES = re.compile(r"\b(?:rm|mv|unlink|git)\b")
_UNDO = frozenset({"rm", "unlink", "mv", "git"})
_ENDS = frozenset("();<>|&\n")
_FOLLOWS = re.compile(r"\w+=\S*|sudo|command|time")
_GLOB = "*?["
_EVERYTHING = frozenset({".", "./", "*", ":/", ":"})


@dataclass(frozen=True, slots=True)
class StandingChange:
    """A changed file."""

    path: str
    """As it was written in the call, or where the file was moved to."""
    edits: tuple[Act, ...]
    """The calls whose change still stands, the oldest first."""


def changed_files(acts: Sequence[Act]) -> tuple[str, ...]:
    """Files that were written or edited, and whose change was not taken back."""
    return tuple(each.path for each in standing_changes(acts))


def standing_changes(
    acts: Sequence[Act], sides: Callable[[Act, str], Sides] | None = None
) -> tuple[StandingChange, ...]:
    """The changes that stand after these calls. `sides` says what an edit did to a file; without it
    edits that undo each other both count."""
    tree = _Tree()
    for act in acts:
        if not act.answered or act.verdict.declined or act.verdict.open:
            continue
        edits = act.doing is ActKind.EDIT and not act.verdict.failed
        commands = list(_commands(act.script)) if _MOVES_FILES.search(act.script) else []
        if act.verdict.failed and len(commands) < 2:
            commands = [each for each in commands if each[0] in ("rm", "unlink")]
        for words in commands:
            if (
                edits
                and words[0] not in _UNDO
                and any(file in " ".join(words) for file in act.files)
            ):
                tree.edit(act, sides)
                edits = False
            tree.run(words)
        if edits:
            tree.edit(act, sides)
    return tuple(
        StandingChange(path, tuple(each.act for each in edits))
        for path, edits in tree.files.items()
    )


def _commands(script: str) -> Iterator[list[str]]:
    """The words of each command; what runs only where another one failed is left out."""
    lexer = shlex.shlex(script, posix=True, punctuation_chars="".join(_ENDS))
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    words: list[str] = []
    waits = False
    try:
        for token in (*lexer, "\n"):
            if not _ENDS.issuperset(token):
                words += [] if not words and _FOLLOWS.fullmatch(token) else [token]
                continue
            if words and not waits:
                yield words
            words, waits = [], token.startswith("||")
    except ValueError:  # a quotation without an end
        yield from (line.split() for line in script.splitlines() if line.strip())


@dataclass(frozen=True, slots=True)
class _Edit:
    act: Act
    gone: tuple[str, ...] = ()
    came: tuple[str, ...] = ()
    committed: bool = False


class _Tree:
    """The edits of each file that stand so far."""

    def __init__(self) -> None:
        self.files: dict[str, list[_Edit]] = {}
        self._staged: set[str] = set()
        self._stashed: list[dict[str, list[_Edit]]] = []

    def edit(self, act: Act, sides: Callable[[Act, str], Sides] | None) -> None:
        for path in act.files:
            if path in act.removed:
                self.files.pop(path, None)
            elif act.made:
                self.files[path] = [*self._committed(path), _Edit(act)]
            else:
                gone, came = sides(act, path) if sides is not None else _UNKNOWN
                self._keep(path, _join([*self.files.get(path, ()), _Edit(act, gone, came)]))

    def run(self, words: list[str]) -> None:
        name, *rest = words
        named = [word for word in rest if not word.startswith("-")]
        if name in ("rm", "unlink"):
            self._remove(named)
        elif name == "mv":
            self._move(named)
        elif name == "git":
            while rest[:1] in (["-C"], ["-c"]):
                rest = rest[2:]
            if rest:
                self._run_git(rest[0], rest[1:])

    def _run_git(self, verb: str, rest: list[str]) -> None:
        flags = {word for word in rest if word.startswith("-")}
        named = [word for word in rest if not word.startswith("-")]
        match verb:
            case "rm" if "--cached" not in flags:
                self._remove(named)
            case "mv":
                self._move(named)
            case "stash":
                self._stash(named)
            case "add":
                is_all = bool(flags & {"-A", "--all", "-u", "--update"})
                self._staged.update(self._named(["."] if is_all else named))
            case "commit":
                is_all = any(re.fullmatch(r"--all|-[a-z]*a[a-z]*", each) for each in flags)
                self._commit(self._named(["."]) if is_all else self._staged)
            case _:
                self._throw_away(verb, flags, rest)

    def _throw_away(self, verb: str, flags: set[str], rest: list[str]) -> None:
        """What git commands take back that bring files of another state."""
        at = rest.index("--") if "--" in rest else len(rest)
        before = [word for word in rest[:at] if not word.startswith("-")]
        is_other = bool(before) and before[0] not in ("HEAD", "@")
        named = rest[at + 1 :] if at < len(rest) else before
        match verb:
            case "checkout" | "switch" if flags & {"-f", "--force", "--discard-changes"}:
                self._take_back(["."])
            case "checkout" if not flags & {"-b", "-B", "--orphan"}:
                self._take_back(named, committed=is_other and at < len(rest))
            case "restore" if not flags & {"--staged", "-S"} or flags & {"--worktree", "-W"}:
                self._take_back(named)
            case "reset" if "--hard" in flags:
                self._take_back(["."], committed=is_other)
            case "revert":
                self._take_back(["."], committed=True)

    def _named(self, words: Sequence[str]) -> list[str]:
        return [path for path in self.files if any(_names(word, path) for word in words)]

    def _committed(self, path: str) -> list[_Edit]:
        return [each for each in self.files.get(path, ()) if each.committed]

    def _keep(self, path: str, edits: list[_Edit]) -> None:
        if edits:
            self.files[path] = edits
        else:
            self.files.pop(path, None)

    def _remove(self, words: Sequence[str]) -> None:
        for path in self._named(words):
            del self.files[path]

    def _take_back(self, words: Sequence[str], *, committed: bool = False) -> None:
        for path in self._named(words):
            self._keep(path, [] if committed else self._committed(path))

    def _stash(self, words: Sequence[str]) -> None:
        if words[:1] in (["pop"], ["apply"]):
            for path, edits in (self._stashed.pop() if self._stashed else {}).items():
                self._keep(path, [*self.files.get(path, ()), *edits])
        elif not words or words[0] in ("push", "save"):
            self._stashed.append(
                {
                    path: [each for each in edits if not each.committed]
                    for path, edits in self.files.items()
                }
            )
            self._take_back(["."])

    def _commit(self, paths: Sequence[str] | set[str]) -> None:
        for path in [each for each in self.files if each in paths]:
            self.files[path] = [replace(each, committed=True) for each in self.files[path]]
        self._staged.clear()

    def _move(self, words: Sequence[str]) -> None:
        if len(words) < 2:
            return
        *sources, to = words
        for source in sources:
            for path in self._named([source]):
                is_glob = any(sign in source for sign in _GLOB)
                name = path if is_glob else _plain(source)
                moved = _moved(path, name, to, into=is_glob or len(sources) > 1)
                self.files[moved] = self.files.pop(path)


def _join(edits: list[_Edit]) -> list[_Edit]:
    """Without the latest edit and those before it that it takes back."""
    new = edits[-1]
    was, taken = new.gone, [len(edits) - 1]
    if new.gone or new.came:
        for at in range(len(edits) - 2, -1, -1):
            each = edits[at]
            if (each.gone or each.came) and each.came == was:
                was = each.gone
                taken.append(at)
                if was == new.came:
                    return [each for at, each in enumerate(edits) if at not in taken]
    return edits


def _plain(word: str) -> str:
    return word.removeprefix("./").rstrip("/")


def _names(word: str, path: str) -> bool:
    """True if a word of a command names this file, a folder of it, or everything."""
    if word in _EVERYTHING:
        return True
    name, path = _plain(word), _plain(path)
    if not name:
        return False
    if any(sign in name for sign in _GLOB):
        return fnmatch(path, name) or fnmatch(path, f"*/{name}")
    return (
        path == name
        or path.endswith(f"/{name}")
        or path.startswith(f"{name}/")
        or f"/{name}/" in path
        or name.endswith(f"/{path}")
    )


def _moved(path: str, source: str, to: str, *, into: bool) -> str:
    """Where a file is after its move."""
    whole = f"/{_plain(path).lstrip('/')}/"
    head, found, inside = whole.partition(f"/{source.lstrip('/')}/")
    file = source.rpartition("/")[2]
    is_folder = into or to.endswith("/") or ("." in file and "." not in to.rpartition("/")[2])
    place = f"{_plain(to)}/{file}" if is_folder else _plain(to)
    rest = f"{place}/{inside}".rstrip("/")
    front = head if path.startswith("/") else head[1:]
    return f"{front}/{rest}" if found and front and not place.startswith("/") else rest
