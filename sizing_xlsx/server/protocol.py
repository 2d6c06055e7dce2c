"""Connections, bounded in number and in time.

A request has to arrive whole within some seconds, whatever its pace. Where there are as many connections as may be,
the one that has waited longest without a request of its own gives way to the new one, those of holders of a key last:
whoever opens a thousand, and opens them again, takes none from a user.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .metrics import Metrics

MOST, SECONDS = "most", "seconds"
BOUNDS: dict[str, float] = {MOST: 512, SECONDS: 15.0}
METRICS: list[Metrics] = []


def bound(most: int, seconds: float, metrics: Metrics) -> None:
    """What counts for the connections of this process."""
    BOUNDS.update({MOST: most, SECONDS: seconds})
    METRICS[:] = [metrics]


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP with bounds."""

    _strangers: ClassVar[OrderedDict[BoundedProtocol, None]] = OrderedDict()  # those that wait, longest first
    _users: ClassVar[OrderedDict[BoundedProtocol, None]] = OrderedDict()  # the same, after a request with a key

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._deadline: asyncio.TimerHandle | None = None
        self._waiting = self._strangers

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > BOUNDS[MOST]:
            longest = next(iter(self._strangers or self._users), self)
            longest._drop("too many")
            if longest is self:
                return
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.is_closing():
            self._arrived()
        elif self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._wait()
        else:
            self._arrived()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if "caller" in self.scope["state"]:
            self._becomes_user()
        if self.conn.their_state is h11.SEND_BODY:  # answered without its body: nobody will read what still comes
            self.transport.close()
        if not self.transport.is_closing() and self.conn.their_state is h11.IDLE and self._deadline is None:
            self._waiting[self] = None  # kept alive: uvicorn ends it when nothing more comes

    def _becomes_user(self) -> None:
        if self._waiting.pop(self, self) is None:  # it has begun its next request
            self._users[self] = None
        self._waiting = self._users

    def _wait(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(BOUNDS[SECONDS], self._drop, "too slow")
            self._waiting[self] = None

    def _arrived(self) -> None:
        self._waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _drop(self, reason: str) -> None:
        self._arrived()
        for metrics in METRICS:
            metrics.count("sizing_connections_dropped_total", reason=reason)
        self.transport.abort()
