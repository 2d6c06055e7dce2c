"""What LoRA adapts: the base model, and how its frozen weights are kept."""

from ...formula.declare import Choice, Input
from ..decoder.shape import base_model  # noqa: F401

base_storage_format = Input(
    "text",
    Choice("storage_formats"),
    "bf16",
    "Base storage format",
    "How the frozen weights are kept on the card.",
)
