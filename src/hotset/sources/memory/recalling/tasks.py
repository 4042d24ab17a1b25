"""What somebody is about to do, from the words of the goal, the tools that were used, and the phase; and what each task wants.

A sentence speaks with its head ("Review the fix for the crash" is a review); an error that was pasted speaks for itself.
Text in quotes, code, and what is denied ("don't refactor") says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from hotset.nouns.memory import MemoryKind, Task
from hotset.sources.memory.recalling.task_words import DENIALS, HEADS, PHASES, POLITE, SIGNS, STATEMENTS, TRACES, WISHES, phrases

KIND_WEIGHTS: Mapping[Task, Mapping[MemoryKind, float]] = {
    Task.EXPLORATION: {
        MemoryKind.EPISODE: 0.6,
        MemoryKind.FACT: 0.3,
        MemoryKind.PROCEDURE: 0.1,
        MemoryKind.PITFALL: 0.0,
    },
    Task.IMPLEMENTATION: {
        MemoryKind.EPISODE: 0.15,
        MemoryKind.FACT: 0.5,
        MemoryKind.PROCEDURE: 0.35,
        MemoryKind.PITFALL: 0.0,
    },
    Task.DEBUGGING: {
        MemoryKind.EPISODE: 0.4,
        MemoryKind.FACT: 0.2,
        MemoryKind.PROCEDURE: 0.0,
        MemoryKind.PITFALL: 0.4,
    },
    Task.REVIEW: {
        MemoryKind.EPISODE: 0.3,
        MemoryKind.FACT: 0.5,
        MemoryKind.PROCEDURE: 0.0,
        MemoryKind.PITFALL: 0.2,
    },
    Task.REFACTORING: {
        MemoryKind.EPISODE: 0.25,
        MemoryKind.FACT: 0.45,
        MemoryKind.PROCEDURE: 0.3,
        MemoryKind.PITFALL: 0.0,
    },
}
"""How much of each kind a task wants; every row sums to 1."""


@dataclass(frozen=True, slots=True)
class Detected:
    task: Task
    confidence: float
    """From 0 (nothing speaks, or two tasks equally) to 1."""
    because: tuple[str, ...] = ()
    """What speaks for it, strongest first."""


def detect(goal: str, actions: Sequence[str] = (), phase: str = "") -> Detected:
    """`actions`: tools, each with its command or path behind it where it has one (`Bash pytest -q`, `Read src/a.py`)."""
    evidence = [*_from_words(goal), *_from_actions(actions), *_from_phase(phase)]
    scores = dict.fromkeys(Task, 0.0)
    for one in evidence:
        scores[one.task] += one.weight
    best, second = sorted(scores, key=scores.__getitem__, reverse=True)[:2]
    if not scores[best]:
        return Detected(Task.IMPLEMENTATION, 0.0)
    if scores[best] == scores[second] and scores[Task.IMPLEMENTATION] == scores[best]:
        best = Task.IMPLEMENTATION
    confidence = (scores[best] - scores[second]) / (scores[best] + _DOUBT) if scores[best] > scores[second] else 0.0
    told = sorted((one for one in evidence if one.task is best), key=lambda one: -one.weight)
    return Detected(best, round(confidence, 3), tuple(dict.fromkeys(one.why for one in told))[:_REASONS])


@dataclass(frozen=True, slots=True)
class _Evidence:
    task: Task
    weight: float
    why: str


_DOUBT = 1.0  # what a single weak sign is worth: alone it gives a confidence of one half
_REASONS = 4
_TRACE = 4.0  # as much as the head of the first sentence
_SIGN = 1.0
_SIGNS_AT_MOST = 3  # for a task: a long text has every word in it somewhere
_SURE = 3.0  # a head of this weight is what is asked; the ones behind it say how
_LATER = 0.4  # of a head behind a sure one
_NEAR = 600  # characters from the start, a title and what follows: the steps of a plan have every verb in them
_FAR = 0.25  # of what stands beyond
_START, _END = 3000, 700  # characters: who pastes a log or a file asks in front of it, or behind it


def _from_words(goal: str) -> Iterator[_Evidence]:
    text = _WRAPPED.sub(" ", _BLANKS.sub(lambda hit: hit[0][:_BLANKS_KEPT], _ends(goal, _PASTED, _PASTED_END)))
    if trace := TRACES.search(text):
        yield _Evidence(Task.DEBUGGING, _TRACE, f"an error in the text ({' '.join(trace[0].split())[:40]})")
    prose = _ends(_prose(text), _START, _END)
    asked = list(_from_heads(prose))
    yield from asked
    if all(one.weight < _SURE for one in asked):
        yield from _from_statement(prose)
    yield from _from_signs(prose)


def _ends(text: str, start: int, end: int) -> str:
    return text if len(text) <= start + end else f"{text[:start]}\n{text[-end:]}"


_PASTED, _PASTED_END = 30_000, 10_000  # characters in which an error is looked for
_BLANKS = re.compile(r"\n{4,}|[^\S\n]{9,}")  # a long run of them costs its square
_BLANKS_KEPT = 4
_WRAPPED = re.compile(
    r"<(system-reminder|local-command-[a-z]+|command-(?:name|message|args)|environment_context|permissions instructions"
    r"|user_instructions|INSTRUCTIONS)>.*?(?:</\1>|\Z)|<!--.{,2000}?-->",
    re.DOTALL,
)
"""What clients put around a prompt, and the hints of an issue's template. It is nobody's goal."""


def _prose(text: str) -> str:
    """The words that somebody says: without code, paths, and what they quote. All of it where nothing else is there."""
    said = _QUOTED.sub(" … ", _FENCED.sub("\n", text))
    return said if len(_WORD.findall(said)) > 1 else text


_FENCED = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_QUOTED = re.compile(
    r"""
    `[^`\n]*` | "[^"\n]{1,300}" | “[^”\n]{1,300}” | «[^»\n]{1,300}» | „[^“”\n]{1,300}[“”] | 「[^」\n]{1,300}」
    | (?<!\w)'[^'\n]{2,300}'(?!\w)
    | https?://\S+ | (?<![^\s(])[\w@~.-]*(?:/[\w@.*-]+)+/?                       # addresses and paths
    | \b\w+(?:\.\w+)+\b | \b\w*_\w+\b | \b[a-z]+[A-Z]\w* | (?<!\S)--?[a-z][\w-]*   # names of files, functions and options
    | ^[ \t]*>.*$ | ^[ \t]{4,}\S.*$                                               # quoted and indented lines
    """,
    re.MULTILINE | re.VERBOSE,
)
_WORD = re.compile(r"\w+")


def _from_heads(prose: str) -> Iterator[_Evidence]:
    """What each clause asks for."""
    seen: set[Task] = set()
    is_asked = False
    for start, clause in _clauses(prose):
        said = _polite().sub("", clause, count=1)
        if _denied().match(said):
            continue
        for task, weight, pattern in _heads():
            if hit := pattern.match(said):
                if task not in seen:
                    place = (_LATER if is_asked else 1.0) * _nearness(start)
                    yield _Evidence(task, weight * place, f"asks to “{_shortened(hit[0])}”")
                seen.add(task)
                is_asked = is_asked or weight >= _SURE
                break


def _clauses(prose: str) -> Iterator[tuple[int, str]]:
    start = 0
    for end in _clause().finditer(prose):
        yield start, prose[start : end.start()]
        start = end.end()
    yield start, prose[start:]


def _nearness(start: int) -> float:
    return 1.0 if start < _NEAR else _FAR


def _from_statement(prose: str) -> Iterator[_Evidence]:
    """Who asks for nothing and wishes nothing reports something."""
    if (said := _statement().match(prose[:_NEAR])) and not _wish().search(prose[:_NEAR]):
        yield _Evidence(Task.DEBUGGING, _SIGN, f"reports something (“{_shortened(said[0])} …”)")


# Compiled when the first goal comes: a twentieth of a second that the start of a program need not wait for.


@cache
def _clause() -> re.Pattern[str]:
    joins = phrases("and [then], then, but, so that, und [dann], dann, y [luego], luego, et, puis, ensuite")
    return re.compile(rf"[.!?;:,]+(?=\s|$)|[\n\u3002\uff01\uff1f\uff1b\uff0c]+|,?\s+(?:{joins})\s+(?=\w)")


@cache
def _polite() -> re.Pattern[str]:
    return re.compile(rf"[\W_]*(?:(?:{phrases(POLITE)})[\W_]*)*", re.IGNORECASE)


@cache
def _denied() -> re.Pattern[str]:
    return re.compile(phrases(DENIALS), re.IGNORECASE)


@cache
def _heads() -> tuple[tuple[Task, float, re.Pattern[str]], ...]:
    return tuple((task, weight, re.compile(phrases(words), re.IGNORECASE)) for task, weight, words in HEADS)


def _shortened(text: str) -> str:
    return " ".join(text.split()[:3]).lower()


def _from_signs(prose: str) -> Iterator[_Evidence]:
    for task, pattern in _signs().items():
        said: dict[str, float] = {}
        for hit in pattern.finditer(prose):
            if not _is_denied(prose, hit.start()):
                said.setdefault(" ".join(hit[0].lower().split()), _SIGN * _nearness(hit.start()))
        for word, weight in list(said.items())[:_SIGNS_AT_MOST]:
            yield _Evidence(task, weight, f"says “{word}”")


@cache
def _statement() -> re.Pattern[str]:
    return re.compile(rf"[\W_]*(?:{phrases(STATEMENTS)})\s+\w+", re.IGNORECASE)


@cache
def _wish() -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{phrases(WISHES)})", re.IGNORECASE)


@cache
def _signs() -> dict[Task, re.Pattern[str]]:
    return {task: re.compile(rf"(?<![a-zA-Z])(?:{phrases(words)})", re.IGNORECASE) for task, words in SIGNS.items()}


def _is_denied(prose: str, start: int) -> bool:
    return _denial().search(prose[max(0, start - _DENIED_WITHIN) : start]) is not None


_DENIED_WITHIN = 30  # characters before the word: "not a", "no need for any"


@cache
def _denial() -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{phrases(DENIALS)})(?:\s+(?:a|an|any|the|to|yet|do|be|really|need))*\s*$", re.IGNORECASE)


def _from_actions(actions: Sequence[str]) -> Iterator[_Evidence]:
    acts = [act for action in actions[-_RECENT:] if (act := _act(action))]
    if not acts:
        return
    share = {act: acts.count(act) / len(acts) for act in set(acts)}
    said = f"actions: {', '.join(sorted(share, key=lambda act: (-share[act], act)))}"
    changes = [at for at, act in enumerate(acts) if act in {"change", "make", "move"}]
    if not changes:
        yield _Evidence(Task.EXPLORATION, _ACTIONS * share.get("look", 0.0), said)
        yield _Evidence(Task.REVIEW, _ACTIONS * min(1.0, 2 * share.get("compare", 0.0)), said)
    before = acts[: changes[0]] if changes else acts
    if "test" in before or "trace" in before:
        yield _Evidence(Task.DEBUGGING, _ACTIONS, f"{said}; ran it before changing anything")
    if "move" in share:
        yield _Evidence(Task.REFACTORING, _ACTIONS * min(1.0, 3 * share["move"]), said)
    if "make" in share or "change" in share:
        yield _Evidence(Task.IMPLEMENTATION, max(_ACTIONS * share.get("make", 0.0), _CHANGED), said)


_ACTIONS = 3.0  # less than the first sentence's head: every task reads, and most of them change something
_CHANGED = 1.0  # a fix and a clean-up change files as well
_RECENT = 40


def _act(action: str) -> str:
    name, _, rest = action.strip().partition(" ")
    tool = _HUMP.sub("_", name.rpartition("__")[2].strip(":")).lower()
    for act, pattern in _TOOLS.items():
        if pattern.fullmatch(tool):
            return act
    command = rest if _SHELL.fullmatch(tool) else action
    for act, pattern in _COMMANDS.items():
        if pattern.search(command):
            return act
    return ""


_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SHELL = re.compile(
    r"(?:bash|sh|shell|zsh|exec_command|exec|local_shell|local_shell_call|run_command|run_in_terminal|run_terminal_cmd|execute_command|terminal)"
)
_TOOLS: Mapping[str, re.Pattern[str]] = {
    "look": re.compile(
        r"read|read_\w+|view|view_\w+|open|open_file|cat|grep|grep_\w+|glob|glob_\w+|ls|list|list_\w+|search|search_\w+|find|find_\w+|file_search|codebase_search"
        r"|web_?search|web_?fetch|fetch|get_\w+|notebook_read|semantic_search|symbols?|tree|repo_map"
    ),
    "move": re.compile(r"move|move_\w+|rename|rename_\w+|extract_\w+|delete_file|inline_\w+"),
    "make": re.compile(r"write|write_(?!stdin)\w+|create|create_file|new_file|save_file|add_file|insert_content"),
    "change": re.compile(
        r"edit|edit_\w+|multi_?edit|apply_patch|apply_diff|patch|str_replace\w*|search_replace|replace_\w+|update_file|notebook_edit|insert|edit_block"
    ),
    "test": re.compile(r"run_tests?|test|tests|run_test_\w+|pytest|jest"),
    "trace": re.compile(r"check_logs?|trace|get_logs?|read_logs?|debug\w*|get_errors|diagnostics|get_diagnostics|inspect_\w+"),
    "compare": re.compile(
        r"diff|git_diff|review_\w+|check_style|get_pull_request\w*|get_diff|lint|run_lint\w*|_?fetch_pr|create_review|add_review_comment"
    ),
}
_COMMANDS: Mapping[str, re.Pattern[str]] = {
    "test": re.compile(
        r"\b(?:pytest|unittest|nosetests|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|gotestsum)\b"
        r"|\b(?:npm|yarn|pnpm|bun|cargo|go|make|mvn|gradle|gradlew|dotnet|mix|swift|rake|deno)\s+(?:run\s+)?test\b"
        r"|\bruntests\b|\brepro(?:duce)?\w*\.\w+"
    ),
    "trace": re.compile(
        r"\b(?:pdb|gdb|lldb|strace|dmesg|journalctl|git bisect)\b|\b(?:tail|less|cat|grep)\b[^|;&]*\.log\b"
        r"|\b(?:docker|kubectl) logs\b"
    ),
    "compare": re.compile(
        r"\bgit (?:diff|show|log|blame)\b|\bgh pr (?:diff|view|review|checks)\b"
        r"|\b(?:ruff check|eslint|mypy|pylint|flake8|clippy|golangci-lint)\b"
    ),
    "move": re.compile(r"(?:^|[;&|]\s*)(?:git mv|mv|git rm)\s"),
    "make": re.compile(
        r"(?:^|[;&|]\s*)(?:mkdir|touch)\s|\bcat\s*>+\s*\S+\s*<<|\btee\s+\S+\s*<<"
        r"|\bnpm (?:init|create)\b|<<\s*['\"]?EOF['\"]?\s*>\s*\S"
    ),
    "change": re.compile(r"\bsed\s+(?:-\w+\s+)*-i|\bperl\s+-\w*i|\bgit apply\b|\bpatch\s+-p|\bapply_patch\b"),
    "look": re.compile(
        r"(?:^|[;&|]\s*)(?:rg|grep|find|ls|cat|head|tail|sed -n|nl|tree|wc|fd|bat|less|ag|awk"
        r"|git (?:status|ls-files|grep))(?:\s|$)"
    ),
}
"""The first that fits holds: running a test and printing its end is running a test."""


def _from_phase(phase: str) -> list[_Evidence]:
    return [_Evidence(task, weight, f"phase “{phase.strip()}”") for task, weight, pattern in _phases() if pattern.search(phase)]


@cache
def _phases() -> tuple[tuple[Task, float, re.Pattern[str]], ...]:
    return tuple((task, weight, re.compile(rf"\b(?:{phrases(words)})", re.IGNORECASE)) for task, weight, words in PHASES)
