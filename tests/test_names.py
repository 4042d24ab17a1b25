"""One word a concept: a public class name means one thing in all of hotset."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import hotset

_ROOT = Path(hotset.__file__).parent


def test_a_public_class_name_is_defined_once():
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sorted(_ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(_ROOT)))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}
