"""The front door: regenerate the workbooks, run the tests, reach every command.

Standard library only. Where the packages of pyproject.toml are missing in the running Python, they go into
`.venv` beside this file, and the command goes on there. Exit status: that of the command; 1 when a check
fails; 2 with one sentence on standard error when the command cannot be started; 130 after Ctrl-C.
"""
# The file parses and starts on Python 3.8, so that an old Python is answered with a sentence.

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

OLDEST_PYTHON = (3, 11)
ROOT = Path(__file__).resolve().parent
LOCK_TIMEOUT = 900.0  # seconds: a first installation over a slow line
CONTINUED = "SIZING_XLSX_CONTINUED"  # set for the Python in .venv: never start a second time
# Command -> the extra that it needs.
EXTRAS_OF = {"test": "test", "benchmark": "bulk", "report": "report", "sweep": "bulk"}

HELP = """\
usage: python build.py [--output DIR] [build options]   regenerate both workbooks (default: current folder)
       python build.py test                             ruff, mypy and pytest; every one has to pass
       python build.py test [pytest arguments]          pytest alone; paths are relative to this checkout
       python build.py COMMAND [arguments]              any command of sizing_xlsx, as listed below
       python build.py COMMAND --help                   the arguments of one command
       python build.py --help                           this text

The first run installs the packages that this Python lacks into .venv beside build.py, and nothing else.
Exit status: 0 done, 1 a check failed, 2 cannot be done (one sentence says why), 130 stopped with Ctrl-C.
"""


class FrontDoorError(Exception):
    """Something a person has to put right; the text is one sentence that says what."""


def main(arguments: Sequence[str]) -> int:
    """Runs one command line (without the program's name) and returns its exit status."""
    if sys.version_info < OLDEST_PYTHON:
        say(too_old(sys.version_info, sys.executable))
        return 2
    try:
        return dispatch(list(arguments))
    except FrontDoorError as error:
        say(f"build.py: {error}")
        return 2
    except KeyboardInterrupt:
        say("build.py: stopped.")
        return 130


def dispatch(arguments: list[str]) -> int:
    """Chooses between help, tests and the commands of the package."""
    words = command_line(arguments)
    if words[0] == "help" or (words[0] == "test" and asks_for_help(words[1:2])):
        return print_help()
    if asks_for_help(words):
        with contextlib.suppress(ImportError):
            return run_command(words, leave_no_trace=True)
    extras = [EXTRAS_OF[words[0]]] if words[0] in EXTRAS_OF else []
    lacking = missing(requirements(ROOT, extras), sys.path)
    if not lacking:
        os.environ.pop(CONTINUED, None)
        return run_tests(words[1:]) if words[0] == "test" else run_command(words)
    if os.environ.pop(CONTINUED, None):
        raise FrontDoorError(
            f"{sys.executable} does not find {', '.join(lacking)}, although installed: "
            f"remove {ROOT / '.venv'} and try again."
        )
    environment = Environment(ROOT)
    environment.ensure(extras)
    return go_on(environment.python, arguments)


def command_line(arguments: list[str]) -> list[str]:
    """The words for sizing_xlsx.cli, or those beginning with "help" or "test": no command means build."""
    if arguments and arguments[0] in ("-h", "--help", "help"):
        return ["help"]
    if arguments and (arguments[0] == "--version" or not arguments[0].startswith("-")):
        return arguments
    return ["build", *arguments]


def asks_for_help(words: list[str]) -> bool:
    """Whether a command is only asked to describe itself: that needs no packages."""
    return any(word in ("-h", "--help", "--version") for word in words)


def too_old(version: Sequence[int | str], executable: str) -> str:
    """The sentence for a Python that is too old."""
    found = ".".join(str(part) for part in version[:3])
    wanted = ".".join(str(part) for part in OLDEST_PYTHON)
    return f"build.py: needs Python {wanted} or later, but {executable or 'this'} is Python {found}."


def say(line: str) -> None:
    """One line on standard error: standard output belongs to the command."""
    print(line, file=sys.stderr, flush=True)


# Running


