"""The service behind the add-in: what it answers, to whom, how much; what it says to Excel."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason='needs the extra "server"')
pytest.importorskip("httpx", reason="needs httpx")

import function_vectors
from lxml import etree
from server_tools import Served, calls, signed
from starlette.testclient import TestClient

from sizing_xlsx import cli, functions
from sizing_xlsx.functions import Fault, registered
from sizing_xlsx.functions.batch import ANSWERS
from sizing_xlsx.functions.desk import Desk
from sizing_xlsx.functions.signature import TABLE, described
from sizing_xlsx.presets.catalogue import load_presets
from sizing_xlsx.presets.own import with_own
from sizing_xlsx.server.app import create
from sizing_xlsx.server.files import write_whole
from sizing_xlsx.server.guard import LOG
from sizing_xlsx.server.keys import KeyRing, Limits
from sizing_xlsx.server.limits import Buckets
from sizing_xlsx.server.settings import Settings, from_json, settings_of
from sizing_xlsx.server.turns import Turns

FITS = ("GPU_FITS", ["Llama-3.1-8B", "H100 SXM5 80GB", 8, 2048])
ORIGIN = "https://sizing.example.com"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return Served(tmp_path_factory.mktemp("service"))


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[TestClient]:
    with TestClient(create(served.settings()), base_url=ORIGIN, raise_server_exceptions=False) as found:
        yield found


# ---------------------------------------------------------------------- calls
def test_calls_are_answered_as_call_answers_them(client: TestClient, served: Served) -> None:
    asked = [
        (name, [example.get(a) for a in each.arguments])
        for name, each in registered().items()
        for example in each.examples
    ]
    asked += [("GPU_FITS", ["Llama-3.1-8B", "L4", b, 512]) for b in range(1, 30)]
    asked += [
        ("GPU_FIT", []),
        ("GPU_FITS", []),
        ("gpu_fits", ["no model", "L4"]),
        ("GPU_FITS", ["gpt2", [["L4"]], "8", 64]),
    ]
    reply = client.post("/v1/calls", json=calls(*asked), headers=signed(served.user))
    assert reply.status_code == 200
    assert reply.json()["data"] == functions.default_desk().digest
    for (name, given), answer in zip(asked, reply.json()["answers"], strict=True):
        try:
            assert answer == {
                "value": pytest.approx(expected)
                if isinstance(expected := functions.call(name, *given), float)
                else expected
            }
        except Fault as fault:
            assert answer == {"error": fault.code, "message": str(fault)}


def test_golden_vectors_are_met_over_http(client: TestClient, served: Served) -> None:
    vectors = function_vectors.read()
    for at in range(0, len(vectors), 500):
        cases = vectors[at : at + 500]
        body = calls(*((case["function"], function_vectors.given(case)) for case in cases))
        answers = client.post("/v1/calls", json=body, headers=signed(served.user)).json()["answers"]
        for case, answer in zip(cases, answers, strict=True):
            assert function_vectors.is_met(case, answer.get("value"), answer.get("error")), (case, answer)


def test_a_sheet_that_is_recalculated_is_answered_from_memory(client: TestClient, served: Served) -> None:
    body = calls(*[("GPU_HEADROOM", ["Llama-3.1-8B", "H100 SXM5 80GB", b, 777]) for b in range(1, 101)])
    first = client.post("/v1/calls", json=body, headers=signed(served.user))
    misses = ANSWERS.misses
    again = client.post("/v1/calls", json=body, headers=signed(served.user))
    assert again.content == first.content
    assert ANSWERS.misses == misses


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b'{"calls": [{"function": "GPU_FITS", "arguments": [NaN]}]}', 400),
        (b'{"calls": [{"function": "GPU_FITS", "arguments": [-Infinity]}]}', 400),
        (b"[" * 100_000, 400),
        (b'{"calls":' * 5_000, 400),
        (b'{"calls": [{"function": "GPU_FITS", "arguments": ' + b"[" * 5_000 + b"]" * 5_000 + b"}]}", 400),
        (b"[]", 422),
        (b"{}", 422),
        (b'{"calls": {}}', 422),
        (b'{"calls": [], "more": 1}', 422),
        (b'{"calls": [1]}', 422),
        (b'{"calls": [{"function": "GPU_FITS"}]}', 422),
        (b'{"calls": [{"function": 8, "arguments": []}]}', 422),
        (b'{"calls": [{"function": "GPU_FITS", "arguments": {}}]}', 422),
        (b'{"calls": [{"function": "GPU_FITS", "arguments": [{}]}]}', 422),
        (b'{"calls": [{"function": "GPU_FITS", "arguments": [[1]]}]}', 422),
        (b'{"calls": [{"function": "' + b"A" * 100 + b'", "arguments": []}]}', 422),
        (b'{"calls": [' + b",".join([b'{"function": "GPU_LIST", "arguments": []}'] * 501) + b"]}", 413),
        (b'{"calls": [' + b",".join([b'{"function": "A", "arguments": []}'] * 100_000) + b"]}", 413),
        (b" " * 1_000_001, 413),
    ],
)  # fmt: skip
def test_a_body_that_is_none_is_refused_in_one_sentence(
    client: TestClient, served: Served, body: bytes, status: int
) -> None:
    reply = client.post("/v1/calls", content=body, headers=signed(served.user))
    assert reply.status_code == status
    assert re.fullmatch(r"[^\n]{10,200}", reply.json()["error"])


@pytest.mark.parametrize(
    "number", ["1e999", "-1e999", "9" * 400, "9" * 5000, "1e-999", "0.1e1", "true", '"\\u0000"', '"\\ud800"']
)
def test_odd_numbers_and_texts_spoil_nothing(client: TestClient, served: Served, number: str) -> None:
    body = f'{{"calls": [{{"function": "GPU_FITS", "arguments": ["Llama-3.1-8B", "L4", {number}, {number}]}}]}}'
    reply = client.post("/v1/calls", content=body, headers=signed(served.user))
    assert reply.status_code in (200, 400)


@pytest.mark.parametrize("half", [r"\ud800", r"\uDFFF", r"a\ud83d b", r"\ude00\ud83d"])
def test_half_a_character_spoils_its_own_call_alone(client: TestClient, served: Served, half: str) -> None:
    texts = [("GPU_FITS", [half, "L4", 1, 64]), ("GPU_FITS", ["Llama-3.1-8B", [[half]], 1, 64])]
    texts += [("MODEL_FROM_CONFIG", [half * 100]), (half, []), FITS]
    body = json.dumps(calls(*texts)).replace(r"\\u", r"\u")
    reply = client.post("/v1/calls", content=body, headers=signed(served.user))
    assert reply.status_code == 200
    *refused, fits = reply.json()["answers"]
    assert [answer["error"] for answer in refused[:3]] == ["#VALUE!"] * 3
    assert "error" in refused[3]
    assert "value" in fits


@pytest.mark.parametrize("more", ["NaN", "1e999", "-Infinity", "[" * 100_000, "9" * 5_000, "]"])
def test_half_a_character_excuses_nothing_else(client: TestClient, served: Served, more: str) -> None:
    body = rf'{{"calls": [{{"function": "GPU_FITS", "arguments": ["\ud800", {more}]}}]}}'
    assert client.post("/v1/calls", content=body, headers=signed(served.user)).status_code == 400


def test_a_whole_character_may_be_written_as_a_pair(client: TestClient, served: Served) -> None:
    body = r'{"calls": [{"function": "GPU_FITS", "arguments": ["\ud83d\ude00", "L4", 1, 64]}]}'
    (answer,) = client.post("/v1/calls", content=body, headers=signed(served.user)).json()["answers"]
    assert answer["error"] == "#N/A"
    assert "\U0001f600" in answer["message"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[" * 100_000, b'{"a":' * 9_000, b"NaN", b'{"version": NaN}', b'{"version": 1e999}', b"\xff", b"null"],
)
@pytest.mark.parametrize(("method", "path"), [("PUT", "/v1/presets"), ("POST", "/v1/presets/version")])
def test_odd_bodies_of_administrators_are_refused_too(
    client: TestClient, served: Served, method: str, path: str, body: bytes
) -> None:
    reply = client.request(method, path, content=body, headers=signed(served.admin))
    assert reply.status_code in (400, 422)
    assert len(reply.text) < 400


def test_a_call_has_at_most_as_many_arguments_as_a_cell_can_give(client: TestClient, served: Served) -> None:
    replies = [
        client.post("/v1/calls", json=calls(("GPU_FITS", [1] * n)), headers=signed(served.user)) for n in (255, 256)
    ]
    assert [reply.status_code for reply in replies] == [200, 422]


def test_no_argument_is_a_path_or_an_address(client: TestClient, served: Served) -> None:
    asked = [
        ("MODEL_FROM_CONFIG", [text])
        for text in ("/etc/passwd", "config.json", "https://example.com/config.json", "..", "~")
    ]
    for answer in client.post("/v1/calls", json=calls(*asked), headers=signed(served.user)).json()["answers"]:
        assert answer == {
            "error": "#VALUE!",
            "message": "config is no JSON object; it must be the text of a config.json",
        }


def test_a_family_that_is_not_described_is_not_built(client: TestClient, served: Served) -> None:
    text = json.dumps({"model_type": "mamba", "hidden_size": 64, "num_hidden_layers": 10**9, "vocab_size": 100})
    (answer,) = client.post("/v1/calls", json=calls(("MODEL_FROM_CONFIG", [text])), headers=signed(served.user)).json()[
        "answers"
    ]
    assert "value" in answer or answer["error"] == "#VALUE!"


# ---------------------------------------------------------------------- keys
def test_wrong_missing_and_revoked_keys_are_refused(client: TestClient, served: Served) -> None:
    key, secret = served.ring.add("acme")
    assert client.get("/v1/me", headers=signed(secret)).json()["tenant"] == "acme"
    served.ring.revoke(key.id)
    wrong = [secret, secret[:-1], "", "x", "sx_", secret.upper(), f"sx_{key.id}_{'A' * 43}", "é" * 20, "../" * 20]
    for text in wrong:
        reply = client.get("/v1/me", headers={"Authorization": f"Bearer {text}".encode()})
        assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")
    for headers in ({}, {"Authorization": f"Basic {served.user}"}, {"Authorization": served.user}):
        assert client.post("/v1/calls", json=calls(FITS), headers=headers).status_code == 401


def test_keys_are_hashed_and_a_rotated_one_ends_after_its_grace(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "keys.json")
    key, first = ring.add("acme", admin=True, limits=Limits(batch=7), note="Excel of finance")
    _, second = ring.rotate(key.id, grace_hours=1)
    assert [ring.find(each) is not None for each in (first, second)] == [True, True]
    _, third = ring.rotate(key.id)
    assert [ring.find(each) is not None for each in (first, second, third)] == [False, False, True]
    assert KeyRing(ring.path).find(third) == ring.find(third)
    assert ring.find(third).limits.batch == 7  # type: ignore[union-attr]
    text = ring.path.read_text()
    assert not any(secret in text or secret.split("_", 2)[2] in text for secret in (first, second, third))
    assert ring.path.stat().st_mode & 0o077 == 0
    with pytest.raises(ValueError, match="has none of that id"):
        ring.revoke("nobody")
    with pytest.raises(ValueError, match="small letters"):
        ring.add("../acme")


@pytest.mark.parametrize("hours", ["-5", "nan", "1e300", "inf", "8761"])
def test_a_grace_that_cannot_be_is_refused(tmp_path: Path, hours: str, capsys: pytest.CaptureFixture[str]) -> None:
    ring = KeyRing(tmp_path / "keys.json")
    key, secret = ring.add("acme")
    assert cli.main(["serve", "keys", "rotate", key.id, "--keys", str(ring.path), f"--grace={hours}"]) == 2
    assert re.fullmatch(r"sizing-xlsx: grace is [^;\n]+; it must be from 0 to 8,760 hours\.\n", capsys.readouterr().err)
    assert ring.find(secret) == key


def test_a_list_of_no_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["serve", "keys", "list", "--keys", str(tmp_path / "missing.json")]) == 2
    assert re.fullmatch(r"sizing-xlsx: keys is \S+missing\.json, which is no file; [^\n]+\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text[:50], "line 5 is no JSON"),
        (lambda text: "[]", 'it is not {"keys": […]}'),
        (lambda text: '{"keys": 8}', 'it is not {"keys": […]}'),
        (lambda text: '{"keys": [8]}', "key 1 must have id, tenant, hash, "),
        (lambda text: text.replace('"revoked"', '"revoke"'), "key 1 must have id, tenant, hash, "),
        (lambda text: text.replace('"revoked": false', '"revoked": "no"'), "revoked of key 1 must be true or false"),
        (lambda text: text.replace('"rate": 20.0', '"rate": null'), "rate of key 1, limits must be a number"),
        (lambda text: text.replace('"burst"', '"bursts"'), "key 1, limits must have rate, burst, batch, body"),
        (lambda text: "[" * 100_000, "it is nested too deep"),
    ],
)
def test_a_damaged_file_of_keys_says_what_is_wrong(tmp_path: Path, damage: Callable[[str], str], words: str) -> None:
    ring = KeyRing(tmp_path / "keys.json")
    ring.add("acme")
    ring.path.write_text(damage(ring.path.read_text()))
    with pytest.raises(ValueError, match=re.escape(f"is no file of API keys: {words}")):
        KeyRing(ring.path).all()


def test_changes_of_keys_side_by_side_are_all_kept(tmp_path: Path) -> None:
    """Several processes add, rotate and revoke at once: none writes back what another has changed meanwhile."""
    file = tmp_path / "keys.json"
    code = (
        "import sys; from pathlib import Path; from sizing_xlsx.server.keys import KeyRing\n"
        "ring = KeyRing(Path(sys.argv[1]))\n"
        "for at in range(30):\n"
        "    key = ring.add('acme', note=sys.argv[2])[0]\n"
        "    ring.rotate(key.id)\n"
        "    ring.revoke(key.id)\n"
    )
    root = Path(__file__).parent.parent
    working = [subprocess.Popen([sys.executable, "-c", code, str(file), str(at)], cwd=root) for at in range(3)]
    assert [each.wait(60) for each in working] == [0, 0, 0]
    found = list(KeyRing(file).all().values())
    assert Counter(key.note for key in found) == {"0": 30, "1": 30, "2": 30}
    assert all(key.revoked for key in found)


def test_keys_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "keys.json")
    assert (
        cli.main(["serve", "keys", "add", "--keys", file, "--tenant", "acme", "--batch", "50", "--note", "mine"]) == 0
    )
    secret = capsys.readouterr().out.strip()
    ring = KeyRing(Path(file))
    found = ring.find(secret)
    assert found is not None
    assert found.limits == Limits(batch=50)
    assert cli.main(["serve", "keys", "rotate", found.id, "--keys", file]) == 0
    new = capsys.readouterr().out.strip()
    assert (ring.find(secret), ring.find(new).id) == (None, found.id)  # type: ignore[union-attr]
    assert cli.main(["serve", "keys", "revoke", found.id, "--keys", file]) == 0
    assert ring.find(new) is None
    capsys.readouterr()
    assert cli.main(["serve", "keys", "list", "--keys", file]) == 0
    assert re.search(rf"{found.id} +acme +\S+ +revoked +mine", capsys.readouterr().out)
    for wrong in (
        ["add", "--keys", file],
        ["revoke", "--keys", file],
        ["list"],
        ["add", "--keys", file, "--tenant", "A b"],
    ):
        assert cli.main(["serve", "keys", *wrong]) == 2


def test_each_key_has_its_own_limits(client: TestClient, served: Served) -> None:
    _, slow = served.ring.add("acme", limits=Limits(rate=0.5, burst=2, batch=3, body=500))
    statuses = [client.get("/v1/me", headers=signed(slow)).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    reply = client.get("/v1/me", headers=signed(slow))
    assert 1 <= int(reply.headers["retry-after"]) <= 2
    assert client.get("/v1/me", headers=signed(served.user)).status_code == 200
    _, small = served.ring.add("acme", limits=Limits(batch=3, body=500))
    assert client.post("/v1/calls", json=calls(*[("GPU_LIST", [])] * 4), headers=signed(small)).status_code == 413
    assert client.post("/v1/calls", content=b" " * 501, headers=signed(small)).status_code == 413
    assert client.post("/v1/calls", json=calls(("GPU_LIST", [])), headers=signed(small)).status_code == 200


def test_a_bucket_fills_at_its_rate() -> None:
    now = [0.0]
    buckets, limits = Buckets(share=0.5, clock=lambda: now[0]), Limits(rate=2, burst=3)
    assert [buckets.wait("a", limits) for _ in range(4)] == [0, 0, 0, 1]
    now[0] = 1.0
    assert [buckets.wait("a", limits) for _ in range(2)] == [0, 1]
    assert buckets.wait("b", limits) == 0
    now[0] = 1e6
    assert [buckets.wait("a", limits) for _ in range(4)] == [0, 0, 0, 1]


def test_keys_take_turns() -> None:
    """One key has many requests waiting: another's waits for those under way alone, and what is too much is refused."""
    order: list[str] = []

    async def one(turns: Turns, key: str) -> None:
        async with turns.of(key):
            order.append(key)
            await asyncio.sleep(0)

    async def all_of_them() -> list[Any]:
        turns = Turns(1, waiting_of_a_key=3, waiting=5)
        asked = [asyncio.create_task(one(turns, key)) for key in ("a", "a", "a", "a", "a", "b", "c", "d")]
        await asyncio.sleep(0)
        asked[3].cancel()
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert (turns.free, dict(turns.queues)) == (1, {})
        return [type(each).__name__ for each in found]

    outcome = asyncio.run(all_of_them())
    assert outcome == [
        "NoneType",
        "NoneType",
        "NoneType",
        "CancelledError",
        "Refused",
        "NoneType",
        "NoneType",
        "Refused",
    ]
    assert order == ["a", "a", "b", "c", "a"]


