"""What a file is for, by its path: a test or not, code or not."""

from __future__ import annotations

import re

from hotset.text.words import word_set

_ABOUT_TESTS = re.compile(
    r"\b(?:tests?|test_\w*|\w+_test|testing|tested|specs?|fixtures?|conftest|pytest|unittest)\b",
    re.IGNORECASE,
)
_TEST_FILE = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|testdata|fixtures)/"
    r"|(?:^|/)(?:test_[^/]*|conftest\.py|[^/]*(?:_test|_spec|\.test|\.spec|Tests?)\.\w+)$"
)
_NO_CODE = word_set(
    "text json markdown yaml toml ini xml rst html css make cmake dockerfile terraform nix"
)


def is_test(path: str) -> bool:
    """True for a file of tests, by its name or one of its folders."""
    return _TEST_FILE.search(path) is not None


def is_about_tests(words: str) -> bool:
    """True if a question asks for tests."""
    return _ABOUT_TESTS.search(words) is not None


def is_code(language: str) -> bool:
    """False for a language of documents, data and settings."""
    return language not in _NO_CODE
