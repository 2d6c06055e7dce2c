"""Reading templates: what a workbook says, checked before anything is written.

Every refusal is a ValueError of one sentence that names the file and the entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..formula.domains import nearest
from ..paths import templates_folder
from .guide import ANSWERS, read_guide
from .vocabulary import VOCABULARY, check_words

TEXT, TABLE, LIST = str, dict, list
OPTIONAL: Mapping[str, type] = {
    "public_runs": TABLE,
    "crossover": TABLE,
    "sharding": TABLE,
}  # a workbook without it has no such block
# What kind of workbook a template is of, by its entry "form", and the sections that this kind has beside the others.
TRAINED = "trained"  # one that says nothing
FORMS: Mapping[str, Mapping[str, type]] = {
    TRAINED: {
        "items": LIST, "moments": LIST, "boundary": TABLE, "chart_parts": TABLE, "levers": LIST,
        "levers_sheet": TABLE, "search": TABLE, "chart_data": TABLE, "validation": TABLE, "functions": TABLE,
    },
    "served": {"form": TEXT, "served": TABLE},
}  # fmt: skip
_OF_A_FORM = {section for form in FORMS.values() for section in form}
SECTIONS: Mapping[str, type] = {
    "file": TEXT, "title": TEXT, "subject": TEXT, "sentences": TABLE, "steps": LIST, "notes": TABLE,
    "axes": TABLE, "compare": TABLE, "sensitivity": TABLE, "scenarios": TABLE,
    **{section: TABLE for section in VOCABULARY if section not in {*OPTIONAL, *_OF_A_FORM}},
}  # fmt: skip
# Sections with words of every workbook: each has a file of its own, whose entries a workbook's template may replace.
SHARED = (*VOCABULARY, "compare", "levers_sheet", "sensitivity", "scenarios", "crossover")
ENTRIES: Mapping[str, tuple[str, ...]] = {
    "steps": ("name", "note", "rows"),
    "items": ("name", "traced", "published", "drives", "reduces"),
    "moments": ("name", "term", "alive"),
    "boundary": ("note",),
    "chart_parts": ("base",),
    "compare": (
        "title", "smallest", "cheapest", "here", "prices", "prices_are", "prices_note", "none_fits", "own_card",
        "own_price", "no_price", "wrong_price", "wrong_price_told",
        "unknown", "order_label", "order_help", "order_right", "orders", "columns", "note", "own_rows", "workings",
        "card", "none", "suggested", "hourly", "answers", "beside",
    ),
    "levers": ("name", "change", "time", "quality"),
    "levers_sheet": (
        "title", "as_entered", "all", "most", "less", "lever", "grown_job", "nothing", "everything",
        "not_so", "none_applies", "checkpointed_not_so", "other", "table", "columns", "note", "grown", "grown_columns",
        "boundaries", "boundary_columns", "boundary_note", "search_workings", "names", "doubled", "unless",
    ),
    "axes": ("inputs", "rows", "columns", "row_values", "column_values"),
    "sensitivity": (
        "title", "rows", "columns", "choice", "corner", "verdicts", "totals", "told", "tiles", "tile_notes",
        "note", "contradict", "wrong", "more", "text", "error", "workings", "beside",
    ),
    "crossover": (
        "title", "formats", "cards", "columns", "choose", "note", "workings", "room_columns", "rooms_columns",
        "largest", "largest_note", "no_model", "no_card", "chart", "chart_title_head", "total", "capacity",
        "alt", "nominal", "each_format", "heading", "job", "none", "check", "beside",
    ),
    "sharding": (
        "title", "verdicts", "totals", "states", "cards", "lowest", "crossing", "first", "node", "nodes", "none",
        "by_size", "chart_title", "size", "parts", "card", "alt", "launch", "launch_note", "launch_columns",
        "launch_recipe",
    ),
    "scenarios": (
        "title", "rows", "printed", "cards", "as_typed", "needed", "sentence", "idle", "further", "own", "cards_title",
        "workings", "workings_heading", "notes", "printed_all", "printed_part", "blank_means", "choice", "choice_help",
        "choice_right",
        "tiles", "heads", "typed", "panel", "faults", "beside", "columns", "jobs",
    ),
}  # fmt: skip
ROW_KEYS = ("input", "term", "label", "help", "sentence", "tall", "own")
LONGEST_TEXT = 255  # what a formula may hold as one text
_KINDS: Mapping[Any, str] = {str: "a text", dict: "a table", list: "a list"}


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file; ValueError with the file when it cannot be read as one."""
    import tomllib

    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise ValueError(f"{path} is missing; put it back") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None


def read_template(name: str) -> dict[str, Any]:
    """What a job's own template says, unchecked and without what all workbooks share."""
    return read_toml(templates_folder() / f"{name}.toml")


def load_template(name: str) -> dict[str, Any]:
    """The template of a job's workbook, with everything that the sheets read.

    What every workbook says alike comes from the templates of the shared sections.
    """
    path = templates_folder() / f"{name}.toml"
    template = read_template(name)
    known = _sections(template, str(path))
    for section in SHARED:
        if section not in known:
            continue
        own = template.setdefault(section, {})
        if isinstance(own, dict):
            template[section] = {**read_toml(path.with_name(f"{section}.toml")), **own}
    check_template(template, str(path))
    check_start(template["start"], path)
    return template


