"""Matrix products on one thread, for as long as somebody wants it."""

import threading

import pytest

from hotset.index.embed.blas_threads import _openblas, one_thread


@pytest.fixture
def threads():
    if (openblas := _openblas()) is None:
        pytest.skip("this numpy came with another BLAS than OpenBLAS")
    get, set_to = openblas
    before = get()
    set_to(2)
    yield get
    set_to(before)


def test_the_number_of_threads_is_one_inside_and_as_before_outside(threads):
    with one_thread():
        assert threads() == 1
        with one_thread():
            assert threads() == 1
        assert threads() == 1
    assert threads() == 2


def test_an_error_inside_gives_the_threads_back(threads):
    with pytest.raises(ZeroDivisionError), one_thread():
        _ = 1 / 0
    assert threads() == 2


def test_whoever_leaves_first_does_not_disturb_those_who_stay(threads):
    entered, leave = threading.Event(), threading.Event()

    def stay():
        with one_thread():
            entered.set()
            leave.wait(120)

    with one_thread():
        other = threading.Thread(target=stay)
        other.start()
        entered.wait(120)
    assert threads() == 1
    leave.set()
    other.join()
    assert threads() == 2
