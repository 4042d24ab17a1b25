"""Detects the content type of a text: by the shape of its lines first, then by the call that
returned it. Output of several commands is split where the type of its lines changes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from hotset.text.words import word_set
from hotset.window.preview.content import Body, ContentType, ToolQuery
from hotset.window.preview.json_text import is_json, is_json_lines
from hotset.window.preview.opaque import is_opaque
from hotset.window.preview.output import STAMPED
from hotset.window.preview.prose import is_markup
from hotset.window.preview.rarity import forms
from hotset.window.preview.rows import (
    COMMAS,
    HEADING,
    HIT,
    LONG_ENTRY,
    PIPES,
    SEMICOLONS,
    UNDER_HEADING,
    WIDE,
    is_listing,
    separates,
)
from hotset.window.preview.trouble import passes

_CODE = word_set("""
    py pyi js jsx ts tsx mjs cjs mts cts java kt kts scala go rs rb php c h cc cpp cxx hpp hh cs m
    mm swift dart lua pl pm r jl ex exs erl hs ml clj elm vue svelte astro sh bash zsh fish ps1 sql
    graphql proto css scss less tf hcl gradle groovy zig nim v sol cfg toml ini yaml yml cmake mk
    xml json
    """)
_PROSE = word_set("md mdx rst txt adoc tex org markdown")
_READERS = word_set("cat sed head tail nl less more bat awk read view open")
_CHECKERS = word_set("""
    pytest tox nox unittest runtests.py jest vitest mocha tsc tsgo eslint biome prettier ruff mypy
    pyright flake8 pylint black make cmake ninja mvn gradle gradlew ctest phpunit rspec rake msbuild
    dotnet swiftc javac gcc clang rustc golangci-lint playwright cypress turbo nx lerna webpack vite
    rollup esbuild
    """)
_RUNNERS = word_set("npm yarn pnpm bun cargo go deno uv poetry python python3 pip docker")
_TASKS = re.compile(
    r"test|build|lint|check|typecheck|ci|run|install|vet|clippy|compile|unittest|pytest"
)
_SAMPLE_LINES = 120  # lines sampled: the first and, in longer texts, those in the middle
_MOST = 0.6  # share of lines that decides the type
_PASSES = 0.3  # of the lines report a pass
_FEWEST = 20  # lines of a log
_OFTEN = 4  # lines of one form
_MOSTLY = 0.8  # share of lines with frequent forms
_MARKDOWN = re.compile(r"#{1,6} \S|[-*] \S|\d+\. \S|```|> |\| ")
_CODE_LINE = re.compile(
    r"\s*(?:(?:export|import|from|def|class|function|const|let|var|return|if|for|while|public|"
    r"private|async|await|type|interface|struct|fn|func"
    r"|package|use|#include|@\w+|else|try|elif)\b|[\])}]+[;,)]*\s*$|//|/\*|\*[ "
    r"/]|\S.{0,200}[;{]\s*$"
    r"|[\w.$]+\s*=\s*\S|[\w.$]+\(.{0,200}\)[;,]?\s*$)"
)
_TABLE = re.compile(r"\s*\|.{1,2000}\|\s*|[^\t\n]{1,200}(?:\t[^\t\n]{0,200}){2,}")
_SENTENCE = re.compile(r"(?:\S+\s+){6,}\S+")


def content_type(lines: Sequence[str], query: ToolQuery) -> ContentType:
    """The type of these lines of content."""
    sample = [line for line in _sample(lines) if line.strip()]
    if found := _by_whole(lines) or _by_rows(sample):
        return found
    if any(_is_check(*program) for program in query.programs()):
        return ContentType.CHECKS
    found = _by_lines(sample) or _by_call(query) or _by_look(sample)
    return found or (ContentType.LOG if _repeats(lines) else ContentType.OUTPUT)


def _by_whole(lines: Sequence[str]) -> ContentType | None:
    """Types that cover a text from its first character to its last."""
    whole = "\n".join(lines)
    if is_opaque(lines):
        return ContentType.OPAQUE
    if is_markup(whole, len(lines)):
        return ContentType.HTML
    if is_json_lines(lines):
        return ContentType.JSON_LINES
    return ContentType.JSON if is_json(whole) else None


def _by_rows(sample: Sequence[str]) -> ContentType | None:
    """Types with unmistakable lines, whatever was called."""
    if separates(COMMAS, sample) or separates(SEMICOLONS, sample):
        return ContentType.TABLE
    if _share(sample, _is_diff_line) > 0.95 and any(
        line.startswith(("diff --git ", "@@ ", "*** Begin Patch")) for line in sample
    ):
        return ContentType.DIFF
    return ContentType.SEARCH if _share(sample, _is_numbered_hit) > _MOST else None


def _by_lines(sample: Sequence[str]) -> ContentType | None:
    """Types whose lines tests and builds print too; checked after those."""
    if _share(sample, passes) > _PASSES:
        return ContentType.CHECKS
    if _share(sample, STAMPED.match) > _MOST:
        return ContentType.LOG
    if _are_hits(sample):
        return ContentType.SEARCH
    return ContentType.LISTING if is_listing(sample) else None


def _by_call(query: ToolQuery) -> ContentType | None:
    programs = query.programs()
    endings = [path.rsplit(".", 1)[-1].lower() for path in query.paths]
    reads = not query.command or any(name in _READERS for name, _ in programs)
    if reads and any(ending in _CODE for ending in endings):
        return ContentType.CODE
    if reads and any(ending in _PROSE for ending in endings):
        return ContentType.PROSE
    return None


def _by_look(sample: Sequence[str]) -> ContentType | None:
    if (
        _share(sample, _TABLE.fullmatch) > 0.8
        or separates(PIPES, sample)
        or separates(WIDE, sample)
    ):
        return ContentType.TABLE
    if _share(sample, _CODE_LINE.match) > 0.5:
        return ContentType.CODE
    if _share(sample, lambda line: _MARKDOWN.match(line) or _SENTENCE.match(line)) > 0.6:
        return ContentType.PROSE
    return None


def _repeats(lines: Sequence[str]) -> bool:
    """True if nearly all lines have one of a few forms; lines separated by empty ones do not
    count."""
    sample = _sample(lines)
    if len(sections(Body(0, sample))) > 1:
        return False
    counts = Counter(forms(sample))
    common = sum(count for form, count in counts.items() if form and count >= _OFTEN)
    return len(sample) >= _FEWEST and common > _MOSTLY * len(sample)


def _sample(lines: Sequence[str]) -> Sequence[str]:
    if len(lines) <= 2 * _SAMPLE_LINES:
        chosen = lines
    else:
        middle = len(lines) // 2
        chosen = [*lines[:_SAMPLE_LINES], *lines[middle : middle + _SAMPLE_LINES]]
    return [line[:400] for line in chosen]


def _share(sample: Sequence[str], fits: Callable[[str], object]) -> float:
    return sum(1 for line in sample if fits(line)) / len(sample) if len(sample) > 2 else 0.0


def _is_diff_line(line: str) -> bool:
    return line.startswith(
        (
            " ",
            "+",
            "-",
            "@@",
            "diff --git ",
            "index ",
            "\\",
            "new file",
            "deleted file",
            "rename ",
            "similarity ",
            "*** ",
        )
    )


def _are_hits(sample: Sequence[str]) -> bool:
    """True for search hits after or under their file names."""
    if _share(sample, _is_hit) > _MOST:
        return any(":" in line for line in sample)
    if _share(sample, UNDER_HEADING.match) <= _MOST:
        return False
    # Of one file, whose name is not printed: hits among the lines around them.
    marks = {found[0][-1] for line in sample if (found := UNDER_HEADING.match(line))}
    return any(map(HEADING.fullmatch, sample)) or ("--" in sample and marks == {":", "-"})


def _is_hit(line: str) -> bool:
    """True if the match directly follows its file, with its own indentation; a message follows
    after one space."""
    found = HIT.match(line)
    if not found or found["path"].isdigit() or line[found.end() : found.end() + 1] == ":":
        return False
    is_message = (
        line[found.end() - 1 : found.end()] == ":"
        and line[found.end() : found.end() + 1] == " " != line[found.end() + 1 : found.end() + 2]
    )
    return bool(found["line"]) or (
        not is_message and ("/" in found["path"] or "." in found["path"])
    )


def _is_numbered_hit(line: str) -> bool:
    found = HIT.match(line)
    return bool(
        found
        and found["line"]
        and not found["path"].isdigit()
        and line[found.end() : found.end() + 1] != ":"
    )


def _is_check(name: str, argument: str) -> bool:
    return name in _CHECKERS or (name in _RUNNERS and bool(_TASKS.match(argument)))


_SHORTEST = 6  # lines: a shorter run is merged into its neighbours
_DIFF_START = re.compile(r"diff --git |--- a/|@@ -\d")
_DIFF_LINE = re.compile(
    r"[ +@\\-]|diff --git |index |new file|deleted file|rename |similarity |old mode|new "
    r"mode|Binary |$"
)
_NUMBERED_HIT = re.compile(r"[\w./@+~$()\[\]-]{3,240}:\d{1,7}:")


def sections(body: Body) -> list[tuple[Body, ContentType]]:
    """Runs of search hits, diffs and long listings; the rest is plain output."""
    merged: list[tuple[int, int, ContentType]] = []
    for first, end, kind in _runs(body.lines):
        kind_ = kind if end - first >= _SHORTEST else ContentType.OUTPUT
        if merged and merged[-1][2] is kind_:
            merged[-1] = (merged[-1][0], end, kind_)
        else:
            merged.append((first, end, kind_))
    return [(body.part(first, end), kind) for first, end, kind in merged]


def _runs(lines: Sequence[str]) -> Iterator[tuple[int, int, ContentType]]:
    start = 0
    current = ContentType.OUTPUT
    for index, line in enumerate(lines):
        kind = _line_kind(line, current)
        if kind is not current:
            if index > start:
                yield start, index, current
            start, current = index, kind
    if lines:
        yield start, len(lines), current


def _line_kind(line: str, current: ContentType) -> ContentType:
    if _DIFF_START.match(line) or (current is ContentType.DIFF and _DIFF_LINE.match(line)):
        return ContentType.DIFF
    if _NUMBERED_HIT.match(line) or (
        current is ContentType.SEARCH and (line == "--" or (HIT.match(line) and "-" in line))
    ):
        return ContentType.SEARCH
    return ContentType.LISTING if LONG_ENTRY.match(line) else ContentType.OUTPUT
