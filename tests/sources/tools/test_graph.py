"""Which tools belong together: learned, faded, bounded, shared, exported."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import closing
from itertools import combinations

import msgspec
import pytest
from hypothesis import given, settings, strategies as st
from stores import store_of

from hotset.errors import StoreFailed
from hotset.nouns.note import Space
from hotset.nouns.tool import ToolTier
from hotset.sources.tools.graph import (
    MOST_EDGES,
    Bond,
    GraphSnapshot,
    StoredNet,
    ToolEdge,
    ToolGraph,
    ToolNet,
    net_from,
    render_dot,
    render_json,
    word_overlap,
)
from hotset.store.sqlite import SqliteStore
from hotset.testing import Clock

NOW = 1_800_000_000.0
DAY, YEAR = 86_400.0, 31_557_600.0

names = st.sampled_from([f"t{at}" for at in range(7)])
sessions = st.lists(st.lists(names, min_size=1, max_size=5), max_size=20)
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
edges = st.builds(
    ToolEdge,
    any_text,
    any_text,
    st.floats(0, 1),
    st.dictionaries(st.sampled_from(Bond), st.floats(0.01, 1), min_size=1),
)


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def graph(tmp_path, clock):
    with closing(ToolGraph(store_of(tmp_path), clock)) as opened:
        yield opened


def closest(graph: ToolGraph, name: str) -> list[str]:
    return [each.name for each in graph.neighbours(name)]


# Used together


def test_what_is_used_with_a_tool_is_its_neighbour_the_closer_the_more_often(graph):
    for _ in range(5):
        graph.used_together(["git__add", "git__diff", "git__commit"])
    graph.used_together(["slack__post", "git__commit"])

    assert closest(graph, "git__commit") == ["git__diff", "git__add", "slack__post"]
    first = graph.neighbours("git__commit", most=1)
    assert [(each.name, list(each.why)) for each in first] == [("git__diff", [Bond.TOGETHER])]
    assert 0 < first[0].weight < 1


def test_a_tool_that_is_used_with_everything_belongs_to_nothing_in_particular(graph):
    for at in range(30):
        graph.used_together([f"other_{at}", "fs__read"])
    for _ in range(5):
        graph.used_together(["git__diff", "fs__read"])
        graph.used_together(["git__diff", "git__commit"])

    assert closest(graph, "git__diff") == ["git__commit", "fs__read"]


def test_a_tool_used_again_and_again_has_no_bond_with_itself(graph):
    graph.used_together(["git__diff", "git__diff", "git__diff"])

    assert graph.neighbours("git__diff") == ()
    assert graph.boost(["git__diff"]) == {}


@pytest.mark.row("D8")
def test_a_session_lifts_what_goes_with_what_it_used(graph):
    for _ in range(4):
        graph.used_together(["git__status", "git__diff"])
        graph.used_together(["git__diff", "git__commit"])
    graph.depends("git__commit", ["git__push"])
    graph.alike(["git__status"], lambda _: [("svn__status", 0.9)])

    lifted = graph.boost(["git__status", "git__diff"])
    assert lifted.keys() == {"git__commit"}
    assert graph.boost(["git__commit"])["git__push"] == pytest.approx(0.9)
    assert graph.boost(["unheard-of"]) == {}


def test_what_was_used_together_a_month_ago_counts_half(graph, clock):
    graph.used_together(["a", "b"])
    graph.flush()
    clock.advance(30 * DAY)
    graph.depends("c", ["d"])  # any change brings it up to date

    assert graph.tools()["b"] == pytest.approx(0.5)


@pytest.mark.parametrize("jump", [10 * YEAR, -10 * YEAR])
def test_a_clock_that_jumps_wipes_nothing_out(graph, clock, jump):
    for _ in range(8):
        graph.used_together(["a", "b"])
    graph.flush()
    clock.advance(jump)
    graph.used_together(["c", "d"])
    graph.flush()

    assert closest(graph, "a") == ["b"]
    assert graph.tools()["b"] >= 4


def test_bonds_that_nobody_renews_are_forgotten_in_the_end(graph, clock):
    graph.used_together(["a", "b"])
    for _ in range(12):
        clock.advance(30 * DAY)
        graph.depends("c", ["d"])

    assert graph.tools().keys() == {"c", "d"}


# Alike, and needed


def test_tools_whose_texts_share_words_are_alike(graph):
    texts = {
        "git__create_branch": "Create a branch in the repository",
        "hub__createBranch": "create a new branch of a repository on the server",
        "mail__send": "send a letter to a person",
        "clock__now": "tell the time",
    }
    graph.alike(texts, word_overlap(texts))

    assert closest(graph, "git__create_branch") == ["hub__createBranch"]
    assert list(graph.neighbours("git__create_branch")[0].why) == [Bond.ALIKE]
    assert graph.neighbours("mail__send") == ()


def test_what_was_alike_and_is_no_more_is_forgotten(graph):
    graph.alike(["a"], lambda _: [("b", 0.9), ("a", 1.0), ("c", 0.1)])
    assert closest(graph, "a") == ["b"]
    graph.alike(["a"], lambda _: [])

    assert graph.edges() == ()


def test_a_declared_need_shows_from_both_sides_and_is_replaced_as_a_whole(graph):
    graph.depends("deploy", ["build", "test", "deploy"])
    assert {each.name: list(each.why) for each in graph.neighbours("deploy")} == {
        "build": [Bond.NEEDS],
        "test": [Bond.NEEDS],
    }
    assert {each.name: list(each.why) for each in graph.neighbours("build")} == {
        "deploy": [Bond.NEEDED_BY]
    }

    graph.depends("deploy", ["test"])
    assert graph.neighbours("build") == ()


@pytest.mark.row("D8")
def test_a_deleted_tool_leaves_with_all_its_edges(graph):
    graph.used_together(["a", "b", "c"])
    graph.depends("a", ["b"])
    graph.depends("b", ["c"])
    graph.alike(["b"], lambda _: [("d", 0.8)])
    graph.without("b", "unheard-of")

    assert closest(graph, "a") == ["c"]
    assert "b" not in graph.tools()
    assert "b" not in {name for edge in graph.edges() for name in (edge.one, edge.other)}


# On disk


def test_it_is_the_same_after_a_restart(tmp_path, clock):
    with closing(ToolGraph(store_of(tmp_path), clock)) as graph:
        graph.used_together(["a", "b", "c"])
        graph.depends("a", ["c"])
        graph.alike(["a"], lambda _: [("b", 0.5)])
        graph.used_together(["a", "c"])
        before = graph.edges()
    with closing(ToolGraph(store_of(tmp_path), clock)) as graph:
        for edge, was in zip(graph.edges(), before, strict=True):
            assert (edge.one, edge.other, edge.why.keys()) == (was.one, was.other, was.why.keys())
            assert edge.weight == pytest.approx(was.weight, abs=0.001)


def test_a_tool_keeps_its_strongest_edges_only(graph, tmp_path):
    for at in range(MOST_EDGES + 30):
        for _ in range(1 + (at >= 30)):
            graph.used_together([f"other_{at:03}", "hub"])
    graph.flush()

    assert closest(graph, "hub")[:1] == ["other_030"]
    kept = {each.name for each in graph.neighbours("hub", most=1000)}
    assert kept == {f"other_{at:03}" for at in range(30, MOST_EDGES + 30)}
    (note,) = store_of(tmp_path)().notes(Space("tool_graph")).values()
    assert json.loads(note.value)["tools"]["hub"]["near"].keys() == kept


@given(sessions, st.lists(st.tuples(names, names), max_size=6))
@pytest.mark.slow
def test_what_is_written_is_what_was_learned(used, needs):
    net = ToolNet(NOW)
    for each in used:
        net.add(list(dict.fromkeys(each)))
    for one, other in needs:
        net.say_needs(one, [other])
    net.prune()
    again = net_from(msgspec.json.decode(msgspec.json.encode(net.stored()), type=StoredNet))

    assert [(edge.one, edge.other, edge.why.keys()) for edge in by_name(again)] == [
        (edge.one, edge.other, edge.why.keys()) for edge in by_name(net)
    ]
    assert all(0 < edge.weight <= 1 for edge in again.edges())


def by_name(net: ToolNet) -> list[ToolEdge]:
    return sorted(net.edges(), key=lambda edge: (edge.one, edge.other))


@pytest.mark.slow
def test_two_processes_that_learn_at_once_lose_nothing(tmp_path):
    code = (
        "import sys; from pathlib import Path; from hotset.sources.tools.graph import ToolGraph\n"
        "from hotset.store.sqlite import SqliteStore\n"
        "store = SqliteStore.open(Path(sys.argv[1]))\n"
        "graph = ToolGraph(lambda: store)\n"
        "for _ in range(15):\n"
        "    graph.used_together(['a', sys.argv[2]]); graph.flush()\n"
        "graph.close()\n"
        "store.close()\n"
    )
    others = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name]) for name in ("b", "c")
    ]
    assert [other.wait(120) for other in others] == [0, 0]
    with closing(SqliteStore.open(tmp_path)) as store, closing(ToolGraph(lambda: store)) as graph:
        assert (round(graph.tools()["b"]), round(graph.tools()["c"])) == (15, 15)


def test_the_graph_of_an_earlier_version_is_taken_over_once(tmp_path, clock):
    old = tmp_path / "graph.json"
    old.write_text(
        '{"format": 1, "tools": {"a": {"near": {"b": {"alike": 0.5, "together": 2.0}}, '
        '"needs": ["c"], "uses": 3.0}}}'
    )
    with closing(ToolGraph(store_of(tmp_path), clock, old_file=old)) as graph:
        before = graph.edges()
    with closing(ToolGraph(store_of(tmp_path), clock, old_file=old)) as graph:
        assert graph.edges() == before
        assert {each.name for each in graph.neighbours("a")} == {"b", "c"}
    assert not old.exists()


@pytest.mark.parametrize(
    "slip",
    [
        '{"tools": {"a": {"uses": -3}}}',
        '{"tools": {"a": {"near": {"b": {"alike": 7}}}}}',
        '{"tools": 3}',
        "{",
        "",
        "[]",
    ],
)
def test_a_graph_of_an_earlier_version_that_makes_no_sense_is_left_where_it_is(
    tmp_path, clock, slip
):
    old = tmp_path / "graph.json"
    old.write_text(slip)
    with closing(ToolGraph(store_of(tmp_path), clock, old_file=old)) as graph:
        assert graph.edges() == ()
        graph.depends("a", ["b"])
        assert closest(graph, "a") == ["b"]

    assert old.read_text() == slip


def test_uses_that_cannot_be_written_wait_and_count(tmp_path, clock):
    trouble = ["the disk is full"]

    def opened():
        if trouble:
            raise StoreFailed(trouble[0])
        return store_of(tmp_path)()

    trouble.clear()
    with closing(ToolGraph(opened, clock)) as graph:
        assert graph.edges() == ()
        trouble.append("the disk is full")
        graph.used_together(["a", "b"])
        with pytest.raises(StoreFailed):
            graph.flush()
        assert graph.edges() == ()
        assert graph.troubles() == ["the disk is full"]
        trouble.clear()
        assert closest(graph, "a") == ["b"]
        graph.flush()
        assert graph.troubles() == []
    with closing(ToolGraph(store_of(tmp_path), clock)) as graph:
        assert closest(graph, "a") == ["b"]


# To look at


def snapshot(tools: int = 12) -> GraphSnapshot:
    all_names = [f"server{at % 3}__tool_{at}" for at in range(tools)]
    pairs = [
        (one, other) for at, (one, other) in enumerate(combinations(all_names, 2)) if at % 5 == 0
    ]
    found = [
        ToolEdge(*sorted(pair), 0.5, {(Bond.TOGETHER, Bond.ALIKE, Bond.NEEDED_BY)[at % 3]: 0.5})
        for at, pair in enumerate(pairs)
    ]
    return GraphSnapshot(
        dict.fromkeys(all_names, 2.0),
        tuple(found),
        {all_names[0]: ToolTier.HOT} if all_names else {},
    )


@pytest.mark.parametrize("render", [render_dot, render_json])
def test_the_same_graph_is_exported_the_same_each_time(render):
    assert render(snapshot()) == render(snapshot())


@pytest.mark.row("D8")
def test_dot_names_every_tool_with_its_tier_and_every_tie_with_its_reason():
    lines = render_dot(snapshot()).splitlines()
    nodes = [line for line in lines if line.startswith('  "') and " -> " not in line]
    ties = [line for line in lines if " -> " in line]

    assert {line.split('"')[1] for line in nodes} == set(snapshot().uses)
    assert [
        line for line in nodes if "used 2.0 times lately, hot" in line and "color=" in line
    ] == [nodes[0]]
    assert len(ties) == len(snapshot().edges)
    assert {
        reason
        for line in ties
        for reason in ("used together", "alike", "needs")
        if f'tooltip="{reason} 0.50"' in line
    } == {
        "used together",
        "alike",
        "needs",
    }
    assert sum("style=dashed" in line for line in ties) == sum(
        Bond.ALIKE in edge.why for edge in snapshot().edges
    )


def test_a_large_graph_is_exported_whole():
    assert len(json.loads(render_json(snapshot(107)))["tools"]) == 107
    assert json.loads(render_json(snapshot(107)))["tools"][-1]["uses"] == 2.0
    assert render_dot(snapshot(107)).count("times lately") == 107


def test_a_graph_of_nothing_is_still_a_graph():
    nothing = GraphSnapshot({}, ())

    assert json.loads(render_json(nothing)) == {"tools": [], "edges": []}
    assert render_dot(nothing).startswith("digraph tools {")


def test_an_arrow_points_at_the_tool_that_is_needed():
    needed = GraphSnapshot(
        {"base": 1.0, "top": 1.0}, (ToolEdge("base", "top", 0.5, {Bond.NEEDED_BY: 0.5}),)
    )

    assert '"top" -> "base" [' in render_dot(needed)
    assert "dir=forward" in render_dot(needed)
    assert 'tooltip="needs 0.50"' in render_dot(needed)


@settings(deadline=None, max_examples=60)
@given(st.lists(edges, max_size=6))
def test_no_name_breaks_an_export(found):
    used = {name: 1.0 for edge in found for name in (edge.one, edge.other)}
    whole = GraphSnapshot(used, tuple(edge for edge in found if edge.one != edge.other))

    for line in render_dot(whole).splitlines()[3:-1]:
        assert re.fullmatch(r'  "(\\.|[^"\\])*"( -> "(\\.|[^"\\])*")? \[.*\];', line)
    assert {tool["name"] for tool in json.loads(render_json(whole))["tools"]} == whole.uses.keys()


def test_a_name_with_quotes_and_backslashes_stays_one_name_for_graphviz():
    name = 'a\\"b\\'

    assert r'"a\\\"b\\" [' in render_dot(GraphSnapshot({name: 1.0}, ()))


def test_a_name_with_hidden_characters_does_not_look_like_another():
    assert "\u202e" not in render_dot(GraphSnapshot({"a\u202eb": 1.0}, ()))
