"""Where the inverse questions stop: no answer is larger than what its input may be."""

from ...formula.declare import Constant

_DOMAIN = "the largest value its input takes"
batch_size_limit = Constant(65_536, "rows", "Largest batch size asked for", _DOMAIN, "definition")
sequence_length_limit = Constant(1_048_576, "tokens", "Longest sequence asked for", _DOMAIN, "definition")
rounding_guard = Constant(
    1e-9,
    "count",
    "Rounding guard",
    "a whole answer that arithmetic leaves a hair too low still counts",
    "assumed",
)
