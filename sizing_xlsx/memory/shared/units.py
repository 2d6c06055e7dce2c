"""Sizes of things: definitions that every formula shares."""

from ...formula.declare import Constant

bytes_per_gb = Constant(1e9, "bytes per GB", "Bytes per GB", "1 GB = 1,000,000,000 bytes", "definition")
bytes_per_mib = Constant(2**20, "bytes per MiB", "Bytes per MiB", "1 MiB = 1,048,576 bytes", "definition")
fp32_bytes = Constant(4, "bytes per value", "Bytes of an fp32 value", "IEEE 754 single precision", "definition")
bf16_bytes = Constant(2, "bytes per value", "Bytes of a bf16 value", "bfloat16; fp16 takes the same", "definition")
mask_bytes = Constant(
    1, "bytes per value", "Bytes of a mask value", "PyTorch keeps dropout masks as bool", "definition"
)
