"""Memories in the folders and files of loki-mode (`.loki/memory`): written for its users and tools, and theirs read."""

from hotset.sources.memory.files.loki_reading import read_loki
from hotset.sources.memory.files.loki_writing import Exported, write_loki

__all__ = ["Exported", "read_loki", "write_loki"]
