"""LoRA steps of frameworks with model code and loops of their own, traced as the product traces those of transformers.

torchtune and litgpt pin other packages than the tests run with, so that what they take is recorded in
data/own_stack_steps.csv. Where one of them can be imported, test_own_stacks.py traces its steps again.

    python -m venv own && own/bin/pip install torch torchtune==0.6.1 torchao==0.13.0
    own/bin/pip install --no-deps litgpt==0.5.13 lightning lightning-utilities
    PYTHONPATH=.:tests own/bin/python tests/own_stacks.py > steps.csv          # recorded steps, traced anew
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sizing_xlsx.jobs import plain_job
from sizing_xlsx.measure import fake_gpu, trace
from sizing_xlsx.measure.allocator import Allocator
from sizing_xlsx.presets.catalogue import load_presets

DATA = Path(__file__).parent / "data"
FILE = DATA / "own_stack_steps.csv"
LORA = plain_job("lora", load_presets(models=[DATA / "phi-1_5.json"]))
STEPS = 2  # the second finds the optimizer state in place, and what the loop still holds of the first
TORCHTUNE, LITGPT = "torchtune, own recipe", "litgpt, own loop"
FIXED = {"adapter_storage": "bf16", "uses_autocast": "Off", "adapter_targets": "Own choice"}  # as both frameworks do
MODULES = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "output_proj"}  # torchtune's names
MLP = ("gate", "up", "down")
IN_LITGPT = {"EleutherAI/pythia-1.4b": "pythia-1.4b", "phi-1_5": "phi-1_5"}  # the others: Llama form, by their shape
NF4 = "nf4 / fp4, block 64, double quant (nested block 256)"


def recorded() -> list[dict[str, Any]]:
    """The recorded steps: a job's inputs, the framework's versions, and the peak in bytes."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def inputs_of(row: dict[str, Any]) -> dict[str, Any]:
    """A recorded step as inputs of the LoRA job; a target set is named by its slots, joined by spaces."""
    inputs: dict[str, Any] = dict(FIXED)
    for name, value in row.items():
        if name in ("peak_allocated_bytes", "versions", "targets") or value == "":
            continue
        inputs[name] = int(value) if value.isdecimal() else value
    on = row["targets"].split()
    return inputs | {f"target_{slot}": "On" if slot in on else "Off" for slot in (*MODULES, *MLP)}


def shape_of(inputs: dict[str, Any]) -> dict[str, int]:
    """The shape of a step's model: that of the catalogue, and the row's own."""
    models = LORA.tables["models"]
    at = models.row_of(inputs["base_model"]) - 1
    return {
        name: inputs.get(f"{name}_override") or models.columns[name][at]
        for name in (
            "hidden_size", "mlp_width", "layer_count", "attention_heads", "kv_heads", "vocabulary_size",
            "maximum_positions",
        )
    }  # fmt: skip


def peak(inputs: dict[str, Any]) -> int:
    """The peak of allocated memory of a step of the stack's own code, in bytes."""
    fake_gpu.install()
    build, step = {TORCHTUNE: (_torchtune, _torchtune_steps), LITGPT: (_litgpt, _litgpt_steps)}[
        inputs["training_stack"]
    ]
    model, mode = build(inputs), fake_gpu.fake_mode()
    recorder = _recorder(inputs)
    with mode:
        trace.place(model)
        parts = _quantise(model) if inputs.get("base_storage_format") == NF4 else []
    with mode, recorder:
        for tensor in [*tensors_of(model), *parts]:
            recorder.track(tensor, "parameter")
        for phase in step(model, inputs):
            recorder.phase = phase
        recorder.close()
    return Allocator().replay(recorder.events).peak_allocated


def versions(stack: str) -> str:
    """The versions that a step is traced with."""
    from importlib.metadata import version

    packages = {TORCHTUNE: ("torchtune", "torchao"), LITGPT: ("litgpt",)}[stack]
    return ", ".join(f"{package} {version(package)}" for package in (*packages, "torch"))


