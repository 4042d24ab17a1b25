"""What an operator can choose about tools."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from hotset.nouns.knobs import AtLeastOne, Count, Seconds, Share

Texts = tuple[Annotated[str, Meta(min_length=1)], ...]


class Deferring(StrEnum):
    """Whether tools that were found are handed to the model in the provider's own way, to be called
    by their own names."""

    OFF = "off"
    """They are described in text, and called through `use_tool`."""
    AUTO = "auto"
    """Where the upstream is the provider itself and the model is known to take it
    (`window.deferring`)."""
    ON = "on"
    """Wherever the dialect has a form for it; an upstream that refuses it gets words instead."""


class ClientListing(StrEnum):
    """Which of the client's own tools a session's model sees from the start."""

    ALL = "all"
    AUTO = "auto"
    """Those that one of the latest sessions called (`toolbox.unused`); the others are found with
    `find_tools`, called through `use_tool`, and reach the client as calls of its own tools."""


class Tooling(Struct, frozen=True):
    """The table `[tools]` of the settings."""

    enabled: bool = True
    limit: AtLeastOne = 15
    """Processes that may run at once; the least recently used one makes room."""
    ghosts: Count = 5
    """Tools in a session's list from its first request on; 0 leaves them to `find_tools`."""
    deferred: Deferring = Deferring.OFF
    """Off, because what it does to a session's price and success was measured on a scripted
    provider only."""
    client: ClientListing = ClientListing.ALL
    """All, because what it does to a session's success could not be asked of a model."""
    list_seconds: Seconds = 10.0
    call_seconds: Seconds = 30.0
    idle_seconds: Seconds = 60.0
    """After which an unused process stops; one that is used often is kept up to five times as
    long."""
    create: bool = False
    """Agents may write tools of their own, which then run on this machine."""
    capacity: AtLeastOne = 50
    """Tools that agents created and that are kept at once; a new one evicts the least useful."""
    life_seconds: Annotated[float, Meta(ge=1, le=1_000_000_000)] = 9400.0
    """After which the score of a tool that was used once has fallen to 1/e."""
    inactive_at: Share = 0.1
    """The score at which a tool becomes inactive: after six hours for one that was used once."""
    ttl_seconds: Seconds = 86_400.0
    """After which an inactive tool that an agent created is deleted."""
    pins: Texts = ("filesystem", "terminal", "writer", "git", "note_taker")
    """Patterns of sources and of full tool names whose tools are pinned from their first use on."""
    answer_from_store: bool = False
    """Repeated calls of tools that declare themselves read-only and idempotent are not run again
    while what they read is unchanged (`answers`)."""
    answer_seconds: Seconds = 30.0
    """For how long, where it is unknown what they read."""
    skills: Texts = ()
    """Further folders with skills."""
    allow: Texts = ()
    """Patterns of tool names; where there are any, only what matches one can be found and used."""
    deny: Texts = ()
    """Patterns of tool names that can neither be found nor used."""
