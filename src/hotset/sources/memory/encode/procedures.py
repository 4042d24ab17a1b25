"""Procedures: commands and steps without the details of one occasion, so they can be recognized and
repeated. Pure.

A path is written from the project's root, tests and messages and numbers become placeholders.
One-off commands (inline scripts, loops, addresses, files in /tmp) have no general form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hotset.files.lru import memo
from hotset.nouns.memory import Ending, Procedure
from hotset.sources.memory.encode.speakers import (
    LEAST_COMMAND,
    OutsideWords,
    is_borrowed,
    is_dangerous,
    is_order,
    is_plain_check,
)
from hotset.text.clip import clip_prose
from hotset.text.words import once, word_set
from hotset.window.work.calls import Act, ActKind, check_family, is_look
from hotset.window.work.endings import WorkOutcome

TESTS, TEXT, ID, FILE, VERSION = "<tests>", "<text>", "<id>", "<file>", "<version>"

_LONGEST = 120
_MOST_WORDS = 14
_LONGEST_VALUE = 12  # characters behind a flag's `=`; longer values are free text
_PARTS = re.compile(r"\s*(?:&&|\|\||;|(?<!\|)\|(?!\|))\s*")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_WORD = re.compile(r"(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|[^\s'\"])+")
_ONE_OFF = re.compile(
    r"<<|\$\(|\$\{|\$\w|`|\n"
    r"|(?:^|\s)(?:python[\d.]*|node|bun|deno|ruby|perl|(?:ba|z)?sh)(?:\s+-\S+)"
    r"*\s+-(?:-eval|l?c|e|)(?:\s|$)"
    r"|^(?:for|while|if|until|case|function)\b|^\w+=\S*$|^[^\w./]|[{}*?](?!\S*\.\w+$)|>"
)
"""Commands written for the moment."""
_CHORE = re.compile(
    r"(?:rtk\s+)?(?:rm|mv|cp|mkdir|rmdir|touch|kill|pkill|chmod|chown|ln|echo|printf|sleep|"
    r"true|false|export|set|unset|source|cd"
    r"|pushd|popd|wait|read|test|\[|tmux|screen|clear|exit|alias|type|which|man|open|code|"
    r"history|do|done|then|else|fi|base64|const|let|import|await)(?=\s|$)"
    r"|(?:rtk\s+)?git(?:\s+-\S+(?:\s+\S+)?)*\s+(?:add|commit|status|log|diff|show|stash|"
    r"checkout|switch|restore|reset|branch|config"
    r"|rm|mv|clean|fetch|remote|rev-\w+|merge-base|ls-\w+|check-\w+|worktree|pull|push|rebase|"
    r"merge|cherry-pick|init|clone)\b"
    r"|(?:rtk\s+)?git\s+tag\s+-|(?:npm|pnpm|yarn|bun)\s+(?:pm\s+)?(?:bin|root|prefix|ls|list|"
    r"why|outdated|view|info|whoami)\b|.*\s(?:--help|--version|-h|-V)$"
)
"""Everyday commands that say nothing about this work."""
_SHAPES = re.compile(
    r"(?:tail|head|less|cat|tee|grep|egrep|rg|sed|awk|sort|uniq|wc|cut|xargs|jq|tr|column|nl)\b"
)
_REDIRECT = re.compile(r"\s*(?:\d?>&\d|\d?>\s?/dev/null|&>\s?/dev/null|>\s?/dev/null)")
_BEFORE = re.compile(
    r"^(?:/(?:usr/)?(?:local/)?s?bin/)?(?:(?:timeout\s+\S+|time|sudo|nice(?:\s+-n\s*\d+)?|"
    r"command|exec)\s+)*(?:/(?:usr/)?(?:local/)?s?bin/)?"
)
_TRIED = re.compile(r"\brepro")
_THROWAWAY = re.compile(
    r"(?:^|[/\s])(?:\w*repro\w*|debug_?\w*|verify\w*|check_\w+|apply_\w*|modify_\w*|"
    r"update_\w*|fix_\w*|inspect_\w*|tmp\w*|scratch\w*"
    r"|demo\w*|try_\w*|test_(?:repro|issue|fix|case|edge|manual|script|patch)\w*|"
    r"[\w-]+_(?:repro|v\d+|patch|fix))\.\w+$|^/?tmp/|^/var/"
    r"|(?:^|/)\w*repro\w*/"
)
_PATH = re.compile(
    r"(?:(?:[\w.@+~-]*/)+[\w.@+-]*|[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,5})(?:::[\w.:\[\]-]+)?"
)
_FILE = re.compile(
    r"(?:^|/)(?:[A-Za-z_.][\w.@+-]*\.[A-Za-z]\w{0,5}|Makefile|Dockerfile|Justfile|Procfile)$"
)
_TEST_NAME = re.compile(
    r"(?:^|[/._-])(?:tests?|specs?|__tests__)(?:[/._-]|$)|\w(?:Test|Spec)s?\b|::", re.IGNORECASE
)
_NUMBER = re.compile(r"#?\d{3,}|[0-9a-f]{7,40}|[a-z]{1,4}-[a-z0-9]*\d[a-z0-9.]*")
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:-[\w.]+)?|(?<=\bv)\d+\.\d+(?![\w.])")
_ADDRESS = re.compile(r"\w+://\S+|git@\S+")
_VALUE_FLAG = re.compile(
    r"-m|-F|--(?:message|body|body-file|title|description|reason|prompt|notes?|append-notes|"
    r"comment|filter|grep|name|pattern|test-id"
    r"|testNamePattern|testPathPattern|external-ref|assignee|labels?|set-metadata|branch|"
    r"parent|deps)"
)
_PYTHON = re.compile(r"(?:\S+/)?python[\d.]*$")
_RUNNERS = word_set("""
    pytest py.test unittest jest vitest mocha rspec phpunit test tests runtests.py nextest ctest tox
    nox trial nosetests
    """)
"""Words after which names are test names."""
_ROOT_PARTS = word_set("""
    src lib libs app apps packages package tests test spec specs docs doc frontend backend server
    client web internal pkg cmd scripts bin examples components .github .agents .claude prompts
    """)
_NO_PROJECT = word_set("""
    home users code projects project repos repo workspaces workspace work src testbed app root tmp
    var
    """)
_ELSEWHERE = ("/tmp/", "/var/", "/usr/", "/opt/", ("/private/"), "/etc/", "/dev/")  # noqa: S108
_WORKTREE = re.compile(r"/([\w.-]+?)(?:/\.|__|[._-])worktrees?/[^/]+$")
"""A branch checked out beside its project: `shop/.worktrees/fix-cart`,
`shop__worktrees/fix-cart`."""
_SPACE = re.compile(r"\s+")


def parts_of(command: str) -> list[str]:
    """The commands of a shell line, without redirects and output filters."""
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        held.append(found.group())
        return f"\0{len(held) - 1}\0"

    bare = _QUOTED.sub(hold, command)
    if "'" in bare or '"' in bare:  # cut off inside a quotation
        return []
    parts = (_REDIRECT.sub("", part).strip() for part in _PARTS.split(bare))
    restored = (
        re.sub(r"\0(\d+)\0", lambda found: held[int(found.group(1))], part)
        for part in parts
        if part
    )
    bares = (_BEFORE.sub("", part) for part in restored)
    return [part for part in bares if not _SHAPES.match(part)]


@memo("general commands", 4096)  # the same few come up again and again
def general(part: str, root: str = "") -> str:
    """One command in its general form; empty for a one-off or an everyday command."""
    if _ONE_OFF.search(_QUOTED.sub("Q", part)) or _CHORE.match(part) or _TRIED.search(part):
        return ""
    words = _WORD.findall(part)
    if not words or len(words) > _MOST_WORDS:
        return ""
    general_words: list[str] = []
    runs = False  # a runner of tests was named
    for before, word in zip(("", *words), words, strict=False):
        plain = _program(word, root) if not general_words else _general_word(word, root, runs=runs)
        if general_words and _VALUE_FLAG.fullmatch(before) and not _PYTHON.match(general_words[0]):
            plain = TEXT
        if not plain:
            return ""
        if not (plain in (TESTS, TEXT, FILE, ID) and general_words[-1:] == [plain]):
            general_words.append(plain)
        runs = runs or word.rsplit("/", 1)[-1].split(":", 1)[0] in _RUNNERS
    if _PYTHON.match(words[0]) and re.fullmatch(r"\w+", words[1] if len(words) > 1 else ""):
        return ""  # a folder with something in it to run
    text = " ".join(general_words)
    return text if len(text) <= _LONGEST and len(general_words) > 1 else ""


def command_key(command: str) -> str:
    """The key of a general command, independent of the Python that runs it and of the folder."""
    return re.sub(r"^(?:\w+=\S* )*(?:\S*python[\d.]* (?!-))?(?:[^\s<]*/)?", "", command)


def in_project(path: str, root: str) -> str:
    """The path from the project's root."""
    for top in (f"{root}/", f"{root[1:]}/"):  # a parsed command may have lost its leading slash
        if root and path.startswith(top):
            return path[len(top) :]
    return path.removeprefix("./")


