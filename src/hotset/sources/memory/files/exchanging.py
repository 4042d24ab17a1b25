"""Memories out to files and in from them, in either form: what the commands call."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from hotset.errors import BadInput
from hotset.nouns.progress import Progress, silent
from hotset.sources.memory.files.loki import Exported, read_loki, write_loki
from hotset.sources.memory.files.loki_reading import layout
from hotset.sources.memory.files.markdown import has_pages, write_markdown
from hotset.sources.memory.files.markdown_taking import take_markdown
from hotset.sources.memory.files.taking import Taken, take
from hotset.store.port import Store


class Form(StrEnum):
    MARKDOWN = "markdown"
    LOKI = "loki"


def export_memories(
    store: Store,
    folder: Path,
    form: Form,
    progress: Progress = silent,
    economics: Mapping[str, Any] | None = None,
) -> Exported:
    """`economics` are written where the form has a place for them. Raises `BadInput` and `StoreFailed`."""
    if form is Form.MARKDOWN:
        return write_markdown(store, folder, progress)
    return write_loki(store, folder, progress, economics)


def import_memories(
    store: Store,
    folder: Path,
    form: Form | None = None,
    *,
    now: float,
    vouched: bool = False,
    progress: Progress = silent,
) -> Taken:
    """`form` is told from the files where it is not said; `vouched` as in `taking`. Raises `BadInput`, and as the store does."""
    if (form or form_of(folder)) is Form.MARKDOWN:
        return take_markdown(store, folder, now=now, vouched=vouched, progress=progress)
    place = layout(folder).resolve().name
    return take(store, read_loki(folder), place=place, now=now, vouched=vouched, progress=progress)


def form_of(folder: Path) -> Form:
    """Raises `BadInput` where these are no memories."""
    if folder.expanduser().is_dir() and has_pages(folder.expanduser()):
        return Form.MARKDOWN
    try:
        layout(folder)
    except BadInput as error:
        raise BadInput(f"{folder} has no memories in it, neither as pages nor as a `.loki/memory`") from error
    return Form.LOKI
