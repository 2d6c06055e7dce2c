"""A sized serving job, its cards and its models, as lines to read on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .effort.serving_told import KNOWN
from .planning.serving import Served, card_sets, cheapest_set, every_model, largest_model, smallest_set

if TYPE_CHECKING:
    from .formula.job import Job


def report(sized: Job, inputs: dict[str, Any], values: dict[str, Any]) -> str:
    """The job in some twenty lines."""
    known = {**sized.defaults(), **sized.accepted(inputs)}
    cards, currency = values["gpu_count"], known["currency_choice"]

    def amount(key: str, unit: str, decimals: int = 0, factor: float = 1) -> str:
        value = values[key]
        return value if isinstance(value, str) else f"{value * factor:,.{decimals}f} {unit}".rstrip()

    def pair(bound: str, expected: str, unit: str, decimals: int, factor: float = 1) -> str:
        return f"{amount(bound, unit, decimals, factor):>20}{amount(expected, unit, decimals, factor):>20}"

    return "\n".join(
        (
            f"{known['base_model']} in {known['base_storage_format']} on {cards} x {known['gpu_choice']}, served by"
            f" {known['serving_engine']}: {values['fit_verdict']}.",
            "",
            "Memory of a card",
            f"  Weights                 {amount('weights_gb', 'GB', 4)}",
            f"  Step, largest           {amount('step_activation_gb', 'GB', 4)}",
            f"  KV pool                 {amount('kv_pool_gb', 'GB', 4)}, {amount('kv_pool_tokens', 'tokens')}",
            f"  Usable capacity         {amount('gpu_usable_capacity_gb', 'GB', 4)}, of which the engine takes"
            f" {amount('engine_reserved_gb', 'GB', 4)}",
            "KV cache",
            f"  Of a token              {amount('kv_cache_bytes_per_token', 'bytes')} in every layer,"
            f" {amount('kv_cache_bytes_per_token_windowed', 'bytes')} beyond the windows",
            f"  Of {known['concurrent_users']:,} users".ljust(26)
            + f"{amount('kv_batch_needed_gb', 'GB', 4)} as the architecture needs,"
            f" {amount('kv_batch_reserved_gb', 'GB', 4)} as the engine keeps it",
            "Users",
            f"  At one time             {amount('concurrency', '')} at {amount('percentile_context', 'tokens')} each,"
            f" {amount('concurrency_at_mean', '')} at {amount('mean_context', 'tokens')}",
            f"  As the model needs      {amount('concurrency_by_need', '')} at {amount('percentile_context', 'tokens')}"
            " each, if the engine set no more aside",
            f"  Longest context         {amount('longest_context', 'tokens')} for one user alone",
            f"  Limited by              {_limit(values, 'users_limited_by')} at"
            f" {amount('percentile_context', 'tokens')}, {_limit(values, 'users_at_mean_limited_by')} at"
            f" {amount('mean_context', 'tokens')}",
            "",
            f"{'':24}{'bound':>20}{'expected':>20}",
            "  Time to first token   " + pair("first_token_bound_seconds", "first_token_seconds", "ms", 1, 1000),
            "  Time per output token " + pair("output_token_bound_seconds", "output_token_seconds", "ms", 2, 1000),
            "  Tokens a second, card " + pair("tokens_per_second_per_gpu_bound", "tokens_per_second_per_gpu", "", 0),
            f"  Requests from which a step computes rather than reads: {amount('compute_bound_batch', '')}; with the"
            f" matrices alone: {amount('matrix_balance_batch', '')}.",
            "",
            f"Cost at {known['request_rate']:,} requests a second; deployments {amount('replicas', '')},"
            f" cards {amount('replica_gpus', '')}",
            f"{'':24}{'rented':>20}{'owned':>20}",
            "  Million input tokens  " + pair("rent_per_million_input", "own_per_million_input", currency, 4),
            "  Million output tokens " + pair("rent_per_million_output", "own_per_million_output", currency, 4),
            "  A month               " + pair("rent_per_month", "own_per_month", currency, 2),
            "  A user and month      " + pair("rent_per_user_month", "own_per_user_month", currency, 4),
            f"  A month by the API    {amount('api_per_month', currency, 2):>20}",
            *_unknown(values),
            "",
            "All figures are calculated; 1 GB = 1,000,000,000 bytes. Bounds take the card's peaks and nothing else;"
            " expected figures rest on two assumed efficiencies.",
        )
    )


def _limit(values: dict[str, Any], key: str) -> str:
    """What decides how many users there are; of an engine's longest step its size."""
    limit = str(values[key])
    return f"{limit}, {values['sequences_of_step']:,.0f}" if limit == "the sequences of a step" else limit


def _unknown(values: dict[str, Any]) -> list[str]:
    """Why figures are not known, one line a reason; none where all are."""
    told: dict[str, list[str]] = {}
    for what, key in (
        ("times", "speed_unknown"),
        ("deployments and owned cost", "replicas_unknown"),
        ("rent", "rent_unknown"),
    ):
        if values[key] != KNOWN:
            told.setdefault(values[key], []).append(what)
    return [f"Not known, {', '.join(figures)}: {why}." for why, figures in told.items()]


def cards(sized: Job, inputs: dict[str, Any]) -> list[dict[str, Any]]:
    """Every card alone and in sets, by memory in all, as records."""
    found = [one._asdict() for one in card_sets(sized, **inputs)]
    return sorted(found, key=lambda one: (one["cards"] * one["usable_gb"], one["cards"]))


def models(sized: Job, inputs: dict[str, Any]) -> list[dict[str, Any]]:
    """Every model on the job's cards, by parameters, as records."""
    return sorted((one._asdict() for one in every_model(sized, **inputs)), key=lambda one: one["parameters"])


def cards_text(found: Sequence[dict[str, Any]]) -> str:
    """The sets as lines, with the smallest and the cheapest that fit."""
    sets = [Served(**one) for one in found]
    told = (("Smallest that fits", smallest_set(sets)), ("Cheapest that fits", cheapest_set(sets)))
    last = [f"{words}: {one.cards} x {one.card}." if one else f"{words}: none." for words, one in told]
    return "\n".join((*_lines(sets, "card"), "", *last))


def models_text(found: Sequence[dict[str, Any]]) -> str:
    """The models as lines, with the largest that fits."""
    every = [Served(**one) for one in found]
    largest = largest_model(every)
    last = f"Largest that fits: {largest.model}." if largest else "Largest that fits: none."
    return "\n".join((*_lines(every, "model"), "", last))


def _lines(found: Sequence[Served], first: str) -> list[str]:
    head = (
        f"{first:44}{'cards':>6}  {'verdict':14}{'weights':>10}{'pool':>14}{'users':>8}{'longest':>12}{'USD/hour':>10}"
    )
    return [
        head,
        *(
            f"{getattr(one, first):44}{one.cards:>6}  {one.verdict:14}{one.weights_gb:>10,.1f}"
            f"{one.kv_pool_tokens:>14,}{one.concurrency:>8,}{one.longest_context:>12,}"
            f"{'none' if one.price is None else f'{one.price:,.2f}':>10}"
            for one in found
        ),
    ]
