"""What an agent did: each call with its target, what sort of doing it was, and what its result says. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import msgspec

from hotset.nouns.page import Kind, PageId
from hotset.sources.memory.encoding.reading import Said
from hotset.sources.memory.encoding.verdicts import NOTHING, Verdict, verdict
from hotset.text.words import once, word_set
from hotset.window.page_text import PATH_NAMES


class Doing(Enum):
    READ = "read"
    """Looks at something and changes nothing."""
    EDIT = "edit"
    """Changes files."""
    CHECK = "check"
    """Runs tests, a linter, a build: something that can fail for a reason."""
    RUN = "run"
    """Any other command."""
    OTHER = "other"
    """A tool of some other trade."""
    PLAN = "plan"
    """The agent talks to itself: plans, lists, questions."""


@dataclass(frozen=True, slots=True)
class Act:
    """One call."""

    place: int
    """Where it stands in the line."""
    page: PageId
    time: float
    tool: str
    doing: Doing
    target: str
    """A path, a command's first line, a query. Short."""
    command: str = ""
    """What a shell was asked, without what only shapes its output."""
    family: str = ""
    """Of a check: what it checks with."""
    fixes: bool = False
    """A check that mends what it finds."""
    files: tuple[str, ...] = ()
    made: bool = False
    """It wrote a file whole."""
    verdict: Verdict = NOTHING
    answered: bool = False
    result: PageId | None = None
    result_place: int = 0

    @property
    def failed(self) -> bool:
        return self.verdict.failed and not self.verdict.declined

    @property
    def passed(self) -> bool:
        return self.answered and not self.verdict.failed and not self.verdict.open


_SHELLS = word_set("""
    bash shell terminal exec exec_command run_command execute_command execute_bash run_shell_command run_terminal_cmd
    run_in_terminal shell_command local_shell container.exec powershell sh command
    """)
_READERS = word_set("""
    read read_file readfile read_text_file read_many_files view view_file cat open_file get_file_contents notebookread grep glob
    ls list list_dir list_directory search search_files codebase_search file_search find find_files webfetch web_fetch fetch
    fetch_url websearch web_search task agent subagent view_image read_wiki_structure read_wiki_contents bashoutput write_stdin
    list_files tool_search get_file outline search_code
    """)
_EDITORS = word_set("""
    edit multiedit write write_file create_file str_replace str_replace_editor str_replace_based_edit_tool apply_patch edit_file
    replace insert_edit_into_file replace_in_file notebookedit search_replace update_file delete_file apply_diff
    """)
_WRITERS = frozenset({"write", "write_file", "create_file"})
_PLANNERS = word_set("""
    todowrite todo_write write_todos update_todo_list manage_todo_list update_plan exitplanmode exit_plan_mode enterplanmode think
    taskcreate taskupdate tasklist taskget askuserquestion ask_question ask_user skill task_complete attempt_completion
    """)
_COMMAND_NAMES = ("command", "cmd", "script", "commands", "input", "code")
_QUERY_NAMES = ("pattern", "query", "q", "question", "prompt", "description", "expression", "name", "id")
_LONGEST_TARGET = 120
_MOST_FILES = 12
_LOOKED_AT = 2000

