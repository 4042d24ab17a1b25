"""What an image costs, by the providers' published rules."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from hotset.tokens import image

SIZES = st.tuples(st.integers(1, 9000), st.integers(1, 9000))
MODELS = st.sampled_from(
    [
        "claude-opus-5",
        "claude-haiku-4-5",
        "gpt-4o",
        "gpt-5",
        "gpt-5-mini",
        "gpt-5.5",
        "gemini-2.5-pro",
        "x",
    ]
)


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        ("gpt-4o", (1024, 1024), 765),
        ("gpt-4o", (2048, 4096), 1105),
        ("gpt-5", (1024, 1024), 630),
        ("gpt-4.1-mini", (1024, 1024), 1659),
        ("gpt-5.5", (1920, 1080), 2448),
        ("openai/gpt-5.5", (512, 512), 308),
        ("claude-haiku-4-5", (1280, 720), 1196),
        ("claude-haiku-4-5", (4032, 3024), 1568),
        ("claude-sonnet-4-5-20250929", (4032, 3024), 1568),
        ("claude-opus-5", (1920, 1080), 2691),
        ("claude-opus-5", (8000, 8000), 4784),
        ("gemini-2.5-flash", (300, 300), 258),
        ("gemini-2.5-flash", (1024, 1024), 1032),
        ("gemini-3-pro-preview", (4000, 3000), 1100),
    ],
)
def test_an_image_costs_what_its_provider_says(model, size, tokens):
    assert image(size, model) == tokens


@pytest.mark.parametrize("size", [None, (0, 10), (10, -1)])
def test_an_image_of_unknown_size_counts_as_a_usual_one(size):
    assert image(size, "claude-opus-5") == 1600


@given(size=SIZES, model=MODELS)
def test_an_image_always_costs_something_and_never_more_than_the_dearest_rule_allows(size, model):
    assert 0 < image(size, model) <= 250 * 258


@given(size=SIZES, model=MODELS)
def test_an_image_costs_the_same_on_its_side(size, model):
    assert image(size, model) == image(size[::-1], model)
