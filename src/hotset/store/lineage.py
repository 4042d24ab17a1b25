"""Recognises the session of a request from its own past; also its title and its parent session.

A client resends its whole history with every call. Each message's chain is the hash of what it says
and of the chain before it, so a known past is found by looking up one hash, and only the new tail
has to be written.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from hotset.dialects.parts import kind_of_result
from hotset.errors import PageDamaged
from hotset.nouns.deposit import RequestReceived
from hotset.nouns.link import Link, link
from hotset.nouns.message import Message, Request
from hotset.nouns.page import ROOT, Chain, Kind, Page, Role, SessionId, digest
from hotset.nouns.turn import Outcome, Session, Turn
from hotset.store.kinship import Kinship, Parent
from hotset.store.port import Lookup, SessionOrigin


@dataclass(frozen=True, slots=True)
class RecognisedSession:
    """The session a request belongs to (None: a new one) and the lineage of its messages there."""

    session: Session | None
    base: Chain
    links: tuple[Link, ...]

    @property
    def head(self) -> Chain:
        return next(
            (link.chain for link in reversed(self.links) if not link.message.aside), self.base
        )


def recognise_session(asked: RequestReceived, look: Lookup) -> RecognisedSession:
    """The session by a header's key; else by the reply that the request continues; else by the
    longest known past."""
    request = asked.request
    if request.previous and (earlier := look.turn_by_response(request.previous)):
        session = look.session(earlier.session)
        if session is not None and asked.key in ("", session.key):
            return RecognisedSession(
                session, earlier.tail, tuple(link(earlier.tail, request.messages))
            )
    links = tuple(link(ROOT, request.messages))
    if asked.key:
        return RecognisedSession(look.session_by_key(asked.key), ROOT, links)
    return RecognisedSession(_by_past(asked, links, look), ROOT, links)


def _by_past(asked: RequestReceived, links: Sequence[Link], look: Lookup) -> Session | None:
    """The session by the last known reply, which is the best evidence: two clients may send the
    same prompts."""
    spoken = first_prompt(
        asked.request.messages
    ).index  # earlier assistant messages are the client's own, and always the same
    scripted = {each.chain for each in links[:spoken] if each.message.role is Role.ASSISTANT}
    built_upon = [each for each in links if not each.message.aside]
    print_here = fingerprint(asked)
    since: list[Chain] = []
    for each in reversed(built_upon):
        if each.message.role is Role.ASSISTANT and each.chain not in scripted:
            chosen = _nearest(look.sessions_with(each.chain), since, print_here, look)
            if chosen is not None:
                return look.session(chosen)
        since.append(each.chain)
    if not since or any(
        each.message.role is Role.ASSISTANT and each.chain not in scripted for each in built_upon
    ):
        return None
    repeated = _find_unanswered(asked, since[0], look)
    return look.session(repeated) if repeated is not None else None


def _nearest(
    candidates: Sequence[SessionId], since: Sequence[Chain], print_here: str, look: Lookup
) -> SessionId | None:
    """The candidate whose client is most similar; among equals the one that has more of the past,
    then the latest."""
    best: tuple[int, int, SessionId] | None = None
    for id in candidates:
        last = look.last_turn(id)
        likeness = _likeness(print_here, last.fingerprint) if last is not None else 0
        if likeness is None:
            continue
        held = (
            sum(look.node(id, chain) is not None for chain in since) if len(candidates) > 1 else 0
        )
        if best is None or (likeness, held) >= best[:2]:
            best = (likeness, held, id)
    return best[2] if best is not None else None


def _find_unanswered(asked: RequestReceived, head: Chain, look: Lookup) -> SessionId | None:
    """The session in which this first message got no reply, so that this is a retry; otherwise it
    begins a new one."""
    print_here = fingerprint(asked)
    for id in reversed(look.sessions_with(head)):
        turn = look.turn_at(id, head)
        if turn is None or turn.fingerprint != print_here:
            continue
        abandoned = turn.outcome is Outcome.OPEN and turn.started < asked.since
        if abandoned or turn.outcome not in (Outcome.OPEN, Outcome.DONE):
            return id
    return None


def fingerprint(asked: RequestReceived) -> str:
    """Hashes of the traits that distinguish clients; empty where a trait is missing."""
    request = asked.request
    return ".".join(
        _short(trait)
        for trait in (
            "\n".join(request.hints),
            asked.client,
            asked.agent,
            request.model,
            _system(request),
            "\n".join(tool.name for tool in request.tools),
        )
    )


def _system(request: Request) -> str:
    outside = [hashlib.sha256(part.content).hexdigest() for part in request.system]
    inside = [message.essence for message in request.messages if message.role is Role.SYSTEM]
    return "\n".join([*outside, *inside])


def _likeness(one: str, other: str) -> int | None:
    """Equal traits minus different ones; None if both carry a session hint and the hints differ."""
    pairs = list(zip(one.split("."), other.split("."), strict=True))
    hint, other_hint = pairs[0]
    if hint and other_hint and hint != other_hint:
        return None
    return sum(1 if a == b else -1 for a, b in pairs if a or b)


def _short(trait: str) -> str:
    return hashlib.sha256(trait.encode()).hexdigest()[:12] if trait else ""


_TITLE_CHARS = 80
_LOOKED_AT = (
    1 << 16
)  # bytes of a part: what a client puts around a prompt is shorter, and no prompt needs more
_MOST_MESSAGES = 64  # from the first on: no client says more before the person does
_MOST_BLOCKS = 64  # before the person's words in one part

_TAG = re.compile(r"<(?P<name>[A-Za-z][\w.:-]{0,60})(?: [^<>]{0,500})?(?P<alone>/?)>")
_NEXT_BLOCK = re.compile(r"\n\s{0,100}<[A-Za-z][\w.:-]{0,60}(?: [^<>]{0,200})?>")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)+)"', re.DOTALL)
_FENCE = "```"
_PERSONS = """
    task user_message user_query user_request userrequest user_input user_prompt user-prompt user feedback question query
    request prompt human command-name command-args"""  # noqa: E501
_PERSONS_TAGS = frozenset(_PERSONS.split())
"""Tags in which clients put the person's words (Cline, Roo, Copilot, Cursor, slash commands); all
others hold context."""

_CLIENTS_OWN = re.compile(
    r"""\#{1,3}\ [\w./-]{1,200}\.md\b                                       # instructions of the project: Codex and others
      | This\ is\ the\ [^\n]{1,80}?\.\ We\ are\ setting\ up\ the\ context   # Gemini CLI, Qwen Code
      | I\ have\ \*added\ these\ files\ to\ the\ chat\*                     # aider
      | Here\ are\ (?:some\ READ\ ONLY\ files|summaries\ of\ some\ files)
      | I\ am\ not\ sharing\ any\ files
      | I\ switched\ to\ a\ new\ code\ base
      | I\ spoke\ to\ you\ previously\ about\ a\ number\ of\ things
      | Generate\ a\ title\ for\ this\ conversation                         # opencode
      | Caveat:\ The\ messages\ below\ were\ generated
      | This\ session\ is\ being\ continued\ from\ a\ previous\ conversation
      | Another\ language\ model\ started\ to\ solve\ this\ problem
      | The\ conversation\ history\ before\ this\ point\ was\ compacted
    """,  # noqa: E501
    re.VERBOSE,
)
"""Beginnings of texts that a client wrote in the person's name, without tags."""

