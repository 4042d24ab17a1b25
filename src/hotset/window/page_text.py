"""A page's content as text that can be found: without secrets, data in letters and, in a very long
one, its middle. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hotset.nouns.page import Kind, Page
from hotset.sealing import seal
from hotset.text.stretches import TextStretch, stretches
from hotset.window.tools import OUR_TOOLS

NOT_SEARCHED = frozenset({Kind.SYSTEM, Kind.THINKING, Kind.OPAQUE, Kind.IMAGE})
"""Kinds of pages that no search looks for: what clients send each time, and what holds no words."""

PATH_NAMES = ("file_path", "filepath", "path", "filename", "file", "uri", "url", "notebook_path")
"""How tools call the argument that names a file or an address."""

MOST_ARGUMENTS = 64 * 1024
"""Bytes of a call's arguments that are read for a path."""

_SAMPLE = 4096
_ODD = re.compile(r"[\x00-\x07\x0b\x0e-\x1a\x1c-\x1f\ufffd]")
_UNREADABLE = 0.1  # share of these beyond which bytes are no text
_BEGIN, _END = (
    384 * 1024,
    128 * 1024,
)  # characters of a long page that can be found: ends matter in logs
_TITLED_KINDS = frozenset(
    {Kind.WEB_FETCH, Kind.PAPER, Kind.TEST_RESULT, Kind.AGENT_MESSAGE, Kind.PLAN, Kind.FINDING}
)
_ESCAPES: Mapping[str, str] = {
    "\\n": "\n",
    "\\r": "\r",
    "\\t": "\t",
    '\\"': '"',
    "\\/": "/",
    "\\\\": "\\",
}
_ESCAPE = re.compile(r'\\[nrt"/\\]')
# Data in letters: one very long word, or line after line of the same 60 to 80 signs.
_DATA = re.compile(
    r"[A-Za-z0-9+/_=-]{200,}|^(?:[ \t]*[A-Za-z0-9+/=]{60,80}\r?\n){4,}", re.MULTILINE
)


def page_stretches(page: Page, content: bytes) -> Iterator[TextStretch]:
    """The stretches of a page. Secrets are sealed in all of it first: a cut could hide where one
    begins.

    Of more than half a million characters the first three quarters of that and the last quarter can
    be found.
    """
    if page.kind in NOT_SEARCHED or is_ours(page) or is_binary(content):
        return
    text = seal(content.decode("utf-8", "replace")).text
    if page.kind.family is Kind.TOOL_CALL:
        # Arguments are JSON, in which a script is one long line; what was escaped is sealed again.
        unescaped = _ESCAPE.sub(lambda escape: _ESCAPES[escape[0]], text[:_BEGIN])
        for each in stretches(_without_data(seal(unescaped).text)):
            yield TextStretch(each.text, (0, 0))
    elif len(text) <= _BEGIN + _END:
        yield from stretches(_without_data(text))
    else:
        begin, end = _line_border(text, _BEGIN), _line_border(text, len(text) - _END)
        yield from stretches(_without_data(text[:begin]))
        yield from stretches(_without_data(text[end:]), 1 + text.count("\n", 0, end))


def page_title(page: Page, path: str) -> str:
    """The title of each stretch: the page's tool, or its kind where that tells something, and its
    sealed path."""
    what = page.tool or (str(page.kind).replace("_", " ") if page.kind in _TITLED_KINDS else "")
    return f"{what} {path}".strip()


def path_in(arguments: bytes) -> str:
    """The file or address that a call's arguments name."""
    try:
        named: Any = msgspec.json.decode(arguments[:MOST_ARGUMENTS])
    except (ValueError, RecursionError):
        return ""
    if not isinstance(named, dict):
        return ""
    return next((named[name] for name in PATH_NAMES if isinstance(named.get(name), str)), "")


def is_ours(page: Page) -> bool:
    """True for calls and results of our own tools: what an earlier search found is no find."""
    return page.tool.rpartition("__")[2] in OUR_TOOLS


def is_binary(content: bytes) -> bool:
    """True if the first bytes are no text."""
    sample = content[:_SAMPLE]
    text = sample.decode("utf-8", "replace")
    return b"\0" in sample or len(_ODD.findall(text)) > _UNREADABLE * max(1, len(text))


def _without_data(text: str) -> str:
    """Every line keeps its number."""
    return _DATA.sub(lambda data: "\n" * data[0].count("\n") or " ", text)


def _line_border(text: str, near: int) -> int:
    return text.rfind("\n", 0, near) + 1 or near
