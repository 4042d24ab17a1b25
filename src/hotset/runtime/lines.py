"""A request's messages as the window weighs them. A message that was weighed before costs a look-up."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock

from hotset import tokens
from hotset.dialects.images import size_of
from hotset.nouns.link import Link, link
from hotset.nouns.message import Message, Part, Request
from hotset.nouns.page import ROOT, Chain, Kind
from hotset.nouns.window import Hidden, Line, Piece
from hotset.tokens import Encoding

_AROUND = 4
"""Tokens that a message takes beside its parts: its role, its ids."""

_IN_BASE64 = re.compile(rb"[A-Za-z0-9+/]{2000,}={0,2}")
_SMALL = 2000  # bytes; no image is so small

_MOST_BYTES = 64 << 20
"""Content that weighed lines may hold on to; the parser's own memory holds most of it anyway."""


_MOST_LINKED = 8 << 20
"""Bytes of requests whose links are held: some two dozen sessions of 300 KB. Their messages are held by the parser as well."""


class Linked:
    """Puts messages at their places in a lineage, and remembers where they stood. Safe to use from several threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[int, tuple[Link, ...]]] = OrderedDict()
        """The latest request of a conversation, its size and its links, by the very object that is its first message."""
        self._size = 0
        self._lock = Lock()

    def of(self, request: Request) -> tuple[Link, ...]:
        messages = request.messages
        first = id(messages[0])
        with self._lock:
            _, known = self._known.get(first, (0, ()))
        same = _same(known, messages)
        parent = next((each.chain for each in reversed(known[:same]) if not each.message.aside), ROOT)
        links = (*known[:same], *link(parent, messages[same:]))
        with self._lock:
            self._drop(first)
            self._known[first] = (len(request.raw), links)
            self._size += len(request.raw)
            while self._size > _MOST_LINKED:
                self._drop(next(iter(self._known)))
        return links

    def _drop(self, first: int) -> None:
        size, _ = self._known.pop(first, (0, ()))
        self._size -= size


class Scales:
    """Weighs messages, and remembers what they weighed. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lines: OrderedDict[tuple[Chain, str], Line] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def lines(self, links: Sequence[Link], model: str, hidden: Mapping[Chain, Hidden]) -> tuple[Line, ...]:
        encoding = tokens.encoding_of(model)
        # What the client never saw belongs to its message, and comes to be known only after the message was weighed.
        keys = [(link.chain, encoding + ("+" if link.chain in hidden else "")) for link in links]
        with self._lock:
            known = [self._lines.get(key) for key in keys]
            for key, line in zip(keys, known, strict=True):
                if line is not None:
                    self._lines.move_to_end(key)
        return tuple(
            self._weigh(key, link, encoding, model, hidden.get(link.chain)) if line is None else line
            for key, link, line in zip(keys, links, known, strict=True)
        )

    def fixed(self, request: Request) -> int:
        """Tokens of what stands before the messages: system texts and tools."""
        encoding = tokens.encoding_of(request.model)
        system = sum(tokens.count(part.content, encoding) for part in request.system)
        return system + sum(tokens.count(tool.raw, encoding) for tool in request.tools)

    def _weigh(self, key: tuple[Chain, str], link: Link, encoding: Encoding, model: str, hidden: Hidden | None) -> Line:
        message = link.message
        extra = _AROUND + (sum(weigh(raw, encoding) for raw in (*hidden.before, *hidden.after)) if hidden else 0)
        line = Line(link.chain, message.role, tuple(_pieces(message.parts, encoding, model)), extra, aside=message.aside)
        with self._lock:
            if key not in self._lines:
                self._size += _size(line)
            self._lines[key] = line
            while self._size > _MOST_BYTES and len(self._lines) > 1:
                self._size -= _size(self._lines.popitem(last=False)[1])
        return line


def _same(known: Sequence[Link], messages: Sequence[Message]) -> int:
    """How many messages at the front are the very ones that were linked: what a parser has read before it gives again."""
    pairs = zip(known, messages, strict=False)
    return next((at for at, (each, message) in enumerate(pairs) if each.message is not message), min(len(known), len(messages)))


def weigh(raw: bytes, encoding: Encoding = Encoding.O200K) -> int:
    """Tokens of a message as it is sent. What stands in it in base64 is seen, not read."""
    if len(raw) < _SMALL:
        return tokens.count(raw, encoding)
    bare, images = _IN_BASE64.subn(b"", raw)
    return tokens.count(bare, encoding) + images * tokens.image(None)


def _pieces(parts: Sequence[Part], encoding: Encoding, model: str) -> Iterator[Piece]:
    for part in parts:
        seen = part.kind is Kind.IMAGE
        weight = tokens.image(size_of(part.content), model) if seen else tokens.count(part.content, encoding)
        yield Piece(part.kind, part.content, weight, part.tool, part.call, part.media)


def _size(line: Line) -> int:
    return sum(len(piece.content) for piece in line.pieces)
