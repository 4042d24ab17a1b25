"""The dashboard's API keeps to the description that it publishes."""

from __future__ import annotations

import json
from typing import Any

import pytest
import schemathesis.specs.openapi.schemas  # noqa: F401 - before a thread of a proxy parses code
from hypothesis import HealthCheck, given, settings, strategies as st
from schemathesis import Case, GenerationMode, openapi
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.campaign import sample
from tests.proxy.wire import call, post, question

pytest.importorskip("numpy")  # whole, before a thread of the proxy begins to load it

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]


@pytest.fixture
def described(pair) -> tuple[str, Any]:
    """The address of an API, and the API as it describes itself."""
    world = pair()
    post(world.address, "anthropic", question("anthropic", "hello"))
    world.settle()
    base = f"/{world.address.token}/hotset/api"
    text = call(world.address, "GET", f"{base}/openapi.json", b"").body
    return f"http://127.0.0.1:{world.address.port}{base}", openapi.from_dict(json.loads(text))


@pytest.mark.row("X4")
@pytest.mark.slow
def test_whatever_is_asked_the_answer_is_as_described(described):
    base, schema = described
    asked: set[str] = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        cases = st.one_of(
            operation.as_strategy(generation_mode=mode)
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
        )

        @settings(
            max_examples=sample(20, 300),
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases)
        def ask(case: Case) -> None:
            answer = case.call(base_url=base)
            case.validate_response(answer, checks=CHECKS)
            asked.add(case.operation.label)

        ask()
    assert len(asked) == len(list(schema.get_all_operations())) >= 5


@pytest.mark.row("X4")
@pytest.mark.slow
def test_each_reading_answers_a_plain_question(described):
    base, schema = described
    known = {"session": "last"}
    for found in schema.get_all_operations():
        operation = found.ok()
        named = {each.name for each in operation.path_parameters}
        if operation.method == "get" and named <= known.keys():
            case = operation.Case(path_parameters={name: known[name] for name in named})
            answer = case.call(base_url=base)
            if answer.status_code != 400:  # it has to be asked for something
                assert answer.status_code == 200, (operation.label, answer.text)
                case.validate_response(answer, checks=CHECKS)
