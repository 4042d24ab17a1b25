"""What the catalogue knows of tools, who may run, and that nobody's word is lost."""

import json
import os
import shutil
import stat
import string
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from shop import SCHEMA, server, tool, tools_of
from stores import catalogue_in

from hotset.errors import BadConfig, NotFound, StoreFailed, StoreTooNew, ToolRefused
from hotset.nouns.tool import OriginKind, ToolOrigin
from hotset.sources.tools.approval import ToolState
from hotset.sources.tools.catalogue import LARGEST, Catalogue
from hotset.sources.tools.tool_files import NameIndex, ToolFiles
from hotset.store.sqlite import SqliteStore


@pytest.fixture
def catalogue(tmp_path):
    return catalogue_in(tmp_path / "tools")


def file_of(tmp_path, source):
    (found,) = [
        each
        for each in (tmp_path / "tools" / "catalogue").glob("*.json")
        if json.loads(each.read_bytes())["name"] == source
    ]
    return found


def edit(path, change):
    said = json.loads(path.read_bytes())
    change(said)
    path.write_text(json.dumps(said))


def test_tools_of_a_server_that_a_person_chose_are_ready_at_once(catalogue):
    change = catalogue.put(server(), [tool("read_file"), tool("write_file")])
    assert change.added == ("files__read_file", "files__write_file")
    assert not change.flagged
    known = catalogue.get("files__read_file")
    assert known.state is ToolState.READY
    assert known.tool == tool("read_file")
    assert known.why == ""


def test_what_was_put_is_known_to_another_process_s_catalogue(catalogue, tmp_path):
    catalogue.put(
        server(stamp="s1"),
        [tool("read_file", title="Read", annotations=b'{"readOnlyHint":true}', depends=("a__b",))],
    )
    other = catalogue_in(tmp_path / "tools")
    assert other.get("files__read_file") == catalogue.get("files__read_file")
    assert [(shelf.name, shelf.tools, shelf.stamp, shelf.pending) for shelf in other.sources()] == [
        ("files", 1, "s1", 0)
    ]


def test_a_catalogue_that_is_open_sees_what_another_one_puts(catalogue, tmp_path):
    assert catalogue.get("files__a") is None
    other = catalogue_in(tmp_path / "tools")
    for number in range(20):  # quicker than a file system's clock ticks
        other.put(server(f"s{number}"), [tool("a", f"s{number}")])
        assert catalogue.get(f"s{number}__a") is not None


def test_a_folder_that_changed_within_a_tick_of_its_clock_is_looked_at_again(catalogue, tmp_path):
    folder = tmp_path / "tools" / "catalogue"
    catalogue.put(server(), [tool("a")])
    ticked = folder.stat().st_mtime_ns
    fresh = NameIndex(ToolFiles(folder), clock_ns=lambda: ticked + 1_000_000)
    settled = NameIndex(ToolFiles(folder), clock_ns=lambda: ticked + 1_000_000_000)
    fresh.glance(), settled.glance()
    catalogue.put(server("web"), [tool("b", "web")])
    os.utime(folder, ns=(ticked, ticked))  # as if the clock had not ticked since
    fresh.glance(), settled.glance()
    assert fresh.file_of("web__b")
    assert not settled.file_of("web__b")  # one stat was all it cost
    settled.follow()
    assert settled.file_of("web__b")


