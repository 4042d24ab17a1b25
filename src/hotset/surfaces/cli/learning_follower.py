"""Learning beside a proxy: `hotset learn now` in a child process when sessions ended and nobody
works."""

from __future__ import annotations

import time

from hotset.config import Config
from hotset.errors import HotsetError
from hotset.runtime.learned_state import is_teaching_due
from hotset.runtime.reader import has_store, open_to_look
from hotset.surfaces.cli.child import ChildFollower

_LOOK_SECONDS = 60.0
_REST_SECONDS = 1800.0  # between two runs


def learning_follower(config: Config) -> ChildFollower:
    """Learns from the sessions that ended, while the block runs and learning is on."""

    def is_due() -> bool:
        if not config.learns or not has_store(config.folder):
            return False
        try:
            with open_to_look(config.folder) as store:
                return is_teaching_due(store, time.time())
        except HotsetError:  # a store that is down is reported elsewhere
            return False

    now = ("learn", "now")
    return ChildFollower(config, now, is_due, rest=_REST_SECONDS, every=_LOOK_SECONDS)
