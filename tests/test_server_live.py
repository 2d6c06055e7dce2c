"""The real service in a process of its own: slow and hostile clients, TLS, several workers, an orderly end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("fastapi", reason='needs the extra "server"')
httpx = pytest.importorskip("httpx", reason="needs httpx")

from server_tools import ROOT, Served, calls, running, signed  # noqa: E402

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and sockets as on Unix")

FITS = calls(("GPU_FITS", ["Llama-3.1-8B", "H100 SXM5 80GB", 8, 2048]))
SLOW_SECONDS = 3
CONNECTIONS = 100


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, Served]]:
    served = Served(tmp_path_factory.mktemp("live"))
    config = served.folder / "serve.toml"
    config.write_text(f'keys = "keys.json"\nconnections = {CONNECTIONS}\nrequest_seconds = {SLOW_SECONDS}\n')
    with running(served.folder, "--config", str(config)) as (url, log, _):
        yield url, log, served


def _answers(url: str, served: Served) -> bool:
    reply = httpx.post(f"{url}/v1/calls", json=FITS, headers=signed(served.user), timeout=20)
    return reply.status_code == 200 and reply.json()["answers"] in ([{"value": True}], [{"value": False}])


def _connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=30)  # type: ignore[arg-type]


def _closed_within(connection: socket.socket, seconds: float) -> bool:
    connection.settimeout(seconds)
    try:
        while connection.recv(4096):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"POST /v1/calls HTTP/1.1\r\nHost: a\r\nX-Slow: ",
        b"POST /v1/calls HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer KEY\r\nContent-Length: 900\r\n\r\n{",
        b"GET /health HTTP/1.1\r\nHost: a\r\n\r\nGET /health HTTP/1.1\r\nX: ",
    ],
    ids=["nothing", "half a head", "half a body", "half a second request"],
)
def test_a_slow_client_is_cut_off_and_nobody_waits_for_it(service: Any, start: bytes) -> None:
    url, _, served = service
    with _connected(url) as slow:
        slow.sendall(start.replace(b"KEY", served.user.encode()))
        began = time.monotonic()
        while time.monotonic() - began < SLOW_SECONDS / 2:
            try:
                slow.sendall(b"a")  # a byte now and then resets no clock
            except ConnectionError:
                break
            assert _answers(url, served)
            time.sleep(0.3)
        assert _closed_within(slow, SLOW_SECONDS + 5)


def test_a_thousand_silent_connections_shut_nobody_out(service: Any) -> None:
    url, _, served = service
    silent = []
    try:
        for at in range(1_000):
            silent.append(_connected(url))
            if at % 250 == 249:
                assert _answers(url, served)
        with httpx.Client() as client:
            found = client.get(f"{url}/metrics", headers=signed(served.admin), timeout=20).text
        dropped = re.search(r'connections_dropped_total\{reason="too many"\} (\d+)', found)
        assert int(dropped[1]) >= 1_000 - CONNECTIONS - 50  # type: ignore[index]
    finally:
        for each in silent:
            each.close()


def test_a_user_keeps_the_connection_whatever_strangers_open(service: Any) -> None:
    url, _, served = service
    parts = urlsplit(url)
    user = HTTPConnection(str(parts.hostname), parts.port, timeout=20)

    def answered() -> None:
        user.request("POST", "/v1/calls", json.dumps(FITS), signed(served.user))
        assert json.loads(user.getresponse().read())["answers"]

    answered()
    own = user.sock
    strangers = []
    try:
        for at in range(3 * CONNECTIONS):
            strangers.append(_connected(url))
            if at % 2:
                strangers[-1].sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")  # answered, but without a key
            if at % CONNECTIONS == CONNECTIONS - 1:
                time.sleep(0.2)
                answered()
        assert user.sock is own
    finally:
        for each in (user, *strangers):
            each.close()


def test_a_hundred_megabytes_are_refused_before_they_are_read(service: Any) -> None:
    url, _, served = service
    with _connected(url) as connection:
        head = f"POST /v1/calls HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {served.user}\r\nContent-Length: 100000000\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 413")

    def endless() -> Iterator[bytes]:  # no length is announced
        for _ in range(1_000):
            yield b"[" * 100_000

    try:
        reply = httpx.post(f"{url}/v1/calls", content=endless(), headers=signed(served.user), timeout=30)
        assert reply.status_code == 413
    except httpx.TransportError:  # closed while it was still sending
        pass
    assert _answers(url, served)


@pytest.mark.parametrize("path", ["/health", "/v1/calls", "/nothing"])
def test_a_body_that_nobody_reads_is_not_taken(service: Any, path: str) -> None:
    url, _, served = service
    chunk, sent = b"186a0\r\n" + b"[" * 100_000 + b"\r\n", 0
    with _connected(url) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):
            for _ in range(1_000):
                connection.sendall(chunk)
                sent += len(chunk)
    assert sent < 50_000_000  # what lies in the buffers of both ends
    assert _answers(url, served)


def test_a_long_head_and_rubbish_are_refused(service: Any) -> None:
    url, _, served = service
    for text in (
        b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00" * 50,
        b"GET /\r\n\r\n" * 3,
    ):
        with _connected(url) as connection:
            try:
                connection.sendall(text)
                assert connection.recv(20).startswith(b"HTTP/1.1 4") or True
            except ConnectionError:
                pass
            assert _closed_within(connection, SLOW_SECONDS + 5)
    assert _answers(url, served)


def test_batches_side_by_side_are_all_answered(service: Any) -> None:
    url, _, served = service

    def one(at: int) -> int:
        body = calls(*[("GPU_HEADROOM", ["Llama-3.1-8B", "L4", b, 100 + at]) for b in range(1, 201)])
        with httpx.Client() as client:
            reply = client.post(f"{url}/v1/calls", json=body, headers=signed(served.user), timeout=60)
        return len(reply.json().get("answers", ())) if reply.status_code == 200 else -reply.status_code

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(one, range(32))) == {200}


def test_the_log_of_the_process_holds_no_contents(service: Any) -> None:
    url, log, served = service
    marked = calls(("GPU_FITS", ["zebra", "zebra"]))
    httpx.post(f"{url}/v1/calls?zebra", json=marked, headers=signed(served.user), timeout=20)
    httpx.get(f"{url}/zebra%0ainjected", headers={"Authorization": "Bearer zebra"}, timeout=20)
    with _connected(url) as connection:
        connection.sendall(b"zebra zebra zebra\r\n\r\n")
        _closed_within(connection, 5)
    text = log.read_text()
    assert '"route": "/v1/calls", "method": "POST", "status": 200' in text
    assert "zebra" not in text
    assert "injected" not in text
    assert not any(key.split("_", 2)[2] in text for key in (served.user, served.admin))


def test_workers_share_keys_presets_and_counts(tmp_path: Path) -> None:
    served = Served(tmp_path)
    card = {"kind": "gpus", "name": "cards.csv", "text": "name,usable_gb\nRack 7,60\n"}
    rack = calls(("GPU_INFO", ["Rack 7"]))

    def asked(key: str, times: int = 24) -> list[Any]:
        found = []
        for _ in range(times):  # a connection each: whichever worker takes it
            reply = httpx.post(f"{url}/v1/calls", json=rack, headers=signed(key), timeout=30)
            found.append(reply.json()["answers"][0].get("value") if reply.status_code == 200 else reply.status_code)
        return found

    with running(tmp_path, "--keys", str(served.ring.path), "--workers", "2") as (url, log, process):
        for _ in range(300):
            if log.read_text().count("startup complete") == 2:
                break
            time.sleep(0.1)
        assert set(asked(served.user, 4)) == {None}
        reply = httpx.put(f"{url}/v1/presets", json={"files": [card]}, headers=signed(served.admin), timeout=60)
        assert reply.status_code == 200
        assert set(asked(served.user)) == {60.0}
        assert set(asked(served.other, 4)) == {None}
        key, extra = served.ring.add("acme")
        assert set(asked(extra, 8)) == {60.0}
        served.ring.revoke(key.id)
        assert set(asked(extra, 8)) == {401}
        time.sleep(3)  # each worker leaves its counts every two seconds
        text = httpx.get(f"{url}/metrics", headers=signed(served.admin), timeout=20).text
        total = sum(int(n) for n in re.findall(r'sizing_calls_total\{function="GPU_INFO",outcome="\w+"\} (\d+)', text))
        assert total == 4 + 24 + 4 + 8
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) in (0, -signal.SIGTERM)


def test_a_batch_under_way_is_answered_before_the_end(tmp_path: Path) -> None:
    served = Served(tmp_path)
    config = json.dumps(
        {
            "model_type": "llama",
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 8,
            "vocab_size": 9,
        }
    )
    body = calls(*[("MODEL_FROM_CONFIG", [config.replace("9", str(9 + at))]) for at in range(500)])
    with (
        running(tmp_path, "--keys", str(served.ring.path)) as (url, _, process),
        ThreadPoolExecutor(1) as pool,
        httpx.Client(timeout=60) as client,
    ):
        assert client.get(f"{url}/health").status_code == 200  # the connection is there
        reply = pool.submit(client.post, f"{url}/v1/calls", json=body, headers=signed(served.user))
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        assert len(reply.result().json()["answers"]) == 500
        assert process.wait(20) in (0, -signal.SIGTERM)


def test_dev_serves_tls_with_a_certificate_of_its_own(tmp_path: Path) -> None:
    with running(tmp_path, "--dev", scheme="https") as (url, log, _):
        cert = tmp_path / ".sizing-xlsx-dev" / "cert.pem"
        trust = ssl.create_default_context(cafile=str(cert))
        secret = re.search(r"sx_\S+", log.read_text())[0]  # type: ignore[index]
        reply = httpx.get(f"{url}/v1/me", headers=signed(secret), verify=trust, timeout=20)
        assert (reply.json()["tenant"], reply.json()["admin"]) == ("dev", True)
        assert f"{url}/functions.js".encode() in httpx.get(f"{url}/manifest.xml", verify=trust).content
    assert (tmp_path / ".sizing-xlsx-dev" / "key.pem").stat().st_mode & 0o077 == 0


def test_serve_without_keys_or_certificate_is_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sizing_xlsx import cli

    for options in (
        [],
        ["--keys", str(tmp_path / "none.json")],
        ["--keys", "k.json", "--cert", "c.pem"],
        ["--config", "none.toml"],
    ):
        assert cli.main(["serve", *options]) == 2
        assert re.fullmatch(r"sizing-xlsx: [^\n]+\.\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("cert", "key", "words"),
    [
        ("none.pem", "one/key.pem", "cert is none.pem, which is no file; it must be the TLS certificate in PEM"),
        ("one/cert.pem", "none.pem", "key is none.pem, which is no file; it must be the private key of the TLS cert"),
        (
            "text.pem",
            "one/key.pem",
            "cert is text.pem, which holds no certificate; it must be a TLS certificate in PEM",
        ),
        ("one/key.pem", "one/key.pem", "cert is one/key.pem, which holds no certificate; "),
        ("one/cert.pem", "text.pem", "key is text.pem, which holds no private key that can be read; "),
        ("one/cert.pem", "one/cert.pem", "key is one/cert.pem, which holds no private key that can be read; "),
        ("one/cert.pem", "locked.pem", "key is locked.pem, which holds no private key that can be read; "),
        ("one/cert.pem", "two/key.pem", "key is two/key.pem, which belongs to another certificate than one/cert.pem; "),
    ],
)
def test_a_wrong_certificate_is_refused_by_the_name_of_its_setting(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    cert: str,
    key: str,
    words: str,
) -> None:
    from cryptography.hazmat.primitives import serialization

    from sizing_xlsx import cli
    from sizing_xlsx.server.certificate import self_signed

    monkeypatch.chdir(tmp_path)
    Served(tmp_path)
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        self_signed(tmp_path / folder)
    (tmp_path / "text.pem").write_text("no PEM\n")
    secret = serialization.load_pem_private_key((tmp_path / "one" / "key.pem").read_bytes(), None)
    kept = serialization.BestAvailableEncryption(b"password")
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    (tmp_path / "locked.pem").write_bytes(secret.private_bytes(*form, kept))
    assert cli.main(["serve", "--keys", "keys.json", "--cert", cert, "--key", key]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"sizing-xlsx: {words}")
    assert re.fullmatch(r"[^\n]+\.\n", said)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ('gpus = ["wrong.csv"]', r"\S*wrong\.csv, line 1 has the column "),
        ('gpus = ["none.csv"]', r"\S*none\.csv"),
        ('models = ["wrong.json"]', r"\S*wrong\.json"),
        ('layer_forms = ["wrong.toml"]', r"\S*wrong\.toml"),
        ('presets = "empty"', r"\S*empty"),
        ('state = "wrong.csv"', r"state is \S*wrong\.csv, which is a file; it must be a folder"),
    ],
)
def test_wrong_files_of_the_settings_end_the_service_in_one_sentence(
    tmp_path: Path, workers: int, setting: str, words: str
) -> None:
    """Whatever the number of workers: their parent would start them again for ever."""
    served = Served(tmp_path)
    (tmp_path / "wrong.csv").write_text("name,memory\nRack 8,60\n")
    (tmp_path / "wrong.json").write_text("{")
    (tmp_path / "wrong.toml").write_text("a = [")
    (tmp_path / "empty").mkdir()
    (tmp_path / "serve.toml").write_text(f'keys = "{served.ring.path}"\nworkers = {workers}\n{setting}\n')
    command = [sys.executable, "-m", "sizing_xlsx", "serve", "--port", "0", "--config", "serve.toml"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tmp_path, env=environment, text=True) as process:
        try:
            said = process.communicate(timeout=30)[1]
        finally:
            process.terminate()
    assert process.returncode == 2, said
    assert re.fullmatch(rf"sizing-xlsx: {words}[^\n]*\.\n", said), said
