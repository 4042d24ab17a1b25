"""The narrative of the recorded session, in order: what is asked, what the agent says, which tools it calls."""

from hotset.testing.recording.story.finding import FINDING
from hotset.testing.recording.story.fixing import FIXING
from hotset.testing.recording.story.setting import SYSTEM, TOOLS
from hotset.testing.recording.story.shipping import SHIPPING

STORY = (*FINDING, *FIXING, *SHIPPING)

__all__ = ["STORY", "SYSTEM", "TOOLS"]
