"""main.py for xlwings Lite, written from the registry."""

from __future__ import annotations

from textwrap import fill

from ... import __version__
from ...formula.domains import told
from .. import registered
from ..signature import Function

REQUIREMENT = f"sizing-xlsx=={__version__}"
WHEEL = f"sizing_xlsx-{__version__}-py3-none-any.whl"
_HEAD = f'''"""Excel functions of sizing-xlsx {__version__} for xlwings Lite, written by `sizing-xlsx excel lite`.

requirements.txt needs two lines, xlwings with the version that is there already:

xlwings
{{requirement}}
"""

from xlwings import func

from sizing_xlsx.functions.udf.lite import answered, with_help
'''


def main_py(wheel: str = "") -> str:
    """The module to paste: a function of each of the registry; its help comes from the package when it is loaded.

    wheel: where the package is fetched from, if not from PyPI. ValueError where that cannot be.
    """
    if wheel and not (wheel.startswith("https://") and wheel.endswith(f"/{WHEEL}")):
        raise ValueError(f"wheel is {told(wheel)}; it must be an https address that ends with /{WHEEL}")
    parts = [_HEAD.format(requirement=wheel or REQUIREMENT), *map(_function, registered().values())]
    return "\n\n".join(parts)


def _function(function: Function) -> str:
    parameters = [name if at < function.required else f"{name}=None" for at, name in enumerate(function.arguments)]
    listed = fill(", ".join(parameters), 110, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
    signature = f"({', '.join(parameters)})"
    if len(signature) > 90:
        signature = f"(\n{listed},\n)"
    return f'@func\n@with_help\ndef {function.name}{signature}:\n    return answered("{function.name}", locals())\n'