def is_throwaway(path: str) -> bool:
    """True if the file was written to try something."""
    return _THROWAWAY.search(path) is not None


def is_file(path: str) -> bool:
    """True if it looks like a lasting file. Parsing commands yields many paths that are none."""
    return (
        _FILE.search(path) is not None
        and not is_throwaway(path)
        and not path.startswith(_ELSEWHERE)
    )


def root_of(paths: Iterable[str]) -> str:
    """The root folder of most files with absolute paths; empty if there are none."""
    tops = [path for path in paths if path.startswith("/") and not path.startswith(_ELSEWHERE)]
    tops = [
        path for path in tops if "/." not in path
    ] or tops  # a client's own files are in dot folders
    roots = {_own_root(path) for path in tops}
    within = {root: sum(path.startswith(f"{root}/") for path in tops) for root in roots if root}
    return max(sorted(within), key=lambda root: (within[root], len(root)), default="")


def project_of(root: str, files: Sequence[str]) -> str:
    """The project's name: that of its root, otherwise the top folder of most files."""
    trees = _WORKTREE.search(root)
    name = trees.group(1) if trees else root.rsplit("/", 1)[-1]
    if name and name.lower() not in _NO_PROJECT:
        return name
    tops = [
        first
        for path in files
        if "/" in path
        and (first := in_project(path, root).split("/", 1)[0]) not in ("", ".", "..", "~")
    ]
    best = max(sorted(set(tops)), key=tops.count, default="")
    return best if best not in _ROOT_PARTS else ""


