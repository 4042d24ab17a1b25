"""The tools with which a model brings back what left its window: their schemas, and the parser of
their calls.

Every request of a session starts with the schemas, so each word is paid for at every call; and they
never change, because a changed tool breaks the provider's cache from the first byte on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from hotset.errors import Malformed
from hotset.nouns.message import ClientTool, ToolSpec
from hotset.nouns.retrieval import (
    END,
    MAX_TOKENS,
    JsonPath,
    Lines,
    Pieces,
    Question,
    Range,
    Regex,
    Retrieval,
    Retrieve,
    RowSlice,
    Search,
    Slice,
    Span,
    Symbol,
    Whole,
)
from hotset.nouns.tool import FIND_TOOLS
from hotset.window.pieces import typed_pieces

RETRIEVE, SEARCH, RANGE = "retrieve_context", "search_history", "get_turn_range"
FILTERS = " only:"
"""In the description of a search, what begins its filters."""

DESCRIPTIONS = {
    RETRIEVE: (
        (
            "Bring back content that was shortened or left this conversation, "
            "by id, iteration, tool or topic. Ask only for the part you need: "
            "lines, rows, path, symbol, regex or question."
        ),
    ),
    SEARCH: (
        (
            "Search everything said, read and returned earlier, also what left this conversation. "
            "Gives excerpts and ids."
        ),
        "Find earlier work. session: this, all.",
    ),
    RANGE: ("Whole messages of turns first to last.",),
    FIND_TOOLS: (
        "Search many unlisted tools by what they should do. Returns names, arguments and scores.",
        (
            "Many more tools are at hand than are listed. Find one by what it should do; gives "
            "names, arguments and scores."
        ),
    ),
    "use_tool": ("Call a tool found by find_tools.", "Call a tool that find_tools told of."),
}
"""Descriptions of our tools of earlier versions, which sessions and running MCP servers may still
have; today's first for those in `window.toolbox_tools`."""

# room for the line above the content, the line about what is missing, and some content
_LEAST_TOKENS = 100
_MOST_TOKENS = 20_000  # a larger answer would have to leave the window again at once
_MOST_BYTES = 1 << 20
_MOST_WORDS = 1000  # characters read of a question
_MOST_PATTERN = 1000
_MOST_ID = 200
_MOST_SPANS = 50
_MOST_IDS = 20


def spec(
    name: str, description: str, required: list[str], /, **properties: dict[str, Any]
) -> ToolSpec:
    """A tool of ours with a minimal JSON schema."""
    schema = {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
    }
    return ToolSpec(name, description, json.dumps(schema, separators=(",", ":")).encode())


TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


SPECS = (
    spec(
        RETRIEVE,
        "Bring back what left this conversation or was shortened, by ids or a question.",
        [],
        id=TEXT,
        question=TEXT,
        lines=TEXT,
        symbol=TEXT,
        regex=TEXT,
        max_tokens=NUMBER,
    ),
    spec(
        SEARCH,
        f"Find earlier work.{FILTERS} type=file,prompt turns=3-9 since=2d session=all",
        [],
        query=TEXT,
        only=TEXT,
    ),
    spec(RANGE, "Whole turns.", [], first=NUMBER, last=NUMBER),
)
"""In the order in which they are offered."""

OUR_TOOLS = frozenset(spec.name for spec in SPECS)


def offered_specs(names: Sequence[str]) -> tuple[ToolSpec, ...]:
    """The retrieval tools that a kind of agent is offered: those it names, and the one that every
    reference names; all if it names none."""
    return tuple(each for each in SPECS if not names or each.name in (RETRIEVE, *names))


_SIGN_LENGTH = 40  # characters of a description; clients cut the end of long ones


def has_twin(raw: bytes, specs: Sequence[ToolSpec]) -> bool:
    """True if this client tool or namespace, as JSON, is or holds one of these tools of ours,
    served over MCP.

    Clients prefix its name; the description is ours.
    """
    return any(
        spec.name.encode() in raw and any(sign in raw for sign in _signs(spec)) for spec in specs
    )


