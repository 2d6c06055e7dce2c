"""Units: what must never mix does not, and a conversion goes by its rate."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from sizing_xlsx.formula.declare import Constant, term
from sizing_xlsx.formula.job import Job
from sizing_xlsx.formula.primitives import maximum, minimum, when
from sizing_xlsx.formula.units import COUNTS, KINDS, TIMES, kind_of, product, quotient, same


def small_job(**members: Any) -> Job:
    """A job of one module with these members."""
    module = ModuleType("example")
    vars(module).update(members)
    return Job("example", (module,), {})


def constant(value: float, unit: str) -> Constant:
    return Constant(value, unit, "Example", "made up", "assumed")


size = constant(5e9, "bytes")
tokens = constant(512, "tokens")
capacity_gb = constant(80, "GB")
capacity_gib = constant(79, "GiB")
bytes_per_gb = constant(1e9, "bytes per GB")
bytes_per_gib = constant(2**30, "bytes per GiB")
token_bytes = constant(16, "bytes per token")


# ---------------------------------------------------------------------- kinds
@pytest.mark.parametrize("unit", sorted(COUNTS))
def test_everything_that_is_counted_is_one_kind(unit: str) -> None:
    assert kind_of(unit) == "count"


@pytest.mark.parametrize("unit", sorted(KINDS))
def test_every_other_unit_is_its_own_kind(unit: str) -> None:
    assert kind_of(unit) == unit


@pytest.mark.parametrize(
    ("unit", "kind"),
    [
        ("bytes per token", "bytes"),
        ("bytes per value", "bytes"),
        ("MiB per layer", "MiB"),
        ("bytes per GB", "bytes per GB"),
        ("bytes per token per layer", "bytes"),
        ("USD per hours", "USD per hours"),
        ("tokens per seconds", "count per seconds"),
    ],
)
def test_per_a_count_is_dropped_and_per_a_kind_stays(unit: str, kind: str) -> None:
    assert kind_of(unit) == kind


@pytest.mark.parametrize("unit", ["furlongs", "", "gb", "bytes per furlong", "Bytes", "bytes/token"])
def test_an_unknown_unit_is_named(unit: str) -> None:
    with pytest.raises(ValueError, match=r"is not known; known are"):
        kind_of(unit)


KIND_LIST = ["count", "bytes", "GB", "GiB", "MiB", "seconds", "hours", "FLOP", "USD"]


@pytest.mark.parametrize("a", KIND_LIST)
@pytest.mark.parametrize("b", KIND_LIST)
def test_only_one_kind_adds_to_itself(a: str, b: str) -> None:
    if a == b:
        assert same(a, b, "+") == a
    else:
        with pytest.raises(TypeError, match=f"{a} meets {b}"):
            same(a, b, "+")


def test_a_literal_zero_meets_anything() -> None:
    assert same(None, "bytes", "+") == same("bytes", None, "+") == "bytes"
    assert same(None, None, "+") is None
    assert product(None, "bytes") == product("bytes", None) == "bytes"
    assert quotient(None, "bytes") is None


@pytest.mark.parametrize("a", KIND_LIST)
@pytest.mark.parametrize("b", KIND_LIST)
def test_products_and_quotients_of_plain_kinds(a: str, b: str) -> None:
    if "count" in (a, b):
        assert product(a, b) == (b if a == "count" else a)
    else:
        with pytest.raises(TypeError, match=r"has no meaning"):
            product(a, b)
    if b == "count":
        assert quotient(a, b) == a
    elif a == b:
        assert quotient(a, b) == "count"
    elif b in TIMES:
        assert quotient(a, b) == f"{a} per {b}"
    else:
        with pytest.raises(TypeError, match=r"has no meaning"):
            quotient(a, b)


def test_a_rate_converts_one_way_by_product_and_back_by_quotient() -> None:
    assert product("GB", "bytes per GB") == product("bytes per GB", "GB") == "bytes"
    assert quotient("bytes", "bytes per GB") == "GB"
    assert quotient("bytes per GB", "bytes per GB") == "count"
    assert product("count per seconds", "seconds") == "count"
    assert quotient("FLOP per seconds", "FLOP") == "count per seconds"
    assert (
        product("kWh per hours", "currency per kWh")
        == product("currency per kWh", kind_of("kW"))
        == "currency per hours"
    )
    assert kind_of("currency per hour") == "currency per hours"
    for a, b in (("GiB", "bytes per GB"), ("bytes", "bytes per GB"), ("bytes per GB", "bytes per GiB")):
        with pytest.raises(TypeError, match=r"has no meaning"):
            product(a, b)
    for a, b in (("GB", "bytes per GB"), ("count", "bytes per GB"), ("bytes per GB", "bytes")):
        with pytest.raises(TypeError, match=r"has no meaning"):
            quotient(a, b)


# ---------------------------------------------------------------------- in a job
@term("bytes")
def wanted(size: Any, tokens: Any) -> Any:
    """Bytes and a count."""
    return size + tokens


def _wrong(unit: str, formula: Any) -> Any:
    formula.__doc__ = "A term whose units do not fit."
    formula.__name__ = "wanted"
    return term(unit)(formula)


WRONG = [
    ("bytes", lambda size, tokens: size + tokens, r"\+: bytes meets count"),
    ("bytes", lambda size, tokens: tokens - size, "-: count meets bytes"),
    ("bytes", lambda size: size + 1, r"\+: bytes meets count"),
    ("GB", lambda capacity_gb, capacity_gib: capacity_gb + capacity_gib, r"\+: GB meets GiB"),
    ("GB", lambda capacity_gb, size: capacity_gb - size, "-: GB meets bytes"),
    ("bytes", lambda size, token_bytes: size * token_bytes, r"bytes \* bytes has no meaning"),
    ("bytes", lambda size: size * size, r"bytes \* bytes has no meaning"),
    ("bytes", lambda size, tokens: tokens / size, "count / bytes has no meaning"),
    ("bytes", lambda capacity_gib, bytes_per_gb: capacity_gib * bytes_per_gb, "has no meaning"),
    ("GB", lambda size, bytes_per_gib: size / bytes_per_gib, "declared GB, but its formula gives GiB"),
    ("bytes", lambda tokens: tokens, "declared bytes, but its formula gives count"),
    ("bytes", lambda size, capacity_gb: 1 * maximum(size, capacity_gb), "max: bytes meets GB"),
    ("bytes", lambda size, tokens: minimum(tokens, size), "min: count meets bytes"),
    ("bytes", lambda size, tokens: when(tokens > 0, size, tokens), "when: bytes meets count"),
    ("bytes", lambda size, tokens: when(size > tokens, size, 0), ">: bytes meets count"),
    ("bytes", lambda size, tokens: when(tokens, size, 0), "a condition is a comparison, not count"),
    ("count", lambda tokens: tokens > 1, "a condition is no value|declared count"),
    ("count", lambda tokens: tokens + (tokens > 1), "bool in arithmetic"),
]


@pytest.mark.parametrize(("unit", "formula", "message"), WRONG)
def test_what_must_not_mix_fails_when_the_job_is_made_and_names_the_term(unit: str, formula: Any, message: str) -> None:
    members = {key: value for key, value in globals().items() if isinstance(value, Constant)}
    with pytest.raises(TypeError, match=f"term wanted: .*({message})"):
        small_job(wanted=_wrong(unit, formula), **members)


RIGHT = [
    ("GB", lambda size, bytes_per_gb: size / bytes_per_gb, 5.0),
    ("bytes", lambda capacity_gb, bytes_per_gb: capacity_gb * bytes_per_gb, 80e9),
    (
        "GiB",
        lambda capacity_gb, bytes_per_gb, bytes_per_gib: capacity_gb * bytes_per_gb / bytes_per_gib,
        80e9 / 2**30,
    ),
    ("bytes", lambda tokens, token_bytes: tokens * token_bytes, 8192),
    ("share", lambda size, token_bytes: size / token_bytes, 5e9 / 16),
    ("bytes", lambda size, tokens: when(tokens > 0, size, 0), 5e9),
    ("bytes", lambda size: maximum(0, size), 5e9),
]


@pytest.mark.parametrize(("unit", "formula", "value"), RIGHT)
def test_conversions_by_rates(unit: str, formula: Any, value: float) -> None:
    members = {key: value for key, value in globals().items() if isinstance(value, Constant)}
    job = small_job(wanted=_wrong(unit, formula), **members)
    assert job.reference()["wanted"] == job.scalar(("wanted",))()[0] == value


@pytest.mark.parametrize("member", [constant(1, "furlongs"), _wrong("furlongs", lambda: 0)])
def test_an_unknown_unit_fails_when_the_job_is_made_and_names_where(member: Any) -> None:
    with pytest.raises(ValueError, match=r"wanted.*'furlongs' is not known"):
        small_job(wanted=member)
