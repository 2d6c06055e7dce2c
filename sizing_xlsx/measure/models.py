"""The model and the optimizer of a run, the same for every backend.

A model is first made on PyTorch's meta device, where it has shapes and no memory; a backend then gives it memory.
Decoders are those of transformers, adapters those of PEFT, quantised layers and 8-bit optimizers those of
bitsandbytes; the encoder trained from scratch is the one of the article, below.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from .run import Run, declared, model_folder, read_config_fields

EXTRA = "measure"  # of pyproject.toml
NEEDED_FOR = {
    "torch": EXTRA,
    "transformers": EXTRA,
    "peft": EXTRA,
    "bitsandbytes": "quantised",
    "psutil": EXTRA,
    "matplotlib": EXTRA,
    "ray": "ray",
    "liger_kernel": "liger",
}
DROPOUT = 0.1
OUTLIERS = 6.0  # from here on LLM.int8 computes a column in 16 bit, its authors' and transformers' default
_PACKAGES = {"liger_kernel": "liger-kernel"}

# What a linear module is called, by its role and model family; a fused module has several roles.
ROLES = {
    "query": ("q_proj", "q_a_proj", "q_b_proj", "qkv_proj", "query_key_value", "Wqkv", "attn.c_attn"),
    "key": ("k_proj", "kv_a_proj_with_mqa", "qkv_proj", "query_key_value", "Wqkv", "attn.c_attn"),
    "value": ("v_proj", "kv_b_proj", "qkv_proj", "query_key_value", "Wqkv", "attn.c_attn"),
    "output": ("o_proj", "out_proj", "attention.dense", "self_attention.dense", "self_attn.dense", "attn.c_proj"),
    "gate": ("gate_proj", "gate_up_proj"),
    "up": ("up_proj", "gate_up_proj", "c_fc", "dense_h_to_4h", "fc1"),
    "down": ("down_proj", "mlp.c_proj", "dense_4h_to_h", "fc2"),
}


class CannotRun(ValueError):
    """A run that cannot be made here; the text says why and what would be right."""


def need(package: str, why: str) -> Any:
    """Import an optional package; CannotRun names the extra that brings it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name, extra = _PACKAGES.get(package, package), NEEDED_FOR[package]
        if isinstance(error, ModuleNotFoundError) and error.name == package:
            raise CannotRun(
                f"{name} is not installed, and {why} needs it: pip install 'sizing-xlsx[{extra}]'"
            ) from None
        raise CannotRun(f"{name} is installed and cannot be imported: {error}") from None


# ------------------------------------------------------------------------------------------------ decoders
def config_of(run: Run) -> Any:
    """The transformers configuration of a run's decoder, with the run's own shape where it gives one."""
    transformers = need("transformers", f"run {run.id}")
    file = Path(run["config"]) if run["config"] else model_folder(run["base_model"])
    try:
        fields = read_config_fields(file)
    except ValueError as error:
        raise CannotRun(str(error)) from None
    kind = fields["model_type"]
    if kind not in transformers.CONFIG_MAPPING:
        raise CannotRun(
            f"model_type is {kind!r}, which transformers {transformers.__version__} does not know; install a newer"
            " one (code that comes with a model is never run)"
        )
    fields = {key: value for key, value in fields.items() if key not in ("model_type", "auto_map")}
    try:
        config = transformers.AutoConfig.for_model(kind, **fields).get_text_config()
    except Exception as error:  # each family checks its fields in its own way
        said = " ".join(str(error).split())
        raise CannotRun(f"config is {str(file)!r}, which transformers does not accept: {said}") from None
    _own_shape(config, run)
    config._attn_implementation = attention_of(run)
    if config._attn_implementation == "sdpa":
        for rate in ("attention_dropout", "attn_pdrop"):
            if hasattr(config, rate):
                setattr(config, rate, 0.0)  # dropped scores would leave the flash kernel
    return config


