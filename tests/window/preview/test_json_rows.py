"""Rows of JSON are told with what names them."""

from __future__ import annotations

import base64
import json

import pytest

from hotset.window.preview import ContentOrigin, preview


def made(value: object, room: int = 2500, indent: int | None = None) -> str:
    found = preview(json.dumps(value, indent=indent), ContentOrigin(tool="list"), room)
    assert found is not None
    return found.text


def issues(count: int) -> list[dict[str, object]]:
    return [
        {
            "url": f"https://api.example.com/repos/a/b/issues/{number}",
            "id": 1_000_000_000 + number,
            "node_id": f"I_kw{number:08x}",
            "number": number,
            "title": f"Widget {number} is lost",
            "user": {
                "login": f"dev{number % 7}",
                "id": number % 7,
                "avatar_url": f"https://example.com/u/{number % 7}",
            },
            "state": "open",
            "body": f"What was done: it was opened and turned {number} times, then closed again. "
            * 3,
        }
        for number in range(400, 400 + count)
    ]


def pods(count: int, **more: str) -> list[dict[str, object]]:
    return [
        {
            "metadata": {"name": f"api-{n}", "uid": f"{n * 7919:016x}"},
            "spec": {"node": f"n{n % 5}", **more},
            "status": {"phase": "Running"},
        }
        for n in range(count)
    ]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_catalogue_lists_what_people_call_rows_before_ids_that_nobody_reads(indent):
    shown = made(issues(40), indent=indent)

    assert "… number, title from row 0: 400 Widget 400 is lost; 401 Widget 401 is lost;" in shown
    assert [
        number for number in range(400, 440) if f"{number} Widget {number} is lost" not in shown
    ] == []
    assert "node_id" not in shown.partition("… number, title")[2].partition("… $[0]")[0]


def test_titles_that_are_too_long_for_a_catalogue_are_cut_and_ids_never_are():
    table = [
        {
            "key": f"OPS-{n * 7919:05}",
            "title": f"Number {n} of those with a title that goes on and on",
        }
        for n in range(60)
    ]
    shown = made(table)

    assert [row["key"] for row in table if f"{row['key']} Number" not in shown] == []
    assert "…; OPS-" in shown


@pytest.mark.parametrize("indent", [None, 2, 8])
def test_a_row_is_shown_as_one_however_it_is_laid_out(indent):
    orders = [
        {
            "id": f"ord_{n * 7919:06}",
            "amount": 10 + n % 9,
            "lines": [{"sku": f"S{n}", "qty": 1}, {"sku": f"T{n}", "qty": 2}],
        }
        for n in range(200)
    ]
    orders[77]["amount"] = 98123.55
    shown = made({"data": orders}, indent=indent)

    (line,) = [line for line in shown.split("\n") if "98123.55" in line]
    assert line.startswith("… $.data[77]: {")
    assert str(orders[77]["id"]) in line


def test_what_stands_out_of_a_long_row_says_which_row_it_is():
    table = pods(80, image="registry.example.com/" + "a/long/path/" * 30)
    table[33]["status"] = {"phase": "Failed", "reason": "OOMKilled"}
    shown = made({"items": table}, indent=4)

    (line,) = [line for line in shown.split("\n") if line.startswith("… $.items[33].status")]
    assert line == (
        '… $.items[33].status (metadata.name api-33): { "phase": "Failed", "reason": "OOMKilled" }'
    )

    numbered = issues(40)
    numbered[7]["state"] = "locked"
    assert '… $[7].state (number 407, title Widget 407 is lost): "locked"' in made(numbered)


def test_few_values_inside_rows_are_counted_too():
    table = pods(80)
    table[33]["status"] = {
        "phase": "Failed",
        "reason": "killed, because it took more memory than it may take",
    }

    assert "status.phase: Running (79), Failed (1)" in made({"items": table})


@pytest.mark.parametrize("size", [60, 3000])
def test_the_first_and_the_last_row_are_shown(size):
    table: list[dict[str, object]] = [
        {"id": f"ord_{n}", "state": "held" if n % 90 == 1 else "done"} for n in range(size)
    ]
    shown = made({"data": table}, 1200)

    assert '… $.data[0]: {"id": "ord_0"' in shown
    assert f'… $.data[{size - 1}]: {{"id": "ord_{size - 1}"' in shown


def test_encoded_bytes_inside_json_are_told_by_kind_and_size():
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0" + bytes(range(256)) * 60).decode()
    deep = {"cells": [{"outputs": [{"data": {"image/png": data}}]}]}

    for value in ({"ok": True, "data": f"data:image/png;base64,{data}"}, deep):
        shown = made(value)
        assert "[base64, PNG image: 20," in shown
        assert len(shown) < 400


def test_a_long_line_inside_json_is_parted_between_words():
    shown = made({"text": " ".join(f"word_{n:05}" for n in range(900))})

    said = [
        word
        for line in shown.split("\n")
        if line.startswith("… ") and "mentions" not in line
        for word in line.split()
    ]
    assert len([word for word in said if word.startswith("word_")]) > 100
    assert {len(word) for word in said if word.startswith("word_")} == {10}
