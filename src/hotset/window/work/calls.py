"""An agent's actions: each call with its target, kind, result verdict and, for an edit, its change.
Pure.

Only heads and tails of results are read, for any client.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from hotset.files.lru import memo
from hotset.nouns.page import Kind, PageId
from hotset.text.words import once, word_set
from hotset.window.page_text import PATH_NAMES

_CODE = re.compile(
    (
        r"(?:\bexit(?:ed)?(?: with)?(?: (?:code|status))?|\breturn "
        r"?code|\bexit[_-](?:code|status))[\"'>\]]*\s*[:=]?\s*(-?\d{1,3})\b"
    ),
    re.IGNORECASE,
)
_CODE_HEAD, _CODE_TAIL = 300, 200  # characters in which clients put a command's exit code
_RUNNING = re.compile(
    r"\bProcess running with session ID|Command running in background|\bstill running\b",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\s*(?:<tool_use_error>|(?:tool )?error(?:\(s\))?\b\s*[:(]|\[?error\]?:|failed to |could "
    r"not |cannot |ENOENT|EACCES|invalid "
    r"|exception\b|traceback \(|no such file|file (?:does not exist|not found|has not been "
    r"read)|permission denied"
    r"|InputValidationError|string to replace not found|unknown (?:tool|command|option)"
    r"|The user doesn't want to "
    r"(?:proceed|take)|\{\s*\"(?:error|is_?error)\"\s*:\s*(?!null|false|\"\"))",
    re.IGNORECASE,
)
_DECLINED = re.compile(
    r"The user doesn't want to (?:proceed|take this action)|user (?:rejected|declined|denied)"
    r"|Sibling tool call errored|\[Request interrupted",
    re.IGNORECASE,
)
_DECLINE_SIGNS = ("user", "User", "Sibling", "[Request")
_BROKEN = re.compile(
    r"^(?:\S+: )?(?:line \d+: )?\S+: (?:command not found|No such file or "
    r"directory|Permission denied|not found)$"
    r"|^Traceback \(most recent call last\)|^(?:npm|yarn|pnpm) (?:ERR!|error)|^error: (?:script"
    r"|unrecognized|unexpected|could not|failed)"
    r"|^error(?:\[E\d+\])?: |^fatal: |^FAILED\b|^E  +\w|\berror TS\d+:|^panic: |\bBUILD "
    r"FAILED\b|^ERROR: |^make: \*\*\*"
    r"|^=+ .*\b\d+ (?:failed|errors?)\b.* =+$|^Tests?:? .*\b[1-9]\d* failed|^\s*[1-9]\d* "
    r"(?:fail|failed|failing|failures?)\b"
    r"|^FAIL(?:ED)?(?: \(|$|\s+\S+)|^Found [1-9]\d* errors?\b|^✖ [1-9]\d* problem"
    r"|^\d+ (?:passed|skipped|warnings?)\b.*\b[1-9]\d* (?:failed|errors?)\b"
    r"|^[1-9]\d* errors? in \d",
    re.MULTILINE,
)
"""Output of commands that failed inside a pipe, whose exit code is that of its last part."""
_BROKEN_SIGNS = (
    *(
        "error",
        "fail",
        "traceback",
        "fatal",
        "panic",
        "not found",
        "no such file",
        "denied",
        "err!",
    ),
    *("make: ***", "\u2716", "\ne  "),
)
"""Every match contains one of these, in lower case."""
_PASSED = re.compile(
    r"^=+ .*\b\d+ passed\b(?!.*\b(?:failed|errors?)\b).* =+$|^OK(?: \(|$)|^Tests?:? +\d+ passed"
    r"|^\s*\d+ pass(?:ed|ing)?$|^\s*0 fail"
    r"|\bAll checks passed\b|\bSuccess: no issues found|No fixes applied|\b0 errors?\b|\btest "
    r"result: ok\b|^PASS\b|^ok\s+\S+",
    re.MULTILINE,
)
_NOTHING_RAN = re.compile(
    r"\bcollected 0 items|\bno tests? (?:ran|found|to run|files?)\b|\bno test files?\b"
    r"|\b(?:ran|running) 0 tests|\b0 (?:passed|passing|tests?)\b",
    re.IGNORECASE,
)
_RAN = re.compile(
    r"(?<![\w.])[1-9]\d* (?:pass(?:ed|ing)?|tests?)\b|^ok\s+\S+(?!.*\bno tests\b)", re.MULTILINE
)
"""Tests that passed, or were counted."""
_NAMED = re.compile(
    r"(?:^|[\s.(\[])([A-Z][A-Za-z]{2,60}(?:Error|Exception|Failure|Interrupt))(?=:|\s|$)"
    r"|\b(lint/\w+/\w+)\b|\b(error TS\d{3,5})\b|\berror\[(E\d{3,5})\]"
    r"|\b(E(?:NOENT|ACCES|PERM|EXIST|ADDRINUSE|CONNREFUSED|CONNRESET|TIMEDOUT|NOTFOUND|PIPE|"
    r"RESOLVE|MFILE|NOSPC|INVAL|ISDIR))\b"
    r"|(?i:\b(command not found|permission denied|no such file or directory|unrecognized "
    r"(?:subcommand|option|arguments?)"
    r"|unknown (?:flag|option|command|shorthand flag)|unexpected argument)\b)"
)
_SPEAKING = re.compile(
    r"(?:^|\b)(?:[A-Z]\w+(?:Error|Exception|Failure)\b|error\b|fatal\b|panic\b|failed\b|"
    r"failure\b|cannot\b|command not found"
    r"|no such file|permission denied|not found|unrecognized|unexpected|undefined\b|unable "
    r"to\b|missing\b|invalid\b|refused\b)",
    re.IGNORECASE,
)
_DIAGNOSED = re.compile(
    r"\berror TS\d+: |^error(?:\[E\d+\])?: (?!script|could not compile|aborting|Recipe|failed "
    r"to push|found \d+ error)\S"
    r"|:\d+(?::\d+)?:? (?:fatal )?error:? \S"
    r"|^E +(?:assert\b|\w)|^\s*\d+:\d+ +error +\S"
    r"|^\S+:\d+:\d+: [A-Z]+\d+ |^\s*(?:\u00d7|!) (?!Some (?:errors|warnings))\S|^\(fail\) \S"
    r"|^(?:not ok \d+|FAILED \S+::\S+|\s*\u25cf .+ \u203a) "
)
"""A single finding as compilers, linters and test runners print it."""
_ESCAPES = re.compile(r"\x1b\[[\d;]*m|(?<!\w)\[\d{1,2}(?:;\d{1,2})*m")
_NOISE = re.compile(
    r"^\s*(?:at |File \"|\^|(?:\d+\s+)*\d*\s*[|│]|[+-] |\$ |> |Traceback|npm (?:ERR!|error) "
    r"(?:code|path"
    r"|errno|location|command|workspace|A complete"
    r" log|Lifecycle)|error: script |husky|=+$|-+$|━+|╭|╰|\u00d7? ?Some (?:errors|warnings) "
    r"were|node:internal"
    r"|Node\.js v|Exit code|Chunk ID|Wall time|Process exited|Original token"
    r"|Output:|<returncode|<output|</output|Found \d+ |Ran \d+ "
    r"|\[[\w:. -]{2,24}\] |\w+: undefined$|raise self\.|[_]{3,}|Checked \d+|Checking \w+|\d+ "
    r"expect\(|\[full output)"
    r"|\b0 (?:errors?|fail)|no errors?\b|[\u2501\u2500\u2550]{5}",
    re.IGNORECASE,
)
_NAMED_ERROR = re.compile(r"^(?:E +)?(?:\w+\.)*[A-Z]\w+(?:Error|Exception)\b")
_ANYTHING = re.compile("")
_LONGEST_LINE = 300


@dataclass(frozen=True, slots=True)
class ResultVerdict:
    """What a result says about its call."""

    failed: bool
    kind: str = ""
    """The error's own name, or such as `exit 1`."""
    message: str = ""
    """The most telling line, verbatim. Outside text."""
    code: int | None = None
    declined: bool = False
    """The user refused the call: no failure of its own."""
    open: bool = False
    """It is still running."""
    unknown: bool = False
    """A check that says nothing of how it went: nothing ran, or its exit code is not its own."""