_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.{1,300})$", re.MULTILINE)
_ADDED = re.compile(r"^\*\*\* Add File: ", re.MULTILINE)
_SKIPPED = re.compile(
    r"(?:cd|pushd)\s+(?:\"[^\"]*\"|'[^']*'|\S+)[ \t]*(?:&&|;|\n|$)\s*|set\s+-\w+(?:\s+pipefail)?[ \t]*(?:&&|;|\n|$)\s*"
    r"|export\s+\w+=\S*[ \t]*(?:&&|;|\n|$)\s*"
    r"|source\s+\S+[ \t]*(?:&&|;|\n|$)\s*|\.\s+\S+activate\s*(?:&&|;|$)\s*|#[^\n]*(?:\n|$)|(?:sudo|time|rtk proxy)\s+"
    r"|(?:timeout\s+\S+)\s+"
)
_SHAPING = re.compile(
    r"\s*(?:2>&1|2>\s?/dev/null|>\s?/dev/null|\|\s*(?:tail|head|less|cat|tee|grep|sed|awk|sort|uniq|wc"
    r"|cut)\b[^|;&]*|;\s*echo\b[^;&|]*)\s*$"
)
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")
_WRITES = re.compile(
    r"(?:^|[\s;&|])(?:cat|echo|printf|tee)\b[^\n|]*?(?:>{1,2}|\btee(?:\s+-a)?)\s*([\w./~@+-]{1,200})|(?:^"
    r"|[\s;&|])>\s*([\w./~@+-]{1,200})"
)
_CHANGES = re.compile(
    r"(?:^|[\s;&|(])(?:sed\s+(?:-\w+\s+)*-i|perl\s+-\w*i|patch\s|git\s+apply|apply_patch|mv\s|cp\s|rm\s|mkdir\s|touch\s)"
)
_LOOKS = re.compile(
    r"(?:cd|pushd|popd|cat|ls|ll|od|grep|rg|ag|find|fd|head|tail|sed\s+-n|nl|awk|wc|pwd|which|type|whereis"
    r"|tree|jq|file|stat|du|df|env|printenv|date|echo|printf"
    r"|less|more|diff|cmp|sort|uniq|cut|ps|lsof|man|whoami|uname|sleep|true|test|\[|history|id|hostname"
    r"|curl(?!.*\s(?:-X|--request|-d|--data\S*|-o|-O|-F)\b)|xxd|strings|bat|column|tmux capture-pane"
    r"|(?:\w+\s+)?git\s+(?:-\S+\s+\S+\s+)?(?:log|status|diff|show|branch|blame|grep|remote|rev-parse"
    r"|ls-files|ls-remote|fetch|worktree list|config --get|describe|stash list|reflog|shortlog|merge-base"
    r"|for-each-ref|cat-file)"
    r"|gh\s+(?:\w+\s+)?(?:view|list|status|diff|checks|api|search)|bd\s+(?:show|list|ready|prime|status)"
    r"|npm\s+(?:view|ls|list|info)|pip\s+(?:show|list|freeze)"
    r"|docker\s+(?:ps|logs|images|inspect)|kubectl\s+(?:get|describe|logs)"
    r"|[\w./-]+(?:\s+[\w-]+)?\s+(?:status|list|show|view|describe|info|logs?|ls|search|capture|ps|help"
    r"|version)|command\s+-v)(?![\w-])"
    r"|\S+(?:\s+\S+){0,2}\s+(?:--help|--version|-h|-V)(?!\S)"
)
_PIPED = re.compile(r"(?<!\|)\|(?!\|)|\|\| *true|; *(?:echo|true)\b")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_SCRIPT = r"(?:npm|pnpm|yarn|bun|deno)(?: run)?(?: -\S+ \S+)*"
_MADE_TO_CHECK = r"(?:all|ci|[\w./-]*(?:test|check|lint|build|verif|valid|typ|compil|cov)[\w./-]*)"
"""What is made to see whether it works; `make install` does something else."""
_CHECKS: Sequence[tuple[str, re.Pattern[str]]] = tuple(
    (name, re.compile(rf"(?:^|[\s;&|(/])(?:{pattern})(?![\w-])"))
    for name, pattern in (
        ("pytest", r"pytest|py\.test|tox|nox"),
        ("unittest", r"unittest|manage\.py test|runtests\.py|bin/test"),
        ("jest", r"jest|vitest|mocha|playwright test|cypress run"),
        ("typecheck", rf"tsc|tsgo|mypy|pyright|{_SCRIPT} (?:typecheck|type-check|types)\S*"),
        (
            "lint",
            rf"eslint|biome|ruff|flake8|pylint|prettier|golangci-lint|clippy|{_SCRIPT} (?:lint|format|check)\S*",
        ),
        ("test", rf"{_SCRIPT} test\S*|bun --filter \S+ test"),
        (
            "build",
            rf"{_SCRIPT} build\S*|(?:vite|next|turbo|webpack) build|docker build|cmake --build",
        ),
        ("cargo", r"cargo (?:test|build|check|nextest|run)"),
        ("go", r"go (?:test|build|vet)"),
        ("make", rf"make(?: -\S+)*(?: {_MADE_TO_CHECK}| *(?=$|[;&|>]))|ninja|ctest"),
        ("jvm", r"(?:mvn|gradle|gradlew)\S*(?: \S+)* (?:test|build|verify|check|package)"),
        ("other", r"rspec|phpunit|dotnet (?:test|build)|mix test|swift (?:test|build)|pre-commit run|prek run"),
        ("script", r"python[\d.]* (?:-\w+ )*\S*(?:test|repro|verify|check)\S*\.py|node \S*(?:test|repro|verify|check)\S*\.m?js"),
    )
)
_FIXES = re.compile(
    r"(?:--|:)fix\b|--write\b|--apply\b"
    r"|(?:\b(?:ruff|biome|cargo|go|dotnet|deno|mix) (?:format|fmt)|(?:^|[\s/])black)\b(?!.*--check)"
)
"""What mends what a linter finds."""
_MESSAGE = re.compile(r"\s+(?:-a?m|--message|--body|-F -)[ =]*[\"']?\$\(cat <<.*$")
"""A message that is written in place: its text is no part of the command."""
_COMMIT = re.compile(r"git commit\b")


