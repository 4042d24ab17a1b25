"""One answer for each project; without one nothing is read."""

from __future__ import annotations

import pytest
from code_project import RamIndex, run, write

from hotset.errors import BadConfig
from hotset.sources.code.consent import Answer, Consent, answer, consent, revoke


@pytest.mark.row("V17")
def test_without_an_answer_nothing_is_allowed(root, data) -> None:
    assert consent(data) == Consent()
    assert not consent(data).allows(root)


def test_an_answer_is_kept_for_this_folder_and_private(root, data, tmp_path) -> None:
    answer(data, root, granted=True, now=5.0)
    assert consent(data) == Consent(Answer.GRANTED, 5.0, str(root))
    assert consent(data).allows(root)
    assert not consent(data).allows(tmp_path)
    assert [path.stat().st_mode & 0o777 for path in data.iterdir()] == [0o600]
    assert list(root.iterdir()) == []


def test_a_refusal_is_kept_too_and_can_be_changed(root, data) -> None:
    answer(data, root, granted=False)
    assert consent(data).answer is Answer.DENIED
    answer(data, root, granted=True)
    assert consent(data).allows(root)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"code": "perhaps", "when": 1, "root": ""}', '{"code": 1}'])
def test_an_answer_that_cannot_be_understood_is_none(damage, root, data) -> None:
    answer(data, root, granted=True)
    (data / "consent.json").write_text(damage)
    assert consent(data).answer is Answer.UNANSWERED


@pytest.mark.row("V17")
def test_revoking_removes_the_answer_the_manifest_and_the_index(root, data, parsers) -> None:
    answer(data, root, granted=True)
    write(root, {"a.md": "# A\n"})
    run(root, RamIndex(), data, parsers)
    write(data, {"index/x": "derived"})
    revoke(data, data / "index")
    assert list(data.iterdir()) == []
    assert (root / "a.md").exists()
    revoke(data, data / "index")


def test_revoking_removes_nothing_that_is_not_ours(root, data, tmp_path) -> None:
    answer(data, root, granted=True)
    (data / "index").symlink_to(root)
    for path in (root, tmp_path, data / "index"):
        with pytest.raises(BadConfig):
            revoke(data, path)
    assert root.exists()
    assert consent(data).allows(root)
