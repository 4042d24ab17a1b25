"""What turns texts into vectors, as the operator chose it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

AUTO, OFF = "auto", "off"
"""Values of `minilm` that are not a file's path."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """A table that comes with hotset, unless something else is named."""

    minilm: str = AUTO
    """The weights of the model that reads questions: a file, those of an installed package if there
    is one, or none."""
    url: str = ""
    """An endpoint that embeds everything, instead of the table; empty is none."""
    model: str = ""
    """The endpoint's."""
    size: int = 0
    """The numbers of the endpoint's vectors."""
    key: str = field(default="", repr=False)
    """The endpoint's: never a client's. From the environment alone."""

    @property
    def of_documents(self) -> Embedding:
        """The same without the model that reads questions."""
        return replace(self, minilm=OFF)
