"""What the peak is made of: every piece of memory alive, by term, and a picture of one step.

Works on a recording of events.py, from a trace or from a GPU. On a GPU the allocator's own history is laid beside it:
what the allocator handed out and no tensor owned is scratch inside kernels.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from .events import Allocation

# Terms in the order in which they are stacked: what stays comes first.
TERMS = (
    "frozen weights",
    "trained weights",
    "optimizer state",
    "cuBLAS workspaces",
    "token ids and buffers",
    "gradients",
    "autocast copies",
    "kept by layers",
    "outside layers",
    "output scores and loss",
    "backward at work",
    "update temporaries",
    "scratch inside kernels",
)


class Part(NamedTuple):
    """One line of the table: a term, what in the model made it, how many pieces, and their bytes."""

    term: str
    made_by: str
    pieces: int
    bytes: int


@dataclass
class Composition:
    """One step: bytes by term after each event, where its phases begin, and the parts alive at the peak."""

    samples: list[tuple[int, dict[str, int]]]  # event -> bytes by term
    phases: list[tuple[int, str]]  # event at which a phase begins
    peak_at: int
    peak: int
    parts: list[Part]


def compose(recorder: Any, marks: Mapping[str, tuple[int, int]], vocabulary: int) -> Composition:
    """The composition of the last recorded step. vocabulary: width of the output scores."""
    labels = label_all(recorder, vocabulary)
    begin, end = marks["forward"][0], marks["update"][1]
    alive: dict[int, int] = {}
    totals: Counter[str] = Counter()
    samples: list[tuple[int, dict[str, int]]] = []
    total = peak = 0
    peak_at, at_peak = begin, {}
    for at, (number, size) in enumerate(recorder.events[:end], 1):
        if size:
            alive[number] = size
            totals[labels[number]] += size
            total += size
        else:
            gone = alive.pop(number)
            totals[labels[number]] -= gone
            total -= gone
        if at >= begin:
            samples.append((at - begin, dict(totals)))
            if total > peak:
                peak, peak_at, at_peak = total, at, dict(alive)
    phases = sorted((first - begin, phase) for phase, (first, _) in marks.items())
    return Composition(samples, phases, peak_at - begin, peak, _parts(recorder, labels, at_peak))


def label_all(recorder: Any, vocabulary: int) -> list[str]:
    """The term of every allocation of a recording, by its number."""
    weights = {found.shape for found in recorder.all if found.operation == "parameter" and len(found.shape) == 2}
    updates = _optimizer_states(recorder)
    return [_label(number, found, recorder, weights, updates, vocabulary) for number, found in enumerate(recorder.all)]


def _optimizer_states(recorder: Any) -> set[int]:
    """What an update makes and leaves behind."""
    made = {number for number, found in enumerate(recorder.all) if found.phase == "update"}
    gone = {number for number, size in recorder.events if not size}
    return made - gone


def _label(
    number: int, found: Allocation, recorder: Any, weights: set[tuple[int, ...]], states: set[int], vocabulary: int
) -> str:
    if found.operation == "parameter":
        return "trained weights" if number in recorder.trained else "frozen weights"
    if found.operation == "cublas_workspace":
        return "cuBLAS workspaces"
    if found.operation.endswith("scratch"):
        return "scratch inside kernels"
    if number in recorder.gradients:
        return "gradients"
    if found.operation == "optimizer state":
        return found.operation
    if found.phase == "update":
        return "optimizer state" if number in states else "update temporaries"
    if found.operation == "_to_copy" and found.shape in weights:
        return "autocast copies"
    if found.shape[-1:] == (vocabulary,) and not _in_layer(found.module):
        return "output scores and loss"
    if found.phase == "backward":
        return "backward at work"
    if found.phase == "model" or found.dtype == "int64":
        return "token ids and buffers"
    return "kept by layers" if _in_layer(found.module) else "outside layers"


def _in_layer(module: str) -> bool:
    return any(part.isdigit() for part in module.split("."))


def made_by(found: Allocation) -> str:
    """The place in the model, the same for all layers: "self_attn.q_proj: mm bfloat16"."""
    names = [part for part in found.module.split(".") if not part.isdigit()]
    skipped = ("base_model", "model", "layers", "default", "base_layer")
    place = ".".join(name for name in names if name not in skipped)
    return f"{place or 'the model'}: {found.operation} {found.dtype}".rstrip()


def _parts(recorder: Any, labels: Sequence[str], alive: Mapping[int, int]) -> list[Part]:
    sizes: Counter[tuple[str, str]] = Counter()
    pieces: Counter[tuple[str, str]] = Counter()
    for number, size in alive.items():
        key = (labels[number], made_by(recorder.all[number]))
        sizes[key] += size
        pieces[key] += 1
    order = sorted(sizes, key=lambda key: (TERMS.index(key[0]), -sizes[key], key[1]))
    return [Part(*key, pieces[key], sizes[key]) for key in order]


@dataclass
class Recording:
    """What compose() reads of a recorder: numbered events, what each number was, and which became what."""

    events: list[tuple[int, int]]
    all: list[Allocation]
    trained: set[int]
    gradients: set[int]


def of_gpu(run: Any, model: Any, optimizer: Any, card: Any) -> Composition:
    """One step on a GPU: the allocator's own history, each piece named after the tensor that lay there."""
    from .events import Recorder
    from .loop import train, vocabulary

    recorder = Recorder(card.device.partition(":")[0])
    recorder.watch(model)
    with recorder:
        recorder.know(model)
        for entry in optimizer.state.values():
            for value in entry.values():
                if hasattr(value, "untyped_storage"):
                    recorder.track(value, "optimizer state")
        before = len(recorder.all)
        card.synchronize()
        card.record_history()

        def begin(_: int, phase: str) -> None:
            recorder.phase = phase

        def end(_: int, phase: str) -> None:
            if phase == "backward":
                recorder.mark_gradients(model)

        train(model, optimizer, run, card.device, 1, begin, end)
        recorder.close()
    recording, marks = from_history(recorder, card.history(), before)
    return compose(recording, marks, vocabulary(model))


