"""The recipe: bytes per parameter of five tensors, and how the optimizer walks over them."""

from typing import Any

from ...formula.declare import Choice, Input, check, term
from ...formula.primitives import equal, when

_RECIPE = "the chosen row of the training recipes"
_FSDP = "PyTorch 2.13: mixed precision of FSDP over parameters that a trainer has cast to fp32; public runs agree"
training_recipe = Input(
    "text",
    Choice("recipes"),
    "bf16 params + fp32 master + bf16 grads, AdamW (16 B)",
    "Training recipe",
    "Bytes per parameter of weights, gradients, master copy and the two moments of the optimizer.",
)
uses_autocast = Input(
    "text",
    Choice("switches"),
    "On",
    "Autocast",
    "Off when 16-bit weights compute as they are (a trainer without bf16=True). FSDP then keeps them in 16 bit.",
)
optimizer_step = Input(
    "text",
    Choice("optimizer_steps"),
    "foreach",
    "Optimizer step",
    "foreach: all tensors at once, PyTorch's default; fused: one kernel; for-loop: one by one; in backward: at once.",
)
paged_optimizer = Input(
    "text",
    Choice("switches"),
    "Off",
    "Paged optimizer",
    "On: moments lie in memory that the driver moves between card and host; PyTorch does not count them.",
)
embedding_in_fp32 = Input(
    "text",
    Choice("switches"),
    "On",
    "Embedding moments in fp32",
    "8-bit optimizers of bitsandbytes: On as HF Trainer registers it, the embeddings keep 32-bit moments.",
)


@term("row")
def recipe_row(recipes: Any, training_recipe: Any) -> Any:
    """Row of the recipe in its table."""
    return recipes.row_of(training_recipe)


@term("switch", source=_RECIPE)
def half_weights(recipes: Any, recipe_row: Any, fp32_bytes: Any) -> Any:
    """1 when the recipe's weights have 16 bits."""
    return when(recipes.weight_bytes[recipe_row] < fp32_bytes, 1, 0)


@term("switch", source=_FSDP)
def fsdp_upcasts(fsdp_stage: Any, half_weights: Any, autocast_active: Any, recipes: Any, recipe_row: Any) -> Any:
    """1 when FSDP's mixed precision keeps fp32 parameters though the recipe has 16-bit ones and no master copy."""
    return fsdp_stage * half_weights * autocast_active * when(recipes.master_bytes[recipe_row] > 0, 0, 1)


@check(
    "training_recipe is {training_recipe!r} with sharding_stage {sharding_stage!r} and autocast; FSDP's"
    " mixed precision keeps fp32 parameters, and gradients and moments with them: twice the recipe's bytes",
    fault=False,
)
@term("switch")
def recipe_kept(fsdp_upcasts: Any) -> Any:
    """0 when FSDP keeps wider state than the recipe says."""
    return 1 - fsdp_upcasts


@check(
    "training_recipe is {training_recipe!r} with compute_precision {compute_precision!r}; its weights compute in 16"
    " bit: choose bf16 autocast, with uses_autocast Off where nothing is cast"
)
@term("switch")
def precision_suits_recipe(half_weights: Any, autocast_on: Any) -> Any:
    """0 when 16-bit weights would be computed in fp32."""
    return 1 - half_weights * (1 - autocast_on)


@term("switch")
def computes_bf16(computed_half_type: Any, autocast_active: Any, half_weights: Any) -> Any:
    """1 when matrices are multiplied in bf16: by autocast, or because the weights are."""
    return when(equal(computed_half_type, 1) & (autocast_active + half_weights > 0), 1, 0)


@term("bytes per parameter", source=_RECIPE)
def weight_bytes(recipes: Any, recipe_row: Any, fsdp_upcasts: Any) -> Any:
    """Bytes of a weight as the card keeps it between steps."""
    return recipes.weight_bytes[recipe_row] * (1 + fsdp_upcasts)


@term("bytes per parameter", source=_RECIPE)
def gradient_bytes(recipes: Any, recipe_row: Any, fsdp_upcasts: Any) -> Any:
    """Bytes of a gradient, all the copies that the recipe keeps."""
    return recipes.gradient_bytes[recipe_row] * (1 + fsdp_upcasts)


