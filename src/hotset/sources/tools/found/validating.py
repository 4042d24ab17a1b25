"""Does a skill keep the rules of the Agent Skills specification? One sentence for each that it breaks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from hotset.errors import BadInput, Malformed
from hotset.files.root import MOST_BYTES, NotTaken, Root
from hotset.sources.tools.found.frontmatter import Value, read_strictly
from hotset.sources.tools.found.skill import SKILL_FILE

_LONGEST_DESCRIPTION = 1024
_LONGEST_NAME = 64
_LONGEST_COMPATIBILITY = 500
_NAME = re.compile(r"[a-z0-9-]+")
_FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")


def validate(folder: Path) -> tuple[str, ...]:
    """What a skill's author should mend; empty where all is well. Whatever can be used at all is used all the same."""
    try:
        with Root(folder) as root:
            if SKILL_FILE not in root.names(""):
                return (f"there is no {SKILL_FILE} in {folder}: write one, in just these letters",)
            data = root.read(SKILL_FILE, MOST_BYTES, hard_links=True).data
        head = read_strictly(data.decode("utf-8"))
    except UnicodeDecodeError:
        return (f"{SKILL_FILE} is not in UTF-8: save it so",)
    except NotTaken as error:
        return (f"{SKILL_FILE} is not read: {error.why}",)
    except Malformed as error:
        return (f"{SKILL_FILE}: {error}",)
    except BadInput as error:
        return (str(error),)
    return (*_name(head.fields, folder.resolve().name), *_description(head.fields), *_others(head.fields))


def _name(fields: Mapping[str, Value], folder: str) -> Iterator[str]:
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        yield f"name is missing: add `name: {folder}`"
        return
    if len(name) > _LONGEST_NAME:
        yield f"name has {len(name)} characters; at most {_LONGEST_NAME} are allowed"
    if not _NAME.fullmatch(name):
        yield "name may have small letters a to z, digits and hyphens only"
    if name.startswith("-") or name.endswith("-"):
        yield "name must not begin or end with a hyphen"
    if "--" in name:
        yield "name must not have two hyphens in a row"
    if name != folder:
        yield f"name is not the name of its folder, {folder}: rename one of them"


def _description(fields: Mapping[str, Value]) -> Iterator[str]:
    description = fields.get("description")
    if not isinstance(description, str) or not description.strip():
        yield "description is missing: say what the skill does and when to use it"
    elif len(description) > _LONGEST_DESCRIPTION:
        yield f"description has {len(description):,} characters; at most {_LONGEST_DESCRIPTION:,} are allowed"


def _others(fields: Mapping[str, Value]) -> Iterator[str]:
    if not isinstance(fields.get("license", ""), str):
        yield "license must be text"
    compatibility = fields.get("compatibility", "-")
    if not isinstance(compatibility, str) or not 1 <= len(compatibility) <= _LONGEST_COMPATIBILITY:
        yield f"compatibility must be text of 1 to {_LONGEST_COMPATIBILITY} characters, or left out"
    metadata = fields.get("metadata", {})
    if not isinstance(metadata, dict) or not all(isinstance(each, str) for each in metadata.values()):
        yield "metadata must be a map of texts to texts"
    allowed = fields.get("allowed-tools", "")
    if not isinstance(allowed, str) and not (isinstance(allowed, list) and all(isinstance(each, str) for each in allowed)):
        yield "allowed-tools must be names with spaces between them, or a list of names"
    for unknown in fields.keys() - set(_FIELDS):
        yield f"{unknown[:80]} is no field of a skill: put it under metadata"
