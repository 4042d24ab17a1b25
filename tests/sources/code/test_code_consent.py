"""One answer for each project; without one nothing is read."""

from __future__ import annotations

import json

import pytest
from code_project import RamIndex, run, write

from hotset.errors import BadConfig
from hotset.sources.code.index_consent import (
    Consent,
    ConsentAnswer,
    keep_answer,
    read_consent,
    revoke,
)
from hotset.store.sqlite import SqliteStore
from hotset.store.store_files import has_store


@pytest.mark.row("V17")
def test_without_an_answer_nothing_is_allowed(root, data) -> None:
    assert read_consent(data) == Consent()
    assert not read_consent(data).allows(root)


def test_an_answer_is_kept_for_this_folder_and_private(root, data, tmp_path) -> None:
    keep_answer(data, root, granted=True, now=5.0)
    assert read_consent(data) == Consent(ConsentAnswer.GRANTED, 5.0, str(root))
    assert read_consent(data).allows(root)
    assert not read_consent(data).allows(tmp_path)
    assert {path.stat().st_mode & 0o777 for path in data.iterdir()} == {0o600}
    assert list(root.iterdir()) == []


def test_a_refusal_is_kept_too_and_can_be_changed(root, data) -> None:
    keep_answer(data, root, granted=False)
    assert read_consent(data).answer is ConsentAnswer.DENIED
    keep_answer(data, root, granted=True)
    assert read_consent(data).allows(root)


def test_looking_makes_no_store(data) -> None:
    assert read_consent(data) == Consent()
    assert not has_store(data)


@pytest.mark.parametrize("with_store", [False, True])
def test_an_answer_of_an_earlier_version_holds_and_moves_into_the_store(
    with_store, root, data
) -> None:
    old = {"code": "granted", "when": 5.0, "root": str(root)}
    write(data, {"consent.json": json.dumps(old)})
    if with_store:
        SqliteStore.open(data).close()

    assert read_consent(data) == Consent(ConsentAnswer.GRANTED, 5.0, str(root))
    assert (data / "consent.json").exists() is not with_store
    assert read_consent(data).allows(root)
    keep_answer(data, root, granted=False)
    assert not (data / "consent.json").exists()
    assert read_consent(data).answer is ConsentAnswer.DENIED


@pytest.mark.parametrize("with_store", [False, True])
@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"code": "perhaps", "when": 1, "root": ""}', '{"code": 1}']
)
def test_an_answer_that_cannot_be_understood_is_none(damage, with_store, data) -> None:
    write(data, {"consent.json": damage})
    if with_store:
        SqliteStore.open(data).close()
    assert read_consent(data).answer is ConsentAnswer.UNANSWERED


def test_an_answer_stays_on_this_machine(root, data) -> None:
    keep_answer(data, root, granted=True)
    with SqliteStore.open(data) as store:
        assert str(root) not in repr(list(store.dump()))


@pytest.mark.row("V17")
def test_revoking_removes_the_answer_the_manifest_and_the_index(root, data, parsers) -> None:
    keep_answer(data, root, granted=True)
    write(root, {"a.md": "# A\n"})
    run(root, RamIndex(), data, parsers)
    write(data, {"index/x": "derived"})
    revoke(data, data / "index")
    assert read_consent(data) == Consent()
    assert not list(data.glob("index*")) + list(data.glob("code*"))
    assert not any(
        b"derived" in path.read_bytes() or b"a.md" in path.read_bytes() for path in data.iterdir()
    )
    assert (root / "a.md").exists()
    revoke(data, data / "index")


def test_revoking_without_an_answer_makes_no_store(data) -> None:
    revoke(data)
    assert not has_store(data)


def test_revoking_removes_nothing_that_is_not_ours(root, data, tmp_path) -> None:
    keep_answer(data, root, granted=True)
    (data / "index").symlink_to(root)
    for path in (root, tmp_path, data / "index"):
        with pytest.raises(BadConfig):
            revoke(data, path)
    assert root.exists()
    assert read_consent(data).allows(root)
