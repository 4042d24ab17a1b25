"""Scripts as files: JSON lines, one reply each, so that an upstream in its own process can be told
what to say.

{"text": "Let me look.", "calls": [{"name": "read_file", "arguments": {"path": "a.py"}}]}
{"text": "Done.", "fault": {"type": "Reset", "events": 2}}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec

from hotset.testing.upstream.faults import Fault, Hold
from hotset.testing.upstream.script import Call, Say

_FAULTS = {
    kind.__name__: kind for kind in get_args(Fault) if kind is not Hold
}  # a gate cannot be opened from outside


def read_script(path: Path) -> tuple[Say, ...]:
    """Raises `ValueError`, with the line, for a file that is no script."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(
        _say(path, number, line) for number, line in enumerate(lines, start=1) if line.strip()
    )


def _say(path: Path, number: int, line: str) -> Say:
    try:
        fields = msgspec.json.decode(line, type=dict[str, Any])
        calls = tuple(msgspec.convert(call, Call) for call in fields.pop("calls", ()))
        given = fields.pop("fault", None) or ()
        faults = tuple(_fault(fault) for fault in ([given] if isinstance(given, dict) else given))
        return Say(**fields, calls=calls, fault=faults or None)
    except (msgspec.MsgspecError, TypeError, KeyError) as error:
        raise ValueError(f"{path}:{number}: not a reply: {error}") from error


def _fault(fields: Mapping[str, Any]) -> Fault:
    kind = _FAULTS[fields["type"]]
    fault: Fault = msgspec.convert(
        {key: value for key, value in fields.items() if key != "type"}, kind
    )
    return fault
