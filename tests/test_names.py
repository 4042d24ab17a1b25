"""One word a concept: a public class name means one thing in all of hotset."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import hotset

_ROOT = Path(hotset.__file__).parent
_CLASS = re.compile(r"^ *class ([A-Z]\w*)[(:]", re.MULTILINE)


def test_a_public_class_name_is_defined_once():
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sorted(_ROOT.rglob("*.py")):
        for name in _CLASS.findall(path.read_text(encoding="utf-8")):
            homes[name].append(str(path.relative_to(_ROOT)))
    assert len(homes) > 500
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}
