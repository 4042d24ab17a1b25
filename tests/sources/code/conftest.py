from collections.abc import Iterator
from pathlib import Path

import pytest
from code_project import GRAMMARS

from hotset.sources.code.parsers import Parsers


@pytest.fixture(scope="session")
def parsers() -> Iterator[Parsers]:
    with Parsers(GRAMMARS, processes=1) as opened:
        yield opened


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"