# ---------------------------------------------------------------------- presets of tenants
CARD = {"kind": "gpus", "name": "cards.csv", "text": "name,usable_gb\nRack 7,60\n"}
CONFIG = {
    "model_type": "llama", "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8,
    "intermediate_size": 1024, "vocab_size": 1000,
}  # fmt: skip
MODEL = {"kind": "models", "name": "secret-llama.json", "text": json.dumps(CONFIG)}
RACK = ("GPU_FITS", ["secret-llama", "Rack 7", 1, 64])


def _ask(client: TestClient, key: str) -> Any:
    return client.post("/v1/calls", json=calls(RACK), headers=signed(key)).json()["answers"][0]


def test_presets_are_of_one_tenant_and_have_versions(client: TestClient, served: Served) -> None:
    assert _ask(client, served.user)["error"] == "#N/A"
    before = client.get("/v1/me", headers=signed(served.user)).json()["data"]
    reply = client.put("/v1/presets", json={"files": [CARD, MODEL]}, headers=signed(served.admin))
    assert (reply.status_code, reply.json()["version"]) == (200, 1)
    assert reply.json()["versions"][0]["files"] == {"gpus": ["cards.csv"], "models": ["secret-llama.json"]}
    assert _ask(client, served.user) == {"value": True}
    assert client.get("/v1/me", headers=signed(served.user)).json()["data"] != before
    shown = client.get("/v1/functions", headers=signed(served.user))
    assert shown.status_code == 200

    for key in (served.other, served.other_admin):
        assert "Rack" not in json.dumps(
            client.post("/v1/calls", json=calls(("GPU_LIST", [])), headers=signed(key)).json()
        )
        assert (
            "did you mean" not in _ask(client, key)["message"]
            or "Rack" not in _ask(client, key)["message"].partition(";")[2]
        )
        assert client.get("/v1/me", headers=signed(key)).json()["data"] == before
    assert client.get("/v1/presets", headers=signed(served.other_admin)).json() == {"version": 0, "versions": []}

    dearer = CARD | {"text": "name,usable_gb\nRack 7,0.2\n"}
    assert (
        client.put("/v1/presets", json={"files": [dearer, MODEL]}, headers=signed(served.admin)).json()["version"] == 2
    )
    assert _ask(client, served.user) == {"value": False}
    for version, answer in ((1, {"value": True}), (2, {"value": False}), (0, None)):
        chosen = client.post("/v1/presets/version", json={"version": version}, headers=signed(served.admin))
        assert chosen.json()["version"] == version
        assert _ask(client, served.user) == answer or (answer is None and _ask(client, served.user)["error"] == "#N/A")
    assert client.post("/v1/presets/version", json={"version": 9}, headers=signed(served.admin)).status_code == 404


