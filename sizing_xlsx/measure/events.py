"""The recorder: every tensor memory that a step takes and gives back, and what it is for.

A dispatch mode above the fake tensors sees each operation's results. A result whose storage is new is an
allocation; its end is when the last reference lets the storage go. What kernels take inside is not seen: cuBLAS
workspaces and the buffers of flash attention's backward and of bitsandbytes's products are added here, the rest is
named in allocator.BLIND_SPOTS.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .allocator import BLOCK

ATTENTION = {
    "_scaled_dot_product_flash_attention": "flash",
    "_scaled_dot_product_flash_attention_for_cpu": "flash (CPU)",
    "_scaled_dot_product_efficient_attention": "memory-efficient",
    "_scaled_dot_product_cudnn_attention": "cuDNN",
    "_scaled_dot_product_attention_math": "math, scores stored",
}
_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")


@dataclass(frozen=True)
class Allocation:
    """One piece of memory: size in bytes, rounded up to blocks of 512, exact as asked for; and where it came from."""

    size: int
    exact: int
    operation: str
    shape: tuple[int, ...]
    dtype: str
    phase: str
    module: str


class Recorder(TorchDispatchMode):  # type: ignore[misc]
    """Records allocations and frees on one type of device while it is active.

    events: (number, bytes) for an allocation, (number, 0) for a free, in order. all: what each number was.
    """

    def __init__(self, device_type: str, workspace_bytes: int = 0) -> None:
        super().__init__()
        self.device_type = device_type
        self.workspace_bytes = workspace_bytes
        self.events: list[tuple[int, int]] = []
        self.all: list[Allocation] = []
        self.live: dict[int, Allocation] = {}
        self.allocated = self.peak = 0
        self.peak_at = 0  # how many events there were when the peak was reached
        self.phase = "model"
        self.modules: list[str] = []
        self.gradients: set[int] = set()  # numbers that became gradients
        self.trained: set[int] = set()  # numbers of weights that are trained
        self.kernels: set[str] = set()  # attention kernels that ran
        self._storages: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self.addresses: dict[int, int] = {}  # of allocations on a real device
        self._handles: set[str] = set()
        self._closed = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__ if hasattr(func, "overloadpacket") else ""
        if name in _PRODUCTS:
            self._workspace(args)
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if hasattr(leaf, "untyped_storage"):
                self.track(leaf, name)
        if name in ATTENTION:
            self.kernels.add(ATTENTION[name])
        if name == "_scaled_dot_product_flash_attention_backward":
            self._scratch(name, _flash_scratch(args[1], args[2]))
        elif name == "gemm_4bit":  # from about 1,536 tokens on it dequantises the weight and multiplies
            self._scratch(name, [out.element_size() * args[2][0] * args[2][1]])
        elif name == "int8_scaled_mm":  # 32-bit sums, then fp16, then the wanted dtype
            self._scratch(name, [4 * out.numel(), 2 * out.numel()])
        return out

    def track(self, tensor: Any, operation: str) -> None:
        """Take note of a tensor's storage, unless it is known or on another device."""
        if tensor.device.type != self.device_type:
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._storages or not storage.nbytes():
            return
        number = self._take(storage.nbytes(), operation, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        self._numbers[key] = number
        if self.device_type == "cuda":
            self.addresses[number] = storage.data_ptr()

        def gone(_: Any) -> None:
            del self._storages[key], self._numbers[key]
            if not self._closed:
                self._give_back(number)

        self._storages[key] = weakref.ref(storage, gone)

    def number_of(self, tensor: Any) -> int | None:
        """The number of the allocation that a tensor lies in."""
        return self._numbers.get(tensor.untyped_storage()._cdata)

    def know(self, model: Any) -> None:
        """Track a model's parameters and buffers, and which of them are trained."""
        for tensor in tensors_of(model):
            self.track(tensor, "parameter")
        for parameter in model.parameters():
            number = self.number_of(parameter)
            if parameter.requires_grad and number is not None:
                self.trained.add(number)

    def mark_gradients(self, model: Any) -> None:
        """Note which allocations have become gradients."""
        for parameter in model.parameters():
            number = None if parameter.grad is None else self.number_of(parameter.grad)
            if number is not None:
                self.gradients.add(number)

    def attention(self) -> str:
        """The attention kernels that ran: "eager" when none did."""
        return ", ".join(sorted(self.kernels)) or "eager"

    def close(self) -> None:
        """Record no more: what is let go of from here on belongs to no step."""
        self._closed = True

    def reset_peak(self) -> None:
        """Start a new peak from what is alive now."""
        self.peak, self.peak_at = self.allocated, len(self.events)

    def watch(self, model: Any) -> None:
        """Know which module is at work when an allocation is made."""

        def leave(*_: Any) -> None:
            self.modules.pop()

        for name, module in model.named_modules():
            module.register_forward_pre_hook(lambda *_, name=name: self.modules.append(name))
            module.register_forward_hook(leave, always_call=True)

    def alive_after(self, count: int) -> list[Allocation]:
        """What was alive after so many events."""
        alive: set[int] = set()
        for number, size in self.events[:count]:
            (alive.add if size else alive.discard)(number)
        return [self.all[number] for number in sorted(alive)]

    def _take(self, size: int, operation: str, shape: tuple[int, ...], dtype: str) -> int:
        exact, size = size, -(-size // BLOCK) * BLOCK
        number = len(self.all)
        module = self.modules[-1] if self.modules else ""
        self.all.append(Allocation(size, exact, operation, shape, dtype, self.phase, module))
        self.live[number] = self.all[-1]
        self.events.append((number, size))
        self.allocated += size
        if self.allocated > self.peak:
            self.peak, self.peak_at = self.allocated, len(self.events)
        return number

    def _give_back(self, number: int) -> None:
        gone = self.live.pop(number)
        self.events.append((number, 0))
        self.allocated -= gone.size

    def _workspace(self, arguments: Any) -> None:
        """cuBLAS keeps a workspace per thread: forward runs in one, backward in another."""
        thread = "backward" if self.phase == "backward" else "forward"
        here = any(getattr(getattr(value, "device", None), "type", "") == self.device_type for value in arguments)
        if here and self.workspace_bytes and thread not in self._handles:
            self._handles.add(thread)
            self._take(self.workspace_bytes, "cublas_workspace", (self.workspace_bytes,), "uint8")

    def _scratch(self, operation: str, sizes: list[int]) -> None:
        """What a kernel takes and gives back before it returns."""
        for number in [self._take(size, operation + ", scratch", (), "") for size in sizes]:
            self._give_back(number)


def tensors_of(model: Any) -> list[Any]:
    """Parameters, buffers and the scales of quantised weights."""
    found = [*model.parameters(), *model.buffers()]
    for parameter in model.parameters():
        state = getattr(parameter, "quant_state", None)
        if state is not None:
            found += [state.absmax, state.code]
            if getattr(state, "nested", False):
                found += [state.state2.absmax, state.state2.code, state.offset]
        if getattr(parameter, "SCB", None) is not None:
            found.append(parameter.SCB)
    return found


def _flash_scratch(query: Any, key: Any) -> list[int]:
    """Buffers inside flash attention 2's backward: softmax sums, fp32 query gradient, expanded KV gradients."""
    batch, heads, sequence, width = query.shape
    rows, columns = -(-sequence // 128) * 128, -(-width // 32) * 32
    sizes = [4 * batch * heads * rows, 4 * batch * rows * heads * columns]
    if key.shape[1] != heads:
        sizes += [2 * batch * key.shape[2] * heads * width] * 2
    return sizes
