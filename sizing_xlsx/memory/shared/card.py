"""The card: what PyTorch can address of it, and what others take."""

from typing import Any

from ...formula.declare import Choice, Constant, Input, Number, check, overridable, term
from ...formula.primitives import when

gpu_choice = Input("text", Choice("gpus"), "NVIDIA H100 SXM5 80GB", "GPU", "The card the job runs on.")
other_tenants_gb = Input(
    "GB",
    Number(0, 10_000),
    0,
    "Used by other programs",
    "Memory that others hold on the card: a desktop, another tenant, a data pipeline (RAPIDS, cuDF).",
)
outside_pytorch_gb = Constant(
    0.8,
    "GB",
    "Context and driver",
    "0.64 to 0.78 GB by the out-of-memory messages of the article sweep, one NVIDIA H100; rounded up",
    "measured",
    Number(0, 100),
)


APART = (
    "gpu_count is {gpu_count} with gpu_choice {gpu_choice}; MIG slices have no peer-to-peer traffic and no NVLink"
    " between them: what they share goes through the host, where NCCL joins them at all. Take one slice, or whole cards"
)


def may_share(gpus: Any, gpu_row: Any, cards: Any) -> Any:
    """1 when so many of a card may share a step: whole cards, or one. Part of terms, no term itself."""
    return 1 - gpus.mig_slice[gpu_row] * when(cards > 1, 1, 0)


@term("row")
def gpu_row(gpus: Any, gpu_choice: Any) -> Any:
    """Row of the card in the table of GPUs."""
    return gpus.row_of(gpu_choice)


@check(
    "gpu_choice is {gpu_choice}, which is not listed as an NVIDIA card; the measured stack was CUDA, and another"
    " vendor's keeps and reserves other memory",
    fault=False,
)
@term("switch")
def card_runs_cuda(gpus: Any, gpu_row: Any) -> Any:
    """1 when the card is NVIDIA's: its stack is CUDA, as in the measured runs."""
    return gpus.cuda[gpu_row]


@check(
    "gpu_choice is {gpu_choice}, which has no bf16 of its own (CUDA compute capability below 8.0): PyTorch emulates it"
    " there, slowly; memory is as calculated. Compute in fp16, or on a card of Ampere or newer",
    fault=False,
)
@term("switch", source="PyTorch: torch.cuda.is_bf16_supported; options.toml: architectures")
def card_computes_bf16(gpus: Any, gpu_row: Any, computes_bf16: Any) -> Any:
    """0 when the job computes in bf16 on a card that is known to emulate it."""
    return 1 - computes_bf16 * gpus.emulates_bf16[gpu_row]


@overridable(Number(0.001, 100_000), input_name="gpu_capacity_override_gb")
@term("GB", label="Usable capacity", source="GPUs sheet: the framework's own total")
def gpu_usable_capacity_gb(gpus: Any, gpu_row: Any, bytes_per_gb: Any) -> Any:
    """What the framework can address of the card; less than its label says."""
    return gpus.usable_bytes[gpu_row] / bytes_per_gb


@overridable(Number(0, 2**33))
@term("bytes", label="Matrix workspace per thread", source="GPUs sheet: cuBLAS default of the architecture")
def matrix_workspace_bytes(gpus: Any, gpu_row: Any) -> Any:
    """Workspace that the matrix library takes once per thread; forward and backward run on two."""
    return gpus.matmul_workspace_bytes[gpu_row]


@check("gpu_choice is {gpu_choice!r}; its usable capacity is not known: enter gpu_capacity_override_gb in GB")
@term("switch")
def capacity_known(gpu_usable_capacity_gb: Any) -> Any:
    """1 when the card has a usable capacity, from the table or entered."""
    return when(gpu_usable_capacity_gb > 0, 1, 0)


@term("GB", label="Used by others")
def used_by_others_gb(outside_pytorch_gb: Any, other_tenants_gb: Any) -> Any:
    """Memory of the card outside PyTorch's allocator: context, driver, other programs."""
    return outside_pytorch_gb + other_tenants_gb
