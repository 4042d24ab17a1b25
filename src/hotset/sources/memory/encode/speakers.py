"""Find the author of a text. Text that was in a tool's result, a file or a web page before is not
the person's who repeats it.

Memories are advice, and advice that a web page slipped into a session would stay for good. So
steps, resolutions and facts are looked up in all earlier outside text, ignoring spaces, quotes,
case and invisible characters, so that line breaks and markup hide nothing. Paraphrases are not
found; so advice also needs an outcome or a person behind it, and rules never adopt commands that
fetch code.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from hotset.nouns.tool import OriginKind, Tool
from hotset.text.characters import fold_text, hidden, lookalikes, squeeze
from hotset.text.sentences import sentences
from hotset.text.suspicion import suspect
from hotset.text.words import UNSPACED, word_set
from hotset.window.work.prompts import unquote, without_marks

LEAST_COMMAND = 10
"""Characters of a command, squeezed, from which on finding it in outside text is no chance."""
LEAST_SENTENCE = 16
"""The same for a sentence."""

_PARTS = re.compile(r"\s*(?:&&|\|\||;|\n|(?<!\|)\|(?!\|))\s*")
_ADDRESS = re.compile(
    r"(?:https?|ftp|git|ssh)(?:\+\w+)?://[^\s'\"|;&)]{4,}|\b(?:\d{1,3}\.){3}\d{1,3}\b|"
    r"\bgit@[\w.:/-]{4,}"
)
_INSTALL = re.compile(
    r"\b(?:pip3?|uv|pipx|npm|pnpm|yarn|bun|npx|bunx|uvx|gem|cargo|go|brew|apt(?:-get)?|apk|"
    r"dnf|yum|conda"
    r"|composer|poetry|dotnet)\b"
    r"(?:\s+(?:pip|tool|global|-\S+))*\s*(?:install|add|i|get|exec|x|run|dlx|require)"
    r"?\s+(?P<what>[^|;&\n]+)"
)
_IS_INSTALL = re.compile(
    r"\b(?:install|add|get|require|dlx|npx|bunx|uvx|pipx)\b|\b(?:npm|pnpm|yarn|bun) (?:i|x|exec)\b"
)
_NAME = re.compile(r"(?<![\w-])@?[A-Za-z][\w./@-]{2,80}")
_URGES = re.compile(rb"install|run|use|add|try|fix|upgrade|need|require|execute|download")
_NEAR = 80  # characters before a name in which a text urges to get it
_MOST_PLACES = 20
_FETCHES = re.compile(
    r"\b(?:curl|wget|iwr|invoke-webrequest|fetch)\b[^\n"
    r"]*\|\s*(?:sudo\s+)?(?:\w*sh|python\d?|node|perl|ruby|iex)\b"
    r"|\b(?:ba|z|da)?sh\s+-c\s+[\"']?\$\(\s*(?:curl|wget)|<\(\s*(?:curl|wget)"
    r"|base64\s+(?:-d|--decode|-D)[^\n]*\|\s*\w*sh\b|\beval\s+[\"'$(`]"
    r"|\b(?:pip3?|npm|pnpm|yarn|uv|cargo|gem)\b[^\n"
    r"]*(?:https?://|git\+|git@|--(?:extra-)?index-url|--registry)"
    r"|(?:~|\$HOME|/root|/home/\S+)/\.(?:ssh|aws|gnupg|netrc|npmrc|docker|kube)\b|/etc/"
    r"(?:passwd|shadow|sudoers)|authorized_keys"
    r"|\bcrontab\b|--no-verify\b|\bchmod\s+(?:-R\s+)?(?:777|a\+rwx)|\brm\s+-\w*[rf]\w*\s+(?:/|~"
    r"|\$HOME)(?:\s|$)|\bnc\s+-|/dev/tcp/",
    re.IGNORECASE,
)
"""Commands that no rule may recommend: they run remote code, touch keys, or cannot be undone."""
_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instructions?|rules?|prompts?|"
    r"previous|prior|above)\b"
    r"|\b(?:you (?:must|should|need to|have to|are (?:now "
    r")?(?:required|instructed))|(?:ai|llm|language model|assistant|agent)s?"
    r" (?:must|should|need to|have to|reading this))\b"
    r"|\b(?:remember|memori[sz]e|store|save|note|record|persist)\b.{0,40}\b(?:memory|memories|"
    r"lesson|rule"
    r"|fact|for (?:later|future)|always|that)\b"
    r"|\blessons? learned\b|\bfrom now on\b|\bgoing forward\b|\bin (?:all )?future "
    r"(?:sessions?|tasks?|runs?)\b"
    r"|\b(?:to (?:fix|resolve|solve|continue|proceed)|fix|solution|resolution|workaround|hint|tip"
    r"|remedy)\b\s*(?:this\b[^:]{0,20})?[:,]"
    r"|\b(?:please |then |first |simply |just |now "
    r")?(?:run|execute|install|download|invoke|paste|type"
    r"|visit|open|curl|wget|sudo)\b[:\s]+\S"
    r"|\b(?:the )?user "
    r"(?:says?|said|wants?|asked|requested|prefers?|approved|confirmed)\b|\b(?:system|"
    r"user|human|assistant)\s*:"
    r"|https?://|<(?:[/!|]|system|important|instructions?|user|assistant|admin|secret|hidden|"
    r"script)",
    re.IGNORECASE,
)
"""What an error message has no reason to contain, and an attacker's text has."""


