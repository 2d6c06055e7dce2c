"""`sizing-xlsx excel install | status | uninstall` on a Windows machine that is made of folders."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from desktop_excel import CHECKOUT, asked
from lxml import etree

from sizing_xlsx import functions
from sizing_xlsx.functions.registry import FUNCTIONS
from sizing_xlsx.functions.udf import MODULE, XLWINGS, addin, install
from sizing_xlsx.functions.udf.places import Places

pytest.importorskip("xlwings")

EXCEL = {"excel.exe": "C:/Office/EXCEL.EXE", "VersionToReport": "16.0.17328.20550", "Platform": "x64"}


class Windows:
    """A machine: the user's folder of application data, a Python, a registry by the names of its values."""

    def __init__(self, folder: Path) -> None:
        self.appdata, self.python = folder / "Roaming", folder / "venv" / "python.exe"
        self.appdata.mkdir()
        self.python.parent.mkdir()
        for name in ("python.exe", f"xlwings64-{XLWINGS}.dll"):
            (self.python.parent / name).touch()
        self.registry: dict[str, Any] = dict(EXCEL)
        self.places = Places(self.appdata / "Microsoft" / "Excel" / "XLSTART", self.appdata / "sizing-xlsx")

    def facts(self, **others: Any) -> dict[str, Any]:
        return {"appdata": str(self.appdata), "python": str(self.python), "registry": self.registry, **others}

    def run(self, *commands: str, **others: Any) -> list[dict[str, Any]]:
        return asked(*({"command": words.split(), "machine": self.facts(**others)} for words in commands))

    def files(self) -> set[Path]:
        return {file for file in self.appdata.rglob("*") if file.is_file()}


@pytest.fixture
def windows(tmp_path) -> Windows:
    return Windows(tmp_path)


# ---------------------------------------------------------------------- the add-in
def test_the_addin_is_the_template_of_xlwings_with_its_settings(tmp_path):
    settings = addin.configuration(Path("C:/Python & <co>/pythonw.exe"), Path("C:/site-packages"))
    file = tmp_path / "a.xlam"
    file.write_bytes(addin.addin_bytes(settings))
    assert addin.addin_bytes(settings) == file.read_bytes()
    assert addin.read_configuration(file) == settings
    assert settings["UDF Modules"] == MODULE
    assert settings["ADD_WORKBOOK_TO_PYTHONPATH"] == "False"
    assert addin.is_ours(file)
    assert not addin.holds_functions(file)
    template = addin.xlwings_folder() / addin.TEMPLATE
    with zipfile.ZipFile(template) as before, zipfile.ZipFile(file) as after:
        assert before.namelist() == after.namelist()
        changed = [name for name in before.namelist() if before.read(name) != after.read(name)]
        book = etree.fromstring(after.read("xl/workbook.xml"))
    assert changed == ["xl/workbook.xml", "xl/worksheets/sheet1.xml"]
    assert [sheet.get("name") for sheet in book.iter("{*}sheet")] == ["myaddin.conf"]
    assert not addin.is_ours(template)


def test_nothing_that_the_vba_asks_for_is_left_to_a_file_beside_a_workbook():
    vba = (addin.xlwings_folder() / "xlwings_custom_addin.bas").read_text(encoding="utf-8")
    asked_for = {key.upper() for key in re.findall(r'GetConfig\("([^"]+)"', vba) if not key.endswith("_MAC")}
    stated = {key.upper() for key in addin.configuration(Path("p"), Path("q"))}
    assert asked_for - stated == {"INTERPRETER", "TEMP DIR"}  # where Interpreter_Win is empty; of macros


