"""Cuts the requested part out of a text within a token budget, and names what to request next.
Pure."""

from __future__ import annotations

from hotset.nouns.retrieval import JsonPath, Lines, Question, Regex, RowSlice, Slice, Symbol
from hotset.window.slice.fit import Count, Cut
from hotset.window.slice.json_path import by_path, by_rows
from hotset.window.slice.lines import by_lines, from_the_start
from hotset.window.slice.matches import by_question, by_regex
from hotset.window.slice.symbol import by_symbol

__all__ = ["Count", "Cut", "cut"]


def cut(text: str, how: Slice, room: int, count: Count) -> Cut:  # noqa: PLR0911 - one case a way
    """The requested part, never larger than `room` tokens by `count`. If its text is empty, the
    note says what to request instead."""
    match how:
        case Lines():
            return by_lines(text, how.spans, room, count)
        case RowSlice():
            return by_rows(text, how.spans, room, count)
        case JsonPath():
            return by_path(text, how.path, room, count)
        case Symbol():
            return by_symbol(text, how.name, room, count)
        case Regex():
            return by_regex(text, how.pattern, room, count)
        case Question():
            return by_question(text, how.words, room, count)
        case _:
            return from_the_start(text, room, count)