_AFRESH = b"I switched to a new code base"  # aider: everything before it was an example


@dataclass(frozen=True, slots=True)
class FirstPrompt:
    """The first message with the person's own words."""

    index: int
    """Index of the message; 0 if no message has words of a person. The client also wrote the
    assistant's part before it."""
    words: str
    """The words of its first part with own words; empty if no message has any."""


def first_prompt(messages: Sequence[Message]) -> FirstPrompt:
    """The person's first own words. Of several messages in a row the last has them: clients put
    others first."""
    found: FirstPrompt | None = None
    first = 1 + max(
        (index for index, each in enumerate(messages[:_MOST_MESSAGES]) if _begins_afresh(each)),
        default=-1,
    )
    for index, message in enumerate(messages[first:_MOST_MESSAGES], first):
        if message.role is Role.ASSISTANT and found is not None:
            break
        words = next(filter(None, map(own_words, _prompts(message))), "")
        if words:
            found = FirstPrompt(index, words)
    return found or FirstPrompt(0, "")


def session_title(messages: Sequence[Message], otherwise: str = "") -> str:
    """A line for lists of sessions, without secrets.

    If none of it is a person's own: `otherwise`, or the beginning of the first prompt.
    """
    from hotset.sealing import seal  # noqa: PLC0415 - 50 ms, which a start should not pay

    prompts = (text for message in messages[:_MOST_MESSAGES] for text in _prompts(message))
    words = unquoted(first_prompt(messages).words or otherwise or next(prompts, ""))
    return " ".join(seal(words[: 8 * _TITLE_CHARS]).text.split())[:_TITLE_CHARS]


def own_words(text: str) -> str:
    """The person's words in a text: without the blocks before them, and up to the next block. Empty
    if there are none."""
    persons: list[str] = []
    for _ in range(_MOST_BLOCKS):
        text = text.lstrip()
        block = _block(text)
        if block is None:
            break
        inner, is_persons, text = block
        if is_persons:
            persons.append(own_words(inner) or inner.strip())
        elif persons:
            break
    if persons:
        return " ".join(filter(None, persons))
    if not text or _CLIENTS_OWN.match(text) or text.startswith("<"):
        return ""
    after = _NEXT_BLOCK.search(text)
    return text[: after.start()].rstrip() if after else text.rstrip()


