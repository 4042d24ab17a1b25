"""Whose words are these? Text that stood in a tool's result, a file or a web page before somebody repeated it is not theirs.

Memories are advice, and advice that a web page slipped into a session would stay for good. So whatever is about to become a
step, a resolution or a fact is looked up in all the text that others wrote before: with spaces, quotes, case and invisible
characters left out, so that line breaks and markup hide nothing. What somebody words anew is not found by this; that is why
advice also needs an outcome or a person behind it, and why commands that fetch code are never taken by rules.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from hotset.nouns.tool import Origin, Tool
from hotset.text.characters import folded, hidden, lookalikes, squeezed
from hotset.text.suspicion import suspect

LEAST_COMMAND = 10
"""Characters of a command, squeezed, from which on its standing in a text of others is no chance."""
LEAST_SENTENCE = 16
"""The same of a sentence."""

_PARTS = re.compile(r"\s*(?:&&|\|\||;|\n|(?<!\|)\|(?!\|))\s*")
_ADDRESS = re.compile(r"(?:https?|ftp|git|ssh)(?:\+\w+)?://[^\s'\"|;&)]{4,}|\b(?:\d{1,3}\.){3}\d{1,3}\b|\bgit@[\w.:/-]{4,}")
_INSTALL = re.compile(
    r"\b(?:pip3?|uv|pipx|npm|pnpm|yarn|bun|npx|bunx|uvx|gem|cargo|go|brew|apt(?:-get)?|apk|dnf|yum|conda"
    r"|composer|poetry|dotnet)\b"
    r"(?:\s+(?:pip|tool|global|-\S+))*\s*(?:install|add|i|get|exec|x|run|dlx|require)?\s+(?P<what>[^|;&\n]+)"
)
_IS_INSTALL = re.compile(r"\b(?:install|add|get|require|dlx|npx|bunx|uvx|pipx)\b|\b(?:npm|pnpm|yarn|bun) (?:i|x|exec)\b")
_NAME = re.compile(r"(?<![\w-])@?[A-Za-z][\w./@-]{2,80}")
_URGES = re.compile(rb"install|run|use|add|try|fix|upgrade|need|require|execute|download")
_NEAR = 80  # characters in front of a name within which a text urges to get it
_MOST_PLACES = 20
_FETCHES = re.compile(
    r"\b(?:curl|wget|iwr|invoke-webrequest|fetch)\b[^\n]*\|\s*(?:sudo\s+)?(?:\w*sh|python\d?|node|perl|ruby|iex)\b"
    r"|\b(?:ba|z|da)?sh\s+-c\s+[\"']?\$\(\s*(?:curl|wget)|<\(\s*(?:curl|wget)"
    r"|base64\s+(?:-d|--decode|-D)[^\n]*\|\s*\w*sh\b|\beval\s+[\"'$(`]"
    r"|\b(?:pip3?|npm|pnpm|yarn|uv|cargo|gem)\b[^\n]*(?:https?://|git\+|git@|--(?:extra-)?index-url|--registry)"
    r"|(?:~|\$HOME|/root|/home/\S+)/\.(?:ssh|aws|gnupg|netrc|npmrc|docker|kube)\b|/etc/(?:passwd|shadow|sudoers)|authorized_keys"
    r"|\bcrontab\b|--no-verify\b|\bchmod\s+(?:-R\s+)?(?:777|a\+rwx)|\brm\s+-\w*[rf]\w*\s+(?:/|~"
    r"|\$HOME)(?:\s|$)|\bnc\s+-|/dev/tcp/",
    re.IGNORECASE,
)
"""Commands that no rule may recommend, whoever had the idea: they run code from afar, reach for keys, or cannot be undone."""
_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instructions?|rules?|prompts?|previous|prior|above)\b"
    r"|\b(?:you (?:must|should|need to|have to|are (?:now )?(?:required|instructed))|(?:ai|llm|language model|assistant|agent)s?"
    r" (?:must|should|need to|have to|reading this))\b"
    r"|\b(?:remember|memori[sz]e|store|save|note|record|persist)\b.{0,40}\b(?:memory|memories|lesson|rule"
    r"|fact|for (?:later|future)|always|that)\b"
    r"|\blessons? learned\b|\bfrom now on\b|\bgoing forward\b|\bin (?:all )?future (?:sessions?|tasks?|runs?)\b"
    r"|\b(?:to (?:fix|resolve|solve|continue|proceed)|fix|solution|resolution|workaround|hint|tip"
    r"|remedy)\b\s*(?:this\b[^:]{0,20})?[:,]"
    r"|\b(?:please |then |first |simply |just |now )?(?:run|execute|install|download|invoke|paste|type"
    r"|visit|open|curl|wget|sudo)\b[:\s]+\S"
    r"|\b(?:the )?user (?:says?|said|wants?|asked|requested|prefers?|approved|confirmed)\b|\b(?:system|user|human|assistant)\s*:"
    r"|https?://|<(?:[/!|]|system|important|instructions?|user|assistant|admin|secret|hidden|script)",
    re.IGNORECASE,
)
"""What an error has no reason to say, and whoever wants something from the reader says."""


@dataclass(frozen=True, slots=True)
class Outside:
    """All that others wrote in a session, in its order, to search in."""

    text: bytes = field(repr=False)
    starts: tuple[int, ...]
    """Where in it the text of each page begins."""
    places: tuple[int, ...]
    """Which page of the line that is."""

    def says(self, words: str, before: int, least: int) -> bool:
        """Did it stand in an earlier page than this one of the line?"""
        sought = squeezed(words.encode("utf-8", "replace"))
        return len(sought) >= least and self.text.find(sought, 0, self._until(before)) >= 0

    def urges(self, name: str, before: int) -> bool:
        """Did an earlier text urge to get something of this name?"""
        sought = squeezed(name.encode("utf-8", "replace"))
        until, at = self._until(before), -1
        for _ in range(_MOST_PLACES):
            at = self.text.find(sought, at + 1, until)
            if at < 0:
                return False
            if _URGES.search(self.text, max(0, at - _NEAR), at):
                return True
        return True

    def _until(self, before: int) -> int:
        which = bisect_left(self.places, before)
        return self.starts[which] if which < len(self.starts) else len(self.text)


def outside(pages: Iterable[tuple[int, bytes]]) -> Outside:
    """Of each page its place in the line and its text, squeezed."""
    starts: list[int] = []
    places: list[int] = []
    pieces: list[bytes] = []
    size = 0
    for place, text in pages:
        if text:
            starts.append(size)
            places.append(place)
            pieces += [text, b"\n"]
            size += len(text) + 1
    return Outside(b"".join(pieces), tuple(starts), tuple(places))


def is_dangerous(command: str) -> bool:
    """No rule recommends it: it runs code from afar, reaches for keys, or cannot be undone."""
    return _FETCHES.search(command) is not None or _has_tricks(command)


def is_borrowed(command: str, before: int, others: Outside) -> bool:
    """Does it, one of its parts, an address in it or a package that it gets come from a text of others?"""
    parts = [command, *(part for part in _PARTS.split(command) if part)]
    return (
        any(others.says(part, before, LEAST_COMMAND) for part in parts if not is_plain_check(part))
        or any(others.says(address, before, 1) for address in _ADDRESS.findall(command))
        or any(others.urges(name, before) for name in _packages(command))
    )


def is_plain_check(command: str) -> bool:
    """A runner of tests or a linter, with nothing but paths and flags: every README says these, and none is an order."""
    return _PLAIN_CHECK.fullmatch(command.strip()) is not None


def is_order(text: str) -> bool:
    """Does it tell its reader what to do, or hide something?"""
    plain = folded(text)
    return _ORDERS.search(plain) is not None or is_suspect(text)


def quoted(text: str, most: int) -> str:
    """Somebody's words as data: one line, no marks that could end the quotation, no sentence that gives orders."""
    kept: list[str] = []
    for part in re.split(r"(?<=[.!?;])\s+|\s+[-\u2013—]+\s+|\n", text):
        if is_order(part):
            break
        kept.append(part)
    line = " ".join(" ".join(kept).split())
    line = "".join(each for each in line if each.isprintable()).translate(_HARMLESS)
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def is_suspect(text: str) -> bool:
    """By the rules that judge what tools say of themselves: orders to a model, and characters that hide something."""
    found = suspect(replace(_UNNAMED, description=text))
    return bool(found.flags or found.warnings)


