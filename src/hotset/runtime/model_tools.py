"""What surfaces show a model: the tools of a conversation and of the toolbox with their arguments,
and texts within a token budget."""

from hotset.tokens import count, warm
from hotset.window.birth import shorten_alone
from hotset.window.pieces import typed_pieces
from hotset.window.retrieval_tools import FILTERS, RANGE, RETRIEVE, SEARCH, SPECS, parse_call
from hotset.window.slice.fit import clip_to_tokens, count_fitting
from hotset.window.slice.matches import regex_error
from hotset.window.toolbox_tools import FIND, TOOLBOX_SPECS, USE, parse_find, parse_use

__all__ = [
    "FILTERS",
    "FIND",
    "RANGE",
    "RETRIEVE",
    "SEARCH",
    "SPECS",
    "TOOLBOX_SPECS",
    "USE",
    "clip_to_tokens",
    "count",
    "count_fitting",
    "parse_call",
    "parse_find",
    "parse_use",
    "regex_error",
    "shorten_alone",
    "typed_pieces",
    "warm",
]