def unquoted(words: str) -> str:
    """The words without quotes: `opencode run` puts quotes around what was typed."""
    quoted = _QUOTED.fullmatch(words)
    return quoted[1].replace('\\"', '"') if quoted else words


def _block(text: str) -> tuple[str, bool, str] | None:
    """A tag with its content, a fence, or the heading of one, at the start of a text: its content,
    whether that is a person's, and the rest. None if the text begins with anything else."""
    if text.startswith(_FENCE):
        end = text.find(f"\n{_FENCE}", len(_FENCE))
        return None if end < 0 else ("", False, text[end + 1 + len(_FENCE) :])
    if _CLIENTS_OWN.match(text):
        _, _, below = text.partition("\n")
        return ("", False, below) if below.lstrip().startswith("<") else None
    tag = _TAG.match(text)
    if tag is None:
        return None
    if tag["alone"]:
        return "", False, text[tag.end() :]
    closing = f"</{tag['name']}>"
    end = text.find(closing, tag.end())
    if end < 0:
        return None
    return text[tag.end() : end], tag["name"].lower() in _PERSONS_TAGS, text[end + len(closing) :]


def _begins_afresh(message: Message) -> bool:
    return message.role is Role.USER and any(
        part.content.startswith(_AFRESH) for part in message.parts
    )


def _prompts(message: Message) -> Iterator[str]:
    if message.role is Role.USER:
        yield from (
            part.content[:_LOOKED_AT].decode("utf-8", "replace")
            for part in message.parts
            if part.kind is Kind.PROMPT
        )


_SHORTEST_TASK = 8  # characters of a prompt that equals the arguments of a tool for subagents
_SHORTEST_QUOTE = 40  # of one that contains, or is part of, any tool's arguments
_SHORTEST_REPLY = 80  # of a model's reply in the past that a client rewrote
_SHORTEST_SUMMARY = 120
_SHORTEST_LINE = 20  # of a summary that was quoted in part
_LONGEST = 1 << 18  # bytes of a call or a reply that is compared
_MOST_TEXTS = 4
_MOST_STEPS = 32  # messages of one reply
_NAMES_A_SESSION = re.compile(r"session(?:_id)?[\"_:= -]{1,5}[0-9a-f]{8}", re.IGNORECASE)


def find_parent(asked: RequestReceived, look: Lookup) -> Parent | None:
    """The parent of a session that begins with this request; None if there is no evidence of
    one.

    By a header; else a session of the same client: one that waits for a call with this prompt, one
    whose model wrote what this past holds, one whose reply this begins with, or one with the same
    session in its metadata.
    """
    try:
        return _by_header(asked, look) or next(
            filter(None, (way(asked, look) for way in _WAYS)), None
        )
    except PageDamaged:
        return None  # of another session: it must not keep this one from being kept


def find_origin(asked: RequestReceived, look: Lookup) -> SessionOrigin:
    """Where a request would be placed: its session, or the parent of a new one."""
    known = recognise_session(asked, look).session
    if known is not None:
        return SessionOrigin(known.id)
    parent = find_parent(asked, look)
    if parent is None:
        return SessionOrigin(None)
    return SessionOrigin(None, parent.session, parent.kinship is Kinship.CONTINUATION)


def is_same_client(asked: RequestReceived, turn: Turn) -> bool:
    """True if a turn came from the same client program."""
    (_, client, agent, *_), (_, its_client, its_agent, *_) = (
        each.split(".") for each in (fingerprint(asked), turn.fingerprint)
    )
    return client == its_client if client or its_client else agent == its_agent


def _by_header(asked: RequestReceived, look: Lookup) -> Parent | None:
    named = next(filter(None, map(look.session_by_key, asked.parents)), None)
    return (
        Parent(named.id, Kinship.SUBAGENT, "header")
        if named is not None and named.key != asked.key
        else None
    )


def _by_call(asked: RequestReceived, look: Lookup) -> Parent | None:
    """The parent that waits for a call with these words as an argument, or whose argument is in
    these words."""
    spoken = first_prompt(asked.request.messages)
    words = _flat(spoken.words)
    if len(words) < _SHORTEST_TASK:
        return None
    whole = _flat(
        "\n".join(_texts(asked.request.messages[spoken.index : spoken.index + 1], Kind.PROMPT))
    )
    for page in look.waiting_calls():
        if page.size > _LONGEST:
            continue
        starts_agents = kind_of_result(page.tool, b"") is Kind.AGENT_MESSAGE
        fits = any(
            (starts_agents and argument == words)
            or _quotes(whole, argument)
            or _quotes(argument, words)
            for argument in map(_flat, _strings(_parse_arguments(look.content(page.digest))))
        )
        if fits and _is_same_client(asked, page, look):
            return Parent(page.session, Kinship.SUBAGENT, "call")
    return None