def brings_ours(tools: Iterable[ClientTool]) -> bool:
    """True if the client has our tools over MCP and the model sees them from the start."""
    return any(has_twin(tool.raw, SPECS[:1]) and not _is_deferred(tool.raw) for tool in tools)


def descriptions(spec: ToolSpec) -> tuple[str, ...]:
    """Every description this tool of ours has or had."""
    return (spec.description, *DESCRIPTIONS.get(spec.name, ()))


def _signs(spec: ToolSpec) -> list[bytes]:
    """The beginnings of its descriptions; over MCP, "this conversation" is "a conversation", and
    filters are arguments of their own."""
    return [
        each.partition(" this conversation")[0].partition(FILTERS)[0][:_SIGN_LENGTH].encode()
        for each in descriptions(spec)
    ]


def _is_deferred(raw: bytes) -> bool:
    """True if the model sees this tool, or our twin in this namespace, only after a tool search."""
    match msgspec.json.decode(raw):
        case {"tools": [*several]}:
            inner = [each for each in several if has_twin(msgspec.json.encode(each), SPECS[:1])]
        case {"function": function}:
            inner = [function]
        case tool:
            inner = [tool]
    return all(isinstance(each, dict) and each.get("defer_loading") is True for each in inner)


def parse_call(name: str, arguments: bytes) -> Retrieval:
    """The request in a call of one of our tools. Raises `Malformed` with a message that tells the
    model what to send instead.

    Models are sloppy: numbers come as strings, spans as "12-40", "12:40" or [12, 40], fields under
    names of other tools.
    """
    readers: dict[str, Callable[[Fields], Retrieval]] = {
        RETRIEVE: _retrieve,
        SEARCH: _search,
        RANGE: _range,
    }
    if name not in readers:
        raise Malformed(f"no tool {name[:_MOST_ID]!r}; tools: {', '.join(readers)}")
    if len(arguments) > _MOST_BYTES:
        raise Malformed(
            f"{name}: arguments have {len(arguments):,} bytes; send an id or a few words"
        )
    return readers[name](Fields(name, decode_arguments(name, arguments, _EXAMPLES[name])))


class Fields:
    """A call's arguments, accessible under any of the names that models use for them."""

    def __init__(self, tool: str, given: Mapping[str, Any]) -> None:
        self._tool = tool
        self._given = {
            key: value for key, value in given.items() if value not in (None, "", [], {})
        }

    def text(self, *names: str) -> str:
        value = self._first(names)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, bool) or not isinstance(value, str | int | float | None):
            raise Malformed(f"{self._tool}: {names[0]} must be a string")
        # JSON allows a lone surrogate, UTF-8 does not; no stored text contains one.
        return "" if value is None else str(value).encode("utf-8", "replace").decode().strip()

    def ids(self, *names: str) -> Iterator[str]:
        """One id or several: in a list, or in a text with commas or spaces between them."""
        value = self._first(names)
        several = value if isinstance(value, list) else [self.text(*names)]
        if not all(isinstance(each, str) for each in several):
            raise Malformed(f"{self._tool}: {names[0]} must be a string")
        found = (_bare(each) for typed in several for each in _several(typed))
        yield from list(dict.fromkeys(each for each in found if each))[:_MOST_IDS]

    def number(self, *names: str) -> int | None:
        value = self._first(names)
        if value is None:
            return None
        if isinstance(value, str):
            found = re.fullmatch(r"\s*([+-]?[\d_,]{1,15})(\.\d*)?\s*", value)
            value = (
                int(re.sub(r"[_,]", "", found[1]) or 0)
                if found and re.search(r"\d", found[1])
                else None
            )
        elif isinstance(value, float):
            value = int(value) if abs(value) < END else None
        if isinstance(value, bool) or not isinstance(value, int):
            raise Malformed(f"{self._tool}: {names[0]} must be an integer such as 12")
        return max(-END, min(value, END))

    def spans(self, *names: str) -> tuple[Span, ...]:
        value = self._first(names)
        return () if value is None else _spans(value, f"{self._tool}: {names[0]}")

    def lines(self, *names: str) -> tuple[Span | Pieces, ...]:
        """Spans of lines and of pieces of lines: "12-40", "13.5-13.9"."""
        value = self._first(names)
        if isinstance(value, float) and not value.is_integer():
            value = str(value)
        return (_pieces(value) if isinstance(value, str) else None) or self.spans(*names)

    def max_tokens(self) -> int:
        asked = self.number("max_tokens", "tokens")
        return (
            MAX_TOKENS
            if asked is None or asked <= 0
            else max(_LEAST_TOKENS, min(asked, _MOST_TOKENS))
        )

    def _first(self, names: tuple[str, ...]) -> Any:
        return next((self._given[name] for name in names if name in self._given), None)


