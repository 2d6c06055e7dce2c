"""What a workbook of serving takes from the shown figures of the others as it is."""

from ..figures import (  # noqa: F401
    capacity_entered,
    chart_band,
    large_error,
    one_billion,
    one_million,
    percent_count,
    sum_tolerance,
    usable_shown_gb,
    verdict_shown,
)
