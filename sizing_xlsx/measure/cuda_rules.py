"""CUDA's rules for a device that is not CUDA: what autocast casts, and which operations are fused.

They decide which tensors a training step keeps. `teach()` gives them to another device type of this process: to the
fake GPU, so that a trace is that of a CUDA card, or to the CPU, so that a tiny model really trained there keeps what
it would keep on a card.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KEYS = {"cpu": "AutocastCPU"}  # a device type's dispatch key for autocast; every other type is PyTorch's reserved one
RESERVED_KEY = "AutocastPrivateUse1"

# CUDA's autocast rules. Everything else that CUDA's table names is computed in fp32.
LOWER_PRECISION = frozenset(
    [
        "_convolution",
        "_convolution.deprecated",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_tbc",
        "conv_transpose1d",
        "conv_transpose2d.input",
        "conv_transpose3d.input",
        "convolution",
        "prelu",
        "addmm",
        "addmv",
        "addr",
        "matmul",
        "einsum",
        "mm",
        "mv",
        "linalg_vecdot",
        "linear",
        "addbmm",
        "baddbmm",
        "bmm",
        "chain_matmul",
        "linalg_multi_dot",
        "_thnn_fused_lstm_cell",
        "_thnn_fused_gru_cell",
        "lstm_cell",
        "gru_cell",
        "rnn_tanh_cell",
        "rnn_relu_cell",
        "_scaled_dot_product_flash_attention",
        "scaled_dot_product_attention",
        "cudnn_convolution",
        "cudnn_convolution_transpose",
    ]
)
WIDEST = frozenset(
    [
        "addcdiv",
        "addcmul",
        "atan2",
        "bilinear",
        "cross",
        "dot",
        "vdot",
        "grid_sampler",
        "index_put",
        "tensordot",
        "scatter_add",
    ]
)
GIVEN_DTYPE = frozenset(
    [
        "prod",
        "prod.dim_int",
        "softmax.int",
        "log_softmax.int",
        "cumprod",
        "cumsum",
        "linalg_vector_norm",
        "linalg_matrix_norm",
        "linalg_matrix_norm.str_ord",
        "sum",
        "sum.dim_IntList",
    ]
)
LEFT_OUT = frozenset(
    # norm with a dtype appended changes the overload; binary_cross_entropy is refused under autocast. No model of
    # the supported kinds calls either.
    ["norm.Scalar", "norm.ScalarOpt_dim", "binary_cross_entropy"]
)

_casts: dict[int, tuple[Any, Any]] = {}  # id of a weight -> the weight, its copy; emptied when autocast ends
_taught: dict[str, list[Any]] = {}  # device type -> its registrations, which last as long as the objects


def teach(device_type: str) -> None:
    """Give a device type CUDA's rules for the rest of the process; a second call does nothing."""
    if device_type in _taught:
        return
    first = not _taught
    _taught[device_type] = [_register_autocast(device_type)]
    if first:
        _replace_functions()


def is_taught(tensor: Any) -> bool:
    """Whether a tensor is on a device that follows CUDA's rules here."""
    return tensor.device.type in _taught


def _register_autocast(device_type: str) -> Any:
    """CUDA's own table of operations, under another device type's key."""
    import torch

    key = _key(device_type)
    override = device_type in KEYS
    rules = torch.library.Library("aten", "IMPL")
    names = {
        full.removeprefix("aten::") for full in torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA")
    }
    if override:  # what the device casts and CUDA does not
        own = torch._C._dispatch_get_registrations_for_dispatch_key(key)
        for name in {full.removeprefix("aten::") for full in own} - names:
            rules.impl(name, torch.library.fallthrough_kernel, key, allow_override=True)
    for name in sorted(names - LEFT_OUT):
        rules.impl(name, _kernel(name, device_type, key), key, allow_override=override)
    if not _casts_are_cleared():
        _clear_casts_with_autocast()
    return rules


def _key(device_type: str) -> str:
    """The dispatch key under which a device's autocast rules are registered."""
    return KEYS.get(device_type, RESERVED_KEY)


def _casts_are_cleared() -> bool:
    import torch

    return getattr(torch.clear_autocast_cache, "clears_taught", False)


def _clear_casts_with_autocast() -> None:
    import torch

    clear = torch.clear_autocast_cache

    def clear_all() -> None:
        _casts.clear()
        clear()

    clear_all.clears_taught = True  # type: ignore[attr-defined]
    torch.clear_autocast_cache = clear_all