def _own_root(path: str) -> str:
    """The folder above the first one that is a typical part of a project."""
    parts = path.split("/")[1:-1]
    inner = next(
        (
            at
            for at, part in enumerate(parts)
            if at > 0 and (part in _ROOT_PARTS or part.startswith("."))
        ),
        len(parts),
    )
    return "/" + "/".join(parts[:inner]) if inner else ""


def _program(word: str, root: str) -> str:
    bare = word.strip("'\"")
    return "" if bare.startswith((*_ELSEWHERE, "~")) else in_project(bare, root)


def _general_word(word: str, root: str, *, runs: bool) -> str:  # noqa: PLR0911 - one case a sort of word
    """The general form of a word behind the program; empty if it is a one-off. `runs`: a test
    runner precedes it."""
    bare = word.strip("'\"")
    if is_throwaway(bare) or _ADDRESS.search(bare):
        return ""
    if any(each.isspace() for each in bare):
        return TEXT
    if word.startswith("-"):
        flag, equals, value = word.partition("=")
        return (
            f"{flag}={TEXT}"
            if equals and (_VALUE_FLAG.fullmatch(flag) or len(value) > _LONGEST_VALUE)
            else word
        )
    if _NUMBER.fullmatch(bare):
        return ID
    if _VERSION.search(bare):
        return _VERSION.sub(VERSION, bare)
    if _PATH.fullmatch(bare):
        return _general_path(in_project(bare, root), runs=runs)
    return TESTS if runs and re.fullmatch(r"[\w.]+", bare) else bare


