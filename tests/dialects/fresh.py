"""A parser that has seen nothing yet: what a dialect remembers, it keeps in a cache of its own."""

from __future__ import annotations

from hotset.dialects import DIALECTS
from hotset.dialects.envelope import MessageCache
from hotset.nouns.message import DialectName, Request


class FreshParser:
    def __init__(self, name: DialectName) -> None:
        self.name = name
        self.cache = MessageCache()

    def parse(self, body: bytes) -> Request:
        return DIALECTS[self.name].parse(body, self.cache)
