"""Names of tools as models call them: `source__tool`, of characters that every provider takes, each
leading to one source."""

from __future__ import annotations

import re
from hashlib import sha256

LONGEST = 64
"""Characters that OpenAI and Anthropic take in a tool's name."""
RESERVED = frozenset({"created", "here", "hotset"})
"""Names that no skill and no server may take: of tools that agents wrote, of the program's own
functions, and ours."""

HASH = 6
"""Characters of a hash that tells two names apart."""

_LONGEST_SOURCE = 40  # leaves 22 characters to the tool's own name, whatever its source is called
_SEPARATORS = re.compile(r"[\s./:@]+")
_STRANGE = re.compile(r"[^A-Za-z0-9_-]+")


def full_name(source: str, own_name: str) -> str:
    """The name under which a tool of a source is called; the source's own where the tool has none.

    The part before the first two underscores is the source: no tool can take a name of another
    source. A name that had to be cut, or that has letters no provider takes, ends in a hash of the
    original.
    """
    head = slug(source)
    if not own_name:
        return head
    tail = _fitted(_plain(own_name), LONGEST - len(head) - 2, own_name, whole=_is_whole(own_name))
    return f"{head}__{tail}"


def slug(text: str) -> str:
    """The name of a source: at most 40 letters, digits, `-` and single `_`, neither at an end."""
    plain = re.sub("__+", "_", _plain(text)).strip("_-")
    return _fitted(
        plain or "source", _LONGEST_SOURCE, text, whole=bool(plain) and _is_whole(text)
    ).strip("_-")


def _plain(text: str) -> str:
    return _STRANGE.sub("_", _SEPARATORS.sub("_", text))


def _is_whole(text: str) -> bool:
    """True if nothing but separators was replaced: the name is still readable."""
    return not _STRANGE.search(_SEPARATORS.sub("_", text))


def _fitted(name: str, longest: int, original: str, *, whole: bool) -> str:
    if whole and len(name) <= longest:
        return name
    return f"{name[: longest - HASH - 1].rstrip('_')}_{short_hash(original)}"


def short_hash(text: str, length: int = HASH) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]