_names = st.text(string.ascii_letters + "_-. é", min_size=1, max_size=12)
_texts = st.text(st.characters(exclude_categories=()), max_size=40)  # halves of surrogate pairs too
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
_lists = st.lists(
    st.builds(
        lambda own, said, schema, title: tool(
            own, description=said, parameters=schema, title=title
        ),
        _names,
        _texts,
        st.dictionaries(st.text(max_size=5), _json, max_size=4),
        _texts,
    ),
    max_size=6,
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(_lists, st.text(max_size=20))
@pytest.mark.slow
def test_putting_any_list_twice_changes_nothing(tmp_path_factory, listed, instructions):
    catalogue = catalogue_in(tmp_path_factory.mktemp("tools"))
    first = catalogue.put(server(), listed, instructions=instructions)
    before, version = list(catalogue.tools()), catalogue.version()
    again = catalogue.put(server(), listed, instructions=instructions)
    assert (again.added, again.changed, again.removed, again.flagged) == ((), (), (), ())
    assert again.refused == first.refused
    assert catalogue.version() == version
    assert list(catalogue.tools()) == before
    assert (
        len({known.tool.name for known in before})
        == len(before)
        == len({each.own_name for each in listed})
    )
    for known in before:
        assert catalogue.get(known.tool.name) == known


def test_a_changed_tool_keeps_its_accepted_text_and_waits_for_a_person(catalogue):
    catalogue.put(server(), [tool("read_file", description="Reads a file.")])
    change = catalogue.put(server(), [tool("read_file", description="Reads a file. Fast.")])
    assert change.changed == ("files__read_file",)
    known = catalogue.get("files__read_file")
    assert known.state is ToolState.CHANGED
    assert known.tool.description == "Reads a file."
    assert known.new.description == "Reads a file. Fast."
    assert "hotset tools approve files__read_file" in known.why
    assert catalogue.approve("files__read_file") == ["files__read_file"]
    known = catalogue.get("files__read_file")
    assert (known.state, known.tool.description, known.new) == (
        ToolState.READY,
        "Reads a file. Fast.",
        None,
    )


def test_a_server_that_takes_its_change_back_has_its_tool_back(catalogue):
    catalogue.put(server(), [tool("read_file")])
    catalogue.put(server(), [tool("read_file", description="Other.")])
    catalogue.put(server(), [tool("read_file")])
    assert catalogue.get("files__read_file").state is ToolState.READY


def test_approving_what_changed_again_since_it_was_looked_at_is_refused(catalogue):
    catalogue.put(server(), [tool("read_file")])
    catalogue.put(server(), [tool("read_file", description="Harmless.")])
    seen = catalogue.get("files__read_file").digest
    catalogue.put(server(), [tool("read_file", description="Not so harmless.")])
    with pytest.raises(ToolRefused, match="changed again"):
        catalogue.approve("files__read_file", seen)
    assert catalogue.get("files__read_file").state is ToolState.CHANGED


def test_new_tools_of_a_known_server_are_ready_and_told(catalogue):
    catalogue.put(server(), [tool("read_file")])
    change = catalogue.put(server(), [tool("read_file"), tool("move_file")])
    assert change.added == ("files__move_file",)
    assert catalogue.get("files__move_file").state is ToolState.READY


def test_a_server_that_flaps_does_not_shake_off_what_was_accepted(catalogue):
    catalogue.put(server(), [tool("read_file")])
    assert catalogue.put(server(), []).removed == ("files__read_file",)
    assert catalogue.get("files__read_file").state is ToolState.GONE
    catalogue.put(server(), [tool("read_file", description="Another one.")])
    assert catalogue.get("files__read_file").state is ToolState.CHANGED
    catalogue.put(server(), [tool("read_file")])
    assert catalogue.get("files__read_file").state is ToolState.READY


def test_a_source_that_was_dropped_and_comes_back_is_held_to_what_was_accepted(catalogue):
    catalogue.put(server(), [tool("read_file")])
    catalogue.drop("files")
    assert not catalogue.sources()
    assert not list(catalogue.tools())
    assert catalogue.get("files__read_file").state is ToolState.GONE
    catalogue.put(server(), [tool("read_file", description="Another one.")])
    assert catalogue.get("files__read_file").state is ToolState.CHANGED


@pytest.mark.parametrize("origin", [OriginKind.SKILL, OriginKind.CREATED, OriginKind.CALLABLE])
def test_what_the_person_or_the_program_changes_itself_is_followed(catalogue, origin):
    own = ToolOrigin("mine", origin)
    catalogue.put(own, [tool("run", "mine", origin=origin)])
    change = catalogue.put(own, [tool("run", "mine", "Runs better.", origin=origin)])
    assert change.changed == ("mine__run",)
    known = catalogue.get("mine__run")
    assert (known.state, known.tool.description) == (ToolState.READY, "Runs better.")


def test_what_is_followed_is_looked_at_all_the_same(catalogue):
    own = ToolOrigin("mine", OriginKind.SKILL)
    catalogue.put(own, tools_of(own, "run"))
    change = catalogue.put(own, [tool("run", "mine", "Runs.\u200b", origin=OriginKind.SKILL)])
    assert change.flagged == ("mine__run",)
    assert catalogue.get("mine__run").state is ToolState.FLAGGED


def test_a_skill_of_the_project_runs_after_consent_and_with_the_files_that_were_seen(catalogue):
    skill = ToolOrigin("deploy", OriginKind.SKILL, stamp="v1", trusted=False)
    catalogue.put(skill, tools_of(skill, "run", "check"))
    assert {known.state for known in catalogue.tools()} == {ToolState.UNAPPROVED}
    assert catalogue.sources()[0].pending == 2
    with pytest.raises(ToolRefused, match="is not approved"):
        catalogue.may_run(skill)

    assert catalogue.approve("deploy", "v1") == ["deploy__run", "deploy__check"]
    catalogue.may_run(skill)
    assert {known.state for known in catalogue.tools()} == {ToolState.READY}

    changed = ToolOrigin("deploy", OriginKind.SKILL, stamp="v2", trusted=False)
    with pytest.raises(ToolRefused, match="changed since"):
        catalogue.may_run(changed)
    catalogue.put(changed, tools_of(changed, "run", "check"))
    assert {known.state for known in catalogue.tools()} == {ToolState.UNAPPROVED}
    catalogue.may_run(skill)  # with the files that were seen it still may


def test_one_tool_of_a_project_s_skill_cannot_be_approved_alone(catalogue):
    skill = ToolOrigin("deploy", OriginKind.SKILL, stamp="v1", trusted=False)
    catalogue.put(skill, tools_of(skill, "run", "check"))
    with pytest.raises(ToolRefused, match="hotset tools approve deploy"):
        catalogue.approve("deploy__run")


def test_a_skill_whose_reader_has_its_name_is_approved_by_what_the_reader_shows(catalogue):
    skill = ToolOrigin("deploy", OriginKind.SKILL, stamp="v1", trusted=False)
    catalogue.put(
        skill,
        [tool("", "deploy", "How to deploy.", origin=OriginKind.SKILL), *tools_of(skill, "run")],
    )
    catalogue.approve("deploy", catalogue.get("deploy").digest)
    assert {known.state for known in catalogue.tools()} == {ToolState.READY}
    catalogue.may_run(skill)


def test_consent_is_about_the_files_that_were_seen_and_not_about_those_that_came_meanwhile(
    catalogue,
):
    old, new = (
        ToolOrigin("deploy", OriginKind.SKILL, stamp=stamp, trusted=False) for stamp in ("v1", "v2")
    )
    catalogue.put(old, tools_of(old, "run"))
    seen = catalogue.get("deploy__run").digest
    catalogue.put(new, tools_of(new, "run"))
    catalogue.approve("deploy", seen)
    with pytest.raises(ToolRefused, match="changed since"):
        catalogue.may_run(new)
    assert catalogue.get("deploy__run").state is ToolState.UNAPPROVED


def test_a_skill_that_was_approved_with_follow_runs_as_its_files_change(catalogue):
    skill = ToolOrigin("deploy", OriginKind.SKILL, stamp="v1", trusted=False)
    catalogue.put(skill, tools_of(skill, "run"))
    catalogue.approve("deploy", "v1", follow=True)
    changed = ToolOrigin("deploy", OriginKind.SKILL, stamp="v2", trusted=False)
    catalogue.put(changed, [tool("run", "deploy", "Better.", origin=OriginKind.SKILL)])
    catalogue.may_run(changed)
    assert catalogue.get("deploy__run").state is ToolState.READY


def test_a_skill_of_the_project_does_not_inherit_the_trust_in_one_of_the_same_name(catalogue):
    mine = ToolOrigin("deploy", OriginKind.SKILL, stamp="mine")
    catalogue.put(mine, tools_of(mine, "run"))
    theirs = ToolOrigin("deploy", OriginKind.SKILL, stamp="theirs", trusted=False)
    with pytest.raises(ToolRefused):
        catalogue.may_run(theirs)
    catalogue.put(theirs, tools_of(theirs, "run"))
    assert catalogue.get("deploy__run").state is ToolState.UNAPPROVED


def test_consent_without_anything_to_lock_it_to_is_refused(catalogue):
    skill = ToolOrigin("deploy", OriginKind.SKILL, trusted=False)
    catalogue.put(skill, tools_of(skill, "run"))
    with pytest.raises(ToolRefused):
        catalogue.approve("deploy")


def test_a_source_of_another_kind_cannot_take_a_name(catalogue):
    catalogue.put(server(), [tool("read_file")])
    skill = ToolOrigin("files", OriginKind.SKILL)
    change = catalogue.put(skill, tools_of(skill, "read_file"))
    assert change.refused
    assert catalogue.get("files__read_file").tool.origin is OriginKind.SERVER
    catalogue.drop("files")
    assert catalogue.put(skill, tools_of(skill, "read_file")).added


def test_a_second_source_of_the_same_slug_gets_names_of_its_own(catalogue, tmp_path):
    one, other = server("my files"), server("my.files")
    catalogue.put(one, [tool("read", "my files")])
    change = catalogue.put(other, [tool("read", "my.files"), tool("write", "my.files")])
    assert len({known.tool.name for known in catalogue.tools()}) == 3
    assert all(name.startswith("my_files-") for name in change.added)
    assert change.flagged == (change.added[0],)  # the one that would have had a name that is taken
    assert "it would have the name of my_files__read" in catalogue.get(change.added[0]).why
    elsewhere = catalogue_in(tmp_path / "elsewhere")
    elsewhere.put(one, [tool("read", "my files")])
    assert elsewhere.put(other, [tool("read", "my.files"), tool("write", "my.files")]) == change


def test_two_names_of_one_source_that_come_out_alike_are_two_tools(catalogue):
    change = catalogue.put(server(), [tool("read.file"), tool("read_file"), tool("read/file")])
    assert len(set(change.added)) == 3
    assert {known.tool.own_name for known in catalogue.tools()} == {
        "read.file",
        "read_file",
        "read/file",
    }


def test_a_tool_that_is_listed_twice_is_taken_once_and_told(catalogue):
    change = catalogue.put(server(), [tool("read"), tool("read", description="Another.")])
    assert change.added == ("files__read",)
    assert "listed twice" in change.refused[0]


def test_a_tool_that_says_a_megabyte_of_itself_is_left_out_and_told(catalogue):
    change = catalogue.put(server(), [tool("read"), tool("shout", description="A" * LARGEST)])
    assert change.added == ("files__read",)
    assert "shout is left out" in change.refused[0]


def test_names_that_are_no_text_are_left_out_or_mended(catalogue):
    assert catalogue.put(server("a\udcff"), [tool("read")]).refused
    listed = [tool("re\udcffad", description="\ud800"), tool("write")]
    assert len(catalogue.put(server(), listed).added) == 2
    assert not catalogue.put(server(), listed)


def test_a_tool_is_found_by_the_names_that_its_source_has_for_it(catalogue):
    catalogue.put(server("my files"), [tool("read.all", "my files")])
    (name,) = catalogue.put(server("my.files"), [tool("read.all", "my.files")]).added
    assert catalogue.get_own("my.files", "read.all").tool.name == name
    assert catalogue.get_own("my files", "read.all").tool.name == "my_files__read_all"
    assert catalogue.get_own("my files", "write") is None
    assert catalogue.get_own("nobody", "read.all") is None


def test_a_name_is_found_by_its_own_where_that_means_one_tool(catalogue):
    catalogue.put(server(), [tool("read_file"), tool("search")])
    catalogue.put(server("web"), [tool("search", "web")])
    assert catalogue.resolve("files__read_file").tool.own_name == "read_file"
    assert catalogue.resolve("read_file").tool.name == "files__read_file"
    assert catalogue.resolve("files.read-file").tool.name == "files__read_file"
    assert catalogue.resolve("Files/READ_FILE").tool.name == "files__read_file"
    for nothing in ("", "__", "-"):
        with pytest.raises(NotFound):
            catalogue.resolve(nothing)
    with pytest.raises(NotFound, match="files__search, web__search"):
        catalogue.resolve("search")
    catalogue.deny("web__search")
    assert catalogue.resolve("search").tool.name == "files__search"


def test_a_name_that_nobody_has_is_answered_with_the_nearest(catalogue):
    catalogue.put(server(), [tool("read_file"), tool("write_file"), tool("list_folders")])
    with pytest.raises(NotFound, match="did you mean files__read_file"):
        catalogue.resolve("files__raed_file")
    with pytest.raises(NotFound, match=r"try find_tools\(query\)"):
        catalogue.resolve("zzzzzz")


def test_a_bare_name_of_hotset_s_own_is_never_another_source_s(catalogue):
    catalogue.put(server("github"), [tool("search_code", "github")])
    assert catalogue.get("github__search_code").state is ToolState.READY
    with pytest.raises(NotFound):
        catalogue.resolve("search_code")


def test_rules_deny_by_pattern_and_a_word_about_the_project_wins(tmp_path):
    catalogue = catalogue_in(tmp_path / "tools", deny=("*__delete_*", "web"))
    catalogue.put(server(), [tool("read_file"), tool("delete_file")])
    catalogue.put(server("web"), [tool("search", "web")])
    assert catalogue.get("files__delete_file").state is ToolState.DENIED
    assert catalogue.get("web__search").state is ToolState.DENIED
    with pytest.raises(ToolRefused, match="denied"):
        catalogue.may_run(server("web"))
    catalogue.allow("web")
    catalogue.deny("files__read_*")
    assert catalogue.get("web__search").state is ToolState.READY
    known = catalogue.get("files__read_file")
    assert known.state is ToolState.DENIED
    assert "hotset tools allow files__read_*" in known.why
    catalogue.allow("files__read_*")
    assert catalogue_in(tmp_path / "tools").get("files__read_file").state is ToolState.READY


def test_a_list_of_permissions_shuts_out_everything_else(tmp_path):
    catalogue = catalogue_in(tmp_path / "tools", allow=("files__read_*",))
    catalogue.put(server(), [tool("read_file"), tool("delete_file")])
    assert catalogue.get("files__read_file").state is ToolState.READY
    assert catalogue.get("files__delete_file").state is ToolState.DENIED
    catalogue.allow("files__delete_file")
    assert catalogue.get("files__delete_file").state is ToolState.READY


def test_a_permission_is_no_list_of_permissions(catalogue):
    catalogue.put(server(), [tool("read_file"), tool("write_file")])
    catalogue.allow("files__read_file")
    assert catalogue.get("files__write_file").state is ToolState.READY


def test_rules_that_cannot_be_read_deny_everything_and_are_told(catalogue, tmp_path):
    catalogue.put(server(), [tool("read_file")])
    (tmp_path / "tools" / "rules.json").write_text('{"deny": ["files__')
    assert catalogue.get("files__read_file").state is ToolState.DENIED
    assert "cannot be understood" in catalogue.troubles()[0]
    with pytest.raises(BadConfig):
        catalogue.allow("files__read_file")
    (tmp_path / "tools" / "rules.json").unlink()
    assert catalogue.get("files__read_file").state is ToolState.READY


def test_the_rules_of_an_earlier_version_are_taken_over_once(tmp_path):
    old = tmp_path / "tools" / "rules.json"
    old.parent.mkdir()
    old.write_text('{"allow": [], "deny": ["files__write_*"]}')
    catalogue = catalogue_in(tmp_path / "tools")
    catalogue.put(server(), [tool("read_file"), tool("write_file")])
    assert catalogue.get("files__write_file").state is ToolState.DENIED
    assert not old.exists()
    assert catalogue_in(tmp_path / "tools").get("files__write_file").state is ToolState.DENIED
    assert catalogue.get("files__read_file").state is ToolState.READY


def test_a_store_that_cannot_be_read_leaves_the_rules_as_they_were_and_denies_what_nobody_could_read(  # noqa: E501
    tmp_path,
):
    opened = catalogue_in(tmp_path / "tools")
    opened.put(server(), [tool("read_file")])

    def closed():
        raise StoreFailed("the store is not open")

    catalogue = Catalogue(tmp_path / "tools", closed)
    assert catalogue.get("files__read_file").state is ToolState.DENIED
    assert "the store is not open" in catalogue.troubles()[0]


def test_the_version_changes_with_anything_and_only_then(catalogue, tmp_path):
    versions = [catalogue.version()]
    catalogue.put(server(), [tool("read_file")])
    versions.append(catalogue.version())
    catalogue.put(server(), [tool("read_file", description="Other.")])
    versions.append(catalogue.version())
    catalogue.approve("files__read_file")
    versions.append(catalogue.version())
    catalogue.deny("files")
    versions.append(catalogue.version())
    catalogue.drop("files")
    versions.append(catalogue.version())
    assert len(set(versions)) == len(versions)
    assert catalogue.version() == catalogue_in(tmp_path / "tools").version() == versions[-1]


def test_settings_that_change_are_another_version(tmp_path):
    catalogue_in(tmp_path / "tools").put(server(), [tool("read_file")])
    versions = {
        catalogue_in(tmp_path / "tools", **more).version()
        for more in ({}, {"deny": ("a",)}, {"allow": ("a",)})
    }
    assert len(versions) == 3


def test_a_source_is_counted_by_what_it_offers_and_what_waits(catalogue):
    catalogue.put(server(), [tool("a"), tool("b"), tool("c"), tool("d", description="D.\u200b")])
    catalogue.put(
        server(), [tool("a"), tool("b", description="Other."), tool("d", description="D.\u200b")]
    )
    (shelf,) = catalogue.sources()
    assert (shelf.tools, shelf.pending) == (3, 2)
    catalogue.approve("files")
    (shelf,) = catalogue.sources()
    assert (shelf.tools, shelf.pending) == (3, 0)


def test_a_folder_that_somebody_removed_is_an_empty_catalogue(catalogue, tmp_path):
    catalogue.put(server(), [tool("read_file")])
    shutil.rmtree(tmp_path / "tools" / "catalogue")
    assert catalogue.get("files__read_file") is None
    assert list(catalogue.tools()) == []
    assert catalogue.sources() == ()
    with pytest.raises(StoreFailed):
        catalogue.put(server(), [tool("read_file")])


def test_instructions_of_a_server_are_held_to_what_was_first_said(catalogue):
    catalogue.put(server(), [tool("read")], instructions="Paths are relative.")
    assert catalogue.instructions("files") == "Paths are relative."
    catalogue.put(server(), [tool("read")], instructions="Paths are absolute.")
    assert catalogue.instructions("files") == "Paths are relative."
    catalogue.approve("files")
    assert catalogue.instructions("files") == "Paths are absolute."


def test_instructions_that_hide_something_are_not_handed_out(catalogue):
    catalogue.put(server(), [tool("read")], instructions="Paths.\U000e0049\U000e0067")
    assert catalogue.instructions("files") == ""
    catalogue.approve("files")
    assert catalogue.instructions("files") != ""


def test_everything_is_private_to_its_owner(catalogue, tmp_path):
    catalogue.put(server(), [tool("read_file")])
    catalogue.deny("x")
    for path in [tmp_path / "tools", *(tmp_path / "tools").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.slow
def test_a_file_cut_at_any_byte_is_set_aside_and_told_and_the_others_work(catalogue, tmp_path):
    catalogue.put(server(), [tool("read_file")])
    catalogue.put(server("web"), [tool("search", "web")])
    path = file_of(tmp_path, "files")
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at])
        fresh = catalogue_in(tmp_path / "tools")
        assert fresh.get("files__read_file") is None
        assert fresh.get("web__search").state is ToolState.READY
        assert [known.tool.name for known in fresh.tools()] == ["web__search"]
        assert "damaged" in fresh.troubles()[0]
        assert path.with_name(path.name + ".damaged").read_bytes() == whole[:at]
    fresh.put(server(), [tool("read_file")])
    assert fresh.get("files__read_file").state is ToolState.READY


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00" * 400,
        b"[]",
        b'{"name":3}',
        b"[" * 100_000,
        b'{"name":"files","origin":"server","tools":[1]}',
    ],
)
def test_a_file_of_garbage_is_set_aside_under_a_catalogue_that_is_open(
    catalogue, tmp_path, garbage
):
    catalogue.put(server(), [tool("read_file")])
    assert catalogue.get("files__read_file") is not None
    path = file_of(tmp_path, "files")
    path.write_bytes(garbage)
    assert catalogue.get("files__read_file") is None
    assert list(catalogue.tools()) == []
    assert "damaged" in catalogue.troubles()[0]
    assert catalogue.put(server(), [tool("read_file")]).added == ("files__read_file",)