@dataclass(frozen=True, slots=True)
class OutsideWords:
    """All outside text of a session, in order and searchable."""

    text: bytes = field(repr=False)
    starts: tuple[int, ...]
    """Where the text of each page begins."""
    places: tuple[int, ...]
    """The place of that page in the session."""

    def says(self, words: str, before: int, least: int) -> bool:
        """True if an earlier page contains these words."""
        sought = squeeze(words.encode("utf-8", "replace"))
        return len(sought) >= least and self.text.find(sought, 0, self._until(before)) >= 0

    def urges(self, name: str, before: int) -> bool:
        """True if an earlier text urges to get something of this name."""
        sought = squeeze(name.encode("utf-8", "replace"))
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


def outside_words(pages: Iterable[tuple[int, bytes]]) -> OutsideWords:
    """From the place and squeezed text of each page."""
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
    return OutsideWords(b"".join(pieces), tuple(starts), tuple(places))


def is_dangerous(command: str) -> bool:
    """True if no rule may recommend it: it runs remote code, touches keys, or cannot be undone."""
    return _FETCHES.search(command) is not None or _has_tricks(command)


def is_borrowed(command: str, before: int, others: OutsideWords) -> bool:
    """True if the command, a part, an address or a package in it comes from outside text."""
    parts = [command, *(part for part in _PARTS.split(command) if part)]
    return (
        any(others.says(part, before, LEAST_COMMAND) for part in parts if not is_plain_check(part))
        or any(others.says(address, before, 1) for address in _ADDRESS.findall(command))
        or any(others.urges(name, before) for name in _packages(command))
    )


def is_plain_check(command: str) -> bool:
    """True for a test runner or linter with paths and flags only: every README has these, and none
    is an order."""
    return _PLAIN_CHECK.fullmatch(command.strip()) is not None


def is_order(text: str) -> bool:
    """True if the text instructs its reader or hides something."""
    plain = fold_text(text)
    return _ORDERS.search(plain) is not None or is_suspect(text)


def quote(text: str, most: int) -> str:
    """Foreign text as data: one line, without quotation marks, up to the first order."""
    kept: list[str] = []
    for part in re.split(r"(?<=[.!?;])\s+|\s+[-\u2013—]+\s+|\n", text):
        if is_order(part):
            break
        kept.append(part)
    line = " ".join(" ".join(kept).split())
    line = "".join(each for each in line if each.isprintable()).translate(_HARMLESS)
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def is_suspect(text: str) -> bool:
    """True for orders to a model and hidden characters, by the rules for tool descriptions."""
    found = suspect(replace(_UNNAMED, description=text))
    return bool(found.flags or found.warnings)


