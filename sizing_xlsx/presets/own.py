"""A planner's own models, cards and layer forms: a catalogue with them added, and nothing of the project edited.

A model is a config.json, or a folder that holds one, folders with one each, or config files under other names. A
card is a line of a file; see card_file.py. A layer form is a table of a file in the shape of layer_forms.toml, such as
`derive --write` makes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .card_file import read_cards
from .catalogue import (
    GPUS,
    OwnRow,
    Presets,
    by_layer_form,
    counted_table,
    form_rows,
    form_table,
    gpu_table,
    model_table,
    not_added,
)
from .config import Architecture, read_config
from .csv_file import Row
from .full_forms import full_form_table
from .layer_forms import LayerForm, read_layer_forms
from .names import one_line, shown

NEEDED_PARTS = ("norms", "attention", "final_norm", "loss_forward")


def with_own(
    presets: Presets,
    models: Iterable[str | Path] = (),
    gpus: Iterable[str | Path] = (),
    layer_forms: Iterable[str | Path] = (),
    *,
    skipped: list[str] | None = None,
    unknown: str = "build",
) -> Presets:
    """The presets with a planner's own models and cards before those of the catalogue, and layer forms after them.

    models: paths of config.json files, or of folders of them; see config_files(). gpus: paths of CSV or TOML
    files of cards. layer_forms: paths of TOML files of layer forms. skipped: takes the names that are known already,
    which are refused otherwise. unknown: what becomes of a family that is not described; see read_config. Raises
    ValueError, one sentence with the file, the line, the column, the value and what is right.
    """
    presets = with_forms(presets, layer_forms, skipped=skipped)
    known_models = {model.name.casefold(): model.name for model in (*presets.sized_models, *presets.unsized_models)}
    known_cards = {name.casefold(): name for name in presets.gpus.keys}
    added: list[tuple[Architecture, Path]] = []
    for path in models:
        for file in config_files(Path(path)):
            model = read_config(file, unknown=unknown)
            where = one_line(str(file))
            if skipped is not None and model.name.casefold() in known_models:
                skipped.append(model.name)
                continue
            _unique(known_models, model.name, f"{where}: the model is called", "rename its folder or its file")
            added.append((model, file))
    cards: list[tuple[Row, Path]] = []
    for path in gpus:
        for where, card in read_cards(Path(path), presets.gpu_rows):
            if _as_in_catalogue(card, presets.gpu_rows):
                continue
            if skipped is not None and card["name"].casefold() in known_cards:
                skipped.append(card["name"])
                continue
            _unique(known_cards, card["name"], f"{where}, column name is", "rename the card, say after its site")
            cards.append((card, Path(path)))
    sized, unsized = by_layer_form([model for model, _ in added], presets.layer_forms.keys)
    all_unsized = [*unsized, *presets.unsized_models]
    all_sized, all_cards = [*sized, *presets.sized_models], [*(card for card, _ in cards), *presets.gpu_rows]
    reasons = {model.name: model.why_not for model in unsized}
    return presets._replace(
        models=model_table(all_sized, presets.storage_formats) if sized else presets.models,
        gpus=gpu_table(all_cards, presets.options) if cards else presets.gpus,
        sized_models=all_sized,
        unsized_models=all_unsized,
        counted_models=counted_table(all_unsized, presets.storage_formats) if unsized else presets.counted_models,
        gpu_rows=all_cards,
        own=(
            *presets.own,
            *_own("models", [(model.name, file, reasons.get(model.name, "")) for model, file in added]),
            *_own("gpus", [(card["name"], file, "") for card, file in cards]),
        ),
    )


def with_forms(presets: Presets, paths: Iterable[str | Path], *, skipped: list[str] | None = None) -> Presets:
    """The presets with more layer forms; models of theirs that were only counted can then be sized.

    skipped: takes the names of forms that are known already, which are refused otherwise.
    """
    own: dict[str, LayerForm] = {}
    rows: list[OwnRow] = []
    for path in map(Path, paths):
        found = _own_forms(path, {**presets.forms, **own}, skipped)
        own |= found
        rows += _own("layer_forms", [(name, path, "") for name in found])
    if not own:
        return presets
    forms = {**presets.forms, **own}
    now = [model._replace(why_not="") for model in presets.unsized_models if model.layer_form in own]
    unsized = [model for model in presets.unsized_models if model.layer_form not in own]
    order = {row.name: at for at, row in enumerate(presets.own) if row.table == "models"}
    sized = sorted([*presets.sized_models, *now], key=lambda model: order.get(model.name, len(presets.own)))
    offered = {model.name for model in now}
    others = [row._replace(why_not="") if row.name in offered else row for row in presets.own]
    return presets._replace(
        forms=forms,
        layer_forms=form_table(forms, presets.framework_forms),
        full_forms=full_form_table(presets.full_parts, forms),
        layer_form_rows=form_rows({**forms, **presets.framework_forms}),
        models=model_table(sized, presets.storage_formats) if now else presets.models,
        sized_models=sized,
        unsized_models=unsized,
        counted_models=counted_table(unsized, presets.storage_formats),
        own=tuple(sorted([*others, *rows], key=lambda row: row.table != "layer_forms")),
    )


def _own_forms(path: Path, known: Mapping[str, LayerForm], skipped: list[str] | None) -> dict[str, LayerForm]:
    """The layer forms of a file, checked to be new and such as the formulas add up."""
    found, where = read_layer_forms(path), one_line(str(path))
    if not found:
        raise ValueError(f"{where} holds no layer form; it should hold a table for each, as derive --write makes it")
    if skipped is not None:
        skipped += [name for name in found if name in known]
        found = {name: form for name, form in found.items() if name not in known}
    for name, form in found.items():
        place = f"{where}: [{one_line(name)}]"
        if name in known:
            raise ValueError(f"{place} is a layer form of the catalogue already; leave it out")
        missing = [part for part in NEEDED_PARTS if part not in form.parts]
        if missing or "V" not in form.parts["loss_forward"]:
            lacks = missing[0] if missing else "V in loss_forward"
            raise ValueError(f"{place} lacks {lacks}; a layer form has {', '.join(NEEDED_PARTS)}, the last with V")
        for part, width in not_added(form.parts):
            raise ValueError(f"{place}, {part} has {width}, which no formula adds up; leave it out")
    return found


def _as_in_catalogue(card: Row, catalogue: Sequence[Row]) -> bool:
    """Whether a card is one of the catalogue's, as `catalogue gpus --csv` writes it: the same name and figures."""
    same = next((row for row in catalogue if row["name"] == card["name"]), None)
    return same is not None and all(same[column] == card[column] for column in _FIGURES)