def print_help() -> int:
    """Prints the help of this file and the list of commands; creates nothing, not even byte code."""
    print(HELP)
    try:
        return run_command(["--help"], leave_no_trace=True)
    except ImportError as error:
        print(f"The commands cannot be listed before the first run has installed the packages ({error}).")
        return 0


def run_command(words: list[str], leave_no_trace: bool = False) -> int:
    """Runs a command of the package of this checkout in this process; leave_no_trace: writes no byte code."""
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = before or leave_no_trace
    if sys.path[:1] != [str(ROOT)]:
        sys.path.insert(0, str(ROOT))
    try:
        from sizing_xlsx.cli import main as command

        return command(words)
    except SystemExit as stop:
        if isinstance(stop.code, str):
            say(stop.code)
            return 1
        return stop.code or 0
    finally:
        sys.dont_write_bytecode = before


# A file's tests stay in one process, for they share what it sets up; conftest puts the longest files first.
SIDE_BY_SIDE = ("-n", "logical", "--maxprocesses", "4", "--dist", "loadfile", "--no-loadscope-reorder")


def run_tests(arguments: list[str]) -> int:
    """ruff, mypy and pytest in turn, or with arguments pytest alone; says which failed."""
    environment = dict(os.environ)
    # Tests that start another Python find this checkout too, whether or not it is installed.
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH")]))
    if arguments:
        return subprocess.call([sys.executable, "-m", "pytest", *arguments], cwd=ROOT, env=environment)
    failed = []
    for name, words in (("ruff", ["ruff", "check", "."]), ("mypy", ["mypy"]), ("pytest", ["pytest", *SIDE_BY_SIDE])):
        say(f"build.py test: {' '.join(words)}")
        if subprocess.call([sys.executable, "-m", *words], cwd=ROOT, env=environment):
            failed.append(name)
    outcome = f"{' and '.join(failed)} failed" if failed else "ruff, mypy and pytest passed"
    say(f"build.py test: {outcome}.")
    return 1 if failed else 0


def go_on(python: Path, arguments: list[str]) -> int:
    """Runs this file again with another Python; on POSIX the process becomes that one."""
    words = [str(python), str(ROOT / "build.py"), *arguments]
    environment = {**os.environ, CONTINUED: "1"}
    sys.stdout.flush()
    try:
        if os.name == "posix":
            os.execve(python, words, environment)
        return subprocess.call(words, env=environment)
    except OSError as error:
        raise FrontDoorError(
            f"{python} does not start ({reason(error)}): remove {ROOT / '.venv'} and try again."
        ) from None


# Which packages are needed, and which are there


def requirements(root: Path, extras: Iterable[str]) -> list[str]:
    """The requirements in pyproject.toml: the dependencies and those of the extras."""
    import tomllib

    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    except OSError as error:
        raise FrontDoorError(f"pyproject.toml beside build.py cannot be read ({reason(error)}).") from None
    optional = project["optional-dependencies"]
    return [*project["dependencies"], *(line for extra in extras for line in optional[extra])]


def missing(wanted: Iterable[str], path: Sequence[str]) -> list[str]:
    """The requirements ("name", "name>=1.2" or "name==1.2") that no distribution on the path meets."""
    from importlib.metadata import distributions

    lacking = []
    for requirement in wanted:
        name = name_of(requirement)
        found = next(iter(distributions(name=name, path=list(path))), None)
        # A folder left by an interrupted removal has no metadata, hence no version.
        version = found.metadata["Version"] if found else None
        if version is None or not meets(version, requirement[len(name) :]):
            lacking.append(requirement)
    return lacking


