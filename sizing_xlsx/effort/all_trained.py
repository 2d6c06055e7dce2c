"""What holds of speed and layers wherever every parameter is trained: an encoder from scratch, a decoder in full."""

from typing import Any

from ..formula.declare import term


@term("row")
def method_row_of_speed() -> Any:
    """Row of the method in the table of reached shares: every parameter is trained."""
    return 1


@term("layers")
def attention_layers(layer_count: Any) -> Any:
    """Layers whose attention runs."""
    return layer_count


@term("share")
def passed_layers_share(layer_count: Any, attention_layers: Any) -> Any:
    """Share of the layers that backward passes: all of them."""
    return attention_layers / layer_count
