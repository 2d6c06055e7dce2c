"""What stands before every request: who asks, how fast, how much, how long; the headers of every answer; the log.

The log has a line a request: route, status, milliseconds, tenant, counts. It never holds an address that was asked
for, an argument, an answer or a key.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from .keys import Key, KeyRing
from .limits import Buckets
from .metadata import OFFICE_HOSTS
from .metrics import Metrics
from .wire import Refused

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOG = logging.getLogger("sizing_xlsx.server")
SEND_SECONDS = 30.0
OPEN_BODY = 1_000  # bytes of a request without a key
CSP = (
    "default-src 'none'; script-src 'self' https://appsforoffice.microsoft.com; style-src 'self'; img-src 'self'; "
    f"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self' {' '.join(OFFICE_HOSTS)}"
)
HEADERS = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"strict-transport-security", b"max-age=31536000"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)


class Guard:
    """ASGI middleware around the whole application. needs_key: whether a path is answered to holders of a key alone."""

    def __init__(
        self,
        app: App,
        *,
        ring: KeyRing,
        buckets: Buckets,
        metrics: Metrics,
        upload_bytes: int,
        needs_key: Callable[[str], bool],
    ) -> None:
        self.app, self.ring, self.buckets, self.metrics = app, ring, buckets, metrics
        self.upload_bytes, self.needs_key = upload_bytes, needs_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # no websockets
        reply, began = _Reply(scope, send), time.perf_counter()
        state = scope.setdefault("state", {})
        try:
            most = OPEN_BODY
            if self.needs_key(scope["path"]):
                state["caller"] = caller = self._caller(scope)
                most = self.upload_bytes if caller.admin and scope["method"] == "PUT" else caller.limits.body
            await self.app(scope, _Bounded(scope, receive, most), reply)
        except Refused as refused:
            self.metrics.count("sizing_refused_total", reason=str(refused.status))
            await reply.refuse(refused)
        except (TimeoutError, ConnectionError):
            reply.status = reply.status or 499  # the client went away or does not read
        except Exception as error:  # what it says may hold cells: the log has the place alone
            where = traceback.extract_tb(error.__traceback__)[-1]
            LOG.error("failed: %s at %s:%s in %s", type(error).__name__, where.filename, where.lineno, where.name)
            await reply.refuse(Refused(500, "the service failed; its log says where"))
        finally:
            self._note(scope, reply.status, time.perf_counter() - began)

    def _caller(self, scope: Scope) -> Key:
        given = _header(scope, b"authorization")
        scheme, _, secret = given.partition(" ")
        key = self.ring.find(secret.strip()) if scheme.casefold() == "bearer" else None
        if key is None:
            raise Refused(401, "the key is missing, wrong or revoked; send it as Authorization: Bearer KEY")
        wait = self.buckets.wait(key.id, key.limits)
        if wait:
            raise Refused(429, f"the key may send {key.limits.rate:g} requests a second; wait", wait)
        return key

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        state = scope["state"]
        route = getattr(scope.get("route"), "path", "other")
        caller = state.get("caller")
        facts = {"route": route, "method": scope["method"] if len(scope["method"]) < 8 else "other", "status": status}
        facts |= {"ms": round(seconds * 1000, 1), "tenant": caller.tenant if caller else ""}
        LOG.info(json.dumps(facts | state.get("counts", {})))
        self.metrics.count("sizing_requests_total", route=route, status=str(status))
        self.metrics.took(route, seconds)


def _header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


class _Bounded:
    """The body of a request, up to a number of bytes."""

    def __init__(self, scope: Scope, receive: Receive, most: int) -> None:
        self.receive, self.most, self.left = receive, most, most
        announced = _header(scope, b"content-length")
        if announced and (not announced.isdecimal() or len(announced) > 18 or int(announced) > most):
            raise self._too_long()

    def _too_long(self) -> Refused:
        return Refused(413, f"the body is longer than {self.most:,} bytes, the most that is taken")

    async def __call__(self) -> Message:
        message = await self.receive()
        if message["type"] == "http.request":
            self.left -= len(message.get("body", b""))
            if self.left < 0:
                raise self._too_long()
        return message


class _Reply:
    """What is sent: the same headers each time, and no waiting for ever on a client that does not read."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.scope, self.send, self.status = scope, send, 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            known = {key for key, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(pair for pair in HEADERS if pair[0] not in known)]
        async with asyncio.timeout(SEND_SECONDS):
            await self.send(message)

    async def refuse(self, refused: Refused) -> None:
        if self.status:  # the answer has begun
            return
        body = json.dumps({"error": refused.sentence}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if refused.retry_after:
            headers.append((b"retry-after", str(max(1, round(refused.retry_after))).encode()))
        if refused.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        if refused.status in (401, 413, 429):
            headers.append((b"connection", b"close"))  # what is left of the body is not read
        await self({"type": "http.response.start", "status": refused.status, "headers": headers})
        await self({"type": "http.response.body", "body": body})