@pytest.mark.parametrize("method", ["get", "put"])
def test_presets_are_for_administrators(client: TestClient, served: Served, method: str) -> None:
    more = {"json": {"files": [CARD]}} if method == "put" else {}
    assert getattr(client, method)("/v1/presets", headers=signed(served.user), **more).status_code == 403


@pytest.mark.parametrize(
    "file",
    [
        CARD | {"name": name}
        for name in (
            "../cards.csv", "..\\cards.csv", "/etc/cards.csv", "a/b.csv", "C:cards.csv", "..csv", ".csv", "cards.csv\0", "con.csv",
            "cards.csv ", "a..csv", "\u202ecards.csv", "cards.txt", "cards", "x" * 90 + ".csv", "", "nul.csv", "-cards.csv", "~.csv",
        )
    ]
    + [
        CARD | {"kind": "../gpus"},
        CARD | {"kind": "measured"},
        CARD | {"text": "name,usable_gb\n=cmd(),60\n"},
        CARD | {"text": "name,usable_gb\nNVIDIA L4,60\n"},
        CARD | {"text": "name,memory\nRack 8,60\n"},
        MODEL | {"text": "{"},
        MODEL | {"text": json.dumps(CONFIG | {"hidden_size": "../../etc/passwd"})},
        MODEL | {"text": "[" * 100_000},
        {"kind": "layer_forms", "name": "form.toml", "text": "a = ["},
    ],
)  # fmt: skip
def test_a_wrong_upload_is_refused_and_changes_nothing(
    client: TestClient, served: Served, file: dict[str, str]
) -> None:
    before = client.get("/v1/presets", headers=signed(served.other_admin)).json()
    folder = served.folder / "tenants"
    files = sorted(str(path) for path in served.folder.rglob("*"))
    reply = client.put("/v1/presets", json={"files": [file]}, headers=signed(served.other_admin))
    assert reply.status_code == 422
    assert str(served.folder) not in reply.text
    assert client.get("/v1/presets", headers=signed(served.other_admin)).json() == before
    assert [
        p for p in served.folder.rglob("*") if str(p) not in files and p != folder / "umbrella" and p != folder
    ] == []