def name_of(requirement: str) -> str:
    """The distribution's name: "openpyxl>=3.1.5" -> "openpyxl"."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def meets(version: str, condition: str) -> bool:
    """Whether a version such as "3.1.5" meets ">=3.1", "==3.1.5" or no condition; others are left to pip."""
    for sign, bound in re.findall(r"(>=|==)\s*([\w.]+)", condition):
        have, want = numbers(version), numbers(bound)
        if (sign == ">=" and have < want) or (sign == "==" and have != want):
            return False
    return True


def numbers(version: str) -> list[int]:
    """The numbers of a version without trailing zeros: "3.10.0" -> [3, 10]."""
    found = [int(part) for part in re.findall(r"\d+", re.split(r"[^\d.]", version, maxsplit=1)[0])]
    while found and found[-1] == 0:
        found.pop()
    return found


def reason(error: OSError) -> str:
    """What the system says of an error, with the path where it names one."""
    return f"{error.strerror or error}: {error.filename}" if error.filename else str(error.strerror or error)


# The environment beside this file


class Environment:
    """`.venv` in a checkout.

    `.venv/front-door.json` tells its state. "whole" is false while the front door works on an environment
    that it made: one that is found so was interrupted and is made again. "pyproject" is the digest of
    what was installed; it is written last. An environment without the file was made by someone
    else: it is filled, and replaced only if its Python does not start.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.python = self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        self.lock = self.folder / "front-door.lock"
        self.state_file = self.folder / "front-door.json"

    def ensure(self, extras: list[str]) -> None:
        """Makes, fills or repairs the environment where needed; FrontDoorError if that fails."""
        if self.is_ready(extras):
            return
        try:
            self.folder.mkdir(exist_ok=True)
            with exclusive(self.lock) as descriptor:
                if not self.is_ready(extras):  # another build may have done it meanwhile
                    self.prepare(extras, descriptor)
        except OSError as error:
            raise FrontDoorError(
                f"cannot write the environment for the packages ({reason(error)}): make the folder writable, "
                f"or install {', '.join(requirements(self.root, extras))} for {sys.executable}."
            ) from None

    def is_ready(self, extras: Iterable[str]) -> bool:
        """Whether the environment is whole, of this pyproject.toml and of this folder, with these extras."""
        state = self.state()
        return (
            state.get("whole") is True
            and state.get("pyproject") == digest(self.root)
            and set(extras) <= set(state.get("extras", []))
            and self.python.exists()
            and not missing(requirements(self.root, extras), self.site_packages())
        )

    def prepare(self, extras: list[str], lock: int) -> None:
        """Makes the environment if there is no usable one and installs the project there (under the lock)."""
        if not self.is_usable(lock):
            self.make(lock)
        before = self.state()
        wanted = requirements(self.root, extras)
        names = ", ".join(name_of(line) for line in wanted)
        say(f"build.py: installing {names} into {self.folder} (once; needs a network).")
        if before.get("made"):
            self.write_state({**before, "whole": False})
        target = f".[{','.join(extras)}]" if extras else "."
        done = self.run(["-m", "pip", "install", "--no-input", "--editable", target], lock)
        if done.returncode:
            if before:
                self.write_state(before)
            raise FrontDoorError(f"the packages cannot be installed, pip says: {last_error(done.stdout)}")
        lacking = missing(wanted, self.site_packages())
        if lacking:
            raise FrontDoorError(f"pip is done, but {', '.join(lacking)} is not in {self.folder}.")
        known = before.get("extras", []) if before.get("pyproject") == digest(self.root) else []
        made = bool(before.get("made"))
        extras = sorted({*known, *extras})
        self.write_state({"whole": True, "made": made, "pyproject": digest(self.root), "extras": extras})

    def is_usable(self, lock: int) -> bool:
        """Whether there is an environment to fill: not interrupted, its Python new enough, with pip."""
        state = self.state()
        if not self.python.exists() or (state.get("made") and not state.get("whole")):
            return False
        # -I: a PYTHONPATH that brings another pip must not decide.
        probe = f"import sys; sys.exit(sys.version_info < {OLDEST_PYTHON})"
        if self.run(["-I", "-c", probe], lock).returncode:
            return False
        return not (
            self.run(["-I", "-m", "pip", "--version"], lock).returncode
            and self.run(["-I", "-m", "ensurepip"], lock).returncode
        )

    def make(self, lock: int) -> None:
        """Empties the folder (all but the lock) and makes a new environment in it."""
        lacking = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
        if lacking:
            short = ".".join(str(part) for part in sys.version_info[:2])
            raise FrontDoorError(
                f"{sys.executable} comes without {' and '.join(lacking)}: install it "
                f"(Debian and Ubuntu: apt install python{short}-venv) and try again."
            )
        again = any(item != self.lock for item in self.folder.iterdir())
        say(f"build.py: {'making a new' if again else 'making an'} environment in {self.folder}.")
        empty(self.folder, keep=self.lock)
        self.write_state({"whole": False, "made": True})
        # The Python below any active environment: this process may itself run in the one just emptied.
        base = str(getattr(sys, "_base_executable", None) or sys.executable)
        done = self.run(["-m", "venv", str(self.folder)], lock, python=base)
        if done.returncode:
            raise FrontDoorError(f"{self.folder} cannot be made, Python says: {last_error(done.stdout)}")

    def run(self, words: list[str], lock: int, python: str = "") -> subprocess.CompletedProcess[str]:
        """Runs the environment's Python (or another one) in the checkout; output and errors come together."""
        environment = dict(os.environ)
        for name in ("PYTHONPATH", "PYTHONHOME"):
            environment.pop(name, None)
        environment.update(PIP_USER="0", PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_COLOR="1")
        posix = os.name == "posix"
        try:
            process = subprocess.Popen(
                [python or str(self.python), *words],
                cwd=self.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                pass_fds=(lock,) if posix else (),  # held on by pip if this process alone is killed
                start_new_session=posix,
            )
        except OSError as error:
            return subprocess.CompletedProcess(words, 127, stdout=reason(error))
        try:
            output, _ = process.communicate()
        except BaseException:
            # Ctrl-C: with what it started itself (venv runs pip), or that goes on writing.
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        return subprocess.CompletedProcess(words, process.returncode, stdout=output)

    def site_packages(self) -> list[str]:
        """Where the environment keeps its packages."""
        if os.name == "nt":
            return [str(self.folder / "Lib" / "site-packages")]
        return [str(folder) for folder in self.folder.glob("lib/python3*/site-packages")]

    def state(self) -> dict[str, Any]:
        """What front-door.json says; empty if it is not there or was cut off."""
        try:
            state = json.loads(self.state_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return state if isinstance(state, dict) else {}

    def write_state(self, state: dict[str, Any]) -> None:
        """Replaces front-door.json at one stroke."""
        draft = self.state_file.with_suffix(".new")
        draft.write_text(json.dumps(state, sort_keys=True) + "\n", encoding="utf-8")
        draft.replace(self.state_file)


def digest(root: Path) -> str:
    """Changes with pyproject.toml and when the checkout was moved (an installation knows its folder)."""
    return hashlib.sha256(os.fsencode(root) + b"\0" + (root / "pyproject.toml").read_bytes()).hexdigest()


def empty(folder: Path, keep: Path, patience: float = 10.0) -> None:
    """Removes all in a folder but one file; tries again while a dying process still writes there."""
    deadline = time.monotonic() + patience
    while True:
        try:
            for item in folder.iterdir():
                if item.is_dir() and not item.is_symlink():
                    shutil.rmtree(item)
                elif item != keep:
                    item.unlink()
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT) or time.monotonic() >= deadline:
                raise
            time.sleep(0.2)


def last_error(output: str) -> str:
    """The line of pip's (or venv's) output that says what went wrong."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for sign in ("ERROR:", "rror:", ""):
        for line in reversed(lines):
            if sign in line:
                return line
    return "nothing."


@contextlib.contextmanager
def exclusive(path: Path, timeout: float = LOCK_TIMEOUT) -> Iterator[int]:
    """Holds a lock on a file, which the system frees when its holder ends; yields the descriptor."""
    deadline = time.monotonic() + timeout
    with path.open("ab") as handle:
        told = False
        while not take_lock(handle.fileno()):
            if time.monotonic() >= deadline:
                raise FrontDoorError(
                    f"another build has worked on {path.parent} for {timeout:.0f} seconds: try again later."
                )
            if not told:
                say("build.py: waiting for another build to install the packages.")
                told = True
            time.sleep(0.1)
        yield handle.fileno()


def take_lock(descriptor: int) -> bool:
    """Takes the lock if nobody has it; a file system without locks counts as free."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
