"""A dialect is one package and one line in the registry: nothing else asks which one it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hotset
from hotset.dialects import DEFAULT, DIALECTS
from hotset.nouns.message import DialectName

ROOT = Path(hotset.__file__).parent
READERS = {"replay/formats/export.py"}
"""How a store's rows become a transcript again: a reader for each dialect, in a table."""


def test_every_name_has_its_dialect():
    assert set(DIALECTS) == set(DialectName)
    assert all(each.name is name for name, each in DIALECTS.items())
    assert DIALECTS[DEFAULT.name] is DEFAULT


def test_no_module_outside_of_its_own_package_asks_for_a_dialect_by_its_name():
    named = {
        file.relative_to(ROOT).as_posix()
        for file in ROOT.rglob("*.py")
        if re.search(r"DialectName\.[A-Z]", file.read_text(encoding="utf-8"))
    }
    assert {each for each in named if not each.startswith(("dialects/", "testing/"))} == READERS


@pytest.mark.parametrize("name", list(DialectName))
def test_a_conversation_that_a_dialect_composes_is_one_that_it_parses(name):
    dialect = DIALECTS[name]
    for system in ("", "Be brief."):
        said = [{"role": "user", "content": "hello"}]
        body = {
            "model": "m",
            dialect.length_field(dialect.provider): 99,
            **dialect.compose(system, said),
        }
        request = dialect.parse(hotset.dialects.json_bytes.encode(body))
        texts = [part.content.decode() for part in request.system]
        texts += [part.content.decode() for message in request.messages for part in message.parts]
        assert texts == [*([system] if system else []), "hello"]
        assert dialect.check(request) == ()
    assert dialect.endpoint.endswith(dialect.path)