def test_uploads_have_a_size(served: Served) -> None:
    small = TestClient(create(served.settings(upload_bytes=5_000)), base_url=ORIGIN)
    big = {"files": [CARD | {"text": CARD["text"] + " " * 6_000}]}
    assert small.put("/v1/presets", json=big, headers=signed(served.admin)).status_code == 413
    many = {"files": [CARD | {"name": f"{at}.csv"} for at in range(201)]}
    wide = TestClient(create(served.settings()), base_url=ORIGIN)
    assert wide.put("/v1/presets", json=many, headers=signed(served.admin)).status_code == 422
    assert wide.put("/v1/presets", json={"files": []}, headers=signed(served.admin)).status_code == 422
    assert wide.put("/v1/presets", json={"files": [CARD, CARD]}, headers=signed(served.admin)).status_code == 422


def test_an_upload_holds_so_many_cards_and_no_more(served: Served, tmp_path: Path) -> None:
    few = TestClient(create(served.settings(upload_entries=3, state=str(tmp_path))), base_url=ORIGIN)
    cards = [CARD | {"text": "name,usable_gb\n" + "".join(f"Rack {at},60\n" for at in range(n))} for n in (2, 3)]
    put = [few.put("/v1/presets", json={"files": [file, MODEL]}, headers=signed(served.admin)) for file in cards]
    assert [reply.status_code for reply in put] == [200, 422]
    assert put[1].json()["error"].startswith("the upload holds 4 models, cards and layer forms; it may hold 3 ")
    assert few.get("/v1/presets", headers=signed(served.admin)).json()["version"] == 1