def acts(line: Sequence[Said], first: int = 0) -> list[Act]:
    """The calls of a part of a line, each with what came back; `first` is the place of its first page."""
    results: dict[str, list[tuple[int, Said]]] = {}
    for place, each in enumerate(line, first):
        if each.page.kind.family is Kind.TOOL_RESULT and each.page.call:
            results.setdefault(each.page.call, []).append((place, each))
    found: list[Act] = []
    for place, each in enumerate(line, first):
        if each.page.kind.family is Kind.TOOL_CALL:
            answers = results.get(each.page.call, ()) if each.page.call else ()
            answer = next(((at, result) for at, result in answers if at > place), None)
            found.append(_act(place, each, answer))
    return found


def check_family(command: str) -> str:
    """What a command checks with; empty where it is no check, or only speaks of one."""
    return _family(_QUOTED.sub("Q", command))


def is_look(command: str) -> bool:
    """Does it look at something and change nothing?"""
    return _is_look(command)


def shell_words(command: str) -> frozenset[str]:
    """What a command is made of, to tell whether two are alike."""
    return frozenset(word for word in re.findall(r"[\w./@:=-]+", command) if len(word) > 1)


def _act(place: int, call: Said, answer: tuple[int, Said] | None) -> Act:
    tool = call.page.tool
    plain = tool.rpartition("__")[2].lower()
    arguments = _decoded(call.text)
    command = _command(plain, arguments, call.text)
    act = _of_shell(place, call, command) if command else _of_tool(place, call, plain, arguments)
    if answer is None:
        return act
    at, result = answer
    shell = bool(command)
    reads = act.doing is Doing.READ
    piped = shell and _PIPED.search(_QUOTED.sub("Q", command)) is not None
    found = verdict(result.text, shell=shell, reads=reads, piped=piped) if act.doing is not Doing.PLAN else NOTHING
    return replace(act, verdict=found, answered=True, result=result.page.id, result_place=at)


def _decoded(text: str) -> Mapping[str, Any]:
    try:
        value = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _command(tool: str, arguments: Mapping[str, Any], raw: str) -> str:
    """What a shell was asked to do; empty where the tool is none."""
    if tool not in _SHELLS:
        return ""
    given = next((arguments[name] for name in _COMMAND_NAMES if arguments.get(name)), None) if arguments else raw
    if isinstance(given, list):
        words = [str(each) for each in given]
        given = words[-1] if len(words) > 2 and words[1].startswith("-") and "c" in words[1] else " ".join(words)
    return given.strip()[:_LOOKED_AT] if isinstance(given, str) else ""


def _of_shell(place: int, call: Said, command: str) -> Act:
    head = _head(command)
    patched = tuple(_PATCHED.findall(command))
    written = once(
        (one or other for one, other in _WRITES.findall(_without_body(command)) if (one or other) != "/dev/null"), _MOST_FILES
    )
    family = _family(command)
    if (
        patched
        or (written and _HEREDOC.search(command))
        or (_CHANGES.match(head) and head.startswith(("sed", "perl", "apply_patch", "patch")))
    ):
        doing, files = Doing.EDIT, patched or written or once(_named_files(_QUOTED.sub(" ", head)), _MOST_FILES)
        target = files[0] if files else head
    elif family:
        doing, files, target = Doing.CHECK, once(_named_files(head), _MOST_FILES), head
    elif _is_look(head):
        doing, files, target = Doing.READ, once(_named_files(head), _MOST_FILES), head
    else:
        doing, files, target = Doing.RUN, once(_named_files(head), _MOST_FILES), head
    return Act(
        place=place,
        page=call.page.id,
        time=call.page.time,
        tool=call.page.tool,
        doing=doing,
        target=target[:_LONGEST_TARGET],
        command=head,
        family=family if doing is Doing.CHECK else "",
        fixes=doing is Doing.CHECK and _FIXES.search(head) is not None,
        files=files,
        made=doing is Doing.EDIT and bool(written),
    )


