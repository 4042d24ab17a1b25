"""What was done, without what belongs to one occasion: by this it is known again, and can be done again. Pure.

A path in the project is told from its root, a test by what it is, a message or a number by a placeholder. What stays one
occasion's own (a script written in place, a loop, an address, a file in /tmp) has no general form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

TESTS, TEXT, ID, FILE, VERSION = "<tests>", "<text>", "<id>", "<file>", "<version>"

_LONGEST = 120
_MOST_WORDS = 14
_LONGEST_VALUE = 12  # characters behind a flag's `=`; longer ones are somebody's words
_PARTS = re.compile(r"\s*(?:&&|\|\||;|(?<!\|)\|(?!\|))\s*")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_WORD = re.compile(r"(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|[^\s'\"])+")
_ONE_OFF = re.compile(
    r"<<|\$\(|\$\{|\$\w|`|\n|(?:^|\s)(?:python[\d.]*|node|bun|deno|ruby|perl|(?:ba|z)?sh)(?:\s+-\S+)*\s+-(?:-eval|l?c|e|)(?:\s|$)"
    r"|^(?:for|while|if|until|case|function)\b|^\w+=\S*$|^[^\w./]|[{}*?](?!\S*\.\w+$)|>"
)
"""Written for the moment."""
_CHORE = re.compile(
    r"(?:rtk\s+)?(?:rm|mv|cp|mkdir|rmdir|touch|kill|pkill|chmod|chown|ln|echo|printf|sleep|true|false|export|set|unset|source|cd"
    r"|pushd|popd|wait|read|test|\[|tmux|screen|clear|exit|alias|type|which|man|open|code|history|do|done|then|else|fi|base64|const|let|import|await)(?=\s|$)"
    r"|(?:rtk\s+)?git(?:\s+-\S+(?:\s+\S+)?)*\s+(?:add|commit|status|log|diff|show|stash|checkout|switch|restore|reset|branch|config"
    r"|rm|mv|clean|fetch|remote|rev-\w+|merge-base|ls-\w+|check-\w+|worktree|pull|push|rebase|merge|cherry-pick|init|clone)\b"
    r"|(?:rtk\s+)?git\s+tag\s+-|(?:npm|pnpm|yarn|bun)\s+(?:pm\s+)?(?:bin|root|prefix|ls|list|why|outdated|view|info|whoami)\b|.*\s(?:--help|--version|-h|-V)$"
)
"""What anybody does anyway, and what says nothing about this work."""
_SHAPES = re.compile(r"(?:tail|head|less|cat|tee|grep|egrep|rg|sed|awk|sort|uniq|wc|cut|xargs|jq|tr|column|nl)\b")
_REDIRECT = re.compile(r"\s*(?:\d?>&\d|\d?>\s?/dev/null|&>\s?/dev/null|>\s?/dev/null)")
_BEFORE = re.compile(
    r"^(?:/(?:usr/)?(?:local/)?s?bin/)?(?:(?:timeout\s+\S+|time|sudo|nice(?:\s+-n\s*\d+)?|command|exec)\s+)*(?:/(?:usr/)?(?:local/)?s?bin/)?"
)
_TRIED = re.compile(r"\brepro")
_THROWAWAY = re.compile(
    r"(?:^|[/\s])(?:\w*repro\w*|debug_?\w*|verify\w*|check_\w+|apply_\w*|modify_\w*|update_\w*|fix_\w*|inspect_\w*|tmp\w*|scratch\w*"
    r"|demo\w*|try_\w*|test_(?:repro|issue|fix|case|edge|manual|script|patch)\w*|[\w-]+_(?:repro|v\d+|patch|fix))\.\w+$|^/?tmp/|^/var/"
    r"|(?:^|/)\w*repro\w*/"
)
_PATH = re.compile(r"(?:(?:[\w.@+~-]*/)+[\w.@+-]*|[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,5})(?:::[\w.:\[\]-]+)?")
_FILE = re.compile(r"(?:^|/)(?:[A-Za-z_.][\w.@+-]*\.[A-Za-z]\w{0,5}|Makefile|Dockerfile|Justfile|Procfile)$")
_TEST_NAME = re.compile(r"(?:^|[/._-])(?:tests?|specs?|__tests__)(?:[/._-]|$)|\w(?:Test|Spec)s?\b|::", re.IGNORECASE)
_NUMBER = re.compile(r"#?\d{3,}|[0-9a-f]{7,40}|[a-z]{1,4}-[a-z0-9]*\d[a-z0-9.]*")
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:-[\w.]+)?")
_ADDRESS = re.compile(r"\w+://\S+|git@\S+")
_VALUE_FLAG = re.compile(
    r"-m|-F|--(?:message|body|body-file|title|description|reason|prompt|notes?|append-notes|comment|filter|grep|name|pattern|test-id"
    r"|testNamePattern|testPathPattern|external-ref|assignee|labels?|set-metadata|branch|parent|deps)"
)
_PYTHON = re.compile(r"(?:\S+/)?python[\d.]*$")
_RUNNERS = frozenset(
    [
        "pytest",
        "py.test",
        "unittest",
        "jest",
        "vitest",
        "mocha",
        "rspec",
        "phpunit",
        "test",
        "tests",
        "runtests.py",
        "nextest",
        "ctest",
        "tox",
        "nox",
        "trial",
        "nosetests",
    ]
)
"""Words after which names are those of tests."""
_ROOT_PARTS = frozenset(
    [
        "src",
        "lib",
        "libs",
        "app",
        "apps",
        "packages",
        "package",
        "tests",
        "test",
        "spec",
        "specs",
        "docs",
        "doc",
        "frontend",
        "backend",
        "server",
        "client",
        "web",
        "internal",
        "pkg",
        "cmd",
        "scripts",
        "bin",
        "examples",
        "components",
        ".github",
        ".agents",
        ".claude",
        "prompts",
    ]
)
_NO_PROJECT = frozenset(
    [
        "home",
        "users",
        "code",
        "projects",
        "project",
        "repos",
        "repo",
        "workspaces",
        "workspace",
        "work",
        "src",
        "testbed",
        "app",
        "root",
        "tmp",
        "var",
    ]
)
_ELSEWHERE = ("/tmp/", "/var/", "/usr/", "/opt/", "/private/", "/etc/", "/dev/")  # noqa: S108 - names, not files
_WORKTREE = re.compile(r"/([\w.-]+?)(?:/\.|__|[._-])worktrees?/[^/]+$")
"""Where a branch is checked out beside its project: `shop/.worktrees/fix-cart`, `shop__worktrees/fix-cart`."""
_VALUES = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{7,}\b|\d+|'[^']*'|\"[^\"]*\"|`[^`]*`|\u2018[^\u2019]*\u2019", re.IGNORECASE)
_ANY_PATH = re.compile(
    r"(?:[\w~.@+-]*/)+[\w.@~+-]*|\b[\w@+-]+\.(?:[jt]sx?|py|rs|go|rb|java|css|json|ya?ml|toml|md|sql)\b(?:[:(][\d:,]+\)?)?"
)
_SPACE = re.compile(r"\s+")
_ERROR_KEY = 100  # characters


def parts_of(command: str) -> list[str]:
    """The commands of a line, each without what shapes its output."""
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        held.append(found.group())
        return f"\0{len(held) - 1}\0"

    bare = _QUOTED.sub(hold, command)
    if "'" in bare or '"' in bare:  # cut off inside a quotation
        return []
    parts = (_REDIRECT.sub("", part).strip() for part in _PARTS.split(bare))
    told = (re.sub(r"\0(\d+)\0", lambda found: held[int(found.group(1))], part) for part in parts if part)
    bares = (_BEFORE.sub("", part) for part in told)
    return [part for part in bares if not _SHAPES.match(part)]


@lru_cache(maxsize=4096)  # the same few come up again and again
def general(part: str, root: str = "") -> str:
    """One command as it would be said next time; empty where it has no next time, or is what anybody does anyway."""
    if _ONE_OFF.search(_QUOTED.sub("Q", part)) or _CHORE.match(part) or _TRIED.search(part):
        return ""
    words = _WORD.findall(part)
    if not words or len(words) > _MOST_WORDS:
        return ""
    said: list[str] = []
    runs = False  # a runner of tests was named
    for before, word in zip(("", *words), words, strict=False):
        plain = _program(word, root) if not said else _general_word(word, root, runs=runs)
        if said and _VALUE_FLAG.fullmatch(before) and not _PYTHON.match(said[0]):
            plain = TEXT
        if not plain:
            return ""
        if not (plain in (TESTS, TEXT, FILE, ID) and said[-1:] == [plain]):
            said.append(plain)
        runs = runs or word.rsplit("/", 1)[-1].split(":", 1)[0] in _RUNNERS
    if _PYTHON.match(words[0]) and re.fullmatch(r"\w+", words[1] if len(words) > 1 else ""):
        return ""  # a folder with something in it to run
    told = " ".join(said)
    return told if len(told) <= _LONGEST and len(said) > 1 else ""


def told_key(told: str) -> str:
    """By which a general command is known: which Python runs it, and from which folder, makes no difference."""
    return re.sub(r"^(?:\w+=\S* )*(?:\S*python[\d.]* (?!-))?(?:[^\s<]*/)?", "", told)


def in_project(path: str, root: str) -> str:
    """As it is called from the project's root."""
    for top in (f"{root}/", f"{root[1:]}/"):  # who reads a command may have lost the first stroke
        if root and path.startswith(top):
            return path[len(top) :]
    return path.removeprefix("./")


def is_throwaway(path: str) -> bool:
    """Was it written to try something?"""
    return _THROWAWAY.search(path) is not None


def is_file(path: str) -> bool:
    """Does it look like a file that lasts? Whoever reads commands takes much for one that is none."""
    return _FILE.search(path) is not None and not is_throwaway(path) and not path.startswith(_ELSEWHERE)


def root_of(paths: Iterable[str]) -> str:
    """The folder in which the work was done: that of most files, where they are named from the top; empty where none is."""
    tops = [path for path in paths if path.startswith("/") and not path.startswith(_ELSEWHERE)]
    tops = [path for path in tops if "/." not in path] or tops  # a client's own files lie in such folders
    roots = {_own_root(path) for path in tops}
    within = {root: sum(path.startswith(f"{root}/") for path in tops) for root in roots if root}
    return max(sorted(within), key=lambda root: (within[root], len(root)), default="")


def project_of(root: str, files: Sequence[str]) -> str:
    """What the project is called; where only its own paths are known, by the folder in which most of them are."""
    trees = _WORKTREE.search(root)
    name = trees.group(1) if trees else root.rsplit("/", 1)[-1]
    if name and name.lower() not in _NO_PROJECT:
        return name
    tops = [
        first for path in files if "/" in path and (first := in_project(path, root).split("/", 1)[0]) not in ("", ".", "..", "~")
    ]
    best = max(sorted(set(tops)), key=tops.count, default="")
    return best if best not in _ROOT_PARTS else ""


