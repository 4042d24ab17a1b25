"""Images of tools: only what every provider takes goes to a model that is known to see."""

from __future__ import annotations

import base64
import json

import pytest

from hotset.dialects.parts import can_see, images_in
from hotset.nouns.message import Image


def png(width: int = 10, height: int = 10, more: int = 0) -> str:
    size = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return base64.b64encode(
        b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + b"IHDR" + size + bytes(more)
    ).decode()


def block(data: str, media: str = "image/png") -> dict[str, str]:
    return {"type": "image", "data": data, "mimeType": media}


def seen(*blocks: object) -> tuple[Image, ...]:
    return images_in(json.dumps(blocks).encode())


def test_sound_images_are_seen_and_of_one_result_at_most_three():
    assert seen({"type": "text", "text": "x"}, block(png())) == (Image("image/png", png()),)
    assert len(seen(*[block(png())] * 5)) == 3


@pytest.mark.parametrize(
    "bad",
    [
        block("no base64!"),
        block(base64.b64encode(b"no image").decode()),
        block(png(), "image/svg+xml"),
        block(png(2001, 10)),
        block(png(0, 10)),
        block(png(more=1 << 20)),
        {"type": "image", "data": 5, "mimeType": "image/png"},
        "text",
    ],
    ids=["encoding", "bytes", "media", "wide", "empty", "large", "type", "block"],
)
def test_what_some_provider_would_refuse_is_left_out(bad):
    assert seen(bad) == ()


@pytest.mark.parametrize(
    ("model", "can"),
    [
        ("claude-sonnet-5", True),
        ("anthropic/claude-opus-4-5", True),
        ("gpt-5.4", True),
        ("gpt-4o-mini", True),
        ("o4-mini", True),
        ("gpt-3.5-turbo", False),
        ("claude-2.1", False),
        ("deepseek-chat", False),
        ("glm-4.6", False),
        ("", False),
    ],
)
def test_only_models_that_are_known_to_see_are_shown_images(model, can):
    assert can_see(model) is can