def _of_tool(place: int, call: Said, plain: str, arguments: Mapping[str, Any]) -> Act:
    path = next((value for name in PATH_NAMES if isinstance(value := arguments.get(name), str) and value), "")
    text = " ".join(value for value in arguments.values() if isinstance(value, str)) if arguments else call.text
    patched = once((name.strip() for name in _PATCHED.findall(text)), _MOST_FILES)
    files = patched or ((path,) if path and "://" not in path else ())
    query = next((value for name in _QUERY_NAMES if isinstance(value := arguments.get(name), str) and value), "")
    views = plain in _EDITORS and arguments.get("command") == "view"
    if plain in _PLANNERS:
        doing = Doing.PLAN
    elif views or plain in _READERS:
        doing = Doing.READ
    elif plain in _EDITORS or patched:
        doing = Doing.EDIT
    else:
        doing = Doing.OTHER
    target = (patched[0] if patched else path) or query or _brief(arguments)
    return Act(
        place=place,
        page=call.page.id,
        time=call.page.time,
        tool=call.page.tool,
        doing=doing,
        target=" ".join(target.split())[:_LONGEST_TARGET],
        files=files,
        made=plain in _WRITERS or _ADDED.search(text) is not None,
    )


def _brief(arguments: Mapping[str, Any]) -> str:
    """The values that say what a call of an unknown tool is about."""
    return " ".join(str(value) for value in arguments.values() if isinstance(value, str | int) and len(str(value)) <= 60)


def _head(command: str) -> str:
    """The first line that does something, without what goes before it and what only shapes its output."""
    rest = re.sub(r"\\\n\s*", " ", command.strip())
    for _ in range(12):
        found = _SKIPPED.match(rest)
        if not found or not found.end():
            break
        rest = rest[found.end() :].lstrip()
    line = _MESSAGE.sub("", rest.split("\n", 1)[0]).strip()
    for _ in range(4):
        shorter = _SHAPING.sub("", line)
        if shorter == line or not shorter.strip():
            break
        line = shorter
    return " ".join(line.split())[:400]


def _without_body(command: str) -> str:
    """Without what a here-document holds: it is a file, not a command."""
    found = _HEREDOC.search(command)
    if not found:
        return command
    line_end = command.find("\n", found.end())
    close = command.find(f"\n{found.group(1)}", found.end())
    if line_end < 0:
        return command
    return command[:line_end] + (command[close:] if close >= 0 else "")


def _family(command: str) -> str:
    """What it checks with. A commit runs its hooks, and is none."""
    said = _without_body(command)
    for line in said.splitlines()[:20]:
        bare = line.strip()
        if bare.startswith("#") or _COMMIT.search(bare):
            continue
        for part in re.split(r"&&|;|\|\|", bare):
            step = _head(part)
            if step and not _LOOKS.match(step):
                for name, pattern in _CHECKS:
                    if pattern.search(step[:300]):
                        return name
    return ""


def _is_look(head: str) -> bool:
    bare = _QUOTED.sub("Q", head)
    parts = [part.strip() for part in re.split(r"&&|;|\|\||(?<!\|)\|(?!\|)", bare) if part.strip()]
    return bool(parts) and all(_LOOKS.match(part) for part in parts) and not re.search(r"(?<![2&=-])>(?!&|\s?/dev/null)", bare)


_FILE = re.compile(r"(?<![\w$-])(?:[\w.@~+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z][A-Za-z0-9]{0,5}(?![\w/(])")
_NO_FILE = re.compile(r"\d|.*\.(?:com|org|net|io|dev|ai|example)$|.*\.\.|(?:application|text|image|audio|video)/[\w.+-]+$")


def _named_files(command: str) -> Iterator[str]:
    for found in _FILE.finditer(command[:600]):
        if not _NO_FILE.match(found.group()):
            yield found.group()
