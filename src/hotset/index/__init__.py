"""The search index: words and meaning together, derived from data kept elsewhere, rebuilt when
needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hotset.index.port import Index
    from hotset.nouns.embedding import Embedding

FOLDER = "index"
"""Folder name in a project's data folder."""


def open_index(
    folder: Path,
    embedding: Embedding | None = None,
    *,
    folds: bool = True,
    makes_folder: bool = True,
) -> Index:
    """The index of a project's data folder, created if missing. A read-only process need not fold.

    Raises `BadConfig` if the configured embedder cannot be used, and `StoreFailed` if the data
    folder is missing and not to be made. Without a choice the embedder is the table alone.
    """
    # Imported here: a quarter of a second, and 60 MB, that no start pays.
    from hotset.files.private_folder import private_folder  # noqa: PLC0415
    from hotset.index.embed.embedders import embedders  # noqa: PLC0415
    from hotset.index.local import LocalIndex  # noqa: PLC0415
    from hotset.nouns.embedding import OFF, Embedding  # noqa: PLC0415
    from hotset.sealing import VERSION  # noqa: PLC0415

    private_folder(folder, makes=makes_folder)
    made = embedders(embedding or Embedding(OFF))
    return LocalIndex(folder / FOLDER, made.documents, made.asking, sealing=VERSION, folds=folds)
