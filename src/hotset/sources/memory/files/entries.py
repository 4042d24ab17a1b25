"""Memories as entries of a Markdown page, and such a page as entries, whatever a person did to it. Pure.

    ## How tokens are signed

    `sem-7ha2c0de` · 2026-01-05 · auth

    <!-- hotset:begin sem-7ha2c0de 1 5c1e09aa77d0b3f2 -->
    RS256, with a key of its own for each service.
    <!-- hotset:end sem-7ha2c0de -->

The title and the text are there to be edited. The marker has the version and a hash of both, so an edit is told from what was
written. All that stands under a heading is its entry; one without a marker is new.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from hotset.nouns.memory import Ending, Memory, MemoryId, Standing
from hotset.sources.memory.files.loki_items import iso_day
from hotset.sources.memory.naming import is_memory_id

_UNTITLED = "Untitled"
_BEGIN = re.compile(r"<!-- hotset:begin ([a-z0-9-]+) (\d{1,9}) ([0-9a-f]{16}) -->")
_END = re.compile(r"<!-- hotset:end ([a-z0-9-]+) -->")
_MARKER = re.compile(r"(<|&(?:amp;)*lt;)!-- hotset:")
_HEAD = re.compile(r"# (?:Facts|Procedures|Pitfalls|Ledgers|Handoffs|Learnings|Episodes, (?:\d{4}-\d\d|undated))")
_ABOUT = re.compile(r"`([a-z0-9-]+)`(?: · .*)?")
_STANDINGS = {Standing.CANDIDATE: "waits for confirmation", Standing.SUPERSEDED: "no longer holds"}


@dataclass(frozen=True, slots=True)
class PageEntry:
    title: str
    text: str
    id: MemoryId | None = None
    version: int = 0
    written: str = ""
    """The hash of what hotset wrote there."""

    @property
    def edited(self) -> bool:
        return self.written != hash_of(self.title, self.text)


def entry_text(memory: Memory) -> str:
    title, text = shown_of(memory)
    ending = memory.ending.value if memory.ending is not Ending.UNKNOWN else ""
    topics = " ".join(", ".join(memory.topics).split())
    about = " · ".join(filter(None, (f"`{memory.id}`", iso_day(memory.created), topics, ending, _STANDINGS.get(memory.standing))))
    marker = f"<!-- hotset:begin {memory.id} {memory.version} {hash_of(title, text)} -->"
    body = f"{_escaped(text)}\n" if text else ""
    return f"## {title}\n\n{about}\n\n{marker}\n{body}<!-- hotset:end {memory.id} -->\n"


def entries_of(page: str) -> Iterator[PageEntry]:
    """In their order. What stands above the first heading is an entry too, unless hotset wrote it."""
    for title, lines in _sections(_plain(page).split("\n")):
        if (entry := _entry(title, lines)) is not None:
            yield entry


def shown_of(memory: Memory) -> tuple[str, str]:
    """Its title and text as a page shows them: what only an editor changes is not told from it."""
    return " ".join(memory.title.split()) or _UNTITLED, _trimmed(_plain(memory.text).split("\n"))


def hash_of(title: str, text: str) -> str:
    return blake2b(f"{title}\0{text}".encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _trimmed(lines: list[str]) -> str:
    """Without blanks at the ends of lines, and blank lines at either end."""
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def _escaped(text: str) -> str:
    """Words that look like our markers; one that is escaped already is escaped once more."""
    return _MARKER.sub(lambda found: ("&lt;" if found[1] == "<" else "&amp;" + found[1][1:]) + "!-- hotset:", text)


def _unescaped(text: str) -> str:
    return _MARKER.sub(lambda found: ("<" if len(found[1]) < 5 else found[1].replace("&amp;", "&", 1)) + "!-- hotset:", text)


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each heading with all that follows it. A heading between two markers is part of a memory's text."""
    title, section, until = "", list[str](), -1
    for at, line in enumerate(lines):
        if at > until and line.startswith("## "):
            yield title, section
            title, section = line[3:].strip(), []
            continue
        if at > until and _BEGIN.fullmatch(line.strip()):
            until = _closed(lines, at)
        section.append(line)
    yield title, section


def _closed(lines: list[str], begin: int) -> int:
    """Where the text ends that begins here; here, where somebody took its end away."""
    opened = _BEGIN.fullmatch(lines[begin].strip())
    for at in range(begin + 1, len(lines)):
        if _BEGIN.fullmatch(lines[at].strip()):
            break
        if opened and (end := _END.fullmatch(lines[at].strip())) and end[1] == opened[1]:
            return at
    return begin


def _entry(title: str, lines: list[str]) -> PageEntry | None:
    """None where a person wrote nothing there."""
    said: list[str] = []
    marker: re.Match[str] | None = None
    for line in lines:
        bare = line.strip()
        if found := _BEGIN.fullmatch(bare):
            marker = marker or found
        elif not (_END.fullmatch(bare) or _is_ours(bare, inside=marker is not None)):
            said.append(line)
    text = _unescaped(_trimmed(said))
    if not (title or text or marker):
        return None
    title = " ".join(title.split()) or " ".join(text.split("\n", 1)[0].lstrip("#").split())[:160] or _UNTITLED
    if marker is None or not is_memory_id(marker[1]):
        return PageEntry(title, text or title)
    return PageEntry(title, text, MemoryId(marker[1]), int(marker[2]), marker[3])


def _is_ours(line: str, *, inside: bool) -> bool:
    """The page's own title and note, and the line about a memory."""
    if inside:
        return False
    about = _ABOUT.fullmatch(line)
    return (
        _HEAD.fullmatch(line) is not None
        or line.startswith("<!-- hotset:memories")
        or (about is not None and is_memory_id(about[1]))
    )
