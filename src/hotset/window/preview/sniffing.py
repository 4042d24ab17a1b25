"""Which kind of content a text is: by the shape of its lines first, then by the call that brought it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from hotset.window.preview.asking import Asked, asked
from hotset.window.preview.body import body
from hotset.window.preview.content import ContentType, Origin
from hotset.window.preview.hits import HIT
from hotset.window.preview.json_text import is_json, is_json_lines
from hotset.window.preview.listing import BRANCH, ENTRY, LONG_ENTRY
from hotset.window.preview.logs import STAMPED
from hotset.window.preview.markup import HTML
from hotset.window.preview.opaque import is_opaque
from hotset.window.preview.tables import COMMAS, PIPES, SEMICOLONS, WIDE, separates

_CODE = frozenset(
    re.findall(
        r"\S+",
        """
    py pyi js jsx ts tsx mjs cjs mts cts java kt kts scala go rs rb php c h cc cpp cxx hpp hh cs m mm swift dart lua pl pm r jl ex
    exs erl hs ml clj elm vue svelte astro sh bash zsh fish ps1 sql graphql proto css scss less tf hcl gradle groovy zig
    nim v sol cfg toml ini yaml yml cmake mk xml json
    """,
    )
)
_PROSE = frozenset(re.findall(r"\S+", "md mdx rst txt adoc tex org markdown"))
_READERS = frozenset(re.findall(r"\S+", "cat sed head tail nl less more bat awk read view open"))
_CHECKERS = frozenset(
    re.findall(
        r"\S+",
        """
    pytest tox nox unittest runtests.py jest vitest mocha tsc tsgo eslint biome prettier ruff mypy pyright flake8 pylint
    black make cmake ninja mvn gradle gradlew ctest phpunit rspec rake msbuild dotnet swiftc javac gcc clang rustc golangci-lint
    playwright cypress
    turbo nx lerna webpack vite rollup esbuild
    """,
    )
)
_RUNNERS = frozenset(re.findall(r"\S+", "npm yarn pnpm bun cargo go deno uv poetry python python3 pip docker"))
_TASKS = re.compile(r"test|build|lint|check|typecheck|ci|run|install|vet|clippy|compile|unittest|pytest")
_LINES = 120  # lines looked at: the first and, in longer texts, those in the middle
_MARKDOWN = re.compile(r"#{1,6} \S|[-*] \S|\d+\. \S|```|> |\| ")
_CODE_LINE = re.compile(
    r"\s*(?:(?:export|import|from|def|class|function|const|let|var|return|if|for|while|public|private|async|await|type|interface|struct|fn|func"
    r"|package|use|#include|@\w+|else|try|elif)\b|[\])}]+[;,)]*\s*$|//|/\*|\*[ /]|\S.{0,200}[;{]\s*$"
    r"|[\w.$]+\s*=\s*\S|[\w.$]+\(.{0,200}\)[;,]?\s*$)"
)
_TABLE = re.compile(r"\s*\|.{1,2000}\|\s*|[^\t\n]{1,200}(?:\t[^\t\n]{0,200}){2,}")
_SENTENCE = re.compile(r"(?:\S+\s+){6,}\S+")


def sniff(text: str, origin: Origin) -> ContentType:
    return kind(body(text.split("\n")).lines, asked(origin))


def kind(lines: Sequence[str], asked: Asked) -> ContentType:
    """What lines of content are."""
    return _by_shape(lines) or _by_call(asked) or _by_look(lines)


def _by_shape(lines: Sequence[str]) -> ContentType | None:
    """What nothing else looks like."""
    whole = "\n".join(lines)
    if is_opaque(lines):
        return ContentType.OPAQUE
    if HTML.match(whole):
        return ContentType.HTML
    if is_json_lines(lines):
        return ContentType.JSON_LINES
    return ContentType.JSON if is_json(whole) else _by_lines([line for line in _sample(lines) if line.strip()])


def _by_lines(sample: Sequence[str]) -> ContentType | None:
    if separates(COMMAS, sample) or separates(SEMICOLONS, sample):
        return ContentType.TABLE
    if _share(sample, _is_diff_line) > 0.95 and any(
        line.startswith(("diff --git ", "@@ ", "*** Begin Patch")) for line in sample
    ):
        return ContentType.DIFF
    shapes = ((ContentType.LOG, STAMPED.match, 0.6), (ContentType.SEARCH, _is_hit, 0.6), (ContentType.LISTING, _is_entry, 0.85))
    return next((type_ for type_, fits, share in shapes if _share(sample, fits) > share), None)


def _by_call(asked: Asked) -> ContentType | None:
    programs = asked.programs()
    if any(_is_check(*program) for program in programs):
        return ContentType.CHECKS
    endings = [path.rsplit(".", 1)[-1].lower() for path in asked.paths]
    reads = not asked.command or any(name in _READERS for name, _ in programs)
    if reads and any(ending in _CODE for ending in endings):
        return ContentType.CODE
    if reads and any(ending in _PROSE for ending in endings):
        return ContentType.PROSE
    return None


def _by_look(lines: Sequence[str]) -> ContentType:
    sample = [line for line in _sample(lines) if line.strip()]
    if _share(sample, _TABLE.fullmatch) > 0.8 or separates(PIPES, sample) or separates(WIDE, sample):
        return ContentType.TABLE
    if _share(sample, _CODE_LINE.match) > 0.5:
        return ContentType.CODE
    if _share(sample, lambda line: _MARKDOWN.match(line) or _SENTENCE.match(line)) > 0.6:
        return ContentType.PROSE
    return ContentType.OUTPUT


def _sample(lines: Sequence[str]) -> Sequence[str]:
    if len(lines) <= 2 * _LINES:
        chosen = lines
    else:
        middle = len(lines) // 2
        chosen = [*lines[:_LINES], *lines[middle : middle + _LINES]]
    return [line[:400] for line in chosen]


def _share(sample: Sequence[str], fits: Callable[[str], object]) -> float:
    return sum(1 for line in sample if fits(line)) / len(sample) if len(sample) > 2 else 0.0


def _is_diff_line(line: str) -> bool:
    return line.startswith(
        (" ", "+", "-", "@@", "diff --git ", "index ", "\\", "new file", "deleted file", "rename ", "similarity ", "*** ")
    )


def _is_hit(line: str) -> bool:
    found = HIT.match(line)
    if not found or found["path"].isdigit() or line[found.end() : found.end() + 1] == ":":
        return False
    return bool(found["line"]) or "/" in found["path"] or "." in found["path"]


def _is_entry(line: str) -> bool:
    if LONG_ENTRY.match(line) or (BRANCH.match(line) and not line.rstrip().endswith("|")):
        return True
    bare = line.strip().rstrip(":")
    return bool(ENTRY.fullmatch(bare)) and ("/" in bare or "." in bare or " " not in bare) and bare.count(" ") < 3


def _is_check(name: str, argument: str) -> bool:
    return name in _CHECKERS or (name in _RUNNERS and bool(_TASKS.match(argument)))
