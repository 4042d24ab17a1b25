"""Finds a function, class, section or setting by name, with its whole body: by brackets and
indentation, in any language; HTML sections by heading, title or anchor."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple

from hotset.nouns.retrieval import Span
from hotset.text.outline import defined_names, find_definitions, headings, split_name
from hotset.text.words import once
from hotset.window.slice.fit import Count, Cut
from hotset.window.slice.lines import Text, merge_spans, show, show_parts

_NAMES_LOOKED_AT = 200_000  # characters searched for names to propose
_MOST_PLACES = 50  # definitions of one name


def by_symbol(text: str, name: str, room: int, count: Count) -> Cut:
    by_line = Text(text)
    spans = merge_spans(find_definitions(by_line.bare, name), within=0)
    several = f"{len(spans)} definitions: " if len(spans) > 1 else ""
    if spans:
        return show(by_line, spans, room, count, what=several)
    if parts := html_sections(text, name)[:_MOST_PLACES]:
        return show_parts(
            text, parts, room, count, what=f"{len(parts)} sections: " if len(parts) > 1 else ""
        )
    return Cut("", whole=False, note=_no_definition(by_line, name))


def _no_definition(text: Text, name: str) -> str:
    lines = text.bare
    joined = "\n".join(lines)[:_NAMES_LOOKED_AT]
    known = once((*defined_names(joined), *headings(lines), *html_headings(joined)))
    wanted = split_name(name)[1]
    close = get_close_matches(wanted, known, 8, 0.5) or known[:12]
    mentions = [str(at) for at, line in enumerate(lines, 1) if wanted and wanted in line][:8]
    hints = [f"no definition of {name[:80]}"]
    if mentions:
        hints.append(f"mentioned in lines {', '.join(mentions)}")
    if close:
        hints.append(f"defined here: {', '.join(each[:80] for each in close)}")
    return "; ".join(hints) if len(hints) > 1 else f"{hints[0]} or anything else; use lines"


_HEADING = re.compile(
    r"<(?P<tag>h[1-6]|title)\b[^<>]{0,1000}>(?P<text>.{0,1000}?)</(?P=tag)\b[^<>]{0,50}>",
    re.IGNORECASE | re.DOTALL,
)
_TAG = re.compile(r"<[^<>]{0,1000}>")
_MOST_HEADINGS = 5000
_MOST_TAGS = 20_000  # counted up to the end of an element
_NEAR = 200  # characters between an empty anchor and its heading


class _Heading(NamedTuple):
    start: int
    end: int
    """After its text."""
    level: int
    """0 for a title."""
    text: str


def html_headings(text: str) -> list[str]:
    """The texts of the headings, in order."""
    return list(dict.fromkeys(each.text for each in _headings(text) if each.text))


def html_sections(text: str, name: str) -> list[Span]:
    """Character spans of the sections with this heading, title or anchor."""
    wanted = _plain_text(name).strip("`\"'# ").lower()
    if not wanted:
        return []
    every = list(_headings(text))
    for fits in (lambda heading: heading == wanted, lambda heading: wanted in heading):
        found = [
            _section(text, every, at) for at, each in enumerate(every) if fits(each.text.lower())
        ]
        if found:
            return _without_nested(found)
    return _without_nested([_element(text, every, tag) for tag in _anchors(text, wanted)])


def _headings(text: str) -> Iterator[_Heading]:
    for count, found in enumerate(_HEADING.finditer(text)):
        if count == _MOST_HEADINGS:
            return
        level = 0 if found["tag"].lower() == "title" else int(found["tag"][1])
        yield _Heading(found.start(), found.end(), level, _plain_text(found["text"]))


def _plain_text(markup: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", markup)).split())


def _section(text: str, every: list[_Heading], at: int) -> Span:
    """From the heading to the next one of the same or a higher level; a title is alone."""
    own = every[at]
    if own.level == 0:
        return own.start, own.end
    return own.start, next(
        (each.start for each in every[at + 1 :] if 0 < each.level <= own.level), len(text)
    )


def _anchors(text: str, name: str) -> Iterator[re.Match[str]]:
    anchor = re.compile(
        rf"<(?P<tag>\w{{1,40}})\b[^<>]{{0,1000}}?\s(?:id|name)\s*=\s*[\"']?{re.escape(name)}(?=[\"'\s>])[^<>]{{0,1000}}>",
        re.IGNORECASE,
    )
    return anchor.finditer(text)


def _element(text: str, every: list[_Heading], tag: re.Match[str]) -> Span:
    """An anchored element to its end; the section if the anchor is on a heading or empty before
    one."""
    close = _element_end(text, tag)
    empty = not _plain_text(text[tag.end() : close])
    own = next(
        (
            at
            for at, each in enumerate(every)
            if tag.start() <= each.start <= (close + _NEAR if empty else tag.start())
        ),
        None,
    )
    return (tag.start(), close) if own is None else (tag.start(), _section(text, every, own)[1])


def _element_end(text: str, tag: re.Match[str]) -> int:
    """Where the element opened by this tag ends."""
    depth = 1
    same = re.compile(rf"<(?P<ends>/?){tag['tag']}\b[^<>]{{0,1000}}>", re.IGNORECASE)
    for count, found in enumerate(same.finditer(text, tag.end())):
        depth += -1 if found["ends"] else 1
        if depth == 0:
            return found.end()
        if count == _MOST_TAGS:
            break
    return tag.end()


def _without_nested(found: list[Span]) -> list[Span]:
    """The spans that are not inside others."""
    kept: list[Span] = []
    for start, end in sorted(found):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept
