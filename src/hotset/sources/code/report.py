"""What a look at a project found and did: told while it goes on, and when it has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hotset.sources.code.manifest import Totals


@dataclass(frozen=True, slots=True)
class Progress:
    """Where an index run is. Counts only, no names."""

    done: int
    total: int
    """Files that differ, as far as the scan has come."""
    bytes: int
    chunks: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    files: int
    """Of the project, indexed now."""
    chunks: int
    bytes: int
    symbols: int
    changed: int = 0
    """Files that were read in this run."""
    parsed: int = 0
    """Of these, the ones whose content was not known."""
    removed: int = 0
    sealed: int = 0
    """Secrets in the files that were read in this run; nothing of them is kept."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Files and folders that are not indexed, by reason; the same in a run that had nothing to do."""
    examples: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The first few of these, by reason; their paths."""
    failed: Mapping[str, int] = field(default_factory=dict)
    """Files that are indexed with less than they have, by reason."""
    failures: Sequence[str] = ()
    """The first few of these, by path."""
    seconds: float = 0.0
    stopped: bool = False
    """Somebody wanted it to end; the next run goes on from here."""

    @classmethod
    def of(cls, known: Totals, seconds: float) -> Report:
        """Of a look that found nothing to do."""
        return cls(
            known.files,
            known.chunks,
            known.bytes,
            known.symbols,
            skipped=known.refused,
            examples=known.examples,
            failed=known.in_part,
            failures=known.in_part_files,
            seconds=seconds,
        )
