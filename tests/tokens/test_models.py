"""Which encoding counts for which model, and where the count is the provider's own."""

from __future__ import annotations

import pytest

from hotset.tokens import Encoding, encoding_of, is_exact


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-5.6", "o200k"),
        ("gpt-6.1-sol", "o200k"),
        ("openai/gpt-5-codex", "o200k"),
        ("gpt-4o-mini-2024-07-18", "o200k"),
        ("chatgpt-4o-latest", "o200k"),
        ("gpt-4.1", "o200k"),
        ("gpt-4.5-preview", "o200k"),
        ("o3", "o200k"),
        ("o4-mini-2025-04-16", "o200k"),
        ("ft:gpt-4o:acme::1", "o200k"),
        ("codex-mini-latest", "o200k"),
        ("gpt-4", "cl100k"),
        ("gpt-4-turbo", "cl100k"),
        ("gpt-4-0613", "cl100k"),
        ("ft:gpt-4-0613:acme", "cl100k"),
        ("gpt-3.5-turbo-16k", "cl100k"),
        ("gpt-35-turbo", "cl100k"),
        ("text-embedding-3-small", "cl100k"),
    ],
)
def test_openai_models_are_counted_exactly_in_their_own_encoding(model, encoding):
    assert encoding_of(model) == encoding
    assert is_exact(model)


@pytest.mark.parametrize(
    "model",
    ["claude-opus-5", "anthropic/claude-sonnet-4.5", "gemini-3-pro", "ollama/llama4", "o", ""],
)
def test_all_others_are_measured_in_o200k_and_not_called_exact(model):
    assert encoding_of(model) is Encoding.O200K
    assert not is_exact(model)
