"""Layer forms for a planner's own models whose families have none yet: derived by tracing when a model is added."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..presets.own import with_forms
from .backends import one_sentence

if TYPE_CHECKING:
    from ..presets.catalogue import Presets
    from ..presets.config import Architecture

NEEDED = ("torch", "transformers", "peft")


def can_derive() -> bool:
    """Whether the packages that trace a family are installed; none is imported."""
    return all(find_spec(package) for package in NEEDED)


def with_derived(presets: Presets, say: Callable[..., object]) -> Presets:
    """The presets with a layer form for each of the planner's models that lacks nothing else.

    A form is traced once for all models that have it, which takes some 20 to 60 seconds. say: such as print; it gets a
    line for each form, the first part before the trace. A form that cannot be derived leaves its models unsized, with
    the reason.
    """
    texts = {row.name: row.content for row in presets.own if row.table == "models"}
    failed: dict[str, str] = {}
    while model := next((one for one in presets.unsized_models if _lacks_form(one, texts, failed)), None):
        say(f"sizing-xlsx: {model.name}: its layer form, {model.layer_form}, is derived by tracing, ", end="")
        began = time.monotonic()
        try:
            presets = with_form_of(presets, model, texts[model.name])
            say(f"{presets.forms[model.layer_form].source.partition(', ')[2]}, in {time.monotonic() - began:.0f} s.")
        except ValueError as error:
            failed[model.layer_form] = f"its layer form cannot be derived: {one_sentence(str(error)).rstrip('.')}"
            say(f"which failed after {time.monotonic() - began:.0f} s.")
    unsized = [
        model._replace(why_not=failed[model.layer_form]) if _is_one_of(model, texts, failed) else model
        for model in presets.unsized_models
    ]
    reasons = {model.name: model.why_not for model in unsized}
    own = tuple(
        row._replace(why_not=reasons[row.name]) if row.table == "models" and row.name in reasons else row
        for row in presets.own
    )
    return presets._replace(unsized_models=unsized, own=own)


def _lacks_form(model: Architecture, texts: dict[str, str], failed: dict[str, str]) -> bool:
    """Whether a form is all that an own model lacks, and none has been tried yet."""
    return bool(model.layer_form) and model.name in texts and model.layer_form not in failed


def _is_one_of(model: Architecture, texts: dict[str, str], failed: dict[str, str]) -> bool:
    return model.name in texts and model.layer_form in failed


def with_form_of(presets: Presets, model: Architecture, content: str) -> Presets:
    """The presets with the layer form of one model. content: the text of its config.json.

    Raises ValueError, one sentence, where its family cannot be traced, or the formulas could not add up its layers.
    """
    from .layer_form import as_toml, form_of
    from .run import make_run

    with tempfile.TemporaryDirectory(prefix="sizing-xlsx-") as folder:
        config = Path(folder, "config.json")
        config.write_text(content, encoding="utf-8")
        try:
            with quiet():
                form = form_of(make_run("lora", {"config": str(config)}, id="form"))
        except ValueError as error:
            raise ValueError(str(error)) from None
        except Exception as error:  # a class of transformers, or PEFT, may fail in any way
            raise ValueError(one_sentence(f"{type(error).__name__}: {error}")) from None
        form["source"] = f"derived when a model was added, {form['source']}"
        file = Path(folder, f"{model.layer_form}.toml")
        file.write_text(as_toml(model.layer_form, form), encoding="utf-8")
        return with_forms(presets, [file])


@contextmanager
def quiet() -> Iterator[None]:
    """Without what libraries say while they trace, which is not for the planner."""
    import logging
    import warnings

    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
