"""How a page is shown, and why."""

from __future__ import annotations

from enum import StrEnum


class Form(StrEnum):
    """How a page is shown."""

    FULL = "full"
    EXCERPT = "excerpt"
    """What a reader needs of it, by content type."""
    ECHO = "echo"
    """A line that says where the window has the same content."""
    OVERLAP = "overlap"
    """Its new lines; for the others, a line that says which turn shows them."""
    CHANGE = "change"
    """What differs from a version that the window has."""
    STUB = "stub"
    """The line that stays of what left."""
    GONE = "gone"
    """Its whole message left; the stub of its run is where the run began."""


class Cause(StrEnum):
    """Why a page got its form."""

    BIRTH = "birth"
    """It was decided when the page was first shown."""
    OVERFLOW = "overflow"
    """The window would have been exceeded."""
    COLD = "cold"
    """The provider had dropped its cache anyway."""
    REWOUND = "rewound"
    """The client had changed the past anyway."""
    PAYS = "pays"
    """The price model says that rewriting the prefix costs less than reading it on."""
    HANDOFF = "handoff"
    """The window was handed over to a successor."""
    PERSON = "person"
    """A person ordered it."""
    GROWN = "grown"
    """The share of the window at which a checkpoint is due was passed."""
