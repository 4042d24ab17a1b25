"""The index that every process opens has its vectors from where the operator said."""

from contextlib import closing

import pytest

from hotset.errors import BadConfig
from hotset.index import open_index
from hotset.nouns.embedding import Embedding
from hotset.nouns.search import Entry, EntryId, Query, Sort
from tests.embedders import endpoint

KEY = "sk-not-a-real-one"
ENTRIES = [
    Entry(EntryId("a"), "a", Sort.PAGE, "the car"),
    Entry(EntryId("b"), "b", Sort.PAGE, "the house"),
]


def test_an_endpoint_embeds_what_is_kept_and_what_is_asked(tmp_path):
    with endpoint(two_things) as (url, seen):
        chosen = Embedding(url=url, model="small", size=3, key=KEY)
        with closing(open_index(tmp_path, chosen, folds=False)) as index:
            index.add(ENTRIES)
            assert index.fold()
            best = index.search(Query("automobile", deadline=30.0)).hits[0]
            state = index.state()
    assert (best.entry.id, best.by_words) == ("a", None)
    assert best.by_meaning == pytest.approx(1, abs=0.01)
    assert (state.embedder[:9], state.troubles) == ("endpoint-", ())
    assert {text for _, _, body in seen for text in body["input"]} == {
        "the car",
        "the house",
        "automobile",
    }
    assert {headers["authorization"] for _, headers, _ in seen} == {f"Bearer {KEY}"}


def test_words_serve_while_the_endpoint_is_away_and_the_trouble_is_told(tmp_path):
    away = Embedding(url="http://127.0.0.1:9/v1", model="small", size=3)
    with closing(open_index(tmp_path, away, folds=False)) as index:
        index.add(ENTRIES)
        assert not index.fold()
        hits = index.search(Query("house", deadline=30.0))
        assert ([hit.entry.id for hit in hits.hits], hits.lacking) == (["b"], {"meaning"})
        assert any(
            "the embeddings endpoint at 127.0.0.1" in trouble for trouble in index.troubles()
        )


def test_another_choice_makes_the_vectors_anew_from_what_is_there(tmp_path):
    with closing(open_index(tmp_path, folds=False)) as index:
        index.add(ENTRIES)
        index.fold()
        assert index.state().embedder.startswith("table-")
    with (
        endpoint(two_things) as (url, _),
        closing(
            open_index(tmp_path, Embedding(url=url, model="small", size=3), folds=False)
        ) as index,
    ):
        assert index.search(Query("house", deadline=30.0)).lacking == {"meaning"}
        index.fold()
        assert index.state().embedder.startswith("endpoint-")
        assert not index.search(Query("house", deadline=30.0)).lacking


def test_weights_that_are_none_are_refused_where_they_were_named(tmp_path):
    (tmp_path / "model").write_bytes(b"nothing of use")
    with pytest.raises(BadConfig, match="does not hold the weights"):
        open_index(tmp_path, Embedding(str(tmp_path / "model")))


def two_things(_path, texts):
    """What drives, and the rest."""
    return 200, [
        {"index": place, "embedding": [1, 0, 0] if "car" in text or "auto" in text else [0, 1, 0]}
        for place, text in enumerate(texts)
    ]
