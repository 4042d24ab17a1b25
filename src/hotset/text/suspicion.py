"""Signs of an attack in a tool's texts that an honest tool does not need: hidden characters,
disguised words, orders to the model. Pure.

There are two weights. A *flag* blocks the tool until a person has reviewed it: characters that hide
something, and words that reach for secrets, for another tool's behaviour, or behind the person's
back; no honest description was found with one (tests/text/test_suspicion.py keeps the nearest
misses). A *warning* is shown wherever a person looks at the tool: honest servers have such texts
too, but rarely.

No word list stops an attacker who writes new words. Pins, namespaces, provenance and rules do that;
this module shows the known tricks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import re2

from hotset.nouns.tool import Tool
from hotset.text.characters import fold_text, hidden, lookalikes, skeleton

OUR_TOOLS = frozenset(
    {
        "find_tools",
        "use_tool",
        "retrieve_context",
        "search_history",
        "get_turn_range",
        "handoff_note",
        "search_code",
        "get_file",
        "outline",
    }
)
"""hotset's own constant tools: no other tool may have their bare names."""

_OURS_ALIKE = {skeleton(ours): ours for ours in OUR_TOOLS}

LONG = 10_000
"""Characters of a description beyond which people stop reading; the longest of 228 tools of 21
public servers has 7,000."""

_KEY_FILE = (
    r"(?:~/\.ssh|\.ssh/|\bid_(?:rsa|ed25519|ecdsa|dsa)\b|/etc/(?:passwd|shadow)|\.aws/"
    r"credentials|\.netrc\b|\.npmrc\b|\.pypirc\b"
    r"|\.git-credentials|\.kube/config|\.docker/config|\.gnupg\b|claude_desktop_config|"
    r"\.claude\.json)"
)
_CONFIG_FILE = rf"(?:{_KEY_FILE}|\.env\b|\bmcp\.json\b|\.codex/)"
"""Places of keys that honest tools mention too."""
_TAKES = r"\b(?:read|open|cat|load|fetch|get|access|collect|find|retrieve|extract|copy)\b"
_GIVES = (
    r"\b(?:pass|send|include|attach|append|forward|upload|post|email|transmit|put|submit|"
    r"exfiltrate|leak|encode)\b"
)
_ADDRESS = r"(?:https?://|[\w.+-]+@[\w-]+\.\w)"

_TELL = r"(?:tell(?:ing)?|inform(?:ing)?|notify(?:ing)?|alert(?:ing)?)"
_USER = r"(?:user|human|person)"
_NOT = r"\b(?:do not|don'?t|never|must not|mustn'?t)"
_FORMER = r"(?:previous|prior|above|earlier|preceding|all other|original)"
_ORDERS = r"(?:instructions?|prompts?|rules?|directions?|guidelines?|commands?|orders?)"
_PRIVATE = (
    r"(?:passwords?|credentials?|api[ _-]?keys?|secrets?|access tokens?|cookies|environment "
    r"variables?|private keys?"
    r"|(?:conversation|chat) (?:history|log|transcript))"
)

_REACHED = rf"{_CONFIG_FILE}|\bto {_ADDRESS}"
"""Targets of the patterns that span a whole sentence: they are slow, and run only if a target is
present."""
_FAR_FLAGS = {
    "asks to take secrets and hand them on": (
        rf"{_TAKES}.{{0,80}}{_KEY_FILE}.{{0,200}}{_GIVES}",
        rf"{_GIVES}[^.]{{0,60}}\b(?:contents?|text|value)s? of[^.]{{0,60}}{_CONFIG_FILE}",
        (
            rf"\b(?:before|after|when(?:ever)?) (?:you "
            rf")?(?:us|call|invok|run)\w*\b.{{0,80}}{_TAKES}[^.]{{0,60}}{_CONFIG_FILE}"
        ),
        rf"{_GIVES}[^.]{{0,60}}\b{_PRIVATE}\b[^.]{{0,60}}\bto {_ADDRESS}",
    ),
}
_FAR_WARNINGS = {
    "tells the model to send something away": (rf"\bsend\b[^.]{{0,80}}\bto {_ADDRESS}",)
}

