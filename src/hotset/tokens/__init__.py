"""Token counts: exact for OpenAI's models and a steady measure for all others, offline.

Importing this is free; the first count in an encoding loads it (a quarter of a second), which
`warm` does beforehand.
"""

from hotset.tokens.counter import count, image, warm
from hotset.tokens.encodings import Encoding, encoding_of, is_exact, is_loaded

__all__ = ["Encoding", "count", "encoding_of", "image", "is_exact", "is_loaded", "warm"]