def _general_path(path: str, *, runs: bool) -> str:
    if path.rsplit("/", 1)[-1] in _RUNNERS:
        return path
    if runs or _TEST_NAME.search(path):
        return TESTS
    return FILE if path.startswith(("/", "~")) or path.count("/") > 1 else path


_MOST_CHECKS = 5
_MOST_RUNS = 4  # commands beside checks; with more, the necessary ones are unknown
_MOST_EDITED = 3  # files; edits of more are a task of their own
_MOST_TOOLS = 6
_FEWEST = 2
_SURE = 0.75  # confidence of an ending without a check: the user confirmed or committed it
_LONGEST_TITLE = 90
_SCRIPT = "script"
_ANY = re.compile(
    r"(?:\S+ )*?(?:pytest|unittest|tox|nox|jest|vitest|cargo (?:test|build|check|clippy)|go "
    r"(?:test|build|vet)"
    r"|make(?: test| check| all)?"
    r"|(?:npm|pnpm|yarn|bun|deno)(?: run)? (?:test|lint|build|check))(?: "
    r"(?:-\S+|<tests>|<id>|\./\.\.\.))*"
)
"""A check that anybody would try first: alone, it teaches nothing."""
_NARROW = re.compile(
    r".* (?:<file>|<text>|(?!\S*runtests)[\w./-]+\.(?:[jt]sx?|mdx?|py|json|ya?ml|css))(?: |$)"
)
"""A check of one file: a look at what was just written."""
_INSTALLS = re.compile(
    r"(?:npm|pnpm|yarn|bun) (?:install|ci|i)|uv sync|poetry install|bundle install"
    r"|pip3? install (?:-r|-e) \S+|\S+ wait\b"
)
_TAGS = re.compile(r"(?:rtk )?git (?:tag|push)\b")
_PUSHES = re.compile(r"(?:rtk )?git push\b(?: --?[\w-]+)*(?: [\w-]+)?")
_ASKS = re.compile(
    r"(?:get|list|search|find|read|query|look|lookup|fetch|check|describe|show|view|calculate|"
    r"compute|think|count|status|browser_"
    r"|take_screenshot|navigate|screenshot)(?:_|$|(?=[A-Z]))"
)
"""Tools that only read or compute."""
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
    """The same for the same steps in the same project, across sessions."""


def recipes(
    title: str, acts: Sequence[Act], outcome: WorkOutcome, others: OutsideWords
) -> Iterator[Recipe]:
    """The procedures a successful episode shows: at most one routine, and one recipe or round."""
    if outcome.ending is not Ending.SUCCESS:
        return
    way = _RepeatableWork(acts)
    if outcome.checked and (routine := _routine(way, others)) is not None:
        yield routine
    if outcome.checked or outcome.confidence >= _SURE:
        found = _recipe(title, way, others, checked=outcome.checked) or _round(
            acts, others, outcome
        )
        if found is not None:
            yield found


def work_root(acts: Sequence[Act]) -> str:
    """The root folder of the edited files, otherwise of all files."""
    edited = [path for act in acts if act.doing is ActKind.EDIT for path in act.files]
    return root_of(edited) or root_of(path for act in acts for path in act.files)


@dataclass(frozen=True, slots=True)
class _Step:
    """A command that worked."""

    act: Act
    command: str
    """The command as it was run."""
    general_form: str
    """The command as it would be run next time."""


