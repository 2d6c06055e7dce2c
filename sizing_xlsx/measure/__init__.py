"""Proof: run the training step that the formulas predict, on a GPU, on none, or as a tiny model on the CPU.

run.py says what a run is and where runs are read from; models.py and loop.py make the model and train it, the same
for every backend; cuda.py measures on a GPU; trace.py records the same step on fake_gpu.py's device with events.py
and replays it through allocator.py; cpu.py counts exact bytes and saved tensors. sweep.py runs many, each in a
process of its own; results.py is a row of what came out.

Only this package imports torch, and only when a run begins.
"""
