"""openai-agents: `Agent("helper", model=hotset.wrap(OpenAIResponsesModel("gpt-5",
AsyncOpenAI())))`."""

from __future__ import annotations

import copy
from typing import Any

from hotset.surfaces.library.frameworks import Wrap, unknown


def wrapped(model: Any, wrap: Wrap) -> Any:
    """The same model over a client with a memory."""
    client = getattr(model, "_client", None)  # there is no public name for it
    if client is None:
        raise unknown(model, "OpenAIResponsesModel and OpenAIChatCompletionsModel")
    made = copy.copy(model)
    made._client = wrap(client)  # noqa: SLF001 - the same
    return made
