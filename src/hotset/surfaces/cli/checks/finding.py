"""What a check found, and what it looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hotset.config import Config
from hotset.surfaces.proxy.address import Address


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    about: str
    level: Level
    says: str
    todo: str = ""
    """What to do about it; empty where all is well."""


@dataclass(frozen=True, slots=True)
class CheckScene:
    """Everything that the checks look at, gathered once."""

    config: Config
    env: Mapping[str, str]
    now: float
    address: Address | None
    """The note of the last proxy."""
    status: Mapping[str, Any] | None
    """What that proxy says of itself; None where it does not answer."""

    @property
    def serving(self) -> Address | None:
        return self.address if self.status is not None else None


def ok(about: str, says: str) -> Finding:
    return Finding(about, Level.OK, says)


def warn(about: str, says: str, todo: str) -> Finding:
    return Finding(about, Level.WARN, says, todo)


def fail(about: str, says: str, todo: str) -> Finding:
    return Finding(about, Level.FAIL, says, todo)
