"""Facts attached to plain Python: what is an input, a constant, a term.

A module of formulas holds nothing else: Input(...) and Constant(...) under their own names, and functions whose
name is the term, whose parameters are what it needs, and whose docstring says what it is. There is no registry;
a Job (job.py) collects the modules it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class Whole(NamedTuple):
    """A whole number from low to high; high may be the name of a term. `word`, if any, may stand in its place.

    day: it counts days as sheets do, 1 being 1 January 1900; in Python a date, or a text such as 2026-08-17, is one.
    """

    low: int
    high: int | str
    word: str = ""
    day: bool = False


class Number(NamedTuple):
    """A number from low to high."""

    low: float
    high: float


class Choice(NamedTuple):
    """A key of a table; matched without regard to case."""

    table: str


Domain = Whole | Number | Choice
DAY = Whole(36_526, 73_050, day=True)  # 1 January 2000 to 31 December 2099


class Input(NamedTuple):
    """Something a user enters. optional: it may stay empty; its default is then None.

    follows_job False: an allowance of the installation, the same for every row of a job table.
    """

    unit: str
    domain: Domain
    default: Any
    label: str
    help: str
    follows_job: bool = True
    optional: bool = False


class Constant(NamedTuple):
    """A number with a unit and a source. evidence: definition, measured, traced, published or assumed.

    domain: for an allowance that a user may replace; the name then means "what was entered, else this".
    """

    value: float
    unit: str
    label: str
    source: str
    evidence: str
    domain: Whole | Number | None = None


class Term(NamedTuple):
    """The facts of one formula; `function` is None for terms that are derived from other trees."""

    name: str
    function: Callable[..., Any] | None
    needs: tuple[str, ...]
    unit: str
    label: str
    help: str
    source: str
    evidence: str


class Override(NamedTuple):
    """A term whose value a user may replace: what the replacement is called and may be."""

    input_name: str
    domain: Domain
    follows_job: bool


class Check(NamedTuple):
    """A condition on a whole job. A fault withdraws the verdict; a warning is shown beside it.

    assumed: the term that a warning is about, where it says what is assumed for want of an entry; else "".
    """

    fault: bool
    message: str
    assumed: str = ""


ACRONYMS = {
    "gb": "GB", "gib": "GiB", "mib": "MiB", "gpu": "GPU", "gpus": "GPUs", "lora": "LoRA", "kv": "KV", "mlp": "MLP",
    "rope": "RoPE", "qkv": "QKV", "bf16": "bf16", "fp32": "fp32", "pytorch": "PyTorch", "cuda": "CUDA",
    "nvidia": "nvidia",
}  # fmt: skip


def label_of(name: str, capital: bool = True) -> str:
    """A term's name as a label: "kv_width" -> "KV width"."""
    words = name.split("_")
    text = " ".join(ACRONYMS.get(word, word) for word in words)
    return text[0].upper() + text[1:] if capital and words[0] not in ACRONYMS else text


def own_label(label: str) -> str:
    """What the replacement of a preset is called: "Hidden size" -> "Own hidden size", "KV heads" -> "Own KV heads"."""
    return f"Own {label if label[1:2].isupper() else label[0].lower() + label[1:]}"


def term(
    unit: str, *, source: str = "", label: str = "", evidence: str = "calculated"
) -> Callable[[Function], Function]:
    """Mark a function as a term. Its parameters are names of inputs, constants, tables and other terms."""

    def mark(function: Function) -> Function:
        code = function.__code__
        function.term = Term(  # type: ignore[attr-defined]
            function.__name__,
            function,
            code.co_varnames[: code.co_argcount],
            unit,
            label or label_of(function.__name__),
            " ".join((function.__doc__ or "").split()),
            source,
            evidence,
        )
        return function

    return mark


def overridable(domain: Domain, *, input_name: str = "", follows_job: bool = True) -> Callable[[Function], Function]:
    """Let a user replace a term's value: the term becomes "what was entered, else the preset"."""

    def mark(function: Function) -> Function:
        name = function.__name__
        function.override = Override(  # type: ignore[attr-defined]
            input_name or f"{name}_override", domain, follows_job
        )
        return function

    return mark


def check(message: str, *, fault: bool = True, assumed: str = "") -> Callable[[Function], Function]:
    """Mark a term (1: passes, 0: does not) as a check of the whole job.

    message: what is wrong and what would be right, with {names} of inputs and terms; {name:day|days} is the first word
    where the number is 1, else the second. assumed: of a warning, the term for which something is assumed: it is told
    wherever a result that rests on that term is asked for, whatever was entered.
    """

    def mark(function: Function) -> Function:
        function.check = Check(fault, message, assumed)  # type: ignore[attr-defined]
        return function

    return mark
