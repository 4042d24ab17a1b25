"""A store's statements as PostgreSQL takes them: each table narrowed to one desk, and numbered
parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hotset.files.lru import memo
from hotset.store.memory_tables import TABLES

TABLE_NAMES = ("blob", *(table.name for table in TABLES), "erasure", "batch")
_NAME = rf'"?\b({"|".join(TABLE_NAMES)})\b"?'
_INSERT = re.compile(rf"^\s*INSERT INTO {_NAME} \((.*?)\)\s+(VALUES \(|SELECT )")
_UPDATE = re.compile(rf"^\s*UPDATE {_NAME} SET (.*) WHERE (.*)$")
_CONFLICT = re.compile(r"ON CONFLICT \((.*?)\)")
_READ = re.compile(rf"\b(FROM|JOIN) {_NAME}(?: AS (\w+))?(?! *\.)")
_EACH = re.compile(r"\bjson_each\(([^()]*)\)")
_PARAMETER = re.compile(r"'[^']*'|\?(\d*)|(?<!:):(\w+)")
_OWN = "project = $1::uuid AND desk = $2::uuid"
_OWNER = "$1::uuid, $2::uuid"
_COMMIT = "current_setting('hotset.commit')::bigint"
_ONLY_SQLITE = re.compile(r" INDEXED BY \w+|\bCROSS (?=JOIN)|\+(?=\w+\.\w)")


@dataclass(frozen=True, slots=True)
class Desk:
    """What the agents of one person share in a project of a team."""

    project: str
    id: str


@dataclass(frozen=True, slots=True)
class DeskStatement:
    sql: str
    parameters: tuple[int | str, ...]
    """Where each numbered parameter comes from: a place or a name in what is given."""

    def values(self, desk: Desk, given: Sequence[Any] | Mapping[str, Any] | None) -> list[Any]:
        """The values to bind: whose rows, then each parameter."""
        values: Any = given or ()
        owner = [desk.project, desk.id] if "$1::uuid" in self.sql else []
        return [*owner, *(values[place] for place in self.parameters)]


@memo("statements for PostgreSQL", 1024, each=4000)
def translate(sql: str) -> DeskStatement:
    """The statement for one desk: its project and its id are the first two parameters."""
    sql = _ONLY_SQLITE.sub("", sql)
    sql = _EACH.sub(r"json_array_elements_text((\1)::json) AS each(value)", sql)
    sql = sql.replace("unhex(value)", "'\\x' || value")
    sql = _READ.sub(_narrowed, sql)
    sql = _UPDATE.sub(rf"UPDATE \1 SET \2, changed = {_COMMIT} WHERE {_OWN} AND (\3)", sql)
    sql = _INSERT.sub(rf"INSERT INTO \1 (project, desk, \2) \3{_OWNER}, ", sql)
    sql = _CONFLICT.sub(r"ON CONFLICT (project, desk, \1)", sql)
    sql = sql.replace("DO UPDATE SET ", "DO UPDATE SET changed = excluded.changed, ")
    numbers: dict[int | str, int] = {}

    def number(match: re.Match[str]) -> str:
        place, name = match.groups()
        if name is None and place is None:
            return match[0]  # a text in quotation marks
        key: int | str = name or (int(place) - 1 if place else len(numbers))
        return f"${numbers.setdefault(key, len(numbers) + 3)}"

    return DeskStatement(_PARAMETER.sub(number, sql), tuple(numbers))


def _narrowed(match: re.Match[str]) -> str:
    word, table, alias = match.groups()
    return f"{word} (SELECT * FROM {table} WHERE {_OWN}) AS {alias or table}"
