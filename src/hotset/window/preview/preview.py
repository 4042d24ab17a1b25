"""Previews: finds the type of a text, lets the reader of that type choose lines, and marks what was
left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from hotset.window.pieces import lines_of, pieces_of
from hotset.window.preview.code import read_code, skim_code
from hotset.window.preview.content import (
    LONGEST_READ,
    Body,
    ContentOrigin,
    ContentType,
    Preview,
    ToolQuery,
    find_body,
    tool_query,
)
from hotset.window.preview.excerpt import Excerpt, ExcerptView, LineSpan, Reading, Worth, compose
from hotset.window.preview.json_text import is_laid_out, read_json_lines, view_json
from hotset.window.preview.line_scores import line_scores
from hotset.window.preview.opaque import view_opaque
from hotset.window.preview.output import read_checks, read_log, read_output, skim_checks, skim_log
from hotset.window.preview.prose import read_prose, view_markup
from hotset.window.preview.rows import read_diff, read_hits, read_listing, read_table, view_hits
from hotset.window.preview.sniffer import content_type, sections

_WORTHWHILE = 0.75  # a preview longer than this share of its text saves too little
_SLICE_LINES = 100  # about what one answer of `retrieve_context` can hold
_SLICE_PIECES = 10  # the same for a long line
_FRAME_SHARE = 0.1  # of the room, for what stands above the content
_SHORTEST_FRAME = 100
_POINTED = Worth.HEAD + 8  # more than the beginning of a file, less than what went wrong in it
_ABOVE, _BELOW = 3, 8  # lines around one that was pointed to
_FIRST_OF_FILE = Worth.ASKED
"""What is chosen before likely lines of a file read to be edited: whole functions near the task,
and the imports."""
_SCORED_LABELS = 0.04  # most of the room for labels of gaps, where lines are chosen by the task
_SCORED_MENTIONS = 0.01  # the same for names in gaps: a line that is likely needed says more
_LOOKED_AT = 96 * 1024  # characters read closely; beyond, only errors and warnings are searched

# types that may contain sections of other types
_MIXED = (ContentType.OUTPUT, ContentType.SEARCH, ContentType.LISTING)

SCORED = frozenset(
    {ContentType.CODE, ContentType.SEARCH, ContentType.PROSE, ContentType.OUTPUT, ContentType.JSON}
)
"""Types whose lines are chosen by what the task needs, behind what their readers must show."""

_READERS: Mapping[ContentType, Callable[[Body, ToolQuery], Reading]] = {
    ContentType.JSON: read_code,
    ContentType.JSON_LINES: read_json_lines,
    ContentType.CODE: read_code,
    ContentType.SEARCH: read_hits,
    ContentType.CHECKS: read_checks,
    ContentType.LOG: read_log,
    ContentType.DIFF: read_diff,
    ContentType.TABLE: read_table,
    ContentType.LISTING: read_listing,
    ContentType.PROSE: read_prose,
    ContentType.HTML: read_output,
    ContentType.OPAQUE: read_output,
    ContentType.OUTPUT: read_output,
}
_SKIMMERS: Mapping[ContentType, Callable[[Body, ToolQuery], Reading]] = {
    ContentType.JSON: skim_code,
    ContentType.JSON_LINES: skim_log,
    ContentType.CODE: skim_code,
    ContentType.CHECKS: skim_checks,
    ContentType.LOG: skim_log,
    ContentType.TABLE: skim_log,
    ContentType.OUTPUT: skim_log,
}
"""Readers for the middle of texts that are too long to be read closely."""
_VIEWERS: Mapping[ContentType, Callable[[Body, ToolQuery], ExcerptView]] = {
    ContentType.JSON: view_json,
    ContentType.SEARCH: view_hits,
    ContentType.HTML: view_markup,
    ContentType.OPAQUE: view_opaque,
}


def preview(text: str, origin: ContentOrigin, room: int) -> Preview | None:
    """An excerpt of at most `room` characters; None if the text is better shown whole."""
    if len(text) <= room:
        return None
    lines = lines_of(text)
    inner = find_body(lines, origin.shift)
    query = tool_query(origin, room)
    type_ = content_type(inner.lines, query)
    made = _preview_of_view(type_, lines, inner, query) or _preview_of_lines(
        type_, lines, inner, query
    )
    return made if len(made.text) <= len(text) * _WORTHWHILE else None


def closing(preview: Preview, id: str) -> str:
    """The last line: what was left out, and the call that brings it back."""
    part = f", {preview.slice}" if preview.slice else ""
    return f'[hotset: left out {preview.left_out}; any part: retrieve_context(id="{id}"{part})]'


def _preview_of_lines(
    type_: ContentType, lines: Sequence[str], inner: Body, query: ToolQuery
) -> Preview:
    """The preview of content made of lines, which are shown unchanged."""
    frame = [
        LineSpan(0, _reach(lines[: inner.first], _of_frame(query.room)), Worth.FRAME, least=1),
        LineSpan(0, inner.first, Worth.TAIL, least=1),
        LineSpan(inner.end, len(lines), Worth.FRAME, least=1),
    ]
    near = _near(inner)
    parts = [part for stretch in near for part in _parts(type_, stretch)]
    reading = _merge([(part, _READERS[of](part, query)) for part, of in parts])
    if len(near) > 1 and type_ in _SKIMMERS:
        reading = _add_skimmed(
            reading, _SKIMMERS[type_](inner.part(0, len(inner.lines)), query), near
        )
    if {of for _, of in parts} <= SCORED and (scores := _likely(near, query)):
        reading = replace(
            reading,
            scores=scores,
            before_scores=_FIRST_OF_FILE if query.reads_file else reading.before_scores,
            label_share=min(reading.label_share, _SCORED_LABELS),
            mentions_share=_SCORED_MENTIONS,
        )
    spans = [
        span
        for span in (*frame, *_pointed_spans(inner, query), *reading.spans)
        if span.first < span.end
    ]
    excerpt = compose(lines, replace(reading, spans=spans), query.room, shift=inner.shift)
    slice_ = _slice(excerpt.gaps, lines, inner.shift)
    return Preview(
        type_, excerpt.text, _left_out(excerpt, lines) + _piece_note(slice_, lines), slice_
    )


def _likely(near: Sequence[Body], query: ToolQuery) -> dict[int, float]:
    """How likely each line is needed, of those read closely."""
    return {
        index: score
        for part in near
        for index, score in enumerate(
            line_scores(
                part.lines, replace(query, pointed=tuple(at - part.first for at in query.pointed))
            ),
            part.first,
        )
    }


def _pointed_spans(inner: Body, query: ToolQuery) -> Iterator[LineSpan]:
    """The lines that a prompt or the call pointed to by number, and those around them: a number is
    seldom exact."""
    for index in query.pointed:
        if inner.first <= index < inner.end:
            yield LineSpan(index, index + 1, _POINTED + 1)
            yield LineSpan(
                max(inner.first, index - _ABOVE), min(inner.end, index + _BELOW), _POINTED
            )


def _of_frame(room: int) -> int:
    """Characters for a client's words above the content: some explain at length why it is long."""
    return max(_SHORTEST_FRAME, int(_FRAME_SHARE * room))