NOTHING = ResultVerdict(failed=False)
"""Of a call without signs of failure."""


@memo("result verdicts", 2048, each=2000)
def result_verdict(
    text: str, *, shell: bool, reads: bool = False, piped: bool = False
) -> ResultVerdict:
    """The verdict on a result's text. `reads`: it shows other content, whose errors do not count;
    `piped`: its exit code is that of the last part of a pipe."""
    head = text[:400]
    if any(sign in head for sign in _DECLINE_SIGNS) and _DECLINED.search(head):
        return ResultVerdict(failed=True, declined=True, kind="declined")
    code = _code(text) if shell else None
    if code is None and "unning" in head and _RUNNING.search(head):
        return ResultVerdict(failed=False, open=True)
    refused = not (shell and code is not None) and _REFUSED.match(text) is not None
    broken = shell and not reads and (code is None or (code == 0 and piped)) and _is_broken(text)
    if not (refused or broken or (code or 0) != 0):
        return ResultVerdict(failed=False, code=code)
    if reads and not refused and code == 1:  # grep without a match, diff with a difference
        return ResultVerdict(failed=False, code=code)
    line = telling_line(text)
    return ResultVerdict(failed=True, kind=_kind(line, text, code), message=line, code=code)


def is_silent(text: str, verdict: ResultVerdict, *, masked: bool) -> bool:
    """True if a check's result says neither that it failed nor that it passed; `masked`: its exit
    code is that of another command."""
    if verdict.failed or verdict.open:
        return False
    if _NOTHING_RAN.search(text):
        return _RAN.search(text) is None
    return masked and not (_RAN.search(text) or _last_match(_PASSED, text.splitlines()) >= 0)


def telling_line(text: str) -> str:
    """The line that says what is wrong: the last named error, else the first finding, else the
    first line that sounds like an error."""
    plain = _ESCAPES.sub("", text) if "[" in text else text
    lines = [bare for line in plain.splitlines() if (bare := line.strip())]
    found = (
        _first_telling(_NAMED_ERROR, [x for x in reversed(lines) if len(x) <= 2 * _LONGEST_LINE])
        or _first_telling(_DIAGNOSED, lines)
        or _first_telling(_SPEAKING, lines)
        or _first_telling(_ANYTHING, lines[::-1])
    )
    return re.sub(r"^(?:<tool_use_error>|E +|[\u00d7!] )", "", found)[:_LONGEST_LINE]


def _first_telling(pattern: re.Pattern[str], lines: Iterable[str]) -> str:
    """The first line that matches and is no noise; empty if there is none."""
    heads = ((line, line[:_LONGEST_LINE]) for line in lines)
    found = (line for line, head in heads if pattern.search(head) and not _NOISE.search(head))
    return next(found, "")


def _code(text: str) -> int | None:
    for part in (text[:_CODE_HEAD], text[-_CODE_TAIL:]):
        low = part.lower()  # the pattern alone takes ten times as long
        if ("exit" in low or "return" in low) and (found := _CODE.search(part)):
            return int(found.group(1))
    return None


def _is_broken(text: str) -> bool:
    """True if it reports a failure and no success after that: tests provoke errors, too."""
    low = text.lower()
    if not any(sign in low for sign in _BROKEN_SIGNS):
        return False
    lines = text.splitlines()
    broken = _last_match(_BROKEN, lines)
    return broken >= 0 and _last_match(_PASSED, lines[broken + 1 :]) < 0


def _last_match(pattern: re.Pattern[str], lines: Sequence[str]) -> int:
    """The number of the last line that matches; negative if none does."""
    numbers = range(len(lines) - 1, -1, -1)
    return next((at for at in numbers if pattern.search(lines[at][:_LONGEST_LINE])), -1)


def _kind(line: str, text: str, code: int | None) -> str:
    for part in (line, text[-1000:], text[:1000]):
        if found := _NAMED.search(part):
            return next(group for group in found.groups() if group)
    return f"exit {code}" if code else "error"


_NO_PAGE = PageId("")


@dataclass(frozen=True, slots=True)
class WorkPage:
    """A page of a conversation, as far as it is read here."""

    kind: Kind
    text: str
    """Of a call: its arguments as JSON."""
    tool: str = ""
    call: str = ""
    id: PageId = _NO_PAGE
    time: float = 0.0


class ActKind(Enum):
    READ = "read"
    """Reads and changes nothing."""
    EDIT = "edit"
    """Changes files."""
    CHECK = "check"
    """Runs tests, a linter, a build: something that can fail for a reason."""
    RUN = "run"
    """Any other command."""
    OTHER = "other"
    """Any other tool."""
    PLAN = "plan"
    """The agent's own plans, lists and questions."""


