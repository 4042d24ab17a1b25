"""What a call does with each of its arguments."""

from __future__ import annotations

import json

import pytest

from hotset.text.call_shape import names_path
from hotset.window.arguments import ArgumentUse, arguments, spoken


@pytest.mark.parametrize(
    ("call", "uses"),
    [
        (
            {"path": "a.py", "oldText": "x", "newText": "y"},
            [ArgumentUse.GIVEN, ArgumentUse.REPLACED, ArgumentUse.WRITTEN],
        ),
        (
            {"file_path": "a.py", "old_string": "x", "new_string": "y"},
            [ArgumentUse.GIVEN, ArgumentUse.REPLACED, ArgumentUse.WRITTEN],
        ),
        (
            {"edits": [{"search": "x", "replace": "y"}], "path": "a.py"},
            [ArgumentUse.REPLACED, ArgumentUse.WRITTEN, ArgumentUse.GIVEN],
        ),
        ({"path": "a.py", "content": "y"}, [ArgumentUse.GIVEN, ArgumentUse.WRITTEN]),
        ({"command": "create", "file_text": "y"}, [ArgumentUse.GIVEN, ArgumentUse.WRITTEN]),
        ({"query": "x", "newest": True, "limit": 3}, [ArgumentUse.GIVEN, ArgumentUse.GIVEN]),
        ({"new_name": "x", "id": 7}, [ArgumentUse.GIVEN, ArgumentUse.GIVEN]),
        ("only words", [ArgumentUse.GIVEN]),
    ],
)
def test_edits_tell_what_they_replace_and_what_they_write(call, uses):
    assert [argument.use for argument in arguments(json.dumps(call).encode())] == uses


def test_arguments_that_are_no_json_are_said_as_they_are():
    assert spoken(b"*** Begin Patch\n+line") == "*** Begin Patch\n+line"


def test_a_tool_for_files_says_which_file_and_a_shell_does_not():
    for key in ("file_path", "filePath", "path", "target_file", "absolute_path", "file_name"):
        assert names_path(b'{"%s": "a.py"}' % key.encode())
    assert not names_path(b'{"command": "cat a.py"}')
