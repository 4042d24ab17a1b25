"""The promises that tests carry by id. The one table is shipped with the command line."""

from __future__ import annotations

from hotset.surfaces.cli.promises import PROMISES, RowState

STATES: dict[str, RowState] = {promise.id: promise.state for promise in PROMISES}