_FLAGS = {
    "asks to keep something from the user": (
        (
            rf"(?:{_NOT}|\bwithout)\b(?: \w+){{0,2}} {_TELL}(?: \w+){{0,2}} "
            rf"(?:{_USER}|anyone|anybody)\b"
        ),
        rf"\b(?:hide|conceal|keep)\b(?: \w+){{1,4}} from (?:the )?{_USER}\b",
        (
            rf"\b{_USER} (?:must|should|may|need) (?:not|never) (?:know|notice|see|be "
            rf"told|learn|find out)\b"
        ),
    ),
    "asks to set other instructions aside": (
        (
            rf"\b(?:ignore|disregard|forget|override)\b(?: \w+){{0,3}} {_FORMER}(?: \w+){{0,2}} "
            rf"{_ORDERS}\b"
        ),
        r"<\|(?:im_start|im_end|system|endoftext|start_header_id|eot_id)\|>|\[/?inst\]|<<sys>>",
    ),
}
_WARNINGS = {
    "speaks to the model in a marked block": (
        r"</?(?:important|secret|hidden|critical|instructions?|system|admin|override)>",
        r"\[(?:system|admin|important|hidden)\]",
        r"<!--",
    ),
    "tells the model what to do besides": (
        (
            r"\b(?:before|instead of|prior to) (?:us|call|invok|runn)ing "
            r"(?:any|all|every|each)(?: other)? (?:tool|function)"
        ),
        r"\b(?:also|secretly|silently|quietly)(?: \w+){0,2} (?:call|invoke|execute|trigger)\b",
        (
            rf"{_NOT}(?: \w+){{0,2}} (?:mention|reveal|disclose|show)\b(?: \w+){{0,6}} to (?:the "
            rf")?{_USER}\b"
        ),
    ),
    "has a link that can carry data": (
        r"\bdata:[a-z]+/[a-z0-9.+-]+[;,]",
        r"!\[[^\]\n]{0,200}\]\(https?://",
        r"https?://[^\s<>\"')]+\?[^\s<>\"')]*=(?:\{|\$|%s|<|\[)",
    ),
    "has a long encoded stretch": (r"[A-Za-z0-9+/]{200}", r"(?:\\x[0-9a-f]{2}){20}"),
}

_DIRECTIVE = re2.compile(
    r"\b(?:instead of|rather than|in place of|before|after|prior to|when(?:ever)?|every "
    r"time|each time|replaces?|supersedes?"
    r"|overrides?|also|then|always|must|never|do not|don'?t|stop)\W+(?:\w+\W+){0,4}$"
)
_IDENTIFIER = re2.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_-]+[A-Za-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+")
_NEAR = 80  # characters before a name that are searched for a directive
_MOST_MENTIONS = 100
_DEEPEST = 100  # levels of a schema that are read; no honest one is deeper


@dataclass(frozen=True, slots=True)
class Suspicion:
    flags: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    """Names, maybe of other tools, in instructions to the model. The catalogue knows whose they
    are."""


def suspect(tool: Tool) -> Suspicion:
    """The suspicion for all texts of a tool that a model or a person reads."""
    flags = list(_of_its_name(tool))
    warnings: list[str] = []
    mentions: list[str] = []
    for where, text in texts(tool):
        flags += [f"{where}: {finding}" for finding in (*hidden(text), *lookalikes(text))]
        kinds = _matching_kinds(fold_text(text))
        flags += [
            f"{where} {finding}" for finding in kinds if finding in _FLAGS or finding in _FAR_FLAGS
        ]
        warnings += [
            f"{where} {finding}"
            for finding in kinds
            if finding in _WARNINGS or finding in _FAR_WARNINGS
        ]
        mentions += _mentions(text)
    if len(tool.description) > LONG:
        warnings.append(f"its description has {len(tool.description):,} characters")
    return Suspicion(_once(flags), _once(warnings), _once(mentions)[:_MOST_MENTIONS])


def texts(tool: Tool) -> Iterator[tuple[str, str]]:
    """All texts of a tool with their places, schema included."""
    yield "its name", tool.own_name
    yield "its title", tool.title
    yield "its description", tool.description
    for where, raw in (("its schema", tool.parameters), ("its annotations", tool.annotations)):
        try:
            value = msgspec.json.decode(raw)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            yield where, raw.decode("utf-8", "replace")
        else:
            yield where, " . ".join(_strings(value))


def _of_its_name(tool: Tool) -> Iterator[str]:
    alike = _OURS_ALIKE.get(skeleton(tool.own_name))
    if alike and tool.own_name != alike:
        yield f"its name {tool.own_name[:64]!r} looks like hotset's own {alike}"


def _strings(value: Any) -> Iterator[str]:
    """All strings of a JSON value, keys too, without recursion."""
    waiting = [(value, 0)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list) and depth < _DEEPEST:
            if isinstance(value, dict):
                yield from value
            waiting += [
                (each, depth + 1) for each in (value.values() if isinstance(value, dict) else value)
            ]


def _matching_kinds(plain: str) -> list[str]:
    """The kinds that match a folded text."""
    far = _FAR if _GATE.search(plain) else ()
    near = _NEAR_BY if _ANY.search(plain) else ()
    return [kind for kind, pattern in (*far, *near) if pattern.search(plain)]


def _mentions(text: str) -> Iterator[str]:
    text = " ".join(text.split())
    for found in _IDENTIFIER.finditer(text):
        name = found.group()
        if "__" in name or _DIRECTIVE.search(
            text[max(0, found.start() - _NEAR) : found.start()].lower()
        ):
            yield name


def _once(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))


def _compile(kinds: dict[str, tuple[str, ...]]) -> tuple[tuple[str, Any], ...]:
    return tuple((kind, _one_of(*patterns)) for kind, patterns in kinds.items())


def _one_of(*patterns: str) -> Any:
    return re2.compile("|".join(f"(?:{pattern})" for pattern in patterns))


_FAR = _compile({**_FAR_FLAGS, **_FAR_WARNINGS})
_NEAR_BY = _compile({**_FLAGS, **_WARNINGS})
_GATE = _one_of(_REACHED)
_ANY = _one_of(
    *(pattern for patterns in (*_FLAGS.values(), *_WARNINGS.values()) for pattern in patterns)
)
"""One search that is enough for most texts."""