_FIGURES = tuple(column for column, kind in GPUS.items() if not kind.startswith(("name", "text")))


def config_files(path: Path) -> list[Path]:
    """The configs that a path means: itself; or a folder's config.json; or the subfolders that hold one, and the
    other *.json files in it, by name. Hidden files and folders do not count. Raises ValueError where there is none.
    """
    try:
        if not path.is_dir():
            return [path]  # a file that is missing is refused when it is read
        if (path / "config.json").is_file():
            return [path]
        entries = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
        folders = [entry for entry in entries if (entry / "config.json").is_file()]
        files = [entry for entry in entries if _may_be_config(entry) and entry.is_file()]
    except OSError as error:
        raise ValueError(f"{one_line(str(path))} cannot be read: {error.strerror}") from None
    if not folders and not files:
        raise ValueError(
            f"{one_line(str(path))} holds no model; it should hold a config.json, folders with one, or *.json files"
        )
    return [*folders, *files]


# Files that lie beside a config.json in a model's folder and are none.
_BESIDE = (
    "tokenizer.json", "tokenizer_config.json", "generation_config.json", "special_tokens_map.json", "added_tokens.json",
    "preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json", "chat_template.json",
    "vocab.json", "adapter_config.json", "quantize_config.json", "quant_config.json", "params.json",
)  # fmt: skip


def _may_be_config(file: Path) -> bool:
    name = file.name.casefold()
    return name.endswith(".json") and not name.endswith(".index.json") and name not in _BESIDE


def _unique(known: dict[str, str], name: str, told: str, remedy: str) -> None:
    """Takes a name down as known; ValueError where it is known already."""
    if (other := known.get(name.casefold())) is not None:
        same = "is there already" if other == name else f"is there already as {shown(other)}"
        raise ValueError(f"{told} {shown(name)}, which {same}; {remedy}")
    known[name.casefold()] = name


def _own(table: str, named: Sequence[tuple[str, Path, str]]) -> list[OwnRow]:
    """What was added, from (name, file or folder, why it is not offered); each file is read once for its digest."""
    files = {path: path / "config.json" if path.is_dir() else path for _, path, _ in named}
    contents = {path: file.read_bytes() for path, file in files.items()}
    digests = {path: hashlib.sha256(content).hexdigest()[:12] for path, content in contents.items()}
    texts = {path: content.decode("utf-8-sig") for path, content in contents.items()}
    return [
        OwnRow(table, name, _short(files[path]), why_not, digests[path], texts[path]) for name, path, why_not in named
    ]


def _short(file: Path) -> str:
    """A file as the sheets show it: its name, and that of its folder where every model's is config.json."""
    return one_line(f"{file.absolute().parent.name}/{file.name}" if file.name == "config.json" else file.name)
