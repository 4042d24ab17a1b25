"""Both stores keep the contract that any adapter must keep."""

from itertools import count

import pytest

from hotset.store.connection import Tuning
from hotset.store.sqlite import SqliteStore
from hotset.testing.ram_store import RamStore
from hotset.testing.store_contract import CHECKS, check_store


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow), "ram"])
def open_store(request, tmp_path):
    if request.param == "ram":
        return RamStore
    numbers = count()
    if request.param == "postgres":
        return request.getfixturevalue("postgres").open_fresh
    return lambda: SqliteStore.open(tmp_path / f"store-{next(numbers)}", Tuning(ballast_bytes=4096))


@pytest.mark.row("V1")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_a_store_keeps_its_contract(check, open_store):
    check(open_store)


def test_the_contract_can_be_checked_in_one_call():
    check_store(RamStore)


def test_the_contract_notices_a_store_that_loses_order():
    class Backwards(RamStore):
        def pages(self, where):
            return reversed(list(super().pages(where)))

    with pytest.raises(AssertionError, match="not found"):
        check_store(Backwards)
