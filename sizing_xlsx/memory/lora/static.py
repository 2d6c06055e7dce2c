"""What a model takes on a card in a storage format, in plain Python: the formulas of resident.py called for one model,
whether or not a job can size what its layers keep."""

from __future__ import annotations

from typing import Any

from ...formula.table import Table
from ...presets.catalogue import model_table
from ...presets.config import Architecture
from ..decoder.counts import FORMULAS, evaluated, formulas_of
from ..shared import units
from . import resident

_FORMULAS = FORMULAS | formulas_of(resident)
# No preparation, no trained head, no framework that unties or splits: the weights as they are loaded.
_PLAIN = {
    "kbit_prepared": 0, "rest_prepared": 0, "trains_head": 0, "replaced_head_parameters": 0, "base_on_card": 1,
    "stack_unties": 0, "stack_linear_experts": 0, "position_table": 0, "model_row": 1,
    "bf16_bytes": units.bf16_bytes.value, "fp32_bytes": units.fp32_bytes.value,
}  # fmt: skip


def static_bytes(model: Architecture, storage_formats: Table, storage_format: str, *, head: bool = False) -> int | None:
    """Bytes of a model's weights in a storage format; None where its modules are not counted finely enough.

    head: the output head is quantised too.
    """
    row = storage_formats.row_of(storage_format)
    known: dict[str, Any] = _PLAIN | {"storage_formats": storage_formats, "storage_row": row}
    known["head_quantised"] = int(head) * storage_formats.quantised[row]
    if model.counted is None:
        known["models"] = model_table([model], storage_formats)
    else:
        known |= model.counted
        known["plain_linears"] = known["prepared_norms"] = 0
        known["expert_matrix_parameters"] = known.get("all_expert_parameters", 0)
        per_column = storage_formats.bytes_per_input_column[row]
        known["column_indices"] = per_column * known.get("convertible_input_columns", 0)
        tied = int(bool(model.tied))
        if storage_formats.converts_experts[row] and known["expert_matrix_parameters"]:
            return None  # fused experts of a family that is not described: neither rows nor biases are told apart
        known["untied_parameters"] = tied * known["head_quantised"] * known["embedding_parameters"]
        known["head_matrix_parameters"] = known["head_parameters"] or known["embedding_parameters"]
        known["expert_output_rows"] = 0
    known["preset_base_parameter_count"] = evaluated("base_parameter_count", known, _FORMULAS)
    total: float = evaluated("frozen_base_weights", known, _FORMULAS)
    return round(total)
