"""What a reader needs of a long text, by content type: a faithful excerpt with its gaps marked,
never longer than its room."""

from hotset.window.preview.content import ContentOrigin, ContentType, Preview
from hotset.window.preview.preview import closing, preview
from hotset.window.preview.sniffer import sniff

__all__ = ["ContentOrigin", "ContentType", "Preview", "closing", "preview", "sniff"]
