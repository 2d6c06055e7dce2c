"""`sizing-xlsx serve`, and `sizing-xlsx serve keys add|list|revoke|rotate`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..output import printed
from .settings import ENVIRONMENT, Settings, settings_of

if TYPE_CHECKING:
    from .keys import Limits

DEV_FOLDER = ".sizing-xlsx-dev"
SHUTDOWN_SECONDS = 10
KEEP_ALIVE_SECONDS = 20
LONGEST_HEAD = 16_384  # bytes of a request's head
FILES = {  # settings that name one -> what it must be
    "keys": "the file of API keys, which `sizing-xlsx serve keys add` makes",
    "cert": "the TLS certificate in PEM",
    "key": "the private key of the TLS certificate in PEM",
}


def add(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.description = "Serve the Excel add-in and the functions behind it. Needs the extra: sizing-xlsx[server]."
    parser.add_argument("--host", help="address to listen at; 127.0.0.1")
    parser.add_argument("--port", type=int, help="port to listen at; 8443")
    parser.add_argument("--workers", type=int, help="processes; 1")
    parser.add_argument(
        "--cert", metavar="FILE", help="TLS certificate (PEM); without it, stand behind a proxy with TLS"
    )
    parser.add_argument("--key", metavar="FILE", help="its private key (PEM)")
    parser.add_argument("--keys", metavar="FILE", help="the API keys, as `serve keys add` makes them")
    parser.add_argument(
        "--origin", metavar="URL", help="what users' Excel calls the service: https://sizing.example.com"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="a TOML with these and more; see docs/add-in.md")
    parser.add_argument("--dev", action="store_true", help="a certificate and a key of its own, on this machine alone")
    parser.set_defaults(run=run, action=None)
    keys = parser.add_subparsers(dest="about", metavar="keys").add_parser("keys", help="add, list, revoke, rotate keys")
    keys.add_argument("action", choices=("add", "list", "revoke", "rotate"))
    keys.add_argument("id", nargs="?", help="of the key; for revoke and rotate")
    keys.add_argument("--keys", metavar="FILE", help="the file of keys")
    keys.add_argument("--config", type=Path, metavar="FILE", help="a TOML that names the file")
    keys.add_argument("--tenant", help="whose key it is; for add")
    keys.add_argument("--admin", action="store_true", help="it may upload presets and read metrics; for add")
    keys.add_argument("--note", default="", help="what the list shows beside it; for add")
    keys.add_argument("--rate", type=float, help="requests a second in the long run; 20")
    keys.add_argument("--burst", type=int, help="requests at once; 100")
    keys.add_argument("--batch", type=int, help="calls in a request; 500")
    keys.add_argument("--body", type=int, help="bytes of a request; 1000000")
    keys.add_argument(
        "--grace", type=float, default=0.0, metavar="HOURS", help="for rotate: the old one counts so long"
    )
    keys.set_defaults(run=run_keys)


def run(options: argparse.Namespace) -> int:
    """Serve until told to stop."""
    try:
        import fastapi  # noqa: F401
        import uvicorn
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f'serve needs {error.name}; pip install "sizing-xlsx[server]"') from None
    from .certificate import check_pair
    from .keys import KeyRing

    fields = ("host", "port", "workers", "cert", "key", "keys", "origin")
    given = {field: getattr(options, field) for field in fields}
    settings = _dev(given) if options.dev else settings_of(options.config, given)
    for field, right in FILES.items():
        file = getattr(settings, field)
        if file and not Path(file).is_file():
            raise ValueError(f"{field} is {file}, which is no file; it must be {right}")
    if settings.cert:
        check_pair(Path(settings.cert), Path(settings.key))
    KeyRing(Path(settings.keys)).all()  # a file that is damaged is refused now
    if Path(settings.state).exists() and not Path(settings.state).is_dir():
        raise ValueError(f"state is {settings.state}, which is a file; it must be a folder, which is made if need be")
    if settings.workers > 1:  # one that fails at its start would be started again for ever
        from .app import Service

        Service(settings).warm()
    with tempfile.TemporaryDirectory(prefix="sizing-xlsx-") as folder:
        settings = settings._replace(run=folder)
        os.environ[ENVIRONMENT] = settings.to_json()
        uvicorn.run("sizing_xlsx.server.app:from_environment", **_uvicorn(settings))
    return 0


def _uvicorn(settings: Settings) -> dict[str, Any]:
    from .protocol import BoundedProtocol

    plain = {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}
    handler = {"class": "logging.StreamHandler", "formatter": "plain", "stream": "ext://sys.stderr"}
    quiet = {"level": "INFO", "handlers": ["stderr"], "propagate": False}
    logs = {"version": 1, "disable_existing_loggers": False, "formatters": {"plain": plain}}
    logs |= {"handlers": {"stderr": handler}, "loggers": {"uvicorn": quiet, "sizing_xlsx.server": quiet}}
    return {
        "factory": True,
        "host": settings.host,
        "port": settings.port,
        "workers": settings.workers,
        "ssl_certfile": settings.cert or None,
        "ssl_keyfile": settings.key or None,
        "http": BoundedProtocol,
        "ws": "none",
        "lifespan": "on",
        "access_log": False,  # its lines hold addresses that were asked for
        "log_config": logs,
        "proxy_headers": False,
        "server_header": False,
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": SHUTDOWN_SECONDS,
        "h11_max_incomplete_event_size": LONGEST_HEAD,
    }


def _dev(given: dict[str, Any]) -> Settings:
    """Settings for this machine alone: a certificate that it made itself, and a new key at each start."""
    from .certificate import self_signed
    from .keys import KeyRing

    folder = Path(DEV_FOLDER).absolute()
    folder.mkdir(mode=0o700, exist_ok=True)
    cert, key = self_signed(folder)
    ring = KeyRing(folder / "keys.json")
    for old in ring.all().values():
        if not old.revoked:
            ring.revoke(old.id)
    _, secret = ring.add("dev", admin=True)
    own = {"cert": str(cert), "key": str(key), "keys": str(ring.path), "state": str(folder / "tenants")}
    settings = settings_of(None, {**given, **own})
    printed(f"Add-in: {settings.address}/manifest.xml\nAPI key of this start: {secret}\nTrust once: {cert}")
    return settings


def run_keys(options: argparse.Namespace) -> int:
    """Change or list the keys."""
    from .keys import KeyRing

    path = options.keys or (settings_of(options.config, {}).keys if options.config else None)
    if not path:
        raise ValueError("keys is empty; name the file of keys with --keys")
    ring = KeyRing(Path(path))
    if options.action == "list":
        if not ring.path.is_file():
            raise ValueError(f"keys is {ring.path}, which is no file; name the one that `serve keys add` made")
        printed(_table(ring))
        return 0
    if options.action == "add":
        if not options.tenant:
            raise ValueError("tenant is empty; say whose key it is with --tenant")
        key, secret = ring.add(options.tenant, admin=options.admin, limits=_limits(options), note=options.note)
    elif not options.id:
        raise ValueError(f"id is empty; {options.action} needs the id of a key, which `serve keys list` shows")
    elif options.action == "revoke":
        printed(f"Key {ring.revoke(options.id).id} is revoked.")
        return 0
    else:
        key, secret = ring.rotate(options.id, options.grace)
    print(f"Key {key.id} of {key.tenant}; it is shown this once:", file=sys.stderr)
    printed(secret)
    return 0


def _limits(options: argparse.Namespace) -> Limits:
    from .keys import Limits

    given = {field: getattr(options, field) for field in Limits._fields if getattr(options, field) is not None}
    for field, value in given.items():
        if not 0 < value <= 10**8:
            raise ValueError(f"{field} is {value}; it must be more than 0 and at most 100,000,000")
    return Limits(**given)


def _table(ring: Any) -> str:
    rows = [("Id", "Tenant", "Admin", "Created", "State", "Note")]
    for key in ring.all().values():
        state = "revoked" if key.revoked else "in force"
        rows.append((key.id, key.tenant, "yes" if key.admin else "", key.created, state, key.note))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)
