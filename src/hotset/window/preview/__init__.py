"""Previews of long texts by content type: faithful excerpts with marked gaps, never longer than
their room."""

from hotset.window.preview.content import ContentOrigin, ContentType, Preview
from hotset.window.preview.preview import closing, preview

__all__ = ["ContentOrigin", "ContentType", "Preview", "closing", "preview"]