def decode_arguments(name: str, arguments: bytes, example: str) -> Mapping[str, Any]:
    """A call's arguments. Raises `Malformed` with an example of what to send instead."""
    try:
        given = msgspec.json.decode(arguments.strip() or b"{}")
        if isinstance(given, str):  # written as JSON twice
            given = msgspec.json.decode(given.strip() or "{}")
    except (ValueError, RecursionError):
        raise Malformed(f"{name}: arguments are not JSON; {example}") from None
    if given is None:
        given = {}
    if not isinstance(given, dict):
        raise Malformed(f"{name}: arguments must be an object; {example}")
    return given


_EXAMPLES = {
    RETRIEVE: 'send {"id": "c0123456789ab", "lines": "120-180"}',
    SEARCH: 'send {"query": "retry policy of the uploader"}',
    RANGE: 'send {"first": 12, "last": 15}',
}


def _retrieve(fields: Fields) -> Retrieve:
    ids = list(
        fields.ids(
            "id",
            "ids",
            "ref_id",
            "ref",
            "reference",
            "content_id",
            "page_id",
            "call_id",
            "tool_call_id",
            "tool_use_id",
            "page",
        )
    )
    id = ids[0] if ids else ""
    iteration = fields.number("iteration", "iterations", "n")
    tool, topic = (
        fields.text("tool", "tool_name")[:_MOST_ID],
        fields.text("topic", "topics")[:_MOST_WORDS],
    )
    how = _slice(fields)
    if id or iteration is not None or tool:
        how = Question(topic) if topic and isinstance(how, Whole) else how
    elif isinstance(how, Question):
        topic = topic or how.words
    elif not topic:
        raise Malformed(f"{RETRIEVE}: give id, iteration, tool or topic; {_EXAMPLES[RETRIEVE]}")
    return Retrieve(id, iteration, tool, topic, how, fields.max_tokens(), tuple(ids[1:]))


def _slice(fields: Fields) -> Slice:  # noqa: PLR0911 - one case a way
    """The narrowest of the given slices."""
    if path := fields.text("path", "json_path", "jsonpath"):
        return JsonPath(path[:_MOST_PATTERN])
    if rows := fields.spans("rows", "row"):
        return RowSlice(rows)
    if lines := fields.lines("lines", "line", "line_range"):
        return Lines(lines)
    if symbol := fields.text("symbol", "symbols", "function", "class", "heading", "section"):
        return Symbol(symbol[:_MOST_ID])
    if regex := fields.text("regex", "pattern"):
        if len(regex) > _MOST_PATTERN:
            raise Malformed(
                f"{RETRIEVE}: regex has {len(regex):,} characters; at most {_MOST_PATTERN:,}"
            )
        return Regex(regex)
    if question := fields.text("question", "query", "about"):
        return Question(question[:_MOST_WORDS])
    return Whole()


def _search(fields: Fields) -> Search:
    query = fields.text("query", "q", "question", "topic", "text")[:_MOST_WORDS]
    if not re.search(r"\w", query):
        raise Malformed(f"{SEARCH}: query needs a word; {_EXAMPLES[SEARCH]}")
    session = parse_session(fields.text("session", "session_id", "scope"))
    return Search(query, session, fields.max_tokens())


def parse_session(typed: str) -> str:
    """What `Search.session` says for a session as a model names it."""
    return _SESSIONS.get(typed.lower(), typed[:_MOST_ID])


