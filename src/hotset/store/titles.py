"""What a session is called: the first words of the person in it, whatever the client puts before
and around them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotset.nouns.message import Message
from hotset.nouns.page import Kind, Role

_TITLE_CHARS = 80
_LOOKED_AT = (
    1 << 16
)  # bytes of a part: what a client puts around a prompt is shorter, and no prompt needs more
_MOST_MESSAGES = 64  # from the first on: no client says more before the person does
_MOST_BLOCKS = 64  # that stand in front of the person's words in one part

_TAG = re.compile(r"<(?P<name>[A-Za-z][\w.:-]{0,60})(?: [^<>]{0,500})?(?P<alone>/?)>")
_NEXT_BLOCK = re.compile(r"\n\s{0,100}<[A-Za-z][\w.:-]{0,60}(?: [^<>]{0,200})?>")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)+)"', re.DOTALL)
_FENCE = "```"
_PERSONS = """
    task user_message user_query user_request userrequest user_input user_prompt user-prompt user feedback question query
    request prompt human command-name command-args"""  # noqa: E501
_PERSONS_TAGS = frozenset(_PERSONS.split())
"""Tags in which clients put what the person said (Cline, Roo, Copilot, Cursor, slash commands); any
other holds context."""

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
"""How texts begin that a client wrote in the person's name, in plain words."""

_AFRESH = b"I switched to a new code base"  # aider: whatever stood before was an example


@dataclass(frozen=True, slots=True)
class FirstPrompt:
    """Where the person first speaks."""

    index: int
    """Of the message; 0 where no message holds words of a person. The client wrote the assistant's
    part before it, too."""
    words: str
    """Of its first part with words of their own; empty where no message has any."""


def first_prompt(messages: Sequence[Message]) -> FirstPrompt:
    """The person's first own words. Of several messages in a row the last has them: clients put
    others in front."""
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

    Where none of it is a person's own: `otherwise`, or how the first prompt begins.
    """
    from hotset.sealing import seal  # noqa: PLC0415 - 50 ms, which a start should not pay

    said = (text for message in messages[:_MOST_MESSAGES] for text in _prompts(message))
    words = unquoted(first_prompt(messages).words or otherwise or next(said, ""))
    return " ".join(seal(words[: 8 * _TITLE_CHARS]).text.split())[:_TITLE_CHARS]


def own_words(text: str) -> str:
    """The person's words in a text: without the blocks before them, and up to the next block. Empty
    where there are none."""
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
    """`opencode run` puts quotes around what was typed."""
    quoted = _QUOTED.fullmatch(words)
    return quoted[1].replace('\\"', '"') if quoted else words


def _block(text: str) -> tuple[str, bool, str] | None:
    """A tag with what it holds, a fence, or the heading of one, at the start of a text: its inside,
    whether a person said that, and the rest. None where the text begins with anything else.
    """
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
