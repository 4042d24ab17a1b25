"""An unchanged project is seen to be unchanged without loading what an index is made with; whatever is in doubt is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest
from code_project import RamIndex, run, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hotset.index.local import LocalIndex
from hotset.index.rows import DATABASE as ROWS
from hotset.nouns.embedding import Embedding
from hotset.nouns.finding import Query, Sort
from hotset.sources.code.indexing import index_project, manifest_identity
from hotset.sources.code.manifest import DATABASE, Manifest
from hotset.sources.code.parsing import Parsers
from hotset.sources.code.report import Report
from hotset.sources.code.unchanged import settle, unchanged

FILES = {
    "README.md": "# Bakery\n",
    "src/oven.py": "def heat(): ...\n",
    "src/deep/dough.py": "def knead(): ...\n",
    ".gitignore": "out/\n",
}
HEAVY = {"numpy", "tantivy", "tokie", "tree_sitter", "re2", "rignore", "msgspec", "asyncio", "rich", "email"}
LONG_AGO = 1_700_000_000


@dataclass(frozen=True)
class Bakery:
    root: Path
    data: Path
    parsers: Parsers

    def index(self) -> Report:
        """A whole run, as the command does it."""
        with (
            closing(LocalIndex(self.data / "index", folds=False)) as index,
            Manifest(self.data, manifest_identity()) as manifest,
        ):
            report = index_project(self.root, index, manifest, parsers=self.parsers)
            assert index.fold()
            settle(self.data, manifest, Embedding())
        return report

    def settle(self) -> None:
        """Whole runs, until what was written a moment ago is old enough to be trusted by its stat."""
        for _ in range(50):
            self.index()
            if self.unchanged() is not None:
                return
        pytest.fail("it never came to rest")

    def unchanged(self, embedding: Embedding | None = None) -> Report | None:
        return unchanged(self.root, self.data, embedding or Embedding(), lambda: False)

    def on_rows(self, sql: str) -> None:
        with closing(apsw.Connection(str(self.data / "index" / ROWS))) as connection:
            connection.execute(sql)

    def on_manifest(self, sql: str) -> None:
        with closing(apsw.Connection(str(self.data / DATABASE))) as connection:
            connection.execute(sql)


@pytest.fixture
def bakery(root: Path, data: Path, parsers: Parsers) -> Bakery:
    """Indexed; and no file in it is so fresh that its stat could not be trusted."""
    write(root, FILES)
    age(root)
    made = Bakery(root, data, parsers)
    made.settle()
    return made


def age(root: Path) -> None:
    for path in (*root.rglob("*"), root):
        os.utime(path, (LONG_AGO, LONG_AGO))


def known(data: Path) -> set[tuple[str, str, bytes]]:
    """Of each file that is indexed the folder, the name and the hash of its content."""
    with closing(apsw.Connection(str(data / DATABASE))) as connection:
        return set(connection.execute("SELECT folder, name, digest FROM file WHERE why = ''"))


def overwrite(file: Path, text: str) -> None:
    before = file.stat()
    file.write_text(text)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_an_unchanged_project_is_told_as_a_whole_run_would_tell_it(bakery: Bakery) -> None:
    told = bakery.unchanged()

    ran = bakery.index()
    assert told is not None
    assert (told.files, told.chunks, told.bytes, told.symbols) == (ran.files, ran.chunks, ran.bytes, ran.symbols)
    assert (told.changed, told.removed, told.stopped) == (0, 0, False)
    assert dict(told.skipped) == dict(ran.skipped)


def test_nothing_that_makes_an_index_is_loaded_for_it(bakery: Bakery) -> None:
    code = (
        "import sys; from pathlib import Path; from hotset.nouns.embedding import Embedding;"
        "from hotset.sources.code.unchanged import unchanged;"
        f"assert unchanged(Path({str(bakery.root)!r}), Path({str(bakery.data)!r}), Embedding(), lambda: False);"
        f"print(sorted({HEAVY} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda root: write(root, {"src/oven.py": "def cool(): ...\n"}), id="another content"),
        pytest.param(
            lambda root: overwrite(root / "src/oven.py", "def cook(): ...\n"), id="another content of the same size and time"
        ),
        pytest.param(lambda root: write(root, {"src/deep/new.py": "x = 1\n"}), id="a new file"),
        pytest.param(lambda root: write(root, {"other/new.py": "x = 1\n"}), id="a new folder"),
        pytest.param(lambda root: (root / "src/oven.py").unlink(), id="a file less"),
        pytest.param(lambda root: shutil.rmtree(root / "src/deep"), id="a folder less"),
        pytest.param(lambda root: (root / "src/oven.py").rename(root / "src/stove.py"), id="another name"),
        pytest.param(lambda root: write(root, {".gitignore": "src/\n"}), id="other files are ignored"),
        pytest.param(shutil.rmtree, id="the project is gone"),
    ],
)
def test_a_project_that_changed_is_not_unchanged(bakery: Bakery, change: Callable[[Path], object]) -> None:
    change(bakery.root)

    assert bakery.unchanged() is None


def garble(path: Path) -> None:
    for each in path.parent.glob(f"{path.name}*"):
        each.write_bytes(b"not a database " * 1000)


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(lambda bakery: shutil.rmtree(bakery.data / "index"), id="the index is gone"),
        pytest.param(lambda bakery: (bakery.data / "index" / ROWS).unlink(), id="its rows are gone"),
        pytest.param(lambda bakery: garble(bakery.data / "index" / ROWS), id="its rows are damaged"),
        pytest.param(
            lambda bakery: [shutil.rmtree(each) for each in (bakery.data / "index").glob("generation-*")],
            id="what was folded is gone",
        ),
        pytest.param(lambda bakery: bakery.on_rows("PRAGMA user_version = 99"), id="tables of another version"),
        pytest.param(
            lambda bakery: bakery.on_rows("""UPDATE generation SET identity = json_set(identity, '$.embedder', 'other')"""),
            id="vectors of another embedder",
        ),
        pytest.param(
            lambda bakery: bakery.on_rows("""UPDATE generation SET identity = json_set(identity, '$.damaged', 1)"""),
            id="folded files that somebody found damaged",
        ),
        pytest.param(lambda bakery: bakery.on_rows("UPDATE generation SET serving = 0"), id="nothing serves"),
        pytest.param(lambda bakery: bakery.on_rows("UPDATE generation SET folded = 1"), id="something waits to be folded"),
        pytest.param(lambda bakery: bakery.on_rows("INSERT INTO gone VALUES (1)"), id="something waits to be forgotten"),
        pytest.param(lambda bakery: bakery.on_rows("UPDATE watermark SET number = number - 1"), id="the index lost a batch"),
        pytest.param(lambda bakery: bakery.on_rows("UPDATE watermark SET sealing = sealing - 1"), id="sealed by older rules"),
        pytest.param(lambda bakery: bakery.on_rows("DELETE FROM watermark"), id="the index was emptied"),
        pytest.param(lambda bakery: (bakery.data / DATABASE).unlink(), id="the manifest is gone"),
        pytest.param(lambda bakery: garble(bakery.data / DATABASE), id="the manifest is damaged"),
        pytest.param(lambda bakery: bakery.on_manifest("INSERT INTO pending VALUES ('a.py')"), id="a run was killed"),
        pytest.param(lambda bakery: bakery.on_manifest("UPDATE meta SET value = '1' WHERE name = 'strangers'"), id="strangers"),
        pytest.param(
            lambda bakery: bakery.on_manifest("UPDATE meta SET value = 'x' WHERE name = 'said settled'"),
            id="made by another hotset",
        ),
    ],
)
def test_an_index_that_is_in_doubt_is_not_unchanged(bakery: Bakery, harm: Callable[[Bakery], object]) -> None:
    harm(bakery)

    assert bakery.unchanged() is None


_PATHS = st.sampled_from(["a.py", "b/c.py", "b/d.md", "e/f/g.py", ".gitignore", "b/.gitignore"])
_WORDS = st.sampled_from(["x = 1\n", "y = 2\n", "b/\n", "*.md\n", ""])
_EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), _PATHS, _WORDS),
        st.tuples(st.just("overwrite as of before"), _PATHS, _WORDS),
        st.tuples(st.just("remove"), _PATHS, st.just("")),
        st.tuples(st.just("rename"), _PATHS, _PATHS),
        st.tuples(st.just("touch"), _PATHS, st.just("")),
        st.tuples(st.just("index"), st.just(""), st.just("")),
    ),
    max_size=8,
)


@given(edits=_EDITS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_where_nothing_is_said_to_have_changed_an_index_made_anew_knows_the_same(edits, parsers: Parsers) -> None:
    with tempfile.TemporaryDirectory(prefix="hotset-test-") as place:
        made = Bakery(Path(place) / "project", Path(place) / "data", parsers)
        write(made.root, {"stays.py": "z = 0\n"})
        for what, path, more in [*edits, ("index", "", ""), *edits[-2:]]:
            edit(made, what, path, more)

            if made.unchanged() is not None:
                anew = Path(tempfile.mkdtemp(dir=place))
                run(made.root, RamIndex(), anew, parsers)
                assert known(made.data) == known(anew)


def edit(bakery: Bakery, what: str, path: str, more: str) -> None:
    file = bakery.root / path
    if what == "index":
        bakery.settle()
    elif what == "write":
        write(bakery.root, {path: more})
    elif file.is_file():
        if what == "overwrite as of before":
            overwrite(file, more)
        elif what == "remove":
            file.unlink()
        elif what == "touch":
            file.touch()
        elif (bakery.root / more).parent.is_dir():
            file.rename(bakery.root / more)


def test_another_choice_of_embedder_is_a_change(bakery: Bakery) -> None:
    assert bakery.unchanged(Embedding(url="http://localhost:1/v1", model="other", size=8)) is None


def test_whoever_wants_it_to_stop_is_not_told_that_nothing_changed(bakery: Bakery) -> None:
    assert unchanged(bakery.root, bakery.data, Embedding(), lambda: True) is None


def test_a_run_that_could_not_fold_settles_nothing(root: Path, data: Path, parsers: Parsers) -> None:
    write(root, FILES)
    age(root)
    with closing(LocalIndex(data / "index", folds=False)) as index, Manifest(data, manifest_identity()) as manifest:
        for _ in range(2):
            index_project(root, index, manifest, parsers=parsers)
        settle(data, manifest, Embedding())
        assert index.search(Query("heat")).hits[0].entry.sort is Sort.CODE

    assert unchanged(root, data, Embedding(), lambda: False) is None
