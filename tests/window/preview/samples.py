"""Texts of every kind of content, as clients really frame them, with what later work would need of
each."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hotset.window.preview import ContentOrigin, ContentType
from hotset.window.preview.content import find_body, tool_query
from hotset.window.preview.sniffer import content_type


@dataclass(frozen=True)
class Sample:
    name: str
    type: ContentType
    text: str
    origin: ContentOrigin
    kept: tuple[str, ...]
    """What must still be there in 1,500 characters."""


def shell(command: str, *sought: str) -> ContentOrigin:
    return ContentOrigin(
        tool="bash", arguments=json.dumps({"command": command}).encode(), sought=frozenset(sought)
    )


def sniff(text: str, origin: ContentOrigin) -> ContentType:
    return content_type(find_body(text.split("\n")).lines, tool_query(origin))


def functions(count: int) -> list[str]:
    lines = ["import json", "from pathlib import Path", ""]
    for index in range(count):
        lines += [
            f"def step_{index}(path: Path, limit: int) -> list[str]:",
            f'    """Reads what step {index} left behind."""',
            f"    found = json.loads(path.read_text())[{index}]",
            f"    return [str(each) for each in found][:limit + {index}]",
            "",
        ]
    return lines


_CODE = functions(60)
_NUMBERED = "\n".join(f"{number:6}→{line}" for number, line in enumerate(_CODE, 1))
_PYTEST = "\n".join(
    [
        "============================= test session starts ==============================",
        *(f"tests/test_shop.py::test_order_{index} PASSED" for index in range(120)),
        "tests/test_shop.py::test_refund FAILED",
        "",
        "=================================== FAILURES ===================================",
        "_________________________________ test_refund __________________________________",
        "    def test_refund():",
        ">       assert refund(order) == 40",
        "E       assert 39 == 40",
        "tests/test_shop.py:88: AssertionError",
        "=========================== short test summary info ============================",
        "FAILED tests/test_shop.py::test_refund - assert 39 == 40",
        "======================== 1 failed, 120 passed in 3.21s =========================",
    ]
)
_LOG = "\n".join(
    f"2026-01-04 10:{index // 60:02}:{index % 60:02} "
    + (
        "ERROR payment 7741 was refused"
        if index == 90
        else "WARN queue is long"
        if index == 130
        else f"INFO served request {index} in {index % 7} ms"
    )
    for index in range(200)
)
_DIFF = "\n".join(
    line
    for file in range(8)
    for line in [
        f"diff --git a/src/part_{file}.py b/src/part_{file}.py",
        f"--- a/src/part_{file}.py",
        f"+++ b/src/part_{file}.py",
        "@@ -1,6 +1,6 @@",
        *(f" line {index} of part {file} stays as it is" for index in range(12)),
        f"-    old_{file} = compute(1)",
        f"+    new_{file} = compute(2)",
    ]
)
_HITS = "\n".join(
    f"src/room_{file}.py:{line}:    value = charge_card(order_{line})"
    for file in range(9)
    for line in range(10, 34)
)
_LISTING = "\n".join(
    f"./src/rooms/room_{folder}/file_{index}.py" for folder in range(6) for index in range(40)
)
_TABLE = "\n".join(
    ["id,name,price", *(f"{index},thing_{index},{index * 3}" for index in range(400))]
)
_FLIGHTS = json.dumps(
    [
        {"flight": f"HAT{index:03}", "from": "SFO", "to": "JFK", "prices": {"economy": index}}
        for index in range(80)
    ]
)
_ROWS = "\n".join(
    json.dumps({"id": index, "state": "failed" if index == 70 else "done"}) for index in range(150)
)
_PAGE = (
    (
        "<!doctype html><html><head><title>Ballast tanks</title><script>var x = "
        "1;</script></head><body><h1>Ballast</h1>"
    )
    + "".join(
        f"<p>Paragraph {index} says something about <a href='/tank/{index}'>tank {index}</a>.</p>"
        for index in range(60)
    )
    + "<h2>Draining the tanks</h2></body></html>"
)
_PROSE = "\n\n".join(
    [
        "# The house",
        *(
            (
                f"## Room {index}\n\nIt was built in {1900 + index} and has seen many guests "
                f"since then, as the book tells."
            )
            for index in range(40)
        ),
    ]
)
_SEVERAL = "\n".join(
    [
        *(f"drwxr-xr-x  2 ada ada 4096 Jan  4 10:00 folder_{index}" for index in range(60)),
        *(f"src/room_{index}.py:{index}: charge_card()" for index in range(60)),
        "deploy: error 2, access denied",
    ]
)

SAMPLES = (
    Sample(
        "code",
        ContentType.CODE,
        "\n".join(_CODE),
        shell("cat steps.py", "step_41"),
        ("import json", "def step_41(", "[:limit + 41]"),
    ),
    Sample(
        "numbered code",
        ContentType.CODE,
        _NUMBERED,
        ContentOrigin(
            tool="Read", arguments=b'{"file_path": "/x/steps.py"}', sought=frozenset({"step_17"})
        ),
        ("     1→import json", "    89→def step_17(path", "    92→    return"),
    ),
    Sample(
        "framed code",
        ContentType.CODE,
        "<returncode>0</returncode>\n<output>\n" + "\n".join(_CODE) + "\n</output>",
        shell("sed -n '1,300p' steps.py", "step_30"),
        ("<returncode>0</returncode>", "<output>", "</output>", "def step_30("),
    ),
    Sample(
        "search",
        ContentType.SEARCH,
        _HITS,
        shell("rg -n charge_card src"),
        ("src/room_0.py\n10:", "src/room_8.py\n10:"),
    ),
    Sample(
        "tests",
        ContentType.CHECKS,
        "Chunk ID: 1b4\nWall time: 3.2 seconds\nProcess exited with code 1\nOutput:\n" + _PYTEST,
        shell("pytest -v"),
        (
            "Process exited with code 1",
            ">       assert refund(order) == 40",
            "E       assert 39 == 40",
            "1 failed, 120 passed",
            "120 passes",
        ),
    ),
    Sample(
        "log",
        ContentType.LOG,
        _LOG,
        shell("tail -n 200 app.log"),
        ("payment 7741 was refused", "WARN queue is long", "x "),
    ),
    Sample(
        "diff",
        ContentType.DIFF,
        _DIFF,
        shell("git diff"),
        ("+++ b/src/part_0.py", "+++ b/src/part_7.py", "+    new_0 = compute(2)"),
    ),
    Sample(
        "table",
        ContentType.TABLE,
        _TABLE,
        shell("cat things.csv", "thing_321"),
        ("id,name,price", "0,thing_0,0", "321,thing_321,963", "399,thing_399"),
    ),
    Sample(
        "listing",
        ContentType.LISTING,
        _LISTING,
        shell("find . -name '*.py'"),
        ("room_0/file_0.py", "room_5/file_0.py"),
    ),
    Sample(
        "json",
        ContentType.JSON,
        _FLIGHTS,
        ContentOrigin(
            tool="search_flights", arguments=b'{"to": "JFK"}', sought=frozenset({"HAT055"})
        ),
        ("array of 80", "$[0]: ", "HAT000", "HAT055", "$[79]"),
    ),
    Sample(
        "json lines",
        ContentType.JSON_LINES,
        _ROWS,
        shell("cat rows.jsonl"),
        ('{"id": 0, "state": "done"}', '{"id": 70, "state": "failed"}', '{"id": 149'),
    ),
    Sample(
        "html",
        ContentType.HTML,
        _PAGE,
        shell("curl https://tanks.example"),
        ("Ballast tanks", "Draining the tanks", "/tank/0"),
    ),
    Sample(
        "prose",
        ContentType.PROSE,
        _PROSE,
        shell("cat house.md"),
        ("# The house", "## Room 0", "## Room 39"),
    ),
    Sample(
        "binary",
        ContentType.OPAQUE,
        "\x89PNG\r" + "\x00\x01\x02\ufffd" * 900,
        shell("cat a.png"),
        ("PNG image", "3,605 characters"),
    ),
    Sample(
        "base64",
        ContentType.OPAQUE,
        "iVBORw0KGgo" + "QUJDRA" * 700,
        shell("base64 a.png"),
        ("base64", "PNG image"),
    ),
    Sample(
        "several",
        ContentType.OUTPUT,
        _SEVERAL,
        shell("ls -l; rg -n charge_card; ./deploy"),
        ("folder_0", "src/room_0.py:0:", "deploy: error 2, access denied"),
    ),
)
