"""sizing_xlsx: does this model fit on that GPU? One definition of every formula, in Python and in Excel.

`lora`, `training`, `full` and `serving` are the jobs that can be sized: `sizing_xlsx.lora.size(batch_size=4)`. They are
made at first use; importing the package loads no formulas and nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .formula.job import Job

    full: Job
    lora: Job
    serving: Job
    training: Job

__version__ = "0.1.0"
__all__ = ["__version__", "full", "lora", "serving", "training"]


def __getattr__(name: str) -> Any:
    if name in __all__[1:]:
        from .jobs import job

        return job(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
