"""Previews of long texts by content type: faithful excerpts with marked gaps, never longer than
their room."""

from hotset.window.preview.content import NO_TASK, ContentOrigin, ContentType, Preview, TaskText
from hotset.window.preview.preview import closing, preview

__all__ = ["NO_TASK", "ContentOrigin", "ContentType", "Preview", "TaskText", "closing", "preview"]