def _has_tricks(text: str) -> bool:
    return bool(hidden(text)) or bool(lookalikes(text))


def _packages(command: str) -> Iterator[str]:
    if _IS_INSTALL.search(command) and not is_plain_check(command):
        for found in _INSTALL.finditer(command):
            words = (word for word in found.group("what").split() if not word.startswith("-"))
            yield from (
                name.group()
                for word in words
                if (name := _NAME.fullmatch(word)) and "/" not in word.strip("@")[:1]
            )


_UNNAMED = Tool("said", "", OriginKind.CREATED, "said", "", b"{}")
_HARMLESS = str.maketrans(
    {
        "\u201c": "'",
        "\u201d": "'",
        '"': "'",
        "`": "'",
        "<": "(",
        ">": ")",
        "[": "(",
        "]": ")",
        "{": "(",
        "}": ")",
    }
)
_GOAL = r"(?:test|tests|lint|check|build|typecheck|type-check|format|fmt|verify|all)"
_RUNNER = (
    r"(?:pytest|py\.test|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|ruff(?: check| "
    r"format)?|mypy|pyright|tsc|eslint"
    r"|biome(?: check)?|flake8|pylint|black|prettier|golangci-lint|unittest"
    rf"|(?:npm|pnpm|yarn|bun|deno)(?: run)? "
    rf"{_GOAL}(?::[\w-]{{1,20}})?|(?:mvn|gradle|\./gradlew) {_GOAL}"
    rf"|make(?: (?:-\w{{1,8}}|{_GOAL}))*(?=$|\s2>)"
    r"|cargo (?:test|build|check|clippy|fmt|nextest run)|go "
    r"(?:test|build|vet)|(?:dotnet|mix|swift) (?:test|build))"
)
_INSTALLS = (
    r"(?:npm|pnpm|yarn|bun) (?:install|ci|i)|uv sync|poetry install|bundle install|go mod "
    r"(?:tidy|download)"
    r"|pip3? install (?:-r requirements[\w.-]{0,20}\.txt|-e \.)"
)
"""Installs what the project itself declares, and nothing else."""
_PLAIN_CHECK = re.compile(
    r"(?:(?:CI|NODE_ENV|PYTHONPATH|DEBUG)=[\w.]*\s+)*"
    r"(?:(?:(?:uv|poetry|pipenv|hatch) run|python[\d.]* -m|npx|timeout \d+|bundle exec)\s+)*"
    r"(?:\./|\.?venv/bin/|node_modules/\.bin/)?"
    rf"{_RUNNER}(?!.*\s(?:-p|-c|-o|--plugins?|--config\S*|--rulesdir|--registry|--\w*index-url)\b)"
    r"(?:\s+[\w./:=,+*-]+)*(?:\s+2>&1)?"
    rf"|{_INSTALLS}"
)


LONGEST = 1000
"""Characters that a person types; longer text was at least partly pasted."""

