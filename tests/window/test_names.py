"""The names that are worth telling."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter

import pytest

from hotset.window.names import coined_names, count_names, distinct_names, names


def _bytes(size: int) -> bytes:
    """Bytes without any order, the same every time."""
    return b"".join(hashlib.sha256(bytes([n])).digest() for n in range(size // 32 + 1))[:size]


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(_bytes(3000)).decode(),
        "\n".join(
            base64.b64encode(_bytes(3000)).decode()[at : at + 76] for at in range(0, 4000, 76)
        ),
        _bytes(50).hex().upper(),
        "2026-11-03T09:00:01.961Z 09:00:01.961 12.5ms 0.003s 1024.5kB 1763686876.33s",
        "tests/test_a.py::test_rows PASSED\n--- PASS: TestRows (0.01s)\ntest rows::load_all ... ok",
    ],
    ids=["base64", "wrapped", "hex", "times", "passes"],
)
def test_what_nobody_copies_is_not_coined(text):
    assert list(names(text))
    assert not list(coined_names(text))


@pytest.mark.parametrize(
    "name",
    [
        "src/main/java/com/example/project/service/OrderServiceImplTest2.java",
        "AbstractSingletonProxyFactoryBeanGeneratorTestCaseX2",
        "d6248914e3bb3d984dada66c76bf106f48931696",
        "session_2d7e4c1a-77c1-4f6e-9a59-1f0a6a2c1a11",
        "toolu_01A9xKcPqZ7wYt3Lm2Rb8NvX",
        "10.0.0.12",
        "8812345",
        "v1.2.3",
        "OPS-4471",
        "test_x1_fails",
    ],
)
def test_paths_ids_and_versions_are_coined(name):
    assert list(coined_names(f'{{"id":{name}}}')) == [name]


def test_of_names_that_differ_by_a_number_only_one_stands_for_all_of_them():
    counts = Counter(
        [*(f"crate{n}" for n in range(67)), *(f"api-{n:04x}" for n in range(30)), "src/main.rs"]
    )

    assert distinct_names(counts, "") == {
        "crate0 (67 alike)": 1,
        "api-0000 (30 alike)": 1,
        "src/main.rs": 1,
    }
    assert distinct_names(counts, "Compiling crate9") == {
        "api-0000 (30 alike)": 1,
        "src/main.rs": 1,
    }


def test_few_names_alike_and_one_that_comes_up_far_more_often_stand_for_themselves():
    counts = Counter(
        [*(f"crate{n}" for n in range(67)), *["crate7"] * 9, "utf-8", "utf-16", "utf-32"]
    )

    assert set(distinct_names(counts, "crate1")) == {"crate7", "utf-8", "utf-16", "utf-32"}


def test_a_colour_is_told_with_its_mark_and_is_no_number_among_others():
    colours = [f"#{n * 98765 % 0xFFFFFF:06x}" for n in range(1, 40)]

    assert list(distinct_names(Counter(coined_names(" ".join(colours))), "")) == colours


def test_the_names_of_a_text_are_counted_the_same_the_first_and_every_later_time():
    text = "src/window/plan.py reads config.toml; see src/window/plan.py:12\n" * 20
    counted = [dict(count_names(part)) for part in (text, text, text[:100], text + "more_names")]
    assert counted == [
        Counter(coined_names(part)) for part in (text, text, text[:100], text + "more_names")
    ]