class _RepeatableWork:
    """The repeatable parts of an episode's actions."""

    def __init__(self, acts: Sequence[Act]) -> None:
        self.root = work_root(acts)
        edits = [act for act in acts if act.doing is ActKind.EDIT and not act.verdict.failed]
        self.edited = once(
            in_project(path, self.root)
            for act in edits
            for path in act.files
            if not is_throwaway(in_project(path, self.root))
        )
        named = [
            path
            for act in acts
            for path in act.files
            if not is_throwaway(in_project(path, self.root))
        ]
        self.project = project_of(self.root, self.edited) or project_of(self.root, named)
        made = [path.rsplit("/", 1)[-1] for act in acts if act.made for path in act.files]
        self._made = frozenset((*made, *(name.split(".", 1)[0] for name in made)))
        self._first = edits[0].place if edits else -1
        self.checks = self._checks(acts)
        self.runs = self._runs(acts)

    def _checks(self, acts: Sequence[Act]) -> tuple[_Step, ...]:
        """Checks that passed in the end and after an edit, in the order they first passed."""
        found: dict[str, _Step | None] = {}
        for act in acts:
            if (
                act.doing is not ActKind.CHECK
                or act.fixes
                or act.family == _SCRIPT
                or not act.answered
                or act.verdict.open
            ):
                continue
            for part in parts_of(act.command):
                family = check_family(part)
                command = general(part, self.root) if family and family != _SCRIPT else ""
                if command and act.passed and act.place > self._first:
                    found[command] = _Step(act, part, command)
                elif command and act.failed and command in found:
                    found[command] = None
        passed = [
            step
            for step in found.values()
            if step is not None and not _NARROW.match(step.general_form)
        ]
        known = {command_key(step.general_form): step for step in reversed(passed)}
        others = tuple(f" {key}" for key in known)
        # A wrapper around a check is that check.
        return tuple(step for key, step in reversed(known.items()) if not key.endswith(others))

    def _runs(self, acts: Sequence[Act]) -> tuple[_Step, ...]:
        found: dict[str, _Step] = {}
        for act in acts:
            if act.doing is ActKind.RUN and act.passed:
                for part in parts_of(act.command):
                    command = (
                        ""
                        if is_look(part.removeprefix("rtk ")) or self._names_made(part)
                        else general(part, self.root)
                    )
                    if (
                        not command
                        and found
                        and _TAGS.match(next(reversed(found)))
                        and (pushed := _PUSHES.match(part))
                    ):
                        command = pushed.group()  # a tag is published only by a push
                    if command and not check_family(part) and not _INSTALLS.match(command):
                        found.setdefault(command, _Step(act, part, command))
        return tuple(found.values())

    def _names_made(self, part: str) -> bool:
        """True if the command uses a script or module written in this session."""
        words = [word.strip("'\"") for word in part.split()[1:]]
        return any(
            word.rsplit("/", 1)[-1] in self._made or word.rsplit(".", 1)[-1] in self._made
            for word in words
        )


def _routine(way: _RepeatableWork, others: OutsideWords) -> Recipe | None:
    """The checks a change has to pass, without those that anybody would try first."""
    steps = [
        step
        for step in way.checks
        if not (_ANY.fullmatch(step.general_form) and TESTS in step.general_form)
    ]
    if (
        not way.edited
        or not 0 < len(steps) <= _MOST_CHECKS
        or (len(steps) == 1 and _ANY.fullmatch(steps[0].general_form))
    ):
        return None
    where = f" in {way.project}" if way.project else ""
    instructions = tuple(f"run `{step.general_form}`" for step in steps)
    title = clip_prose(
        f"Check a change{where}: {', '.join(step.general_form for step in steps)}", _LONGEST_TITLE
    )
    return Recipe(
        procedure=Procedure(when=f"after a change{where}", steps=instructions),
        title=title,
        text=(
            f"After a change{where}: {_number_steps(instructions)}. "
            f"The work was done when all of these passed."
        ),
        confirmed=not any(_is_doubtful(step, others) for step in steps),
        acts=tuple(step.act for step in steps),
        key="\0".join(
            ("routine", way.project, *sorted(command_key(step.general_form) for step in steps))
        ),
    )


