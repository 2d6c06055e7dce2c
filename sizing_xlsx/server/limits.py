"""How fast a key may ask: a bucket of requests that fills at its rate. Each worker holds its share of the rate."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from .keys import Limits

MOST_BUCKETS = 10_000


class Buckets:
    """One bucket a key."""

    def __init__(self, share: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.share, self.clock = share, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, identity: str, limits: Limits) -> float:
        """Seconds until the key may ask; 0.0 where it may now, and the request is then counted."""
        now, rate = self.clock(), limits.rate * self.share
        left, since = self._left.pop(identity, (float(limits.burst), now))
        left = min(float(limits.burst), left + (now - since) * rate)
        allowed = left >= 1
        self._left[identity] = (left - 1 if allowed else left, now)
        if len(self._left) > MOST_BUCKETS:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / rate
