"""What Excel reads of the add-in: functions.json and the manifest, both from the registry."""

from __future__ import annotations

import uuid
from typing import Any

from lxml import etree

from .. import __version__
from ..functions import registered
from ..functions.desk import Desk
from ..functions.page import formula
from ..functions.signature import NUMBER, TABLE, TEXT, TRUTH, Function, described

TYPES = {TRUTH: "boolean", NUMBER: "number", TEXT: "string", TABLE: "any"}
SCHEMA = "https://developer.microsoft.com/json-schemas/office-js/custom-functions.schema.json"
LONGEST_HELP = 255  # the wizard shows no more of an argument
APP, XSI = "http://schemas.microsoft.com/office/appforoffice/1.1", "http://www.w3.org/2001/XMLSchema-instance"
BASIC = "http://schemas.microsoft.com/office/officeappbasictypes/1.0"
OVERRIDES = "http://schemas.microsoft.com/office/taskpaneappversionoverrides"
ICONS = (16, 32, 64, 80)
TITLE = "GPU memory sizing"
WORDS = "Whether a model fits a GPU, as Excel functions: verdict, memory, largest batch, smallest and cheapest card."
OFFICE_HOSTS = (
    "https://*.officeapps.live.com", "https://*.office.com", "https://*.office365.com", "https://*.microsoft365.com",
    "https://*.cloud.microsoft", "https://*.sharepoint.com", "https://*.microsoft.com", "https://*.live.com",
)  # fmt: skip


def identity_of(function: Function) -> str:
    """The id of a function in the metadata: letters and full stops alone."""
    return function.name.replace("_", ".")


def cut(text: str, most: int = LONGEST_HELP) -> str:
    """A text, cut at a word where it is longer than Excel shows."""
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + "…"


def functions_json(desk: Desk, origin: str) -> dict[str, Any]:
    """The metadata of the custom functions. Arguments are of any type: texts that are numbers and blanks are taken."""
    return {"$schema": SCHEMA, "functions": [_function(each, desk, origin) for each in registered().values()]}


def _function(function: Function, desk: Desk, origin: str) -> dict[str, Any]:
    parameters = []
    for argument in described(function, desk):
        words = f"{argument.help} {argument.allowed[:1].upper()}{argument.allowed[1:]}."
        parameter = {"name": argument.name, "description": cut(words), "type": "any", "dimensionality": "scalar"}
        parameters.append(parameter | ({"optional": True} if argument.optional else {}))
    return {
        "id": identity_of(function),
        "name": function.name,
        "description": cut(function.help),
        "helpUrl": f"{origin}/taskpane.html#{function.name}",
        "result": {
            "type": TYPES[function.result.kind],
            "dimensionality": "matrix" if function.result.kind == TABLE else "scalar",
        },
        "parameters": parameters,
    }


def browser_json(desk: Desk, namespace: str) -> list[dict[str, Any]]:
    """What the task pane shows of each function: help, arguments, examples as formulas."""
    return [
        {
            "name": function.name,
            "help": function.help,
            "result": function.result.kind + (f" ({function.result.unit})" if function.result.unit else ""),
            "arguments": [argument._asdict() for argument in described(function, desk)],
            "examples": [f"={namespace}.{formula(function, each)[1:]}" for each in function.examples],
        }
        for function in registered().values()
    ]


# ---------------------------------------------------------------------- the manifest
def manifest(origin: str, namespace: str, provider: str) -> bytes:
    """The add-in's XML manifest: custom functions and a task pane in one shared runtime, all from one origin."""
    app = etree.Element(f"{{{APP}}}OfficeApp", nsmap=_spaces(APP))
    app.set(f"{{{XSI}}}type", "TaskPaneApp")
    _add(app, "Id", str(uuid.uuid5(uuid.NAMESPACE_URL, f"{origin}/{namespace}")))
    _add(app, "Version", _four(__version__))
    _add(app, "ProviderName", provider)
    _add(app, "DefaultLocale", "en-US")
    _add(app, "DisplayName", DefaultValue=TITLE)
    _add(app, "Description", DefaultValue=WORDS)
    _add(app, "IconUrl", DefaultValue=f"{origin}/icon-32.png")
    _add(app, "HighResolutionIconUrl", DefaultValue=f"{origin}/icon-64.png")
    _add(app, "SupportUrl", DefaultValue=f"{origin}/taskpane.html")
    _add(_add(app, "AppDomains"), "AppDomain", origin)
    _add(_add(app, "Hosts"), "Host", Name="Workbook")
    sets = _add(_add(app, "Requirements"), "Sets", DefaultMinVersion="1.1")
    for name in ("SharedRuntime", "CustomFunctionsRuntime"):
        _add(sets, "Set", Name=name, MinVersion="1.1")
    _add(_add(app, "DefaultSettings"), "SourceLocation", DefaultValue=f"{origin}/taskpane.html")
    _add(app, "Permissions", "ReadWriteDocument")
    app.append(_overrides(origin, namespace))
    return bytes(etree.tostring(app, xml_declaration=True, encoding="UTF-8", pretty_print=True))


