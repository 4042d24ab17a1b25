"""What a message says, as one hash: equal when a client sends it again, whatever it rearranged on the way.

Not heard: thinking, cache marks, key order, number spelling, the split of a text into blocks, surrounding white space of
what the assistant said, an item's own id and status, and how hotset classified it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from hotset.nouns.message import Part
from hotset.nouns.page import Digest, Kind, Role

_JSON = "application/json"
_TEXTS = frozenset({Kind.SYSTEM, Kind.PROMPT, Kind.RESPONSE})
_MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})
_OWN = frozenset({"id", "status"})
"""What a provider adds to an item of its own reply; clients keep or drop it. It is all that an `item_reference` says."""


def essence(role: Role, parts: Sequence[Part]) -> Digest:
    said = [part for part in parts if part.kind is not Kind.THINKING] or parts  # nothing but thinking is told by its thinking
    told = hashlib.sha256(role.encode())
    for label, content in _runs(role, said):
        told.update(b"\0%s\0%d\0" % (label.encode("utf-8", "replace"), len(content)))
        told.update(content)
    return Digest(told.hexdigest())


def canonical_arguments(raw: bytes) -> bytes:
    """A call's arguments in one spelling; as they are where they are not JSON."""
    if not raw.strip():
        return b"{}"
    try:
        return msgspec.json.encode(_plain.decode(raw), order="sorted")
    except (ValueError, RecursionError):
        return raw


def canonical_block(raw: bytes) -> bytes:
    """A block or item in one spelling, without marks, nulls and what its provider added."""
    try:
        block = _plain.decode(raw)
        if isinstance(block, dict) and block.keys() - _OWN - {"type"}:
            block = {key: value for key, value in block.items() if key not in _OWN}
        return msgspec.json.encode(_unmarked(block), order="sorted")
    except (ValueError, RecursionError):
        return raw


def _runs(role: Role, parts: Iterable[Part]) -> Iterator[tuple[str, bytes]]:
    """Each part as a label and its content; texts that follow each other are one text."""
    label, texts = "", list[bytes]()
    for part in parts:
        family = part.kind.family
        is_text = family in _TEXTS or (family is Kind.TOOL_RESULT and part.media != _JSON)
        here = f"{family}\0{part.call}" if is_text else ""
        if label and here != label:
            yield from _text(role, label, texts)
            texts = []
        label = here
        if is_text:
            texts.append(part.content)
        else:
            yield _other(part)
    if label:
        yield from _text(role, label, texts)


def _text(role: Role, label: str, texts: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    whole = texts[0] if len(texts) == 1 else b"".join(texts)
    if role is Role.ASSISTANT:
        whole = whole.strip()
    if whole or label.startswith(Kind.TOOL_RESULT):
        yield label, whole


def _other(part: Part) -> tuple[str, bytes]:
    family = part.kind.family
    if family is Kind.TOOL_CALL:
        return f"{family}\0{part.tool}\0{part.call}", canonical_arguments(part.content)
    if part.media == _JSON:
        return str(family), canonical_block(part.content)
    return f"{family}\0{part.media}", part.content


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(item) for key, item in value.items() if item is not None and key not in _MARKS}
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    return value


def _number(spelling: str) -> int | float:
    """JavaScript clients spell 1.0 as 1, Python ones 1E5 as 100000.0."""
    number = float(spelling)
    return int(number) if number.is_integer() else number


_plain = msgspec.json.Decoder(float_hook=_number)
