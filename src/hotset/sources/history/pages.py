"""What a page is, as far as finding it goes: whether it says anything, and what its call asked for."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from hotset.errors import HotsetError
from hotset.nouns.page import Kind, Page
from hotset.store.port import Store, Where
from hotset.window.tools import OUR_TOOLS

LEFT_OUT = frozenset({Kind.SYSTEM, Kind.THINKING, Kind.OPAQUE, Kind.IMAGE})
"""Kinds of pages that are not looked for: what clients send each time, and what is nobody's words or none at all."""

PATH_NAMES = ("file_path", "filepath", "path", "filename", "file", "uri", "url", "notebook_path")
"""How tools call the argument that names a file or an address."""

_ARGUMENTS_LOOKED_AT = 64 * 1024
_SAMPLE = 4096
_ODD = re.compile(r"[\x00-\x07\x0b\x0e-\x1a\x1c-\x1f\ufffd]")
_UNREADABLE = 0.1  # share of these beyond which bytes are no text


def path_of(store: Store, page: Page) -> str:
    """What a result's call asked for, where its arguments name a file or an address."""
    if not page.call or page.kind.family is Kind.TOOL_CALL:
        return ""
    try:
        calls = store.pages(Where(session=page.session, call=page.call, kinds=frozenset({Kind.TOOL_CALL}), limit=1))
        call = next(calls, None)
        content = store.content(call.digest) if call and call.size <= _ARGUMENTS_LOOKED_AT else b"{}"
    except HotsetError:
        return ""
    return path_in(content)


def path_in(arguments: bytes) -> str:
    """The file or address that a call's arguments name."""
    try:
        named: Any = msgspec.json.decode(arguments[:_ARGUMENTS_LOOKED_AT])
    except (ValueError, RecursionError):
        return ""
    if not isinstance(named, dict):
        return ""
    return next((named[name] for name in PATH_NAMES if isinstance(named.get(name), str)), "")


def is_ours(page: Page) -> bool:
    """What an earlier search found is no find."""
    return page.tool.rpartition("__")[2] in OUR_TOOLS


def is_binary(content: bytes) -> bool:
    sample = content[:_SAMPLE]
    text = sample.decode("utf-8", "replace")
    return b"\0" in sample or len(_ODD.findall(text)) > _UNREADABLE * max(1, len(text))
