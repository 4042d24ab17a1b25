"""An agent of a kind, in a window that it can hand over to a successor."""

from __future__ import annotations

import asyncio
import time
from typing import Self

from hotset.errors import BadInput, HotsetError
from hotset.nouns.handoff import AnyState
from hotset.nouns.message import Request
from hotset.runtime.clients import metadata, session_key
from hotset.runtime.planner import Planner
from hotset.runtime.wire import DIALECTS
from hotset.surfaces.library.engine import Engine
from hotset.surfaces.library.sdk_messages import compose
from hotset.surfaces.library.window import AsyncWindow, Conversation, Setting, Window


class AgentConversation(Conversation):
    """Base of the blocking and the awaiting agent."""

    def __init__(self, engine: Engine, setting: Setting) -> None:
        super().__init__(engine, setting)
        self.state: AnyState | None = None
        """The state that this agent began with; None for the first of its chain."""
        self._successor: Conversation | None = None

    @property
    def kind(self) -> str:
        return self._setting.agent

    @property
    def handoff_due(self) -> bool:
        """True if the latest reply brought the window to the share at which this kind hands over.
        If the program does not, a request that would overflow does, in this same window."""
        store = self._engine.machine.keeper.store
        if self._used is None or store is None:
            return False
        return self._planner.is_handoff_due(
            self._request_of(self._whole()),
            DIALECTS[self.dialect],
            store,
            time.time(),
            self._upstream,
            agent=self.kind,
            used=self._used.prompt + self._used.output,
        )

    def _check_use(self) -> None:
        if self._successor is not None:
            raise BadInput(
                f"this {self.kind} has handed over; go on with the agent that handoff() returned"
            )

    async def _hand_over(self, successor: Self, note: str) -> Self:
        """Gives the conversation to its successor. Runs on the engine's loop."""
        self._check_use()
        if self._asks:
            raise BadInput(
                "the model waits for what it asked for: send what request() gives and "
                "observe() the reply first"
            )
        if not self._messages:
            raise BadInput("there is nothing to hand over: add() a message first")
        if not self._engine.config.knobs_for(self.kind).handoff.at:
            raise BadInput(
                f"a {self.kind} lets its oldest steps leave and hands nothing over; to change "
                f"that, set handoff.at = 0.75 in [profiles.{self.kind}]"
            )
        successor._continue_from(self)
        successor.state = await self._make_state(note)
        self._successor = successor
        return successor

    async def _make_state(self, note: str) -> AnyState | None:
        """The state; None while there is no store, or it cannot be read: the handoff goes on."""
        setting, store = self._setting, self._engine.machine.keeper.store
        if store is None:
            return None
        try:
            return await asyncio.to_thread(
                self._planner.hand_over,
                self._request_of(self._whole()),
                DIALECTS[self.dialect],
                store,
                time.time(),
                self._upstream,
                agent=self.kind,
                key=session_key(setting.headers),
                metadata=metadata(setting.headers),
                note=note,
            )
        except HotsetError as error:
            self._engine.warn_once(f"a handoff has no state: {type(error).__name__}")
            return None

    def _whole(self) -> bytes:
        """A request with the whole conversation."""
        setting = self._setting
        return compose(
            DIALECTS[self.dialect],
            self._messages,
            model=setting.model,
            system=setting.system,
            tools=self._tools,
            params=setting.params,
        )

    def _request_of(self, body: bytes) -> Request:
        return self._reader.parse(body)

    @property
    def _planner(self) -> Planner:
        return self._engine.planner(self._setting.budget, program_decides=True)

    @property
    def _upstream(self) -> str:
        return DIALECTS[self.dialect].provider


class AgentWindow(AgentConversation, Window):
    """A window of an agent that hands over.

    ```python
    agent = memory.agent("engineer", "limiter", model="gpt-5.5")
    ...
    if agent.handoff_due:
        agent = agent.handoff(note="the staging database is read-only")
    ```
    """

    def handoff(self, note: str = "") -> AgentWindow:
        """The successor: it has the whole conversation, and its first request is the user's words,
        the state and the latest steps. This window refuses further use. Raises `BadInput`."""
        return self._engine.wait(self._hand_over(AgentWindow(self._engine, self._setting), note))


class AsyncAgentWindow(AgentConversation, AsyncWindow):
    """`AgentWindow` for an event loop: `handoff`, `request` and `observe` are awaited."""

    async def handoff(self, note: str = "") -> AsyncAgentWindow:
        """See `AgentWindow.handoff`."""
        successor = AsyncAgentWindow(self._engine, self._setting)
        return await self._engine.wait_async(self._hand_over(successor, note))
