"""What serving takes from the time and cost of runs: peaks, how a price is billed, what an owned card costs."""

from .hours import seconds_per_hour  # noqa: F401
from .own import (  # noqa: F401
    cards_per_working,
    fixed_per_owned_hour,
    hours_per_year,
    one_year,
    own_system_kw,
    owned_cost,
    owned_hours,
    owned_years,
    power_per_gpu_hour,
    power_price,
    power_usage_effectiveness,
    purchase_price,
    spare_cards,
    system_kw,
    system_power_factor,
    upkeep_share,
    watts_per_kilowatt,
)
from .rent import (  # noqa: F401
    billed_price,
    billing_choice,
    billing_row,
    one_million_tokens,
    price_discount,
    reserved_discount,
    spot_discount,
)
from .throughput import one_tflops, own_peak_tflops  # noqa: F401
