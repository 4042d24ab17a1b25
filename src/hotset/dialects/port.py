"""What every dialect can do: bytes to nouns and back, without disk, clock or network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from hotset.nouns.message import DialectName, Reply, Request


@dataclass(frozen=True, slots=True)
class Violation:
    """A provider rule that a request breaks."""

    invariant: int
    """Its number in `dialects.invariants.INVARIANTS`."""
    where: str
    """The place in the body, as the provider would write it: `messages.3.content.0`."""
    text: str
    """The provider's own error text, with its gaps filled."""


class Dialect(Protocol):
    """One wire format. `hotset.testing.check_dialect()` is the contract.

    - `render(parse(body)) == body`, byte for byte, for every body that parses.
    - A message that was not replaced keeps its exact bytes in `render`, wherever others were replaced.
    - Blocks, fields and item types that are not known pass, and become `Kind.OPAQUE` parts where they carry content.
    - `read` never raises: it gives back what came, with `complete=False` where the end is missing.
    """

    name: DialectName

    def parse(self, body: bytes) -> Request:
        """Raises `Malformed` for what is not a request of this dialect; nothing else."""
        ...

    def render(self, request: Request) -> bytes: ...

    def read(self, body: bytes, *, streamed: bool) -> Reply:
        """The reply in `body`: a JSON document, or the bytes of an event stream."""
        ...

    def check(self, request: Request, original: Request | None = None) -> tuple[Violation, ...]:
        """Every provider rule that `request` breaks; `original` is what the client sent, for rules about changes."""
        ...

    def refuse(self, status: int, message: str) -> bytes:
        """An error body in this dialect's own form."""
        ...

    def ends(self, chunk: bytes) -> bool:
        """True where these bytes of an event stream carry the mark that ends a reply. Cheap: it runs for every chunk."""
        ...


Dialects = Mapping[DialectName, Dialect]
