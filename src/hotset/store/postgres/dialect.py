"""A store's statements as PostgreSQL takes them: each table narrowed to one project, and numbered
parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hotset.store.memory_tables import TABLES

TABLE_NAMES = ("blob", *(table.name for table in TABLES))
_NAME = rf'"?\b({"|".join(TABLE_NAMES)})\b"?'
_INSERT = re.compile(rf"^\s*INSERT INTO {_NAME} \((.*?)\)\s+(VALUES \(|SELECT )")
_UPDATE = re.compile(rf"^\s*UPDATE {_NAME} SET (.*) WHERE (.*)$")
_CONFLICT = re.compile(r"ON CONFLICT \((.*?)\)")
_READ = re.compile(rf"\b(FROM|JOIN) {_NAME}(?: AS (\w+))?(?! *\.)")
_EACH = re.compile(r"\bjson_each\(([^()]*)\)")
_PARAMETER = re.compile(r"'[^']*'|\?(\d*)|(?<!:):(\w+)")
_PROJECT = "$1::uuid"
_ONLY_SQLITE = re.compile(r" INDEXED BY \w+|\bCROSS (?=JOIN)|\+(?=\w+\.\w)")


@dataclass(frozen=True, slots=True)
class Statement:
    sql: str
    parameters: tuple[int | str, ...]
    """Where each numbered parameter comes from: a place or a name in what is given."""

    def values(self, project: str, given: Sequence[Any] | Mapping[str, Any] | None) -> list[Any]:
        """The values to bind: the project, then each parameter."""
        values: Any = given or ()
        owner = [project] if _PROJECT in self.sql else []
        return [*owner, *(values[place] for place in self.parameters)]


@lru_cache(maxsize=1024)
def translate(sql: str) -> Statement:
    """The statement for one project, which is its first parameter."""
    sql = _ONLY_SQLITE.sub("", sql)
    sql = _EACH.sub(r"json_array_elements_text((\1)::json) AS each(value)", sql)
    sql = sql.replace("unhex(value)", "'\\x' || value")
    sql = _READ.sub(_narrowed, sql)
    sql = _UPDATE.sub(r"UPDATE \1 SET \2 WHERE project = $1::uuid AND (\3)", sql)
    sql = _INSERT.sub(r"INSERT INTO \1 (project, \2) \3$1::uuid, ", sql)
    sql = _CONFLICT.sub(r"ON CONFLICT (project, \1)", sql)
    numbers: dict[int | str, int] = {}

    def number(match: re.Match[str]) -> str:
        place, name = match.groups()
        if name is None and place is None:
            return match[0]  # a text in quotation marks
        key: int | str = name or (int(place) - 1 if place else len(numbers))
        return f"${numbers.setdefault(key, len(numbers) + 2)}"

    return Statement(_PARAMETER.sub(number, sql), tuple(numbers))


def _narrowed(match: re.Match[str]) -> str:
    word, table, alias = match.groups()
    return f"{word} (SELECT * FROM {table} WHERE project = $1::uuid) AS {alias or table}"