def _kernel(name: str, device_type: str, key: str) -> Callable[..., Any]:
    """What autocast does before an operation: casts its arguments, then calls it without autocast."""
    import torch

    packet, _, overload = name.partition(".")
    operation = getattr(getattr(torch.ops.aten, packet), overload or "default")
    exclude = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
    at = [argument.name for argument in operation._schema.arguments].index("dtype") if name in GIVEN_DTYPE else None

    def cast(value: Any, to: Any) -> Any:
        return _cast(value, to, device_type)

    def kernel(*arguments: Any, **named: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(exclude):
            if at is not None:
                given = named.get("dtype") if len(arguments) <= at else arguments[at]
                if given is None and _eligible(arguments[0], device_type):
                    named["dtype"], arguments = torch.float32, arguments[:at]
                return operation(*arguments, **named)
            if name in LOWER_PRECISION:
                to = torch.get_autocast_dtype(device_type)
            elif name in WIDEST:
                to = _widest(arguments, device_type)
            else:
                to = torch.float32
            return operation(*cast(arguments, to), **{key: cast(value, to) for key, value in named.items()})

    return kernel


def _eligible(value: Any, device_type: str) -> bool:
    import torch

    return (
        isinstance(value, torch.Tensor)
        and value.device.type == device_type
        and value.is_floating_point()
        and value.dtype != torch.float64
    )


def _widest(arguments: Any, device_type: str) -> Any:
    import torch

    for value in arguments:
        if isinstance(value, (list, tuple)):
            if _widest(value, device_type) == torch.float32:
                return torch.float32
        elif _eligible(value, device_type) and value.dtype == torch.float32:
            return torch.float32
    return torch.get_autocast_dtype(device_type)


def _cast(value: Any, to: Any, device_type: str) -> Any:
    """A tensor in another dtype, as autocast does it: fp32 weights once, the rest each time."""
    import torch

    if isinstance(value, (list, tuple)):
        return type(value)(_cast(item, to, device_type) for item in value)
    if not _eligible(value, device_type) or value.dtype == to:
        return value
    cached = (
        to == torch.get_autocast_dtype(device_type)
        and value.dtype == torch.float32
        and value.requires_grad
        and value.is_leaf
        and not value._is_view()
        and torch.is_autocast_cache_enabled()
    )
    if not cached:
        return value.to(to)
    if id(value) not in _casts:
        _casts[id(value)] = (value, value.to(to))
    return _casts[id(value)][1]


def _replace_functions() -> None:
    """Dropout and attention, which PyTorch fuses on CUDA and takes apart elsewhere."""
    import torch

    functional = torch.nn.functional
    plain_dropout, plain_attention = functional.dropout, functional.scaled_dot_product_attention

    def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        if is_taught(input) and training and 0 < p < 1 and not inplace:
            return torch.native_dropout(input, p, True)[0]
        return plain_dropout(input, p, training, inplace)

    def attention(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        if query.device.type == "cpu" or not is_taught(query):
            return plain_attention(
                query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
            )
        return fused_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)

    functional.dropout = dropout
    functional.scaled_dot_product_attention = attention


def fused_attention(
    query: Any,
    key: Any,
    value: Any,
    mask: Any,
    dropout: float,
    causal: bool,
    scale: float | None,
    grouped: bool,
) -> Any:
    """Attention as CUDA picks it: flash for 16 bit, no mask and heads of one width, else memory-efficient.

    Neither stores its scores. Keys of fewer heads that are broadcast, not grouped, are left to plain matrix products.
    """
    import torch

    kind = query.device.type
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
    if not grouped and query.shape[1] != key.shape[1]:
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _key(kind)))):
            return _plain_attention(query, key, value, mask, causal, scale)
    if mask is None and query.dtype != torch.float32 and value.shape[-1] == query.shape[-1]:
        return torch.ops.aten._scaled_dot_product_flash_attention(
            query, key, value, dropout, causal, False, scale=scale
        )[0]
    if mask is not None and mask.dtype == torch.bool:  # converted on each call
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), float("-inf"))
    if grouped:
        repeat = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(repeat, 1), value.repeat_interleave(repeat, 1)
    return torch.ops.aten._scaled_dot_product_efficient_attention(
        query, key, value, mask, True, dropout, causal, scale=scale
    )[0]


def _plain_attention(query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float | None) -> Any:
    """PyTorch's attention of plain products: 16-bit inputs are computed in fp32, and the scores are stored."""
    import torch

    dtype, factor = query.dtype, (query.shape[-1] ** -0.5 if scale is None else scale) ** 0.5
    query, key, value = query.float() * factor, key.float() * factor, value.float()
    if causal:
        mask = query.new_ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril()
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), float("-inf"))
    scores = query @ key.transpose(-2, -1)
    if mask is not None:
        scores = scores.add_(mask)
    return (torch.ops.aten._safe_softmax(scores, -1) @ value).to(dtype)