_SESSIONS = {"this": "", "current": "", "all": "all", "any": "all", "*": "all", "project": "all"}


def _range(fields: Fields) -> Range:
    spans = fields.spans("turns", "range")
    first = fields.number("first", "from_turn", "from", "start", "first_turn", "turn")
    last = fields.number("last", "to_turn", "to", "end", "last_turn")
    if spans:
        first, last = first or spans[0][0], last or spans[-1][1]
    if first is None and last is None:
        raise Malformed(f"{RANGE}: give turns; {_EXAMPLES[RANGE]}")
    first = max(1, first if first is not None else last or 1)
    last = max(1, last if last is not None else first)
    session = fields.text("session", "session_id")[:_MOST_ID]
    session = "" if session in ("this", "current") else session
    return Range(min(first, last), max(first, last), fields.max_tokens(), session)


_SEVERAL = re.compile(
    r"[\[(\s\"'`]*[A-Za-z]\w{3,}[\"'`\])]*(?:[\s,;]+[\"'`]*[A-Za-z]\w{3,}[\"'`\])]*)+"
)


def _several(typed: str) -> list[str]:
    """The ids in a text that is nothing but ids; anything else is one."""
    return re.split(r"[\s,;]+", typed.strip()) if _SEVERAL.fullmatch(typed.strip()) else [typed]


_ID_IN_CALL = re.compile(r"""id\s*[=:]\s*["']?([^"'\s)\]]+)""")


def _bare(typed: str) -> str:
    """An id without what models copy along with it: quotes, brackets, or the whole call from a
    reference."""
    typed = typed[:_MOST_WORDS]
    found = _ID_IN_CALL.search(typed)
    return (found[1] if found else typed).strip("\"'`[]()<> ,;")[:_MOST_ID]


_SPAN = re.compile(
    r"[Ll]?(\d{1,15})?\s*(-|:|\.\.|–|to)"  # noqa: RUF001
    r"?\s*[Ll]?(\d{1,15})?"
)


def _spans(value: Any, what: str) -> tuple[Span, ...]:
    match value:
        case bool():
            found: list[Span | None] = [None]
        case int():
            found = [_ordered(value, value)]
        case float() if value.is_integer():
            found = [_ordered(int(value), int(value))]
        case str():
            found = [
                _span(piece.strip())
                for piece in re.split("[,;]", value[:_MOST_WORDS].strip("\"'[]() "))
                if piece.strip()
            ]
        case [int(first), int(last)]:
            found = [_ordered(first, last)]
        case [*several]:
            found = [*(span for each in several for span in _spans(each, what))]
        case (
            {"start": first, "end": last}
            | {"first": first, "last": last}
            | {"from": first, "to": last}
        ):
            return _spans([first, last], what)
        case _:
            found = [None]
    spans = [span for span in found if span is not None]
    if len(spans) < len(found) or not spans:
        raise Malformed(f'{what} must be like "120-180" or "10-20,300-340"')
    return tuple(spans[:_MOST_SPANS])


def _pieces(typed: str) -> tuple[Span | Pieces, ...] | None:
    """Spans that name at least one piece; None if none does or one is invalid."""
    several = [
        each.strip()
        for each in re.split("[,;]", typed[:_MOST_WORDS].strip("\"'[]() "))
        if each.strip()
    ]
    found = [typed_pieces(each) or _span(each) for each in several[:_MOST_SPANS]]
    read = tuple(each for each in found if each is not None)
    return (
        read if len(read) == len(found) and any(isinstance(each, Pieces) for each in read) else None
    )


def _span(typed: str) -> Span | None:
    found = _SPAN.fullmatch(typed)
    if found is None or not (found[1] or found[3]):
        return None
    first = int(found[1] or 1)
    last = int(found[3]) if found[3] else (END if found[2] else first)
    return _ordered(first, last)


def _ordered(first: int, last: int) -> Span:
    first, last = (min(max(1, number), END) for number in (first, last))
    return (first, last) if first <= last else (last, first)