def _recorder(inputs: dict[str, Any]) -> Any:
    """A recorder that looks into torchao's weights: into the operations that they are taken apart to."""
    from sizing_xlsx.measure.events import Recorder

    gpus = LORA.tables["gpus"]
    workspace = int(gpus.columns["matmul_workspace_bytes"][gpus.row_of(inputs["gpu_choice"]) - 1])
    if inputs["training_stack"] == LITGPT:
        return Recorder(fake_gpu.NAME, workspace)
    from torchao.dtypes.nf4tensor import NF4Tensor

    class Inner(Recorder):  # type: ignore[misc, valid-type]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if any(issubclass(kind, NF4Tensor) for kind in types):
                return NotImplemented
            return super().__torch_dispatch__(func, types, args, kwargs)

    return Inner(fake_gpu.NAME, workspace)


def tensors_of(model: Any) -> list[Any]:
    """Parameters and buffers that are one piece of memory each."""
    return [tensor for tensor in (*model.parameters(), *model.buffers()) if not hasattr(tensor, "quantized_data")]


def _token_rows(inputs: dict[str, Any]) -> Any:
    import torch

    return torch.randint(0, 100, (inputs["batch_size"], inputs["sequence_length"]), device=fake_gpu.DEVICE)


# -- torchtune: recipes/lora_finetune_single_device.py, without torch.compile


def _torchtune(inputs: dict[str, Any]) -> Any:
    import torch
    from torchtune import modules, training
    from torchtune.models.llama3_1 import lora_llama3_1
    from torchtune.modules.peft import get_adapter_params, set_trainable_params

    shape = shape_of(inputs)
    on = [slot for slot in (*MODULES, *MLP) if inputs[f"target_{slot}"] == "On"]
    with training.set_default_dtype(torch.bfloat16), torch.device("meta"):
        model = lora_llama3_1(
            [MODULES[slot] for slot in on if slot in MODULES],
            apply_lora_to_mlp="up" in on,
            vocab_size=shape["vocabulary_size"],
            num_layers=shape["layer_count"],
            num_heads=shape["attention_heads"],
            num_kv_heads=shape["kv_heads"],
            embed_dim=shape["hidden_size"],
            intermediate_dim=shape["mlp_width"],
            max_seq_len=shape["maximum_positions"],
            lora_rank=inputs["lora_rank"],
            lora_alpha=16,
            lora_dropout=0.1 if inputs["lora_dropout"] == "On" else 0.0,
        )
    with training.set_default_dtype(torch.bfloat16):
        for module in model.modules():
            if hasattr(module, "rope_init"):
                module.rope_init()
    set_trainable_params(model, get_adapter_params(model))
    if inputs["activation_checkpointing"] == "On":
        training.set_activation_checkpointing(model, auto_wrap_policy={modules.TransformerSelfAttentionLayer})
    return model


