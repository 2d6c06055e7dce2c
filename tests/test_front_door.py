"""build.py without a network: what it understands, what it decides, what it says."""

from __future__ import annotations

import ast
import errno
import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "build.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("front_door", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


front_door = load()


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def distribution(folder: Path, name: str, version: str) -> None:
    """What an installed distribution leaves for importlib.metadata."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one requirement, whose path has a space and an accent."""
    root = tmp_path / "une copie é"
    root.mkdir()
    (root / "pyproject.toml").write_text(
        '[project]\ndependencies = ["alpha>=1.2"]\n'
        '[project.optional-dependencies]\ntest = ["beta==2.0.0"]\nvector = []\n',
        encoding="utf-8",
    )
    return root


def fake_environment(root: Path, requirements: Iterable[tuple[str, str]] = (("alpha", "1.3"),)) -> Any:
    """An environment that looks finished: Python, the distributions, the state file."""
    environment = front_door.Environment(root)
    environment.python.parent.mkdir(parents=True)
    environment.python.touch()
    site = environment.folder / ("Lib/site-packages" if os.name == "nt" else "lib/python3.11/site-packages")
    site.mkdir(parents=True)
    for name, version in requirements:
        distribution(site, name, version)
    environment.write_state({"whole": True, "made": True, "pyproject": front_door.digest(root), "extras": []})
    return environment


# The command line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["build"]),
        (["--output", "out"], ["build", "--output", "out"]),
        (["build", "--output", "out"], ["build", "--output", "out"]),
        (["lora", "--batch-size", "4"], ["lora", "--batch-size", "4"]),
        (["test", "-k", "x"], ["test", "-k", "x"]),
        (["--help"], ["help"]),
        (["-h"], ["help"]),
        (["help"], ["help"]),
        (["--version"], ["--version"]),
    ],
)
def test_command_line(arguments: list[str], words: list[str]) -> None:
    assert front_door.command_line(arguments) == words


