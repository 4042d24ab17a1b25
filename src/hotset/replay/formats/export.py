"""Files that `hotset export` writes: rows of a store. Each session is read as its longest
branch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hotset.dialects import json_bytes
from hotset.errors import BadInput, HotsetError
from hotset.nouns.message import DialectName, Usage
from hotset.nouns.page import ROOT, Chain, Digest, Role, SessionId
from hotset.nouns.turn import Node, Session, Turn
from hotset.replay.conversation import RecordedSession
from hotset.replay.formats.api_messages import (
    add_anthropic_message,
    add_chat_message,
    add_responses_item,
)
from hotset.replay.formats.transcript import (
    OpenTranscript,
    TalkBuilder,
    TranscriptReader,
    tokens_of,
)
from hotset.store.exchange import read_lines
from hotset.store.port import Blob, Store

_MESSAGE_ADDERS: Mapping[
    DialectName, Callable[[TalkBuilder, Mapping[str, Any], float | None], None]
] = {
    DialectName.ANTHROPIC: add_anthropic_message,
    DialectName.OPENAI_CHAT: add_chat_message,
    DialectName.OPENAI_RESPONSES: add_responses_item,
}


@dataclass(slots=True)
class _SessionRows:
    """The rows of one session."""

    session: Session
    nodes: list[Node] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)


def _claims(opening: Sequence[Any]) -> bool:
    return json_bytes.as_object(opening[0]).get("hotset") == "store"


def _sessions(opened: OpenTranscript) -> Iterator[RecordedSession]:
    """All content precedes the rows that refer to it, so it is held until the last row."""
    content: dict[Digest, bytes] = {}
    found: dict[SessionId, _SessionRows] = {}
    try:
        for row in read_lines(opened.file.lines()):
            match row:
                case Blob():
                    content[row.digest] = row.content
                case Session():
                    found[row.id] = _SessionRows(row)
                case Node() if row.session in found:
                    found[row.session].nodes.append(row)
                case Turn() if row.session in found:
                    found[row.session].turns.append(row)
    except BadInput as error:
        raise BadInput(f"{opened.file.path}: {error}") from error
    for rows in found.values():
        if rows.nodes:
            yield _read_session(rows, lambda digest: content.get(digest, b""), opened.file.set)


def stored_sessions(store: Store, latest: int | None = None) -> Iterator[RecordedSession]:
    """The sessions of a store, or so many that were used last, each as its longest branch; content
    that was lost is empty."""

    def content(digest: Digest) -> bytes:
        try:
            return store.content(digest)
        except HotsetError:
            return b""

    sessions = store.sessions() if latest is None else store.recent_sessions()[:latest]
    for session in sessions:
        rows = _SessionRows(session, list(store.nodes(session.id)), list(store.turns(session.id)))
        if rows.nodes:
            yield _read_session(rows, content, "store")


def _read_session(
    rows: _SessionRows, content: Callable[[Digest], bytes], set: str
) -> RecordedSession:
    line = _longest_line(rows.nodes)
    chains = {node.chain for node in line} | {ROOT}
    turns = [turn for turn in rows.turns if turn.head in chains]
    bills = {turn.tail: turn.usage for turn in turns if turn.usage != Usage()}
    last = turns[-1] if turns else None
    add_message = _MESSAGE_ADDERS[rows.session.dialect]
    talk = TalkBuilder(marks_ends=add_message is not add_responses_item)
    if last is not None and last.system is not None:
        talk.add_message(Role.SYSTEM, content(last.system).decode("utf-8", "replace"))
    for node in line:
        add_message(talk, _message_of(content(node.raw)), node.time)
        talk.set_usage(bills.get(node.chain))
    toolbox = (
        json_bytes.lenient(content(last.tools))
        if last is not None and last.tools is not None
        else None
    )
    model = last.model if last is not None else ""
    return RecordedSession(rows.session.id, set, model, talk.messages(), tokens_of(toolbox))


def _message_of(raw: bytes) -> Mapping[str, Any]:
    """Decode a message; an input that is only a string is a user's."""
    value = json_bytes.lenient(raw)
    return (
        {"role": "user", "content": value}
        if isinstance(value, str)
        else json_bytes.as_object(value)
    )


def _longest_line(nodes: Sequence[Node]) -> list[Node]:
    """The branch with the most messages, with the asides between them; of equals, the latest."""
    built = {node.chain: node for node in nodes if not node.aside}
    asides: dict[Chain, list[Node]] = {}
    depths: dict[Chain, int] = {}
    tip = ROOT
    for node in nodes:  # a parent is kept before its children
        if node.aside:
            asides.setdefault(node.parent, []).append(node)
            continue
        depths[node.chain] = depths.get(node.parent, 0) + 1
        if depths[node.chain] >= depths.get(tip, 0):
            tip = node.chain
    path: dict[Chain, Node] = {}
    while tip in built and tip not in path:
        path[tip] = built[tip]
        tip = built[tip].parent
    line = _asides_at(asides.get(ROOT, []))
    for node in reversed(path.values()):
        line += [node, *_asides_at(asides.get(node.chain, []))]
    return line


def _asides_at(asides: Sequence[Node]) -> list[Node]:
    """The asides at one place. Only the last system text counts: clients resend them."""
    texts = [node for node in asides if node.role is Role.SYSTEM]
    return [*texts[-1:], *(node for node in asides if node.role is not Role.SYSTEM)]


READER = TranscriptReader("hotset export", _claims, _sessions)
