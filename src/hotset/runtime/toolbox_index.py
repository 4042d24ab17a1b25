"""Opens what finds a project's tools: an index of its own, so that a question for a tool finds nothing else, and past uses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hotset.index.port import Index
from hotset.nouns.embedding import Embedding

if TYPE_CHECKING:
    from hotset.sources.tools.finding import Finding


def open_finding(folder: Path, embedding: Embedding) -> tuple[Index, Finding]:
    """In the folder of a project's tools. Raises `BadConfig` where what was chosen for embedding cannot be used."""
    from hotset.index.embed.choosing import embedders  # noqa: PLC0415 - a quarter of a second, and 60 MB, that no start pays
    from hotset.index.embed.table import Table  # noqa: PLC0415
    from hotset.index.local import LocalIndex  # noqa: PLC0415
    from hotset.sealing import VERSION  # noqa: PLC0415
    from hotset.sources.tools.finding import FOLDER, Finding  # noqa: PLC0415
    from hotset.sources.tools.uses import Uses  # noqa: PLC0415

    made = embedders(embedding)
    index = LocalIndex(folder / FOLDER, made.documents, made.asking, sealing=VERSION)
    # Past questions are compared with every new one: an endpoint elsewhere would make each of them wait.
    table = made.documents if isinstance(made.documents, Table) else Table()
    return index, Finding(index, table, Uses(folder, table))
