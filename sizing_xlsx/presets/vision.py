"""Towers that read images, with their projectors into the decoder: their parameters, from vision_config.

Source: the model classes of transformers 5.20. d is the decoder's hidden size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .config import Fields


class Tower(NamedTuple):
    """parameters: all of tower and projector. linear: those of their plain linear modules' weights, which 4-bit and
    8-bit loading converts. image_tokens: of one image, 0 where that depends on the image."""

    parameters: int
    linear: int
    image_tokens: int


def count(kind: str, vision: Fields, whole: Fields, d: int) -> Tower:
    """The tower of a wrapper. vision: the fields of vision_config; whole: those of the config around it."""
    return _TOWERS[kind](vision, whole, d)


def _gemma3(vision: Fields, whole: Fields, d: int) -> Tower:
    """SigLIP, and one matrix behind a norm."""
    h, ff, layers = vision.whole("hidden_size", 768), vision.whole("intermediate_size", 3072), _layers(vision, 12)
    image, patch, channels = vision.whole("image_size", 224), vision.whole("patch_size", 16), _channels(vision)
    outside = channels * patch * patch * h + h + (image // patch) ** 2 * h + 2 * h
    matrices = layers * (4 * h * h + 2 * h * ff)
    layer_rest = layers * (4 * h + ff + h + 4 * h)
    if vision.flag("vision_use_head", 1):  # a pooling head: a probe, attention, a norm and an MLP
        attention, mlp = 4 * h * h + 4 * h, 2 * h * ff + ff + h
        outside += h + attention + 2 * h + mlp
        matrices_of_head = 2 * h * ff  # its attention is one module of PyTorch, no linear one
    else:
        matrices_of_head = 0
    projector = h * d + h
    total = outside + matrices + layer_rest + projector
    return Tower(total, matrices + matrices_of_head, 0)


def _mistral3(vision: Fields, whole: Fields, d: int) -> Tower:
    """Pixtral, and a projector that merges patches."""
    h, ff, layers = vision.whole("hidden_size", 1024), vision.whole("intermediate_size", 4096), _layers(vision, 24)
    patch, channels = vision.whole("patch_size", 16), _channels(vision)
    merge = whole.whole("spatial_merge_size", 2, high=1_000)
    level = whole.raw.get("vision_feature_layer", -1)
    levels = len(level) if isinstance(level, list) else 1
    bias = whole.flag("multimodal_projector_bias", 0)
    matrices = layers * (4 * h * h + 3 * h * ff) + h * merge**2 * h + h * levels * d + d * d
    return Tower(channels * patch * patch * h + h + layers * 2 * h + h + bias * 2 * d + matrices, matrices, 0)


def _llama4(vision: Fields, whole: Fields, d: int) -> Tower:
    """Llama 4's own tower, and one matrix."""
    h, ff, layers = vision.whole("hidden_size", 768), vision.whole("intermediate_size", 5632), _layers(vision, 34)
    image, patch, channels = vision.whole("image_size", 448), vision.whole("patch_size", 14), _channels(vision)
    inner, out = vision.whole("projector_input_dim", 4096), vision.whole("projector_output_dim", 4096)
    given = vision.whole("vision_output_dim", 7680)
    ratio = vision.share("pixel_shuffle_ratio", 0.5)
    patches = (image // patch) ** 2
    matrices = channels * patch * patch * h + layers * (4 * h * h + 2 * h * ff) + ff * inner + out * out + given * d
    rest = h + (patches + 1) * h + 4 * h + layers * (4 * h + ff + h + 4 * h)
    return Tower(matrices + rest, matrices, int(patches * ratio**2))


def _qwen2_vl(vision: Fields, whole: Fields, d: int) -> Tower:
    """Qwen2-VL's tower: fused attention, a plain MLP, LayerNorms, and a merger of patches."""
    h, ratio, layers = vision.whole("embed_dim", 1280), vision.whole("mlp_ratio", 4), vision.whole("depth", 32)
    out = vision.whole("hidden_size", 3584)
    patches = _patches(vision) * h
    ff = h * ratio
    wide = h * vision.whole("spatial_merge_size", 2, high=1_000) ** 2
    matrices = layers * (4 * h * h + 2 * h * ff) + wide * wide + wide * out
    rest = layers * (4 * h + ff + h + 4 * h) + 2 * h + wide + out
    return Tower(patches + matrices + rest, matrices, 0)


def _qwen2_5_vl(vision: Fields, whole: Fields, d: int) -> Tower:
    """Qwen2.5-VL's tower: fused attention, a gated MLP with biases, RMS norms, and a merger of patches."""
    h, ff, layers = (
        vision.whole("hidden_size", 3584),
        vision.whole("intermediate_size", 3420),
        vision.whole("depth", 32),
    )
    out = vision.whole("out_hidden_size", 3584)
    patches = _patches(vision) * h
    wide = h * vision.whole("spatial_merge_size", 2, high=1_000) ** 2
    matrices = layers * (4 * h * h + 3 * h * ff) + wide * wide + wide * out
    rest = layers * (4 * h + 2 * ff + h + 2 * h) + h + wide + out
    return Tower(patches + matrices + rest, matrices, 0)


def _layers(vision: Fields, default: int) -> int:
    return vision.whole("num_hidden_layers", default, high=vision.MAXIMUM_LAYERS)


def _channels(vision: Fields) -> int:
    return vision.whole("num_channels", 3)


def _patches(vision: Fields) -> int:
    """Values of one patch: channels x frames x side x side."""
    frames, side = vision.whole("temporal_patch_size", 2), vision.whole("patch_size", 14)
    return vision.whole("in_channels", 3) * frames * side * side


_TOWERS: dict[str, Callable[[Any, Any, int], Tower]] = {
    "gemma3": _gemma3,
    "mistral3": _mistral3,
    "llama4": _llama4,
    "qwen2_vl": _qwen2_vl,
    "qwen2_5_vl": _qwen2_5_vl,
}