def test_settings_are_read_as_excel_saves_them(tmp_path):
    """Excel moves texts into a table of their own."""
    settings = {"Interpreter_Win": "C:/py.exe", "UDF Modules": MODULE}
    written, saved = tmp_path / "written.xlam", tmp_path / "saved.xlam"
    written.write_bytes(addin.addin_bytes(settings))
    with zipfile.ZipFile(written) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = etree.fromstring(parts["xl/worksheets/sheet1.xml"])
    main = sheet.nsmap[None]
    texts = [text.text for text in sheet.iter("{*}t")]
    for at, cell in enumerate(sheet.iter("{*}c")):
        cell.set("t", "s")
        cell.remove(cell[0])
        etree.SubElement(cell, f"{{{main}}}v").text = str(at)
    shared = "".join(f"<si><t>{text}</t></si>" for text in texts)
    parts["xl/worksheets/sheet1.xml"] = etree.tostring(sheet)
    parts["xl/sharedStrings.xml"] = f'<sst xmlns="{main}">{shared}</sst>'.encode()
    with zipfile.ZipFile(saved, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert addin.read_configuration(saved) == settings
    assert addin.is_ours(saved)


def test_another_xlwings_is_refused(monkeypatch):
    monkeypatch.setattr(addin, "version", lambda package: "0.36.0")
    with pytest.raises(ValueError, match=r"xlwings is 0\.36\.0; the add-in is that of 0\.37\.8: pip install"):
        addin.addin_bytes({})


# ---------------------------------------------------------------------- install
def test_install_writes_three_files_and_says_so_and_what_is_left_to_do(windows):
    (done,) = windows.run("install")
    places = windows.places
    assert done["status"] == 0
    assert windows.files() == {places.addin, places.module, places.settings, places.record}
    assert done["lines"][:3] == [f"Wrote {file}" for file in (places.addin, places.module, places.settings)]
    assert done["lines"][3].startswith("One step is left, in Excel: start it, press Alt+F11, choose sizing-xlsx.xlam")
    assert addin.read_configuration(places.addin)["Interpreter_Win"] == str(windows.python)
    module = places.module.read_bytes()
    assert module.startswith(b'Attribute VB_Name = "xlwings_udfs"\r\n')
    assert module.count(b"\n") == module.count(b"\r\n")
    assert all(f"Function {name}(".encode() in module for name in functions.registered())


def test_a_second_install_changes_nothing_but_what_has_changed(windows):
    windows.run("install")
    places = windows.places
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in windows.files() - {places.record}}
    places.settings.write_text("models = []\n")
    (again,) = windows.run("install")
    assert again["lines"][:3] == [
        f"Unchanged: {places.addin}", f"Unchanged: {places.module}", f"Left as it is: {places.settings}"
    ]  # fmt: skip
    assert places.settings.read_text() == "models = []\n"
    for file in (places.addin, places.module):
        assert (file.read_bytes(), file.stat().st_mtime_ns) == before[file]


def test_an_addin_with_imported_functions_is_kept_until_something_changes(windows):
    windows.run("install")
    places = windows.places
    with_functions(places.addin)
    (again,) = windows.run("install")
    assert again["lines"] == [
        f"Unchanged: {places.addin}", f"Unchanged: {places.module}", f"Left as it is: {places.settings}"
    ]  # fmt: skip
    assert addin.holds_functions(places.addin)
    windows.python = windows.python.rename(windows.python.with_name("python3.exe"))
    (moved,) = windows.run("install")
    assert moved["lines"][0] == f"Wrote {places.addin}"
    assert moved["lines"][-1].startswith("One step is left")


def with_functions(file: Path) -> None:
    """The add-in as it is once Excel has imported the module and saved it."""
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["xl/vbaProject.bin"] += b"Module=xlwings_udfs\r\n"
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


@pytest.mark.parametrize("which", ["addin", "module"])
def test_a_file_of_someone_else_is_not_overwritten_and_nothing_is_written(windows, which):
    foreign: Path = getattr(windows.places, which)
    foreign.parent.mkdir(parents=True)
    foreign.write_bytes(b"mine")
    (done,) = windows.run("install")
    assert done["status"].startswith(f"{foreign} is there and is none of sizing-xlsx; move it away")
    assert windows.files() == {foreign}
    assert foreign.read_bytes() == b"mine"


def test_another_folder_of_addins(windows, tmp_path):
    folder = tmp_path / "AddIns"
    windows.run(f"install --folder {folder}")
    assert (folder / "sizing-xlsx.xlam").is_file()
    windows.run(f"uninstall --folder {folder}")
    assert not folder.exists()