def test_help_works_without_any_package_and_creates_nothing(tmp_path: Path) -> None:
    (tmp_path / "build.py").write_bytes(SCRIPT.read_bytes())
    before = files_below(tmp_path)
    done = subprocess.run(
        [sys.executable, "-S", "-I", "build.py", "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "python build.py test" in done.stdout
    assert files_below(tmp_path) == before
    assert not (tmp_path / ".venv").exists()


def test_help_of_this_checkout_lists_the_commands(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-I", str(SCRIPT), "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "cannot be listed" not in done.stdout
    assert "build" in done.stdout.partition("130 stopped")[2]
    assert not files_below(tmp_path)


def test_failure_to_run_a_command_passes_its_exit_status_on(monkeypatch: pytest.MonkeyPatch) -> None:
    import sizing_xlsx.cli

    def stop(words: list[str]) -> int:
        raise SystemExit(3)

    monkeypatch.setattr(sizing_xlsx.cli, "main", stop)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert front_door.run_command(["lint"]) == 3


def test_interruption_is_130_without_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(arguments: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(front_door, "dispatch", interrupted)
    assert front_door.main([]) == 130
    assert capsys.readouterr().err == "build.py: stopped.\n"


# An old Python


def test_parses_on_an_old_python() -> None:
    ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_old_python_gets_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(front_door.sys, "version_info", (3, 8, 18))
    assert front_door.main([]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "needs Python 3.11 or later" in said and "Python 3.8.18" in said


def test_only_the_standard_library_is_imported() -> None:
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    roots = {name.partition(".")[0] for name in names} - {"sizing_xlsx"}
    assert roots <= sys.stdlib_module_names


# Requirements


@pytest.mark.parametrize(
    ("version", "condition", "met"),
    [
        ("3.1.5", "", True),
        ("3.1.5", ">=3.1", True),
        ("3.10", ">=3.9", True),
        ("3.1", ">=3.1.0", True),
        ("3.1", ">=3.1.5", False),
        ("0.13.0", "==0.13", True),
        ("0.13.1", "==0.13.0", False),
        ("6.0rc1", ">=6", True),
        ("1.0", "~=9", True),  # left to pip
    ],
)
def test_meets(version: str, condition: str, met: bool) -> None:
    assert front_door.meets(version, condition) is met


def test_missing_names_what_is_absent_or_too_old(tmp_path: Path) -> None:
    distribution(tmp_path, "types-openpyxl", "3.1.5.2")
    distribution(tmp_path, "lxml", "4.9")
    wanted = ["types-openpyxl>=3.1.5", "lxml>=5.2", "XlsxWriter"]
    assert front_door.missing(wanted, [str(tmp_path)]) == ["lxml>=5.2", "XlsxWriter"]


def test_leftover_of_an_interrupted_removal_counts_as_missing(tmp_path: Path) -> None:
    (tmp_path / "lxml-5.2.dist-info").mkdir()
    assert front_door.missing(["lxml"], [str(tmp_path)]) == ["lxml"]


def test_own_requirements_are_in_the_form_that_is_understood() -> None:
    import re

    for extra in ("vector", "test"):
        for line in front_door.requirements(ROOT, [extra]):
            assert re.fullmatch(r"[A-Za-z][\w.-]*((>=|==)\d[\d.]*)?", line), line


def test_every_extra_that_a_command_needs_exists() -> None:
    front_door.requirements(ROOT, front_door.EXTRAS_OF.values())


# The environment


def test_finished_environment_is_used_as_it_is(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = fake_environment(checkout)
    monkeypatch.setattr(front_door.Environment, "prepare", lambda *_: pytest.fail("was prepared again"))
    environment.ensure([])
    assert not environment.lock.exists()


def test_changed_pyproject_is_noticed(checkout: Path) -> None:
    environment = fake_environment(checkout)
    assert environment.is_ready([])
    with (checkout / "pyproject.toml").open("a", encoding="utf-8") as handle:
        handle.write("# a change\n")
    assert not environment.is_ready([])


def test_moved_checkout_is_noticed(checkout: Path, tmp_path: Path) -> None:
    fake_environment(checkout)
    moved = checkout.rename(tmp_path / "moved")
    assert not front_door.Environment(moved).is_ready([])


@pytest.mark.parametrize("broken", ["python", "state", "cut state", "package", "extra", "interrupted"])
def test_unfinished_environment_is_noticed(checkout: Path, broken: str) -> None:
    has = [("alpha", "1.1" if broken == "package" else "1.3")]
    environment = fake_environment(checkout, has)
    if broken == "python":
        environment.python.unlink()
    elif broken == "state":
        environment.state_file.unlink()
    elif broken == "cut state":
        environment.state_file.write_text('{"whole": tr', encoding="utf-8")
    elif broken == "interrupted":
        environment.write_state({**environment.state(), "whole": False})
    assert not environment.is_ready(["test"] if broken == "extra" else [])


def scripted(environment: Any, monkeypatch: pytest.MonkeyPatch, pip: tuple[int, str] = (0, "")) -> list[list[str]]:
    """Replaces the Pythons that an environment starts by a script; returns the list of calls."""
    calls: list[list[str]] = []
    site = environment.folder / "lib/python3.11/site-packages"

    def run(words: list[str], lock: int, python: str = "") -> subprocess.CompletedProcess[str]:
        calls.append(words)
        code, output = pip if words[:3] == ["-m", "pip", "install"] else (0, "")
        if words[:2] == ["-m", "venv"]:
            environment.python.parent.mkdir(parents=True)
            environment.python.touch()
        if words[:3] == ["-m", "pip", "install"] and not code:
            state = environment.state()
            assert not (state.get("made") and state["whole"]), "has to read as interrupted meanwhile"
            if not site.exists():
                distribution(site, "alpha", "1.2")
        return subprocess.CompletedProcess(words, code, stdout=output)

    monkeypatch.setattr(environment, "run", run)
    monkeypatch.setattr(environment, "site_packages", lambda: [str(site)])
    return calls


def test_first_run_makes_and_fills(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = front_door.Environment(checkout)
    calls = scripted(environment, monkeypatch)
    environment.ensure([])
    assert [words[1] for words in calls] == ["venv", "pip"]
    assert calls[-1][-2:] == ["--editable", "."]
    assert environment.is_ready([])
    environment.ensure([])
    assert len(calls) == 2


def test_interrupted_environment_is_made_again(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = fake_environment(checkout)
    leftover = environment.folder / "lib" / "leftover"
    leftover.touch()
    environment.write_state({**environment.state(), "whole": False})
    scripted(environment, monkeypatch)
    environment.ensure([])
    assert not leftover.exists()
    assert environment.is_ready([])


def test_environment_made_by_someone_else_is_filled_not_emptied(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = fake_environment(checkout)
    environment.state_file.unlink()
    theirs = environment.folder / "theirs"
    theirs.touch()
    scripted(environment, monkeypatch)
    environment.ensure([])
    assert theirs.exists()
    assert environment.state()["made"] is False


def test_pip_failure_is_one_sentence_and_leaves_the_state(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = fake_environment(checkout)
    (checkout / "pyproject.toml").write_bytes((checkout / "pyproject.toml").read_bytes() + b"\n")
    before = environment.state_file.read_bytes()
    scripted(environment, monkeypatch, (1, "Collecting alpha\nERROR: none such\nERROR: No alpha\n  note: more\n"))
    with pytest.raises(front_door.FrontDoorError, match=r"pip says: ERROR: No alpha$"):
        environment.ensure([])
    assert environment.state_file.read_bytes() == before


def test_python_without_ensurepip_says_what_to_install(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        front_door.importlib.util, "find_spec", lambda name: None if name == "ensurepip" else find_spec(name)
    )
    with pytest.raises(
        front_door.FrontDoorError, match=r"without ensurepip: install it .*apt install python3\.\d+-venv"
    ):
        front_door.Environment(checkout).ensure([])


def test_folder_that_cannot_be_written_says_so(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, exist_ok: bool = False) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(front_door.FrontDoorError, match=r"Read-only file system: .*alpha>=1\.2"):
        front_door.Environment(checkout).ensure([])


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("", "nothing."),
        ("one\n\ntwo\n", "two"),
        ("Error: first\nafterwards\n", "Error: first"),
        ("  ERROR: inner\nerror: subprocess-exited-with-error\nnote: x\n", "ERROR: inner"),
    ],
)
def test_last_error(output: str, line: str) -> None:
    assert front_door.last_error(output) == line


def test_emptying_is_tried_again_while_something_still_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = tmp_path / "lock"
    keep.touch()
    (tmp_path / "lib").mkdir()
    rmtree = front_door.shutil.rmtree
    failures = [OSError(errno.ENOTEMPTY, "Directory not empty")]

    def disturbed(folder: Path) -> None:
        if failures:
            raise failures.pop()
        rmtree(folder)

    monkeypatch.setattr(front_door.shutil, "rmtree", disturbed)
    front_door.empty(tmp_path, keep)
    assert list(tmp_path.iterdir()) == [keep]


@pytest.mark.skipif(os.name != "posix", reason="process groups")
def test_interruption_ends_what_was_started(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    def interrupted(process: subprocess.Popen[str]) -> tuple[str, str]:
        started.append(process.pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    read, write = os.pipe()
    try:
        with pytest.raises(KeyboardInterrupt):
            front_door.Environment(checkout).run(["-c", "import time; time.sleep(60)"], write, sys.executable)
    finally:
        os.close(read)
        os.close(write)
    with pytest.raises(ProcessLookupError):
        os.killpg(started[0], 0)


# The lock


def test_lock_is_exclusive_and_given_back(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    refused = pytest.raises(front_door.FrontDoorError, match="another build")
    with front_door.exclusive(lock), refused, front_door.exclusive(lock, timeout=0.0):
        pytest.fail("held twice")
    with front_door.exclusive(lock, timeout=0.0):
        pass


def test_lock_waits_for_its_holder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = tmp_path / "lock"
    order: list[str] = []
    held, release = threading.Event(), threading.Event()

    def holder() -> None:
        with front_door.exclusive(lock):
            held.set()
            release.wait(10)
            order.append("first")

    thread = threading.Thread(target=holder)
    thread.start()
    assert held.wait(10)
    threading.Timer(0.2, release.set).start()
    with front_door.exclusive(lock, timeout=10):
        order.append("second")
    thread.join()
    assert order == ["first", "second"]
    assert "waiting for another build" in capsys.readouterr().err


def test_lock_of_a_killed_holder_is_free(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    code = (
        f"import importlib.util, os; s = importlib.util.spec_from_file_location('f', {str(SCRIPT)!r});"
        "m = importlib.util.module_from_spec(s); s.loader.exec_module(m);"
        f"h = open({str(lock)!r}, 'ab'); assert m.take_lock(h.fileno()); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    with front_door.exclusive(lock, timeout=0.0):
        pass


@pytest.mark.skipif(os.name != "posix", reason="fcntl")
def test_file_system_without_locks_counts_as_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def unsupported(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with front_door.exclusive(tmp_path / "lock", timeout=0.0):
        pass


# The tests' own command


def test_every_check_runs_and_the_failed_ones_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[str] = []

    def call(words: list[str], **_: object) -> int:
        started.append(words[2])
        return int(words[2] in ("ruff", "mypy"))

    monkeypatch.setattr(front_door.subprocess, "call", call)
    assert front_door.run_tests([]) == 1
    assert started == ["ruff", "mypy", "pytest"]
    assert capsys.readouterr().err.endswith("build.py test: ruff and mypy failed.\n")


def test_arguments_go_to_pytest_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def call(words: list[str], **_: object) -> int:
        started.append(words[1:])
        return 5

    monkeypatch.setattr(front_door.subprocess, "call", call)
    assert front_door.run_tests(["-k", "lora"]) == 5
    assert started == [["-m", "pytest", "-k", "lora"]]
