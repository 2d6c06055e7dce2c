"""Settings: what all rows have in common. Each with its unit, its help, what may be typed, and what is in force."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...formula.declare import Choice, Input, Number, Whole
from ...formula.domains import allowed
from ...formula.render import column_name, public_name
from ...planning.row_states import shown
from .. import page
from ..book import Raw
from ..inputs import prompt, typed_style
from ..jobtable import NOT_GIVEN
from ..words import filled, quoted, spelled
from .book import SETTINGS, is_wrong

if TYPE_CHECKING:
    from ...formula.job import Job
    from .book import PlanBook

_LABEL, _VALUE, _UNIT, _HELP, _TOLD, _FORCE, _FAULT, _LOW, _HIGH, _OPENED = range(1, 11)


def write(book: PlanBook) -> None:
    """Sections of inputs; names of what is typed and of what is in force; how many are wrong."""
    ws, words = book.sheet(SETTINGS), book.template["settings_sheet"]
    styles, put = book.styles, book.putter(ws)
    last = page.plain_sheet(book, SETTINGS, title=words["title"], sentence=words["sentence"], freeze=(2, 2))
    row, first = 2, 3
    for section in book.template["settings"]:
        row = page.section(ws, styles, row, last_column=last, name=section["name"], put=put, note=section["note"])
        for key in section["rows"]:
            _entry(book, row, book.owner(key), key, public_name(key), "")
            row += 1
    for name, kind in book.kinds.items():
        spec = book.template["kinds"][name]
        row = page.section(ws, styles, row, last_column=last, name=spec["name"], put=put, note=spec["note"])
        for key in kind.settings:
            _entry(book, row, kind.job, key, kind.prefix + public_name(key), name)
            row += 1
    area = f"$H${first + 1}:$H${row}"
    put(row + 1, _LABEL, words["faults"], styles["label_b"])
    put(row + 1, _VALUE, Raw(f"=SUM({area})", book.faults), styles["calc0"])
    book.define("Settings_Faults", SETTINGS, row + 1, _VALUE)
    page.print_area(ws, row + 1, _TOLD)


def _entry(book: PlanBook, row: int, job: Job, key: str, name: str, kind: str) -> None:
    ws, styles, words = book.sheet(SETTINGS), book.styles, book.template["settings_sheet"]
    put, declared, number = book.putter(ws), job.inputs[key], row + 1
    day = isinstance(declared.domain, Whole) and declared.domain.day
    style = styles.variant(typed_style(declared), **({"format": "date"} if day else {}))
    if isinstance(declared.domain, Number):
        style = styles.variant("in_dec", format="n3" if declared.domain.high <= 10 else "n2")
    put(row, _LABEL, declared.label, styles["label"])
    typed = book.typed(kind, key)
    put(row, _VALUE, typed, style)
    book.define(name, SETTINGS, row, _VALUE)
    put(row, _UNIT, "" if declared.unit in ("text", "days") else declared.unit, styles["unit"])
    put(row, _HELP, declared.help, styles["help"])
    right, fault = allowed(job, key), is_wrong(job, key, typed)
    if declared.optional:
        right = filled(book.words["prompt"]["or_empty"], right=right)
    ws.data_validation(row, _VALUE, row, _VALUE, _validation(book, declared, job, key, right))
    wrong = spelled(
        words["wrong"], label=quoted(declared.label), value=f'IFERROR($C{number},"an error")', right=quoted(right)
    )
    said = filled(words["wrong"], label=declared.label, value=shown(typed), right=right) if fault else ""
    put(row, _TOLD, Raw(f'=IF($H{number}=0,"",{wrong})', said), styles["small"])
    held = book.settings_value(kind, key)
    empty = f'IF($C{number}="","{NOT_GIVEN}",$C{number})' if declared.optional else f"$C{number}"
    plain = styles.variant("calc0", format="date" if day else "general")
    put(row, _FORCE, Raw(f"=IF($H{number}=0,{empty},$K{number})", held), plain)
    book.define(f"{name}_In_Force", SETTINGS, row, _FORCE)
    put(row, _FAULT, Raw(_fault(declared, number), int(fault)), styles["calc0"])
    domain = declared.domain
    put(row, _LOW, "" if isinstance(domain, Choice) else domain.low, plain)
    put(row, _HIGH, "" if isinstance(domain, Choice) else domain.high, plain)
    put(row, _OPENED, held, plain)
    page.formula_marks(ws, styles, (row, _VALUE, row, _VALUE), f"=$H{number}=1", "check")


def _fault(declared: Input, number: int) -> str:
    typed, domain = f"$C{number}", declared.domain
    if isinstance(domain, Choice):
        return f"=IFERROR(1-(SUMPRODUCT(({column_name(domain.table, None)}={typed})*1)>0),1)"
    whole = f"*({typed}=INT({typed}))" if isinstance(domain, Whole) else ""
    absent = "IF(ISBLANK(" + typed + "),0,1)" if declared.optional else "1"
    return f"=IF(ISNUMBER({typed}),1-({typed}>=$I{number})*({typed}<=$J{number}){whole},{absent})"


def _validation(book: PlanBook, declared: Input, job: Job, key: str, right: str) -> Mapping[str, Any]:
    rule = {"ignore_blank": declared.optional, **prompt(book, declared.label, declared.help, right)}
    if isinstance(declared.domain, Choice):
        return {**rule, "validate": "list", "source": "=" + column_name(declared.domain.table, None)}
    kind = "integer" if isinstance(declared.domain, Whole) else "decimal"
    domain: Any = declared.domain
    return {**rule, "validate": kind, "criteria": "between", "minimum": domain.low, "maximum": domain.high}
