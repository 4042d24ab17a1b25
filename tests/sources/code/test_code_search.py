"""The order of hits in the project's files."""

from __future__ import annotations

from collections import Counter

import pytest

from hotset.index.local import LocalIndex
from hotset.nouns.search import Entry, EntryId, Filter, Query, Sort
from hotset.sources.code.code_search import find_code, is_test

PATHS = ["src/uploader.py", "src/upload/queue.py", "tests/test_uploader.py", "web/upload.spec.ts"]


@pytest.fixture
def index(tmp_path):
    with LocalIndex(tmp_path / "index", None, folds=False) as index:
        index.add(
            Entry(
                EntryId(f"{path}-{number}"),
                path,
                Sort.CODE,
                f"upload again after a refused upload, {path} attempt {number}",
                path=path,
                lines=(number, number),
            )
            for path in PATHS
            for number in range(1, 6)
        )
        yield index


def _paths(index, words: str, **only: str) -> list[str]:
    query = Query(words, Filter(**only), most=5, deadline=30.0)
    return [hit.entry.path for hit in find_code(index, query).hits]


@pytest.mark.row("V3")
def test_a_file_has_at_most_two_hits_and_sources_come_before_tests(index) -> None:
    paths = _paths(index, "where is an upload sent again")
    assert max(Counter(paths).values()) == 2
    assert [is_test(path) for path in paths] == [False] * 4 + [True]


@pytest.mark.row("V3")
@pytest.mark.parametrize("words", ["which test covers an upload", "test_uploader upload"])
def test_tests_are_not_moved_back_where_the_question_is_about_them(index, words) -> None:
    assert any(map(is_test, _paths(index, words)[:2]))


def test_a_file_that_is_asked_for_alone_has_as_many_hits_as_there_are(index) -> None:
    assert _paths(index, "upload", path="tests/") == ["tests/test_uploader.py"] * 5


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("tests/conftest.py", True),
        ("pkg/upload_test.go", True),
        ("src/UploadTest.java", True),
        ("src/a.spec.ts", True),
        ("src/contest.py", False),
        ("src/testing/proxy.py", False),
        ("src/latest.py", False),
    ],
)
def test_a_file_of_tests_is_known_by_its_name_or_its_folder(path, tests) -> None:
    assert is_test(path) is tests
