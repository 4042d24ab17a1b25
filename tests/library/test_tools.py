"""The toolbox for programs: functions that become tools, a list for each query, and calls of any of
them."""

from __future__ import annotations

import asyncio

import pytest

import hotset
from hotset.errors import BadInput


def weather(city: str, days: int = 1) -> dict[str, str]:
    """Forecast the weather of a city."""
    return {"city": city, "sky": f"clear for {days} days"}


def invoice(number: int) -> str:
    """Look up an invoice by its number."""
    return f"invoice {number}"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOTSET_CONFIG", str(tmp_path / "config.toml"))
    return tmp_path


@pytest.mark.row("L3")
@pytest.mark.parametrize(
    ("dialect", "name_of"),
    [
        ("openai-chat", lambda tool: tool["function"]["name"]),
        ("openai-responses", lambda tool: tool["name"]),
        ("anthropic", lambda tool: tool["name"]),
    ],
)
def test_a_query_gets_a_list_of_tools_in_the_form_of_its_dialect(project, dialect, name_of):
    with hotset.open(project, data=project / "data") as memory:
        memory.tools.register(weather)
        memory.tools.register(invoice)
        [loaded] = {
            name_of(each).partition("__")[0]
            for each in memory.tools.for_query("will it rain", dialect=dialect)
        }
        names = [name_of(each) for each in memory.tools.for_query("will it rain", dialect=dialect)]

    assert sorted(names) == [f"{loaded}__invoice", f"{loaded}__weather"]


def test_a_tool_is_found_and_used_and_may_say_something_that_is_no_text(project):
    with hotset.open(project, data=project / "data") as memory:
        memory.tools.register(weather)
        memory.tools.register(invoice)
        found = memory.tools.find("weather forecast")[0]
        used = memory.tools.use(found.tool.name, {"city": "Bern", "days": 3})

    assert found.tool.own_name == "weather"
    assert used.text == '{"city":"Bern","sky":"clear for 3 days"}'


def test_the_same_on_a_loop_with_a_function_that_waits(project):
    async def slow_sum(numbers: list[int]) -> int:
        """Add numbers up, slowly."""
        await asyncio.sleep(0)
        return sum(numbers)

    async def program() -> str:
        async with hotset.open(project, data=project / "data") as memory:
            memory.tools.register(slow_sum)
            [found] = await memory.tools.find("add numbers")
            return (await memory.tools.use(found.tool.name, {"numbers": [1, 2, 3]})).text

    assert asyncio.run(program()) == "6"


def test_register_is_a_decorator_too_and_refuses_what_has_no_types(project):
    with hotset.open(project, data=project / "data") as memory:

        @memory.tools.register
        def double(number: int) -> int:
            """Double a number."""
            return 2 * number

        assert double(2) == 4
        assert memory.tools.use(memory.tools.find("double")[0].tool.name, {"number": 4}).text == "8"
        with pytest.raises(BadInput, match="needs a type"):
            memory.tools.register(lambda number: number, name="nothing")


@pytest.mark.row("D1", "D7")
def test_a_program_asks_how_tools_fare_which_go_next_and_which_are_inactive(project):
    (project / "config.toml").write_text("[tools]\ncreate = true\n")
    code = 'def {name}(text: str) -> str:\n    """Tidy a text up."""\n    return text\n'
    with hotset.open(project, data=project / "data") as memory:
        for name in ("tidy_a", "tidy_b"):
            given = {"name": name, "code": code.format(name=name)}
            memory.tools.use("hotset__create_tool", given)
        memory.tools.use("created__tidy_a", {"text": "x"})
        used, unused = memory.tools.metrics("created__tidy_a"), memory.tools.metrics("tidy_b")
        going = memory.tools.candidates(5)
        inactive = memory.tools.inactive()

    assert (used.calls, used.failures, used.tier, used.status) == (1, 0, "hot", "active")
    assert used.seconds > 0
    assert used.last_used is not None
    assert (unused.calls, unused.tier, unused.ttl_left) == (0, "probation", None)
    assert [each.name for each in going] == ["created__tidy_b", "created__tidy_a"]
    assert inactive == ()


def test_the_same_is_awaited_on_a_loop(project):
    async def program() -> int:
        async with hotset.open(project, data=project / "data") as memory:
            memory.tools.register(weather)
            [found] = await memory.tools.find("weather forecast")
            await memory.tools.use(found.tool.name, {"city": "Bern"})
            assert await memory.tools.candidates(2) == await memory.tools.inactive() == ()
            return (await memory.tools.metrics(found.tool.name)).calls

    assert asyncio.run(program()) == 1
