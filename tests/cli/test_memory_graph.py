"""Memories and their links, drawn."""

from __future__ import annotations

from hypothesis import given, strategies as st

from hotset.nouns.memory import MemoryId, MemoryKind, MemoryLink, MemoryRecord, Provenance, Relation
from hotset.surfaces.cli.memory_views import dot, tree


def fact(id: str, title: str = "") -> MemoryRecord:
    return MemoryRecord(
        MemoryId(id), MemoryKind.FACT, title or f"about {id}", "text", 0.0, Provenance("person")
    )


def link(of: str, to: str, relation: Relation = Relation.DERIVED_FROM) -> MemoryLink:
    return MemoryLink(MemoryId(of), MemoryId(to), relation)


def test_a_tree_says_each_link_from_where_one_stands():
    drawn = list(
        tree(
            [fact("sem-a"), fact("sem-b"), fact("ep-1")],
            [
                link("sem-a", "ep-1"),
                link("sem-b", "ep-1"),
                link("sem-a", "sem-b", Relation.SUPERSEDES),
            ],
            MemoryId("ep-1"),
        )
    )

    assert drawn == [
        "[ep-1] about ep-1",
        "├─ source of [sem-a] about sem-a",
        "│  └─ replaces [sem-b] about sem-b",
        "└─ source of [sem-b] about sem-b (above)",
    ]


NAMES = st.sampled_from([f"sem-{letter}" for letter in "abcdef"])
LINKS = st.lists(st.builds(link, NAMES, NAMES, st.sampled_from(Relation)), unique=True, max_size=15)


@given(LINKS)
def test_every_link_is_drawn_once_however_they_go_round(links: list[MemoryLink]):
    memories = [fact(f"sem-{letter}") for letter in "abcdef"]

    drawn = list(tree(memories, links))

    assert sum("─" in line for line in drawn) == len(links)
    assert all(any(f"[{memory.id}]" in line for line in drawn) for memory in memories)


def test_a_long_chain_is_drawn_to_its_end():
    number = 3000
    drawn = list(
        tree(
            [fact("sem-0")],
            [link(f"sem-{n}", f"sem-{n + 1}", Relation.SUPERSEDES) for n in range(number)],
        )
    )

    assert len(drawn) == number + 1
    assert drawn[-1].endswith(f"replaces [sem-{number}]")


def test_graphviz_gets_titles_that_cannot_break_out_of_their_quotes():
    drawn = dot(
        [fact("sem-a", 'a "quoted" \\ title'), fact("sem-b")],
        [link("sem-a", "sem-b", Relation.CONTRADICTS)],
    )

    assert r'label="sem-a\na \"quoted\" \\ title"' in drawn
    assert '"sem-a" -> "sem-b" [label="contradicts", style=bold];' in drawn
    assert drawn.startswith("digraph")
