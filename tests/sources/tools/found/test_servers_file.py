"""`servers.json`: what a person chose, with one bad entry never in the way of the others."""

from __future__ import annotations

import json
import stat
import threading

import pytest
from hypothesis import given, settings, strategies as st

from hotset.errors import BadConfig, NotFound
from hotset.nouns.tool import Http, OriginKind, Stdio
from hotset.sources.tools.found.servers import (
    add_servers,
    escape_variables,
    read_servers,
    remove_server,
    resolve_variables,
)

ENVIRON = {"HOME": "/home/me", "KEY": "k-1", "EMPTY": "", "NESTED": "${KEY}"}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "tools" / "servers.json"


def put(file, servers, **more):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mcpServers": servers, **more}))
    return read_servers(file, ENVIRON)


def test_a_file_that_is_missing_has_no_servers(file):
    assert read_servers(file, {}).sources == ()
    assert read_servers(file, {}).troubles == ()


def test_commands_and_addresses_become_sources(file):
    read = put(
        file,
        {
            "files.local": {
                "command": "npx",
                "args": ["-y", "server"],
                "env": {"TOKEN": "${KEY}"},
                "cwd": "~/work",
                "shared": True,
            },
            "wiki": {
                "type": "http",
                "url": "https://example.com/mcp?a=1",
                "headers": {"Authorization": "Bearer ${KEY}"},
            },
        },
    )
    first, second = read.sources
    assert (first.name, first.origin, first.shared, first.trusted) == (
        "files_local",
        OriginKind.SERVER,
        True,
        True,
    )
    assert first.launch == Stdio(("npx", "-y", "server"), {"TOKEN": "k-1"}, "/home/me/work")
    assert second.launch == Http("https://example.com/mcp?a=1", {"Authorization": "Bearer k-1"})
    assert second.shared is False
    assert read.troubles == ()


@pytest.mark.parametrize(
    ("name", "entry", "because"),
    [
        ("../evil", {"command": "x"}, "name"),
        ("", {"command": "x"}, "name"),
        ("a" * 65, {"command": "x"}, "name"),
        ("created", {"command": "x"}, "hotset's own"),
        ("hotset", {"command": "x"}, "hotset's own"),
        ("a", "npx server", "no object"),
        ("a", {}, "either a command or a url"),
        ("a", {"command": "x", "url": "http://y"}, "either a command or a url"),
        ("a", {"command": ["npx"]}, "command must be text"),
        ("a", {"command": " "}, "command must be text"),
        ("a", {"command": "${EMPTY}"}, "empty"),
        ("a", {"command": "x", "args": "-y"}, "args must be a list"),
        ("a", {"command": "x", "args": [1]}, "args must be a list"),
        ("a", {"command": "x", "args": ["a\0b"]}, "zero byte"),
        ("a", {"command": "x", "env": {"A": 1}}, "env must be an object"),
        ("a", {"command": "x", "env": {"A=B": "c"}}, "name that cannot be one"),
        ("a", {"command": "x", "args": ["${MISSING}"]}, "MISSING is not set"),
        ("a", {"command": "x", "args": ["${input:key}"]}, "no variable"),
        ("a", {"command": "x", "type": "http"}, "type"),
        ("a", {"command": "x", "shared": "yes"}, "shared must be true or false"),
        ("a", {"url": "file:///etc/passwd"}, "no http"),
        ("a", {"url": "https://"}, "no http"),
        ("a", {"url": "https://host:99999/"}, "no http"),
        ("a", {"url": "https://ho st/"}, "no http"),
        ("a", {"url": "https://host/a\x01b"}, "no http"),
        ("a", {"url": "https://host/a\nb"}, "no http"),
        ("a", {"url": "https://me:secret@host/mcp"}, "password"),
        ("a", {"url": "https://host/sse", "type": "sse"}, "streamable HTTP"),
        ("a", {"url": "https://host", "headers": {"X": "a\r\nY: b"}}, "headers cannot have"),
        ("a", {"url": "https://host", "headers": {"X Y": "a"}}, "name that cannot be one"),
    ],
)
def test_an_entry_that_cannot_be_used_is_told_and_the_others_work(file, name, entry, because):
    read = put(file, {name: entry, "good": {"command": "x"}})
    assert [each.name for each in read.sources] == ["good"]
    (trouble,) = read.troubles
    assert because in trouble
    assert str(file) in trouble
    assert "secret" not in trouble


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"mcpServers": []}', "\ufeff\xff", "[" * 100_000, "// no\n{}"]
)
def test_a_file_that_cannot_be_read_is_told_and_never_written_over(file, text):
    file.parent.mkdir()
    file.write_bytes(text.encode("latin-1", "replace"))
    read = read_servers(file, {})
    assert read.sources == ()
    assert str(file) in read.troubles[0]
    before = file.read_bytes()
    with pytest.raises(BadConfig):
        add_servers(file, {"a": {"command": "x"}})
    assert file.read_bytes() == before


