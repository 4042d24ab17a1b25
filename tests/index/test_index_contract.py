"""The index in a folder keeps the contract: with vectors and without, folded by hand and by
itself."""

from itertools import count

import pytest

from hotset.index.local import LocalIndex
from hotset.testing.fakes import HashingEmbedder
from hotset.testing.index_contract import CHECKS


@pytest.mark.row("V2")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "embedder", [HashingEmbedder(), HashingEmbedder(100), None], ids=["384", "100", "words"]
)
def test_the_contract_is_kept(check, embedder, tmp_path):
    numbers = count()
    check(lambda: LocalIndex(tmp_path / str(next(numbers)), embedder, folds=False))


@pytest.mark.row("V2")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_contract_is_kept_while_another_thread_folds(check, tmp_path):
    numbers = count()
    check(lambda: LocalIndex(tmp_path / str(next(numbers)), HashingEmbedder(64)))
