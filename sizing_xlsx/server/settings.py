"""What the service runs with: a TOML file, then what the command line says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints
from urllib.parse import urlsplit

from ..presets.toml_file import read_toml

ENVIRONMENT = "SIZING_XLSX_SERVER"  # holds the settings as JSON, for the processes of the workers
NAMESPACE = re.compile(r"[A-Z][A-Z0-9_.]{1,30}")


class Settings(NamedTuple):
    """keys: the file of API keys. state: the folder of tenants' presets. origin: what users' Excel calls the service.

    models, gpus, layer_forms: files added to the catalogue for every tenant. connections: at most, a worker.
    request_seconds: from the first byte of a request to its last. upload_entries: models, cards and layer forms of an
    upload, at most. An empty origin is https and the Host asked for.
    """

    keys: str = ""
    state: str = ""
    host: str = "127.0.0.1"
    port: int = 8443
    workers: int = 1
    cert: str = ""
    key: str = ""
    origin: str = ""
    namespace: str = "SIZING"
    provider: str = "sizing-xlsx"
    presets: str = ""
    models: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    layer_forms: tuple[str, ...] = ()
    connections: int = 512
    request_seconds: float = 15.0
    upload_bytes: int = 2_000_000
    upload_entries: int = 2_000
    open_metrics: bool = False
    run: str = ""

    def to_json(self) -> str:
        """As from_json takes them."""
        return json.dumps(self._asdict())

    @property
    def address(self) -> str:
        """The origin that the manifest names."""
        if self.origin:
            return self.origin
        host = "localhost" if self.host in ("127.0.0.1", "::1", "0.0.0.0", "::") else self.host
        return f"https://{host}" + ("" if self.port == 443 else f":{self.port}")


def from_json(text: str) -> Settings:
    """Settings as another process wrote them."""
    content: dict[str, Any] = {}
    content |= {key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(text).items()}
    return Settings()._replace(**content)


LEAST = {"port": 0, "workers": 1, "connections": 8, "request_seconds": 1, "upload_bytes": 1_000, "upload_entries": 1}
MOST = {
    "port": 65_535, "workers": 64, "connections": 20_000, "request_seconds": 300, "upload_bytes": 50_000_000,
    "upload_entries": 20_000,
}  # fmt: skip


def settings_of(path: Path | None, given: dict[str, Any]) -> Settings:
    """The settings of a file with those given in place of its own; ValueError with the field and what is right.

    Paths in the file are taken from its folder.
    """
    found = dict(read_toml(path)) if path else {}
    for field in ("keys", "state", "cert", "key", "presets"):
        if path and isinstance(found.get(field), str):
            found[field] = str(path.parent / found[field])
    for field in ("models", "gpus", "layer_forms"):
        if field in found and path:
            found[field] = [str(path.parent / str(each)) for each in _listed(field, found[field])]
    found |= {key: value for key, value in given.items() if value is not None}
    kinds = get_type_hints(Settings)
    for field, value in found.items():
        if field not in kinds or field == "run":
            raise ValueError(f"{field} is no setting; settings are {', '.join(key for key in kinds if key != 'run')}")
        found[field] = _taken(field, kinds[field], value)
    if not found.get("keys"):
        raise ValueError("keys is empty; name the file of API keys, which `sizing-xlsx serve keys add` makes")
    found.setdefault("state", str(Path(found["keys"]).absolute().parent / "tenants"))
    settings = Settings(**found)
    if bool(settings.cert) != bool(settings.key):
        lacking = "key" if settings.cert else "cert"
        raise ValueError(f"{lacking} is empty; TLS needs both the certificate and its key, or neither behind a proxy")
    if settings.origin and not is_origin(settings.origin):
        raise ValueError(f"origin is {settings.origin!r}; it must be https:// and a host name, without a path")
    if not NAMESPACE.fullmatch(settings.namespace):
        raise ValueError(
            f"namespace is {settings.namespace!r}; it must be 2 to 31 capitals, digits, _ or . after a letter"
        )
    return settings


def is_origin(text: str) -> bool:
    """Whether a text is an https origin: a scheme, a host, perhaps a port, nothing else."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    plain = parts.scheme == "https" and bool(re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", parts.hostname or ""))
    return plain and text in (f"https://{parts.hostname}", f"https://{parts.hostname}:{port}")


def _listed(field: str, value: Any) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{field} is {value!r}; it must be a list of texts")
    return list(value)


def _taken(field: str, kind: Any, value: Any) -> Any:
    if kind == tuple[str, ...]:
        return tuple(str(each) for each in _listed(field, value))
    words = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}[kind]
    right = (int, float) if kind is float else kind
    if not isinstance(value, right) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{field} is {value!r}; it must be {words}")
    if field in LEAST and not LEAST[field] <= value <= MOST[field]:
        raise ValueError(f"{field} is {value!r}; it must be from {LEAST[field]:,} to {MOST[field]:,}")
    return value