def test_the_digest_reads_each_file_once_and_tells_files_apart(tmp_path: Path) -> None:
    """The row of each card of a file holds the file's whole text: read for each, 20,000 cards were gigabytes."""
    digests = []
    for note in ("one", "two"):
        rows = "".join(f"Rack {at},60\n" for at in range(3_000))
        (tmp_path / "cards.csv").write_text(f"name,usable_gb\n{rows}{note},60\n")
        desk = Desk(with_own(load_presets(), gpus=[tmp_path / "cards.csv"]))
        tracemalloc.start()
        digests.append(desk.digest)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000  # bytes; 3,000 times 37 kB is more
        tracemalloc.stop()
    assert digests[0] != digests[1]


# ---------------------------------------------------------------------- what Excel reads
NAMESPACES = {
    "a": "http://schemas.microsoft.com/office/appforoffice/1.1",
    "o": "http://schemas.microsoft.com/office/taskpaneappversionoverrides",
    "bt": "http://schemas.microsoft.com/office/officeappbasictypes/1.0",
}
ORDER = (  # of the children of OfficeApp
    "Id", "Version", "ProviderName", "DefaultLocale", "DisplayName", "Description", "IconUrl", "HighResolutionIconUrl",
    "SupportUrl", "AppDomains", "Hosts", "Requirements", "DefaultSettings", "Permissions", "VersionOverrides",
)  # fmt: skip
CHILDREN = {  # of elements of VersionOverrides, in their order
    "VersionOverrides": ("Hosts", "Resources"),
    "Host": ("Runtimes", "AllFormFactors", "DesktopFormFactor"),
    "DesktopFormFactor": ("GetStarted", "FunctionFile", "ExtensionPoint"),
    "GetStarted": ("Title", "Description", "LearnMoreUrl"),
    "Resources": ("Images", "Urls", "ShortStrings", "LongStrings"),
    "Group": ("Label", "Icon", "Control"),
    "Control": ("Label", "Supertip", "Icon", "Action"),
    "Supertip": ("Title", "Description"),
    "Action": ("TaskpaneId", "SourceLocation"),
}
TYPES = {".js": "text/javascript", ".json": "application/json", ".html": "text/html", ".png": "image/png"}