def _recipe(
    title: str, way: _RepeatableWork, others: OutsideWords, *, checked: bool
) -> Recipe | None:
    """The commands that the work took beside its checks, between the edits and the checks."""
    runs, checks = way.runs, way.checks if checked else ()
    if not 0 < len(runs) <= _MOST_RUNS:
        return None
    edited = way.edited if len(way.edited) <= _MOST_EDITED else ()
    if len(runs) + len(checks) + len(edited) < _FEWEST:
        return None
    instructions = (
        *((f"edit {', '.join(edited)}",) if edited else ()),
        *(f"run `{step.general_form}`" for step in runs),
        *(f"check with `{step.general_form}`" for step in checks[:_MOST_CHECKS]),
    )
    where = f"In {way.project}, for work such as" if way.project else "For work such as"
    how = "The checks passed." if checks else "The user was content with it."
    doubtful = any(_is_doubtful(step, others) for step in (*runs, *checks)) or any(
        is_order(re.sub(r"[/._-]", " ", path)) for path in edited
    )
    return Recipe(
        procedure=Procedure(when=clip_prose(title, _LONGEST_TITLE), steps=instructions),
        title=clip_prose(title, _LONGEST_TITLE),
        text=(
            f"{where} \u201c{clip_prose(title, _LONGEST_TITLE)}\u201d: "
            f"{_number_steps(instructions)}. {how}"
        ),
        confirmed=not doubtful,
        acts=tuple(step.act for step in (*runs, *checks)),
        key="\0".join(("recipe", way.project, *sorted(step.general_form for step in runs))),
    )


def _round(acts: Sequence[Act], others: OutsideWords, outcome: WorkOutcome) -> Recipe | None:
    """The tools called until the one change was made that the user wanted; None for several
    changes."""
    called = [act for act in acts if act.doing is ActKind.OTHER and act.passed]
    changing = {_plain(act.tool): act for act in called if not _ASKS.match(_plain(act.tool))}
    if (
        len(changing) != 1
        or outcome.confidence < _SURE
        or any(act.command or act.doing is ActKind.EDIT for act in acts)
    ):
        return None
    ((what, last),) = changing.items()
    steps = {
        _plain(act.tool): act
        for act in called
        if act.place <= last.place and not _RECKONS.match(_plain(act.tool))
    }
    names = once((*(name for name in steps if name != what), what))
    if not _FEWEST <= len(names) <= _MOST_TOOLS:
        return None
    done = what.replace("_", " ")
    instructions = tuple(f"call {name}" for name in names)
    return Recipe(
        procedure=Procedure(when=f"to {done}", steps=instructions),
        title=clip_prose(f"To {done}", _LONGEST_TITLE),
        text=f"To {done}: {_number_steps(instructions)}. The user was content with it.",
        confirmed=not any(
            others.says(name, act.place, LEAST_COMMAND) for name, act in steps.items()
        ),
        acts=tuple(steps.values()),
        key=f"round\0{what}",
    )


def _is_doubtful(step: _Step, others: OutsideWords) -> bool:
    """True if outside text may have suggested the command, or all of it but its last word."""
    words = step.general_form.split("<", 1)[0].split()
    leads = [" ".join(words), " ".join(words[:-1])]
    return (
        is_dangerous(step.command)
        or is_borrowed(step.command, step.act.place, others)
        or any(
            " " in lead
            and not is_plain_check(lead)
            and others.says(lead, step.act.place, LEAST_COMMAND)
            for lead in leads
        )
    )


def _plain(tool: str) -> str:
    return tool.rpartition("__")[2]


def _number_steps(steps: Sequence[str]) -> str:
    return "; ".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
