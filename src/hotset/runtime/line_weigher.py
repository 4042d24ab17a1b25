"""Counts the tokens of a request's messages for the plan, with caches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from hotset import tokens
from hotset.dialects.parts import size_of
from hotset.files.lru import Lru
from hotset.nouns.link import Link, link
from hotset.nouns.message import Message, Part, Request
from hotset.nouns.page import ROOT, Chain, Kind
from hotset.nouns.window import Hidden, Line, Piece
from hotset.runtime.background import check
from hotset.tokens import Encoding

_AROUND = 4
"""Tokens that a message takes beside its parts: its role, its ids."""

_IN_BASE64 = re.compile(rb"[A-Za-z0-9+/]{2000,}={0,2}")
_SMALL = 2000  # bytes; no image is so small

_MOST_BYTES = 64 << 20
"""Content held by the counted lines; the parser's own cache holds most of it anyway."""


_MOST_CONVERSATIONS = 256
"""Conversations whose lines are held, as many as page tables: with only the bytes bounded, 60,000
short ones were held."""

_MOST_LINKED = 8 << 20
"""Bytes of requests whose links are held: some two dozen sessions of 300 KB. Their messages are
held by the parser as well."""

_AROUND_BYTES = 1000  # that objects take around what they hold, for each message


class LineageLinker:
    """Links messages into a lineage, and remembers the links. Thread-safe."""

    def __init__(self) -> None:
        self._known: Lru[int, tuple[Link, ...]] = Lru("linked messages", weight=_MOST_LINKED)
        """The links of a conversation's latest request, by the identity of its first message."""

    def of(self, request: Request) -> tuple[Link, ...]:
        messages = request.messages
        first = id(messages[0])
        known = self._known.get(first) or ()
        same = _same(known, messages)
        parent = next(
            (each.chain for each in reversed(known[:same]) if not each.message.aside), ROOT
        )
        links = (*known[:same], *link(parent, messages[same:]))
        self._known.put(first, links, len(request.raw) + _AROUND_BYTES * len(links))
        return links


@dataclass(slots=True)
class _Conversation:
    lines: dict[str, dict[Chain, Line]] = field(default_factory=dict)
    """By how they were counted, then by message: one look-up for each message of a request."""
    size: int = 0

    def add(self, how: str, line: Line) -> None:
        lines = self.lines.setdefault(how, {})
        if line.chain not in lines:
            self.size += _size(line)
        lines[line.chain] = line


class LineWeigher:
    """Counts tokens of messages, and remembers the counts. Thread-safe."""

    def __init__(self) -> None:
        self._held: Lru[Chain, _Conversation] = Lru(
            "weighed conversations", count=_MOST_CONVERSATIONS, weight=_MOST_BYTES
        )
        """Keyed by the first message."""
        self._lock = Lock()

    def lines(
        self, links: Sequence[Link], model: str, hidden: Mapping[Chain, Hidden]
    ) -> tuple[Line, ...]:
        encoding = tokens.encoding_of(model)
        # Hidden text belongs to its message, but is known only after the message was first counted.
        with_hidden = f"{encoding}+"
        first = next((link.chain for link in links if not link.message.aside), ROOT)
        with self._lock:
            held = self._held.get(first) or _Conversation()
            self._held.put(first, held, held.size)
            find = held.lines.get(encoding, {}).get
            known = [find(each.chain) for each in links]
            if hidden:
                find = held.lines.get(with_hidden, {}).get
                known = [
                    find(each.chain) if each.chain in hidden else line
                    for each, line in zip(links, known, strict=True)
                ]
        lines = tuple(
            line
            or self._keep(
                held,
                with_hidden if each.chain in hidden else encoding,
                _weigh_link(each, encoding, model, hidden.get(each.chain)),
            )
            for each, line in zip(links, known, strict=True)
        )
        with self._lock:
            if held.size > _MOST_BYTES:  # rewound often: keep only its current lines
                held = _Conversation()
                for line in lines:
                    held.add(with_hidden if line.chain in hidden else encoding, line)
            self._held.put(first, held, held.size)
        return lines

    def fixed(self, request: Request) -> int:
        """Tokens before the messages: system texts and tools."""
        encoding = tokens.encoding_of(request.model)
        system = sum(tokens.count(part.content, encoding) for part in request.system)
        return system + sum(tokens.count(tool.raw, encoding) for tool in request.tools)

    def _keep(self, held: _Conversation, how: str, line: Line) -> Line:
        """Store a count at once: a plan that takes too long need not count it again."""
        with self._lock:
            held.add(how, line)
        return line


def _same(known: Sequence[Link], messages: Sequence[Message]) -> int:
    """Number of messages at the front that are linked already: for known content the parser returns
    the same objects."""
    pairs = zip(known, messages, strict=False)
    return next(
        (at for at, (each, message) in enumerate(pairs) if each.message is not message),
        min(len(known), len(messages)),
    )


def _weigh_link(link: Link, encoding: Encoding, model: str, hidden: Hidden | None) -> Line:
    check()
    message = link.message
    extra = _AROUND + (
        sum(weigh(raw, encoding) for raw in (*hidden.before, *hidden.after)) if hidden else 0
    )
    return Line(
        link.chain,
        message.role,
        tuple(_pieces(message.parts, encoding, model)),
        extra,
        aside=message.aside,
    )


def weigh(raw: bytes, encoding: Encoding = Encoding.O200K) -> int:
    """Tokens of a message as it is sent. Base64 content counts as an image."""
    if len(raw) < _SMALL:
        return tokens.count(raw, encoding)
    bare, images = _IN_BASE64.subn(b"", raw)
    return tokens.count(bare, encoding) + images * tokens.image(None)


def _pieces(parts: Sequence[Part], encoding: Encoding, model: str) -> Iterator[Piece]:
    for part in parts:
        seen = part.kind is Kind.IMAGE
        weight = (
            tokens.image(size_of(part.content), model)
            if seen
            else tokens.count(part.content, encoding)
        )
        yield Piece(part.kind, part.content, weight, part.tool, part.call, part.media)


def _size(line: Line) -> int:
    return _AROUND_BYTES + sum(len(piece.content) for piece in line.pieces)