def _near(inner: Body) -> list[Body]:
    """The parts read closely: the whole body, or its beginning and end if it is long."""
    reach = _reach(inner.lines, _LOOKED_AT * 3 // 4)
    if reach == len(inner.lines):
        return [inner.part(0, reach)]
    back = _reach(inner.lines[: reach - 1 : -1], _LOOKED_AT // 4)
    return [inner.part(0, reach), inner.part(len(inner.lines) - back, len(inner.lines))]


def _add_skimmed(reading: Reading, skimmed: Reading, near: Sequence[Body]) -> Reading:
    """The close reading with the skimmed spans in between; gap labels cover the whole text."""
    low, high = near[0].end, near[-1].first
    between = [span for span in skimmed.spans if low <= span.first and span.end <= high]
    close = [span for span in reading.spans if not _is_seam(span, low, high)]
    return replace(
        reading, spans=[*close, *between], label=skimmed.label, label_share=skimmed.label_share
    )


def _is_seam(span: LineSpan, low: int, high: int) -> bool:
    """True for a span at the edge of the part read closely, where no text begins or ends."""
    return (span.end == low and span.worth == Worth.TAIL) or (
        span.first == high and Worth.HEAD <= span.worth < Worth.WARNING
    )


def _reach(lines: Sequence[str], most: int) -> int:
    """Number of lines within `most` characters. Each line costs a little extra for the time it
    takes."""
    size = 0
    for index, line in enumerate(lines):
        size += min(len(line), LONGEST_READ) + 10
        if size > most:
            return max(1, index)
    return len(lines)


def _parts(type_: ContentType, stretch: Body) -> list[tuple[Body, ContentType]]:
    """Sections of shell output with their types, which can differ."""
    found = sections(stretch) if type_ in _MIXED else []
    if len(found) < 2:
        return [(stretch, type_)]
    return [
        (part, content_type(part.lines, ToolQuery()) if of is ContentType.OUTPUT else of)
        for part, of in found
    ]


def _merge(parts: Sequence[tuple[Body, Reading]]) -> Reading:
    """One reading of all parts, which compete for the same room."""
    if len(parts) == 1:
        return parts[0][1]

    def label(first: int, end: int) -> Sequence[str]:
        return [
            piece
            for part, reading in parts
            if part.first < end and first < part.end
            for piece in reading.label(max(first, part.first), min(end, part.end))
        ]

    label_share = max(reading.label_share for _, reading in parts)
    return replace(
        parts[0][1],
        spans=[span for _, reading in parts for span in reading.spans],
        label=label,
        label_share=label_share,
    )


def _preview_of_view(
    type_: ContentType, lines: Sequence[str], inner: Body, query: ToolQuery
) -> Preview | None:
    """The preview of content not made of lines, laid out in lines of ours inside its frame."""
    if type_ not in _VIEWERS or (type_ is ContentType.JSON and is_laid_out(inner)):
        return None
    before, after = "\n".join(lines[: inner.first]), "\n".join(lines[inner.end :])
    if len(before) + len(after) > query.room // 2:
        before = after = ""
    room = query.room - sum(len(piece) + 1 for piece in (before, after) if piece)
    view = _VIEWERS[type_](inner, replace(query, room=room))
    if not view.lines:
        return None
    reading = view.reading
    if type_ in SCORED and (found := line_scores(view.lines, replace(query, pointed=()))):
        scores = dict(enumerate(found))
        reading = replace(reading, scores=scores, mentions_share=_SCORED_MENTIONS)
    excerpt = compose(view.lines, reading, room, view.mark, view.margin)
    text = "\n".join(piece for piece in (before, excerpt.text, after) if piece)
    size = _size(lines)
    slice_ = view.slice(*max(excerpt.gaps, key=_length)) if excerpt.gaps else ""
    slice_ = slice_ or _slice(
        (), lines
    )  # content not made of lines can still be requested by lines
    left = f"{max(0, size - len(text)):,} of {size:,} characters"
    return Preview(type_, text, left + _piece_note(slice_, lines), slice_)


def _size(lines: Sequence[str]) -> int:
    return sum(map(len, lines)) + len(lines) - 1


def _left_out(excerpt: Excerpt, lines: Sequence[str]) -> str:
    count = sum(end - first for first, end in excerpt.gaps)
    characters = f"{excerpt.left:,} of {_size(lines):,} characters"
    return f"{count:,} of {len(lines):,} lines ({characters})" if count else characters


def _piece_note(slice_: str, lines: Sequence[str]) -> str:
    """How the longest line is counted, if a part of it is proposed."""
    line, pieces = _longest(lines)
    return (
        f" (line {line} in pieces {line}.1-{line}.{pieces})"
        if slice_.startswith(f'lines="{line}.')
        else ""
    )


def _longest(lines: Sequence[str]) -> tuple[int, int]:
    """The longest line, from 1, and its number of pieces."""
    line = max(range(len(lines)), key=lambda index: len(lines[index]))
    return line + 1, pieces_of(lines[line])


def _slice(gaps: Sequence[tuple[int, int]], lines: Sequence[str], shift: int = 0) -> str:
    """The longest gap, or the beginning of a line longer than that, up to the size of one
    answer."""
    first, end = max(gaps, key=_length, default=(0, 0))
    line, pieces = _longest(lines)
    if pieces > 1 and len(lines[line - 1]) > sum(map(len, lines[first:end])):
        return f'lines="{line}.1-{line}.{min(pieces, _SLICE_PIECES)}"'
    last = min(end or len(lines), first + _SLICE_LINES)
    return f'lines="{max(1, first + 1 + shift)}-{max(1, last + shift)}"'


def _length(gap: tuple[int, int]) -> tuple[int, int]:
    """Sort key: longer gaps, then earlier ones."""
    return gap[1] - gap[0], -gap[0]
