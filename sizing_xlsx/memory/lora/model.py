"""What a row of the batch holds for a base model."""

from typing import Any

from ...formula.declare import Input, Whole, check, term
from ...formula.primitives import maximum, when

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
    "sequence_length is {sequence_length}; {base_model} has learned positions for {maximum_positions} tokens and none"
    " beyond them"
)
@term("switch")
def positions_suffice(models: Any, model_row: Any, maximum_positions: Any, tokens_per_row: Any) -> Any:
    """0 when a row is longer than the table of learned positions: no such step can run."""
    return when((models.position_rows[model_row] > 0) & (tokens_per_row > maximum_positions), 0, 1)


@term("tokens", label="Longest sequence that the model takes")
def sequence_length_taken(
    models: Any,
    model_row: Any,
    maximum_positions: Any,
    images_per_row: Any,
    image_tokens: Any,
    sequence_length_limit: Any,
) -> Any:
    """Beside a row's images, what a table of learned positions has room for; other models have no such end."""
    left = maximum(0, maximum_positions - images_per_row * image_tokens)
    return when(models.position_rows[model_row] > 0, left, sequence_length_limit)
