"""Grammars may hang and crash: that costs one file its symbols."""

from __future__ import annotations

import pytest
from code_project import GRAMMARS, RamIndex, run, write

from hotset.files.scope import PROCESS
from hotset.sources.code.chunks import rows
from hotset.sources.code.parsers import Parsers
from hotset.text.languages import LANGUAGES

_HANGS = "(" * 400_000 + ")" * 400_000


def test_a_text_that_takes_too_long_is_cut_by_lines_and_the_next_one_is_parsed() -> None:
    with Parsers(GRAMMARS, processes=1, seconds=0.3) as parsers:
        parsed = parsers.cut(_HANGS, LANGUAGES["python"]).result()
        assert parsed.gave_up
        assert parsed.chunks[-1].end == len(rows(_HANGS))
        assert [
            each.name for each in parsers.symbols("def f(): pass", LANGUAGES["python"]).symbols
        ] == ["f"]


@pytest.mark.row("V3")
def test_files_are_cut_side_by_side() -> None:
    with Parsers(GRAMMARS, processes=2) as parsers:
        coming = [
            parsers.cut(f"def f{number}(): pass\n", LANGUAGES["python"]) for number in range(2)
        ]
        assert [each.result().count for each in coming] == [1, 1]
        assert parsers._idle.qsize() == 2


@pytest.mark.row("V3")
def test_a_file_whose_grammar_gives_up_is_indexed_and_reported(root, data) -> None:
    write(root, {"hangs.py": _HANGS, "fine.py": "def f(): pass\n"})
    index = RamIndex()
    with Parsers(GRAMMARS, processes=1, seconds=0.3) as parsers:
        report = run(root, index, data, parsers)
    assert report.files == 2
    assert sum(report.in_part.values()) == 1
    assert list(report.in_part_files) == ["hangs.py"]


def test_a_worker_never_imports_what_lies_in_the_project(root, data, parsers, monkeypatch) -> None:
    write(
        root,
        {
            "hotset/__init__.py": "raise SystemExit",
            "msgspec.py": "raise SystemExit",
            "a.py": "def f(): pass\n",
        },
    )
    monkeypatch.chdir(root)
    with Parsers(GRAMMARS, processes=1) as own:
        assert run(root, RamIndex(), data, own).in_part == {}


def test_what_was_warmed_is_there_for_the_first_text() -> None:
    with Parsers(GRAMMARS, processes=2) as parsers:
        parsers.warm([LANGUAGES["python"], LANGUAGES["go"], LANGUAGES["markdown"]]).result()
        (worker,) = parsers._idle.queue
        assert parsers.cut("def f(): pass\n", LANGUAGES["python"]).result().count == 1
        assert parsers._idle.queue == [worker]


def test_parsers_that_were_closed_leave_no_process_behind() -> None:
    parsers = Parsers(GRAMMARS, processes=1)
    parsers.symbols("def f(): pass", LANGUAGES["python"])
    worker = parsers._idle.queue[0]
    parsers.close()
    assert worker._process.returncode is not None


@pytest.mark.row("V14")
def test_the_pipes_of_workers_belong_to_a_scope_and_go_with_them():
    def held():
        return [each for each in PROCESS.left_over() if each.startswith("process/parsers: file")]

    before = held()
    with Parsers(GRAMMARS, processes=1) as parsers:
        assert parsers.symbols("def add(): ...\n", LANGUAGES["python"]).symbols
        assert len(held()) == len(before) + 1
    assert held() == before