def attention_of(run: Run) -> str:
    """The attention implementation of a run, as transformers names it."""
    name = run["attention_implementation"]
    if name.startswith("Math"):
        raise CannotRun(f"attention_implementation is {name!r}, PyTorch's own fallback, which cannot be asked for")
    if name.startswith("FlashAttention"):
        return "flash_attention_2"
    return "eager" if name.startswith("Eager") else "sdpa"


def _own_shape(config: Any, run: Run) -> None:
    for field, name in (
        ("hidden_size", "hidden_size"),
        ("layer_count", "num_hidden_layers"),
        ("attention_heads", "num_attention_heads"),
        ("kv_heads", "num_key_value_heads"),
        ("head_dimension", "head_dim"),
        ("mlp_width", "intermediate_size"),
        ("vocabulary_size", "vocab_size"),
    ):
        own = run.inputs.get(f"{field}_override")
        follows = isinstance(getattr(type(config), name, None), property)  # from other fields; it cannot be set
        follows = follows or (name == "num_key_value_heads" and not hasattr(config, name))  # from the heads
        if own is not None and not follows:
            setattr(config, _named(config, name), own)
            if name == "vocab_size" and (getattr(config, "pad_token_id", None) or 0) >= own:
                config.pad_token_id = None
            if name == "num_hidden_layers" and getattr(config, "layer_types", None):
                config.layer_types = (config.layer_types * own)[:own]
    for name, value in run.settings.get("fields", {}).items():
        setattr(config, name, value)


def _named(config: Any, name: str) -> str:
    """What a family calls its MLP width."""
    names = [own for own in ("n_inner", "ffn_hidden_size", "ffn_dim") if hasattr(config, own)]
    return names[0] if name == "intermediate_size" and names else name


def storage_dtype(run: Run) -> tuple[Any, str]:
    """The dtype of what is not quantised, and the kind of quantisation: "", "int8", "nf4" or "nf4 double"."""
    torch = need("torch", "a run")
    plain = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    if run.job == "full":
        return plain[run["parameter_storage"]], ""
    name = run["base_storage_format"]
    if name in plain:
        return plain[name], ""
    half = torch.float16 if run["compute_precision"].startswith("fp16") else torch.bfloat16
    if name.startswith("int8"):
        return half, "int8"
    if name.startswith("nf4"):
        return half, "nf4" if "no double" in name else "nf4 double"
    raise CannotRun(f"base_storage_format is {name!r}; fp32, bf16, fp16, LLM.int8 and NF4 can be run")


def base(run: Run, device: str = "meta") -> Any:
    """The model of a run with random weights, made on a device; on "meta" it has shapes and no memory."""
    torch = need("torch", "a run")
    with torch.device(device):
        if run.job == "training":
            return make_encoder(run, device)
        config = config_of(run)
        transformers = need("transformers", "a decoder")
        dtype, _ = storage_dtype(run)
        try:
            return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
        except TypeError:  # before transformers 4.56
            return transformers.AutoModelForCausalLM.from_config(config, torch_dtype=dtype)
        except ValueError as error:
            if "scaled_dot_product_attention" in str(error):
                raise CannotRun(
                    f"attention_implementation is {run['attention_implementation']!r}, which transformers does not"
                    f" offer for {run['base_model']}; set it to 'Eager, scores stored'"
                ) from None
            raise CannotRun(f"{run['base_model']} cannot be built as a causal language model: {error}") from None


def pretrained(run: Run) -> Any:
    """The model of a run with the weights of a folder or hub; code that comes with a model is never run."""
    transformers = need("transformers", "weights of a folder or hub")
    if run.job == "training":
        raise CannotRun(f"weights is {run['weights']!r}; training from scratch begins with random weights")
    dtype, _ = storage_dtype(run)
    options = {"attn_implementation": attention_of(run), "trust_remote_code": False}
    try:
        return transformers.AutoModelForCausalLM.from_pretrained(run["weights"], torch_dtype=dtype, **options)
    except (OSError, ValueError) as error:
        said = " ".join(str(error).split())
        raise CannotRun(f"weights is {run['weights']!r}, which cannot be loaded: {said}") from None