@dataclass(frozen=True, slots=True)
class Act:
    """One call."""

    place: int
    """Its place in the session."""
    page: PageId
    time: float
    tool: str
    doing: ActKind
    target: str
    """A path, a command's first line, a query. Short."""
    command: str = ""
    """The shell command, without redirects and output filters."""
    family: str = ""
    """Of a check: the tool it checks with."""
    fixes: bool = False
    """A check that fixes what it finds."""
    files: tuple[str, ...] = ()
    made: bool = False
    """It wrote a whole file."""
    removed: tuple[str, ...] = ()
    """Those of `files` that it deleted."""
    script: str = ""
    """The whole shell command, without the bodies of here-documents."""
    verdict: ResultVerdict = NOTHING
    answered: bool = False
    result: PageId | None = None
    result_place: int = 0

    @property
    def failed(self) -> bool:
        return self.verdict.failed and not self.verdict.declined

    @property
    def passed(self) -> bool:
        verdict = self.verdict
        return self.answered and not (verdict.failed or verdict.open or verdict.unknown)


_SHELLS = word_set("""
    bash shell terminal exec exec_command run_command execute_command execute_bash run_shell_command
    run_terminal_cmd run_in_terminal shell_command local_shell container.exec powershell sh command
    """)
_READERS = word_set("""
    read read_file readfile read_text_file read_many_files view view_file cat open_file
    get_file_contents notebookread grep glob ls list list_dir list_directory search search_files
    codebase_search file_search find find_files webfetch web_fetch fetch fetch_url websearch
    web_search task agent subagent view_image read_wiki_structure read_wiki_contents bashoutput
    write_stdin list_files tool_search get_file outline search_code
    """)
_EDITORS = word_set("""
    edit multiedit write write_file create_file str_replace str_replace_editor
    str_replace_based_edit_tool apply_patch edit_file replace insert_edit_into_file replace_in_file
    notebookedit search_replace update_file delete_file apply_diff
    """)
_WRITERS = frozenset({"write", "write_file", "create_file"})
_REMOVERS = frozenset({"delete_file"})
_PLANNERS = word_set("""
    todowrite todo_write write_todos update_todo_list manage_todo_list update_plan exitplanmode
    exit_plan_mode enterplanmode think taskcreate taskupdate tasklist taskget askuserquestion
    ask_question ask_user skill task_complete attempt_completion
    """)
_COMMAND_NAMES = ("command", "cmd", "script", "commands", "input", "code")
_QUERY_NAMES = (
    "pattern",
    "query",
    "q",
    "question",
    "prompt",
    "description",
    "expression",
    "name",
    "id",
)
_LONGEST_TARGET = 120
_MOST_FILES = 12
_LOOKED_AT = 2000