def check_start(start: dict[str, Any], path: Path) -> None:
    """Refuse a Start sheet whose guide does not hold together; look up the files of the workbooks it sends to."""
    where = path.with_name("start.toml")
    guide = read_guide(start["guide"], f"{where}: guide")
    for question in guide.questions:
        answer = start["answers"].get(question.id)
        if answer not in ANSWERS:
            raise ValueError(f"{path}: answers has {question.id} = {answer!r}; it must be one of {', '.join(ANSWERS)}")
    jobs = [option["job"] for option in start["guide"]["options"] if "job" in option]
    start["files"] = {job: read_toml(path.with_name(f"{job}.toml"))["file"] for job in jobs}


def check_template(template: Mapping[str, Any], where: str) -> None:
    """Refuse a template that lacks an entry, has one too many, or holds another kind of value."""
    sections = _sections(template, where)
    for key in template:
        if key not in sections:
            raise ValueError(f"{where}: {key} is no entry of a template{nearest(key, (*sections, *OPTIONAL))}")
    for key, kind in sections.items():
        if not isinstance(template.get(key), kind):
            found = "missing" if key not in template else repr(template[key])[:60]
            raise ValueError(f"{where}: {key} is {found}; it must be {_KINDS[kind]}")
    check_file(template["file"], where)
    for section, keys in ENTRIES.items():
        if section not in sections:
            continue
        entries = template[section] if sections[section] is list else [template[section]]
        for at, entry in enumerate(entries, 1):
            for key in keys:
                if not isinstance(entry, dict) or key not in entry:
                    raise ValueError(f"{where}: {section} {at} lacks {key}")
    for section in VOCABULARY:
        if section in sections:
            check_words(section, template[section], f"{where} and {section}.toml")
    if "validation" in sections:
        _check_counted(template["validation"]["calls"], f"{where} and validation.toml: calls")
    if "levers" in sections:
        _check_levers(template, where)
    if "public_runs" in sections:
        _check_share(template["public_runs"]["near"], f"{where}: near of public_runs")
    for step in template["steps"]:
        for at, row in enumerate(step["rows"], 1):
            _check_row(row, f"{where}: row {at} of step {step['name']!r}")
    for text in _texts(template):
        if len(text) > LONGEST_TEXT * 2:
            raise ValueError(f"{where}: a text of {len(text):,} characters is too long to show: {text[:40]!r}…")


def check_file(file: str, where: str) -> None:
    """Refuse what is no name of a workbook's file."""
    if not file.endswith(".xlsx") or file != Path(file).name or file.startswith("."):
        raise ValueError(f"{where}: file is {file!r}; it must be a plain name that ends in .xlsx")


def form_of(template: Mapping[str, Any]) -> str:
    """The kind of workbook that a template is of, one of FORMS."""
    return str(template.get("form", TRAINED))


def _sections(template: Mapping[str, Any], where: str) -> dict[str, type]:
    """The sections that a template has, and what each must be."""
    form = form_of(template)
    if form not in FORMS:
        known = tuple(FORMS)
        raise ValueError(f"{where}: form is {form!r}; it must be one of {', '.join(known)}{nearest(form, known)}")
    given = {key: kind for key, kind in OPTIONAL.items() if key in template}
    return {**SECTIONS, **FORMS[form], **given}


def _check_levers(template: Mapping[str, Any], where: str) -> None:
    for lever in template["levers"]:
        _check_conditions(lever.get("unless", []), f"{where}: unless of the lever {lever['name']!r}", pulled=True)
    for question, conditions in template["levers_sheet"]["unless"].items():
        _check_conditions(conditions, f"{where}: unless of {question}", pulled=False)


def _check_counted(words: Mapping[str, str], where: str) -> None:
    """Words that formulas count: each another one, and none with a sign that counting reads as more than itself."""
    for key, word in words.items():
        others = {other.casefold() for name, other in words.items() if name != key}
        if not word[:1].isalpha() or set(word) & set("*?~") or word.casefold() in others:
            raise ValueError(f"{where}.{key} is {word!r}; it must begin with a letter, hold no *, ? or ~, and differ")


def _check_conditions(conditions: Any, where: str, *, pulled: bool) -> None:
    """Each says of one symbol how large it is at most, or at least, and why."""
    subjects, bounds = {"term", "pulled"} if pulled else {"term"}, {"at_most", "at_least"}
    for each in conditions if isinstance(conditions, list) else [conditions]:
        given = set(each) if isinstance(each, dict) else set()
        right = len(given & subjects) == len(given & bounds) == 1 and "why" in given and len(given) == 3
        if not right or any(each[bound] not in (0, 1, 2) for bound in given & bounds):
            raise ValueError(
                f"{where} has {each!r}; it must be {' or '.join(sorted(subjects, reverse=True))}, at_most or at_least "
                "with 0, 1 or 2, and why"
            )


def _check_share(value: Any, where: str) -> None:
    if not isinstance(value, float) or not 0 < value < 1:
        raise ValueError(f"{where} is {value!r}; it must be a share between 0 and 1, such as 0.05")


def _check_row(row: Any, where: str) -> None:
    if not isinstance(row, dict) or ("input" in row) == ("term" in row):
        raise ValueError(f"{where} must name either an input or a term")
    for key in row:
        if key not in ROW_KEYS:
            raise ValueError(f"{where} has {key}, which no row has{nearest(key, ROW_KEYS)}")


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in inner for text in _texts(part)]
