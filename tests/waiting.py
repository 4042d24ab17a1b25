"""What happens in another thread or process, waited for; and whether a process lives."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hotset.surfaces.proxy import address
from hotset.testing.proxy import PATIENCE


def wait_until(true: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def ask(of: address.Address) -> dict[str, Any] | None:
    """What the proxy at this address says of itself, also on a busy machine."""
    return address.ask_proxy(of, patience=PATIENCE)


def lives(pid: int) -> bool:
    """A zombie does not, where the system tells."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return not Path("/proc").exists()
    except ProcessLookupError:  # also while the file is read
        return False