_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.{1,300})$", re.MULTILINE)
_ADDED = re.compile(r"^\*\*\* Add File: ", re.MULTILINE)
_DELETED = re.compile(r"^\*\*\* Delete File: (.{1,300})$", re.MULTILINE)
_PATCH_MOVED = re.compile(
    r"^\*\*\* Update File: (.{1,300})\n\*\*\* Move to: (.{1,300})$", re.MULTILINE
)
_SKIPPED = re.compile(
    r"(?:cd|pushd)\s+(?:\"[^\"]*\"|'[^']*'|\S+)[ \t]*(?:&&|;|\n"
    r"|$)\s*|set\s+-\w+(?:\s+pipefail)?[ \t]*(?:&&|;|\n|$)\s*"
    r"|export\s+\w+=\S*[ \t]*(?:&&|;|\n|$)\s*"
    r"|source\s+\S+[ \t]*(?:&&|;|\n|$)\s*|\.\s+\S+activate\s*(?:&&|;|$)\s*|#[^\n]*(?:\n"
    r"|$)|(?:sudo|time|rtk proxy)\s+"
    r"|(?:timeout\s+\S+)\s+"
)
_SHAPING = re.compile(
    r"\s*(?:2>&1|2>\s?/dev/null|>\s?/dev/null|\|\s*(?:tail|head|less|cat|tee|grep|sed|awk|"
    r"sort|uniq|wc"
    r"|cut)\b[^|;&]*|;\s*echo\b[^;&|]*)\s*$"
)
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")
_WRITES = re.compile(
    r"(?:^|[\s;&|])(?:cat|echo|printf|tee)\b[^\n"
    r"|]*?(?:>{1,2}|\btee(?:\s+-a)?)\s*([\w./~@+-]{1,200})|(?:^"
    r"|[\s;&|])>\s*([\w./~@+-]{1,200})"
)
_CHANGES = re.compile(
    r"(?:^|[\s;&|(])(?:sed\s+(?:-\w+\s+)*-i|perl\s+-\w*i|patch\s|git\s+apply|apply_patch|mv\s|"
    r"cp\s|rm\s|mkdir\s|touch\s)"
)
_LOOKS = re.compile(
    r"(?:cd|pushd|popd|cat|ls|ll|od|grep|rg|ag|find|fd|head|tail|sed\s+-n|nl|awk|wc|pwd|which|"
    r"type|whereis"
    r"|tree|jq|file|stat|du|df|env|printenv|date|echo|printf"
    r"|less|more|diff|cmp|sort|uniq|cut|ps|lsof|man|whoami|uname|sleep|true|test|\[|history|"
    r"id|hostname"
    r"|curl(?!.*\s(?:-X|--request|-d|--data\S*|-o|-O|-F)\b)|xxd|strings|bat|column|tmux "
    r"capture-pane"
    r"|(?:\w+\s+)?git\s+(?:-\S+\s+\S+\s+)?(?:log|status|diff|show|branch|blame|grep|remote|"
    r"rev-parse"
    r"|ls-files|ls-remote|fetch|worktree list|config --get|describe|stash "
    r"list|reflog|shortlog|merge-base"
    r"|for-each-ref|cat-file)"
    r"|gh\s+(?:\w+\s+)?(?:view|list|status|diff|checks|api|search)|bd\s+(?:show|list|ready|"
    r"prime|status)"
    r"|npm\s+(?:view|ls|list|info)|pip\s+(?:show|list|freeze)"
    r"|docker\s+(?:ps|logs|images|inspect)|kubectl\s+(?:get|describe|logs)"
    r"|[\w./-]+(?:\s+[\w-]+)?\s+(?:status|list|show|view|describe|info|logs?|ls|search|"
    r"capture|ps|help"
    r"|version)|command\s+-v)(?![\w-])"
    r"|\S+(?:\s+\S+){0,2}\s+(?:--help|--version|-h|-V)(?!\S)"
)
_PIPED = re.compile(r"(?<!\|)\|(?!\|)|\|\| *true|; *(?:echo|true)\b")
_MASKED = re.compile(
    r"(?:\|\||;|\n)\s*(?:true|:|echo\b[^;|&\n]*|exit 0)\s*\Z|\|\|\s*(?:true|:|echo)(?!\w)"
)
"""The exit code is that of what only follows the command, whatever came of it."""
_TELLS_CODE = ("$?", "PIPESTATUS", "pipefail")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_SCRIPT = r"(?:npm|pnpm|yarn|bun|deno)(?: run)?(?: -\S+ \S+)*"
_MADE_TO_CHECK = r"(?:all|ci|[\w./-]*(?:test|check|lint|build|verif|valid|typ|compil|cov)[\w./-]*)"
"""Make targets that check something, unlike `make install`."""
_CHECKS: Sequence[tuple[str, re.Pattern[str]]] = tuple(
    (name, re.compile(rf"(?:^|[\s;&|(/])(?:{pattern})(?![\w-])"))
    for name, pattern in (
        ("pytest", r"pytest|py\.test|tox|nox"),
        ("unittest", r"unittest|manage\.py test|runtests\.py|bin/test"),
        ("jest", r"jest|vitest|mocha|playwright test|cypress run"),
        ("typecheck", rf"tsc|tsgo|mypy|pyright|{_SCRIPT} (?:typecheck|type-check|types)\S*"),
        (
            "lint",
            (
                rf"eslint|biome|ruff|flake8|pylint|prettier|golangci-lint|clippy|{_SCRIPT} "
                rf"(?:lint|format|check)\S*"
            ),
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
        (
            "other",
            (
                r"rspec|phpunit|dotnet (?:test|build)|mix test|swift (?:test|build)|pre-commit "
                r"run|prek run"
            ),
        ),
        (
            "script",
            (
                r"python[\d.]* (?:-\w+ )*\S*(?:test|repro|verify|check)\S*\.py|node "
                r"\S*(?:test|repro|verify|check)\S*\.m?js"
            ),
        ),
    )
)
_ANY_CHECK = re.compile(
    r"test|tox|nox|jest|mocha|cypress|tsc|tsgo|mypy|pyright|types|type-?check|lint|biome|ruff|flake8"
    r"|prettier|clippy|format|check|build|cargo|go |make|ninja|mvn|gradle|rspec|phpunit|dotnet"
    r"|pre-commit|prek|repro|verify"
)
"""Every check contains one of these: most commands are told by one search instead of thirteen."""
_FIXES = re.compile(
    r"(?:--|:)fix\b|--write\b|--apply\b"
    r"|(?:\b(?:ruff|biome|cargo|go|dotnet|deno|mix) (?:format|fmt)|(?:^|[\s/])black)\b(?!.*--check)"
)
"""Linters that fix what they find."""
_MESSAGE = re.compile(r"\s+(?:-a?m|--message|--body|-F -)[ =]*[\"']?\$\(cat <<.*$")
"""A commit message as a here-document: no part of the command."""
_COMMIT = re.compile(r"git commit\b")


def acts(pages: Sequence[WorkPage], first: int = 0) -> list[Act]:
    """The calls of a stretch, each with its result; `first` is the place of its first page."""
    results: dict[str, list[tuple[int, WorkPage]]] = {}
    for place, each in enumerate(pages, first):
        if each.kind.family is Kind.TOOL_RESULT and each.call:
            results.setdefault(each.call, []).append((place, each))
    found: list[Act] = []
    for place, each in enumerate(pages, first):
        if each.kind.family is Kind.TOOL_CALL:
            answers = results.get(each.call, ()) if each.call else ()
            answer = next(((at, result) for at, result in answers if at > place), None)
            found.append(_act(place, each, answer))
    return found


def check_family(command: str) -> str:
    """The tool a command checks with; empty if it is no check or only mentions one."""
    return _family(_QUOTED.sub("Q", command))


def shell_words(command: str) -> frozenset[str]:
    """The words of a command, for comparing two."""
    return frozenset(word for word in re.findall(r"[\w./@:=-]+", command) if len(word) > 1)


class _CallFacts(NamedTuple):
    """What a call alone says; the fields are those of `Act`."""

    doing: ActKind
    target: str
    command: str = ""
    family: str = ""
    fixes: bool = False
    files: tuple[str, ...] = ()
    made: bool = False
    piped: bool = False
    masked: bool = False
    removed: tuple[str, ...] = ()
    script: str = ""


def _act(place: int, call: WorkPage, answer: tuple[int, WorkPage] | None) -> Act:
    facts = (_known_facts if len(call.text) <= _CACHED else _call_facts)(call.tool, call.text)
    doing, family, verdict, at, page = facts.doing, facts.family, NOTHING, 0, None
    if answer is not None:
        at, result = answer
        page = result.id
        if doing is ActKind.OTHER and result.kind is Kind.TEST_RESULT:
            doing, family = ActKind.CHECK, call.tool
        if doing is not ActKind.PLAN:
            verdict = result_verdict(
                result.text,
                shell=bool(facts.command) or doing is ActKind.CHECK,
                reads=doing is ActKind.READ,
                piped=facts.piped,
            )
        if doing is ActKind.CHECK and is_silent(result.text, verdict, masked=facts.masked):
            verdict = replace(verdict, unknown=True)
    return Act(
        place=place,
        page=call.id,
        time=call.time,
        tool=call.tool,
        doing=doing,
        target=facts.target,
        command=facts.command,
        family=family,
        fixes=facts.fixes,
        files=facts.files,
        made=facts.made,
        removed=facts.removed,
        script=facts.script,
        verdict=verdict,
        answered=answer is not None,
        result=page,
        result_place=at,
    )


def _call_facts(tool: str, text: str) -> _CallFacts:
    plain = tool.rpartition("__")[2].lower()
    arguments = decode_arguments(text)
    command = _command(plain, arguments, text)
    if not command:
        return _of_tool(plain, arguments, text)
    script = _without_body(command)[:_LOOKED_AT]
    return _of_shell(command[:_LOOKED_AT])._replace(script=script)


_CACHED = 4096
"""Characters of a call whose facts are kept: a client sends it again with every request."""
_known_facts = memo("call facts", 2048, each=1000)(_call_facts)


def _command(tool: str, arguments: Mapping[str, Any], raw: str) -> str:
    """The shell command of a call; empty if the tool is no shell, by its name or else by its
    arguments."""
    if tool in _SHELLS:
        named: Sequence[str] = _COMMAND_NAMES
    elif tool in _READERS or tool in _EDITORS or tool in _PLANNERS or not arguments:
        return ""
    else:
        named = _COMMAND_NAMES[:2]
    given = (
        next((arguments[name] for name in named if arguments.get(name)), None) if arguments else raw
    )
    if isinstance(given, list):
        words = [str(each) for each in given]
        given = (
            words[-1]
            if len(words) > 2 and words[1].startswith("-") and "c" in words[1]
            else " ".join(words)
        )
    return given.strip() if isinstance(given, str) else ""


def _of_shell(command: str) -> _CallFacts:
    head = _head(command)
    patched, removed = _patched(command)
    bare = _QUOTED.sub("Q", command)
    masked = _MASKED.search(bare) is not None
    masked = masked and not any(sign in command for sign in _TELLS_CODE)
    written = once(
        (
            one or other
            for one, other in _WRITES.findall(_without_body(command))
            if (one or other) != "/dev/null"
        ),
        _MOST_FILES,
    )
    family = _family(command)
    if (
        patched
        or (written and _HEREDOC.search(command))
        or (_CHANGES.match(head) and head.startswith(("sed", "perl", "apply_patch", "patch")))
    ):
        doing, files = (
            ActKind.EDIT,
            patched or written or once(_named_files(_QUOTED.sub(" ", head)), _MOST_FILES),
        )
        target = files[0] if files else head
    else:
        doing = ActKind.CHECK if family else ActKind.READ if is_look(head) else ActKind.RUN
        files, target = once(_named_files(head), _MOST_FILES), head
    return _CallFacts(
        doing=doing,
        target=target[:_LONGEST_TARGET],
        command=head,
        family=family if doing is ActKind.CHECK else "",
        fixes=doing is ActKind.CHECK and _FIXES.search(head) is not None,
        files=files,
        made=doing is ActKind.EDIT and bool(written),
        piped=masked or _PIPED.search(bare) is not None,
        masked=masked,
        removed=removed,
    )


def _patched(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files that a patch names, and which of them it deletes or moves away."""
    if "*** " not in text:
        return (), ()
    moved = _PATCH_MOVED.findall(text)
    files = once((name.strip() for name in _PATCHED.findall(text)), _MOST_FILES)
    removed = (*_DELETED.findall(text), *(before for before, _ in moved))
    return (
        once((*files, *(after.strip() for _, after in moved))),
        once(name.strip() for name in removed),
    )


def _of_tool(plain: str, arguments: Mapping[str, Any], raw: str) -> _CallFacts:
    path = _first_text(arguments, PATH_NAMES)
    text = (
        " ".join(value for value in arguments.values() if isinstance(value, str))
        if arguments
        else raw
    )
    patched, removed = _patched(text)
    files = patched or ((path,) if path and "://" not in path else ())
    views = plain in _EDITORS and arguments.get("command") == "view"
    if plain in _PLANNERS:
        doing = ActKind.PLAN
    elif views or plain in _READERS:
        doing = ActKind.READ
    elif plain in _EDITORS or patched:
        doing = ActKind.EDIT
    else:
        doing = ActKind.OTHER
    target = (
        (patched[0] if patched else path)
        or _first_text(arguments, _QUERY_NAMES)
        or _brief(arguments)
    )
    return _CallFacts(
        doing=doing,
        target=" ".join(target.split())[:_LONGEST_TARGET],
        files=files,
        made=plain in _WRITERS or _ADDED.search(text) is not None,
        removed=files if plain in _REMOVERS else removed,
    )


def _first_text(arguments: Mapping[str, Any], names: Iterable[str]) -> str:
    """The first of these arguments that is a text."""
    given = (arguments.get(name) for name in names)
    return next((value for value in given if isinstance(value, str) and value), "")


def _brief(arguments: Mapping[str, Any]) -> str:
    """The short values of a call of an unknown tool."""
    return " ".join(
        str(value)
        for value in arguments.values()
        if isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) <= 60
    )


def _head(command: str) -> str:
    """The first line that does something, without preamble, redirects and output filters."""
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
    """Without the body of a here-document: it is a file, not a command."""
    found = _HEREDOC.search(command)
    if not found:
        return command
    line_end = command.find("\n", found.end())
    close = command.find(f"\n{found.group(1)}", found.end())
    if line_end < 0:
        return command
    return command[:line_end] + (command[close:] if close >= 0 else "")


def _family(command: str) -> str:
    """The tool a command checks with. A commit runs hooks, but is no check."""
    commands = _without_body(command)
    for line in commands.splitlines()[:20]:
        bare = line.strip()
        if bare.startswith("#") or _COMMIT.search(bare):
            continue
        for part in re.split(r"&&|;|\|\|", bare):
            step = _head(part)
            if step and _ANY_CHECK.search(step) and not _LOOKS.match(step):
                for name, pattern in _CHECKS:
                    if pattern.search(step[:300]):
                        return name
    return ""


def is_look(head: str) -> bool:
    """True if a command only reads."""
    bare = _QUOTED.sub("Q", head)
    parts = [part.strip() for part in re.split(r"&&|;|\|\||(?<!\|)\|(?!\|)", bare) if part.strip()]
    return (
        bool(parts)
        and all(_LOOKS.match(part) for part in parts)
        and not re.search(r"(?<![2&=-])>(?!&|\s?/dev/null)", bare)
    )


_FILE = re.compile(
    r"(?<![\w$-])(?:[\w.@~+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z][A-Za-z0-9]{0,5}(?![\w/(])"
)
_NO_FILE = re.compile(
    r"\d|.*\.(?:com|org|net|io|dev|ai|example)$|.*\.\.|(?:application|text|image|audio|video)/"
    r"[\w.+-]+$"
)


def _named_files(command: str) -> Iterator[str]:
    for found in _FILE.finditer(command[:600]):
        if not _NO_FILE.match(found.group()):
            yield found.group()


_BEFORE = ("old_string", "old_str", "old_text", "oldText", "search", "old")
_AFTER = ("new_string", "new_str", "new_text", "newText", "replace", "new")
_SED = re.compile(r"\bs([/|#@,])((?:\\.|(?!\1).){2,200})\1((?:\\.|(?!\1).){0,200})\1")


def decode_arguments(text: str) -> Mapping[str, Any]:
    """The arguments of a call; empty if they are not a JSON object."""
    try:
        value = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def edit_sides(call: str) -> tuple[str, str]:
    """The first line that differs, before and after."""
    gone, came = edit_lines(call)
    return (gone[0] if gone else "", came[0] if came else "")


def edit_lines(call: str, path: str = "") -> tuple[list[str], list[str]]:
    """All lines that differ, before and after; of a patch of several files, those of `path`."""
    arguments = decode_arguments(call)
    old = next((value for name in _BEFORE if isinstance(value := arguments.get(name), str)), None)
    new = next((value for name in _AFTER if isinstance(value := arguments.get(name), str)), None)
    if old is not None and new is not None:
        return _differences(old.splitlines(), new.splitlines())
    text = (
        " ".join(value for value in arguments.values() if isinstance(value, str))
        if arguments
        else call
    )
    if "*** " in text:
        lines = (_patch_of(text, path) if path else text).splitlines()
        return _differences(
            [line[1:] for line in lines if line.startswith("-")],
            [line[1:] for line in lines if line.startswith("+")],
        )
    swapped = _SED.search(text)
    return ([swapped.group(2)], [swapped.group(3)]) if swapped else ([], [])


def _patch_of(text: str, path: str) -> str:
    """The part of a patch that is about this file."""
    parts = _PATCHED.split(text)
    found = (part for name, part in zip(parts[1::2], parts[2::2], strict=True) if name == path)
    return "\n".join(found)


def _differences(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    before, after = {line.strip() for line in old}, {line.strip() for line in new}
    gone = [line.strip() for line in old if line.strip() and line.strip() not in after]
    came = [line.strip() for line in new if line.strip() and line.strip() not in before]
    return gone, came
