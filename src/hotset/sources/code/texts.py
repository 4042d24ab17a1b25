"""A file's bytes as text: decoded, its lines ended alike, its secrets sealed. The one place where content becomes searchable."""

from __future__ import annotations

import re

from hotset.files.root import Content, NotTaken, Root, Why
from hotset.sealing import Sealed, seal, secret_file
from hotset.sources.code.generated import is_generated
from hotset.sources.code.languages import language_of
from hotset.text.decoding import characters

VERSION = 2
"""Of how bytes become text, and of what is taken for text that people wrote. A change that takes more, or less, counts it up."""

_MINIFIED_FROM = 5000  # characters; what is shorter costs nothing
_MINIFIED_LINE = 400  # characters of a line on average; hand-written code has 30 to 40
_MINIFIED = frozenset(("javascript", "jsx", "typescript", "css", "html", "xml"))
_LINE_ENDS = re.compile(r"\r\n?")


def read_text(root: Root, path: str, most: int, *, hard_links: bool = False) -> tuple[Content, Sealed]:
    """A file's bytes and its text, without secrets. Raises `NotTaken`; a file of secrets is not even opened."""
    if secret_file(path) is not None:
        raise NotTaken(path, Why.SECRET)
    content = root.read(path, most, hard_links=hard_links)
    return content, seal(decoded(path, content.data))


def decoded(path: str, data: bytes) -> str:
    """Text with `\\n` behind each line. Raises `NotTaken`."""
    text = characters(data)
    if text is None:
        raise NotTaken(path, Why.BINARY)
    return _LINE_ENDS.sub("\n", text)


def refuse_machine_made(path: str, text: str) -> None:
    """Raises `NotTaken` for what no person wrote or will read. It can still be read by its name."""
    if not text.strip():
        raise NotTaken(path, Why.EMPTY)
    language = language_of(path, text).name
    if is_generated(text, language):
        raise NotTaken(path, Why.GENERATED)
    if len(text) >= _MINIFIED_FROM and len(text) > _MINIFIED_LINE * (text.count("\n") + 1) and language in _MINIFIED:
        raise NotTaken(path, Why.MINIFIED)
