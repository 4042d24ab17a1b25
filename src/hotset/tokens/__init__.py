"""How many tokens something is: exact for OpenAI's models and a steady measure for all others,
offline.

Importing this costs nothing; the first count of an encoding loads it (a quarter of a second), which
`warm` does beforehand.
"""

from hotset.tokens.counter import count, image, warm
from hotset.tokens.encodings import Encoding, encoding_of, exact

__all__ = ["Encoding", "count", "encoding_of", "exact", "image", "warm"]