_STARTS = re.compile(r"[^\W\d_]|[\"'\u2018\u201c\u00bf\u00a1`]\w|\d+ [a-z]")
"""How a typed line begins, unlike shell prompts, quotations, headings, bullets, line numbers, tags
and diffs."""
_MARKUP = re.compile(
    r"<[/!?|A-Za-z]|[{}\t|\\\x00-\x08\x0b-\x1f\x7f-\x9f]|```|~~~|([-=#*~_+^:])\1\1"
    r"|\[/?[A-Z][\w -]*\]|\d:\d\d:\d\d|\b\d{4}-\d\d-\d\d[T ]\d|^\S+(?: \S+)? "
    r"?[$#%>\u276f\u279c\u00bb] |^\w+=|^ {4}",
    re.MULTILINE,
)
"""Tags, fences, JSON, tables, separators, log times, terminal prompts, code."""
_LABEL = re.compile(r"(?:[^\s:.,!?]+ ){0,3}[^\s:.,!?]+ ?(?::(?=\s|$)|: ?(?=[A-Z]))")
"""A few words and a colon at the start of a line: `Output:`, `Exit code: 0`, `Subject: ...`."""
_OWN_LABEL = re.compile(
    r"(?:(?:please|also|and|ok(?:ay)?|hi|hey|hello|yes|no)[ ,]+)*"
    r"(?:remember|reminder|(?:one|a|another|my|our|the|new) (?:more "
    r")?(?:rule|thing|reminder|convention|note|request)|rule"
    r"|important|fyi|btw|by the "
    r"way|update|correction|again|decision|convention|note|unrelated(?: heads-up)?"
    r"|just so you know|for the record"
    r"|amendment|p\.?s\.?) ?:",
    re.IGNORECASE,
)
_SPOKEN = word_set("""
    i i'm i'd i'll i've im ive me my mine we we're we'll we've us our ours you you're your yours he
    she they it it's its this that that's these those let's lets is are was were be been am do does
    don't dont did didn't have has had can can't could would will won't should shall must may might
    need needs want wants like likes prefer prefers always never please thanks thank thx ok okay yes
    yeah no not hi hello hey sorry btw also instead what how why when where who which nice good
    great cool perfect work works add implement create build write fix refactor rename remove delete
    update upgrade migrate move make change replace use run keep put try investigate review analyze
    analyse debug explain document deploy release publish convert integrate design read find look
    check improve optimize optimise clean generate extract split merge compare recommend suggest
    show tell give get set continue go stop remember commit push ask avoid help call think know see
    say said ich du wir ihr ist sind hat haben kannst soll muss bitte danke nicht kein immer nie
    mach mache nutze verwende je tu nous vous est sont c'est pas toujours jamais merci peux utilise
    utilisez yo usa usamos son siempre nunca gracias favor hay
    """)
"""Words without which a line is a heading, a name or a number rather than a sentence."""
_WORD = re.compile(r"[^\W\d_][\w']*")
_WITHOUT_SPACES = re.compile(f"[{UNSPACED}]")
_QUOTED = re.compile(r"[\"'\u2018\u201c\u00ab`].*[\"'\u2019\u201d\u00bb`][.,]?")
_QUOTES = "opencode"
"""The client that quotes prompts from its command line."""
_ENDS = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"')\u2019\u201d`]*$")
_FEWEST = 3  # words of a sentence among others: "Dana owns billing."
_FEW = 4  # words of a line in a letter: greeting, closing, signature
_SIGNED = re.compile(r"[^\W\d_][\w ]{0,30},")
_BARE = 120  # characters of a part that can be a wrapper's own line
_TAIL = 4000  # characters at the end of a reply in which an action may be
_LAST_LINES = 6
_BLOCK = re.compile(r"\s*<([\w-]+)(?:\s[^<>]*)?>.*</\1>\s*", re.DOTALL)
_OPENED = re.compile(r"<(/?)([A-Za-z][\w-]*)(?:\s[^<>]*)?(?<!/)>")
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_CHANGES = re.compile(
    r"^>>>>>>> REPLACE|^ {0,3}(?:```|~~~)(?:diff|patch)\b|^\*\*\* End Patch", re.MULTILINE
)
_ACTS = re.compile(
    r"^[ \t>*_#-]*(?:next |tool |final )?(?:actions?|action input|tools?|tool "
    r"(?:call|input|name)|inputs?|arguments?|commands?"
    r"|cmd|code|functions?|function call|calls?|execute|run|shell|bash|search|query|invoke)[*_ ]*:",
    re.IGNORECASE | re.MULTILINE,
)
_ACTS_AT_END = re.compile(
    r"(?:[}\]]|<[^<>]{1,200}>|\[/?[\w ]{1,40}\]|<\|[^|]{1,40}\|>)\s*\Z"
    r"|^[ \t]*(?:[$!/%]|>>>) ?\w[^\n]*\s*\Z|^[ \t]*[\w.]+[\[(][^\n]*[\])]\s*\Z"
    r"|^[A-Z_]{3,}(?:[ :][^\n]*[^.!?:\s])?\s*\Z",
    re.MULTILINE,
)
_SHINGLE = 6  # words; a shared run of eleven contains one at any offset
_LEAST_SHINGLE = 24  # characters of one, squeezed