def test_where_excel_trusts_it_install_imports_the_functions(windows, monkeypatch):
    monkeypatch.setattr(install, "module_text", lambda addin: f"' {MODULE}\n")
    machine = type("Machine", (), {"interpreter": windows.python})()
    taken: list[tuple[Path, ...]] = []
    lines = install.install(machine, windows.places, lambda *files: taken.append(files))
    assert taken == [(windows.places.addin, windows.places.module)]
    assert lines[-1].startswith(f"Imported {len(FUNCTIONS)} functions into sizing-xlsx.xlam")

    def refuses(*files: Path) -> None:
        raise RuntimeError("busy")

    lines = install.install(machine, windows.places, refuses)
    assert lines[-1].startswith("Excel did not take the functions (RuntimeError: busy). One step is left")


def test_a_file_that_excel_holds_is_one_sentence_and_no_draft_is_left(windows, monkeypatch):
    monkeypatch.setattr(install, "module_text", lambda addin: f"' {MODULE}\n")
    replace = install.os.replace

    def held(draft: str, file: Path) -> None:
        if Path(file).suffix == ".xlam":
            raise PermissionError(13, "in use")
        replace(draft, file)

    monkeypatch.setattr(install.os, "replace", held)
    with pytest.raises(ValueError, match=r"sizing-xlsx\.xlam cannot be replaced; close Excel and run this again"):
        install.install(type("Machine", (), {"interpreter": windows.python})(), windows.places)
    assert windows.files() == {windows.places.record}
    monkeypatch.undo()
    assert install.uninstall(windows.places)
    assert not windows.places.data.exists()


def test_an_update_that_excel_stops_is_made_up_for(windows, monkeypatch):
    machine = type("Machine", (), {"interpreter": windows.python})()
    monkeypatch.setattr(install, "module_text", lambda addin: f"' {MODULE}\n")
    install.install(machine, windows.places)
    with_functions(windows.places.addin)
    monkeypatch.setattr(install, "module_text", lambda addin: f"' {MODULE}, with one more\n")
    write = install._write

    def held(file: Path, content: bytes) -> None:
        if file == windows.places.addin:
            raise ValueError("close Excel")
        write(file, content)

    monkeypatch.setattr(install, "_write", held)
    with pytest.raises(ValueError, match="close Excel"):
        install.install(machine, windows.places)
    monkeypatch.setattr(install, "_write", write)
    lines = install.install(machine, windows.places)
    assert f"Wrote {windows.places.addin}" in lines
    assert not addin.holds_functions(windows.places.addin)  # those of the older module
    assert lines[-1].startswith("One step is left")
    assert install.install(machine, windows.places)[:2] == [
        f"Unchanged: {windows.places.addin}", f"Unchanged: {windows.places.module}"
    ]  # fmt: skip


# ---------------------------------------------------------------------- uninstall
def test_uninstall_removes_what_install_wrote_and_nothing_else(windows):
    other = windows.places.startup / "other.xlam"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"theirs")
    installed, removed, again = windows.run("install", "uninstall", "uninstall")
    assert installed["status"] == removed["status"] == 0
    assert windows.files() == {other}
    assert not windows.places.data.exists()
    assert windows.places.startup.is_dir()
    assert again["lines"] == [f"Nothing is installed: there is no {windows.places.record}."]


def test_uninstall_takes_folders_that_install_made_and_keeps_what_has_been_changed(windows):
    windows.run("install")
    places = windows.places
    with_functions(places.addin)  # Excel has saved it: still ours
    places.settings.write_text("folders = ['models']\n")
    (done,) = windows.run("uninstall")
    assert windows.files() == {places.settings}
    assert f"Kept, for it has been changed: {places.settings}" in done["lines"]
    assert f"Removed {places.startup}" in done["lines"]
    assert not (windows.appdata / "Microsoft").exists()


def test_uninstall_keeps_what_stands_in_place_of_ours(windows):
    windows.run("install")
    windows.places.addin.write_bytes(b"theirs")
    windows.run("uninstall")
    assert windows.files() == {windows.places.addin}