def test_of_two_names_that_tools_could_not_tell_apart_the_first_holds(file):
    read = put(file, {"a.b": {"command": "x"}, "a_b": {"command": "y"}})
    assert [each.launch for each in read.sources] == [Stdio(("x",))]
    assert "rename" in read.troubles[0]


def test_one_that_is_switched_off_is_no_source(file):
    read = put(
        file,
        {"a": {"command": "x", "disabled": True}, "b": {"command": "${MISSING}", "enabled": False}},
    )
    assert (read.sources, read.troubles) == ((), ())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${KEY}", "k-1"),
        ("a${KEY}b${KEY}", "ak-1bk-1"),
        ("${NO:-x y}", "x y"),
        ("${NO:-}", ""),
        ("${EMPTY:-x}", "x"),
        ("${EMPTY}", ""),
        ("${KEY:-x}", "k-1"),
        ("${NESTED}", "${KEY}"),
        ("$KEY $ {KEY}", "$KEY $ {KEY}"),
        ("$${KEY}", "${KEY}"),
    ],
)
def test_a_variable_is_resolved_once(text, value):
    assert resolve_variables(text, ENVIRON) == value


@settings(deadline=None)
@given(st.text(alphabet="${}:-AKEY", max_size=20))
def test_a_literal_text_comes_back_as_it_was(text):
    assert resolve_variables(escape_variables(text), ENVIRON) == text


def test_a_stamp_tells_two_launches_apart_and_stays_the_same_for_one(file):
    entries = [
        {"command": "x"},
        {"command": "x", "args": ["a"]},
        {"command": "x", "env": {"A": "b"}},
        {"command": "x", "env": {"A": "${KEY}"}},
        {"command": "x", "cwd": "/"},
        {"url": "http://x"},
        {"url": "http://x", "headers": {"A": "b"}},
    ]
    stamps = [put(file, {"a": entry}).sources[0].stamp for entry in entries]
    assert len(set(stamps)) == len(entries)
    assert [put(file, {"a": entry}).sources[0].stamp for entry in entries] == stamps
    assert "k-1" not in "".join(stamps)


def test_servers_are_added_and_removed_and_everything_else_stays(file):
    put(file, {"old": {"command": "x", "note": "mine", "timeout": 3}}, other={"z": 1, "a": "ü"})
    added = add_servers(
        file, {"new": {"url": "https://x", "headers": {"A": "${LATER}"}}, "old": {"command": "y"}}
    )
    assert (added.added, added.kept, added.replaced) == (("new",), ("old",), ())
    whole = json.loads(file.read_text())
    assert list(whole) == ["mcpServers", "other"]
    assert list(whole["mcpServers"]) == ["old", "new"]
    assert whole["mcpServers"]["old"] == {"command": "x", "note": "mine", "timeout": 3}
    assert whole["other"] == {"z": 1, "a": "ü"}
    assert add_servers(file, {"old": {"command": "y"}}, replace=True).replaced == ("old",)
    assert remove_server(file, "old") == {"command": "y"}
    assert list(json.loads(file.read_text())["mcpServers"]) == ["new"]


def test_a_file_of_ours_is_private_and_nothing_is_left_beside_it(file):
    add_servers(file, {"a": {"command": "x"}})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert sorted(path.name for path in file.parent.iterdir()) == [".lock", "servers.json"]


def test_nothing_is_added_where_one_of_them_cannot_be_used(file):
    with pytest.raises(BadConfig, match="'b'"):
        add_servers(file, {"a": {"command": "x"}, "b": {}})
    assert not file.exists()


def test_to_remove_what_is_not_there_names_what_is(file):
    put(file, {"github": {"command": "x"}})
    with pytest.raises(NotFound, match="github"):
        remove_server(file, "git-hub")


def test_servers_that_are_added_at_the_same_time_are_all_there(file):
    threads = [
        threading.Thread(target=add_servers, args=(file, {f"s{i}": {"command": "x"}}))
        for i in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_servers(file, {}).sources) == 12