def _overrides(origin: str, namespace: str) -> Any:
    over = etree.Element(f"{{{OVERRIDES}}}VersionOverrides", nsmap=_spaces(OVERRIDES))
    over.set(f"{{{XSI}}}type", "VersionOverridesV1_0")
    host = _typed(_add(over, "Hosts"), "Host", "Workbook")
    _add(_add(host, "Runtimes"), "Runtime", resid="Taskpane.Url", lifetime="long")
    custom = _typed(_add(host, "AllFormFactors"), "ExtensionPoint", "CustomFunctions")
    for name, place in (("Script", "Functions.Script"), ("Page", "Taskpane.Url"), ("Metadata", "Functions.Metadata")):
        _add(_add(custom, name), "SourceLocation", resid=place)
    _add(custom, "Namespace", resid="Functions.Namespace")
    desktop = _add(host, "DesktopFormFactor")
    start = _add(desktop, "GetStarted")
    for name, text in (("Title", "Start.Title"), ("Description", "Start.Words"), ("LearnMoreUrl", "Taskpane.Url")):
        _add(start, name, resid=text)
    _add(desktop, "FunctionFile", resid="Taskpane.Url")
    tab = _add(_typed(desktop, "ExtensionPoint", "PrimaryCommandSurface"), "OfficeTab", id="TabHome")
    group = _add(tab, "Group", id="Sizing.Group")
    _add(group, "Label", resid="Group.Label")
    _icons(group)
    button = _typed(group, "Control", "Button", id="Sizing.Button")
    _add(button, "Label", resid="Button.Label")
    tip = _add(button, "Supertip")
    _add(tip, "Title", resid="Button.Label")
    _add(tip, "Description", resid="Button.Words")
    _icons(button)
    action = _typed(button, "Action", "ShowTaskpane")
    _add(action, "TaskpaneId", "SizingTaskpane")
    _add(action, "SourceLocation", resid="Taskpane.Url")
    _resources(over, origin, namespace)
    return over


def _resources(over: Any, origin: str, namespace: str) -> None:
    resources = _add(over, "Resources")
    images = {f"Icon.{size}": f"{origin}/icon-{size}.png" for size in ICONS}
    urls = {
        "Functions.Script": f"{origin}/functions.js",
        "Functions.Metadata": f"{origin}/functions.json",
        "Taskpane.Url": f"{origin}/taskpane.html",
    }
    short = {
        "Functions.Namespace": namespace,
        "Group.Label": "GPU sizing",
        "Button.Label": "GPU functions",
        "Start.Title": "GPU memory sizing is ready",
    }
    long = {
        "Button.Words": "Sign in, see what each function takes, and try examples.",
        "Start.Words": f"Open the pane with Home, GPU functions, sign in, and type ={namespace}.GPU_FITS( in a cell.",
    }
    kinds = (("Images", "Image", images), ("Urls", "Url", urls), ("ShortStrings", "String", short))
    for outer, inner, found in (*kinds, ("LongStrings", "String", long)):
        holder = etree.SubElement(resources, f"{{{BASIC}}}{outer}")
        for key, value in found.items():
            etree.SubElement(holder, f"{{{BASIC}}}{inner}", id=key, DefaultValue=value)


def _spaces(own: str) -> Any:
    return {None: own, "xsi": XSI, "bt": BASIC}  # None: what has no prefix


def _add(parent: Any, name: str, text: str = "", /, **attributes: str) -> Any:
    found = etree.SubElement(parent, f"{{{etree.QName(parent).namespace}}}{name}", attributes)
    if text:
        found.text = text
    return found


def _typed(parent: Any, name: str, kind: str, **attributes: str) -> Any:
    found = _add(parent, name)
    found.set(f"{{{XSI}}}type", kind)
    for key, value in attributes.items():
        found.set(key, value)
    return found


def _icons(parent: Any) -> None:
    icon = _add(parent, "Icon")
    for size in ICONS:
        if size != 64:  # of buttons Excel asks 16, 32 and 80
            etree.SubElement(icon, f"{{{BASIC}}}Image", size=str(size), resid=f"Icon.{size}")


def _four(version: str) -> str:
    parts = [part for part in version.split(".") if part.isdecimal()]
    return ".".join([*parts, "0", "0", "0", "0"][:4])
