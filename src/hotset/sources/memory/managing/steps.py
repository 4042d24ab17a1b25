"""Actions, files and errors without what differs from one time to the next: by these they are known again."""

from __future__ import annotations

import re
import shlex
from functools import lru_cache

from hotset.nouns.memory import Action, Trouble
from hotset.sources.memory.encoding.taint import is_dangerous
from hotset.text.languages import PLAIN, language_of

_MOST_STEP = 80  # characters
_MOST_WORDS = 3
_SHELL = re.compile(r"bash|shell|exec|terminal|command|cmd|^sh$", re.IGNORECASE)
_ASIDE = re.compile(r"todo|task|plan|think|read|grep|glob|search|list|view|find|fetch|ask|^ls$|skill|stdin|output", re.IGNORECASE)
_BEFORE = frozenset({"sudo", "time", "env", "command", "exec", "nohup"})  # a command stands behind these
_ENDS = frozenset({"cd", "echo", "export", "source", "set", "sleep", "true", "false", "test", "[", "pushd", "timeout"})
_TIDIES = "rm mv cp mkdir touch kill pkill chmod ln"
_LOOKS = (
    "ls cat head tail less find fd grep rg sed awk wc pwd which nl tree file stat diff cut sort uniq xargs printf jq date xxd ps"
)
_IDLE = frozenset((*_LOOKS.split(), *_TIDIES.split()))
_GIT_LOOKS = re.compile(
    r"(?:\w+ )?(?:git (?:/\S+ )?(?:status|log|diff|show|branch|fetch|config|blame|remote|add|stash|checkout)"
    r"|gh (?:api|pr (?:view|diff|list)))\b"
)
_ALONE = "pytest tox nox ruff mypy eslint tsc jest vitest make ctest ninja rspec phpunit pylint flake8 black prettier"
_WHOLE = frozenset(_ALONE.split())  # programs that say all without another word
_CUTS = re.compile(r"&&|\|\||[;|]")
_WORD = re.compile(r"[A-Za-z0-9][\w./:@+-]*|\.{0,2}/[\w./@+-]+|-m")
_PROGRAM = re.compile(r"(?:\.{0,2}/|~/)?[a-zA-Z][\w./+-]*")
_PATH = re.compile(r"[\w~.@+-]*/[\w./@~+-]+|[\w@+-]+\.\w{1,5}")
_VALUE = re.compile(r"0x[0-9a-f]+|[0-9a-f]{7,}|\d+|'[^']*'|\"[^\"]*\"|`[^`]*`", re.IGNORECASE)
_GETS = re.compile(r"\b(?:install|add|curl|wget|npx|bunx|uvx|pipx|dlx|get|pull|clone|fetch|download|ssh|scp|eval)\b|://")
_OF_A_DAY = re.compile(
    r"(?:^|[/\s])(?:\w*repro\w*|verify\w*|debug\w*|apply_\w*|update_\w*|check_\w+|inspect_\w*|fix_\w*|tmp\w*|scratch\w*|demo\w*"
    r"|test_(?:repro|issue|fix|case|edge|manual|script|patch)\w*|[\w-]+_(?:repro|v\d+|patch|fix))\.\w+|(?:^|\s)/?tmp/"
)
_ELSEWHERE = re.compile(r"(?:^|/)(?:node_modules|site-packages|\.venv|\.cache|plugins|home|\.local)/|\.\.\.|^@|[*{}$]")
_SHORTEST_NAME = 3  # letters before an ending: `d.ts` is a piece of a name
_SPACE = re.compile(r"\s+")


def step_of(action: Action) -> str:
    """`bun run test`, `pytest tests/test_auth.py`, a tool's name; empty where it failed, looked, tidied up or edited a file."""
    target = action.target.strip()
    if action.failed or not target or _PATH.fullmatch(target):
        return ""
    is_tool = not _SHELL.search(action.tool) and not _ASIDE.search(action.tool)
    step = action.tool[:_MOST_STEP] if is_tool else command_of(action.tool, target)
    return "" if is_of_a_day(step) else step


def is_risky(step: str) -> bool:
    """Does it fetch or install something, or what no rule may recommend? Others may have talked an agent into it."""
    return _GETS.search(step) is not None or is_dangerous(step)


def is_of_a_day(name: str) -> bool:
    """Is it a script that somebody wrote to try something?"""
    return _OF_A_DAY.search(name) is not None


def is_lasting_file(path: str) -> bool:
    """Does it look like a file of the project? Whoever reads commands takes much for one that is none."""
    stem = path.rsplit("/", 1)[-1].split(".", 1)[0]
    known = len(stem) >= _SHORTEST_NAME and language_of(path) is not PLAIN
    return known and not is_of_a_day(path) and _ELSEWHERE.search(path) is None


def command_of(tool: str, target: str) -> str:
    """What a shell was asked to do, without its values; empty where it was no shell, or nothing that does something."""
    return _command(target) if _SHELL.search(tool) else ""


def action_key(tool: str, target: str) -> str:
    """By which one action is known as a repetition of another."""
    return command_of(tool, target) or f"{tool} {_VALUE.sub('#', _SPACE.sub(' ', target).strip())}"[:_MOST_STEP]


def is_rule(kind: str) -> bool:
    """Is it the name of a linter's rule?"""
    return kind.startswith("lint/")


def trouble_key(trouble: Trouble) -> str:
    """The same error of the same action, whatever the numbers, names in quotes and addresses in it; a linter's rule says all."""
    if is_rule(trouble.kind):
        return f"{trouble.kind}|{action_key(trouble.tool, trouble.target)}"
    said = _VALUE.sub("#", _PATH.sub("/", trouble.said.strip().split("\n", 1)[0]))
    return f"{trouble.kind}|{action_key(trouble.tool, trouble.target)}|{_SPACE.sub(' ', said)[:_MOST_STEP]}"


@lru_cache(maxsize=4096)  # the same few come up again and again, and taking one apart is half of a consolidation
def _command(target: str) -> str:
    """The first command of a line that does something: its program, and the words up to the first that is a value."""
    if "\n" in target.strip() or "<<" in target:
        return ""
    for part in _CUTS.split(target):
        words = _words(part)
        while words and (words[0] in _BEFORE or re.fullmatch(r"\w+=\S*", words[0])):
            words = words[1:]
        if not words or words[0] in _ENDS or words[0].rsplit("/", 1)[-1] in _IDLE or not _PROGRAM.fullmatch(words[0]):
            continue
        kept = " ".join(_kept(words))
        if kept and not _GIT_LOOKS.match(kept):
            return kept[:_MOST_STEP]
    return ""


def _kept(words: list[str]) -> list[str]:
    kept = [words[0].rsplit("/", 1)[-1]]
    for word in words[1:]:
        if word.startswith("-") and word != "-m":
            continue
        if (
            len(kept) >= _MOST_WORDS
            or not _WORD.fullmatch(word)
            or _VALUE.fullmatch(word)
            or (word == "-m" and "python" not in kept[0])
        ):
            break
        kept.append(word)
    return kept if len(kept) > 1 or kept[0] in _WHOLE else []


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part)
    except ValueError:
        return part.split()
