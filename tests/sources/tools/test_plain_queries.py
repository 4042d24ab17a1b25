"""Plain queries: what asks to read comes to a tool that reads, what asks to write to one that
writes."""

import pytest
from plain_queries import BUILT_WITH, HELD_OUT, LIBRARY

from hotset.index.embed.table import WordVectors
from hotset.index.local import LocalIndex
from hotset.sources.tools.tool_search import FOLDER, ToolSearch
from hotset.sources.tools.verbs import Intent, query_intent, tool_intent


@pytest.fixture(scope="module")
def finding(tmp_path_factory):
    table = WordVectors()
    with LocalIndex(tmp_path_factory.mktemp("tools") / FOLDER, table, folds=False) as index:
        opened = ToolSearch(index, table)
        opened.sync(LIBRARY)
        assert index.fold()
        yield opened


@pytest.mark.parametrize(("query", "right", "wrong"), [*BUILT_WITH, *HELD_OUT])
def test_the_right_one_of_reading_and_writing_comes_first(finding, query, right, wrong):
    names = [match.name.partition("__")[2] for match in finding.find(query, len(LIBRARY))]

    assert right in names
    assert wrong not in names or names.index(right) < names.index(wrong)


def test_a_tool_that_does_the_opposite_is_less_likely_than_one_that_fits(finding):
    scores = {match.name: match.score for match in finding.find("commit history", 30)}

    assert scores["github__list_commits"] > 0.5 > scores["git__git_commit"]
    assert scores["git__git_log"] >= scores["git__git_commit"]


@pytest.mark.parametrize(
    ("query", "intent"),
    [
        ("commit history", Intent.READ),
        ("Please show me the open issues", Intent.READ),
        ("how many orders came today", Intent.READ),
        ("tell me the weather", Intent.READ),
        ("commit my changes", Intent.WRITE),
        ("Could you please delete the branch", Intent.WRITE),
        ("update the status", Intent.WRITE),
        ("tell the team that it is done", Intent.WRITE),
        ("how can I crop this image", Intent.UNKNOWN),
        ("screenshots", Intent.UNKNOWN),
        ("", Intent.UNKNOWN),
        ("list " + "of many things " * 10, Intent.UNKNOWN),
    ],
)
def test_what_a_query_asks_for(query, intent):
    assert query_intent(query) is intent


@pytest.mark.parametrize(
    ("name", "intent"),
    [
        ("git log", Intent.READ),
        ("get Channel History", Intent.READ),
        ("createIssue", Intent.WRITE),
        ("slack post message", Intent.WRITE),
        ("run", Intent.UNKNOWN),
    ],
)
def test_what_a_tool_does(name, intent):
    assert tool_intent(name) is intent