def _names(element: Any) -> tuple[str, ...]:
    return tuple(etree.QName(child).localname for child in element)


def test_the_manifest_keeps_the_rules(client: TestClient) -> None:
    reply = client.get("/manifest.xml")
    assert reply.headers["content-type"] == "application/xml"
    app = etree.fromstring(reply.content)
    assert _names(app) == ORDER
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", app.findtext("a:Id", namespaces=NAMESPACES))
    assert re.fullmatch(r"\d+\.\d+\.\d+\.\d+", app.findtext("a:Version", namespaces=NAMESPACES))
    for name, most in (("DisplayName", 125), ("Description", 250)):
        assert len(app.find(f"a:{name}", NAMESPACES).get("DefaultValue")) <= most
    assert len(app.findtext("a:ProviderName", namespaces=NAMESPACES)) <= 125
    over = app.find("o:VersionOverrides", NAMESPACES)
    for element in over.iter():
        name = etree.QName(element).localname
        if name in CHILDREN:
            assert _names(element) == CHILDREN[name]
    custom, surface = over.iterfind(".//o:ExtensionPoint", NAMESPACES)
    assert _names(custom) == ("Script", "Page", "Metadata", "Namespace")
    assert _names(surface) == ("OfficeTab",)


def test_every_resource_of_the_manifest_is_there(client: TestClient) -> None:
    app = etree.fromstring(client.get("/manifest.xml").content)
    resources = {each.get("id"): each for each in app.iterfind(".//bt:*[@id]", NAMESPACES)}
    used = {value for element in app.iter() for key, value in element.attrib.items() if key == "resid"}
    assert used <= set(resources)
    assert all(len(name) <= 32 for name in resources)
    for each in resources.values():
        kind, value = etree.QName(each.getparent()).localname, each.get("DefaultValue")
        assert len(value) <= {"ShortStrings": 125, "LongStrings": 250}.get(kind, 2048)
    ids = [element.get("id") for element in app.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    pages = {
        app.find(f".//o:{path}", NAMESPACES).get("resid")
        for path in ("Runtime", "Page/o:SourceLocation", "FunctionFile")
    }
    assert pages == {"Taskpane.Url"}  # one runtime is shared where all name the same resource

    addresses = {value for element in app.iter() for key, value in element.attrib.items() if value.startswith("http")}
    assert {address for address in addresses if not address.startswith(f"{ORIGIN}/")} == set()
    assert [each.text for each in app.iterfind(".//a:AppDomain", NAMESPACES)] == [ORIGIN]
    for address in addresses:
        reply = client.get(address)
        assert reply.status_code == 200
        assert reply.headers["content-type"].startswith(TYPES[Path(address).suffix])
        if address.endswith(".png"):
            size = int(re.search(r"-(\d+)\.png", address)[1])  # type: ignore[index]
            assert reply.content[:8] == b"\x89PNG\r\n\x1a\n"
            assert (int.from_bytes(reply.content[16:20], "big"), int.from_bytes(reply.content[20:24], "big")) == (
                size,
                size,
            )


def test_the_metadata_is_the_registry(client: TestClient) -> None:
    reply = client.get("/functions.json")
    assert reply.headers["access-control-allow-origin"] == "*"
    found = {each["name"]: each for each in reply.json()["functions"]}
    assert list(found) == list(registered())
    ids = [each["id"] for each in found.values()]
    assert len(ids) == len(set(ids))
    for name, each in found.items():
        function = registered()[name]
        assert re.fullmatch(r"[A-Z][A-Z0-9.]{2,}", each["id"])
        assert re.fullmatch(r"[A-Z][A-Z0-9_]{2,127}", name)
        assert each["result"]["dimensionality"] == ("matrix" if function.result.kind == TABLE else "scalar")
        assert each["result"]["type"] in ("boolean", "number", "string", "any")
        assert [p["name"] for p in each["parameters"]] == list(function.arguments)
        optional = [p.get("optional", False) for p in each["parameters"]]
        assert optional == sorted(optional) == [a.optional for a in described(function, functions.default_desk())]
        assert all(
            0 < len(text) <= 255 for text in (each["description"], *(p["description"] for p in each["parameters"]))
        )
    script = client.get("/functions.js").text
    assert json.loads(re.search(r"SizingFunctions\.associate\((\{.*\})\);\s*$", script)[1]) == {  # type: ignore[index]
        each["id"]: [name, len(each["parameters"])] for name, each in found.items()
    }


def test_a_manifest_of_another_host_names_no_host_that_is_none(served: Served) -> None:
    plain = TestClient(create(served.settings(origin="")), base_url="https://gpu.example.org")
    assert b"https://gpu.example.org/functions.js" in plain.get("/manifest.xml").content
    for host in ('a"><script>', "a/b", "a b", "A@b", "a:99999", "-"):
        text = plain.get("/manifest.xml", headers={"host": host}).content
        assert b"https://localhost:8443/functions.js" in text


def test_what_is_kept_for_one_host_is_not_told_to_another(served: Served) -> None:
    service = create(served.settings(origin=""))
    for host in ("https://one.example.org", "https://two.example.org", "https://one.example.org"):
        plain = TestClient(service, base_url=host)
        help_urls = {
            each["helpUrl"].partition("/taskpane")[0] for each in plain.get("/functions.json").json()["functions"]
        }
        assert help_urls == {host}
        assert set(re.findall(r"https://\w+\.example\.org", plain.get("/manifest.xml").text)) == {host}


def test_pages_may_be_framed_by_office_and_run_nothing_else(client: TestClient) -> None:
    for path in ("/taskpane.html", "/health", "/nothing", "/functions.js"):
        headers = client.get(path).headers
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == "'self' https://appsforoffice.microsoft.com"
        assert "https://*.officeapps.live.com" in policy["frame-ancestors"]
        assert "unsafe" not in headers["content-security-policy"]
        assert "x-frame-options" not in headers
        assert headers["x-content-type-options"] == "nosniff"
    for page in ("taskpane.html", "api.html"):
        text = client.get(f"/{page}").text
        assert not re.search(r"<script>|\son\w+=|style=|javascript:", text)
        for name in re.findall(r'(?:src|href)="([^":]+)"', text):
            assert client.get(f"/{name}").status_code == 200


def test_nothing_but_the_named_files_is_served(client: TestClient) -> None:
    paths = (
        "/..%2f..%2fetc%2fpasswd",
        "/assets/functions.js",
        "/%2e%2e/keys.json",
        "/keys.json",
        "/taskpane.html/",
        "/app.py",
        "/docs",
        "/static/../x",
    )
    assert {client.get(path).status_code for path in paths} == {404}
    assert client.get("/openapi.json").json()["paths"].keys() >= {"/v1/calls", "/v1/presets", "/health", "/metrics"}
    assert client.delete("/v1/calls", headers={}).status_code == 401
    assert client.delete("/health").status_code == 405


# ---------------------------------------------------------------------- what it leaves behind
def test_the_log_and_the_metrics_hold_counts_alone(client: TestClient, served: Served) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    try:
        marked = ("GPU_FITS", ["zebra-model", "zebra-card", "zebra"])
        client.post("/v1/calls?zebra=1", json=calls(marked, FITS), headers=signed(served.user))
        client.post("/v1/calls", json={"zebra": "zebra"}, headers=signed(served.user))
        client.get("/zebra/zebra", headers={"Authorization": "Bearer zebra"})
        client.put("/v1/presets", json={"files": [CARD | {"text": "zebra"}]}, headers=signed(served.admin))
    finally:
        LOG.removeHandler(handler)
    log = stream.getvalue()
    first = json.loads(log.splitlines()[0])
    assert (first["route"], first["status"], first["tenant"], first["calls"], first["refused"]) == (
        "/v1/calls",
        200,
        "acme",
        2,
        1,
    )
    metrics = client.get("/metrics", headers=signed(served.admin)).text
    assert re.search(r'sizing_calls_total\{function="GPU_FITS",outcome="refused"\} [1-9]', metrics)
    assert re.search(r'sizing_request_seconds_count\{route="/v1/calls"\} [1-9]', metrics)
    for text in (log, metrics):
        assert "zebra" not in text
        assert not any(key.split("_", 2)[2] in text for key in (served.user, served.admin))
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers=signed(served.user)).status_code == 403


