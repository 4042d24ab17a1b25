"""What the tools of the recorded sessions return: one text of each content type, the same in every
run."""

from __future__ import annotations

import base64
import json
from random import Random

_WORDS = (
    "ledger invoice parcel harbour signal beacon orchard lantern quarry meadow compass anchor "
    "bridge copper"
    " timber velvet granite thistle ember willow"
)


def code(name: str, functions: int = 120) -> str:
    """A Python module."""
    head = f'"""Prices of {name}."""\n\nimport json\nfrom pathlib import Path\n\nRATE = 0.19\n\n'
    return head + "\n".join(_function(name, number) for number in range(functions))


def edited(text: str, *numbers: int) -> str:
    """The module after somebody changed these functions."""
    for number in numbers:
        text = text.replace(f"* {number * 7919} *", f"* {number * 7919 + 1} *")
    return text


def rows(count: int = 300) -> str:
    """A JSON document of many alike objects."""
    chance = Random("rows")
    data = [
        {
            "id": f"inv-{number:05}",
            "customer": _pick(chance, 2),
            "state": "overdue" if number % 37 == 0 else "paid",
            "amount": chance.randrange(100, 90_000) / 100,
            "lines": [{"sku": f"S{chance.randrange(900)}", "count": chance.randrange(1, 9)}],
        }
        for number in range(count)
    ]
    return json.dumps({"data": data, "next": None, "total": count}, indent=1)


def log(lines: int = 700) -> str:
    """A server's log with a traceback in it."""
    chance = Random("log")
    told = [
        f"2026-03-14T09:{number // 60 % 60:02}:{number % 60:02}Z"
        f" {'WARN' if number % 53 == 0 else 'INFO'} worker-{chance.randrange(4)}"
        f" {_pick(chance, 1)}: took {chance.randrange(3, 900)} ms for {_pick(chance, 3)}"
        for number in range(lines)
    ]
    told[lines // 2 : lines // 2] = [
        "Traceback (most recent call last):",
        '  File "/srv/app/billing.py", line 88, in charge',
        "    raise CardRefused(card.last4)",
        "billing.CardRefused: 4242 was refused: insufficient funds",
    ]
    return "\n".join(told)


def pytest_output(count: int = 220) -> str:
    """The output of a test run with two failures."""
    chance = Random("tests")
    told = [
        f"tests/test_{_pick(chance, 1)}.py::test_{number}_{_pick(chance, 1)} PASSED"
        for number in range(count)
    ]
    for at in (count // 3, count // 2):
        told[at] = told[at].replace("PASSED", "FAILED")
    failure = (
        "________ test_rounding ________\n    def test_rounding():\n>       assert total(3) == 9.57"
        "\nE       assert 9.56 == 9.57\n\ntests/test_ledger.py:41: AssertionError"
    )
    return "\n".join(
        [*told, "=== FAILURES ===", failure, f"=== 2 failed, {count - 2} passed in 8.41s ==="]
    )


def diff(files: int = 6) -> str:
    """A unified diff of several files."""
    return "\n".join(_file_diff(f"src/part_{number}.py", number) for number in range(files))


def table(count: int = 260) -> str:
    """Columns, as a database client prints them."""
    chance = Random("table")
    body = [
        (
            f" {number:>5} | {_pick(chance, 1):<10} | {chance.randrange(10_000):>7} | "
            f"{_pick(chance, 2)}"
        )
        for number in range(count)
    ]
    head = [
        "    id | name       |  amount | note",
        "-------+------------+---------+---------------",
    ]
    return "\n".join([*head, *body, f"({count} rows)"])


def prose(paragraphs: int = 45) -> str:
    """Plain text in paragraphs under headings."""
    chance = Random("prose")
    return "\n\n".join(
        f"## {_pick(chance, 2).title()}\n\n"
        + " ".join(f"{_pick(chance, 9).capitalize()}." for _ in range(5))
        for _ in range(paragraphs)
    )


def page(items: int = 120) -> str:
    """An HTML page."""
    chance = Random("page")
    listed = "".join(
        (
            f'<li class="item"><a href="/goods/{number}">{_pick(chance, 2)}</a> '
            f"{_pick(chance, 6)}</li>\n"
        )
        for number in range(items)
    )
    style = (
        "<style>" + "".join(f".c{number}{{margin:{number}px}}" for number in range(80)) + "</style>"
    )
    return (
        f"<!doctype "
        f"html><html><head><title>Goods</title>{style}</head><body><h1>Goods</h1><ul>\n"
        f"{listed}</ul></body></html>"
    )


def picture(seed: str, width: int = 640, height: int = 480) -> str:
    """The bytes of a PNG image as base64; it has the right head and nothing that a decoder could
    show."""
    head = b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + b"IHDR"
    size = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return base64.b64encode(head + size + Random(seed).randbytes(900)).decode()


def _function(name: str, number: int) -> str:
    return (
        f"def {name}_{number}(left: int, right: int) -> float:\n"
        f'    """The price of {name} number {number}."""\n'
        f"    return (left + right) * {number * 7919} * RATE\n"
    )


def _file_diff(path: str, number: int) -> str:
    chance = Random(path)
    hunks = "\n".join(
        f"@@ -{at},4 +{at},4 @@ def {_pick(chance, 1)}():\n {_pick(chance, 3)}\n-    "
        f"{_pick(chance, 4)}\n"
        f"+    {_pick(chance, 4)}\n {_pick(chance, 3)}"
        for at in range(10, 400, 40)
    )
    return (
        f"diff --git a/{path} b/{path}\nindex {number:07x}..{number + 9:07x} 100644\n--- "
        f"a/{path}\n+++ b/{path}\n{hunks}"
    )


def _pick(chance: Random, count: int) -> str:
    words = _WORDS.split()
    return " ".join(chance.choice(words) for _ in range(count))