def from_history(
    recorder: Any, history: Sequence[Mapping[str, Any]], before: int
) -> tuple[Recording, dict[str, tuple[int, int]]]:
    """The allocator's history as numbered events, named by the recorder's tensors; what is left is kernels' scratch.

    history: entries with action ("alloc" or "free_completed"), addr and size in bytes. before: how many of the
    recorder's allocations were there when the history began. An allocation is a tensor's when the recorder saw a
    storage begin at its address; at one address they come in the same order in both records.
    """
    waiting: dict[int, list[int]] = {}
    for number in range(before, len(recorder.all)):
        waiting.setdefault(recorder.addresses.get(number, 0), []).append(number)
    found = Recording([], list(recorder.all[:before]), set(recorder.trained), set())
    found.events.extend((number, recorder.all[number].size) for number in range(before))
    places = {recorder.addresses[number]: number for number in range(before) if number in recorder.addresses}
    phase, starts = "forward", {"forward": len(found.events)}
    for entry in history:
        address, action = int(entry["addr"]), entry["action"]
        if action == "alloc":
            known = waiting.get(address)
            if known:
                number = known.pop(0)
                made = recorder.all[number]
                if made.phase != phase:
                    phase = made.phase
                    starts.setdefault(phase, len(found.events))
                if number in recorder.gradients:
                    found.gradients.add(len(found.all))
            else:
                made = Allocation(int(entry["size"]), int(entry["size"]), "kernel scratch", (), "", phase, "")
            places[address] = len(found.all)
            found.events.append((len(found.all), int(entry["size"])))
            found.all.append(made)
        elif action == "free_completed" and address in places:
            found.events.append((places.pop(address), 0))
    ends = [*list(starts.values())[1:], len(found.events)]
    marks = {name: (first, last) for (name, first), last in zip(starts.items(), ends, strict=True)}
    return found, {**{name: (len(found.events),) * 2 for name in ("forward", "backward", "update")}, **marks}


def by_term(composition: Composition) -> dict[str, int]:
    """Bytes alive at the peak by term, in the order of TERMS."""
    total: Counter[str] = Counter()
    for part in composition.parts:
        total[part.term] += part.bytes
    return {term: total[term] for term in TERMS if total[term]}