def dress(model: Any, run: Run) -> Any:
    """What a trainer does to the base: checkpointing, k-bit preparation, adapters, train mode."""
    if run.job == "training":
        model.checkpointing = run.on("activation_checkpointing")
        return model.train()
    checkpointing = {"use_reentrant": run.on("reentrant_checkpointing")}
    if run.job == "lora":
        prepare(model, run)
        model = adapted(model, run)
        if run["adapter_storage"] == "bf16":
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.data = parameter.data.bfloat16()
    if run.on("activation_checkpointing") and hasattr(model, "gradient_checkpointing_enable"):
        if run.on("reentrant_checkpointing"):
            model.enable_input_require_grads()
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=checkpointing)
    if run["loss_kernel"] == "Liger":
        liger = need("liger_kernel", "loss_kernel Liger")
        liger.transformers._apply_liger_kernel_to_instance(model=getattr(model, "base_model", model).model)
    return model.train()


def prepare(model: Any, run: Run) -> None:
    """What is not quantised beside a quantised base into fp32, as the run's k-bit preparation has it."""
    if not storage_dtype(run)[1] or run["kbit_preparation"] == "Off":
        return
    if run["kbit_preparation"] == "On":
        need("peft", "k-bit preparation").prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
        return
    for parameter in model.parameters():
        parameter.requires_grad_(False)
        if parameter.ndim == 1:
            parameter.data = parameter.data.float()


def method_of(run: Run) -> dict[str, int]:
    """The row of a run's adapter method: which of the switches of options.toml it sets."""
    methods = declared("lora").tables["adapter_methods"]
    row = methods.keys.index(run["adapter_method"])
    return {name: values[row] for name, values in methods.columns.items()}


def adapted(model: Any, run: Run) -> Any:
    """The base with what a run's adapter method trains: adapters of PEFT, or an output head of its own."""
    method = method_of(run)
    if method["head"]:
        return with_trained_head(model, run, bool(method["base_on_card"]))
    return need("peft", run["adapter_method"]).get_peft_model(model, adapter_config(model, run))


def adapter_config(model: Any, run: Run) -> Any:
    """PEFT's configuration for a run's method, rank, targets, layers and dropout.

    IA3 scales the input of the MLP's last projection and the output of every other target, as PEFT's defaults do.
    """
    peft, method = need("peft", run["adapter_method"]), method_of(run)
    if method["prefix"]:
        return peft.PrefixTuningConfig(num_virtual_tokens=run["virtual_tokens"], task_type="CAUSAL_LM")
    names = target_modules(model, run)
    transposed = any(type(module).__name__ == "Conv1D" for name, module in model.named_modules() if name in names)
    common = {"target_modules": names, "fan_in_fan_out": transposed, "task_type": "CAUSAL_LM"}
    if method["scales_inputs"]:
        down = [name for name in names if any(name.endswith(f".{end}") for end in ROLES["down"])]
        return peft.IA3Config(feedforward_modules=down, **common)
    return peft.LoraConfig(
        r=run["lora_rank"],
        lora_alpha=2 * run["lora_rank"],
        lora_dropout=DROPOUT if run.on("lora_dropout") else 0.0,
        use_dora=bool(method["vectors"]),
        bias="none",
        **common,
    )


def with_trained_head(model: Any, run: Run, with_base: bool) -> Any:
    """A frozen base with a new fp32 output head, or that head alone over features that the base made before."""
    torch = need("torch", "a run")
    config = model.config.get_text_config()
    config.vocab_size = run["head_outputs"] or config.vocab_size
    if hasattr(model, "vocab_size"):  # what some families give their loss
        model.vocab_size = config.vocab_size
    config.tie_word_embeddings = False
    width = model.get_output_embeddings().in_features
    head = torch.nn.Linear(width, config.vocab_size, bias=False, dtype=torch.float32)
    if not with_base:
        half = torch.float16 if run["compute_precision"].startswith("fp16") else torch.bfloat16
        return stored_features_model(config, head, half)
    model.requires_grad_(False)
    model.set_output_embeddings(head)
    return model


