"""The parts of a message in every dialect: block to part, kinds, identity, image sizes, and which
images may be sent.

One image that a provider refuses would break the conversation for good, so only images that every
provider accepts are sent.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

import msgspec

from hotset.dialects import json_bytes
from hotset.errors import HotsetError
from hotset.nouns.message import Image, Message, Part, Span
from hotset.nouns.page import Digest, Kind, Page, PageId, Role
from hotset.text.call_shape import reads_file

JSON = "application/json"
URI = "text/uri-list"


@dataclass(frozen=True, slots=True)
class EarlierCall:
    """A tool call earlier in the same request; it determines the kind of its result."""

    tool: str
    arguments: bytes


Calls = dict[str, EarlierCall]

UNKNOWN = EarlierCall("", b"")

_TEXT_KINDS = {
    Role.SYSTEM: Kind.SYSTEM,
    Role.USER: Kind.PROMPT,
    Role.ASSISTANT: Kind.RESPONSE,
    Role.TOOL: Kind.TOOL_RESULT,
}


def message(
    role: Role, raw: bytes, parts: Sequence[Part], span: Span | None, *, aside: bool = False
) -> Message:
    return Message(
        role, raw, tuple(parts), essence(role, parts), aside or role is Role.SYSTEM, span
    )


def has_block(message: Mapping[str, Any], types: Collection[str], field: str = "") -> bool:
    """True if a message, as a program holds it, has a block of one of these types or one with this
    field."""
    content = message.get("content")
    blocks = (
        [block for block in content if isinstance(block, Mapping)]
        if isinstance(content, Sequence)
        else []
    )
    return any(block.get("type") in types or (field and field in block) for block in blocks)


def text(role: Role, content: str) -> Part:
    return Part(_TEXT_KINDS[role], json_bytes.encode_text(content))


def thinking(text: str) -> Part:
    return Part(Kind.THINKING, json_bytes.encode_text(text))


def opaque(raw: bytes, call: str = "") -> Part:
    return Part(Kind.OPAQUE, raw, JSON, call=call)


def call(tool: str, id: str, arguments: bytes, calls: Calls, media: str = JSON) -> Part:
    if id:
        calls[id] = EarlierCall(tool, arguments)
    return Part(kind_of_call(tool), arguments, media, tool, id)


def result(text: str, id: str, calls: Calls, tool: str = "") -> Part:
    known = calls.get(id, UNKNOWN)
    tool = tool or known.tool
    return Part(
        kind_of_result(tool, known.arguments), json_bytes.encode_text(text), tool=tool, call=id
    )


def of_call(part: Part, id: str, calls: Calls) -> Part:
    """The same part, as a result of the call `id`."""
    return Part(part.kind, part.content, part.media, calls.get(id, UNKNOWN).tool, id)


def image(data: Any, media: Any) -> Part | None:
    """An image from its base64, or None if it is invalid."""
    if not isinstance(data, str) or not isinstance(media, str):
        return None
    try:
        return Part(Kind.IMAGE, binascii.a2b_base64(data), media)
    except ValueError:
        return None


def image_at(url: Any) -> Part | None:
    """An image from its URL; a `data:` URL contains it."""
    if not isinstance(url, str) or not url:
        return None
    if not url.startswith("data:"):
        return Part(Kind.IMAGE, json_bytes.encode_text(url), URI)
    head, comma, data = url[5:].partition(",")
    media, *traits = head.split(";")
    return (
        image(data, media or "application/octet-stream") if comma and "base64" in traits else None
    )


_TEXTS = frozenset({Kind.SYSTEM, Kind.PROMPT, Kind.RESPONSE})
_MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})
_OWN = frozenset({"id", "status"})
"""Fields that a provider adds to an item of its own reply; clients keep or drop them. An
`item_reference` has no others."""


def essence(role: Role, parts: Sequence[Part]) -> Digest:
    """A hash of a message's content: equal when a client sends it again, however it rearranged the
    bytes.

    It ignores thinking, cache marks, key order, number spelling, the split of a text into blocks,
    white space around the assistant's text, an item's own id and status, and how hotset classified
    it.
    """
    # A message of thinking alone is identified by its thinking.
    counted = [part for part in parts if part.kind is not Kind.THINKING] or parts
    hashed = hashlib.sha256(role.encode())
    for label, content in _labelled_runs(role, counted):
        hashed.update(b"\0%s\0%d\0" % (label.encode("utf-8", "replace"), len(content)))
        hashed.update(content)
    return Digest(hashed.hexdigest())


def _canonical_arguments(raw: bytes) -> bytes:
    """A call's arguments in one spelling; unchanged if they are not JSON."""
    if not raw.strip():
        return b"{}"
    try:
        return msgspec.json.encode(_decoder.decode(raw), order="sorted")
    except (ValueError, RecursionError):
        return raw


