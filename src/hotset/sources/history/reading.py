"""What of a page can be found: its text without secrets, without what says nothing, and not all of it where it is very long."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hotset.nouns.page import Kind, Page
from hotset.sealing import seal
from hotset.sources.history.pages import LEFT_OUT, is_binary, is_ours
from hotset.sources.history.stretches import Stretch, stretches

_BEGIN, _END = 384 * 1024, 128 * 1024  # characters of a long page that can be found: most of it is log, and ends matter in logs
_TOLD_KINDS = frozenset({Kind.WEB_FETCH, Kind.PAPER, Kind.TEST_RESULT, Kind.AGENT_MESSAGE, Kind.PLAN, Kind.FINDING})
_ESCAPES: Mapping[str, str] = {"\\n": "\n", "\\r": "\r", "\\t": "\t", '\\"': '"', "\\/": "/", "\\\\": "\\"}
_ESCAPE = re.compile(r'\\[nrt"/\\]')
# Data in letters: one very long word, or line after line of the same 60 to 80 signs.
_DATA = re.compile(r"[A-Za-z0-9+/_=-]{200,}|^(?:[ \t]*[A-Za-z0-9+/=]{60,80}\r?\n){4,}", re.MULTILINE)


def read(page: Page, content: bytes) -> Iterator[Stretch]:
    """The stretches of a page. Secrets are sealed in all of it first: a cut could hide where one begins.

    Of more than half a million characters the first three quarters of that and the last quarter can be found.
    """
    if page.kind in LEFT_OUT or is_ours(page) or is_binary(content):
        return
    text = seal(content.decode("utf-8", "replace")).text
    if page.kind.family is Kind.TOOL_CALL:
        # Arguments are JSON, in which a script is one long line; what was escaped is looked at again.
        for each in stretches(_without_data(seal(_unescaped(text[:_BEGIN])).text)):
            yield Stretch(each.text, (0, 0))
        return
    if len(text) <= _BEGIN + _END:
        yield from stretches(_without_data(text))
        return
    begin, end = _line_border(text, _BEGIN), _line_border(text, len(text) - _END)
    yield from stretches(_without_data(text[:begin]))
    yield from stretches(_without_data(text[end:]), 1 + text.count("\n", 0, end))


def title(page: Page, path: str) -> str:
    """What stands over each of its stretches: its tool, or its kind where that says something, and its path, sealed already."""
    what = page.tool or (str(page.kind).replace("_", " ") if page.kind in _TOLD_KINDS else "")
    return f"{what} {path}".strip()


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda escape: _ESCAPES[escape[0]], text)


def _without_data(text: str) -> str:
    """Every line keeps its number."""
    return _DATA.sub(lambda data: "\n" * data[0].count("\n") or " ", text)


def _line_border(text: str, near: int) -> int:
    return text.rfind("\n", 0, near) + 1 or near