def stored_features_model(config: Any, head: Any, dtype: Any) -> Any:
    """An output head as a model whose batch is features of the head's input width in a 16-bit dtype."""
    torch = need("torch", "a run")
    loss_of = importlib.import_module("transformers.loss.loss_utils").ForCausalLMLoss
    output = importlib.import_module("transformers.modeling_outputs").CausalLMOutputWithPast

    class StoredFeatures(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.config, self.head, self.feature_dtype = config, head, dtype

        def forward(self, features: Any, labels: Any) -> Any:
            logits = self.head(features)
            loss = loss_of(logits=logits, labels=labels, vocab_size=self.head.out_features)
            return output(loss=loss, logits=logits)

    return StoredFeatures()


def roles_of(run: Run) -> list[str]:
    """The roles that get an adapter."""
    formulas = declared("lora")
    targets = formulas.tables["target_sets"]
    row = targets.keys.index(run["adapter_targets"])
    if targets.columns["own"][row]:
        return [role for role in ROLES if run.on(f"target_{role}")]
    return [role for role in ROLES if targets.columns[role][row]]


def layers_of(model: Any) -> tuple[str, Any]:
    """The decoder's layers: the name of their list, and the list."""
    import torch

    wanted = getattr(model.config, "num_hidden_layers", None)
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == wanted:
            return name, module
    raise CannotRun(f"{type(model).__name__} has no list of {wanted} layers; its adapters cannot be placed")


def target_modules(model: Any, run: Run) -> list[str]:
    """The full names of the linear modules that get an adapter. CannotRun when there is none."""
    prefix, layers = layers_of(model)
    count = len(layers) if run["adapter_layers"] == "all" else run["adapter_layers"]
    if count > len(layers):
        raise CannotRun(f"adapter_layers is {count}; the model has {len(layers)} layers: enter 1 to {len(layers)}")
    ends = {end for role in roles_of(run) for end in ROLES[role]}
    names = []
    for at in range(len(layers) - count, len(layers)):
        for name, module in layers[at].named_modules():
            path = f"{prefix}.{at}.{name}"
            weight = getattr(module, "weight", None)
            linear = weight is not None and weight.ndim == 2 and not list(module.children())
            if linear and any(path.endswith(f".{end}") for end in ends):
                names.append(path)
    if not names:
        raise CannotRun(
            f"adapter_targets is {run['adapter_targets']!r}; {type(model).__name__} has none of these modules"
        )
    return names


def replace_linears(model: Any, kind: str, dtype: Any, with_head: bool = False) -> None:
    """Put bitsandbytes's modules in place of the linear ones; they quantise when they are moved to a device.

    As transformers does it: the output head, the embeddings, norms and fused experts stay as they are. kind:
    "int8", "nf4" or "nf4 double". dtype: what the 4-bit modules compute in. with_head: the output head too, untied.
    """
    torch = need("torch", "a run")
    bnb = need("bitsandbytes", f"base_storage_format {kind}")
    head = model.get_output_embeddings()
    for path, module in list(model.named_modules()):
        if not isinstance(module, torch.nn.Linear) or (module is head and not with_head):
            continue
        shape, bias = (module.in_features, module.out_features), module.bias is not None
        with torch.device("meta"):
            if kind == "int8":
                new = bnb.nn.Linear8bitLt(*shape, bias=bias, has_fp16_weights=False, threshold=OUTLIERS)
            else:
                new = bnb.nn.Linear4bit(*shape, bias=bias, compute_dtype=dtype)
        new.weight = quantised(module.weight.detach(), kind, new)
        new.bias = module.bias
        parent, _, leaf = path.rpartition(".")
        setattr(model.get_submodule(parent), leaf, new.requires_grad_(False))
    model.is_quantized = True
    setattr(model, f"is_loaded_in_{8 if kind == 'int8' else 4}bit", True)


def quantised(weight: Any, kind: str, module: Any) -> Any:
    """A weight that will be quantised on its way to a device."""
    import bitsandbytes as bnb

    if kind == "int8":
        return bnb.nn.Int8Params(weight, requires_grad=False, has_fp16_weights=False)
    double = kind == "nf4 double"
    return bnb.nn.Params4bit(weight, requires_grad=False, compress_statistics=double, quant_type="nf4", module=module)


# ------------------------------------------------------------------------------------------------ optimizers
def make_optimizer(run: Run, parameters: list[Any]) -> Any:
    """The optimizer of a run over what it trains."""
    torch = need("torch", "a run")
    name = run["optimizer_choice"]
    if name == "Adam":
        return torch.optim.Adam(parameters, lr=1e-4, foreach=True)
    if name == "8-bit Adam":
        bnb = need("bitsandbytes", "optimizer_choice 8-bit Adam")
        return bnb.optim.Adam8bit(parameters, lr=1e-4)
    return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9 if "momentum" in name else 0.0, foreach=True)


