"""Code written once for callers who block and callers who await: a generator yields acts, and one
of two drivers does them.

    def flow():
        response = yield partial(hands.send, request)    # an act: something to do, at once or to be
        awaited return response.status_code

What an act raises is raised in the flow, where the act was yielded.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

_T = TypeVar("_T")

Act = Callable[[], Any]
Flow = Generator[Act, Any, _T]


def blocking(flow: Flow[_T]) -> _T:
    step: Callable[[Any], Act] = flow.send
    value: Any = None
    while True:
        try:
            act = step(value)
        except StopIteration as end:
            result: _T = end.value
            return result
        try:
            step, value = flow.send, act()
        except BaseException as error:  # the flow's to judge
            step, value = flow.throw, error


async def awaiting(flow: Flow[_T]) -> _T:
    step: Callable[[Any], Act] = flow.send
    value: Any = None
    while True:
        try:
            act = step(value)
        except StopIteration as end:
            result: _T = end.value
            return result
        try:
            step, value = flow.send, await act()
        except BaseException as error:  # the flow's to judge
            step, value = flow.throw, error
