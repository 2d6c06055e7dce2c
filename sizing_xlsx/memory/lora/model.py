"""What a row of the batch holds for a base model, and when the traced list holds."""

from typing import Any

from ...formula.declare import Input, Whole, check, term
from ...formula.primitives import when

images_per_row = Input(
    "count",
    Whole(0, 10_000),
    0,
    "Images per row",
    "Of a model that reads images: each lengthens its row by the tokens it becomes.",
)


@term("tokens")
def tokens_per_row(sequence_length: Any, images_per_row: Any, image_tokens: Any) -> Any:
    """Text and images of the longest row."""
    return sequence_length + images_per_row * image_tokens


@check(
    "images_per_row is {images_per_row}; how many tokens an image becomes is not known for {base_model}: enter"
    " image_tokens_override"
)
@term("switch")
def image_tokens_known(images_per_row: Any, image_tokens: Any) -> Any:
    """0 when rows hold images and their tokens are not known."""
    return when((images_per_row > 0) & (image_tokens <= 0), 0, 1)


@check(
    "sequence_length is {sequence_length}; beyond the {sliding_window}-token window of {base_model} attention keeps"
    " more than the traced list counts",
    fault=False,
)
@term("switch")
def sequence_within_window(sliding_window: Any, tokens_per_row: Any) -> Any:
    """1 when no layer's window is shorter than the sequence: beyond it the traced list is too low."""
    return when((sliding_window > 0) & (tokens_per_row > sliding_window), 0, 1)
