"""Whose batch is computed next: keys take turns, so that one with many batches makes no other wait for all of them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .wire import Refused

BUSY = "the service is busy; send the request again in a second"


class Turns:
    """So many at a time. Of one key, and of all keys, at most so many wait; more are refused."""

    def __init__(self, at_a_time: int, waiting_of_a_key: int, waiting: int) -> None:
        self.free, self.most_of_a_key, self.most = at_a_time, waiting_of_a_key, waiting
        self.queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def of(self, key: str) -> AsyncIterator[None]:
        """Within it, it is the key's turn; Refused where too many wait already."""
        if self.free:
            self.free -= 1
        else:
            await self._wait(key)
        try:
            yield
        finally:
            self._next()

    async def _wait(self, key: str) -> None:
        queue = self.queues.setdefault(key, deque())
        if len(queue) >= self.most_of_a_key or sum(map(len, self.queues.values())) >= self.most:
            raise Refused(503, BUSY, 1.0)
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._next()  # it came too late for whoever waited
            raise

    def _next(self) -> None:
        """Give the turn to the key that had its last one longest ago."""
        while self.queues:
            key, queue = next(iter(self.queues.items()))
            turn = queue.popleft() if queue else None
            self.queues.pop(key)
            if queue:
                self.queues[key] = queue
            if turn is not None and not turn.done():
                turn.set_result(None)
                return
        self.free += 1
