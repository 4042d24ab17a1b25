"""A recorded session of a coding agent, to show and to measure hotset on: `session()`, `requests()`, `script()`."""

from hotset.testing.recording.nouns import Prompt, Recording, Reply, Result, Step, ToolSpec
from hotset.testing.recording.replay import requests, script
from hotset.testing.recording.session import session

__all__ = ["Prompt", "Recording", "Reply", "Result", "Step", "ToolSpec", "requests", "script", "session"]