def _quantise(model: Any) -> list[Any]:
    """Put NF4 weights in place of those of the layers' linear modules; returns the pieces they are made of."""
    import torch
    from torchao.dtypes.nf4tensor import NF4Tensor, SubclassTensorArgs, linear_nf4
    from torchtune.modules.peft import LoRALinear

    def empty(shape: Any, dtype: Any) -> Any:
        return torch.empty(shape, dtype=dtype, device=fake_gpu.DEVICE)

    parts: list[Any] = []
    for name, module in list(model.named_modules()):
        if ".lora_" in name or name == "output" or not isinstance(module, (LoRALinear, torch.nn.Linear)):
            continue
        rows, columns = module.weight.shape
        blocks = rows * columns // 64
        pieces = (
            empty(blocks, torch.int8), empty(blocks // 256, torch.bfloat16), empty((), torch.bfloat16),
            empty(rows * columns // 2, torch.uint8), empty(16, torch.bfloat16),
        )  # fmt: skip
        kind = SubclassTensorArgs(
            module.weight.shape, (columns, 1), 0, torch.bfloat16, torch.device(fake_gpu.DEVICE), False
        )
        weight = torch.nn.Parameter(NF4Tensor(kind, 64, blocks, 256, *pieces), requires_grad=False)
        module._parameters["weight"], module._quantize_base = weight, True
        if not isinstance(module, LoRALinear):  # as its FrozenNF4Linear
            module.forward = lambda x, weight=weight: linear_nf4(input=x, weight=weight)
        parts.extend(pieces)
    return parts


def _torchtune_steps(model: Any, inputs: dict[str, Any]) -> Iterator[str]:
    import torch
    from torchtune import training
    from torchtune.modules.loss import CEWithChunkedOutputLoss

    loss_of = CEWithChunkedOutputLoss()
    model.set_num_output_chunks(loss_of.num_output_chunks)
    # One kernel where there is a GPU; the trace's own update, on tensors without one, is not the peak.
    optimizer = torch.optim.AdamW([parameter for parameter in model.parameters() if parameter.requires_grad])
    ignored = torch.full((inputs["batch_size"], 1), loss_of.ignore_index, device=fake_gpu.DEVICE)
    for _ in range(STEPS):
        yield "forward"
        tokens, labels = _token_rows(inputs), _token_rows(inputs)
        counted = (labels != loss_of.ignore_index).sum()
        scores = model(tokens=tokens)
        labels = torch.hstack((labels[..., 1:], ignored))
        loss = loss_of(scores, labels)
        del scores
        loss = loss * counted
        yield "backward"
        loss.backward()
        del loss
        yield "update"
        training.scale_grads(model, 1 / counted)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


# -- litgpt: litgpt/finetune/lora.py in bf16-true, where Fabric turns what a model returns into fp32


def _litgpt(inputs: dict[str, Any]) -> Any:
    import torch
    from litgpt.lora import GPT, Config, mark_only_lora_as_trainable

    shape = shape_of(inputs)
    on = {slot: inputs[f"target_{slot}"] == "On" for slot in (*MODULES, *MLP)}
    config = Config.from_name(
        IN_LITGPT.get(inputs["base_model"], "tiny-llama-1.1b"),
        n_layer=shape["layer_count"],
        n_embd=shape["hidden_size"],
        n_head=shape["attention_heads"],
        n_query_groups=shape["kv_heads"],
        head_size=shape["hidden_size"] // shape["attention_heads"],
        intermediate_size=shape["mlp_width"],
        padded_vocab_size=shape["vocabulary_size"],
        lora_r=inputs["lora_rank"],
        lora_alpha=16,
        lora_dropout=0.05 if inputs["lora_dropout"] == "On" else 0.0,
        lora_query=on["query"],
        lora_key=on["key"],
        lora_value=on["value"],
        lora_projection=on["output"],
        lora_mlp=on["up"],
        block_size=shape["maximum_positions"],
    )
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device("meta"):
            model = GPT(config)
    finally:
        torch.set_default_dtype(usual)
    mark_only_lora_as_trainable(model)
    model._max_seq_length = inputs["sequence_length"]  # as the loop sets it to the longest row
    model.cos, model.sin = model.rope_cache(device="cpu")
    return model


def _litgpt_steps(model: Any, inputs: dict[str, Any]) -> Iterator[str]:
    import torch
    from litgpt.utils import chunked_cross_entropy

    optimizer = torch.optim.AdamW([parameter for parameter in model.parameters() if parameter.requires_grad])
    for _ in range(STEPS):
        yield "forward"
        tokens, targets = _token_rows(inputs), _token_rows(inputs)
        scores = [piece.float() for piece in model(tokens, lm_head_chunk_size=128)]  # the last step's are still held
        scores[-1] = scores[-1][..., :-1, :]
        loss = chunked_cross_entropy(scores, targets[..., 1:])
        yield "backward"
        (loss / 1).backward()
        yield "update"
        optimizer.step()
        optimizer.zero_grad()


def main() -> None:
    """Trace every recorded step again whose framework is installed, and print the file as it would be."""
    rows = recorded()
    out = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
    out.writeheader()
    for row in rows:
        inputs = inputs_of(row)
        try:
            row |= {"peak_allocated_bytes": peak(inputs), "versions": versions(inputs["training_stack"])}
        except ImportError as error:
            sys.stderr.write(f"{inputs['training_stack']}: {error}\n")
        out.writerow(row)


if __name__ == "__main__":
    main()
