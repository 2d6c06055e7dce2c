"""The physics: every memory term as a plain function, one module per subject.

shared/    what all jobs have in common: units, the run, the card, the allocator, the verdict
decoder/   the shape of a decoder and its exact parameters, which every job about one shares
lora/      LoRA and QLoRA-style fine-tuning of a decoder on one GPU or more
training/  training an encoder from scratch on one GPU

Each job has two families over the same inputs: published (the accounting of the articles that the workbooks
accompany) and traced (what PyTorch was seen to keep, from an allocation trace).

Symbols in the sources: T tokens per micro-batch, d hidden size, q query width, kv key or value width, ff MLP
width, nh attention heads, V vocabulary, L layers, S sequence length, B micro-batch, N parameters, Na adapter
parameters.
"""