def test_a_damaged_record_is_one_sentence(windows):
    windows.places.data.mkdir()
    windows.places.record.write_text("{}")
    (done,) = windows.run("uninstall")
    assert "is no record of an installation; remove it and install again" in done["status"]


# ---------------------------------------------------------------------- status
def lines_of(done: dict[str, Any]) -> dict[str, str]:
    return {line[7:].partition(":")[0]: line for line in done["lines"]}


def test_status_names_what_is_missing_and_how_to_mend_it(windows):
    before, _, after = windows.run("status", "install", "status")
    assert before["status"] == after["status"] == 1  # no pywin32 here, and nothing imported
    told = lines_of(before)
    assert told["Excel"] == "ok     Excel: 16.0.17328.20550, 64 bits, C:/Office/EXCEL.EXE"
    assert told["Macros"].startswith("ok ")
    assert told["VBA project"].startswith("note ")
    assert told["xlwings"] == f"ok     xlwings: {XLWINGS}"
    assert told["Library"] == f"ok     Library: xlwings64-{XLWINGS}.dll"
    assert told["Add-in"].startswith("wrong  Add-in: ")
    assert told["Add-in"].endswith("is missing; run: sizing-xlsx excel install")
    assert told["Settings"].startswith("ok ")
    told = lines_of(after)
    assert told["Add-in"].startswith("ok ")
    assert told["Functions"].startswith("wrong  Functions: not yet imported into sizing-xlsx.xlam; One step is left")
    with_functions(windows.places.addin)
    (imported,) = windows.run("status")
    assert lines_of(imported)["Functions"] == f"ok     Functions: {len(FUNCTIONS)}, imported into sizing-xlsx.xlam"


def test_status_of_a_machine_where_much_is_in_the_way(windows):
    windows.run("install")
    windows.registry = {"Platform": "x86", "AllLocationsDisabled": 1, "VBAWarnings": 4, "AccessVBOM": 1}
    windows.places.settings.write_text("gpus = ['none.csv']\n")
    windows.places.module.write_bytes(b"theirs")
    windows.python.unlink()
    (done,) = windows.run("status --json")
    found = {finding["what"]: finding for finding in json.loads("\n".join(done["lines"]))}
    wrong = {what for what, finding in found.items() if finding["state"] == "wrong"}
    assert {"Excel", "Macros", "Python", "Library", "Module", "Settings"} <= wrong
    assert f"xlwings32-{XLWINGS}.dll" in found["Library"]["words"]
    assert "which the add-in names, is missing" in found["Python"]["words"]
    assert "none.csv" in found["Settings"]["words"]
    assert found["VBA project"]["state"] == "ok"
    assert all(finding["mend"] for finding in found.values() if finding["state"] != "ok")


def test_status_says_why_an_own_model_is_not_offered(windows):
    model = windows.appdata / "sizing-xlsx" / "ours" / "config.json"
    model.parent.mkdir(parents=True)
    shape = {"hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 1000}
    model.write_text(
        json.dumps({"model_type": "internlm2", "intermediate_size": 4096, "num_key_value_heads": 8, **shape})
    )
    windows.places.settings.write_text("models = ['ours']\n")
    (done,) = windows.run("status")
    assert lines_of(done)["Own model"].startswith("note   Own model: ours (ours/config.json) is not offered: ")


# ---------------------------------------------------------------------- other systems
@pytest.mark.parametrize("action", ["install", "status", "uninstall"])
@pytest.mark.parametrize(("system", "says"), [("Linux", "there is no desktop Excel"), ("Darwin", "Excel on a Mac")])
def test_elsewhere_it_says_in_a_sentence_what_it_cannot_do(windows, action, system, says):
    (done,) = windows.run(action, system=system)
    assert done["status"].startswith(f"excel {action} needs Windows: {says}")
    assert not windows.files()


@pytest.mark.skipif(sys.platform == "win32", reason="there it does it")
def test_the_command_line_of_this_machine():
    done = subprocess.run(
        [sys.executable, "-m", "sizing_xlsx", "excel", "status"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("sizing-xlsx: excel status needs Windows: ")
    assert done.stderr.count("\n") == 1
