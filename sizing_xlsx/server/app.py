"""The routes: calls of functions, presets of a tenant, the add-in's files, health and metrics."""

from __future__ import annotations

import asyncio
import gc
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from .. import __version__
from ..functions import Fault, registered
from ..functions.batch import ANSWERS, call_many
from ..presets.catalogue import load_presets
from ..presets.own import with_own
from .guard import Guard
from .keys import Key, KeyRing
from .limits import Buckets
from .metadata import ICONS, browser_json, functions_json, identity_of, manifest
from .metrics import Metrics
from .protocol import bound
from .settings import ENVIRONMENT, Settings, from_json, is_origin
from .tenants import Tenants, Upload
from .turns import Turns
from .wire import Refused, answers_to, calls_of, parsed

T = TypeVar("T")
ASSETS = Path(__file__).parent / "assets"
PAGES = {  # path -> type; each a file of assets/
    "taskpane.html": "text/html; charset=utf-8",
    "taskpane.css": "text/css; charset=utf-8",
    "taskpane.js": "text/javascript; charset=utf-8",
    "api.html": "text/html; charset=utf-8",
    "api.js": "text/javascript; charset=utf-8",
    **{f"icon-{size}.png": "image/png" for size in ICONS},
}
THREADS = 2  # of a worker; more would only wait for each other
WAITING_OF_A_KEY, WAITING = 16, 64  # requests that wait for a thread
LEAVE_SECONDS = 2.0
ANY_ORIGIN = "https://origin.invalid"  # in place of that which is asked
MOST_ORIGINS = 32  # whose manifests are kept


class Call(BaseModel):
    """One call of a function."""

    model_config = ConfigDict(extra="forbid")
    function: str = Field(max_length=64, examples=["GPU_FITS"])
    arguments: list[Any] = Field(examples=[["Llama-3.1-8B", "H100 SXM5 80GB", 8, 2048]])


class Calls(BaseModel):
    """Many calls; how many, and of how many bytes, is a limit of the key."""

    model_config = ConfigDict(extra="forbid")
    calls: list[Call]


class Answer(BaseModel):
    """A value, or an error's code with one sentence."""

    value: bool | float | str | list[list[bool | float | str | None]] | None = None
    error: str | None = Field(None, pattern="#N/A|#VALUE!")
    message: str | None = None


class Answers(BaseModel):
    """The answers in the order of the calls. data: a hash of the catalogue that they rest on."""

    data: str
    answers: list[Answer]


class Problem(BaseModel):
    """Why a request is not answered."""

    error: str


class PresetFile(BaseModel):
    """kind: models (config.json), gpus (CSV or TOML) or layer_forms (TOML)."""

    model_config = ConfigDict(extra="forbid")
    kind: str = Field(max_length=20)
    name: str = Field(max_length=80)
    text: str


class PresetFiles(BaseModel):
    """All of a tenant's files; they take the place of those before."""

    model_config = ConfigDict(extra="forbid")
    files: list[PresetFile]


class Chosen(BaseModel):
    """version: the number of an upload that is kept; 0 for the service's own catalogue."""

    model_config = ConfigDict(extra="forbid")
    version: int = Field(ge=0, le=10**9)


WRONG: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": words}
    for status, words in {
        400: "no JSON",
        401: "no valid key",
        403: "the key is no administrator's",
        404: "not there",
        409: "the upload crossed another",
        413: "too much",
        422: "of another form",
        429: "too fast",
        503: "too busy",
    }.items()
}


class Service:
    """What the routes share."""

    def __init__(self, settings: Settings) -> None:
        base = load_presets(settings.presets or None)
        if settings.models or settings.gpus or settings.layer_forms:
            base = with_own(base, settings.models, settings.gpus, settings.layer_forms, unknown="list")
        self.settings = settings
        self.tenants = Tenants(Path(settings.state), base, settings.upload_entries)
        self.metrics = Metrics(Path(settings.run) if settings.run else None)
        self.threads = ThreadPoolExecutor(THREADS, "calls")
        self.turns = Turns(THREADS, WAITING_OF_A_KEY, WAITING)

    async def apart(self, key: Key, function: Callable[..., T], *arguments: Any) -> T:
        """The result of a function, computed for a key beside the event loop; Refused where too many wait already."""
        async with self.turns.of(key.id):
            return await asyncio.get_running_loop().run_in_executor(self.threads, function, *arguments)

    def answered(self, calls: Sequence[tuple[str, list[Any]]], tenant: str) -> tuple[bytes, int]:
        """The reply to calls, and how many of them were refused; counted by function."""
        desk = self.tenants.desk(tenant)
        hits, misses = ANSWERS.hits, ANSWERS.misses
        answers = call_many(calls, desk)
        known = registered()
        outcomes = Counter(
            (name.upper() if name.upper() in known else "other", isinstance(answer, Fault))
            for (name, _), answer in zip(calls, answers, strict=True)
        )
        for (name, refused), number in outcomes.items():
            self.metrics.count("sizing_calls_total", number, function=name, outcome="refused" if refused else "value")
        self.metrics.count("sizing_answers_kept_total", ANSWERS.hits - hits, known="yes")
        self.metrics.count("sizing_answers_kept_total", ANSWERS.misses - misses, known="no")
        faults = sum(number for (_, refused), number in outcomes.items() if refused)
        return answers_to(answers, desk.digest), faults

    def warm(self) -> None:
        """Compile what most calls need, so that the first sheet does not wait for it."""
        for name in ("GPU_FITS", "GPU_VERDICT", "GPU_HEADROOM", "GPU_MAX_BATCH", "GPU_MAX_SEQUENCE"):
            function = registered()[name]
            example = {**function.examples[0]}
            series = "sequence_length" if "sequence_length" in example else "batch_size"
            call_many([(name, example | {series: 2**at}) for at in range(12)], self.tenants.common, None)


