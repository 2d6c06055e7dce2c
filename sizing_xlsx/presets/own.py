"""A planner's own models and cards: a catalogue with them added, and nothing of the project edited.

A model is a config.json, or a folder that holds one, folders with one each, or config files under other names. A
card is a line of a file; see card_file.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from .card_file import read_cards
from .catalogue import OwnRow, Presets, by_layer_form, counted_table, gpu_table, model_table
from .config import Architecture, read_config
from .csv_file import Row
from .names import one_line, shown


def with_own(presets: Presets, models: Iterable[str | Path] = (), gpus: Iterable[str | Path] = ()) -> Presets:
    """The presets with a planner's own models and cards before those of the catalogue.

    models: paths of config.json files, or of folders of them; see config_files(). gpus: paths of CSV or TOML
    files of cards. Raises ValueError, one sentence with the file, the line, the column, the value and what is right.
    """
    known_models = {model.name.casefold(): model.name for model in (*presets.sized_models, *presets.unsized_models)}
    known_cards = {name.casefold(): name for name in presets.gpus.keys}
    added: list[tuple[Architecture, Path]] = []
    for path in models:
        for file in config_files(Path(path)):
            model = read_config(file)
            where = one_line(str(file))
            _unique(known_models, model.name, f"{where}: the model is called", "rename its folder or its file")
            added.append((model, file))
    cards: list[tuple[Row, Path]] = []
    for path in gpus:
        for where, card in read_cards(Path(path), presets.gpu_rows):
            _unique(known_cards, card["name"], f"{where}, column name is", "rename the card, say after its site")
            cards.append((card, Path(path)))
    sized, unsized = by_layer_form([model for model, _ in added], presets.layer_forms.keys)
    all_unsized = [*unsized, *presets.unsized_models]
    all_sized, all_cards = [*sized, *presets.sized_models], [*(card for card, _ in cards), *presets.gpu_rows]
    reasons = {model.name: model.why_not for model in unsized}
    return presets._replace(
        models=model_table(all_sized) if sized else presets.models,
        gpus=gpu_table(all_cards) if cards else presets.gpus,
        sized_models=all_sized,
        unsized_models=all_unsized,
        counted_models=counted_table(all_unsized) if unsized else presets.counted_models,
        gpu_rows=all_cards,
        own=(
            *presets.own,
            *_own("models", [(model.name, file, reasons.get(model.name, "")) for model, file in added]),
            *_own("gpus", [(card["name"], file, "") for card, file in cards]),
        ),
    )


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
        files = [entry for entry in entries if entry.suffix.casefold() == ".json" and entry.is_file()]
    except OSError as error:
        raise ValueError(f"{one_line(str(path))} cannot be read: {error.strerror}") from None
    if not folders and not files:
        raise ValueError(
            f"{one_line(str(path))} holds no model; it should hold a config.json, folders with one, or *.json files"
        )
    return [*folders, *files]


def _unique(known: dict[str, str], name: str, told: str, remedy: str) -> None:
    """Takes a name down as known; ValueError where it is known already."""
    if (other := known.get(name.casefold())) is not None:
        same = "is there already" if other == name else f"is there already as {shown(other)}"
        raise ValueError(f"{told} {shown(name)}, which {same}; {remedy}")
    known[name.casefold()] = name


def _own(table: str, named: Sequence[tuple[str, Path, str]]) -> list[OwnRow]:
    """What was added, from (name, file or folder, why it is not offered); each file is read once for its digest."""
    files = {path: path / "config.json" if path.is_dir() else path for _, path, _ in named}
    digests = {path: hashlib.sha256(file.read_bytes()).hexdigest()[:12] for path, file in files.items()}
    return [OwnRow(table, name, _short(files[path]), why_not, digests[path]) for name, path, why_not in named]


def _short(file: Path) -> str:
    """A file as the sheets show it: its name, and that of its folder where every model's is config.json."""
    return one_line(f"{file.absolute().parent.name}/{file.name}" if file.name == "config.json" else file.name)
