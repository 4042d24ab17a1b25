"""A recorded session of a coding agent to demonstrate and measure hotset: `session()`,
`requests()`, `script()`."""

from hotset.testing.recording.replay import requests, script
from hotset.testing.recording.session import (
    RecordedPrompt,
    RecordedReply,
    RecordedResult,
    RecordedStep,
    RecordedTool,
    Recording,
    session,
)

__all__ = [
    "RecordedPrompt",
    "RecordedReply",
    "RecordedResult",
    "RecordedStep",
    "RecordedTool",
    "Recording",
    "requests",
    "script",
    "session",
]
