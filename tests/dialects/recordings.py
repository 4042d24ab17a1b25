"""The recorded wire bodies of this folder's `wire/`, by dialect."""

from __future__ import annotations

from pathlib import Path

from hotset.nouns.message import DialectName

WIRE = Path(__file__).parent / "wire"


def requests(dialect: DialectName) -> list[bytes]:
    return [path.read_bytes() for path in sorted((WIRE / dialect).glob("*.request.json"))]


def replies(dialect: DialectName) -> list[tuple[bytes, bool]]:
    """Replies that the provider finished, each with whether it was streamed."""
    return [
        (path.read_bytes(), path.suffix == ".sse")
        for path in sorted((WIRE / dialect).glob("*.reply.*"))
    ]


def recording(dialect: DialectName, name: str) -> bytes:
    return (WIRE / dialect / name).read_bytes()


REQUESTS = [
    (DialectName(path.parent.name), path.name) for path in sorted(WIRE.glob("*/*.request.json"))
]
REPLIES = [(DialectName(path.parent.name), path.name) for path in sorted(WIRE.glob("*/*.reply.*"))]
