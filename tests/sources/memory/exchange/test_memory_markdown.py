"""Memories as pages that people edit: what is unchanged stays, an edit is a version by a person,
nothing is forgotten."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from memories_made import fact, holding, made, memories, some

from hotset.errors import BadInput
from hotset.nouns.deposit import Remembered
from hotset.nouns.memory import Episode, MemoryKind, Pitfall, Procedure, Standing, Trust
from hotset.sources.memory.exchange.markdown import (
    entries_of,
    entry_text,
    merge_markdown,
    read_markdown,
    shown_of,
    write_markdown,
)
from hotset.testing.secrets import planted

_SHOWN = (Standing.ACTIVE, Standing.CANDIDATE, Standing.SUPERSEDED)


@given(
    st.lists(memories(_SHOWN), max_size=4, unique_by=lambda memory: memory.id),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
)
@pytest.mark.slow
def test_a_page_tells_what_its_memories_say_whatever_they_say(written, ends):
    page = "# Facts\n\n" + "\n".join(map(entry_text, written))
    if ends == "\n\n":  # some editors keep markers and lists apart
        page = re.sub(r"(<!-- hotset:begin [^\n]*\n)", r"\1\n", page)
    entries = list(entries_of(page.replace("\n", ends) if ends == "\r\n" else page))
    assert [(entry.id, entry.version, entry.title, entry.text) for entry in entries] == [
        (memory.id, memory.version, *shown_of(memory)) for memory in written
    ]
    assert not any(entry.edited for entry in entries)


@given(some())
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=30)
@pytest.mark.slow
def test_an_export_that_nobody_edited_changes_nothing(written):
    store = holding(written)
    shown = [memory for memory in written if memory.standing in _SHOWN]
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        assert write_markdown(store, out) == len(shown)
        before = store.memories_after(0, 1000)
        taken = merge_markdown(store, out, now=5e9)
        write_markdown(store, out)
    assert (taken.new, taken.changed, taken.same, taken.kept) == (0, 0, len(shown), [])
    assert store.memories_after(0, 1000) == before


def _exported(folder: Path):
    store = holding(
        [
            fact("The port is 80", topics=("server",)),
            fact("Releases are on Tuesdays"),
            made(MemoryKind.EPISODE, "Add a login", Episode("Add a login")),
            made(
                MemoryKind.PROCEDURE,
                "Release\n1. tag\n2. push",
                Procedure("", ("tag", "push")),
                standing=Standing.CANDIDATE,
            ),
            made(
                MemoryKind.PITFALL,
                "Mocks hang\nInstead: pass it in",
                Pitfall("Mocks", "they hang", "pass it in"),
            ),
            fact("Forgotten", standing=Standing.FORGOTTEN),
        ]
    )
    write_markdown(store, folder)
    return store


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_pages_are_private_and_have_an_index(tmp_path: Path):
    out = tmp_path / "out"
    _exported(out)
    names = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    assert names == ["episodes/2026-01.md", "facts.md", "index.md", "pitfalls.md", "procedures.md"]
    index = (out / "index.md").read_text()
    assert "- [facts](facts.md): 2" in index
    assert "**server**: 1, the latest: The port is 80" in index
    assert "Forgotten" not in (out / "facts.md").read_text()
    assert "waits for confirmation" in (out / "procedures.md").read_text()
    assert {stat.S_IMODE(path.stat().st_mode) for path in (out, *out.rglob("*"))} == {0o600, 0o700}


def test_an_edit_becomes_a_version_in_the_words_of_a_person(tmp_path: Path):
    store = _exported(tmp_path / "out")
    facts = tmp_path / "out/facts.md"
    _edit(facts, "-->\nThe port is 80\n", "-->\nThe port is 8080\n")
    _edit(facts, "## Releases are on Tuesdays", "## Release day")
    taken = merge_markdown(store, tmp_path / "out", now=2e9)
    assert (taken.new, taken.changed, taken.kept) == (0, 2, [])
    port = store.memory(fact("The port is 80").id)
    assert (port.text, port.title, port.trust, port.version) == (
        "The port is 8080",
        "The port is 80",
        Trust.PERSON,
        2,
    )
    assert port.run == taken.run
    day = store.memory(fact("Releases are on Tuesdays").id)
    assert (day.title, day.text) == ("Release day", "Releases are on Tuesdays")
    again = merge_markdown(store, tmp_path / "out", now=3e9)
    assert (again.new, again.changed, again.kept) == (0, 0, [])
    write_markdown(store, tmp_path / "out")
    assert "The port is 8080" in facts.read_text()


def test_what_a_person_edits_counts_and_its_short_form_says_no_more_than_the_text(tmp_path: Path):
    store = _exported(tmp_path / "out")
    _edit(
        tmp_path / "out/procedures.md",
        "-->\nRelease\n1. tag\n2. push",
        "-->\nRelease\n1. test\n2. tag\n3. push",
    )
    _edit(tmp_path / "out/pitfalls.md", "Instead: pass it in", "Instead: use a fake")
    merge_markdown(store, tmp_path / "out", now=2e9)
    (procedure,) = store.memories(frozenset({MemoryKind.PROCEDURE}))
    assert procedure.detail == Procedure("", ("test", "tag", "push"))
    assert procedure.standing is Standing.ACTIVE
    (pitfall,) = store.memories(frozenset({MemoryKind.PITFALL}))
    assert pitfall.detail == Pitfall("Mocks", "they hang", "")


def test_words_beside_the_markers_and_lost_markers_are_part_of_the_entry(tmp_path: Path):
    store = _exported(tmp_path / "out")
    page = tmp_path / "out/facts.md"
    port, day = fact("The port is 80").id, fact("Releases are on Tuesdays").id
    _edit(page, f"<!-- hotset:end {port} -->\n", "")
    _edit(page, f"<!-- hotset:end {day} -->\n", f"<!-- hotset:end {day} -->\n\nUnless it rains.\n")
    taken = merge_markdown(store, tmp_path / "out", now=2e9)
    assert (taken.changed, taken.same) == (1, 4)
    assert store.memory(day).text == "Releases are on Tuesdays\n\nUnless it rains."
    assert store.memory(port).version == 1


def test_an_entry_that_is_missing_is_not_forgotten(tmp_path: Path):
    store = _exported(tmp_path / "out")
    (tmp_path / "out/facts.md").write_text("# Facts\n")
    (tmp_path / "out/pitfalls.md").unlink()
    taken = merge_markdown(store, tmp_path / "out", now=2e9)
    assert (taken.new, taken.changed) == (0, 0)
    assert store.memory(fact("The port is 80").id).standing is Standing.ACTIVE


def test_a_new_entry_is_nobodys_word_until_somebody_vouches_for_it(tmp_path: Path):
    store = _exported(tmp_path / "out")
    with (tmp_path / "out/procedures.md").open("a") as file:
        file.write("\n## Deploy\n\n1. look\n2. push\n\n## Always look twice\n")
    taken = merge_markdown(store, tmp_path / "out", now=2e9)
    assert (taken.new, taken.waiting) == (2, 2)
    new = [
        memory
        for memory in store.memories(frozenset({MemoryKind.PROCEDURE}))
        if memory.title == "Deploy"
    ]
    assert [(memory.trust, memory.standing, memory.detail) for memory in new] == [
        (Trust.OUTSIDE, Standing.CANDIDATE, Procedure("Deploy", ("look", "push")))
    ]
    assert merge_markdown(store, tmp_path / "out", now=3e9).new == 0
    other = holding()
    assert merge_markdown(other, tmp_path / "out", now=2e9, vouched=True).new == 7
    assert {memory.trust for memory in other.memories()} == {Trust.PERSON}


def test_a_page_that_this_store_did_not_write_cannot_change_its_memories(tmp_path: Path):
    store = _exported(tmp_path / "out")
    page = tmp_path / "out/facts.md"
    page.write_text(re.sub(r"(hotset:begin \S+ 1) \w+", r"\1 0123456789abcdef", page.read_text()))
    _edit(page, "-->\nThe port is 80\n", "-->\nThe port is 666\n")
    taken = merge_markdown(store, tmp_path / "out", now=2e9)
    assert taken.kept == [fact("The port is 80").id]
    assert store.memory(fact("The port is 80").id).text == "The port is 80"


def test_an_edit_of_what_was_changed_or_forgotten_meanwhile_is_told_and_not_made(tmp_path: Path):
    store = _exported(tmp_path / "out")
    port, day = fact("The port is 80"), fact("Releases are on Tuesdays")
    newer = fact("The port is 80", text="The port is 443", version=2)
    store.keep(
        Remembered(
            memories=(
                newer,
                fact("Releases are on Tuesdays", version=2, standing=Standing.FORGOTTEN),
            )
        )
    ).result()
    _edit(tmp_path / "out/facts.md", "-->\nThe port is 80\n", "-->\nThe port is 8080\n")
    _edit(
        tmp_path / "out/facts.md",
        "-->\nReleases are on Tuesdays\n",
        "-->\nReleases are on Fridays\n",
    )
    taken = merge_markdown(store, tmp_path / "out", now=2e9)
    assert sorted(taken.kept) == sorted([port.id, day.id])
    assert store.memory(port.id) == newer


def test_edits_that_were_not_imported_are_not_written_over(tmp_path: Path):
    store = _exported(tmp_path / "out")
    _edit(tmp_path / "out/facts.md", "-->\nThe port is 80\n", "-->\nThe port is 8080\n")
    with pytest.raises(BadInput, match=r"facts\.md has edits that were not imported"):
        write_markdown(store, tmp_path / "out")
    assert "8080" in (tmp_path / "out/facts.md").read_text()
    merge_markdown(store, tmp_path / "out", now=2e9)
    write_markdown(store, tmp_path / "out")


@pytest.mark.parametrize("name", ["notes.md", "episodes/mine.md", "facts.md"])
def test_pages_of_others_are_left_alone(tmp_path: Path, name: str):
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(BadInput, match="out has"):
        write_markdown(holding([fact("one")]), tmp_path / "out")
    assert path.read_text() == "mine"


def test_a_long_page_goes_on_in_another_one(tmp_path: Path):
    store = holding([fact(f"{number} " + "x" * 100_000) for number in range(25)])
    write_markdown(store, tmp_path / "out")
    assert (tmp_path / "out/facts-2.md").exists()
    assert len(list(read_markdown(tmp_path / "out"))) == 25
    assert merge_markdown(store, tmp_path / "out", now=2e9).same == 25


def test_secrets_are_not_written(tmp_path: Path):
    secrets = planted(4, 60)
    store = holding([fact(f"{secret.text}\n{number}") for number, secret in enumerate(secrets)])
    write_markdown(store, tmp_path / "out")
    written = "".join(path.read_text() for path in (tmp_path / "out").rglob("*.md"))
    assert not [secret.kind for secret in secrets if secret.remains(written)]


def test_a_page_that_cannot_be_read_is_named_and_nothing_is_taken(tmp_path: Path):
    store = _exported(tmp_path / "out")
    _edit(tmp_path / "out/facts.md", "-->\nThe port is 80\n", "-->\nThe port is 8080\n")
    (tmp_path / "out/pitfalls.md").write_bytes(b"caf\xe9")
    with pytest.raises(BadInput, match=r"pitfalls\.md is not UTF-8"):
        merge_markdown(store, tmp_path / "out", now=2e9)
    assert store.memory(fact("The port is 80").id).version == 1
    with pytest.raises(BadInput, match="no pages of memories"):
        merge_markdown(store, tmp_path, now=2e9)
