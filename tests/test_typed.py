"""Types are read by one thread at a time: two at once end the process (`hotset.typed`)."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

import hotset
from hotset.typed import convert, decode

_ROOT = Path(hotset.__file__).parent
_MODULE = "\n".join(
    [
        "from __future__ import annotations",
        "import msgspec",
        "class Inner(msgspec.Struct):",
        "    number: int = 0",
        "    more: list[Inner] = []",
        "class Outer(msgspec.Struct):",
        *(f"    field{number}: Inner | None = None" for number in range(40)),
    ]
)
_PROGRAM = f"""
import sys, types
from threading import Barrier, Thread
import msgspec
from hotset.typed import decode

sys.setswitchinterval(1e-6)
text = msgspec.json.encode({{f"field{{n}}": {{"more": [{{"number": n}}]}} for n in range(40)}})
for number in range(40):
    module = types.ModuleType(f"module{{number}}")
    sys.modules[module.__name__] = module
    exec({_MODULE!r}, module.__dict__)
    start = Barrier(8)

    def work():
        start.wait()
        assert decode(text, module.Outer).field39.more[0].number == 39

    threads = [Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("done")
"""


def test_threads_that_decode_into_a_new_type_at_once_all_get_their_value():
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr


_READERS = frozenset(
    f"msgspec.{name}"
    for name in (
        *("inspect.type_info", "inspect.multi_type_info"),
        *("json.schema", "json.schema_components"),
    )
)
"""Those that read a type whatever they are called with."""


def _direct(tree: ast.AST) -> Iterator[int]:
    """The lines on which msgspec itself is asked to read a type."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "msgspec":
            names = {each.name for each in node.names}
            if names & {"convert", "json", "msgpack", "type_info"}:
                yield node.lineno
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        typed = node.args or any(word.arg == "type" for word in node.keywords)
        given = any(word.arg == "type" for word in node.keywords) or len(node.args) > 1
        if (
            name == "msgspec.convert"
            or name in _READERS
            or (name in {"msgspec.json.Decoder", "msgspec.msgpack.Decoder"} and typed)
            or (name in {"msgspec.json.decode", "msgspec.msgpack.decode"} and given)
        ):
            yield node.lineno


def test_only_one_module_asks_msgspec_to_read_a_type():
    found = {
        str(path.relative_to(_ROOT)): lines
        for path in sorted(_ROOT.rglob("*.py"))
        if (lines := [*_direct(ast.parse(path.read_text(encoding="utf-8")))])
    }
    assert list(found) == ["typed.py"], found


@pytest.mark.parametrize(
    "line",
    [
        "msgspec.json.Decoder(Kind)",
        "msgspec.json.Decoder(type=Kind)",
        "msgspec.json.decode(text, type=Kind)",
        "msgspec.convert(value, Kind)",
        "from msgspec import Struct, convert",
        "msgspec.inspect.type_info(Kind)",
    ],
)
def test_what_would_read_a_type_elsewhere_is_seen(line):
    assert [*_direct(ast.parse(line))] == [1]


def test_a_type_that_cannot_be_hashed_is_read_all_the_same():
    kind: Any = Annotated[int, ["a note of somebody's own"]]
    assert decode("3", kind) == convert(3, kind) == 3
    with pytest.raises(msgspec.ValidationError):
        decode('"x"', kind)