def _canonical_block(raw: bytes) -> bytes:
    """A block or item in one spelling, without marks, nulls and what its provider added."""
    try:
        block = _decoder.decode(raw)
        if isinstance(block, dict) and block.keys() - _OWN - {"type"}:
            block = {key: value for key, value in block.items() if key not in _OWN}
        return msgspec.json.encode(_strip_marks(block), order="sorted")
    except (ValueError, RecursionError):
        return raw


def _labelled_runs(role: Role, parts: Iterable[Part]) -> Iterator[tuple[str, bytes]]:
    """Each part as a label and its content; consecutive texts are one text."""
    for label, run in groupby(parts, _text_label):
        same = list(run)
        yield from (
            _text(role, label, [part.content for part in same])
            if label
            else map(_label_other, same)
        )


def _text_label(part: Part) -> str:
    """Label of a text part; empty if the part is not a text."""
    family = part.kind.family
    is_text = family in _TEXTS or (family is Kind.TOOL_RESULT and part.media != JSON)
    return f"{family}\0{part.call}" if is_text else ""


def _text(role: Role, label: str, texts: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    whole = texts[0] if len(texts) == 1 else b"".join(texts)
    if role is Role.ASSISTANT:
        whole = whole.strip()
    if whole or label.startswith(Kind.TOOL_RESULT):
        yield label, whole


def _label_other(part: Part) -> tuple[str, bytes]:
    family = part.kind.family
    if family is Kind.TOOL_CALL:
        return f"{family}\0{part.tool}\0{part.call}", _canonical_arguments(part.content)
    if part.media == JSON:
        return str(family), _canonical_block(part.content)
    return f"{family}\0{part.media}", part.content


def _strip_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _strip_marks(item)
            for key, item in value.items()
            if item is not None and key not in _MARKS
        }
    if isinstance(value, list):
        return [_strip_marks(item) for item in value]
    return value


def _number(spelling: str) -> int | float:
    """JavaScript clients spell 1.0 as 1, Python ones 1E5 as 100000.0."""
    number = float(spelling)
    return int(number) if number.is_integer() else number


_decoder = msgspec.json.Decoder(float_hook=_number)


_RESULTS = {
    Kind.FILE: """
        read read_file readfile read_text_file read_many_files read_media_file file_read fs_read view view_file viewfile
        cat open_file get_file_contents notebookread""",  # noqa: E501
    Kind.WEB_FETCH: """
        webfetch web_fetch fetch fetch_url fetch_webpage fetch_page fetch_html fetch_markdown read_url open_url url_fetch
        browse scrape firecrawl_scrape""",  # noqa: E501
    Kind.AGENT_MESSAGE: """
        task agent subagent spawn_agent run_subagent runsubagent dispatch_agent delegate new_task wait_agent""",  # noqa: E501
    Kind.TEST_RESULT: "run_tests runtests pytest test_runner",
    Kind.PAPER: "fetch_paper read_paper get_paper download_paper",
}
_PLANS = (
    "todowrite todo_write write_todos update_todo_list "
    "manage_todo_list update_plan exitplanmode "
    "exit_plan_mode"
)
_EDITORS = "str_replace_based_edit_tool str_replace_editor text_editor"
_SHELLS = """
    bash shell terminal exec exec_command run_command execute_command execute_bash run_shell_command run_terminal_cmd
    run_in_terminal shell_command local_shell container.exec"""  # noqa: E501
_plans, _editors, _shells = (frozenset(names.split()) for names in (_PLANS, _EDITORS, _SHELLS))
_results = {name: kind for kind, names in _RESULTS.items() for name in names.split()}

_HEAD = 4096  # a test command is near the start of a call's arguments
_VIEW = re.compile(rb'"command"\s*:\s*"view"')
_PAPERS = re.compile(
    rb"arxiv\.org|openreview\.net|aclanthology\.org|(?<![\w.])doi\.org|semanticscholar\.org",
    re.IGNORECASE,
)
_SHOWS = re.compile(rb'"(?:cat|head|tail|sed -n|nl|bat)\s[^|;&<>]*"')
_TESTS = re.compile(
    rb"""(?:^|["'&;|(]|\\n)\s*                                  # where a command begins, in JSON
         (?:\w+=\S+\s+)*
         (?:(?:sudo|time|env|npx|pnpm|uv\ run|poetry\ run|pipenv\ run|hatch\ run|bundle\ exec|timeout\ \S+|python[\d.]*\ -m)\s+)*
         (?:[^\s"']{1,200}/)?
         (?:pytest|py\.test|tox|nox|unittest|jest|vitest|rspec|phpunit|ctest|mocha
           |(?:npm|yarn|pnpm|bun|deno)\ (?:run\ )?test|cargo\ (?:test|nextest)|go\ test|dotnet\ test|swift\ test|mix\ test
           |(?:mvn|gradle|gradlew)\ (?:\S+\ )?test|make\ (?:test|check))
         (?![\w-]*=)\b""",  # noqa: E501
    re.VERBOSE,
)


