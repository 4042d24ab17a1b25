"""Questions that another embedder reads than the one that made the documents' vectors."""

import pytest
from tests.embedders import DOCUMENTS, Knowing

from hotset.errors import BadInput
from hotset.index.hybrid_search import QueryVectors
from hotset.index.local import LocalIndex
from hotset.nouns.search import Entry, EntryId, Filter, Query, Sort
from hotset.testing.fakes import HashingEmbedder

PATIENT = 30.0


@pytest.fixture
def knowing():
    return Knowing("automobile", means="car")


@pytest.fixture
def folder(tmp_path):
    """Entries of two sorts about the same things."""
    with LocalIndex(tmp_path / "index", DOCUMENTS, folds=False) as index:
        index.add(
            Entry(EntryId(f"{sort}{n}"), f"{sort}{n}", sort, text)
            for sort in (Sort.CODE, Sort.MEMORY)
            for n, text in enumerate(["car", "boat", "train", "house", "garden"])
        )
        index.fold()
    return tmp_path / "index"


def test_what_it_reads_finds_what_the_documents_own_words_do_not(folder, knowing):
    query = Query("automobile", Filter(sorts=frozenset({Sort.MEMORY})), deadline=PATIENT)
    with LocalIndex(folder, DOCUMENTS, folds=False) as index:
        assert index.search(query).hits[0].by_meaning < 0.9
    with LocalIndex(folder, DOCUMENTS, knowing, folds=False) as index:
        best = index.search(query).hits[0]
    assert (best.entry.text, best.by_meaning) == ("car", pytest.approx(1, abs=0.01))


def test_nothing_is_made_anew_when_it_comes_or_goes(folder, knowing):
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("generation-*/bytes")}
    for asking in (knowing, None):
        with LocalIndex(folder, DOCUMENTS, asking, folds=False) as index:
            assert index.fold()
            state = index.state()
        assert (state.lag, state.building, state.embedder) == (0, None, DOCUMENTS.id)
    assert before == {
        path.name: path.stat().st_mtime_ns for path in folder.glob("generation-*/bytes")
    }


@pytest.mark.parametrize(
    "query",
    [
        Query("automobile", Filter(sorts=frozenset({Sort.CODE})), deadline=PATIENT),
        Query("automobile", deadline=0.01),
        Query("automobile " * 100, deadline=PATIENT),
    ],
    ids=["for code alone", "in no time", "a long text"],
)
def test_the_documents_embedder_reads_what_the_other_is_not_for(folder, knowing, query):
    with LocalIndex(folder, DOCUMENTS, knowing, folds=False) as index:
        index.search(query)
        assert knowing.read == []
        index.search(Query("automobile", deadline=PATIENT))
        assert knowing.read == ["automobile"]


def test_a_question_is_read_once_by_each(folder, knowing):
    questions = QueryVectors(DOCUMENTS, knowing)
    asked = [
        Query("automobile", only, deadline=PATIENT)
        for only in (Filter(), Filter(sorts=frozenset({Sort.CODE})))
    ] * 3
    vectors = [questions.vector(query) for query in asked]
    assert knowing.read == ["automobile"]
    assert vectors[0] is vectors[2]
    assert (vectors[0] != vectors[1]).any()


def test_one_of_another_space_cannot_ask():
    with pytest.raises(BadInput, match="cannot ask for"):
        QueryVectors(DOCUMENTS, HashingEmbedder(64, "another"))


def test_words_serve_while_the_model_that_reads_questions_fails(folder):
    class Failing(HashingEmbedder):
        def embed(self, texts):
            raise RuntimeError(texts)

    with LocalIndex(folder, DOCUMENTS, Failing(64), folds=False) as index:
        for _ in range(4):
            hits = index.search(Query("car", deadline=PATIENT))
            assert hits.hits[0].entry.text == "car"
            assert hits.lacking == {"meaning"}
        assert (
            "meaning is left out for now: it failed again and again (RuntimeError)"
            in index.troubles()
        )