# ------------------------------------------------------------------------------------------------ the encoder
ENCODER_SIDES = ("hidden_size", "attention_heads", "mlp_width", "vocabulary_size")


def make_encoder(run: Run, device: str = "meta") -> Any:
    """The article's encoder: PyTorch's own pre-norm layers, dropout 0.1, fixed positions, an untied head, no last norm.

    On the CPU attention drops nothing, else PyTorch would leave the kernel that stores no scores.
    """
    torch = need("torch", "a run")
    importlib.import_module("torch.utils.checkpoint")
    shape = encoder_shape(run)
    width, heads, wide, words = (shape[key] for key in ENCODER_SIDES)
    if width % heads:
        raise CannotRun(f"hidden_size is {width} and attention_heads is {heads}; heads must divide the hidden size")
    eager = run["attention_implementation"].startswith("Eager")

    class Layer(torch.nn.TransformerEncoderLayer):  # type: ignore[misc, name-defined]
        def _sa_block(self, x: Any, *masks: Any, is_causal: bool = False) -> Any:
            return self.dropout1(self.self_attn(x, x, x, need_weights=eager)[0])

    class Encoder(torch.nn.Module):  # type: ignore[misc, name-defined]
        checkpointing = False

        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(words, width)
            self.register_buffer("positions", torch.zeros(1, run["sequence_length"], width))
            self.layers = torch.nn.ModuleList(
                Layer(width, heads, wide, DROPOUT, norm_first=True, batch_first=True)
                for _ in range(shape["layer_count"])
            )
            self.head = torch.nn.Linear(width, words)
            if device == "cpu":
                for layer in self.layers:
                    layer.self_attn.dropout = 0.0

        def forward(self, ids: Any) -> Any:
            hidden = self.embedding(ids) + self.positions[:, : ids.shape[1]]
            for layer in self.layers:
                hidden = checkpoint(layer, hidden) if self.checkpointing else layer(hidden)
            return self.head(hidden)

    def checkpoint(layer: Any, hidden: Any) -> Any:
        return torch.utils.checkpoint.checkpoint(layer, hidden, use_reentrant=run.on("reentrant_checkpointing"))

    model = Encoder()
    return model.to(torch.bfloat16) if run["parameter_storage"] == "bf16" else model


def encoder_shape(run: Run) -> dict[str, int]:
    """The encoder's own shape: that of its preset, with what the run replaces."""
    table = declared("training").tables["training_models"]
    row = table.keys.index(run["base_model"])
    return {name: int(run[f"{name}_override"] or table.columns[name][row]) for name in ("layer_count", *ENCODER_SIDES)}
