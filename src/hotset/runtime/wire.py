"""What surfaces need of the wire: the dialects, the header rules, and the connection to
upstreams."""

from __future__ import annotations

from hotset.config import Config
from hotset.dialects import DEFAULT, DIALECTS, Dialect, Dialects
from hotset.dialects.json_bytes import Field, fields
from hotset.dialects.view import is_call
from hotset.upstream.headers import back, onward
from hotset.upstream.port import Wire

__all__ = [
    "DEFAULT",
    "DIALECTS",
    "Dialect",
    "Dialects",
    "Field",
    "Wire",
    "back",
    "fields",
    "is_call",
    "onward",
    "open_wire",
]


def open_wire(config: Config) -> Wire:
    """An HTTP connection to the upstreams."""
    from hotset.upstream.http import HttpWire  # noqa: PLC0415 - it takes longer to import than all the rest

    return HttpWire(config.upstreams)
