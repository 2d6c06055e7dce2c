"""What serving takes from the time of runs as it is: the peak of a card."""

from .hours import seconds_per_hour  # noqa: F401
from .throughput import one_tflops, own_peak_tflops  # noqa: F401