def create(settings: Settings) -> Any:
    """The whole application with these settings."""
    return application(Service(settings))


def application(service: Service) -> Any:
    """The routes over a service, behind the guard."""
    settings = service.settings
    bound(settings.connections, settings.request_seconds, service.metrics)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        leaving = asyncio.create_task(_leave(service.metrics))
        yield
        leaving.cancel()

    api = FastAPI(
        title="sizing-xlsx",
        version=__version__,
        description="GPU memory sizing as Excel functions.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    api.add_exception_handler(Refused, _refuse)
    api.add_exception_handler(RequestValidationError, _refuse_form)
    api.add_exception_handler(HTTPException, _refuse_http)
    _calls(api, service)
    _presets(api, service)
    _open(api, service)
    api.openapi()["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    return Guard(
        api,
        ring=KeyRing(Path(settings.keys)),
        buckets=Buckets(1 / settings.workers),
        metrics=service.metrics,
        upload_bytes=settings.upload_bytes,
        needs_key=lambda path: path.startswith("/v1/") or (path == "/metrics" and not settings.open_metrics),
    )


def from_environment() -> Any:
    """The application with the settings that the command left for its workers."""
    service = Service(from_json(os.environ[ENVIRONMENT]))
    service.warm()
    gc.collect()
    gc.freeze()  # the formulas stay: looking through them at each collection takes longer than a batch
    return application(service)


async def _leave(metrics: Metrics) -> None:
    while True:
        await asyncio.sleep(LEAVE_SECONDS)
        await asyncio.get_running_loop().run_in_executor(None, metrics.leave)


async def _refuse(request: Request, refused: Any) -> Response:
    headers = {"Retry-After": str(max(1, round(refused.retry_after)))} if refused.retry_after else {}
    return JSONResponse({"error": refused.sentence}, refused.status, headers)


async def _refuse_form(request: Request, error: Any) -> Response:
    where = ".".join(str(part) for part in error.errors()[0]["loc"][1:])[:200]
    return JSONResponse({"error": f"{where or 'the request'} is of another form; /openapi.json says which"}, 422)


async def _refuse_http(request: Request, error: Any) -> Response:
    words = {404: "there is nothing of that address", 405: "that address is not asked so"}
    return JSONResponse({"error": words.get(error.status_code, "refused")}, error.status_code, error.headers)


# ---------------------------------------------------------------------- who asks; async: others are run in threads
async def caller(request: Request) -> Key:
    """The key that the guard found."""
    found: Key = request.state.caller
    return found


async def administrator(request: Request) -> Key:
    """The same, where it is an administrator's."""
    found = await caller(request)
    if not found.admin:
        raise Refused(403, "the key is no administrator's; ask whoever keeps the keys")
    return found


Caller = Annotated[Key, Depends(caller)]
Administrator = Annotated[Key, Depends(administrator)]
SIGNED: dict[str, Any] = {"security": [{"key": []}]}


def _body(model: type[BaseModel]) -> dict[str, Any]:
    """What OpenAPI says of a body that the route reads itself."""
    schema = model.model_json_schema()
    whole = _inlined(schema, schema.pop("$defs", {}))
    return SIGNED | {"requestBody": {"required": True, "content": {"application/json": {"schema": whole}}}}


def _inlined(schema: Any, parts: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(each, parts) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(parts[schema["$ref"].rpartition("/")[2]], parts)
    return {key: _inlined(value, parts) for key, value in schema.items()}


# ---------------------------------------------------------------------- routes
def _calls(api: FastAPI, service: Service) -> None:
    @api.post("/v1/calls", response_model=Answers, responses=WRONG, openapi_extra=_body(Calls), tags=["calls"])
    async def calls(request: Request, key: Caller) -> Response:
        """Values of functions, many at once. A call that is refused has an error in its place; the others stand."""
        body = await request.body()
        asked = calls_of(body, key.limits.batch)
        reply, faults = await service.apart(key, service.answered, asked, key.tenant)
        request.state.counts = {"calls": len(asked), "refused": faults, "bytes": len(body)}
        return Response(reply, media_type="application/json")

    @api.get("/v1/me", responses=WRONG, openapi_extra=SIGNED, tags=["calls"])
    async def me(key: Caller) -> dict[str, Any]:
        """Who the key belongs to, its limits, and the hash of the catalogue that answers rest on."""
        desk = await service.apart(key, service.tenants.desk, key.tenant)
        return {"tenant": key.tenant, "admin": key.admin, "data": desk.digest, "limits": key.limits._asdict()}

    @api.get("/v1/functions", responses=WRONG, openapi_extra=SIGNED, tags=["calls"])
    async def functions(key: Caller) -> list[dict[str, Any]]:
        """Each function with its arguments and examples, over the catalogue of the tenant."""
        desk = await service.apart(key, service.tenants.desk, key.tenant)
        return await service.apart(key, browser_json, desk, service.settings.namespace)


def _presets(api: FastAPI, service: Service) -> None:
    tenants = service.tenants

    def state(tenant: str) -> dict[str, Any]:
        return {"version": tenants.version(tenant), "versions": tenants.versions(tenant)}

    @api.get("/v1/presets", responses=WRONG, openapi_extra=SIGNED, tags=["presets"])
    async def listed(key: Administrator) -> dict[str, Any]:
        """The uploads of the tenant, and the number of the one in force."""
        return await service.apart(key, state, key.tenant)

    @api.put("/v1/presets", responses=WRONG, openapi_extra=_body(PresetFiles), tags=["presets"])
    async def upload(request: Request, key: Administrator) -> dict[str, Any]:
        """Models, cards and layer forms of the tenant, checked and put into force in one stroke."""
        content = parsed(await request.body())
        try:
            files = [Upload(file.kind, file.name, file.text) for file in PresetFiles.model_validate(content).files]
        except ValueError:
            raise Refused(422, 'the body must be {"files": [{"kind": …, "name": …, "text": …}, …]}') from None
        await service.apart(key, tenants.upload, key.tenant, files)
        return await service.apart(key, state, key.tenant)

    @api.post("/v1/presets/version", responses=WRONG, openapi_extra=SIGNED, tags=["presets"])
    async def choose(chosen: Chosen, key: Administrator) -> dict[str, Any]:
        """Back to an earlier upload, or to the service's own catalogue."""
        await service.apart(key, tenants.choose, key.tenant, chosen.version)
        return await service.apart(key, state, key.tenant)


def _open(api: FastAPI, service: Service) -> None:
    settings, common = service.settings, service.tenants.common

    def origin_of(request: Request) -> str:
        asked = f"https://{request.headers.get('host', '')}"
        return settings.origin or (asked if is_origin(asked) else settings.address)

    @api.get("/health", tags=["service"])
    async def health() -> dict[str, str]:
        """Whether the service answers."""
        return {"status": "ok", "version": __version__}

    @api.get("/metrics", responses=WRONG, openapi_extra=SIGNED, tags=["service"])
    async def metrics(request: Request) -> Response:
        """Counts and durations in Prometheus' text format, of all workers."""
        if not settings.open_metrics:
            await administrator(request)
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    # What anybody may ask for is made once, so that many who ask take no time from those who calculate.
    @cache
    def described() -> str:
        return json.dumps(functions_json(common, ANY_ORIGIN), ensure_ascii=False)

    @lru_cache(maxsize=MOST_ORIGINS)
    def manifest_of(origin: str) -> bytes:
        return manifest(origin, settings.namespace, settings.provider)

    @api.get("/functions.json", include_in_schema=False)
    async def metadata(request: Request) -> Response:
        # Excel for the web reads this file from its own origin.
        text = described().replace(ANY_ORIGIN, origin_of(request))
        return Response(text, media_type="application/json", headers={"Access-Control-Allow-Origin": "*"})

    @api.get("/manifest.xml", include_in_schema=False)
    async def the_manifest(request: Request) -> Response:
        return Response(manifest_of(origin_of(request)), media_type="application/xml")

    known = {identity_of(each): [each.name, len(each.arguments)] for each in registered().values()}
    script = (ASSETS / "functions.js").read_bytes() + f"\nSizingFunctions.associate({json.dumps(known)});\n".encode()
    api.get("/functions.js", include_in_schema=False)(_page(script, "text/javascript; charset=utf-8"))
    for name, kind in PAGES.items():
        api.get(f"/{name}", include_in_schema=False)(_page((ASSETS / name).read_bytes(), kind))


def _page(content: bytes, kind: str) -> Any:
    async def page() -> Response:
        return Response(content, media_type=kind, headers={"Cache-Control": "max-age=300"})

    return page