def test_a_failure_is_logged_without_what_it_says(
    client: TestClient, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any) -> Any:
        raise RuntimeError("zebra")

    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    LOG.addHandler(handler)
    monkeypatch.setattr("sizing_xlsx.server.app.call_many", fail)
    reply = client.post("/v1/calls", json=calls(FITS), headers=signed(served.user))
    LOG.removeHandler(handler)
    assert (reply.status_code, "zebra" in reply.text) == (500, False)
    assert "RuntimeError" in stream.getvalue()
    assert "zebra" not in stream.getvalue()


# ---------------------------------------------------------------------- settings
def test_settings_come_from_a_file_and_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(
        'keys = "keys.json"\nport = 9000\nworkers = 2\norigin = "https://a.example"\ngpus = ["cards.csv"]\n'
    )
    found = settings_of(file, {"port": 9001, "host": None})
    assert (found.keys, found.port, found.workers) == (str(tmp_path / "keys.json"), 9001, 2)
    assert found.gpus == (str(tmp_path / "cards.csv"),)
    assert found.state == str(tmp_path / "tenants")
    assert from_json(found.to_json()) == found


@pytest.mark.parametrize(
    "line",
    [
        "keys = 8", "port = 99999", 'port = "8443"', "workers = 0", "workers = true", 'origin = "http://a.example"',
        'origin = "https://a.example/x"', 'namespace = "sizing"', "gpus = 1", 'cert = "a.pem"', "color = 1", 'run = "x"', "connections = 1",
    ],
)  # fmt: skip
def test_a_wrong_setting_is_refused_by_name(tmp_path: Path, line: str) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(line + ("\n" if line.startswith("keys") else '\nkeys = "keys.json"\n'))
    with pytest.raises(ValueError, match=line.split(" ")[0] if line[:4] != "cert" else "key is empty"):
        settings_of(file, {})


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "a" / "file"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert (path.read_bytes(), sorted(each.name for each in path.parent.iterdir())) == (b"two", ["file"])


