"""How many tokens something is: exact for OpenAI's models and a steady measure for all others,
offline.

Importing this costs nothing; the first count of an encoding loads it (a quarter of a second), which
`warm` does beforehand.
"""

from hotset.tokens.counting import count, warm
from hotset.tokens.images import image
from hotset.tokens.models import Encoding, encoding_of, exact

__all__ = ["Encoding", "count", "encoding_of", "exact", "image", "warm"]