def test_a_tool_whose_own_entry_is_no_entry_does_not_crash_the_look_up(catalogue, tmp_path):
    catalogue.put(server(), [tool("read_file")])
    edit(
        file_of(tmp_path, "files"),
        lambda said: said["tools"]["files__read_file"].update(gone="perhaps"),
    )
    assert catalogue.get("files__read_file") is None
    assert "damaged" in catalogue.troubles()[0]


def test_a_file_of_a_newer_hotset_is_neither_read_nor_overwritten(catalogue, tmp_path):
    catalogue.put(server(), [tool("read_file")])
    path = file_of(tmp_path, "files")
    edit(path, lambda said: said.update(format=2))
    content = path.read_bytes()
    fresh = catalogue_in(tmp_path / "tools")
    assert fresh.get("files__read_file") is None
    assert "newer hotset" in fresh.troubles()[0]
    with pytest.raises(StoreTooNew):
        fresh.put(server(), [tool("read_file")])
    assert path.read_bytes() == content


def test_an_approval_that_somebody_wrote_into_the_file_is_none(catalogue, tmp_path):
    catalogue.put(server(), [tool("read_file", description="Reads.\u200b")])
    assert catalogue.get("files__read_file").state is ToolState.FLAGGED
    path = file_of(tmp_path, "files")
    for wrong in ("yes", "0" * 64, catalogue.get("files__read_file").digest[:-1] + "x"):
        edit(
            path, lambda said, wrong=wrong: said["tools"]["files__read_file"].update(approved=wrong)
        )
        assert catalogue.get("files__read_file").state is ToolState.FLAGGED
        assert catalogue_in(tmp_path / "tools").get("files__read_file").state is ToolState.FLAGGED