@term("bytes per parameter", source=_RECIPE)
def master_bytes(recipes: Any, recipe_row: Any) -> Any:
    """Bytes of the optimizer's own fp32 copy of a weight; 0 where the weights are their own."""
    return recipes.master_bytes[recipe_row]


@term("bytes per parameter", source=_RECIPE)
def recipe_moment_bytes(recipes: Any, recipe_row: Any) -> Any:
    """Bytes of the first moment as the recipe says."""
    return recipes.first_moment_bytes[recipe_row]


@term("bytes per parameter", source=_FSDP)
def moment_widening(recipes: Any, recipe_row: Any, fsdp_upcasts: Any, recipe_moment_bytes: Any) -> Any:
    """By how many bytes FSDP widens each moment: moments as wide as weights widen with them, others stay."""
    return fsdp_upcasts * when(recipe_moment_bytes > recipes.weight_bytes[recipe_row], 0, recipe_moment_bytes)


@term("bytes per parameter", source=_RECIPE)
def first_moment_bytes(recipe_moment_bytes: Any, moment_widening: Any, wide_moments: Any) -> Any:
    """Bytes of the first moment; momentum, where there is one alone."""
    return recipe_moment_bytes + wide_moments * moment_widening


@term("switch", source=_RECIPE)
def wide_moments(recipes: Any, recipe_row: Any, recipe_moment_bytes: Any) -> Any:
    """1 when moments are as wide as weights or wider: none of 8 bit, and none that is missing."""
    return when(recipe_moment_bytes < recipes.weight_bytes[recipe_row], 0, 1)


@term("bytes per parameter", source=_RECIPE)
def second_moment_bytes(recipes: Any, recipe_row: Any, moment_widening: Any, wide_moments: Any) -> Any:
    """Bytes of the second moment; 0 where the optimizer has none."""
    kept = recipes.second_moment_bytes[recipe_row]
    return kept + wide_moments * when(kept > 0, moment_widening, 0)


@term("bytes per parameter", source=_RECIPE)
def moment_bytes(first_moment_bytes: Any, second_moment_bytes: Any) -> Any:
    """Bytes of both moments."""
    return first_moment_bytes + second_moment_bytes


@term("bytes per parameter", source=_RECIPE)
def step_bytes(recipes: Any, recipe_row: Any, fsdp_upcasts: Any) -> Any:
    """Bytes of temporaries per parameter that the step updates at one time."""
    return recipes.step_bytes[recipe_row] * (1 + fsdp_upcasts)


@term("row")
def step_row(optimizer_steps: Any, optimizer_step: Any) -> Any:
    """Row of the optimizer's way in its table."""
    return optimizer_steps.row_of(optimizer_step)


@term("switch")
def gradients_kept(optimizer_steps: Any, step_row: Any) -> Any:
    """0 when each gradient is used and dropped during backward."""
    return optimizer_steps.keeps_gradients[step_row]


@check(
    "optimizer_step is {optimizer_step!r} with gradient_accumulation {gradient_accumulation}; gradients that are"
    " dropped in backward cannot accumulate: set gradient_accumulation to 1"
)
@term("switch")
def accumulation_possible(gradients_kept: Any, gradient_accumulation: Any) -> Any:
    """0 when gradients should accumulate and are not kept."""
    return when((gradients_kept <= 0) & (gradient_accumulation > 1), 0, 1)


@term("switch", source="bitsandbytes 0.50: paged optimizers keep their state in managed memory")
def moments_paged(recipes: Any, recipe_row: Any, switches: Any, paged_optimizer: Any) -> Any:
    """1 when the moments lie in managed memory, outside PyTorch's allocator."""
    chosen = recipes.paged[recipe_row] + switches.value[switches.row_of(paged_optimizer)]
    return when(chosen > 0, 1, 0)


@term("switch", source="bitsandbytes 0.50; transformers 5.20 registers it")
def embedding_exception(recipes: Any, recipe_row: Any, switches: Any, embedding_in_fp32: Any) -> Any:
    """1 when an 8-bit optimizer keeps the embeddings' moments in 32 bit."""
    return recipes.narrow_state[recipe_row] * switches.value[switches.row_of(embedding_in_fp32)]
