"""What tells that a process has to be started anew: one hash over how it is started and what it is made of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from hotset.nouns.tool import Http, Launch, Stdio


def stamp_of(launch: Launch | None, files: Mapping[str, str] | None = None) -> str:
    """`files`: for each by its name, what tells its content from any other."""
    said: list[object] = []
    match launch:
        case Stdio(command, env, cwd):
            said = ["stdio", list(command), sorted(env.items()), cwd]
        case Http(url, headers):
            said = ["http", url, sorted(headers.items())]
    said.append(sorted((files or {}).items()))
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()