def test_the_documentation_names_every_setting_and_route(client: TestClient) -> None:
    text = (Path(__file__).parent.parent / "docs" / "add-in.md").read_text(encoding="utf-8")
    assert [field for field in Settings._fields if field != "run" and f"`{field}`" not in text] == []
    for field, default in Settings._field_defaults.items():
        if isinstance(default, int) and not isinstance(default, bool) and default > 1:
            assert f"{default:,}" in text or str(default) in text, field
    options = {f"--{field}" for field in Limits._fields} | {"--grace", "--admin", "--tenant", "--dev"}
    assert {option for option in options if option not in text} == set()
    assert {path for path in ("/v1/calls", "/v1/presets", "/health", "/metrics") if path not in text} == set()


def test_nothing_of_the_service_is_imported_before_it_runs(tmp_path: Path) -> None:
    """The command line, its help and the keys work without the extra "server"."""
    code = (
        "import sys; from sizing_xlsx import cli, functions; "
        f"cli.main(['serve', 'keys', 'add', '--tenant', 'a', '--keys', {str(tmp_path / 'k.json')!r}]); "
        "found = {'fastapi', 'uvicorn', 'pydantic', 'numpy', 'lxml', 'cryptography'} & set(sys.modules); assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent.parent, capture_output=True)