def write_table(composition: Composition, path: Path) -> None:
    """The parts as a CSV: term, made_by, pieces, bytes; they add up to the peak."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Part._fields)
        writer.writerows(composition.parts)


def report(composition: Composition) -> str:
    """The peak by term in a few lines, GB of 1e9 bytes."""
    lines = [f"Alive at the peak, {composition.peak / 1e9:,.4f} GB:"]
    for term, size in by_term(composition).items():
        lines.append(f"  {term:24}{size / 1e9:>12,.4f} GB{size / composition.peak:>8.1%}")
    return "\n".join(lines)


def draw(composition: Composition, path: Path, title: str, moments: Mapping[str, float]) -> None:
    """Memory over one step as a PNG or SVG, stacked by term. moments: what the formulas say, label -> GB."""
    from .models import need

    need("matplotlib", "a picture of the step")
    from matplotlib.figure import Figure

    samples = _thinned(composition.samples)
    places = [at for at, _ in samples]
    terms = [term for term in TERMS if any(found.get(term) for _, found in samples)]
    figure = Figure(figsize=(12.5, 6.2), dpi=130, layout="constrained")
    axes = figure.add_subplot()
    layers = [[found.get(term, 0) / 1e9 for _, found in samples] for term in terms]
    axes.stackplot(places, layers, labels=terms, colors=[COLOURS[term] for term in terms], step="post", linewidth=0)
    highest = composition.peak / 1e9
    for at, phase in composition.phases:
        axes.axvline(at, color="#444444", linewidth=0.8)
        axes.annotate(f" {phase}", (at, highest * 1.10), fontsize=9, va="top")
    axes.plot([composition.peak_at], [highest], marker="v", color="black", markersize=7, linestyle="none")
    late = composition.peak_at > places[-1] / 2
    axes.annotate(
        f" peak {highest:,.2f} GB ",
        (composition.peak_at, highest * 1.02),
        fontsize=9,
        fontweight="bold",
        ha="right" if late else "left",
    )
    top = max([highest, *moments.values()]) * 1.12
    lowest = 0.0
    for at, (label, value) in enumerate(sorted(moments.items(), key=lambda item: item[1])):
        axes.axhline(value, color="black", linewidth=0.7, linestyle=("--", ":", "-.")[at % 3])
        lowest = max(value, lowest + top / 34)  # labels stand beside the lines, one above the other
        axes.annotate(
            f"{label} {value:,.2f}",
            (places[-1], value),
            (places[-1] * 1.02, lowest),
            fontsize=8,
            va="center",
            arrowprops={"arrowstyle": "-", "linewidth": 0.5},
            annotation_clip=False,
        )
    axes.set_xlim(places[0], places[-1])
    axes.set_ylim(0, top)
    axes.set_xlabel("allocations and frees of one step, in order")
    axes.set_ylabel("allocated, GB (1 GB = 1e9 bytes)")
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside right center", fontsize=9, frameon=False)
    figure.savefig(path)


COLOURS = {
    "frozen weights": "#0072B2",
    "trained weights": "#56B4E9",
    "optimizer state": "#9467BD",
    "cuBLAS workspaces": "#7F7F7F",
    "token ids and buffers": "#BCBD22",
    "gradients": "#D55E00",
    "autocast copies": "#F0E442",
    "kept by layers": "#009E73",
    "outside layers": "#8DD3C7",
    "output scores and loss": "#E69F00",
    "backward at work": "#CC79A7",
    "update temporaries": "#FB9A99",
    "scratch inside kernels": "#B0B0B0",
}


def _thinned(samples: list[tuple[int, dict[str, int]]], most: int = 3000) -> list[tuple[int, dict[str, int]]]:
    """At most so many samples: of each stretch the highest, so that no peak is lost."""
    if len(samples) <= most:
        return samples
    width = -(-len(samples) // most)
    stretches = [samples[at : at + width] for at in range(0, len(samples), width)]
    return [max(stretch, key=lambda sample: sum(sample[1].values())) for stretch in stretches]


def moments(run: Any) -> dict[str, float]:
    """What the traced formulas say of each moment of a step, label -> GB; nothing where they do not know the run."""
    from .run import BEYOND_FORMULAS, SETTINGS, declared

    if run.job == "full" or any(run[key] != SETTINGS[key][0] for key in BEYOND_FORMULAS):
        return {}
    formulas = declared(run.job)
    keys = [key for key in formulas.terms if key.endswith("_moment") and formulas.unit_of(key) == "bytes"]
    keys = [key for key in keys if not key.startswith("published")]
    inputs = {key: value for key, value in run.inputs.items() if key in formulas.inputs}
    try:
        values = formulas.size(("traced_available", *keys), **inputs)
    except ValueError:
        return {}
    if not values["traced_available"]:
        return {}
    return {formulas.terms[key].label.removesuffix(" moment").lower(): values[key] / 1e9 for key in keys}


def write(run: Any, composition: Composition, folder: Path) -> None:
    """The table and the picture of a run, as FOLDER/ID.csv and FOLDER/ID.png."""
    folder.mkdir(parents=True, exist_ok=True)
    name = "".join(letter if letter.isalnum() or letter in "-_.,=" else "-" for letter in run.id)
    write_table(composition, folder / f"{name}.csv")
    title = f"{run.id}: {run['base_model']}, batch {run['batch_size']} x {run['sequence_length']} tokens"
    draw(composition, folder / f"{name}.png", title, moments(run))
