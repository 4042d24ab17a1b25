"""What a preview is made of: where a text comes from, what kind of content it is, and what is shown
of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hotset.nouns.page import Kind


class ContentType(StrEnum):
    """What a text is, as far as its shape and the call that brought it tell."""

    JSON = "json"
    JSON_LINES = "json_lines"
    CODE = "code"
    SEARCH = "search"
    CHECKS = "checks"
    """Test runs, builds, linters: what passed and what did not."""
    LOG = "log"
    DIFF = "diff"
    TABLE = "table"
    LISTING = "listing"
    """Paths: ls, find, tree, glob."""
    HTML = "html"
    PROSE = "prose"
    OPAQUE = "opaque"
    """Bytes that nobody reads: binary, base64."""
    OUTPUT = "output"
    """What a shell printed, of no kind or of several."""


@dataclass(frozen=True, slots=True)
class ContentOrigin:
    """Where a text comes from, as far as its call tells."""

    kind: Kind = Kind.TOOL_RESULT
    tool: str = ""
    arguments: bytes = b""
    """The call's arguments: JSON, or plain shell text."""
    sought: frozenset[str] = frozenset()
    """Identifiers, paths and words of the latest prompt and of what was said before the call: what
    it is looking for."""
    pointed: tuple[int, ...] = ()
    """Lines of the text that somebody pointed to, from 0."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What is shown of a text."""

    type: ContentType
    text: str
    """Without the closing line."""
    left_out: str
    """In words: "412 of 530 lines (18,204 of 21,000 characters)"."""
    slice: str
    """A ready-made argument for the call that brings back a part: lines="120-180",
    path="$.items[3]"; empty if there is none."""
