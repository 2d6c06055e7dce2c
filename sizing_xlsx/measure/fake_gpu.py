"""A GPU that is not there: tensors on it have shapes, dtypes and a device, and no memory.

PyTorch lets a backend be written in Python under its reserved device type. `install()` registers one whose every
tensor is a fake one, and gives it CUDA's rules for autocast and fused operations (cuda_rules.py).

Nothing is compiled and no CUDA build of PyTorch is needed. The registration lasts as long as the process.
"""

from __future__ import annotations

import contextlib
from typing import Any

from . import cuda_rules

NAME = "fakegpu"
DEVICE = f"{NAME}:0"

_libraries: list[Any] = []  # a library's registrations last as long as the object


class TracingNotPossible(ValueError):
    """This PyTorch cannot do what tracing needs; the text says what would be right."""


def possible() -> None:
    """TracingNotPossible when this PyTorch is too old for a backend written in Python."""
    import torch
    from torch.utils import backend_registration

    if not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"):
        raise TracingNotPossible(
            f"torch is {torch.__version__}, which takes no backend written in Python; --backend trace needs torch 2.10"
            " or newer (--backend cuda does not)"
        )


def install() -> None:
    """Register the device with PyTorch; a second call does nothing. Raises TracingNotPossible on an older PyTorch."""
    import torch
    from torch.utils import backend_registration

    if _libraries:
        return
    possible()

    class Module(backend_registration._DummyBackendModule):  # type: ignore[misc]
        """What `torch.<device>` answers to."""

        def get_amp_supported_dtype(self) -> list[Any]:
            return [torch.bfloat16, torch.float16]

        def get_device_properties(self, device: Any = None) -> Any:
            raise AssertionError("the fake GPU has no properties")

    backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=Module())
    _register_rest()
    _let_experts_be_fp32()
    cuda_rules.teach(NAME)


def install_before_backward() -> None:
    """Register the device where this PyTorch can: its engine counts the devices at the process's first backward."""
    with contextlib.suppress(TracingNotPossible):
        install()


def fake_mode() -> Any:
    """The mode in which tensors on DEVICE are made and computed with; plain CPU tensors may take part."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    class Mode(FakeTensorMode):  # type: ignore[misc]
        # torch.tensor(..., device=DEVICE) is then made on the CPU and moved under this mode: there is no device.
        avoid_device_init = True

    return Mode(allow_non_fake_inputs=True)


def _register_rest() -> None:
    """What is computed as it is under autocast, and an operation that has a CUDA kernel and would be taken apart."""
    import torch

    rest = torch.library.Library("_", "IMPL")
    rest.fallback(torch.library.fallthrough_kernel, cuda_rules.RESERVED_KEY)
    fused = torch.library.Library("aten", "IMPL")
    fused.impl("silu_backward", lambda gradient, value: torch.empty_like(value), "PrivateUse1")
    _libraries.extend((rest, fused))


def _let_experts_be_fp32() -> None:
    """Grouped products of fp32 experts: the kernel computes them group by group, the rule for fake tensors refuses."""
    import torch

    rules = torch._meta_registrations
    strict = getattr(rules, "_meta_grouped_mm_common", None)
    if strict is None:
        return

    def common(mat_a: Any, mat_b: Any, *rest: Any, **named: Any) -> Any:
        if mat_a.dtype != torch.float32 or mat_b.dtype != torch.float32 or named.get("scale_a") is not None:
            return strict(mat_a, mat_b, *rest, **named)
        return rules._create_grouped_mm_output_tensor(mat_a, mat_b, named.get("offs"), torch.float32)

    rules._meta_grouped_mm_common = common
