"""Export memories to files and import them, in either format."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from hotset.errors import BadInput
from hotset.nouns.progress import Progress, silent
from hotset.sources.memory.exchange.loki import layout, read_loki, write_loki
from hotset.sources.memory.exchange.markdown import has_pages, merge_markdown, write_markdown
from hotset.sources.memory.exchange.merge import MergeReport, merge_memories
from hotset.store.port import Store


class FileFormat(StrEnum):
    MARKDOWN = "markdown"
    LOKI = "loki"


def export_memories(
    store: Store, folder: Path, form: FileFormat, progress: Progress = silent
) -> int:
    """Write all memories; return how many. Raises `BadInput` and `StoreFailed`."""
    write = {FileFormat.MARKDOWN: write_markdown, FileFormat.LOKI: write_loki}[form]
    return write(store, folder, progress)


def import_memories(
    store: Store,
    folder: Path,
    form: FileFormat | None = None,
    *,
    now: float,
    vouched: bool = False,
    progress: Progress = silent,
) -> MergeReport:
    """`form` is detected if None; `vouched` as in `merge`. Raises `BadInput` and the store's
    errors."""
    if (form or format_of(folder)) is FileFormat.MARKDOWN:
        return merge_markdown(store, folder, now=now, vouched=vouched, progress=progress)
    place = layout(folder).resolve().name
    return merge_memories(
        store, read_loki(folder), place=place, now=now, vouched=vouched, progress=progress
    )


def format_of(folder: Path) -> FileFormat:
    """The format of a folder. Raises `BadInput` if it holds no memories."""
    if folder.expanduser().is_dir() and has_pages(folder.expanduser()):
        return FileFormat.MARKDOWN
    try:
        layout(folder)
    except BadInput as error:
        raise BadInput(
            f"{folder} has no memories in it, neither as pages nor as a `.loki/memory`"
        ) from error
    return FileFormat.LOKI
