"""The files of a run: how large a checkpoint is, how long it takes to write, how many are kept."""

from typing import Any

from ..formula.declare import Constant, Input, Number, Whole, term
from ..formula.primitives import floor, given, when

bytes_per_mb = Constant(1e6, "bytes per MB", "Bytes per MB", "1 MB = 1,000,000 bytes", "definition")
own_checkpoint_bytes = Input(
    "bytes per parameter",
    Number(0.01, 100),
    None,
    "Own bytes, with state",
    "Bytes of a checkpoint for each trained parameter; empty: weights and optimizer state as the job holds them.",
    follows_job=False,
    optional=True,
)
own_weights_bytes = Input(
    "bytes per parameter",
    Number(0.01, 100),
    None,
    "Own bytes, weights only",
    "Bytes of the weights alone for each trained parameter; empty: as the job holds them.",
    follows_job=False,
    optional=True,
)
write_mb_per_second = Input(
    "MB per second",
    Number(0.001, 1_000_000),
    300,
    "Write speed",
    "Of the storage that checkpoints go to, as one run sees it. A network disk: 100 to 500.",
    follows_job=False,
)
checkpoint_interval_hours = Input(
    "hours",
    Number(0.01, 10_000),
    1,
    "Checkpoint every",
    "Hours of training between two checkpoints: every hour to every few hours is usual.",
    follows_job=False,
)
checkpoints_kept = Input(
    "count",
    Whole(1, 10_000),
    3,
    "Checkpoints kept",
    "The newest with its optimizer state, to go on from; the others as weights alone.",
    follows_job=False,
)
stalled_share = Input(
    "share",
    Number(0, 1),
    1,
    "Stall while writing",
    "Share of the writing time in which training waits; 0 where files are written beside it.",
    follows_job=False,
)
dataset_gb = Input(
    "GB", Number(0, 1e9), 100, "Data on disk", "Training set, base model, environment and logs.", follows_job=False
)


@term("bytes per parameter")
def entered_checkpoint_bytes(own_checkpoint_bytes: Any) -> Any:
    """Bytes of a checkpoint for each trained parameter, as entered; 0 where they are not."""
    return given(own_checkpoint_bytes, 0)


@term("bytes per parameter")
def entered_weights_bytes(own_weights_bytes: Any) -> Any:
    """Bytes of the weights alone for each trained parameter, as entered; 0 where they are not."""
    return given(own_weights_bytes, 0)


@term("bytes")
def checkpoint_bytes(
    entered_checkpoint_bytes: Any, trained_parameters: Any, saved_weights: Any, optimizer_state: Any
) -> Any:
    """A checkpoint to go on from: weights and optimizer state; 12 bytes a parameter in fp32 with Adam."""
    held = saved_weights + optimizer_state
    return when(entered_checkpoint_bytes > 0, entered_checkpoint_bytes * trained_parameters, held)


@term("bytes")
def weights_bytes(entered_weights_bytes: Any, trained_parameters: Any, saved_weights: Any) -> Any:
    """Weights alone, to use or to compare; 4 bytes a parameter in fp32."""
    return when(entered_weights_bytes > 0, entered_weights_bytes * trained_parameters, saved_weights)


@term("GB", label="Checkpoint")
def checkpoint_gb(checkpoint_bytes: Any, bytes_per_gb: Any) -> Any:
    """A checkpoint to go on from."""
    return checkpoint_bytes / bytes_per_gb


@term("GB", label="Weights only")
def weights_file_gb(weights_bytes: Any, bytes_per_gb: Any) -> Any:
    """Weights alone."""
    return weights_bytes / bytes_per_gb


@term("seconds")
def checkpoint_seconds(checkpoint_bytes: Any, bytes_per_mb: Any, write_mb_per_second: Any) -> Any:
    """Time to write a checkpoint."""
    return checkpoint_bytes / bytes_per_mb / write_mb_per_second


@term("seconds")
def stall_seconds(checkpoint_seconds: Any, stalled_share: Any) -> Any:
    """Time that training waits for a checkpoint."""
    return checkpoint_seconds * stalled_share


@term("count")
def checkpoints_written(training_hours: Any, checkpoint_interval_hours: Any) -> Any:
    """Checkpoints of the run as expected, the last one among them."""
    return 1 + floor(training_hours / checkpoint_interval_hours)


@term("GB")
def checkpoints_gb(checkpoint_gb: Any, weights_file_gb: Any, checkpoints_kept: Any) -> Any:
    """Disk for the checkpoints that are kept: one with its state, the others as weights alone."""
    return checkpoint_gb + weights_file_gb * (checkpoints_kept - 1)
