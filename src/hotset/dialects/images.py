"""Images that tools gave, or that left the window, for models that can look at them. One that a
provider refuses would end the conversation for ever, so only those go out that every provider
takes."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import msgspec

from hotset.dialects.parts import size_of
from hotset.errors import HotsetError
from hotset.nouns.message import Image
from hotset.nouns.page import Digest, Kind, Page, PageId

_SEEING = re.compile(r"claude-(?!2|instant)|gpt-(4o|4\.1|[5-9])|o[34](-|$)")
_MEDIA = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MOST = 3  # of one result
_MOST_BYTES = 1 << 20  # Anthropic takes 5 MB; this one is sent again with every later request
_MOST_PIXELS = 2000  # a side: what Anthropic takes where a request has many


def can_see(model: str) -> bool:
    """True for models that are known to."""
    return _SEEING.match(model.lower().rpartition("/")[2]) is not None


def fitting_images(
    pages: Sequence[Page],
    content_of: Callable[[Digest], bytes],
    room: int,
    weigh: Callable[[tuple[int, int] | None], int],
) -> dict[PageId, Image]:
    """The first few images among pages, as many as fit into so many tokens."""
    found: dict[PageId, Image] = {}
    for page in pages:
        if (
            page.kind is not Kind.IMAGE
            or page.media not in _MEDIA
            or page.size > _MOST_BYTES
            or len(found) == _MOST
        ):
            continue
        try:
            content = content_of(page.digest)
        except HotsetError:
            continue  # which the text tells
        weight = weigh(size_of(content))
        if _is_sound(content) and weight <= room:
            found[page.id] = Image(page.media, base64.b64encode(content).decode())
            room -= weight
    return found


def images_in(content: bytes) -> tuple[Image, ...]:
    """The first few images of what a tool gave, given as MCP's content blocks."""
    return tuple(islice(_images(content), _MOST))


def _images(content: bytes) -> Iterator[Image]:
    for block in msgspec.json.decode(content):
        match block:
            case {"type": "image", "data": str(data), "mimeType": str(media)} if (
                media in _MEDIA and _is_sound(_decoded(data))
            ):
                yield Image(media, data)


def _decoded(data: str) -> bytes:
    """Nothing, where it cannot be decoded."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _is_sound(raw: bytes) -> bool:
    size = size_of(raw)
    return (
        size is not None and min(size) > 0 and max(size) <= _MOST_PIXELS and len(raw) <= _MOST_BYTES
    )