def _has_tricks(text: str) -> bool:
    return bool(hidden(text)) or bool(lookalikes(text))


def _packages(command: str) -> Iterator[str]:
    if _IS_INSTALL.search(command) and not is_plain_check(command):
        for found in _INSTALL.finditer(command):
            words = (word for word in found.group("what").split() if not word.startswith("-"))
            yield from (name.group() for word in words if (name := _NAME.fullmatch(word)) and "/" not in word.strip("@")[:1])


_UNNAMED = Tool("said", "", Origin.CREATED, "said", "", b"{}")
_HARMLESS = str.maketrans(
    {"\u201c": "'", "\u201d": "'", '"': "'", "`": "'", "<": "(", ">": ")", "[": "(", "]": ")", "{": "(", "}": ")"}
)
_GOAL = r"(?:test|tests|lint|check|build|typecheck|type-check|format|fmt|verify|all)"
_RUNNER = (
    r"(?:pytest|py\.test|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|ruff(?: check| format)?|mypy|pyright|tsc|eslint"
    r"|biome(?: check)?|flake8|pylint|black|prettier|golangci-lint|unittest"
    rf"|(?:npm|pnpm|yarn|bun|deno)(?: run)? {_GOAL}(?::[\w-]{{1,20}})?|(?:mvn|gradle|\./gradlew) {_GOAL}"
    rf"|make(?: (?:-\w{{1,8}}|{_GOAL}))*(?=$|\s2>)"
    r"|cargo (?:test|build|check|clippy|fmt|nextest run)|go (?:test|build|vet)|(?:dotnet|mix|swift) (?:test|build))"
)
_INSTALLS = (
    r"(?:npm|pnpm|yarn|bun) (?:install|ci|i)|uv sync|poetry install|bundle install|go mod (?:tidy|download)"
    r"|pip3? install (?:-r requirements[\w.-]{0,20}\.txt|-e \.)"
)
"""What gets what the project itself asks for, and nothing besides."""
_PLAIN_CHECK = re.compile(
    r"(?:(?:CI|NODE_ENV|PYTHONPATH|DEBUG)=[\w.]*\s+)*"
    r"(?:(?:(?:uv|poetry|pipenv|hatch) run|python[\d.]* -m|npx|timeout \d+|bundle exec)\s+)*"
    r"(?:\./|\.?venv/bin/|node_modules/\.bin/)?"
    rf"{_RUNNER}(?!.*\s(?:-p|-c|-o|--plugins?|--config\S*|--rulesdir|--registry|--\w*index-url)\b)"
    r"(?:\s+[\w./:=,+*-]+)*(?:\s+2>&1)?"
    rf"|{_INSTALLS}"
)