def test_a_text_that_somebody_wrote_into_the_file_is_not_accepted(catalogue, tmp_path):
    catalogue.put(server(), [tool("read_file")])
    edit(
        file_of(tmp_path, "files"),
        lambda said: said["tools"]["files__read_file"]["pin"].update(
            description="Reads and sends."
        ),
    )
    known = catalogue.get("files__read_file")
    assert known.state is ToolState.CHANGED
    assert "is not the one that was accepted" in known.why
    catalogue.approve("files__read_file")
    assert catalogue.get("files__read_file").state is ToolState.READY


@pytest.mark.slow
def test_processes_that_put_and_approve_at_once_lose_nothing(tmp_path):
    names, many = ("a", "b", "c"), 6
    owns = [f"{name}{number}" for name in names for number in range(many)]
    with closing(SqliteStore.open(tmp_path / "tools" / "store")) as store:
        catalogue = Catalogue(tmp_path / "tools", lambda: store)
        catalogue.put(server("shared"), [tool(own, "shared") for own in owns])
        catalogue.put(server("shared"), [tool(own, "shared", "Changed.") for own in owns])
        script = Path(__file__).with_name("catalogue_process.py")
        started = [
            subprocess.Popen([sys.executable, script, tmp_path / "tools", name, str(many)])
            for name in names
        ]
        assert [each.wait(120) for each in started] == [0, 0, 0]
        for own in owns:
            shared, one, two = (
                catalogue.get(name) for name in (f"shared__{own}", f"{own}__one", f"{own}__two")
            )
            assert (shared.state, shared.tool.description) == (ToolState.READY, "Changed.")
            assert (one.state, one.tool.description) == (ToolState.READY, "Something else.")
            assert two.state is ToolState.DENIED
        assert not catalogue.troubles()
        assert not list((tmp_path / "tools").rglob(".*.json.*"))


def test_a_tool_without_a_schema_or_with_a_broken_one_is_kept_as_it_is(catalogue):
    for number, raw in enumerate((b"", b"{", b"\xff\xfe", b"[" * 5000, b'{"a":1e999}')):
        given = tool(f"t{number}")
        given = type(given)(
            given.name, given.source, given.origin, given.own_name, given.description, raw
        )
        catalogue.put(server(f"s{number}"), [given])
        (known,) = [each for each in catalogue.tools() if each.tool.source == f"s{number}"]
        assert known.tool.parameters == raw.decode("utf-8", "replace").encode()


def test_a_schema_keeps_the_bytes_that_its_source_gave(catalogue):
    raw = json.dumps(SCHEMA, indent=3).encode()
    given = tool("read")
    catalogue.put(
        server(),
        [
            type(given)(
                given.name, given.source, given.origin, given.own_name, given.description, raw
            )
        ],
    )
    assert catalogue.get("files__read").tool.parameters == raw