def is_person(text: str, beside: Sequence[str] = (), reply: str = "", agent: str = "") -> bool:
    """True if this part of a user message is a person's own words. `beside`: the other parts;
    `reply`: the model's reply before it."""
    own = unquote(text.strip()) if _QUOTES in agent.lower() else text
    return is_plain(own) and not any(map(_wraps, beside)) and not ends_in_action(reply)


def is_plain(text: str) -> bool:
    """True for a few sentences, as they are typed."""
    if len(text) > 2 * LONGEST:
        return False
    typed = without_marks(text).replace("\r\n", "\n").strip("\n").rstrip()
    lines = [line.strip() for line in typed.splitlines() if line.strip()]
    if not lines or len(typed) > LONGEST or _MARKUP.search(typed) or not all(map(_is_typed, lines)):
        return False
    if any(line.endswith((":", "\uff1a")) for line in lines[:-1]) or _is_letter(lines):
        return False
    return len(sentences(typed)) == 1 or all(map(_is_prose, lines))


def _is_prose(line: str) -> bool:
    """True for a line of sentences; behind one that says something, others may be short: "Dana owns
    billing."."""
    parts = sentences(line)
    whole = [_says(each) or _is_ended(each, _FEW + 1) for each in parts]
    return all(whole) or (whole[0] and all(_is_ended(each, _FEWEST) for each in parts))


def _is_ended(sentence: str, fewest: int) -> bool:
    return _ENDS.search(sentence) is not None and len(sentence.split()) >= fewest


def ends_in_action(reply: str) -> bool:
    """True if a reply ends in something for its client to run: a fenced command, JSON, a tag,
    `Action:`, a call."""
    end = reply.rstrip()[-_TAIL:]
    if not end:
        return False
    last = "\n".join(end.splitlines()[-_LAST_LINES:])
    fenced = end.endswith(("```", "~~~")) or len(_FENCE.findall(reply)) % 2 == 1
    return (
        (fenced and not _CHANGES.search(end))
        or _ACTS.search(last) is not None
        or _ACTS_AT_END.search(last) is not None
    )


def repeats(text: str, place: int, others: OutsideWords) -> bool:
    """True if a line, a sentence or a run of words of it is in earlier outside text."""
    return any(
        others.says(each, place, LEAST_SENTENCE) for each in (*text.splitlines(), *sentences(text))
    ) or any(others.says(each, place, _LEAST_SHINGLE) for each in _shingles(text))


def _shingles(text: str) -> Iterator[str]:
    words = text.split()
    yield from (
        " ".join(words[at : at + _SHINGLE]) for at in range(0, len(words) - _SHINGLE + 1, _SHINGLE)
    )


def _is_typed(line: str) -> bool:
    return (
        _STARTS.match(line) is not None
        and _QUOTED.fullmatch(line) is None
        and (_LABEL.match(line) is None or _OWN_LABEL.match(line) is not None)
    )


def _says(text: str) -> bool:
    words = _WORD.findall(text.lower().replace("\u2019", "'"))
    return any(word in _SPOKEN for word in words) or _WITHOUT_SPACES.search(text) is not None


def _is_letter(lines: Sequence[str]) -> bool:
    """True for a greeting or closing on its own line with a name behind it: `Best,` and `Bob`."""
    return any(
        _SIGNED.fullmatch(line) is not None and len(line.split()) <= _FEW and not _says(behind)
        for line, behind in pairwise(lines)
        if len(behind.split()) <= _FEW
    )


def _wraps(part: str) -> bool:
    """True if this part announces, opens or closes the parts beside it."""
    text = without_marks(part).strip()
    if not text or _BLOCK.fullmatch(text):  # a note of the client
        return False
    open_tags: Counter[str] = Counter()
    for found in _OPENED.finditer(text):
        open_tags[found[2]] += -1 if found[1] else 1
    return (
        any(open_tags.values())
        or len(_FENCE.findall(text)) % 2 == 1
        or text.endswith((":", "\uff1a"))
        or (len(text) <= _BARE and not is_plain(text))
    )