def error_key(kind: str, said: str) -> str:
    """The same error, whatever the numbers, names in quotes and paths in it."""
    line = said.strip().split("\n", 1)[0]
    return f"{kind}|{_SPACE.sub(' ', _VALUES.sub('#', _ANY_PATH.sub('/', line)))[:_ERROR_KEY]}"


def _own_root(path: str) -> str:
    """The folder above the first that is a part of any project."""
    parts = path.split("/")[1:-1]
    inner = next((at for at, part in enumerate(parts) if at > 0 and (part in _ROOT_PARTS or part.startswith("."))), len(parts))
    return "/" + "/".join(parts[:inner]) if inner else ""


def _program(word: str, root: str) -> str:
    bare = word.strip("'\"")
    return "" if bare.startswith((*_ELSEWHERE, "~")) else in_project(bare, root)


def _general_word(word: str, root: str, *, runs: bool) -> str:  # noqa: PLR0911 - one case a sort of word
    """A word behind the first; `runs`: a runner of tests was named before it. Empty where it belongs to one occasion."""
    bare = word.strip("'\"")
    if is_throwaway(bare) or _ADDRESS.search(bare):
        return ""
    if any(each.isspace() for each in bare):
        return TEXT
    if word.startswith("-"):
        flag, equals, value = word.partition("=")
        return f"{flag}={TEXT}" if equals and (_VALUE_FLAG.fullmatch(flag) or len(value) > _LONGEST_VALUE) else word
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
