"""`${VAR}` and `${VAR:-default}` in a server's entry, resolved from an environment that is passed in. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hotset.errors import BadConfig

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACE = re.compile(r"\$\$\{|\$\{([^}]*)\}")
_VARIABLE = re.compile(rf"({NAME.pattern})(?::-(.*))?", re.DOTALL)


def resolved(text: str, environ: Mapping[str, str]) -> str:
    """The text with each variable's value, or its default where it is not set or empty. `$${` stands for `${` itself.

    What a variable says is not looked through again. Raises `BadConfig` for one that is not set and has no default.
    """
    return _PLACE.sub(lambda match: _value(match, environ), text)


def literal(text: str) -> str:
    """A text that `resolved` gives back as it is."""
    return text.replace("${", "$${")


def _value(match: re.Match[str], environ: Mapping[str, str]) -> str:
    inside = match[1]
    if inside is None:
        return "${"
    found = _VARIABLE.fullmatch(inside)
    if found is None:
        raise BadConfig(
            f"${{{inside[:80]}}} is no variable: write ${{NAME}}, ${{NAME:-default}}, or $${{ for the characters themselves"
        )
    name, default = found[1], found[2]
    if value := environ.get(name, ""):
        return value
    if default is not None:
        return default
    if name in environ:
        return ""
    raise BadConfig(f"the variable {name} is not set: set it, or write ${{{name}:-default}}")