def _by_reply(asked: RequestReceived, look: Lookup) -> Parent | None:
    """The parent whose model wrote a reply that this request contains after another past."""
    messages = asked.request.messages
    behind = [
        each for each in messages[first_prompt(messages).index :] if each.role is Role.ASSISTANT
    ]
    replies = (
        part.content
        for each in reversed(behind)
        for part in each.parts
        if part.kind is Kind.RESPONSE
    )
    for content in islice((each for each in replies if len(each) >= _SHORTEST_REPLY), _MOST_TEXTS):
        for page in look.pages_with(digest(content)):
            if (
                page.kind is Kind.RESPONSE
                and _is_same_client(asked, page, look)
                and _is_model_reply(page, look)
            ):
                return Parent(page.session, Kinship.CONTINUATION, "reply")
    return None


def _by_summary(asked: RequestReceived, look: Lookup) -> Parent | None:
    """The parent whose latest reply this request begins with, at least most of it."""
    text = "\n".join(islice(_texts(asked.request.messages, Kind.PROMPT), _MOST_TEXTS))
    if not _SHORTEST_SUMMARY <= len(text) <= _LONGEST:
        return None
    whole, lines = _flat(text), _lines(text)
    equal = (
        page for each in _contents(asked.request.messages) for page in look.pages_with(digest(each))
    )
    same_prompt = {page.session for page in equal if page.kind is Kind.PROMPT}
    for page in look.latest_replies(_SHORTEST_SUMMARY):
        if (
            page.size > _LONGEST or page.session in same_prompt
        ):  # it got the same prompt, and the model repeated it
            continue
        reply = (look.content(page.digest) or b"").decode("utf-8", "replace")
        theirs = _lines(reply)
        shared = sum(map(len, lines & theirs))
        is_most = shared >= _SHORTEST_SUMMARY and 2 * shared >= min(
            sum(map(len, lines)), sum(map(len, theirs))
        )
        if (is_most or _flat(reply) in whole) and _is_same_client(asked, page, look):
            return Parent(page.session, Kinship.CONTINUATION, "summary")
    return None


def _by_metadata(asked: RequestReceived, look: Lookup) -> Parent | None:
    if not any(map(_NAMES_A_SESSION.search, asked.request.hints)):
        return None
    first = look.first_with_hint(fingerprint(asked).partition(".")[0])
    return Parent(first, Kinship.CONTINUATION, "metadata") if first is not None else None


_WAYS = (_by_call, _by_reply, _by_summary, _by_metadata)


def _is_same_client(asked: RequestReceived, page: Page, look: Lookup) -> bool:
    turn = look.turn(page.session, page.turn)
    return turn is not None and is_same_client(asked, turn)


def _is_model_reply(page: Page, look: Lookup) -> bool:
    """True if the page is in the reply of its turn, not in what the client sent."""
    turn = look.turn(page.session, page.turn)
    return turn is not None and page.chain in islice(_reply(turn, look), _MOST_STEPS)


def _reply(turn: Turn, look: Lookup) -> Iterator[str]:
    chain = turn.tail
    while chain != turn.head and (node := look.node(turn.session, chain)) is not None:
        yield chain
        chain = node.parent


def _quotes(whole: str, quoted: str) -> bool:
    return len(quoted) >= _SHORTEST_QUOTE and quoted in whole


def _texts(messages: Sequence[Message], kind: Kind) -> Iterator[str]:
    for message in messages:
        yield from (
            part.content[:_LONGEST].decode("utf-8", "replace")
            for part in message.parts
            if part.kind is kind
        )


def _contents(messages: Sequence[Message]) -> Iterator[bytes]:
    prompts = (
        part.content for message in messages for part in message.parts if part.kind is Kind.PROMPT
    )
    return islice((each for each in prompts if len(each) >= _SHORTEST_SUMMARY), _MOST_TEXTS)


def _lines(text: str) -> set[str]:
    return {line for each in text.splitlines() if len(line := each.strip()) >= _SHORTEST_LINE}


def _flat(text: str) -> str:
    return " ".join(text.split())


def _parse_arguments(arguments: bytes | None) -> Any:
    try:
        return msgspec.json.decode(arguments or b"null")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _strings(tree: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif depth < _MOST_TEXTS and isinstance(tree, dict | list):
        for each in tree.values() if isinstance(tree, dict) else tree:
            yield from _strings(each, depth + 1)