def kind_of_call(tool: str) -> Kind:
    return Kind.PLAN if _base_name(tool) in _plans else Kind.TOOL_CALL


def kind_of_result(tool: str, arguments: bytes) -> Kind:
    name = _base_name(tool)
    head = arguments[:_HEAD]
    if name in _shells:
        if _TESTS.search(head):
            return Kind.TEST_RESULT
        return Kind.FILE if _SHOWS.search(head) else Kind.TOOL_RESULT
    if name in _editors:
        return Kind.FILE if _VIEW.search(head) else Kind.TOOL_RESULT
    kind = _results.get(name, Kind.TOOL_RESULT)
    if kind is Kind.TOOL_RESULT and reads_file(name, arguments):
        return Kind.FILE
    if "arxiv" in name or (kind is Kind.WEB_FETCH and _PAPERS.search(head)):
        return Kind.PAPER
    return kind


def _base_name(tool: str) -> str:
    """`mcp__fetch__Fetch` and `fetch` are the same tool."""
    return tool.rpartition("__")[2].lower()


_NO_SIZE = frozenset({0xC4, 0xC8, 0xCC})
"""JPEG markers in the range of frame headers that are not frame headers."""


def size_of(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels; None if the format is unknown or the header is cut."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    if data.startswith((b"GIF87a", b"GIF89a")) and len(data) >= 10:
        return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    if data.startswith(b"\xff\xd8"):
        return _jpeg(data)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP" and len(data) >= 30:
        return _webp(data)
    return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    here = 2
    while here + 9 <= len(data):
        if data[here] != 0xFF:
            return None
        marker = data[here + 1]
        if marker == 0xFF:
            here += 1
        elif 0xC0 <= marker <= 0xCF and marker not in _NO_SIZE:
            return int.from_bytes(data[here + 7 : here + 9], "big"), int.from_bytes(
                data[here + 5 : here + 7], "big"
            )
        else:
            here += 2 + max(2, int.from_bytes(data[here + 2 : here + 4], "big"))
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(
                data[27:30], "little"
            )
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(
                data[28:30], "little"
            ) & 0x3FFF
    return None


_VISION_MODELS = re.compile(r"claude-(?!2|instant)|gpt-(4o|4\.1|[5-9])|o[34](-|$)")
_SAFE_MEDIA = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MOST_IMAGES = 3  # of one result
_MOST_IMAGE_BYTES = 1 << 20  # Anthropic takes 5 MB; this one is sent again with every later request
_MOST_PIXELS = 2000  # a side: what Anthropic takes where a request has many


def can_see(model: str) -> bool:
    """True for models known to accept images."""
    return _VISION_MODELS.match(model.lower().rpartition("/")[2]) is not None


def fitting_images(
    pages: Sequence[Page],
    content_of: Callable[[Digest], bytes],
    room: int,
    weigh: Callable[[tuple[int, int] | None], int],
) -> dict[PageId, Image]:
    """The first few images among pages, as many as fit into `room` tokens."""
    found: dict[PageId, Image] = {}
    for page in pages:
        if (
            page.kind is not Kind.IMAGE
            or page.media not in _SAFE_MEDIA
            or page.size > _MOST_IMAGE_BYTES
            or len(found) == _MOST_IMAGES
        ):
            continue
        try:
            content = content_of(page.digest)
        except HotsetError:
            continue  # the result's text mentions it
        weight = weigh(size_of(content))
        if _is_sound(content) and weight <= room:
            found[page.id] = Image(page.media, base64.b64encode(content).decode())
            room -= weight
    return found


def images_in(content: bytes) -> tuple[Image, ...]:
    """The first few images of a tool's result, given as MCP content blocks."""
    return tuple(islice(_images(content), _MOST_IMAGES))


def _images(content: bytes) -> Iterator[Image]:
    for block in msgspec.json.decode(content):
        match block:
            case {"type": "image", "data": str(data), "mimeType": str(media)} if (
                media in _SAFE_MEDIA and _is_sound(_decode_base64(data))
            ):
                yield Image(media, data)


def _decode_base64(data: str) -> bytes:
    """The decoded bytes; empty if they are invalid."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _is_sound(raw: bytes) -> bool:
    size = size_of(raw)
    return (
        size is not None
        and min(size) > 0
        and max(size) <= _MOST_PIXELS
        and len(raw) <= _MOST_IMAGE_BYTES
    )
