"""API keys: who may ask. The file holds a hash of each, never the key itself.

A key is "sx_", the key's id, "_", and 256 random bits. A hash of such a text cannot be searched for, so one round of
SHA-256 does; what a slow hash protects, short passwords, does not occur.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from .files import Watched, locked, write_whole

TENANT = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_KEY = re.compile(r"sx_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
LONGEST_GRACE_HOURS = 365 * 24
_NOBODY = hashlib.sha256(b"nobody").hexdigest()


class Limits(NamedTuple):
    """Of a key. rate: requests a second, in the long run. burst: requests at once. batch: calls in a request.

    body: bytes of a request.
    """

    rate: float = 20.0
    burst: int = 100
    batch: int = 500
    body: int = 1_000_000


USUAL = Limits()


class Key(NamedTuple):
    """An API key as it is kept. hash: of the secret. former, former_until: of the one before the last rotation."""

    id: str
    tenant: str
    hash: str
    admin: bool = False
    limits: Limits = USUAL
    created: str = ""
    revoked: bool = False
    former: str = ""
    former_until: float = 0.0
    note: str = ""


class KeyRing:
    """The keys of a file. Changes made by another process count from the next question on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._watched: Watched[dict[str, Key]] = Watched(path, _read, {})

    def all(self) -> dict[str, Key]:
        """Every key by its id, revoked ones too."""
        return dict(self._watched.value())

    def find(self, secret: str) -> Key | None:
        """The key of that text; None for one that is wrong, unknown or revoked. Takes as long in each case."""
        parts = _KEY.fullmatch(secret)
        found = self._watched.value().get(parts[1]) if parts else None
        given = _hash(secret)
        now = found is not None and time.time() < found.former_until
        right = hmac.compare_digest(given, found.hash if found else _NOBODY)
        former = hmac.compare_digest(given, found.former if found and found.former else _NOBODY)
        return found if found and not found.revoked and (right or (former and now)) else None

    def add(self, tenant: str, *, admin: bool = False, limits: Limits = USUAL, note: str = "") -> tuple[Key, str]:
        """A new key and its text, which is shown this once; ValueError for a tenant's name that cannot be one."""
        if not TENANT.fullmatch(tenant):
            raise ValueError(f"tenant is {tenant!r}; it must be 1 to 40 small letters, digits and inner hyphens")
        if len(note) > 200 or not note.isprintable():
            raise ValueError("note is too long or holds control characters; it must be at most 200 printable ones")
        identity = secrets.token_hex(6)
        secret = _secret(identity)
        key = Key(identity, tenant, _hash(secret), admin, limits, time.strftime("%Y-%m-%d", time.gmtime()), note=note)
        with self._changing() as keys:
            keys[identity] = key
        return key, secret

    def revoke(self, identity: str) -> Key:
        """End a key at once, its former text too; ValueError where there is none."""
        with self._changing() as keys:
            key = self._known(keys, identity)._replace(revoked=True, former="", former_until=0.0)
            keys[identity] = key
        return key

    def rotate(self, identity: str, grace_hours: float = 0.0) -> tuple[Key, str]:
        """A new text for a key; the former counts for some hours more, at most a year.

        ValueError for hours that cannot be, for no such key, and for a revoked one.
        """
        if not 0 <= grace_hours <= LONGEST_GRACE_HOURS:  # nan too
            raise ValueError(f"grace is {grace_hours:g}; it must be from 0 to {LONGEST_GRACE_HOURS:,} hours")
        secret = _secret(identity)
        until = time.time() + grace_hours * 3600 if grace_hours > 0 else 0.0
        with self._changing() as keys:
            key = self._known(keys, identity)
            if key.revoked:
                raise ValueError(f"key {identity} is revoked; add a new one")
            new = key._replace(hash=_hash(secret), former=key.hash if until else "", former_until=until)
            keys[identity] = new
        return new, secret

    def _known(self, keys: dict[str, Key], identity: str) -> Key:
        found = keys.get(identity)
        if found is None:
            raise ValueError(f"key is {identity!r}; {self.path} has none of that id")
        return found

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Key]]:
        """The keys as they are now, written back with the changes made to them; changes come one after another."""
        with locked(self.path):
            keys = _read(self.path) if self.path.exists() else {}
            yield keys
            self._write(keys)

    def _write(self, keys: dict[str, Key]) -> None:
        rows = [key._asdict() | {"limits": key.limits._asdict()} for key in keys.values()]
        write_whole(self.path, json.dumps({"keys": rows}, indent=2).encode() + b"\n")


def _secret(identity: str) -> str:
    return f"sx_{identity}_{secrets.token_urlsafe(32)}"


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _read(path: Path) -> dict[str, Key]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        rows = content.get("keys") if isinstance(content, dict) else None
        if not isinstance(rows, list):
            raise ValueError('it is not {"keys": […]}')
        keys = [_row(f"key {number}", row) for number, row in enumerate(rows, 1)]
    except UnicodeDecodeError:
        raise ValueError(_damaged(path, "it is no text in UTF-8")) from None
    except json.JSONDecodeError as error:
        raise ValueError(_damaged(path, f"line {error.lineno} is no JSON")) from None
    except RecursionError:
        raise ValueError(_damaged(path, "it is nested too deep")) from None
    except ValueError as error:
        raise ValueError(_damaged(path, str(error))) from None
    return {key.id: key for key in keys}


def _damaged(path: Path, why: str) -> str:
    return f"{path} is no file of API keys: {why}; restore it from a copy"


def _row(place: str, row: Any) -> Key:
    fields = _fields(place, row, Key)
    return Key(**{**fields, "limits": Limits(**_fields(f"{place}, limits", fields["limits"], Limits))})


def _fields(place: str, row: Any, kind: type[Key] | type[Limits]) -> dict[str, Any]:
    """A row of the file, found to have the fields of a kind, each of its type; ValueError with what is wrong."""
    if not isinstance(row, dict) or row.keys() != set(kind._fields):
        raise ValueError(f"{place} must have {', '.join(kind._fields)}, and nothing else")
    for field, right in get_type_hints(kind).items():
        value, words = row[field], _WORDS.get(right)
        taken = (int, float) if right is float else right
        if words and (not isinstance(value, taken) or (isinstance(value, bool) and right is not bool)):
            raise ValueError(f"{field} of {place} must be {words}")  # the value may be a key
    return row


_WORDS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}
